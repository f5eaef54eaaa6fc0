"""Whether an object existed before the trace, where nothing that the trace noted can tell.

Syntax and C functions make objects that nobody announces: ``a + b`` of two arrays, an exception, what ``json.loads``
gives, a function or class of code that is not converted. (Converted code announces the functions and classes that it
makes, with the operator ``defined``.) Such an object is older than the trace if something that is older refers to it,
directly or through others. So who refers to it is asked, with everything the trace stored taken back. What only the
trace's own frames and notes know is new. An argument, a module, a class or a closure of before that leads to it may
mean that the object was there, or that a debugger has it.

To find who refers to something, Python looks through all objects of the process, a million and more. That takes hardly
longer for several than for one, so what a result holds is asked about together (``Ages``).
"""

from __future__ import annotations

import collections
import enum
import gc
import itertools
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import Frame, Place

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_LEVELS = 12
_APART = (torch.Tensor, type, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType)
"""What is not asked about together with what refers to it: it is known, or refers to half the process."""
_CONTAINERS = (tuple, list, dict, set, frozenset, collections.deque)
"""What converted code announces, or the trace copies: hardly ever is the question how old one is."""
_PLAIN = frozenset({dict, tuple})
_AT_ONCE = 100_000
_REFERRERS = 4_000
_TOGETHER = 64
_OURS = ("runtime", "dy2static")
_OPERATORS = "dy2static.operators"
_NOBODY = (types.FrameType, types.TracebackType, weakref.ref, types.AsyncGeneratorType, types.CoroutineType)
"""What refers to objects only while code runs."""
_SHARED = (types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
           types.GetSetDescriptorType, types.MemberDescriptorType, type(...), type(NotImplemented))  # fmt: skip


class Ages:
    """The ages of what one trace gives, found together.

    ``is_new``: what tells of an object that the trace must have made it, as it holds tensors of the trace.
    """

    def __init__(self, session: Session, is_new: Callable[[Any], bool]) -> None:
        self._session = session
        self._is_new = is_new
        self._held: set[int] = set()
        self._asked: dict[int, Any] = {}

    def look(self, root: Any, asked: Any = None) -> None:
        """Find the ages of what ``root`` leads to, where only its referrers can tell, and of ``asked``."""
        found = _inside(self._session, root, lambda one: id(one) in self._asked or self._is_new(one), asked)
        if found:
            seen = id(self._asked), id(found)
            held = _held_of(self._session, found, seen)
            if held is None:  # some have too many referrers, which the others need not have
                few = [one for one in found if one is asked or not is_a(one, _CONTAINERS)]
                held = {id(one) for one in few if _is_held(self._session, one, (*seen, id(few)))}
                found = few
            self._asked |= {id(one): one for one in found}
            self._held |= held

    def existed_before(self, value: Any) -> bool | None:
        """As the function of this name."""
        told = _told(self._session, value)
        if told is not None:
            return told
        if id(value) not in self._asked:
            self.look(value, value)
        if id(value) not in self._asked:  # it is not among what was found in it
            return existed_before(self._session, value)
        return None if id(value) in self._held else False


def _inside(session: Session, root: Any, known: Callable[[Any], bool], asked: Any = None) -> list[Any]:
    """What ``root`` is, or leads to, of which only the referrers tell the age; no more than is asked about together."""
    found: list[Any] = []
    seen: set[int] = set()
    own: set[int] = set()  # the attributes of objects
    todo = [root]
    while todo and len(found) < _TOGETHER and len(seen) < _REFERRERS:
        one = todo.pop()
        if id(one) in seen or is_plain(one) or is_a(one, _APART) and one is not root:
            continue
        seen.add(id(one))
        if _is_ours(session, one):
            continue
        told = _told(session, one)
        is_own = one is asked or not is_a(one, _CONTAINERS) or id(one) in own
        if told is None and is_own and not known(one):
            found.append(one)
        if is_a(one, types.FunctionType):
            todo += [one.__closure__, one.__defaults__, one.__kwdefaults__, *one.__dict__.values()]
        elif told is not True and not is_a(one, type):
            inner = gc.get_referents(one)
            if not is_a(one, (*_CONTAINERS, types.FunctionType)):
                own |= {id(each) for each in (*inner, *_namespace(one).values())}
            todo += inner
    return found


def _namespace(one: Any) -> dict[str, Any]:
    """What stands in an object's own dictionary, without asking its class."""
    try:
        return dict(object.__getattribute__(one, "__dict__"))
    except AttributeError:
        return {}


