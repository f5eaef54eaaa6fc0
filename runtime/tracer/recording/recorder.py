"""The recorder: a dispatch mode that turns every ATen call of the traced run into an Operator.

It runs below autograd, so composite operators arrive whole, and above fake tensors, which give the metadata of results.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import ObjectType, Operand, ScalarType, TensorType, Type, Variable
from runtime.ir.types import said
from runtime.ir.views import HOLE
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.tracer.ambient import state
from runtime.tracer.ambient.calls import flatten_results, tensors_in, unflatten_results
from runtime.tracer.memory import aliases, cached_results, detached, overlaps
from runtime.tracer.memory.conditions import NEVER, known
from runtime.tracer.memory.deferred import unneeded
from runtime.tracer.memory.storage_table import (
    RecordedStep,
    Storage,
    TensorInfo,
    Write,
    compose,
    storage_key,
)
from runtime.tracer.memory.unknown_aliasing import note_maybe_copy, require_certain
from runtime.tracer.numbers import number_arguments, scalars
from runtime.tracer.recording import (
    faults,
    leaf_writes,
    maybe_views,
    metadata_changes,
    nonwritable_views,
    reads,
    sampled_shapes,
    shape_rules,
    sparse_parts,
    squeezes,
)
from runtime.tracer.recording.session import Session

_METADATA = frozenset(
    {
        "aten.size",
        "aten.stride",
        "aten.storage_offset",
        "aten.sym_size",
        "aten.sym_stride",
        "aten.sym_numel",
        "aten.sym_storage_offset",
        "aten.is_contiguous",
        "aten.is_strides_like_format",
        "aten.dim",
        "aten.numel",
        "aten.is_non_overlapping_and_dense",
        "prim.device",
        "prim.layout",
        "aten.is_same_size",
        "aten.is_complex",
        "aten.is_floating_point",
        "aten.is_signed",
        "aten.is_inference",
        "aten.is_conj",
        "aten.is_neg",
        "aten.layout",
        "aten.result_type",
        "aten.can_cast",
        "aten.sym_is_contiguous",
        "aten._has_compatible_shallow_copy_type",
        "prims.device_put",
        "aten._version",
        "aten.is_pinned",
        "aten.is_coalesced",
        "aten.dense_dim",
        "aten.sparse_dim",
        "aten._is_zerotensor",
        "aten.is_leaf",
        "aten.output_nr",
        "aten._is_any_true",
        "aten.is_distributed",
        "aten.promote_types",
        "aten.cudnn_is_acceptable",
        "aten.is_vulkan_available",
    }
) - {"prims.device_put", "aten._is_any_true"}

_NUMBERS = {"aten.item.default", "aten._local_scalar_dense.default"}
def _outside_of_kernels(func: Any) -> contextlib.AbstractContextManager[None]:
    """For running an operator on fakes: a library's kernels may be Python, in which nothing is staged."""
    return contextlib.nullcontext() if func.namespace == "aten" else state.away()


_READS = {"aten.is_nonzero.default", "aten.equal.default", "aten.allclose.default"}
_QUANTIZING = frozenset({
    "aten.quantize_per_tensor", "aten.quantize_per_tensor_dynamic", "aten.quantize_per_channel",
    "aten._empty_affine_quantized", "aten._empty_per_channel_affine_quantized",
    "aten._make_per_tensor_quantized_tensor", "aten._make_per_channel_quantized_tensor",
})  # fmt: skip


