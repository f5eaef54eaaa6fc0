"""The module that PyTorch's exporter traces: parameters and buffers under their names, and a Program as ``forward``."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from typing import Any

import torch

from runtime.export.results import plain_name
from runtime.export.torch_export.sizes import require_sizes
from runtime.export.torch_export.structure import built
from runtime.export.torch_export.translator import Run, Translator, aten
from runtime.export.torch_export.values import NUMBERS, SYMBOLS, Refused, number
from runtime.ir import Parameter, Program
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of


def module_of(program: Program, tensors: Sequence[torch.Tensor], unsaved: Collection[str], run: Run,
              ) -> tuple[torch.nn.Module, tuple[str, ...]]:  # fmt: skip
    """The module, and the names of what it takes: the Program's inputs, one after another.

    ``unsaved``: the buffers that a state dict does not have.
    """
    taken: set[str] = set()
    names = tuple(plain_name(one.name, taken) for one in program.inputs)
    root = torch.nn.Module()
    places = [_hold(root, one, tensor, index, one.kind == "buffer" and one.name not in unsaved)
              for index, (one, tensor) in enumerate(zip(program.params, tensors))]  # fmt: skip
    has_loops = any(flow_of(op).kind is Kind.LOOP for op in program.block.walk())

    def forward(*inputs: torch.Tensor) -> Any:
        t = Translator(run)
        for one, given in zip(program.inputs, inputs, strict=True):
            # PyTorch's gradients of loops are wrong: there are none
            t.give(one.var, aten.detach.default(given) if has_loops else given)
        params = [getattr(root.get_submodule(path), name) for path, name in places]
        for param, tensor in zip(program.params, params):
            t.give(param.var, tensor)
        require_sizes(t, program)
        t.block(program.block)
        run.last = None
        result = built(program.output, lambda index: _given_back(t, program.block.yields[index]))
        held = {one.var: given for one, given in zip(program.inputs, inputs)}
        held |= {one.var: tensor for one, tensor in zip(program.params, params)}
        for write in program.writes:
            aten.copy_.default(held[write.target], t.tensor(program.block.yields[write.index]))
        return result

    forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # by it the exporter names what it is given
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    root.forward = forward
    return root, names


def _given_back(t: Translator, operand: Any) -> Any:
    """A value of the result: a tensor, also for a number of the run, or a list of tensors."""
    found = t.value(operand)
    if isinstance(found, list):
        return [number(one, type(one).__name__) if type(one).__name__ in NUMBERS else one for one in found]
    if isinstance(found, SYMBOLS):
        return number(found, "int" if isinstance(found, torch.SymInt) else "float")
    if isinstance(found, (bool, int, float)):
        return number(found, type(found).__name__)
    return found


def _hold(root: torch.nn.Module, param: Parameter, tensor: torch.Tensor, index: int, saved: bool) -> tuple[str, str]:
    """Put a tensor where its name says; what has no such name is a constant. Returns the place."""
    parts = param.name.split(".")
    if param.kind == "constant" or not all(part.isidentifier() or part.isdigit() for part in parts):
        parts = [f"constant_{index}"]
    *path, name = parts
    owner = root
    for part in path:
        if not hasattr(owner, part):
            owner.add_module(part, torch.nn.Module())
        owner = owner.get_submodule(part)
    held = tensor.detach()
    if hasattr(owner, name):
        raise Refused(f"a tensor named '{param.name}', which PyTorch's modules cannot have")
    if param.kind == "parameter":
        owner.register_parameter(name, torch.nn.Parameter(held, requires_grad=False))
    else:
        owner.register_buffer(name, held, persistent=saved)
    return ".".join(path), name


__all__ = ["module_of"]
