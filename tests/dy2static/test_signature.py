"""What a call's arguments bind to: the parameters of a function's code, whatever else the function says of itself."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import dy2static


def dispatched(*args: Any, **kwargs: Any) -> Any:
    x, n = args[0], kwargs.get("n", 2)
    return x * n if x.sum() > 0 else x


dispatched.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what a dispatching library puts there
    [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
     for name, default in (("x", inspect.Parameter.empty), ("n", 2), ("axis", None))])  # fmt: skip


@pytest.mark.parametrize("full_graph", [True, False])
def test_what_a_function_says_of_its_parameters_is_for_readers(full_graph: bool) -> None:
    static = dy2static.to_static(dispatched, full_graph=full_graph)
    x = torch.ones(2)
    for given, named in (((x,), {}), ((-x,), {}), ((x,), {"n": 3})):
        assert torch.equal(static(*given, **named), dispatched(*given, **named))
