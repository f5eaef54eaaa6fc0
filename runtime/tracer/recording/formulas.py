"""What gradients that were asked for with ``create_graph=True`` are made of: the nodes of autograd that computed them.

    y = x * w
    g = grad(y.sum(), x, create_graph=True)      g is ``ones * w``: a gradient of g reaches w, not x
    h = grad(g.sum(), x, allow_unused=True)      so h is None, and what y keeps for its own gradient is still there

Each Operator on the way runs once on stand-ins, and its derivative is taken: the nodes that autograd records stand here
as Operators that are in no Program. Walks over graphs (``gradient_paths``) go through them in place of the
``gradients`` Operator. Of an Operator with Blocks, or whose nodes depend on the run, the gradient may be made of
everything that ``gradients`` was given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import Operator, TensorType, Variable
from runtime.ir.operator import leaves
from runtime.kinds import is_a
from runtime.tracer.recording.gradient_paths import FORMULA, Paths
from runtime.tracer.recording.histories import on_stand_ins
from runtime.tracer.recording.session import Session

_Ref = tuple[str, Any]
"""What a node leads to: another "node" by number, an "operand", a "result" of the Operator by its place, or "given",
the gradient of that result."""


@dataclass(frozen=True)
class _Nodes:
    """The nodes of the derivative of an Operator."""

    nodes: tuple[tuple[bool, tuple[_Ref, ...]], ...]
    """For each whether it keeps a tensor, and where it leads."""
    shares: tuple[_Ref | None, ...]
    """The node that gave the gradient of each operand that was asked for; None: that needs none itself."""


def note(
    session: Session, op: Operator, paths: Paths, starts: Iterable[tuple[torch.Tensor, torch.Tensor | None]]
) -> None:
    """Remember what a ``gradients`` Operator was taken through. ``starts``: the roots, and gradients that are given."""
    roots = [(session.read(root), None if grad is None or not session.info(grad).requires_grad else session.read(grad))
             for root, grad in starts]  # fmt: skip
    makers = {out: one for scope in session.scope.chain() for one in scope.block.ops for out in one.outputs}
    found: dict[Variable, Operator] = {}

    def expanded() -> dict[Variable, Operator]:
        if not found:
            found.update(_Expansion(session, op, paths, roots, makers).makers)
        return found

    session.graph.formulas[op] = expanded


class _Expansion:
    """The nodes of one ``gradients`` Operator."""

    def __init__(
        self, session: Session, op: Operator, paths: Paths, roots: list[tuple[Variable, Variable | None]],
        makers: dict[Variable, Operator],
    ) -> None:  # fmt: skip
        self.session = session
        self.op = op
        self.makers: dict[Variable, Operator] = {}
        """Who made the results, and what they are made of."""
        self._arriving: dict[Variable, list[Variable]] = {}
        """By value: the shares of its gradient that need one."""
        wanted = [var for var in leaves(op.args[1]) if is_a(var, Variable)]
        leading = paths.leading(set(wanted))
        for root, given in roots:
            if given is not None and root in leading:
                self._arriving.setdefault(root, []).append(given)
        for maker, results in _in_order(paths, leading, makers):
            self._through(maker, results, paths, leading)
        for var, out in zip(wanted, op.outputs):
            self._new(self._arriving.get(var, []), False, out)

    def _new(self, made_of: Iterable[Variable], keeps: bool, out: Variable | None = None) -> Variable:
        out = out or Variable("", TensorType(None, None))
        attrs = {"keeps": keeps, "of": self.op}
        self.makers[out] = Operator(FORMULA, tuple(made_of), {}, (out,), (), attrs)
        return out

    def _through(self, maker: Operator | None, results: list[Variable], paths: Paths, leading: set[Variable]) -> None:
        """The gradients of results go through the Operator that made them."""
        sources = dict.fromkeys(one for var in results for one in paths.made_of.get(var, ()) if one in leading)
        given = [self._new(self._arriving[var], False) if var in self._arriving else None for var in results]
        found = None if maker is None else _nodes(self.session, maker, results, [*sources], given)
        if maker is None or found is None:
            anything = self._new([var for var in leaves(self.op.args) if is_a(var, Variable)], True)
            for var in sources:
                self._arriving.setdefault(var, []).append(anything)
            return
        made = [Variable("", TensorType(None, None)) for _ in found.nodes]

        def meant(ref: _Ref) -> Variable | None:
            kind, which = ref
            return made[which] if kind == "node" else which if kind == "operand" else (
                maker.outputs[which] if kind == "result" else given[results.index(maker.outputs[which])])

        for out, (keeps, refs) in zip(made, found.nodes):
            self._new([one for one in map(meant, refs) if one is not None], keeps, out)
        for var, share in zip(sources, found.shares):
            one = None if share is None else meant(share)
            if one is not None:
                self._arriving.setdefault(var, []).append(one)


def _in_order(
    paths: Paths, leading: set[Variable], makers: dict[Variable, Operator]
) -> list[tuple[Operator | None, list[Variable]]]:
    """The Operators that gradients go through on their way, users of a value before the one that made it."""
    goes_on = [var for var, sources in paths.made_of.items() if not leading.isdisjoint(sources)]
    results: dict[Any, list[Variable]] = {}
    for var in goes_on:
        results.setdefault(makers.get(var, var), []).append(var)
    users: dict[Variable, set[Any]] = {}
    for one, outs in results.items():
        for source in {source for var in outs for source in paths.made_of[var]}:
            users.setdefault(source, set()).add(one)
    order: list[Any] = []
    done: set[Any] = set()
    todo: list[tuple[Any, bool]] = [(one, False) for one in results]
    while todo:
        one, ready = todo.pop()
        if ready:
            order.append(one)
        elif one not in done:
            done.add(one)
            todo.append((one, True))
            todo += [(user, False) for var in results[one] for user in users.get(var, ())]
    return [(one if is_a(one, Operator) else None, results[one]) for one in order]


def _nodes(
    session: Session, op: Operator, results: list[Variable], sources: list[Variable],
    given: list[Variable | None],
) -> _Nodes | None:  # fmt: skip
    """The nodes of the derivative of ``results`` by ``sources``; ``given``: the gradients of results, where these need
    one. None where that is not known."""
    places = [op.outputs.index(var) for var in results]
    needed = [one is not None for one in given]
    return on_stand_ins(session, op, sources[0], partial(_derived, places, sources, needed))


def _derived(
    places: list[int], sources: list[Variable], needed: list[bool], results: list[Any], stand_ins: dict[Variable, Any]
) -> _Nodes:
    roots = [results[place] for place in places]
    starts = [torch.ones_like(one.detach()).requires_grad_(need) for one, need in zip(roots, needed)]
    shares = torch.autograd.grad(roots, [stand_ins[var] for var in sources], starts, create_graph=True,
                                 allow_unused=True)  # fmt: skip
    ends: dict[Any, _Ref] = {id(value): ("operand", var) for var, value in stand_ins.items()}
    ends.update((id(one), ("given", place)) for one, place in zip(starts, places))
    made = {torch_internals.node_of(one): place for place, one in enumerate(results) if is_a(one, torch.Tensor)}
    numbers: dict[Any, int] = {}
    todo: list[Any] = []

    def ref(node: Any, leaf: Any) -> _Ref | None:
        if node is None or leaf is not None:
            return ends.get(id(leaf))
        if node in made:
            return "result", made[node]
        if node not in numbers:
            numbers[node] = len(numbers)
            todo.append(node)
        return "node", numbers[node]

    given = tuple(ref(torch_internals.node_of(one), one if one.is_leaf else None)
                  if one is not None and one.requires_grad else None for one in shares)  # fmt: skip
    found = []
    for node in todo:  # which grows
        refs = [ref(one, getattr(one, "variable", None)) for one, _ in node.next_functions]
        found.append((bool(torch_internals.saved_by(node)), tuple(one for one in refs if one is not None)))
    return _Nodes(tuple(found), given)


__all__ = ["note"]
