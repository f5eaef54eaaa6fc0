"""Python's numbers: whole numbers of 64 bits, floats and bools; what would be more, or raise, ends the attempt.

    scalar.add(%i, 1)      ->      if (__builtin_add_overflow(n3, 1, &n4)) goto bail;
"""

from __future__ import annotations

from runtime.ir import Operator, ScalarType, TensorType, Variable
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS
from runtime.native.values import Items, Nothing, Number, Tensor, Unsupported
from runtime.ops.scalar import kind_of_dtype

_OVERFLOW = {"add": "add", "sub": "sub", "mul": "mul"}
_SIGNS = {"add": "+", "sub": "-", "mul": "*"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_BITS = {"and_": "&", "or_": "|", "xor": "^"}
_MATH = ("sqrt", "exp", "log", "sin", "cos", "tanh", "atan", "fabs", "log1p", "expm1", "erf")


def emit(low: Lowering, op: Operator) -> None:
    """One number."""
    short = op.name.removeprefix("scalar.")
    out = op.outputs[0]
    if short in ("item", "number", "index", "truth") and _is_tensor(op.args[0]):
        _item(low, op, short)
        return
    if short in ("size", "numel", "dim"):
        _size(low, op, short)
        return
    if short == "is_none":
        _is_none(low, op)
        return
    if op.kwargs or short.startswith(("str", "repr", "ascii", "format")):
        raise Unsupported(short)
    if short == "expect":
        one = low.number(op.args[0])
        if one.kind != op.args[1]:
            raise Unsupported("another kind")
        low.let(out, one.kind, one.text)
        return
    args = [low.number(arg) for arg in op.args]
    if isinstance(out.type, ScalarType) and out.type.kind not in ("int", "float", "bool"):
        raise Unsupported(out.type.kind)
    if short == "select":
        if args[1].kind != args[2].kind:
            raise Unsupported("kinds")
        low.let(out, args[1].kind, f"{args[0].text} ? {args[1].text} : {args[2].text}")
    elif short in ("min", "max"):
        _extreme(low, out, args, short)
    elif len(args) == 2:
        _two(low, out, short, *args)
    elif len(args) == 1:
        _one(low, out, short, args[0])
    else:
        raise Unsupported(short)


def _is_tensor(arg: object) -> bool:
    return isinstance(arg, Variable) and isinstance(arg.type, TensorType)


def _item(low: Lowering, op: Operator, short: str) -> None:
    t = low.tensor(op.args[0])
    if t.pending:
        low.flush()
    for dim in t.dims:
        if dim != 1:
            if isinstance(dim, int):
                raise Unsupported("more than one element")
            low.w.bail(f"{dim} != 1")
    text = t.reg or f"p{t.n}[0]"
    if short == "truth":
        low.let(op.outputs[0], "bool", f"{text} != 0")
    else:
        low.let(op.outputs[0], kind_of_dtype(t.dtype), text)


def _size(low: Lowering, op: Operator, short: str) -> None:
    t = low.tensor(op.args[0])
    if short == "dim":
        low.give(op.outputs[0], Number("int", str(t.rank), dim=t.rank))
    elif short == "numel":
        total = low.w.product(t.dims)
        low.give(op.outputs[0], Number("int", str(low.w.kept(total)), dim=total if isinstance(total, int) else None))
    else:
        dim = op.args[1]
        if type(dim) is not int or not -t.rank <= dim < t.rank:
            raise Unsupported("this dimension")
        size = low.w.kept(t.dims[dim])
        low.give(op.outputs[0], Number("int", str(size), dim=size))


def _is_none(low: Lowering, op: Operator) -> None:
    value = low.value(op.args[0])
    if isinstance(value, Tensor) and value.pending:
        text = "0"
    elif isinstance(value, Nothing):
        text = "1"
    elif isinstance(value, Number):
        text = f"!{value.has}"
    elif isinstance(value, Items):
        text = f"!l{value.n}" if value.null else "0"
    else:
        text = f"!b{value.n}" if value.null else "0"
    low.let(op.outputs[0], "bool", text)


def _extreme(low: Lowering, out: Variable, args: list[Number], short: str) -> None:
    if len({one.kind for one in args}) > 1:
        raise Unsupported("kinds")
    sign = "<" if short == "min" else ">"
    made = low.let(out, args[0].kind, args[0].text)
    for one in args[1:]:
        low.w.line(f"if ({one.text} {sign} {made.text}) {made.text} = {one.text};")


def _two(low: Lowering, out: Variable, short: str, a: Number, b: Number) -> None:
    w = low.w
    real = "float" in (a.kind, b.kind)
    if short in _COMPARE:
        if real and a.kind != b.kind:
            whole = a if a.kind != "float" else b
            w.bail(f"!exact({whole.text})")
            low.let(out, "bool", f"(double){a.text} {_COMPARE[short]} (double){b.text}")
        elif not real and a.text == b.text:
            low.let(out, "bool", str(int(short in ("eq", "le", "ge"))))
        else:
            low.let(out, "bool", f"{a.text} {_COMPARE[short]} {b.text}")
    elif short in _SIGNS and real:
        low.let(out, "float", f"(double){a.text} {_SIGNS[short]} (double){b.text}")
    elif short in _SIGNS:
        made = low.let(out, "int", "0")
        w.bail(f"__builtin_{_OVERFLOW[short]}_overflow((i64){a.text}, (i64){b.text}, &{made.text})")
    elif short == "truediv":
        w.bail(f"{b.text} == 0")
        if not real:
            w.bail(f"!exact({a.text}) || !exact({b.text})")
        low.let(out, "float", f"(double){a.text} / (double){b.text}")
    elif short in ("floordiv", "mod"):
        w.bail(f"{b.text} == 0")
        if real:
            function = "py_ffloordiv" if short == "floordiv" else "py_fmod"
            low.let(out, "float", f"{function}({a.text}, {b.text})")
        else:
            w.bail(f"{b.text} == -1 && {a.text} == INT64_MIN")
            low.let(out, "int", f"{'py_floordiv' if short == 'floordiv' else 'py_mod'}({a.text}, {b.text})")
    elif short in _BITS and not real:
        kind = "bool" if a.kind == b.kind == "bool" else "int"
        low.let(out, kind, f"{a.text} {_BITS[short]} {b.text}")
    elif short == "pow":
        if real:
            made = low.let(out, "float", f"pow((double){a.text}, (double){b.text})")
            w.bail(f"!isfinite({made.text}) && isfinite((double){a.text}) && isfinite((double){b.text})")
        else:
            w.bail(f"{b.text} < 0")
            made = low.let(out, "int", "0")
            w.bail(f"py_ipow({a.text}, {b.text}, &{made.text})")
    else:
        raise Unsupported(short)


def _one(low: Lowering, out: Variable, short: str, a: Number) -> None:
    w = low.w
    kind = "float" if a.kind == "float" else "int"
    if short in ("neg", "abs"):
        if kind == "int":
            w.bail(f"{a.text} == INT64_MIN")
            low.let(out, "int", f"-{a.text}" if short == "neg" else f"{a.text} < 0 ? -{a.text} : {a.text}")
        else:
            low.let(out, "float", f"-{a.text}" if short == "neg" else f"fabs({a.text})")
    elif short == "pos":
        low.let(out, kind, a.text)
    elif short == "round":
        if kind == "float":
            w.bail(f"!(fabs({a.text}) < 9e18)")
            low.let(out, "int", f"(i64)nearbyint({a.text}) + nought")
        else:
            low.let(out, "int", a.text)
    elif short == "not_":
        low.let(out, "bool", f"!({a.text})")
    elif short in ("bool", "truth"):
        low.let(out, "bool", f"{a.text} != 0")
    elif short == "invert":
        low.let(out, "int", f"~{a.text}")
    elif short == "float":
        low.let(out, "float", f"(double){a.text}")
    elif short == "int":
        if kind == "float":
            w.bail(f"!(fabs({a.text}) < 9e18)")
        low.let(out, "int", f"(i64){a.text} + nought" if kind == "float" else f"(i64){a.text}")
    elif short.removeprefix("math.") in ("floor", "ceil", "trunc"):
        if kind == "float":
            w.bail(f"!(fabs({a.text}) < 9e18)")
            low.let(out, "int", f"(i64){short.removeprefix('math.')}({a.text}) + nought")
        else:
            low.let(out, "int", a.text)
    elif short.removeprefix("math.") in ("isnan", "isinf", "isfinite") and short.startswith("math."):
        low.let(out, "bool", f"{short.removeprefix('math.')}((double){a.text}) != 0")
    elif short.startswith("math.") and short.removeprefix("math.") in _MATH:
        made = low.let(out, "float", f"{short.removeprefix('math.')}((double){a.text})")
        w.bail(f"(isnan({made.text}) && !isnan((double){a.text})) || (isinf({made.text}) && !isinf((double){a.text}))")
    else:
        raise Unsupported(short)


__all__ = ["FLOATS", "emit"]
