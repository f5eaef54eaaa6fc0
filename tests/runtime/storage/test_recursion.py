"""Files with a recursion that somebody else wrote: refused, or Programs that verify; what never ends raises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import StorageError
from tests.runtime.storage import hostile, mutants


class Halves(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def go(self, x: Any, depth: int = 0) -> Any:
        if x.sum() > 1:
            return self.go(x / 2 + self.linear(x) * 0, depth + 1)
        return x, depth

    def forward(self, x: Any) -> Any:
        return self.go(x)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("saved") / "halves.d2s"
    dy2static.save(dy2static.to_static(Halves()), file, [dy2static.InputSpec([3], "float32", "x")])
    return file.read_bytes()


def test_mutants_are_refused_or_verify(data: bytes, tmp_path: Path) -> None:
    found, failures = hostile.run(5, range(250), [data], tmp_path)
    assert not failures, "\n".join(failures)
    assert {outcome for _, outcome in found} == {"refused", "loaded"}


def changed(data: bytes, old: str, new: str, folder: Path) -> Path:
    """The file with a text in its document that is another one, and right checksums."""
    parts = mutants.parts_of(data)
    (name,) = (name for name, part in parts.items() if old.encode() in part)
    parts[name] = parts[name].replace(old.encode(), new.encode())
    json.loads(parts[name])
    file = folder / "changed.d2s"
    file.write_bytes(mutants.sealed(parts))
    return file


def test_a_call_of_something_else_is_refused(data: bytes, tmp_path: Path) -> None:
    (document,) = (part for part in mutants.parts_of(data).values() if b'"recur"' in part)
    assert b'"recursion"' in document
    file = changed(data, '"recursion"', '"py_func"', tmp_path)
    with pytest.raises(StorageError):
        dy2static.load(file)


def test_what_calls_itself_for_ever_ends_as_in_python(data: bytes, tmp_path: Path) -> None:
    file = changed(data, '"aten.gt.Scalar"', '"aten.ne.Scalar"', tmp_path)
    with pytest.raises(RecursionError):
        dy2static.load(file)(torch.ones(3) * 3)
