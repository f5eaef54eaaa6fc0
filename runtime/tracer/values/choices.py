"""Operations on a value that is one of several, known only at run time: done to each of them, staged as a switch."""

from __future__ import annotations

import math
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime.kinds import is_a
from runtime.tracer.ambient import objects, source_places, state
from runtime.tracer.ambient.objects import own_items, own_length
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.unasked import has_unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers import selected, staging
from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.values import structure
from runtime.tracer.values.containers import items_of, several
from runtime.tracer.values.structure import Choice, Undefined, growing, is_container, row_of

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


_PATHS = 32
"""How many paths one operation may have that is done for each of several values, at each of several places."""


def unbound_message(name: str, free: bool = False) -> str:
    """What this version of Python says when an unbound local (``free``: of an outer function) is read."""
    if sys.version_info >= (3, 11):
        if free:
            return f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        return f"cannot access local variable '{name}' where it is not associated with a value"
    if free:
        return f"free variable '{name}' referenced before assignment in enclosing scope"
    return f"local variable '{name}' referenced before assignment"


def distribute(
    session: Session, choice: Choice, function: Callable[[Any], Any], *, itself: bool = False, narrows: bool = False
) -> Any:
    """``function(value)`` where the value is one of several at run time: staged for each of them.

    ``itself``: the function is about which object the value is, not about what it holds. ``narrows``: it gives back
    the value or raises, and the result is one of those that are left; otherwise it is ``choice`` again.
    """
    def path(option: Any) -> Callable[[], Any]:
        def run() -> Any:
            if is_a(option, Undefined):
                raise UnboundLocalError(unbound_message(option.name))
            if option is MISSING:
                raise AttributeError("this attribute is not set on the path that was taken")
            held = None if itself else several(option)
            return function(option) if held is None else distribute(session, held, function)

        return run

    if hasattr(choice, "run"):  # a dict that others hold by reference: there is one option
        return choice.run(session, function)
    known = selected.only(session, choice.selector.var)
    if known is not None:
        return path(choice.options[known])()
    if not choice.options:  # an item of a list that never has any
        raise IndexError("list index out of range")
    before = session.constructs.paths
    if before > 1 and before * len(choice.options) > _PATHS:
        raise too_many(session, before * len(choice.options), choice.options)
    session.constructs.paths = before * len(choice.options)
    try:
        return staging.switch(session, choice.selector, [path(option) for option in choice.options],
                              None if narrows else choice)
    finally:
        session.constructs.paths = before


def too_many(session: Session, count: int, among: Iterable[Any]) -> Exception:
    """The located error for a value that may be one of too many.

    Raises:
        Restart: See ``make_rows``.
    """
    make_rows(session, among)
    return session.error(
        f"a value may be one of {count} by now, as each of several paths or iterations has made another of it",
        hint="Keep it a number, a piece of text or a tensor, or append to a list.",
        code="D2S255",
    )


def make_rows(session: Session, among: Iterable[Any]) -> None:
    """A value may be one of many.

    Raises:
        Restart: There are lists, dicts or objects ``among`` them: where lists have such as items, these are numbers of
            rows from now on, so that a list is one and the same on each path (see ``settled_lists``).
    """
    found = {type(one) for one in walk(among, _parts, 5) if _can_be_row(session, one)}
    session.hold_by_reference(*found, in_branches=True)


def _parts(value: Any) -> Iterable[Any]:
    """What a value may be, or has inside."""
    if is_a(value, Choice):
        return value.options
    if is_a(value, tuple) or is_container(value) and row_of(value) is None:
        return value if is_a(value, tuple) else [item for _, item in items_of(value)]
    return ()


def _can_be_row(session: Session, value: Any) -> bool:
    if type(value) in (list, dict):
        return id(value) not in session.objects.externals
    return id(value) in session.objects.created and objects.can_be_rebuilt(value)


def held_choice(value: Any) -> Any:
    """The first value of several that is ``value``, or is inside lists, tuples, dicts and slices; None without one."""
    for one in walk([value], _unless_several, 5):
        found = _choice_of(one)
        if found is not None:
            return found
    return None


def _choice_of(value: Any) -> Any:
    if is_a(value, Choice):
        return value
    return several(value) if row_of(value) is None else None


def _unless_several(value: Any) -> Iterable[Any]:
    return _inside(value) if _choice_of(value) is None else ()


def _inside(value: Any) -> Iterable[Any]:
    if is_a(value, slice):
        return value.start, value.stop, value.step
    if is_a(value, dict):
        return value.values()
    return value if is_a(value, (list, tuple)) else ()


def _choices(value: Any) -> Iterator[Any]:
    """Every value of several that ``held_choice`` would find."""
    return (one for one in walk([value], _inside, 5) if is_a(one, Choice))


