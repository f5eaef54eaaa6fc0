"""Tensors whose ``requires_grad`` a path or an iteration set although they are older (``recording.leaf_changes``).

After the construct nobody knows which it is: who reads such a tensor gets an error.
"""

from __future__ import annotations

from runtime.ir import Operator
from runtime.tracer.control.branches import Path
from runtime.tracer.control.parts import Body, JoinPart, LoopPart, Met, Pairs
from runtime.tracer.recording import leaf_changes
from runtime.tracer.recording.leaf_changes import LeafChange


class JoinLeaves(JoinPart):
    """Those of the paths of a ``cond`` or ``switch``."""

    def tensors(self, op: Operator, met: Met) -> None:
        """Nothing is known of them after paths that go on."""
        changes = [one for path in self.branches.paths if not path.ended for one in path.leaf_changes]
        leaf_changes.forget(self.branches.session, changes)


class LoopLeaves(LoopPart):
    """Those of the attempts to trace the body of a ``while_loop``."""

    def __init__(self) -> None:
        self._changes: list[LeafChange] = []

    def leave(self, body: Body, path: Path, pairs: Pairs) -> bool:
        """An iteration changed them, even if another attempt does not: it carries a tensor of its own then."""
        self._changes += path.leaf_changes
        return True

    def finish(self, body: Body, op: Operator, path: Path, pairs: Pairs) -> None:
        """Nothing is known of them after the loop.

        Raises:
            TraceError: D2S213, if they are changed still: iterations after the first begin with that.
        """
        if path.leaf_changes:
            raise path.leaf_changes[0].error(body.session)
        leaf_changes.forget(body.session, self._changes)


__all__ = ["JoinLeaves", "LoopLeaves"]
