"""Functions, methods and callables that converted code calls."""

from __future__ import annotations

import functools

import torch
from torch import nn

from tests.conformance.family import BOTH, EACH, NEG, POS, Family, normal, num, vec

family = Family("Calls")
case = family.case


def clip(x, low=-1.0, *, high=1.0):
    if x.max() > high:
        x = x * 0.5
    if x.min() < low:
        x = x + 1
    return x


@case("helper with defaults and keywords", *EACH, search=1)
def helpers(x):
    return clip(x) + clip(x, -2) + clip(x, high=0.5) + clip(low=0, x=x, high=3)


@case("recursion bounded by Python", *BOTH, search=1, idle=5)
def recursion(x, depth=3):
    if depth == 0:
        return x
    if x.sum() > 0:
        return recursion(x * 0.5, depth - 1) + x
    return recursion(x + 1, depth - 1)


@case("recursion bounded by a tensor", *BOTH)
def tensor_recursion(x):
    if x.sum() > 10:
        return x
    return tensor_recursion(x + 10)


def ping(x, n):
    return x if n == 0 else pong(x + 1, n - 1)


def pong(x, n):
    if x.sum() > 0:
        x = x * 2
    return x if n == 0 else ping(x - 1, n - 1)


@case("mutual recursion", *BOTH)
def mutual(x):
    return ping(x, 4)


def gather(*args, **kwargs):
    total = 0
    for a in args:
        if a.sum() > 0:
            total = total + a
    for key, value in kwargs.items():
        total = total * value if key == "scale" else total + value
    return total


@case("*args and **kwargs", *EACH, idle=4)
def variadic(x):
    parts = [x, -x]
    options = {"scale": 2, "bias": x}
    return gather(*parts, x * 2, **options), gather(x, bias=1)


@case("*args and **kwargs of the converted function", (POS, NEG), (NEG, POS))
def variadic_itself(x, *rest, k=2, **more):
    if x.sum() > 0:
        return x * k, len(rest), more
    return rest[0] * k, rest, more


def ordered(a, b, /, c, *, d=1):
    return a - b * c + d


@case("positional-only and keyword-only", *BOTH)
def parameter_kinds(x):
    if x.sum() > 0:
        return ordered(x, 1, c=2, d=3)
    return ordered(x, 1, 2)


@case("wrong arguments raise as in Python", (POS, 0), (POS, 1))
def wrong_arguments(x, k):
    if k:
        return ordered(x, 1, 2, 3)
    return ordered(x, 1, 2)


@case("default that is a tensor", *BOTH)
def tensor_default(x, w=torch.ones(3)):
    if x.sum() > 0:
        return x + w
    return x - w


@case("mutable default", *BOTH)
def default_in_helper(x):
    def collect(v, into=None):
        into = [] if into is None else into
        into.append(v)
        return into

    return collect(x), collect(x * 2)


@case("any name for self", *BOTH)
class OddSelf(nn.Module):
    def __init__(this):
        super().__init__()
        this.k = 2

    def forward(me, x):
        if x.sum() > 0:
            return x * me.k
        return me.other(x)

    def other(it, x):
        return x - it.k


