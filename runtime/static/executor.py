"""``Executor``: runs Programs that were built by hand, on what they are fed, and keeps their parameters in a scope."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from runtime.calling.backends import choose_backend
from runtime.calling.prepare import Options, prepare
from runtime.errors import ProgramError
from runtime.ir import Block, Input, TensorType, Variable
from runtime.ir import Program as IRProgram
from runtime.ir.walk import copy_program
from runtime.ops import host_numpy
from runtime.ops.raising import has_effect
from runtime.static.program import Program, Snapshot
from runtime.translated.fitting import check, spell_assumption

Fetch = torch.Tensor | str | Variable


class Scope:
    """Tensors by name: the parameters of Programs, their optimizers' state, running statistics."""

    def __init__(self) -> None:
        self._held: dict[str, torch.Tensor] = {}

    def find_var(self, name: str) -> torch.Tensor | None:
        """The tensor of that name; None if there is none."""
        return self._held.get(name)

    def set_var(self, name: str, value: Any) -> None:
        """Give a name a tensor of its own, with a copy of ``value``; a tensor that has the name already is written."""
        numpys = isinstance(value, (torch.Tensor, np.ndarray, np.generic))
        tensor = host_numpy.to_tensor(value) if numpys else torch.as_tensor(value, device="cpu")
        held = self._held.get(name)
        if held is not None and held.shape == tensor.shape and held.dtype == tensor.dtype:
            with torch.no_grad():
                held.copy_(tensor)
        else:
            self._held[name] = tensor.detach().clone()

    def names(self) -> list[str]:
        """All of them, in the order in which they came."""
        return list(self._held)


_global = Scope()


def global_scope() -> Scope:
    """The scope that executors use if they are given none."""
    return _global


class Executor:
    """Runs Programs: the startup Program once, the main one with ``feed`` as often as there is data."""

    def __init__(self, device: torch.device | str = "cpu", backend: str | None = None) -> None:
        """``device``: where inputs are put; ``backend``: as of ``to_static``."""
        self.device = torch.device(device)
        self.backend = choose_backend(backend)
        self._prepared: weakref.WeakKeyDictionary[Program, dict[Any, _Prepared]] = weakref.WeakKeyDictionary()

    def run(
        self, program: Program, feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Fetch] | Fetch | None = None, scope: Scope | None = None, return_numpy: bool = True,
    ) -> list[Any]:  # fmt: skip
        """Run a Program once; the values of ``fetch_list``.

        Args:
            program: A startup Program fills ``scope``; a main Program reads it and writes what it updates.
            feed: For each input that is needed its array or tensor, by name.
            fetch_list: Tensors of the Program, or their names.
            scope: Where parameters are; None: ``global_scope()``.
            return_numpy: Arrays are given, not tensors.

        Raises:
            ProgramError: A name, dtype or shape in ``feed`` that the Program does not have, an input that is missing,
                a name in ``fetch_list`` that does not exist or that NumPy has no array for, or parameters that no
                startup Program has made.
        """
        if not isinstance(program, Program):
            raise ProgramError(f"a {type(program).__name__} cannot be run here", hint="Pass runtime.static.Program().")
        fetched = [fetch_list] if isinstance(fetch_list, (torch.Tensor, str, Variable)) else list(fetch_list or ())
        variables = [variable(program, one) for one in fetched]
        for one in variables if return_numpy else ():
            if isinstance(one.type, TensorType) and one.type.dtype and not host_numpy.has_dtype(one.type.dtype):
                raise _no_array(one.name, f"of {one.type.dtype}")
        prepared = self._prepare(program, variables)
        where = scope if scope is not None else _global
        inputs = prepared.inputs(feed or {}, self.device)
        params = prepared.params(where, self.device)
        with torch.set_grad_enabled(prepared.asks_gradients):
            values = prepared.run(inputs, params)
        with torch.no_grad():
            values = [value.detach() if isinstance(value, torch.Tensor) else value for value in values]
            results = [value.clone() if isinstance(value, torch.Tensor) else value for value in values[: len(fetched)]]
            for name, value in zip(prepared.stores, values[len(fetched) :]):
                live = prepared.live.get(name)
                if live is not None:
                    live.copy_(value)
                else:
                    where.set_var(name, value)
        return [_array(one.name, value) if return_numpy else value for one, value in zip(variables, results)]

    def _prepare(self, program: Program, variables: list[Variable]) -> _Prepared:
        snapshot = program.snapshot()
        key = (snapshot.ops, tuple(snapshot.stores.items()), tuple(variables))
        known = self._prepared.setdefault(program, {})
        if key not in known:
            known[key] = _Prepared(program, snapshot, variables, self.backend)
        return known[key]


