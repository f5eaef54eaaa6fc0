"""Snapshots of the storages of a trace, which are made from the one before, against such that look at all of them."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from runtime.ir import TensorType, Variable
from runtime.tracer.memory.storage_table import Storage, StorageTable


def _variable() -> Variable:
    return Variable("v", TensorType(torch.float32, (2,)))


def _all(table: StorageTable) -> list[tuple[Storage, Variable]]:
    alive = [reference() for reference in list(table._storages.values())]
    return [(storage, storage.value) for storage in alive if storage is not None]


def _restored(table: StorageTable, items: list[tuple[Storage, Variable]]) -> dict[Storage, Variable]:
    """What each storage alive has to hold after such a snapshot was restored."""
    before = dict(items)
    return {storage: before.get(storage, storage.origin or value) for storage, value in _all(table)}


@pytest.mark.parametrize("seed", range(20))
def test_snapshots_and_restores(seed: int) -> None:
    chance, table = random.Random(seed), StorageTable()
    held: list[Storage] = []
    taken: list[tuple[Any, list[tuple[Storage, Variable]]]] = []
    for _ in range(300):
        action = chance.choice(["new", "new", "input", "write", "write", "write", "drop", "take", "restore", "forget"])
        if action == "new":
            held.append(table.new(_variable()))
        elif action == "input":
            origin = _variable()
            held.append(table.new(origin, origin))
        elif action == "write" and held:
            chance.choice(held).value = _variable()
        elif action == "drop" and held:
            held.pop(chance.randrange(len(held)))
        elif action == "take":
            expected = _all(table)
            snapshot = table.snapshot()
            assert list(snapshot.items()) == expected
            taken.append((snapshot, expected))
        elif action == "restore" and taken:
            snapshot, items = chance.choice(taken)
            expected_values = _restored(table, items)
            table.restore(snapshot)
            assert dict(_all(table)) == expected_values
        elif action == "forget" and taken:
            taken.pop(chance.randrange(len(taken)))


def test_nothing_new_is_the_same_snapshot() -> None:
    table = StorageTable()
    storage = table.new(_variable())
    first = table.snapshot()
    assert table.snapshot() is first
    storage.value = _variable()
    second = table.snapshot()
    assert second is not first and second[storage] is storage.value and first[storage] is storage.first
