"""Exceptions that a called function raises on a path that a tensor decides, and a handler around the call catches."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static.errors import TraceError
from tests.oracle import check, check_module, check_saved

VALUES = ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.1, 0.2, -0.1], [4.0, -1.0, 0.5], [0.0, 0.0, 0.0], [9.0, 9.0, 9.0])
CALLS = tuple((torch.tensor(values, requires_grad=True),) for values in VALUES)
LOG: list[str] = []
COUNT = 1


class Own(Exception):
    def __init__(self, text: str, value: Any = None, **more: Any) -> None:
        super().__init__(text)
        self.value = value
        self.more = more


class Special(Own):
    pass


# -- what raises


def one(x):
    if x.sum() > 0:
        raise ValueError("positive")
    return x * 5


def several(x):
    if x.sum() > 8:
        raise KeyError("large")
    if x.sum() > 4:
        raise ValueError("middle", 3)
    if x.sum() < 0:
        raise Special("small", x * 2, why="negative")
    return x + 1, x.sum()


def below(x, scale=2.0):
    y = one(x - 1) * scale
    return y + one(x - 3)


def in_loop(x):
    total = x
    for n in range(5):
        total = total * 1.5
        if total.max() > 6:
            raise Own("grew", total, steps=n)
    return total


def in_staged_loop(x):
    n = 0
    while n < 4 + x[0]:
        x = x + 1
        n = n + 1
        if x.sum() > 9:
            raise ValueError("too far", n)
        if x.sum() < -20:
            break
    return x, n


def asserts(x):
    assert x.sum() > 0, "must be positive"
    assert x.max() < 8, "too large"
    return x * 2


def looks_up(x):
    if x.sum() > 0:
        return {"a": x}["b"]
    return x


def converts_text(x):
    if x.sum() > 0:
        return x * int("seven")
    return x * int("7")


def changes(x, log):
    log.append("began")
    if x.sum() > 0:
        log.append("raises")
        raise ValueError(len(log))
    log.append("ended")
    return x


def with_finally(x, log):
    try:
        if x.sum() > 0:
            raise ValueError("in try")
        log.append("body")
        return x * 3
    finally:
        log.append("finally")


def gives_nothing(x):
    if x.sum() > 0:
        raise ValueError
    x = x + 1


def quiet(x):
    with torch.no_grad():
        y = one(x)
    return y * x


def keeps_some(x):
    try:
        return several(x)
    except KeyError as error:
        return x * 7, str(error)


def says_more(x):
    try:
        return one(x)
    except ValueError as error:
        raise Own("again", x) from error


def goes_on(x):
    try:
        y = one(x)
    except ValueError:
        x.add_(1)
        raise
    return y


def gives_up(x):
    """As libraries factorise matrices: a few tries, and a message that names the last."""
    if x.sum() < 0:
        return x
    for n in range(3):
        scale = 10**n
        y = x * scale
        if y.sum() > 8:
            return y
    raise Own(f"gave up at {scale}", y)


# -- what catches


def plain(x):
    try:
        y = one(x)
    except ValueError as error:
        return x * 2, str(error), error.args
    return y, "", ()


def keeps_the_old(x):
    y = x * 11
    try:
        y = one(x)
        y = y + one(y)
    except ValueError:
        pass
    return y


def by_class(x):
    try:
        y, total = several(x)
    except KeyError as error:
        return "key", error.args, x
    except Own as error:
        return "own", type(error).__name__, error.value, error.more["why"]
    except (TypeError, ValueError) as error:
        return "value", error.args[1] * x
    return "none", y * total


def other_class(x):
    try:
        return several(x)
    except KeyError:
        return x


def base_class(x):
    try:
        return several(x)
    except Exception as error:
        return isinstance(error, LookupError), isinstance(error, Own), x


def deep(x):
    try:
        y = below(x, scale=3.0)
    except ValueError:
        y = x.abs().sum()
    return y


def with_else(x):
    n = 0
    try:
        y = one(x)
    except ValueError:
        n += 1
        y = x
    else:
        n += 10
        y = y + one(y - 100)
    finally:
        n += 100
    return y * n


def twice(x):
    found = []
    for shift in (0.0, 2.0, -5.0):
        try:
            found.append(one(x - shift))
        except ValueError:
            found.append(shift)
    return found


def retries(x):
    tries = 0
    for _ in range(6):
        try:
            y = one(x)
            break
        except ValueError:
            x = x - 2
            tries += 1
            continue
    else:
        y = x * 100
    return y, tries


def retries_until(x):
    n = 0
    while True:
        try:
            return one(x), n
        except ValueError:
            x = x / 2 - 1
            n += 1


def of_loops(x):
    try:
        return in_loop(x)
    except Own as error:
        return error.value, error.more["steps"], error.args


def of_staged_loops(x):
    try:
        y, n = in_staged_loop(x)
    except ValueError as error:
        return x - 1, error.args[1]
    return y, n


def of_assertions(x):
    try:
        return asserts(x), ""
    except AssertionError as error:
        return x, str(error).partition("\n")[0]  # pytest says more where no trace is made


def of_python(x):
    try:
        return looks_up(x)
    except KeyError as error:
        return x * 2, error.args


def of_builtins(x):
    try:
        return converts_text(x)
    except ValueError:
        return x * 2


def of_changes(x):
    log = []
    try:
        y = changes(x, log)
    except ValueError as error:
        y = x * error.args[0]
    return y, log


def of_finally(x):
    log = []
    try:
        y = with_finally(x, log)
    except ValueError as error:
        log.append(str(error))
        y = x
    return y, log


def of_nothing(x):
    try:
        gives_nothing(x)
        gives_nothing(x - 2)
    except ValueError:
        return x * 2
    return x


def of_quiet(x):
    try:
        return quiet(x)
    except ValueError:
        return x * 3


def of_some(x):
    try:
        return keeps_some(x)
    except Own as error:
        return error.value
    except ValueError:
        return x


def of_causes(x):
    try:
        return says_more(x)
    except Own as error:
        return error.value * 2, str(error), str(error.__cause__)


def of_raising_again(x):
    x = x * 1
    try:
        return goes_on(x)
    except ValueError:
        return x * 4


def raises_itself(x):
    try:
        y = one(x)
    except ValueError as error:
        raise RuntimeError("wrapped") from error
    return y


def nested(x):
    try:
        try:
            y, total = several(x)
        except KeyError:
            y, total = x, one(x - 5).sum()
        y = y * 2
    except ValueError:
        y, total = x * 3, x.sum()
    except Own as error:
        y, total = error.value, one(x).sum()
    return y + total


def in_expressions(x):
    try:
        y = [one(x) + 1, (one(x - 1), x * one(x - 2)[0])]
        z = {"a": one(x - 3).sum(), "b": -one(x - 4)}
    except ValueError:
        return x
    return y, z


def in_tests(x):
    try:
        if one(x).sum() < -20:
            return x * 2
        elif one(x - 1)[0] < -10:
            return x * 3
    except ValueError:
        return x * 4
    return x * 5


def over_results(x):
    total = x
    try:
        for row in one(x):
            total = total + row
            total = total + one(total - 50)
    except ValueError:
        return total * 2
    return total


def under_conditions(x):
    try:
        if x[0] > 0.5:
            y = one(x - 4)
        else:
            y = x * 2
        y = y + 1
    except ValueError:
        y = x - 1
    return y


def of_tries(x):
    try:
        return gives_up(x / 4)
    except Exception as error:
        return type(error).__name__, str(error), error.value + x


def reads_before_calls(x):
    """What an expression has read before a call stays, whatever name the call binds anew."""
    global COUNT
    COUNT = 1
    n = 1

    def count():
        nonlocal n
        n = n + 1
        return n

    def inner(x):
        return one(x * (n + count() * n))

    try:
        y = x * (COUNT + counted() * COUNT)
        y = inner(y)
    except ValueError:
        y = x
    return y, COUNT, n


def counted():
    global COUNT
    COUNT = COUNT + 10
    return COUNT


def raises_after(x):
    y = one(x)
    raise KeyError("after", y.sum() < 0)


def of_what_comes_after(x):
    try:
        return raises_after(x)
    except KeyError as error:
        return x * 3, error.args[0]
    except ValueError:
        return x * 5


def looks_up_after(x, table):
    y = one(x)
    return y * table["missing"]


def of_lookups_after(x):
    try:
        return looks_up_after(x, {"a": 1})
    except KeyError as error:
        return x * 3, str(error)
    except ValueError:
        return x * 5


def raises_in_the_try_after(x):
    try:
        y = one(x)
        raise KeyError("b")
    except KeyError:
        return x * 3
    except ValueError:
        return x * 5


def several_tries_of_one(x):
    def inner(x):
        try:
            return one(x)
        except ValueError:
            if x.sum() > 5:
                raise
            return one(x - 10)

    try:
        return inner(x) + inner(x - 1)
    except ValueError as error:
        return x * 7, str(error)


def results_that_nobody_reads(x):
    try:
        one(x)
    except ValueError:
        pass
    try:
        one(x)
        one(x - 1)
    except ValueError:
        x = x + 1
    return x


def local_helpers(x):
    count = 0

    def step(value):
        nonlocal count
        count += 1
        if value.sum() > 2:
            raise Own("local", value)
        return value + 1

    try:
        y = x
        for _ in range(3):
            y = step(y)
    except Own as error:
        return error.value, count
    return y, count


def late_handlers(x):
    try:
        y = one(x)
    except ValueError:
        y = x
        try:
            y = one(y - 1)
        except ValueError:
            y = y * 2
    return y


def random_numbers(x):
    try:
        y = one(x + torch.rand(3) - 0.5) + torch.rand(3)
    except ValueError:
        y = torch.rand(3) * x
    return y + torch.rand(3)


def outside_as_well(x):
    try:
        y = one(x - 2)
    except ValueError:
        y = x
    return one(x * 0 - 1) + y


def not_caught_then(x):
    try:
        y = one(x)
    except ValueError:
        y = x
    return y + several(x - 3)[0]


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def step(self, x, by=1):
        self.n += by
        if x.sum() > 0:
            raise Own("counter", self)
        self.n += by
        return x


def objects(x):
    counter = Counter()
    try:
        counter.step(x)
        counter.step(x + 2, by=5)
    except Own as error:
        return error.value.n, error.value is counter, x
    return counter.n, None, x


CATCHING = (
    plain, keeps_the_old, by_class, other_class, base_class, deep, with_else, twice, retries, retries_until, of_loops,
    of_staged_loops, of_assertions, of_python, of_builtins, of_changes, of_finally, of_nothing, of_quiet, of_some,
    of_causes, of_raising_again, raises_itself, nested, in_expressions, in_tests, over_results, under_conditions,
    of_tries, reads_before_calls, of_what_comes_after, of_lookups_after, raises_in_the_try_after, several_tries_of_one,
    results_that_nobody_reads, local_helpers, late_handlers, random_numbers, outside_as_well, not_caught_then, objects,
)  # fmt: skip


@pytest.mark.parametrize("function", CATCHING, ids=lambda one: one.__name__)
def test_caught(function: Callable[..., Any]) -> None:
    check(function, *CALLS)


@pytest.mark.parametrize("function", CATCHING, ids=lambda one: one.__name__)
def test_loaded(function: Callable[..., Any], tmp_path: Path) -> None:
    if function in (other_class, not_caught_then, reads_before_calls):
        pytest.skip("raises a class of the user's, which a file knows by its name only, or changes what it cannot")
    static = dy2static.to_static(function, input_spec=[dy2static.InputSpec([3], torch.float32)])
    check_saved(function, static, tmp_path / "file", *CALLS)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(()))
        self.last = ""

    def checked(self, x):
        self.seen += 1
        if x.sum() > 0:
            self.last = "raised"
            raise Own("checked", x)
        self.last = "fine"
        return x

    def forward(self, x):
        try:
            y = self.checked(self.first(x))
        except Own as error:
            self.seen += 10
            y = error.value * 2
        return y


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.body = nn.Sequential(nn.Linear(3, 3), self.inner)

    def forward(self, x):
        try:
            return self.body(x), self.inner(x - 1)
        except ValueError as error:
            return x, error.args


class Inner(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            raise ValueError("inner")
        return x * 2


@pytest.mark.parametrize("model", [Model])
def test_modules(model: type[nn.Module]) -> None:
    check_module(model, *CALLS)


class Direct(Around):
    def forward(self, x):
        try:
            return self.inner(x), self.inner(x - 1)
        except ValueError as error:
            return x, error.args


def test_modules_called_by_name() -> None:
    check_module(Direct, *CALLS)


# -- what cannot be handed on is refused


def through_map(x):
    try:
        return list(map(one, [x, x - 1]))
    except ValueError:
        return x


def through_sort(x):
    try:
        return sorted([x, x - 1], key=lambda value: float(one(value).sum()))
    except ValueError:
        return x


def behind_and(x):
    try:
        return x.dim() == 1 and one(x)
    except ValueError:
        return x


def from_lambda(x):
    call = lambda value: one(value) + 1
    try:
        return call(x)
    except ValueError:
        return x


class Watches:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        LOG.append("watched")


def through_manager(x):
    try:
        with Watches():
            return one(x)
    except ValueError:
        return x


def generates(x):
    yield x
    if x.sum() > 0:
        raise ValueError
    yield x * 2


def through_generator(x):
    try:
        return [value for value in generates(x)]
    except ValueError:
        return x


@pytest.mark.parametrize(
    "function", [through_map, through_sort, behind_and, from_lambda, through_manager, through_generator],
    ids=lambda one: one.__name__,
)  # fmt: skip
def test_refused_or_the_same(function: Callable[..., Any]) -> None:
    try:
        check(function, *CALLS)
    except TraceError as error:
        assert error.code in ("D2S229", "D2S212", "D2S239"), error
        assert error.location is not None and error.location.file == __file__


def test_a_sequential_hands_nothing_on() -> None:
    """PyTorch's own loop over the modules is converted, and its calls are statements of their own."""
    check_module(Around, *CALLS)


