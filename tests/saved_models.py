"""Models that are saved by the test's process and run by another one, which has neither converter nor source."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import dy2static
from tests import alone

Call = tuple[Sequence[Any], dict[str, Any]]


@dataclass(frozen=True)
class SavedModel:
    """A model, what it is called with, and how far results may be from eager's.

    The calls take every path; what is saved has seen all of them.
    """

    name: str
    make: Callable[[], torch.nn.Module]
    calls: Sequence[Call]
    tolerance: float = 0.0
    raises: bool = False
    """Whether eager raises in some of the calls."""


def hold_alone(models: Sequence[SavedModel], folder: Path) -> None:
    """Save each model after its calls in both modes, and hold a fresh process against eager.

    Raises:
        AssertionError: Results, losses of some training steps, or the state after them differ.
    """
    for model in models:
        torch.manual_seed(0)
        eager = model.make()
        layer = dy2static.to_static(copy.deepcopy(eager))
        for training in (False, True):
            layer.train(training)
            for number, call in enumerate(model.calls):
                alone.called(layer, call, number)
        layer.load_state_dict(eager.state_dict())
        dy2static.save(layer, folder / model.name)
        outcome = alone.exercise(eager, model.calls)
        raised = [found for found in outcome["results"] if isinstance(found[0], str) and found[0].endswith("Error")]
        assert model.raises or not raised, f"{model.name}: eager raises {raised}"
        wanted = {"calls": list(model.calls), "outcome": outcome, "tolerance": max(model.tolerance, 1e-6)}
        torch.save(wanted, folder / f"{model.name}.pt")
    script = shutil.copy(alone.__file__, folder)  # beside the tests it would find their packages
    ran = subprocess.run([sys.executable, "-W", "error", script, "."], cwd=folder, text=True, capture_output=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.splitlines() == [f"same {len(models)}"], ran.stdout
