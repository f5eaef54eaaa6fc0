"""Tensors after a branch that are, on some path, memory from outside or each other's."""

from __future__ import annotations

from typing import Any

from runtime.ir import UNDEF, Operator, Type, Variable
from runtime.kinds import is_a
from runtime.tracer.control.branches import Path
from runtime.tracer.control.parts import Branches, JoinPart, Met
from runtime.tracer.memory import aliases, cached_results, deferred
from runtime.tracer.memory.conditions import NEVER, Deferred, PathCondition
from runtime.tracer.memory.storage_table import Storage, note_unknown_alias
from runtime.tracer.memory.unknown_aliasing import between
from runtime.tracer.values.alias_sets import inherit


class JoinAliases(JoinPart):
    """Which joined memory is which: an alias under the condition that the path was one on which it is."""

    def __init__(self, branches: Branches) -> None:
        super().__init__(branches)
        self.links: dict[Any, tuple[Storage, Storage, Any, Any, dict[Path, PathCondition]]] = {}
        """Which joined memory is which, by path."""

    def recorded(self, op: Operator, outputs: Any) -> None:
        """Flags are deferred outputs of the Operator."""
        self.op = op

    def tensors(self, op: Operator, met: Met) -> None:
        """Note the aliases."""
        session, entry = self.branches.session, self.branches.entry
        joined: list[Storage] = []
        for path, tensors in met:
            if path.ended:
                continue
            views: list[tuple[int, aliases.Root]] = []
            left: list[tuple[int, Storage]] = []
            met_by: dict[Storage, list[tuple[Storage, bool]]] = {}
            for inside, outside in tensors:
                mine = session.info(outside).storage
                if session.info(inside).storage is mine:
                    continue
                if mine not in joined:
                    joined.append(mine)
                cached_results.hand_on(mine, cached_results.of(session.info(inside)))
                left.append((joined.index(mine), session.info(inside).storage))
                found, reached = aliases.few_roots(session.info(inside), entry)
                for storage in (*(root.storage for root in found), *reached):
                    if not aliases.is_outside(storage, entry):
                        inherit(mine, storage)
                    self._mark_many(mine, storage, bool(reached), met_by.setdefault(storage, []))
                views += [(joined.index(mine), root) for root in found]
            self._note_path(path, joined, views)
            self._note_unknown(joined, left)
        for dependent, base, steps, pending, by_path in self.links.values():
            ends = [(deferred.PathEnd(path.scope, path.ended), by_path.get(path, NEVER)) for path, _ in met]
            aliases.add(dependent, base, steps, deferred.joined(session, op, session.scope, ends), pending)

    def _mark_many(self, mine: Storage, storage: Storage, many: bool, met_by: list[tuple[Storage, bool]]) -> None:
        """A tensor may be ``storage``; ``many``: in too many ways to say when. Then it may be any other that may be."""
        location = self.branches.session.location()
        if many and aliases.is_outside(storage, self.branches.entry):
            note_unknown_alias(mine, storage, "it may be one of many others", location)
        for other, of_many in met_by:
            if many or of_many:
                note_unknown_alias(mine, other, "it may be one of many others", location)
        met_by.append((mine, many))

    def _note_path(self, path: Path, joined: list[Storage], views: list[tuple[int, aliases.Root]]) -> None:
        by_root: dict[Storage, list[tuple[int, aliases.Root]]] = {}
        for number, root in views:
            by_root.setdefault(root.storage, []).append((number, root))
        for storage, members in by_root.items():
            if aliases.is_outside(storage, self.branches.entry):
                for number, root in members:
                    self._link(path, joined[number], storage, root.steps, root.when, root.pending)
                continue
            links, unknown = aliases.links(members)
            for link in links:
                self._link(path, joined[link.one], joined[link.other], link.steps, link.when, link.pending)
            for a, b in unknown:
                location = self.branches.session.location()
                note_unknown_alias(joined[a], joined[b], "two variables are views of one tensor on one path", location)

    def _note_unknown(self, joined: list[Storage], left: list[tuple[int, Storage]]) -> None:
        """What was not known of memory on a path is not known after it."""
        noted: set[tuple[Storage, Storage]] = set()
        for number, other, unknown in between(left, lambda one: aliases.is_outside(one, self.branches.entry)):
            one, another = joined[number], joined[other] if is_a(other, int) else other
            if not noted & {(one, another), (another, one)}:
                noted.add((one, another))
                note_unknown_alias(one, another, unknown.reason, unknown.location)

    def _link(
        self, path: Path, dependent: Storage, base: Storage, steps: Any, when: PathCondition, pending: Any
    ) -> None:
        """``dependent`` is ``steps`` of ``base`` on this path, where ``when`` holds."""
        if dependent is base:
            return
        values = {one.var: one for one in pending}
        new: dict[Variable, Variable] = {}
        passed: list[Deferred] = []
        for var in aliases.step_variables(steps):
            if not self.branches.session.visible(var) and var not in new:
                output = self._output(var.type, {path: values.get(var, var)})
                passed.append(output)
                new[var] = output.var
        steps = aliases.with_variables(steps, new)
        entry = self.links.setdefault(
            (id(dependent), id(base), aliases.key(steps)), (dependent, base, steps, (*passed,), {})
        )
        entry[4][path] = entry[4].get(path, NEVER) | when

    def _output(self, type: Type, by_path: dict[Path, Any]) -> deferred.JoinOutput:
        paths = [(deferred.PathEnd(path.scope, path.ended), by_path.get(path, UNDEF)) for path in self.branches.paths]
        return deferred.JoinOutput(self.op, self.branches.session.scope, type, paths)


__all__ = ["JoinAliases"]
