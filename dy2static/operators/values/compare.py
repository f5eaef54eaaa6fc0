"""``in``, ``not in``, ``is``, ``is not``, ``==``, ``!=``; other comparisons stay native.

    a not in b   ->   compare(a, "not in", b)
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

from dy2static.operators.calls import boundary, keyed, numpy_arrays
from dy2static.operators.constructs.bool_ops import not_
from dy2static.operators.constructs.user_methods import NOT_USERS, operated
from dy2static.operators.provenance.classes import note_asked
from dy2static.operators.shared.staging import Choice, active, distribute
from dy2static.operators.values.equality import equal, kind_of
from dy2static.operators.values.traced_compare import contains, identical
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.recording import numpy_calls
from runtime.tracer.values import identities
from runtime.tracer.values.containers import opened
from runtime.tracer.values.numpy_arrays import NumpyScalar
from runtime.tracer.values.structure import row_of

_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b, "is": operator.is_, "is not": operator.is_not,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


_METHODS = {"==": "__eq__", "!=": "__ne__"}
_PLAINLY = frozenset((int, float, bool, str, type(None)))
_BY_HASH: tuple[Any, ...] = (set, frozenset, dict, type({}.keys()), type({}.items()))
_BY_CONTENT = (list, tuple, dict, set, deque)
"""What is compared item by item with its own kind."""


def compare(a: Any, op: str, b: Any) -> Any:
    """``a <op> b``.

    >>> compare(1, "in", [1, 2]), compare(None, "is not", None)
    (True, False)
    """
    session = active()
    if session is None or (type(a) in _PLAINLY and type(b) in _PLAINLY and op in ("==", "!=")):
        return _PLAIN[op](a, b)
    if is_a(b, Keyed) and is_a(a, (set, frozenset, dict)) and not op.endswith("in"):
        a = keyed.of_real(session, a)
    if op in ("==", "!="):
        a, b = opened(a), opened(b)
        if is_a(a, Choice):
            return distribute(session, a, lambda option: compare(option, op, option if b is a else b))
        if is_a(b, Choice):
            return distribute(session, b, lambda option: compare(a, op, option))
        a, b = numpy_arrays.beside_numbers(session, a, op, b)
        if type(a) is complex and is_a(b, NumpyScalar):  # Python would not tell the scalar which stands first
            return numpy_calls.record("operator.eq" if op == "==" else "operator.ne", (a, b), {})
        if session.containers.has_rows and type(a) is type(b) and (row_of(a) is not None or row_of(b) is not None):
            from dy2static.operators.values.equality import equal_rows

            same = equal_rows(session, a, b)
            if same is not NOT_USERS:
                return same if op == "==" else not_(same)
        note_asked(session, (a, b))
        users = operated(session, a, op, b)
        if users is not NOT_USERS:
            return users
        if is_a(a, _BY_HASH) and is_a(b, _BY_HASH):
            identities.require_known_in_both(session, a, b)
        kind = kind_of(a, _METHODS[op])
        if kind is None or kind is not kind_of(b, _METHODS[op]):
            if any(is_a(a, kind) and is_a(b, kind) for kind in _BY_CONTENT):
                boundary.require_none(session, f"'{op}'", (a, b))
            return _PLAIN[op](a, b)
        result = equal(session, a, b)
        return result if op == "==" else not_(result)
    note_asked(session, (a, b) if op.endswith("in") else ())
    result = contains(session, b, a) if op.endswith("in") else identical(session, a, b)
    if not op.startswith("not") and op != "is not":
        return result
    return not_(result)
