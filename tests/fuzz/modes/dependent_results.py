"""Several results of one call, computed from each other: gradients of one with respect to another."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import copied, same, seeded

_HEAD = """import torch
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
"""


class DependentResults(Mode):
    """Results of the main path; every other program lets constructs give several, and asks for eager's graph."""

    head = _HEAD
    tail = "    return p, q, r, x + p, (p, q)\n"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.eager = seed % 2 == 1
        self.target = ""
        """The one name that a construct binds, where it may bind only one."""

    def simple(self) -> str:
        """One value from others."""
        one = self.target or self.name()
        other, third = self.name(), self.name()
        return self.rng.choice((
            f"{one} = {other} * 0.5 + {third}", f"{one} = {other}.tanh()", f"{one} = {other}.sin() * {third}",
            f"{one} = {other}", f"{one} = {other}.view(3)", f"{one} = {other}.detach()", f"{one} = {other}[[2, 0, 1]]",
            f"{one} = torch.cat([{other}[1:], {third}[:1]])", f"{one} = {other} * {other}.sum()",
            f"{one} = torch.nn.functional.dropout({other}, 0.5)", f"{one} = {other}.exp().clamp(max=3.0)",
        ))  # fmt: skip

    def nested(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        """A construct that binds one name, or any."""
        before = self.target
        if not self.eager and not self.target:
            self.target = self.name()
        lines = super().nested(depth, pad, in_loop)
        self.target = before
        return lines

    def leaving(self, in_loop: bool) -> str:
        """The main path alone returns, where results must be cut apart."""
        return super().leaving(in_loop) if in_loop or self.eager else f"{self.target or 'p'} = {self.name()} * 2"

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Gradients with respect to arguments and results, and what hooks and ``retain_grad`` see."""
        function = load_program().f
        converted = dy2static.to_static(function, **({"autograd": "eager"} if self.eager else {}))
        for number, call in enumerate(self.calls(seed)[:3]):
            expected, got = _observe(function, copied(call), number), _observe(converted, copied(call), number)
            if isinstance(got, Dy2StaticError):
                raise got
            if isinstance(expected, Exception) or isinstance(got, Exception):
                assert type(expected) is type(got), f"eager raises {expected!r}, converted gives {got!r}"
                return
            for what, mine, theirs in zip(("values", "gradients", "retained", "hooks"), got, expected):
                same(mine, theirs, f"call {number} {what}", TOLERANCE)


def _observe(function: Callable[..., Any], call: Sequence[Any], seed: int) -> Any:
    seeded(seed)
    try:
        result = function(*call)
    except Exception as error:  # whatever eager raises is what is compared
        return error
    flat = [*result[:4], *result[4]]
    needing = [one for one in flat if one.requires_grad]
    leaves = [one for one in call if isinstance(one, torch.Tensor) and one.requires_grad]
    if not needing:
        return result, [], [], []
    total = sum((one * one).sum() * (index + 1) for index, one in enumerate(needing))
    grads = torch.autograd.grad(total, [*needing, *leaves], allow_unused=True, retain_graph=True)
    seen: list[Any] = []
    for one in needing:
        if not one.is_leaf:
            one.retain_grad()
        one.register_hook(lambda grad: seen.append(grad.sum() + 3 * grad.abs().sum()))  # a sum near 0 is all rounding
    total.backward()
    retained = [one.grad for one in needing]
    values = [one.detach() for one in flat]
    zeros = [None if grad is not None and not grad.any() else grad for grad in (*grads, *retained)]
    return values, zeros[: len(grads)], zeros[len(grads) :], sorted(float(one) for one in seen)
