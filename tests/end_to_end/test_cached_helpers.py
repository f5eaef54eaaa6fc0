"""Helpers under ``functools.cache`` and ``lru_cache``: a hit is the cached object, a miss runs the helper once."""

from __future__ import annotations

import functools

import numpy
import pytest
import torch

from dy2static import InputSpec, TraceError, load, save, to_static
from tests.oracle import check, check_saved, same

X = torch.ones(3)
POS, NEG = torch.ones(3), -torch.ones(3)
pytestmark = pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")


def pair(make, *calls):
    """Eager and converted, each with caches and a log of its own: results, logs and caches must be the same."""
    answers = []
    for convert in (lambda f: f, to_static):
        function, log, caches = make()
        function = convert(function)
        torch.manual_seed(0)
        got = []
        for call in calls:
            result = function(*call)
            infos = [tuple(cache.cache_info()) for cache in caches]
            got.append((result, list(log), infos))
        answers.append((got, torch.rand(1).item()))
    same(answers[1], answers[0])


def test_arrays_that_a_cache_holds():
    array = numpy.ones((3, 3))

    @functools.lru_cache
    def rows(k=0):
        return array

    rows()
    static = to_static(lambda x: x * float(rows()[0][1]))
    assert torch.equal(static(X), X)
    assert torch.equal(static(X), X)


def helper(decorate, random=False):
    log = []

    @decorate
    def scale(n, by=1):
        log.append(n)
        return torch.rand(3) * n if random else n * 0.5 * by

    return scale, log


DECORATORS = {
    "cache": functools.cache, "lru": functools.lru_cache, "one": functools.lru_cache(maxsize=1),
    "two": functools.lru_cache(maxsize=2), "none": functools.lru_cache(maxsize=0),
    "typed": functools.lru_cache(maxsize=4, typed=True),
}  # fmt: skip


@pytest.mark.parametrize("name", DECORATORS)
@pytest.mark.parametrize("random", [False, True])
def test_plain_arguments(name, random):
    def make():
        scale, log = helper(DECORATORS[name], random)
        return lambda x, k: x * scale(k) + scale(2) * scale(n=k) - scale(k, by=1.0) + scale(True), log, [scale]

    pair(make, [X, 1], [X, 1], [X, 2], [X, 1.0], [X, 1], [X, True])


def test_a_hit_is_the_cached_object():
    @functools.cache
    def table(n):
        return [n]

    @functools.cache
    def noise(n):
        return torch.rand(n)

    converted = to_static(lambda x, k: (table(k), noise(3)))
    for _ in range(3):
        assert converted(X, 1)[0] is table(1) and converted(X, 1)[1] is noise(3)
    assert len(converted.programs) == 1
    table.cache_clear()
    assert converted(X, 1)[0] is table(1)


def test_a_cached_list_keeps_what_is_done_to_it():
    def make():
        @functools.cache
        def items():
            return []

        def function(x):
            items().append(1)
            return x * len(items())

        return function, [], [items]

    pair(make, [X], [X], [X])


def test_questions_to_the_cache():
    def make():
        scale, log = helper(functools.cache)

        def function(x):
            y = x * scale(2) + scale.cache_info().hits
            scale.cache_clear()
            return y + scale.cache_info().currsize

        return function, log, [scale]

    pair(make, [X], [X], [X])


def test_methods():
    class Box:
        def __init__(self):
            self.log = []

        @functools.lru_cache
        def width(self, n):
            self.log.append(n)
            return n + 1

    def make():
        Box.width.cache_clear()
        box = Box()
        return lambda x: x * box.width(2) + box.width(3), box.log, [Box.width]

    pair(make, [X], [X])


def test_a_helper_that_raises_runs_at_each_call():
    def make():
        log = []

        @functools.cache
        def bad(n):
            log.append(n)
            raise ValueError("bad")

        def function(x):
            try:
                return x * bad(2)
            except ValueError:
                return x

        return function, log, [bad]

    pair(make, [X], [X])


def test_gradients_go_through_what_a_cache_holds():
    weight = torch.ones(3, requires_grad=True)

    @functools.cache
    def square():
        return weight * weight

    to_static(lambda x: (x * square()).sum())(X).backward()
    assert torch.equal(weight.grad, torch.full((3,), 2.0))


