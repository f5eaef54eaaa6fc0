"""Gradients that were asked for on some path, or in some iteration, and did not retain the graph.

    if c: loss.backward()        after it a gradient by what the loss was made of raises where c was true

After a branch that is so on the path taken, after a loop if an iteration did it (``Graph.used_up``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from runtime.ir import Operator, Variable
from runtime.tracer.control.branches import Path
from runtime.tracer.control.parts import Body, JoinPart, LoopPart, Pairs
from runtime.tracer.memory.conditions import NEVER
from runtime.tracer.memory.deferred import CarriedCondition, PathEnd, joined


class JoinUsedUp(JoinPart):
    """Those of the paths of a ``cond`` or ``switch``."""

    def recorded(self, op: Operator, outputs: Iterator[Variable]) -> None:
        """Each was asked for if its path was taken."""
        session, paths = self.branches.session, self.branches.paths
        before = session.graph.used_up
        for number, path in enumerate(paths):
            for used in path.used_up:
                if used not in before and not path.ended:
                    ends = [(PathEnd(one.scope, one.ended), used.when if one is path else NEVER) for one in paths]
                    when = joined(session, op, session.scope, ends)
                    session.graph.used_up += (replace(used, when=when, taken={**used.taken, op: number}),)


class LoopUsedUp(LoopPart):
    """Those of the iterations of a ``while_loop``, whichever asked."""

    def finish(self, body: Body, op: Operator, path: Path, pairs: Pairs) -> None:
        """Each was asked for if one iteration did; a value may be made by several, on the paths of each."""
        session = body.session
        before = session.graph.used_up
        for used in path.used_up:
            if used not in before and not path.ended:
                carried = CarriedCondition(False, body.scope)
                carried.next = used.when | carried.inside
                carried.finish(session, op, PathEnd(path.scope, path.ended))
                session.graph.used_up += (replace(used, when=carried.after, taken={}),)


__all__ = ["JoinUsedUp", "LoopUsedUp"]
