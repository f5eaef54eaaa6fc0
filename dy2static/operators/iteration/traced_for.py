"""``for`` inside a trace.

A sequence of staged length becomes a staged loop over a counter; a Python iterable is unrolled. Once the condition to
go on (a ``break`` under a tensor) is staged, each further item runs only "while still running".
"""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from dy2static.operators.calls import growing, numpy_arrays
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import (
    ENDLESS,
    StagedSequence,
    TensorRows,
    Transposed,
    changed,
    staged_sequence,
)
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.iteration import iterators, length_hint
from dy2static.operators.iteration.generator import generator_of, is_fresh, require_not_left
from dy2static.operators.iteration.live import GoneOver
from dy2static.operators.iteration.one_of_several import items_chosen, place_of
from dy2static.operators.provenance.provenance import CONTAINERS, adopt, memo
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.loop_limits import LoopOptions, count, region, require_rollable, rest
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Choice, LocalNames, Session, Staged, python_method
from dy2static.operators.shared.waiting import ends_with_calls
from runtime.errors import Dy2StaticError
from runtime.kinds import is_a
from runtime.tracer.ambient import catching, contents
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.control.branches import Names, all_names
from runtime.tracer.control.while_loop import while_loop
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording import attempt
from runtime.tracer.values import containers, unjournaled
from runtime.tracer.values.numpy_arrays import NumpyArray
from runtime.tracer.values.structure import Growing
from runtime.tracer.values.tables import RowChoice

ROLL_THRESHOLD = 64
"""A plain range longer than this is tried as a staged loop first, and unrolled where that is not possible."""

UNROLL_LIMIT = 20_000
"""More items than this of one Python iterator under a staged ``break`` are taken for an endless one."""


def traced_for(session: Session, iterable: Any, test: Callable[[], Any] | None, body: Callable[[Any], None],
               names: Names, options: dict[str, Any] | None, alone: bool = False) -> None:
    """Stage or unroll ``for item in iterable``; ``alone``: nothing else holds the iterable."""
    if is_a(iterable, Transposed):
        iterable.consume(session)
        iterable = iterable.columns
    iterable = items_chosen(session, containers.opened(iterable))
    if is_a(iterable, RowChoice):
        iterable.run(session, lambda option: traced_for(session, option, test, body, names, options))
        return
    if is_a(iterable, Choice) and all(map(containers.is_container, iterable.options)):
        iterable = containers.opened(containers.view(session, iterable))
    if is_a(iterable, Choice):
        choice = iterable

        def path(option: Any) -> Callable[[], None]:
            return lambda: traced_for(session, option, test, body, names, options)  # may be held by others

        tracer_cond.switch(session, choice.selector, [path(option) for option in choice.options], names)
        return
    if is_a(iterable, Staged) and iterable.kind != "str":
        iter(iterable)  # raises what eager raises
    if is_a(iterable, NumpyArray) and staged_sequence(session, iterable) is None:
        iterable = list(numpy_arrays.items(session, iterable))
    (unjournaled if alone else iterators).require_own(session, iterable)
    with region(session, options):
        sequence = staged_sequence(session, iterable)
        sequence = _rows_asked_for(session, iterable, options) if sequence is None else sequence
        if sequence is not None:
            _staged_loop(session, sequence, 0, test, body, names, options)
        elif is_fresh(session, iterable) and (alone or test is None):
            drive(session, iterable, body, test, names)
        elif (inner := generator_of(session, iterable)) is not None:
            traced_for(session, inner, test, body, names, options, True)
        elif is_a(iterable, itertools.count):
            _count_loop(session, iterable, test, body, names, options)
        elif not _rolled(session, iterable, test, body, names, options):
            unrolled(session, iterable, test, body, names, alone, options)


