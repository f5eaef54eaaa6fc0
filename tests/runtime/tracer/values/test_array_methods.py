"""Methods of lists and deques whose length only a run knows, held against Python's own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.values import array_methods, structure
from runtime.tracer.values.structure import Growing
from tests.runtime.tracer.control.staging import Local, Staging
from tests.runtime.tracer.values.growing import act, agree_on_counts, call, items_up_to

LISTS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "append": lambda do, xs, x, n: call(do, "append", xs, x),
    "extend": lambda do, xs, x, n: call(do, "extend", xs, (x, x * 2)),
    "insert": lambda do, xs, x, n: call(do, "insert", xs, 1, x),
    "insert at a place of the run": lambda do, xs, x, n: call(do, "insert", xs, n - 2, x),
    "pop": lambda do, xs, x, n: call(do, "pop", xs),
    "pop at a place": lambda do, xs, x, n: call(do, "pop", xs, 1),
    "reverse": lambda do, xs, x, n: call(do, "reverse", xs),
    "clear": lambda do, xs, x, n: call(do, "clear", xs),
}
DEQUES: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "append": lambda do, xs, x, n: call(do, "append", xs, x),
    "appendleft": lambda do, xs, x, n: call(do, "appendleft", xs, x),
    "extend": lambda do, xs, x, n: call(do, "extend", xs, [x, x * 2]),
    "extend by more than there is room": lambda do, xs, x, n: call(do, "extend", xs, [x, x * 2, x + 1, x + 2]),
    "extend by what grew": lambda do, xs, x, n: call(do, "extend", xs, items_up_to(do, [x, x * 2], n - 1)),
    "extend by itself": lambda do, xs, x, n: call(do, "extend", xs, xs),
    "extendleft": lambda do, xs, x, n: call(do, "extendleft", xs, (x, x * 2)),
    "extendleft by more than there is room": lambda do, xs, x, n: call(do, "extendleft", xs, [x, x * 2, x + 1, x + 2]),
    "extendleft by what grew": lambda do, xs, x, n: call(do, "extendleft", xs, items_up_to(do, [x, x * 2], n - 1)),
    "extendleft by itself": lambda do, xs, x, n: call(do, "extendleft", xs, xs),
    "pop": lambda do, xs, x, n: call(do, "pop", xs),
    "popleft": lambda do, xs, x, n: call(do, "popleft", xs),
    "rotate": lambda do, xs, x, n: call(do, "rotate", xs),
    "rotate far": lambda do, xs, x, n: call(do, "rotate", xs, 7),
    "rotate back": lambda do, xs, x, n: call(do, "rotate", xs, -1),
    "rotate as far as the run says": lambda do, xs, x, n: call(do, "rotate", xs, n - 2),
    "reverse": lambda do, xs, x, n: call(do, "reverse", xs),
    "clear": lambda do, xs, x, n: call(do, "clear", xs),
}


def queue_up_to(do: Any, items: list[Any], count: Any, most: int | None) -> Any:
    """A deque that holds the first ``count`` of some items, which is known while the Program runs."""
    return deque(items_up_to(do, items, count), most)


@pytest.mark.parametrize("method", LISTS)
def test_a_method_of_a_list(method: str, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = items_up_to(do, [x + 1, x * 2, x - 1], n)
        return LISTS[method](do, xs, x, n), xs

    agree_on_counts(staging, told)


@pytest.mark.parametrize("most", [None, 1, 3])
@pytest.mark.parametrize("method", DEQUES)
def test_a_method_of_a_deque(method: str, most: int | None, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = queue_up_to(do, [x + 1, x * 2, x - 1], n, 3)
        if most == 1:  # of a longer one Python would keep the last
            xs = deque(items_up_to(do, [x + 1], n), 1)
        elif most is None:
            xs = queue_up_to(do, [x + 1, x * 2, x - 1], n, None)
        return DEQUES[method](do, xs, x, n), xs

    agree_on_counts(staging, told)


@pytest.mark.parametrize("method", ["extend", "extendleft"])
def test_an_ordinary_deque_gets_what_grew(method: str, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = deque([x, x + 1], 3)
        call(do, method, xs, items_up_to(do, [x * 2, x * 3, x * 4], n))
        return xs

    agree_on_counts(staging, told)


@pytest.mark.parametrize("method", ["extend", "extendleft"])
def test_a_deque_that_takes_nothing(method: str, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = deque([], 0)
        call(do, method, xs, items_up_to(do, [x], n))
        return xs

    agree_on_counts(staging, told)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("most", [None, 1, 2, 5])
def test_no_more_items_than_a_deque_takes(most: int | None, first: bool, staging: Staging) -> None:
    """What it holds is one stand-in, so Python itself drops nothing."""

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        items = items_up_to(do, [1, 2, 3], n)
        if do is not staging:
            return deque(items if first or most is None else items[:most], most)
        xs = deque(items, most)
        array_methods.drop(staging.session, xs, first)
        return xs

    agree_on_counts(staging, told)


def test_a_copy_is_as_long_at_most(staging: Staging) -> None:
    x = staging.given("x")
    for target in (items_up_to(staging, [x], 1), deque(items_up_to(staging, [x], 1), 3)):
        made = array_methods.copy(target)
        assert type(made) is type(target) and made is not target
        assert getattr(made, "maxlen", None) == getattr(target, "maxlen", None)
        grown = structure.growing(made)
        assert isinstance(grown, Growing) and grown is structure.growing(target)


@pytest.mark.parametrize("index", [0, 2, -1, -3, 5])
def test_an_index_that_a_deque_has(index: int, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = queue_up_to(do, [1, 2, 3], n, None)
        if do is staging:
            array_methods.require_index(staging.session, xs, index)
        return act(do, "get", xs, index)

    agree_on_counts(staging, told)


def test_an_index_that_a_handler_would_ask_for_is_refused(staging: Staging) -> None:
    xs = queue_up_to(staging, [1, 2], 2, None)
    for types in (IndexError, (KeyError, LookupError)):
        staging.session.exceptions.catching.append(lambda types=types: types)
        with pytest.raises(TraceError) as found:
            array_methods.require_index(staging.session, xs, 0)
        assert found.value.code == "D2S229"
        staging.session.exceptions.catching[:] = [lambda: KeyError]
    array_methods.require_index(staging.session, xs, 0)


def test_a_method_on_one_path(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = queue_up_to(do, [x, x * 2, x * 3], n, 2)
        local = Local(got=None)

        def path() -> None:
            call(do, "append", xs, x - 1)
            local.got = call(do, "popleft", xs)

        do.branch(n > 1, local, path, lambda: call(do, "rotate", xs))
        return local.got, xs

    agree_on_counts(staging, told, *[{"x": [1.0, 2.0, 3.0], "i": number} for number in (0, 1, 2)])


def test_the_methods_are_pythons() -> None:
    for methods, cls in ((array_methods.LIST, list), (array_methods.DEQUE, deque)):
        assert all(callable(getattr(cls, name)) for name in methods)
