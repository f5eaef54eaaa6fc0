"""Attributes that only some paths set or delete, and objects made anew by a join or by code that is not converted."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from runtime.errors import TraceError
from tests.oracle import check


@dataclasses.dataclass
class Pair:
    a: object
    b: object = 1


class Plain:
    pass


def vec(*values):
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


BOTH = ((vec(1.0, 2.0),), (vec(-1.0, -2.0),))


def returned(x):
    o = Plain()
    o.a = x
    if x.sum() > 0:
        o.b = x * 2
    return o


def asked_for(x):
    o = Plain()
    o.a = x
    if x.sum() > 0:
        o.b = x * 2
    if hasattr(o, "b"):
        return o.b
    return o.a, getattr(o, "b", None), getattr(o, "b", x)


def set_where_missing(x):
    o = Plain()
    if x.sum() > 0:
        o.b = x * 2
    if not hasattr(o, "b"):
        o.b = x + 1
    return o.b, o


def deleted_in_a_branch(x):
    o = Plain()
    o.a, o.b = x, x * 2
    if x.sum() > 0:
        del o.b
    return o, hasattr(o, "b")


def deleted_after(x):
    o = Plain()
    o.a = x
    if x.sum() > 0:
        o.b = x * 2
    del o.b
    return o


def set_in_a_loop(x):
    o, i = Plain(), torch.tensor(0)
    while i < x.sum():
        o.b = x * i
        i = i + 1
    return o, getattr(o, "b", 7)


def one_of_two_objects(x):
    o, p = Plain(), Plain()
    o.b = x
    q = o if x.sum() > 0 else p
    return hasattr(q, "b"), getattr(q, "b", None)


def a_name_chosen(x):
    name = "relu" if x.sum() > 0 else "tanh"
    return getattr(torch, name)(x)


def joined_dataclass_is_written(x):
    p = Pair(x, 1) if x.sum() > 0 else Pair(x * 2, None)
    q = p.a
    if p.b is None:
        p.b = 5
    p.a = p.a + 1
    return p, q, p.b


def more_than_its_fields(x):
    p = Pair(x, 1)
    if x.sum() > 0:
        p.extra = x * 3
    return p, hasattr(p, "extra")


def made_by_the_standard_library(x):
    p = Pair(x, 1)
    q = dataclasses.replace(p, b=2)
    if x.sum() > 0:
        q.b = x * 3
    return p, q


@pytest.mark.parametrize("function", [
    returned, asked_for, set_where_missing, deleted_in_a_branch, deleted_after, set_in_a_loop, one_of_two_objects,
    a_name_chosen, joined_dataclass_is_written, more_than_its_fields, made_by_the_standard_library,
])  # fmt: skip
def test_as_eager(function):
    check(function, *BOTH)


def by_vars(x):
    o = Plain()
    if x.sum() > 0:
        o.b = x * 2
    return len(vars(o))


def by_dir(x):
    o = Plain()
    if x.sum() > 0:
        o.b = x * 2
    return "b" in dir(o)


def by_dict(x):
    o = Plain()
    if x.sum() > 0:
        o.b = x * 2
    return "b" in o.__dict__


@pytest.mark.parametrize("function", [by_vars, by_dir, by_dict])
def test_the_whole_namespace_is_refused(function):
    with pytest.raises(TraceError, match="D2S254.*attribute 'b' is only set on some paths"):
        check(function, *BOTH)


WITHOUT_SOURCE: dict[str, object] = {}
exec("def not_converted(o):\n    return o.n", WITHOUT_SOURCE)
not_converted = WITHOUT_SOURCE["not_converted"]


def test_attributes_in_code_that_is_not_converted():
    def f(x):
        o = Plain()
        o.n = 0
        if x.sum() > 0:
            o = Plain()
            o.n, o.other = 1, x
        return x * not_converted(o)

    with pytest.raises(TraceError, match="D2S210.*asked for its attribute 'n'"):
        check(f, *BOTH)
