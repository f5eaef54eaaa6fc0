"""Operators that give back the very tensor they are given: it is the same object, and the same memory."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check

_CALLS = """x.to(x.dtype) x.float() x.cpu() x.contiguous() x.expand(2,3) x.expand_as(x) x.type_as(x) x.to("cpu") x.to(x)
torch.atleast_2d(x) torch.atleast_1d(x) x.positive() x.real x.conj() x.resolve_conj() x.resolve_neg() x.reshape(2,3)
torch.nn.functional.dropout(x,0.5,False) torch.dropout(x,0.0,True) torch.nn.functional.alpha_dropout(x,0.5,False)
x.view(2,3) x.squeeze() x.flatten() x[:] x[...] x.detach() x.data x.to(torch.float64) x.t().contiguous() x.bool()
x.double() x.to(x.dtype,copy=True) x.type(torch.float32) x.sum_to_size(2,3) x.broadcast_to(2,3) x.narrow(0,0,2)
x.ravel() torch.broadcast_tensors(x,x)[0] x.clone() x.add_(0) x.requires_grad_(x.requires_grad) x.movedim(0,0)
x.permute(0,1) x.transpose(0,0) x.swapaxes(0,0) x.rot90(0) torch.nn.Identity()(x) torch.nn.Dropout().eval()(x)
torch.as_tensor(x) torch.asarray(x) torch.real(x) x.mT x.trunc() x.float().float() x.float().contiguous()""".split()


def _functions(folder: Path) -> Iterator[tuple[str, Any]]:
    """For each call: is its result the tensor, by ``is``, ``id`` and ``hash``; of an argument, a result and a view."""
    path = folder / "identities.py"
    lines = ["import torch"]
    for number, call in enumerate(_CALLS):
        lines += [f"def f{number}(x, y):", f"    a = {call} is x, id({call}) == id(x)", "    x = y[:2]",
                  f"    b = {call} is x", "    x = y[:2] * 1", f"    return a, b, {call} is x, hash({call}) == hash(x)"]
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location("identities", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["identities"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for number, call in enumerate(_CALLS):
        yield call, getattr(module, f"f{number}")


@pytest.mark.filterwarnings("ignore")
def test_what_is_the_same_object(tmp_path: Path) -> None:
    same = 0
    for call, function in _functions(tmp_path):
        expected = function(torch.ones(2, 3), torch.ones(4, 3))
        assert dy2static.to_static(function)(torch.ones(2, 3), torch.ones(4, 3)) == expected, call
        same += sum(map(all, (expected[0], expected[1:3], expected[3:])))
    print(f"{len(_CALLS)} calls, {same} of {3 * len(_CALLS)} times the same object")
    assert same > 60


def written_after_dropout(x: Any) -> Any:
    y = torch.nn.functional.dropout(x, 0.5, False)
    y.add_(1)
    return x * 1, y


def written_after_dropout_on_a_path(x: Any, w: Any) -> Any:
    h = x * w
    if x.sum() > 0:
        torch.nn.functional.dropout(h, 0.5, False).mul_(2)
    return h


def hung_on_what_is_the_same(x: Any) -> Any:
    y = x * 2
    y.float().note = 3  # type: ignore[attr-defined]
    return y.note  # type: ignore[attr-defined]


@pytest.mark.parametrize("function, args", [
    (written_after_dropout, (torch.ones(3),)),
    (written_after_dropout_on_a_path, (torch.ones(3), torch.ones(3, requires_grad=True))),
    (written_after_dropout_on_a_path, (-torch.ones(3), torch.ones(3, requires_grad=True))),
    (hung_on_what_is_the_same, (torch.ones(3),)),
])  # fmt: skip
def test_what_is_the_same_memory(function: Any, args: Any) -> None:
    check(function, args)
