"""Lists whose length is only known while the Program runs (they grew in a staged loop): what can be done with them."""

from __future__ import annotations

import contextlib
import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.calls.call import call
from dy2static.operators.shared import arity
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, Staged
from dy2static.operators.shared.stored import MODULES
from runtime.kinds import is_a
from runtime.ops.keyed import KeyedDict
from runtime.tracer.ambient.theirs import acts_for_user, theirs
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.numbers.scalars import StagedInt
from runtime.tracer.values import array, array_methods
from runtime.tracer.values.containers import several
from runtime.tracer.values.structure import Growing, Number, Options, growing, list_row


def is_growing(value: object) -> bool:
    """Whether a value is such a list, deque or tuple."""
    return is_a(value, (list, deque, tuple)) and growing(value) is not None


def kinds_of(items: Any) -> frozenset[str] | None:
    """Of what kinds the items of a list or tuple are, and of those in it; None where that is not known."""
    if type(items) not in (list, tuple):
        return None
    grown = growing(items)
    if grown is not None:
        options = grown.item.options if is_a(grown.item, Options) else (grown.item,)
        if not all(is_a(one, Number) for one in options):
            return None
        return frozenset(one.kind for one in options if is_a(one, Number))
    found: set[str] = set()
    for value in (option for item in items for option in (item.options if is_a(item, Choice) else (item,))):
        inside = kinds_of(value) if type(value) in (list, tuple) else {
            value.kind if is_a(value, Staged) else type(value).__name__}  # fmt: skip
        if inside is None:
            return None
        found |= inside
    return frozenset(found)


def note_present(session: Session, target: Any, key: Any) -> None:
    """There is an item at an index: in this Block, while the list holds what it does now."""
    session.containers.present.append((session.scope, held_now(target), key))


def held_now(target: Any) -> tuple[Any, Any]:
    """What a list holds, and which row it is if others hold it by reference: the same objects until it is changed.

    A tensor is itself, whatever it holds; a list, dict or list of modules whose length is known, as long as it has as
    many items; a dict whose keys are numbers of the run is the list of them.
    """
    if is_a(target, MODULES):
        return target, len(target)
    if is_a(target, KeyedDict):
        held, row = held_now(target._keys)
        return held, target._removed if row is None else row
    if not is_a(target, (list, tuple, deque, dict)):
        return target, None
    if is_a(target, dict):
        content = several(target)
        return (target, len(target)) if content is None else (content, None)
    row = list_row(target)
    if row is None and growing(target) is None:
        return target, len(target)
    return (growing(target), None) if row is None else (growing(row.heap.held), row.number)


def checked(session: Session, target: Any, key: Any) -> contextlib.AbstractContextManager[None]:
    """Around what reads or removes an item: no handler is asked about it if the item is there."""
    held, number = held_now(target)
    for scope, (content, row), index in session.containers.present:
        same = content is held and (row is number or same_index(row, number))
        if same and same_index(index, key) and session.is_open(scope):
            return session.uncaught()
    return contextlib.nullcontext()


def same_index(a: Any, b: Any) -> bool:
    """Whether two keys are surely one."""
    if is_a(a, Staged) and is_a(b, Staged):
        return a.var is b.var
    return a is b or (type(a) in (int, str) and type(a) is type(b) and bool(a == b))


