"""The trial run of a new Program (D2S291): operators whose rules lie are found, what the user's code raises is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.library import Library, register_fake

import dy2static
from runtime.errors import InternalError

LIBRARY = Library("test_trial_runs", "DEF")  # noqa: TOR901  # kept for the whole run
OPS = torch.ops.test_trial_runs

LIES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dtype": lambda x: torch.empty_like(x, dtype=torch.float64),
    "shape": lambda x: x.new_empty(x.shape[0] + 1, *x.shape[1:]),
    "rank": lambda x: x.new_empty(*x.shape, 1),
}
for name, rule in LIES.items():
    LIBRARY.define(name + "(Tensor x) -> Tensor")
    LIBRARY.impl(name, lambda x: x * 2, "CPU")
    register_fake(f"test_trial_runs::{name}", rule, lib=LIBRARY)


def converted(operator: Callable[[torch.Tensor], Any], where: str) -> Any:
    """A function that applies an operator, on the main path or in a construct."""

    def plain(x: torch.Tensor) -> Any:
        return operator(x + 1)

    def branch(x: torch.Tensor) -> Any:
        y = x
        if x.sum() < 10:
            z = operator(x)
            y = y + z.sum().float()
        return y

    def loop(x: torch.Tensor) -> Any:
        total = x.sum() * 0
        while total < 1:
            total = total + operator(x).sum().float().abs() + 1
        return total

    functions = {"plain": plain, "branch": branch, "loop": loop}
    return dy2static.to_static(functions[where], input_spec=[dy2static.InputSpec([2, 3])])


@pytest.mark.parametrize("where", ["plain", "branch", "loop"])
@pytest.mark.parametrize("lie", LIES)
def test_a_rule_that_lies(lie: str, where: str, tmp_path: Path) -> None:
    operator = getattr(OPS, lie)
    with pytest.raises(InternalError, match="a trial run of the Program") as caught:
        dy2static.save(converted(operator, where), tmp_path / "f.d2s")
    assert caught.value.code == "D2S291" and caught.value.location is not None
    assert "operator(x" in caught.value.location.text
    assert not (tmp_path / "f.d2s").exists()
    with pytest.raises(InternalError, match="a trial run of the Program") as caught:
        converted(operator, where).concrete_program()
    assert caught.value.code == "D2S291"


def raises(x: torch.Tensor) -> Any:
    if x.sum() < 10:
        raise ValueError("small")
    return x * 2


def asserts(x: torch.Tensor) -> Any:
    assert x.sum() > 1000, "small"
    return x * 2


def type_error(x: torch.Tensor) -> Any:
    if x.sum() < 10:
        raise TypeError("mine")
    return x * 2


def no_inverse(x: torch.Tensor) -> Any:
    return torch.linalg.inv((x * 0) @ x.t())


def out_of_range(x: torch.Tensor) -> Any:
    return x[(x.sum() * 0).int().item() + 7]


@pytest.mark.parametrize("f", [raises, asserts, type_error, no_inverse, out_of_range])
def test_what_the_users_code_raises(f: Callable[[torch.Tensor], Any], tmp_path: Path) -> None:
    static = dy2static.to_static(f, input_spec=[dy2static.InputSpec([2, 3])])
    static.concrete_program()  # the example leads to the exception, which is no failure
    dy2static.save(static, tmp_path / "f.d2s")
    with pytest.raises(Exception) as eager:  # whatever it is
        f(torch.zeros(2, 3))
    for function in (static, dy2static.load(tmp_path / "f.d2s")):
        with pytest.raises(type(eager.value)) as caught:
            function(torch.zeros(2, 3))
        assert str(caught.value).split("\n")[0] == str(eager.value).split("\n")[0]