def test_pure_helpers_may_get_values_of_the_program():
    @functools.cache
    def double(n):
        return n * 2

    def function(x):
        y = double(x)
        if x.sum() > 0:
            y = y + double(3) + double(int(x.sum()))
        while y.sum() < 20:
            y = y + double(4)
        return y + 0

    converted = to_static(function)
    for x in (POS, NEG):
        assert torch.equal(converted(x), function(x))


@pytest.mark.parametrize("where", ["branch", "loop", "tensor", "staged", "random", "printing", "clear", "info"])
def test_what_cannot_be_kept_is_refused(where):
    scale, log = helper(functools.cache)
    noise, _ = helper(functools.cache, random=True)

    @functools.cache
    def say(x):
        print("x")
        return x

    def function(x):
        if where == "branch" and x.sum() > 0:
            x = x * scale(2)
        while where == "loop" and x.sum() < 20:
            x = x + scale(2)
        if where == "tensor":
            x = scale(x)
        if where == "staged":
            x = x * scale(int(x.sum()))
        if where == "random" and x.sum() > 0:
            x = x + noise(2)
        if where == "printing":
            x = say(x)
        if where == "clear" and x.sum() > 0:
            scale.cache_clear()
        if where == "info" and x.sum() > 0:
            x = x + scale.cache_info().hits
        return x

    with pytest.raises(TraceError, match="D2S276"):
        to_static(function)(X)
    assert log == []


def test_random_numbers_after_the_function_s_own():
    noise, _ = helper(functools.cache, random=True)
    with pytest.raises(TraceError, match="D2S276"):
        to_static(lambda x: x + torch.rand(3) + noise(2))(X)


def test_a_hit_on_a_path_is_the_cached_object():
    scale, log = helper(functools.cache)
    scale(2)

    def function(x):
        if x.sum() > 0:
            x = x * scale(2)
        return x

    converted = to_static(function)
    for x in (POS, NEG, POS):
        assert torch.equal(converted(x), function(x))
    assert log == [2]


def list_that_is_changed(helper):
    def function(x):
        items = helper(len(x))
        items[0] += 1
        return x * items[0]

    return (lambda n: [0]), function


def dict_that_is_read(helper):
    return (lambda n: {n: 2}), lambda x: x * helper(len(x))[len(x)]


def object_that_is_asked_for(helper):
    return (lambda n: Thing()), lambda x: (x + helper(len(x)).value, helper(x.shape[0]) is helper(x.numel()))


def list_in_a_tuple(helper):
    def function(x):
        helper(x.shape[0])[1].append(1)
        return x * len(helper(x.shape[0])[1])

    return (lambda n: (n, [])), function


def tensor_that_is_written(helper):
    def function(x):
        one, other = helper(len(x)), helper(x.shape[0])
        other.add_(1)
        return one + x, one is other

    return _zeros, function


def view_that_is_written(helper):
    def function(x):
        helper(len(x))[1:].add_(1)
        return x + helper(len(x))

    return _zeros, function


def tensor_that_is_returned(helper):
    return _zeros, lambda x: (x + 1, helper(len(x)))


def tensor_that_is_compared(helper):
    return (lambda n: torch.zeros(1)), lambda x: x + (helper(len(x)) is helper(x.numel() + 0 * len(x)))


def tensor_in_a_loop(helper):
    def function(x):
        for row in x:
            if row > 0:
                helper(len(x)).add_(1)
        return x + helper(len(x))

    return _zeros, function


def _zeros(n):
    return torch.zeros(n)


def tensors_of_torchs_own(helper):
    return torch.zeros, tensor_that_is_written(helper)[1]


class Thing:
    def __init__(self):
        self.value = 2


SEEN = [list_that_is_changed, dict_that_is_read, object_that_is_asked_for, list_in_a_tuple, tensor_that_is_written,
        view_that_is_written, tensor_that_is_returned, tensor_that_is_compared, tensors_of_torchs_own]  # fmt: skip


def _made_of(make):
    """The function that ``make`` gives, with a cached helper of its own."""
    holder = []
    compute, function = make(lambda n: holder[0](n))
    holder.append(functools.cache(compute))
    return function


@pytest.mark.parametrize("make", SEEN)
@pytest.mark.parametrize("needs", [False, True])
def test_what_a_cache_gives_for_a_size_is_one_object(make, needs):
    calls = [(torch.ones(n, requires_grad=needs),) for n in (4, 4, 6, 6, 4, 5, 6, 2, 6)]
    eager, static = _made_of(make), to_static(_made_of(make))
    given = [[function(*call) for call in calls] for function in (eager, static)]
    same(given[1], given[0])