def method(session: Session, target: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``target.name(*args)``."""
    kind = deque if is_a(target, deque) else tuple if type(target) is tuple else list
    if kind is tuple and name not in ("__len__", "__getitem__"):
        if name in ("__add__", "__mul__", "__rmul__") and not kwargs:
            return getattr(target, name)(*args)
        raise refusal(session, f"tuple.{name}")
    if hasattr(kind, name):
        arity.require_fitting_method(kind, name, args, kwargs)
    if kind is deque and name in ("pop", "popleft") and args:  # Python does not tell their signatures
        theirs(getattr(deque(), name), *args)
    if name in ("copy", "__copy__") and not args:
        return array_methods.copy(target)
    if name == "__len__":
        return array.length(session, target)
    if name in _SYNTAX and not kwargs:
        return _SYNTAX[name](session, target, *args)
    if name in ("extend", "extendleft") and len(args) == 1 and not is_a(args[0], (list, tuple, deque)):
        args = (call(list, args[0]),)
    function = (array_methods.DEQUE if kind is deque else array_methods.LIST).get(name)
    if function is None or kwargs:
        raise refusal(session, f"{kind.__name__}.{name}")
    if name in ("pop", "insert") and args and not is_a(args[0], (int, Staged)):
        args = (call(operator.index, args[0]), *args[1:])
    if name in ("pop", "popleft") and len(args) < 2:
        with checked(session, target, args[0] if args else 0 if name == "popleft" else -1):
            return function(session, target, *args)
    return function(session, target, *args)


def rotate(session: Session, target: deque[Any], count: StagedInt) -> None:
    """``target.rotate(count)`` of a deque whose length is known: by one of so many counts."""
    if len(target) < 2:
        return

    def path(places: int) -> Callable[[], None]:
        def run() -> None:
            session.journal.note_content(target)
            target.rotate(places)

        return run

    place = session.scalar("mod", count, len(target))
    tracer_cond.switch(session, place, [path(places) for places in range(len(target))], NO_NAMES)


def shortened(session: Session, made: deque[Any]) -> deque[Any]:
    """A deque of all items of such a list, with no more of them than it takes."""
    if made and made.maxlen is not None:
        array_methods.drop(session, made, first=True)
    return made


def read(session: Session, target: Any, key: Any) -> Any:
    """``target[key]``."""
    require_key(_empty(target), key)
    if is_a(key, slice) and not is_a(target, deque):
        part = array.slice_(session, target, key)
        return tuple(part) if type(target) is tuple else part
    with checked(session, target, key):
        if is_a(target, deque):
            array_methods.require_index(session, target, key)
        elif type(target) is tuple:
            array_methods.require_index(session, target, key, "tuple index out of range")
        return array.get(session, target, key)


def _empty(target: Any) -> Any:
    return deque() if is_a(target, deque) else () if type(target) is tuple else []


@acts_for_user
def require_key(empty: Any, key: Any, operation: Callable[..., Any] = operator.getitem, *value: Any) -> None:
    """Raise what Python raises for what is no index of a sequence; ``empty`` is one without items."""
    if type(key) is int:
        return
    if is_a(key, slice):
        plain: Any = slice(*(_plain(part) for part in (key.start, key.stop, key.step)))
    else:
        plain = _plain(key)
    with contextlib.suppress(IndexError):
        operation(empty, plain, *value)


def _plain(key: Any) -> Any:
    """A number like a staged one: of the same class, and no step that could not be taken."""
    return key.python_type(1) if is_a(key, Staged) else key


def write(session: Session, target: Any, key: Any, value: Any) -> None:
    """``target[key] = value``."""
    require_key(_empty(target), key, operator.setitem, ())
    if is_a(key, slice) and is_a(target, list):
        values = value if is_a(value, (list, tuple)) else call(list, value)
        if key == slice(None) and values:
            array.replace(session, target, list(values))
        else:
            array.splice(session, target, key, list(values))
        return
    with checked(session, target, key):
        if is_a(target, deque):
            array_methods.require_index(session, target, key)
        array.set_(session, target, key, value)


def delete(session: Session, target: Any, key: Any) -> None:
    """``del target[key]``."""
    require_key(_empty(target), key, operator.delitem)
    if is_a(key, slice):
        array.splice(session, target, key, [])
        return
    kind = "deque" if is_a(target, deque) else "list assignment"
    with checked(session, target, key):
        array_methods.require_index(session, target, key, f"{kind} index out of range")
        array.pop(session, target, key)


_SYNTAX: dict[str, Any] = {"__getitem__": read, "__setitem__": write, "__delitem__": delete}
"""What a user's subclass asks its ``super()`` for."""


def add_in_place(session: Session, target: Any, op: str, value: Any) -> Any:
    """``target += value`` and ``target *= value``."""
    if op == "+=":
        return method(session, target, "extend", (value,), {})
    if op == "*=" and type(value) is int and not is_a(target, deque):
        return array.repeat(session, target, value)
    raise refusal(session, op)


def to_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of torch with such a list among its arguments: ``stack`` and ``cat`` take one."""
    name = {torch.stack: "aten.stack.default", torch.cat: "aten.cat.default", torch.concat: "aten.cat.default",
            torch.concatenate: "aten.cat.default"}.get(f)  # fmt: skip
    given = dict(zip(("tensors", "dim"), args)) | kwargs
    dim = given.get("dim", given.get("axis", 0))
    if name is None or set(given) - {"tensors", "dim", "axis"} or is_a(dim, Staged):
        raise refusal(session, unasked(f, "__name__", str(f)))
    if is_a(given["tensors"], deque):  # torch takes none
        theirs(f, *(deque() if arg is given["tensors"] else arg for arg in args), **{
            name: deque() if arg is given["tensors"] else arg for name, arg in kwargs.items()})
    return array.join(session, name, given["tensors"], dim)


def holds(values: Any) -> bool:
    """Whether such a list is among the arguments of a call."""
    return any(is_growing(value) or is_a(value, Growing) for value in values)


def refusal(session: Session, what: str) -> Exception:
    """The located error for what such a list cannot do."""
    return session.error(
        f"{what} of a list whose length is only known while the Program runs", code="D2S253",
        hint="Use append, extend, insert, pop, reverse, indexing, slices, len, for, torch.stack or torch.cat.")
