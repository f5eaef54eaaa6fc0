"""Operators on elements: a row says the C expression; dtypes and broadcasting are PyTorch's own answers.

    aten.add.Tensor(%a, %b)      ->      e9 = x3 + x4
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from runtime.ir import Operand, Operator, TensorType, Variable
from runtime.native.lowering import Lowering
from runtime.native.nest import MOST, Nest
from runtime.native.values import CTYPES, HALVES, Expr, Number, Tensor, Unsupported, identity
from runtime.ops import aten

FLOATS = (torch.float32, torch.float64)


def broadcast(low: Lowering, shapes: Sequence[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """The sizes that tensors have together; where C cannot tell that sizes fit, it gives up at run time."""
    rank = max(map(len, shapes))
    found: list[Expr] = [1] * rank
    for shape in shapes:
        for place, dim in enumerate(shape, start=rank - len(shape)):
            before = found[place]
            if before == dim or dim == 1:
                continue
            if before == 1:
                found[place] = dim
            elif isinstance(before, int) and isinstance(dim, int):
                raise Unsupported("sizes that do not fit")
            else:
                low.w.bail(f"{before} != {dim}")
                found[place] = before if isinstance(before, int) else dim
    return tuple(found)


def convert(text: str, source: torch.dtype, to: torch.dtype) -> str:
    """An element as another dtype."""
    if source == to:
        return text
    if source in HALVES:
        return convert(f"{HALVES[source]}_wide({text})", torch.float32, to)
    if to in HALVES:
        return f"{HALVES[to]}_narrow({convert(text, source, torch.float32)})"
    if to == torch.bool:
        return f"({text} != 0)"
    if source.is_floating_point and not to.is_floating_point:
        return f"(({CTYPES[to]})(({CTYPES[to]}){text} + nought))"
    return f"(({CTYPES[to]}){text})"


def suffix(dtype: torch.dtype) -> str:
    """The end of a C function's name for a dtype of floats."""
    if dtype not in FLOATS:
        raise Unsupported("a function of whole numbers")
    return "f" if dtype is torch.float32 else "d"


def common_dtype(low: Lowering, operands: Sequence[Tensor | Number]) -> torch.dtype:
    """The dtype that PyTorch computes in for such operands."""
    samples: list[Any] = []
    for one in operands:
        if isinstance(one, Tensor):
            samples.append(torch.empty((1,) * min(one.rank, 1), dtype=one.dtype))
        else:
            samples.append({"int": 1, "float": 1.0, "bool": True}[one.kind])
    return torch.result_type(samples[0], samples[-1])


def element(low: Lowering, nest: Nest, one: Tensor | Number, dtype: torch.dtype) -> str:
    """An operand's element in the dtype that is computed in."""
    if isinstance(one, Number):
        if dtype == torch.bool:
            return f"({one.text} != 0)"
        if dtype in HALVES:
            return f"{HALVES[dtype]}_narrow((float){one.text})"
        return f"(({CTYPES[dtype]}){one.text})"
    return convert(nest.load(low, one), one.dtype, dtype)


def order_of(low: Lowering, operands: Sequence[Tensor], dims: tuple[Expr, ...]) -> tuple[int, ...]:
    """How the dimensions of a result lie in memory: as TensorIterator has it, where that is certain."""
    straight = identity(len(dims))
    whole = [one for one in operands if one.rank > 1]
    if all(one.straight for one in whole):
        return straight
    given = [(one.dims, low.strides(one)) for one in operands]
    iterated = _iterated(given, dims)
    if iterated is not None and iterated == _iterated(given[::-1], dims):  # some kernels have them the other way round
        return iterated
    first = next(one for one in operands if one.rank > 0)
    if first.rank != len(dims) or first.dims != dims or not first.order or 0 in (first.strides or ()):
        raise Unsupported("a layout that is not certain")
    return first.order


