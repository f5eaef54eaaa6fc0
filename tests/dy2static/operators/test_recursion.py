"""Functions that call themselves: which become a recursion, which are followed to their end, what is refused."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

import dy2static
from dy2static.errors import TraceError
from tests.oracle import check, check_saved

X = tuple((torch.tensor(values, requires_grad=True),) for values in (
    (0.1, 0.2, 0.3), (0.5, 0.5, 0.5), (10.0, 9.0, 8.0)))  # fmt: skip


def operators_of(function: Any) -> list[str]:
    return [op.name for one in function._dispatch.cache.all() for op in one.traced.program.block.walk()]


def halved(x):
    return halved(x / 2) if x.sum() > 1 else x


class State(NamedTuple):
    value: Any
    depth: int


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any
    depth: int


class Box:
    def __init__(self, value):
        self.value, self.count = value, 0

    def grow(self):
        self.count += 1
        self.value = self.value * 2


def named(x, state=None):
    state = State(x, 0) if state is None else state
    return named(x / 2, State(x, state.depth + 1)) if x.sum() > 1 else state


def frozen(x):
    def go(state):
        return go(Frozen(state.value / 2, state.depth + 1)) if state.value.sum() > 1 else state

    return go(Frozen(x, 0))


def objects_of_its_own(x):
    box = Box(x)
    box.grow()
    if x.sum() > 1:
        box.grow()
        return objects_of_its_own(x / 2) + box.value * box.count
    return box.value


def lists_of_its_own(x):
    rows = [x * k for k in range(3)]
    if x.sum() > 1:
        rows.append(lists_of_its_own(x / 2))
    return torch.stack(rows).sum(0)


def partial(x):
    return functools.partial(partial, x / 2)() * 2 if x.sum() > 1 else x


def comprehension(x):
    return sum(comprehension(x * scale) for scale in (0.3, 0.4)) if x.sum() > 1 else x


def helper_of_its_own(x):
    def scale(y):
        return y * x.sum()

    return scale(helper_of_its_own(x / 2)) if x.sum() > 1 else scale(x)


def dtypes(x):
    return dtypes((x / 2).double()) if x.sum() > 1 else x


def nothing(x):
    return nothing(x / 2) if x.sum() > 1 else None


def text(x):
    if x.sum() > 20:
        return "large"
    return text(x / 2) if x.sum() > 1 else "small"


def longer_text(x, said=""):
    return longer_text(x / 2, said + "a") if x.sum() > 1 else (x, said)


def number(x):
    def go(n):
        return go(n / 2.0) + 0.5 if n > 1.0 else n

    return go(x.detach().sum().item())


def stores_and_puts_back(x):
    depth = 0

    def go(y):
        nonlocal depth
        depth += 1
        z = y * depth
        depth -= 1
        return go(y / 2) * z if y.sum() > 1 else z

    return go(x)


def both(x):
    def small(y):
        return y.sum() <= 1 or small(y / 2) and small(y / 3)

    return small(x), x


def in_a_while(x):
    while x.sum() > 1:
        x = in_a_while(x / 2) - 0.1
    return x


def lists(x):
    if x.sum() > 1:
        (rows, held), depth = lists(x / 2)
        rows[0] = rows[0] + x
        held["last"] = rows[0] * depth
        return (rows, held), depth + 1
    return ([x, 1], {"last": x}), 0


def older_list(x):
    kept = [x, x * 2]

    def go(y):
        return go(y / 2) if y.sum() > 1 else kept

    found = go(x)
    found.append(x)
    return found, kept, found is kept


def same_twice(x):
    if x.sum() > 1:
        a, b = same_twice(x / 2)
        return a, b
    return x, x


def class_methods(x):
    class Halves:
        @staticmethod
        def still(y):
            return Halves.still(y / 2) if y.sum() > 1 else y

        @classmethod
        def counted(cls, y):
            return cls.counted(y / 2) + 1 if y.sum() > 1 else y

    return Halves.still(x), Halves.counted(x)


WORKS = [halved, named, frozen, objects_of_its_own, lists_of_its_own, partial, comprehension, helper_of_its_own, dtypes,
         nothing, text, longer_text, number, stores_and_puts_back, both, in_a_while, lists, older_list, same_twice,
         class_methods]  # fmt: skip


@pytest.mark.parametrize("function", WORKS)
def test_it_does_what_eager_does(function, tmp_path):
    converted = check(function, *X)
    assert "recursion" in operators_of(converted)
    check_saved(function, converted, tmp_path / "saved", *X)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self(self.linear(x) * 0.3) + x if x.abs().sum() > 1 else self.dropout(x)


def test_a_module_that_calls_itself():
    layer = Layer()
    check(lambda x: layer(x), *X, parameters=list(layer.parameters()))


# -- what ends by itself


def countdown(x, n=30):
    if n == 0 or x.sum() < 0:
        return x
    return countdown(x - 0.001, n - 1)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls % 5 == 0 or x.sum() < 1:
            return x
        return self(x / 2)


def pairs_of_pairs(x):
    def built(y, depth):
        return (built(y * 0.9, depth - 1), built(y * 1.1, depth - 1)) if depth else y

    def encoded(tree):
        if not isinstance(tree, tuple):
            return tree
        return (encoded(tree[0]) + encoded(tree[1])).tanh() if x.sum() > 1 else encoded(tree[1]) * 2

    return encoded(built(x, 4))


def test_what_python_ends_is_followed_to_its_end():
    assert "recursion" not in operators_of(check(pairs_of_pairs, *X))
    assert "recursion" not in operators_of(check(countdown, *X))
    layer = Counting()

    def count(x):
        layer.calls = 0
        return layer(x)

    assert "recursion" not in operators_of(check(count, *X))


def test_what_python_would_end_too_late_is_a_recursion():
    assert "recursion" in operators_of(check(lambda x: countdown(x, 200), *X))


def doubled(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x * 2) if x.sum() > 1 else x

    return wrapper


wrapped = doubled(doubled(doubled(doubled(doubled(torch.sin)))))


def test_wrappers_of_wrappers_do_not_call_themselves():
    assert "recursion" not in operators_of(check(lambda x: wrapped(x), *X))


def longest(x):
    if len(x) <= 1:
        return x
    return torch.cat([longest(x[x > x[0]]), x[:1]])


def test_sizes_that_are_left_open(tmp_path):
    dy2static.save(longest, tmp_path / "f", [dy2static.InputSpec([None], "float32", "x")])
    loaded = dy2static.load(tmp_path / "f")
    for size in (1, 2, 9):
        x = torch.randn(size)
        assert torch.equal(loaded(x), longest(x))


def once(x, *rest):
    return once(x, x, x) if not rest else x.sum()


def test_a_function_that_does_not_call_itself_is_none():
    def f(x):
        return halved(x), once(x)

    assert operators_of(check(f, *X)).count("recursion") == 1


# -- what is refused


def stores_variable(x):
    count = 0

    def go(y):
        nonlocal count
        count += 1
        return go(y / 2) if y.sum() > 1 else y

    return go(x), count


def stores_in_list(x):
    seen = []

    def go(y):
        seen.append(y)
        return go(y / 2) if y.sum() > 1 else y

    return go(x), len(seen)


class StoresInModule(nn.Module):
    def go(self, x):
        self.seen.append(x)
        return self.go(x / 2) if x.sum() > 1 else x

    def forward(self, x):
        self.seen = []
        return self.go(x), len(self.seen)


def stores_in_module(x):
    return StoresInModule()(x)


def writes_argument(x):
    def go(y):
        y.mul_(2)
        return go(y.clone() / 5) if y.sum() > 1 else y

    return go(x.clone())


def writes_outside(x):
    total = torch.zeros(3)

    def go(y):
        total.add_(y.detach())
        return go(y / 2) if y.sum() > 1 else y

    return go(x), total


def function_of_each_call(x, finish=lambda y: y):
    return function_of_each_call(x / 2, lambda y: finish(y) + 1) if x.sum() > 1 else finish(x)


def list_of_each_call(x):
    def go(pair):
        return go([pair[0] / 2, pair[1]]) if pair[0].sum() > 1 else pair[0]

    return go([x, x])


def gives_list_twice(x):
    rows = [x]
    return gives_list_twice(x / 2) if x.sum() > 1 else (rows, rows)


def gives_grown_list(x):
    return [x, *gives_grown_list(x / 2)] if x.sum() > 1 else [x]


def gives_grown_tuple(x):
    return (x, *gives_grown_tuple(x / 2)) if x.sum() > 1 else (x,)


def other_mode(x):
    if x.sum() > 1:
        with torch.no_grad():
            return other_mode(x / 2)
    return x


def stores_for_a_while(x):
    depth = 0

    def go(y):
        nonlocal depth
        depth += 1
        z = go(y / 2) * depth if y.sum() > 1 else y * depth
        depth -= 1
        return z

    return go(x)


def manages_for_a_while(x):
    state = {"scale": 1}

    @contextlib.contextmanager
    def doubled():
        state["scale"] *= 2
        yield
        state["scale"] //= 2

    def go(y):
        with doubled():
            return go(y / 2) * state["scale"] if y.sum() > 1 else y * state["scale"]

    return go(x)


def tries(x):
    if x.sum() > 1:
        try:
            return tries(x / 2)
        except ValueError:
            return x
    return x


def asks_for_gradients(x):
    def go(y):
        w = torch.ones(3, requires_grad=True)
        (g,) = torch.autograd.grad((y.detach() * w * w).sum(), w)
        return go(g / 4) if y.sum() > 1 else g

    return go(x)


def never_ends(x):
    return never_ends(x / 2) if x.sum() > 1 else never_ends(x * 2)


def raises_what_is_caught(x):
    def go(y):
        if y.sum() < 1:
            raise ValueError("small")
        return go(y / 2) if y.sum() < 99 else y

    try:
        return go(x)
    except ValueError:
        return x * 0


REFUSED = [
    (stores_variable, "stores to the variable 'count' of the function around it"),
    (stores_in_list, "stores to a list"),
    (stores_in_module, "stores to a list"),
    (writes_argument, "writes in place to 'y'"),
    (writes_outside, "writes in place to 'total'"),
    (function_of_each_call, "'finish' of a recursive call of function_of_each_call.. is a function that each call"),
    (list_of_each_call, "'pair' of a recursive call of go.. is a list that each call makes"),
    (gives_list_twice, "gives one list in two places"),
    (gives_grown_list, "gives a list that each call makes"),
    (gives_grown_tuple, "gives a list whose length only a run knows"),
    (other_mode, "the grad mode is another one"),
    (stores_for_a_while, "stores to the variable 'depth' of the function around it"),
    (manages_for_a_while, "stores to a dict"),
    (tries, "inside a try or with statement"),
    (asks_for_gradients, "asks for gradients"),
    (raises_what_is_caught, "go.. calls itself as deep as a tensor decides, and raises what a try around its call"),
    (never_ends, "calls itself on every path, so that it never ends"),
]


@pytest.mark.parametrize(("function", "said"), REFUSED)
def test_what_is_refused_says_where_and_what_to_do(function, said):
    with pytest.raises(TraceError, match=f"D2S270.*{said}") as raised:
        dy2static.to_static(function)(*X[2])
    assert raised.value.location.file == __file__ and raised.value.hint


def shares_argument(x):
    x = x * 1
    y = halved(x)
    x.add_(1)
    return y


def shares_outside(x):
    table = torch.arange(6.0).reshape(2, 3)

    def go(y):
        return go(y / 2) if y.sum() > 1 else table[0]

    z = go(x)
    table.add_(1)
    return z


def shares_with_a_call(x):
    def go(y):
        if y.sum() > 1:
            half = y / 2
            z = go(half)
            half += 1
            return z + half
        return y[:3]

    return go(x)


def shares_through_others(x):
    def go(a, b):
        if a.sum() > 1:
            c = a / 2
            r, s = go(b * 0.5, c)
            c += 1
            return s, r
        return a, b

    return go(x, x + 1)


def writes_result(x):
    y = halved(x)
    y += 1
    return y


@pytest.mark.parametrize(
    "function", [shares_argument, shares_outside, shares_with_a_call, shares_through_others, writes_result])
def test_writes_to_memory_that_a_result_may_be_are_refused(function):
    with pytest.raises(TraceError, match="D2S222.*what a recursive function gives may be its argument"):
        dy2static.to_static(function)(X[2][0].detach())


def not_shared(x):
    table = torch.ones(3)

    def go(y):
        return go(y / 2) + table if y.sum() > 1 else table * 1

    z = go(x)
    table.add_(1)
    return z, table


def test_writes_to_memory_that_no_result_can_be_are_not():
    check(not_shared, *X)


def test_whether_a_result_is_the_argument_is_not_known():
    def f(x):
        return halved(x) is x

    with pytest.raises(TraceError, match="D2S264"):
        dy2static.to_static(f)(*X[2])


def test_the_recursion_limit_is_the_users():
    def f(x):
        return f(x - 1) + 1 if x > 0 else x

    check(f, (torch.tensor(1e9),), (torch.tensor(3.0),))


def test_rows_that_call_themselves_are_refused():
    with pytest.raises(TraceError, match="D2S283.*as often as each row decides"):
        torch.vmap(dy2static.to_static(halved))(torch.ones(4, 3))
