"""``raise ... from ...`` on paths: the cause, and whether a context is shown, are eager's."""

from __future__ import annotations

import pytest
import torch

import dy2static
from dy2static import to_static
from tests.oracle import same


class Unfit(ValueError):
    """A user's own."""


class Far(Exception):
    """One whose arguments are not those of its initialiser."""

    def __init__(self, n, t=None):
        super().__init__("far", n)
        self.n, self.t = n, t


def from_another(x):
    if x.sum() > 0:
        raise RuntimeError("outer") from KeyError("k", 3)
    return x


def from_a_number(x):
    if x.sum() > 0:
        raise Unfit("bad", x.sum().item()) from ZeroDivisionError(f"sum {x.sum().item():.1f}")
    return x


def from_none(x):
    if x.sum() > 0:
        raise ValueError("alone") from None
    return x


def plain(x):
    if x.sum() > 0:
        raise ValueError("plain")
    return x


def in_a_loop(x):
    while x.sum() > 0:
        x = x - 1
        if x.min() < 0:
            raise ArithmeticError("below") from Unfit("x")
    return x


def from_one_with_attributes(x):
    if x.sum() > 0:
        raise ValueError(2) from Far(3, [x.sum().item(), "text"])
    return x


def from_what_is_handled(x):
    try:
        if x.sum() > 0:
            raise Far(1)
    except Far as error:
        raise Unfit(2) from error
    return x


def always_from_one_with_attributes(x):
    raise ValueError(2) from Far(3)


def always_from_what_holds_a_tensor(x):
    raise ValueError(2) from Far(3, x * 2)


def always_while_handling(x):
    try:
        raise Far(1)
    except Far as error:
        error.n += 1
        raise Unfit(2)


def error_of(call, x):
    try:
        call(x)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("road", ["live", "loaded"])
@pytest.mark.parametrize("f", [
    from_another, from_a_number, from_none, plain, in_a_loop, from_one_with_attributes, from_what_is_handled,
])
def test_causes(f, road, needed, tmp_path):
    call = to_static(f)
    if road == "loaded":
        dy2static.save(f, tmp_path / "saved", input_spec=[dy2static.InputSpec([3])])
        call = dy2static.load(tmp_path / "saved")
    for values in ((1.0, 2.0, 0.5), (-1.0, -2.0, -3.0)):
        mine, theirs = (error_of(one, torch.tensor(values, requires_grad=needed)) for one in (call, f))
        if theirs is None:
            assert mine is None
            continue
        if road == "live" or type(theirs).__module__ == "builtins":
            assert type(mine) is type(theirs) and mine.args == theirs.args
            assert mine.__suppress_context__ == theirs.__suppress_context__
        if theirs.__cause__ is None:
            assert mine.__cause__ is None
        elif road == "live" or type(theirs.__cause__).__module__ == "builtins":
            assert type(mine.__cause__) is type(theirs.__cause__) and mine.__cause__.args == theirs.__cause__.args
            assert vars(mine.__cause__) == vars(theirs.__cause__) and str(mine.__cause__) == str(theirs.__cause__)


@pytest.mark.parametrize("name", ["__cause__", "__context__"])
@pytest.mark.parametrize("f", [always_from_one_with_attributes, always_while_handling, always_from_what_holds_a_tensor])
def test_causes_of_what_is_always_raised(f, name):
    mine, theirs = (getattr(error_of(one, torch.ones(3)), name) for one in (to_static(f), f))
    assert type(mine) is type(theirs)
    if theirs is not None:
        same((mine.args, vars(mine)), (theirs.args, vars(theirs)))
