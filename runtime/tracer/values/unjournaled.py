"""Changes to Python state on a staged path that nothing journaled.

Converted code journals its stores. Code that is not converted (a generator's body, a special method such as ``__lt__``,
a C function) may change a list behind the journal's back: both paths run while tracing, so the change would happen
whatever path the Program takes. What the user's live frames can reach is therefore compared after each path.
"""

from __future__ import annotations

import functools
import io
import sys
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime.kinds import is_a
from runtime.tracer.ambient import contents, shown
from runtime.tracer.ambient.objects import attributes, own_items, own_length
from runtime.tracer.ambient.poison import Poison, keys_answer
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.memory import host_memory
from runtime.tracer.python_state.journal import Place, cell_value, python_kind
from runtime.tracer.values import containers, structure
from runtime.tracer.values.referred import Readers

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_OBJECTS = 2_000
_DEPTH = 6
_LARGE = 4_096
_OURS = ("runtime", "dy2static", "torch")
_CONTAINERS = (list, dict, set, deque)
_BUFFERS = (*host_memory.WITH_MEMORY, io.IOBase)
NOTHING: dict[type, Any] = {list: [], deque: [], dict: {}, OrderedDict: {}, set: frozenset()}
"""The content of an empty container, by its class."""
_OPAQUE = (
    torch.Tensor, types.BuiltinFunctionType, str, bytes, int, float, complex, type(None), types.CodeType,
    types.FrameType, torch.dtype, torch.device, torch.Generator,
)  # fmt: skip
_LARGE_KINDS = (torch.nn.Module, type, types.ModuleType)
"""Only those that the trace made are looked into, for what they hold: their own attributes are journaled."""


@dataclass(frozen=True)
class _State:
    """What an object holds that is no list, dict or set."""

    parts: Any


Picture = list[tuple[Any, Any]]
"""Objects, and what each held."""


def picture(session: Session) -> Picture:
    """What every list, dict, set and plain object holds that the user's frames can reach, and every buffer that the
    trace made: what leads to one may be one of several values, or an item of a list that grew."""
    return _picture(session, [*_roots(session), *_buffers(session)])


def again(session: Session, before: Picture, met: Iterable[Any]) -> Picture:
    """The picture where another path of the same construct begins: as ``before``, which the path that ended has left as
    it was, and with what that one ``met`` first."""
    new = [value for value in met if is_a(value, _CONTAINERS)]
    return [*before, *_picture(session, new)] if new else before


def _picture(session: Session, roots: Iterable[Any]) -> Picture:
    found: Picture = []
    seen = {id(sys.modules)}  # what is imported on a path, by torch for one, stays imported
    opaque: dict[type, bool] = {}
    todo: deque[tuple[Any, int]] = deque((value, 0) for value in roots)
    room = _OBJECTS
    while todo and room:
        value, depth = todo.popleft()
        kind = type(value)
        if kind in NOTHING and not value:  # most containers of a module are empty
            if id(value) not in seen:
                seen.add(id(value))
                found.append((value, NOTHING[kind]))
            continue
        known = opaque.get(kind)
        if known is None:
            known = is_a(value, _OPAQUE) or (
                kind not in (types.FunctionType, structure.Choice) and _is_ours(value))
            opaque[kind] = known
        if known or id(value) in seen or (kind is types.FunctionType and _is_ours(value)):
            continue
        seen.add(id(value))
        seen.update(contents.notes_of(value))
        if kind is structure.Choice:  # any of its options may be what the variable is; who has iterators asks for them
            todo += [(option, depth) for option in value.options if not hasattr(type(option), "__next__")]
            continue
        if is_a(value, _LARGE_KINDS):
            if depth < _DEPTH and id(value) in session.objects.created:
                todo += [(item, depth + 1) for item in vars(value).values()]
            continue
        inner = _items(value, session.containers.readers)
        if inner is None:
            continue
        content = _content(value)
        if content is not None:
            found.append((value, content))
            room -= 1
        if depth < _DEPTH:
            todo += [(item, depth + 1) for item in inner if not opaque.get(type(item))]
    return found


