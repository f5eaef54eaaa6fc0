"""Sizes, and tuples of other classes, in lists whose length only the run knows: they come out as what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import dy2static
from dy2static import InputSpec
from dy2static.errors import InternalError, TraceError
from dy2static.operators.calls.sequences import StagedZip
from runtime.ir.tree import Leaf, Record
from runtime.tracer.boundary.finished import require_users_own
from runtime.tracer.numbers.staged_size import StagedSize
from tests.from_files import module_of
from tests.oracle import check, check_saved, difference

HEAD = """
import collections
import types
import torch
from typing import NamedTuple

class Sized(NamedTuple):
    size: torch.Size
    total: torch.Tensor

class Logs(list):
    pass

FIXED = frozenset([1, 2])

"""
ITEMS = {
    "size": "x.shape", "of what is chosen": "x[x > 0].shape", "with text": "(x.shape, 'a')", "list": "[x.shape, 1]",
    "dict": "{'s': x.shape}", "namedtuple": "Sized(x.shape, x.sum())", "deep": "[(x.shape, [x[x > 0].shape])]",
    "sum": "x.shape + (1,)", "slice": "x.shape[1:]", "tuple": "tuple(x.shape)", "none": "x.sum().shape",
    "structseq": "torch.max(x, 0)", "deque": "collections.deque([x.shape])", "list of a class": "Logs([x.shape])",
    "frozenset": "FIXED", "number": "x.shape[0]", "grown": "[row.shape for row in x if row > 1]",
    "of two": "x.shape if x[0] > 0 else x[1:].shape", "size or tuple": "x.shape if x[0] > 0 else (3,)",
}  # fmt: skip
PATHS = {
    "while": "l = []\n    while x.sum().abs() < 20:\n        x = torch.cat([x, x])\n        l.append($I)\n    return l",
    "for": "l = []\n    for row in x:\n        if row > 0: l.append($I)\n    return l",
    "if": "l = []\n    if x.sum() > 3: l.append($I)\n    return l",
    "tuple": "l = ()\n    for row in x:\n        if row > 0: l = (*l, $I)\n    return l",
    "deque": "l = collections.deque()\n    for row in x:\n        if row > 0: l.append($I)\n    return l",
    "of a dict": "d = {}\n    for row in x:\n        if row > 0: d.setdefault('k', []).append($I)\n    return d",
    "extend": "l = []\n    for row in x:\n        if row > 0: l.extend([$I, $I])\n    return l",
    "in lists":
        "l = []\n    for r in x:\n        k = []\n        if r > 0: k.append($I)\n        l.append(k)\n    return l",
}
REFUSED = {
    *((item, "tuple") for item in ("list", "dict", "deep", "deque", "list of a class", "grown")),  # behind a star
    *((item, "while") for item in ("deque", "list of a class")),  # made by an iteration
}
SPEC = [InputSpec([None], torch.float32)]
CALLS = [(torch.tensor(one),) for one in ([1.0, 2.0, 3.0], [-3.0, -1.0, 2.0])]
CALLS.append((torch.tensor([4.0, 2.0, 3.0], requires_grad=True),))


def _function(item: str, path: str, folder: Path) -> Any:
    (folder / "grows.py").write_text(f"{HEAD}def f(x):\n    {PATHS[path].replace('$I', ITEMS[item])}\n")
    return module_of(folder / "grows.py").f


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("item", ITEMS)
def test_what_a_list_that_grew_gives_back(item: str, path: str, tmp_path: Path) -> None:
    f = _function(item, path, tmp_path)
    if (item, path) in REFUSED:
        with pytest.raises(TraceError) as caught:
            dy2static.to_static(f)(*CALLS[0])
        assert caught.value.code in ("D2S251", "D2S254")
    else:
        check(f, *CALLS)


@pytest.mark.parametrize("path", ["while", "for"])
@pytest.mark.parametrize("item", ["size", "with text", "dict", "deep", "of two"])
def test_what_a_loaded_list_that_grew_gives_back(item: str, path: str, tmp_path: Path) -> None:
    f = _function(item, path, tmp_path)
    check_saved(f, dy2static.to_static(f, input_spec=SPEC), tmp_path / "f.d2s", *CALLS[:2])


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_what_a_hook_collects_on_a_path() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            if y.sum() > 3:
                y = self.layer(y[:2])
            return y

    nets, seen = [Net(), Net()], [list[Any](), list[Any]()]
    for net, log in zip(nets, seen):
        net.layer.register_forward_hook(lambda m, a, out, log=log: log.append(out.shape) or out + 1)
    converted: Any = dy2static.to_static(nets[0])
    for number in (0, 0, 1, 0, 1):
        results = [net(*CALLS[number]) for net in (converted, nets[1])]
        assert not difference((results[0], seen[0]), (results[1], seen[1]))


class _Sub(NamedTuple):
    size: Any


@pytest.mark.parametrize("tree", [
    StagedSize((3,)), [StagedSize((Record("column", "", ()),))], {"a": (1, StagedSize(()))}, _Sub,
    Record("known", "", (("value", [StagedSize((Leaf(0),))]),)), [object.__new__(StagedZip)],
])  # fmt: skip
def test_nothing_of_the_tracer_s_own_is_in_a_finished_tree(tree: Any) -> None:
    if tree is _Sub:
        made = Record("namedtuple", "Sub", (("keys", ("size",)), ("size", Leaf(0))))
        require_users_own([made], [_Sub, [1], type("Other", (), {"__module__": 5})()])
        for kept in (StagedSize, StagedZip, StagedSize((1,)), Record("size", "", ())):
            with pytest.raises(AssertionError, match="stands for a value while tracing only"):
                require_users_own([], [kept])
        return
    with pytest.raises(AssertionError, match="stands for a value while tracing only"):
        require_users_own([tree], [])


def test_such_a_tree_is_a_located_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: torch.Tensor) -> Any:
        sizes = []
        for row in x:
            if row > 0:
                sizes.append(x.shape)
        return sizes

    monkeypatch.setattr("runtime.tracer.boundary.results._in_class", lambda kind, parts: kind(parts))
    with pytest.raises(InternalError) as caught:
        dy2static.to_static(f)(*CALLS[0])
    assert caught.value.code == "D2S290"
