"""Numbers, bools and words that only the run knows in uses of torch's functions: equal to eager, or refused by name."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dy2static import to_static
from dy2static.input_spec import InputSpec
from runtime.errors import Dy2StaticError
from tests.end_to_end.staged_uses import REFUSED, Use, every, functions
from tests.oracle import check, check_saved

_STEP = 31
"""The default run takes one use in so many."""
_PARTS = 8


def _spec(use: Use) -> list[InputSpec]:
    calls = use.calls(False)
    shapes = [call[0].shape for call in calls]
    sizes = [None if len(set(dims)) > 1 else dims[0] for dims in zip(*shapes)]
    return [InputSpec(sizes)] + [InputSpec(list(one.shape), one.dtype) for one in calls[0][1:]]


def _check_file(use: Use, function: Callable[..., Any], folder: Path) -> None:
    static = to_static(function, input_spec=_spec(use))
    check_saved(function, static, folder / "model.d2s", *use.calls(False), paths=("program",), tolerance=1e-6)


def _run(uses: list[Use], folder: Path) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for use, function in zip(uses, functions(uses, folder)):
        for how in ("with gradient", "without", "from a file"):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if how == "from a file":
                        _check_file(use, function, folder)
                    else:
                        check(function, *use.calls(how == "with gradient"), tolerance=1e-6)
            except Dy2StaticError as error:
                expected = "D2S235" if "ctc_loss" in use.text else REFUSED.get(use.text)
                if error.code != expected:
                    wrong.append(f"{use.text} {how}: {error}")
                counts[f"refused {error.code}"] += 1
            except Exception as error:
                wrong.append(f"{use.text} {how}: {type(error).__name__} {str(error)[:300]}")
            else:
                counts["equal"] += 1
    print(dict(counts))
    assert not wrong, "\n".join(wrong)
    assert counts["equal"] > 3 * len(uses) // 2


def test_some_uses(tmp_path: Path) -> None:
    _run(list(every())[::_STEP], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_use(part: int, tmp_path: Path) -> None:
    _run(list(every())[part::_PARTS], tmp_path)