ONLY_READ = (object_that_is_asked_for, dict_that_is_read)


def test_a_dict_that_a_cache_gives_for_a_size_that_is_open_is_read(tmp_path):
    static = to_static(_made_of(dict_that_is_read), input_spec=[InputSpec([None])])
    save(static, tmp_path / "f")
    for converted in (static, load(tmp_path / "f")):
        for n in (4, 6, 4, 0, 1):
            assert torch.equal(converted(torch.ones(n)), torch.ones(n) * 2)


@pytest.mark.parametrize("make", [*[one for one in SEEN if one not in ONLY_READ], tensor_in_a_loop])
def test_what_a_cache_gives_for_a_size_that_is_open(make, tmp_path):
    static = to_static(_made_of(make), input_spec=[InputSpec([None])])
    with pytest.raises(TraceError, match="D2S276|D2S210"):
        static(torch.ones(4))
    with pytest.raises(TraceError, match="D2S276|D2S210"):
        save(static, tmp_path / "f")


@pytest.mark.parametrize("make", [list_that_is_changed, tensor_that_is_written])
def test_what_a_cache_gives_on_a_path(make):
    helper, inner = functools.cache(make(None)[0]), make(lambda n: helper(3))[1]

    def function(x):
        return inner(x) if x.sum() > 0 else x

    def in_a_loop(x):
        while x.sum() > 0:
            result = inner(x)
            x = (result if isinstance(result, torch.Tensor) else result[0]) - 10
        return x

    for one in (function, in_a_loop):
        with pytest.raises(TraceError, match="D2S276"):
            to_static(one)(X)


def tensors_of_two_sizes(x):
    return x + ROWS(len(x)) * 2 + ROWS(x.shape[0] + 1)[1:]


def numbers(x):
    return x * PAIR(len(x))[0] + len(PAIR(x.numel())[1])


def of_a_tensor_made_inside(x):
    y = x * 2
    z = DOUBLE(y)
    DOUBLE(y).add_(1)
    return z, DOUBLE(y) is z


def its_own_cache(x):
    @functools.cache
    def items(n):
        return [n]

    items(len(x)).append(1)
    return x * len(items(x.shape[0]))


ROWS = functools.cache(lambda n: torch.ones(n).cumsum(0).mul_(2))
DOUBLE = functools.cache(lambda x: x * 2)
PAIR = functools.cache(lambda n: (n, ("a",)))


@pytest.mark.parametrize("function", [tensors_of_two_sizes, numbers, its_own_cache, of_a_tensor_made_inside])
def test_what_nobody_can_tell_from_the_cached_one_stays(function, tmp_path):
    calls = [(torch.ones(n),) for n in (4, 6, 5, 6, 3)]
    static = check(function, *calls, static=to_static(function, input_spec=[InputSpec([None])]), paths=("program",))
    assert len(static.programs) == 1
    check_saved(function, static, tmp_path / "f", *calls, paths=("program",))


def test_two_calls_of_a_cache_made_inside_that_may_be_one():
    def function(x):
        @functools.cache
        def items(n):
            return [0]

        items(len(x))[0] += 1
        items(int(x.sum()))[0] += 1
        return x * items(len(x))[0]

    with pytest.raises(TraceError, match="D2S276"):
        to_static(function)(X)


def test_a_tensor_made_inside_that_a_path_gives_to_a_cache():
    def function(x):
        y = x * 2
        if x.sum() > 0:
            DOUBLE(y).add_(1)
        return DOUBLE(y) + 1

    with pytest.raises(TraceError, match="D2S276"):
        to_static(function)(X)


def test_what_a_cache_cannot_look_up():
    for function in (lambda x: x * len(PAIR([x])), lambda x: x * len(PAIR((1, {"a": x})))):
        check(function, (X,), paths=("program",))


@functools.lru_cache(maxsize=2)
def doubled(n):
    return n * 2


def counts(x, k):
    before = doubled.cache_info().hits
    return x * doubled(3) + k, before, doubled.cache_info().hits


def test_a_call_that_is_traced_twice_is_counted_once():
    """A plain argument that changes is tried as an input first, and then is a constant after all."""
    said = []
    for function in (counts, to_static(counts)):
        doubled.cache_clear()
        said.append([function(torch.ones(2), k)[1:] for k in (1, 1, 5, 7, 5, 9, 7, 11)])
    assert said[0] == said[1]
