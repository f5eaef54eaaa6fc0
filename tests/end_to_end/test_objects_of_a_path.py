"""Objects that one path makes and changes: other paths do not have them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from tests.end_to_end.oracle import check


@dataclass
class Record:
    value: object
    count: int = 0


class Box:
    def __init__(self, v):
        self.v = v
        self.n = 0


def made_and_dropped(x):
    if x.sum() > 0:
        pass
    else:
        r = Record(x * 2, (x > 0).sum().item())
        r.count += 1
    return x


def made_again(x):
    r = Record(x, 1)
    if x.sum() > 0:
        r.count += 2
    else:
        r = Record(x * 2, (x > 0).sum().item())
        r.count += 1
    return r.value, r.count


def made_on_both(x):
    if x.sum() > 0:
        r = Box(x)
    else:
        r = Box(x * 2)
        r.n = (x > 0).sum().item()
        r.n += 1
    r.n += 1
    return r.v, r.n


def an_attribute_leaves(x):
    keep = []
    if x.sum() > 0:
        keep.append(1)
    else:
        r = Box(x * 2)
        r.n = (x > 0).sum().item()
        r.n += 1
        keep.append(r.n)
    return keep


def becomes_an_attribute(x):
    b = Box(x)
    b.child = Box(x)
    if x.sum() > 0:
        pass
    else:
        r = Box(x * 2)
        r.n = (x > 0).sum().item()
        r.n += 1
        b.child = r
        r.n += 3
    return b.child.n, b.child.v


PROGRAMS = (made_and_dropped, made_again, made_on_both, an_attribute_leaves, becomes_an_attribute)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_object(program):
    check(program, (torch.ones(3),), (-torch.ones(3),), (torch.tensor([1.0, -3.0, 0.5]),))
