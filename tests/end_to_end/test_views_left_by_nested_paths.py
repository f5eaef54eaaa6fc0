"""Two variables that are views of one tensor, neither all of it, made deeper inside of branches, loops and calls.

A write to one of them outside is seen through the other, as in eager, or it is refused (D2S222). That nothing says how
they share memory is known where they were made, and must be known wherever they are handed on to.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.from_files import module_of
from tests.oracle import check

VIEWS = {
    "two views": ["q = p.clone().view(3)", "r = q.view(3)"],
    "one view": ["q = p.clone().view(3)", "r = q"],
    "slices": ["b = p.clone()", "q = b[0:2]", "r = b[1:3]"],
    "chosen": ["q = p.clone().view(3)", "r = q if p[1] < 1.5 else p"],
    "rows": ["b = torch.stack([p, p])", "q = b[0]", "r = b.t()[0]"],
    "the whole and a view": ["q = p.clone()", "r = q.view(3)"],
    "chosen views": ["b = p.clone()", "q = b[0:2]", "z = b[1:3]", "r = z if p[1] < 1.5 else z.view(2)"],
    "detached": ["b = p.clone()", "q = b[0:2]", "r = b[1:3].detach()"],
    "of one from outside": ["q = o[0:2]", "r = o[1:3]"],
    "items": ["items = [p.clone(), p + 1]", "q = items[int(p[1] > 1.5)].view(3)", "r = items[0].view(3)"],
}
AROUND = {
    "if": "if p.sum() > 0:\n    BODY",
    "else": "if p.sum() > 100:\n    q = x + 1\nelse:\n    BODY",
    "for": "for _ in range(int(p.abs().sum())):\n    BODY",
    "while": "n = 0\nwhile n < 2 and p.sum() > 0:\n    n = n + 1\n    BODY",
    "break": "for t in x:\n    if t > 1.5:\n        break\n    BODY",
    "return": "if p.sum() > 0:\n    if p[0] > 100:\n        return p * 1, p * 1, p * 1, p * 1\n    BODY",
    "call": "def made(p, q, r):\n    BODY\n    return q, r\nq, r = made(p, q, r)",
    "try": "try:\n    BODY\nfinally:\n    s = 0",
}
WRITES = ["r.add_(1)", "q.mul_(2)", "r.detach().add_(1)", "r.view(-1).add_(1)", "q[0] = 5.0"]
X = [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.5, 2.5, 0.1], [3.0, 4.5, 0.1]]


def inside(body: str, pattern: str) -> str:
    lines = []
    for line in pattern.split("\n"):
        pad = line[: len(line) - len(line.lstrip())]
        lines += [pad + part for part in body.split("\n")] if line.strip() == "BODY" else [line]
    return "\n".join(lines)


def program(views: str, around: tuple[str, ...], write: str) -> str:
    body = "\n".join(VIEWS[views])
    for one in around:
        body = inside(body, AROUND[one])
    first = "o = x * 3\np, q, r = x * 0.5, x * 2, torch.zeros(3)"
    whole = f"{first}\n{body}\n{write}\nreturn p * 1, q * 1, r * 1, o * 1"
    return "import torch\n" + inside(whole, "def f(x):\n    BODY") + "\n"


@pytest.mark.sample(100)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("around", [*((one,) for one in AROUND), *itertools.product(AROUND, repeat=2)], ids="-".join)
@pytest.mark.parametrize("views", VIEWS)
def test_a_write_outside(views: str, around: tuple[str, ...], write: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program(views, around, write))
    try:
        for gradient in (False, True):
            check(module_of(tmp_path / "program.py").f,
                  *[(torch.tensor(x, requires_grad=gradient),) for x in X], paths=("program",))
    except TraceError as error:
        assert error.code == "D2S222"


@pytest.mark.parametrize("around", [("if",), ("else", "if"), ("if", "else"), ("return",), ("for", "if"), ("if", "for")],
                         ids="-".join)
def test_the_write_is_refused(around: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program("two views", around, "r.add_(1)"))
    with pytest.raises(TraceError, match=r"D2S222.*(two variables are views of one tensor|an iteration makes it)"):
        to_static(module_of(tmp_path / "program.py").f)(torch.ones(3))


@pytest.mark.parametrize("around", [("if",), ("else", "if"), ("return",)], ids="-".join)
def test_reads_are_not(around: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program("slices", around, "p.add_(1)"))
    check(module_of(tmp_path / "program.py").f, *[(torch.tensor(x, requires_grad=True),) for x in X])
