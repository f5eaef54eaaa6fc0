"""No value of a trace gets into a cache of ``functools``, and helpers of plain arguments are asked as eager asks."""

from __future__ import annotations

import contextvars
import functools
import itertools
import logging
from collections import namedtuple

import pytest
import torch

from dy2static import InputSpec, TraceError, to_static

pytestmark = pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
Pair = namedtuple("Pair", "first second")
DECORATORS = {
    "cache": functools.cache, "lru": functools.lru_cache, "two": functools.lru_cache(maxsize=2),
    "typed": functools.lru_cache(typed=True),
}  # fmt: skip

ARGUMENTS = {
    "shape": lambda x: x.shape, "size": lambda x: x.size(), "slice": lambda x: x.shape[:1],
    "sum": lambda x: x.shape + (1,), "item": lambda x: x.shape[0], "tuple": lambda x: (x.shape, 1),
    "deep": lambda x: ((x.shape, "a"), x.shape[1]), "pair": lambda x: Pair(x.shape, x.shape[0]),
    "frozenset": lambda x: frozenset([x.shape]), "tuple of items": lambda x: tuple(x.shape),
    "numel": lambda x: x.numel(), "bool": lambda x: bool(x.sum() > 0), "number": lambda x: int(x.sum()),
    "float": lambda x: float(x.sum()), "numbers": lambda x: (int(x.sum()), 2), "tensor": lambda x: x,
    "tensors": lambda x: (x, 1), "pair of tensors": lambda x: Pair(x, x), "lambda": lambda x: (lambda: x.sum()),
    "partial": lambda x: functools.partial(torch.add, x), "method": lambda x: x.sum,
    "range": lambda x: range(x.shape[0]), "staged range": lambda x: range(int(x.abs().sum())),
    "dtype": lambda x: (x.dtype, x.device),
}  # fmt: skip


def _numbers(value):
    """Something that depends on what was given."""
    if isinstance(value, torch.Tensor):
        return value.sum()
    if callable(value):
        return value() if not isinstance(value, functools.partial) else value(1.0).sum()
    if isinstance(value, (bool, int, float)):
        return value * 2
    if isinstance(value, (tuple, frozenset)):
        return sum(_numbers(part) for part in value)
    return len(value) if isinstance(value, range) else 3


@pytest.mark.sample(4)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("decorate", DECORATORS)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_cache_holds_nothing_of_a_trace(argument, decorate, dynamic):
    helper = DECORATORS[decorate](_numbers)
    give = ARGUMENTS[argument]

    def function(x):
        return x * helper(give(x))

    if dynamic and argument == "frozenset":
        pytest.skip("staged numbers in a set are refused (D2S210)")
    for _ in range(2):
        converted = to_static(function, input_spec=[InputSpec([None, 2])] if dynamic else None)
        for n in (2, 3, 2, 4, 5):
            x = torch.arange(2.0 * n).reshape(n, 2)
            assert torch.equal(converted(x), function(x))
            assert helper(torch.Size([n, 2])) == 2 * n + 4  # compares keys


def test_sizes_of_two_functions():
    @functools.lru_cache(1024)
    def plan(shape, extra):
        return [size * 2 for size in shape], extra

    first = to_static(lambda x: x.sum() * plan(x.shape, (1,))[0][0])
    second = to_static(lambda x: x.sum() + plan(x.size(), (1,))[0][1])
    for n in (2, 3, 4, 2):
        x = torch.ones(n, 3)
        assert first(x) == n * 3 * n * 2 and second(x) == n * 3 + 6
        assert plan(x.shape, (1,)) == ([n * 2, 6], (1,))


def test_a_size_that_code_which_is_not_converted_gave_to_a_cache():
    @functools.lru_cache(None)
    def plan(shape, extra):
        return shape[0] * 2 + extra

    for _ in range(2):
        converted = to_static(lambda x: x * sum(itertools.starmap(plan, [(x.shape, 1)])))
        for n in (2, 3, 2):
            assert torch.equal(converted(torch.ones(n, 2)), torch.ones(n, 2) * (2 * n + 1))
            assert plan(torch.Size([n, 2]), 1) == 2 * n + 1


VAR = contextvars.ContextVar("VAR", default=None)
HELD = []
X = torch.ones(3)


class Config:
    scale = None


CONFIG = Config()


@pytest.mark.parametrize("known", [False, True])
def test_what_the_function_stored_elsewhere_does_not_matter(known):
    log = []

    @functools.cache
    def available(name):
        log.append(name)
        return len(name)

    @functools.cache
    def distributed():
        return available("torch") > 0

    def function(x):
        VAR.set({"x": x * 2})
        CONFIG.scale = x + 1
        HELD.append(x)
        y = x * 2 if distributed() else x
        VAR.set(None)
        HELD.clear()
        return y

    if known:
        distributed()
    converted = to_static(function)
    for _ in range(3):
        assert torch.equal(converted(X), X * 2)
    assert log == ["torch"] and distributed.cache_info().misses == 1 and len(converted.programs) == 1


@pytest.mark.parametrize("where", ["context", "attribute", "global list", "closure", "by a helper", "by getattr"])
def test_a_helper_that_reads_what_was_stored_leaves_the_cache_alone(where):
    box = []

    def read():
        return CONFIG.scale

    @functools.cache
    def helper(n):
        if where == "context":
            return VAR.get() * n
        if where == "global list":
            return HELD[0] * n
        if where == "closure":
            return box[0] * n
        return {"attribute": lambda: CONFIG.scale, "by a helper": read, "by getattr": lambda: getattr(CONFIG, "scale")}[
            where]() * n

    def function(x):
        VAR.set(x * 2)
        CONFIG.scale = x * 2
        HELD.append(x * 2)
        box.append(x * 2)
        y = helper(2)
        HELD.clear()
        box.clear()
        return y

    try:
        assert torch.equal(to_static(function)(X), X * 4)
    except TraceError as error:
        assert error.code == "D2S276"
    assert helper.cache_info().currsize == 0
    HELD.clear()


def test_a_helper_of_a_helper_that_reads_what_was_stored_leaves_the_cache_alone():
    @functools.cache
    def inner(n):
        return 0 if CONFIG.scale is None else CONFIG.scale * n

    @functools.cache
    def outer(n):
        return n + (inner(n) is None)

    def function(x):
        CONFIG.scale = x * 2
        n = outer(2)
        CONFIG.scale = None
        return x * n

    assert torch.equal(to_static(function)(X), X * 2)
    assert outer.cache_info().currsize == inner.cache_info().currsize == 0


def test_a_logger_that_is_silent_reports_nothing_on_a_path(caplog):
    logger = logging.getLogger("cached_helper")
    logger.setLevel(logging.WARNING)

    @functools.cache
    def helper(n):
        logger.debug("asked %s", n)
        return n + 1

    def function(x):
        return x * helper(2) if x.sum() > 0 else x

    converted = to_static(function)
    assert torch.equal(converted(X), X * 3) and torch.equal(converted(-X), -X)
    assert caplog.records == []
    logger.setLevel(logging.DEBUG)
    with pytest.raises(TraceError, match="D2S276"):
        converted(X)
    helper(2)
    caplog.clear()
    assert torch.equal(converted(X), X * 3) and caplog.records == []
