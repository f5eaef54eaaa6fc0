"""Whether eager's nodes keep a value for backward, where only some paths or iterations need a gradient.

    z = a * c; a.add_(1)     the node keeps ``a`` only if ``c`` needs a gradient: without one, eager's backward is fine

A replay gives every operand that may need a gradient one, and so its nodes keep all they ever keep. An operand's share
is found by trial: the Operator runs once more, with a gradient needed by that operand alone.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.autodiff.activity import can_carry, join_activity
from runtime.autodiff.versions import Memory
from runtime.ir import Operator, Variable
from runtime.tracer.memory.conditions import ALWAYS, PathCondition
from runtime.tracer.memory.storage_table import storage_key

if TYPE_CHECKING:
    from runtime.autodiff.forward import Forward


class Keeping:
    """What the nodes of one replayed Operator keep, by the operands that need a gradient for it."""

    def __init__(self, forward: Forward, op: Operator, operands: dict[Variable, Any], results: Sequence[Any]) -> None:
        self._forward = forward
        self._op = op
        self._operands = operands
        self._results = results
        self._activities = {var: forward.activity_of(var) for var in operands if forward.is_active(var)}
        self._beside = [var for var, value in operands.items()
                        if var in forward.may_need and var not in self._activities and can_carry(value)]  # fmt: skip
        self._kept: dict[Variable, set[Memory]] = {}

    def of(self, memory: Memory) -> PathCondition:
        """When one of the operands needs a gradient for which eager keeps what the memory shows."""
        if all(isinstance(activity, Variable) or not activity.maybe for activity in self._activities.values()):
            return ALWAYS
        if len(set(self._activities.values())) == 1:
            return join_activity(self._activities.values())
        return join_activity(when for var, when in self._activities.items() if memory in self._kept_for(var))

    @property
    def is_certain(self) -> bool:
        """Whether eager keeps what it does of the results on every path, or on none."""
        memories = {self._forward.versions.memory(one) for one in self._results if isinstance(one, torch.Tensor)}
        return not any(self.of(memory).maybe for memory in memories)

    def inside(self) -> list[tuple[torch.Tensor, Memory]]:
        """What is kept in all, also by nodes that do not say so: that of a write of a part has another one in it."""
        return self._kept_with(self._activities)

    def beside(self) -> list[tuple[torch.Tensor, Memory]]:
        """What eager may keep because operands need a gradient that is not asked for here."""
        if not self._beside or not self._activities:
            return []
        return self._kept_with({*self._activities, *self._beside})

    def _kept_with(self, needing: Container[Variable]) -> list[tuple[torch.Tensor, Memory]]:
        found, values = self._trial(needing)
        mine = self._memories_of(found)
        memories = [(value, mine.get(storage_key(value)) or self._forward.versions.found(value)) for value in values]
        return [(value, memory) for value, memory in memories if memory is not None]

    def _memories_of(self, found: Sequence[Any]) -> dict[int, Memory]:
        """The memories of the results, by the storage of those of a trial."""
        return {
            storage_key(result): self._forward.versions.memory(replayed)
            for result, replayed in zip(found, self._results)
            if isinstance(result, torch.Tensor)
        }

    def _trial(self, needing: Container[Variable]) -> tuple[list[Any], list[torch.Tensor]]:
        """The Operator once more, with a gradient needed by some operands: its results, and what is kept of it."""
        kept: list[torch.Tensor] = []

        def keep(value: torch.Tensor) -> torch.Tensor:
            kept.append(value)
            return value

        operands = {
            var: self._forward.detached(value).requires_grad_(var in needing)
            for var, value in self._operands.items()
            if isinstance(value, torch.Tensor)
        }
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
            return self._forward.trial(self._op, operands), kept

    def _kept_for(self, needing: Variable) -> set[Memory]:
        """The memories whose content is kept if that operand alone needs a gradient."""
        if needing not in self._kept:
            versions = self._forward.versions
            found, values = self._trial((needing,))
            mine = self._memories_of(found)
            values += [value for node in nodes_of(found) for value in torch_internals.saved_by(node)]
            memories = [mine.get(storage_key(value)) or versions.found(value) for value in values]
            self._kept[needing] = {memory for memory in memories if memory is not None}
        return self._kept[needing]


def nodes_of(results: Sequence[Any]) -> set[Any]:
    """The nodes of autograd's graph that results were computed by."""
    seen: set[Any] = set()
    todo = [torch_internals.node_of(value) for value in results if isinstance(value, torch.Tensor)]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo.extend(following for following, _ in node.next_functions)
    return seen


__all__ = ["Keeping", "nodes_of"]
