"""``torch.autograd.grad`` and ``backward()`` inside a module: through branches, loops and layers, and steps by hand."""

from __future__ import annotations

import inspect
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
import torch.nn.functional as F
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.rnn = torch.nn.RNNCell(3, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.still = torch.nn.BatchNorm1d(3).eval()
        self.up = torch.nn.Upsample(scale_factor=2, mode="linear")
        self.w = torch.nn.Parameter(torch.tensor([0.5, -1.0, 1.5]))
    def forward(self, x, y, k):
        p, q, n = x * 0.5, y * 2, k
"""
_SIZES = (3, 8, 1, 5)


class InnerGradients(Mode):
    """Pieces that make a leaf, compute a loss from it, and use its gradient, among branches and loops.

    Left out are GRUCell and LSTMCell, whose gradient is wrong where another one is asked for inside. Few programs have
    a ``backward()`` that uses up what leads to results: on a path it may do so for all paths.
    """

    head = _HEAD
    tail = "        return p, q, n\n"
    margin = "        "
    depth = 1
    stays = True
    names = ("p", "q")
    refusals = frozenset({"D2S213", "D2S228", "D2S239"})

    def _step(self, value: str) -> str:
        """An expression of the same size, computed from a value."""
        other = self.name()
        layers = (
            f"self.linear({value})", f"self.rnn({value}, {other})", f"self.rnn({other}, {value})",
            f"self.norm({value})", f"self.still({value})", f"self.up({value}[None])[0][:, :3]",
        )  # fmt: skip
        plain = (
            f"torch.tanh({value}) * {other}", f"{value} * self.w", f"{value} ** 2", f"F.softplus({value})",
            f"{value} * 0.5 + {value}.detach()", f"torch.where({value} > 0, {value}, {value} * 0.1)",
            f"{value}.sort(dim=1).values", f"F.linear({value}, self.linear.weight)", f"{value} - {value}.mean(0)",
        )  # fmt: skip
        return self.rng.choice(self.rng.choice((layers, plain)))

    def _through(self) -> list[str]:
        """Statements that compute ``u`` of ``t``."""
        rng = self.rng
        lines = [f"u = {self._step('t')}"]
        for _ in range(rng.randint(0, 2)):
            kind = rng.random()
            if kind < 0.4:
                lines += [f"if {self._asked()}:", f"    u = {self._step('u')}"]
                lines += ["else:", f"    u = {self._step(rng.choice('tu'))}"] if rng.random() < 0.5 else []
            elif kind < 0.6:
                count = rng.choice(("2", "int((p > 0).sum()) % 3"))
                lines += [f"for _ in range({count}):", f"    u = {self._step('u')}"]
            elif kind < 0.75:
                count = f"n{rng.randint(0, 999)}"
                lines += [f"{count} = 0", f"while {count} < 2 and {self._asked()}:", f"    {count} += 1",
                          f"    u = {self._step('u')} * 0.5"]  # fmt: skip
            else:
                lines.append(f"u = {self._step('u')}")
        return lines

    def _asked(self) -> str:
        one = self.rng.choice(("u", "t", *self.names))
        return self.rng.choice((f"{one}.sum() > 0", f"({one} > 0).any()", f"{one}.mean() < 0.3"))

    def _loss(self) -> str:
        return self.rng.choice(("u.pow(2).mean()", "u.tanh().sum()", "(u * t).mean()", "(u - q).abs().mean()",
                                "F.mse_loss(u, p.detach())"))  # fmt: skip

    def simple(self) -> str:
        """A gradient, a step, or a value."""
        rng, one, other = self.rng, self.name(), self.name()
        kind = rng.random()
        if kind < 0.35:
            return rng.choice((f"{one} = torch.tanh({other}) + 0.1", f"{one} = {self._step(other)}",
                               f"{one} = {one} - {other} * 0.5", "n = n + 1"))  # fmt: skip
        start = [f"t = {rng.choice((f'{other}.detach().clone().requires_grad_()', f'{other} * 1.0'))}"]
        lines = [*start, *self._through()]
        if kind < 0.75:
            return "\n".join([*lines, *self._by_grad(one)])
        if kind < 0.88:
            return "\n".join([*lines, *self._by_backward(one)])
        return "\n".join(self._loop(one))

    def _by_grad(self, one: str) -> list[str]:
        """What ``torch.autograd.grad`` gives, once or twice."""
        rng = self.rng
        options = rng.sample((", allow_unused=True", ", materialize_grads=True"), rng.randint(0, 1))
        kept = rng.random() < 0.5
        options += [", create_graph=True"] if kept else []
        if rng.random() < 0.25:
            asked = f"torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u) * 0.5{''.join(options)})[0]"
        elif rng.random() < 0.5:
            asked = f"torch.autograd.grad({self._loss()}, t{''.join(options)})[0]"
        else:
            by = rng.choice(("[self.w, t]", "[self.linear.weight, t]", "[t, self.rnn.weight_hh, self.w]", "[p, t]"))
            options = [option for option in options if "create" in option] + [", allow_unused=True"]
            lines = [f"gs = torch.autograd.grad({self._loss()}, {by}{''.join(options)})",
                     "n = n + sum(g is None for g in gs)"]  # fmt: skip
            return [*lines, f"{one} = {one} + sum(g.sum() for g in gs if g is not None) * 0.1"]
        lines = [f"g = {asked}"]
        if kept and rng.random() < 0.6:
            way = rng.choice(("allow_unused=True", "materialize_grads=True", "allow_unused=True, create_graph=True"))
            lines += [f"if g.requires_grad:\n    h = torch.autograd.grad(g.pow(2).sum(), t, {way})[0]",
                      f"    if h is not None:\n        {one} = {one} + h * 0.1"]  # fmt: skip
        used = f"{one} = {one} + g * 0.1"
        return [*lines, f"if g is not None:\n    {used}" if any("unused" in option for option in options) else used]

    def _by_backward(self, one: str) -> list[str]:
        """What ``backward()`` leaves in ``.grad``."""
        rng = self.rng
        parameter = rng.choice(("self.w", "self.linear.weight", "self.linear.bias"))
        kept = "retain_graph=True"
        to = kept if self.inside or not self.free else rng.choice(("", "", f"inputs=[{parameter}]", kept))
        lines = [f"loss = {self._loss()}", f"loss.backward({to})", f"if {parameter}.grad is not None:"]
        lines += rng.choice((
            ["    with torch.no_grad():", f"        {parameter}.sub_({parameter}.grad * 0.1)",
             f"    {parameter}.grad = None"],
            [f"    {one} = {one} + {parameter}.grad.sum()", f"    {parameter}.grad = None"],
            [f"    {one} = {one} * {parameter}.grad.mean()"],
            [f"    {parameter}.grad.zero_()"],
        ))  # fmt: skip
        read = rng.random() < 0.3 and "inputs" not in to
        return [*lines, *([f"if t.is_leaf:\n    {one} = {one} + t.grad"] if read else [])]

    def _loop(self, one: str) -> list[str]:
        """A loss that a ``while`` loop carries, with a step in each iteration."""
        rng = self.rng
        count = f"n{rng.randint(0, 999)}"
        body = [f"{count} += 1", *self._through(), f"loss = {self._loss()}"]
        if rng.random() < 0.5:
            body.append("g = torch.autograd.grad(loss, t)[0]")
            moved = "t = (t - g * 0.1).detach().requires_grad_()", "t = t.detach() - g * 0.1\nt.requires_grad_()"
            body.append(rng.choice(moved))
        else:
            body += ["gs = torch.autograd.grad(loss, [self.w, self.linear.weight], materialize_grads=True)",
                     "with torch.no_grad():\n    self.w.sub_(gs[0] * 0.1)"]  # fmt: skip
        inner = ["    " + line for text in body for line in text.split("\n")]
        start = [f"t = {self.name()}.detach().clone().requires_grad_()", f"{count}, loss = 0, {self.name()}.sum()"]
        return [*start, f"while {count} < 3 and loss {rng.choice(('> 0.05', '< 2'))}:", *inner,
                f"{one} = {one} + t.detach() * loss.detach()"]  # fmt: skip

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """Batches of several sizes, with gradients, and the first two again without."""
        generator = devices.generator(seed)
        made: list[tuple[Any, ...]] = []
        for number, size in enumerate(_SIZES):
            tensors = [torch.randn(size, 3, generator=generator) + (number - 1) * 0.3 for _ in range(2)]
            made.append((*(tensor.requires_grad_() for tensor in tensors), seed % 3))
        return [*made, *((x.detach(), y.detach(), k) for x, y, k in made[:2])]

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """The module against another like it, with what calls leave in its parameters, ``.grad`` and buffers."""
        program = load_program()
        seeded(1234)
        layer: Any = dy2static.to_static(program.Model())
        seeded(1234)
        eager = program.Model()
        calls = self.calls(seed)
        if "self.norm(" in inspect.getsource(program.Model.forward):  # it takes no batch of one
            calls = [call for call in calls if len(call[0]) > 1]
        hold_modules(layer, eager, calls, to_the_end=False, tolerance=10 * TOLERANCE, none_is_zero=True)
