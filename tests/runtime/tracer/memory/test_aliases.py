"""Memory that other memory may be, however many ways lead there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from runtime.ir import TensorType, Variable
from runtime.tracer.memory import aliases, cached_results
from runtime.tracer.memory.conditions import ALWAYS
from runtime.tracer.memory.storage_table import StorageTable
from runtime.tracer.values import same_object

SESSION: Any = SimpleNamespace(info=lambda tensor: tensor)


def _chain(levels: int) -> list[Any]:
    """Of tensors what is known of their memory; each may be the next one in two ways."""
    table = StorageTable()
    infos = [SimpleNamespace(storage=table.new(Variable(f"v{number}", TensorType(torch.float32, (2,)))), steps=())
             for number in range(levels)]  # fmt: skip
    for one, other in zip(infos, infos[1:]):
        aliases.add(one.storage, other.storage, (), ALWAYS)
        aliases.add(one.storage, other.storage, (), ALWAYS)
    return infos


def test_what_is_reached_by_many_ways() -> None:
    """There are 2 ** 79 of them."""
    infos = _chain(80)
    assert aliases.reached(infos[0], ()) == [one.storage for one in infos]
    assert aliases.reached(infos[0], [infos[3].storage]) == [one.storage for one in infos[:4]]
    assert aliases.few_roots(infos[0], ()) == ([], aliases.reached(infos[0], ()))
    assert cached_results.of(infos[0]) is None
    infos[-1].storage.cached_by = "f", None
    assert cached_results.of(infos[0]) == ("f", None)
    assert same_object.may_share(SESSION, infos[0], infos[-1])
    assert not same_object.may_share(SESSION, infos[0], _chain(1)[0])


def test_few_ways_are_told_apart() -> None:
    infos = _chain(4)
    found, storages = aliases.few_roots(infos[0], ())
    assert len(found) == 1 + 2 + 4 + 8 and not storages
    assert not same_object.may_share(SESSION, infos[0], infos[3])  # it always is: that is known elsewhere