def _iterated(
    operands: Sequence[tuple[Sequence[Expr], Sequence[Expr]]], dims: Sequence[Expr]
) -> tuple[int, ...] | None:
    """The same where sizes and strides are known: TensorIterator's ``reorder_dimensions``.

    operands: sizes and strides of each. It sorts dimensions by the strides of the first operand that has both. None
    too where the stride of a dimension of size 1 decides, as that may be any.
    """
    count, places = len(dims), []
    for sizes, strides in operands:
        ahead = count - len(sizes)
        here = zip(sizes, dims[ahead:], strides)
        places.append([*[0] * ahead, *(0 if size == 1 and dim != 1 else step for size, dim, step in here)])
    known = [one for one in dims if isinstance(one, int)]
    if len(known) < count or not all(isinstance(step, int) for steps in places for step in steps):
        return None

    def compared(a: int, b: int) -> int:
        for steps in places:
            if steps[a] != 0 and steps[b] != 0 and (steps[a] != steps[b] or known[a] > known[b]):
                return -1 if steps[a] < steps[b] else 1  # type: ignore[operator]
        return 0

    def arranged(inner: list[int]) -> list[int]:
        """Dimensions, which come from the innermost outwards, from the outermost inwards."""
        for place in range(1, len(inner)):
            at = place
            for below in reversed(range(place)):
                told = compared(inner[below], inner[at])
                if told < 0:
                    break
                if told > 0:
                    inner[below], inner[at] = inner[at], inner[below]
                    at = below
        return inner[::-1]

    found = arranged([dim for dim in reversed(range(count)) if known[dim] != 1])
    if [dim for dim in arranged(list(reversed(range(count)))) if known[dim] != 1] != found:
        return None
    for dim in range(count):
        if known[dim] == 1:  # its place means nothing
            found.insert(next((place for place, one in enumerate(found) if one > dim), count), dim)
    return tuple(found)


def compute(
    low: Lowering, out: Variable | None, operands: Sequence[Tensor | Number], dtype: torch.dtype,
    text: Callable[[Nest], str],
) -> Tensor:  # fmt: skip
    """A new tensor of elements; it stands in a nest, or in a local if it has no dimensions."""
    tensors = [one.half or one for one in operands if isinstance(one, Tensor)]
    dims = broadcast(low, [one.dims for one in tensors])
    if not dims and low.target.registers:
        if any(one.pending for one in tensors):
            low.flush()
        made = low.blank(dtype, ())
        scratch = Nest((), ())
        expression = text(scratch)
        for one in scratch.loads.values():
            expression = re.sub(rf"\bx{one.n}\b", f"(*p{one.n})", expression)
        name = low.w.local(made.ctype, "r")
        low.w.line(f"{name} = {expression};")
        made.reg = name
        return made
    order = order_of(low, tensors, dims)
    nest = low.nest
    fits = nest is not None and nest.dims == dims and nest.order == order and len(nest.steps) < MOST
    for one in tensors:
        if one.pending and (nest is None or not fits or one.dims != dims or not nest.holds(one)):
            fits = False
    if not fits:
        low.flush()
        nest = low.nest = Nest(dims, order)
    assert nest is not None
    for one in tensors:
        if one.reg:
            continue
        if not one.pending:
            low.memory(one)
    made = low.blank(dtype, dims)
    made.order = order
    nest.add(made, text(nest))
    return made


def operand(low: Lowering, value: Operand) -> Tensor | Number:
    """A tensor or a number."""
    if isinstance(value, Variable) and isinstance(value.type, TensorType):
        return low.tensor(value)
    return low.number(value)


Make = Callable[..., str]
"""From elements (and the suffix of functions) to the C expression."""


def declared(op: Operator, place: int = 0) -> torch.dtype | None:
    """The dtype that the Program says a result has."""
    type_ = op.outputs[place].type
    return type_.dtype if isinstance(type_, TensorType) else None


def _expect(op: Operator, dtype: torch.dtype) -> torch.dtype:
    told = declared(op)
    if told is not None and told != dtype:
        raise Unsupported("another dtype than expected")
    if dtype not in CTYPES:
        raise Unsupported(f"{dtype}")
    return dtype


