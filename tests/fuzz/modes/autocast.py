"""Regions of autocast around and inside the function: which operators it casts, composite ones above all."""

from __future__ import annotations

import inspect
import random
import types
from collections.abc import Callable

import torch

import dy2static
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import check

_HEAD = """import torch
import torch.nn.functional as F
torch.manual_seed(5)
CELL, LSTM, RNN = torch.nn.GRUCell(3, 3), torch.nn.LSTMCell(3, 3), torch.nn.RNNCell(3, 3)
GRU, LINEAR = torch.nn.GRU(3, 3, batch_first=True), torch.nn.Linear(3, 3)
BLOCK = torch.nn.TransformerEncoderLayer(3, 1, 4, dropout=0.0, batch_first=True).eval()
BILINEAR = torch.nn.Bilinear(3, 3, 3)
def f(x, y, k):
    p, q, r, n = x[:, None] * y, x[:, None] + y, torch.eye(3) * 0.5, 0
"""


class Autocast(Mode):
    """Matrices of three rows through products, cells, norms and losses, of whatever dtype they come out."""

    head = _HEAD
    tail = "    return p, q, r, n, str(p.dtype), str(q.dtype)\n"
    contexts = ('torch.autocast("cpu", torch.bfloat16)', 'torch.autocast("cpu", torch.bfloat16)',
                'torch.autocast("cpu", torch.float16)', 'torch.autocast("cpu", torch.bfloat16, enabled=False)',
                'torch.autocast("cpu", torch.bfloat16, cache_enabled=False)')  # fmt: skip

    def simple(self) -> str:
        """An operator that autocast casts, or not; values stay small."""
        one, other, third = self.name(), self.name(), self.name()
        composites = (
            f'torch.einsum("ij,kj->ik", {other}, {third})', f"torch.tensordot({other}, {third}, 1)",
            f"torch.inner({other}, {third})", f"torch.linalg.multi_dot([{other}, {third}, {other}])",
            f"torch.chain_matmul({other}, {third})", f"torch.matrix_power({other}, 2)",
            f"BILINEAR({other}, {third})", f"CELL({other}, {third})", f"RNN({other}, {third})",
            f"LSTM({other}, ({third}, {third}))[1]", f"GRU({other}[None])[0][0]", f"BLOCK({other}[None])[0]",
            f"LINEAR({other})", f"F.linear({other}, {third})", f"F.scaled_dot_product_attention({other}[None], "
            f"{third}[None], {third}[None])[0]", f"torch.kron({other}[:1, :1], {third})",
        )  # fmt: skip
        plain = (
            f"{other} @ {third}", f"torch.mm({other}, {third})", f"torch.addmm({other}, {third}, {other})",
            f"{other} + {third}", f"{other} * 0.5", f"{other}.softmax(0)", f"{other}.float()",
            f"{other}.to(torch.bfloat16)", f"F.layer_norm({other}.float(), (3,))",
            f"torch.cat([{other}, {third}])[1:4]",
            f"torch.stack([{other}, {third}])[0]", f"F.gelu({other})", f"{other}.mT.contiguous()",
        )  # fmt: skip
        reads = (
            f"n = n + int({one}.dtype == torch.bfloat16)", "n = n + (2 if torch.is_autocast_enabled('cpu') else 1)",
            f"r = r + F.mse_loss({other}.float(), {third}.float())", f"r = r + F.cosine_similarity({other}, {third})",
        )  # fmt: skip
        kind = self.rng.choices((composites, plain, reads), (5, 3, 1))[0]
        text = self.rng.choice(kind)
        return text if kind is reads else f"{one} = torch.tanh({text})"

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """With gradients or without, with autocast around the call or not: two of these four, whichever the seed says.

        One conversion runs both ways. bfloat16 has eight bits, and gradients are sums of many: eager's own differ by a
        half where parts cancel, if the loss is scaled. Matrices are contiguous: what a branch gives lies row by row,
        and kernels round a transposed one otherwise. Where a program casts to float16 as well, eager's cache of cast
        weights is off: it gives bfloat16 weights to a float16 region inside.
        """
        program = load_program()
        modules = [one for one in vars(program).values() if isinstance(one, torch.nn.Module)]
        parameters = [parameter for module in modules for parameter in module.parameters()]
        converted = dy2static.to_static(program.f)
        calls = self.calls(seed)
        ways = [(some, around) for some in (calls[:2], calls[3:5]) for around in (False, True)]
        cached = torch.is_autocast_cache_enabled()
        torch.set_autocast_cache_enabled("torch.float16" not in inspect.getsource(program.f))
        try:
            for some, around in random.Random(seed).sample(ways, 2):
                with torch.autocast("cpu", torch.bfloat16, enabled=around):
                    check(
                        program.f, *some, static=converted, tolerance=1e-5, gradient_tolerance=0.05,
                        paths=("program",), none_is_zero=True, parameters=parameters,
                        rounding=(0.71, 0.83, 1.13, 1.26, 1.39, 1.65, 2.3, 3.1),
                    )  # fmt: skip
        finally:
            torch.set_autocast_cache_enabled(cached)
