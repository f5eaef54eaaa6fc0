"""Which Programs of the conformance suite have a form in an exported program, and whether they compute what eager does.

    python -m tests.runtime.export.torch_export.conformance      the share, what is refused, how many calls gave eager's
"""

from __future__ import annotations

import collections
import contextlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

import dy2static
from dy2static.errors import Dy2StaticError
from tests.conformance import suite
from tests.conformance.family import Case
from tests.oracle import copied
from tests.runtime.export.torch_export.harness import export, held, tensors_of


@dataclass(frozen=True)
class Outcome:
    """What became of a case: "exported", "refused" (by the exporter), "no Program" (nothing could be saved)."""

    kind: str
    why: str = ""
    ran: int = 0
    """Calls that ended as eager's."""


def cases() -> list[Case]:
    """Every case that is a function or module."""
    return [case for case in suite.all_cases() if case.kind != "scenario" and not case.refused and case.calls]


def _constants(call: Sequence[Any]) -> list[Any]:
    return [(type(one), one) if not isinstance(one, torch.Tensor) else (one.dtype, tuple(one.shape)) for one in call]


def _without_history(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value) in (list, tuple):
        return type(value)(map(_without_history, value))
    return {key: _without_history(one) for key, one in value.items()} if type(value) is dict else value


def outcome(case: Case) -> Outcome:
    """Export the Program of a case's first call, and hold it against eager on all calls that it fits.

    AssertionError: a result is not eager's.
    """
    torch.manual_seed(1234)
    target = case.target().eval() if case.kind == "module" else case.target
    eager = case.target().eval() if case.kind == "module" else case.target
    if case.kind == "module":
        eager.load_state_dict(target.state_dict())
    return attempt(target, eager, case.calls, max(case.tolerance, 1e-5))


def attempt(target: Any, eager: Any, calls: Sequence[Sequence[Any]], tolerance: float) -> Outcome:
    """What became of a function or module, whose first call is traced. AssertionError: a result is not eager's."""
    first = calls[0]
    static = dy2static.to_static(target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            static(*copied(first))
        try:
            model = export(static)
        except Dy2StaticError as error:
            kind = "refused" if error.code in ("D2S550", "D2S551") else "no Program"
            return Outcome(kind, f"{error.code} {error.summary}")
    fitting = [call for call in calls if _constants(call) == _constants(first)]
    fitting = [_without_history(call) for call in fitting if len(tensors_of(list(call))) == len(model.exported.inputs)]
    for call in fitting:
        held(model, eager, call, tolerance)
    return Outcome("exported", ran=len(fitting))


def main() -> None:
    """Print the share, and what is refused."""
    counts: collections.Counter[str] = collections.Counter()
    why: collections.Counter[str] = collections.Counter()
    ran = 0
    for case in cases():
        try:
            one = outcome(case)
        except Exception as error:
            one = Outcome("different", f"{type(error).__name__}: {error}")
        counts[one.kind] += 1
        ran += one.ran
        if one.why:
            why[f"{one.kind}: {one.why[:140]}"] += 1
            print(case.id, one.kind, one.why[:160], flush=True)
    print(dict(counts), f"{ran} calls ended as eager's")
    for text, count in why.most_common():
        print(f"{count:4} {text}")


if __name__ == "__main__":
    main()
