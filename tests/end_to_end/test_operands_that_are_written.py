"""An operator that writes a tensor in place, and has another operand that is the same tensor on some paths.

Autograd's node keeps that operand: where it is the tensor that was written, eager's backward refuses; so does ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.from_files import module_of
from tests.oracle import check

WRITES = (
    "A.mul_(G)", "A *= G", "A.div_(G + 3)", "A.div_(G)", "A.add_(G)", "A.addcmul_(G, G)", "A.addcmul_(s, G)",
    "A.addcdiv_(G, s)", "A.lerp_(G, s)", "A.atan2_(G)", "A.hypot_(G)", "A.copysign_(G)", "A.sub_(G * G)",
    "A.masked_fill_(G > 0, 2.0)", "A.copy_(G)", "A[:2].mul_(G[:2])", "A.mul_(G.detach())", "A.mul_(G).mul_(G)",
    "A.index_add_(0, torch.tensor([0, 1, 2]), G)", "A.pow_(G.abs() + 1)",
)  # fmt: skip
PLACES = {
    "expression": "g = a if x.sum() > 0 else b",
    "other path": "g = b if x.sum() > 0 else a",
    "statement": "if x.sum() > 0:\n        g = a\n    else:\n        g = s * 2",
    "switch": "g = b\n    if x[0] > 0:\n        g = a\n    elif x[1] > 0:\n        g = b * 2",
    "loop": "g = a\n    for i in range(int((x > 0).sum())):\n        g = g * s",
    "while": "g = a\n    while g.sum() > 0 and g.sum() < 2:\n        g = g + b.abs() + 1",
    "inner": "g = b\n    if x.sum() > 0:\n        if x[0] > 0.5:\n            g = a",
    "view": "g = a.view(3) if x.sum() > 0 else b",
    "computed": "g = a * s if x.sum() > 0 else a",
    "detached": "g = a.detach()\n    g += a",
    "perhaps detached": "g = a\n    if x.sum() > 0:\n        g = g.detach()\n    g += a",
    "detached in a loop": "g = b\n    for i in range(int((x > 0).sum())):\n        g = a.detach()\n        g += a",
    "after another write": (
        "g = a\n    for i in range(2):\n        if x[0] < x[1]:\n            a.mul_(a)\n"
        "        g = a\n        if g.sum() > 0:\n            g = g.detach()\n        g += a"
    ),
}
WHO = {"the tensor": ("a", "g"), "the joined one": ("g", "a")}


def source(write: str, place: str, who: str) -> str:
    written, other = WHO[who]
    text = write.replace("A", written).replace("G", other)
    return (
        f"def f(x, s):\n    a = x * 0.5\n    b = s * 1\n    {PLACES[place]}\n    {text}\n"
        "    return a.sum() * 2 + g.sum() + b.sum()\n"
    )


def load(text: str, folder: Path) -> Any:
    path = folder / "written.py"
    path.write_text("import torch\n\n\n" + text)
    return module_of(path).f


@pytest.mark.sample(3)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("who", WHO)
def test_some_backwards_are_eagers(place: str, who: str, tmp_path: Path) -> None:
    held(WRITES[len(place + who) % 5 :: 5], place, who, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("who", WHO)
def test_backward_is_eagers(place: str, who: str, tmp_path: Path) -> None:
    held(WRITES, place, who, tmp_path)


def held(writes: Sequence[str], place: str, who: str, tmp_path: Path) -> None:
    values = [torch.tensor([1.0, 2.0, -0.5]), torch.tensor([-1.0, -2.0, 0.5]), torch.tensor([0.3, -0.1, -0.1])]
    for write, needs in itertools.product(writes, [(True, True), (True, False)]):
        f = load(source(write, place, who), tmp_path)
        calls = [
            (x.clone().requires_grad_(needs[0]), torch.full((3,), 0.5, requires_grad=needs[1])) for x in values
        ]
        check(f, *calls, paths=("program",), tolerance=1e-6, none_is_zero=True)


READS = {
    "detach": "a.detach()", "view of it": "a.detach().view(3)", "of a view": "a.view(3).detach()",
    "twice": "a.detach().detach()", "joined": "(a if x.sum() > 0 else b).detach()", "part": "a.detach()[:3]",
}  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_what_detach_gives_is_the_same_memory(read: str, tmp_path: Path) -> None:
    writes = ("a.mul_(2)", "a.detach().mul_(2)", "d.mul_(2)", "b.mul_(2)")
    for write, straight in itertools.product(writes, (True, False)):
        text = f"    d = {READS[read]}\n    y = d * s\n    "
        text += f"{write}\n" if straight else f"if x[0] > 0.5:\n        {write}\n"
        body = f"    a = x * 0.5\n    b = s * 1\n{text}    return y.sum() + b.sum() + a.sum()\n"
        f = load(f"def f(x, s):\n{body}", tmp_path)
        calls = [
            (torch.tensor(values, requires_grad=True), torch.full((3,), 0.5, requires_grad=True))
            for values in ([1.0, 2.0, -0.5], [-1.0, -2.0, 0.5], [0.3, -0.1, -0.1])
        ]
        check(f, *calls, paths=("program",), tolerance=1e-6, none_is_zero=True)
