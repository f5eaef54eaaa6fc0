"""The functions of ``operator`` that do what a piece of syntax does: the same in a trace.

    operator.setitem(d, name, x)       d[name] = x
    operator.itemgetter("a")(d)        d["a"]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dy2static.operators.calls import growing
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedIterator, StagedSequence
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs.bool_ops import not_
from dy2static.operators.provenance import chosen
from dy2static.operators.shared.staging import Choice, Session, distribute, python_method
from dy2static.operators.values import traced_attribute, traced_compare, traced_subscript
from dy2static.operators.values.aug_assign import aug
from dy2static.operators.values.binary import binary
from dy2static.operators.values.compare import compare
from runtime.kinds import is_a
from runtime.tracer.numbers.scalars import StagedStr


def _apply(function: Callable[..., Any]) -> Any:
    def handler(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(session, *args, **kwargs)

    return handler


def _compared(op: str) -> Any:
    return _apply(lambda session, a, b, /: compare(a, op, b))


def _binary(op: str) -> Any:
    return _apply(lambda session, a, b, /: binary(a, op, b))


def _augmented(op: str) -> Any:
    return _apply(lambda session, a, b, /: aug(op, a, b))


GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def call_getter(session: Session, getter: Any, obj: Any) -> Any:
    """``itemgetter(*keys)(obj)`` and its like."""
    made, keys = getter.__reduce__()
    if made is operator.itemgetter:
        found = tuple(traced_subscript.read(session, obj, key) for key in keys)
    elif made is operator.attrgetter:
        found = tuple(_attribute(session, obj, key) for key in keys)
    else:  # a partial of methodcaller where it has keywords
        named = {} if made is operator.methodcaller else made.keywords
        name, *args = keys if made is operator.methodcaller else (*made.args, *keys)
        return call(traced_attribute.read(session, obj, name), *args, **named)
    return found if len(keys) > 1 else found[0]


def _attribute(session: Session, obj: Any, path: str) -> Any:
    for name in path.split("."):
        obj = traced_attribute.read(session, obj, name)
    return obj


def _length_hint(session: Session, value: Any, default: Any = 0, /) -> Any:
    if is_a(value, Choice):
        return distribute(session, value, lambda option: _length_hint(session, option, default))
    if is_a(value, (StagedStr, StagedSequence)) and not is_a(value, StagedIterator) or (
            growing.is_growing(value)):
        operator.length_hint((), default)  # it says which default it does not take
        return call(len, value)
    if python_method(value, "__len__") is not None:
        return call(len, value)
    return chosen.per_option(session, operator.length_hint, (value, default), {}, lambda given, named: chosen.foreign(
        session, operator.length_hint, given, named))


_AUGMENTED = {
    operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.imatmul: "@=", operator.itruediv: "/=",
    operator.ifloordiv: "//=", operator.imod: "%=", operator.ipow: "**=", operator.ilshift: "<<=",
    operator.irshift: ">>=", operator.iand: "&=", operator.ixor: "^=", operator.ior: "|=",
}  # fmt: skip

_BINARY = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.matmul: "@", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "**", operator.lshift: "<<", operator.rshift: ">>",
    operator.and_: "&", operator.or_: "|", operator.xor: "^", operator.lt: "<", operator.le: "<=", operator.gt: ">",
    operator.ge: ">=",
}  # fmt: skip

HANDLERS: list[tuple[Any, Any]] = [
    (operator.getitem, _apply(traced_subscript.read)), (operator.setitem, _apply(traced_subscript.write)),
    (operator.delitem, _apply(traced_subscript.delete)), (operator.contains, _apply(traced_compare.contains)),
    (operator.is_, _compared("is")), (operator.is_not, _compared("is not")), (operator.eq, _compared("==")),
    (operator.ne, _compared("!=")), (operator.truth, _apply(truth_of)),
    (operator.length_hint, _apply(_length_hint)),
    *((getattr(operator, name), _apply(lambda session, f, /, *args, **kwargs: call(f, *args, **kwargs)))
      for name in ("call",) if hasattr(operator, name)),  # since Python 3.11
    (operator.not_, _apply(lambda session, value, /: not_(value))),
    *((function, _binary(op)) for function, op in _BINARY.items()),
    *((function, _augmented(op)) for function, op in _AUGMENTED.items()),
]  # fmt: skip