def require_unchanged(session: Session, before: Picture, what: str) -> None:
    """Refuse a path that made a change which nothing journaled. ``before``: the picture taken when it began.

    Raises:
        TraceError: Something holds other items than before, after all journaled stores were undone.
    """
    for value, content in before:
        if not content and type(value) in NOTHING and not value or id(value) in session.containers.stopped:
            continue
        after = _content(value)
        if _same(content, after):
            continue
        facts = session.call.facts.items() if is_a(content, dict) else ()
        for place, (_, number) in facts:  # the path met it first, and the trace put its number there
            if place.owner is value and after.get(place.name) is number:
                content = {**content, place.name: number}
        if not _same(content, after):
            if contents.is_iterator(value):
                raise advanced(session, what)
            host_memory.require_of_program(session, value)
            raise session.error(
                f"a {type(value).__name__} is changed {what} by code that is not converted: a generator, a special "
                "method (such as __lt__ or __enter__), or a function without Python source",
                hint="Change it in the function itself, or before the branch or loop.",
                code="D2S227",
            )


def note_stopped(session: Session, before: Picture) -> None:
    """Call before the stores of a path are taken back. A deque, or a dict with an order of its own, is filled anew
    then: an iterator from before the path takes it for one that was changed, on whatever path.

    ``before``: the picture taken when the path began.
    """
    changed = [place.owner for place in session.journal.frames[-1]
               if place.kind == "content" and python_kind(place.owner) in (deque, OrderedDict)]  # fmt: skip
    for value, _ in before if changed else ():
        if contents.is_iterator(value) and any(one is owner for one in shown.read_by(value) for owner in changed):
            session.containers.stopped[id(value)] = value


def put_back(session: Session, before: Picture) -> None:
    """Give everything that an unjournaled mutation changed what it held in the picture.

    Raises:
        TraceError: That cannot be: an iterator was advanced, or a buffer changed.
    """
    for value, content in before:
        if not content and type(value) in NOTHING and not value:
            continue
        after = _content(value)
        if _same(content, after):
            continue
        if is_a(content, _State):
            require_unchanged(session, [(value, content)], "in a loop that is traced more than once")
        elif is_a(value, _CONTAINERS):
            Place("content", value).set(content)
        else:
            space = unasked(value, "__dict__")
            space.clear()
            space.update(content)


def advanced(session: Session, where: str = "on a path that is only taken for some inputs") -> Exception:
    """The located error for an iterator of which the Program could not take an item at each run."""
    return session.error(
        f"an iterator is advanced {where}",
        hint="Take the item before the branch or loop, or index a list.",
        code="D2S266",
    )


def note_advanced(session: Session, value: Any) -> None:
    """An iterator that is older than the trace gives other items at the next call: the Program is for this call.

    Raises:
        TraceError: D2S266, it goes over a container that was changed on some paths since.
    """
    containers.require_read(session, value)
    if id(value) in session.objects.externals and contents.is_iterator(value):
        session.call.advanced = True
        session.journal.outside += 1
        session.once("an iterator from outside was advanced")


def require_own(session: Session, value: Any) -> None:
    """Refuse to advance an iterator that is older than the path being traced: what is left of it cannot be joined.

    Raises:
        TraceError: ``value`` is such an iterator.
    """
    if session.constructs.pictures and contents.is_iterator(value):
        if any(one is value for picture in session.constructs.pictures for one, _ in picture):
            raise advanced(session)


def is_local(session: Session, value: Any) -> bool:
    """Whether a variable of the user's running functions is this very object, on whatever path."""
    return value is not None and any(local is value for local in _roots(session))


def is_reached(session: Session, value: Any) -> bool:
    """Whether such variables lead to this object, or what the trace has met from outside."""
    outside = [external for external, _ in session.objects.externals.values()]
    return any(one is value for one in walk([*_roots(session), *outside], _parts, _DEEPEST))


