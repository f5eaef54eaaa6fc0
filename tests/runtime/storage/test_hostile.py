"""Mutants of files are refused with the one error class, or load to Programs that verify."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.errors import StorageError
from tests.runtime.storage import hostile, mutants, ten_artefacts


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The ten artefacts."""
    return ten_artefacts.artefacts(tmp_path_factory.mktemp("ten"))


def test_a_sample_of_mutants(files: list[bytes], tmp_path: Path) -> None:
    found, failures = hostile.run(1, range(150), files, tmp_path)
    assert not failures, "\n".join(failures)
    outcomes = {outcome for _, outcome in found}
    assert outcomes == {"refused", "loaded"} and sum(found.values()) == 150


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_20000_mutants(files: list[bytes], tmp_path: Path) -> None:
    found, failures = hostile.run(0, range(20_000), files, tmp_path)
    assert not failures, "\n".join(failures)
    assert {kind for kind, _ in found} == set(mutants.KINDS)


def test_the_artefacts_load_and_their_copies_are_theirs(files: list[bytes], tmp_path: Path) -> None:
    """What the mutants are made of is good; taken apart and put together it is still."""
    assert len(files) == 10
    for data in files:
        (tmp_path / "again.d2s").write_bytes(mutants.sealed(mutants.parts_of(data)))
        assert hostile.hold(tmp_path / "again.d2s") == "loaded"


def test_mutants_are_the_same_each_time(files: list[bytes]) -> None:
    assert [mutants.mutant(3, number, files) for number in range(20)] == [
        mutants.mutant(3, number, files) for number in range(20)
    ]


def test_what_is_neither_is_told(files: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def broken(path: Path) -> str:
        calls.append(path)
        if len(calls) == 2:
            raise IndexError("string index out of range")
        if len(calls) == 3:
            raise hostile.Hang("more than 20 s")
        return "loaded"

    monkeypatch.setattr(hostile, "hold", broken)
    found, failures = hostile.run(1, range(3), files, tmp_path)
    assert [failure.partition(": ")[2] for failure in failures] == [
        "IndexError: string index out of range", "Hang: more than 20 s",
    ]  # fmt: skip
    assert sorted(outcome for _, outcome in found.elements()) == ["failed", "failed", "loaded"]


def test_a_code_of_the_base_class_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path) -> None:
        raise StorageError("says nothing")

    monkeypatch.setattr(hostile.runtime, "load", load)
    with pytest.raises(AssertionError):
        hostile.hold(tmp_path)
