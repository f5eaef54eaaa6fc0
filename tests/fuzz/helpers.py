"""Functions and classes that random programs call: converted once for all of them."""

from __future__ import annotations

from collections import namedtuple
from contextlib import contextmanager
from dataclasses import dataclass

import torch

Pair = namedtuple("Pair", "first second")


@dataclass
class Record:
    value: object
    count: int = 0


def helper(a, limit):
    if a.sum() > limit:
        return a * 0.5
    for _ in range(2):
        a = a - 0.1
        if a.sum() < limit:
            break
    return a


def count_up(a, n):
    i = 0
    while i < n:
        a = torch.sin(a) + i
        i += 1
    return a, i


def recurse(a, n):
    if n <= 0:
        return a
    if a.sum() > 1:
        return recurse(a * 0.5, n - 1)
    return recurse(a + 0.25, n - 1) - 0.1


def variadic(*args, scale=1.0, **rest):
    result = args[0] * scale
    for other in args[1:]:
        if other.mean() > 0:
            result = result + other
    return result


def produce(a, n):
    for step in range(n):
        yield a * step
    yield a


def at_most(value, limit):
    if value > limit:
        raise ValueError("too large")
    return value


@contextmanager
def counted(box):
    yield box.hits + 1


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __enter__(self):
        return self.factor

    def __exit__(self, *error):
        self.factor = 0
        return False


class Base:
    def push(self, a):
        return a + 0.1

    @property
    def level(self):
        return 2 if self.value.sum() > 0 else 1

    @staticmethod
    def mix(a, b):
        return a + b if a.sum() > b.sum() else a - b


class Box(Base):
    def __init__(self, value):
        self.value = value
        self.hits = 0
        self.table = {"p": value, "n": 0}

    def push(self, a):
        a = super().push(a)
        if a.mean() > 0:
            self.value = self.value + a
            return self.value
        return a
