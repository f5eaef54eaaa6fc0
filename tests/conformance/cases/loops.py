"""Loops whose length or exit a tensor decides."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from tests.conformance.family import BOTH, EACH, MIX, POS, Family, ints, normal, num, vec

family = Family("Loops")
case = family.case

COUNTS = tuple((POS, num(n)) for n in (0, 1, 4))


@case("while on a tensor", (POS,), (vec(0.1, 0.2),), (vec(90.0, -50.0),))
def while_tensor(x):
    while x.abs().max() > 1:
        x = x / 2
    return x


@case("while on a tensor", (vec(1.0, 2.0),), (vec(90.0, 20.0),), (vec(8.0, 5.0),))
def while_counts(x):
    n = 0
    total = x * 0
    while x.sum() < 20 and n < 3:
        x = x * 1.5
        total = total + x
        n += 1
    return x, total, n


@case("for over range of a tensor", *COUNTS)
def staged_range(x, n):
    for i in range(n):
        x = x + i
    return x


@case("for over range of an item", *COUNTS)
def item_range(x, n):
    total = 0
    for i in range(n.item()):
        total += i
        x = x * 2
    return x, total


@case("for over a tensor", (normal(3, 2),), (normal(1, 2),), (normal(3, 2, seed=1),), idle=3)
def over_rows(x):
    h = x.new_zeros(2)
    for row in x:
        if row.sum() > 0:
            h = h + row
        else:
            h = h * 0.5
    return h


@case("for over enumerate and zip", (normal(3, 2), normal(3, 2, seed=1)))
def over_zip(x, y):
    total = 0
    for i, (a, b) in enumerate(zip(x, y)):
        total = total + a * b * i
    return total


@case("break under a tensor", *[(vec(1.0), num(float(n))) for n in (0, 3, 99)], search=1, idle=1)
def breaks(x, limit):
    for i in range(5):
        if x.sum() > limit:
            break
        x = x + i
    return x, i


@case("continue under a tensor", (vec(1.0, -1.0, 2.0, -2.0),), search=1)
def continues(x):
    total = 0
    for v in x:
        if v < 0:
            continue
        total = total + v
    return total


@case("break and continue in one loop", *[(vec(1.0), num(n)) for n in (0, 2, 3, 7)])
def break_and_continue(x, n):
    i = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        if i > 4:
            break
        x = x + i
    return x, i


@case("nested break", *[(vec(1.0), num(n), num(m)) for n in (0, 2, 4) for m in (0, 3)])
def nested_break(x, n, m):
    for i in range(n):
        for j in range(m):
            if j > i:
                break
            x = x + 1
        x = x * 2
        if x.sum() > 50:
            break
    return x


@case("nested continue", *[(vec(1.0), num(n)) for n in (0, 3, 5)])
def nested_continue(x, n):
    for i in range(n):
        if i == 1:
            continue
        for j in range(i):
            if j == 2:
                continue
            x = x + j + 1
    return x


@case("three loops deep", *[(vec(0.0), num(float(n))) for n in (-1, 3, 8, 99)], search=4, idle=1)
def three_deep(x, limit):
    for i in range(2):
        for j in range(3):
            for k in range(2):
                if x.sum() > limit:
                    break
                x = x + k + 1
            else:
                continue
            break
        else:
            x = x + 0.5
    return x, i, j, k


@case("else of a for", *[(vec(1.0), num(n)) for n in (0, 2, 5)], idle=1)
def for_else(x, n):
    for i in range(3):
        if i == n:
            x = x * 10
            break
    else:
        x = x - 1
    return x


@case("else of a while", *[(vec(1.0), num(n)) for n in (0, 2, 9)])
def while_else(x, n):
    i = 0
    while x.sum() < 6:
        x = x + 1
        i += 1
        if i == n:
            break
    else:
        i = -1
    return x, i


@case("while True with a tensor break", (vec(1.0),), (vec(0.001),), (vec(100.0),))
def while_true(x):
    n = 0
    while True:
        if x.sum() > 10:
            break
        x = x * 3
        n += 1
    return x, n


@case("while True with two breaks", *[(vec(1.0), num(n)) for n in (0, 1, 7)], search=1)
def while_true_two(x, n):
    steps = 0
    while True:
        if steps >= n:
            break
        x = x * 3
        if x.sum() > 20:
            steps = -1
            break
        steps += 1
    return x, steps


@case("condition that becomes a tensor midway", *[(vec(v), num(True)) for v in (1.0, 5.0)])
def becomes_tensor(x, flag):
    going = True
    n = 0
    while going:
        x = x + 1
        n += 1
        if n > 2:
            going = x.sum() < 9
    return x, n


@case("range with a break that becomes a tensor", *[(vec(v),) for v in (1.0, 6.0, -9.0)], search=1)
def break_becomes_tensor(x):
    for i in range(6):
        if i > 2:
            if x.sum() > 8:
                break
        x = x + 1
    return x, i


@case("zero iterations", (vec(1.0), num(0)), (vec(1.0), num(2)))
def zero_iterations(x, n):
    y = None
    for i in range(n):
        y = x * i
    return x, y


@case("zero iterations of an unbound name", (vec(1.0), num(0)), (vec(1.0), num(2)))
def unbound_after(x, n):
    for i in range(n):
        y = x * (i + 2)
    return y


@case("loop variable read after the loop", (vec(1.0), num(0)), (vec(1.0), num(1)), (vec(1.0), num(3)))
def variable_after(x, n):
    for i in range(n):
        x = x + 1
    return x, i


@case("loop variable read after the loop", (normal(3, 2),))
def row_after(x):
    for row in x:
        pass
    return row


@case("loop variable assigned in the loop", (vec(1.0), num(0)), (vec(1.0), num(3)))
def variable_assigned(x, n):
    i = -1
    for i in range(n):
        x = x + i
        i = i * 10
    return x, i


@case("negative and variable steps", *[(vec(1.0), num(a), num(b), num(s)) for a, b, s in
                                      ((5, 0, -1), (0, 5, 2), (5, 5, 1), (9, -4, -3), (0, 5, -1))])
def steps(x, start, stop, step):
    seen = 0
    for i in range(int(start), int(stop), int(step)):
        x = x * 0.5 + i
        seen += 1
    return x, seen


@case("step zero raises", (vec(1.0), num(2)), (vec(1.0), num(0)), (vec(1.0), num(-1)))
def step_zero(x, step):
    for i in range(0, 4, int(step)):
        x = x + i
    return x


@case("state that changes dtype", (ints(1, 2), num(0)), (ints(1, 2), num(2)))
def changes_dtype(x, n):
    y = x
    for i in range(n):
        y = y * 0.5
    return y


@case("state that changes size", (vec(1.0, 2.0), num(0)), (vec(1.0, 2.0), num(1)), (vec(1.0, 2.0), num(3)))
def changes_size(x, n):
    for i in range(n):
        x = torch.cat([x, x[:1] + 1])
    return x, x.shape[0]


@case("state that starts as None", (vec(1.0), num(0)), (vec(1.0), num(1)), (vec(1.0), num(3)))
def starts_as_none(x, n):
    h = None
    for i in range(n):
        if h is None:
            h = x
        else:
            h = h * 2 + x
    return h


@case("state that starts as a number", (vec(1.0), num(0)), (vec(1.0), num(3)))
def starts_as_number(x, n):
    total = 0
    for i in range(n):
        total = total + x * i
    return total


@case("state that is a tuple", (vec(1.0), num(0)), (vec(1.0), num(3)))
def tuple_state(x, n):
    state = (x, x * 0, 0)
    for i in range(n):
        h, c, k = state
        state = (h + 1, c + h, k + i)
    return state


@case("state that is a dict", (vec(1.0), num(0)), (vec(1.0), num(3)))
def dict_state(x, n):
    state = {"h": x, "n": 0}
    for i in range(n):
        state["h"] = state["h"] * 2
        state["n"] += i
    return state


class Cell:
    def __init__(self, h):
        self.h = h
        self.n = 0


@case("state in attributes of an object", (vec(1.0), num(0)), (vec(1.0), num(3)))
def object_state(x, n):
    cell = Cell(x)
    for i in range(n):
        cell.h = cell.h * 2 + i
        cell.n += 1
    return cell.h, cell.n


@case("Fibonacci", *[(num(n),) for n in (0, 1, 2, 10, 80)])
def fibonacci(n):
    a, b = 0, 1
    while n > 0:
        a, b = b, a + b
        n = n - 1
    return a


@case("greatest common divisor", (num(12), num(18)), (num(7), num(0)), (num(17), num(5)))
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@case("Newton's method", (vec(2.0),), (vec(100.0),), (vec(1.0),))
def newton(x):
    guess = x / 2
    steps = 0
    while (guess * guess - x).abs().max() > 1e-4:
        guess = (guess + x / guess) / 2
        steps += 1
    return guess, steps


@case("collatz steps", *[(num(n),) for n in (1, 6, 7)])
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@case("infinite iterator", *[(vec(1.0), num(float(n))) for n in (0, 20)])
def infinite(x, limit):
    for i in itertools.count(1):
        if x.sum() > limit:
            break
        x = x + i
    return x, i


@case("infinite iterator", (POS,), (MIX,))
def cycled(x):
    total = 0
    for v, k in zip(x, itertools.cycle([1, -1])):
        total = total + v * k
    return total


@case("infinite iterator left by a tensor", (POS,), refused="D2S266")
def cycle_left_by_tensor(x):
    for k in itertools.cycle([1, 2]):
        x = x + k
        if x.sum() > 20:
            break
    return x


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


@case("user-defined iterator", *BOTH)
def user_iterator(x):
    for k in Countdown(3):
        if x.sum() > 0:
            x = x + k
        else:
            x = x - k
    return x


class Deck:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


@case("sequence protocol", *BOTH, search=1)
def sequence_protocol(x):
    for item in Deck([x, x * 2, x * 3]):
        if item.sum() > 4:
            break
    return item


@case("break from a user-defined iterator", (POS,), refused="D2S266")
def user_iterator_left(x):
    for k in Countdown(3):
        if x.sum() > 4:
            break
        x = x + k
    return x


@case("iterating a list that grows", *BOTH)
def grows_while_iterated(x):
    items = [1]
    for item in items:
        if len(items) < 4:
            items.append(item * 2)
        x = x + item
    return x, items


@case("long uniform range stays rolled", (vec(1.0),), (vec(-1.0),))
def long_range(x):
    for i in range(1000):
        if x.sum() > 0:
            x = x * 0.99
        else:
            x = x + 0.01
    return x


@family.scenario("long uniform range stays rolled")
def rolled():
    import dy2static

    converted = dy2static.to_static(long_range)
    converted(vec(1.0))
    assert len(list(converted.program.block.walk())) < 40
    assert any(op.name == "while_loop" for op in converted.program.block.ops)


@case("recurrent network over lengths", *[(normal(4, 3), num(n)) for n in (0, 1, 4)])
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)

    def forward(self, x, length):
        h = x.new_zeros(1, 3)
        for t in range(length):
            h = self.cell(x[t].unsqueeze(0), h)
        return h


@case("module called while a tensor decides", *EACH, idle=2)
class UntilSmall(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        n = 0
        while x.norm() > 0.5 and n < 10:
            x = torch.tanh(self.layer(x)) * 0.9
            n += 1
        return x, n
