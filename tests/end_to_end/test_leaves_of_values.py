"""``torch.tensor(..., requires_grad=True)`` of numbers that only the run knows: a new leaf, whose gradient is asked for
inside, as in Newton's method on a number."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.from_files import module_of
from tests.oracle import check, check_saved

DATA = {
    "a number": "x.sum().item()", "a list": "[x[0].item(), 2.0]", "rows": "[[x[0].item(), 1.0], [0.5, x[1].item()]]",
    "all": "x.tolist()", "tensors": "[x[0].detach(), x[1].detach()]", "a tuple": "(x[1].item(), x[0].item())",
    "grown": "[v.item() for v in x if v > 0] + [1.0]", "perhaps none": "[v.item() for v in x if v > 0]",
    "by path": "x[0].item() if x.sum() > 0 else [x[0].item(), 3.0]", "whole numbers": "int(x.sum().item())",
}  # fmt: skip
OPTIONS = {"": "", "float64": ", dtype=torch.float64", "by keyword": ", device='cpu'", "float16": ", dtype=torch.half"}
USES = {
    "straight": "y = (w * w * 3).sum() + x.sum()\ng, = torch.autograd.grad(y, w)\nreturn y.detach(), g, w.detach()",
    "on a path": "g = w.detach()\nif x[0] > 1:\n    g, = torch.autograd.grad((w ** 3).sum(), w)\nreturn g, w.is_leaf",
    "asked": "return w.requires_grad, w.is_leaf, w.dtype, w.shape, w.detach()",
    "steps": "while w.abs().sum() > 2:\n    g, = torch.autograd.grad((w ** 2).sum(), w)\n"
             "    w = (w - 0.25 * g).detach().requires_grad_()\nreturn w.detach()",
    "caught": "return (w * x[0]).sum()",
}  # fmt: skip
CALLS = [(torch.tensor(values),) for values in ([3.0, 1.0, 0.5], [-1.0, 2.0, -3.0], [-1.0, -2.0, -3.0])]


def function(folder: Path, data: str, options: str, use: str) -> Any:
    file = folder / "leaves.py"
    file.write_text(f"import torch\ndef f(x):\n    w = torch.tensor({data}{options}, requires_grad=True)\n    "
                    + use.replace("\n", "\n    ") + "\n")  # fmt: skip
    return module_of(file).f


@pytest.mark.sample(11)
@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize(("data", "options", "use"), [
    one for one in itertools.product(DATA, OPTIONS, USES) if one[::2] != ("by path", "steps")])
def test_as_eager(data: str, options: str, use: str, needs_gradient: bool, tmp_path: Path) -> None:
    f = function(tmp_path, DATA[data], OPTIONS[options], USES[use])
    calls = [(x.clone().requires_grad_(needs_gradient),) for (x,) in CALLS]
    static = check(f, *calls)
    if data != "whole numbers" or options:  # eager refuses these, and there is no Program
        check_saved(f, static, tmp_path / "f", *calls)
