"""Elementwise operators that native C leaves to PyTorch, numbers as tensors, folds that it does not know.

    aten.pow.Tensor_Tensor(%a, %b)      ->      e9 = powf(x3, x4)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runtime.export.c.elements import arguments, at, dtype_of, each, floats, ready, size
from runtime.export.c.shaping import first_of
from runtime.ir import Operator, TensorType, Variable
from runtime.native import activations, factories, pointwise, reductions
from runtime.native.lowering import Lowering, Rule
from runtime.native.nest import Nest
from runtime.native.pointwise import FLOATS, common_dtype, convert, element
from runtime.native.values import CTYPES, Number, Tensor, Unsupported
from runtime.native.views import axis

_FUNCTIONS = ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "exp2")
_PAIRS = {"atan2": "atan2", "fmod": "fmod", "hypot": "hypot", "copysign": "copysign"}


def spread(low: Lowering, op: Operator, operands: list[Tensor | Number], dtype: torch.dtype,
            text: Callable[[list[str]], str]) -> None:  # fmt: skip
    """A new tensor, element by element; sizes of 1 that show when it runs become as many as the others have."""
    w = low.w
    tensors = [low.memory(one) for one in operands if isinstance(one, Tensor)]
    low.flush()
    rank = max(one.rank for one in tensors)
    dims: list[Any] = [1] * rank
    for one in tensors:
        for place, dim in enumerate(one.dims, start=rank - one.rank):
            before = dims[place]
            if before in (1, dim):
                dims[place] = dim
            elif dim == 1:
                continue
            elif isinstance(before, int) and isinstance(dim, int):
                raise Unsupported("sizes that do not fit")
            else:
                w.bail(f"{before} != {dim} && {before} != 1 && {dim} != 1")
                dims[place] = size(low, f"{before} == 1 ? {dim} : {before}")
    made = low.fresh(dtype, dims)
    strides: dict[int, list[Any]] = {}
    for one in tensors:
        strides[one.n] = [
            0 if own == 1 else step if own == whole or isinstance(own, int)
            else size(low, f"{own} == 1 ? 0 : {step}")
            for own, whole, step in zip(one.dims, dims[rank - one.rank :], low.strides(one))
        ]  # fmt: skip
    low.strides(made)
    with each(low, dims) as index:
        texts = []
        for operand in operands:
            if isinstance(operand, Number):
                texts.append(operand.text)
                continue
            parts = [f"{place} * {step}" for place, step in zip(index[rank - operand.rank :], strides[operand.n])
                     if step != 0]  # fmt: skip
            texts.append(f"p{operand.n}[{' + '.join(parts) or '0'}]")
        w.line(f"{at(low, made, *index)} = {text(texts)};")
    low.give(op.outputs[0], made)


def _cast(text: str, one: Tensor | Number, dtype: torch.dtype) -> str:
    if isinstance(one, Number):
        return f"({text} != 0)" if dtype == torch.bool else f"(({CTYPES[dtype]}){text})"
    return convert(text, one.dtype, dtype)


class _Loose:
    """A nest in which operands are texts: what native rules make of an element is used for others."""

    def __init__(self) -> None:
        self.places: dict[int, str] = {}

    def load(self, low: Lowering, t: Tensor) -> str:
        """The element of an operand."""
        return self.places[t.n]


def emit_loosely(low: Lowering, op: Operator) -> None:
    """What native C computes element by element, where sizes or layouts are not certain."""
    operands, dtype, make = pointwise.plan(low, op)
    if dtype != dtype_of(op.outputs[0]):
        raise Unsupported("another dtype than expected")

    def text(texts: list[str]) -> str:
        nest = _Loose()
        for operand, found in zip(operands, texts):
            if isinstance(operand, Tensor):
                nest.places[operand.n] = found
        return make(nest)  # type: ignore[arg-type]  # it loads

    spread(low, op, operands, dtype, text)


def emit_where(low: Lowering, op: Operator) -> None:
    """``where`` and ``masked_fill`` of any sizes that go together."""
    call = arguments(op)
    if "masked_fill" in op.name:
        flag, a, b = low.tensor(call["mask"]), pointwise.operand(low, call["value"]), low.tensor(call["self"])
        dtype = b.dtype
        operands: list[Tensor | Number] = [flag, a, b]
        if isinstance(a, Number) and a.kind == "float" and dtype not in FLOATS:
            raise Unsupported("a float in whole numbers")
    else:
        flag = low.tensor(op.args[0])
        operands = [flag, pointwise.operand(low, op.args[1]), pointwise.operand(low, op.args[2])]
        dtype = common_dtype(low, operands[1:])
    if dtype != dtype_of(op.outputs[0]) or flag.dtype not in (torch.bool, torch.uint8):
        raise Unsupported("another dtype than expected")
    spread(low, op, operands, dtype, lambda texts: f"({texts[0]} ? {_cast(texts[1], operands[1], dtype)} : "
            f"{_cast(texts[2], operands[2], dtype)})")  # fmt: skip


def emit_power(low: Lowering, op: Operator) -> None:
    """``pow``: of floats as C has it, of whole numbers with exponents that are not negative."""
    a, b = pointwise.operand(low, op.args[0]), pointwise.operand(low, op.args[1])
    dtype = common_dtype(low, [a, b])
    if dtype != dtype_of(op.outputs[0]):
        raise Unsupported("another dtype than expected")
    if dtype in FLOATS:
        function = "powf" if dtype is torch.float32 else "pow"
        spread(low, op, [a, b], dtype, lambda t: f"{function}({_cast(t[0], a, dtype)}, {_cast(t[1], b, dtype)})")
        return
    if dtype == torch.bool:
        raise Unsupported("bool")
    if isinstance(b, Number):
        low.w.bail(f"{b.text} < 0")
    spread(low, op, [a, b], dtype, lambda t: f"({CTYPES[dtype]})d2s_power({t[0]}, {t[1]})")


def emit_division(low: Lowering, op: Operator) -> None:
    """``div`` with a rounding mode, ``floor_divide``, ``remainder`` and ``fmod`` of all dtypes."""
    call = arguments(op)
    short = op.name.split(".")[1].rstrip("_")
    a, b = (pointwise.operand(low, one) for one in op.args[:2])
    dtype = common_dtype(low, [a, b])
    mode = {"floor_divide": "floor", "remainder": "mod", "fmod": "fmod"}.get(short, call.get("rounding_mode"))
    if dtype != dtype_of(op.outputs[0]) or dtype == torch.bool or mode is None:
        raise Unsupported("another dtype than expected")
    if dtype in FLOATS:
        s, e = ("f", "f") if dtype is torch.float32 else ("d", "")
        text = {"floor": f"div_{s}({{}}, {{}})", "trunc": f"trunc{e}({{}} / {{}})", "mod": f"rem_{s}({{}}, {{}})",
                "fmod": f"fmod{e}({{}}, {{}})"}[mode]  # fmt: skip
    else:
        text = {"floor": "whole_floor({}, {}, &zero)", "trunc": "whole_trunc({}, {}, &zero)",
                "mod": "whole_mod({}, {}, &zero)", "fmod": "whole_fmod({}, {}, &zero)"}[mode]  # fmt: skip
        zero = low.w.local("int", "zero")
        low.w.line(f"{zero} = 0;")
        text = f"({CTYPES[dtype]}){text}".replace("zero)", f"{zero})")
    spread(low, op, [a, b], dtype, lambda t: text.format(_cast(t[0], a, dtype), _cast(t[1], b, dtype)))
    if dtype not in FLOATS:
        low.w.bail(zero)


def emit_function(low: Lowering, op: Operator) -> None:
    """Functions of C's library."""
    short = op.name.split(".")[1].rstrip("_")
    x = low.tensor(op.args[0])
    dtype = dtype_of(op.outputs[0])
    end = "f" if floats(Tensor(0, dtype, ())) == "f" else ""
    if short in _PAIRS:
        b = pointwise.operand(low, op.args[1])
        if common_dtype(low, [x, b]) != dtype:
            raise Unsupported("another dtype than expected")
        spread(low, op, [x, b], dtype, lambda t: f"{_PAIRS[short]}{end}({_cast(t[0], x, dtype)}, "
                f"{_cast(t[1], b, dtype)})")  # fmt: skip
        return
    text = {
        "log_sigmoid": "(({x} < 0 ? {x} : 0) - log1p{e}(exp{e}(-fabs{e}({x}))))",
        "softsign": "({x} / (1 + fabs{e}({x})))",
        "mish": "({x} * tanh{e}({x} > 20 ? {x} : log1p{e}(exp{e}({x}))))",
        "hardsigmoid": "({x} <= -3 ? 0 : {x} >= 3 ? 1 : {x} / 6 + ({t})0.5)",
        "hardswish": "({x} <= -3 ? 0 : {x} >= 3 ? {x} : {x} * ({x} + 3) / 6)",
        "selu": "({t})1.0507009873554804934 * ({x} > 0 ? {x} : ({t})1.6732632423543772848 * expm1{e}({x}))",
        "celu": "({x} > 0 ? {x} : {a} * expm1{e}({x} / {a}))",
        "frac": "({x} - trunc{e}({x}))", "relu": "({x} <= 0 ? 0 : {x})",
    }.get(short, f"{short}{{e}}({{x}})")
    if short == "celu":
        text = text.replace("{a}", f"({CTYPES[dtype]}){low.number(arguments(op)['alpha']).text}")
    text = text.replace("{e}", end).replace("{t}", CTYPES[dtype])
    spread(low, op, [x], dtype, lambda t: text.replace("{x}", _cast(t[0], x, dtype)))


