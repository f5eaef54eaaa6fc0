"""Losses that loops carry: an iteration asks for gradients of what an earlier one, or what was before, computed."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

import dy2static
from tests import devices
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import hold_modules, seeded

_HEAD = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor([0.5, -1.0, 1.5]))
        self.b = torch.nn.Parameter(torch.tensor([1.0, 0.25, -0.5]))
        self.c = torch.nn.Parameter(torch.tensor([-0.75, 0.5, 1.0]))
    def forward(self, x, y, k):
        total, n = x * 0.5, k
        u = y.detach().clone().requires_grad_()
        h = {h}
        loss = {loss}
"""
_PARAMETERS = ("self.a", "self.b", "self.c")
_LEAVES = (*_PARAMETERS, "u")


class CarriedLosses(Mode):
    """Loops, some inside one another, that carry a loss and a state with their history.

    What is asked for reaches other leaves in later iterations than in the first, on some paths, through other names and
    through containers. Parameters change in place only where all that is carried is computed anew.
    """

    tail = "        return total, n, loss.detach(), h.detach(), u.detach()\n"
    margin = "        "
    names = ("total", "x")
    refusals = frozenset({"D2S213", "D2S228", "D2S239", "D2S245"})

    def source(self) -> str:
        """The program's text."""
        start = self.rng.choice(("x.detach()", "x * 0.5", self._state("x"), "u * 1.0"))
        lines = _HEAD.format(h=start, loss=self._loss()).split("\n")[:-1]
        if self.rng.random() < 0.3:
            lines += [self.margin + line for line in self._asked()]
        lines += self._loop(2, self.margin)
        lines += self.block(1, self.margin, False) if self.rng.random() < 0.5 else []
        return "\n".join(lines) + "\n" + self.tail

    def _leaf(self) -> str:
        return self.rng.choice(_LEAVES)

    def _state(self, value: str) -> str:
        return self.rng.choice((
            f"torch.tanh({value} * {self._leaf()})", f"{value} * 0.5 + {self._leaf()}", f"{value} * 0.9",
            f"{self._leaf()} * 1.0", f"torch.where({value} > 0, {self._leaf()}, {value})", f"{value}.sin()",
        ))  # fmt: skip

    def _loss(self) -> str:
        return self.rng.choice((
            "(h ** 2).sum()", f"(h - {self._leaf()}).pow(2).mean()", f"({self._leaf()} * x.detach()).sum()",
            f"({self._leaf()} - y.detach()).abs().sum()", f"(h * {self._leaf()}).sum()",
        ))  # fmt: skip

    def _asked(self) -> list[str]:
        """What asks for gradients of the loss, or of the state."""
        rng = self.rng
        root = rng.choice(("loss", "loss", "loss", "h.sum()"))
        kept = "retain_graph=True" if self.free or rng.random() < 0.95 else ""
        held = root.split(".")[0]
        if rng.random() < 0.4:
            lines = [f"{root}.backward({kept})"]
            used = rng.choice(_PARAMETERS)
            lines += rng.choice((
                [], [f"{used}.grad = None"],
                [f"if {used}.grad is not None:", f"    total = total + {used}.grad * 0.1"],
                ["if u.grad is not None:", "    total = total + u.grad * 0.1"],
            ))  # fmt: skip
        else:
            leaves = rng.sample(_LEAVES, rng.randint(1, 3))
            kept = f", {kept}" if kept else ""
            lines = [f"gs = torch.autograd.grad({root}, [{', '.join(leaves)}], allow_unused=True{kept})",
                     "n = n + sum(g is None for g in gs)", "for g in gs:", "    if g is not None:",
                     "        total = total + g * 0.1"]  # fmt: skip
            if "u" in leaves and rng.random() < 0.4:
                lines += [f"if gs[{leaves.index('u')}] is not None:",
                          f"    u = (u - gs[{leaves.index('u')}] * 0.1).detach().requires_grad_()"]  # fmt: skip
        return [f"if {held}.requires_grad:", *("    " + line for line in lines)] if rng.random() < 0.9 else lines

    def _stepped(self) -> list[str]:
        """A parameter changes; what is carried is computed anew."""
        one = self.rng.choice(_PARAMETERS)
        change = self.rng.choice((f"{one}.mul_(0.9)", f"{one}.sub_(total.detach() * 0.1)"))
        return ["with torch.no_grad():", f"    {change}", "h = h.detach()", f"loss = {self._loss()}"]

    def simple(self) -> str:
        """A statement of an iteration."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.25:
            return "\n".join(self._asked())
        if kind < 0.45:
            return f"h = {self._state(rng.choice(('h', 'h', 'x')))}"
        if kind < 0.7:
            return f"loss = {rng.choice(('', '', 'loss + '))}{self._loss()}"
        if kind < 0.78:
            return rng.choice(("h = h.detach()", "loss = loss.detach() + (h * u).sum()",
                               "loss, other = loss * 0.5, loss",
                               "h = h.clone()", "u = u.detach().clone().requires_grad_()"))  # fmt: skip
        if kind < (0.88 if self.free else 0.79):
            return "\n".join(self._stepped())
        return rng.choice((
            "both = [loss, h]\nloss = both[0] * 0.5", "both = {'l': loss, 'h': h}\nh = both['h'] * 0.5",
            f"past = loss\nloss = {self._loss()}\nloss = loss + past * 0.5",
        ))  # fmt: skip

    def _loop(self, depth: int, pad: str) -> list[str]:
        """A loop whose body asks, and computes."""
        rng, inner = self.rng, pad + "    "
        parts = [self.block(max(depth - 1, 0) if rng.random() < 0.3 else 0, inner, True) for _ in range(2)]
        asked = [inner + line for line in self._asked()]
        if depth > 1 and rng.random() < 0.6:
            asked = self._loop(depth - 1, inner) if rng.random() < 0.5 else [*asked, *self._loop(depth - 1, inner)]
        elif rng.random() < 0.2:
            asked = [f"{inner}if {self.condition()}:", *("    " + line for line in asked)]
        body = [*parts[0], *asked, *parts[1], f"{inner}loss = {self._loss()}" if rng.random() < 0.6 else ""]
        body = [line for line in body if line]
        kind = rng.random()
        if kind < 0.4:
            return [f"{pad}for _ in range({rng.choice(('3', 'int((x > 0).sum())', 'k + 1'))}):", *body]
        if kind < 0.5:
            return [f"{pad}for row in y.detach()[1:]:", f"{inner}loss = loss + row * h.sum()", *body]
        count = f"n{rng.randint(0, 999)}"
        asked_of = rng.choice(("loss > 0.05", "loss < 2", "h.sum() > -1"))
        return [f"{pad}{count} = 0", f"{pad}while {count} < 3 and {asked_of}:", f"{inner}{count} += 1", *body]

    def nested(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        """A branch, or one more loop."""
        if self.rng.random() < 0.25:
            return self._loop(0, pad)
        lines = [f"{pad}if {self.condition()}:", *self.block(depth, pad + "    ", in_loop)]
        return [*lines, f"{pad}else:", *self.block(depth, pad + "    ", in_loop)] if self.rng.random() < 0.5 else lines

    def leaving(self, in_loop: bool) -> str:
        """A statement that leaves the block."""
        return self.rng.choice(("break", "continue")) if in_loop else self.tail.strip()

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """Mixed signs, all positive, all negative, and the first again without gradients."""
        generator = devices.generator(seed)
        made: list[tuple[Any, ...]] = []
        for shift in (0.0, 1.0, -1.0):
            tensors = [torch.randn(3, generator=generator) + shift for _ in range(2)]
            made.append((*(tensor.requires_grad_() for tensor in tensors), seed % 3))
        x, y, k = made[0]
        return [*made, (x.detach(), y.detach(), k)]

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """The module against another like it, with what calls leave in its parameters and ``.grad``."""
        program = load_program()
        seeded(1234)
        layer: Any = dy2static.to_static(program.Model())
        seeded(1234)
        eager = program.Model()
        hold_modules(layer, eager, self.calls(seed), to_the_end=False, tolerance=10 * TOLERANCE, none_is_zero=True)
