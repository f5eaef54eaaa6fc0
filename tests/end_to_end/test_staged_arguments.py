"""Staged values as arguments of torch's functions: every kind, every allowed operator, and cases met in the field."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from dy2static import load, save, to_static
from dy2static.input_spec import InputSpec
from runtime.errors import TraceError
from tests.end_to_end.staged_calls import StagedCall, staged_calls
from tests.oracle import check


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


def test_some_arguments_of_some_operators() -> None:
    """Every twentieth of what the slow test runs."""
    counts, wrong = _walk(list(staged_calls())[::20])
    print({kind: dict(found) for kind, found in counts.items()})
    assert not wrong, "\n".join(wrong)
    assert sum(found["as eager"] for found in counts.values()) > 20


@pytest.mark.slow
def test_every_argument_of_every_operator() -> None:
    counts, wrong = _walk(list(staged_calls()))
    for kind, found in counts.items():
        print(kind, dict(found))
    assert not wrong, "\n".join(wrong)
    assert sum(found["as eager"] for found in counts.values()) > 600


# -- cases from the field

T = torch.tensor


def _x(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), requires_grad=True)


def dropout_flag(x, t):
    return F.dropout(x, 0.5, training=bool(t))


def dropout_rate(x, p):
    return F.dropout(x, float(p), training=True)


def dropout_tensor_condition(x, t):
    return F.dropout(x, 0.5, training=bool(t.sum() > 0)) * 2


def sum_of_dimension(x, d):
    return x.sum(int(d))


def sum_kept(x, flag):
    return x.sum(0, keepdim=bool(flag))


def permuted(x, d):
    return x.permute(int(d), 0, 2)


def two_dimensions(x, d):
    return x.transpose(int(d), int(d) - 1).sum(int(d))


def maximum_of_dimension(x, d):
    values, indices = x.max(dim=int(d))
    return values, indices


def softmax_of_dimension(x, d):
    return F.softmax(x, dim=int(d))


def numpy_names(x, d):
    return x.sum(axis=int(d), keepdims=bool(d))


def stacked(x, d):
    return torch.stack([x, x * 2], int(d))


def rounding(x, t):
    mode = "trunc"
    if t > 0:
        mode = "floor"
    return torch.div(x, 2, rounding_mode=mode)


def reduction(x, t):
    name = "mean"
    if t > 0:
        name = "sum"
    return F.mse_loss(x, x * 2, reduction=name)


def interpolated(x, t):
    return F.interpolate(x[None], size=6, mode="linear", align_corners=bool(t))


def norm_epsilon(x, eps):
    return F.layer_norm(x, (x.shape[-1],), eps=float(eps))


def in_a_loop(x, n):
    for d in range(int(n)):
        x = x + x.sum(d, keepdim=bool(d)).mean()
    return x


def in_a_branch(x, d):
    if x.sum() > 100:
        x = x.sum(int(d))
    else:
        x = x.prod(int(d))
    return x * 2


def written_in_place(x, d):
    y = x * 2
    y.cumsum_(int(d))
    return y


def float_range(x, e):
    return torch.arange(0, e.item(), 0.5) * x.sum()


def power_of_matrix(x, n):
    return torch.matrix_power(x, int(n)) * x.mT


def scaled_by_staged(x, s):
    return F.interpolate(x[None], scale_factor=float(s)) * 2


def scaled_by_dimension(x, d):
    return x / x.norm(2, int(d), keepdim=True)


def centred(x, d):
    return (x - x.mean(int(d), keepdim=True).expand_as(x)).exp()


def two_dimensions_out_of_range(x, d):
    return x.transpose(int(d), int(d) - 1)


DIMENSIONS = [(_x(3, 4, 5), T(d)) for d in (0, 1, 2, -1, -3, 3, -4, 100)]
FLAGS = [(_x(3, 4), T(flag)) for flag in (True, False)]
CASES = {
    dropout_flag: FLAGS, dropout_rate: [(_x(30, 4), T(p)) for p in (0.3, 0.7, 0.0, 1.0, 1.5)],
    dropout_tensor_condition: [(_x(3, 4), T([1.0, n])) for n in (1.0, -2.0)],
    sum_of_dimension: DIMENSIONS, sum_kept: FLAGS, permuted: [(_x(3, 4, 5), T(d)) for d in (1, -2, 0, 7)],
    two_dimensions: DIMENSIONS[:3], two_dimensions_out_of_range: [DIMENSIONS[1], DIMENSIONS[5], DIMENSIONS[7]],
    maximum_of_dimension: DIMENSIONS, softmax_of_dimension: DIMENSIONS,
    numpy_names: DIMENSIONS, stacked: [(_x(3, 4), T(d)) for d in (0, 1, 2, -1, -3, 3, -4)],
    rounding: [(_x(3), T(n)) for n in (-1, 1)], reduction: [(_x(3), T(n)) for n in (-1, 1)],
    interpolated: FLAGS, norm_epsilon: [(_x(3, 4), T(eps)) for eps in (0.1, 1e-5)],
    in_a_loop: [(_x(3, 4), T(n)) for n in (0, 1, 2)], in_a_branch: DIMENSIONS,
    written_in_place: [(_x(3, 4), T(d)) for d in (0, 1, -1, 2)],
    power_of_matrix: [(_x(4, 4), T(n)) for n in (2, 1, 0, -1, 3)],
    scaled_by_staged: [(_x(3, 4), T(s)) for s in (2.0, 0.5, 1.5)],
    scaled_by_dimension: [(_x(4, 4), T(d)) for d in (0, 1, -1)], centred: [(_x(4, 3), T(d)) for d in (0, 1, 5)],
    float_range: [(_x(3), T(e)) for e in (2.3, 4.0, 0.0)],
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_staged_arguments(function: Any) -> None:
    static = check(function, *CASES[function], tolerance=1e-6)
    assert len(static.programs) == 1


def test_in_a_loaded_file(tmp_path) -> None:
    static = to_static(sum_of_dimension, input_spec=[InputSpec([3, 4, 5]), InputSpec([], "int64")])
    save(static, tmp_path / "model.d2s")
    loaded = load(tmp_path / "model.d2s")
    for x, d in DIMENSIONS[:5]:
        torch.testing.assert_close(loaded(x, d), sum_of_dimension(x, d))
    with pytest.raises(IndexError, match="but got 100"):
        loaded(*DIMENSIONS[-1])


# -- sizes that are kept apart from 0 and 1


def causal(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=q.shape[2] > 1)


def several_conditions(q, mask=None):
    is_causal = q.shape[2] > 1 and mask is None
    return F.scaled_dot_product_attention(q, q, q, is_causal=is_causal) * (1 if 0 < len(q) else 2)


def arithmetic_of_sizes(x):
    return F.dropout(x, 0.5, training=len(x) * 2 - 1 > 2 and not len(x) + 1 == 0)


def range_of_floats(x):
    return torch.arange(1.0, len(x) + 1) * x


@pytest.mark.parametrize("function", [causal, several_conditions])
def test_conditions_on_sizes_are_decided(function: Any) -> None:
    lengths = (3, 5, 7, 9, 1, 11)
    # which kernel attention takes is PyTorch's choice, and another with gradients since 2.15
    static = check(function, *[(_x(1, 2, length, 4),) for length in lengths], tolerance=1e-5)
    assert len(static.programs) == 3  # the first length, others, and 1
    assert not any(op.name == "cond" for program in static.programs for op in program.block.ops)


def test_expressions_of_sizes_are_decided() -> None:
    static = check(arithmetic_of_sizes, *[((_x(length)),) for length in (3, 5, 7, 1, 0, 8)])
    assert len(static.programs) == 4


def test_a_range_of_floats_follows_a_size() -> None:
    assert len(check(range_of_floats, *[(_x(length),) for length in (3, 5, 7, 9)]).programs) == 2


def test_an_open_size_of_a_spec_may_be_one(tmp_path) -> None:
    """Nothing is decided there: the saved Program is for every size."""
    static = to_static(causal, input_spec=[InputSpec([1, 2, None, 4])])
    check(causal, *[(_x(1, 2, length, 4),) for length in (3, 1, 6)], static=static, tolerance=1e-6)
    assert len(static.programs) == 1
    save(static, tmp_path / "model.d2s")
    loaded = load(tmp_path / "model.d2s")
    for length in (1, 2, 5):
        q = _x(1, 2, length, 4)
        torch.testing.assert_close(loaded(q), causal(q))


# -- what cannot be said


def as_many_parts(x, n):
    return torch.tensor_split(x, int(n))


def test_a_number_of_results_is_refused() -> None:
    with pytest.raises(TraceError, match="D2S2") as failure:
        to_static(as_many_parts)(torch.eye(3), T(2))
    assert failure.value.location is not None
