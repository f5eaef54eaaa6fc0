"""Transformers saved after calls of several sizes: batch and length stay open, in a process without transformers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.saved_models import SavedModel, hold_alone

pytest.importorskip("transformers", reason="needs the third-party extra: pip install dy2static[third-party]")

sys.path.insert(0, str(Path(__file__).parent))

from models import LENGTHS, MODELS  # only importable with transformers
from test_lengths import SIZES, _inputs


@pytest.mark.parametrize("masked", [False, True], ids=["plain", "masked"])
@pytest.mark.parametrize("name", LENGTHS)
def test_batch_and_length_are_open(name: str, masked: bool, tmp_path: Path) -> None:
    """Three batch sizes and lengths, evaluation and twenty training steps."""
    calls = [((), _inputs(name, batch, length, masked)) for batch, length in SIZES]
    hold_alone([SavedModel(name, lambda: MODELS[name][0]().double(), calls)], tmp_path)