def existed_before(session: Session, value: Any) -> bool | None:
    """Whether ``value`` is no object that this trace made; None if all that is known is that something refers to it.

    Who refers to an object may depend on a debugger, so a reference is no proof that it is old. After None the caller
    has to do what is right for both, at the price of a Program for this call alone. False needs no such care: of an
    object to which nothing from before leads, nobody who called the function can have a name. So ``gc.get_referrers``
    decides how often a function is traced, never what a call gives.
    """
    told = _told(session, value)
    if told is not None:
        return told
    return None if _is_held(session, value) else False


def _told(session: Session, value: Any) -> bool | None:
    """What the trace knows of its age, or its kind tells; None if only its referrers can."""
    if id(value) in session.objects.externals:
        return True
    if _is_new(session, value):
        return False
    created = session.objects.created
    if is_a(value, types.CellType) and (_holds_ours(value) or _first_held(session, value) in created):
        return False  # all converted code shares the one, wherever that is kept; the other was made for what it holds
    return True if is_plain(value) or _is_shared(value) else None


def _is_new(session: Session, value: Any) -> bool:
    """Whether the trace was told that it made this; what such an object refers to may be as new."""
    return id(value) in session.objects.created and not _makes_its_own(type(value))


def _holds_ours(cell: types.CellType) -> bool:
    """Whether it is the cell by which converted code knows its operators."""
    try:
        held = cell.cell_contents
    except ValueError:
        return False
    return is_a(held, types.ModuleType) and held.__name__ == _OPERATORS


def _first_held(session: Session, cell: types.CellType) -> int | None:
    """The identity of what a variable held before the trace stored to it."""
    found = session.journal.frames[0].get(Place("attribute", cell, "cell_contents"), cell)
    try:
        return id(cell.cell_contents if found is cell else found)
    except ValueError:
        return None


def _makes_its_own(cls: type) -> bool:
    """Whether calls of a class may give an object that was there."""
    return is_a(cls.__new__, types.FunctionType) or type(cls).__call__ is not type.__call__


def _is_shared(value: Any) -> bool:
    """Whether a name in a module leads to this, or it is of the interpreter's own: no call makes such things."""
    if is_a(value, types.BuiltinFunctionType):
        return value.__self__ is None or is_a(value.__self__, (types.ModuleType, type))
    if is_a(value, _SHARED):
        return not is_a(value, types.ModuleType) or sys.modules.get(value.__name__) is value
    if is_a(value, enum.Enum):
        value = type(value)
    if not is_a(value, (type, types.FunctionType)):
        return type(value).__module__ in ("torch._ops", "torch") and not is_a(value, torch_internals.KEEPERS)
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = unasked(found, "__dict__", {}).get(name)
    return found is value


def _is_held(session: Session, value: Any, seen: Iterable[int] = ()) -> bool:
    """Whether anything from before the trace refers to a value, as far as its referrers can be followed."""
    values = [value]
    held = _held_of(session, values, seen)
    return held is None or bool(held)


def _held_of(session: Session, values: list[Any], seen: Iterable[int]) -> set[int] | None:
    """Which values something from before the trace leads to, by identity, with what the trace stored taken back.

    ``seen``: containers of ours that hold them. None if there are too many referrers to follow.
    """
    known = {id(one) for one in values if _is_referred_to_weakly(session, one)}
    if gc.get_freeze_count():  # nobody is told who of those that the user froze refers to an object
        gc.unfreeze()
    stored = session.journal.frames[0]
    now = Frame.of_now(stored)
    for place, old in reversed(stored.items()):
        place.put_back(old)
    try:
        found = _led_to(session, values, {*seen, id(now), id(stored)})
        return None if found is None else found | known
    finally:
        for place, content in now.items():
            place.put_back(content)
        now.put_orders()


def _is_referred_to_weakly(session: Session, value: Any) -> bool:
    """Whether there is a weak reference to an object that the trace did not make. It may be older than the trace, and
    so may the object: a variable of a caller may hold it, of which Python does not tell."""
    if is_a(value, type):  # its bases refer to it so
        return False
    return any(id(one) not in session.objects.created for one in weakref.getweakrefs(value))