_DEEPEST = 9


def _parts(value: Any) -> Iterable[Any]:
    if is_a(value, (list, tuple, set, frozenset, deque)):
        return list(value)
    if is_a(value, dict):
        return [*value.values(), *(key for key in value if not is_a(key, str))]
    if is_a(value, types.FunctionType):
        return list(map(cell_value, value.__closure__ or ()))
    if is_a(value, types.MethodType):
        return (value.__self__, value.__func__)
    return () if is_a(value, (torch.Tensor, type, types.ModuleType)) else attributes(value).values()


def _roots(session: Session) -> Iterator[Any]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_trace_once":
        if not _is_our_module(str(frame.f_globals.get("__name__", ""))):
            yield from contents.locals_of(frame)
        frame = frame.f_back
    for external, _ in list(session.objects.externals.values()):
        if is_a(external, _CONTAINERS):
            yield external
    for tensor, names in session.objects.hung.values():
        yield from (tensor.__dict__.get(name) for name in names)


def _buffers(session: Session) -> list[Any]:
    made = [*session.objects.created.values(), *(value for value, _ in session.host.made.values())]
    return [value for value in made if issubclass(type(value), _BUFFERS)]


@functools.cache
def _is_our_module(name: str) -> bool:
    return name.partition(".")[0] in _OURS


def _is_ours(value: Any) -> bool:
    """Whether this is a function or object of the tracer's own, which the user's frames hold while it runs them.

    So are torch's operators: they keep their overloads once they were asked for. An iterator of ours goes over an
    object of the user's, who has it.
    """
    if "__next__" in type(value).__dict__ and not is_a(value, Poison):
        return False
    module = str(value.__module__ if is_a(value, types.FunctionType) else type(value).__module__)
    return module.partition(".")[0] in _OURS[:2] or module == "torch._ops"


def _items(value: Any, readers: Readers) -> Any:
    if is_a(value, (dict, list, deque)):  # a user's class may give other items
        held = Place("content", value).get() if python_kind(value).__len__(value) <= _LARGE else ()
        return list(held.values()) if is_a(held, dict) else held
    if is_a(value, tuple):
        return own_items(value) if own_length(value) <= _LARGE else ()
    if is_a(value, (set, frozenset)):
        return ()
    if is_a(value, types.FunctionType):
        return [*contents.cells_of(value), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if is_a(value, types.MethodType):
        return [value.__self__]
    if is_a(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if contents.state_of(value) is not None or is_a(value, weakref.ref):
        return contents.inner(value)
    return list(readers.parts(value)) or ([] if _has_namespace(value) else None)


def _has_namespace(value: Any) -> bool:
    return type(unasked(value, "__dict__")) is dict


def _content(value: Any) -> Any:
    if type(value) in _CONTAINERS:
        return Place("content", value).get()
    if is_a(value, (tuple, frozenset, types.FunctionType, types.MethodType, functools.partial, weakref.ref)):
        return None
    state = contents.state_of(value)
    if state is not None:
        return _State(state)
    if is_a(value, _CONTAINERS):
        return Place("content", value).get()
    return dict(unasked(value, "__dict__")) if _has_namespace(value) else None


def _same(before: Any, after: Any) -> bool:
    if is_a(before, _State):
        return before == after
    if is_a(before, frozenset):
        return before == after
    if len(before) != len(after):
        return not is_a(before, dict) and _grows(before, after)
    if is_a(before, dict):
        with keys_answer():
            return all(key in after and after[key] is value for key, value in before.items())
    return all(a is b for a, b in zip(before, after)) or _grows(before, after)


def _grows(before: list[Any], after: list[Any]) -> bool:
    """Parts of a list whose length is staged are put together when it is read: that changes nothing."""
    return any(is_a(item, structure.Growing) for item in (*before, *after))
