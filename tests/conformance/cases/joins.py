"""What a staged branch leaves behind: values of every kind, joined where the paths meet."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tests.conformance.family import BOTH, EACH, MIX, NEG, POS, Family, num, vec

family = Family("Joins")
case = family.case


@case("tensors of one shape", *EACH)
def tensors(x):
    if x.sum() > 1.5:
        y = x * 2
    elif x.sum() > 0:
        y = x - 1
    else:
        y = x.exp()
    return y + x


@case("int on every path", *BOTH)
def python_int(x):
    if x.sum() > 0:
        n = 1
    else:
        n = 2
    return x * n, n, n + 1


@case("float on every path", *BOTH)
def python_float(x):
    scale = 0.5
    if x.mean() > 0:
        scale = 2.5
    return x * scale, scale


@case("bool on every path", *BOTH)
def python_bool(x):
    positive = False
    if x.sum() > 0:
        positive = True
    if positive:
        x = x + 10
    return x, positive, not positive


@case("None on one path", *BOTH)
def none_on_one_path(x):
    best = None
    if x.sum() > 0:
        best = x.max()
    if best is None:
        return x, best
    return x - best, best


@case("None on one path", *BOTH)
def none_or_number(x):
    limit = 3
    if x.sum() > 0:
        limit = None
    if limit is not None:
        x = x * limit
    return x, limit


@case("str on every path", *BOTH)
def strings(x):
    if x.sum() > 0:
        mode = "up"
    else:
        mode = "down"
    if mode == "up":
        x = x + 1
    return x, mode, mode + "!", len(mode), f"<{mode}>"


@case("tuple on every path", *BOTH)
def tuples(x):
    if x.sum() > 0:
        pair = (x, 1)
    else:
        pair = (x * 2, 2)
    y, n = pair
    return y * n, pair


@case("nested tuples", *BOTH)
def nested_tuples(x):
    if x.sum() > 0:
        t = ((x, x + 1), (1, "a"))
    else:
        t = ((x - 1, x), (2, "b"))
    (a, b), (n, s) = t
    return a * b * n, s


@case("dict on every path", *BOTH)
def dicts(x):
    if x.sum() > 0:
        d = {"a": x, "n": 1}
    else:
        d = {"a": x * 3, "n": 2}
    return d["a"] * d["n"], d


@case("dict with other keys on each path", *BOTH)
def dicts_with_other_keys(x):
    if x.sum() > 0:
        d = {"up": x}
    else:
        d = {"down": x * 3, "n": 2}
    return d, len(d), "up" in d


@case("list on every path", *BOTH)
def lists(x):
    if x.sum() > 0:
        items = [x, x + 1]
    else:
        items = [x * 2, x * 3]
    items.append(x)
    return items, len(items)


@case("lists of other lengths", *BOTH)
def lists_of_other_lengths(x):
    if x.sum() > 0:
        items = [x]
    else:
        items = [x, x * 2]
    total = 0
    for item in items:
        total = total + item
    return total, len(items)


Pair = namedtuple("Pair", "left right")


@case("namedtuple on every path", *BOTH)
def named_tuples(x):
    if x.sum() > 0:
        p = Pair(x, 1)
    else:
        p = Pair(right=2, left=-x)
    return p.left * p.right, p


class Box(NamedTuple):
    low: torch.Tensor
    high: torch.Tensor
    tag: str = "box"


@case("namedtuple on every path", *BOTH)
def typed_named_tuples(x):
    box = Box(x.min(), x.max())
    if x.sum() > 0:
        box = box._replace(high=box.high + 1, tag="wide")
    return box.high - box.low, box


@dataclass
class State:
    h: Any
    steps: int = 0


@case("dataclass on every path", *BOTH)
def dataclasses(x):
    if x.sum() > 0:
        s = State(x, 1)
    else:
        s = State(h=x * 2)
    return s.h + s.steps, s.steps


@case("dataclass on every path", *BOTH)
def dataclass_returned(x):
    s = State(x)
    if x.sum() > 0:
        s.h = s.h * 2
        s.steps += 1
    return s


@case("a dict that gets a key on one path", *BOTH)
def ordered_dict(x):
    d = OrderedDict(a=x)
    if x.sum() > 0:
        d["b"] = x * 2
    return list(d), d["a"], sorted({1, 2}), len(d)


@case("int on one path, float on the other", *BOTH)
def int_and_float(x):
    if x.sum() > 0:
        n = 1
    else:
        n = 2.5
    return x * n, n, n + 1, n * 2


@case("int on one path, bool on the other", *BOTH)
def int_and_bool(x):
    if x.sum() > 0:
        n = True
    else:
        n = 7
    return x + n, n, str(n)


@case("str on one path, int on the other", *BOTH)
def str_and_int(x):
    if x.sum() > 0:
        n = "many"
    else:
        n = 7
    return x, n, f"{n}", isinstance(n, str)


@case("tensor on one path, number on the other", *BOTH)
def tensor_and_number(x):
    y = 0
    if x.sum() > 0:
        y = x
    return y, x + y


@case("tensor on one path, number on the other", *BOTH)
def tensor_and_number_method(x):
    y = 1.5
    if x.sum() > 0:
        y = x.sum()
    return isinstance(y, torch.Tensor), y * 2


@case("different dtypes", *BOTH)
def dtypes(x):
    if x.sum() > 0:
        y = x.long()
    else:
        y = x * 0.5
    return y, y + 1


@case("different dtypes", *BOTH)
def dtypes_double(x):
    if x.sum() > 0:
        y = x.double()
    else:
        y = x
    return (y * 2).sum()


@case("dtype read where it differs", *BOTH)
def dtype_read(x):
    if x.sum() > 0:
        y = x.long()
    else:
        y = x
    return y.dtype == torch.float32


@case("different sizes", *BOTH)
def sizes(x):
    if x.sum() > 0:
        y = x[:2]
    else:
        y = torch.cat([x, x])
    return y * 2, y.shape[0], y.sum()


@case("different sizes", *BOTH)
def sizes_used(x):
    if x.sum() > 0:
        y = x[:1]
    else:
        y = x
    return torch.zeros(y.shape[0]) + y, len(y)


@case("different ranks", *BOTH)
def ranks(x):
    if x.sum() > 0:
        y = x.unsqueeze(0)
    else:
        y = x
    return y * 2


@case("rank read where it differs", *BOTH)
def rank_read(x):
    if x.sum() > 0:
        y = x.unsqueeze(0)
    else:
        y = x
    return y.dim()


@case("a name bound on one path only", *BOTH)
def bound_on_one_path(x):
    if x.sum() > 0:
        y = x * 2
    return y


@case("a name bound on one path only", *BOTH)
def bound_but_not_read(x):
    if x.sum() > 0:
        y = x * 2
        z = y + 1
    else:
        z = x
    return z


@case("a name bound on one path only", *EACH)
def bound_and_read_on_one_path(x):
    if x.sum() > 0:
        y = x * 2
    if x.sum() > 0:
        return y
    return x


@case("a name bound on one path only", *BOTH, idle=1)
def bound_in_a_nested_branch(x):
    if x.sum() > -100:
        if x.sum() > 0:
            count = 3
    return x * count


@case("lambda on every path", *BOTH)
def lambdas(x):
    if x.sum() > 0:
        f = lambda v: v * 2
    else:
        f = lambda v: v - 1
    return f(x)


@case("function defined in a branch", *BOTH, search=1)
def functions(x):
    k = 3
    if x.sum() > 0:
        def f(v):
            return v * k
    else:
        def f(v):
            if v.min() < -1:
                return v
            return v + k
    return f(x)


@case("function chosen by a branch", *EACH)
def function_chosen(x):
    act = torch.relu
    if x.sum() > 1.5:
        act = torch.tanh
    return act(x)


@case("module chosen by a branch", *BOTH)
class ModuleChosen(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)

    def forward(self, x):
        layer = self.a
        if x.sum() > 0:
            layer = self.b
        return layer(x)


@case("del", *BOTH)
def deleted(x):
    y = x * 2
    if x.sum() > 0:
        z = y + 1
        del y
    else:
        z = y
    return z


@case("del", *BOTH)
def deleted_then_read(x):
    y = x * 2
    if x.sum() > 0:
        del y
    return y + 1


@case("tuple swap", *BOTH)
def swap(x):
    a, b = x, x * 2
    if x.sum() > 0:
        a, b = b, a
    return a, b - a


@case("tuple swap", *EACH)
def rotate(x):
    a, b, c = 1, 2, 3
    if x.max() > 1:
        a, b, c = c, a, b
    if x.min() < 0:
        a, b = b, a
    return x * a, (a, b, c)


@case("starred targets", *BOTH)
def starred(x):
    rows = [x, x + 1, x + 2]
    if x.sum() > 0:
        first, *rest = rows
    else:
        *rest, first = rows
    return first, rest, len(rest)


@case("nested unpacking", *BOTH)
def unpacking(x):
    if x.sum() > 0:
        (a, (b, c)), *d = (x, (1, 2)), 3, 4
    else:
        a, b, c, d = x, 2, 1, [4, 3]
    return a * b + c, d


@case("augmented assignment", *BOTH)
def augmented(x):
    n, s = 1, "a"
    if x.sum() > 0:
        n += 2
        s += "b"
    else:
        n *= -1
        n -= 1
    return x * n, n, s


@case("multiple targets", *BOTH)
def multiple_targets(x):
    a = b = 0
    if x.sum() > 0:
        a = b = x * 2
    return a + x, b


@case("branches nested five deep", *[(vec(float(v)),) for v in (-1, 0.5, 1.5, 2.5, 3.5, 4.5)])
def five_deep(x):
    n = 0
    if x.sum() > 0:
        n += 1
        if x.sum() > 1:
            n += 1
            if x.sum() > 2:
                n += 1
                if x.sum() > 3:
                    n += 1
                    if x.sum() > 4:
                        n += 1
    return x * n, n


@case("two flags in turn", *[(vec(a, b),) for a in (1.0, -1.0) for b in (1.0, -1.0)])
def two_flags(x):
    a = 1 if x[0] > 0 else 2
    b = 10 if x[1] > 0 else 20
    if a == 1 and b == 20:
        x = x * 100
    return x * a + b, a + b


@case("an argument or another tensor", *BOTH)
def argument_or_other(x):
    y = x
    if x.sum() > 0:
        y = x * 2
    return y, x


@case("complex and integer tensors", (torch.tensor([1, 2]),), (torch.tensor([-1, -2]),))
def complex_numbers(x):
    if x.sum() > 0:
        y = x.to(torch.complex64)
    else:
        y = x.to(torch.complex64) * 1j
    return y.real, y.imag


@case("bool tensors", *BOTH)
def masks(x):
    mask = x > 1
    if x.sum() > 0:
        mask = ~mask
    return x.masked_fill(mask, 0.0), mask


@case("tensor made in a branch", *BOTH)
def made_in_branch(x):
    if x.sum() > 0:
        y = torch.ones(3)
    else:
        y = torch.arange(3.0)
    return x * y, y


@case("a branch without gradient", *BOTH)
def without_gradient(x):
    if x.sum() > 0:
        y = x.detach() * 2
    else:
        y = x * 2
    return y + x * 0


@case("match over a number read off a tensor", *EACH)
def matched(x):
    n = int(x.sum())
    match n:
        case 3:
            y = x * 2
        case 1:
            y = x - 1
        case _:
            y = x
    return y, n


@case("shadowed builtin and outer names", *BOTH)
def shadowed(x):
    max = 3
    if x.sum() > 0:
        max = 4
    sum = x * max
    return sum, max


@case("condition on one element tensors", (num(True), POS), (num(False), POS), (num(1), POS), (num(0), POS),
      (num(0.0), NEG), (num(2.0), NEG))
def one_element(flag, x):
    if flag:
        return x + 1
    return x


@case("condition on several elements raises", (MIX,), (POS,), (vec(1.0),), (vec(0.0),))
def several_elements(x):
    if x:
        return x + 1
    return x


@case("pass in a branch", *BOTH)
def passes(x):
    if x.sum() > 0:
        pass
    else:
        x = -x
    return x


@case("types of numbers", *[(x, k) for x in (POS, NEG) for k in (2, 2.0, True)])
def types_kept(x, k):
    if x.sum() > 0:
        k = k + 1
    return x * k, k, type(k).__name__
