"""A list as index of a tensor, with items that only the run knows: a tensor of numbers, a mask, or a tuple."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from tests.from_files import module_of
from tests.oracle import check

HEAD = """
import collections
import numpy as np
import torch

def kept(x, n):
    out = []
    for i in range(x.shape[0]):
        if x[i].sum() > n * 6:
            out.append(i)
    return out

"""
ITEMS = {
    "an int": "n.item()", "a negative int": "n.item() - 3", "another int": "0", "a bool": "bool(n > 0)",
    "another bool": "True", "a float": "float(n)", "a tensor": "n", "a mask": "n > 0", "a slice": "slice(0, n.item())",
    "None": "None", "an ellipsis": "...", "a list": "[n.item(), 1]", "a tuple": "(n.item(), 0)",
    "a list of bools": "[bool(n > 0), True, False]", "a range": "range(n.item())", "text": "'a'",
    "a list that grew": "kept(x, n)", "an index": "torch.tensor([1, 0])",
}  # fmt: skip
KEYS = {
    **{f"{one} and {other}": f"[{ITEMS[one]}, {ITEMS[other]}]" for one, other in itertools.permutations(ITEMS, 2)},
    **{f"{one} alone": f"[{item}]" for one, item in ITEMS.items()},
    **{f"columns of {one}": f":, [{item}, 0]" for one, item in ITEMS.items()},
    **{f"after a number, {one}": f"n.item(), [{item}, 1]" for one, item in ITEMS.items()},
    **{f"many of {one}": f"[{item}] * 33" for one, item in ITEMS.items()},
    **{f"a deque of {one}": f"collections.deque([{item}, 1])" for one, item in ITEMS.items()},
    "three bools": "[bool(n > 0), True, bool(n > 1)]", "bools known before": "[True, False, True], n.item()",
    "four bools": ":, [bool(n > 0), True, False, bool(n > 1)]", "bools after a number": "n.item(), [True, False] * 2",
    "an array of NumPy's": "[np.array([0, 1]), n.item()]", "a number of NumPy's": "[np.int64(1), n.item()]",
    "a number of NumPy's and one of the run": "np.int64(1), n.item()",
    "deep": "[[[[n.item()]], [[1]]]]", "grown": "kept(x, n)", "grown columns": ":, kept(x, n)",
    "grown and a number": "kept(x, n), n.item()", "grown, as a tuple's only item": "tuple(kept(x, n)),",
    "grown floats": "[float(i) for i in kept(x, n)]", "two grown": "[kept(x, n), kept(x, n)]",
    "a range": "range(n.item())", "a range and a number": "range(n.item()), 1", "too large": "[n.item() + 7, 0]",
}  # fmt: skip
WAYS = {
    "read": "return x[{key}]",
    "write": "y = x.clone()\n    y[{key}] = 5.0\n    return y",
    "write of a tensor": "y = x.clone()\n    y[{key}] = x.sum()\n    return y",
    "in place": "y = x.clone()\n    y[{key}] += 1\n    return y",
}
CASES = list(itertools.product(WAYS, KEYS))
REFUSED = {"D2S253", "D2S231", "D2S235"}
"""Grown lists among lists, and masks beside indices: whether as many are chosen as there only the run knows."""
OPEN = ("bool", "mask", "range", "grew", "grown")


@pytest.mark.sample(60)
@pytest.mark.parametrize(("way", "key"), CASES)
def test_as_in_eager(way: str, key: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(HEAD + f"def f(x, n):\n    {WAYS[way].format(key=KEYS[key])}\n")
    calls = [(torch.arange(12.0).reshape(3, 4).requires_grad_(), torch.tensor(n)) for n in (1, 0, 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eager's: some lists will mean something else one day
        try:
            check(module_of(file).f, *calls, paths=("program",))
        except TraceError as error:
            assert error.code in REFUSED and any(word in key for word in OPEN), error
        except RuntimeError as error:  # a loud one: eager stretches a range of one number
            assert "do not fit together" in str(error) and "range" in key, error


@pytest.mark.parametrize("key", ["[n.item(), None]", "[[n.item()], [0]]"])
def test_that_a_list_means_a_tuple_is_said_as_in_eager(key: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(f"def f(x, n):\n    return x[{key}]\n")
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        check(module_of(file).f, (torch.ones(3, 4), torch.tensor(1)), paths=("program",))


@pytest.mark.parametrize("made", ["[bool(i > 0) for i in kept(x, n)]", "[torch.tensor(i) for i in kept(x, n)]"])
def test_items_of_which_the_number_decides_are_refused(made: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(HEAD + f"def f(x, n):\n    return x[{made}]\n")
    function: Any = module_of(file).f
    with pytest.raises(TraceError, match="D2S253"):
        check(function, (torch.ones(3, 4), torch.tensor(0)), paths=("program",))
