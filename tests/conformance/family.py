"""Families of small programs in ordinary user style, each with the inputs it runs on and what is expected of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import nn

from tests import devices

T = TypeVar("T", bound=Callable[..., Any])
Call = Sequence[Any]


@dataclass(frozen=True)
class Case:
    """One program. ``refused``: the code of the located error it gets, empty where it works like eager.

    ``idle``: how many Blocks no input reaches, because what was tested before rules them out. ``search``: until every
    other Block has run, further calls are made with random tensors of about this size in place of those of float32.
    """

    family: str
    construct: str
    name: str
    kind: str
    target: Any
    calls: tuple[Call, ...]
    refused: str = ""
    tolerance: float = 0.0
    idle: int = 0
    search: float = 0.0

    @property
    def id(self) -> str:
        """What the test is called."""
        return f"{self.family}-{self.name}".replace(" ", "_").lower()


@dataclass
class Family:
    """The cases of one part of the language."""

    name: str
    cases: list[Case] = field(default_factory=list)

    def case(
        self, construct: str, *calls: Call, refused: str = "", tolerance: float = 0.0, idle: int = 0,
        search: float = 0.0,
    ) -> Callable[[T], T]:
        """Decorates a function or an ``nn.Module`` class (its instances are converted) that shows ``construct``.

        The decorated object itself is unchanged. ``calls``: the arguments of each call, together taking every path.
        """

        def note(target: T) -> T:
            kind = "module" if isinstance(target, type) and issubclass(target, nn.Module) else "function"
            name = target.__name__
            self.cases.append(
                Case(self.name, construct, name, kind, target, tuple(calls), refused, tolerance, idle, search)
            )
            return target

        return note

    def scenario(self, construct: str, *, refused: str = "") -> Callable[[T], T]:
        """Decorates a function that does its own calls and comparisons; it is called without arguments."""

        def note(target: T) -> T:
            self.cases.append(Case(self.name, construct, target.__name__, "scenario", target, (), refused))
            return target

        return note


def vec(*values: float, grad: bool = True) -> torch.Tensor:
    """A vector of float32, with a gradient."""
    return torch.tensor(values, dtype=torch.float32).requires_grad_(grad)


def ints(*values: int) -> torch.Tensor:
    """A vector of int64."""
    return torch.tensor(values, dtype=torch.int64)


def num(value: float | bool) -> torch.Tensor:
    """A tensor without dimensions."""
    return torch.tensor(value)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal random numbers, with a gradient."""
    return torch.randn(*shape, generator=devices.generator(seed)).requires_grad_()


POS = vec(0.5, 1.0, 1.5)
NEG = vec(-0.5, -1.0, -1.5)
MIX = vec(2.0, -1.0, 0.25)
BOTH: tuple[Call, ...] = ((POS,), (NEG,))
EACH: tuple[Call, ...] = ((POS,), (NEG,), (MIX,))
