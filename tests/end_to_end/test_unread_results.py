"""Exceptions of operators whose results nothing reads: they come as in eager, with and without gradients.

Every row of ``CALLS`` is an operator of the allow-list with arguments of which one is spoilt after tracing. The rows
were found by trying: each operator on tensors that it takes, then with indices out of range, zeros or nan.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import dy2static
from dy2static import InputSpec, load, save, to_static
from runtime.autodiff.derive import derive
from runtime.executor import compile_program
from runtime.ops import aten
from runtime.storage.allowed import allowed_operators
from tests import oracle
from tests.runtime.ops.calls import GONE, b, f, i

# what torch 2.15 says at the first call in a process only
pytestmark = pytest.mark.filterwarnings("ignore:index_reduce", "ignore:at..nuclear_norm is deprecated")

NAN = math.nan
S, V, I3 = torch.eye(3) * 2 + f(3, 3) * 0.1, f(3), torch.tensor([0, 1, 2])
LU, PIVOTS = torch.linalg.lu_factor(S)
TARGET = torch.tensor([0, 1])

CALLS: list[tuple[str, tuple[Any, ...], int, float]] = [
    # indices
    ("gather.default", (S, 1, i(3, 3)), 2, 1000), ("index.Tensor", (S, [I3]), 1, 1000),
    ("index_select.default", (S, 0, I3), 2, 1000), ("take.default", (S, I3), 1, 1000),
    ("take_along_dim.default", (S, I3), 1, 1000), ("index_add.default", (S, 0, I3, S), 2, 1000),
    ("index_copy.default", (S, 0, I3, S), 2, 1000), ("index_fill.int_Scalar", (S, 0, I3, 1.0), 2, 1000),
    ("index_put.default", (S, [I3], V), 1, 1000), ("index_reduce.default", (S, 0, I3, S, "amax"), 2, 1000),
    ("put.default", (S, I3, V), 1, 1000),
    ("scatter.src", (S, 1, i(3, 3), S), 2, 1000), ("scatter.value", (S, 1, i(3, 3), 1.0), 2, 1000),
    ("scatter_add.default", (S, 1, i(3, 3), S), 2, 1000),
    ("scatter_reduce.two", (S, 1, i(3, 3), S, "amax"), 2, 1000),
    ("embedding.default", (S, I3), 1, 1000), ("embedding_bag.default", (S, I3, torch.tensor([0, 2])), 1, 1000),
    ("embedding_renorm.default", (S, I3, 1.0, 2.0), 1, 1000),
    ("one_hot.default", (I3, 4), 0, -1000),
    ("bincount.default", (I3,), 0, -1000),
    # targets
    ("cross_entropy_loss.default", (f(2, 3), TARGET), 1, 1000), ("nll_loss.default", (f(2, 3), TARGET), 1, 1000),
    ("nll_loss_nd.default", (f(2, 3), TARGET), 1, 1000), ("multi_margin_loss.default", (f(2, 3), TARGET), 1, 1000),
    ("multilabel_margin_loss.default", (f(2, 3), i(2, 3)), 1, 1000),
    ("nll_loss2d.default", (f(1, 3, 2, 2), i(1, 2, 2)), 1, 1000),
    ("binary_cross_entropy.default", (V, f(3)), 0, NAN),
    # whole numbers
    ("floor_divide.default", (i(3), i(3)), 1, 0), ("remainder.Tensor", (i(3), i(3)), 1, 0),
    ("remainder.Scalar_Tensor", (3, i(3)), 1, 0), ("fmod.Tensor", (i(3), i(3)), 1, 0),
    ("div.Tensor_mode", (i(3), i(3), ), 1, 0), ("pow.Tensor_Tensor", (i(3), i(3)), 1, -1),
    ("gcd.default", (i(3), i(3)), 1, 0), ("divide.Tensor_mode", (i(3), i(3)), 1, 0),
    # linear algebra
    ("cholesky.default", (S,), 0, 0), ("linalg_cholesky.default", (S,), 0, 0), ("cholesky_inverse.default", (S,), 0, 0),
    ("inverse.default", (S,), 0, 0), ("linalg_inv.default", (S,), 0, 0), ("linalg_solve.default", (S, V), 0, 0),
    ("linalg_tensorinv.default", (S.reshape(3, 3), 1), 0, 0), ("linalg_tensorsolve.default", (S, V), 0, 0),
    ("linalg_lu_factor.default", (S,), 0, 0), ("linalg_matrix_power.default", (S, -1), 0, 0),
    ("linalg_cond.default", (S,), 0, NAN), ("linalg_eig.default", (S,), 0, NAN),
    ("linalg_eigh.default", (S,), 0, NAN), ("linalg_eigvalsh.default", (S,), 0, NAN),
    ("linalg_matrix_rank.default", (S,), 0, NAN), ("linalg_pinv.default", (S,), 0, NAN),
    ("linalg_pinv.atol_rtol_float", (S,), 0, NAN),
    ("linalg_svd.default", (S,), 0, NAN), ("linalg_svdvals.default", (S,), 0, NAN),
    ("linalg_matrix_norm.str_ord", (S, "nuc"), 0, NAN),
    ("nuclear_norm.default", (S,), 0, NAN), ("pinverse.default", (S,), 0, NAN), ("svd.default", (S,), 0, NAN),
    # ranges
    ("histc.default", (V,), 0, NAN), ("quantile.default", (V, torch.tensor(0.5)), 1, NAN),
    ("nanquantile.default", (V, torch.tensor(0.5)), 1, NAN), ("repeat_interleave.Tensor", (I3,), 0, -1000),
    ("repeat_interleave.self_Tensor", (V, I3), 1, -1000),
    ("multinomial.default", (V, 1), 0, NAN), ("bernoulli.default", (V,), 0, NAN), ("poisson.default", (V,), 0, -1),
    ("masked_scatter.default", (V, b(3) & False, f(1)), 1, True),
]  # fmt: skip
CALLS = [row for row in CALLS if row[0].split(".")[0] not in GONE]
KEYWORDS = {"div.Tensor_mode": {"rounding_mode": "floor"}, "divide.Tensor_mode": {"rounding_mode": "trunc"}}
QUIET = {"gcd.default", "pow.Tensor_Tensor"}
"""Rows that eager takes in every case: they hold the test against itself."""


def _tensors(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else value if isinstance(value, list) else []


def _filled(args: tuple[Any, ...], tensors: tuple[torch.Tensor, ...]) -> list[Any]:
    following = iter(tensors)
    return [
        next(following) if isinstance(arg, torch.Tensor)
        else [next(following) for _ in arg] if isinstance(arg, list) else arg
        for arg in args
    ]  # fmt: skip


_filled = dy2static.not_to_static(_filled)


def functions(name: str, args: tuple[Any, ...]) -> list[Any]:
    operator, keywords = aten.resolve(f"aten.{name}"), KEYWORDS.get(name, {})

    def straight(x, where, *tensors):
        operator(*_filled(args, tensors), **keywords)
        return x + 1

    def inside(x, where, *tensors):
        if where == 1:
            operator(*_filled(args, tensors), **keywords)
        for _ in range(int(where) - 1):
            x = x * 2
            operator(*_filled(args, tensors), **keywords)
        return x + 1

    return [straight, inside]


def given(args: tuple[Any, ...], position: int, bad: float | None, grad: bool) -> list[torch.Tensor]:
    made = []
    for index, arg in enumerate(args):
        for tensor in _tensors(arg):
            copy = torch.full_like(tensor, bad) if index == position and bad is not None else tensor.clone()
            made.append(copy.requires_grad_(grad and copy.is_floating_point()))
    return made


def held(name: str, run: Any, eager: Any, grad: bool, wheres: tuple[int, ...]) -> int:
    """Hold one function against eager, with good and with spoilt arguments; how often eager raised."""
    _, args, position, bad = next(row for row in CALLS if row[0] == name)
    raised = 0
    for where in wheres:
        for value in (None, bad):
            call = [torch.ones(2, requires_grad=grad), torch.tensor(where), *given(args, position, value, grad)]
            expected, got = oracle.run(eager, call, gradients=False), oracle.run(run, call, gradients=False)
            raised += not oracle.hold(got, expected, f"{name} {where} {value} grad={grad}")
    return raised


NAMES = [row[0] for row in CALLS]


def test_the_operators_that_are_tried():
    assert len(NAMES) == len(set(NAMES)) and {f"aten.{name}" for name in NAMES} <= allowed_operators()
    print(f"{len(NAMES)} operators that may raise")


@pytest.mark.parametrize("name", NAMES)
def test_operators_raise_though_nothing_reads_their_results(name):
    _, args, _, _ = next(row for row in CALLS if row[0] == name)
    straight, inside = functions(name, args)
    raised = held(name, to_static(straight), straight, True, (0,))
    assert bool(raised) != (name in QUIET)
    assert held(name, to_static(inside), inside, True, (1, 3)) == 2 * raised


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_operators_raise_without_gradients_and_loaded_from_a_file(name, tmp_path):
    _, args, _, _ = next(row for row in CALLS if row[0] == name)
    for eager, wheres in zip(functions(name, args), ((0,), (0, 1, 2, 3))):
        live = to_static(eager)
        held(name, live, eager, False, wheres)
        held(name, live, eager, True, wheres)
        save(live, tmp_path / "f.d2s")
        for grad in (True, False):
            held(name, load(tmp_path / "f.d2s"), eager, grad, wheres)


def index(x, n):
    x[n]
    return x + 1


def row(x, n):
    x[int(n)]
    return x + 1


def item_of_a_list(x, n):
    [x, x * 2, x * 3][int(n)]
    return x + 1


def item_of_a_grown_list(x, n):
    rows = []
    for _ in range(int(n)):
        rows.append(x)
    rows[2]
    return x + 1


def division(x, n):
    1 / (int(n) - 1)
    return x + 1


def division_in_a_loop(x, n):
    for k in range(4):
        z = 1 / (int(n) - k)
        x = x * 2
    return x


def carried(x, n):
    z = 0.0
    for k in range(int(n)):
        z = z + 1 / (3 - k)
        x = x * 2
    return x


def remainder(x, n):
    7 % (int(n) - 2)
    return x + 1


def domain(x, n):
    math.sqrt(int(n) - 2)
    return x + 1


def logarithm(x, n):
    math.log(float(n))
    return x + 1


def whole_number_of_nan(x, n):
    int(x.sum() / n)
    return x + 1


def shift(x, n):
    1 << (int(n) - 2)
    return x + 1


def factorial(x, n):
    math.factorial(int(n) - 2)
    return x + 1


def number_of_text(x, n):
    int(str(float(n)))
    return x + 1


def negative_size(x, n):
    torch.zeros(int(n) - 1)
    return x + 1


def negative_repeat(x, n):
    x.repeat(int(n) - 1)
    return x + 1


def too_narrow(x, n):
    x.narrow(0, 0, int(n))
    return x + 1


def sizes_that_do_not_fit(x, n):
    x + torch.ones(int(n) + 2)
    return x + 1


def shape_that_does_not_fit(x, n):
    x.reshape(int(n), -1)
    return x + 1


def number_of_several(x, n):
    x[: int(n)].item()
    return x + 1


def truth_of_several(x, n):
    bool(x[: int(n)] > 0)
    return x + 1


def in_a_branch(x, n):
    if n > 1:
        y = x[n] * 2
    else:
        y = x * 3
    return x + 1


def in_a_branch_in_a_loop(x, n):
    for k in range(4):
        if k < n:
            y = x[k] * 2
        x = x * 1.5
    return x


def order(x, n):
    y = x[n]
    z = 1 / (int(n) - 4)
    return x[: int(n) - 10].sum() + x[n - 4]


def other_order(x, n):
    z = 1 / (int(n) - 4)
    y = x[n]
    return x + 1


def written(x, n):
    y = x * 2
    y[n] = 1.0
    return x + 1


def before_a_raise(x, n):
    x[n]
    raise ValueError("after")


def gradient_inside(x, n):
    w = x.detach().requires_grad_()
    for _ in range(2):
        w[n] * 2
        (g,) = torch.autograd.grad((w * w).sum(), w)
    return x * g


BY_HAND = [
    index, row, item_of_a_list, item_of_a_grown_list, division, division_in_a_loop, carried, remainder, domain,
    logarithm, whole_number_of_nan, shift, factorial, number_of_text, negative_size, negative_repeat, too_narrow,
    sizes_that_do_not_fit, shape_that_does_not_fit, number_of_several, truth_of_several, in_a_branch,
    in_a_branch_in_a_loop, order, other_order, written, before_a_raise, gradient_inside,
]  # fmt: skip


@pytest.mark.parametrize("eager", BY_HAND, ids=lambda function: function.__name__)
def test_python_raises_though_nothing_reads_its_results(eager, tmp_path):
    live = to_static(eager)
    raised = 0
    for run in (live, loaded(eager, tmp_path)):
        for grad in (True, False):
            for n in (2, 0, 1, 3, 4, 7):
                call = torch.ones(3, requires_grad=grad), torch.tensor(n)
                expected, got = oracle.run(eager, call, gradients=False), oracle.run(run, call, gradients=False)
                raised += not oracle.hold(got, expected, f"n={n} grad={grad}")
    assert raised


def _type(result: Any) -> Any:
    """Indices out of range read otherwise where the index is a number (``select()``)."""
    return result[0] if isinstance(result, tuple) else result


def loaded(function: Any, folder: Any) -> Any:
    save(to_static(function, input_spec=[InputSpec([3], "float32"), InputSpec([], "int64")]), folder / "f.d2s")
    return load(folder / "f.d2s")


def test_what_is_kept_for_its_exception_costs_backward_nothing():
    def unread(x, n):
        (x.exp() * 3).tanh()[n]
        return x * x

    def plain(x, n):
        return x * x

    arguments = [torch.ones(3), torch.tensor(1)]
    backwards, kept = [], []
    for function in (unread, plain):
        converted = to_static(function)
        converted(*arguments)
        halves = derive(converted.programs[0], arguments, [True, False])
        backwards.append([op.name for op in halves.backward.block.ops])
        kept.append(len(halves.forward.block.yields))
    assert backwards[0] == backwards[1] and kept[0] == kept[1]


def test_the_result_of_what_is_kept_for_its_exception_is_freed_at_once():
    def unread(x, n):
        x[n]
        return x * x

    converted = to_static(unread)
    converted(torch.ones(3), torch.tensor(1))
    forward = derive(converted.programs[0], [torch.ones(3), torch.tensor(1)], [True, False]).forward
    lines = [line.strip() for line in compile_program(forward).source(grad=False).splitlines()]
    select = next(number for number, op in enumerate(forward.block.ops) if op.name == "aten.select.int")
    result = next(line.split(" = ")[0] for line in lines if ", 0, v" in line)
    assert select and any(line.startswith("del ") and result in line for line in lines)
