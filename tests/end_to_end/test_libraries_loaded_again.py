"""Operators of a library that goes and comes again under the same name, as in a notebook whose cell is run twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

import dy2static


@contextmanager
def _library(schema: str, function: Callable[..., Any], shape: Callable[..., Any]) -> Iterator[None]:
    lib = torch.library.Library("loaded_again", "FRAGMENT")  # noqa: TOR901  # it is destroyed below
    lib.define(schema)
    lib.impl("op", function, "CPU")
    torch.library.register_fake("loaded_again::op", shape, lib=lib)
    try:
        yield
    finally:
        lib._destroy()


def _add(a: Any, b: Any) -> None:
    a.add_(b)


def use(x: Any) -> Any:
    return torch.ops.loaded_again.op(x, x)


def written(x: Any) -> Any:
    y = x * 2
    torch.ops.loaded_again.op(y, x)
    return y


def test_another_schema_under_the_same_name() -> None:
    x = torch.ones(2)
    kept = dy2static.to_static(use)
    with _library("op(Tensor a, Tensor b) -> Tensor", lambda a, b: torch.cat([a, b]), lambda a, b: torch.cat([a, b])):
        assert kept(x).tolist() == dy2static.to_static(use)(x).tolist() == [1.0] * 4
    with _library(
        "op(Tensor a, Tensor b, float c=3.) -> Tensor", lambda a, b, c=3.0: torch.stack([a, b]) * c,
        lambda a, b, c=3.0: torch.stack([a, b]),
    ):
        assert kept(x).tolist() == dy2static.to_static(use)(x).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with _library("op(Tensor(a!) a, Tensor b) -> ()", _add, lambda a, b: None):
        assert dy2static.to_static(written)(x).tolist() == written(x).tolist() == [3.0, 3.0]
    with _library("op(Tensor a, Tensor b) -> Tensor", lambda a, b: a - b, lambda a, b: a - b):
        assert kept(x).tolist() == dy2static.to_static(use)(x).tolist() == [0.0, 0.0]


def test_an_operator_defined_twice_by_a_decorator() -> None:
    def define(factor: float) -> Any:
        @torch.library.custom_op("loaded_again_too::scale", mutates_args=())
        def scale(x: torch.Tensor) -> torch.Tensor:
            return x * factor

        @scale.register_fake
        def _(x: torch.Tensor) -> torch.Tensor:
            return torch.empty_like(x)

        return scale

    @dy2static.to_static
    def by_name(x: Any) -> Any:
        return torch.ops.loaded_again_too.scale(x) + 0

    x = torch.ones(2)
    for factor in (2.0, 3.0):
        scale = define(factor)
        assert by_name(x).tolist() == [factor, factor]
        assert dy2static.to_static(lambda x: scale(x) + 1)(x).tolist() == [factor + 1, factor + 1]
