"""Iterators that are made on a path or in an iteration are advanced there; older ones are not."""

from __future__ import annotations

import contextlib
import itertools
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import not_to_static, to_static
from runtime.errors import TraceError
from tests.oracle import check, check_module


def sends(x: Any) -> Any:
    got = yield x
    yield x * (got or 1)


class Countdown:
    """An iterator written in Python."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Countdown:
        return self

    def __next__(self) -> int:
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Rest:
    """What is gone over by an iterator that it has."""

    def __init__(self, items: list[Any]) -> None:
        self.left = iter(items)

    def __iter__(self) -> Iterator[Any]:
        return self.left


@contextlib.contextmanager
def doubled(x: Any) -> Any:
    yield x * 2


def generator_by_next(x: Any) -> Any:
    if x.sum() > 0:
        g = sends(x)
        return next(g) + next(g)
    return x


def generator_by_send(x: Any) -> Any:
    if x.sum() > 0:
        g = sends(x)
        return next(g) + g.send(3)
    return x


def generator_closed(x: Any) -> Any:
    if x.sum() > 0:
        g = sends(x)
        first = next(g)
        g.close()
        return first + next(g, 5)
    return x


def list_iterator(x: Any) -> Any:
    if x.sum() > 0:
        it = iter([x, x + 1])
        return next(it) * next(it)
    return x


def zipped(x: Any) -> Any:
    if x.sum() > 0:
        pairs = zip([x, x], [1, 2])
        a, b = next(pairs)
        return a * b + sum(one * other for one, other in pairs)
    return x


def zipped_own(x: Any) -> Any:
    if x.sum() > 0:
        it = iter([x, x + 1, x + 2])
        pairs = zip(it, it)
        a, b = next(pairs)
        return a * b + next(it)
    return x


def counted(x: Any) -> Any:
    if x.sum() > 0:
        numbers = itertools.count(2)
        return x + next(numbers) * next(numbers)
    return x


def mapped(x: Any) -> Any:
    if x.sum() > 0:
        made = map(lambda v: v * 2 if v.sum() > 1 else v, [x, x + 1])
        return next(made) + next(made)
    return x


def written_in_python(x: Any) -> Any:
    if x.sum() > 0:
        it = Countdown(3)
        return x + next(it) + sum(it)
    return x


def written_in_python_before(x: Any) -> Any:
    it = Countdown(5)
    if x.sum() > 0:
        x = x + next(it)
    return x + next(it)


def exit_stack(x: Any) -> Any:
    if x.sum() > 0:
        with contextlib.ExitStack() as stack:
            return stack.enter_context(doubled(x)) + 1
    return x


def generator_of_an_iteration(x: Any) -> Any:
    for _ in range(int(x.sum())):
        g = sends(x)
        x = x + next(g) + g.send(2)
    return x


def iterator_of_an_iteration(x: Any) -> Any:
    for i in range(int(x.sum())):
        it = itertools.chain([x, i], [x + 1])
        x = x + next(it) * next(it) + next(it)
    return x


WORKING = (
    generator_by_next, generator_by_send, generator_closed, list_iterator, zipped, zipped_own, counted, mapped,
    written_in_python, written_in_python_before, exit_stack, generator_of_an_iteration, iterator_of_an_iteration,
)  # fmt: skip


@pytest.mark.parametrize("function", WORKING)
def test_iterators_of_a_path_are_advanced_there(function: Callable[..., Any]) -> None:
    check(function, *[(x.requires_grad_(),) for x in (torch.zeros(2), torch.ones(2), -torch.ones(2))])


def older_list_iterator(x: Any) -> Any:
    it = iter([x, x + 1])
    if x.sum() > 0:
        x = next(it) * 2
    return x + next(it)


def older_under_zip(x: Any) -> Any:
    it = iter([x, x + 1, x + 2])
    if x.sum() > 0:
        a, b = next(zip(it, [1, 2]))
        return a * b + next(it)
    return x + next(it)


def older_under_chain(x: Any) -> Any:
    it = iter([x, x + 1, x + 2])
    if x.sum() > 0:
        x = next(itertools.chain.from_iterable([it, [x]]))
    return x + next(it)


def older_generator(x: Any) -> Any:
    g = sends(x)
    if x.sum() > 0:
        x = next(g) + 1
    return x + next(g)


def older_in_a_generator(x: Any) -> Any:
    it = iter([x, x + 1, x + 2])

    def take() -> Any:
        yield next(it)

    if x.sum() > 0:
        x = next(take()) * 3
    return x + next(it)


def older_in_an_object(x: Any) -> Any:
    rest = Rest([x, x + 1, x + 2])
    if x.sum() > 0:
        a, _ = next(zip(rest, [1, 2]))
        x = x + a
    return x + next(rest.left)


def older_written_in_python_under_zip(x: Any) -> Any:
    it = Countdown(5)
    if x.sum() > 0:
        a, b = next(zip(it, it))
        x = x + a + b
    return x + next(it)


class Backwards:
    def __init__(self, items: list[Any]) -> None:
        self.left = iter(items)

    def __reversed__(self) -> Iterator[Any]:
        return self.left


def older_given_by_a_method(x: Any) -> Any:
    rest = Backwards([x, x + 1, x + 2])
    if x.sum() > 0:
        x = x + next(reversed(rest))  # type: ignore[call-overload]
    return x + next(rest.left)


def older_given_by_a_class(x: Any) -> Any:
    it = iter([x, x + 1, x + 2])

    class Same:
        def __new__(cls) -> Any:
            return it

    if x.sum() > 0:
        x = x + next(Same())  # type: ignore[call-overload]
    return x + next(it)


def after_its_path(x: Any) -> Any:
    it = iter([x, x + 1, x + 2])
    if x.sum() > 0:
        it = iter([x * 5, x * 6])
        x = next(it)
    return x + next(it)


def on_a_path_inside(x: Any) -> Any:
    if x.sum() > 0:
        pairs = zip([x, x + 1], [1, 2])
        if x.sum() > 1:
            x = x + next(pairs)[0]
        x = x + next(pairs)[0]
    return x


REFUSED = (
    older_list_iterator, older_under_zip, older_under_chain, older_generator, older_in_a_generator, older_in_an_object,
    older_written_in_python_under_zip, older_given_by_a_method, older_given_by_a_class, after_its_path,
    on_a_path_inside,
)  # fmt: skip


@pytest.mark.parametrize("function", REFUSED)
def test_older_iterators_are_not(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match=r"D2S266|D2S227"):
        to_static(function)(torch.ones(2))


class ByPlace:
    """What is gone over by asking for one place after another."""

    def __getitem__(self, place: int) -> int:
        if place > 3:
            raise IndexError
        return place


@not_to_static
def take(iterator: Iterator[Any]) -> None:
    next(iterator)


TAKEN: dict[str, Callable[[], Any]] = {
    "chain": lambda: itertools.chain([1, 2]), "of lists": lambda: itertools.chain.from_iterable([[1], [2]]),
    "cycle": lambda: itertools.cycle([1, 2]), "longest": lambda: itertools.zip_longest([1, 2]),
    "takewhile": lambda: itertools.takewhile(bool, [1, 2]), "pairwise": lambda: itertools.pairwise([1, 2, 3]),
    "starmap": lambda: itertools.starmap(pow, [(1, 2), (2, 3)]), "tee": lambda: itertools.tee([1, 2])[1],
    "compress": lambda: itertools.compress([1, 2], [1, 1]), "group": lambda: next(itertools.groupby([1, 1, 2]))[1],
    "ordered": lambda: iter(OrderedDict({1: 1, 2: 2})), "zip of a chain": lambda: zip(itertools.chain([1, 2])),
    "zip of a user's": lambda: zip(Countdown(3)), "a user's": lambda: iter(Countdown(3)),
    "by place": lambda: iter(ByPlace()), "generator": lambda: (one * 1000 for one in range(1000, 1003)),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAKEN)
def test_code_that_is_not_converted_takes_an_item_on_a_path(kind: str) -> None:
    """Both paths had one item less than in eager."""
    make = TAKEN[kind]

    def function(x: Any) -> Any:
        going = make()
        if x.sum() > 0:
            take(going)
        return x * len(list(itertools.islice(going, 3)))

    with pytest.raises(TraceError, match="D2S266|D2S277"):
        to_static(function)(torch.ones(2))


CHANGED: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "an item of a deque": (lambda x: deque([x, x + 1]), lambda held, x: held.__setitem__(0, x * 3)),
    "one more and one less": (lambda x: deque([x, x + 1]), lambda held, x: (held.append(x), held.pop())),
    "rotated": (lambda x: deque([x, x + 1]), lambda held, x: held.rotate(1)),
    "longer": (lambda x: deque([x, x + 1]), lambda held, x: held.append(x)),
    "ordered": (lambda x: OrderedDict({1: x, 2: x}), lambda held, x: held.__setitem__(3, x)),
    "moved": (lambda x: OrderedDict({1: x, 2: x}), lambda held, x: held.move_to_end(1)),
}  # fmt: skip


@pytest.mark.parametrize("look", [iter, reversed, lambda held: zip(held, [1, 2]), enumerate])
@pytest.mark.parametrize("kind", CHANGED)
def test_what_an_older_iterator_goes_over_is_changed_on_a_path(kind: str, look: Callable[[Any], Any]) -> None:
    """To put its content back stops the iterator: that was Python's RuntimeError, on paths that change nothing too."""
    make, change = CHANGED[kind]

    def function(x: Any) -> Any:
        held = make(x)
        going = look(held)
        if x.sum() > 0:
            change(held, x)
        next(going)
        return x * len(held)

    for x in (torch.ones(2), -torch.ones(2)):
        with pytest.raises(TraceError, match="D2S266.*changed on some paths"):
            to_static(function)(x)


