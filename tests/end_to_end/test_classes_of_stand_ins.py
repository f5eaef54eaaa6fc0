"""What stands for values of the run says of itself what eager's value says, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests import oracle

LIKE_EAGER: dict[str, Callable[[torch.Tensor], Any]] = {
    "the name of a size's class": lambda x: (x.shape.__class__.__name__, x.shape.__class__ is torch.Size),
    "a size is of its class": lambda x: (x.shape.__class__ is type(x.shape), isinstance(x.shape, x.shape.__class__)),
    "the text of a size's class": lambda x: x.shape.__doc__,
    "one of two tensors": lambda x: [
        v := x if x.sum() > 0 else x.double(), v.__class__.__name__, v.__class__ is type(v)][1:],
    "names that classes have": lambda x: (
        hasattr(int(x.sum().detach()), "__dict__"), hasattr(float(x.sum().detach()), "real")),
    "names of numbers": lambda x: [hasattr(int(x.sum().detach()), one) for one in ("__call__", "__name__", "real")],
    "names of arrays": lambda x: [hasattr(x.detach().numpy(), one) for one in ("shape", "dtype", "ndim", "nothing")],
    "an array of a number": lambda x: [type(make(x.detach().numpy().sum())).__name__ for make in (
        np.asarray, np.array, np.asanyarray, np.atleast_1d)],
    "map and filter": lambda x: (
        isinstance(map(abs, x), map), isinstance(filter(None, [x.sum()]), filter), type(map(abs, x)).__name__,
        isinstance((y for y in x), map), type(y for y in x).__name__),
    "a node is called": lambda x: callable((x * 2).grad_fn),
    "a node is there": lambda x: ((x * 2).grad_fn is None, x.grad_fn is None, bool((x * 2).grad_fn)),
    "a node is itself": lambda x: [g := (x * 2).grad_fn, g is g][1],
    "a node is no number": lambda x: (x * 2).grad_fn == 3,
    "a node is one": lambda x: isinstance((x * 2).grad_fn, torch.autograd.graph.Node),
}
REFUSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "class": lambda x: (x * 2).grad_fn.__class__,
    "type": lambda x: type((x * 2).grad_fn).__name__,
    "text of the class": lambda x: (x * 2).grad_fn.__doc__,
    "identity": lambda x: [y := x * 2, y.grad_fn is y.grad_fn][1],
    "equality": lambda x: [y := x * 2, y.grad_fn == y.grad_fn][1],
    "key": lambda x: len({(x * 2).grad_fn: 1}),
    "next nodes": lambda x: hasattr((x * 2).grad_fn, "next_functions"),
    "call": lambda x: (x * 2).grad_fn(x),
}


@pytest.mark.parametrize("kind", LIKE_EAGER)
def test_as_eager(kind: str) -> None:
    for sign in (1, -1):
        oracle.check(LIKE_EAGER[kind], ((torch.ones(2, 3) * sign).requires_grad_(),))


MISTAKES: dict[str, Callable[[torch.Tensor], Any]] = {
    "a float for an index": lambda x: x[float(x.sum().detach())],
    "a float in an index": lambda x: x[None, float(x.sum().detach())],
    "str": lambda x: str(x, foo=1),
    "map": lambda x: list(map(abs, x, foo=1)),
    "vars": lambda x: vars(x.detach().numpy()),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_mistakes_are_told_in_the_same_words(kind: str) -> None:
    def caught(x: torch.Tensor) -> Any:
        try:
            return MISTAKES[kind](x)
        except IndexError as error:
            return str(error)

    for function in (MISTAKES[kind], caught):
        oracle.check(function, (torch.ones(3, requires_grad=True),))


@pytest.mark.parametrize("kind", REFUSED)
def test_what_only_a_graph_could_answer_is_refused(kind: str) -> None:
    with pytest.raises(TraceError, match="D2S213"):
        to_static(REFUSED[kind])(torch.ones(3, requires_grad=True))
