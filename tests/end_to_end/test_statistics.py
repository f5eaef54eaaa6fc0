"""``statistics`` and the functions of ``math`` over items, where only the run knows the numbers."""

from __future__ import annotations

import math
import statistics

import pytest
import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import check, check_saved

VALUES = (
    (1.0, 2.0, 3.5, 2.0), (-1.0, 5.0, -3.25, 0.1), (3.0, 3.0, 3.0, 3.0), (-1.0, -2.0, -3.0, -4.0),
    (1e30, 1.0, -1e30, 2.0), (math.inf, 1.0, 2.0, 3.0), (4.0, 2.0, 4.0, 2.0),
    (1.0, 0.25, 3.0, 8.0), (2.0, 0.0, 1.0, 4.0),
)  # fmt: skip
CALLS = [(torch.tensor(values),) for values in VALUES]
KINDS = {
    "float": lambda e: e.item(),
    "int": lambda e: round(min(e.item(), 9.0)),
    "bool": lambda e: bool(e > 0),
    "int or float": lambda e: 1 if e > 0 else 2.5,
    "text": lambda e: "a" if e > 0 else "b",
}
DATA = {
    "list": lambda x, of: [of(e) for e in x],
    "tuple": lambda x, of: (of(x[0]), of(x[1]), of(x[3])),
    "generator": lambda x, of: (of(e) for e in x),
    "map": lambda x, of: map(of, x),
    "one": lambda x, of: [of(x[0])],
    "filtered": lambda x, of: [of(e) for e in x if e > 0],
}
FUNCTIONS = {
    **{name: getattr(statistics, name) for name in (
        "mean", "fmean", "median", "median_low", "median_high", "mode", "multimode", "quantiles", "variance",
        "pvariance", "stdev", "pstdev", "harmonic_mean", "geometric_mean")},
    "inclusive": lambda data: statistics.quantiles(data, n=3, method="inclusive"),
    "fsum": math.fsum,
    "dist": lambda data: _distance(list(data)),
}  # fmt: skip


def _distance(data):
    return math.dist(data, [0.5 * item for item in data])


CASES = [(function, kind, data) for function in FUNCTIONS for kind in KINDS for data in DATA]


@pytest.mark.sample(12)
@pytest.mark.parametrize(("function", "kind", "data"), CASES)
def test_as_eager(function, kind, data):
    compute, of, make = FUNCTIONS[function], KINDS[kind], DATA[data]

    def run(x):
        return compute(make(x, of)), x.sum()

    try:
        check(run, *CALLS)
    except Dy2StaticError as error:  # items of several kinds that grew; a mode of text and numbers
        assert data == "filtered" and kind in ("int or float", "text") or kind == "text", error


@pytest.mark.parametrize("data", ["list", "filtered"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_from_a_file(function, data, tmp_path):
    compute, make = FUNCTIONS[function], DATA[data]

    def run(x):
        return compute(make(x, float)), x.sum()

    static = to_static(run)
    static(*CALLS[0])  # a file raises errors of other classes than builtin ones as one of its own
    check_saved(run, static, tmp_path / "saved.d2s", CALLS[0], CALLS[2], CALLS[6])


def test_errors_are_handled():
    def run(x):
        losses = [e.item() for e in x if e > 0]
        try:
            spread = statistics.stdev(losses)
        except statistics.StatisticsError as error:
            return str(error)
        return spread

    check(run, *CALLS)


def test_what_the_run_raises_is_not_passed_by():
    """The sum of two infinities of other signs."""

    def run(x):
        total = 0.0
        try:
            total = math.fsum(x.tolist())
        except ValueError:
            total = -1.0
        return total

    with pytest.raises(Dy2StaticError, match="D2S229"):
        to_static(run)(torch.tensor([math.inf, -math.inf]))


def test_over_rows():
    def run(x):
        return x * statistics.mean(x.tolist()) + math.fsum(e.item() * 3 for e in x)

    x = torch.tensor([[1.0, 2.0], [-1.0, 3.0], [-4.0, -1.0]])
    rows = torch.vmap(to_static(run))(x)
    assert torch.equal(rows, torch.stack([run(row) for row in x]))
