"""Straight-line runs, backward: torch's autograd is asked on fake tensors, and its derivative formulas are recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import NotDifferentiable
from runtime.autodiff.kept import nodes_of
from runtime.autodiff.stale import condition
from runtime.autodiff.tape import Grad, Grads, Segment
from runtime.autodiff.versions import SavedValue, Watch
from runtime.ir import Block, Type, Variable
from runtime.tracer.memory.conditions import ALWAYS, PathCondition, when

Found = list[torch.Tensor | None]
Group = list[tuple[torch.Tensor, Grad]]
"""Results of a segment with their gradients."""


def backward(backward: Backward, entry: Segment, grads: Grads) -> None:
    """Gradients of a segment's leaves from those of its results. Errors raised: NotDifferentiable if torch cannot."""
    results = [(fake, grads.pop(var)) for var, fake in entry.results.items() if var in grads]
    if not entry.leaves:
        return
    backward.session.replaying.location = entry.location  # type: ignore[union-attr]
    for var, grad in _gradients(backward, entry, results, _MOST_NESTED).items():
        backward.add(grads, var, grad)


_MOST_NESTED = 3
"""Results that may get no gradient, with a test of each in the other: so many double the code so often."""


def _gradients(backward: Backward, entry: Segment, results: Group, nested: int) -> Grads:
    """The gradients of the leaves.

    Where no gradient arrives at a result, eager does not walk back from it. Zeros in its place would do harm where a
    formula multiplies by what is infinite or NaN: on such a path the walk is another one.
    """
    groups = list(_groups(entry, results))
    risky = [pair for group, _ in groups if len(group) > 1 for pair in _risky(group)] or _apart(entry, groups)
    if not risky:
        return _by_groups(backward, entry, groups)
    fake, grad = risky[0]
    others = [pair for pair in results if pair[1] is not grad]  # two Variables may be one tensor: x, x.float()
    if not nested:
        found: Grads = {}
        for part in (others, [risky[0]]):
            for var, one in _gradients(backward, entry, part, 0).items():
                backward.add(found, var, one)
        return found
    session = backward.session
    flag = backward.none_test([grad])

    def walk(given: bool) -> tuple[Block, Grads, dict[Variable, Variable]]:
        with session.open("cond") as scope:
            sure = [(fake, Grad(backward.definite(grad)))] if given else []
            found = _gradients(backward, entry, [*sure, *others], nested - 1)
            return scope.block, found, {var: backward.contiguous(one) for var, one in found.items()}

    paths = [walk(False), walk(True)]
    reached = [var for var in entry.leaves if any(var in found for _, found, _ in paths)]
    tensors: list[torch.Tensor] = []
    for var in reached:
        one = next(found[var] for _, found, _ in paths if var in found)
        assert isinstance(one, Grad)
        tensors.append(one.tensor)
    for block, _, carriers in paths:
        block.yields.extend(carriers.get(var) for var in reached)
    types: list[Type] = [session.type_of(tensor) for tensor in tensors]
    outputs = session.emit("cond", [flag], None, types, blocks=[block for block, _, _ in paths])
    result: Grads = {}
    for var, tensor, output in zip(reached, tensors, outputs):
        maybe = any(var not in found or found[var].maybe for _, found, _ in paths)
        result[var] = Grad(backward.like(tensor, output), maybe)
    return result


def _risky(group: Group) -> Iterator[tuple[torch.Tensor, Grad]]:
    """The results of a group that may get no gradient, and whose formulas could make something of zeros."""
    certain = [fake for fake, grad in group if not grad.maybe]
    sure = nodes_of(certain)
    used = {(torch_internals.node_of(fake), fake.output_nr) for fake in certain}
    used.update(edge for node in sure for edge in node.next_functions)
    for fake, grad in group:
        if not grad.maybe:
            continue
        alone, own = nodes_of([fake]) - sure, torch_internals.node_of(fake)
        if own in sure and (own, fake.output_nr) not in used:  # another result of an operator (``eigh``)
            alone.add(own)
        if any(map(_may_spread, alone)):
            yield fake, grad


def _apart(entry: Segment, groups: list[tuple[Group, list[Variable]]]) -> Group:
    """Results that are walked back with others where both get a gradient: their ways lead through one division.

    Each by itself would be divided alone: what is zero, by zero, is NaN then, and eager adds the gradients up before.
    Those that lead to the most leaves come first: the others join them.
    """
    ways = [[_ways(fake) for fake, _ in group] for group, _ in groups] if len(groups) > 1 else []
    found: Group = []
    for number, (group, _) in enumerate(groups if ways else ()):
        others = frozenset().union(*(way for place, of in enumerate(ways) if place != number for way in of))
        found += [pair for pair, way in zip(group, ways[number]) if pair[1].maybe and not way.isdisjoint(others)]
    return sorted(found, key=lambda pair: -len(_leaves_of(entry, pair[0])))


