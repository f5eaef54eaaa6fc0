"""Tracing ``torch.autograd.grad`` and ``requires_grad_()``: gradients asked for inside the function."""

from __future__ import annotations

from typing import Any

import torch

from runtime.ir import Location, Operand, Variable
from runtime.ir.ports import passed
from runtime.tracer.ambient import state
from runtime.tracer.memory.storage_table import TensorInfo, mark_uncertain
from runtime.tracer.recording.session import Session


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
    roots = _tensors(session, outputs, "outputs")
    wanted = _tensors(session, inputs, "inputs")
    given = None if grad_outputs is None else list(grad_outputs) if not _is_tensor(grad_outputs) else [grad_outputs]
    if is_grads_batched:
        raise session.error("torch.autograd.grad(is_grads_batched=True) inside a converted function", code="D2S217",
                            hint="Call it once for each gradient, or outside the converted function.")  # fmt: skip
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, "
                         "but got: allow_unused=False.")  # fmt: skip
    if given is not None and len(given) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    for index, root in enumerate(roots):
        if not session.info(root).requires_grad:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        if (given is None or given[index] is None) and not _is_scalar(session, root):
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
    for tensor in wanted:
        if not session.info(tensor).requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    attrs = {
        "create_graph": create_graph,
        "allow_unused": bool(allow_unused),
        "retain_graph": create_graph if retain_graph is None else retain_graph,
        "materialize_grads": materialize_grads,
    }
    operands: list[Operand] = [
        [session.read(root) for root in roots],
        [session.read(tensor) for tensor in wanted],
        None if given is None else [None if one is None else session.read(one) for one in given],
    ]
    made = session.emit(
        "gradients", operands, types=[session.type_of(session.fake(tensor)) for tensor in wanted], attrs=attrs
    )
    results = []
    for tensor, var in zip(wanted, made):
        fake = session.clone_meta(session.fake(tensor), shape=session.fake(tensor).shape)
        needs = create_graph and torch.is_grad_enabled()
        results.append(session.fresh(fake, var, requires_grad=needs, layout_known=False))
        session.info(fake).cached, session.info(fake).cached_for = var, var
    return tuple(results)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _tensors(session: Session, values: Any, what: str) -> list[torch.Tensor]:
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

    Errors raised: RuntimeError as torch does; TraceError for a tensor of the caller.
    """
    info = session.info(tensor)
    if info.requires_grad == requires_grad:
        return tensor
    fake = session.fake(tensor)
    if not requires_grad:
        return _no_start(session, tensor, fake, info)
    if not (fake.is_floating_point() or fake.is_complex()):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if session.inputs.own_variable(tensor) is not None:
        raise session.error("requires_grad_() changes a tensor of the caller", code="D2S213",
                            hint="Use x.detach().requires_grad_(), or call it outside.")  # fmt: skip
    old = info.storage
    (var,) = session.emit("grad.leaf", [session.read(tensor)], types=[session.type_of(fake)])
    storage = session.storages.new(var, label=old.label)
    mark_uncertain(old, storage, "requires_grad_() made it the start of a graph of its own", session.location())
    new = TensorInfo(storage, (), True, info.layout_known)
    new.cached, new.cached_for = var, var
    session.register(fake, new)
    return tensor


def _no_start(session: Session, tensor: torch.Tensor, fake: torch.Tensor, info: TensorInfo) -> torch.Tensor:
    """``tensor.requires_grad_(False)``: a leaf that was made inside is none any more."""
    if info.sometimes or session.inputs.own_variable(tensor) is not None:
        raise session.error("requires_grad_(False) changes a tensor of the caller, or one that needs a gradient on "
                            "some paths only", code="D2S213", hint="Use .detach().")
    written = info.storage.in_graph and info.storage.first is not info.storage.value
    if written or not is_leaf(session, info, info.storage.first):
        raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed "
                           "variable in a subgraph that doesn't require differentiation use var_no_grad = "
                           "var.detach().")
    old = info.storage
    (var,) = session.emit("aten.detach.default", [session.read(tensor)], types=[session.type_of(fake)])
    storage = session.storages.new(var, label=old.label)
    mark_uncertain(old, storage, "requires_grad_(False) made it one that is not differentiated", session.location())
    new = TensorInfo(storage, (), False, info.layout_known)
    new.cached, new.cached_for = var, var
    session.register(fake, new)
    return tensor


def needed(session: Session, tensor: torch.Tensor) -> Any:
    """``tensor.requires_grad``: known, or staged where it depends on the path that was taken."""
    info = session.info(tensor)
    if not info.sometimes:
        return info.requires_grad
    return session.from_tensor("needed", tensor, kind="bool", family="grad")


def is_leaf(session: Session, info: TensorInfo, value: Variable | None = None) -> bool:
    """Whether ``requires_grad_()`` made this tensor, inside the trace, the start of a graph; ``value``: in the past."""
    value = value or info.storage.value
    return not info.steps and any(
        op.name == "grad.leaf" and value in op.outputs
        for scope in session.scope.chain() for op in scope.block.ops
    )


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
