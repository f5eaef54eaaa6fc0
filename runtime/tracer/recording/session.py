"""One trace: the Program being built, the fake tensors that stand for its values, and where they came from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import Dy2StaticError, TraceError
from runtime.ir import (
    Assume,
    Block,
    Dim,
    Location,
    Operand,
    Operator,
    Program,
    ScalarType,
    TensorType,
    Type,
    Variable,
    inference,
)
from runtime.ir.definition import definition_of
from runtime.ir.flow import PLAIN, Flow, Kind
from runtime.ir.operator import GradMode
from runtime.ir.ports import flow_of
from runtime.ir.types import said
from runtime.ir.views import fill
from runtime.kinds import is_a
from runtime.ops import raising
from runtime.ops import scalar as scalar_ops
from runtime.ops.registry import STRUCTURAL
from runtime.tracer.ambient import catching, source_places
from runtime.tracer.ambient.calls import Call, Findings, Restart
from runtime.tracer.ambient.catching import Exceptions
from runtime.tracer.ambient.known_objects import KnownObjects
from runtime.tracer.ambient.looks import Looks
from runtime.tracer.ambient.outside import Outside
from runtime.tracer.ambient.user_code import UserCode
from runtime.tracer.memory.graph import Graph
from runtime.tracer.memory.host_memory import HostMemory
from runtime.tracer.memory.inputs import Inputs
from runtime.tracer.memory.storage_table import (
    RecordedStep,
    StorageTable,
    TensorInfo,
)
from runtime.tracer.numbers import powers, scalars
from runtime.tracer.numbers.known_values import KnownValues
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.numbers.sizes import Sizes
from runtime.tracer.python_state.constructs import Constructs
from runtime.tracer.python_state.facts import is_zero
from runtime.tracer.python_state.guards import GuardSet
from runtime.tracer.python_state.journal import Journal
from runtime.tracer.values import choices, one_view
from runtime.tracer.values.known_containers import KnownContainers
from runtime.tracer.values.origins import Origins


@dataclass(eq=False)
class Scope:
    """A Block being filled, inside ``parent``. ``names`` are the Variables assigned in it."""

    block: Block
    parent: Scope | None
    kind: str = "main"
    names: set[Variable] = field(default_factory=set)
    conditions: dict[Any, Any] = field(default_factory=dict)
    """Path conditions, and parts of such, that were computed in the Block."""
    forward: Scope | None = None
    """In a backward Block: the Block that it is the gradient of, whose values it may read too."""
    sizes: dict[Any, Variable] = field(default_factory=dict)
    selected: dict[Variable, frozenset[int]] = field(default_factory=dict)
    """What the path to it says of numbers that tell which of several a value is."""
    selections: dict[Any, Any] = field(default_factory=dict)
    """Tensors that such a number chose in the Block (see ``control.selections``)."""
    begins: dict[Variable, Variable] = field(default_factory=dict)
    """In the body of a loop: what values that it carries were before the loop."""
    firsts: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    """In the body of a loop: what stands for tensors that it carries, by identity, and what these were before it."""
    alike: bool = True
    """In the body of a loop: whether a gradient that reaches a leaf by what was before the loop is taken to reach it in
    each iteration."""
    taken_alike: list[tuple[frozenset[Variable], torch.Tensor]] = field(default_factory=list)
    """In the body of a loop: such leaves, each with what is carried that leads to it."""
    not_reached: list[tuple[frozenset[Variable], list[torch.Tensor]]] = field(default_factory=list)
    """In the body of a loop: what is carried that gradients go through, and the tensors that were asked for and that
    they do not reach."""
    refused: BaseException | None = None
    """In the body of a loop: why it is refused if it carries what it is taken to carry."""
    before: Operator | None = None
    """The Operator before which is recorded now; None: at the Block's end."""
    pending: dict[Operator, list[Operator]] = field(default_factory=dict)
    """What will stand before Operators of the Block, while it is being recorded."""

    @property
    def flow(self) -> Flow:
        """How the Block runs, as its operator says; ``PLAIN`` where it is no operator's."""
        return STRUCTURAL[self.kind].flow if self.kind in STRUCTURAL else PLAIN

    def append(self, op: Operator) -> None:
        """Add an Operator where the Block is recorded now."""
        (self.block.ops if self.before is None else self.pending[self.before]).append(op)

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, inner first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            if scope.forward is not None:
                yield scope.forward
            scope = scope.parent

    def sees(self, var: Variable) -> bool:
        """Whether an Operator in this Block may read ``var``."""
        scope: Scope | None = self
        while scope is not None:
            if var in scope.names or (scope.forward is not None and var in scope.forward.names):
                return True
            scope = scope.parent
        return False


