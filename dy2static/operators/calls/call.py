"""Calls: plain outside a trace; in one, what is called decides (see ``traced_call``).

    f(a, *b, c=d)   ->   call(f, a, *b, c=d)
"""

from __future__ import annotations

import builtins
import functools
import operator
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NoReturn

from dy2static.breakpoints import end_trace, is_breakpoint, stop_at
from dy2static.callers import callers
from dy2static.operators.provenance.observed import done
from dy2static.operators.shared import frames
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute
from dy2static.origin import is_made
from runtime.kinds import is_a
from runtime.tracer.ambient.state import current
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.values.containers import opened


def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``f(*args, **kwargs)``."""
    special = _ABOUT_THE_CALLER.get(id(f))
    session = active()
    if session is not None and is_breakpoint(f):
        end_trace(session)
    if special is not None and not (args and f in (vars, dir)) and not (session and f in _TRACED):
        return special(sys._getframe(1), *args, **kwargs)
    for arg in args:
        if type(arg) is Unfit or type(arg) is PerhapsUnfit:
            args = _with_items(f, args)
            break
    if session is None and not (kwargs and any(type(arg) in (Unfit, Broken) for arg in kwargs.values())):
        caller = frames.local.call
        return f(*args, **kwargs) if caller is None else caller(f, args, kwargs)
    if any(name.startswith(KEYWORDS) for name in kwargs):
        return _with_keywords(session, f, args, kwargs)
    assert session is not None
    return traced(session, f, args, kwargs)


_traced: list[Callable[[Session, Any, tuple[Any, ...], dict[str, Any]], Any]] = []


def register(traced_call: Callable[[Session, Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """What decides on calls inside a trace: ``traced_call``, which knows everything that may be called."""
    _traced[:] = [traced_call]


def traced(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)`` inside a trace."""
    return _traced[0](session, f, args, kwargs)


KEYWORDS = "** "
"""How the name of a keyword begins that is a dict after two stars."""


class Unfit:
    """What stands behind a star of a call, or two, and has no items: Python names the callee when it says so."""

    def __init__(self, value: Any) -> None:
        cls = type(value)
        is_of_c = not cls.__flags__ & (1 << 9) and cls.__module__ != "builtins"  # whose name has the module in it
        self.kind = unasked(value, "kind", f"{cls.__module__}.{cls.__name__}" if is_of_c else cls.__name__)


class PerhapsUnfit:
    """What stands behind a star of a call and is one of several values, of which some have no items."""

    def __init__(self, choice: Choice, fits: Callable[[Any], bool], items: Callable[[Any], Iterable[Any]]) -> None:
        self.choice = choice
        self.fits = fits
        """Whether an option has items."""
        self._items = items

    def items(self, session: Session, complain: Callable[[Any], NoReturn]) -> Iterable[Any]:
        """The items of what it is; ``complain`` is called on the paths where that has none."""
        return self._items(without_unfit(session, self.choice, self.fits, complain))


def without_unfit(
    session: Session, choice: Choice, fits: Callable[[Any], bool], complain: Callable[[Any], NoReturn]
) -> Any:
    """What is one of several without the options that do not fit; on their paths, ``complain`` raises in the run.

    A test before it that excludes such an option needs nothing more: its path is never taken then.
    """
    unfit = [option for option in choice.options if not fits(option)]
    if not unfit:
        return choice
    if len(unfit) == len(choice.options) and len(set(map(type, unfit))) == 1:
        complain(unfit[0])  # whichever it is
    return opened(distribute(
        session, choice, lambda option: option if fits(option) else complain(option), itself=True, narrows=True))


class Broken:
    """What stands behind two stars of a call, and raises a KeyError where it is asked for its keys. Python 3.13 takes
    that for a name that was there already."""

    def __init__(self, error: KeyError) -> None:
        self.error = error

    def raised(self, f: Any) -> Exception:
        """What a call of ``f`` raises."""
        if len(self.error.args) != 1 or not _takes_for_double():
            return self.error
        return TypeError(f"{_described(f)} got multiple values for keyword argument '{self.error.args[0]}'")


@functools.cache
def _takes_for_double() -> bool:
    class Keys:
        def keys(self) -> Any:
            raise KeyError("k")

    try:
        dict(**Keys())  # type: ignore[dict-item]
    except TypeError:
        return True
    except KeyError:
        return False
    return False


def is_mapping(value: Any) -> bool:
    """Whether Python takes a value for a dict after two stars."""
    return not is_a(value, _NO_MAPPINGS) and hasattr(value, "keys")


_NO_MAPPINGS = (Staged, str, int, float, bool, list, tuple, set, frozenset, deque, type(None))


