"""``and``, ``or``, ``not``, comparisons and the builtins that decide."""

from __future__ import annotations

import torch

from tests.conformance.family import BOTH, EACH, NEG, POS, Family, ints, num, vec

family = Family("Booleans")
case = family.case
TWO = tuple((vec(a), vec(b)) for a in (1.0, -1.0) for b in (1.0, -1.0))
ZEROS = tuple((num(a), num(b)) for a in (0.0, 2.0) for b in (0.0, 3.0))


@case("and, or in a condition", *TWO)
def conditions(x, y):
    if x > 0 and y > 0:
        return x + y
    if x > 0 or y > 0:
        return x - y
    return x * y


@case("value of and", *ZEROS)
def value_of_and(a, b):
    return a and b


@case("value of or", *ZEROS)
def value_of_or(a, b):
    return a or b


@case("value of a longer chain", *ZEROS)
def value_of_chain(a, b):
    return a and b or a - 1, a or b or 5, (a and 1) or "none"


@case("value of or with None", *BOTH)
def default_by_or(x):
    limit = None
    if x.sum() > 0:
        limit = 0
    return x * (limit or 3), limit or "unset"


@case("right side is lazy", (vec(0.0), num(0)), (vec(3.0), num(2)), (vec(3.0), num(0)))
def lazy(x, n):
    if n > 0 and 6 // int(n) > 2:
        x = x * 2
    return x


@case("right side with a side effect", *TWO)
def lazy_effect(x, y):
    seen = []

    def note(v):
        seen.append(1)
        return v > 0

    if note(x) and note(y):
        x = x * 2
    return x, seen


@case("right side of or is lazy", (vec(1.0),), (vec(-1.0),))
def lazy_or(x):
    y = None
    if x < 0:
        y = x * 2
    if y is None or y.sum() > 0:
        return x
    return y


@case("not", *BOTH)
def negated(x):
    if not x.sum() > 0:
        return x * 2
    return x, not x.sum(), not 0


@case("not of a list, a string, None", *BOTH)
def negated_values(x):
    items, text = [], "a"
    if x.sum() > 0:
        items, text = [1], ""
    return not items, not text, not None


@case("chained comparison", *[(vec(v),) for v in (-1.0, 0.5, 2.0)])
def chained(x):
    if 0 < x < 1:
        return x * 2
    return x


@case("chained comparison", *[(num(v),) for v in (1, 3, 5, 9)], idle=2)
def chained_long(n):
    return 0 < n < 4 <= n + 1 < 7, 1 <= n.item() != 3


@case("middle of a chained comparison is evaluated once", *[(num(v),) for v in (1, 3, 9)])
def chained_once(n):
    calls = []

    def middle():
        calls.append(1)
        return n

    if 2 < middle() < 8:
        n = n * 2
    return n, calls


@case("in and not in", *[(num(v),) for v in (1, 2, 7)])
def membership(n):
    k = int(n)
    if k in (1, 2, 3):
        return n * 2
    return n, k not in [7, 8]


@case("in with keys and text", *BOTH)
def membership_text(x):
    mode = "train" if x.sum() > 0 else "eval"
    return mode in {"train": 1}, "ai" in mode, mode not in ("a", "eval")


@case("in a tensor", (ints(1, 2, 3),), (ints(4, 5, 6),))
def in_tensor(x):
    if 2 in x:
        return x * 2
    return x


@case("is and is not", *BOTH)
def identity(x):
    y = x if x.sum() > 0 else None
    if y is not None:
        return y * 2
    return x, y is None, x is x


@case("any and all of tensors in a list", (vec(1, 2),), (vec(-1, 2),), (vec(1, -2),), (vec(-1, -2),))
def any_all(x):
    if all(v > 0 for v in x):
        return x * 2
    if any(v > 0 for v in x):
        return x * 3
    return x


@case("any and all of a list", *TWO)
def any_all_list(x, y):
    flags = [x > 0, y > 0]
    return any(flags), all(flags), all([]), any([])


@case("tensor.any() and tensor.all()", (vec(1, 2),), (vec(-1, 2),), (vec(-1, -2),))
def tensor_any(x):
    if (x > 0).all():
        return x * 2
    elif (x > 0).any():
        return x * 3
    return x