class _Prepared:
    """A Program and what is fetched of it, ready to run."""

    def __init__(self, program: Program, snapshot: Snapshot, fetched: list[Variable], backend: str) -> None:
        graph = program.graph
        self.stores = list(snapshot.stores)
        used = needed(snapshot, [*fetched, *snapshot.stores.values()])
        self._inputs = [one for one in snapshot.inputs if one.var in used]
        self._params = [one for one in snapshot.params if one.var in used]
        self._all = [one.name for one in snapshot.inputs if one.name not in graph.given]
        self._given = dict(graph.given)
        self.live = {one.parameter.name: one.real for one in graph.session.inputs.live}
        names = {one.name for one in self._inputs}
        self._assumes = [one for one in program.assumes if all(name in names for name, _ in one.symbols.values())]
        block = Block([*(one.var for one in self._inputs), *(one.var for one in self._params)], list(snapshot.ops),
                      [*fetched, *snapshot.stores.values()])  # fmt: skip
        made = copy_program(IRProgram(program.name, block, list(self._inputs), list(self._params)))
        self.asks_gradients = any(op.name == "gradients" for op in made.block.walk())
        """Whether torch's autograd may have to find them."""
        self.run = prepare(made, Options(backend=backend, functions=graph.functions)).run

    def inputs(self, feed: Mapping[str, Any], device: torch.device) -> list[Any]:
        """The inputs in order, as tensors that the Program takes."""
        unknown = [name for name in feed if name not in self._all]
        if unknown:
            raise ProgramError(f"feed has {unknown[0]!r}, which is no input of the Program",
                               hint=f"Its inputs are: {', '.join(self._all) or 'none'}.")
        found: list[Any] = []
        for one in self._inputs:
            if one.name in self._given:
                found.append(self._given[one.name]())
            elif one.name not in feed:
                raise ProgramError(f"feed lacks {one.name!r}, which what is fetched depends on")
            else:
                found.append(_fed(one, feed[one.name], device))
        self._check_sizes({one.name: value for one, value in zip(self._inputs, found)})
        return found

    def _check_sizes(self, fed: Mapping[str, Any]) -> None:
        """Hold the sizes against what the Program assumes of them."""
        for assume in self._assumes:
            sizes = {symbol: fed[name].shape[dim] for symbol, (name, dim) in assume.symbols.items()}
            if not check(assume, sizes):
                places = {symbol: f"{name}.shape[{dim}]" for symbol, (name, dim) in assume.symbols.items()}
                shown = ", ".join(f"{places[symbol]} is {size}" for symbol, size in sizes.items())
                raise ProgramError(
                    f"what is fed has sizes that the Program cannot take: {shown}, and it needs "
                    f"{spell_assumption(assume.expr, places)}", location=assume.location)

    def params(self, scope: Scope, device: torch.device) -> list[torch.Tensor]:
        """The parameters in order."""
        found = []
        for one in self._params:
            if one.name in self.live:
                found.append(self.live[one.name])
                continue
            value = scope.find_var(one.name)
            if value is None:
                raise ProgramError(f"the parameter {one.name!r} has no value yet",
                                   hint="Run the startup Program first, with the same scope.")
            found.append(value.requires_grad_(one.requires_grad))  # torch's kernels may be others for such
        return found


def needed(snapshot: Snapshot, wanted: Sequence[Any]) -> set[Variable]:
    """What values are computed from, effects included."""
    found = {one for one in wanted if isinstance(one, Variable)}
    for op in reversed(snapshot.ops):
        if not found.isdisjoint(op.outputs) or has_effect(op):
            found.update(op.inputs)
            for block in op.blocks:
                found.update(block.captures())
    return found


def _fed(given: Input, value: Any, device: torch.device) -> torch.Tensor:
    """What is fed for an input, as a tensor."""
    type_ = given.var.type
    assert isinstance(type_, TensorType) and type_.shape is not None and type_.dtype is not None
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, np.ndarray) for one in value):
        value = np.array(value)
    plain = not isinstance(value, (torch.Tensor, np.ndarray, np.generic))
    try:
        tensor = torch.as_tensor(value, dtype=type_.dtype, device="cpu") if plain else host_numpy.to_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ProgramError(f"what is fed for {given.name!r} is no tensor of {type_.dtype}: {error}") from error
    if tensor.dtype != type_.dtype:
        raise ProgramError(f"what is fed for {given.name!r} is of {tensor.dtype}, and the input of {type_.dtype}",
                           hint=f'Convert it: feed["{given.name}"].astype(...) or .to({type_.dtype}).')
    wrong = len(tensor.shape) != len(type_.shape)
    for size, declared in zip(tensor.shape, type_.shape):
        wrong = wrong or (isinstance(declared, int) and size != declared)
    if wrong:
        said = ", ".join(str(size) if isinstance(size, int) else "any" for size in type_.shape)
        raise ProgramError(
            f"what is fed for {given.name!r} has the shape {tuple(tensor.shape)}, and the input ({said})")
    return tensor.detach().to(device)


def variable(program: Program, one: Fetch) -> Variable:
    """What a tensor of the Program, or a name, stands for.

    Raises:
        ProgramError: It has none of them.
    """
    graph = program.graph
    if isinstance(one, Variable):
        return one
    if isinstance(one, torch.Tensor):
        made = graph.made(one)
        if made is not None and made.name in graph.stand_ins:
            one = graph.stand_ins[made.name]
        return graph.variable(one)
    if one in graph.fetched:
        return graph.fetched[one]
    for name, tensor in (*graph.named.items(), *graph.stand_ins.items()):
        if name == one:
            return graph.variable(tensor)
    for live in graph.session.inputs.live:
        if live.parameter.name == one and live.fake is not None:
            return graph.variable(live.fake)
    for name, persistable in graph.persistables.items():
        if name == one and persistable.made is not None and graph.knows(persistable.made):
            return graph.variable(persistable.made)
    for var in (out for op in program.snapshot().ops for out in op.outputs):
        if var.name == one:
            return var
    raise ProgramError(f"the Program has no variable called {one!r}", hint="Pass the tensor, or print the Program.")


def _array(name: str, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.layout is not torch.strided or not host_numpy.has_dtype(value.dtype):
        raise _no_array(name, f"of {value.dtype} in the layout {value.layout}")
    return value.detach().resolve_conj().resolve_neg().cpu().numpy()


def _no_array(name: str, kind: str) -> ProgramError:
    return ProgramError(f"%{name}, which is fetched, is {kind}, and NumPy has no such arrays",
                        hint="Pass return_numpy=False, or fetch it converted: x.float().")


__all__ = ["Executor", "Fetch", "Scope", "global_scope", "needed", "variable"]
