"""Functions of ``statistics``, and those of ``math`` over items, where only the run knows the items.

    statistics.mean(losses)      ->   scalar.exact.mean(%a, %b, %c), or of ints their sum divided
    statistics.median(losses)    ->   the same in Python, converted (``statistics_in_python``)
"""

from __future__ import annotations

import contextlib
import inspect
import math
import statistics
from collections.abc import Callable
from typing import Any

from dy2static.operators.builtins import statistics_in_python
from dy2static.operators.calls import growing
from dy2static.operators.calls.call import call
from dy2static.operators.calls.growing import kinds_of
from dy2static.operators.iteration.generator_uses import Asks, gives_items, listed
from dy2static.operators.shared.staging import Choice, Session, Staged, any_staged, held_choice, spread
from runtime.ir import ScalarType
from runtime.kinds import is_a
from runtime.ops.exact import exact
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.numbers import scalars
from runtime.tracer.values import structure

_BY_KIND = ("mean", "variance", "pvariance")
"""Functions that give an int for some ints."""
_NUMBERS = frozenset(("int", "bool", "float"))
_OF_ANY = ("median", "median_low", "median_high", "mode", "multimode", "quantiles")
_SORTING = ("median", "median_low", "median_high", "quantiles")
_POINTS = {"dist": 2, "sumprod": 2}
"""How many lists a function takes."""


def _handler(original: Callable[..., Any]) -> tuple[Any, Any]:
    name = original.__name__
    function: Any = getattr(statistics_in_python, name)
    count = _POINTS.get(name, 1)

    def handle(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            bound = inspect.signature(original).bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)  # raises, in Python's words
        given, options = [*bound.args[:count]], [*bound.args[count:], *bound.kwargs.values()]
        if held_choice(given) is not None and any(is_a(one, Choice) for one in given):
            return spread(session, given, lambda some: handle(session, (*some, *args[count:]), kwargs))
        given = [_items(session, one, name) for one in given]
        kinds = [kinds_of(one) for one in given]
        if None in kinds and any(map(growing.is_growing, given)):
            raise growing.refusal(session, f"{name}()")
        if None in kinds or not any(map(_is_open, given)) or options and name != "quantiles":
            taken = len(args) >= count and any(one is not other for one, other in zip(given, args))
            return call(original, *given, *args[count:], **kwargs) if taken else NotImplemented
        found: frozenset[str] = frozenset().union(*kinds)  # type: ignore[arg-type]
        if name not in _OF_ANY and not found <= _NUMBERS or name == "sumprod" and "float" in found:
            taken = any(one is not other for one, other in zip(given, args))
            return call(original, *given, *args[count:], **kwargs) if taken else NotImplemented
        if name in _BY_KIND and "float" in found and any(map(_may_be_whole, given)):
            return spread(session, list(given[0]), lambda some: handle(session, (some,), kwargs))
        if name in _BY_KIND:
            options = ["float" not in found]
        return call(function, *given, *options)

    return original, handle


def _items(session: Session, data: Any, name: str) -> Any:
    """What a function takes of its data, which those that sort, or take points, ask how many there are."""
    if name == "fmean" and gives_items(session, data) and hasattr(type(data), "__len__"):
        with contextlib.suppress(TypeError):
            call(len, data)
    data = listed(session, data, Asks.ITSELF if name in (*_SORTING, *_POINTS) else Asks.NOBODY)
    return data if type(data) in (list, tuple) else call(list, data) if _is_iterable(data) else data


def _is_iterable(data: Any) -> bool:
    return unasked(type(data), "__iter__") is not None and not is_a(data, (str, Staged))


def _may_be_whole(items: Any) -> bool:
    """Whether some items are ints on some paths and floats on others."""
    chosen = [item for item in items if is_a(item, Choice)]
    return any("float" in kinds and len(kinds) > 1 for kinds in map(kinds_of, [[item] for item in chosen]) if kinds)


def _is_open(items: Any) -> bool:
    return growing.is_growing(items) or any_staged([items])


def _exact(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    items, name = args
    if not _is_open(items):
        return exact(items, name)
    grown = structure.growing(items)
    if grown is None and held_choice(items) is not None:
        return spread(session, list(items), lambda given: _exact(session, (given, name), {}))
    if grown is not None and not is_a(grown.item, structure.Number):
        raise session.error(
            f"{name}() of a list whose length is only known while the Program runs, of numbers of several kinds",
            hint="Make all of them floats.", code="D2S210")
    read = [session.require_visible(grown.read().arrays[0], "a list")] if grown is not None else [
        session.operand(item) for item in items]  # fmt: skip
    (var,) = session.emit(f"scalar.exact.{name}", read, types=[ScalarType("float")])
    return scalars.wrap(var)


HANDLERS: list[tuple[Any, Any]] = [
    *(_handler(getattr(statistics, name)) for name in (
        *_BY_KIND, *_OF_ANY, "fmean", "stdev", "pstdev", "harmonic_mean", "geometric_mean")),
    *(_handler(getattr(math, name)) for name in ("fsum", "dist", "sumprod") if hasattr(math, name)),
    (exact, _exact),
]  # fmt: skip
