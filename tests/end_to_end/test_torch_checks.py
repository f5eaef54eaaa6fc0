"""Checks of torch (``torch._check*``, ``torch._assert*``, ``assert_close``) and ``torch.sym_*`` on staged values."""

from __future__ import annotations

import pytest
import torch

from dy2static import Dy2StaticError, load, save, to_static
from tests.oracle import check

pytestmark = pytest.mark.filterwarnings("ignore:_check_is_size will be removed:FutureWarning")

CALLS = ([torch.tensor([3.0])], [torch.tensor([-2.0])], [torch.tensor([7.0])])

CHECKS = ["_check", "_check_index", "_check_value", "_check_type", "_check_not_implemented"]


@pytest.mark.parametrize(("name", "grad"), [*((name, False) for name in CHECKS), ("_check_value", True)])
def test_a_check_raises_its_own_exception_with_its_message(name, grad):
    one = getattr(torch, name)

    def without(x):
        one(int(x) >= 0)
        return x * 2

    def constant(x):
        one(int(x) >= 0, lambda: "neg")
        return x * 2

    def told(x):
        n = int(x)
        one(n >= 0, lambda: f"negative: {n}")
        return x * 2

    def inside(x):
        if x.sum() < 5:
            one(int(x) >= 0, lambda: "neg")
            x = x + 1
        return x * 2

    def in_a_loop(x):
        while x.sum() < 5:
            one(int(x) != 4, lambda: f"four at {int(x)}")
            x = x + 1
        return x

    def with_size(x):
        n = int(x)
        one(n >= 0, lambda: "no size")
        return torch.zeros(n) + x

    def caught(x):
        try:
            one(x.shape[0] > 3, lambda: "short")
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return x - 1
        return x

    for function in (without, constant, told, inside, in_a_loop, with_size, caught):
        check(function, *([x.clone().requires_grad_(grad)] for (x,) in CALLS))


@pytest.mark.parametrize("function", [
    lambda x: (torch._check_is_size(int(x)), x * 2)[1],
    lambda x: (torch._check_is_size(int(x), lambda: "no size"), x * 2)[1],
    lambda x: (torch._check_is_size(int(x), max=5), x * 2)[1],
    lambda x: (torch._check_is_size(int(x), max=5), torch.zeros(int(x)))[1],
    lambda x: (torch._check_with(KeyError, int(x) > 0, lambda: "with"), x * 2)[1],
    lambda x: (torch._check_tensor_all(x > 0), x * 2)[1],
    lambda x: (torch._check_tensor_all(x > 0, lambda: f"all of {x.shape[0]}"), x * 2)[1],
    lambda x: (torch._check_tensor_all_with(KeyError, x > 0, lambda: "every"), x * 2)[1],
    lambda x: (torch._check(x > 0), x * 2)[1],
    lambda x: (torch._check(int(x)), x * 2)[1],
    lambda x: (torch._check(int(x) > 0, "a string"), x * 2)[1],
    lambda x: (torch._check_tensor_all(x), x * 2)[1],
    lambda x: (torch._assert(x.sum() > 0, "positive"), x * 2)[1],
    lambda x: (torch._assert(int(x) > 0, f"positive {x.shape[0]}"), x * 2)[1],
    lambda x: (torch._assert(int(x) > 0, f"not {int(x)}"), x * 2)[1],
    lambda x: (torch._assert(int(x), "truth"), x * 2)[1],
    lambda x: (torch._assert(x.shape[0] > 3, "shape"), x * 2)[1],
    lambda x: (torch._assert_async(x > 0), x * 2)[1],
    lambda x: (torch._assert_async(x > 0, "async"), x * 2)[1],
    lambda x: (torch._assert_scalar(int(x) > 0, "scalar"), x * 2)[1],
    lambda x: (torch._assert_tensor_metadata(x, [1], [1], torch.float32), x * 2)[1],
    lambda x: (torch._assert_tensor_metadata(x, dtype=torch.float64), x * 2)[1],
    lambda x: (torch.sym_constrain_range_for_size(int(x), min=0, max=5), x * 2)[1],
    lambda x: (torch.sym_constrain_range(int(x), min=0, max=5), x * 2)[1],
])
def test_other_checks(function):
    check(function, *CALLS)


def test_a_relation_of_sizes():
    def function(x, n):
        a, b = int(n[0]), int(n[1])
        torch._check(x.shape[0] == a + b, lambda: f"{a} and {b}")
        return x[:a].sum() - x[a:].sum()

    x = torch.arange(5.0)
    check(function, [x, torch.tensor([2, 3])], [x, torch.tensor([2, 2])], [torch.arange(4.0), torch.tensor([2, 2])])


def test_what_a_path_checks_says_nothing_of_others():
    def function(x):
        n = int(x)
        if n > 5:
            torch._check(n == 7, lambda: "seven")
        return torch.zeros(abs(n)).shape[0] + x

    check(function, *CALLS, [torch.tensor([8.0])])


@pytest.mark.parametrize("function", [
    lambda x: torch.sym_not(int(x) > 0), lambda x: torch.sym_float(int(x)), lambda x: torch.sym_int(float(x) / 2),
    lambda x: torch.sym_int(int(x)), lambda x: torch.sym_float(float(x)),
    lambda x: torch.sym_max(int(x), 2), lambda x: torch.sym_max(2.0, int(x)), lambda x: torch.sym_min(int(x), 2),
    lambda x: torch.sym_min(int(x), 2.5), lambda x: torch.sym_max(float(x), 2), lambda x: torch.sym_max(3, 2.0),
    lambda x: torch.sym_sum([int(x), 2, int(x)]), lambda x: torch.sym_sum(int(x), 2), lambda x: torch.sym_sum([]),
    lambda x: torch.sym_sum([int(x), 2.5]),
    lambda x: torch.sym_ite(int(x) > 0, int(x), 1), lambda x: torch.sym_ite(x.shape[0] > 0, 4, 1),
    lambda x: torch.sym_sqrt(int(x) + 2), lambda x: torch.sym_sqrt(float(x) + 2.5),
    lambda x: torch._sym_cos(int(x)), lambda x: torch._sym_log2(int(x) + 3), lambda x: torch._sym_tanh(float(x)),
    lambda x: torch.sym_fresh_size(int(x)),
])  # fmt: skip
def test_symbolic_helpers_are_those_of_plain_numbers(function):
    check(function, *CALLS)


def test_assert_close_inside():
    def of_values(x):
        torch.testing.assert_close(x, torch.tensor([3.0]))
        return x * 2

    def of_shapes(x):
        assert x.shape == (1,)
        return x * 2

    with pytest.raises(Dy2StaticError, match="D2S"):
        to_static(of_values)(CALLS[0][0])
    check(of_shapes, *CALLS)


def test_checks_in_a_file(tmp_path):
    def function(x):
        n = int(x)
        torch._check_value(n >= 0, lambda: f"negative: {n}")
        torch._check_is_size(n, lambda: "size")
        torch._assert(n < 5, "large")
        return x * 2

    static = to_static(function)
    static(CALLS[0][0])
    save(static, tmp_path / "checks")
    loaded = load(tmp_path / "checks")
    assert loaded(CALLS[0][0]).item() == 6
    with pytest.raises(ValueError, match="negative: -2"):
        loaded(CALLS[1][0])
    with pytest.raises(AssertionError, match="large"):
        loaded(CALLS[2][0])