@pytest.mark.parametrize("kind", list(CHANGED)[:3])
def test_what_a_later_iterator_goes_over(kind: str) -> None:
    make, change = CHANGED[kind]

    def function(x: Any) -> Any:
        held = make(x)
        if x.sum() > 0:
            change(held, x)
        return [one * 2 for one in held], next(iter(held))

    check(function, [(torch.ones(2),), (-torch.ones(2),)])


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)


class _FirstParameter(_Layer):
    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            x = x.to(next(self.parameters()).device) * 2
        return self.inner(x)


class _FirstOfEach(_Layer):
    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            name, child = next(self.named_children())
            pair = next(zip(self.parameters(), self.modules()))
            return child(x) + pair[0].sum(), name, next(enumerate(self.children()))[0]
        return self.inner(x), "", 0


class _InALoop(_Layer):
    def forward(self, x: Any) -> Any:
        while x.norm() > 0.5:
            x = x * 0.5 + next(iter(self.parameters())).sum() * 0
        return self.inner(x)


@pytest.mark.parametrize("make", [_FirstParameter, _FirstOfEach, _InALoop])
def test_what_modules_hold_is_taken_on_a_path(make: Callable[[], Any]) -> None:
    check_module(make, [torch.ones(1, 2)], [-torch.ones(1, 2)])


