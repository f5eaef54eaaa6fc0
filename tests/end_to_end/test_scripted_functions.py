"""Functions under ``torch.jit.script`` that decide on tensors: the Python that they were made of is converted."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Optional

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")  # torch.jit is deprecated

CALLS = [[torch.tensor(values, requires_grad=True)] for values in ([1.0, 2.0, 3.0], [-1.0, 0.5, -3.0], [0.1, 0.1, 0.1])]


def scripted(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(function)


@scripted
def clipped(x: torch.Tensor, limit: float) -> torch.Tensor:
    if bool(x.norm() > limit):
        return x / x.norm() * limit
    return x


@scripted
def shrunk(x: torch.Tensor, most: int) -> torch.Tensor:
    count = 0
    while bool(x.norm() > 0.5) and count < most:
        x = x * 0.7
        count += 1
    return x * count


@scripted
def total(x: torch.Tensor, mask: Optional[torch.Tensor] = None) -> float:
    if mask is not None:
        x = x * mask
    if float(x.sum()) > 0.0:
        return float(x.sum())
    return -1.0


def inner(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        return x.sin()
    return x.cos()


@scripted
def nested(x: torch.Tensor) -> torch.Tensor:
    return inner(x) + clipped(x, 1.0)


@scripted
def written(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    if bool(y.sum() > 0):
        y.add_(1.0)
    y[0] = 2.0
    return y


@scripted
def with_lists(x: torch.Tensor) -> torch.Tensor:
    parts = [x, x * 2.0]
    if bool(x.sum([0]) > 0):
        parts.append(x * 3.0)
    return torch.stack(parts).sum([0])


@scripted
def raising(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() < 0):
        raise ValueError("negative")
    return x


@scripted
def printing(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() < 0):
        print("negative")
    return x


@scripted
def adding(x: torch.Tensor, items: list[float]) -> torch.Tensor:
    if bool(x.sum() < 0):
        items.append(1.0)
    return x * len(items)


def of_other_arguments(x):
    try:
        return clipped(x, "a")
    except RuntimeError:
        return x


@pytest.mark.parametrize("function", [
    lambda x: (clipped(x, 1), clipped(x, limit=0.5) * 2), lambda x: (shrunk(x, 3), shrunk(x, most=int((x > 0).sum()))),
    lambda x: (total(x), total(x, x), total(x, mask=None)), nested, with_lists, lambda x: written(x) * 2,
    of_other_arguments,
    lambda x: clipped(x, 1.0) if x.sum() > 0 else clipped(-x, 0.1),
])  # fmt: skip
def test_as_eager(function):
    check(lambda x: function(x), *CALLS)


@pytest.mark.parametrize("function", [raising, printing, lambda x: adding(x, [1.0])])
def test_what_python_does_otherwise_is_refused(function):
    with pytest.raises(TraceError, match="D2S292"):
        to_static(lambda x: function(x))(*CALLS[0])


LIBRARY = Path(torch.__file__).parent / "lib" / "libtorchbind_test.so"
"""Classes in C++ that PyTorch comes with for tests."""


def made_inside(x):
    counter = torch.classes._TorchScriptTesting._Foo(5, 3)
    counter.increment(1)
    return x + counter.info()


def on_a_path(x):
    counter = torch.classes._TorchScriptTesting._Foo(5, 3)
    if x.sum() > 0:
        counter.increment(1)
    return x


@pytest.mark.skipif(not LIBRARY.exists(), reason="the classes are not there")
@pytest.mark.parametrize("function", [made_inside, on_a_path])
def test_objects_of_classes_in_c_are_refused(function):
    torch.ops.load_library(str(LIBRARY))
    with pytest.raises(TraceError, match=r"D2S292[\s\S]*_TorchScriptTesting\._Foo[\s\S]*counter\.increment"):
        to_static(function)(torch.ones(2))
