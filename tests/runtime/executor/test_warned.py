"""What kernels warn of at every call is said through Python's warnings, at the user's line, as in eager."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static

SPREADS: dict[str, Callable[[torch.Tensor], Any]] = {
    "std": lambda x: x.std(),
    "var": lambda x: x.var(),
    "std of dims": lambda x: x.std((0, 1)),
    "std of a dim": lambda x: x.std(0),
    "var of the last dim": lambda x: x.var(-1, keepdim=True),
    "biased": lambda x: x.std(unbiased=False),
    "biased by position": lambda x: torch.var(x, False),
    "a dim, biased": lambda x: x.std(1, False),
    "correction": lambda x: x.std(correction=2),
    "correction of a dim": lambda x: x.var(dim=1, correction=0),
    "a broken correction": lambda x: torch.std(x, dim=(1,), correction=1.5),
    "std_mean": lambda x: torch.std_mean(x)[0],
    "var_mean of a dim": lambda x: torch.var_mean(x, 0)[0],
    "in a branch": lambda x: x.std() if x.sum() > 0 else x.var(0),
}  # fmt: skip
Seen = list[tuple[str, type[Warning], str, int]]


def _seen(function: Callable[[torch.Tensor], Any], x: torch.Tensor) -> Seen:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function(x)
    return [(str(one.message), one.category, one.filename, one.lineno) for one in seen]


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (3, 2)], ids=str)
@pytest.mark.parametrize("name", SPREADS)
def test_as_eager(name: str, shape: tuple[int, int], needs_gradient: bool) -> None:
    function = SPREADS[name]
    converted = to_static(function)
    for x in (torch.ones(shape), -torch.ones(shape)):
        given = x.requires_grad_(needs_gradient)
        assert _seen(converted, given) == _seen(function, given)


def test_it_may_be_an_error() -> None:
    def spread(x: torch.Tensor) -> Any:
        try:
            return x.std()
        finally:
            x.add_(0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (spread, to_static(spread)):
            with pytest.raises(UserWarning, match="degrees of freedom"):
                function(torch.ones(1))


def test_of_a_loaded_file(tmp_path: Path) -> None:
    def spread(x: torch.Tensor) -> Any:
        return x.std(0)

    dy2static.save(to_static(spread), tmp_path / "f.d2s", input_spec=[dy2static.InputSpec([None, 2])])
    loaded = dy2static.load(tmp_path / "f.d2s")
    assert _seen(loaded, torch.ones(1, 2)) == _seen(spread, torch.ones(1, 2)) != []
    assert _seen(loaded, torch.ones(2, 2)) == []