def _ways(fake: torch.Tensor) -> frozenset[Any]:
    """The nodes behind a result whose formulas divide by what may be zero."""
    return frozenset(node for node in nodes_of([fake]) if _kind(node) in _DIVIDE)


_DIVIDE = frozenset("""
    Acos Acosh Asin Atanh Div Erfinv Linalg LinalgVectorNorm Log Log10 Log1P Log2 Logit Norm Pow Prod Reciprocal Rsqrt
    Sqrt Std Tan Xlogy
""".split())
"""Nodes whose formulas are infinite for some finite operands."""


def _kind(node: Any) -> str:
    """The operator that a node is of."""
    kind: str = node.name().rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
    return kind


def _may_spread(node: Any) -> bool:
    """Whether a node's formula may give NaN for zeros, by what is infinite; yes unless it is known not to."""
    if _kind(node) not in _KEEP_ZEROS:
        return True
    factor = getattr(node, "_saved_alpha", 1)
    return not isinstance(factor, (int, float)) or not math.isfinite(factor)


_KEEP_ZEROS = frozenset("""
    AccumulateGrad Add Alias AsStrided Cat Clamp ClampMax ClampMin Clone ConstantPadNd CopyBackwards Copy Detach
    Diagonal Embedding Expand Flip Gather Hardtanh Index IndexSelect MaskedFill Max Maximum Mean Min Minimum Neg
    Permute Relu Repeat Reshape ReshapeAlias Roll Select Slice Sort Split SplitWithSizes Squeeze Stack Sub Sum T
    Threshold ToCopy Topk Transpose Tril Triu Unbind UnsafeView Unsqueeze View Where
""".split())
"""Nodes that add gradients up, move them, or choose where they go."""


def _by_groups(backward: Backward, entry: Segment, groups: list[tuple[Group, list[Variable]]]) -> Grads:
    """The gradients that the groups of results lead to."""
    grads: Grads = {}
    for group, reached in groups:
        maybe = all(grad.maybe for _, grad in group)

        def record(group: Group = group, reached: list[Variable] = reached) -> Found:
            _require_unwritten(backward, entry, group)
            return _ask(backward, entry, group, [entry.leaves[var] for var in reached])

        found = unless_none(backward, [grad for _, grad in group], record) if maybe else record()
        for var, tensor in zip(reached, found):
            if tensor is not None:
                backward.add(grads, var, Grad(tensor, maybe))
    return grads


def _require_unwritten(backward: Backward, entry: Segment, group: Group) -> None:
    """Raise what eager raises where a value that the formulas read was overwritten since.

    Eager runs a node only if a gradient arrives at one of the results that it leads to.
    """
    stale = [(saved, cases) for saved in entry.saved if (cases := saved.stale())]
    if not stale:
        return
    session = backward.session
    asked = [(nodes_of([fake]), grad) for fake, grad in group]
    for saved, cases in stale:
        arriving = [grad for nodes, grad in asked if saved.node in nodes]
        if not arriving:
            continue
        if saved.beside:
            raise NotDifferentiable("a value that is kept for other gradients and written since")
        assert saved.keeping is not None
        kept = saved.keeping.of(saved.memory)
        if kept.never:  # no operand for which it is kept needs a gradient
            continue
        raised = condition(backward, cases) & condition(backward, [(kept,)])
        if raised.maybe or raised.always:
            if len(arriving) < len(group) and all(grad.maybe for grad in arriving):
                (arrived,) = session.emit("scalar.not_", [backward.none_test(arriving)])
                raised &= when(arrived)
            raise_where(backward, raised, _message(saved))


def raise_where(backward: Backward, condition: PathCondition, text: str) -> None:
    """Raise eager's error where a condition holds: a value that backward reads was written since."""
    session = backward.session
    if condition.always:
        session.emit("raise", [text], attrs={"exception": "RuntimeError", "overwritten": True})
        return
    flag = condition.operand(session)
    with session.open("cond") as overwritten:
        session.emit("raise", [text], attrs={"exception": "RuntimeError", "overwritten": True})
    session.emit("cond", [flag], None, [], blocks=[overwritten.block, Block()])


def _message(saved: SavedValue) -> str:
    assert saved.value is not None
    return overwritten(saved, saved.value, saved.node.name())


def overwritten(watch: Watch, value: torch.Tensor, reader: str) -> str:
    """What is said where a value that ``reader`` kept for backward was written since."""
    writer = watch.writer()
    where = writer.location if writer is not None else None
    text = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{value.type().replace('FakeTensor', 'Tensor')} {list(value.shape)}], which {reader} reads"
    )
    if where is not None:
        text += f", was written at {where.file}:{where.line}: {where.text.strip()}"
    return text