@case("min and max of tensors", (vec(1.0), vec(2.0)), (vec(2.0), vec(1.0)), (vec(2.0), vec(2.0)), search=1)
def min_max(x, y):
    return min(x, y), max(x, y), min([x, y, x + y])


@case("min and max with key and default", *TWO, search=1)
def min_max_key(x, y):
    return min([x, y], key=lambda v: -v), max([], default=3), max(x, y, key=abs)


@case("min and max of numbers read off tensors", *[(num(v),) for v in (-5, 0, 9)])
def min_max_numbers(n):
    k = int(n)
    return min(k, 3), max(k, 1.5), min(max(k, 0), 4), max(range(4), key=lambda v: abs(v - k))


@case("sum", *BOTH)
def sums(x):
    return sum(x), sum([x, x * 2]), sum([1, 2], 10), sum([x], x)


@case("sorted", (vec(3.0, 1.0, 2.0),), (vec(1.0, 2.0, 3.0),), search=1)
def sorts(x):
    return [v * 1 for v in sorted(x)], [v * 1 for v in sorted(x, reverse=True)]


@case("sorted with a key", (vec(3.0, -1.0, 2.0),), (vec(1.0, -2.0, 3.0),), search=1)
def sorts_by_key(x):
    return sorted(x, key=lambda v: v.abs())[0] * 1


@case("sorted numbers", *[(num(v),) for v in (1, 3, 9)], idle=1)
def sorts_numbers(n):
    k = n.item()
    return sorted([5, k, 2]), sorted((k, 2), reverse=True)


@case("abs and round", *[(num(v),) for v in (-2.5, 0.5, 1.26)])
def abs_round(x):
    v = x.item()
    return abs(x), abs(v), round(v), round(v, 1), round(x)


@case("divmod and pow", *[(num(v),) for v in (-7, 7, 2)])
def divmods(n):
    k = int(n)
    return divmod(k, 3), pow(k, 2), k ** 3, k % 5, -k // 2, pow(k, 2, 5)


@case("bit operators of ints", *[(num(v),) for v in (-6, 0, 5)])
def bits(n):
    k = n.item()
    return k & 3, k | 8, k ^ 1, ~k, k << 2, k >> 1


@case("if of a tensor follows PyTorch", (num(0.0),), (num(3.0),), (vec(float("nan")),), (vec(0.0),), (vec(0.0,
      1.0),), (vec(),), idle=2)
def truth(x):
    if x:
        return 1
    return 0


@case("while of a tensor", *[(num(v),) for v in (0, 1, 4)])
def while_truth(n):
    total = 0
    while n:
        total = total + n
        n = n - 1
    return total


@case("conditional expression", *TWO)
def conditional(x, y):
    return x if x > y else y, 1 if x > 0 else 2.0, ("a" if y > 0 else "b") + "c"


@case("conditional expression is lazy", (num(0),), (num(2),))
def conditional_lazy(n):
    k = int(n)
    return 10 // k if k != 0 else 0


class Truthy:
    def __init__(self, log):
        self.log = log

    def __bool__(self):
        self.log.append("asked")
        return True


@case("__bool__ of a user's class is asked once", *BOTH)
def asked_once(x):
    log = []
    if Truthy(log) and not Truthy(log):
        x = x + 1
    k = 1 if Truthy(log) else 2
    assert Truthy(log)
    if x.sum() > 0:
        x = x * k
    return x, log


@case("xor of flags", *TWO)
def flags(x, y):
    a, b = bool(x > 0), bool(y > 0)
    return a ^ b, a & b, a | b, a == b, a + b, a is True


@case("comparison of numbers read off tensors", *[(num(v),) for v in (0, 1, 2)])
def comparisons(n):
    k = n.item()
    return k == 1, k != 1, k < 1, k <= 1, k > 1, k >= 1, k == 1.0, k == "1", k is None


@case("assert", *EACH)
def asserts(x):
    assert x.sum() > 0, f"sum is {x.shape[0]}"
    return x * 2


@case("torch.where, equal, allclose", (POS, POS), (POS, NEG), search=1, idle=4)
def torch_functions(x, y):
    if torch.equal(x, y):
        return torch.where(x > 1, x, y)
    if torch.allclose(x, -y):
        return x * 3
    return y


@case("torch.is_tensor and torch.numel", *BOTH)
def torch_questions(x):
    return torch.is_tensor(x), torch.numel(x), x.is_floating_point(), torch.is_grad_enabled(), x.requires_grad
