"""Programs that were built by hand as files: ``save`` and ``load`` go on training, ``save_inference_model`` does not.

    save(main, "run")                      every Operator and every tensor that outlives a run
    main = load("run")                     runs as before: main's inputs by name, fetched values by name
    save_inference_model("net", [x], [prediction])
    runtime.load("net")(x)                 a module like any that was saved; or static.load("net")

Both are artefacts (``runtime.storage``): one file, no code. The one method of a file takes what is fed by name, the
learning rates with their values as defaults, and gives a dict of what is fetched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from runtime.errors import ProgramError, StorageError
from runtime.ir import Block, Input, Operator, Parameter, ScalarType, Variable
from runtime.ir import Program as IRProgram
from runtime.ir.template import TensorSlot
from runtime.ir.tree import Leaf
from runtime.ir.walk import copy_program
from runtime.ops.raising import has_effect
from runtime.static.executor import Fetch, Scope, global_scope, needed, variable
from runtime.static.graph import ancestors
from runtime.static.guard import default_main_program
from runtime.static.program import Program, Snapshot
from runtime.storage.artefact import (
    MODES,
    Argument,
    Artefact,
    Constant,
    Method,
    ModuleEntry,
    State,
    Store,
    Variant,
)
from runtime.storage.files import read_artefact, write_artefact

_TYPE = "runtime.static.Program"
_METHOD = "forward"


class LoadedProgram(Program):
    """What ``load`` gives: an Executor runs it like the Program that was saved, without a startup Program.

    ``learning_rates`` holds the learning rate of each ``minimize``, as it was when the file was written; a run takes
    what stands there. ``feed_names`` and ``fetch_names`` are those of ``save_inference_model``.
    """

    def __init__(self, variant: Variant, rates: Mapping[str, float]) -> None:
        program = variant.program
        super().__init__(program.name)
        self.inputs, self.params, self.assumes = program.inputs, program.params, program.assumes
        self.block = Block(list(program.block.args), program.block.ops)
        self.learning_rates = dict(rates)
        self.graph.given = {name: self._rate(name) for name in rates}
        self.feed_names = [one.name for one in program.inputs if one.name not in rates]
        self.fetch_names = list(program.output)
        self.graph.fetched = {name: program.block.yields[leaf.index] for name, leaf in program.output.items()}
        stored: dict[str, Any] = {}
        for store in variant.stores:
            assert isinstance(store.target, Constant)
            name = next(one.name for one, place in zip(program.params, variant.params) if place == store.target)
            stored[name] = program.block.yields[store.tree.index]
        self._snapshot = Snapshot(tuple(self.inputs), tuple(self.params), tuple(self.block.ops), stored)

    def snapshot(self) -> Snapshot:
        """What the file holds."""
        return self._snapshot

    def _rate(self, name: str) -> Callable[[], float]:
        return lambda: self.learning_rates[name]


def save(program: Program, path: str | os.PathLike[str], scope: Scope | None = None) -> Path:
    """Write a Program to a file with all that outlives its runs: parameters, optimizers' state, running statistics.

    A learning rate that is a function is saved as the number that it gives now.

    Args:
        program: What runs are to go on with; no startup Program.
        path: Where to; ``.d2s`` is put at the end.
        scope: Where the tensors are; None: ``global_scope()``.

    Raises:
        ProgramError: A tensor has no value yet.
        StorageError: The Program calls a Python function (``py_func``), or the file cannot be written.
    """
    snapshot = program.snapshot()
    return _write(program, snapshot, list(snapshot.inputs), list(snapshot.params), list(snapshot.ops), {}, path, scope)


def save_inference_model(
    path: str | os.PathLike[str], feed: Sequence[torch.Tensor | str], fetch: Sequence[Fetch] | Fetch,
    program: Program | None = None, scope: Scope | None = None,
) -> Path:  # fmt: skip
    """Write what computes ``fetch`` from ``feed`` to a file, as it is in evaluation; nothing else of the Program.

    Effects (a printed line, a test of sizes) are part of it if they read nothing of the data but ``feed``.

    ``static.load`` gives it back as a Program, ``runtime.load`` as a module that takes ``feed`` by position or name and
    gives a dict of what is fetched, by name.

    Args:
        path: Where to; ``.d2s`` is put at the end.
        feed: The data, or its names.
        fetch: Tensors of the Program, or their names.
        program: The main Program; None: that of ``program_guard``.
        scope: Where the parameters are; None: ``global_scope()``.

    Raises:
        ProgramError: A name that the Program does not have; what is fetched depends on data that is not in ``feed``, or
            is part of training; a parameter has no value yet.
        StorageError: The Program calls a Python function (``py_func``), or the file cannot be written.
    """
    source = program if program is not None else default_main_program()
    tested = source.clone(for_test=True)
    snapshot = tested.snapshot()
    wanted = {}
    for one in [fetch] if isinstance(fetch, (torch.Tensor, str, Variable)) else fetch:
        var = variable(source, one)
        wanted[one if isinstance(one, str) else var.name] = var
    there = {*tested.block.args, *(out for op in snapshot.ops for out in op.outputs)}
    for name, var in wanted.items():
        if var not in there:
            raise ProgramError(f"{name!r} is part of training: there is none in evaluation",
                               hint="Fetch what is computed before minimize().")
    named = {one.name: one for one in snapshot.inputs if one.name not in source.graph.given}
    inputs = [_input(named, source, one) for one in feed]
    read = {*wanted.values(), *(var for op in ancestors(list(snapshot.ops), wanted.values()) for var in _reads(op))}
    for asked in snapshot.inputs:
        if asked.var in read and asked not in inputs:
            raise ProgramError(f"what is fetched depends on {asked.name!r}, which is not in feed",
                               hint=f"feed has: {', '.join(given.name for given in inputs) or 'nothing'}.")
    ops = _with_effects(snapshot, ancestors(list(snapshot.ops), wanted.values()), inputs)
    used = needed(Snapshot((), (), tuple(ops)), list(wanted.values()))
    params = [one for one in snapshot.params if one.var in used]
    return _write(source, Snapshot(tuple(inputs), tuple(params), tuple(ops)), inputs, params, ops, wanted, path, scope)


def load(path: str | os.PathLike[str], scope: Scope | None = None, allow: Collection[str] = ()) -> LoadedProgram:
    """A Program that ``save`` or ``save_inference_model`` has written; its tensors are put into the scope, by name.

    Args:
        path: What was given when it was saved.
        scope: Where parameters go; None: ``global_scope()``.
        allow: As of ``runtime.load``.

    Raises:
        StorageError: There is no such file, it is damaged, or holds no Program that was built by hand.
    """
    artefact = read_artefact(path, allow)
    if artefact.modules[0].type_name != _TYPE:
        raise StorageError(f"{os.fspath(path)} holds no Program that was built by hand",
                           hint="Load it with runtime.load().", code="D2S508")
    method = artefact.methods[_METHOD]
    variant = method.variants[MODES[0]]
    held = artefact.state()
    where = scope if scope is not None else global_scope()
    for parameter, place in zip(variant.program.params, variant.params):
        tensor = artefact.tensors[held[place.name]] if isinstance(place, State) else artefact.constants[place.index]
        where.set_var(parameter.name, tensor.detach())
    rates = {one.name: one.default for one in method.signature if isinstance(one.default, float)}
    return LoadedProgram(variant, rates)


def _with_effects(snapshot: Snapshot, ops: list[Operator], inputs: Sequence[Input]) -> list[Operator]:
    """The Operators ``ops``, and those with an effect that read data, and of the data nothing but ``inputs``."""
    fed = {one.var for one in inputs}
    known = fed | {one.var for one in snapshot.params}
    effects = []
    for op in snapshot.ops:
        reads = _reads(op)
        if known.issuperset(reads):
            known.update(op.outputs)
            if not fed.isdisjoint(reads):
                fed.update(op.outputs)
                effects += [op] if has_effect(op) else []
    more = ancestors(list(snapshot.ops), {var for op in effects for var in _reads(op)})
    kept = {*ops, *effects, *more}
    return [op for op in snapshot.ops if op in kept]


def _reads(op: Operator) -> set[Variable]:
    return {*op.inputs, *(var for block in op.blocks for var in block.captures())}


def _write(
    program: Program, snapshot: Snapshot, inputs: list[Input], params: list[Parameter], ops: list[Operator],
    fetched: Mapping[str, Variable], path: str | os.PathLike[str], scope: Scope | None,
) -> Path:  # fmt: skip
    graph = program.graph
    _require_no_function(program, ops)
    values = [_value(program, one.name, scope if scope is not None else global_scope()) for one in params]
    yields = [*fetched.values(), *snapshot.stores.values()]
    fed = {one.name for one in inputs}
    assumes = [one for one in program.assumes if all(name in fed for name, _ in one.symbols.values())]
    block = Block([*(one.var for one in inputs), *(one.var for one in params)], ops, list(yields))
    made = copy_program(IRProgram(program.name, block, inputs, params, assumes=assumes))
    made.output = {name: Leaf(index) for index, name in enumerate(fetched)}
    artefact = Artefact(_TYPE, [ModuleEntry("", _TYPE)], [], [], {})
    places: list[State | Constant] = []
    for one, value in zip(params, values):
        if snapshot.stores:
            artefact.constants.append(value)
            places.append(Constant(len(artefact.constants) - 1))
        else:
            places.append(_in_module(artefact, one, value))
    stores = tuple(
        Store(place, Leaf(len(fetched) + list(snapshot.stores).index(one.name)))
        for one, place in zip(params, places) if one.name in snapshot.stores
    )
    template = tuple((one.name, TensorSlot(index)) for index, one in enumerate(inputs))
    variant = Variant(made, tuple(places), template, stores=stores)
    signature = tuple(_argument(one, graph.given) for one in inputs)
    artefact.methods[_METHOD] = Method(_METHOD, signature, dict.fromkeys(MODES, variant))
    return write_artefact(artefact, path)


def _argument(one: Input, given: Mapping[str, Callable[[], Any]]) -> Argument:
    if not one.name.isidentifier():
        raise ProgramError(f"{one.name!r} cannot be the name of data in a file", hint="Use letters, digits and _.")
    if isinstance(one.var.type, ScalarType):
        return Argument(one.name, "keyword_only", float(given[one.name]()))
    return Argument(one.name, "positional_or_keyword")


def _in_module(artefact: Artefact, one: Parameter, value: torch.Tensor) -> State | Constant:
    """A place among the modules of the file, which are made of the parts of names; a constant where that cannot be."""
    path, _, name = one.name.rpartition(".")
    entries = {entry.path: entry for entry in artefact.modules}
    parts = path.split(".") if path else []
    taken = {f"{entry.path}.{slot[0]}".lstrip(".") for entry in artefact.modules
             for slot in (*entry.parameters, *entry.buffers)}  # fmt: skip
    prefixes = [".".join(parts[: length + 1]) for length in range(len(parts))]
    odd = any(not part.isidentifier() or hasattr(torch.nn.Module, part) for part in (*parts, name))
    if odd or one.name in entries or not taken.isdisjoint(prefixes):
        artefact.constants.append(value)
        return Constant(len(artefact.constants) - 1)
    for prefix in prefixes:
        if prefix not in entries:
            entries[prefix] = ModuleEntry(prefix, "Part")
            artefact.modules.append(entries[prefix])
    artefact.tensors.append(value)
    index = len(artefact.tensors) - 1
    if one.kind == "parameter":
        entries[path].parameters.append((name, index))
    else:
        entries[path].buffers.append((name, index, True))
    return State(one.name)


def _value(program: Program, name: str, scope: Scope) -> torch.Tensor:
    value = program.graph.live().get(name)
    value = scope.find_var(name) if value is None else value
    if value is None:
        raise ProgramError(f"the parameter {name!r} has no value yet",
                           hint="Run the startup Program first, with the same scope.")
    return value


def _input(named: Mapping[str, Input], program: Program, one: torch.Tensor | str) -> Input:
    name = one if isinstance(one, str) else program.name_of(one)
    if name not in named:
        raise ProgramError(f"feed has {name!r}, which is no input of the Program",
                           hint=f"Its inputs are: {', '.join(named) or 'none'}.")
    return named[name]


def _require_no_function(program: Program, ops: Sequence[Operator]) -> None:
    for op in Block(ops=list(ops)).walk():
        if op.name == "py_func":
            function = program.graph.functions.get(str(op.attrs["function"]))
            raise StorageError(
                f"the Program calls the Python function {getattr(function, 'name', op.attrs['function'])!r} (py_func), "
                "and a file holds no code", hint="Write it with torch's operations, or leave it out of what is saved.",
                location=op.location, code="D2S503")


__all__ = ["LoadedProgram", "load", "save", "save_inference_model"]
