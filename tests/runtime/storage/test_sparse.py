"""Sparse tensors in files: bad indices end in an exception, not in memory that is not theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import InputSpec
from runtime.executor.executable import compile_program
from runtime.ir.parser import parse_program
from runtime.ir.verify import verify
from runtime.storage.sparse import secure

pytestmark = pytest.mark.filterwarnings("ignore:Sparse (invariant|CSR)")


class Made(torch.nn.Module):
    def forward(self, i: torch.Tensor, v: torch.Tensor) -> Any:
        s = torch.sparse_coo_tensor(i, v, (3, 3))
        return s.to_dense(), s._nnz(), s.coalesce().values(), s.coalesce().indices(), s._values() * 2


SPECS = [InputSpec([2, None], "int64", "i"), InputSpec([None], "float32", "v")]
GOOD = torch.tensor([[0, 0, 1], [0, 1, 2]])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dy2static.save(Made(), tmp_path_factory.mktemp("made") / "made", SPECS)


def test_good_ones_are_made(path: Path) -> None:
    loaded = dy2static.load(path)
    v = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    ours, theirs = loaded(GOOD, v), Made()(GOOD, v)
    for one, other in zip(ours, theirs):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
    mine, = torch.autograd.grad(ours[0].pow(2).sum() + ours[2].pow(3).sum(), v)
    eager, = torch.autograd.grad(theirs[0].pow(2).sum() + theirs[2].pow(3).sum(), v)
    torch.testing.assert_close(mine, eager)


BAD = ("[[3, 0, 1], [0, 1, 2]]", "[[0, -1, 1], [0, 1, 2]]", "[[0, 0, 1], [0, 1, 10000000]]")
_RUN = """
import sys, torch, dy2static
loaded = dy2static.load(sys.argv[1])
try:
    loaded(torch.tensor({0}), torch.ones(3))
except RuntimeError as error:
    print("raised", "index" in str(error) or "indices" in str(error))
"""


@pytest.mark.parametrize("indices", BAD)
def test_bad_indices_raise(path: Path, indices: str) -> None:
    """In a process of its own: eager ends it, or writes where it should not."""
    done = subprocess.run([sys.executable, "-c", _RUN.format(indices), str(path)], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0 and "raised True" in done.stdout, done.stderr


TEXT_OF_INDICES = """
program "f" {
  input %x : f32[3] = "x"
  input %k : i64[2, 3] = "k"
  %i : i64[2, 3] = aten.add.Tensor(%k, 0)
  %v : f32[3] = aten.mul.Tensor(%x, 1)
  %s : f32[3, 3] = aten.sparse_coo_tensor.indices_size(%i, %v, [3, 3])
  %j : i64[2, 3] = update(%i) {
    ^(%b : i64[2, 3]):
      %l : i64[2, 3] = aten.fill_.Scalar(%b, 100000000)
      yield %b
  }
  %w : f32[3] = aten.add.Tensor(%v, 5)
  %d : f32[3, 3] = aten.to_dense.default(%s)
  return %d, %j, %w as ($0, $1, $2)
}
"""


def test_what_it_is_made_of_is_not_written_later() -> None:
    """Nor is the memory of what is read for the last time used for another result: the sparse tensor holds it."""
    program = parse_program(TEXT_OF_INDICES)
    secure(program)
    for consuming in (False, True):
        dense, indices, more = compile_program(program, consuming=consuming).run([torch.ones(3), GOOD.clone()], [])
        assert torch.equal(dense, torch.sparse_coo_tensor(GOOD, torch.ones(3), (3, 3)).to_dense())
        assert (indices == 10**8).all() and torch.equal(more, torch.full((3,), 6.0))


_GRADIENT = _RUN.replace("torch.ones(3))", "torch.ones(3, requires_grad=True))[1]")


@pytest.mark.parametrize("indices", BAD[:1])
def test_bad_indices_raise_where_a_gradient_is_needed(path: Path, indices: str) -> None:
    done = subprocess.run([sys.executable, "-c", _GRADIENT.format(indices), str(path)], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0 and "raised True" in done.stdout, done.stderr


def test_saved_again(path: Path, tmp_path: Path) -> None:
    again = dy2static.load(dy2static.save(dy2static.load(path), tmp_path / "again"))
    assert torch.equal(again(GOOD, torch.ones(3))[0], Made()(GOOD, torch.ones(3))[0])
    assert str(again.program) == str(dy2static.load(path).program)


TEXT = """
program "f" {
  input %x : f32[3, 3] = "x"
  %s : f32[3, 3] = aten.to_sparse.default(%x)
  %i : i64[2, n0] = aten.indices.default(%s)
  %j : i64[2, n0] = update(%i) {
    ^(%k : i64[2, n0]):
      %l : i64[2, n0] = aten.fill_.Scalar(%k, 100000000)
      yield %k
  }
  %d : f32[3, 3] = aten.to_dense.default(%s)
  return %d, %j as ($0, $1)
}
"""


def test_parts_are_copies() -> None:
    """A Program that writes into the indices writes into a copy of them, and the tensor stays as it is."""
    program = parse_program(TEXT)
    secure(program)
    verify(program)
    text = str(program)
    secure(program)
    assert str(program) == text
    dense, indices = compile_program(program).run([torch.eye(3)], [])
    assert torch.equal(dense, torch.eye(3)) and (indices == 10**8).all()