def _led_to(session: Session, values: list[Any], seen: set[int]) -> set[int] | None:
    wanted = set(map(id, values))
    below: dict[int, list[int]] = {one: [] for one in wanted}  # what was found, and to what of it each refers
    roots: list[int] = []
    level = values
    passed_over = _PassedOver(values)
    for _ in range(_LEVELS):
        asked = tuple(level)  # Python 3.13 finds the tuple of the arguments among the referrers
        here = set(map(id, level))
        referrers = gc.get_referrers(*asked) + passed_over.referrers(level)
        seen |= {id(values), id(level), id(asked), id(referrers), id(passed_over.containers)}
        level = []
        for one in referrers:
            if id(one) in seen or is_a(one, _NOBODY) or _is_ours(session, one) or _is_new(session, one):
                continue
            if id(one) not in below:
                below[id(one)] = []
                if _is_root(session, one):
                    roots.append(id(one))
                else:
                    level.append(one)
            elif id(one) in wanted and _is_root(session, one):
                roots.append(id(one))
            below[id(one)] += [id(inner) for inner in gc.get_referents(one) if id(inner) in here]
        held = _below(roots, below) & wanted
        if not level or held == wanted:
            return held
        if len(below) > _REFERRERS:
            return None
    return None


class _PassedOver:
    """Dicts and tuples that hold nothing which the collector looks at: it passes over them too.

    An array, or bytes, are such things: the attributes of an object may be such a dict. They are found by what holds
    them, once, with a look at what all objects of the process refer to. That takes as long as ten looks for referrers,
    and is not done for a tuple alone, which nobody can change.
    """

    def __init__(self, values: list[Any]) -> None:
        """``values``: whose ages are asked for."""
        needed = any(type(one) is not tuple and _may_be_passed_over(one) for one in values)
        self.containers: list[Any] | None = None if needed else []

    def referrers(self, values: list[Any]) -> list[Any]:
        """Those that hold one of the values."""
        wanted = {id(one) for one in values if _may_be_passed_over(one)}
        if not wanted:
            return []
        if self.containers is None:
            self.containers = _untracked(gc.get_objects())
        if wanted.isdisjoint(map(id, gc.get_referents(*self.containers))):
            return []
        return [one for one in self.containers if not wanted.isdisjoint(map(id, gc.get_referents(one)))]


_COLLECTED = 1 << 14
"""The flag of classes whose instances the collector looks at, or may."""


def _may_be_passed_over(one: Any) -> bool:
    """Whether the collector may pass over what holds this. Not over what holds an object that it may look at some day,
    as a dict without items; a tuple that it passed over stays so."""
    return not gc.is_tracked(one) and (type(one) is tuple or not type(one).__flags__ & _COLLECTED)


def _untracked(holders: list[Any]) -> list[Any]:
    """The dicts and tuples that holders hold, directly or inside each other, and the collector passes over."""
    found: dict[int, Any] = {}
    while holders:
        below: dict[int, Any] = {}
        for start in range(0, len(holders), _AT_ONCE):
            held = gc.get_referents(*holders[start:start + _AT_ONCE])
            containers = itertools.compress(held, map(_PLAIN.__contains__, map(type, held)))
            for one in itertools.filterfalse(gc.is_tracked, containers):
                if one and id(one) not in found:
                    found[id(one)] = below[id(one)] = one
        holders = list(below.values())
    return list(found.values())


def _below(roots: list[int], below: dict[int, list[int]]) -> set[int]:
    """What the roots lead to, themselves left out unless something leads to them."""
    found: set[int] = set()
    todo = [inner for root in roots for inner in below[root]]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += below[one]
    return found


def _is_ours(session: Session, one: Any) -> bool:
    """Whether this is the tracer's own, which knows everything that the trace made."""
    if is_a(one, torch.Tensor) or one is session.objects.created:
        return True
    if is_a(one, dict):
        return dict.__contains__(one, "__spec__") and str(dict.get(one, "__name__")).partition(".")[0] in _OURS
    module = one.__module__ if is_a(one, (types.FunctionType, type)) else type(one).__module__
    return is_a(module, str) and module.partition(".")[0] in _OURS


def _is_root(session: Session, one: Any) -> bool:
    if id(one) in session.objects.externals:
        return True
    if id(one) in session.objects.created:
        return False
    if is_a(one, dict):
        found = dict.get(one, "__name__")
        module = sys.modules.get(found) if is_a(found, str) else None
        return dict.__contains__(one, "__builtins__") or (module is not None and module.__dict__ is one)
    return _is_shared(one) if is_a(one, (type, types.FunctionType, types.ModuleType)) else False


__all__ = ["Ages", "existed_before"]