class Recorder(torch_internals.TorchDispatchMode):
    """Records into a session what runs under it."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        session = self.session
        if torch_internals.asks_device(func):  # two of three calls; no rule or size has a part in the answer
            return torch_internals.device_of(session.fake(args[0]))
        if not is_a(func, torch_internals.OpOverload):
            raise session.error(
                f"torch's operator {getattr(func, '__name__', func)}, which calls Python functions, inside a converted "
                "function",
                hint="Write it as a plain for loop, while loop or if, or call it outside.",
                code="D2S292",
            )
        before, session.dispatching = session.dispatching, True
        try:
            return self._arrived(func, args, kwargs or {})
        except TypeError as error:  # a binary operator would try the other operand, and say that neither can
            faults.require_users(session, error)
            raise
        finally:
            session.dispatching = before

    def _arrived(self, func: Any, args: Any, kwargs: Any) -> Any:
        session = self.session
        packet = _packet(func)
        if func.namespace == "profiler":  # a name for what runs between two calls: of the trace
            with torch_internals.undisturbed():
                return func(*args, **kwargs)
        if packet in _METADATA:
            result = self._fake_call(func, args, kwargs)
            session.sizes.collect_asserts()
            return result
        name = f"{packet}.{func._overloadname}"
        if name == "aten.lift_fresh.default":
            return self._literal(args[0])
        if name in _NUMBERS:
            return self._number(args[0])
        if packet in _QUANTIZING:
            raise session.error("a quantized tensor is made inside a converted function", code="D2S213",
                                hint="Quantize outside: torch's shape rules take such a tensor for one of floats.")
        if name in _READS:
            raise session.error(
                "a Python value is taken from a tensor in code that is not converted "
                "(a condition, bool(), int() or .item())",
                hint="Let the function be converted (it needs Python source and must not be ignored), or use tensor "
                "operations such as torch.where.",
                code="D2S212",
            )
        if name == "aten.detach_.default":
            self.detach_in_place(args[0])
            return args[0]
        if name == "aten.detach.default":
            if session.replaying is not None or (session.graph.detaching is None and session.info(args[0]).constant):
                session.graph.inner = args[0]
                return self.alias(args[0])
        if packet in sparse_parts.RESIZING:
            sparse_parts.require_no_resizing(session, func)
        written = _written(func, args, kwargs)
        if written:
            result = self._record_write(func, name, args, kwargs, written)
        else:
            result = self._record(func, name, args, kwargs)
        session.sizes.collect_asserts()  # now that the sizes of the result have names
        return result

    # -- running on fakes ----------------------------------------------------------------------------------------

    def _is_own_view(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Whether an operator under ``no_grad`` gives a view of memory that it made itself, as ``linear`` does."""
        if torch.is_grad_enabled() or self.session.replaying is not None or not torch_internals.is_composite(func):
            return False
        fake_args, fake_kwargs = self._fakes(args), {key: self._fakes(value) for key, value in kwargs.items()}
        with _outside_of_kernels(func):
            return torch_internals.gives_own_view(func, fake_args, fake_kwargs)

    def _fakes(self, value: Any) -> Any:
        return shape_rules.fakes(self.session, value)

    def _fake_call(self, func: Any, args: Any, kwargs: Any) -> Any:
        if _packet(func) in sparse_parts.PARTS:
            part = sparse_parts.part(self.session, func, args[0])
            if part is not None:
                return part
        if func._schema.name == "aten::_efficientzerotensor":  # what operators make of one without data is not told
            func = torch.ops.aten.zeros.default
        squeezes.settle(self.session, func, args)
        maybe_views.settle(self.session, func, args)
        casting = () if _packet(func) in _METADATA else self.session.casting(func)
        with _outside_of_kernels(func):
            return shape_rules.apply(self.session, func, args, kwargs, casting)

    def _number(self, tensor: torch.Tensor) -> Any:
        """A tensor where torch takes a number (``torch.clamp(x, 0, t)``, ``x.view(t, 2)``): its item, as a symbol."""
        number_arguments.require_no_gradient(self.session, tensor)
        return self.session.sizes.symbolic(reads.item(self.session, tensor))

    def _literal(self, real: torch.Tensor) -> torch.Tensor:
        """A tensor made from Python data: a fresh copy of the constant at each run."""
        session = self.session
        if torch_internals.is_fake(real):
            return real
        real = real.detach()
        with torch_internals.no_modes():
            if not real.untyped_storage().resizable():  # memory of an array, which Python may write
                real = real.clone()
        fake = torch_internals.fake_like(session.fake_mode, real, {})
        kwargs: dict[str, Operand] = {"dtype": real.dtype}
        type_ = TensorType(real.dtype, tuple(real.shape), said(real.device))
        if real.dim() == 0 and not real.dtype.is_complex:
            with torch_internals.no_modes():
                value = real.item()
            (var,) = session.emit("aten.full.default", [[], value], {**kwargs, "device": real.device}, [type_])
        else:
            constant = session.inputs.add_constant(real)
            (var,) = session.emit("aten.lift_fresh_copy.default", [constant], {}, [type_])
            session.values.literals[var] = real
        return session.fresh(fake, var)

    def alias(self, tensor: torch.Tensor) -> torch.Tensor:
        """Another tensor object for the same value, without an Operator."""
        session = self.session
        info = session.info(tensor)
        fake = torch_internals.alias_of(session.fake_mode, session.fake(tensor))
        return session.register(fake, replace(info, itself=None, origin=None))

    def detach_in_place(self, tensor: torch.Tensor) -> None:
        """``detach_``: the tensor's value stays, its history ends."""
        session = self.session
        info = session.info(tensor)
        if info.requires_grad:
            raise session.error(
                "detach_() of a tensor that needs a gradient", hint="Write x = x.detach() instead.", code="D2S221"
            )
        metadata_changes.require_no_view(session, tensor, info)

    # -- operators that only read --------------------------------------------------------------------------------

    def _record(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        session = self.session
        reads = list(tensors_in(args, kwargs))
        infos = [session.info(tensor) for tensor in reads]
        # A view that may not be read is refused before it is taken, for that raises, too, and says something else. Any
        # other operand is read before the rule, which may settle what sizes have to be.
        refused_first = any(info.fixed for info in infos) and not torch_internals.is_unknown((*args, *kwargs.values()))
        if not refused_first:
            operands, keywords = self._operands(args, kwargs)
        try:
            result = self._fake_call(func, args, kwargs)
        except Exception as error:
            if faults.is_vetted(error) and torch_internals.is_unknown((*args, *kwargs.values())):
                # it raises for all numbers there may be, and what it says may depend on which these are
                session.emit(name, operands, keywords, [], modes=self._modes(func))
            raise
        flat = flatten_results(result)
        requires_grad = self._requires_grad(func, infos)
        in_some_runs = requires_grad and _in_some_runs(infos)
        if requires_grad and not aten.is_factory(func) and any(_can_carry(out) for out in flat):
            nonwritable_views.require_readable(session, infos)
        if refused_first:
            operands, keywords = self._operands(args, kwargs)
        all_known = all(info.layout_known for info in infos)
        layout_known = all_known and not any(
            out in session.values.any_layout for out in flat if is_a(out, torch.Tensor))
        layout_known = layout_known or func is torch.ops.aten.contiguous.default
        sources: dict[int, tuple[torch.Tensor, TensorInfo]] = {}
        for tensor, info in zip(reads, infos):
            sources.setdefault(storage_key(session.fake(tensor)), (tensor, info))
        modes = self._modes(func)
        same = {id(session.fake(tensor)): tensor for tensor in reads}
        plan: list[tuple[Any, TensorInfo | None]] = []
        for index, out in enumerate(flat):
            if not is_a(out, torch.Tensor):
                plan.append((out, None))
                continue
            if id(out) in same and torch_internals.is_sparse(out) and not sparse_parts.is_itself(session, func):
                out = torch_internals.alias_of(session.fake_mode, out)
            source = sources.get(storage_key(out))
            needs = requires_grad and not aten.is_factory(func) and _can_carry(out)
            if source is None:
                factory = not reads or aten.is_factory(func)
                fresh = TensorInfo(None, (), needs, layout_known, factory, needs and in_some_runs)  # type: ignore[arg-type]
                plan.append((out, fresh))
                continue
            itself = id(out) in same
            if itself:
                out = torch_internals.alias_of(session.fake_mode, out)
            tensor, info = source
            step = RecordedStep(
                name,
                tuple(_hole(operand, arg, tensor) for operand, arg in zip(operands, args)),
                tuple((key, _hole(operand, kwargs[key], tensor)) for key, operand in keywords.items()),
                index,
                len(flat),
                modes,
                session.location() if name == "aten.detach.default" else None,
                session.graph.detaching == "data",
            )
            steps = compose(info.steps, (nonwritable_views.alone(step, flat, session.replaying is not None),))
            made = TensorInfo(info.storage, steps, needs, layout_known)
            made.grad_in_some_runs = needs and in_some_runs
            is_bare = session.graph.bare.get(info, NEVER) if itself else leaf_writes.bare(info, step, needs)
            if not is_bare.never:
                session.graph.bare[made], session.graph.bare_in[made] = is_bare, session.scope
            certain = (layout_known and all_known) or not _looks_at_layout(func, args, kwargs)
            if itself and certain and session.replaying is None:
                made.itself, made.steps = session.itself(tensor), info.steps
            elif itself and session.inputs.own_variable(session.itself(tensor)) is not None:
                made.perhaps_itself = True
            made.fixed = info.fixed if itself else nonwritable_views.of(session, info, step, needs)
            if not needs and _keeps_history(func) and _can_carry(out):  # under no_grad a view is what its base is
                made.requires_grad, made.grad_in_some_runs = info.requires_grad, info.grad_in_some_runs
            plan.append((out, made))
        for out, info_or_none in plan:
            if info_or_none is not None:
                session.register(out, info_or_none)
        types: list[Type] = [session.type_of(out) if info is not None else _plain_type(out) for out, info in plan]
        if func is torch.ops.aten.contiguous.default and all_known and session.replaying is None:
            if any(info is not None and info.storage is None for _, info in plan):  # a copy, however a run lays it out
                name, operands = "aten.clone.default", operands[:1]
                keywords = {"memory_format": (*args[1:], *kwargs.values(), torch.contiguous_format)[0]}
        checks = sampled_shapes.checks(session, flat)
        variables = session.emit(name, operands, keywords, types, attrs=checks, modes=modes)
        for (out, info_or_none), var in zip(plan, variables):
            if info_or_none is None:
                continue
            if info_or_none.storage is None:
                info_or_none.storage = session.storages.new(var)
                maybe_views.note(session, func, args, [info_or_none.storage])
                if _can_carry(out) and self._is_own_view(func, args, kwargs):
                    info_or_none.fixed = nonwritable_views.of_its_own(var, name)
            if info_or_none.steps:
                detached.split(session, info_or_none, var)
            info_or_none.cached, info_or_none.cached_for = var, info_or_none.storage.value
            info_or_none.made_for = info_or_none.storage.value
            session.looks.note(var, out, info_or_none)
            session.sizes.bind_sizes(out, var)
            var.type = session.type_of(out)
        if checks:
            sampled_shapes.require_relations(session, flat, variables)
        packet = _packet(func)
        if packet in sparse_parts.PARTS or packet in sparse_parts.MADE_OF:
            sparse_parts.note_shared(session, name, infos, [info for _, info in plan if info is not None])
        if packet in sparse_parts.ORDERED:
            session.values.sparse_orders.update(variables)
        if aten.may_alias(func, args, kwargs) and not aten.is_view(func):
            self._note_may_alias(name, infos, [info for _, info in plan if info is not None])
        return unflatten_results(result, [out for out, _ in plan])

    def _note_may_alias(self, name: str, sources: list[TensorInfo], results: list[TensorInfo]) -> None:
        """An operator that is a view for some layouts and a copy for others: uncertain when the layout is not known."""
        for source in sources:
            if source.layout_known:
                continue
            for result in results:
                reason = (
                    f"{name.split('.')[1]} is a view or a copy, depending on a memory layout that differs between paths"
                )
                if result.storage is source.storage:
                    result.storage = self.session.storages.new(result.cached)  # type: ignore[arg-type]
                    result.steps = ()
                    result.cached_for = result.storage.value
                note_maybe_copy(source.storage, result.storage, reason, self.session.location())

    def _modes(self, func: Any) -> tuple[Any, Any]:
        """The modes to record an operator with. A replay casts above the recorder, and runs what it made without
        autocast; an operator that casts inside says so."""
        grad, autocast = self.session.modes()
        if self.session.replaying is not None and not self.session.replaying.lowering:
            autocast = self.session.casting(func) or None
        return grad, autocast

    def _operands(self, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the Operator has them."""
        session = self.session
        return [session.operand(arg) for arg in args], {key: session.operand(value) for key, value in kwargs.items()}

    def _requires_grad(self, func: Any, infos: list[TensorInfo]) -> bool:
        return torch.is_grad_enabled() and any(info.requires_grad for info in infos) and _keeps_history(func)

    # -- operators that write ------------------------------------------------------------------------------------

    def _record_write(self, func: Any, name: str, args: Any, kwargs: Any, written: list[torch.Tensor]) -> Any:
        session = self.session
        if torch.Tag.inplace_view in func.tags:
            return self._record_metadata_change(func, name, args, kwargs)
        infos = {id(tensor): session.info(tensor) for tensor in tensors_in(args, kwargs)}
        maybe_views.require_settled(session, [infos[id(tensor)].storage for tensor in written])
        apart = metadata_changes.out_of_graph(session, func, args, kwargs, infos)
        noted = aten.announces_writes(func) and not torch_internals.writes_unseen(func)
        seen = torch.is_grad_enabled() and not apart and noted
        first = functools.partial(leaf_writes.of_out, session, func, args, kwargs)
        nonwritable_views.require_writable(session, [infos[id(tensor)] for tensor in written], infos.values(), first)
        refused = nonwritable_views.refusal([infos[id(tensor)] for tensor in written], infos.values())
        bases: list[Storage] = []
        noticed = [infos[id(tensor)].storage for tensor in written if not infos[id(tensor)].unnoticed]
        for tensor in written:
            storage = infos[id(tensor)].storage
            require_certain(session, storage)
            cached_results.require_none(session, infos[id(tensor)], "is written")
            if seen:
                leaf_writes.require_no_leaf(session, infos[id(tensor)], func, args, kwargs)
            if storage not in bases:
                bases.append(storage)
        nonwritable_views.require_readable(session, infos.values())
        if seen:
            for tensor in written:
                info = infos[id(tensor)]
                info.storage.in_graph = info.storage.in_graph or not info.detached
        if seen and any(info.requires_grad for info in infos.values()):
            in_some_runs, without = _in_some_runs(infos.values()), unneeded(infos.values())
            for tensor in written:
                info = infos[id(tensor)]
                detached.require_own_history(session, info)
                leaf_writes.note_history(session, info, without)
                leaf_writes.note_history_of_paths(session, tensor, without)
                session.require_gradient(info, in_some_runs)
        shapes = metadata_changes.shapes(session, written)
        result = metadata_changes.call(session, func, args, kwargs, self._fake_call)
        metadata_changes.require_resizable(session, func, shapes, written)
        before = [session.require_visible(storage.value) for storage in bases]
        now = [(session.fake(tensor), infos[id(tensor)]) for tensor in written]
        for tensor in written:
            session.looks.note_memory(infos[id(tensor)], session.fake(tensor))
        location = session.location()
        modes = ("off", self._modes(func)[1]) if apart else self._modes(func)
        flat = flatten_results(result)
        types: list[Type] = [
            session.type_of(out) if is_a(out, torch.Tensor) else _plain_type(out) for out in flat
        ]
        args = [_each(self._number_operand, arg) for arg in args]  # computed before the write, not in its Block
        kwargs = {key: _each(self._number_operand, value) for key, value in kwargs.items()}
        overlaps.check(session, overlaps.Call(func, name, args, kwargs, written, infos, types))
        with session.open("update") as scope:
            inner = [session.new_variable(base.type, base.hint) for base in before]
            scope.block.args.extend(inner)
            replayed: dict[int, Variable] = {}

            def operand(value: Any) -> Operand:
                if is_a(value, torch.Tensor):
                    info = infos[id(value)]
                    if info.storage not in bases:
                        return session.read(value)
                    key = id(value)
                    if key not in replayed:
                        replayed[key] = session.replay(
                            inner[bases.index(info.storage)], info.steps, session.type_of(session.fake(value))
                        )
                    return replayed[key]
                return value

            operands = [_each(operand, arg) for arg in args]
            keywords = {key: _each(operand, value) for key, value in kwargs.items()}
            by_fake = {id(session.fake(tensor)): tensor for tensor in written}
            kept = [is_a(out, torch.Tensor) and id(out) not in by_fake for out in flat]
            outputs = session.emit(name, operands, keywords, types, modes=modes, location=location)
            scope.block.yields.extend([*inner, *(var for var, keep in zip(outputs, kept) if keep)])
        extra = [out for out, keep in zip(flat, kept) if keep]
        results = session.emit(
            "update",
            before,
            None,
            [*metadata_changes.base_types(session, before, now), *(session.type_of(out) for out in extra)],
            hints=[var.hint for var in before],
            blocks=[scope.block],
            attrs={} if noticed and refused is None else {"refused": refused} if noticed else {"unnoticed": True},
            modes=modes,
            location=location,
        )
        for storage, old, var in zip(bases, before, results):
            storage.value = var
            storage.written[var] = Write(old, known(storage in noticed))
            storage.unnoticed |= storage not in noticed
        aliases.propagate(session, bases)
        requires_grad = not apart and self._requires_grad(func, list(infos.values()))
        layout_known = all(info.layout_known for info in infos.values())
        for out, var in zip(extra, results[len(bases) :]):
            session.fresh(out, var, requires_grad=requires_grad and out.is_floating_point(), layout_known=layout_known)
            session.info(out).cached, session.info(out).cached_for = var, var
            session.info(out).grad_in_some_runs = session.info(out).requires_grad and _in_some_runs(infos.values())
            session.sizes.bind_sizes(out, var)
        return unflatten_results(
            result, [by_fake.get(id(out), out) if is_a(out, torch.Tensor) else out for out in flat]
        )

    def _number_operand(self, value: Any) -> Any:
        """The operand for what is no tensor."""
        return value if is_a(value, torch.Tensor) else self.session.operand(value)

    def _record_metadata_change(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """``t_()``, ``unsqueeze_()`` and the like: the tensor becomes another view of its storage."""
        session = self.session
        tensor = args[0]
        info = session.info(tensor)
        functional = metadata_changes.functional_view(name)
        if functional is None:
            raise session.error(
                f"{func._schema.name.split('::')[1]} changes a tensor's shape or memory in place",
                hint="Use the function without the trailing underscore and assign its result.",
                code="D2S223",
            )
        if session.replaying is None:
            nonwritable_views.require_writable(session, [info], [info], lambda: None)
            cached_results.require_none(session, info, "is changed in place")
            leaf_writes.require_no_leaf(session, info, func, args, kwargs)
            nonwritable_views.require_readable(session, [info])
        metadata_changes.require_changeable(session, name, tensor, info)
        operands = [session.operand(arg) for arg in args]
        if not squeezes.in_place(session, func, args, self._fake_call):
            self._fake_call(func, args, kwargs)
        step = RecordedStep(functional, (HOLE, *operands[1:]), tuple(kwargs.items()), 0, 1, session.modes())
        info.steps = (*info.steps, step)
        info.cached, info.reshaped_by, info.made_for = None, name, info.storage.value
        return tensor


def _packet(func: Any) -> str:
    return f"{func.namespace}.{func._schema.name.split('::')[1]}"


def _keeps_history(func: Any) -> bool:
    return func._schema.name != "aten::detach"


def _can_carry(value: Any) -> bool:
    return is_a(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that this call writes."""
    names = aten.writes(func, args, kwargs)
    if not names:
        return []
    by_name = aten.arguments(func, args, kwargs)
    return list(tensors_in([by_name[name] for name in names], {}))


def _in_some_runs(infos: Iterable[TensorInfo]) -> bool:
    """Whether what is made of these needs a gradient in some runs only, if it needs one."""
    return not any(info.requires_grad and not info.grad_in_some_runs for info in infos)


def _plain_type(value: Any) -> Type:
    kind = scalars.kind_of(value)
    return ScalarType(kind) if kind is not None else ObjectType()  # type: ignore[arg-type]


def _hole(operand: Operand, value: Any, tensor: torch.Tensor) -> Any:
    """The operand with ``HOLE`` where ``tensor`` stood."""
    if value is tensor:
        return HOLE
    if type(value) in (list, tuple):
        return type(value)(_hole(o, v, tensor) for o, v in zip(list(operand), value))  # type: ignore[arg-type]
    return operand


def _looks_at_layout(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operator that may give back its tensor asks how that lies in memory before it does."""
    given = (*args, *kwargs.values())
    return func is torch.ops.aten.contiguous.default or any(is_a(one, torch.memory_format) for one in given)


def _each(operand: Callable[[Any], Operand], value: Any) -> Operand:
    """The operands of a value's items, in lists and tuples like its own."""
    return type(value)(_each(operand, item) for item in value) if type(value) in (list, tuple) else operand(value)


__all__ = ["Recorder"]