def emit_glu(low: Lowering, op: Operator) -> None:
    """``glu``: the first half along a dimension times the sigmoid of the second."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    s, dim = floats(x), axis(x, call["dim"])
    n = x.dims[dim]
    if isinstance(n, str) or n % 2:
        low.w.bail(f"{n} % 2")
    half = n // 2 if isinstance(n, int) else size(low, f"{n} / 2")
    made = low.fresh(x.dtype, (*x.dims[:dim], half, *x.dims[dim + 1 :]))
    low.strides(x)
    with each(low, made.dims) as places:
        other = [*places[:dim], f"({places[dim]} + {half})", *places[dim + 1 :]]
        low.w.line(f"{at(low, made, *places)} = {at(low, x, *places)} / (1 + m_exp_{s}(-{at(low, x, *other)}));")
    low.give(op.outputs[0], made)


def emit_whole(low: Lowering, op: Operator) -> None:
    """``abs``, ``sign``, ``neg``, ``relu``, ``clamp`` and roundings of whole numbers, and clamps by tensors."""
    short = op.name.split(".")[1].rstrip("_")
    x = low.tensor(op.args[0])
    dtype = dtype_of(op.outputs[0])
    t = CTYPES[dtype]
    if short.startswith("clamp"):
        call = arguments(op)
        bounds = [(sign, pointwise.operand(low, call[name])) for sign, name in (("<", "min"), (">", "max"))
                  if call.get(name) is not None]  # fmt: skip
        if any(isinstance(one, Number) and one.kind == "float" for _, one in bounds) and dtype not in FLOATS:
            raise Unsupported("a clamp to a float")

        def text(texts: list[str]) -> str:
            value = _cast(texts[0], x, dtype)
            for (sign, one), found in zip(bounds, texts[1:]):
                limit = _cast(found, one, dtype)
                own = f" || {limit} != {limit}" if dtype in FLOATS and isinstance(one, Tensor) else ""
                value = f"({value} {sign} {limit}{own} ? {limit} : {value})"
            return value

        spread(low, op, [x, *(one for _, one in bounds)], dtype, text)
        return
    if dtype != x.dtype or dtype == torch.bool or dtype in FLOATS:
        raise Unsupported("this dtype")
    unsigned = "(uint64_t)" if dtype is torch.int64 else "(uint32_t)"
    form = {"abs": "({x} < 0 ? ({t})(0 - {u}{x}) : {x})", "neg": "({t})(0 - {u}{x})", "relu": "({x} < 0 ? 0 : {x})",
            "sign": "(({x} > 0) - ({x} < 0))"}.get(short, "{x}")  # fmt: skip
    form = form.replace("{t}", t).replace("{u}", unsigned)
    spread(low, op, [x], dtype, lambda texts: form.replace("{x}", texts[0]))


def emit_convert(low: Lowering, op: Operator) -> None:
    """``to``, ``type_as``, ``clone`` and their like: another dtype, or a copy."""
    call = arguments(op)
    x = low.tensor(op.args[0])
    dtype = dtype_of(op.outputs[0])
    if any(isinstance(one, torch.device) and one.type != "cpu" for one in call.values()):
        raise Unsupported("another device")
    short = op.name.split(".")[1]
    if short in ("to", "type_as") and dtype == x.dtype and not call.get("copy"):
        low.give(op.outputs[0], low.same(x))
        return
    spread(low, op, [x], dtype, lambda texts: convert(texts[0], x.dtype, dtype))


def emit_range(low: Lowering, op: Operator) -> None:
    """``arange`` and ``linspace``."""
    call = arguments(op)
    dtype = dtype_of(op.outputs[0])
    w, t = low.w, CTYPES[dtype]
    if "linspace" in op.name:
        start, end = low.number(call["start"]).text, low.number(call["end"]).text
        count = low.size(call["steps"])
        floats(Tensor(0, dtype, ()))
        w.bail(f"{count} < 0")
        made = low.fresh(dtype, (count,))
        step = w.local("double", "v")
        w.line(f"{step} = {count} > 1 ? ((double){end} - (double){start}) / (double)({count} - 1) : 0;")
        with each(low, (count,)) as (i,):
            w.line(f"p{made.n}[{i}] = ({t})({i} < {count} / 2 || {count} == 1 ? "
                   f"(double){start} + {step} * (double){i} : (double){end} - {step} * (double)({count} - 1 - {i}));")
        low.give(op.outputs[0], made)
        return
    first = low.number(call.get("start", 0))
    last, step_ = low.number(call["end"]), low.number(call.get("step", 1))
    w.bail(f"{step_.text} == 0")
    if all(one.kind != "float" for one in (first, last, step_)):
        start, end = size(low, first.text), size(low, last.text)
        w.bail(f"({step_.text} > 0 && {end} < {start}) || ({step_.text} < 0 && {end} > {start})")
        span = w.local("i64", "z")
        w.bail(f"__builtin_sub_overflow({end}, {start}, &{span})")
        w.bail(f"{span} == INT64_MIN")
        count = size(low, f"{span} / {step_.text} + ({span} % {step_.text} != 0)")
        made = low.fresh(dtype, (count,))
        with each(low, (count,)) as (i,):
            w.line(f"p{made.n}[{i}] = ({t})({first.text} + {i} * {step_.text});")
    else:
        floats(Tensor(0, dtype, ()))
        count = size(low, f"d2s_count((double){first.text}, (double){last.text}, (double){step_.text})")
        w.bail(f"{count} < 0")
        made = low.fresh(dtype, (count,))
        with each(low, (count,)) as (i,):
            w.line(f"p{made.n}[{i}] = ({t})((double){first.text} + (double){i} * (double){step_.text});")
    low.give(op.outputs[0], made)


def emit_eye(low: Lowering, op: Operator) -> None:
    """``eye``."""
    call = arguments(op)
    rows, columns = low.size(call["n"]), low.size(call.get("m", call["n"]))
    made = low.fresh(dtype_of(op.outputs[0]), (rows, columns))
    with each(low, (rows, columns)) as (i, j):
        low.w.line(f"{at(low, made, i, j)} = {i} == {j};")
    low.give(op.outputs[0], made)


def emit_filled(low: Lowering, op: Operator) -> None:
    """``empty`` and its like, as zeros; ``zeros_like`` of any layout."""
    call = arguments(op)
    short = op.name.split(".")[1]
    dtype = dtype_of(op.outputs[0])
    like = low.tensor(op.args[0]) if short.startswith("new_") or short.endswith("_like") else None
    if short.endswith("_like"):
        assert like is not None
        dims: Any = like.dims
    else:
        dims = low.sizes(call["size"])
    for dim in dims:
        if isinstance(dim, str):
            low.w.bail(f"{dim} < 0")
    value = low.number(call["fill_value"]) if "full" in short else None
    text = "1" if "ones" in short else "0" if value is None else _cast(value.text, value, dtype)
    low.flush()
    made = low.fresh(dtype, dims)
    with each(low, (low.w.product(tuple(dims)),)) as (i,):
        low.w.line(f"p{made.n}[{i}] = {text};")
    low.give(op.outputs[0], made)


def emit_fold(low: Lowering, op: Operator) -> None:
    """Folds of any layout: over all, over some dimensions."""
    call = arguments(op)
    (x,) = ready(low, op.args[0])
    short = op.name.split(".")[1]
    dtype = dtype_of(op.outputs[0])
    w = low.w
    wanted = call.get("dim")
    if isinstance(wanted, int):
        wanted = [wanted]
    if len(op.outputs) > 1:
        raise Unsupported("two results")
    gone = sorted({axis(x, one) for one in wanted}) if wanted and x.rank else list(range(x.rank))
    stay = [dim for dim in range(x.rank) if dim not in gone]
    keep = bool(call.get("keepdim", False))
    real = dtype in FLOATS
    total = "double" if real else "uint64_t"
    count = size(low, str(w.product(tuple(x.dims[dim] for dim in gone))))
    power = call.get("ord", call.get("p", 2))
    first, step, result = {
        "sum": ("0", "acc += ({k})v;", "acc"), "mean": ("0", "acc += v;", f"acc / (double){count}"),
        "prod": ("1", "acc *= ({k})v;", "acc"), "any": ("0", "acc |= v != 0;", "acc"),
        "all": ("1", "acc &= v != 0;", "acc"), "count_nonzero": ("0", "acc += v != 0;", "acc"),
        "amax": ("first", "if (v > acc || v != v) acc = v;", "acc"),
        "amin": ("first", "if (v < acc || v != v) acc = v;", "acc"),
        "max": ("first", "if (v > acc || v != v) acc = v;", "acc"),
        "min": ("first", "if (v < acc || v != v) acc = v;", "acc"),
        "linalg_vector_norm": ("0", *_norm(power)), "norm": ("0", *_norm(power)),
    }.get(short, ("", "", ""))  # fmt: skip
    if not step or (short == "mean" and not real) or (short in ("any", "all") and dtype != torch.bool):
        raise Unsupported(short)
    if x.dtype in FLOATS and not real and short in ("sum", "prod"):
        raise Unsupported("floats in whole numbers")
    kind = x.ctype if first == "first" else "int" if short in ("any", "all") else total
    if first == "first":
        w.bail(f"!{count}")
        step = step if x.dtype in FLOATS else step.replace(" || v != v", "")
    made = low.fresh(dtype, [1 if dim in gone else x.dims[dim] for dim in range(x.rank) if keep or dim in stay])
    flat = Tensor(made.n, dtype, tuple(x.dims[dim] for dim in stay), order=tuple(range(len(stay))))
    low.strides(x), low.strides(flat)
    with each(low, flat.dims) as index:
        places = dict(zip(stay, index))
        start = at(low, x, *(places.get(dim, "0") for dim in range(x.rank)))
        w.line(f"{kind} acc = {start if first == 'first' else first};")
        with each(low, [x.dims[dim] for dim in gone]) as inner:
            places |= dict(zip(gone, inner))
            w.line(f"const {x.ctype} v = {at(low, x, *(places[dim] for dim in range(x.rank)))};")
            w.line(step.replace("{k}", kind))
        w.line(f"{at(low, flat, *index)} = ({CTYPES[dtype]})({result});")
    low.give(op.outputs[0], made)


def _norm(power: Any) -> tuple[str, str]:
    if power in (2, None):
        return "acc += (double)v * (double)v;", "sqrt(acc)"
    if power == 1:
        return "acc += fabs((double)v);", "acc"
    if power == float("inf"):
        return "if (fabs((double)v) > acc || v != v) acc = fabs((double)v);", "acc"
    return "", ""


def emit_wrapped(low: Lowering, op: Operator) -> None:
    """A number as a tensor of no dimensions; ``lift_fresh`` and its like."""
    value = op.args[0]
    if isinstance(value, Variable) and isinstance(value.type, TensorType):
        low.give(op.outputs[0], low.same(low.tensor(value)))
        return
    number, dtype = low.number(value), dtype_of(op.outputs[0])
    made = low.blank(dtype, ())
    made.reg = low.w.local(made.ctype, "r")
    low.w.line(f"{made.reg} = {element(low, Nest((), ()), number, dtype)};")
    low.give(op.outputs[0], made)


def emit_isclose(low: Lowering, op: Operator) -> None:
    """``isclose`` and ``allclose`` of floats."""
    call = arguments(op)
    a, b = low.tensor(op.args[0]), low.tensor(op.args[1])
    floats(a, b)
    if call.get("equal_nan"):
        raise Unsupported("equal_nan")
    rtol, atol = low.number(call["rtol"]).text, low.number(call["atol"]).text
    spread(low, op, [a, b], torch.bool, lambda t: f"({t[0]} == {t[1]} || (isfinite({t[1]}) && "
            f"fabs((double){t[0]} - (double){t[1]}) <= {atol} + {rtol} * fabs((double){t[1]})))")  # fmt: skip


def emit_activation(low: Lowering, op: Operator) -> None:
    """Activations of a layout that is not certain: of dense copies."""
    given = {var: low.tensor(var) for var in op.inputs if isinstance(var.type, TensorType)}
    copies = {var: low.dense(one) for var, one in given.items()}
    low.flush()
    low.values.update(copies)
    try:
        activations.emit(low, op)
        low.flush()
    finally:
        low.values.update(given)
    for var, one in copies.items():
        if one is not given[var]:
            low.release(one)


NAMES: dict[Rule, list[str]] = {
    first_of(pointwise.emit, emit_loosely, emit_whole): [
        *(f"{name}.default" for name in (*pointwise.UNARY_NAMES, "maximum", "minimum", "logical_and", "logical_or",
                                         "logical_xor")),
        *(f"{name}.{kind}" for name in pointwise.BINARY_NAMES for kind in ("Tensor", "Scalar")
          if name not in ("remainder", "floor_divide")),
    ],
    first_of(pointwise.emit_where, emit_where): ["where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar"],
    first_of(pointwise.emit_masked_fill, emit_where): ["masked_fill.Scalar", "masked_fill.Tensor"],
    first_of(pointwise.emit_clamp, emit_whole): ["clamp.default", "clamp_min.default", "clamp_max.default"],
    emit_glu: ["glu.default"],
    emit_whole: ["clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor"],
    first_of(pointwise.emit, emit_power): ["pow.Tensor_Scalar"],
    emit_power: ["pow.Tensor_Tensor", "pow.Scalar"],
    first_of(pointwise.emit, emit_loosely, emit_division): ["remainder.Tensor", "remainder.Scalar",
                                                            "floor_divide.default", "floor_divide.Scalar"],
    emit_division: ["div.Tensor_mode", "div.Scalar_mode", "fmod.Tensor", "fmod.Scalar"],
    emit_function: [*(f"{name}.default" for name in (*_FUNCTIONS, "atan2", "hypot", "log_sigmoid", "softsign", "mish",
                                                     "hardsigmoid", "hardswish", "frac", "selu", "celu")),
                    "copysign.Tensor", "copysign.Scalar"],
    first_of(activations.emit, emit_activation): [f"{name}.default" for name in activations.NAMES],
    first_of(pointwise.emit_to, emit_convert): ["to.dtype", "_to_copy.default"],
    first_of(pointwise.emit_clone, emit_convert): ["clone.default"],
    emit_convert: ["to.dtype_layout", "to.device", "to.other", "type_as.default", "lift_fresh_copy.default"],
    emit_wrapped: ["lift_fresh.default"],
    first_of(factories.emit, emit_wrapped): ["scalar_tensor.default"],
    first_of(factories.emit, emit_filled): [f"{name}.default" for name in ("zeros", "ones", "full", "zeros_like",
        "ones_like", "full_like", "new_zeros", "new_ones", "new_full")],
    emit_filled: [f"{name}.default" for name in ("new_empty", "empty_like")] + ["empty.memory_format"],
    emit_range: ["arange.default", "arange.start", "arange.start_step", "linspace.default"],
    emit_eye: ["eye.default", "eye.m"],
    first_of(reductions.emit, emit_fold): ["sum.default", "sum.dim_IntList", "mean.default", "mean.dim", "max.default",
        "min.default", "amax.default", "amin.default", "any.default", "all.default", "linalg_vector_norm.default"],
    emit_fold: ["any.dim", "all.dim", "any.dims", "all.dims", "prod.default", "prod.dim_int", "norm.ScalarOpt_dim",
                "norm.Scalar", "count_nonzero.default", "count_nonzero.dim_IntList"],
    emit_isclose: ["isclose.default"],
}  # fmt: skip
