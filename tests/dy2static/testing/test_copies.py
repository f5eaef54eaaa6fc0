"""Deep copies of what a call is given."""

from __future__ import annotations

import copy
import threading
import types

import pytest
import torch

from dy2static.testing.copies import CannotCopy, duplicate


def test_tensors_with_a_history() -> None:
    leaf = torch.ones(2, 3, requires_grad=True)
    computed = (leaf * 2).t()
    computed.note = ["kept"]  # type: ignore[attr-defined]
    (twin, again), pairs = duplicate((computed, computed))
    assert twin is again and twin is not computed and torch.equal(twin, computed)
    assert twin.stride() == computed.stride() and not twin.is_leaf and twin.note == ["kept"]
    (twin * 3).sum().backward()
    assert [pair.original for pair in pairs] == [computed]
    assert torch.equal(pairs[0].leaf.grad, torch.full((3, 2), 3.0))


def test_parameters_and_their_gradients() -> None:
    net = torch.nn.Linear(2, 2)
    net(torch.ones(1, 2)).sum().backward()
    twin, pairs = duplicate(net)
    assert torch.equal(twin.weight.grad, net.weight.grad) and twin.weight.grad is not net.weight.grad
    assert [id(pair.original) for pair in pairs] == [id(net.weight), id(net.bias)]


def test_views_share_memory_in_the_copy() -> None:
    base = torch.zeros(4)
    base_twin, view_twin = duplicate((base, base[1:3]))[0]
    view_twin += 1
    assert base_twin.tolist() == [0, 1, 1, 0] and base.tolist() == [0, 0, 0, 0]


def test_closures_are_copied_and_lead_back_to_themselves() -> None:
    seen: list[int] = []

    def count(n: int) -> int:
        seen.append(n)
        return n if n == 0 else count(n - 1)

    twin, _ = duplicate(count)
    assert twin(3) == 0 and seen == []
    assert count(1) == 0 and seen == [1, 0]


def test_functions_that_share_a_variable_do_so_in_the_copy() -> None:
    count = 0

    def read() -> int:
        return count

    def advance() -> int:
        nonlocal count
        count += 1
        return read()

    twin, _ = duplicate((advance, read))
    assert twin[0]() == 1 and twin[1]() == 1 and read() == 0


def test_modules_that_answer_any_name_are_not_copied() -> None:
    class Answering(types.ModuleType):
        def __getattr__(self, name: str) -> type:
            return int

    module = Answering("answering")
    twin, _ = duplicate(lambda: module)
    assert twin() is module


def test_parameters_keep_what_hangs_on_them() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.note = ["kept"]  # type: ignore[attr-defined]
    twin, _ = duplicate(weight)
    assert twin.note == ["kept"] and twin.note is not weight.note  # type: ignore[attr-defined]


def test_generators_go_on_alike() -> None:
    generator = torch.Generator().manual_seed(3)
    twin, _ = duplicate(generator)
    assert torch.equal(torch.rand(2, generator=generator), torch.rand(2, generator=twin))


def test_what_cannot_be_copied_says_so_and_leaves_nothing_behind() -> None:
    before = torch.Tensor.__deepcopy__, torch.nn.Parameter.__deepcopy__, dict(getattr(copy, "_deepcopy_dispatch"))
    with pytest.raises(CannotCopy, match="lock"):
        duplicate([threading.Lock()])
    assert before == (
        torch.Tensor.__deepcopy__, torch.nn.Parameter.__deepcopy__, getattr(copy, "_deepcopy_dispatch"),
    )  # fmt: skip


@pytest.mark.parametrize("value", [torch.ones(3).to_sparse(), torch.tensor([1j]).conj(), torch.ones(2, device="meta")])
def test_other_layouts(value: torch.Tensor) -> None:
    given = value.requires_grad_() * 1
    twin, _ = duplicate(given)
    assert twin.layout == given.layout and twin.shape == given.shape and twin.is_conj() == given.is_conj()
