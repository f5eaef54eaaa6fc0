"""What the text of a tensor says of its history: ``grad_fn=<MulBackward0>``.

A Program runs as one node, so the name of eager's node is not there when it runs. It is found while tracing: the
Operator that made the tensor is run once under torch's autograd, on a stand-in. Where paths or iterations join, the
name is a string that goes with the tensor through the construct, recorded only when a text asks for it.

    print(%t)   ->   %needed = grad.needed(%t)
                     %shown = grad.named(%t, "MulBackward0", %needed)
                     print(%shown)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ir import ArrayType, Operand, Operator, ScalarType, TensorType, Variable
from runtime.ir.definition import About, definition_of
from runtime.ir.flow import Kind, Port
from runtime.ir.operator import leaves
from runtime.ir.ports import flow_of, is_path
from runtime.ir.views import HOLE, fill
from runtime.ir.walk import map_operand
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.ops.update import is_unnoticed
from runtime.tracer.ambient.calls import flatten_results
from runtime.tracer.ambient.looks import Look
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition
from runtime.tracer.memory.deferred import JoinOutput, LoopValue, PathEnd
from runtime.tracer.memory.storage_table import TensorInfo
from runtime.tracer.numbers import scalars
from runtime.tracer.recording import users_tensors
from runtime.tracer.recording.session import Scope, Session

Answer = TypeVar("Answer", bound=Hashable)
_TEXT = ScalarType("str")
_SIZES = (3, 4, 6, 8, 2, 1, 16, 12)
"""What sizes are taken for that only the run knows; the first with which the Operator runs counts."""
_NUMBERS = (0, 1, 2, 3)
"""What numbers are taken for that only the run knows: derivatives have special cases for the small ones."""
_NO_LOOK = Look(False, None, torch.device("cpu"))
_LARGE = 1 << 20
"""Elements beyond which nothing is computed for a name."""


def shown(session: Session, tensor: torch.Tensor) -> Variable:
    """The Variable whose text is eager's: the tensor itself, or the same value under a node of the right name.

    Raises:
        TraceError: D2S243, the name is not known; D2S213, nor is the class.
    """
    users_tensors.require_known_text(session, tensor)
    var = session.read(tensor)
    info = session.info(tensor)
    session.outside.asks_gradients |= session.inputs.own_variable(tensor) is None
    if not info.requires_grad and not isinstance(tensor, torch.nn.Parameter):
        if info.steps:  # a Program need not tell what is detached from its base
            return session.emit("grad.named", [var, torch_internals.LEAF, False])[0]
        return var
    names = _Names(session)
    if names.is_own(var):
        return var
    if isinstance(tensor, torch.nn.Parameter):
        return session.emit("grad.named", [var, torch_internals.PARAMETER, info.requires_grad])[0]
    if not info.requires_grad:
        return var
    name = names.of_tensor(tensor, info, var)
    (needed,) = session.emit("grad.needed", [var])
    return session.emit("grad.named", [var, name, needed])[0]


def on_stand_ins(
    session: Session, op: Operator, operand: Variable, ask: Callable[[list[Any], dict[Variable, Any]], Answer]
) -> Answer | None:
    """What ``ask`` says of an Operator's results and operands: it runs, under torch's autograd, on values like its own.

    ``operand`` needs a gradient. None where the Operator has Blocks or does not run on such values, and where the
    answers differ with what only the run knows: the numbers, and which of the others need a gradient.
    """
    if op.blocks or not _is_aten(op):
        return None
    names = _Names(session)
    autocast = session.outside.autocast if op.autocast is None else op.autocast

    def run(size: int, real: bool) -> Answer:
        stand_ins: dict[Variable, Any] = {}

        def stand_in(var: Variable) -> Any:
            if var not in stand_ins:
                stand_ins[var] = names._stand_in(var, size, real, False)
            return stand_ins[var]

        return ask(_results(op, stand_in), stand_ins)

    def answer() -> Answer | None:
        for real in (False, True):
            for size in _SIZES if names._open(op) else _SIZES[:1]:
                with contextlib.suppress(Exception):  # whatever the operator says of such values
                    found: Answer = torch_internals.under_autograd(
                        partial(run, size, real), names._grad(op), autocast)
                    return found
        return None

    unsure = {var for var in op.inputs if var is not operand and (look := session.looks.of.get(var)) and look.sometimes}
    numbers = any(var.type in (ScalarType("int"), ScalarType("float")) for var in op.inputs)
    found: set[Answer | None] = set()
    for names.without in (frozenset(), frozenset(unsure)) if unsure else (frozenset(),):
        for names.number in (None, *_NUMBERS) if numbers else (None,):
            found.add(answer())
    if len(found) > 1 and numbers:
        found.discard(None)  # what the Operator refuses of such numbers
    return found.pop() if len(found) == 1 else None


class _Unknown(Exception):
    """No name can be said: an operand's maker has none."""


