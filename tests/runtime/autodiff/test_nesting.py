"""Branches, loops and choices inside each other, every pair and three deep."""

import itertools

import pytest
import torch

from tests.from_files import module_of


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)


KINDS = {
    "cond": """
if h.sum() > 0.1:
{body}
else:
    h = h * v - x
""",
    "while": """
{i} = torch.tensor(0)
while {i} < n:
{body}
    {i} = {i} + 1
""",
    "for": """
for {i} in range(n.item()):
{body}
    if h.sum() > 8:
        break
""",
    "switch": """
h = [lambda t: t @ w, lambda t: t + v, torch.sin][k.item()](h)
if k < 2:
{body}
""",
    "update": """
{i} = h.clone()
{i}[0] = v[1] * 2
h = {i}
if h.sum() > -100:
{body}
""",
    "list": """
{i} = [h]
while len({i}) < n + 2:
    h = {i}[-1]
{body}
    {i}.append(h)
h = torch.stack({i}).sum(0) * 0.3
""",
    "dropout": """
if h.mean() > -10:
    h = torch.nn.functional.dropout(h, 0.3)
{body}
""",
}
LEAF = "h = torch.tanh(h @ w + x) * v[0]"


def source(kinds):
    text = LEAF
    for depth, kind in enumerate(reversed(kinds)):
        body = "\n".join("    " + line for line in text.strip().splitlines())
        text = KINDS[kind].strip("\n").format(body=body, i=f"i{depth}")
    lines = "\n".join("    " + line for line in text.splitlines())
    head = "import torch\ndef f(x, w, v, n, k):\n    h = torch.zeros(3, 3) + x[0]\n"
    return f"{head}{lines}\n    return h, h.square().sum()\n"


@pytest.fixture
def build(tmp_path):
    def make(kinds):
        path = tmp_path / ("program_" + "_".join(kinds) + ".py")
        path.write_text(source(kinds))
        return module_of(path).f

    return make


def check(same_gradients, f, seeds):
    for seed in seeds:
        torch.manual_seed(seed)
        leaves = [torch.randn(3, 3, requires_grad=True) for _ in range(3)]
        same_gradients(f, *leaves, torch.tensor(seed % 4), torch.tensor(seed % 3), seed=seed)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kinds", list(itertools.product(KINDS, repeat=2)), ids="-".join)
def test_every_pair(same_gradients, build, kinds):
    check(same_gradients, build(kinds), range(4))


@pytest.mark.parametrize("kinds", [
    ("while", "cond", "while"), ("cond", "while", "cond"), ("while", "while", "while"), ("for", "list", "cond"),
    ("switch", "while", "dropout"), ("while", "update", "cond"), ("list", "for", "switch"), ("dropout", "cond", "for"),
], ids="-".join)  # fmt: skip
def test_three_deep(same_gradients, build, kinds):
    check(same_gradients, build(kinds), range(5))
