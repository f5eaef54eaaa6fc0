"""``itertools``: Python's own where it sees all there is to see, else the same written in Python and converted.

    itertools.takewhile(lambda t: t.sum() > 0, ts)    the predicate decides on a tensor
    itertools.chain(grown, rest)                      a list whose length only the run knows
"""

from __future__ import annotations

import inspect
import itertools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.builtins import itertools_in_python
from dy2static.operators.calls import boundary, functions
from dy2static.operators.calls.call import traced
from dy2static.operators.calls.sequences import staged_sequence
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import generator_uses
from dy2static.operators.iteration.generator import Held, generator_of
from dy2static.operators.iteration.iterators_in_python import Count
from dy2static.operators.iteration.traced_for import by_place, iterate
from dy2static.operators.provenance import chosen
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import (
    Choice,
    Session,
    Staged,
    any_staged,
    distribute,
    python_method,
)
from runtime.kinds import is_a
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers.scalars import StagedBool, StagedInt

Make = Callable[..., Any]


def _handler(original: Any, make: Make, called: int | None = None, compares: bool = False) -> tuple[Any, Any]:
    """``original``, with what stands for it; ``called``: which of its arguments is a function; ``compares``: whether it
    compares the items."""

    def handle(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args = tuple(user_methods.as_number(session, arg, "__index__") for arg in args)
        if any(_is_unseen(session, value) for value in (*args, *kwargs.values())) or (
                compares and any(map(_is_open, args))) or (
                called is not None and any(map(_decides, (*args[called : called + 1], *kwargs.values())))):
            try:
                inspect.signature(make).bind(session, *args, **kwargs)
            except TypeError:
                return original(*args, **kwargs)  # raises, in Python's words
            return make(session, *args, **kwargs)
        note_answers(session, *args)
        made = chosen.per_option(
            session, original, args, kwargs, lambda given, named: chosen.foreign(session, original, given, named))
        memo(session).created[id(made)] = made
        return made

    return original, handle


def _is_unseen(session: Session, value: Any) -> bool:
    """Whether C code would not see an argument, or not all the items that it gives."""
    if is_a(value, (Choice, Staged)) or staged_sequence(session, value) is not None:
        return True
    if is_a(value, types.GeneratorType):
        return value in memo(session).generators
    method = getattr(type(value), "__iter__", None)
    if is_a(method, types.FunctionType) and not is_a(value, torch.nn.Module) or by_place(value) is not None:
        return True
    if type(value) in (list, tuple) and any(generator_uses.gives_items(session, one) for one in value):
        return True  # chain.from_iterable(pairs)
    return (session.containers.has_growing or session.containers.has_contents) and boundary.holds_stand_in(value)


def _is_open(items: Any) -> bool:
    """Whether whether some items are equal is only known while the Program runs."""
    return any_staged([items]) or is_a(items, (list, tuple)) and any(
        is_a(item, torch.Tensor) for item in walk([items], _parts, 4))


def _parts(value: Any) -> Any:
    return value if type(value) in (list, tuple) else ()


def _decides(function: Any) -> bool:
    """Whether calling a function may decide on tensors, or on numbers of the run, as ``max`` does; None stands for the
    items' own truth."""
    if is_a(function, (type, types.BuiltinFunctionType)):
        return function.__module__ in ("builtins", "math")
    return True


def _run(session: Session, name: str, *args: Any, **kwargs: Any) -> Any:
    return functions.call_function(session, getattr(itertools_in_python, name), args, kwargs)


def _held(session: Session, value: Any) -> Held:
    """An iterable whose items a converted loop takes; nobody else has what a user's ``__iter__`` gives."""
    made = generator_of(session, value)
    if made is not None:
        memo(session).unheld.append(made)
    return Held(value if made is None else made)


def _items(session: Session, value: Any) -> Any:
    """What answers ``len`` and takes indices and slices."""
    known = all(map(_has_places, value.options if is_a(value, Choice) else (value,)))
    if known:
        return value
    taken = generator_uses.listed(session, value)
    return taken if taken is not value else traced(session, list, (value,), {})


def _has_places(value: Any) -> bool:
    return is_a(value, _BY_INDEX) and all(python_method(value, name) is None for name in _PLACES)


_BY_INDEX = (list, tuple, range, str, torch.Tensor)
_PLACES = ("__iter__", "__len__", "__getitem__")
"""What a user's class may answer in another way."""


def _number(session: Session, value: Any, name: str) -> int:
    """How many items each of the tuples has that ``name`` makes, which the trace has to know."""
    if is_a(value, Staged):
        raise session.error(
            f"how many items each tuple of itertools.{name}() has is only known while the Program runs",
            code="D2S261", hint="Use a plain int, or write loops.")
    return operator.index(value)


def _takewhile(session: Session, predicate: Any, iterable: Any, /) -> Any:
    return _run(session, "takewhile", predicate, _held(session, iterable))


def _dropwhile(session: Session, predicate: Any, iterable: Any, /) -> Any:
    return _run(session, "dropwhile", predicate, _held(session, iterable))


def _filterfalse(session: Session, function: Any, iterable: Any, /) -> Any:
    return _run(session, "filterfalse", function, _held(session, iterable))


def _starmap(session: Session, function: Any, iterable: Any, /) -> Any:
    return _run(session, "starmap", function, _held(session, iterable))


def _chain(session: Session, *iterables: Any) -> Any:
    held = [_held(session, one) for one in reversed(iterables)]  # who asks for one forgets those that came after it
    return _run(session, "chain", *reversed(held))


def _islice(session: Session, iterable: Any, *bounds: Any) -> Any:
    if not 1 <= len(bounds) <= 3:
        itertools.islice((), *bounds)  # it says how many it takes
    given = (None, bounds[0], None) if len(bounds) == 1 else (*bounds, None)[:3]
    start, stop, step = (_bound(session, bound, place, len(bounds) == 1) for place, bound in enumerate(given))
    return _run(session, "islice", _held(session, iterable), start, stop, step)


def _bound(session: Session, bound: Any, place: int, alone: bool) -> Any:
    """The start, stop or step of ``islice``. ``alone``: the stop was given, and nothing else.

    Raises:
        ValueError: it does not take this one; in the run for a number that only the run knows.
    """
    if is_a(bound, Choice):
        return distribute(session, bound, lambda option: _bound(session, option, place, alone))
    if bound is None:
        return (0, None, 1)[place]
    if is_a(bound, torch.Tensor):
        bound = traced(session, operator.index, (bound,), {})
    like = 1 if is_a(bound, StagedInt) else bound.python_type() if is_a(bound, Staged) else bound
    likes = [like] if alone else [*(None,) * place, like, *(None,) * (2 - place)]
    itertools.islice((), *likes)
    if is_a(bound, Staged):
        for allowed, message in _ALLOWED[place]:
            session.emit("assert", [session.operand(allowed(bound))],
                         attrs={"exception": "ValueError", "message": message})
    return bound


_STOP = "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
_INDICES = "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize."
_STEPS = "Step for islice() must be a positive integer or None."
_ALLOWED: tuple[tuple[tuple[Callable[[Any], Any], str], ...], ...] = (
    ((lambda start: start >= 0, _INDICES),),
    ((lambda stop: stop != -1, _STOP), (lambda stop: stop >= 0, _INDICES)),  # -1 is what it takes for no number
    ((lambda step: step >= 1, _STEPS),),
)
"""What a start, a stop and a step that only the run knows have to be, and what Python says of those that are not."""


def _compress(session: Session, data: Any, selectors: Any) -> Any:
    return _run(session, "compress", data, selectors)


def _accumulate(session: Session, iterable: Any, func: Any = None, *, initial: Any = None) -> Any:
    function = operator.add if func is None else func
    if is_a(initial, Choice):
        return _run(session, "accumulated_perhaps", _held(session, iterable), function, initial)
    if initial is not None:
        return _run(session, "accumulated", _held(session, iterable), function, initial)
    if is_a(iterable, types.GeneratorType) or contents.is_iterator(iterable):
        return _run(session, "accumulated_lazily", _held(session, iterable), function)
    return _run(session, "accumulate", _items(session, iterable), function)


def _pairwise(session: Session, iterable: Any, /) -> Any:
    if is_a(iterable, types.GeneratorType) or contents.is_iterator(iterable):
        return _run(session, "pairs_lazily", _held(session, iterable))
    return _run(session, "pairwise", _items(session, iterable))


def _zip_longest(session: Session, *iterables: Any, fillvalue: Any = None) -> Any:
    return _run(session, "zip_longest", *(_items(session, one) for one in iterables), fillvalue=fillvalue)


def _product(session: Session, *iterables: Any, repeat: Any = 1) -> Any:
    pools = tuple(traced(session, list, (one,), {}) for one in iterables)
    return _run(session, "product", pools * _number(session, repeat, "product"))


def _combinations(session: Session, iterable: Any, r: Any) -> Any:
    return _chosen(session, iterable, r, 0, "combinations")


def _with_replacement(session: Session, iterable: Any, r: Any) -> Any:
    return _chosen(session, iterable, r, 1, "combinations_with_replacement")


def _chosen(session: Session, iterable: Any, r: Any, repeated: int, name: str) -> Any:
    itertools.combinations((), count := _number(session, r, name))  # it says which it does not take
    return _run(session, "combinations", traced(session, list, (iterable,), {}), count, 0, repeated)


def _permutations(session: Session, iterable: Any, r: Any = None) -> Any:
    pool = traced(session, list, (iterable,), {})
    count = _number(session, traced(session, len, (pool,), {}) if r is None else r, "permutations")
    itertools.permutations((), count)
    return _run(session, "permutations", pool, count, ())


def _groupby(session: Session, iterable: Any, key: Any = None) -> Any:
    if is_a(iterable, types.GeneratorType) or contents.is_iterator(iterable):  # which it may leave half taken
        raise session.error(
            "itertools.groupby() is given an iterator whose items are only known while the Program runs", code="D2S266",
            hint="Give it a list: groupby(list(items)).")
    return _run(session, "groupby", _items(session, iterable), key)


def _batched(session: Session, iterable: Any, n: Any) -> Any:
    if n < 1:
        raise ValueError("n must be at least one")
    return _run(session, "batched", _items(session, iterable), _number(session, n, "batched"))


def _count(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``itertools.count``, which makes an int of a bool where the step is 1."""
    given = dict(zip(("start", "step"), args)) | kwargs
    start, step = given.get("start"), given.get("step", 1)
    if type(step) in (int, bool) and step == 1:
        if type(start) is bool:
            given["start"] = int(start)
        elif is_a(start, StagedBool):
            given["start"] = session.scalar("int", start)
        elif is_a(start, Choice):
            given["start"] = distribute(session, start, lambda one: int(one) if is_a(one, bool) else (
                session.scalar("int", one) if is_a(one, StagedBool) else one))
    place = session.location()
    if place in session.call.known.counting:
        itertools.count(*(0 if is_a(one, (Staged, Choice)) else one for one in given.values()))
        return traced(session, Count, (given.get("start", 0), step), {})
    made = chosen.per_option(session, itertools.count, (), given, lambda args, named: chosen.foreign(
        session, itertools.count, args, named))
    if set(given) <= {"start", "step"}:
        memo(session).counters[id(made)] = made, place
    return made


def _chained(session: Session, iterables: Any, /) -> Any:
    return _run(session, "chained", _held(session, iterables))


def _keeping(original: Any) -> tuple[Any, Any]:
    """``cycle`` or ``tee``, which keep the items: each is asked for once. ``tee`` asks the iterator for another one."""
    def handle(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not args or kwargs or not generator_uses.gives_items(session, args[0]):
            return NotImplemented
        items = iterate(session, args[0])
        return original(iterate(session, items) if original is itertools.tee else items, *args[1:])

    return original, handle


HANDLERS: list[tuple[Any, Any]] = [
    _keeping(itertools.cycle), _keeping(itertools.tee),
    (itertools.count, _count),
    _handler(itertools.takewhile, _takewhile, 0), _handler(itertools.dropwhile, _dropwhile, 0),
    _handler(itertools.filterfalse, _filterfalse, 0), _handler(itertools.starmap, _starmap, 0),
    _handler(itertools.accumulate, _accumulate, 1), _handler(itertools.chain, _chain),
    _handler(itertools.islice, _islice), _handler(itertools.compress, _compress),
    _handler(itertools.zip_longest, _zip_longest), _handler(itertools.pairwise, _pairwise),
    _handler(itertools.product, _product), _handler(itertools.combinations, _combinations),
    _handler(itertools.combinations_with_replacement, _with_replacement),
    _handler(itertools.permutations, _permutations), _handler(itertools.groupby, _groupby, 1, compares=True),
]  # fmt: skip

if sys.version_info >= (3, 12):
    HANDLERS.append(_handler(itertools.batched, _batched))
FROM_ITERABLE = _handler(itertools.chain.from_iterable, _chained)[1]
"""Each access of ``chain.from_iterable`` makes another object: it is found by name."""
