"""A Program under construction: what torch is told to do with symbolic tensors becomes Operators, call by call.

``Graph`` keeps the recorder's session of a Program open between calls. Two Graphs work together: what computes with
data goes to the main Program; what only makes parameters goes to the startup Program, which an executor runs once.

    l = nn.Linear(4, 3)    startup: empty, uniform_ (nobody has data yet); its weight and bias become parameters
    y = l(x)               main: linear(x, weight, bias), where x came from ``data``
    torch.randn(3) * x     main, too: a tensor that is no parameter is made where it is used, at each run
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.overrides import TorchFunctionMode

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ir import Block, Operator, Parameter, Variable
from runtime.ir.walk import copy_block, variables
from runtime.tracer.ambient import state
from runtime.tracer.memory.storage_table import TensorInfo
from runtime.tracer.numbers import number_operands
from runtime.tracer.numbers.scalars import StagedFloat
from runtime.tracer.recording.interceptor import Interceptor
from runtime.tracer.recording.recorder import Recorder
from runtime.tracer.recording.session import Scope, Session

if TYPE_CHECKING:
    from runtime.static.program import Program

Kind = Literal["parameter", "buffer"]


@dataclass(eq=False)
class Persistable:
    """A tensor that outlives a run: of the startup Program the stand-in that was made, of the main one its parameter.

    ``real``: the tensor itself, where a module brought it that was made outside.
    """

    name: str
    kind: Kind
    trainable: bool
    made: torch.Tensor | None = None
    real: torch.Tensor | None = None


class Graph:
    """The open recording of one Program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.session = Session(program.name)
        self.session.program = program
        self.session.scope = Scope(program.block, None)
        self.persistables: dict[str, Persistable] = {}
        """By name: what a startup Program makes, and what a main one reads and writes."""
        self.stand_ins: dict[str, torch.Tensor] = {}
        """By name: the tensors that stand for them in this Program."""
        self.given: dict[str, Callable[[], Any]] = {}
        """Inputs that an executor asks for itself, and who knows them: learning rates."""
        self.named: dict[str, torch.Tensor] = {}
        """Data, by name, and what was given a name."""
        self.fetched: dict[str, Variable] = {}
        """What a loaded Program gives, by the names that it was saved with."""
        self._written_out: tuple[list[Operator], frozenset[Operator]] = [], frozenset()
        """The Operators before a gradient was added, and what they became, with it: composite ones are taken apart."""
        self.gradients: list[Variable] = []
        """Those of parameters, which optimizers use."""
        self.averaged = False
        """Whether several processes average them."""
        self.functions: dict[str, Callable[..., Any]] = {}
        """What ``py_func`` calls, by its name in the Program."""
        self.names = Names()
        self.met: dict[str, Any] = {}
        """The parameters that the main Program has used, by name: what the startup Program had made of them then."""
        self.assumes_seen = 0
        """How many of the Program's facts about sizes were looked at."""
        self.bring: Callable[[torch.Tensor], torch.Tensor] | None = None
        """Gives what this Program has for a tensor of the startup Program."""
        self._stands_for: dict[int, Persistable] = {}
        self._made: dict[int, Persistable] = {}
        self._copied: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._trained: dict[int, tuple[torch.Tensor, bool]] = {}
        """Which tensors of a startup Program need a gradient, by identity, where that was said."""

    @contextlib.contextmanager
    def recording(self, *modes: TorchFunctionMode) -> Iterator[Session]:
        """While the block runs: what torch does is recorded."""
        before = state.enter(self.session)
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(torch_internals.quiet_shapes())
                stack.enter_context(torch_internals.without_autocast_cache())
                stack.enter_context(torch_internals.below_autograd())
                for mode in (Interceptor(self.session), *modes):
                    stack.enter_context(mode)
                stack.enter_context(Recorder(self.session))
                yield self.session
        finally:
            state.enter(before)
            self.settle()

    def settle(self) -> None:
        """The Program is one that can be printed and run."""
        program = self.program
        program.block.args = [*(one.var for one in program.inputs), *(one.var for one in program.params)]

    def function(self, func: Any) -> str:
        """A name for a Python function that the Program calls."""
        name = f"{getattr(func, 'name', '') or func.__name__}_{len(self.functions)}"
        self.functions[name] = func
        return name

    def forward_ops(self) -> list[Operator]:
        """The Operators as they were recorded, without those of gradients."""
        before, after = self._written_out
        self.settle()
        known = set(self.program.block.args)
        found: list[Operator] = []
        for op in [*before, *(op for op in self.program.block.ops if op not in after)]:
            if known.issuperset((*op.inputs, *(var for block in op.blocks for var in block.captures()))):
                found.append(op)  # others use a gradient: optimizers do
                known.update(op.outputs)
        return found

    @contextlib.contextmanager
    def writing_out(self) -> Iterator[None]:
        """The block adds a gradient to the Program."""
        before = self.forward_ops()
        yield
        self._written_out = before, frozenset(self.program.block.ops)
        self.reserve()

    def knows(self, value: Any) -> bool:
        """Whether this is a tensor of the Program."""
        return isinstance(value, torch.Tensor) and self.session.knows(value)

    def note(self, made: torch.Tensor, name: str, kind: Kind, trainable: bool) -> Persistable:
        """A tensor of a startup Program is to outlive it."""
        found = self._made.get(id(made))
        if found is None:
            found = Persistable(name, kind, trainable, made)
            self._made[id(made)] = self.persistables[name] = found
            self.train(made, trainable)
        return found

    def train(self, value: torch.Tensor, needs: Any) -> None:
        """Say whether a tensor of a startup Program needs a gradient."""
        self._trained[id(value)] = value, bool(needs)
        if id(value) in self._made:
            self._made[id(value)].trainable = bool(needs)

    def is_trained(self, value: torch.Tensor) -> bool:
        """Whether that was said of it."""
        return id(value) in self._trained and self._trained[id(value)][1]

    def made(self, value: torch.Tensor) -> Persistable | None:
        """What a tensor of a startup Program was noted as."""
        return self._made.get(id(value))

    def stand_in(self, persistable: Persistable) -> torch.Tensor:
        """What stands for a persistable tensor in this Program: a parameter of it."""
        found = self.stand_ins.get(persistable.name)
        if found is not None:
            return found
        session, made = self.session, persistable.made
        assert made is not None
        with torch_internals.unwatched():
            fake = torch_internals.empty_fake(
                session.fake_mode, list(made.shape), list(made.stride()), made.dtype, made.device)
        var = session.new_variable(session.type_of(fake), persistable.name, session.root())
        self.program.params.append(Parameter(var, persistable.name, persistable.kind, persistable.trainable))
        info = TensorInfo(session.storages.new(var, origin=var, label=persistable.name), (), persistable.trainable)
        info.cached = info.cached_for = var
        if persistable.kind == "parameter":
            fake._is_param = True  # what isinstance(x, torch.nn.Parameter) looks at
        self.persistables[persistable.name] = persistable
        self.stand_ins[persistable.name] = session.register(fake, info)
        self._stands_for[id(fake)] = persistable
        return fake

    def stands_for(self, value: torch.Tensor) -> Persistable | None:
        """What a tensor stands for in this Program."""
        return self._stands_for.get(id(value))

    def train_stand_in(self, persistable: Persistable, needs: bool) -> None:
        """Say whether a parameter that nothing was computed from needs a gradient."""
        found = self.stand_ins.get(persistable.name)
        if found is not None:
            self.session.info(found).requires_grad = needs
            for one in self.program.params:
                if one.name == persistable.name:
                    one.requires_grad = needs

    def all_met_data(self) -> None:
        """The initialisation of what this Program has for parameters is over."""
        for name in self.stand_ins:
            self.met.setdefault(name, None)
        self.settle()

    def value(self, tensor: torch.Tensor) -> Variable:
        """What the memory of a tensor of this Program holds now."""
        return self.session.info(tensor).storage.value

    def is_written(self, name: str) -> bool:
        """Whether runs write a parameter."""
        storage = self.session.info(self.stand_ins[name]).storage if name in self.stand_ins else None
        return storage is not None and storage.value is not storage.origin

    def has_copy(self, value: torch.Tensor) -> bool:
        """Whether a tensor of the startup Program was made here, too."""
        return id(value) in self._copied

    def has_copies(self, startup: Graph, value: torch.Tensor, copy: torch.Tensor) -> None:
        """A tensor of the startup Program was made here, too: what is not needed there goes."""
        self._copied[id(value)] = value, copy
        with startup.recording():
            startup.drop(ancestors(startup.program.block.ops, [startup.session.read(value)]))

    def live(self) -> dict[str, torch.Tensor]:
        """Tensors that modules from outside brought, by the name of the Program's parameter."""
        return {one.parameter.name: one.real for one in self.session.inputs.live}

    def variable(self, value: torch.Tensor) -> Variable:
        """The Variable that holds a tensor of the Program now.

        Raises:
            ProgramError: It is none of this Program's.
        """
        if not self.knows(value):
            noted = [name for name, one in self.persistables.items() if one.made is value and name in self.stand_ins]
            if noted:
                return self.variable(self.stand_ins[noted[0]])
            if self.bring is not None and torch_internals.is_fake(value):
                with self.recording():
                    value = self.bring(value)
                    return self.session.read(value)
            live = [one.fake for one in self.session.inputs.live if one.real is value]
            if not live or live[0] is None:
                raise ProgramError(f"a tensor is no variable of the Program {self.program.name!r}")
            value = live[0]
        with self.recording():
            return self.session.read(value)

    def origin(self, value: torch.Tensor) -> Variable:
        """The parameter that a tensor stands for, as runs begin with it."""
        found = self.session.info(value).storage.origin
        if found is None:
            raise ProgramError("a tensor is no parameter of the Program")
        return found

    def name_of(self, value: torch.Tensor) -> str:
        """The name of a parameter."""
        var = self.origin(value)
        return next(one.name for one in self.program.params if one.var is var)

    def stores(self) -> dict[str, Variable]:
        """The values that outlive a run, by name: what was made for another Program, and what was written."""
        if self._made:
            return {one.name: self.variable(one.made) for one in self._made.values() if one.made is not None}
        held = [*self.stand_ins.items()]
        held += [(one.parameter.name, one.fake) for one in self.session.inputs.live if one.fake is not None]
        storages = {name: self.session.info(fake).storage for name, fake in held}
        return {name: one.value for name, one in storages.items() if one.value is not one.origin}

    def drop(self, ops: Sequence[Operator]) -> None:
        """Operators that belong to another Program: those go that what is made here does not need, too."""
        kept = {*ancestors(self.program.block.ops, self.stores().values())}
        gone = {op for op in ops if op not in kept}
        self.program.block.ops[:] = [op for op in self.program.block.ops if op not in gone]

    def fresh(self, var: Variable, like: torch.Tensor) -> torch.Tensor:
        """A tensor for a Variable that was not recorded call by call, and looks like another tensor."""
        self.session.scope.names.add(var)
        with torch_internals.unwatched():
            return self.session.fresh(self.session.clone_meta(like), var)

    def reserve(self) -> None:
        """Names of Variables that others added are taken."""
        for var in variables(self.program):
            self.session.reserve_name(var.name)
            self.session.scope.names.add(var)

    def copied(self, startup: Graph, value: torch.Tensor) -> torch.Tensor:
        """A tensor that was made without data, and is no parameter, made here: at each run it is made anew."""
        found = self._copied.get(id(value))
        if found is not None:
            return found[1]
        with startup.recording():
            var = startup.session.read(value)
        ops = ancestors(startup.program.block.ops, [var])
        startup.drop(ops)
        root = self.session.root()
        with self.session.reopen(root):  # others may use it after the branch or loop that is being recorded
            mapping: dict[Variable, Any] = {
                one.parameter.var: self.session.read(one.real) for one in startup.session.inputs.live}
            for op in ops:
                (copy,) = copy_block(Block(ops=[op]), mapping, lambda name: self.session.new_name()).ops
                root.append(copy)
                root.names.update(copy.outputs)
            made = mapping[var]
            assert isinstance(made, Variable)
            fake = self.fresh(made, value)
        self._copied[id(value)] = value, fake
        return fake