def _rows_asked_for(session: Session, iterable: Any, options: dict[str, Any] | None) -> TensorRows | None:
    """The rows of a tensor as a staged sequence, however many there are, where the loop is not to be unrolled."""
    asked = (options or {}).get("unroll") is False and is_a(iterable, torch.Tensor) and session.knows(iterable)
    return TensorRows(session, iterable) if asked and session.fake(iterable).dim() else None


class _WithCounter:
    """The loop's names and a counter that the user does not see."""

    def __init__(self, inner: Names, counter: Any) -> None:
        self.inner = inner
        self.counter = counter
        self.names = (*inner.names, "")

    def get(self) -> tuple[Any, ...]:
        """The user's variables and the counter."""
        return (*self.inner.get(), self.counter)

    def set(self, values: tuple[Any, ...]) -> None:
        """Assign them."""
        self.inner.set(values[:-1])
        self.counter = values[-1]

    def holds(self, place: Place) -> bool:
        """As for the user's variables."""
        return self.inner.holds(place)


def _staged_loop(session: Session, sequence: StagedSequence, start: Any, test: Callable[[], Any] | None,
                 body: Callable[[Any], None], names: Names, options: dict[str, Any] | None) -> None:
    """A staged loop over the positions of a sequence."""
    require_rollable(session, options)
    sequence.consume(session)
    counted = _WithCounter(names, start)

    def condition() -> Any:
        more = sequence.has(session, counted.counter)  # the body may change the list that it goes over
        if test is None:
            return more
        going = truth_of(session, test())
        if not is_a(going, Staged):
            return more if going else False
        if not is_a(more, Staged):
            return going if more else False
        return session.scalar("and_", going, more)

    def step() -> None:
        if is_a(counted.counter, Staged) and type(start) is int and start >= 0:
            session.sizes.natural.add(counted.counter.var)
        value = sequence.get(session, counted.counter)
        counted.counter = counted.counter + 1
        body(value)

    first = condition()
    if is_a(first, Staged) or first:
        while_loop(session, first, condition, step, counted, options)


def fold(
    session: Session, sequence: StagedSequence, start: Any, step: Callable[[Any, Any], Any], first: int = 0
) -> Any:
    """``step(... step(step(start, item 0), item 1) ..., last item)`` as a staged loop."""
    value = start

    def get() -> tuple[Any, ...]:
        return (value,)

    def put(values: tuple[Any, ...]) -> None:
        nonlocal value
        (value,) = values

    def body(item: Any) -> None:
        nonlocal value
        value = step(value, item)

    _staged_loop(session, sequence, first, None, body, LocalNames(("result",), get, put), None)
    return value


def as_list(session: Session, sequence: StagedSequence) -> Any:
    """``list(sequence)``: a list that grows; of columns, a tuple of each."""
    if is_a(sequence, Transposed):
        sequence.consume(session)
        return sequence.columns
    result: list[Any] = []

    def body(item: Any) -> None:
        grown = growing.is_growing(result)
        if grown:
            growing.method(session, result, "append", (item,), {})
        else:
            session.journal.note_content(result)
            result.append(item)

    _staged_loop(session, sequence, 0, None, body, LocalNames((), tuple, lambda values: None), None)
    return result


class Counting(StagedSequence):
    """A plain arithmetic sequence, without a length an endless one."""

    def __init__(self, start: Any, step: Any, length: Any = None) -> None:
        self.start, self.step, self._length = start, step, ENDLESS if length is None else length

    def length(self, session: Session) -> Any:
        return self._length

    def get(self, session: Session, index: Any) -> Any:
        distance = index if self.step == 1 else index * self.step
        return distance if type(self.start) is int and self.start == 0 else self.start + distance


def _count_loop(session: Session, counter: Any, test: Callable[[], Any] | None, body: Callable[[Any], None],
                names: Names, options: dict[str, Any] | None) -> None:
    """``itertools.count``: unrolled until the condition to go on is staged, a staged loop from there."""
    for done in itertools.count():
        going = truth_of(session, test()) if test is not None else True
        if is_a(going, Staged):
            start, step = (*contents.parts(counter), 1)[:2]
            _staged_loop(session, Counting(start, step), 0, test, body, names, rest(options, done))
            return
        if not going:
            return
        count(options, done)
        body(next(counter))


