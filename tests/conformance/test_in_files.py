"""Every case of the suite from a file: saved after its calls, loaded, and held against eager on the same calls."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

import dy2static
from dy2static.errors import Dy2StaticError
from tests.conformance.family import Case
from tests.conformance.suite import all_cases
from tests.oracle import Terms, copied, hold, opened, paired, run

_LEFT_OUT = {
    "calls-raise_own",  # a file has a class of its own for an exception of the user's
    "mutation-stateful",  # what a module keeps in a plain attribute is in no state dict, so eager cannot be given it
}
CASES = [case for case in all_cases() if not case.refused and case.kind != "scenario" and case.id not in _LEFT_OUT]

REFUSED: dict[str, str] = {
    "booleans-truth": "D2S316",
    "calls-except_key": "D2S316",
    "calls-match_plain": "D2S316",
    "calls-reraised": "D2S306",
    "calls-stores": "D2S520",
    "calls-wrong_arguments": "D2S306",
    "casts_and_shape-bool_of": "D2S316",
    "casts_and_shape-item": "D2S316",
    "casts_and_shape-item_of_many": "D2S304",
    "casts_and_shape-tolist": "D2S316",
    "errors-bad_unpack": "D2S307",
    "guards-by_content": "D2S316",
    "joins-one_element": "D2S316",
    "joins-several_elements": "D2S304",
    "mutation-global_counter": "D2S520",
    "mutation-log": "D2S520",
    "mutation-remembers": "D2S520",
}
"""By case, the code with which it is not saved, or with which a call of what is loaded is refused."""


def _saved(case: Case, file: Path) -> tuple[Any, Any]:
    """What is loaded, and what it is held against: a module as the calls that came before it have left it."""
    if case.kind == "module":
        layer, eager = paired(case.target)
    else:
        layer, eager = dy2static.to_static(case.target), case.target
    for call in case.calls:
        with contextlib.suppress(Exception):  # what eager raises, too
            layer(*copied(call))
    if case.kind == "module":
        eager.load_state_dict(layer.state_dict())
    dy2static.save(layer, file)
    loaded = dy2static.load(file)
    return loaded.train() if case.kind == "module" else loaded, eager


def _held(case: Case, folder: Path) -> str:
    """Hold a case against eager; the code with which it is refused."""
    try:
        loaded, eager = _saved(case, folder / "saved")
        names = [name for name, _ in eager.named_parameters()] if case.kind == "module" else []
        for number, call in enumerate(case.calls):
            mine, theirs = copied(call), copied(call)
            outcomes = [
                run(lambda *args: opened(one(*args)), given, number, [one.get_parameter(name) for name in names])
                for one, given in ((loaded, mine), (eager, theirs))
            ]
            terms = Terms(tolerance=case.tolerance, by_name=True)
            hold(*outcomes, f"call {number}", terms, [("arguments", mine, theirs)])
    except Dy2StaticError as error:
        return error.code
    return ""


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: Case, tmp_path: Path) -> None:
    assert _held(case, tmp_path) == REFUSED.get(case.id, "")
