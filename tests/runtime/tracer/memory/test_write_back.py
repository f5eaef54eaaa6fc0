"""Values put into the caller's tensors: as the in-place operation would have left them, history included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.tracer.memory.write_back import write_back
from tests.oracle import same

Tensor = torch.Tensor


def plain() -> Tensor:
    return torch.tensor([1.0, 2.0, 3.0])


def leaf() -> Tensor:
    return plain().requires_grad_()


def with_history() -> Tensor:
    return leaf() * 2


KINDS: dict[str, Callable[[], Tensor]] = {"plain": plain, "leaf": leaf, "with a history": with_history}
WRITES: dict[str, tuple[Callable[[Tensor], Any], Callable[[Tensor], Tensor]]] = {
    "by a number": (lambda x: x.add_(1), lambda x: x + 1),
    "by a tensor": (lambda x: x.mul_(plain()), lambda x: x * plain()),
    "a constant": (lambda x: x.fill_(5), lambda x: torch.full_like(x, 5)),
}


def description(tensor: Tensor) -> Any:
    """What tells of a tensor's history."""
    return tensor.requires_grad, tensor.is_leaf, tensor._version


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_write_without_gradients_keeps_the_history(kind: str, write: str) -> None:
    in_place, value = WRITES[write]
    mine, eager = KINDS[kind](), KINDS[kind]()
    with torch.no_grad():
        in_place(eager)
        made = value(mine)
    node = mine.grad_fn
    write_back(mine, made)
    same(mine.detach(), eager.detach())
    assert description(mine) == description(eager) and mine.grad_fn is node


@pytest.mark.parametrize("kind", ["plain", "with a history"])
def test_a_write_with_a_history_brings_it(kind: str) -> None:
    mine, eager = KINDS[kind](), KINDS[kind]()
    w, other = leaf(), leaf()
    eager.mul_(other)
    write_back(mine, mine.clone() * w)
    same(mine.detach(), eager.detach())
    assert description(mine) == description(eager)
    mine.sum().backward()
    eager.sum().backward()
    same(w.grad, other.grad)


def test_a_leaf_keeps_being_one() -> None:
    """Eager lets nothing write to it that has a history; some operators write to it all the same."""
    w = leaf()
    write_back(w, w * 2)
    assert w.is_leaf and w.requires_grad and w.tolist() == [2, 4, 6]
    w.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [1, 1, 1]


def test_what_is_the_tensor_itself_is_no_write() -> None:
    x = with_history()
    before = description(x)
    write_back(x, x)
    assert description(x) == before


@pytest.mark.parametrize("same_one", [lambda x: x.detach(), lambda x: x.view_as(x).detach(), lambda x: x.data])
def test_what_is_the_same_memory_is_no_write(same_one: Callable[[Tensor], Tensor]) -> None:
    x = with_history()
    before = description(x)
    write_back(x, same_one(x))
    assert description(x) == before and x.tolist() == [2, 4, 6]


OTHER_PARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "a transposed view": lambda x: x.t(), "reversed": lambda x: x.flip(0), "a copy": lambda x: x.clone(),
    "rows of it": lambda x: x[:1].expand(2, 2), "another view": lambda x: x.as_strided((2, 2), (1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_PARTS)
def test_what_is_other_elements_of_the_same_memory_is_one(name: str) -> None:
    """As a copy in eager, which refuses some of these."""
    def outcome(write: Callable[[Tensor, Tensor], Any]) -> Any:
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        try:
            write(x, OTHER_PARTS[name](x))
        except RuntimeError as error:
            return str(error)
        return x.tolist(), x._version

    assert outcome(write_back) == outcome(torch.Tensor.copy_)


def test_the_same_memory_with_a_history_is_a_write() -> None:
    x, w = torch.zeros(3), leaf()
    value = x.view(3)
    value.mul_(w)
    before = x._version
    write_back(x, value)
    assert x._version > before and x.requires_grad


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 2), (1,), (0,), ()])
def test_a_tensor_that_was_resized(kind: str, shape: tuple[int, ...]) -> None:
    target, value = KINDS[kind](), torch.ones(shape) * 7
    flags = target.requires_grad, target.is_leaf
    write_back(target, value)
    same(target.detach(), value)
    assert (target.requires_grad, target.is_leaf) == flags


def test_an_output_that_eager_resizes() -> None:
    mine, eager = torch.empty(0), torch.empty(0)
    torch.add(plain(), 1, out=eager)
    write_back(mine, plain() + 1)
    same(mine, eager)


DTYPES = [torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_become_of_the_targets_dtype(dtype: torch.dtype) -> None:
    target, eager = torch.zeros(3, dtype=dtype), torch.zeros(3, dtype=dtype)
    write_back(target, plain())
    same(target, eager.copy_(plain()))


def test_a_part_of_the_callers_memory() -> None:
    memory = torch.zeros(6)
    target = memory[1::2]
    write_back(target, plain())
    assert memory.tolist() == [0, 1, 0, 2, 0, 3] and target._is_view()


def test_sparse_and_meta_tensors() -> None:
    target, value = torch.eye(2).to_sparse(), (torch.eye(2) * 3).to_sparse()
    write_back(target, value)
    same(target.to_dense(), torch.eye(2) * 3)
    meta = torch.empty(3, device="meta")
    write_back(meta, meta.detach())
    assert meta._version == 1


def test_rows_of_a_vmap() -> None:
    target, values = torch.zeros(2, 3), torch.arange(6.0).reshape(2, 3)

    def one(row: Tensor, value: Tensor) -> Tensor:
        write_back(row, value)
        return row * 1

    same(torch.vmap(one)(target, values), values)
    same(target, values)
