"""Whether an object existed before the trace, where nothing that the trace noted can tell.

Syntax and C functions make objects that nobody announces: ``a + b`` of two arrays, an exception, what ``json.loads``
gives, a function or class of code that is not converted. (Converted code announces the functions and classes that it
makes, with the operator ``defined``.) Such an object is older than the trace if something that is older refers to it,
directly or through others. So who refers to it is asked, with everything the trace stored taken back. What only the
trace's own frames and notes know is new. An argument, a module, a class or a closure of before that leads to it may
mean that the object was there, or that a debugger has it.
"""

from __future__ import annotations

import enum
import gc
import sys
import types
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import Place

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_LEVELS = 12
_REFERRERS = 4_000
_OURS = ("runtime", "dy2static")
_OPERATORS = "dy2static.operators"
_NOBODY = (types.FrameType, types.TracebackType, weakref.ref, types.AsyncGeneratorType, types.CoroutineType)
"""What refers to objects only while code runs."""
_SHARED = (types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
           types.GetSetDescriptorType, types.MemberDescriptorType, type(...), type(NotImplemented))  # fmt: skip


def existed_before(session: Session, value: Any) -> bool | None:
    """Whether ``value`` is no object that this trace made; None if all that is known is that something refers to it.

    Who refers to an object may depend on a debugger, so a reference is no proof that it is old. After None the caller
    has to do what is right for both, at the price of a Program for this call alone. False needs no such care: of an
    object to which nothing from before leads, nobody who called the function can have a name. So ``gc.get_referrers``
    decides how often a function is traced, never what a call gives.
    """
    if id(value) in session.externals:
        return True
    if id(value) in session.created and not _makes_its_own(type(value)):
        return False
    if isinstance(value, types.CellType) and (_holds_ours(value) or _first_held(session, value) in session.created):
        return False  # all converted code shares the one, wherever that is kept; the other was made for what it holds
    if is_plain(value) or _is_shared(value):
        return True
    return None if _is_held(session, value) else False


def _holds_ours(cell: types.CellType) -> bool:
    """Whether it is the cell by which converted code knows its operators."""
    try:
        held = cell.cell_contents
    except ValueError:
        return False
    return isinstance(held, types.ModuleType) and held.__name__ == _OPERATORS


def _first_held(session: Session, cell: types.CellType) -> int | None:
    """The identity of what a variable held before the trace stored to it."""
    found = session.journal.frames[0].get(Place("attribute", cell, "cell_contents"), cell)
    try:
        return id(cell.cell_contents if found is cell else found)
    except ValueError:
        return None


def _makes_its_own(cls: type) -> bool:
    """Whether calls of a class may give an object that was there."""
    return isinstance(cls.__new__, types.FunctionType) or type(cls).__call__ is not type.__call__


def _is_shared(value: Any) -> bool:
    """Whether a name in a module leads to this, or it is of the interpreter's own: no call makes such things."""
    if isinstance(value, types.BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, (types.ModuleType, type))
    if isinstance(value, _SHARED):
        return not isinstance(value, types.ModuleType) or sys.modules.get(value.__name__) is value
    if isinstance(value, enum.Enum):
        value = type(value)
    if not isinstance(value, (type, types.FunctionType)):
        return type(value).__module__ in ("torch._ops", "torch") and not isinstance(value, torch_internals.KEEPERS)
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found is value


def _is_held(session: Session, value: Any) -> bool:
    """Whether anything from before the trace refers to a value, with what the trace stored taken back."""
    stored = session.journal.frames[0]
    now = [(place, place.get()) for place in stored]
    for place, old in reversed(stored.items()):
        place.put_back(old)
    try:
        return _leads_to_the_past(session, value, [id(now), id(stored), *map(id, now)])
    finally:
        for place, content in now:
            place.put_back(content)


def _leads_to_the_past(session: Session, value: Any, seen: Iterable[int]) -> bool:
    known = {id(value), *seen}
    level = [value]
    for _ in range(_LEVELS):
        asked = tuple(level)  # Python 3.13 finds the tuple of the arguments among the referrers
        referrers = gc.get_referrers(*asked)
        known |= {id(level), id(asked), id(referrers)}
        level = []
        for one in referrers:
            if id(one) in known or isinstance(one, _NOBODY) or _is_ours(session, one):
                continue
            known.add(id(one))
            if _is_root(session, one):
                return True
            level.append(one)
        if not level:
            return False
        if len(known) > _REFERRERS:
            return True
    return True


def _is_ours(session: Session, one: Any) -> bool:
    """Whether this is the tracer's own, which knows everything that the trace made."""
    if isinstance(one, torch.Tensor) or one is session.created:
        return True
    if isinstance(one, dict):
        return "__spec__" in one and str(one.get("__name__")).partition(".")[0] in _OURS
    module = one.__module__ if isinstance(one, (types.FunctionType, type)) else type(one).__module__
    return isinstance(module, str) and module.partition(".")[0] in _OURS


def _is_root(session: Session, one: Any) -> bool:
    if id(one) in session.externals:
        return True
    if id(one) in session.created:
        return False
    if isinstance(one, dict):
        found = one.get("__name__")
        module = sys.modules.get(found) if isinstance(found, str) else None
        return "__builtins__" in one or (module is not None and module.__dict__ is one)
    return _is_shared(one) if isinstance(one, (type, types.FunctionType, types.ModuleType)) else False


__all__ = ["existed_before"]
