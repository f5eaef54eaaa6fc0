"""Functions that call themselves as deep as a tensor decides."""

from __future__ import annotations

import torch
from torch import nn

from tests.conformance.family import BOTH, EACH, NEG, POS, Family, ints, normal, num, vec

family = Family("Recursion")
case = family.case

# How often the value of each is halved before it is small: not at all, once, five times.
DEPTHS = ((vec(0.1, 0.2, 0.3),), (vec(0.5, 0.5, 0.5),), (vec(10.0, 9.0, 8.0),))

# Node k's children; -1: none. A leaf; a root with two leaves; a chain of five; a full tree of seven.
LEAF = ints(-1, -1).reshape(1, 2)
PAIR = ints(1, 2, -1, -1, -1, -1).reshape(3, 2)
CHAIN = ints(1, 2, -1, -1, 3, 4, -1, -1, 5, 6, -1, -1, 7, 8, -1, -1, -1, -1).reshape(9, 2)
FULL = ints(1, 2, 3, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1, -1).reshape(7, 2)
TREES = tuple((normal(len(tree), 4, seed=len(tree)), tree) for tree in (LEAF, PAIR, CHAIN, FULL))


@case("tail recursion", *DEPTHS)
def halved(x):
    return halved(x / 2) if x.sum() > 1 else x


@case("something done after the call", *DEPTHS)
def scaled_back(x):
    if x.sum() > 1:
        return scaled_back(x / 2) * 3 + x
    return x.exp()


@case("an accumulator", *DEPTHS)
def accumulated(x, total=0.0):
    if x.sum() < 1:
        return total + x
    return accumulated(x / 2, total + x.sin())


@case("a counter that is a result", *DEPTHS)
def counted(x, depth=0):
    if x.sum() > 1:
        return counted(x / 2, depth + 1)
    return x * depth, depth


@case("two calls in one expression", (num(0),), (num(1),), (num(7),))
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@case("two calls, with gradients", *DEPTHS)
def split(x):
    if x.sum() > 2:
        return split(x * 0.4) * split(x * 0.3 + 0.1).cos()
    return x * x


@case("early returns under several conditions", *DEPTHS, (vec(-1.0, -2.0, -3.0),), (vec(30.0, -1.0, 2.0),),
      (vec(21.0, 0.0, 0.0),), (vec(90.0, -45.0, 1.0),))
def early(x):
    if x.sum() < 0:
        return early(-x)
    if x.max() > 20:
        y = early(x / 4)
        if y.max() > 4:
            return y * 2
        return y + 1
    if x.sum() > 1:
        return early(x / 2) + 1
    return x


def even(x, n):
    if n == 0:
        return x
    return odd(x * 2, n - 1)


def odd(x, n):
    if n == 0:
        return -x
    return even(x + 1, n - 1)


@case("functions that call each other", (POS, num(0)), (POS, num(1)), (NEG, num(4)), (NEG, num(5)))
def mutual(x, n):
    return even(x, n) + odd(x, n)


@case("a nested function that reads variables around it", *DEPTHS)
def nested(x):
    step = x.sigmoid() + 1

    def down(y):
        if y.sum() > 1:
            return down(y / step / 2) + step
        return y

    return down(x) * down(x + 1)


@case("tuples of tensors and numbers", *DEPTHS)
def pairs(x):
    if x.sum() > 1:
        y, (count, last) = pairs(x / 2)
        return y + x, (count + 1, last)
    return x, (0, x.sum())


@case("lists and dicts of as many items in every call", *DEPTHS)
def listed(x):
    if x.sum() > 1:
        rows = listed(x / 2)
        rows[0] = rows[0] * x
        rows[1]["depth"] += 1
        return rows
    return [x.sin(), {"depth": 0, "last": x}]


@case("called in a loop", *BOTH, (vec(20.0, 3.0, 1.0),))
def in_a_loop(x):
    total = torch.zeros(3)
    for i in range(3):
        total = total + scaled_back(x + i)
    while total.sum() > 10:
        total = total - halved(total) - 1
    return total


def walk(values, children, node):
    total = values[node].tanh()
    for k in range(2):
        child = children[node, k]
        if child >= 0:
            total = total + walk(values, children, child) * 0.5
    return total


@case("a loop over children", *TREES, idle=2)
def tree_in_a_loop(values, children):
    return walk(values, children, torch.tensor(0))


def walk_by_number(values, children, node):
    left, right = int(children[node, 0]), int(children[node, 1])
    if left < 0:
        return values[node] * 1
    return (walk_by_number(values, children, left) + walk_by_number(values, children, right) * 2).tanh()


@case("nodes that are numbers", *TREES, idle=1)
def tree_by_number(values, children):
    return walk_by_number(values, children, 0)


