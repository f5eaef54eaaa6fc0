"""What libraries write that users seldom do: converted as the rest."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import dy2static
from runtime.errors import TraceError
from tests import oracle

INDICES = [(torch.tensor(rows, dtype=torch.int64),) for rows in ([1, 5, 2], [1, 2, 0], [0, 0, 0], [-1, 0, 1], [])]


def classes_of_data(i):
    return functional.one_hot(i, int(i.max()) + 1) * 2


def at_least_so_many(i):
    return functional.one_hot(i, max(i.max() + 1, 4))[..., :4], functional.one_hot(input=i, num_classes=i.max() + 1)


def too_few(i):
    return functional.one_hot(i, int(i.max()))


@pytest.mark.parametrize("function", [classes_of_data, at_least_so_many, too_few])
def test_one_hot_of_a_number_of_classes_in_data(function):
    static = oracle.check(function, *INDICES)
    assert len(static.programs) == 2  # one for the empty tensor


def no_number_of_classes(i):
    return functional.one_hot(i), functional.one_hot(i, num_classes=-1) * 2


def no_number_of_classes_on_a_path(i):
    result = None
    if i.sum() > 3:
        result = functional.one_hot(i)
    return result


@pytest.mark.parametrize("function", [no_number_of_classes, no_number_of_classes_on_a_path])
def test_one_hot_without_a_number_of_classes(function):
    others = [torch.tensor([[1, 0], [2, 3]]), torch.tensor(3), torch.tensor([-1, 8]), torch.tensor([4.0])]
    oracle.check(function, *INDICES, *([other] for other in others))


def one_hot_with_a_wrong_argument(i):
    try:
        return functional.one_hot(i, dim=1)
    except TypeError as error:
        return str(error)


def test_one_hot_passes_no_argument_over():
    oracle.check(one_hot_with_a_wrong_argument, *INDICES, [torch.tensor([4.0])])


@pytest.mark.parametrize("change", [
    lambda n: setattr(n, "k", 2), lambda n: setattr(n, "real", 2), lambda n: delattr(n, "k"),
    lambda n: delattr(n, "real"),
])  # fmt: skip
@pytest.mark.parametrize("kind", [int, float, bool])
def test_attributes_of_numbers_are_refused_as_python_refuses_them(change, kind):
    def function(x):
        n = kind(x.sum())
        change(n)

    oracle.check(function, [torch.tensor([3.0])])


def test_a_tensor_of_a_staged_range():
    def numbers(x):
        n = int(x.sum())
        return torch.tensor(range(n)), torch.tensor(range(1, n, 2), dtype=torch.float32), torch.as_tensor(range(n)) * 2

    oracle.check(numbers, (torch.tensor([3, 4]),), (torch.tensor([0, 1]),))


class Early(torch.nn.Module):
    """Stores an attribute before ``Module.__init__``."""

    def __init__(self, scale):
        self.scale = scale
        super().__init__()
        self.scale = scale + 1
        self.inner = torch.nn.ReLU()

    def forward(self, x):
        return self.inner(x) * self.scale


def test_a_module_that_stores_before_its_base_is_initialised():
    oracle.check(lambda x: Early(2)(x), (torch.ones(3),), (-torch.ones(3),))


def branching(x):
    items = [x, x + 1]
    if x.sum() > 0:
        it = iter(items)
        return next(it) * 2 + next(it, 3) + next(it, 5)
    return x


def advanced_in_a_branch(x):
    it = iter([x, x + 1])
    if x.sum() > 0:
        x = next(it) * 2
    return x + next(it)


def test_an_iterator_made_and_advanced_on_one_path():
    oracle.check(branching, (torch.ones(3),), (-torch.ones(3),))


def test_an_iterator_from_outside_is_not_advanced_on_one_path():
    with pytest.raises(TraceError, match="D2S266"):
        dy2static.to_static(advanced_in_a_branch)(torch.ones(3))


def test_an_operator_with_a_shape_rule_for_known_sizes_only():
    def solved(x):
        rows = x[x > 0]
        n = rows.shape[0]
        lower = torch.tril(torch.ones(n, n)) + torch.eye(n)
        return torch.linalg.solve_triangular(lower, rows[:, None], upper=False)

    oracle.check(solved, (torch.tensor([1.0, 2, -1]),), (torch.tensor([1.0, 2, 3]),), tolerance=1e-6)