@dataclass
class Replaying:
    """The state of a replay: where the Operator at hand came from, and whether backward computes it again."""

    location: Location | None = None
    checkpoint: int = 0
    """The number of the region that it came from; 0: none."""
    checkpointed: dict[Operator, int] = field(default_factory=dict)
    deriving: bool = False
    """Whether derivatives are being recorded, rather than what the user wrote."""
    derived: set[Operator] = field(default_factory=set)
    lowering: bool = False
    caught: str = ""
    """The attribute of the Operator at hand that says what handlers wait for."""
    grad_mode: GradMode = "inherit"
    """What Operators are recorded with, in a Program whose gradients are written out."""
    without_gradients: bool = False
    """Whether that is "off" whatever the Operators say: they compute a gradient that no gradient flows through."""


class Session:
    """The state of one trace. Not shared between threads; made by ``runtime.tracer.trace``."""

    def __init__(self, name: str) -> None:
        self.program = Program(name)
        self.scope = Scope(self.program.block, None)
        self.fake_mode, self.shape_env = torch_internals.make_fake_mode()
        self.storages = StorageTable()
        self.journal = Journal(self)
        self.guards = GuardSet(self.location)
        self.sizes = Sizes(self)
        self.inputs = Inputs(self)
        self.origins = Origins(self)
        self.looks = Looks()
        self.outside = Outside()
        self.call = Call()
        self.code = UserCode()
        self.objects = KnownObjects()
        self.values = KnownValues()
        self.containers = KnownContainers()
        self.graph = Graph()
        self.host = HostMemory()
        self.constructs = Constructs()
        self.exceptions = Exceptions()
        self.autocast = self.outside.autocast
        """The autocast state in force where the traced code last called torch."""
        self.dispatching = False
        """Whether an operator is being recorded: torch's dispatcher has switched autocast off around that."""
        self.replaying: Replaying | None = None
        """Set while an existing Program is replayed to be differentiated, instead of a function being traced."""
        self._infos: torch_internals.TensorDict[TensorInfo] = torch_internals.TensorDict()
        self._names: dict[str, int] = {}

    @contextlib.contextmanager
    def uncaught(self) -> Iterator[None]:
        """For what does not raise, although its Operator may: no handler around it is asked."""
        before, self.exceptions.catching = self.exceptions.catching, []
        try:
            yield
        finally:
            self.exceptions.catching = before

    def is_open(self, scope: Scope) -> bool:
        """Whether the trace stands in a Block, or in one inside of it."""
        one: Scope | None = self.scope
        while one is not None and one is not scope:
            one = one.parent
        return one is not None

    # -- errors and places ---------------------------------------------------------------------------------------

    def location(self) -> Location | None:
        """Where in the user's source the trace stands now."""
        return source_places.location_provider() if self.replaying is None else self.replaying.location

    def error(
        self, summary: str, *, hint: str = "", code: str = "D2S200", location: Location | None = None
    ) -> Dy2StaticError:
        """A located error; inside code that is not converted it says which function and why."""
        if self.code.unconverted:
            name, reason = self.code.unconverted[-1]
            inside = f" (inside {name}, which was not converted: {reason})"
            no_source = reason.startswith("the source of ")  # the cause, so it is said first
            summary = f"{reason}; so {name} is not converted: {summary}" if no_source else summary + inside
        self.exceptions.last_error = TraceError(summary, hint=hint, code=code, location=location or self.location())
        return self.exceptions.last_error

    def restart(self, known: Findings) -> BaseException:
        """What to raise to begin the trace again with what is known now: a located error if it cannot."""
        if self.call.advanced:
            return self.error(
                "an iterator from outside the function is advanced, and the trace has to begin again: tensors that "
                "share memory are written in place, or a container has two names",
                hint="Take the items outside the function.",
                code="D2S266",
            )
        return Restart(known)

    def hold_by_reference(self, *classes: type, in_variables: bool = False, in_branches: bool = False) -> None:
        """Objects of some classes are changed inside of a list that grows: trace again with lists that hold such by
        reference. ``in_variables``: and variables of loops; ``in_branches``: and all lists that branches change."""
        known = self.call.known
        names = frozenset(map(_name_of, classes)) - known.apart
        new = names - known.by_reference
        variables = names - known.in_variables if in_variables else frozenset()
        branches = names - known.in_branches if in_branches else frozenset()
        if (new or variables or branches) and not self.call.advanced:
            raise self.restart(Findings(by_reference=new, in_variables=variables, in_branches=branches))

    def holds_by_reference(self, cls: type) -> bool:
        """Whether lists that grow hold objects of a class by reference."""
        name = _name_of(cls) if self.call.known.by_reference else ""
        return name in self.call.known.by_reference and name not in self.call.known.apart

    def hold_apart(self, cls: type) -> None:
        """An object that is a row gets another attribute: trace again with objects of the class as they are."""
        if not self.call.advanced:
            raise self.restart(Findings(apart=frozenset({_name_of(cls)})))

    def is_whole(self, cls: type) -> bool:
        """Whether tuples of a user's class are what they are: they get attributes."""
        return _name_of(cls) in self.call.known.apart

    def keep_whole(self, cls: type) -> None:
        """A tuple of a user's class gets an attribute: trace again and make no others of the items of such tuples."""
        if not self.is_whole(cls):
            raise self.restart(Findings(apart=frozenset({_name_of(cls)})))

    def once(self, why: str) -> None:
        """The Program is for this call alone, and the next one is traced anew.

        Raises:
            TraceError: D2S278, where the caller has no use for such a Program.
        """
        if not self.call.may_be_for_one_call:
            raise self.error(f"its Program would be for one call alone, because {why}", code="D2S278",
                             hint="Do it outside, or leave it as plain Python.")
        self.guards.add_once(why)

    def undecidable(self) -> Dy2StaticError:
        """The located error for torch's ``shape_errors``: its own code asks for a size or value not known yet."""
        return self.error(
            "a decision depends on a size or value that is only known while the Program runs, in code that is "
            "not converted",
            code="D2S212",
            hint="Let the function be converted, or make the size fixed.",
        )

    # -- Variables -----------------------------------------------------------------------------------------------

    def reserve_name(self, name: str) -> None:
        """No new Variable is called so: one is that was made elsewhere."""
        stem, _, number = name.rpartition(".") if "." in name else ("", "", name) if name.isdigit() else (name, "", "0")
        if number.isdigit():
            self._names[stem] = max(self._names.get(stem, 0), int(number) + 1)

    def new_name(self, hint: str = "") -> str:
        """A Variable name, unique in the Program, after the user's name where there is one."""
        stem = "".join(c if c.isalnum() and c.isascii() else "_" for c in hint).strip("_")
        count = self._names.get(stem, 0)
        self._names[stem] = count + 1
        if not stem:
            return str(count)
        if stem[0].isdigit():
            stem = "v" + stem
        return stem if count == 0 else f"{stem}.{count}"

    def new_variable(self, type: Type, hint: str = "", scope: Scope | None = None) -> Variable:
        """A fresh Variable assigned in ``scope`` (default: the current one)."""
        var = Variable(self.new_name(hint), type, hint)
        (scope or self.scope).names.add(var)
        return var

    def visible(self, var: Variable) -> bool:
        """Whether the current Block may read ``var``."""
        return self.scope.sees(var)

    def require_visible(self, var: Variable, what: str = "a tensor") -> Variable:
        """``var``, or a located error if it belongs to a branch or loop body that is already closed."""
        if not self.visible(var):
            name = f" '{var.hint}'" if var.hint else ""
            raise self.error(
                f"{what}{name} made inside a branch or loop body is used outside it",
                hint="Pass it out through a variable assigned in the branch or loop, not through a cache, a global or "
                "an attribute of an object that the converter cannot follow.",
                code="D2S220",
            )
        return var

    @contextlib.contextmanager
    def open(self, kind: str, block: Block | None = None) -> Iterator[Scope]:
        """Record into a new Block, or again into one that was closed."""
        before = self.scope
        self.scope = Scope(block if block is not None else Block(), before, kind)
        try:
            with self.sizes.facts_of_a_block(self.scope.flow):
                yield self.scope
        finally:
            self.scope = before

    @contextlib.contextmanager
    def reopen(self, scope: Scope, before: Operator | None = None) -> Iterator[None]:
        """Record at the end of a Block that was already closed, or right before one of its Operators.

        These can be inside each other for one Block: what an Operator begins with may need what another one at the
        Block's end gives, and that what a third begins with.
        """
        outer, self.scope = self.scope, scope
        place, scope.before = scope.before, before
        first = before is not None and before not in scope.pending
        if before is not None and first:
            scope.pending[before] = []
        try:
            with self.sizes.facts_of_a_block(scope.flow):
                yield
        finally:
            self.scope, scope.before = outer, place
            if before is not None and first:
                found = scope.block.ops.index(before)
                scope.block.ops[found:found] = scope.pending.pop(before)

    # -- Operators -----------------------------------------------------------------------------------------------

    def modes(self) -> tuple[Any, Any]:
        """The grad mode and autocast state in force, relative to the caller's."""
        if self.replaying is not None:
            return self.replaying.grad_mode, None
        grad = torch.is_grad_enabled()
        autocast = self.autocast if self.dispatching else torch_internals.autocast_now(self.outside.autocast)
        return (
            "inherit" if grad == self.outside.grad else "on" if grad else "off",
            None if self.outside.is_own(autocast) else autocast,
        )

    def is_apart(self, step: RecordedStep) -> bool:
        """Whether no history comes through a step of a view: it detaches, or was taken where gradients are off."""
        mode = step.modes[0]
        return step.detaches or mode == "off" or (mode == "inherit" and not self.outside.grad)

    def casting(self, func: Any) -> tuple[tuple[str, bool, str], ...]:
        """The autocast state under which what is inside an operator runs; () where it does not matter.

        In a replay only kernels have something inside: all else is taken apart above the recorder.
        """
        if not any(enabled for _, enabled, _ in self.autocast):
            return ()
        return self.autocast if torch_internals.casts_inside(func, self.autocast) else ()

    def emit(
        self,
        name: str,
        args: Sequence[Operand],
        kwargs: dict[str, Operand] | None = None,
        types: Sequence[Type] | None = None,
        *,
        hints: Sequence[str] = (),
        blocks: Sequence[Block] = (),
        attrs: dict[str, Any] | None = None,
        modes: tuple[Any, Any] | None = None,
        location: Location | None = None,
    ) -> tuple[Variable, ...]:
        """Append an Operator to the current Block; returns its output Variables.

        ``types`` None: the results are what the operator's definition tells.
        """
        op = self.emit_operator(
            name, args, kwargs, types, hints=hints, blocks=blocks, attrs=attrs, modes=modes, location=location
        )
        return op.outputs

    def emit_operator(
        self,
        name: str,
        args: Sequence[Operand],
        kwargs: dict[str, Operand] | None = None,
        types: Sequence[Type] | None = None,
        *,
        hints: Sequence[str] = (),
        blocks: Sequence[Block] = (),
        attrs: dict[str, Any] | None = None,
        modes: tuple[Any, Any] | None = None,
        location: Location | None = None,
    ) -> Operator:
        """As `emit`; the Operator itself."""
        if self.exceptions.escape is not None:
            raise catching.unsupported(self)
        if self.exceptions.catching:
            catching.require_uncaught(self, name, args, attrs or {})
        grad, autocast = modes or self.modes()
        op = Operator(
            name,
            tuple(args),
            dict(kwargs or {}),
            (),
            tuple(blocks),
            dict(attrs or {}),
            grad_mode=grad,
            autocast=autocast,
            location=location or self.location(),
        )
        op.outputs = tuple(
            self.new_variable(type, hints[index] if index < len(hints) else "")
            for index, type in enumerate(inference.told(op) if types is None else types)
        )
        if self.replaying is not None and self.replaying.checkpoint:
            self.replaying.checkpointed[op] = self.replaying.checkpoint
        if self.replaying is not None and self.replaying.deriving:
            self.replaying.derived.add(op)
        computes = name.startswith("aten.")
        if self.constructs.checkpoints and (computes or flow_of(op).kind not in (Kind.PLAIN, Kind.FUNCTION)):
            op.attrs["checkpoint"] = self.constructs.regions
        if self.exceptions.catching and not blocks and raising.may_raise(op) and (caught := catching.handlers(self)):
            op.attrs["caught"] = caught
        elif self.replaying is not None and self.replaying.caught and not blocks:
            op.attrs["caught"] = self.replaying.caught
        definition = definition_of(name)
        if blocks or definition.again(op) is not None:
            op.autocast = None  # the Operators inside say it: one that says nothing means the caller's of the Program
        elif not definition.neutral and (settings := torch_internals.changed_settings(self.outside.settings)):
            op.attrs["settings"] = settings
        if not definition.neutral and definition.flow.kind in (Kind.PLAIN, Kind.FUNCTION):
            self._require_hooks()
        self.scope.append(op)
        return op

    def _require_hooks(self) -> None:
        """Refuse an Operator under hooks that traced code has set for saved tensors: a Program saves on its own.

        Raises:
            TraceError: They are not the caller's, and do more than move tensors to the CPU.
        """
        if self.replaying is not None:
            return
        hooks = torch_internals.saved_tensor_hooks()
        if hooks is not None and hooks is not self.outside.hooks and hooks != self.outside.hooks:
            if "save_on_cpu" not in getattr(hooks[0], "__qualname__", ""):
                raise self.error(
                    "hooks for saved tensors are set inside a converted function: the Program would not call them",
                    hint="Set them around the call of the converted function.", code="D2S214")

    def scalar(self, name: str, *args: Any) -> Any:
        """Apply a scalar operator to staged and plain Python values; the staged result."""
        if choices.held_choice(args) is not None:
            return choices.spread(self, list(args), lambda given: self.scalar(name, *given))
        if self.call.facts and name in ("eq", "ne"):
            for one, other in (args, args[::-1]):
                zero = is_zero(self, one) if type(other) in (int, float) and other == 0 else None
                if zero is not None:
                    return zero is (name == "eq")
        if self.call.facts and name == "bool":
            zero = is_zero(self, args[0])
            if zero is not None:
                return not zero
        kinds = []
        operands = []
        args = tuple(scalars.without_class(arg, name) for arg in args)
        for arg in args:
            kinds.append(scalars.kind_of(arg) or "none")
            operands.append(self.operand(arg))
        if powers.is_open(name, kinds, args):
            return powers.power(self, *args)
        kind = scalar_ops.result_kind("scalar." + name, kinds, args)
        (var,) = self.emit("scalar." + name, operands, types=[ScalarType(kind)])
        if not scalar_ops.is_certain("scalar." + name, kinds, args):
            (var,) = self.emit("scalar.expect", [var, kind])
        result = scalars.wrap(var)
        self.sizes.define(result, name, args)
        return result

    def from_tensor(self, name: str, tensor: torch.Tensor, *args: Any, kind: str, family: str = "scalar") -> Staged:
        """A scalar read off a tensor: ``item``, ``truth``, ``size``..."""
        (var,) = self.emit(f"{family}.{name}", [self.read(tensor), *args], types=[ScalarType(kind)])  # type: ignore[arg-type]
        return scalars.wrap(var)

    def operand(self, value: Any) -> Operand:
        """The operand for any value that may stand in an ATen call: tensors, numbers, containers."""
        if is_a(value, torch.Tensor):
            return self.read(value)
        if is_a(value, Staged):
            return self.require_visible(value.var, f"a Python {value.kind}")
        if is_a(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.sizes.materialize(value)
        if type(value) in (int, float) and value in self.values.number_operands:
            return self.operand(self.values.number_operands[value])
        if is_a(value, (list, tuple)):
            return (
                type(value)(self.operand(item) for item in value)
                if type(value) in (list, tuple)
                else tuple(self.operand(item) for item in value)
            )
        if is_a(value, slice):
            return slice(self.operand(value.start), self.operand(value.stop), self.operand(value.step))
        if is_a(value, dict):
            return {key: self.operand(item) for key, item in value.items()}
        if is_a(value, torch.Generator):
            return self._generator(value)
        return value

    def _generator(self, value: torch.Generator) -> Operand:
        """What each run draws from for a generator that the function makes; for another, that one."""
        identity = torch_internals.generator_identity(value)
        for made, stands_for, _ in self.objects.generators.values():
            if is_a(made, torch.Generator) and torch_internals.generator_identity(made) == identity:
                operand: Operand = stands_for
                return operand
        return value

    # -- tensors -------------------------------------------------------------------------------------------------

    def info(self, tensor: torch.Tensor) -> TensorInfo:
        """What is known of a traced tensor; a real tensor is lifted to a parameter of the Program first."""
        info = self._infos.get(tensor)
        if info is None:
            info = self.info(self.inputs.lift(tensor))
        return info

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor stands for a value of this trace."""
        return tensor in self._infos

    def itself(self, value: Any) -> Any:
        """The value; for a tensor that an operator gave back as it was given, the tensor given."""
        if not is_a(value, torch.Tensor) or not self.knows(value):
            return value
        found = self.info(value).itself
        return value if found is None else found

    def one(self, value: Any) -> Any:
        """The value; of a tensor that the trace knows as several objects, always the same one."""
        if is_a(value, torch.Tensor) and not torch_internals.is_fake(value):
            return self.inputs.one(value)
        return self.itself(value)

    def register(self, fake: torch.Tensor, info: TensorInfo) -> torch.Tensor:
        """Let ``fake`` stand for a value."""
        info.number = self.origins.number()
        self._infos[fake] = info
        return fake

    def put_back(self, fake: torch.Tensor, info: TensorInfo) -> None:
        """Let ``fake`` stand for what it stood for before."""
        self._infos[fake] = info

    def forget_inner(self, known: Sequence[Any]) -> None:
        """Forget a tensor that one of torch's functions made and did not give; ``known``: what the user gave it."""
        inner, self.graph.inner = self.graph.inner, None
        if inner is not None and all(one is not inner for one in known):
            self._infos.pop(inner)

    def fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake tensor that stands for ``tensor`` (itself when it is one of this trace)."""
        if torch_internals.is_fake(tensor):
            if tensor not in self._infos:
                raise self.error(
                    "a tensor of another, finished trace is used here",
                    code="D2S211",
                    hint="Do not keep tensors of a converted function in globals or caches.",
                )
            return tensor
        return self.inputs.lift(tensor)

    def read(self, tensor: torch.Tensor) -> Variable:
        """The Variable that holds the tensor's value now, replaying its views if its memory was written since."""
        info = self.info(tensor)
        if info.storage.lost is not None:
            raise info.storage.lost.error(self)
        base = self.require_visible(info.storage.value)
        var = info.cached
        if var is None or info.cached_for is not base or not self.visible(var):
            if self.call.known.listed and self.replaying is None:
                var = one_view.read(self, tensor, info)
            else:
                var = self.replay(base, info.steps, self.type_of(self.fake(tensor)) if info.steps else None)
            info.cached, info.cached_for = var, base
        self.looks.note(var, self.fake(tensor), info)
        return var

    def replay(self, base: Variable, steps: Sequence[RecordedStep], type: Type | None = None) -> Variable:
        """Apply a view chain to a base; ``type``: of the result, where it is known."""
        var = base
        for position, step in enumerate(steps):
            types: list[Type] = [TensorType(None, None)] * step.results
            if type is not None and position == len(steps) - 1:
                types[step.index] = type
            keywords = {key: fill(value, var) for key, value in step.kwargs}
            var = self.emit(step.name, fill(step.args, var), keywords, types, modes=step.modes)[step.index]
        return var

    def known_with_tensors(self) -> list[tuple[torch.Tensor, TensorInfo]]:
        """Every traced tensor that is alive, with what is known of it."""
        return list(self._infos.items())

    def known_tensors(self) -> list[TensorInfo]:
        """What is known of every traced tensor that is alive."""
        return self._infos.values()

    def require_gradient(self, written: TensorInfo, in_some_runs: bool) -> None:
        """A value with a history was written: the tensor's base and the other views of it have it from now on.

        ``in_some_runs``: the value has one in some runs only. So has memory of an outer Block, once this one is left.
        """
        outer = written.storage.first not in self.scope.names
        infos = [written]
        if not written.detached:
            infos += [one for one in self.known_tensors() if one.storage is written.storage and not one.detached]
        for info in infos:
            if not info.requires_grad:
                info.requires_grad, info.grad_in_some_runs = True, in_some_runs or outer
            elif not in_some_runs and not outer:
                info.grad_in_some_runs = False

    def note_dtype(self, tensor: torch.Tensor) -> None:
        """The user's code looks at a tensor's dtype: that of one computed from floats depends on autocast."""
        if self.knows(tensor) and self.inputs.own_variable(tensor) is None:
            with torch_internals.no_modes():
                floating = self.fake(tensor).dtype.is_floating_point
            if floating:
                self.outside.asked_settings.add("autocast")

    def type_of(self, fake: torch.Tensor) -> TensorType:
        """The type of a traced tensor's Variable."""
        return TensorType(fake.dtype, self.dims(fake), said(fake.device))

    def dims(self, fake: torch.Tensor) -> tuple[Dim, ...]:
        """The sizes of a fake tensor as the Program writes them."""
        return tuple(size if type(size) is int else self.sizes.dim(size) for size in fake.shape)

    def fresh(
        self,
        fake: torch.Tensor,
        var: Variable,
        *,
        requires_grad: bool = False,
        layout_known: bool = True,
    ) -> torch.Tensor:
        """Register ``fake`` as the base of a new storage whose value is ``var``."""
        return self.register(fake, TensorInfo(self.storages.new(var), (), requires_grad, layout_known))

    def clone_meta(
        self, fake: torch.Tensor, shape: Sequence[Any] | None = None, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """A new fake tensor with the sizes, strides, dtype and device of another."""
        strides = torch_internals.strides_of(fake) if shape is None and fake.layout is torch.strided else None
        return torch_internals.empty_fake(
            self.fake_mode, tuple(fake.shape if shape is None else shape), strides, dtype or fake.dtype, fake.device
        )

    def root(self) -> Scope:
        """The scope of the main Block."""
        return list(self.scope.chain())[-1]

    def add_assume(self, assume: Assume) -> None:
        """A fact about the inputs' sizes on which the Program rests."""
        if all(other.expr != assume.expr for other in self.program.assumes):
            self.program.assumes.append(assume)


def _name_of(cls: type) -> str:
    """A class by name: one that is defined in the function is another one in each trace."""
    return f"{cls.__module__}.{cls.__qualname__}"


__all__ = ["Scope", "Session"]