def _rolled(session: Session, iterable: Any, test: Callable[[], Any] | None, body: Callable[[Any], None],
            names: Names, options: dict[str, Any] | None) -> bool:
    """Try a long plain range as a staged loop; False, with nothing recorded, if the body needs the numbers."""
    unroll = (options or {}).get("unroll")
    if type(iterable) is not range or unroll or (len(iterable) <= ROLL_THRESHOLD and unroll is None):
        return False
    if unroll is False:
        _staged_loop(session, _counting(iterable), 0, test, body, names, options)
        return True
    return _rolled_from(session, iterable, 0, test, body, names, options)


def _counting(numbers: range) -> Counting:
    return Counting(numbers.start, numbers.step, len(numbers))


def _rolled_from(session: Session, numbers: range, start: int, test: Callable[[], Any] | None,
                 body: Callable[[Any], None], names: Names, options: dict[str, Any] | None) -> bool:
    """Try a range from one of its positions on as a staged loop; False, with nothing recorded, where it is none."""
    try:
        with attempt.Attempt(session, all_names(session, names)):
            _staged_loop(session, _counting(numbers), start, test, body, names, options)
    except Dy2StaticError:
        return False
    return True


_LEAST = 4
"""Iterations that take gradients are large: this many are tried as a staged loop."""


def _rest_rolled(session: Session, iterable: Any, gradients: int, test: Callable[[], Any] | None,
                 body: Callable[[Any], None], names: Names, options: dict[str, Any] | None) -> bool:
    """After the first iteration: try the rest of a range as a staged loop, if that one asked for gradients.

    What an optimizer remembers it makes in its first step: from there on each iteration leaves what it began with.
    ``gradients``: how many had been asked for before.
    """
    asked = session.graph.gradients_asked > gradients
    if type(iterable) is not range or (options or {}).get("unroll") or not asked or len(iterable) < _LEAST:
        return False
    return _rolled_from(session, iterable, 1, test, body, names, rest(options, 1))


LARGE = 200
"""So many Operators or more, in all iterations of a range that a tensor may end, are tried as a staged loop."""

_WORTH = 8
"""Fewer iterations are not tried: a staged loop's body is traced several times."""


def _large_rolled(session: Session, iterable: Any, done: int, recorded: int, test: Callable[[], Any] | None,
                  body: Callable[[Any], None], names: Names, options: dict[str, Any] | None) -> bool:
    """After the first iteration that a tensor might have skipped: try the rest of a range as a staged loop, if large.

    ``recorded``: how many Operators the Block being recorded held before that iteration. In loops inside of one
    another the iterations multiply: two of fifty each, with twenty Operators, record 50,000.
    """
    if type(iterable) is not range or (options or {}).get("unroll") or len(iterable) - done < _WORTH:
        return False
    new = session.scope.block.ops[recorded:]
    size = len(new) + sum(1 for op in new for block in op.blocks for _ in block.walk())
    if size * (len(iterable) - done) < LARGE:
        return False
    return _rolled_from(session, iterable, done, test, body, names, rest(options, done))


