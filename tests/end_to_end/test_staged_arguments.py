"""Staged values as arguments of torch's functions: every kind, every allowed operator, and cases met in the field."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict

import pytest

from runtime.errors import TraceError
from tests.end_to_end.oracle import check
from tests.end_to_end.staged_calls import StagedCall, staged_calls


def _walk(calls: list[StagedCall]) -> tuple[dict[str, Counter[str]], list[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    refused: dict[str, list[str]] = defaultdict(list)
    for call in calls:
        grad = call.is_differentiable()
        runs = []
        for selector in call.selectors():
            runs.append((selector, *(tensor.clone().requires_grad_(grad) for tensor in call.tensors())))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(call.staged(), *runs, paths=("program",), tolerance=1e-6)
        except TraceError as error:
            counts[call.kind][f"refused {error.code}"] += 1
            refused[str(error.code)].append(f"{call.name} {call.place}")
            assert error.location is not None
        except Exception as error:
            wrong.append(f"{call.name} {call.place} ({call.kind}): {type(error).__name__} {str(error)[:200]}")
        else:
            counts[call.kind]["as eager"] += 1
    print(dict(refused))
    return counts, wrong


@pytest.mark.slow
def test_every_argument_of_every_operator() -> None:
    counts, wrong = _walk(list(staged_calls()))
    for kind, found in counts.items():
        print(kind, dict(found))
    assert not wrong, "\n".join(wrong)
    assert sum(found["as eager"] for found in counts.values()) > 600
