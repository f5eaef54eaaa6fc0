"""Programs that are built by hand, and what of one an executor runs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime import ir
from runtime.errors import ProgramError
from runtime.ir import Variable
from runtime.ops import aten
from runtime.static.graph import Graph

_MODE = frozenset({"train", "training"})
"""Arguments of torch's operators that say whether the model is being trained."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a Program was when it was asked for: ``stores`` are the values that outlive a run, by name."""

    inputs: tuple[ir.Input, ...]
    params: tuple[ir.Parameter, ...]
    ops: tuple[ir.Operator, ...]
    stores: dict[str, Variable] = field(default_factory=dict)


class Program(ir.Program):
    """A Program that torch functions are recorded into, under ``program_guard``; it prints as what it holds."""

    def __init__(self, name: str = "program") -> None:
        super().__init__(name)
        self.graph = Graph(self)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def current_block(self) -> CurrentBlock:
        """Where Operators are recorded now."""
        return CurrentBlock(self.graph)

    def all_parameters(self) -> list[torch.Tensor]:
        """The trainable tensors, as they stand in the Program."""
        graph = self.graph
        named = [graph.stand_ins[name] for name, one in graph.persistables.items()
                 if one.trainable and name in graph.stand_ins]  # fmt: skip
        live = graph.session.inputs.live
        return [*named, *(one.fake for one in live if one.real.requires_grad and one.fake is not None)]

    def name_of(self, tensor: torch.Tensor) -> str:
        """The name of a tensor's Variable: what ``fetch_list`` takes, and what is printed.

        Raises:
            ProgramError: It is no tensor of this Program.
        """
        return self.graph.variable(tensor).name

    def snapshot(self) -> Snapshot:
        """What it holds now."""
        graph = self.graph
        stores = graph.stores()  # may read views, which is recorded
        graph.settle()
        return Snapshot(tuple(self.inputs), tuple(self.params), tuple(self.block.ops), stores)

    def clone(self, for_test: bool = False) -> ClonedProgram:
        """What the Program is now, to be run: what is recorded into it later is not in the clone.

        Parameters are the same, by name. ``for_test``: dropout and batch normalisation do what they do in evaluation,
        and nothing outlives a run: neither running statistics nor, after ``minimize``, new parameters.
        """
        return ClonedProgram(self, for_test)


class ClonedProgram(Program):
    """What ``clone`` gives."""

    def __init__(self, source: Program, for_test: bool) -> None:
        found = source.snapshot()
        if for_test:
            found = Snapshot(found.inputs, found.params, tuple(map(_in_evaluation, source.graph.forward_ops())))
        self._snapshot = found
        ir.Program.__init__(self, source.name)
        self.graph = source.graph
        self.inputs, self.params = list(found.inputs), list(found.params)
        arguments = [*(one.var for one in found.inputs), *(one.var for one in found.params)]
        self.block = ir.Block(arguments, list(found.ops))

    def snapshot(self) -> Snapshot:
        """What its source held when it was cloned."""
        return self._snapshot

    def current_block(self) -> CurrentBlock:
        """Raises ProgramError: nothing is recorded into a clone."""
        raise ProgramError("nothing is recorded into a clone of a Program", hint="Record into the Program, then clone.")


class CurrentBlock:
    """The Block that is recorded into: it makes Variables for what torch does not compute."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @property
    def ops(self) -> list[ir.Operator]:
        """Its Operators."""
        return self._graph.session.scope.block.ops

    def create_var(self, name: str = "", dtype: Any = "float32", shape: Sequence[int | None] = ()) -> Declared:
        """A tensor that is declared only: what ``py_func`` gives. ``shape``: None or -1 for open sizes."""
        return Declared(name, dtype_of(dtype), tuple(-1 if size is None else size for size in shape))

    def __str__(self) -> str:
        return str(self._graph.program)


@dataclass(frozen=True)
class Declared:
    """What a tensor is to look like."""

    name: str
    dtype: torch.dtype
    shape: tuple[Any, ...]
    """Sizes; those of a tensor's shape that are not fixed; -1 for others that are not."""


def dtype_of(dtype: Any) -> torch.dtype:
    """torch's dtype for a dtype of torch's or NumPy's, or the name of one.

    Raises:
        ProgramError: There is no such dtype.

    >>> dtype_of("float32"), dtype_of(torch.int64)
    (torch.float32, torch.int64)
    """
    found = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(getattr(dtype, "__name__", dtype)), None)
    if not isinstance(found, torch.dtype):
        raise ProgramError(f"{dtype!r} is no dtype", hint='Name one of torch\'s: "float32", torch.int64.')
    return found


def _in_evaluation(op: ir.Operator) -> ir.Operator:
    found = copy.copy(op)
    if op.name.startswith("aten."):
        args, kwargs = list(op.args), dict(op.kwargs)
        for position, argument in enumerate(aten.resolve(op.name)._schema.arguments):
            if argument.name in _MODE and str(argument.type) == "bool":
                if position < len(args):
                    args[position] = False
                elif argument.name in kwargs:
                    kwargs[argument.name] = False
        found.args, found.kwargs = tuple(args), kwargs
    found.blocks = tuple(
        ir.Block(list(block.args), [_in_evaluation(inner) for inner in block.ops], list(block.yields))
        for block in op.blocks
    )
    return found


__all__ = ["ClonedProgram", "CurrentBlock", "Declared", "Program", "Snapshot", "dtype_of"]
