"""``torch.zeros(3, out=r)``: what makes a tensor also sets whether the leaf that it is given needs a gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

FACTORIES: dict[str, tuple[Any, ...]] = {
    "arange": (3,), "range": (0, 2), "linspace": (0, 1, 3), "logspace": (0, 1, 3), "zeros": (3,), "ones": (3,),
    "full": ((3,), 2.0), "empty": (3,), "rand": (3,), "randn": (3,), "randint": (0, 5, (3,)), "randperm": (3,),
    "normal": (0.0, 1.0, (3,)),
}  # fmt: skip
GIVEN = {
    "an argument": lambda x: x, "detached": lambda x: x.detach(), "computed": lambda x: x * 2,
    "made here": lambda x: torch.zeros(3), "a leaf made here": lambda x: torch.zeros(3).requires_grad_(),
}  # fmt: skip
X = ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0])


@pytest.mark.filterwarnings("ignore:torch.range is deprecated:UserWarning")
@pytest.mark.sample(24)
@pytest.mark.parametrize("on_a_path", [False, True])
@pytest.mark.parametrize("grad_mode", [False, True])
@pytest.mark.parametrize("asked", [None, False, True])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("factory", FACTORIES)
def test_what_is_given_needs_a_gradient_as_in_eager(
    factory: str, given: str, asked: bool | None, grad_mode: bool, on_a_path: bool
) -> None:
    make, args, give = getattr(torch, factory), FACTORIES[factory], GIVEN[given]
    options: dict[str, Any] = {} if asked is None else {"requires_grad": asked}

    def f(x):
        r = give(x)
        if on_a_path:
            if x.sum() > 0:
                with torch.set_grad_enabled(grad_mode):
                    make(*args, out=r, **options)
        else:
            with torch.set_grad_enabled(grad_mode):
                make(*args, out=r, **options)
        if factory == "empty":
            with torch.no_grad():
                r.zero_()
        return r.requires_grad, x.requires_grad, r * 1, x * 1

    for gradient in (False, True):
        try:
            check(f, *[(torch.tensor(x, requires_grad=gradient),) for x in X], paths=("program",))
        except TraceError as error:
            assert error.code in ("D2S213", "D2S220", "D2S222"), error


@pytest.mark.filterwarnings("ignore:torch.range is deprecated:UserWarning")
def test_range_tells_no_mode_and_works() -> None:
    def f(x):
        t = torch.range(0, 2, requires_grad=True)
        return t.requires_grad, (t * x).requires_grad, torch.range(0, int(x.abs().sum())) * 2

    check(f, *[(torch.tensor(x),) for x in X])


@pytest.mark.parametrize("grad_mode", [False, True])
def test_one_of_two_that_need_no_gradient(grad_mode: bool) -> None:
    """Nothing is asked about graphs where there are none."""

    def f(x):
        a, b = torch.zeros(3), x.detach() * 2
        r = a if x.sum() > 0 else b
        for _ in range(2):
            if x[0] > 0:
                r = b
            with torch.set_grad_enabled(grad_mode):
                torch.arange(3, out=r)
        return r * 1, b * 1, r.requires_grad

    check(f, *[(torch.tensor(x, requires_grad=True),) for x in X], paths=("program",))


def test_a_leaf_of_the_callers_is_left_alone() -> None:
    x = torch.ones(3, requires_grad=True)

    @to_static
    def f(x):
        with torch.no_grad():
            return torch.arange(3, out=x)

    with pytest.raises(TraceError, match=r"D2S213.*changes an argument"):
        f(x)
    assert x.requires_grad and x.tolist() == [1, 1, 1]


WRITES = {
    "fill_": lambda r, x: r.fill_(1), "+=": lambda r, x: r.add_(x), "a part": lambda r, x: r[1:].mul_(2),
    "an index": lambda r, x: r.__setitem__(0, 1.0), "out": lambda r, x: torch.sin(x, out=r),
    "detached": lambda r, x: r.detach().add_(1), "data": lambda r, x: r.data.add_(1),
    "logical": lambda r, x: r.logical_not_(),
}  # fmt: skip
LEAVES = {
    "requires_grad_": lambda x: torch.zeros(3).requires_grad_(),
    "a factory": lambda x: torch.ones(3, requires_grad=True),
    "a Parameter": lambda x: torch.nn.Parameter(torch.ones(3)),
    "on some paths": lambda x: torch.ones(3, requires_grad=True) if x.sum() > 0 else torch.ones(3),
    "or computed": lambda x: torch.ones(3, requires_grad=True) if x.sum() > 0 else x * 2,
}  # fmt: skip


@pytest.mark.parametrize("grad_mode", [False, True])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("leaf", LEAVES)
def test_leaves_made_here_may_not_be_written_while_gradients_are_recorded(
    leaf: str, write: str, grad_mode: bool
) -> None:
    make, store = LEAVES[leaf], WRITES[write]

    def f(x):
        r = make(x)
        with torch.set_grad_enabled(grad_mode):
            store(r, x)
        return r * x

    for gradient in (False, True):
        try:
            check(f, *[(torch.tensor(x, requires_grad=gradient),) for x in X], paths=("program",))
        except TraceError as error:
            assert error.code in ("D2S213", "D2S220", "D2S222"), error