ARITHMETIC: dict[str, Make] = {
    "maximum": lambda a, b: f"(({a} > {b} || {a} != {a}) ? {a} : {b})",
    "minimum": lambda a, b: f"(({a} < {b} || {a} != {a}) ? {a} : {b})",
}
WHOLE_EXTREMES: dict[str, Make] = {
    "maximum": lambda a, b: f"({a} > {b} ? {a} : {b})",
    "minimum": lambda a, b: f"({a} < {b} ? {a} : {b})",
}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
LOGICAL = {"logical_and": "({} != 0) & ({} != 0)", "logical_or": "({} != 0) | ({} != 0)",
           "logical_xor": "({} != 0) ^ ({} != 0)"}  # fmt: skip
BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "__and__": "&", "__or__": "|", "__xor__": "^"}

FLOAT_UNARY: dict[str, Make] = {
    "exp": lambda x, s, one: f"m_exp_{s}({x})",
    "tanh": lambda x, s, one: f"m_tanh_{s}({x})",
    "log": lambda x, s, one: f"m_log_{s}({x})",
    "log1p": lambda x, s, one: f"m_log1p_{s}({x})",
    "expm1": lambda x, s, one: f"m_expm1_{s}({x})",
    "log2": lambda x, s, one: f"m_log2_{s}({x})",
    "log10": lambda x, s, one: f"m_log10_{s}({x})",
    "erf": lambda x, s, one: f"m_erf_{s}({x})",
    "sin": lambda x, s, one: f"m_sin_{s}({x})",
    "cos": lambda x, s, one: f"m_cos_{s}({x})",
    "sigmoid": lambda x, s, one: f"{one} / ({one} + m_exp_{s}(-{x}))",
    "sqrt": lambda x, s, one: f"{'sqrtf' if s == 'f' else 'sqrt'}({x})",
    "rsqrt": lambda x, s, one: f"{one} / {'sqrtf' if s == 'f' else 'sqrt'}({x})",
    "reciprocal": lambda x, s, one: f"{one} / {x}",
}
"""Functions of floats; whole numbers become floats first."""

SAME_UNARY: dict[str, Make] = {
    "relu": lambda x, t: f"({x} <= 0 ? ({t})0 : {x})",
}
ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint"}


def _unary(low: Lowering, op: Operator, x: Tensor, short: str) -> tuple[torch.dtype, Callable[[Nest], str]]:
    dtype = x.dtype
    if short in FLOAT_UNARY:
        dtype = dtype if dtype in FLOATS else torch.get_default_dtype()
        s = suffix(dtype)
        one = "1.0f" if s == "f" else "1.0"
        return dtype, lambda nest: FLOAT_UNARY[short](element(low, nest, x, dtype), s, one)
    if short in ("logical_not", "isnan", "isinf", "isfinite"):
        if short == "logical_not":
            return torch.bool, lambda nest: f"({nest.load(low, x)} == 0)"
        if dtype not in FLOATS:
            return torch.bool, lambda nest: "1" if short == "isfinite" else "0"
        return torch.bool, lambda nest: f"({short}({nest.load(low, x)}) != 0)"
    if short in ROUNDING and dtype in FLOATS:
        name = ROUNDING[short] + ("f" if dtype is torch.float32 else "")
        return dtype, lambda nest: f"{name}({nest.load(low, x)})"
    if dtype == torch.bool:
        if short == "bitwise_not":
            return dtype, lambda nest: f"!{nest.load(low, x)}"
        raise Unsupported("bool")
    ctype = CTYPES[dtype]
    if short == "abs" and dtype in FLOATS:
        return dtype, lambda nest: f"{'fabsf' if dtype is torch.float32 else 'fabs'}({nest.load(low, x)})"
    if short == "bitwise_not":
        return dtype, lambda nest: f"({ctype})~{nest.load(low, x)}"
    if short == "sign" and dtype in FLOATS:
        return dtype, lambda nest: f"(({ctype})(({nest.load(low, x)} > 0) - ({nest.load(low, x)} < 0)))"
    if short == "relu" and x.half is not None:  # which keeps the sign of zero
        return dtype, lambda nest: f"({nest.load(low, x)} < 0 ? 0.0f : {nest.load(low, x)})"
    if short == "neg" and (dtype in FLOATS or dtype == torch.int64):
        return dtype, lambda nest: _wrap(dtype, f"-{term(low, nest, x, dtype)}")
    if short == "square" and (dtype in FLOATS or dtype == torch.int64):
        return dtype, lambda nest: _wrap(dtype, f"{term(low, nest, x, dtype)} * {term(low, nest, x, dtype)}")
    if short in SAME_UNARY and (dtype in FLOATS or dtype == torch.int64):
        return dtype, lambda nest: _wrap(dtype, SAME_UNARY[short](nest.load(low, x), ctype))
    raise Unsupported(short)