class _Names:
    """Finds the names of what is visible in the current Block."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._made_up: dict[Variable, tuple[Scope, Operator]] = {}
        self.without: frozenset[Variable] = frozenset()
        """What is taken not to require grad, of what does in some runs."""
        self.number: int | None = None
        """What numbers that only the run knows are taken for; None: the size."""

    def of_tensor(self, tensor: torch.Tensor, info: TensorInfo, var: Variable) -> Operand:
        """The name of a tensor's node, as an operand."""
        try:
            written = _writes(info)
            found = self._of_written_view(info) if not written.never else self.operand(self._reshaped(info, var))
            if not written.always and not written.never:
                flag = written.staged(self.session)
                either = self.session.scalar("select", flag, found, _staged(self.operand(var)))
                found = self.session.operand(either)
        except _Unknown as reason:
            raise self.session.error(
                f"the text of a tensor that needs a gradient names the autograd node that made it, which is not known: "
                f"{reason}", code="D2S243", hint="Use the text of t.detach().") from None  # fmt: skip
        return torch_internals.LEAF if found is None else found

    def _reshaped(self, info: TensorInfo, var: Variable) -> Variable:
        """For a tensor whose shape an in-place operator changed: the Variable as if that had been recorded."""
        scope, op = self._maker(self._unhooked(var))
        if not info.reshaped_by or op is None:
            return var
        made = Variable("", var.type)
        scope.names.add(made)
        self._made_up[made] = scope, Operator(
            info.reshaped_by, op.args, op.kwargs, (made,), grad_mode=op.grad_mode, autocast=op.autocast)
        return made

    # -- names that are the same on all paths, and those that are not ------------------------------------------------

    def operand(self, var: Variable) -> Operand:
        """The name as a constant, as a Variable where it differs between paths, or None where there is no history."""
        var = self._unhooked(var)
        names = self._constants(var, set())
        if names is not None and len(names) <= 1:
            (name,) = names or (None,)
            if not is_a(name, Variable):
                return name
            return self.session.emit("grad.history", [name])[0]
        scope, op = self._maker(var)
        if op is None:
            return self._carried(scope, var).inside.demand(self.session)
        if not is_path(op):
            _, same = self._node(op, op.outputs.index(var))
            assert same is not None  # one node has one name
            return self.operand(same)
        port = _port(op, var)
        if flow_of(op).kind is Kind.LOOP:
            (end,) = self._ends(scope, op)
            (arg,) = [block.args[place] for block, place, given in zip(op.blocks, port.inner, port.yields)
                      if given is not None and place is not None]  # fmt: skip
            return self._carried(end.scope, arg).after.demand(self.session)
        rows: list[tuple[PathEnd, Any]] = []
        for end, block, place in zip(self._ends(scope, op), op.blocks, port.yields):
            rows.append((end, _AtEnd(end, block.yields[place or 0])))
        return JoinOutput(op, scope, _TEXT, rows).demand(self.session)

    def _unhooked(self, var: Variable) -> Variable:
        """A hook of a tensor makes no node."""
        hooked = self.session.graph.hooked.get(var)
        return var if hooked is None else hooked.source

    def is_own(self, var: Variable) -> bool:
        """Whether a Variable is an input or parameter: the caller's tensor, which has its own history."""
        scope, op = self._maker(var)
        return op is None and scope.kind == "main"

    def _constants(self, var: Operand, seen: set[Variable]) -> set[str | Variable] | None:
        """All names that a value may have, an input or parameter standing for its own; None where that is not known
        yet, inside a loop that is being traced."""
        if not is_a(var, Variable) or var in seen:
            return set()
        seen.add(var)
        var = self._unhooked(var)
        scope, op = self._maker(var)
        if op is None:
            if scope.kind == "main":
                return {var}
            loop = self.session.looks.loops.get(scope.block)
            if loop is None:
                return None
            position = scope.block.args.index(var)
            return self._union([(None, loop[0].args[position]), (loop[1], scope.block.yields[position])], seen)
        if is_path(op):
            port = _port(op, var)
            yields = [block.yields[place] for block, place in zip(op.blocks, port.yields) if place is not None]
            rows: list[tuple[PathEnd | None, Operand]] = [*zip(self._ends(scope, op), yields)]
            return self._union(rows if port.arg is None else [*rows, (None, op.args[port.arg])], seen)
        name = self._of_operator(op, op.outputs.index(var), seen)
        return name if is_a(name, set) or name is None else {name} - {""}

    def _union(
        self, rows: Sequence[tuple[PathEnd | None, Operand]], seen: set[Variable]
    ) -> set[str | Variable] | None:
        found: set[str | Variable] = set()
        for end, value in rows:
            if end is not None and end.ended:
                continue
            if end is None:
                names = self._constants(value, seen)
            else:
                with self.session.reopen(end.scope):
                    names = self._constants(value, seen)
            if names is None:
                return None
            found |= names
        return found

    def _carried(self, body: Scope, arg: Variable) -> LoopValue:
        """The name that a loop carries beside the tensor ``arg`` of its body."""
        session = self.session
        found = session.looks.carried.get((body.block, arg))
        if found is None:
            found = session.looks.carried[body.block, arg] = LoopValue(_TEXT, "", body)
            loop = session.looks.loops.get(body.block)
            if loop is not None:
                with session.reopen(loop[2]):
                    finish(session, body, arg, *loop[:2])
        return found

    def _ends(self, scope: Scope, op: Operator) -> tuple[PathEnd, ...]:
        """Where the paths of a construct end; those that a write needs have none of the user's values."""
        found = self.session.looks.path_ends.get(op)
        if found is None:
            if flow_of(op).kind is Kind.LOOP:
                raise _Unknown("it comes from a loop")
            scopes = [Scope(block, scope, op.name, {out for one in block.ops for out in one.outputs})
                      for block in op.blocks]
            found = self.session.looks.path_ends[op] = tuple(PathEnd(one, False) for one in scopes)
        return found

    def _maker(self, var: Variable) -> tuple[Scope, Operator | None]:
        if var in self._made_up:
            return self._made_up[var]
        for scope in self.session.scope.chain():
            if var in scope.block.args:
                return scope, None
            if var in scope.names:
                for op in reversed(scope.block.ops):
                    if var in op.outputs:
                        return scope, op
                if scope.kind == "main":  # an input or parameter: they become arguments at the end
                    return scope, None
        raise _Unknown("where it was made is not known")

    # -- one Operator ------------------------------------------------------------------------------------------------

    def _of_operator(self, op: Operator, index: int, seen: set[Variable]) -> Any:
        if op.name == "grad.leaf":
            return torch_internals.LEAF
        if op in self.session.looks.node_names:
            return self.session.looks.node_names[op]
        if op in self.session.looks.identities:
            return self._constants(op.args[0], seen)
        name, same = self._node(op, index)
        return self._constants(same, seen) if same is not None else "" if name is None else name

    def _node(self, op: Operator, index: int) -> tuple[str | None, Variable | None]:
        """The name of a result's node, or the operand that the result is.

        Errors raised: _Unknown.
        """
        if flow_of(op).kind is not Kind.INLINE and not _is_aten(op):
            raise _Unknown(f"it comes from {_said(op)}")
        error: BaseException | None = None
        for real in (True, False) if op.name.startswith("aten.") or op.blocks else (False, True):
            for size in _SIZES if self._open(op) else _SIZES[:1]:
                try:
                    return self._run(op, index, size, real)
                except _Unknown:
                    raise
                except Exception as problem:  # whatever the operator says of such values: another size, or none
                    error = problem
        raise _Unknown(f"{_said(op)} does not run on a stand-in ({str(error).splitlines()[0] if error else ''})")

    def _tests(self, op: Operator) -> bool:
        """Whether which node an Operator leaves may depend on where its tensors are."""
        ops = op.blocks[0].ops if op.blocks else [op]
        return any(torch_internals.is_composite(aten.resolve(one.name)) for one in ops)

    def _open(self, op: Operator) -> bool:
        types = [var.type for var in leaves(op.args) if is_a(var.type, TensorType)]
        return any(type_.shape is None or any(type(dim) is not int for dim in type_.shape) for type_ in types) or any(
            is_a(var.type, ScalarType) for var in leaves(op.args))

    def _run(self, op: Operator, index: int, size: int, real: bool) -> tuple[str | None, Variable | None]:
        """The name of a result's node, or the operand that the result is."""
        stand_ins: dict[Variable, Any] = {}
        writes = bool(op.blocks)

        def stand_in(var: Variable) -> Any:
            if var not in stand_ins:
                stand_ins[var] = self._stand_in(var, size, real, writes or op.outputs[0] in self._made_up)
            return stand_ins[var]

        def run() -> tuple[str | None, Variable | None]:
            if not writes:
                out = _results(op, stand_in)[index]
                made_up = op.outputs[0] in self._made_up
                same = [] if made_up else [var for var, value in stand_ins.items() if value is out]
                return (None, same[0]) if same else (torch_internals.node_name(out), None)
            (block,) = op.blocks
            for arg, base in zip(block.args, op.args):
                stand_ins[arg] = stand_in(base)
            before = [torch_internals.node_of(stand_ins[arg]) for arg in block.args]
            for inner in block.ops:
                with torch.set_grad_enabled(self._grad(inner)):
                    stand_ins.update(zip(inner.outputs, _results(inner, stand_in)))
            value = block.yields[index]
            out = stand_ins[value]
            if index < len(before) and torch_internals.node_of(out) is before[index]:
                return None, op.args[index]
            return torch_internals.node_name(out), None

        if is_unnoticed(op) and index < len(op.args):
            return None, op.args[index]
        autocast = self.session.outside.autocast if op.autocast is None else op.autocast
        return torch_internals.under_autograd(run, self._grad(op), autocast)

    def _grad(self, op: Operator) -> bool:
        return bool(self.session.outside.grad) if op.grad_mode == "inherit" else op.grad_mode == "on"

    def _stand_in(self, var: Variable, size: int, real: bool, written: bool) -> Any:
        """A value like a Variable's, of ``size`` where that is not known; what is ``written`` is no leaf."""
        if is_a(var.type, ScalarType):
            if self.number is not None and var.type.kind in ("int", "float"):
                return self.number if var.type.kind == "int" else float(self.number)
            return {"int": 0 if written else size, "float": 0.5, "bool": True, "str": ""}[var.type.kind]
        type_ = var.type
        if is_a(type_, ArrayType):
            element = type_.element if is_a(type_.element, TensorType) else TensorType(None, None)
            item = Variable("", TensorType(element.dtype or torch.get_default_dtype(), element.shape or (size,)))
            self.session.looks.of[item] = Look(True, None, torch.device("cpu"))
            return [self._stand_in(item, size, real, written), self._stand_in(item, size, real, written)]
        if not is_a(type_, TensorType) or type_.dtype is None or type_.shape is None:
            raise _Unknown("its dtype or rank differs between paths")
        shape = [dim if type(dim) is int else size for dim in type_.shape]
        look = self.session.looks.of.get(var, _NO_LOOK)
        needs, strides, device = look.requires_grad and var not in self.without, look.strides, look.device
        needs = needs and (type_.dtype.is_floating_point or type_.dtype.is_complex)
        if shape != list(type_.shape):
            strides = None
        if real and torch.Size(shape).numel() > _LARGE:
            raise ValueError("too large")
        made = torch_internals.example(shape, strides, type_.dtype, device if real else "meta")
        if needs:
            made.requires_grad_()
            if written:
                with torch.enable_grad():
                    made = self._made(var, size, real) if self._is_own_view(var) else made.clone()
        return made

    def _is_own_view(self, var: Variable) -> bool:
        _, op = self._maker(var)
        return op is not None and _is_aten(op) and not aten.is_view(aten.resolve(op.name)) and self._tests(op)

    def _made(self, var: Variable, size: int, real: bool) -> Any:
        """What the Operator gives that made it: some give a view of memory of their own."""
        _, op = self._maker(var)
        assert op is not None
        made: dict[Variable, Any] = {}

        def stand_in(one: Variable) -> Any:
            if one not in made:
                made[one] = self._stand_in(one, size, real, False)
            return made[one]

        out = _results(op, stand_in)[op.outputs.index(var)]
        return out.clone() if any(out is one for one in made.values()) else out

    def _of_written_view(self, info: TensorInfo) -> str | None:
        """The name for a view whose memory was written since it was made: autograd makes it anew."""
        def run(size: int, real: bool) -> str | None:
            made: dict[Variable, Any] = {}

            def stand_in(var: Variable) -> Any:
                if var not in made:
                    made[var] = self._stand_in(var, size, real, False)
                return made[var]

            base = stand_in(info.storage.value).detach().requires_grad_().clone()
            view = base
            for step in info.steps:
                args = map_operand(fill(step.args, base), stand_in)
                args = _put(step.args, view, stand_in)
                kwargs = {key: _put(value, view, stand_in) for key, value in step.kwargs}
                with torch.set_grad_enabled(step.modes[0] != "off"):
                    view = flatten_results(aten.resolve(step.name)(*args, **kwargs))[step.index]
            base.mul_(torch.ones((), dtype=base.dtype, device=base.device, requires_grad=True))
            return torch_internals.node_name(view)

        error: BaseException | None = None
        for size in _SIZES:
            try:
                return torch_internals.under_autograd(partial(run, size, True), True, ())
            except _Unknown:
                raise
            except Exception as problem:  # as above
                error = problem
        raise _Unknown(f"a view whose memory was written does not run on a stand-in ({error})")


