"""Sequences whose length is only known while the Program runs: ``range(n)``, rows of a tensor, what is built on them.

They answer ``len``, indexing and loops through operators; code that is not converted cannot iterate over them.
"""

from __future__ import annotations

import operator
from collections import UserList, deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from dy2static.operators.calls.call import traced
from dy2static.operators.calls.growing import held_now
from dy2static.operators.shared.staging import Session, Staged, python_method
from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.numbers.scalars import StagedStr
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.recording import nonwritable_views
from runtime.tracer.values import array
from runtime.tracer.values.containers import several
from runtime.tracer.values.numpy_arrays import NumpyArray
from runtime.tracer.values.structure import growing


class StagedSequence:
    """Something with a staged ``length`` and an item at every index."""

    python_name = "sequence"
    inner_sequences: tuple[StagedSequence, ...] = ()
    """Those that it takes its items from."""
    consumed = False

    def consume(self, session: Session) -> None:
        """Note that something takes the items, as a loop does.

        Raises:
            TraceError: D2S266, for an iterator whose items were taken before.
        """
        for inner in self.inner_sequences:
            inner.consume(session)
        if is_a(self, StagedIterator):
            if self.consumed:
                raise session.error(
                    f"a {self.python_name} whose length is only known while the Program runs is iterated over twice",
                    hint="Make a list of it (list(...)) and loop over that, or make it anew.", code="D2S266")
            self.consumed = True

    def length(self, session: Session) -> Any:
        """The number of items, a plain or staged int."""
        raise NotImplementedError

    def has(self, session: Session, index: Any) -> Any:
        """Whether there is an item at an index, once all before it were taken."""
        return index < self.length(session)

    def get(self, session: Session, index: Any) -> Any:
        """The item at an index from 0 on; the caller has checked it."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise state.current().error(
            f"a {self.python_name} whose length is only known while the Program runs leaves the function, or is copied",
            hint="Make a list of it: list(...).", code="D2S261",
        )

    def __repr__(self) -> str:
        if state.active() is None:
            return f"<{self.python_name} of a trace>"
        raise state.current().error(
            f"a {self.python_name} that is only known while the Program runs is turned into text", code="D2S261",
            hint="Give its bounds, or a list of it.",
        )

    def __iter__(self) -> NoReturn:
        raise state.current().error(
            f"a {self.python_name} whose length is only known while the Program runs is iterated over by code that is "
            "not converted", hint="Loop over it with for in converted code.", code="D2S261",
        )

    def __len__(self) -> NoReturn:
        raise state.current().error(
            f"the length of a {self.python_name} that is only known while the Program runs is used by code that is not "
            "converted", hint="Ask with len() in converted code.", code="D2S261",
        )


class _Endless:
    """More than any number."""

    def __gt__(self, other: object) -> bool:
        return True


ENDLESS: Any = _Endless()


class StagedIterator(StagedSequence):
    """A sequence that stands for an iterator: its items can be taken once."""


class StagedRange(StagedSequence):
    """``range`` with staged bounds."""

    python_name = "range"
    __slots__ = ("start", "stop", "step", "_length")

    def __init__(self, session: Session, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step
        self._length = _count(session, start, stop, step)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return range, (self.start, self.stop, self.step)

    def __eq__(self, other: object) -> Any:
        session = state.active()
        if session is None or not is_a(other, (range, StagedRange)):
            return NotImplemented
        return True if other is self else _same_range(session, self, other)

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        if is_a(same, Staged):
            return state.current().scalar("eq", same, False)
        return same if same is NotImplemented else not same

    def __hash__(self) -> int:
        if state.active() is None:
            return object.__hash__(self)
        raise state.current().error(
            "a range that is only known while the Program runs is hashed (used as a dict key or set member)",
            code="D2S261", hint="Use its bounds, as numbers that are compared one by one.")

    def length(self, session: Session) -> Any:
        if is_a(self._length, Staged) and not session.visible(self._length.var):  # it was made in a branch
            return _count(session, self.start, self.stop, self.step)
        return self._length

    def get(self, session: Session, index: Any) -> Any:
        if type(self.step) is int and self.step == 1:
            return index if type(self.start) is int and self.start == 0 else self.start + index
        return self.start + index * self.step


def _same_range(session: Session, a: StagedRange, b: Any) -> Any:
    """``a == b`` of two ranges: they give the same items."""

    def joined(op: str, first: Any, second: Any) -> Any:
        ends = op == "or_"
        if is_a(first, Staged) and is_a(second, Staged):
            return session.scalar(op, first, second)
        known, other = (second, first) if is_a(first, Staged) else (first, second)
        return ends if known is ends else other

    length, other = a.length(session), b.length(session) if is_a(b, StagedRange) else len(b)
    steps = joined("or_", length == 1, a.step == b.step)
    items = joined("or_", length == 0, joined("and_", a.start == b.start, steps))
    return joined("and_", length == other, items)


def _count(session: Session, start: Any, stop: Any, step: Any) -> Any:
    """``len(range(start, stop, step))``."""
    if is_a(step, Staged):
        stride: Any = step
        up = (stop - start + stride - 1) // stride
        down = (start - stop - stride - 1) // -stride
        count = session.scalar("select", stride > 0, up, down)
    elif step == 1:
        count = stop if type(start) is int and start == 0 else stop - start
    elif step > 0:
        count = (stop - start + (step - 1)) // step
    else:
        count = (start - stop + (-step - 1)) // -step
    return session.scalar("max", count, 0) if is_a(count, Staged) else max(count, 0)


class GrownItems(StagedSequence):
    """The items of such a list, as it is when each of them is taken: a loop may change the list that it goes over."""

    python_name = "list"

    def __init__(self, target: Any) -> None:
        self.target = target
        self._first = held_now(target)
        self._counted: tuple[Any, Any] | None = None
        """What the list held when its length was asked for, and the length."""

    def length(self, session: Session) -> Any:
        now = self._now(session)
        if self._counted is None or not _same(self._counted[0], now) or not session.visible(self._counted[1].var):
            self._counted = now, array.length(session, self.target)
        return self._counted[1]

    def get(self, session: Session, index: Any) -> Any:
        self._now(session)
        with session.uncaught():  # it is asked for where there is one
            return array.get(session, self.target, index)

    def _now(self, session: Session) -> tuple[Any, Any]:
        """What the list holds; a deque that is changed under a loop is an error, on the paths that change it."""
        now = held_now(self.target)
        if is_a(self.target, deque) and not _same(now, self._first):
            raise changed(session, self.target)
        return now


def _same(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
    return a[0] is b[0] and a[1] is b[1]


def changed(session: Session, container: Any) -> Exception:
    """The located error for a loop over what was changed on some paths since the loop began."""
    return session.error(
        f"a loop goes over a {type(container).__name__} that was changed on some paths since it began",
        hint="Loop over a copy: for item in list(...).", code="D2S266")


class LiveItems(StagedSequence):
    """The items of a list from a position on, which may be one that grows by the time they are taken."""

    python_name = "list"

    def __init__(self, items: Any, start: int = 0) -> None:
        self.items, self.start = items, start
        self._grown: GrownItems | None = None

    def length(self, session: Session) -> Any:
        grown = self._as_grown()
        if grown is not None:
            count = grown.length(session)
        else:  # a container that may hold several things says how many in its own way
            count = len(self.items) if several(self.items) is None else traced(session, len, (self.items,), {})
        return count - self.start if self.start else count

    def get(self, session: Session, index: Any) -> Any:
        grown, index = self._as_grown(), index + self.start if self.start else index
        return traced(session, operator.getitem, (self.items, index), {}) if grown is None else (
            grown.get(session, index))

    def _as_grown(self) -> GrownItems | None:
        if self._grown is None and growing(self.items) is not None:
            self._grown = GrownItems(self.items)
        return self._grown


class TensorRows(StagedSequence):
    """A tensor whose first size is symbolic."""

    python_name = "tensor"

    def __init__(self, session: Session, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self._rows = nonwritable_views.Rows(session.info(tensor))

    def length(self, session: Session) -> Any:
        size = self.tensor.shape[0]
        return size if type(size) is int else session.sizes.staged(size)

    def get(self, session: Session, index: Any) -> Any:
        row = traced(session, operator.getitem, (self.tensor, index), {})
        self._rows.note(session.info(row), index)
        return row


class ArrayItems(StagedSequence):
    """An array of NumPy's whose first size is symbolic."""

    python_name = "ndarray"

    def __init__(self, session: Session, array: NumpyArray) -> None:
        self.array = array

    def length(self, session: Session) -> Any:
        return session.sizes.staged(session.fake(self.array.tensor).shape[0])

    def get(self, session: Session, index: Any) -> Any:
        return traced(session, operator.getitem, (self.array, index), {})


