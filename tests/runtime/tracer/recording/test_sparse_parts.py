"""Parts of sparse tensors: sizes that only a run knows, and memory that is one with the tensor's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.tracer.recording import sparse_parts
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """PyTorch says of some layouts that they are new, and of checks that they are off."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def unknown(sizes: Any) -> list[int | None]:
    return [size if type(size) is int else None for size in sizes]


PARTS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], list[int | None], torch.dtype]] = {
    "indices": (lambda x: x.to_sparse(), lambda s: s._indices(), [2, None], torch.int64),
    "values": (lambda x: x.to_sparse(), lambda s: s._values(), [None], torch.float32),
    "coalesced": (lambda x: x.to_sparse().coalesce(), lambda s: s.indices(), [2, None], torch.int64),
    "dense dimensions": (lambda x: x.to_sparse(1), lambda s: s._values(), [None, 4], torch.float32),
    "rows": (lambda x: x.to_sparse_csr(), lambda s: s.crow_indices(), [3], torch.int64),
    "columns of rows": (lambda x: x.to_sparse_csr(), lambda s: s.col_indices(), [None], torch.int64),
    "values of rows": (lambda x: x.to_sparse_csr(), lambda s: s.values(), [None], torch.float32),
    "columns": (lambda x: x.to_sparse_csc(), lambda s: s.ccol_indices(), [5], torch.int64),
    "rows of columns": (lambda x: x.to_sparse_csc(), lambda s: s.row_indices(), [None], torch.int64),
    "blocks": (lambda x: x.to_sparse_bsr((1, 2)), lambda s: s.values(), [None, 1, 2], torch.float32),
}


@pytest.mark.parametrize("name", PARTS)
def test_how_large_a_part_is(name: str, session: Session, given: Any, made: Any) -> None:
    make, part, shape, dtype = PARTS[name]
    y = made(lambda x: part(make(x)), given("x", 2, 4))
    assert unknown(y.shape) == shape and y.dtype is dtype
    real = part(make(torch.ones(2, 4)))
    assert len(real.shape) == len(shape) and all(one in (None, size) for one, size in zip(shape, real.shape))


def test_parts_of_one_tensor_have_one_size(session: Session, given: Any, made: Any) -> None:
    one = made(lambda x: x.to_sparse(), given("x", 2, 4))
    other = made(lambda y: y.to_sparse(), given("y", 2, 4))
    indices, values, count = made(lambda: (one._indices(), one._values(), one._nnz()))
    apart = made(lambda: other._values())
    exprs = [size.node.expr for size in (indices.shape[1], values.shape[0], count, apart.shape[0])]
    assert exprs[0] == exprs[1] == exprs[2] != exprs[3]


def test_whether_it_is_coalesced(session: Session, given: Any, made: Any, refused: Any) -> None:
    """Torch's rule knows that of what some operators give, and of what the caller gives."""
    x = given("x", 2, 4)
    one = made(lambda: x.to_sparse())
    own = session.inputs.add_input(torch.ones(2, 4).to_sparse(), "own")
    assert made(lambda: (one.coalesce().is_coalesced(), own.is_coalesced())) == (True, True)
    product = made(lambda: one * 2)
    with refused("D2S240", "product.is_coalesced()"):
        made(lambda: product.is_coalesced())


@pytest.mark.parametrize("name", ["sparse_resize_", "sparse_resize_and_clear_"])
def test_no_sparse_tensor_is_resized(name: str, given: Any, made: Any, refused: Any) -> None:
    one = made(lambda x: x.to_sparse(), given("x", 2, 4))
    with refused("D2S240", "getattr(one, name)", said=f"{name}() of a sparse tensor"):
        made(lambda: getattr(one, name)((3, 4), 2, 0))


def test_a_tensor_and_its_parts_are_one_memory(session: Session, given: Any, made: Any, refused: Any) -> None:
    one = made(lambda x: x.to_sparse(), given("x", 2, 4))
    values = made(lambda: one._values())
    with refused("D2S222", "values.mul_(2)", said="_values gives memory of a sparse tensor"):
        made(lambda: values.mul_(2))


def test_what_a_tensor_is_made_of_is_its_memory(session: Session, given: Any, made: Any, refused: Any) -> None:
    indices, values = given("i", 1, 3, dtype=torch.int64), given("v", 3)
    one = made(lambda: torch.sparse_coo_tensor(indices, values, (4,)))
    part = made(lambda: one._values())
    for write in (lambda: values.mul_(2), lambda: part.mul_(2)):
        with refused("D2S222", "values.mul_(2), lambda: part.mul_(2)"):
            made(write)


def test_a_part_of_what_is_not_sparse_is_torchs_business(session: Session, given: Any) -> None:
    assert sparse_parts.part(session, torch.ops.aten._values.default, given("x", 3)) is None
    own = session.inputs.add_input(torch.ones(2, 4).to_sparse_csr(), "own")
    assert sparse_parts.part(session, torch.ops.aten.crow_indices.default, own) is None


def test_which_operators_give_the_tensor_itself(session: Session, refused: Any) -> None:
    assert sparse_parts.is_itself(session, torch.ops.aten.alias.default)
    assert not sparse_parts.is_itself(session, torch.ops.aten.coalesce.default)
    with refused("D2S235", "torch.ops.aten.neg.default", said="cannot tell the shape of neg's result"):
        sparse_parts.is_itself(session, torch.ops.aten.neg.default)
