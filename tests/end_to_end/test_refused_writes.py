"""In-place writes that PyTorch refuses for what the tensors are on some paths only: the Program raises on those."""

from __future__ import annotations

import pytest
import torch

import dy2static
from tests.end_to_end.oracle import check

# -- a leaf that requires grad -----------------------------------------------------------------------------------------


def leaf(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x
    a += 1
    return a


def view_of_a_leaf(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x[1:]
    a.mul_(2)
    return a


def leaf_of_some_iterations(x, y):
    a = x * 2
    for i in range((y > 0).sum()):
        a += 1
        if i == 1:
            a = x
    return a


def other_error_after_it(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x
        late = 1
    a += 1
    return a * late


def detached_leaf(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x.detach()
    a += 1
    return a


def without_gradients(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x
    with torch.no_grad():
        a += 1
    return a


@pytest.mark.parametrize(
    "function",
    [leaf, view_of_a_leaf, leaf_of_some_iterations, other_error_after_it, detached_leaf, without_gradients],
)
@pytest.mark.parametrize("requires_grad", [True, False])
def test_leaf_on_some_paths(function, requires_grad):
    x = torch.tensor([1.0, 2.0, -0.5], requires_grad=requires_grad)
    check(function, *[(x, torch.tensor(y)) for y in ([1.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])])


def test_a_tensor_that_becomes_a_leaf_is_met_again():
    static = dy2static.to_static(leaf)
    x, y = torch.ones(3, requires_grad=True), torch.ones(3)
    assert static(x * 1, y).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        static(x, y)
    assert x.tolist() == [1.0, 1.0, 1.0]


# -- other elements of the memory that is written ----------------------------------------------------------------------


def element_of_itself(x, y):
    c = x * 1
    c[[0, 2]] = (c if y.sum() > 0 else y)[0]
    return c


def shifted(x, y):
    c, d = x * 1, y * 1
    if y.sum() > 0:
        c = d
    c[1:] += d[:-1]
    return c, d


def whole_and_pointwise(x, y):
    c, d = x * 1, y * 1
    if y.sum() > 0:
        c = d
    c += d
    c.copy_(d)
    return c, d


def permuted(x, y):
    c, d = x * 1, y * 1
    if y.sum() > 0:
        c = d
    c[[2, 1, 0]] = d
    return c


def apart_or_not_by_iteration(x, y):
    c = x * 1
    d = c if y.sum() > 0 else y * 1
    for i in range(2):
        if y.sum() > i:
            c[:1] = d[1:2]
            c[: i + 1] = d[1 : i + 2]
    return c, d


def elements_apart(x, y):
    c = x * 1
    d = c if y.sum() > 0 else y * 1
    c[:1] = d[2:]
    return c, d


@pytest.mark.parametrize(
    "function", [element_of_itself, shifted, whole_and_pointwise, permuted, apart_or_not_by_iteration, elements_apart]
)
@pytest.mark.parametrize("requires_grad", [True, False])
def test_operand_that_is_the_written_memory_on_some_paths(function, requires_grad):
    x = torch.tensor([1.0, 2.0, -0.5], requires_grad=requires_grad)
    check(function, *[(x, torch.tensor(y)) for y in ([1.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])])