def test_random_programs() -> None:
    """Helpers, handlers and places put together at random."""
    random.seed(5)
    raising = ("one", "several", "in_loop", "asserts", "goes_on", "keeps_some", "looks_up")
    caught = ("ValueError", "KeyError", "Own", "AssertionError", "Exception", "(KeyError, ValueError)", "LookupError")
    for _ in range(5):
        lines = ["def made(x):", "    y, n = x, 0", "    try:"]
        for _ in range(random.randint(1, 3)):
            call = f"{random.choice(raising)}(y - {random.randint(-2, 4)})"
            lines += random.choice((
                [f"        y = first({call})", "        n += 1"],
                [f"        if y[0] > {random.randint(-1, 2)}:", f"            y = y + first({call})"],
                ["        for k in range(2):", f"            y = y + first({call})", "            n += k"],
            ))  # fmt: skip
        for kind in random.sample(caught, 2):
            lines += [f"    except {kind} as error:", "        y = y * 2", "        n += len(error.args)"]
        lines += random.choice(([], ["    else:", "        n += 100"], ["    finally:", "        n += 1000"]))
        lines += ["    return y, n"]
        text = "\n".join(lines) + "\n"
        space = dict(globals())
        name = f"<made {hash(text)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), space)
        check(space["made"], *CALLS)


def first(value: Any) -> Any:
    """The tensor of what a helper gives."""
    return value[0] if isinstance(value, tuple) else value
