"""``F.embedding`` and ``nn.Embedding`` in a ``try`` whose handler catches what a number out of range raises."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import TraceError
from runtime.autodiff import gradient_path
from tests.oracle import PATHS, check, check_module, check_saved

CALLS = ("F.embedding(i, w)", "F.embedding(i, w, padding_idx=1)", "F.embedding(input=i, weight=w, padding_idx=-1)",
         "torch.embedding(w, i)", "torch.embedding(w, i, padding_idx=1, sparse=False)", "looked_up(i, w)",
         "F.embedding(i, w, 1, scale_grad_by_freq=True)")  # fmt: skip
HANDLED = ("IndexError", "LookupError", "(ValueError, IndexError)")
FORMS = {
    "message": "try:\n        return {call}, 'ok'\n    except {error} as e:\n        return w * 2, str(e)",
    "handed on": "try:\n        y = {call}\n    except {error} as e:\n        raise ValueError('too large') from e\n"
                 "    return y, 0",
    "clipped": "for most in (9, 5, 2):\n        try:\n            y = {call}\n            break\n"
               "        except {error}:\n            i = i.clamp(0, most)\n"
               "    else:\n        raise ValueError('never')\n    return y, most",
    "none caught": "y = {call}\n    try:\n        z = {call}\n    except {error} as e:\n        return y, str(e)\n"
                   "    return y + z, 'ok'",
}  # fmt: skip
NUMBERS = ([0, 2, 4], [0, 7, 1], [3, 3, 3], [-1, 0, 0], [4, 1, 12])
OTHERS = ([[0, 1], [2, 3]], [[5, 1], [2, 3]], [])
TEXT = """import torch
import torch.nn.functional as F

def looked_up(i, w):
    found = F.embedding(i, w)
    return found

def f(i, w):
    {body}
"""


def function(call: str, error: str, form: str, folder: Path) -> Any:
    path = folder / "caught.py"
    path.write_text(TEXT.format(body=FORMS[form].format(call=call, error=error)))
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


def calls(numbers: Any) -> list[Any]:
    weight = torch.arange(20.0).reshape(5, 4).sin()
    return [(torch.tensor(one, dtype=torch.int64), weight.clone().requires_grad_()) for one in numbers]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("call", "error", "form"), list(itertools.product(CALLS, HANDLED, FORMS)))
def test_as_eager(call: str, error: str, form: str, tmp_path: Path) -> None:
    """One Program for all numbers of one size; others, and none, in Programs of their own."""
    static = check(function(call, error, form, tmp_path), *calls(NUMBERS))
    assert len(static.programs) <= 2, [str(one) for one in static.programs]
    check(function(call, error, form, tmp_path), *calls(OTHERS))


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", FORMS)
def test_loaded(form: str, tmp_path: Path) -> None:
    made = function(CALLS[0], "IndexError", form, tmp_path)
    static = check(made, *calls(NUMBERS[:2]))
    check_saved(made, static, tmp_path / "f.d2s", *calls(NUMBERS))


WRITES = {
    "F.embedding(i, w.detach(), max_norm=1.0)": "IndexError", "F.embedding(i, w * 1, max_norm=1.0)": "IndexError",
    "F.embedding(i, torch.ones(5, 4), max_norm=1.0) + w[0]": "LookupError",
    "(w * 2).index_add_(0, i, torch.ones(3, 4))": "RuntimeError",
    "w.detach().clone().index_fill_(0, i, 2.0) * w": "IndexError",
    "w.clone().index_copy_(0, i, w[:3])": "Exception",
    "(w * 1).scatter_(0, i[:, None], 0.5)": "RuntimeError",
    "torch.cat([w.detach(), w]).index_add_(0, i, w[:3])": "(ValueError, RuntimeError)",
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("call", WRITES)
def test_what_is_written_before_it_raises(call: str, gradient: bool, path: str, tmp_path: Path) -> None:
    """A write is an error that says where, if a number is out of range: no handler sees it."""
    made = function(call, WRITES[call], "message", tmp_path)
    given = [(i, w.detach().clone().requires_grad_(gradient)) for i, w in calls(([0, 2, 4], [4, 4, 4], [0, 99, 1]))]
    static = check(made, *given[:2], paths=(path,), tolerance=1e-6)
    assert made(*given[2])[1] != "ok"
    with pytest.raises(TraceError, match="D2S229"), gradient_path(path):
        static(*given[2])


class Boxes(nn.Module):
    """As in LayoutLM: the modules' own error is given another message."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(9, 4), nn.Embedding(6, 4, **options)

    def forward(self, ids: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
        found = self.words(ids)
        try:
            left, right = self.places(box[..., 0]), self.places(box[..., 1])
        except IndexError as error:
            raise IndexError("coordinates should be within 0 and 5") from error
        return found + left * right


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}])
def test_modules(options: dict[str, Any]) -> None:
    good = torch.tensor([[[0, 1], [2, 3], [4, 0]]])
    ids = torch.tensor([[1, 8, 3]])
    check_module(lambda: Boxes(**options), (ids, good), (ids, good + 1), (ids, good + 3), (ids, good))


def test_words_that_nobody_catches_raise_as_ever() -> None:
    good = torch.tensor([[[0, 1], [2, 3], [4, 0]]])
    check_module(Boxes, (torch.tensor([[1, 8, 3]]), good), (torch.tensor([[1, 9, 3]]), good))