def _wrap(dtype: torch.dtype, text: str) -> str:
    """Arithmetic of whole numbers wraps around, as PyTorch's does."""
    return text if dtype in FLOATS else f"({CTYPES[dtype]})({text})"


def term(low: Lowering, nest: Nest, one: Tensor | Number, dtype: torch.dtype) -> str:
    """An operand of + - *: whole numbers as ones without a sign, which C defines to wrap around."""
    text = element(low, nest, one, dtype)
    return text if dtype in FLOATS else f"({'uint64_t' if dtype is torch.int64 else 'uint32_t'}){text}"


def _power(low: Lowering, x: Tensor, exponent: Operand) -> tuple[torch.dtype, Callable[[Nest], str]]:
    if not isinstance(exponent, (int, float)) or type(exponent) is bool or x.dtype not in FLOATS:
        raise Unsupported("a power")
    root = "sqrtf" if x.dtype is torch.float32 else "sqrt"
    one = f"(({x.ctype})1)"
    table = {0.5: "{r}({x})", -0.5: "{o} / {r}({x})", 1.0: "{x}", 2.0: "{x} * {x}", 3.0: "{x} * {x} * {x}",
             -1.0: "{o} / {x}", -2.0: "{o} / ({x} * {x})", 0.0: "{o}"}  # fmt: skip
    found = table.get(float(exponent))
    if found is None:
        raise Unsupported("a power")
    return x.dtype, lambda nest: found.format(x=nest.load(low, x), r=root, o=one)


