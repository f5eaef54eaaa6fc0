"""Tracing ``torch.autograd.grad`` and ``requires_grad_()``: gradients asked for inside the function."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Set
from itertools import islice
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import Location, Operand, Variable
from runtime.ir.ports import may_pass, passed
from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.memory import outside_graphs
from runtime.tracer.memory.conditions import either
from runtime.tracer.memory.deferred import unneeded
from runtime.tracer.memory.storage_table import Storage, TensorInfo, note_unknown_alias
from runtime.tracer.numbers import scalars
from runtime.tracer.recording import (
    formulas,
    hook_calls,
    hooked_tensors,
    leaf_changes,
    leaf_gradients,
    nonwritable_views,
    outside_flags,
    shared_gradients,
    used_up,
)
from runtime.tracer.recording.gradient_flags import Flag, flags
from runtime.tracer.recording.gradient_paths import Paths, before_loops, reached
from runtime.tracer.recording.gradient_sources import Sources
from runtime.tracer.recording.raising import raise_where
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values.structure import Choice


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """``torch.autograd.grad``, staged as a ``gradients`` Operator.

    Errors raised: RuntimeError and ValueError as torch does; TraceError for what has no static meaning.
    """
    session = state.current()
    if is_grads_batched:
        raise session.error("torch.autograd.grad(is_grads_batched=True) inside a converted function", code="D2S217",
                            hint="Call it once for each gradient, or outside the converted function.")  # fmt: skip
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, "
                         "but got: allow_unused=False.")  # fmt: skip
    starts = roots(session, outputs, grad_outputs, "outputs")
    given = tensors(session, inputs, "inputs")
    for tensor in given:
        raise_where(session, unneeded([session.info(tensor)]),
                    RuntimeError("One of the differentiated Tensors does not require grad"))
    wanted = hooked_tensors.asked_by(session, given)
    retain = create_graph if retain_graph is None else retain_graph
    found = paths(session, starts, wanted, retain_graph=retain)
    reached = found.found
    there = [one for one in wanted if session.read(one) in reached]
    if len(there) < len(wanted) and not allow_unused and not materialize_grads:
        missing = next(place for place, one in enumerate(wanted) if session.read(one) not in reached)
        raise RuntimeError(torch_internals.unused_gradient(missing))
    attrs = {
        "create_graph": create_graph,
        "allow_unused": bool(allow_unused),
        "retain_graph": retain,
        "materialize_grads": materialize_grads,
    }
    certain = [materialize_grads or not allow_unused or reached[session.read(one)] for one in there]
    needs = None
    if create_graph and torch.is_grad_enabled():
        zeros = [materialize_grads and not reached[session.read(one)] for one in there]  # on some path: those need one
        needs = [zero or flag for flag, zero in zip(_needs(session, found, starts, there), zeros)]
    if create_graph and any("once" in op.attrs for op in found.heard):
        raise session.error(
            "torch.autograd.grad(create_graph=True) goes through a tensor whose hook reads the tensor itself, or sets "
            "whether gradients are on", code="D2S213", hint="Let the hook read h.detach(), and set no gradient mode.")
    hooks = hook_calls.changing(session, found.heard)
    also = [hooked_tensors.behind(session, op) for op in hooks]
    if needs is not None:
        needs = [*needs, *(True for _ in also)]
    asked = [*there, *also]
    made = emit(session, starts, asked, [*certain, *sure(session, found, also)], attrs, needs, found) if there else []
    shared_gradients.note(session, starts, asked, made, [session.read(leaf) for leaf, _ in leaves(session)])
    results = list(made)

    def arrive(place: int) -> None:
        results[place] = leaf_gradients.hooked(session, there[place], made[place])

    with contextlib.nullcontext() if create_graph else torch.no_grad():
        if found.heard or len([one for one in there if leaf_gradients.has_hooks(session, one)]) > 1:
            arrivals = [hook_calls.Arrival(session.read(one), leaf_gradients.is_leaf(session, one),
                                           functools.partial(arrive, place)) for place, one in enumerate(there)]
            hook_calls.call_in_order(session, found, arrivals, found.heard, dict(zip(hooks, made[len(there):])))
        else:
            for place in range(len(there)):
                arrive(place)
    each = iter(results)
    return tuple(next(each) if session.read(one) in reached else _nothing(session, one, attrs) for one in wanted)


def sure(session: Session, found: Paths, tensors: list[torch.Tensor]) -> list[bool]:
    """Whether a gradient reaches tensors on every path."""
    return [found.found[session.read(one)] for one in tensors]


def _needs(session: Session, found: Paths, starts: Roots, wanted: list[torch.Tensor]) -> list[Flag]:
    """Whether each gradient needs one."""
    given: dict[Variable, Flag] = {}
    for root, grad in starts:
        info = None if grad is None else session.info(grad)
        mine: Flag = info is not None and info.requires_grad
        mine = None if mine and info is not None and info.grad_in_some_runs else mine
        var = session.read(root)
        given[var] = True if True in (mine, given.get(var)) else None if None in (mine, given.get(var, mine)) else False
    return flags(session, found, given, [session.read(one) for one in wanted])


def _nothing(session: Session, tensor: torch.Tensor, attrs: dict[str, Any]) -> torch.Tensor | None:
    """The gradient of a tensor that none reaches."""
    if not attrs["materialize_grads"]:
        return None
    zeros = torch.zeros_like(tensor)
    if not attrs["create_graph"]:
        return zeros
    requires_grad_(session, zeros)
    session.graph.zero_gradients.add(session.info(zeros).storage.value)
    return zeros


Roots = list[tuple[torch.Tensor, torch.Tensor | None]]
"""What is differentiated, and the gradient of each that is given."""


def roots(session: Session, outputs: Any, grad_outputs: Any, what: str = "tensors") -> Roots:
    """What is differentiated, and the gradients that are given.

    Errors raised: RuntimeError as torch does.
    """
    found = tensors(session, outputs, what)
    given = [None] * len(found) if grad_outputs is None else (
        [grad_outputs] if _is_tensor(grad_outputs) else list(grad_outputs))
    if len(given) < len(found):  # torch passes over more
        raise RuntimeError(f"got {len(found)} tensors and {len(given)} gradients")
    for index, (root, grad) in enumerate(zip(found, given)):
        said = f"element {index} of tensors does not require grad and does not have a grad_fn"
        raise_where(session, unneeded([session.info(root)]), RuntimeError(said))
        if grad is None and not _is_scalar(session, root):
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if grad is None and not root.dtype.is_floating_point:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {root.dtype}")
        mine, its = session.fake(root).shape, None if grad is None else session.fake(grad).shape
        if its is not None and _sizes_differ(mine, its):
            raise RuntimeError(f"Mismatch in shape: grad_output[{index}] has a shape of {its} and output[{index}] has "
                               f"a shape of {mine}.")  # fmt: skip
        if grad is not None and root.dtype.is_complex != grad.dtype.is_complex:
            raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. "
                               f"Mismatch in dtype: grad_output[{index}] has a dtype of {grad.dtype} and "
                               f"output[{index}] has a dtype of {root.dtype}.")  # fmt: skip
    return list(zip(found, given))


def _sizes_differ(a: torch.Size, b: torch.Size) -> bool:
    return len(a) != len(b) or any(type(m) is int and type(n) is int and m != n for m, n in zip(a, b))


def leaves(session: Session) -> list[tuple[torch.Tensor, TensorInfo]]:
    """The tensors of the trace with which autograd's graph begins, the caller's and those made inside."""
    found = [(live.real, session.info(live.real)) for live in session.inputs.live
             if live.fake is not None and live.real.requires_grad and live.real.is_leaf]  # fmt: skip
    found += [(fake, session.info(fake)) for fake in session.inputs.leaf_arguments()]
    makers = {out: op for scope in session.scope.chain() for op in scope.block.ops for out in op.outputs}
    starts = {out for out, op in makers.items() if op.name == "grad.leaf"}
    joins = {out for out, op in makers.items() if may_pass(op)}
    inside = [(one, info) for one, info in session.known_with_tensors() if starts or joins
              if not info.steps and info.itself is None and info.requires_grad]  # fmt: skip
    if any(info.storage.first in joins for _, info in inside):
        sources = Sources(session)
        starts |= {out for out in joins if sources.is_leaf(out, outside=False)}
    return found + [(one, info) for one, info in inside if info.storage.first in starts]


def paths(
    session: Session, starts: Roots, wanted: list[torch.Tensor], *, retain_graph: bool, whole: bool = False
) -> Paths:
    """Where the gradients of ``starts`` go, and whether on every path.

    ``whole``: they go back to everything, not to what is ``wanted`` only.

    Raises:
        TraceError: D2S213: they go through a tensor that was written since, that the caller made of others, or that an
            earlier iteration of a loop made; through what a gradient has used up; or to a tensor by more ways than the
            Program shows.
    """
    session.graph.gradients_asked += 1
    now = {session.read(tensor): info for tensor, info in leaves(session)}
    paths = reached(session, [session.read(root) for root, _ in starts], now)
    goals = {session.read(one) for one in wanted}
    leading = paths.leading(goals | now.keys() if whole else goals)
    ends = set() if whole else goals
    _require_as_now(session, {var for var in paths.found if var in leading or whole}, now, ends)
    outside_graphs.note(session.inputs, _may_be(session, goals), paths.found, session.location())
    _require_unwritten(session, starts, wanted, now)
    asked = goals | now.keys() if whole else goals
    _require_shown(session, [session.read(root) for root, _ in starts], asked, set(now))
    used_up.use(session, [session.read(root) for root, _ in starts], now, paths, asked, retain_graph)
    paths.heard = hook_calls.heard(session, paths, leading)
    _note_alike(session, paths, starts, wanted, now)
    _note_not_reached(session, paths, [leaf for leaf, _ in leaves(session)] if whole else wanted, now)
    return paths


def _note_alike(
    session: Session, paths: Paths, starts: Roots, wanted: list[torch.Tensor], now: dict[Variable, TensorInfo]
) -> None:
    """Note what is sure only if the iterations of the open loops are alike: their end tells."""
    if not paths.alike:
        return
    without = reached(session, [session.read(root) for root, _ in starts], now, alike=False).found
    for leaf in wanted:
        var = session.read(leaf)
        if not paths.found.get(var, False) or without.get(var, False):
            continue
        alike = paths.alike_to({var, *before_loops(session, var)})
        for scope in session.scope.chain():
            if scope in alike:
                scope.taken_alike.append((alike[scope], leaf))
            _, leaf = scope.firsts.get(id(leaf), (leaf, leaf))


def _note_not_reached(
    session: Session, paths: Paths, asked: list[torch.Tensor], now: dict[Variable, TensorInfo]
) -> None:
    """Note what gradients do not reach that go through what the open loops carry: the end of the iteration tells
    whether those of later ones do."""
    missed = [one for one in asked if session.read(one) not in paths.found]
    for scope in session.scope.chain():
        carried = frozenset(var for var in scope.begins if var in paths.found and var not in now)
        if carried and missed:
            scope.not_reached.append((carried, missed))
        missed = [scope.firsts.get(id(one), (one, one))[1] for one in missed]
        if scope.parent is not None:  # what is made in here is another one each time
            missed = [one for one in missed if _is_there(session, scope.parent, one)]


def _is_there(session: Session, scope: Scope, tensor: torch.Tensor) -> bool:
    """Whether a tensor is one that a Block may read, whatever has been written to it inside."""
    storage = session.info(tensor).storage
    return any(scope.sees(var) for var in (storage.first, storage.origin) if var is not None)


def reached_from(session: Session, root: Variable, others: list[torch.Tensor]) -> Set[Variable]:
    """What a gradient of ``root`` may reach; it goes no further than the leaves, and some tensors."""
    stops = {session.read(one) for one in others}.union(session.read(leaf) for leaf, _ in leaves(session))
    return reached(session, [root], stops).found.keys()


def values_of(session: Session, tensors: list[torch.Tensor]) -> set[Variable]:
    """What some tensors are now, and what they were before they were written: a loop inside has written them since."""
    storages = [session.info(one).storage for one in tensors]
    held = (value for one in storages for value in (one.first, one.origin, *one.written) if value is not None)
    return {*map(session.read, tensors), *held}


def reaches_surely(session: Session, root: Variable, leaf: torch.Tensor) -> bool:
    """Whether a gradient of ``root`` reaches a leaf on every path."""
    now = {session.read(tensor) for tensor, _ in leaves(session)}
    return reached(session, [root], now).found.get(session.read(leaf), False)


def _require_as_now(
    session: Session, found: set[Variable], now: dict[Variable, TensorInfo], ends: set[Variable]
) -> None:
    """Refuse a gradient that goes back to what is not a leaf of this very iteration, as it is now; ``ends``: what it
    goes no further than."""
    scopes = list(session.scope.chain())
    begins = {var: first for scope in scopes for var, first in scope.begins.items()}
    as_now = {*now, *(first for var in now for first in before_loops(session, var))}
    older = {value: storage for info in now.values() for storage in [info.storage]
             for value in (storage.first, storage.origin, *storage.written) if value is not None}  # fmt: skip
    arguments = {arg for scope in scopes if scope.parent is not None for arg in scope.block.args}
    for var in found - as_now:
        storage = older.get(var)
        if storage is not None:
            raise _written_since(session, storage)
        look = session.looks.of.get(var)
        if look is None or not look.requires_grad or var in ends:
            continue
        if var in arguments and var not in begins:
            raise session.error(
                "a gradient is asked for that goes back through earlier iterations of the loop",
                hint="Use .detach() on what one iteration leaves to the next, or ask for it after the loop.",
                code="D2S213")
        if session.inputs.real(var) is not None:
            raise session.error(
                "a gradient is asked for that goes back through what the caller computed an argument of",
                hint="Pass a .detach() of it, or ask for the gradient outside.", code="D2S213")


def _may_be(session: Session, values: set[Variable]) -> set[Variable]:
    """Some values, and what they may be: before the loops around, or on some path."""
    inner = [var for var in values if session.inputs.real(var) is None]
    sources = Sources(session) if inner else None
    found = set(values)
    for var in inner:
        for one in (var, *before_loops(session, var)):
            found |= {one} if sources is None else {one, *sources.of(one)}
    return found


def _require_unwritten(
    session: Session, starts: Roots, wanted: list[torch.Tensor], now: dict[Variable, TensorInfo]
) -> None:
    """Refuse a gradient by a tensor that goes through what it held before a write that autograd did not see: for
    autograd both are the tensor."""
    older: dict[Variable, Storage] = {}
    for info in map(session.info, wanted):
        storage = info.storage
        if storage.value is not storage.first and not storage.in_graph:
            values = (storage.first, storage.origin, *storage.written)
            older |= {value: storage for value in values if value is not None and value is not storage.value}
    if older:
        goals = {session.read(one) for one in wanted}
        goals.update(first for var in list(goals) for first in before_loops(session, var))
        direct = reached(session, [session.read(root) for root, _ in starts], {*now, *goals}).found
        for var in direct:
            if var in older and var not in goals:
                raise _written_since(session, older[var])


def _written_since(session: Session, storage: Storage) -> Exception:
    name = f"'{storage.label}'" if storage.label else "a tensor"
    return session.error(
        f"a gradient is asked for that goes through {name} as it was before it was written in place",
        hint="Ask for it before the write, or compute the loss anew after it.", code="D2S213")


_MOST_WAYS = 64
"""Of a tensor with more than that all are taken to be possible together."""


def _require_shown(session: Session, roots: list[Variable], goals: set[Variable], leaves: set[Variable]) -> None:
    """Refuse a gradient by what a branch, loop or list gave as it is, where the gradient meets what it may be."""
    begins = {var for scope in session.scope.chain() for var in scope.begins}
    made = {out for scope in session.scope.chain() for op in scope.block.ops for out in op.outputs}
    sources = Sources(session) if goals & made else None
    for var in goals & (made | begins):
        ways = [] if sources is None else list(islice(sources.ways(var, {}), _MOST_WAYS))
        if sources is not None and len(ways) == _MOST_WAYS:
            ways = [(one, {}) for one in sources.of(var)]
        if var not in leaves:
            ways += [(one, {}) for one in before_loops(session, var)]
        if any(one is not var and one in reached(session, roots, {*leaves, var}, taken).met for one, taken in ways):
            raise session.error(
                "a gradient by a tensor that comes out of a branch, loop or list is asked for, of a value that was "
                "computed from this tensor in there, or before",
                hint="Ask for it in the branch or iteration that computes both, or compute the value anew from it.",
                code="D2S213")


def emit(
    session: Session, starts: Roots, wanted: list[torch.Tensor], certain: list[bool], attrs: dict[str, Any],
    needs: list[Flag] | None = None, paths: Paths | None = None,
) -> list[Any]:  # fmt: skip
    """Record the gradients of ``starts`` by ``wanted``; one that is not ``certain`` is a tensor or None.

    ``needs``: whether each needs a gradient itself; if not said, none does. ``paths``: where they go.
    """
    given = [grad for _, grad in starts]
    operands: list[Operand] = [
        [session.read(root) for root, _ in starts],
        [session.read(tensor) for tensor in wanted],
        None if all(one is None for one in given) else [None if one is None else session.read(one) for one in given],
    ]
    if not all(certain):
        attrs = {**attrs, "allow_unused": True}
    op = session.emit_operator(
        "gradients", operands, types=[session.type_of(session.fake(tensor)) for tensor in wanted], attrs=attrs
    )
    if needs is not None and paths is not None:
        formulas.note(session, op, paths, starts)
    results: list[Any] = []
    for index, (tensor, var, sure) in enumerate(zip(wanted, op.outputs, certain)):
        type_ = session.type_of(session.fake(tensor))
        if attrs["allow_unused"] and sure and not attrs["materialize_grads"]:
            (var,) = session.emit("grad.required", [var, index], types=[type_])
        mine = False if needs is None else needs[index]
        if sure:
            results.append(_result(session, tensor, var, mine))
            continue
        (none,) = session.emit("scalar.is_none", [var])
        there = session.emit("grad.contiguous", [var], types=[type_])[0]
        selector = session.scalar("select", scalars.wrap(none), 1, 0)
        results.append(Choice(selector, (_result(session, tensor, there, mine), None)))
    return results


def _result(session: Session, tensor: torch.Tensor, var: Variable, needs: Flag) -> torch.Tensor:
    fake = session.clone_meta(session.fake(tensor), shape=session.fake(tensor).shape)
    session.fresh(fake, var, requires_grad=needs is not False, layout_known=False)
    session.info(fake).grad_in_some_runs = needs is None
    session.info(fake).cached, session.info(fake).cached_for = var, var
    return fake


def _is_tensor(value: Any) -> bool:
    return is_a(value, torch.Tensor)


def tensors(session: Session, values: Any, what: str) -> list[torch.Tensor]:
    """One tensor, or several, as a list."""
    found = [values] if _is_tensor(values) else list(values)
    for value in found:
        if not _is_tensor(value):
            raise session.error(f"the {what} of torch.autograd.grad hold a {type(value).__name__}", code="D2S217",
                                hint="Pass tensors, or a list or tuple of tensors.")  # fmt: skip
    return found


def _is_scalar(session: Session, tensor: torch.Tensor) -> bool:
    sizes = session.fake(tensor).shape
    return all(type(size) is int for size in sizes) and session.fake(tensor).numel() == 1


def requires_grad_(session: Session, tensor: torch.Tensor, requires_grad: bool = True) -> torch.Tensor:
    """``tensor.requires_grad_()``: from here on the tensor is the start of a graph of its own.

    Errors raised: RuntimeError as torch does; TraceError for a tensor of the caller that may not be changed.
    """
    info = session.info(tensor)
    if info.storage.lost is not None:
        raise info.storage.lost.error(session)
    if info.requires_grad == requires_grad and not info.grad_in_some_runs:
        return tensor
    fake = session.fake(tensor)
    if session.inputs.own_variable(tensor) is not None and outside_flags.may_be_set(session, tensor):
        raise outside_flags.set_flag(session, tensor, requires_grad)
    if not requires_grad:
        return _no_start(session, tensor, fake, info)
    session.inputs.decide(tensor)
    if info.grad_in_some_runs:
        raise session.error("requires_grad_() of a tensor that needs a gradient on some paths only", code="D2S213",
                            hint="Use x.detach().requires_grad_() there.")
    if not (fake.is_floating_point() or fake.is_complex()):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if session.inputs.own_variable(tensor) is not None:
        raise session.error("requires_grad_() changes an argument, or a tensor from outside that was read before",
                            code="D2S213", hint="Use x.detach().requires_grad_(), or call it outside.")
    old = info.storage
    (var,) = session.emit("grad.leaf", [session.read(tensor)], types=[session.type_of(fake)])
    session.graph.made_leaves = True
    storage = session.storages.new(var, label=old.label)
    note_unknown_alias(old, storage, "requires_grad_() made it the start of a graph of its own", session.location())
    new = TensorInfo(storage, (), True, info.layout_known)
    new.cached, new.cached_for = var, var
    leaf_changes.change(session, fake, new)
    return tensor


def given_to_factory(session: Session, tensor: torch.Tensor, requires_grad: bool) -> torch.Tensor:
    """``torch.zeros(3, out=tensor)`` also sets whether a leaf needs a gradient: it does not, if nothing is said.

    Errors raised: as ``requires_grad_``.
    """
    info = session.info(tensor)
    if info.requires_grad and session.inputs.own_variable(tensor) is None:
        if not is_leaf(session, info, info.storage.first):
            return tensor
    return requires_grad_(session, tensor, requires_grad)


def _no_start(session: Session, tensor: torch.Tensor, fake: torch.Tensor, info: TensorInfo) -> torch.Tensor:
    """``tensor.requires_grad_(False)``: a leaf that was made inside is none any more."""
    session.inputs.decide(tensor)
    if info.grad_in_some_runs or session.inputs.own_variable(tensor) is not None:
        raise session.error("requires_grad_(False) changes an argument, a tensor from outside that was read before, "
                            "or one that needs a gradient on some paths only", code="D2S213", hint="Use .detach().")
    written = info.storage.in_graph and info.storage.first is not info.storage.value
    if written or not is_leaf(session, info, info.storage.first):
        raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed "
                           "variable in a subgraph that doesn't require differentiation use var_no_grad = "
                           "var.detach().")
    old = info.storage
    (var,) = session.emit("aten.detach.default", [session.read(tensor)], types=[session.type_of(fake)])
    storage = session.storages.new(var, label=old.label)
    note_unknown_alias(old, storage, "requires_grad_(False) made it one that is not differentiated", session.location())
    new = TensorInfo(storage, (), False, info.layout_known)
    new.cached, new.cached_for = var, var
    leaf_changes.change(session, fake, new)
    return tensor


def set_requires_grad(session: Session, tensor: torch.Tensor, requires_grad: bool) -> None:
    """``tensor.requires_grad = ...``: as ``requires_grad_()``, but no result of a computation may be asked that has it.

    Errors raised: as of ``requires_grad_``.
    """
    info = session.info(tensor)
    apart = any(not fixed.has_node for fixed in info.fixed)  # a view that was made without gradients is a leaf
    if requires_grad and info.requires_grad and not info.grad_in_some_runs and not apart and not is_leaf(
            session, info, info.storage.first):  # fmt: skip
        raise RuntimeError("you can only change requires_grad flags of leaf variables.")
    requires_grad_(session, tensor, requires_grad)


def needed(session: Session, tensor: torch.Tensor) -> Any:
    """``tensor.requires_grad``: known, or staged where it depends on the path that was taken."""
    info = session.info(tensor)
    session.inputs.decide(tensor)
    if info.storage.lost is not None:
        raise info.storage.lost.error(session)
    if not info.grad_in_some_runs:
        return info.requires_grad
    found = session.from_tensor("needed", tensor, kind="bool", family="grad")
    behind = nonwritable_views.needed_by_base(info)
    return found if behind.never else either(session, found, behind.staged(session))


def is_leaf(session: Session, info: TensorInfo, value: Variable | None = None) -> bool:
    """Whether this tensor, which requires grad, is the start of a graph; ``value``: in the past.

    Raises:
        TraceError: D2S213, that depends on the path that was taken.
    """
    answer = False if info.steps else Sources(session).is_leaf(value or info.storage.value)
    if answer is None:
        raise session.error("whether a tensor is a leaf depends on the path that was taken, or the iteration",
                            code="D2S213", hint="Ask where it is made, or use .detach().requires_grad_() here.")
    return answer


def starts(session: Session) -> dict[Variable, Location | None]:
    """The Variables that are the start of a graph on some path, and where ``requires_grad_()`` made them that."""
    ops = list(session.program.block.walk())
    found = {output: op.location for op in ops if op.name == "grad.leaf" for output in op.outputs}
    size = 0
    while len(found) != size:
        size = len(found)
        for op in ops:
            for output, place in zip(op.outputs, range(len(op.outputs))) if op.blocks else ():
                for value in passed(op, place):
                    if value in found:
                        found[output] = found[value]
    return found
