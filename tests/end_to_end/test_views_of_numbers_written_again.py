"""Views that a number or path of the run chooses, which are written twice: what the first write kept for backward is
overwritten by the second, whichever way gradients are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.autodiff import gradient_path
from tests.from_files import module_of
from tests.oracle import PATHS, Terms, copied, hold, run

VIEWS = {
    "diagonal": "h.diagonal(k - 1)", "dimension": "h.select(k, 0)", "part": "h.narrow(k, 0, 2)",
    "transposed": "h.transpose(0, k)[0]", "one of two": "(h[0] if y.sum() > 0 else h[1])",
    "all or one": "(h if y.sum() > 0 else h[1])", "item": "[h[0], h[1], h[2]][k]", "unbind": "h.unbind(k)[0]",
    "slice": "h[k:]",
}  # fmt: skip
WRITES = {
    "exp_": "v = VIEW; v.exp_()", "sigmoid_": "v = VIEW; v.sigmoid_()", "mul_": "v = VIEW; v.mul_(y.sum())",
    "kept": "v = VIEW; s = s + v.exp().sum(); v.add_(1)", "kept of all": "v = VIEW; s = s + h.exp().sum(); v.add_(1)",
    "of all": "v = VIEW; s = s + v.exp().sum(); h.add_(1)",
}  # fmt: skip
PLACES = {
    "straight": "    WRITE\n    WRITE\n", "once": "    WRITE\n",
    "loop": "    c = 0\n    while c < i:\n        WRITE\n        c += 1\n",
    "unrolled": "    for c in range(2):\n        WRITE\n",
    "path": "    WRITE\n    if x.sum() > 0:\n        WRITE\n",
}  # fmt: skip


@pytest.mark.sample(10)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_gradients(view: str, write: str, place: str, path: Any, tmp_path: Path) -> None:
    body = PLACES[place].replace("WRITE", WRITES[write].replace("VIEW", VIEWS[view]))
    (tmp_path / "one.py").write_text(
        f"import torch\ndef f(x, y, i):\n    i = int(i)\n    k = i - 1\n    h, s = x * 1.5, x.sum() * 0\n{body}"
        "    return s + (h * h).sum()\n")
    f = module_of(tmp_path / "one.py").f
    static = to_static(f)
    for number, (rows, i) in enumerate(((4, 2), (4, 1), (5, 2), (6, 2))):
        torch.manual_seed(number)
        call = torch.randn(rows, 4, requires_grad=True), torch.randn(3) + 1 - number % 2 * 2, torch.tensor(i)
        mine, theirs = copied(call), copied(call)
        expected = run(f, theirs, number)
        with gradient_path(path):
            got = run(static, mine, number)
        hold(got, expected, f"call {number}", Terms(tolerance=1e-5, none_is_zero=True), [("arguments", mine, theirs)])
