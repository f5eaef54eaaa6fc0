"""``torch.autograd.Function.apply`` inside a trace: ``custom_grad`` with the function's own backward.

    y = Exp.apply(x)   ->   %y = custom_grad(%x) { ^(%a): ... yield %y, <saved> } { ^(<saved>, %g): ... yield %dx }
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import types
from collections.abc import Collection, Iterator
from typing import Any, NoReturn

import torch
from torch.autograd.function import BackwardCFunction

from dy2static.operators.calls import lookups
from dy2static.operators.calls.call import call
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, Staged, active
from runtime import torch_internals
from runtime.ir import Block, Location, Operand, Type, Variable
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.control.branches import Path, trace_path
from runtime.tracer.control.changes import Older, written_at
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.memory.unknown_aliasing import note_maybe_copy
from runtime.tracer.python_state.guards import LookedUp
from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.recording.session import Scope
from runtime.tracer.values import flattening, structure, unification
from runtime.tracer.values.tensor_pairs import tensor_pairs

_TAKES_KEYWORDS = torch_internals.apply_takes_keywords()  # asked before a trace begins


class Context:
    """What ``forward`` and ``backward`` get as ``ctx``."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] = ()
        self._not_differentiable: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._materialize = True
        self._unpacked = False
        self._missed: set[str] = set()

    def _say(self, name: str, value: Any) -> None:
        """A store that only some paths may make."""
        session = active()
        if session is not None:
            session.journal.note_attribute(self, name)
        setattr(self, name, value)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward."""
        self._say("_saved", tensors)

    def save_for_forward(self, *tensors: Any) -> None:
        """Kept for forward-mode differentiation only, which a Program does not have."""

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors kept for backward."""
        self._unpacked = True
        return self._saved

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Outputs that need no gradient."""
        self._say("_not_differentiable", tensors)

    def mark_dirty(self, *tensors: Any) -> None:
        """Inputs that ``forward`` writes in place."""
        self._say("_dirty", tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that do not exist arrive as zeros, as they do unless this says False, or as None."""
        self._say("_materialize", value)

    def __getattr__(self, name: str) -> Any:
        """What only eager's ``ctx`` has is refused; what it has not either is missing.

        Raises:
            TraceError: D2S275.
        """
        session = active()
        if session is not None and not name.startswith("_") and hasattr(BackwardCFunction, name):
            raise session.error(f"ctx.{name} of an autograd.Function has no static form", code="D2S275",
                                hint="Leave it out, or call the function outside.")
        if not name.startswith("_"):
            self._missed.add(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def is_apply(method: Any) -> bool:
    """Whether something callable is ``SomeFunction.apply``."""
    return unasked(method, "__func__") is _patched_apply or torch_internals.is_plain_apply(method)


def apply(session: Session, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``cls.apply(*args)``."""
    with_setup = cls.setup_context is not torch.autograd.Function.setup_context
    if with_setup:
        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        args, kwargs = bound.args, bound.kwargs
    if kwargs:
        args = _in_order(cls, args, kwargs, 0 if with_setup else 1)
    inputs = [arg for arg in args if is_a(arg, torch.Tensor)]
    grad, counted = torch.is_grad_enabled(), session.graph.grad_switches
    needs = tuple(grad and is_a(arg, torch.Tensor) and session.info(arg).requires_grad for arg in args)
    context = Context(needs)
    memo(session).created[id(context)] = context
    operands: list[Operand] = [session.read(tensor) for tensor in inputs]
    before = session.storages.snapshot()
    with session.open("custom_grad") as scope, session.outside.of_forward():
        inner = [_stand_in(session, tensor, scope) for tensor in inputs]
        stand_ins = iter(inner)
        given = [next(stand_ins) if is_a(arg, torch.Tensor) else arg for arg in args]
        entry = [session.info(tensor).storage.value for tensor in inner]
        if with_setup:
            result = call(cls.forward, *given)
            call(cls.setup_context, context, tuple(given), result)
        else:
            result = call(cls.forward, context, *given)
        _require_one_form(session, cls, context)
        changed = [tensor for tensor, value in zip(inner, entry) if session.info(tensor).storage.value is not value]
        outputs = list(result) if is_a(result, tuple) else [result]
        tensors = [output for output in outputs if is_a(output, torch.Tensor)]
        written = {
            id(output): inputs[position] for output in tensors for position, own in enumerate(inner)
            if any(own is one for one in changed) and _is_whole(session, output, own)
        }
        if (
            any(storage.value is not value for storage, value in before.items())
            or context._dirty or len(written) < len(changed)
            or not all(_may_be_written(session, tensor) for tensor in written.values())
        ):
            raise session.error(f"{cls.__name__}.forward writes a tensor in place that it was given", code="D2S218",
                                hint="Return a new tensor instead of writing into an argument (mark_dirty).")
        after = session.storages.snapshot()
        if any(storage.origin is not None and value is not storage.origin
               for storage, value in after.items() if storage not in before):  # fmt: skip
            raise session.error(f"{cls.__name__}.forward writes a tensor in place that it did not make", code="D2S218",
                                hint="Write to it before or after the call, or return what it becomes.")
        for position, output in enumerate(outputs):  # eager's result is another tensor, with a history of its own
            if is_a(output, torch.Tensor) and id(output) not in written:
                if any(_is_whole(session, output, own) for own in inner):
                    outputs[position] = torch.ops.aten.alias.default(output)
        hidden = [any(output is one for one in context._not_differentiable) for output in tensors]
        tensors = [output for output in outputs if is_a(output, torch.Tensor)]
        saved = _Saved(session, context, [one for one, no_gradient in zip(tensors, hidden) if not no_gradient])
        scope.block.yields.extend([*(session.read(output) for output in tensors), *saved.operands()])
        types_ = [session.type_of(session.fake(output)) for output in tensors]
    attrs: dict[str, Any] = {"n_outputs": len(tensors)}
    if any(hidden):
        attrs["not_differentiable"] = [index for index, one in enumerate(hidden) if one]
    if not context._materialize:
        attrs["given"] = _patterns(session, cls, tensors, hidden)
    blocks: list[Block] = []
    unpacked = False
    shown = None
    if any(needs):
        shown = {*before, *(session.info(tensor).storage for tensor in (*inner, *tensors))}
    asked = session.graph.autocast_asked
    patterns = attrs.get("given", [[True] * len(tensors)])

    def trace(given: list[bool], found: list[LookedUp]) -> tuple[Block, bool, bool]:
        return _trace_backward(session, cls, args, outputs, saved, given, shown, found)

    found: list[LookedUp] = []
    for given_now in patterns:
        block, switches, unpacks = trace(given_now, found)
        blocks.append(block)
        unpacked = unpacked or unpacks
        if switches:
            attrs["once"] = True
    if session.graph.autocast_asked != asked:  # the answers are those without autocast
        attrs["autocast_asked"] = True
    held = range(saved.kept if unpacked else 0, len(saved.types()))  # eager looks when ctx.saved_tensors is asked for
    if held:
        attrs["held"] = list(held)
    made = session.emit("custom_grad", operands, types=types_, blocks=[scope.block, *blocks], attrs=attrs)
    op = session.scope.block.ops[-1]
    session.looks.node_names[op] = f"{cls.__name__}Backward"
    if any(needs):
        captured = {var for block in blocks for var in block.captures()}
        lookups.watch(session, cls.backward, op, captured, "the backward of an autograd.Function",
                      lambda: ((block, trace(given, [])[0]) for block, given in zip(op.blocks[1:], patterns)))
    always = any(info.requires_grad and not info.grad_in_some_runs for info in map(session.info, inputs))
    fresh = iter([
        _result(session, output, var, any(needs) and not no_gradient, not always)
        for output, var, no_gradient in zip(tensors, made, hidden)
    ])
    joined = [next(fresh) if is_a(output, torch.Tensor) else output for output in outputs]
    for output in tensors:
        if id(output) in written:  # only the result may be read from here on: it alone has the new history
            session.info(written[id(output)]).storage.value = scope.block.args[0]
    for output, new in zip(outputs, joined):
        if id(output) in written:
            continue
        for tensor, own in zip(inputs, inner):
            if is_a(output, torch.Tensor) and session.info(output).storage is session.info(own).storage:
                note_maybe_copy(session.info(tensor).storage, session.info(new).storage,
                                f"{cls.__name__}.forward returns its argument or a view of it", session.location())
    session.graph.grad_switches = counted  # those in here are the function's own, and ours
    return tuple(joined) if is_a(result, tuple) else joined[0]


def _require_one_form(session: Session, cls: Any, context: Context) -> None:
    """Refuse a forward that tells ``ctx`` on some paths only what decides how backward is called.

    Raises:
        TraceError: D2S275.
    """
    for name, said in (("set_materialize_grads", context._materialize), ("mark_dirty", context._dirty),
                       ("mark_non_differentiable", context._not_differentiable)):  # fmt: skip
        of_path = not is_a(said, (bool, tuple)) or is_a(said, tuple) and any(
            is_a(one, Choice) for one in said)
        if of_path:
            raise session.error(f"{cls.__name__}.forward calls ctx.{name}() on some paths only", code="D2S275",
                                hint="Call it before the branch, or make two functions.")


@acts_for_user
def _in_order(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], first: int) -> tuple[Any, ...]:
    """The arguments by position, as torch puts those that were given by name: each takes its place in ``forward``, and
    no place before it may be left to a default."""
    if not _TAKES_KEYWORDS:
        raise TypeError("apply() takes no keyword arguments")
    parameters = list(inspect.signature(cls.forward).parameters.values())[first:]
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if names.index(name) < len(args):
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    until = 1 + max(map(names.index, kwargs))
    for position, name in enumerate(names[len(args):until], len(args)):
        if name not in kwargs:
            raise TypeError(f"forward() missing required argument: '{name}' (position {position})")
    return (*args, *(kwargs[name] for name in names[len(args):until]))


_PATTERNS = 4
"""Results with a gradient, for which it is worked out which may be None together: one Block for each combination."""


def _patterns(session: Session, cls: Any, outputs: list[torch.Tensor], hidden: list[bool]) -> list[list[bool]]:
    """Every combination of results whose gradients may arrive, where the others are None."""
    able = [
        not no_gradient and (output.is_floating_point() or output.is_complex())
        for output, no_gradient in zip(outputs, hidden)
    ]
    if sum(able) > _PATTERNS:
        raise session.error(
            f"{cls.__name__} has {sum(able)} results and set_materialize_grads(False): which of their gradients "
            "are None has too many combinations",
            code="D2S275", hint="Leave out set_materialize_grads(False): missing gradients then arrive as zeros.")
    found = list(itertools.product(*((False, True) if one else (False,) for one in able)))
    return [list(given) for given in found if any(given)] or [[False] * len(outputs)]


def _is_whole(session: Session, output: torch.Tensor, own: torch.Tensor) -> bool:
    """Whether an output is the tensor that stands for an argument, not a part of it."""
    info = session.info(output)
    return info.storage is session.info(own).storage and not info.steps


def _may_be_written(session: Session, tensor: torch.Tensor) -> bool:
    """Whether an argument is memory of the trace's own, whole, and surely not another's."""
    info = session.info(tensor)
    return not info.steps and info.storage.origin is None and not info.storage.unknown_aliases


def _stand_in(session: Session, tensor: torch.Tensor, scope: Scope) -> torch.Tensor:
    """The tensor as the forward block's argument."""
    fake = session.fake(tensor)
    info = session.info(tensor)
    var = session.new_variable(session.type_of(fake), "")
    scope.block.args.append(var)
    return session.fresh(
        session.clone_meta(fake), var, requires_grad=info.requires_grad, layout_known=info.layout_known
    )  # fmt: skip


def _result(
    session: Session, output: torch.Tensor, var: Variable, differentiable: bool, in_some_runs: bool
) -> torch.Tensor:
    """The tensor outside that carries an output; ``in_some_runs``: the arguments need gradients in some runs only."""
    fake = session.clone_meta(session.fake(output))
    needs = differentiable and (fake.is_floating_point() or fake.is_complex())
    made = session.fresh(fake, var, requires_grad=needs, layout_known=session.info(output).layout_known)
    session.info(made).grad_in_some_runs = needs and in_some_runs
    session.sizes.bind_sizes(made, var)
    var.type = session.type_of(made)
    return made


class _Saved:
    """What forward hands to backward: tensors it saved or put on ``ctx``, and staged numbers."""

    def __init__(self, session: Session, context: Context, differentiable: list[torch.Tensor]) -> None:
        """``differentiable``: the results that get a gradient."""
        self.session = session
        self.differentiable = differentiable
        self.values: dict[str, Any] = {
            name: value for name, value in vars(context).items() if name == "_saved" or structure.has_traced(value)
        }
        self.plain = {name: value for name, value in vars(context).items() if name not in self.values}
        self.structure = unification.item_structure(session, self.values, structure.PLAIN)
        kept = unification.item_structure(session, {"_saved": context._saved}, structure.PLAIN)
        self.pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Tensors of forward, beside those that backward has for them."""
        self.kept = len(structure.types_of(session, kept))
        """How many of them are tensors it saved: they come first. The others it only holds."""

    def operands(self) -> list[Operand]:
        """The residuals, read at the end of the forward block."""
        return flattening.lower(self.session, self.values, self.structure, structure.PLAIN.copies())

    def types(self) -> list[Type]:
        """Their types."""
        return structure.types_of(self.session, self.structure)

    def context(self, variables: Iterator[Variable]) -> Context:
        """``ctx`` as backward sees it."""
        made = Context(self.plain["needs_input_grad"])
        vars(made).update(self.plain, _missed=set())
        lifted = flattening.lift(self.session, self.structure, variables, structure.PLAIN)
        vars(made).update(lifted)
        self.pairs = tensor_pairs(self.values, lifted, self.structure)
        for value, inside in self.pairs:  # where backward runs, the function's results need gradients
            if any(value is one for one in self.differentiable) and (inside.is_floating_point() or inside.is_complex()):
                self.session.info(inside).requires_grad = True
        return made

    def written(self, path: Path, known: Collection[Storage]) -> Iterator[Variable]:
        """What a backward leaves in memory that ``known`` has, which others than ``ctx`` see."""
        for saved, inside in self.pairs:
            storage = self.session.info(inside).storage
            value = path.storages.get(storage, storage.value)
            if value is not storage.first and self.session.info(saved).storage in known:
                yield value


def _trace_backward(
    session: Session, cls: Any, args: tuple[Any, ...], outputs: list[Any], saved: _Saved, given: list[bool],
    shown: Collection[Storage] | None, found_in: list[LookedUp],
) -> tuple[Block, bool, bool]:
    """The backward Block for gradients of the results that are ``given``; the others are None. What it looks up in
    Python is put into ``found_in``.

    ``shown``: memory that others than ``ctx`` see; None if no gradient can be asked for.

    It runs in the modes of who asks for gradients: under their autocast, and with ``create_graph=True`` with gradients.
    Where it sets that itself (``torch.no_grad()``, ``once_differentiable``), which is said, it runs without: a second
    derivative is refused.
    """
    inside: list[Any] = []
    before = session.graph.grad_switches
    switches = False

    def prepare(scope: Scope) -> None:
        variables = [session.new_variable(type_, "") for type_ in saved.types()]
        scope.block.args.extend(variables)
        inside.append(saved.context(iter(variables)))
        memo(session).created[id(inside[0])] = inside[0]
        present = iter(given)
        for output in outputs:
            if not is_a(output, torch.Tensor):
                inside.append(None)
                continue
            fake = session.fake(output)
            var = session.new_variable(session.type_of(fake), "")
            scope.block.args.append(var)
            grad = session.fresh(session.clone_meta(fake), var)
            var.type = session.type_of(grad)
            inside.append(grad if next(present) else None)

    def run() -> Any:
        nonlocal before, switches
        with torch.no_grad(), session.outside.of_backward(), lookups.looking_up(session) as found:
            found_in.append(found)
            before = session.graph.grad_switches
            lookups.note_held(session, list(saved.plain.values()))
            result = call(cls.backward, *inside)
            switches = session.graph.grad_switches != before
        grads = result if is_a(result, tuple) else (result,)
        _require_fitting(cls, grads, args)
        return grads

    older = None if shown is None else Older(session, [cls.backward], args)
    path = trace_path(session, "custom_grad", NO_NAMES, run, prepare)
    block = path.scope.block
    if older is not None and shown is not None:
        _require_no_changes(session, cls, older, path, inside[0], saved, shown)
    wanted = [index for index, arg in enumerate(args) if is_a(arg, torch.Tensor)]
    if not session.call.ahead.in_file:
        for found in found_in[-1:]:
            lookups.put_test(session, found, path, session.location())
    if path.ended:
        block.yields.extend([None] * len(wanted))
        return block, switches, inside[0]._unpacked
    with path.inside(session):
        for index in wanted:
            block.yields.append(_gradient(session, cls, path.result[index], args[index]))
    if not switches:
        for op in block.walk():
            op.grad_mode = "inherit"
    return block, switches, inside[0]._unpacked


def _require_no_changes(
    session: Session, cls: Any, older: Older, path: Path, context: Context, saved: _Saved, shown: Collection[Storage]
) -> None:
    """Refuse a backward that does more than compute: a backward Program gives gradients, and changes nothing.

    On its own ``ctx`` it may put what only it reads.

    Raises:
        TraceError: D2S275.
    """
    def refuse(what: str, hint: str, location: Location | None) -> NoReturn:
        raise session.error(f"{cls.__name__}.backward {what}: a Program's backward only gives gradients", code="D2S275",
                            hint=hint, location=location)

    for place, value in path.places.items():
        if place.owner is context and value is not None and value is not MISSING:
            known = saved.values.get(place.name, saved.plain.get(place.name, MISSING))
            if place.name in context._missed or known is not MISSING and known is not value:
                refuse(f"changes ctx.{place.name}", "Keep it in a variable of backward.",
                       session.journal.first_stores.get(place))
    for change in path.leaf_changes:
        raise change.error(session)
    for place in older.places(path):
        refuse(f"stores to {place.describe()}", "Return it from forward, or use a hook on the gradient outside.",
               session.journal.first_stores.get(place))
    for value in (*(value for _, value in older.written(path)), *saved.written(path, shown)):
        refuse("writes in place to a tensor that it did not make", "Write out of place.",
               written_at(path.scope.block, value))


@acts_for_user
def _require_fitting(cls: Any, grads: tuple[Any, ...], args: tuple[Any, ...]) -> None:
    """Raise what torch raises when backward runs, if there is not a gradient for each argument."""
    if len(grads) < len(args) or any(grad is not None for grad in grads[len(args):]):
        raise RuntimeError(f"function {cls.__name__}Backward returned an incorrect number of gradients "
                           f"(expected {len(args)}, got {len(grads)})")


def _gradient(session: Session, cls: Any, grad: Any, arg: torch.Tensor) -> Operand:
    if grad is None:
        return None
    if is_a(grad, Choice):
        raise session.error(
            f"{cls.__name__}.backward gives a gradient on some paths and None on others",
            code="D2S275", hint="Give zeros (torch.zeros_like) where there is no gradient.")
    if not is_a(grad, torch.Tensor) or is_a(grad, Staged):
        raise TypeError(f"{cls.__name__}.backward: expected Tensor or None, not {type(grad).__name__}")
    return session.read(grad)


def _patched_apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    session = active()
    if session is None:
        return torch_internals.plain_apply(cls)(*args, **kwargs)
    return apply(session, cls, args, kwargs)


def as_in_eager(value: Any) -> Any:
    """An ``apply`` that was read, as the user's program sees it."""
    if is_a(value, types.MethodType) and value.__func__ is _patched_apply:
        return torch_internals.plain_apply(value.__self__)  # type: ignore[arg-type]
    return value


def plain_definition() -> Any:
    """What ``torch.autograd.Function`` holds under ``apply``."""
    return torch_internals.PLAIN_APPLY


@contextlib.contextmanager
def patched_functions(session: Session) -> Iterator[None]:
    """Stage custom functions wherever they are applied from, in the thread that traces."""
    before = torch.autograd.Function.__dict__["apply"]
    torch.autograd.Function.apply = classmethod(_patched_apply)  # type: ignore[assignment, method-assign]  # for the length of the trace
    try:
        yield
    finally:
        torch.autograd.Function.apply = before  # type: ignore[method-assign]  # as it was


def watch_contexts() -> None:
    """From now on, see eager's ``ctx`` being made in a trace. Not for the length of each trace: to store a special
    method in a class that hundreds are derived from takes time."""
    BackwardCFunction.__init__ = _plain_context  # type: ignore[method-assign]


def _plain_context(self: Any, *args: Any) -> None:
    """What makes eager's ``ctx``: in a trace, an ``apply`` that was taken before came here past the patch.

    Raises:
        TraceError: D2S212.
    """
    session = active()
    if session is not None:
        name = type(self).__name__.removesuffix("Backward")
        raise session.error(f"{name}.apply, kept in a variable, is called by code that is not converted",
                            code="D2S212", hint=f"Call {name}.apply(...) there, or convert that code.")
