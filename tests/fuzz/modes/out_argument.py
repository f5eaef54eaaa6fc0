"""``out=``: of the right shape, of none, of another, with other names for the same memory."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
def f(x, y, k):
    p, q, r, e, n = x * 0.5, y * 2, torch.ones(3), torch.empty(0), 0
    i = torch.zeros(3, dtype=torch.int64)
"""


class OutArgument(Mode):
    """Results written into tensors that are there already."""

    head = _HEAD
    tail = "    return p * 1, q * 1, r * 1, e * 1, i * 1, n, tuple(r.shape), tuple(e.shape)\n"
    contexts = ("torch.no_grad()",)
    # What is written has a shape that the path decides, and is a part of something (D2S212); it is a leaf on some paths
    # (D2S213); or
    # PyTorch's rule for `complex` with an `out=` wants to compare sizes that the path decides (D2S235).
    refusals = frozenset({"D2S212", "D2S213", "D2S223", "D2S225", "D2S235", "D2S244", "D2S245", "D2S246"})

    def simple(self) -> str:
        """An operator with ``out=``, a name, or a question."""
        one, other, third = self.name(), self.name(), self.name()
        where = self.rng.choice((third, third, "e", "torch.empty(0)", f"{third}[:]", "torch.empty(2)"))
        outs = (
            f"torch.add({one}, {other}, out={where})", f"{one} = torch.mul({one}, 2, out={where})",
            f"torch.cat([{one}.reshape(-1)[:1], {other}.reshape(-1)[:2]], out={where})",
            f"torch.sub({one}, {other}, alpha=0.5, out={where})", f"{one} = torch.sigmoid({other}, out={where})",
            f"torch.clamp({one}, -1, 1, out={where})", f"torch.sort({one}, out=({where}, i))",
            f"torch.max({one}, 0, out=({where}, torch.empty(0, dtype=torch.int64)))",
            f"torch.argsort({one}, out=i)" if self.rng.random() < 0.2 else f"torch.argmax({one}, 0, out=i)",
            f"torch.cumsum({one}, 0, out={where})", f"torch.where({one} > 0, {one}, {other}, out={where})",
            f"torch.frexp({one}, out=({where}, torch.empty(0, dtype=torch.int32)))",
            f"torch.stack([{one}, {other}], out={where})", f"torch.sum({one}, 0, out={where})",
            f"torch.outer({one}.reshape(-1)[:2], {other}.reshape(-1)[:2], out={where})",
            f"torch.arange(3, out={where})", f"torch.full((3,), 0.5, out={where})", f"torch.zeros(2, out={where})",
            f"torch.complex({one}, {other}, out=torch.empty(0, dtype=torch.complex64))",
            f"torch.index_select({one}, 0, torch.tensor([0, 0]), out={where})",
        )  # fmt: skip
        names = (f"{one} = {other}", f"{one} = {other}.clone()", f"{one} = {other} * 0.5", "e = torch.empty(0)",
                 "r = torch.ones(3)", f"{one} = {other}.detach()", f"{one} = torch.zeros(3)", "r = x", "r = p[:]",
                 "p, q = x.detach() * 2, torch.ones(3)")  # fmt: skip
        reads = (f"n = n + {one}.dim()", "n = n + e.numel()", f"n = n + {one}.shape[0]" if one != "e" else "n = n + 1")
        return self.rng.choice(self.rng.choices((outs, names, reads), (5, 3, 1))[0])