@ends_with_calls
def unrolled(session: Session, iterable: Any, test: Callable[[], Any] | None, body: Callable[[Any], None],
             names: Names, alone: bool, options: LoopOptions | None = None) -> None:
    """``for`` over a Python iterator, item by item."""
    external = is_a(iterable, (*CONTAINERS, tuple)) and _is_old(session, iterable)
    single_pass = False
    taken = done = 0
    gradients = session.graph.gradients_asked
    gone_over = GoneOver(iterable, alone or test is None)
    iterator = iterate(session, iterable, alone)
    while True:
        rest_by_position = gone_over.rest(session)
        if rest_by_position is not None:
            _staged_loop(session, rest_by_position, done, test, body, names, rest(options, done))
            return
        if done == 1 and _rest_rolled(session, iterable, gradients, test, body, names, options):
            return
        going = truth_of(session, test()) if test is not None else True
        if not is_a(going, Staged) and not going:
            return
        if is_a(going, Staged) and not single_pass:
            single_pass = True
            _require_repeatable(session, iterable, alone)
        try:
            value = next(iterator)
        except StopIteration:
            return
        if is_a(value, Growing):  # Python's own iterator read the storage of a list that has changed meanwhile
            raise changed(session, [])
        if external:
            adopt(session, value)
        done += 1
        if is_a(going, Staged):
            taken += 1
            if taken > UNROLL_LIMIT:
                raise session.error("this loop over an endless iterator is left by a condition on a tensor",
                                    hint="Use itertools.count, while, or a range.", code="D2S266")

            def step(item: Any = value, number: int = done - 1) -> None:
                count(options, number)
                body(item)

            recorded = len(session.scope.block.ops)
            tracer_cond.cond(session, going, step, lambda: None, names)
            if taken == 1 and _large_rolled(session, iterable, done, recorded, test, body, names, options):
                return
        else:
            count(options, done - 1)
            body(value)


def _is_old(session: Session, container: Any) -> bool:
    return id(container) in session.objects.externals and Place("content", container) not in session.journal.frames[0]


def iterate(session: Session, iterable: Any, alone: bool = False, hinted: bool = False) -> Iterator[Any]:
    """``iter(iterable)``; the special methods of users' classes are converted.

    ``alone``: nothing else holds it. ``hinted``: and ask how many items there are, as what makes a list does.
    """
    found = _iterated(session, iterable, alone)
    if hinted:
        _ask_length(session, iterable)
    return found


def _ask_length(session: Session, iterable: Any) -> None:
    """An iterator of what has only ``__getitem__`` is asked, too: it asks its owner."""
    if is_a(iterable, _Converted):
        iterable = iterable.iterator
    if not is_a(iterable, ByPlace):
        length_hint.ask(session, iterable)
    elif python_method(iterable.owner, "__len__") is not None:
        call(len, iterable.owner)


def _iterated(session: Session, iterable: Any, alone: bool) -> Iterator[Any]:
    if is_a(iterable, _Converted):
        iterable = iterable.iterator
    elif is_a(iterable, ByPlace):
        return iterable
    if is_a(iterable, NumpyArray):
        return numpy_arrays.items(session, iterable)
    if is_a(iterable, torch.Tensor):
        if session.fake(iterable).dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(iterable.unbind(0))
    if growing.is_growing(iterable):
        raise growing.refusal(session, "iteration outside a for loop")
    require_not_left(session, iterable)
    unjournaled.note_advanced(session, iterable)
    (unjournaled if alone else iterators).require_own(session, iterable)
    method = python_method(iterable, "__iter__")
    if method is None and (place := by_place(iterable)) is not None:
        return ByPlace(session, iterable, place)
    if method is None or home_of(method.__code__.co_filename):
        asked_methods.require_items(session, "a loop", [iterable])
        return iter(iterable)
    found = call(method, iterable)
    if is_a(found, Choice):
        raise session.restart(Findings(choosing=frozenset({place_of(method)})))
    return _Converted(session, found)


def by_place(value: Any) -> types.FunctionType | None:
    """The user's ``__getitem__`` of an object that has no ``__iter__``: its items are asked for one after another."""
    if hasattr(type(value), "__iter__") or is_a(value, (torch.nn.Module, Staged)):
        return None
    method = python_method(value, "__getitem__")
    return None if method is None or home_of(method.__code__.co_filename) else method


@contextlib.contextmanager
def _end_is_known(session: Session, method: str, error: type[BaseException]) -> Iterator[None]:
    """While an item is asked for: a user's method may say on some paths only that there is none, which is refused."""
    session.exceptions.catching.append(catching.LastItem(method, error))
    try:
        yield
    finally:
        session.exceptions.catching.pop()