def _staged(name: Operand) -> Any:
    return scalars.wrap(name) if is_a(name, Variable) else name or torch_internals.LEAF


class _AtEnd:
    """The name of what a path yields, found when it is asked for."""

    def __init__(self, end: PathEnd, value: Operand) -> None:
        self._end, self._value = end, value

    def demand(self, session: Session) -> Any:
        """The name, as an operand at the end of the path."""
        if self._end.ended:
            return ""
        with session.reopen(self._end.scope):
            return _name(session, self._value)


def _name(session: Session, value: Any) -> Any:
    """The name, as an operand where the trace stands."""
    found = _Names(session).operand(value) if is_a(value, Variable) else None
    return "" if found is None else found


def finish(session: Session, body: Scope, arg: Variable, op: Operator, end: PathEnd) -> None:
    """The loop is recorded: the name that it carries beside ``arg`` starts as that before it."""
    position = body.block.args.index(arg)
    value = session.looks.carried[body.block, arg]
    with session.reopen(session.scope, before=op):  # the loop starts with it
        value.start(_name(session, op.args[position]))
    value.next = _AtEnd(end, body.block.yields[position])
    value.finish(session, op, end)


def loop_recorded(session: Session, body: Scope, op: Operator, end: PathEnd) -> None:
    """Note where a loop is, and finish the names that were asked for in its body."""
    session.looks.path_ends[op] = (end,)
    session.looks.loops[body.block] = (op, end, session.scope)
    for block, arg in list(session.looks.carried):
        if block is body.block:
            finish(session, body, arg, op, end)


