"""Tensors whose sizes data decides: operators for which they have to fit, on some paths and after them."""

from __future__ import annotations

import types
from collections.abc import Callable

import dy2static
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import check

_HEAD = """import torch
import torch.nn.functional as F
def f(x, y, k):
    x, y = torch.cat([x, y]), torch.cat([y, x * 2])
    p, q, r, n = x[x > 0], y[y > 0.5], torch.ones(int((x > 0.3).sum())) * x[0], k
"""


class UnknownSizes(Mode):
    """Vectors of no, one or several elements.

    Where a size of 1 meets another that is known as late, eager broadcasts and a Program ends in a RuntimeError: such a
    call is passed over.
    """

    head = _HEAD
    tail = "    return p, q, r, n, p.shape[0], len(q), tuple(r.shape)\n"
    refusals = frozenset({"D2S212", "D2S213", "D2S235", "D2S238"})

    def simple(self) -> str:
        """What changes sizes, needs them to fit, or asks for them."""
        one, other, third = self.name(), self.name(), self.name()
        changes = (f"{one} = {other}[{other} > 0.1]", f"{one} = torch.cat([{other}, {third}])[:7]",
                   f"{one} = {other}[:{third}.shape[0]]", f"{one} = {other}[1:]", f"{one} = {other}[::2]",
                   f"{one} = F.pad({other}, (0, 1))", f"{one} = {other}.repeat(2)[:6]", f"{one} = {other}[:2]",
                   f"{one} = torch.zeros({other}.shape[0]) + {third}.sum()", f"{one} = torch.ones(len({other}) + 1)",
                   f"{one} = torch.arange(len({other})) * 0.5", f"{one} = {other}[{third}.shape[0]:]",
                   f"{one} = ({other}[:, None] * {third}).flatten()[:8]", f"{one} = x[: n % 5]",
                   f"{one} = {other}.view(-1, 1).expand(-1, 2).reshape(-1)[:6]")  # fmt: skip
        same = (f"{one} = {other} * 2", f"{one} = {other}.sin()", f"{one} = {other}.flip(0)", f"{one} = {other}",
                f"{one} = {other}.sort()[0]", f"{one} = {other}.cumsum(0)", f"{one} = {other}.clone()",
                f"{one} = torch.where({other} > 0, {other}, {other} * 2)", f"{one} = {other}.view(1, -1).sum(0)",
                f"{one} = ({other}[:, None] + {third}).sum(1)", f"{one} = {other}[None].t().squeeze(1)",
                f"{one} = {other} - {other}.detach()", f"{one} = F.softmax({other}, 0)")  # fmt: skip
        fits = (f"{one} + {other}", f"{one} * {other}", f"torch.stack([{one}, {other}]).sum(0)",
                f"torch.maximum({one}, {other})", f"torch.where({one} > 0, {one}, {other})",
                f"torch.lerp({one}, {other}, 0.5)", f"({one}[None] @ {other}[:, None])[0]",
                f"{one}.clone().add_({other})", f"{one} - {other}.view({one}.shape[0])",
                f"{other}.reshape({one}.shape) * 3", f"{other}.expand({one}.shape[0]) + {one}",
                f"{one}.view(2, -1).sum(0)", f"{one}.view(-1, 2)[:, 0]", f"{one}.narrow(0, 0, {other}.shape[0])",
                f'torch.einsum("i,i->i", {one}, {other})', f"{one}.unflatten(0, (-1, 2)).sum(1)")  # fmt: skip
        reads = (f"n = n + {one}.shape[0]", f"n = n + len({one}) * 2", f"n = n + {one}.numel() - {other}.numel()",
                 f"n = n + {one}.stride(0)", f"n = n + int({one}.is_contiguous())",
                 f"n = n + (3 if {one}.shape[0] > 2 else 1)", f"n = n + int({one}.shape == {other}.shape)",
                 f"for i in range({one}.shape[0]):\n    n = n + i", f"n = n + max({one}.shape[0], len({other}))",
                 f"for row in {one}:\n    n = n + 1\n    if row > 1:\n        break",
                 f"if {one}.shape[0] == 0:\n    {one} = torch.ones(2)")  # fmt: skip
        if not self.free:
            reads = tuple(text for text in reads if "stride" not in text and "contiguous" not in text)
        kind = self.rng.choices((changes, same, fits, reads), (4, 3, 4, 3))[0]
        text = self.rng.choice(kind)
        if kind is not fits:
            return text
        if self.rng.random() < 0.25:
            return f"{third} = {text}"
        return f"if {one}.shape[0] == {other}.shape[0] and len({one}) % 2 == 0:\n    {third} = {text}"

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Each call, but those that a Program ends for a size of 1."""
        function = load_program().f
        converted = dy2static.to_static(function)
        for call in self.calls(seed):
            try:
                check(function, call, static=converted, tolerance=TOLERANCE, paths=("program",), none_is_zero=True)
            except (RuntimeError, AssertionError) as error:  # before what eager may raise later
                if isinstance(error, dy2static.Dy2StaticError) or "after expand() only" not in str(error):
                    raise
                self.told = "some calls ended for a size of 1"
