"""Models that were saved, in a process without the converter and their source: results and training as in eager.

The modules of the conformance suite that have a file, and other people's ways to write models.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import torch
from torch import nn

from examples.compress_digits import Classifier
from tests import alone
from tests.conformance.suite import all_cases
from tests.end_to_end.trained_models import LETTERS, DynamicRNN, LanguageModel, PonderNet
from tests.saved_models import SavedModel, hold_alone

WITHOUT_FILE = ("mutation-log", "mutation-remembers", "mutation-stateful", "calls-stores")
"""These keep something beside parameters and buffers from call to call: refused, or in no file."""
MODULES = [case for case in all_cases() if case.kind == "module" and not case.refused and case.id not in WITHOUT_FILE]


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.slow
def test_the_conformance_suites_modules(tmp_path: Path) -> None:
    """28 of them, in one process."""
    hold_alone([
        SavedModel(one.id, one.target, [(call, {}) for call in one.calls], one.tolerance, raises=True)
        for one in MODULES
    ], tmp_path)  # fmt: skip


MODELS = [
    SavedModel(
        "layers", functools.partial(nn.TransformerEncoderLayer, 8, 2, 16, batch_first=True),
        [((rand(2, 5, 8),), {}), ((rand(3, 4, 8),), {"src_key_padding_mask": torch.arange(4).expand(3, 4) > 2})], 1e-5),
    SavedModel(
        "recurrent", functools.partial(nn.LSTM, 3, 4, 2, dropout=0.1),
        [((rand(5, 2, 3),), {}), ((rand(2, 4, 3),), {})], 1e-5),
    SavedModel(
        "digits", functools.partial(Classifier, 4),
        [((rand(3, 1, 8, 8),), {}), ((5 * rand(3, 1, 8, 8),), {})], 1e-5),
    SavedModel(
        "language", functools.partial(LanguageModel, len(LETTERS)), [((torch.arange(12).view(2, 6),), {})], 1e-5),
    SavedModel("lengths", DynamicRNN, [((rand(4, 6, 3), torch.tensor([6, 2, 4, 1])), {})], 1e-5),
    SavedModel("ponder", PonderNet, [((rand(8, 4),), {}), ((3 * rand(8, 4),), {})], 1e-5),
]  # fmt: skip


@pytest.mark.sample(100)  # each takes a process of its own
@pytest.mark.parametrize("model", MODELS, ids=[model.name for model in MODELS])
def test_other_models(model: SavedModel, tmp_path: Path) -> None:
    hold_alone([model], tmp_path)


def test_what_differs_is_seen() -> None:
    one = {"results": [[torch.ones(2), 1, "a"]], "losses": [0.5]}
    other = {"results": [[torch.ones(2) + 1e-3, True, "b"]], "losses": [0.6]}
    assert list(alone.differences(one, one, "m", 1e-6)) == []
    assert len(list(alone.differences(one, other, "m", 1e-6))) == 4
    assert list(alone.differences([torch.ones(2)], [torch.ones(2).double()], "m", 1e-6))
    assert list(alone.differences([1, 2], [1], "m", 1e-6))
