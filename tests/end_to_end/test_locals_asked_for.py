"""``locals()`` and ``vars()`` in functions that decide on tensors: a dict of the user's variables, in eager's order."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check

SCALE = 3


def after_a_branch(x: torch.Tensor, k: int) -> Any:
    if x.sum() > 0:
        y = x * 2
    else:
        y = x
    d = locals()
    return d["y"] + len(d), list(d), d["k"]


def filtered(x: torch.Tensor, k: int, *rest: Any, flag: bool = True, **more: Any) -> Any:
    given = {name: value for name, value in locals().items() if name not in ("k", "more")}
    if x.sum() > 0:
        return given["x"] * 2, sorted(given), given["rest"]
    return given["x"], list(given), given["flag"]


def on_a_path(x: torch.Tensor, k: int) -> Any:
    if x.sum() > 0:
        z = 3
        d = vars()
        return d["x"] * d["z"]
    return x


def in_a_loop(x: torch.Tensor, k: int) -> Any:
    total = x * 0
    for n in range(int((x > 0).sum())):
        total = total + locals()["n"] * x
    return total


def around_a_function(x: torch.Tensor, k: int) -> Any:
    factor = x.max()

    def inner(t: torch.Tensor) -> Any:
        if t.sum() > 0:
            t = t * factor * SCALE
        found = locals()
        return found["t"], sorted(found), found["factor"]

    return inner(x)


def changed_afterwards(x: torch.Tensor, k: int) -> Any:
    d = locals()
    d["x"] = d["x"] + 1
    d["new"] = 1
    if x.sum() > 0:
        k = k + 1
    return x, k, d["x"], d["k"], len(d)


def deleted(x: torch.Tensor, k: int) -> Any:
    gone = 1
    del gone
    if x.sum() > 0:
        k = 5
    return sorted(locals()), k


def given_on(x: torch.Tensor, k: int) -> Any:
    def take(x: torch.Tensor, k: int, y: torch.Tensor) -> torch.Tensor:
        return x * k + y

    y = x.abs() if x.sum() > 0 else x
    return take(**{name: value for name, value in locals().items() if name != "take"})


def several_read_where_they_stand(x: torch.Tensor, k: int) -> Any:
    y = locals()["x"] * 2
    if "y" in locals() and x.sum() > 0:
        y = vars()["y"] + vars().get("k", 0)
    return y, sorted(locals()), len(locals()), given_names(**locals()), "{x}".format(**{"x": locals()["k"]})


def given_names(**given: Any) -> list[str]:
    return list(given)


def one_kept_after_others(x: torch.Tensor, k: int) -> Any:
    y = vars()["x"] + 1
    if y.sum() > 0:
        k = k + len(locals())
    here = locals()
    return here["k"], list(here), y


def several_kept(x: torch.Tensor, k: int) -> Any:
    here = locals()
    y = x + 1
    there = locals()
    return len(here), len(there), y


def one_kept_before_others(x: torch.Tensor, k: int) -> Any:
    here = locals()
    y = locals()["x"] + 1
    return len(here), y


FUNCTIONS = [
    several_read_where_they_stand, one_kept_after_others, several_kept, one_kept_before_others, after_a_branch,
    filtered, on_a_path, in_a_loop, around_a_function, changed_afterwards, deleted, given_on,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_like_eager(function: Any) -> None:
    check(function, *[(torch.tensor(one), 2) for one in ([1.0, 2.0, -0.5], [-1.0, -2.0, 0.5], [0.0, 0.0, 0.0])])


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: float = 2.0) -> Any:
        given = locals()
        if x.sum() > 0:
            x = x * given["scale"]
        return x, "self" in given, sorted(given)[-1]


def test_a_method() -> None:
    static = to_static(Net())
    for x in (torch.ones(3), -torch.ones(3)):
        got, expected = static(x, 3.0), Net()(x, 3.0)
        assert torch.equal(got[0], expected[0]) and got[1:] == expected[1:]


def test_a_name_that_some_paths_bind() -> None:
    def f(x: torch.Tensor) -> Any:
        if x.sum() > 0:
            z = 3
        return x, len(locals())

    with pytest.raises(TraceError, match="whether 'z' is bound") as error:
        to_static(f)(torch.ones(3))
    assert error.value.code == "D2S214"