def _with_items(f: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The positional arguments where what stands behind a star has no items, or may have none."""

    def complain(value: Any) -> NoReturn:
        what = f"{_described(f)} argument" if len(args) == 1 else "Value"
        found = value if type(value) is Unfit else Unfit(value)
        raise TypeError(f"{what} after * must be an iterable, not {found.kind}")

    given: list[Any] = []
    for arg in args:
        if type(arg) is Unfit:
            complain(arg)
        given += arg.items(current(), complain) if type(arg) is PerhapsUnfit else (arg,)
    return tuple(given)


def _with_keywords(session: Session | None, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call with the items of such dicts, once for every dict that one of them may be."""

    def complain(value: Any) -> NoReturn:
        found = value if type(value) is Unfit else Unfit(value)
        raise TypeError(f"{_described(f)} argument after ** must be a mapping, not {found.kind}")

    given: dict[str, Any] = {}
    for place, value in kwargs.items():
        if type(value) is Broken:
            raise value.raised(f)
        if type(value) is Unfit:
            complain(value)
        if is_a(value, Choice) and session is not None and place.startswith(KEYWORDS):
            value = without_unfit(session, value, is_mapping, complain)
        if is_a(value, Choice) and session is not None and place.startswith(KEYWORDS):
            return distribute(session, value, lambda option, place=place: _with_keywords(  # type: ignore[misc]
                session, f, args, {**kwargs, place: option}))
        for key, item in items_of_mapping(value) if place.startswith(KEYWORDS) else ((place, value),):
            if not is_a(key, str):
                raise TypeError("keywords must be strings")
            if key in given:
                raise TypeError(f"{_described(f)} got multiple values for keyword argument '{key}'")
            given[key] = item
    return call(f, *args, **given)


def items_of_mapping(value: Any) -> Iterable[tuple[Any, Any]]:
    """The items of what stands behind two stars, or makes a dict, as Python asks for them."""
    if is_a(value, dict):
        return value.items()
    return [(key, call(operator.getitem, value, key)) for key in call(value.keys)]


def _described(f: Any) -> str:
    """How Python names a function in the TypeError of a call."""
    qualname = unasked(f, "__qualname__")
    if qualname is None:
        return str(f)
    module = unasked(f, "__module__")
    return f"{qualname}()" if module in (None, "builtins") else f"{module}.{qualname}()"


def _locals(frame: FrameType) -> dict[str, Any]:
    return {
        name: value for name, value in frame.f_locals.items()
        if not is_made(name, frame.f_code)
    }


def _globals(frame: FrameType) -> dict[str, Any]:
    return frame.f_globals


def _vars(frame: FrameType) -> Any:
    return _locals(frame)


def _dir(frame: FrameType) -> list[str]:
    return sorted(_locals(frame))


def _eval(frame: FrameType, source: Any, *spaces: Any, **keywords: Any) -> Any:
    if not spaces and not keywords:
        return eval(source, frame.f_globals, _locals(frame))
    return eval(source, *spaces, **keywords)


def _exec(frame: FrameType, source: Any, *spaces: Any, **keywords: Any) -> None:
    session = active()
    if session is not None:
        done(session, "exec() is called")
    if not spaces and "globals" not in keywords:
        exec(source, frame.f_globals, _locals(frame), **keywords)
    else:
        exec(source, *spaces, **keywords)


def _getframe(frame: FrameType, depth: int = 0) -> FrameType:
    return sys._getframe(depth + 2)


def _warn(frame: FrameType, message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **kwargs: Any) -> None:
    if kwargs or not is_a(stacklevel, int):
        warnings.warn(message, category, stacklevel + 2, *args, **kwargs)
        return
    stack = list(callers(frame))
    place = stack[min(max(stacklevel, 1), len(stack)) - 1]
    kind = type(message) if is_a(message, Warning) else UserWarning if category is None else category
    if not (is_a(kind, type) and issubclass(kind, Warning)):
        warnings.warn(message, category, 2)  # raises what eager raises
    registry = place.names.setdefault("__warningregistry__", {})
    module = place.names.get("__name__") or "<string>"
    warnings.warn_explicit(message, kind, place.file, place.line, module, registry, place.names, *args)


_ABOUT_THE_CALLER: dict[int, Callable[..., Any]] = {
    id(builtins.breakpoint): stop_at,
    id(builtins.locals): _locals, id(builtins.globals): _globals, id(builtins.vars): _vars, id(builtins.dir): _dir,
    id(builtins.eval): _eval, id(builtins.exec): _exec, id(sys._getframe): _getframe, id(warnings.warn): _warn,
}  # fmt: skip
"""Functions whose result depends on the frame that calls them."""
_TRACED = (warnings.warn, sys._getframe)
"""Those of them that the table of builtins has."""
