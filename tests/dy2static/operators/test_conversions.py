"""Tensors of Python data whose dtype, device or flags a path or the run decides."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import check

KINDS = [torch.float64, torch.int64]
MAKERS = {
    "tensor": torch.tensor, "as_tensor": torch.as_tensor, "asarray": torch.asarray,
    "new_tensor": lambda data, dtype: torch.ones(2).new_tensor(data, dtype=dtype),
}  # fmt: skip
DATA = {
    "plain": lambda x: [1, 2], "number of the run": lambda x: [int(x.sum() > 0), 2], "size": lambda x: len(x),
    "one of two": lambda x: [1, 2] if x[0] > 0 else [3.0], "floats": lambda x: (x[0].item(), 0.5),
}  # fmt: skip


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_dtype_of_a_path(make, data):
    def f(x):
        kind = torch.float32 if x.sum() > 0 else torch.float64
        given = make(data(x), dtype=kind)
        return given * 2, given.dtype

    check(f, (torch.ones(3),), (-torch.ones(3),))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_dtype_of_a_path_or_none(make):
    def f(x):
        kind = torch.float64 if x.sum() > 0 else None
        given = [x[0].item(), 2.0]
        return make(given, dtype=kind)

    check(f, (torch.ones(3),), (-torch.ones(3),))


def test_dtype_by_a_number():
    check(lambda x: torch.tensor([1, 2], dtype=KINDS[int(x.sum() > 0)]), (torch.ones(3),), (-torch.ones(3),))


def of_a_device(x):
    return torch.tensor([1.0], device="cpu" if x.sum() > 0 else "meta").device.type


def needs_a_gradient(x):
    return torch.tensor([1.0], requires_grad=bool(x.sum() > 0)) * 2


def asked_for_a_gradient(x):
    flag = True if x.sum() > 0 else False
    return torch.tensor([1.0], requires_grad=flag).requires_grad


def copied(x):
    data = torch.asarray([1.0, 2.0], copy=bool(x.sum() > 0), dtype=torch.float32)
    data[0] = 3
    return data


@pytest.mark.parametrize("function", [of_a_device, needs_a_gradient, asked_for_a_gradient, copied])
def test_flags(function):
    check(function, (torch.ones(3),), (-torch.ones(3),))


def test_they_take_one_argument():
    check(lambda x: torch.as_tensor([x[0].item()], torch.float64), (torch.ones(3),))


@pytest.mark.parametrize("function, name", [(torch.asarray, "obj"), (torch.as_tensor, "data"), (torch.tensor, "data")])
def test_data_by_name(function, name):
    check(lambda x: function(**{name: [x[0].item(), 2.0]}), (torch.ones(3),), (-torch.ones(3),))
    check(lambda x: function(**{name: len(x), "dtype": torch.float64 if x.sum() > 0 else torch.float32}),
          (torch.ones(3),), (-torch.ones(3),))