def _writes(info: TensorInfo) -> PathCondition:
    """When the memory of a view was written since the view was made, so that autograd knows."""
    value: Variable | None = info.storage.value
    found = NEVER
    while info.steps and info.made_for is not None and value is not info.made_for:
        write = info.storage.written.get(value) if value is not None else None
        if write is None or write.happened.always:
            return ALWAYS
        found, value = found | write.happened, write.before
    return found


def _results(op: Operator, stand_in: Callable[[Variable], Any]) -> list[Any]:
    overload = aten.resolve(op.name)
    args: Any = _put(op.args, None, stand_in)
    kwargs: Any = {key: _put(value, None, stand_in) for key, value in op.kwargs.items()}
    if torch_internals.reads_lengths(overload):
        args = torch_internals.with_fitting_lengths(args)
    return flatten_results(overload(*args, **kwargs))


def _put(template: Any, source: Any, stand_in: Callable[[Variable], Any]) -> Any:
    """Arguments with values for Variables, and ``source`` where a view step has its hole."""
    if template is HOLE:
        return source
    if is_a(template, Variable):
        return stand_in(template)
    if is_a(template, (list, tuple)):
        return type(template)(_put(item, source, stand_in) for item in template)
    if is_a(template, slice):
        return slice(*(_put(part, source, stand_in) for part in (template.start, template.stop, template.step)))
    return template


def _port(op: Operator, output: Variable) -> Port:
    """The way by which an output of a branch or loop comes out."""
    return next(port for port in flow_of(op).ports(op) if port.output == op.outputs.index(output))


def _is_aten(op: Operator) -> bool:
    try:
        aten.resolve(op.name)
    except ProgramError:
        return False
    return True


def _said(op: Operator) -> str:
    names = {"gradients": "torch.autograd.grad", "py_func": "a function that is called as it is"}
    return names.get(op.name, "a list that grows" if definition_of(op.name).about is About.LISTS else op.name)


__all__ = ["finish", "loop_recorded", "on_stand_ins", "shown"]
