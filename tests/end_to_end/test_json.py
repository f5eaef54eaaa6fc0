"""``json.dumps`` of values that only the run knows."""

from __future__ import annotations

import collections
import json

import pytest
import torch

from dy2static import to_static
from tests.oracle import check, check_saved

CALLS = [(torch.tensor(values),) for values in (
    [1.0, 2.5, -3.0], [-1.0, 0.25, 7.0], [float("nan"), float("inf"), -float("inf")], [-1.0, -2.0, -3.0])]  # fmt: skip
Point = collections.namedtuple("Point", "x y")
VALUES = {
    "float": lambda x: x[0].item(),
    "int": lambda x: int((x > 0).sum()),
    "bool": lambda x: bool(x[0] > 0),
    "text": lambda x: f'é"\\\n\x01\U0001f600{int((x > 0).sum())}',
    "chosen text": lambda x: "up" if x[0] > 0 else 'do"wn\t',
    "chosen": lambda x: None if x[0] > 0 else 3,
    "list": lambda x: x.tolist(),
    "grown": lambda x: [e.item() for e in x if e > 0],
    "grown texts": lambda x: [f"<{e.item()}>" for e in x if e > 0],
    "dict": lambda x: {"b": x[0].item(), "a": [True, None, {"n": int(x[1] > 0)}], 3: 1, None: 2},
    "dict of one kind": lambda x: {"b": x[0].item(), "a": (1, x[1].item()), "c": {}},
    "keys of the run": lambda x: {int((x > 0).sum()): 1, 7: x[0].item()},
    "float keys": lambda x: {0.5: x[0].item(), True: 1},
    "key of a path": lambda x: _with(x, {"a": 1}),
    "named tuple": lambda x: Point(x[0].item(), [x[1].item()]),
    "ordered": lambda x: collections.OrderedDict(z=x[0].item(), a=[]),
    "counter": lambda x: collections.Counter("ab" if x[0] > 0 else "b"),
    "tensor": lambda x: {"a": x[0].item(), "t": x},
    "known": lambda x: {"a": [1, 2.5, "é"]},
}
OPTIONS = {
    "none": {}, "indent": {"indent": 2}, "tabs": {"indent": "\t"}, "no indent": {"indent": 0},
    "separators": {"separators": (",", ":")}, "sorted": {"sort_keys": True}, "letters": {"ensure_ascii": False},
    "no nan": {"allow_nan": False}, "default": {"default": lambda one: one.tolist()},
}  # fmt: skip


def _with(x, made):
    if x[0] > 0:
        made["more"] = x[1].item()
    return made


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.sample(5)
def test_as_eager(value, options):
    make, given = VALUES[value], OPTIONS[options]

    def function(x):
        return json.dumps(make(x), **given), x * 2

    check(function, *CALLS)


@pytest.mark.parametrize("value", ["dict", "grown", "chosen text", "key of a path"])
def test_from_a_file(value, tmp_path):
    make = VALUES[value]

    def function(x):
        return json.dumps(make(x)), x * 2

    static = to_static(function)
    static(*CALLS[0])
    check_saved(function, static, tmp_path / "saved.d2s", *CALLS)