def _binary(low: Lowering, op: Operator, a: Tensor | Number, b: Tensor | Number, short: str) -> tuple[
    torch.dtype, Callable[[Nest], str]]:  # fmt: skip
    dtype = common_dtype(low, [a, b])
    if dtype not in CTYPES:
        raise Unsupported(f"{dtype}")
    kwargs = op.kwargs
    if short in COMPARISONS:
        sign = COMPARISONS[short]
        if a is b and dtype not in FLOATS:
            return torch.bool, lambda nest: str(int(short in ("eq", "le", "ge")))
        return torch.bool, lambda nest: f"({element(low, nest, a, dtype)} {sign} {element(low, nest, b, dtype)})"
    if short in LOGICAL:
        def truth(nest: Nest, one: Tensor | Number) -> str:
            return one.text if isinstance(one, Number) else nest.load(low, one)

        return torch.bool, lambda nest: f"({LOGICAL[short].format(truth(nest, a), truth(nest, b))})"
    if short in BITWISE:
        if dtype in FLOATS:
            raise Unsupported("bits of floats")
        sign = BITWISE[short]
        return dtype, lambda nest: _wrap(dtype, f"{element(low, nest, a, dtype)} {sign} {element(low, nest, b, dtype)}")
    if short == "div":
        if kwargs.get("rounding_mode") is not None or len(op.args) > 2:
            raise Unsupported("a rounded division")
        dtype = dtype if dtype in FLOATS else torch.get_default_dtype()
        suffix(dtype)
        if isinstance(b, Number) and not low.target.divides_by_numbers:
            ctype = CTYPES[dtype]
            return dtype, lambda nest: f"{element(low, nest, a, dtype)} * (({ctype})1 / {element(low, nest, b, dtype)})"
        return dtype, lambda nest: f"{element(low, nest, a, dtype)} / {element(low, nest, b, dtype)}"
    if dtype == torch.bool:
        raise Unsupported("bool")
    if short in ("add", "sub", "rsub"):
        if short == "rsub":
            a, b = b, a
        if len(op.args) > 2 and not kwargs:
            kwargs = {"alpha": op.args[2]}
        return dtype, _sum(low, a, b, dtype, kwargs.get("alpha", 1), "-" if short != "add" else "+")
    if short == "remainder" and dtype in FLOATS:
        s = suffix(dtype)
        return dtype, lambda nest: f"rem_{s}({element(low, nest, a, dtype)}, {element(low, nest, b, dtype)})"
    if short in ("remainder", "floor_divide") and dtype == torch.int64 and isinstance(b, Number):
        function = "py_mod" if short == "remainder" else "py_floordiv"
        low.w.bail(f"{b.text} == 0 || {b.text} == -1")
        return dtype, lambda nest: f"{function}({element(low, nest, a, dtype)}, {element(low, nest, b, dtype)})"
    if short == "tanh_backward":
        return dtype, lambda nest: (
            f"{element(low, nest, a, dtype)} * (1 - {element(low, nest, b, dtype)} * {element(low, nest, b, dtype)})")
    if short == "sigmoid_backward":
        return dtype, lambda nest: (
            f"{element(low, nest, a, dtype)} * (1 - {element(low, nest, b, dtype)}) * {element(low, nest, b, dtype)}")
    if short == "mul":
        return dtype, lambda nest: _wrap(dtype, f"{term(low, nest, a, dtype)} * {term(low, nest, b, dtype)}")
    make = (ARITHMETIC if dtype in FLOATS else WHOLE_EXTREMES).get(short)
    if make is None:
        raise Unsupported(short)
    return dtype, lambda nest: _wrap(dtype, make(element(low, nest, a, dtype), element(low, nest, b, dtype)))


def _sum(low: Lowering, a: Tensor | Number, b: Tensor | Number, dtype: torch.dtype, alpha: Operand, sign: str
         ) -> Callable[[Nest], str]:  # fmt: skip
    if type(alpha) not in (int, float):
        raise Unsupported("alpha")
    if alpha != 1 and any(isinstance(one, Tensor) and one.half is not None for one in (a, b)):
        raise Unsupported("a factor that is rounded")
    if alpha == 1:
        return lambda nest: _wrap(dtype, f"{term(low, nest, a, dtype)} {sign} {term(low, nest, b, dtype)}")
    if type(alpha) is float and dtype not in FLOATS:
        raise Unsupported("alpha")
    factor = term(low, Nest((), ()), low.number(alpha), dtype)
    factor = f"-{factor}" if sign == "-" else factor
    if dtype in FLOATS:
        function = "fmaf" if dtype is torch.float32 else "fma"
        return lambda nest: (
            f"{function}({element(low, nest, b, dtype)}, {factor}, {element(low, nest, a, dtype)})")
    return lambda nest: _wrap(dtype, f"{term(low, nest, a, dtype)} + {factor} * {term(low, nest, b, dtype)}")


UNARY_NAMES = (*FLOAT_UNARY, *SAME_UNARY, *ROUNDING, "neg", "square", "abs", "sign", "logical_not", "isnan", "isinf",
               "isfinite", "bitwise_not")  # fmt: skip
BINARY_NAMES = ("mul", *ARITHMETIC, *COMPARISONS, *LOGICAL, *BITWISE, "add", "sub", "rsub", "div", "remainder",
                "floor_divide", "tanh_backward", "sigmoid_backward")  # fmt: skip