@case("a TreeLSTM over trees in tensors", *TREES, idle=1)
class TreeLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = nn.Linear(4, 6)
        self.gates = nn.Linear(6, 15)

    def cell(self, left, right):
        gates = self.gates(torch.cat([left[0], right[0]]))
        i, o, u, f, g = gates.chunk(5)
        c = i.sigmoid() * u.tanh() + f.sigmoid() * left[1] + g.sigmoid() * right[1]
        return o.sigmoid() * c.tanh(), c

    def encode(self, values, children, node):
        if children[node, 0] < 0:
            h, c = self.leaf(values[node]).chunk(2)
            return h, c
        left = self.encode(values, children, children[node, 0])
        right = self.encode(values, children, children[node, 1])
        return self.cell(left, right)

    def forward(self, values, children):
        h, c = self.encode(values, children, torch.tensor(0))
        return h, c


@case("quicksort", (vec(0.5,),), (vec(3.0, 1.0, 2.0),), (vec(5.0, 3.0, 8.0, 1.0, 9.0, 2.0, 7.0),))
def quicksort(x):
    if x.shape[0] <= 1:
        return x
    pivot = x[0]
    rest = x[1:]
    return torch.cat([quicksort(rest[rest < pivot]), pivot.reshape(1), quicksort(rest[rest >= pivot])])


@case("a binary search", (vec(-3.0, 1.0, 2.0, 5.0), num(5.0)), (vec(0.0, 1.0, 2.0, 5.0), num(0.5)),
      (vec(-1.0, 1.0, 2.0, 5.0), num(0.5)))
def search(x, wanted):
    def between(low, high):
        if high - low <= 1:
            return low
        middle = (low + high) // 2
        if x[middle] <= wanted:
            return between(middle, high)
        return between(low, middle)

    x = x[x >= 0]
    return between(0, len(x)) if wanted >= x[0] else -1


@case("called with arguments of different structure", *DEPTHS)
def two_ways(x):
    a = accumulated(x)
    b = accumulated(x, x * 2)
    c = accumulated(x.reshape(1, 3), x)
    return a, b, c


@case("keywords, defaults and stars", *DEPTHS)
def keywords(x, *rest, scale=2, **more):
    if x.sum() > 1:
        return keywords(x / scale, *[r + 1 for r in rest], scale=scale, bias=more.get("bias", x) * 2)
    return x + more.get("bias", 0) + sum(rest)


@case("None in the place of a tensor", *DEPTHS)
def optional(x, before=None):
    if x.sum() > 1:
        return optional(x / 2, x)
    return x if before is None else x + before


@case("words that change from call to call", *DEPTHS)
def words(x, mode="add"):
    if x.sum() <= 1:
        return x
    if mode == "add":
        return words(x / 2, "multiply") + 1
    return words(x / 3, "add") * 2


@case("exceptions", *DEPTHS, (vec(-1.0, -1.0, -1.0),))
def raising(x):
    if x.sum() < 0:
        raise ValueError("negative")
    return raising(x / 2 - 0.1) if x.sum() > 1 else x


@case("recursion inside of recursion", *DEPTHS)
def outer(x):
    if x.sum() > 4:
        return outer(scaled_back(x / 8) * 0.01 + x / 2) + 1
    return scaled_back(x) if x.sum() > 1 else x


@case("new memory that is written", *DEPTHS)
def writes(x):
    y = torch.zeros(3)
    y[0] = x.sum()
    y += x
    if x.sum() > 1:
        z = writes(x / 2).clone()
        z.mul_(2)
        return z + y
    return y


@case("print", *DEPTHS)
def printing(x):
    print("enter")
    if x.sum() > 1:
        y = printing(x / 2)
        print("leave")
        return y
    return x * 2


@case("random numbers", *DEPTHS)
def drawing(x):
    if x.sum() > 1:
        return drawing(x / 2) + torch.rand(3) * x
    return torch.rand(3) + x


@case("a dropped branch of unused parameters", *EACH, idle=1)
class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.deep = nn.Linear(3, 3)
        self.flat = nn.Linear(3, 3)
        self.never = nn.Linear(3, 3)

    def go(self, x):
        if x.norm() > 1.5:
            return self.go(self.deep(x * 0.5) * 0.5)
        if x.sum() > 100:
            return self.never(x)
        return x + 1

    def forward(self, x):
        return self.go(x) if x.max() > 0 else self.flat(x)


@case("a write to an argument", (vec(0.5, 0.5, 0.5, grad=False),), refused="D2S270")
def writes_argument(x):
    def go(y):
        x.add_(1)
        return go(y / 2) if y.sum() > 1 else y

    return go(x * 1)


@case("an attribute that each call stores", *DEPTHS, refused="D2S270")
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        return self.go(x)

    def go(self, x):
        if x.sum() > 1:
            self.last = x
            return self.go(x / 2)
        return x


@case("a list that grows", *DEPTHS, refused="D2S270")
def grows(x, found=None):
    found = [] if found is None else found
    if x.sum() > 1:
        found.append(x)
        return grows(x / 2, found)
    return found


@case("a write to what a call gives", *DEPTHS, refused="D2S222")
def writes_result(x):
    if x.sum() > 1:
        y = writes_result(x / 2)
        y += 1
        return y
    return x


@case("no way out", *DEPTHS, refused="D2S270")
def endless(x):
    if x.sum() > 1:
        return endless(x / 2)
    return endless(x * 2)
