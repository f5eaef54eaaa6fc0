"""Staged numbers, conditions, loops, subscripts and builtins: one Program equals eager for every input."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from dy2static import operators

X = [torch.arange(12.0).reshape(3, 4) + shift for shift in (0, 0.1, 0.2, -3, -8)]
N = [torch.tensor(n) for n in (2, 0, 1, 4, 7)]
ROWS = torch.arange(24.0).reshape(8, 3)


def arithmetic(n):
    k = n.item()
    t = ROWS + 1
    f = k / 2
    return (
        k + 1,
        1 - k,
        k * 2.0,
        k / 3,
        k // 2,
        k % 3,
        k**2,
        2**k,
        -k,
        abs(-k),
        k == 2,
        2 != k,
        k < 3,
        3 >= k,
        k & 1,
        k | 4,
        k ^ 3,
        k << 1,
        k >> 1,
        ~k,
        t + k,
        k + t,
        t - k,
        k - t,
        t * f,
        f * t,
        t / (f + 1),
        (f + 1) / t,
        t**k,
        k**t,
        t // 2 + k,
        t % (k + 1),
        t > k,
        k > t,
        t == k,
        k != t,
        divmod(k, 3),
        (f + 1e16) - 1e16,
        f * math.inf,
        +f,
    )


def conditions(x):
    a = x.sum() > 0 and x.max() > 5
    b = x.sum().item() > 5 or "low"
    c = 1 if x.mean() > 2 else 2.5
    d = 0 < x.sum().item() <= 66
    return a, b, c, not x.sum() > 0, d, c + 1


def casts(n):
    k = n.item()
    return (
        int(n),
        float(n),
        bool(n),
        int(n / 2),
        str(k),
        repr(n / 2),
        f"{k}|{k:>4}|{k!r}|{n / 3:.3f}",
        f"{n}",
        str(n),
        len(ROWS),
        round(k / 3, 2),
        round(k / 3),
        min(k, 3),
        max(k, 3, 5),
        min(k, 2.5),
        max([k, 1]),
        sum([k, 1, k]),
        any([k > 2, False]),
        all([k > 0, True]),
        isinstance(k, int),
        isinstance(k, (str, float)),
        type(k),
        type(n),
        math.sqrt(k),
        math.floor(k / 2),
        math.log2(k + 1),
        math.isclose(k, 2),
        pow(k, 2),
        k in (1, 2),
        k not in [1, 2],
        k in range(1, 5),
        k is None,
        (k > 1) is True,
        hasattr(k, "real"),
        callable(k),
        complex(k).real if False else 0,
    )


def ranges(n):
    k = int(n)
    total, seen = 0, []
    for i in range(k):
        total = total + i
    for j in range(k, -3, -2):
        total = total * 2 + j
    for i, j in enumerate(range(1, k + 1), 5):
        total = total + i * j
    for a, row in zip(range(k), ROWS):
        total = total + a * row.sum()
    r = range(2, k + 3, 2)
    return total, len(r), r[0], r[-1], 4 in r, 3 in r, k in r, isinstance(r, range)


def last_value(n):
    for i in range(int(n)):
        pass
    return i


def zero_step(n):
    return [i for i in range(0, 5, int(n))]


def subscripts(n):
    k = n.item()
    t = ROWS
    m = k % 3
    idx = torch.tensor([0, 2])
    return (
        t[k],
        t[-k - 1],
        t[:, m],
        t[k, m],
        t[k:],
        t[:k],
        t[: k + 1, m],
        t[..., m],
        t[None, k],
        t[k, idx],
        t[: k + 1, idx],
        t[[k, 0]],
        t[idx, m],
        [t, t + 1, 5][m] if m == 2 else 0,
        ("a", "b", "c")[m],
        "xyz"[m],
        [10, 20, 30][m - 3],
        torch.zeros(k, 2),
        torch.full((k,), k),
        torch.arange(k),
        t[k:].shape[0] + 1,
        t[k:].reshape(-1).shape,
    )


def stores(n):
    k = n.item()
    t = ROWS.clone()
    t[k] = 1.0
    t[:, k % 3] = t[:, 0] * 2
    t[: k + 1, 0] = k
    t[k, torch.tensor([0, 1])] = 7.0
    t[-1] += k
    items = [1, 2, 3]
    items[k % 3] = "changed"
    items[-1:] = [k]
    return t, items


def out_of_range(n):
    return [1, 2, 3][n.item()]


def while_loops(x):
    steps = 0
    while x.abs().sum() < 500:
        x = x * 1.5 + 1
        steps += 1
        if steps > 30 and x.sum() > 3:
            break
    else:
        steps = -steps
    return x, steps


def unrolled_break(x):
    best = None
    for row in x:
        if best is None or row.sum() > best.sum():
            best = row
        if best.max() > 8:
            break
    else:
        best = best * 2
    return best


def long_range(x):
    for i in range(100):
        x = x * 0.9 + i
        if x.sum() > 500:
            break
    return x, i


def long_range_that_must_unroll(x):
    weights = torch.ones(70, 2).unbind(0)
    total = 0
    for i in range(70):
        total = total + weights[i].sum() * {i: 1.0}[i]
    return total + x.sum()


def endless(x):
    for i in itertools.count(2, 3):
        x = x * 2 + 1
        if x.sum() > 1000:
            break
        if i > 40:
            x = -x
            break
    return x, i


def growing_lists(n):
    items = []
    for i in range(int(n) + 1):
        items.append(ROWS[i % 3] * i)
        if i == 2:
            continue
        items += [ROWS[0]]
    extra = items + [ROWS[1]]
    picked = items[0], items[-1], items[1:]
    last = extra.pop()
    flag = "full" if items else "empty"
    return (
        torch.stack(items),
        torch.cat(items, dim=0),
        len(items),
        picked,
        len(extra),
        last,
        flag,
        [r.sum() for r in items],
    )


def tensors_of_numbers(n):
    k = n.item()
    return (
        torch.tensor([k, 2]), torch.tensor([[k, 0.5], [1, k]]), torch.tensor(k), torch.tensor(k, dtype=torch.float64),
        torch.tensor([n, 3]), torch.as_tensor([k / 2]), torch.tensor([k > 1, True]),
    )  # fmt: skip


def tolist(x):
    (a, *_), b = x[:2].tolist()
    return a + 1, b, x.sum().tolist()


def choices(x):
    value = None
    if x.sum() > 0:
        value = x * 2
    kind = "none" if value is None else "tensor"
    number = 1 if x.sum() > 0 else 2.5
    return kind, value is not None, number * 2, isinstance(value, torch.Tensor), isinstance(number, int), [value]


def unbound(x):
    if x.sum() > 0:
        y = x
    return y


def containers(x):
    table = {"a": x}
    items = [x]
    if x.sum() > 0:
        table["b"] = x * 2
        table["a"] = x + 1
        items.append(x)
        items[0] = -x
    else:
        table["b"] = x * 3
        items.append(x + 5)
    return table, items


def asserts(x):
    operators.assert_stmt(x.sum() > -100)  # pytest adds to the message of an assert statement
    operators.assert_stmt(x.sum() > 0, lambda: "must be positive")
    operators.assert_stmt(x.sum() < 67, lambda: f"too large: {int(x.sum())}")
    return x


def raises(x):
    if x.sum() < 0:
        raise ValueError(f"negative: {int(x.sum())}")
    if x.sum() > 66:
        raise KeyError("large")
    return x


def prints(x):
    print("plain", 1, None, sep="-")
    print(x.sum(), int(x.sum()), f"{x.max():.1f}", [x.sum(), "a"], end="!\n")
    if x.sum() > 0:
        print("positive")
    return x


def in_place(x):
    y = x.clone()
    if x.sum() > 0:
        y += 1
    else:
        y.mul_(2)
    y -= int(x.sum())
    return y


def handlers(x):
    try:
        value = {}["missing"]
    except Exception:
        value = 3
    try:
        if x.sum() > 0:
            value = value + 1
    finally:
        value = value * 2
    return value


@pytest.mark.parametrize(
    "function",
    [
        conditions,
        while_loops,
        unrolled_break,
        long_range,
        long_range_that_must_unroll,
        endless,
        tolist,
        choices,
        unbound,
        containers,
        asserts,
        raises,
        prints,
        in_place,
        handlers,
    ],
)
def test_floats(check, function):
    check(function, *X)


@pytest.mark.parametrize(
    "function",
    [
        arithmetic,
        casts,
        ranges,
        last_value,
        subscripts,
        stores,
        out_of_range,
        growing_lists,
        tensors_of_numbers,
    ],
)
def test_ints(check, function):
    check(function, *N)


def test_a_range_with_a_staged_step(check):
    check(zero_step, *[torch.tensor(n) for n in (2, 0, 1, -1)])


def dynamic_rows(x):
    total = x[0] * 0
    for row in x:
        total = total + row
    for i, row in enumerate(x):
        total = total + i * row
    for row, other in zip(x, reversed(x)):
        total = total + row * other
    return total, len(x), x.shape[0] * 2, x.shape == (x.shape[0], 3), x.size(), x.view(-1, x.shape[1]).shape[0]


def test_rows_of_a_tensor_whose_size_is_open(check):
    check(dynamic_rows, *[torch.arange(3.0 * n).reshape(n, 3) for n in (4, 1, 2, 7)], dynamic={"x": frozenset([0])})


def test_a_long_uniform_range_becomes_one_loop(traced):
    ops = [op.name for op in traced(long_range, X[0]).program.block.walk()]
    assert ops.count("while_loop") == 1 and ops.count("aten.mul.Tensor") == 1