def wide(one: Tensor | Number) -> Tensor | Number:
    """An operand to compute with: one of 16 bits as float32."""
    if not isinstance(one, Tensor) or one.dtype not in HALVES:
        return one
    return replace(one, dtype=torch.float32, half=one)


def narrowed(op: Operator, operands: Sequence[Tensor | Number], dtype: torch.dtype, text: Callable[[Nest], str]
             ) -> tuple[torch.dtype, Callable[[Nest], str]]:  # fmt: skip
    """The dtype and elements of a result; those of 16 bits are rounded once, as PyTorch does after each operator.

    Errors raised: Unsupported where PyTorch rounds operands before.
    """
    told = declared(op)
    given = {(one.half or one).dtype for one in operands if isinstance(one, Tensor)}
    if told not in HALVES:
        return _expect(op, dtype), text
    if dtype != torch.float32 or given - {told, torch.bool}:
        raise Unsupported("operands of other dtypes")
    return told, lambda nest: f"{HALVES[told]}_narrow({text(nest)})"


def plan(low: Lowering, op: Operator) -> tuple[list[Tensor | Number], torch.dtype, Callable[[Nest], str]]:
    """The operands, the dtype of the result, and what an element of it is."""
    short = op.name.split(".")[1]
    short = short[:-1] if short.endswith("_") and not short.endswith("__") else short
    short = {"max": "maximum", "min": "minimum"}.get(short, short)
    a = wide(operand(low, op.args[0]))
    if short in UNARY_NAMES:
        if not isinstance(a, Tensor) or len(op.args) > 1 or op.kwargs:
            raise Unsupported("more arguments")
        dtype, text = _unary(low, op, a, short)
        return [a], dtype, text
    if short == "pow":
        if not isinstance(a, Tensor):
            raise Unsupported("a power")
        dtype, text = _power(low, a, op.args[1])
        return [a], dtype, text
    if short not in BINARY_NAMES or set(op.kwargs) - {"alpha", "rounding_mode"}:
        raise Unsupported(short)
    b = wide(operand(low, op.args[1]))
    if isinstance(a, Number) and isinstance(b, Number):
        raise Unsupported("numbers")
    if any(isinstance(one, Tensor) and one.half and (short, one.half.dtype) in low.target.more_roundings
           for one in (a, b)):  # fmt: skip
        raise Unsupported("more roundings")
    if short in COMPARISONS or (short in ("add", "sub", "rsub") and low.target.rounds_addends):
        a, b = _rounded(a, b), _rounded(b, a)
    dtype, text = _binary(low, op, a, b, short)
    return [a, b], dtype, text


def emit(low: Lowering, op: Operator) -> None:
    """A new tensor, element by element."""
    operands, dtype, text = plan(low, op)
    dtype, text = narrowed(op, operands, dtype, text)
    low.give(op.outputs[0], compute(low, op.outputs[0], operands, dtype, text))


def _rounded(one: Tensor | Number, other: Tensor | Number) -> Tensor | Number:
    """A number as it is compared with, or added to, a tensor of 16 bits: rounded to its dtype."""
    if isinstance(one, Tensor) or not isinstance(other, Tensor) or other.half is None:
        return one
    short = HALVES[other.half.dtype]
    return Number("float", f"(double){short}_wide({short}_narrow((float){one.text}))", one.has)


def emit_where(low: Lowering, op: Operator) -> None:
    """``where(flag, a, b)``."""
    flag = low.tensor(op.args[0])
    a, b = operand(low, op.args[1]), operand(low, op.args[2])
    dtype = common_dtype(low, [a, b])
    if flag.dtype != torch.bool:
        raise Unsupported("flags that are numbers")
    low.give(op.outputs[0], compute(
        low, op.outputs[0], [flag, a, b], _expect(op, dtype),
        lambda nest: f"({nest.load(low, flag)} ? {element(low, nest, a, dtype)} : {element(low, nest, b, dtype)})"))


