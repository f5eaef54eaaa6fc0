"""Identities and lives of objects, NumPy's functions of staged numbers: as in eager, or refused where they stand."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check


class Thing:
    pass


def joined(x):
    y = x * 2
    if x.sum() > 0:
        y = x
    return y


def by_id(x):
    return id(joined(x)) == id(x)


def as_key(x):
    names = {id(x): 1}
    y = joined(x)
    return names.get(id(y), 7)


def in_a_set(x):
    y = joined(x)
    return y in {x}


def from_a_dict(x):
    y = joined(x)
    return {x: 1}.get(y, 2)


def dies_on_one_path(x):
    thing = Thing()
    reference = weakref.ref(thing)
    if x.sum() > 0:
        thing = None
    return thing is None, reference() is None


def of_int32(x):
    return x * (int(x.sum()) + np.int32(1))


def an_array(x):
    return np.ones(2, dtype=np.uint8) * int(x.sum())


@pytest.mark.parametrize("function,code", [
    (by_id, "D2S264"), (as_key, "D2S264"), (in_a_set, "D2S264"), (from_a_dict, "D2S264"),
    (dies_on_one_path, "D2S264"), (of_int32, "D2S210"), (an_array, "D2S210"),
])  # fmt: skip
def test_what_is_refused(function, code):
    with pytest.raises(TraceError, match=rf"{code}[\s\S]*test_identity.py.*{function.__name__}"):
        to_static(function)(torch.ones(3))


def objects(x):
    thing = Thing()
    reference = weakref.ref(thing)
    seen = {id(x), id(thing)}
    return id(x) in seen, reference() is thing, x in {x}, {x: 1}.get(x)


def numbers(x):
    total = x.sum().item()
    count = int(x.sum())
    return float(np.float64(2.0) * total - total), int(np.int64(3) * count), int(count - np.int64(3)), count < 5


@pytest.mark.parametrize("function", [objects, numbers])
def test_as_eager(function):
    check(function, (torch.ones(3),), (torch.ones(3) * 4,))