@case("properties", *BOTH, idle=1)
class WithProperty(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    @property
    def scale(self):
        if self.w.sum() > 0:
            return self.w * 2
        return self.w

    def forward(self, x):
        return x * self.scale


@case("static and class methods", *BOTH)
class WithStatic(nn.Module):
    factor = 3

    @staticmethod
    def twice(x):
        if x.sum() > 0:
            return x * 2
        return x

    @classmethod
    def times(cls, x):
        if x.sum() > 0:
            return x
        return x * cls.factor

    def forward(self, x):
        return self.twice(x) + self.times(x) + WithStatic.twice(x)


class Scale:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        if x.sum() > 0:
            return x * self.k
        return x


@case("callable objects", *BOTH)
def callable_objects(x):
    return Scale(2)(x) + Scale(3)(-x)


@case("functools.partial", *BOTH)
def partials(x):
    f = functools.partial(clip, high=0.5)
    g = functools.partial(f, low=0)
    return f(x) + g(x)


def doubled(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result = function(*args, **kwargs)
        if result.sum() > 0:
            return result * 2
        return result

    return wrapper


@doubled
def decorated_helper(x):
    if x.max() > 1:
        return x - 1
    return x


@case("decorated helper", *EACH, search=1)
def decorated(x):
    return decorated_helper(x)


DECORATIONS = []


def registers(function):
    DECORATIONS.append(function.__name__)
    return function


@registers
def registered_helper(x):
    if x.sum() > 0:
        return x + 1
    return x


@family.scenario("decorators are never executed twice")
def decorators_once():
    import dy2static

    @registers
    def f(x):
        if x.sum() > 0:
            x = registered_helper(x)
        return x

    before = list(DECORATIONS)
    converted = dy2static.to_static(f)
    assert torch.equal(converted(POS), f(POS)) and torch.equal(converted(NEG), f(NEG))
    assert DECORATIONS == before


@case("lru_cache", *BOTH)
def cached(x):
    @functools.lru_cache(maxsize=None)
    def table(n):
        return n * 2

    return x * table(2) + table(2)


@torch.no_grad()
def frozen_helper(x):
    if x.sum() > 0:
        return x * 2
    return x


@case("torch.no_grad as a decorator", *BOTH)
def decorated_no_grad(x):
    return frozen_helper(x) * x


class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def step(self, x):
        if x.sum() > 0:
            return x + self.w
        return x - self.w

    def forward(self, x):
        return self.step(x)


class Trunk(Root):
    def step(self, x):
        x = super().step(x)
        if x.max() > 1:
            x = x * 2
        return x


class Branch(Trunk):
    def step(self, x):
        return super().step(x) + super(Trunk, self).step(x)


@case("super() three levels deep", *EACH)
class Leaf(Branch):
    def step(self, x):
        y = super().step(x)
        if y.min() < 0:
            return y * 3
        return y


@case("inherited forward", *EACH)
class Inherits(Root):
    pass


class Mixin:
    def forward(self, x):
        return super().forward(x) * 10


@case("cooperative super() in a mixin", *EACH)
class Mixed(Mixin, Root):
    pass


@case("map", *EACH)
def maps(x):
    a, b, c = map(lambda v: v * 2 if v > 0 else v, x)
    return a + b + c, list(map(lambda u, v: u * v, x, [1, 2, 3]))


@case("filter with a tensor condition", *EACH)
def filters(x):
    return list(filter(lambda v: v > 0, x))


@case("filter of Python values", *BOTH)
def filters_plain(x):
    return [x * k for k in filter(lambda k: k % 2, range(4))]


@case("zip, enumerate, reversed", *BOTH, idle=1)
def iteration_tools(x):
    total = 0
    for i, (a, b) in enumerate(zip(x, reversed(x)), start=1):
        if a > b:
            total = total + a * i
        else:
            total = total - b
    return total


@case("reversed range and sequences", *[(vec(1.0), num(n)) for n in (0, 3)])
def reversed_range(x, n):
    for i in reversed(range(n)):
        x = x * 2 + i
    return x


@case("functools.reduce", *EACH)
def reduces(x):
    return functools.reduce(lambda a, b: a if a > b else b, x)


@case("sorted with a key that decides", *BOTH)
def sorted_key(x):
    pairs = sorted([(2, x), (1, x * 2)], key=lambda p: p[0])
    return pairs[0][1]


@case("itertools", *BOTH)
def iter_tools(x):
    import itertools

    total = 0
    for a, b in itertools.product(range(2), [x, x + 1]):
        total = total + a * b
    return total, [x * k for k in itertools.islice(itertools.count(), 3)], list(itertools.chain([1], [2]))


@case("operator module", *BOTH)
def operator_module(x):
    import operator

    f = operator.mul if x.sum() > 0 else operator.add
    return f(x, 2), operator.itemgetter(0)([x])


@case("string and container methods", *BOTH)
def methods(x):
    d = {"a": x}
    if x.sum() > 0:
        d = {**d, "b": x * 2}
    return sorted(d.keys()), [v.sum() for v in d.values()], "-".join(d)


@case("closures over changing variables", *BOTH)
def closures(x):
    k = 1

    def scaled(v):
        return v * k

    a = scaled(x)
    if x.sum() > 0:
        k = 5
    return a, scaled(x)


@case("closures made in a loop", *BOTH)
def closures_in_loop(x):
    fs = [lambda v, k=k: v * k for k in range(3)]
    return sum(f(x) for f in fs)


@case("function passed as an argument", (POS,), (NEG,))
def higher_order(x):
    def apply(f, v, times):
        for _ in range(times):
            v = f(v)
        return v

    return apply(lambda v: v * 2 if v.sum() > 0 else v - 1, x, 3)


@case("immediately called lambda", *BOTH)
def immediate(x):
    return (lambda v, k=2: v * k if v.sum() > 0 else v)(x)


@case("star expressions in calls", *BOTH)
def stars(x):
    args = (1, 2) if x.sum() > 0 else (3, 4)
    return ordered(x, *args), torch.cat([*([x] * 2)])


@case("locally defined class", *BOTH)
def local_class(x):
    class Gate:
        limit = 0

        def __init__(self, k):
            self.k = k

        def __call__(self, v):
            if v.sum() > self.limit:
                return v * self.k
            return v

    return Gate(3)(x)


@case("locally defined module", *BOTH)
def local_module(x):
    class Twice(nn.Module):
        def forward(self, v):
            if v.sum() > 0:
                return v * 2
            return v

    return Twice()(x)


@case("torch.nn.functional and Tensor methods", *BOTH)
def functional(x):
    import torch.nn.functional as F

    if x.sum() > 0:
        return F.softmax(F.relu(x), dim=0)
    return F.layer_norm(x, (3,)).clamp(min=-1).tanh()


@case("einsum, matmul, indexing with tensors", (normal(3, 3),), (normal(3, 3, seed=4),), search=1)
def algebra(x):
    y = torch.einsum("ij,jk->ik", x, x)
    if y.trace() > 1:
        y = y @ x.T
    return y[torch.tensor([2, 0])], y.diagonal()


@case("scan with attention", (normal(2, 4, 3),), (normal(2, 4, 3, seed=1),))
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        y = nn.functional.scaled_dot_product_attention(self.q(x), self.k(x), x)
        if y.mean() > 0:
            y = y * 2
        return y
