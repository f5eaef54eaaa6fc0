"""A tensor that a cached function gave on a path, and that is used after it: it may be read there, and is refused where
it would show that it is not the one of the cache."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import Dy2StaticError
from tests.from_files import module_of

MADE = {
    "branch": "h = x\n    if x.sum() > 0:\n        h = kept(1)",
    "both": "if x.sum() > 0:\n        h = kept(1)\n    else:\n        h = x - 1",
    "perhaps": "h = None\n    if x.sum() > 0:\n        h = kept(1)\n    h = x if h is None else h",
    "view": "h = x[:2]\n    if x.sum() > 0:\n        h = kept(1)[:2]",
    "nested": "h = x\n    if x.sum() > 0:\n        if x.max() > 2:\n            h = kept(1)",
    "loop": "h = x\n    for _ in range(int((x > 0).sum())):\n        h = kept(1)",
    "branch in a loop": "h = x\n    for row in x:\n        if row > 0:\n            h = kept(1)",
    "attribute": "b = Box()\n    b.h = x\n    if x.sum() > 0:\n        b.h = kept(1)\n    h = b.h",
    "item": "items = [x]\n    if x.sum() > 0:\n        items[0] = kept(1)\n    h = items[0]",
    "key": "items = {'h': x}\n    if x.sum() > 0:\n        items['h'] = kept(1)\n    h = items['h']",
    "grown": "items = [x]\n    for row in x:\n        if row > 0:\n            items += [kept(1)]\n    h = items[-1]",
    "helper": "h = choose(x)",
}
SHOWING = {
    "returned": "return x, h", "in a list": "return [h]", "in a dict": "return {'h': h}",
    "stored": "HOLDER.h = h\n    return x",
    "written": "h.add_(1)\n    return x", "part written": "h[0] = 5\n    return x",
    "view written": "h[:1].mul_(3)\n    return x",
    "returned view": "return h[:1]", "told apart": "return x + 1 if h is kept(1) else x",
    "carried": "for _ in range(int((x > 1).sum())):\n        h = h * 1 if x[0] > 5 else h\n    return h",
    "chosen": "r = h if x[0] > 0.5 else x\n    return r",
    "listed": "out = []\n    for row in x:\n        out.append(h)\n    return out",
}  # fmt: skip
READING = {
    "sum": "return x.sum() + h.sum()", "computed": "return h * 2", "item of it": "return h[0] + 1",
    "asked": "return x + 1 if h.sum() > 1 else x", "copied": "return h.clone()", "number": "return float(h.sum())",
    "in a loop": "for _ in range(int((x > 1).sum())):\n        x = x + h[0]\n    return x",
}  # fmt: skip
CALLS = [torch.tensor(values) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [4.0, 2.0, 3.0], [1.0, -3.0, 0.5])]


def program(made: str, use: str, tmp_path: Path) -> Any:
    source = (
        "import functools\nimport torch\n\nclass Box:\n    pass\n\nHOLDER = Box()\n\n@functools.cache\ndef kept(n):\n"
        "    return torch.arange(3.0) * n\n\n"
        "def choose(x):\n    if x.sum() > 0:\n        return kept(1)\n    return x\n\n"
        f"def f(x):\n    {made}\n    {use}\n"
    )
    (tmp_path / "one.py").write_text(source)
    return module_of(tmp_path / "one.py")


@pytest.mark.sample(4)
@pytest.mark.parametrize("use", READING)
@pytest.mark.parametrize("made", MADE)
def test_it_may_be_read(made: str, use: str, tmp_path: Path) -> None:
    module = program(MADE[made], READING[use], tmp_path)
    static = dy2static.to_static(module.f)
    for x in CALLS:
        got, expected = static(x.clone()), module.f(x.clone())
        assert type(got) is type(expected)
        assert got == expected if isinstance(got, float) else torch.equal(got, expected)


@pytest.mark.sample(4)
@pytest.mark.parametrize("use", SHOWING)
@pytest.mark.parametrize("made", MADE)
def test_what_shows_which_one_it_is_is_refused(made: str, use: str, tmp_path: Path) -> None:
    module = program(MADE[made], SHOWING[use], tmp_path)
    with pytest.raises(Dy2StaticError, match=r"cached|shares? its memory|may share") as error:
        dy2static.to_static(module.f)(CALLS[0].clone())
    assert error.value.code in ("D2S276", "D2S222")


@pytest.mark.parametrize("use", SHOWING)
def test_none_of_that_is_refused_where_it_was_called_before(use: str, tmp_path: Path) -> None:
    """With what the cache keeps, each is as in eager."""
    mine, theirs = (program(MADE["branch"], SHOWING[use], tmp_path) for _ in range(2))
    for module in (mine, theirs):
        assert isinstance(module.kept, functools._lru_cache_wrapper)
        module.kept(1)
    static = dy2static.to_static(mine.f)
    for x in CALLS:
        got, expected = static(x.clone()), theirs.f(x.clone())
        assert str(got) == str(expected)
        assert torch.equal(mine.kept(1), theirs.kept(1))
