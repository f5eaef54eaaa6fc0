"""Numbers read off tensors, sizes, and text made of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import dy2static
from tests.conformance.family import BOTH, EACH, MIX, Family, ints, normal, num, vec

family = Family("Casts and shape")
case = family.case
NUMBERS = tuple((num(v),) for v in (0, 3, -7, 2**40 + 1))
FLOATS = tuple((num(v),) for v in (0.0, -1.5, 2.25))
TABLES = ((normal(3, 4),), (normal(5, 4),), (normal(2, 4),))


@case("int(t)", *NUMBERS)
def int_of(t):
    n = int(t)
    return n, n + 1, n * 2, n // 3, n % 5, -n, n / 4


@case("int(t) of a float rounds toward zero", *FLOATS)
def int_of_float(t):
    return int(t), int(t * 2), int(t.item())


@case("float(t)", *FLOATS)
def float_of(t):
    f = float(t)
    return f, f * 2, f + 1, f // 1, f % 2, t * f


@case("float(t) of an int", *NUMBERS)
def float_of_int(t):
    return float(t), float(int(t))


@case("bool(t)", (num(0.0),), (num(2.0),), (num(True),), idle=1)
def bool_of(t):
    b = bool(t)
    if b:
        t = t + 1
    return t, b, int(b), str(b)


@case(".item()", (num(1.5),), (num(3),), (num(True),), (vec(2.0),))
def item(t):
    v = t.item()
    return v, type(v).__name__, v + 1, [v], {"v": v}


@case(".item() of several elements raises", (vec(1.0, 2.0),), (vec(1.0),))
def item_of_many(t):
    return t.item()


@case(".tolist()", (MIX,), (ints(2**40, -1),), (num(3),), (normal(2, 2),))
def tolist(t):
    return t.tolist()


@case(".tolist() used", *EACH)
def tolist_used(x):
    a, b, c = x.tolist()
    if a > b:
        return x * c
    return x + a


@case("arithmetic keeps Python's types", *NUMBERS)
def arithmetic(t):
    n = t.item()
    return n + 0.5, n * True, 2 ** (n % 3), n / 2, n + n, (n, 1)[0], abs(n) ** 0.5


@case("division by zero raises", (num(2),), (num(0),))
def division(t):
    return 10 // t.item(), 10 % int(t)


@case("math functions", *[(num(v),) for v in (0.25, 1.0, 4.0)])
def mathematics(t):
    v = t.item()
    return math.sqrt(v), math.log(v), math.floor(v), math.ceil(v), math.exp(v), math.pow(v, 2), math.isnan(v)


@case("math functions raise as in Python", (num(4.0),), (num(-4.0),))
def math_raises(t):
    return math.sqrt(t.item())


@case("f-strings and format", *FLOATS)
def texts(t):
    v = t.item()
    return f"{v:.2f}|{v!r}|{v}", str(v), repr(v)


@case("str.format and % of numbers read off tensors", *FLOATS)
def old_texts(t):
    v = t.item()
    return "{:>8}".format(v), "%.1f" % v


@case("f-strings of ints", *NUMBERS)
def int_texts(t):
    n = int(t)
    return f"{n:05d} {n:x}", str(n) + "!"


@case("methods of text made of numbers read off tensors", *NUMBERS)
def split_texts(t):
    return f"layer.{int(t)}.weight".split(".")


@case("bytes of text made of numbers read off tensors", *NUMBERS, refused="D2S262")
def encoded_texts(t):
    return f"layer.{int(t)}.weight".encode()


@case("isinstance of numbers", *NUMBERS)
def kinds(t):
    n = t.item()
    return isinstance(n, int), isinstance(n, float), isinstance(n, bool), isinstance(t, torch.Tensor), type(n) is int


@case("isinstance where paths differ", *BOTH)
def kinds_differ(x):
    y = 3 if x.sum() > 0 else "three"
    if isinstance(y, str):
        return x, len(y)
    return x * y


@case("len and shape", *TABLES)
def shapes(x):
    return len(x), x.shape[0], x.size(0), x.size(), x.shape, x.dim(), x.ndim, x.numel(), x.shape[-1]


@case("shape in arithmetic", *TABLES)
def shape_arithmetic(x):
    n, d = x.shape
    return x.reshape(n * d), x.sum() / n, torch.zeros(n + 1, d * 2), n * 2 + 1, n / d


@case("shape in conditions", *TABLES, search=1)
def shape_conditions(x):
    if x.shape[0] > 4:
        return x[:4]
    if x.size(0) == 3 and len(x) % 2:
        return x * 2
    return x


@case("loop over shape", *TABLES)
def shape_loop(x):
    total = x[0] * 0
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


@case("shape unpacked and rebuilt", *TABLES)
def shape_rebuilt(x):
    return x.view(*x.shape[:-1], 2, 2), x.new_zeros(x.shape), torch.ones(x.size())


@case("indexing by a number read off a tensor", *[(normal(4, 2), num(n)) for n in (0, 2, -1)])
def index_by_number(x, n):
    k = int(n)
    return x[k], x[n], x[:, 1][k], x[k, 1]


@family.scenario("indexing out of range raises")
def index_error():
    converted = dy2static.to_static(lambda x, n: x[n.item()])
    converted(normal(4, 2), num(1))
    with pytest.raises(IndexError, match="9"):
        converted(normal(4, 2), num(9))


@case("slicing by numbers read off tensors", *[(normal(5, 2), num(a), num(b)) for a, b in ((0, 3), (2, 5), (4, 1),
      (-2, 9))])
def slice_by_numbers(x, a, b):
    y = x[int(a):int(b)]
    return y, y.shape[0], y.sum()


@case("tuple indexed by a number read off a tensor", *[(num(n),) for n in (0, 1, -1)])
def tuple_index(n):
    k = n.item()
    return (10, 20, 30)[k], ["a", "b", "c"][k], "xyz"[k]


@case("tuple index out of range raises", (num(1),), (num(5),), idle=1)
def tuple_index_error(n):
    return (1, 2)[int(n)]


@case("sizes from numbers", *[(vec(1.0), num(n)) for n in (1, 3, 6)])
def made_by_size(x, n):
    k = int(n)
    return torch.zeros(k), torch.arange(k) + 1, x.expand(k), torch.ones(k, 2).sum(0), torch.full((k,), k)


@case("masks and nonzero", (vec(1, -1, 2),), (vec(-1, -1, -2),), (vec(1, 1, 2),))
def masks(x):
    kept = x[x > 0]
    where = (x > 0).nonzero()
    return kept, kept.numel(), where, kept.sum()


@case("masks and nonzero", (vec(1, -1, 2),), (vec(-1, -1, -2),))
def empty_mask(x):
    kept = x[x > 0]
    if kept.numel() == 0:
        return x
    return kept.max()


@case("unique and topk", (ints(1, 1, 2),), (ints(1, 2, 3),))
def unique(x):
    u = torch.unique(x)
    return u, u.shape[0], x.topk(2)[0]


@case("chained dtypes", *BOTH)
def conversions(x):
    return x.int(), x.to(torch.float64), x.long().float(), x.type(torch.int32), x.half().float(), x.bool()


@case("dtype and device questions", *BOTH)
def questions(x):
    if x.dtype == torch.float32 and x.device.type == "cpu" and not x.is_cuda:
        return x * 2, str(x.dtype)
    return x


@case("numbers go back into tensors", *FLOATS)
def back_into_tensors(t):
    v = t.item()
    return torch.tensor(v), torch.tensor([v, v * 2]), torch.full((2,), v), t.new_tensor([v])


@case("numbers that join become tensors", *BOTH)
def joined_into_tensor(x):
    k = 1 if x.sum() > 0 else 2
    return torch.tensor(k), torch.tensor([k, 3])


@case("NumPy", *BOTH)
def numpy(x):
    return torch.from_numpy(np.tanh(x.detach().numpy())) + x


@case("print", *BOTH)
def prints(x):
    if x.sum() > 0:
        print("positive", int(x.sum()))
    return x


@case("range objects", *[(num(n),) for n in (0, 3, 5)])
def ranges(n):
    r = range(int(n))
    return len(r), list(r), sum(r), 2 in r


@case("list of a tensor", *BOTH)
def lists(x):
    return list(x), tuple(x), len(list(x))


@case("string methods on joined text", *BOTH)
def string_methods(x):
    name = "up" if x.sum() > 0 else "down"
    return name.upper(), name.startswith("u"), name.replace("u", "_"), "-".join([name, "x"]), name[0]


@case("int of a string", *BOTH)
def int_of_string(x):
    digits = "12" if x.sum() > 0 else "7"
    return int(digits) + 1, float(digits)


@case("complex numbers read off tensors", *[(num(v),) for v in (1.0, -2.0)], refused="D2S263")
def complex_numbers(t):
    z = complex(t.item(), 1)
    return z.real, z.imag, abs(z)


@case("inf and nan", *[(num(v),) for v in (float("inf"), float("nan"), 1.0)])
def infinities(t):
    v = t.item()
    return v - v, v == v, v > 1e300, v * 0, min(v, 0.0), max(0.0, v)