class Characters(StagedSequence):
    """The characters of text that is only known while the Program runs."""

    python_name = "str"

    def __init__(self, text: StagedStr) -> None:
        self.text = text

    def length(self, session: Session) -> Any:
        return session.scalar("str.len", self.text)

    def get(self, session: Session, index: Any) -> Any:
        return session.scalar("str.getitem", self.text, index)


class Listed(StagedSequence):
    """A Python sequence beside staged ones (in ``zip``)."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def length(self, session: Session) -> Any:
        return len(self.items) if several(self.items) is None else traced(session, len, (self.items,), {})

    def get(self, session: Session, index: Any) -> Any:
        return traced(session, operator.getitem, (self.items, index), {})


class StagedEnumerate(StagedIterator):
    """``enumerate`` of a staged sequence."""

    python_name = "enumerate"

    def __init__(self, inner: StagedSequence, start: Any) -> None:
        self.inner, self.start = inner, start
        self.inner_sequences = (inner,)

    def length(self, session: Session) -> Any:
        return self.inner.length(session)

    def has(self, session: Session, index: Any) -> Any:
        return self.inner.has(session, index)

    def get(self, session: Session, index: Any) -> Any:
        position = index if type(self.start) is int and self.start == 0 else self.start + index
        return position, self.inner.get(session, index)


class StagedZip(StagedIterator):
    """``zip`` with a staged sequence: as long as the shortest."""

    python_name = "zip"

    def __init__(self, inners: list[StagedSequence], strict: bool) -> None:
        self.inners, self.strict = inners, strict
        self.inner_sequences = tuple(inners)

    def length(self, session: Session) -> Any:
        every = [inner.length(session) for inner in self.inners]
        lengths = [one for one in every if one is not ENDLESS] or [ENDLESS]
        if self.strict:
            if len(lengths) < len(every):
                raise session.error("zip(strict=True) of an endless iterator", code="D2S261", hint="Take a range.")
            for number, length in enumerate(lengths[1:], 2):
                _require_equal(session, lengths[0], length, number)
        result = lengths[0]
        for length in lengths[1:]:
            staged = is_a(result, Staged) or is_a(length, Staged)
            result = session.scalar("min", result, length) if staged else min(result, length)
        return result

    def get(self, session: Session, index: Any) -> Any:
        return tuple(inner.get(session, index) for inner in self.inners)


def _require_equal(session: Session, first: Any, other: Any, number: int) -> None:
    for flag, word in ((other >= first, "shorter"), (other <= first, "longer")):
        message = f"zip() argument {number} is {word} than argument{'s 1-' + str(number - 1) if number > 2 else ' 1'}"
        if is_a(flag, Staged):
            session.emit("assert", [session.operand(flag)], attrs={"exception": "ValueError", "message": message})
        elif not flag:
            raise ValueError(message)


class StagedMap(StagedIterator):
    """``map`` over staged sequences."""

    python_name = "map"

    def __init__(self, function: Callable[..., Any], inner: StagedZip) -> None:
        self.function, self.inner = function, inner
        self.inner_sequences = (inner,)

    def length(self, session: Session) -> Any:
        return self.inner.length(session)

    def get(self, session: Session, index: Any) -> Any:
        return self.function(*self.inner.get(session, index))


class StagedReversed(StagedIterator):
    """``reversed`` of a staged range, or of a list that grew: it begins at the item that is the last one then."""

    python_name = "reversed"

    def __init__(self, session: Session, inner: StagedSequence) -> None:
        self.inner = inner
        self.inner_sequences = (inner,)
        self._length = inner.length(session)
        self._held = held_now(inner.target) if is_a(inner, GrownItems) else None

    def length(self, session: Session) -> Any:
        return self._length

    def has(self, session: Session, index: Any) -> Any:
        """Python takes the item that is there now, and ends where there is none any more."""
        more = index < self._length
        if not self._is_changed():
            return more
        return session.scalar("and_", more, self._is_there(session, index))

    def get(self, session: Session, index: Any) -> Any:
        if self._is_changed():
            session.emit("assert", [session.operand(self._is_there(session, index))], attrs={
                "exception": "RuntimeError", "message": "a list became shorter while something took reversed() of it"})
        return self.inner.get(session, self._length - 1 - index)

    def _is_changed(self) -> bool:
        """Whether the list may hold something else by now."""
        if not is_a(self.inner, GrownItems):
            return False
        assert self._held is not None
        return not _same(self._held, held_now(self.inner.target))

    def _is_there(self, session: Session, index: Any) -> Any:
        assert is_a(self.inner, GrownItems)
        target = self.inner.target
        if is_a(target, deque):
            raise changed(session, target)
        return self._length - 1 - index < array.length(session, target)


class Transposed(StagedIterator):
    """``zip(*rows)`` of a list that grew: as many columns as a row has items, none where there is no row."""

    python_name = "zip"

    def __init__(self, columns: Any) -> None:
        self.columns = columns
        """A tuple, or one of two: that of the columns, and the empty one."""

    def length(self, session: Session) -> Any:
        return traced(session, len, (self.columns,), {})

    def get(self, session: Session, index: Any) -> Any:
        return traced(session, operator.getitem, (self.columns, index), {})


def spelled(value: Any) -> Any:
    """Text that is only known while the Program runs as the sequence of its characters; anything else as it is."""
    return Characters(value) if is_a(value, StagedStr) else value


def staged_sequence(session: Session, value: Any) -> StagedSequence | None:
    """The value as a staged sequence, if it is one or is a tensor or array whose first size is symbolic."""
    if is_a(value, StagedSequence):
        return value
    if growing(value) is not None and python_method(value, "__iter__") is None:
        return GrownItems(value)
    if is_a(value, StagedStr):
        return Characters(value)
    if is_a(value, UserList) and _reads_its_data(type(value)):
        return staged_sequence(session, vars(value).get("data"))
    if is_a(value, torch.Tensor) and session.knows(value) and _is_open(session, value):
        return TensorRows(session, value)
    return ArrayItems(session, value) if is_a(value, NumpyArray) and _is_open(session, value.tensor) else None


def _is_open(session: Session, tensor: torch.Tensor) -> bool:
    fake = session.fake(tensor)
    return fake.dim() > 0 and type(fake.shape[0]) is not int


def _reads_its_data(cls: type[UserList[Any]]) -> bool:
    """Whether to go over a ``UserList`` is to go over the list in it."""
    return cls.__iter__ is Sequence.__iter__ and cls.__getitem__ is UserList.__getitem__


def stored_sequence(session: Session, value: Any) -> StagedSequence | None:
    """The same of what a value holds, for what Python does not ask its class's ``__iter__``: its length and order."""
    return GrownItems(value) if growing(value) is not None else staged_sequence(session, value)


__all__ = [
    "ENDLESS", "ArrayItems", "Characters", "GrownItems", "Listed", "LiveItems", "StagedEnumerate", "StagedIterator",
    "StagedMap", "StagedRange", "StagedReversed", "StagedSequence", "StagedSize", "StagedZip", "TensorRows",
    "Transposed", "changed", "spelled", "staged_sequence", "stored_sequence",
]  # fmt: skip