def with_option(value: Any, choice: Any, option: Any) -> Any:
    """``value`` with one of its options in place of a choice, wherever that is inside."""
    if value is choice:
        return option
    if held_choice(value) is None:
        return value
    if is_a(value, dict):
        fields = None if type(value) is dict else structure.field_items(value)
        if fields is None:
            return {key: with_option(item, choice, option) for key, item in value.items()}
        keys, items = fields
        return structure.rebuild_fields(type(value), keys, tuple(with_option(item, choice, option) for item in items))
    if is_a(value, slice):
        return slice(*(with_option(item, choice, option) for item in _inside(value)))
    if is_a(value, (list, tuple)):
        replaced = [with_option(item, choice, option) for item in value]
        return type(value)(*replaced) if has_unasked(value, "_fields") else type(value)(replaced)
    return value


def spread(session: Session, values: Any, function: Callable[[Any], Any]) -> Any:
    """``function(values)``, staged for each option of every choice in the values (lists, tuples, dicts)."""
    choice = held_choice(values)
    if choice is None:
        return function(values)
    sizes = {id(one): len(one.options) for one in _choices(values)}
    if len(sizes) > 1 and session.constructs.paths * math.prod(sizes.values()) > _PATHS:
        raise too_many(session, session.constructs.paths * math.prod(sizes.values()), _choices(values))
    return distribute(session, choice, lambda option: spread(session, with_option(values, choice, option), function))


def _left(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        session = state.current()
        if is_a(other, Choice) and other is not self:
            return distribute(session, other, lambda option: theirs(function, self, option))
        return distribute(session, self, lambda option: theirs(function, option, option if other is self else other))

    return method


def _right(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return distribute(state.current(), self, lambda option: theirs(function, other, option))

    return method


def _alone(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return distribute(state.current(), self, lambda option: theirs(function, option))

    return method


def _refused(how: str) -> Callable[..., NoReturn]:
    def method(self: Any, *args: Any) -> NoReturn:
        raise state.current().error(
            f"a value that differs between paths is {how} in code that is not converted",
            hint="Let the function be converted, or give the variable a value of one kind on every path.",
            code="D2S210",
        )

    return method


def require_converted(error: BaseException) -> None:
    """Refuse an exception that code which is not converted raised because a value is one of several."""
    if is_a(error, AttributeError) and is_a(error.obj, Choice):
        raise state.current().error(
            f"a value that differs between paths is asked for its attribute {error.name!r} in code that is "
            "not converted",
            hint="Let the function be converted, or give the variable one object on every path.",
            code="D2S210",
            location=source_places.error_place(error),
        )


def _length(value: Any) -> int | None:
    """How many items unpacking finds in a value, if that is known."""
    if is_a(value, torch.Tensor):
        size = value.shape[0] if value.dim() else None
        return size if type(size) is int else None
    known = is_a(value, (list, tuple)) and growing(value) is None and not _says_items(value)
    return own_length(value) if known else None


def _says_items(value: Any) -> bool:
    """Whether the class of a list or tuple says itself, in Python, what its items are."""
    return is_a(getattr(type(value), "__iter__", None), types.FunctionType)


def _item(index: int) -> Callable[[Any], Any]:
    """What gives the item that unpacking finds at a place: what is stored there, whatever a subscript would give."""

    def item(value: Any) -> Any:
        stored = is_a(value, (list, tuple)) and type(value) not in (list, tuple)
        return own_items(value)[index] if stored else value[index]

    return item


def lengths(choice: Choice) -> set[int | None]:
    """How many items unpacking finds in the values that a choice may be; None for a number that is not known."""
    options = [option for option in choice.options if not is_a(option, Undefined) and option is not MISSING]
    return {_length(option) for option in options}


def _iter(self: Choice) -> Iterator[Any]:
    """Items one by one, where every value it may be has as many: what unpacking asks for."""
    found = lengths(self)
    count = found.pop() if len(found) == 1 else None
    if count is None:
        _refused("iterated over")(self)
    items = [distribute(state.current(), self, _item(index)) for index in range(count)]
    return iter(items)


def _repr(self: Choice) -> str:
    if state.active() is not None:
        _refused("turned into text")(self)
    return "<one of several values, known while the Program runs>"


_BINARY = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_REFUSED = {
    "hash": "hashed (used as a dict key or set member)",
    "bool": "used as a condition",
    "getitem": "indexed", "setitem": "indexed", "delitem": "indexed",
    "contains": "searched",
    "len": "asked for its length",
    "index": "used as an index",
    "int": "converted to an int", "float": "converted to a float",
    "str": "turned into text", "format": "turned into text",
    "reduce": "pickled or copied",
}  # fmt: skip


def _operators() -> dict[str, Callable[..., Any]]:
    """Python's operators, applied to whichever value it is."""
    methods: dict[str, Callable[..., Any]] = {"__iter__": _iter, "__repr__": _repr, "keys": _refused("unpacked")}
    for name in _BINARY:
        function = getattr(operator, f"__{name}__")
        methods[f"__{name}__"], methods[f"__r{name}__"] = _left(function), _right(function)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        methods[f"__{name}__"] = _left(getattr(operator, name))
    for name in ("neg", "pos", "abs", "invert"):
        methods[f"__{name}__"] = _alone(getattr(operator, name))
    return {**methods, **{f"__{name}__": _refused(how) for name, how in _REFUSED.items()}}


for _name, _method in _operators().items():
    setattr(Choice, _name, _method)
del _name, _method
