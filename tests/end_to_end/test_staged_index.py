"""Indices and dimensions that only a run knows, where an operator before has settled what they must be.

After ``r @ p[:m]`` a run that goes on has ``m == 3``, and the trace knows it: what raises for 3 surely raises there. A
call that does not come so far is not to see that, with gradients either.
"""

from __future__ import annotations

import textwrap

import pytest
import torch

from tests.fuzz.judging import load
from tests.oracle import check

HEAD = """
import torch
def f(x, c):
    p, r, m = x * 0.5, torch.eye(3) * x, int((c > 0).sum())
    if c.sum() > 99:
        return p, p
    v = p.narrow(0, 0, m)
    v = r @ v
    u = {text}
    return p, u
"""
TEXTS = (
    "p.select(0, m)", "p[m]", "r[m, m]", "r[..., m]", "p.narrow(0, m, 1)", "p.narrow(0, 1, m)", "p[m:]", "p[m:m + 1]",
    "r.unbind(m)[0]", "p.gather(0, torch.tensor([m]))", "r.index_select(0, torch.tensor([m]))", "r.sum(m)",
    "r.index_select(m, torch.tensor([0]))", "torch.cat([r, r], m)", "torch.stack([p, p], m)", "r.transpose(0, m)",
    "p.unsqueeze(m)", "r.squeeze(m)", "r.select(m, 0)", "p.select_scatter(torch.tensor(1.0), 0, m)", "r.flatten(m)",
    "p.topk(m + 1)[0]", "r.view(m + 1, -1)", "p.expand(m + 1, 3)", "r.cumsum(m)", "r.as_strided((1,), (1,), m)",
    "p.split(m - 4)[0]", "[1.0, 2.0, 3.0][m] * p",
)  # fmt: skip


def _calls(needs: bool):
    for count in (1, 3, 0, 4):
        x = torch.tensor([1.0, 2.0, -3.0], requires_grad=needs)
        yield x, torch.tensor([1.0] * count + [-1.0] * (4 - count))
    yield torch.tensor([1.0, 2.0, -3.0], requires_grad=needs), torch.full((4,), 50.0)


@pytest.mark.sample(3)
@pytest.mark.parametrize("needs", (False, True))
@pytest.mark.parametrize("text", TEXTS)
def test_out_of_range_once_the_size_is_settled(text, needs, tmp_path):
    source = textwrap.dedent(HEAD.format(text=text))
    check(load(source, 0, str(tmp_path)).f, *_calls(needs), paths=("program",), none_is_zero=True)


def _var(x, c):
    return x.var(correction=int((c > 0).sum())), x * 1


def _std(x, c):
    return torch.std_mean(x, 0, correction=int((c > 0).sum())), x.std(0, correction=int((c > 1).sum()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", (_var, _std))
def test_the_correction_of_a_variance(function):
    for needs in (False, True):
        check(function, *_calls(needs), paths=("program",), none_is_zero=True)
