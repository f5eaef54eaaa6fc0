"""What a converted function hangs on tensors that its caller has afterwards: its results, and the arguments."""

from __future__ import annotations

import pytest
import torch

import dy2static
from dy2static import Dy2StaticError
from tests.oracle import same


def on_results(x, y):
    p, q = x * 2, y.view(2, 1)
    p.note, p.size_then, q.note = "doubled", x.shape[0], [x + 1, "b"]
    return p, {"q": q, "again": p}


def with_a_tensor(x, y):
    p = x * 2
    p.other = y * 3
    p.other.note = 5
    return p


def on_arguments(x, y):
    x.note, y.note = "a", x * 2
    return x * 2


def on_an_argument_that_is_returned(x, y):
    x.note = 3
    x.note = x.note + 1
    return x, y * 2


def read_and_changed(x, y):
    x.count = getattr(x, "count", 0) + 1
    return x * x.count


def taken_off(x, y):
    had = hasattr(x, "count")
    if had:
        del x.count
    return x * 2, had, hasattr(x, "count")


def on_a_path(x, y):
    if y.sum() > 0:
        x.count = 7
    return x * 2, hasattr(x, "count") and x.count


def on_a_path_with_a_value(x, y):
    if y.sum() > 0:
        x.count = x.shape[0]
    else:
        x.count = int(y.sum())
    return x * 2


def a_number_of_the_run(x, y):
    p = x + y
    p.total = int(y.sum())
    return p


def in_a_loop(x, y):
    for _ in range(3):
        p = x * 2
        p.note = "last"
    return p, p.note


@pytest.mark.parametrize("needs", (False, True))
@pytest.mark.parametrize("function", (
    on_results, with_a_tensor, on_arguments, on_an_argument_that_is_returned, read_and_changed, taken_off, on_a_path,
    on_a_path_with_a_value, a_number_of_the_run, in_a_loop,
))  # fmt: skip
def test_like_eager(function, needs):
    converted = dy2static.to_static(function)
    for sign, count in ((1, None), (-1, 4), (1, 4), (-1, None), (1, 5)):
        seen = []
        for called in (function, converted):
            x, y = torch.ones(2, requires_grad=needs), torch.full((2,), float(sign))
            if count is not None:
                x.count = count
            for _ in range(2):
                result = called(x, y)
            seen.append((result, x, y))
        same(seen[1], seen[0])
    if function is on_an_argument_that_is_returned:
        result = converted(x, y)
        assert result[0] is x


def test_one_result_in_two_places_is_one():
    p, held = dy2static.to_static(on_results)(torch.ones(2), torch.ones(2))
    assert held["again"] is p and p.note == "doubled"


def hung_on_one_of_two(x, y):
    p = x if y.sum() > 0 else y * 2
    p.note = 1
    return p * 2, hasattr(x, "note")


def read_of_one_of_two(x, y):
    p = x if y.sum() > 0 else y * 2
    return p * 2, hasattr(p, "note")


def made_inside(x, y):
    q = x + 1
    p = q if y.sum() > 0 else y * 2
    q.note = 1
    return p


@pytest.mark.parametrize("function", (hung_on_one_of_two, read_of_one_of_two, made_inside))
def test_a_tensor_that_is_another_one_on_some_path(function):
    x = torch.ones(2)
    x.note = 4
    with pytest.raises(Dy2StaticError, match="D2S245"):
        dy2static.to_static(function)(x, torch.ones(2))


def test_nothing_hangs_on_either():
    converted = dy2static.to_static(read_of_one_of_two)
    for sign in (1.0, -1.0):
        assert converted(torch.ones(2), torch.full((2,), sign))[1] is False
    x = torch.ones(2)
    x.note = 4
    with pytest.raises(Dy2StaticError, match="D2S245"):
        converted(x, torch.ones(2))


def test_such_a_program_is_not_saved(tmp_path):
    for function in (on_results, on_arguments):
        converted = dy2static.to_static(function, input_spec=[dy2static.InputSpec([2]), dy2static.InputSpec([2])])
        with pytest.raises(Dy2StaticError):
            dy2static.save(converted, tmp_path / "saved")
