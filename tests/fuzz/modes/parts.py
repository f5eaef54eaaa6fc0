"""Views and parts of tensors whose size, rank or memory depends on the path, written and read, also without a name."""

from __future__ import annotations

from typing import Any

import torch

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
def f(x, y, k):
    w = y * 1
    p, q, r, n = w, y * 2, x.flatten() * 1, 0
"""
_CHOSEN = (
    "{a}[1:] if {c} else {b}", "{a}[0] if {c} else {b}", "{a}.t() if {a}.dim() < 3 and {c} else {b}",
    "{a}.reshape(-1) if {c} else {b}", "{a}.clone() if {c} else {a}", "{a}[None] if {c} else {b}",
    "{a}[..., 0] if {a}.dim() > 0 and {c} else {b}", "{a} if {c} else {b}", "{a}.flatten()[int(({b} > 0).sum()):]",
)  # fmt: skip
_TAKEN = (
    "{a}.chunk(2)[0]", "{a}.chunk(2)[-1]", "{a}.tensor_split(2)[0]", "{a}.split(1)[0]", "{a}.unbind()[0]", "{a}[0]",
    "{a}.flatten()", "{a}.contiguous()", "{a}.reshape(-1)", "{a}.view(-1)", "{a}.unsqueeze(0)", "{a}.squeeze()",
    "torch.atleast_2d({a})", "torch.atleast_3d({a})", "torch.meshgrid({a}.flatten(), indexing='ij')[0]", "{a}[:1]",
    "torch.broadcast_tensors({a}, {a})[0]", "{a}.transpose(0, -1)", "{a}.narrow(0, 0, 1)", "{a}.float()",
    "{a}.detach()", "{a}.expand_as({a})", "{a}.diagonal() if {a}.dim() == 2 else {a}", "{a}.unfold(0, 1, 1)",
)  # fmt: skip
_WRITTEN = ("{a}.mul_(0.5)", "{a} += 1", "{a}[:1] = 0.25", "{a}.copy_({a} * 2)", "{a}.view(-1)[:1].add_(1)")


class Parts(Mode):
    """Tensors of two dimensions and what is taken of them.

    Refused is a write where no Program can tell what it reaches (D2S222, D2S224).
    """

    head = _HEAD
    tail = "    return p * 1, q * 1, r * 1, w, n\n"
    refusals = frozenset({"D2S213", "D2S221", "D2S222", "D2S223", "D2S224", "D2S235", "D2S238", "D2S244", "D2S264"})

    def simple(self) -> str:
        """A name for what a path chose, a part, a write, a part of a choice without a name, or a question."""
        rng = self.rng
        one, other, third = (self.name() for _ in range(3))
        condition = self.condition()
        chosen = rng.choice(_CHOSEN).format(a=other, b=third, c=condition)
        taken = rng.choice(_TAKEN)
        return rng.choice(rng.choices((
            (f"{one} = {chosen}",),
            (f"{one} = {taken.format(a=other)}", f"{one} = {taken.format(a=f'({chosen})')}"),
            (rng.choice(_WRITTEN).format(a=one), f"t = {taken.format(a=other)}\n{rng.choice(_WRITTEN).format(a='t')}",
             f"t = {taken.format(a=f'({chosen})')}\n{rng.choice(_WRITTEN).format(a='t')}"),
            (f"n = n + {one}.dim()", f"n = n + {one}.numel()", f"q = w * {one}.sum()"),
        ), (3, 3, 4, 1))[0])  # fmt: skip

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """Of two dimensions, in four sizes, with gradients and without."""
        generator = torch.Generator().manual_seed(seed)
        found: list[tuple[Any, ...]] = []
        for number, (rows, columns) in enumerate(((3, 3), (4, 2), (2, 3), (5, 4))):
            x, y = (torch.randn(rows, columns, generator=generator) for _ in range(2))
            found.append((x.requires_grad_(number == 1), y.requires_grad_(number == 1), number))
        return found