def emit_masked_fill(low: Lowering, op: Operator) -> None:
    """``where(mask, value, x)``, in x's dtype."""
    x, mask, value = low.tensor(op.args[0]), low.tensor(op.args[1]), low.number(op.args[2])
    real = x.dtype in FLOATS or x.dtype in HALVES
    if mask.dtype != torch.bool or (value.kind == "float" and not real) or x.rank < mask.rank:
        raise Unsupported("this mask")
    low.give(op.outputs[0], compute(
        low, op.outputs[0], [x, mask], _expect(op, x.dtype),
        lambda nest: f"({nest.load(low, mask)} ? {element(low, nest, value, x.dtype)} : {nest.load(low, x)})"))


def emit_clamp(low: Lowering, op: Operator) -> None:
    """``clamp`` between numbers; nan stays nan."""
    x = low.tensor(op.args[0])
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    bounds = [None if call.get(name) is None else low.number(call[name]) for name in ("min", "max")]
    if x.dtype not in FLOATS and (x.dtype != torch.int64 or any(one and one.kind == "float" for one in bounds)):
        raise Unsupported("this clamp")

    def text(nest: Nest) -> str:
        value = nest.load(low, x)
        for one, sign in zip(bounds, "<>"):
            if one is not None:
                limit = element(low, nest, one, x.dtype)
                value = f"({value} {sign} {limit} ? {limit} : {value})"
        return value

    low.give(op.outputs[0], compute(low, op.outputs[0], [x], _expect(op, x.dtype), text))


def emit_threshold_backward(low: Lowering, op: Operator) -> None:
    """``x <= t ? 0 : g``."""
    g, x, limit = low.tensor(op.args[0]), low.tensor(op.args[1]), low.number(op.args[2])
    if g.dtype != x.dtype or x.dtype not in FLOATS:
        raise Unsupported("this threshold")
    low.give(op.outputs[0], compute(
        low, op.outputs[0], [g, x], _expect(op, x.dtype),
        lambda nest: f"({nest.load(low, x)} <= {element(low, nest, limit, x.dtype)} ? 0 : {nest.load(low, g)})"))


_AS_IT_IS = (None, False, torch.strided, torch.preserve_format)


def emit_to(low: Lowering, op: Operator) -> None:
    """Another dtype: a new tensor, or the very same one where it has that dtype already."""
    x = low.tensor(op.args[0])
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    dtype = low.tensor(call["other"]).dtype if "other" in call else call.get("dtype")
    told = call.get("device") not in (None, low.target.device) or any(
        call.get(name) not in _AS_IT_IS
        for name in ("layout", "pin_memory", "non_blocking", "copy", "memory_format"))  # fmt: skip
    dtype = x.dtype if dtype is None else dtype
    if told or dtype not in CTYPES:
        raise Unsupported("this conversion")
    if op.name != "aten._to_copy.default" and dtype == x.dtype:
        low.give(op.outputs[0], low.same(x))
        return
    real = x.dtype in FLOATS or x.dtype in HALVES
    if real and dtype not in (*FLOATS, *HALVES, torch.bool, torch.int64, torch.int32):
        raise Unsupported("this conversion")
    low.give(op.outputs[0], compute(
        low, op.outputs[0], [x], _expect(op, dtype), lambda nest: convert(nest.load(low, x), x.dtype, dtype)))


def emit_clone(low: Lowering, op: Operator) -> None:
    """The same elements in new memory."""
    x = low.tensor(op.args[0])
    wanted = op.kwargs.get("memory_format")
    if wanted is torch.contiguous_format and not x.straight:
        made = low.fresh(x.dtype, x.dims)
        low.copy(made, x)
        low.give(op.outputs[0], made)
        return
    if wanted not in (None, torch.preserve_format, torch.contiguous_format):
        raise Unsupported("this memory format")
    made = compute(low, op.outputs[0], [x], x.dtype, lambda nest: nest.load(low, x))
    low.give(op.outputs[0], made)
