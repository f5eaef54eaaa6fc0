"""The conformance suite and random programs through an exporter: what it refuses, and whether the rest gives eager's.

An exporter's ``attempt(target, eager, calls, tolerance, name)`` says what became of a function or module, whose first
call is traced; what is exported is run on the calls that it fits. AssertionError: a result is not eager's.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import dy2static
from dy2static.errors import Dy2StaticError
from tests.conformance import suite
from tests.conformance.family import Case
from tests.fuzz.generator import Generator
from tests.fuzz.judging import TOLERANCE, inputs, load
from tests.oracle import copied, tensors


@dataclass(frozen=True)
class Outcome:
    """What became of a program: "exported", "refused" (by the exporter), "no Program" (nothing could be saved)."""

    kind: str
    why: str = ""
    ran: int = 0
    """Calls that ended as eager's."""


Call = Sequence[Any]
Attempt = Callable[[Any, Any, Sequence[Call], float, str], Outcome]


def cases() -> list[Case]:
    """Every case that is a function or module."""
    return [case for case in suite.all_cases() if case.kind != "scenario" and not case.refused and case.calls]


def constants(call: Call) -> list[Any]:
    """What a call has to have in common with the one that was exported."""
    return [(type(one), one) if not isinstance(one, torch.Tensor) else (one.dtype, tuple(one.shape)) for one in call]


def fitting(calls: Sequence[Call]) -> list[Call]:
    """The calls that what is exported for the first of them takes."""
    return [call for call in calls if constants(call) == constants(calls[0])]


def without_history(value: Any) -> Any:
    """The same, of tensors that need no gradient."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value) in (list, tuple):
        return type(value)(map(without_history, value))
    return {key: without_history(one) for key, one in value.items()} if type(value) is dict else value


def attempted(
    export: Callable[[Any], Any], held: Callable[[Any, Any, Call, float], None], refusals: Sequence[str],
    target: Any, eager: Any, calls: Sequence[Call], tolerance: float,
) -> Outcome:  # fmt: skip
    """An attempt, for exporters whose models ``held`` holds against eager, call by call.

    ``refusals``: the codes of the exporter's own errors.
    """
    static = dy2static.to_static(target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            static(*copied(calls[0]))
        try:
            model = export(static)
        except Dy2StaticError as error:
            return Outcome("refused" if error.code in refusals else "no Program", f"{error.code} {error.summary}")
    ran = [call for call in fitting(calls) if len(tensors(list(call))) == len(model.exported.inputs)]
    for call in ran:
        held(model, eager, without_history(call), tolerance)
    return Outcome("exported", ran=len(ran))


def pair(make: Callable[[], torch.nn.Module]) -> tuple[torch.nn.Module, torch.nn.Module]:
    """A module, and another like it."""
    torch.manual_seed(1234)
    target, eager = make().eval(), make().eval()
    eager.load_state_dict(target.state_dict())
    return target, eager


def of_case(case: Case, attempt: Attempt) -> Outcome:
    """What becomes of a case of the conformance suite. AssertionError: a result is not eager's."""
    torch.manual_seed(1234)
    target, eager = pair(case.target) if case.kind == "module" else (case.target, case.target)
    return attempt(target, eager, case.calls, max(case.tolerance, 1e-5), case.id)


def of_seed(seed: int, attempt: Attempt, draws: bool = False) -> Outcome:
    """What becomes of a random program: "different" where a result is not eager's. ``draws``: random numbers, too."""
    source = Generator(seed, depth=3, draws=draws).source()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load(source, seed, folder)
        target, eager = pair(module.Model) if hasattr(module, "Model") else (module.f, module.f)
        try:
            return attempt(target, eager, inputs(seed), TOLERANCE, f"seed {seed}")
        except Exception as error:
            return Outcome("different", f"{type(error).__name__}: {error}\n{source}")


def report_cases(attempt: Attempt) -> None:
    """Print the share of the conformance suite, and what is refused."""
    def outcomes() -> Iterable[tuple[str, Outcome]]:
        for case in cases():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    yield case.id, of_case(case, attempt)
            except Exception as error:
                yield case.id, Outcome("different", f"{type(error).__name__}: {error}")

    _report(outcomes(), each=True)


def report_seeds(attempt: Attempt, description: str | None, draws: bool = False) -> int:
    """The command ``--seed 0 --count 100``: 1 if some program is "different".

    ``draws``: with programs that draw random numbers, which most places cannot do as PyTorch does.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    counts = _report(((f"seed {seed}", of_seed(seed, attempt, draws)) for seed in seeds), each=False)
    return 1 if counts["different"] else 0


def _report(outcomes: Iterable[tuple[str, Outcome]], each: bool) -> collections.Counter[str]:
    """``each``: a line for each that is not exported, not for those alone that are different."""
    counts: collections.Counter[str] = collections.Counter()
    why: collections.Counter[str] = collections.Counter()
    ran = 0
    for name, one in outcomes:
        counts[one.kind] += 1
        ran += one.ran
        if one.kind == "different":
            print(f"--- {name} {one.kind}\n{one.why}", flush=True)
        elif one.why:
            why[f"{one.kind}: {one.why[:140]}"] += 1
            if each:
                print(name, one.kind, one.why[:160], flush=True)
    print(dict(counts), f"{ran} calls ended as eager's")
    for text, count in why.most_common(None if each else 20):
        print(f"{count:4} {text}")
    return counts