class ByPlace:
    """The items of an object of a class with a ``__getitem__`` of the user's, which is converted."""

    __slots__ = ("_method", "_places", "_session", "owner")

    def __init__(self, session: Session, owner: Any, method: types.FunctionType,
                 places: Iterable[int] | None = None) -> None:  # fmt: skip
        self._session, self.owner, self._method = session, owner, method
        self._places: Iterator[int] = itertools.count() if places is None else iter(places)

    def __iter__(self) -> ByPlace:
        return self

    def __next__(self) -> Any:
        place = next(self._places)
        try:
            with _end_is_known(self._session, "__getitem__", IndexError):
                return call(self._method, self.owner, place)
        except (IndexError, StopIteration):
            self._places = iter(())
            raise StopIteration from None


class _Converted:
    """An iterator whose ``__next__`` is converted."""

    __slots__ = ("_session", "iterator")

    def __init__(self, session: Session, iterator: Any) -> None:
        self._session = session
        self.iterator = iterator

    def __iter__(self) -> _Converted:
        return self

    def __next__(self) -> Any:
        method = python_method(self.iterator, "__next__")
        if method is None:
            return theirs(next, self.iterator)
        return next_item(self._session, self.iterator, method)


def next_item(session: Session, iterator: Any, method: types.FunctionType) -> Any:
    """What a user's ``__next__`` gives to what handles its StopIteration.

    Raises:
        TraceError: D2S266, only the run knows whether it raises that.
    """
    with _end_is_known(session, "__next__", StopIteration):
        return call(method, iterator)


def _require_repeatable(session: Session, iterable: Any, alone: bool) -> None:
    """Taking one item too many from an iterator has an effect that no path can undo, if anything else can see it."""
    if hasattr(type(iterable), "__next__") and not (alone and is_a(iterable, contents.READING)):
        raise session.error(
            f"a loop over a {type(iterable).__name__} is left by a condition on a tensor: how far it was consumed is "
            "only known while the Program runs", hint="Loop over a list: for item in list(...).", code="D2S266",
        )


def drive(session: Session, source: Any, body: Callable[[Any], None], test: Callable[[], Any] | None,
          names: Names) -> Any:
    """``for item in source: body(item)``, left when ``test()`` is false after an item; ``source`` is alone.

    ``names``: the local variables that ``body`` changes; they take part in what the generator stages. Gives what a
    generator that surely ran has returned, and the scope in which it did; None where it returned nothing.
    """
    if not is_a(source, types.GeneratorType) or source not in memo(session).generators:
        traced_for(session, source, test, body, names, None, alone=True)
        return None

    def push() -> None:
        _push(session, source, body, test, names)

    going = truth_of(session, test()) if test is not None else True
    if is_a(going, Staged):
        tracer_cond.cond(session, going, push, lambda: None, names)
        return None
    return _push(session, source, body, test, names) if going else None


def _push(session: Session, source: Any, body: Callable[[Any], None], test: Callable[[], Any] | None,
          names: Names) -> Any:
    outer = session.code.surrounding
    consumer: list[BaseException] = []

    def give(item: Any) -> Any:
        inner, session.code.surrounding = session.code.surrounding, outer
        try:
            body(item)
            going = truth_of(session, test()) if test is not None else True
        except StopIteration as error:
            consumer.append(error)
            raise
        finally:
            session.code.surrounding = inner
        return session.scalar("not_", going) if is_a(going, Staged) else not going

    known = memo(session)
    run = known.generators[source][0]
    source.close()
    if test is not None:
        known.left.add(source)
    known.running.add(source)
    before, known.returned = known.returned, None
    session.code.surrounding = (*outer, names)
    try:
        run(give)
    except StopIteration as error:
        if error in consumer:
            raise
        raise RuntimeError("generator raised StopIteration") from error
    finally:
        session.code.surrounding = outer
        known.running.discard(source)
        found, known.returned = known.returned, before
    return found
