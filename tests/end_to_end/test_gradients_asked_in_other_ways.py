"""Rarer arguments of ``torch.autograd.grad`` and ``backward``, and of NumPy's functions, as in eager or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dy2static import TraceError, to_static
from tests.oracle import check


def leaf() -> torch.Tensor:
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def more_gradients_than_values(w):
    return torch.autograd.grad(w * w, w, [w.detach(), w.detach()])


def more_gradients_for_backward(w):
    w = w.detach().requires_grad_()
    torch.autograd.backward([w * w], [torch.ones(3), torch.ones(3)])
    return w.grad * 1


def inputs_from_a_generator(w):
    w, v = (w.detach() + k for k in (1, 2))
    w.requires_grad_(), v.requires_grad_()
    (w * w * v).sum().backward(inputs=(one for one in (w,)))
    return w.grad * 1, v.grad


def inputs_from_an_empty_one(w):
    w = w.detach().requires_grad_()
    (w * w).sum().backward(inputs=iter(()))
    return w.grad


FUNCTIONS = [more_gradients_than_values, more_gradients_for_backward, inputs_from_a_generator, inputs_from_an_empty_one]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_in_eager(function: Any) -> None:
    check(function, (leaf(),), paths=("program",))


@pytest.mark.parametrize("out", [(None,), None, "an array"])
def test_numpy_is_given_a_place_to_write_to(out: Any) -> None:
    place = np.ones(3, np.float32) if out == "an array" else out

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.add(x.numpy(), 1, out=place))

    if out == "an array":
        with pytest.raises(TraceError, match="written to a NumPy array that the function did not make") as caught:
            to_static(function)(torch.ones(3))
        assert caught.value.code == "D2S213"
    else:
        check(function, (torch.ones(3),), paths=("program",))


def test_a_row_of_unknown_many_is_written() -> None:
    """What torch says of it names a number that only the run knows."""

    def function(w: torch.Tensor) -> torch.Tensor:
        y = w[w > 0] * 2
        for number, row in enumerate(y):
            if number > 0:
                row.add_(1)
        return y

    check(function, (leaf(),), (torch.tensor([1.0, 2.0, -1.0]),), paths=("program",))
