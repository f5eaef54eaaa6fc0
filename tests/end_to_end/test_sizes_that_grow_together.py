"""Tensors that a loop makes longer in step, wherever they are kept, and what is computed from several of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dy2static import InputSpec, to_static
from tests.from_files import module_of
from tests.oracle import check, check_saved

KEPT = {
    "variables": ("ids, keys = x, x[:, 1:]", "ids", "keys"),
    "items of a dict": ('d = {"ids": x, "keys": x[:, 1:]}', 'd["ids"]', 'd["keys"]'),
    "items of a list": ("d = [x, x[:, 1:]]", "d[0]", "d[1]"),
    "attributes": ("d = SimpleNamespace(ids=x, keys=x[:, 1:])", "d.ids", "d.keys"),
    "a variable and an attribute": ("ids = x\n    d = Cache(x[:, 1:])", "ids", "d.keys"),
    "attributes of an object from outside": ("ids = x\n    held.keys = x[:, 1:]\n    d = held", "ids", "d.keys"),
}
ADDED = {
    "one": ("new", "new"),
    "two and one": ("torch.cat([new, new], 1)", "new"),
    "as many as a mask says": ("new[:, mask]", "new[:, mask]"),
    "one less": ("new", "new, ids"),
    "the first on some paths": ("new if ids.sum() > 9 else new[:, :0]", "new"),
    "both on some paths": ("new[:, :1] if x.sum() > 2 else new[:, :0]", "new[:, :1] if x.sum() > 2 else new[:, :0]"),
}
USES = {
    "the last": "total = total + {ids}[:, -1:].sum() * {keys}[:, -1:].sum()",
    "the shorter beside the longer":
        "total = total + ({ids}[:, : {keys}.shape[1]] * {keys}[:, : {ids}.shape[1]]).sum()",
    "how long they are": "total = total + (1 if {ids}.shape[1] == {keys}.shape[1] + 1 else 2)",
    "a length that is never 1": "total = total + (5 if {ids}.shape[1] != 1 else {ids}.sum())",
    "a position": "total = total + torch.arange({keys}.shape[1], {ids}.shape[1] + 1)[-1]",
    "products of both": "total = total + ({ids}[:, :, None] * {keys}[:, None]).sum()",
    "a counter": "i += 1\n        total = total + {ids}[:, : i + 1].sum() + i",
}
HEAD = """from types import SimpleNamespace
import torch

class Cache:
    def __init__(self, keys):
        self.keys = keys

held = Cache(None)

"""
PROGRAM = """def function(x, bound):
    total, i = x.sum() * 0, 0
    mask = x[0] > 0.25
    {begin}
    while total < bound and i < 5 and {ids}.shape[1] < 40:
        new = {ids}[:, :{width}] * 0.5 + 0.3
        {ids} = torch.cat([{ids}, {first}], 1)
        {keys} = torch.cat([{keys}, {second}], 1)
        {use}
        total = total + 0.7
    return {ids}, {keys}, total, i, {ids}.shape[1] - {keys}.shape[1]
"""
CALLS = [
    [torch.tensor([[0.1, 0.5, 0.9], [0.4, 0.2, 0.3]], dtype=torch.float64).requires_grad_(), torch.tensor(bound)]
    for bound in (0.0, 2.0, 30.0)
]


def _source(kept: str, added: str, use: str) -> str:
    begin, ids, keys = KEPT[kept]
    first, second = (text.replace("ids", ids) for text in ADDED[added])
    width = "3" if "mask" in first else "1"
    used = USES[use].format(ids=ids, keys=keys)
    return HEAD + PROGRAM.format(begin=begin, ids=ids, keys=keys, first=first, second=second, use=used, width=width)


@pytest.mark.sample(12)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("kept", KEPT)
def test_as_eager(tmp_path: Path, kept: str, added: str, use: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(_source(kept, added, use))
    check(module_of(file).function, *CALLS)


@pytest.mark.sample(6)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("added", ADDED)
def test_lengths_that_are_open(tmp_path: Path, added: str, use: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(_source("variables", added, use))
    others = [[torch.cat([x] * times, 1).detach().requires_grad_(), bound] for times in (2, 3) for x, bound in CALLS]
    check(module_of(file).function, *CALLS, *others)


def attended(x, bound):
    ids, keys, values = x, x[:, 1:, None] * torch.ones(4), x[:, 1:, None] * torch.arange(4)
    mask = torch.ones_like(x[:, 1:]) if x.sum() < 1 else None
    while ids.sum() < bound:
        last = ids[:, -1:, None] * torch.arange(1, 5)
        keys, values = torch.cat([keys, last], 1), torch.cat([values, last * 2], 1)
        if mask is not None:
            mask = torch.cat([mask, mask.new_ones(mask.shape[0], 1)], 1)
        scores = last @ keys.transpose(1, 2)
        if mask is not None:
            scores = scores + mask[:, None]
        if scores.shape[-1] != ids.shape[1]:
            raise ValueError("as many keys as tokens")
        ids = torch.cat([ids, (scores.softmax(-1) @ values).mean(-1)], 1)
    return ids, keys, mask


def test_a_cache_of_keys_beside_tokens() -> None:
    tensors = [torch.tensor(rows, dtype=torch.float64) for rows in ([[0.1, 0.2], [0.1, 0.2]], [[0.5, 0.4], [0.8, 0.6]])]
    calls = [[x, torch.tensor(bound)] for x in tensors for bound in (0.0, 6.0, 90.0)]
    static = check(attended, *calls)
    loops = [op for op in static.programs[0].block.walk() if op.name == "while_loop"]
    assert len(static.programs) == len(loops) == 1


def test_in_a_file(tmp_path: Path) -> None:
    static = to_static(attended, input_spec=[InputSpec([None, None], torch.float64, "x"), InputSpec([], torch.float32)])
    calls = [[torch.full((rows, length), 0.3, dtype=torch.float64), torch.tensor(20.0)]
             for rows, length in ((1, 1), (2, 1), (3, 4))]  # fmt: skip
    check_saved(attended, static, tmp_path / "attended.d2s", *calls)