def ancestors(ops: list[Operator], variables: Iterable[Variable]) -> list[Operator]:
    """The Operators that compute Variables, in order; none that are there for an effect only."""
    wanted, found = set(variables), []
    for op in reversed(ops):
        if wanted.isdisjoint(op.outputs):
            continue
        found.append(op)
        wanted.update(op.inputs)
        for block in op.blocks:
            wanted.update(block.captures())
    return found[::-1]


class Names:
    """Names of parameters: the class of the module that has them, its number, and what it calls them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._modules: dict[int, tuple[torch.nn.Module, str]] = {}

    def of(self, module: torch.nn.Module, name: str) -> str:
        """A parameter's."""
        if id(module) not in self._modules:
            self._modules[id(module)] = module, self.new(type(module).__name__.lower())
        return f"{self._modules[id(module)][1]}.{name}"

    def new(self, stem: str) -> str:
        """Another name that begins so."""
        self._counts[stem] += 1
        return f"{stem}_{self._counts[stem] - 1}"


class Number(float):
    """A staged number where PyTorch's own Python computes with floats, and gives them to operators.

    >>> float(Number.__new__(Number, None))
    0.5
    """

    staged: Any

    def __new__(cls, staged: Any) -> Number:
        made = super().__new__(cls, 0.5)
        made.staged = staged
        return made


def _lifted(name: str) -> Callable[..., Any]:
    def method(self: Number, *others: Any) -> Any:
        given = [one.staged if isinstance(one, Number) else one for one in others]
        result = getattr(self.staged, name)(*given)
        return Number(result) if isinstance(result, StagedFloat) else result

    return method


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(Number, f"__{_name}__", _lifted(f"__{_name}__"))
    setattr(Number, f"__r{_name}__", _lifted(f"__r{_name}__"))
for _name in ("__neg__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__bool__"):
    setattr(Number, _name, _lifted(_name))


class Numbers(TorchFunctionMode):
    """Staged floats that torch gives (``item``) are Numbers, which it takes wherever it takes a float."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*self._plain(tuple(args)), **self._plain(dict(kwargs or {})))
        return Number(result) if isinstance(result, StagedFloat) else result

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Number):
            return number_operands.stand_in(self._session, value.staged, 0.5)
        if type(value) in (list, tuple):
            return type(value)(map(self._plain, value))
        return {key: self._plain(one) for key, one in value.items()} if type(value) is dict else value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors among arguments."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors(one)


__all__ = ["Graph", "Kind", "Names", "Number", "Numbers", "Persistable", "ancestors", "tensors"]
