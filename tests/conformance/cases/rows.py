"""Functions of one row under ``dy2static.vmap``: each against its rows one by one, gradients and arguments included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.conformance.family import Family, ints, normal, vec
from tests.over_rows import judge

family = Family("Under vmap")
ROWS = ((vec(1.0, 2.0, 3.0),), (vec(-1.0, 0.5, -3.0),), (vec(0.25, 0.5, 0.125),), (vec(-9.0, 4.0, 2.0),))


def case(construct: str, *rows: Any, outcome: str = "same") -> Callable[[Any], Any]:
    """A function that is held against its rows one by one."""

    def note(target: Any) -> Any:
        def held() -> None:
            assert judge(lambda: target, rows or ROWS) == outcome

        held.__name__ = f"rows_{target.__name__}"
        family.scenario(construct, refused=outcome if outcome != "same" else "")(held)
        return target

    return note


@case("if, elif, else")
def branches(x):
    if x.sum() > 1:
        y = x.log()
    elif x[0] > 0:
        y = x.sqrt()
    else:
        y = x * 2
    return y, x.sum() > 1


@case("while with a counter")
def counted(x):
    n = 0
    while x.abs().max() > 0.2:
        x = x / 2
        n += 1
    return x, n, n / 2


@case("for over range(n) of a number of each row")
def ranged(x):
    total = torch.zeros(3)
    for i in range(int(x[1] * 2)):
        total = total + x * i
    return total


@case("for over the elements of a row")
def elements(x):
    best = x[0]
    for value in x:
        if value > best:
            best = value
    return best


@case("break, continue and else")
def leaving(x):
    for i in range(5):
        if x[0] > 4:
            break
        if x[i % 3] < 0:
            x = x + 1
            continue
        x = x * 1.5
    else:
        x = x - 100
    return x, i


@case("return from a loop")
def returned(x):
    for i in range(3):
        if x[i] > 1.5:
            return x * i
    return -x


@case("loops in loops")
def nested(x):
    n = 0
    while x.sum() < 10 and n < 4:
        y = x
        while y.min() < n:
            y = y + 1.5
        x = y.abs() + x.abs()
        n += 1
    return x, n


@case("numbers read off tensors")
def numbers(x):
    n, v = int(x.argmax()), x.sum().item()
    return x * n + v, n**5 // 3 - n % -2, round(v, 1) > 1, min(n, 1)


@case("an item at a number of each row")
def items(x):
    n = int(x.argmin())
    out = torch.zeros(3)
    out[n] = x[n - 1]
    return out, x[n], (x, x * 2, -x)[n]


@case("writes in place")
def writes(x):
    out = torch.zeros(3)
    if x.sum() > 0:
        out[0] = x[1]
        out.add_(1)
    else:
        out[1:] = x[:2]
    return out


@case("writes to the argument")
def argument(x):
    y = x.mul_(2)
    while y.sum() < 0:
        y += 3
    return y * 1


@case("writes by a mask")
def by_mask(x):
    y = x.clone()
    y[y > 0.4] = 0
    return y


@case("lists with as many items in each row")
def lists(x):
    rows = []
    for value in x:
        rows.append(value * 2 if value > 0 else value)
    return torch.stack(rows).sum(), rows[int(x.argmax())]


@case("assert and try")
def asserted(x):
    assert x.numel() == 3
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        y = x.sqrt()
    except ValueError:
        y = -x
    return y


@case("ints and bools", *((ints(a, b),) for a, b in ((6, 4), (35, 14), (7, 3), (9, 0))))
def greatest_common_divisor(x):
    a, b = x[0], x[1]
    steps = 0
    while b != 0:
        a, b = b, a % b
        steps += 1
    return a, steps, steps > 1


@case("matrix products in a loop", *((normal(3, 3, seed=seed),) for seed in range(4)))
def powers(x):
    y = torch.eye(3)
    n = 0
    while y.abs().sum() < 20 and n < 8:
        y = y @ x + torch.eye(3)
        n += 1
    return y, n


@case("torch.autograd.grad inside")
def gradient_inside(x):
    w = x.detach().requires_grad_()
    loss = w.square().sum()
    if loss > 10:
        loss = loss.sqrt()
    (grad,) = torch.autograd.grad(loss, w)
    return grad


@case("a size that depends on the row", outcome="D2S283")
def sizes(x):
    return x[x > 0].sum()


@case("a list that grows differently", outcome="D2S283")
def grows(x):
    rows = []
    while x.sum() > 1:
        rows.append(x)
        x = x / 2
    return torch.stack(rows).sum(0) if rows else x


@case("print of a row's value", outcome="D2S284")
def printed(x):
    if x.sum() > 0:
        print(x.sum().item())
    return x