class _Older(_Layer):
    def forward(self, x: Any) -> Any:
        found = self.parameters()
        if x.sum() > 0:
            x = x * next(found).sum()
        return self.inner(x) + next(found).sum()


class _OnEitherPath(_Layer):
    def forward(self, x: Any) -> Any:
        found = self.parameters()
        if x.sum() > 0:
            found = self.parameters()
            next(found)
        return self.inner(x) + next(found).sum()


@pytest.mark.parametrize("make", [_Older, _OnEitherPath])
def test_what_modules_hold_by_a_name_of_another_path_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(TraceError, match="D2S266"):
        to_static(make())(torch.ones(1, 2))


COUNTS = itertools.count()


@not_to_static
def counted() -> Any:
    yield next(COUNTS)


def test_what_other_generator_functions_advance_is_not_known() -> None:
    def function(x: Any) -> Any:
        if x.sum() > 0:
            return x * next(counted())
        return x

    with pytest.raises(TraceError, match="D2S266|D2S277"):
        to_static(function)(torch.ones(2))


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_other_generator_functions_take_from_iterators_at_each_call() -> None:
    counts = itertools.count()

    @not_to_static
    def taken() -> Any:
        yield next(counts)

    static = to_static(lambda x: x * next(taken()))
    assert [static(torch.ones(1)).item() for _ in range(4)] == [0, 1, 2, 3]
