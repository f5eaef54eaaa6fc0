"""A dictionary keyed by the identity of tensors that does not keep them alive."""

from __future__ import annotations

import gc

import torch

from runtime.torch_internals import TensorDict


def test_keys_are_told_apart_by_identity() -> None:
    one, two = torch.ones(2), torch.ones(2)
    found: TensorDict[str] = TensorDict()
    found[one] = "one"
    assert one in found and two not in found
    assert found[one] == "one" and found.get(two) is None
    found[two] = "two"
    found[one] = "again"
    assert found.values() == ["again", "two"]
    found.pop(one)
    found.pop(one)
    assert found.values() == ["two"]


def test_an_entry_goes_with_its_tensor() -> None:
    found: TensorDict[int] = TensorDict()
    kept = []
    for number in range(1000):  # identities come again
        tensor = torch.ones(1)
        assert tensor not in found
        found[tensor] = number
        if number % 100 == 0:
            kept.append(tensor)
    del tensor
    gc.collect()
    assert found.values() == [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]
    assert [found[one] for one in kept] == found.values()


def test_a_tensor_that_only_a_graph_holds_keeps_its_entry() -> None:
    """PyTorch gives the same Python object again, when somebody asks."""
    leaf = torch.ones(2, requires_grad=True)
    found: TensorDict[str] = TensorDict()
    tensor = leaf * 2
    found[tensor] = "saved"
    result = tensor * tensor
    del tensor
    gc.collect()
    assert result.grad_fn is not None
    saved = getattr(result.grad_fn, "_saved_self")  # made by PyTorch's code generator
    assert found.get(saved) == "saved"


def test_a_cycle_of_tensors_is_forgotten() -> None:
    found: TensorDict[int] = TensorDict()
    tensor = torch.ones(2)
    tensor.itself = tensor  # type: ignore[attr-defined]
    found[tensor] = 1
    del tensor
    gc.collect()
    assert found.values() == []


def test_a_copy_has_entries_of_its_own() -> None:
    one, two = torch.ones(2), torch.ones(2)
    found: TensorDict[int] = TensorDict()
    found[one] = 1
    copy = found.copy()
    found[two] = 2
    found[one] = 3
    assert copy.values() == [1] and two not in copy
    found.clear()
    found.update(copy)
    assert found.values() == [1] and found[one] == 1
    del one
    gc.collect()
    assert found.values() == [] and copy.values() == []


def test_its_items_are_those_of_tensors_that_live() -> None:
    held: TensorDict[int] = TensorDict()
    kept, dropped = torch.ones(1), torch.ones(1)
    held[kept], held[dropped] = 1, 2
    del dropped
    ((tensor, value),) = held.items()
    assert tensor is kept and value == 1
