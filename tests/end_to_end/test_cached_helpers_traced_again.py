"""Helpers under ``functools.cache``, where a call is traced more than once, or runs as plain Python after all.

What their caches hold and count, and what the helpers leave behind, is what one run in eager leaves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import EagerWarning, InputSpec, TraceError, load, save, to_static
from tests.oracle import same

pytestmark = pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning", "ignore::dy2static.EagerWarning")


class Helpers:
    """Cached functions with a log of their own. ``pure`` and ``pair`` are asked in ways that no cache hears of."""

    def __init__(self) -> None:
        log: list[Any] = []

        def logged(name: str, decorate: Any) -> Any:
            def half(n: float) -> float:
                log.append((name, n))
                return n * 0.5

            return decorate(half)

        class Box:
            @functools.lru_cache(maxsize=2)
            def width(self, n: int) -> int:
                log.append(("width", n))
                return n + 1

            @functools.cached_property
            def depth(self) -> int:
                log.append("depth")
                return 2

        @functools.cache
        def bad(n: int) -> int:
            log.append(("bad", n))
            raise ValueError(n)

        self.log, self.box, self.bad = log, Box(), bad
        self.full = logged("full", functools.cache)
        self.one, self.two = logged("one", functools.lru_cache(1)), logged("two", functools.lru_cache(2))
        self.three, self.many = logged("three", functools.lru_cache(3)), logged("many", functools.lru_cache(None))
        self.pure = functools.cache(lambda n: n * 0.5)
        self.pair = functools.lru_cache(maxsize=2)(lambda n: n * 0.25)
        two, full = self.two, self.full

        @functools.cache
        def outer(n: int) -> float:
            log.append(("outer", n))
            return float(two(n) + full(n))

        self.outer = outer
        self.counted = (self.full, self.one, self.two, self.three, self.many, Box.width, bad, outer)


Program = Callable[[Helpers], Callable[..., Any]]
PROGRAMS: dict[str, Program] = {}


def program(make: Program) -> Program:
    PROGRAMS[make.__name__] = make
    return make


@program
def hits(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: x * (h.pure(k + 1) + h.two(2)) + h.two.cache_info().hits


@program
def misses(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: x * (h.pure(k + 1) + h.three(k % 2) + h.three(4)) + h.three.cache_info().misses


@program
def size(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: x * h.pair(k) + h.many(k % 3) + h.many.cache_info().currsize + h.many(1)


@program
def clear(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        y = x * h.pure(k) + h.two(2) + h.full(3)
        h.full.cache_clear()
        return y + h.full(2) + h.two(2) + h.full(2), h.full.cache_info().hits

    return f


@program
def asked_before_and_after(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        before = h.two.cache_info().hits
        y = x * h.pure(k) + h.two(2)
        between = h.two.cache_info().hits
        return y + h.two(3), before, between, h.two.cache_info().misses

    return f


@program
def another_one_is_asked(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        y = x * h.two(2) + h.two(k) + h.two(2) + h.two(3) + h.one(k) + h.one(2) + h.three(k + 1)
        return y, h.full.cache_info().hits

    return f


@program
def number_that_is_needed(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: x.reshape(*[1] * (k % 3), -1) * h.two(k % 2) + h.pair(k) + h.two(2)


@program
def method(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        y = x * h.pure(k) + h.box.width(2) + h.box.width(k % 2)
        return y + h.box.width(2), type(h.box).width.cache_info().hits

    return f


@program
def cached_property(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: x * h.pure(k) + h.two(2) + (h.box.depth if k > 1 else 0) + h.two.cache_info().hits


@program
def one_that_raises(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        try:
            return x * h.pure(k) + h.bad(2), 0
        except ValueError:
            return x, h.bad.cache_info().misses

    return f


@program
def one_that_raises_and_nobody_asks(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        try:
            return x * h.pure(k) + h.bad(2), 0
        except ValueError:
            return x

    return f


@program
def loop(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        for i in range(3):
            x = x * h.pure(i + k) + h.two(i)
        return x, h.two.cache_info().misses

    return f


@program
def staged_loop_and_branch(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        while x.sum() < 4:
            x = x + h.pair(2) + h.pure(k)
        if x.sum() > 0:
            x = x * h.pure(2)
        return x + h.two(2), h.two.cache_info().hits

    return f


@program
def one_in_another(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: x * h.pair(k) + h.outer(k % 2) + h.outer(2) + h.two(3) + h.two.cache_info().hits


@program
def on_later_calls(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: (x * h.pure(k) + (h.two(2) + h.two(3) if k > 4 else 0), h.full.cache_info().hits)


@program
def what_the_log_says(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: x * h.pair(k) + h.two(len(h.log) % 3)


@program
def the_log_is_written_as_well(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        h.log.append("f")
        return x * h.pure(k) + h.two(2)

    return f


@program
def exception(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        y = x * h.two(2) + h.pure(k)
        if k > 4:
            raise KeyError(k)
        return y

    return f


@program
def exception_of_a_run(h: Helpers) -> Callable[..., Any]:
    def f(x: torch.Tensor, k: int) -> Any:
        y = x * h.two(2) + h.pure(k)
        if y.sum() > 6:
            raise KeyError(k)
        return y + 3 // (k - 5)

    return f


@program
def sizes(h: Helpers) -> Callable[..., Any]:
    return lambda x, k: x * h.pure(len(x)) + h.two(2) + h.full.cache_info().hits


CALLS = {
    "one after the other": [(3, k) for k in range(8)],
    "again": [(3, k) for k in (0, 0, 1, 5, 7, 5, 9, 7, 2, 11, 2)],
    "sizes": [(3, 0), (4, 0), (5, 0), (6, 1), (3, 2), (7, 3), (5, 4), (8, 5)],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_caches_are_asked_as_in_eager(name: str, calls: str, whole: bool) -> None:
    theirs, mine = Helpers(), Helpers()
    eager, static = PROGRAMS[name](theirs), to_static(PROGRAMS[name](mine), full_graph=whole)
    for number, (length, k) in enumerate(CALLS[calls]):
        said = [_said(function, h, length, k) for function, h in ((eager, theirs), (static, mine))]
        same(said[1], said[0], f"call {number}")


def _said(function: Callable[..., Any], h: Helpers, length: int, k: int) -> Any:
    result: Any
    try:
        result = function(torch.ones(length), k)
    except (KeyError, ZeroDivisionError) as error:
        result = repr(error)
    return result, list(h.log), [tuple(cache.cache_info()) for cache in h.counted]


@pytest.mark.parametrize("whole", [True, False])
def test_a_number_that_each_call_has_anew_becomes_an_input(whole: bool) -> None:
    h = Helpers()
    static = to_static(lambda x, k: x * h.pure(k) + h.two(2), full_graph=whole)
    for k in range(10):
        assert torch.equal(static(torch.ones(2), k), torch.full((2,), k * 0.5 + 1))
    assert len(static.programs) <= 3 and h.pure.cache_info().misses == 2 and h.log == [("two", 2)]


def test_numbers_stay_open_though_a_cache_held_nothing_yet() -> None:
    """The third number is tried as an input, and a helper is called that was not called before."""
    h = Helpers()
    static = to_static(lambda x, k: x * h.pure(k) + h.two(2))
    for k in (0, 1):
        static(torch.ones(2), k)
    h.two.cache_clear()
    for k in range(2, 10):
        static(torch.ones(2), k)
    assert len(static.programs) == 4 and h.two.cache_info().misses == 1


def test_a_cold_cache_leaves_a_function_open_for_programs(recwarn: pytest.WarningsRecorder) -> None:
    h = Helpers()

    def function(x: torch.Tensor) -> torch.Tensor:
        while x.sum() < 10:
            x = x * 2 + h.two(2)
        return x * h.full(1)

    static = to_static(function, full_graph=False)
    h.two(2)
    for _ in range(3):
        assert torch.equal(static(torch.ones(2)), function(torch.ones(2)))
    assert len(static.programs) == 1
    assert not [one for one in recwarn if issubclass(one.category, EagerWarning)]


def test_a_cache_that_never_holds_anything_is_no_reason_to_trace_for_ever() -> None:
    nothing = functools.lru_cache(maxsize=0)(lambda n: n + 1)
    static = to_static(lambda x, k: x * nothing(2) + k, full_graph=False)
    for k in range(40):
        assert torch.equal(static(torch.ones(2), k % 4), torch.full((2,), k % 4 + 3.0))
    assert "D2S278" in str(static.explain())


def test_a_function_that_may_be_plain_python_is_saved_with_cold_caches(tmp_path: Path) -> None:
    h = Helpers()

    def function(x: torch.Tensor) -> torch.Tensor:
        while x.sum() < 10:
            x = x * 2
        return x * h.full(3)

    static = to_static(function, full_graph=False, input_spec=[InputSpec([3])])
    assert static.concrete_program().program.block.ops and h.log == [("full", 3)]
    h.full.cache_clear()
    save(static, tmp_path / "f")
    assert torch.equal(load(tmp_path / "f")(torch.ones(3)), function(torch.ones(3)))


# -- a trace that begins again


def restarted(log: bool, ask: bool) -> Program:
    """Arguments share memory and are written: the trace begins again."""

    def make(h: Helpers) -> Callable[..., Any]:
        def f(x: torch.Tensor, y: torch.Tensor) -> Any:
            n = len(h.log) if log else 0
            try:
                n = n + h.two(2) + h.two(3) + h.bad(3)
            except ValueError:
                n = n + h.two(4)
            x.add_(1)
            return y * 1, n + (h.two.cache_info().misses if ask else 0)

        return f

    return make


@pytest.mark.parametrize("ask", [False, True])
def test_a_trace_that_begins_again_asks_nothing_twice(ask: bool) -> None:
    said = []
    for convert in (lambda f: f, to_static):
        h = Helpers()
        function = convert(restarted(False, ask)(h))
        for _ in range(3):
            x = torch.ones(3)
            said.append((function(x, x[:2]), list(h.log), [tuple(cache.cache_info()) for cache in h.counted]))
    same(said[3:], said[:3])


def test_a_trace_that_begins_again_and_would_read_what_a_helper_wrote() -> None:
    h, x = Helpers(), torch.ones(3)
    static = to_static(restarted(True, False)(h))
    with pytest.raises(TraceError, match="D2S276.*begin again") as raised:
        static(x, x[:2])
    assert raised.value.location is not None and "h.two(4)" in raised.value.location.text
    assert torch.equal(x, torch.ones(3))


# -- what only the run knows


@pytest.mark.parametrize("where", ["straight", "branch", "tensor", "property"])
def test_a_helper_that_comes_to_a_list_that_grew(where: str) -> None:
    """It was refused with an error that says nothing of caches."""
    h = Helpers()
    length = functools.cache(lambda n: n + len(h.log))

    def function(x: torch.Tensor, k: int) -> torch.Tensor:
        n = 0
        while n < 2 and x.sum() > 0:
            n = n + 1
            if where == "property":
                k = k + h.box.depth
            else:
                h.log.append("f")
        if where == "branch" and x.sum() > 0:
            x = x * h.two(k)
        return x * h.two(k) if where == "property" else x * length(x if where == "tensor" else k)

    with pytest.raises(TraceError, match="D2S276"):
        to_static(function)(torch.ones(3), 1)
    assert h.log == [] and length.cache_info().currsize == 0


def test_a_list_that_grew_is_nothing_to_other_helpers() -> None:
    said = []
    for convert in (lambda f: f, to_static):
        h = Helpers()

        def function(x: torch.Tensor, h: Helpers = h) -> torch.Tensor:
            n = 0
            while n < 2 and x.sum() > 0:
                n = n + 1
                h.log.append("f")
            return x * h.pure(2) + h.pure(3)

        converted = convert(function)
        for sign in (1, -1, 1):
            said.append((converted(torch.ones(3) * sign), list(h.log), tuple(h.pure.cache_info())))
    same(said[3:], said[:3])


def test_random_numbers_after_the_function_s_own_when_a_cache_is_emptied() -> None:
    """The first trace for the call may not fill the cache, from where the second one takes what was drawn too early."""
    noise = functools.cache(lambda n: torch.rand(3) * n)
    noise(2)
    static = to_static(lambda x, k: x * k + torch.rand(3) + noise(2))
    static(torch.ones(3), 1)
    static(torch.ones(3), 2)
    noise.cache_clear()
    with pytest.raises(TraceError, match="D2S276"):
        static(torch.ones(3), 3)


def test_a_question_by_the_class_of_caches() -> None:
    h = Helpers()
    static = to_static(lambda x: x * h.two(2) + type(h.two).cache_info(h.two).hits)
    assert [static(torch.ones(1)).item() for _ in range(3)] == [1, 2, 3]


def test_questions_to_a_cache_made_inside() -> None:
    def function(x: torch.Tensor, k: int) -> Any:
        @functools.lru_cache(maxsize=2)
        def half(n: int) -> float:
            return n * 0.5

        y = x * half(1) + half(2) + half(1) + half(k)
        asked = half.cache_info().hits
        half.cache_clear()
        return y + half(1), asked, half.cache_info().misses

    static = to_static(function)
    for k in range(6):
        same(static(torch.ones(2), k), function(torch.ones(2), k), f"k = {k}")
