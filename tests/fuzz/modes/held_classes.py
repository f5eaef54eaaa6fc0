"""Classes and functions that a program finds in what is around it, and how they change between two calls."""

from __future__ import annotations

HEAD = '''import array, collections, contextvars, copy, dataclasses, datetime, decimal, enum, fractions, functools
import itertools, math, operator, pathlib, re, threading, types, typing, uuid, weakref
import numpy as np
import torch
import dy2static
Pair = collections.namedtuple("Pair", "a b")
TABLE = {"k": 2.0}
TENSOR = torch.ones(3) * 3
class Meta(type):
    of_meta = 4
    def __call__(cls, *args):
        return super().__call__(*args)
class Base:
    factor = 2
    def total(self):
        return self.a + 1
    @property
    def both(self):
        return self.a * 2
    @classmethod
    def of_class(cls):
        return cls.factor
    def scaled(self, t):
        return t * self.factor
    def __call__(self, v):
        return v * self.factor
    def __len__(self):
        return int(self.a)
class Plain(Base):
    def __init__(self, a=1, b=2):
        self.a, self.b = a, b
    def total(self):
        return super().total() * 2
class Made(Plain, metaclass=Meta):
    factor = 3
class Other(Plain):
    factor = 5
    def total(self):
        return 100
@dataclasses.dataclass(order=True)
class Record:
    a: object = 1
    b: object = 2.0
    factor = 7
    def total(self):
        return self.a
@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object = 1
    b: object = 2.0
class Slotted:
    __slots__ = ("a", "b", "more")
    def __init__(self, a, b):
        self.a, self.b = a, b
class Equal(Plain):
    def __eq__(self, other):
        return self.a == getattr(other, "a", other)
    def __hash__(self):
        return int(self.a)
    def __bool__(self):
        return self.a != 3
    def __repr__(self):
        return f"E({self.a})"
    def __add__(self, other):
        return self.a + other
    def __radd__(self, other):
        return other - self.a
    def __matmul__(self, other):
        return [self.a, other]
    def __enter__(self):
        return self.a
    def __exit__(self, *error):
        return None
    def __iter__(self):
        return iter((self.a, self.b))
    def __getitem__(self, key):
        return self.b
    def __contains__(self, key):
        return key == self.a
class Counted(Plain):
    @functools.cached_property
    def both(self):
        return self.a * 3
class Dynamic(Plain):
    def __getattr__(self, name):
        if name.startswith("missing"):
            return self.b
        if name == "more" and self.__dict__.get("a") == 3:
            return 12
        raise AttributeError(name)
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
class Typed(typing.TypedDict):
    a: object
    b: object
class Color(enum.Enum):
    RED = 1
    BLUE = 2
class Level(enum.IntEnum):
    LOW = 1
class Holder:
    @staticmethod
    def static(t, k=2.0):
        return t - k
    @classmethod
    def of_class(cls, t):
        return t * cls.number
    number = 3.0
BOX = Plain(2, 3)
def doubled(t):
    return t * TABLE["k"]
def scaled(t, k=2.0):
    return t * (k if not isinstance(k, list) else k[0])
def picked(t, *, k=3.0):
    return t + k
@functools.cache
def cached(t):
    return t * 2
def wrap(g):
    @functools.wraps(g)
    def inner(*args):
        return g(*args) + 1
    return inner
wrapped = wrap(scaled)
class Caller:
    k = 2.0
    def __call__(self, t):
        return t * self.k
CALLER = Caller()
class Func(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t * 3
    @staticmethod
    def backward(ctx, grad):
        return grad * 3
@dy2static.not_to_static
def left_alone(t):
    return t * TABLE["k"]
def apply(g, t):
    return g(t)
def twice(g):
    return lambda t: g(g(t))
def entered(one, t):
    with one as number:
        return t * number
def matched(one, t):
    match one:
        case Plain(a=1):
            return t * 2
        case Record(a=1, b=b):
            return t * b
        case {"a": 1}:
            return t * 4
        case (1, _):
            return t * 5
    return t
def noted(value):
    return len(repr(value))
@dy2static.not_to_static
def noted_alone(value):
    return repr(value)
'''

CHANGES = (
    "Base.factor = 6", "Plain.factor = 8", "del Plain.factor", "Made.factor = 9", "Base.total = lambda self: 20",
    "Plain.total = lambda self: 30", "Base.both = property(lambda self: 40)", "Plain.scaled = lambda self, t: t * 50",
    "Base.of_class = classmethod(lambda cls: 60)", "Base.__call__ = lambda self, v: v * 70", "TABLE['k'] = 5.0",
    "Base.__len__ = lambda self: 8", "Equal.__eq__ = lambda self, other: True", "Equal.__hash__ = lambda self: 1",
    "Equal.__bool__ = lambda self: False", "Equal.__repr__ = lambda self: 'other'",
    "Equal.__add__ = lambda self, o: 90", "Equal.__radd__ = lambda self, o: 91",
    "Equal.__matmul__ = lambda self, o: 92", "Equal.__enter__ = lambda self: 93",
    "Equal.__iter__ = lambda self: iter((94, 95))", "Equal.__getitem__ = lambda self, key: 96", "Record.factor = 97",
    "Equal.__contains__ = lambda self, key: True", "Meta.of_meta = 98", "Record.total = lambda self: 99",
    "Dynamic.__getattr__ = lambda self, name: 7", "Counted.both = property(lambda self: 3)", "Holder.number = 4.0",
    "Holder.static = staticmethod(lambda t: t + 9)", "Holder.of_class = classmethod(lambda cls, t: t + 8)",
    "Plain.__init__ = lambda self, a=1, b=2: self.__dict__.update(a=5, b=6)",
    "Record.__eq__ = lambda self, other: True", "Frozen.__hash__ = lambda self: 5",
    "Func.forward = staticmethod(lambda ctx, t: t * 4)", "BOX.a = 9", "BOX.factor = 4", "Caller.k = 6.0",
    "CALLER.k = 7.0", "Caller.__call__ = lambda self, t: t - 5", "doubled.__defaults__ = ()",
    "doubled.__code__ = (lambda t: t * 11).__code__", "scaled.__defaults__ = (12.0,)", "TENSOR.mul_(2)",
    "Plain.__bases__ = (Base, Holder)", "Plain.__getattr__ = lambda self, name: 13",
    "Equal.__lt__ = lambda self, o: True", "Plain.__setattr__ = lambda self, name, value: None",
    "Record.__lt__ = lambda self, other: True", "Color.RED.tag = 3", "Slotted.a = property(lambda self: 14)",
    "Base.__getattribute__ = object.__getattribute__", "Plain.more = 15", "Meta.__call__ = lambda cls, *args: BOX",
    "Made.total = lambda self: 16", "BOX.scaled = lambda t: t * 17",
)  # fmt: skip