def _ask(backward: Backward, entry: Segment, group: Group, leaves: list[torch.Tensor]) -> Found:
    given = [_fitting(backward.definite(grad), fake) for fake, grad in group]
    forward = backward.forward
    again = forward.target is not None and bool(forward.target.attrs["create_graph"])  # some formulas are others then
    try:
        found = torch.autograd.grad([fake for fake, _ in group], leaves, given, allow_unused=True, retain_graph=True,
                                    create_graph=again)  # fmt: skip
    except (RuntimeError, IndexError, TypeError, ValueError) as error:  # as eager in backward
        if _OVERWRITTEN not in str(error):
            raise NotDifferentiable(str(error)) from error
        return _ask_without(backward, entry, group, leaves, str(error))
    return [forward.detached(one) if again and one is not None else one for one in found]


_OVERWRITTEN = "has been modified by an inplace operation"


def _ask_without(
    backward: Backward, entry: Segment, group: Group, leaves: list[torch.Tensor], text: str
) -> Found:
    """The gradients through those results of a group whose nodes have what they need.

    An Operator overwrote what it keeps itself (``x.mul_(x)``), which autograd says of the other results. Eager raises
    if a gradient arrives at one of them.

    Errors raised: NotDifferentiable if only some paths keep it.
    """
    def fails(fake: torch.Tensor) -> bool:
        try:
            torch.autograd.grad(fake, leaves, torch.ones_like(fake), allow_unused=True, retain_graph=True)
        except RuntimeError as error:
            return _OVERWRITTEN in str(error)
        return False

    with backward.session.open("trial"):  # what is recorded there is part of nothing
        failing = [fails(fake) for fake, _ in group]
    nodes = nodes_of([fake for (fake, _), fail in zip(group, failing) if fail])
    if not all(keeping.is_certain for node, keeping in entry.overwriting.items() if node in nodes):
        raise NotDifferentiable(text)
    bad = [grad for (_, grad), fail in zip(group, failing) if fail]
    good = [pair for pair, fail in zip(group, failing) if not fail]
    if not bad:
        raise NotDifferentiable(text)
    arrived = ALWAYS
    if good and all(grad.maybe for grad in bad):
        arrived = when(*backward.session.emit("scalar.not_", [backward.none_test(bad)]))
    raise_where(backward, arrived, text.partition(". Hint")[0])
    return _ask(backward, entry, good, leaves) if good else [torch.zeros_like(leaf) for leaf in leaves]


def _groups(entry: Segment, results: Group) -> Iterator[tuple[Group, list[Variable]]]:
    """Results to be walked back together: a gradient that is None may not turn into zeros for any leaf.

    Zeros do no harm to a leaf that gets a gradient from another result anyway, unless they meet what is infinite or NaN
    on the way (see ``_risky``).
    """
    by_leaves: dict[frozenset[Variable], Group] = {}
    sure: set[Variable] = set()
    reached = [_leaves_of(entry, fake) for fake, _ in results]
    for (_, grad), leaves in zip(results, reached):
        if not grad.maybe:
            sure |= leaves
    for (fake, grad), leaves in zip(results, reached):
        by_leaves.setdefault(frozenset(sure) if leaves <= sure else leaves, []).append((fake, grad))
    for leaves, group in by_leaves.items():
        if leaves:
            yield group, [var for var in entry.leaves if var in leaves]


def _leaves_of(entry: Segment, fake: torch.Tensor) -> frozenset[Variable]:
    """The leaves that a result was computed from."""
    owners = {id(leaf): var for var, leaf in entry.leaves.items()}
    found: set[Variable] = set()
    seen: set[Any] = set()
    todo: list[Any] = [fake.grad_fn]
    if fake.grad_fn is None:
        return frozenset(var for var in (owners.get(id(fake)),) if var is not None)
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) in owners:
            found.add(owners[id(leaf)])
        todo.extend(following for following, _ in node.next_functions)
    return frozenset(found)


def _fitting(grad: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    return grad if grad.dtype == fake.dtype else grad.to(fake.dtype)


def unless_none(backward: Backward, given: list[Grad], record: Callable[[], Found]) -> Found:
    """Record under a condition: nothing flows back where no gradient arrived, as in eager."""
    session = backward.session
    flag = backward.none_test(given)
    with session.open("cond") as nothing:
        pass
    with session.open("cond") as scope:
        found = record()
        present = [tensor for tensor in found if tensor is not None]
        scope.block.yields.extend(backward.contiguous(Grad(tensor)) for tensor in present)
    nothing.block.yields.extend([None] * len(scope.block.yields))
    types: list[Type] = [session.type_of(tensor) for tensor in present]
    outputs = session.emit("cond", [flag], None, types, blocks=[nothing.block, scope.block])
    lifted = iter([backward.like(tensor, var) for tensor, var in zip(present, outputs)])
    return [None if tensor is None else next(lifted) for tensor in found]
