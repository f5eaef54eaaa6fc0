"""Leaving a function: from branches, loops, ``with``, ``try``; None and other structures."""

from __future__ import annotations

import contextlib

import torch
from torch import nn

from tests.conformance.family import BOTH, EACH, NEG, POS, Family, num, vec

family = Family("Returns")
case = family.case


@case("early return", *EACH)
def early(x):
    if x.sum() > 1.5:
        return x * 2
    if x.sum() > 0:
        return x * 3
    return x


@case("return in both branches", *BOTH)
def both_branches(x):
    if x.sum() > 0:
        y = x * 2
        return y + 1
    else:
        return x - 1


@case("None on one path", *BOTH)
def implicit_none(x):
    if x.sum() > 0:
        return x * 2


@case("None on one path", *BOTH)
def explicit_none(x):
    if x.sum() > 0:
        return None
    return x


@case("None everywhere", *BOTH)
def bare(x):
    if x.sum() > 0:
        return
    y = x * 2


@case("differing structures", *EACH)
def structures(x):
    if x.sum() > 1.5:
        return x, x * 2
    if x.sum() > 0:
        return {"x": x, "n": 3}
    return [x]


@case("differing structures", *EACH)
def kinds(x):
    if x.sum() > 1.5:
        return 1
    if x.sum() > 0:
        return "one"
    return 2.5, None


@case("differing lengths of tuples", *BOTH)
def lengths(x):
    if x.sum() > 0:
        return x, 1
    return x, 1, 2


@case("Python numbers with their types", *EACH)
def numbers(x):
    if x.sum() > 1.5:
        return True
    if x.sum() > 0:
        return 3
    return 3.0


@case("return inside a tensor while", (vec(1.0, 2.0),), (vec(50.0, 60.0),), (vec(0.0, 0.0),), search=1)
def inside_while(x):
    n = 0
    while x.sum() < 40:
        if n > 6:
            return x * 0, n
        x = x + x + 0.25
        n += 1
    return x, n


@case("return inside while True", *EACH, search=1)
def inside_while_true(x):
    while True:
        x = x * 0.5
        if x.abs().max() < 0.3:
            return x


@case("return inside for", *[(vec(0.0), num(n)) for n in (0, 1, 3, 9)], idle=2)
def inside_for(x, limit):
    for i in range(5):
        if i == limit:
            return x + 100, i
        x = x + i
    return x, -1


@case("return inside for over a staged range", *[(vec(1.0), num(n), num(m)) for n, m in ((0, 3), (5, 3), (2, 3), (5,
      0))])
def inside_staged_for(x, n, stop):
    for i in range(int(n)):
        if i == stop:
            return x, i
        x = x * 2
    return x, None


@case("return inside nested loops", *[(vec(0.5), num(float(n))) for n in (0, 2, 5, 30)], search=4, idle=4)
def inside_nested(x, limit):
    for i in range(3):
        for j in range(3):
            x = x + i * j
            if x.sum() > limit:
                return x, i, j
        x = x + 0.5
    return x


@case("return inside nested tensor loops", *[(vec(1.0), num(float(n))) for n in (0.5, 5, 20, 1000)], idle=2)
def inside_nested_while(x, limit):
    n = 0
    while x.sum() < 100:
        y = x
        while y.sum() < 10:
            y = y * 2
            n += 1
            if y.sum() > limit:
                return y, n
        x = x + y
    return x, -n


@case("return inside with", *BOTH)
def inside_with(x):
    with torch.no_grad():
        y = x * 2
        if y.sum() > 0:
            return y
        z = y + 1
    return z + x


@case("return inside with of a loop", *EACH, search=1)
def inside_with_in_loop(x):
    for i in range(3):
        with contextlib.nullcontext():
            x = x + 1
            if x.sum() > 4:
                return x, i
    return x


@case("return of a list that finally changes", *BOTH)
def inside_try(x):
    log = []
    try:
        if x.sum() > 0:
            return x, log
        x = x + 1
    finally:
        log.append(1)
    log.append(2)
    return x, log


@case("return inside try and finally", *BOTH)
def inside_try_finally(x):
    log = []
    try:
        if x.sum() > 0:
            return x * 2
        x = x + 1
    finally:
        log.append(1)
    return x, len(log)


@case("return in finally", *BOTH, refused="D2S212")
def finally_wins(x):
    try:
        return x * 2
    finally:
        if x.sum() > 0:
            return x


@case("return in except", (POS, 0), (POS, 2), (NEG, 2), (NEG, 0))
def in_except(x, k):
    try:
        y = x * (6 // k)
    except ZeroDivisionError:
        if x.sum() > 0:
            return x
        y = x * 2
    return y + 1


@case("return from a loop over a ModuleList", *[(vec(*v),) for v in ((1, 1, 1), (-9, 3, 4), (5, -5, 0), (9, 9, 9),
      (-9, -9, -9))], search=4, idle=1)
class OverModules(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if x.sum() > 1:
                return x * 2, i
        return x, -1


@case("early exit of a classifier", *[(vec(*v),) for v in ((1, 1, 1), (-9, 3, 4), (5, -5, 0), (9, 9, 9))], search=1,
      idle=2)
class EarlyExit(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(3))
        self.heads = nn.ModuleList(nn.Linear(3, 2) for _ in range(3))

    def forward(self, x):
        logits = None
        for block, head in zip(self.blocks, self.heads):
            x = block(x)
            logits = head(x)
            if logits.softmax(-1).max() > 0.7:
                return logits
        return logits


@case("return inside a loop else", *EACH, search=1)
def inside_loop_else(x):
    for i in range(3):
        x = x + 1
        if x.sum() > 6:
            break
    else:
        return x * 0 - 1
    return x


@case("return from a nested function", *EACH, search=1, idle=4)
def nested_function(x):
    def inner(v):
        if v.sum() > 1.5:
            return v * 2
        for i in range(2):
            if v.sum() < -1:
                return v * 3
            v = v - 1
        return v

    return inner(x) + inner(-x)


@case("code after return is dead", *BOTH)
def dead_code(x):
    if x.sum() > 0:
        return x
        x = x.nothing_of_this_name()
    return -x


@case("return of a conditional expression", *EACH)
def conditional(x):
    return x if x.sum() > 1.5 else -x if x.sum() > 0 else x * 0


@case("return of what was passed in", *BOTH)
def passed_in(x):
    if x.sum() > 0:
        return x
    return x


@case("return of a generator's first item", *BOTH)
def starred_return(x):
    rest = [1, 2] if x.sum() > 0 else [3, 4]
    return (x, *rest)


@case("many returns", *[(vec(float(v)),) for v in range(8)])
def many(x):
    n = int(x)
    if n == 0:
        return "zero"
    elif n == 1:
        return "one"
    elif n == 2:
        return 2
    elif n == 3:
        return x
    elif n == 4:
        return (x,)
    elif n == 5:
        return {"five": x}
    elif n == 6:
        return None
    return ...
