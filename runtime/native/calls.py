"""Operators that C does not know: Python runs them, in the middle of a C function.

    aten.cumsum.default(%x, 0)      ->      c->call(token, 3, words): x's memory goes out, the result's comes back

Only operators without effects, whose results are memory of their own: then nobody can tell where they ran.
"""

from __future__ import annotations

from runtime.executor import keeps
from runtime.ir import Operator, ScalarType, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.native.lowering import Lowering
from runtime.native.values import CTYPES, NUMBERS, Nothing, Number, Tensor, Unsupported, Value, identity
from runtime.ops import aten


def _refuse(op: Operator) -> None:
    """Errors raised: Unsupported for an Operator that Python has to run in its place."""
    definition = definition_of(op.name)
    if op.blocks or aten.CHECKED in op.attrs or definition.effect or definition.says:
        raise Unsupported(f"{op.name} has effects")
    if op.name.startswith("scalar."):
        return
    if not op.name.startswith("aten."):
        raise Unsupported(op.name)
    if aten.writes(aten.resolve(op.name), op.args, op.kwargs) or keeps.may_share(op):
        raise Unsupported(f"{op.name} may give memory that others have")
    if any(not isinstance(out.type, TensorType) or out.type.shape is None for out in op.outputs):
        raise Unsupported(f"{op.name} gives something else")


def emit(low: Lowering, op: Operator) -> None:
    """The words of the operands, the call, the results from the same words."""
    _refuse(op)
    low.called[id(op)] = op
    definition = definition_of(op.name)
    low.random = low.random or definition.random
    values: list[Value] = []
    for var in dict.fromkeys(op.inputs):
        found = low.value(var)
        if isinstance(found, Tensor):
            low.memory(low.tensor(var))
        elif isinstance(found, Number):
            low.number(var)
        elif not isinstance(found, Nothing):
            raise Unsupported("a list")
        values.append(found)
    low.flush()
    w = low.w
    size = sum(_words(value) for value in values)
    room = max(size, sum(_result_words(out) for out in op.outputs), 1)
    number = len(low.calls)
    low.calls.append((op, values))
    words = f"q{w.fresh()}"
    w.declare("i64", f"{words}[{room}]", "{0}")
    at = 0
    for value in values:
        at = pack(low, value, words, at)
    w.line("d2s_tidy(c);")
    w.bail(f"c->call(c->token, {number}, {words})")
    at = 0
    unread = set(low.live.unread.get(id(op), ()))
    for out in op.outputs:
        if out not in unread:
            _result(low, out, words, at)
        at += _result_words(out)


def _words(value: Value) -> int:
    return 5 + 2 * value.rank if isinstance(value, Tensor) else 1


def _result_words(out: Variable) -> int:
    return 2 + len(out.type.shape or ()) if isinstance(out.type, TensorType) else 1


def pack(low: Lowering, value: Value, words: str, at: int) -> int:
    """Write a value's words: memory, whose it is, place in it, object, size in bytes, sizes, strides; or the number."""
    w = low.w
    if isinstance(value, Number):
        w.line(f"{words}[{at}] = {f'as_word({value.text})' if value.kind == 'float' else value.text};")
        return at + 1
    if not isinstance(value, Tensor):
        return at + 1
    n = value.n
    guard = f"if (b{n}) " if value.null else ""
    strides = low.strides(value)
    parts = [f"{words}[{at}] = b{n}->src; {words}[{at + 1}] = (char *)p{n} - b{n}->data;",
             f"{words}[{at + 2}] = o{n}; {words}[{at + 3}] = (i64)b{n}->data;",
             f"{words}[{at + 4}] = b{n}->size;"]  # fmt: skip
    for dim in range(value.rank):
        parts.append(f"{words}[{at + 5 + dim}] = {value.dims[dim]};")
        parts.append(f"{words}[{at + 5 + value.rank + dim}] = {strides[dim]};")
    w.line(f"{guard}{{ {' '.join(parts)} }}")
    return at + 5 + 2 * value.rank


def _result(low: Lowering, out: Variable, words: str, at: int) -> None:
    w = low.w
    type_ = out.type
    if isinstance(type_, ScalarType):
        if type_.kind not in NUMBERS:
            raise Unsupported(type_.kind)
        low.let(out, type_.kind, f"as_double({words}[{at}])" if type_.kind == "float" else f"{words}[{at}]")
        return
    if not isinstance(type_, TensorType) or type_.shape is None or type_.dtype not in CTYPES:
        raise Unsupported(f"{type_}")
    dims = []
    for place, dim in enumerate(type_.shape):
        real = w.local("i64", "z")
        w.line(f"{real} = {words}[{at + 2 + place}];")
        if isinstance(dim, int):
            w.bail(f"{real} != {dim}")
            dims.append(dim)
        else:
            dims.append(real)  # type: ignore[arg-type]
    made = low.blank(type_.dtype, dims)
    made.order = identity(len(dims))
    width = w.local("i64", "z")
    w.line(f"{width} = sizeof({made.ctype});")
    count = w.product(made.dims)
    w.line(f"if (!(b{made.n} = d2s_new(c, 0))) goto bail;")
    w.line(f"b{made.n}->src = {words}[{at}]; b{made.n}->cls = 62; b{made.n}->data = (char *){words}[{at + 1}]; "
           f"b{made.n}->size = ({count}) * {width};")  # fmt: skip
    w.line(f"p{made.n} = ({made.ctype} *)b{made.n}->data; o{made.n} = b{made.n}->src + 1;")
    low.give(out, made)


