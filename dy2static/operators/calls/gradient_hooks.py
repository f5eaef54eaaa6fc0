"""``tensor.register_hook(f)`` inside a trace.

    h.register_hook(f)      a tensor that was computed: an Operator behind what made it, whose gradient f decides
    w.register_hook(f)      a leaf: f is called where the function itself asks for gradients

What f does for the gradient of a computed tensor is traced when it is registered, as the backward of an
``autograd.Function`` is.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from dy2static.operators.calls import lookups
from dy2static.operators.calls.call import call
from dy2static.operators.provenance.provenance import is_external, memo
from dy2static.operators.shared.policy import is_librarys
from dy2static.operators.shared.staging import NO_NAMES, Session, spread
from runtime.errors import Dy2StaticError
from runtime.ir import Operator, Variable
from runtime.ir.operator import GradMode
from runtime.kinds import is_a
from runtime.tracer.ambient import contents, state
from runtime.tracer.ambient.theirs import acts_for_user, theirs
from runtime.tracer.control.branches import Path, trace_path
from runtime.tracer.control.changes import Older, written_at
from runtime.tracer.memory.deferred import unneeded
from runtime.tracer.python_state.guards import LookedUp
from runtime.tracer.recording import hook_calls, hooked_tensors, leaf_gradients, transforms
from runtime.tracer.recording.attempt import Attempt
from runtime.tracer.recording.hook_calls import HookRecord
from runtime.tracer.recording.interceptor import HOOKS
from runtime.tracer.recording.raising import raise_where
from runtime.tracer.recording.session import Scope
from runtime.tracer.values import structure
from runtime.tracer.values.transient import Transient


class Handle(Transient):
    """What ``register_hook`` gives."""

    def __init__(self, hook: Operator | leaf_gradients.LeafHook) -> None:
        self._hook = hook

    def remove(self) -> None:
        """Take the hook off again; a second time nothing happens."""
        if is_a(self._hook, Operator):
            hooked_tensors.take_off(state.current(), self._hook)
        else:
            leaf_gradients.remove_hook(state.current(), self._hook)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def leave(self) -> NoReturn:
        raise state.current().error(
            "the handle of a hook that a converted function registered leaves the function: the tensor is another one "
            "at each call", code="D2S228", hint="Call its remove() in the function, or register the hook outside.")


def register_hook(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``tensor.register_hook(hook)``."""
    return _register(session, *args, **kwargs)


def register_post_accumulate_grad_hook(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``leaf.register_post_accumulate_grad_hook(hook)``."""
    return _register_after(session, *args, **kwargs)


def _register(session: Session, tensor: Any, hook: Any) -> Any:
    if not _may_have_hooks(session, tensor):
        return NotImplemented
    tensor = session.itself(tensor)
    if leaf_gradients.is_leaf(session, tensor):
        return _made(session, leaf_gradients.add_hook(session, tensor, hook, after=False))
    hooked_tensors.require_hookable(session, tensor)
    op = _recorded(session, tensor, hook)
    hooked_tensors.put(session, tensor, op)
    return _made(session, op)


def _register_after(session: Session, tensor: Any, hook: Any) -> Any:
    if not _may_have_hooks(session, tensor):
        return NotImplemented
    tensor = session.itself(tensor)
    if not leaf_gradients.is_leaf(session, tensor):
        theirs(_refuse_non_leaf)
    return _made(session, leaf_gradients.add_hook(session, tensor, hook, after=True))


@acts_for_user
def _refuse_non_leaf() -> NoReturn:
    raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")


def _may_have_hooks(session: Session, tensor: Any) -> bool:
    """Whether it is a tensor of the trace's own, which is what hooks are for; where it needs no gradient, torch's error
    is raised."""
    if not is_a(tensor, torch.Tensor):
        return False
    if session.code.transforms and transforms.is_under(session, (tensor,), {}):
        return False
    raise_where(session, unneeded([session.info(session.itself(tensor))]),
                RuntimeError("cannot register a hook on a tensor that doesn't require gradient"))
    return True


def _made(session: Session, hook: Operator | leaf_gradients.LeafHook) -> Handle:
    handle = Handle(hook)
    memo(session).created[id(handle)] = handle
    return handle


def _recorded(session: Session, tensor: torch.Tensor, hook: Any) -> Operator:
    """The Operator of a hook, at the end of the Block."""
    fake, var = session.fake(tensor), session.read(tensor)
    maker = next(op for op in session.scope.block.ops if var in op.outputs)
    with session.open("custom_grad") as scope, session.outside.of_forward():
        inside = _given(session, tensor, scope)
        scope.block.yields.append(session.read(torch.ops.aten.alias.default(inside)))
    traced = _Traced(session, tensor, hook)
    for one in () if traced.once else traced.block.walk():
        one.grad_mode = "inherit"
    op = session.emit_operator(
        "custom_grad", [var], types=[session.type_of(fake)], blocks=[scope.block, traced.block],
        attrs={"n_outputs": 1, **({"once": True} if traced.once else {})}, modes=(_mode(maker), None))
    seen = lookups.held_in_closures(hook)

    def verify(op: Operator) -> None:
        if not _is_same(session, op, tensor, var, hook, seen):
            raise session.error(
                "a hook of a tensor would compute something else by now: what it looks up has changed since it was "
                "registered", code="D2S213", location=op.location,
                hint="Register it after that, or give it the value as a default argument (lambda grad, a=a: ...).")

    def called(grad: Any) -> None:
        with torch.no_grad():
            spread(session, grad, lambda one: None if one is None else call(hook, one))

    looks_up = lookups.may_change(traced.found) or _looks_up(session, hook)
    if not session.call.ahead.in_file:
        lookups.put_test(session, traced.found, traced.path, op.location)
    session.graph.hook_records[op] = HookRecord(
        tensor, var, traced.changes, looks_up, op.location, verify, called, traced.lists,
        _lasting(session, hook) if traced.changes or looks_up else None)
    return op


def _looks_up(session: Session, hook: Any) -> bool:
    """Whether a hook may find something else by the time backward calls it: in an object, a global, or a variable of
    code around the converted function."""
    todo, seen = [hook], set[int]()
    while todo:
        value = todo.pop()
        if structure.is_plain(value) or id(value) in seen or is_a(value, (torch.Tensor, type, types.ModuleType)):
            continue
        seen.add(id(value))
        if is_a(value, types.FunctionType):
            outside = id(value) not in memo(session).created
            held = [*contents.cells_of(value), *_globals_of(value)] if outside else _globals_of(value)
            if any(structure.is_plain(one) or is_a(one, torch.Tensor) for one in held):
                return True
            todo += [*contents.cells_of(value), *_globals_of(value), *(value.__defaults__ or ()),
                     *(value.__kwdefaults__ or {}).values()]  # fmt: skip
        elif is_a(value, types.MethodType):
            todo += [value.__func__, value.__self__]
        elif is_a(value, functools.partial):
            todo += [value.func, *value.args, *value.keywords.values()]
        elif type(value) is tuple:
            todo += value
        elif not is_a(value, types.BuiltinFunctionType) or not (
                value.__self__ is None or is_a(value.__self__, types.ModuleType)):  # fmt: skip
            return True
    return False


def _globals_of(function: types.FunctionType) -> list[Any]:
    """What the code of a function, and of those in it, finds among its globals; not what a library has there."""
    if is_librarys(str(function.__module__)):
        return []
    names, todo = set[str](), [function.__code__]
    while todo:
        code = todo.pop()
        names.update(code.co_names)
        todo += [one for one in code.co_consts if is_a(one, types.CodeType)]
    return [function.__globals__[name] for name in names if name in function.__globals__]


def _lasting(session: Session, hook: Any) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """The hook for backward to call, where all that it refers to is older than the trace, and the same in each call."""
    referred: list[Any] = []
    todo, seen = [hook], set[int]()
    while todo:
        value = todo.pop()
        if structure.is_plain(value) or id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, types.MethodType):
            todo += [value.__func__, value.__self__]
        elif is_a(value, functools.partial):
            todo += [value.func, value.args, value.keywords]
        elif is_a(value, types.BuiltinMethodType) and not is_a(value.__self__, types.ModuleType):
            todo.append(value.__self__)
        elif is_a(value, types.FunctionType) and id(value) in memo(session).created:
            todo += [*contents.cells_of(value), value.__defaults__ or (), value.__kwdefaults__ or {}]
        elif type(value) in (tuple, dict) and id(value) not in session.objects.externals:
            todo += value.values() if is_a(value, dict) else value
        elif not is_external(session, value) or id(value) in session.objects.given or (
                session.objects.externals.get(id(value), (value, None))[1] is not None):  # an argument of this call
            return None
        else:
            referred.append(value)
    for value in referred:
        session.guards.pin(value)

    def called(grad: torch.Tensor) -> torch.Tensor:
        result = hook(grad.clone())
        return grad if result is None else _fitting(hook, result, grad).clone()

    return called


def _is_same(
    session: Session, op: Operator, tensor: torch.Tensor, var: Variable, hook: Any, seen: list[Any]
) -> bool:
    """Whether a hook would compute what its Operator says, as things are now."""
    block = op.blocks[1]
    if not all(map(session.visible, block.captures())):  # it was given what its path or iteration made
        now = lookups.held_in_closures(hook)
        return len(now) == len(seen) and all(map(structure.same_known, now, seen))
    same = False
    with contextlib.suppress(Dy2StaticError), Attempt(session) as tried:
        again = _Traced(session, tensor, hook)
        for one in () if again.once else again.block.walk():
            one.grad_mode = "inherit"
        (source,) = op.args
        same = is_a(source, Variable) and hook_calls.alike(block, again.block, {var: source})
        tried.undo()
    return same


def _mode(maker: Operator) -> GradMode:
    """A hook is one whatever the mode is in which it is registered."""
    return "inherit" if maker.blocks else maker.grad_mode


def _given(session: Session, tensor: torch.Tensor, scope: Scope) -> torch.Tensor:
    """What stands for a tensor's value, or its gradient, in a Block."""
    fake = session.fake(tensor)
    var = session.new_variable(session.type_of(fake), "")
    scope.block.args.append(var)
    return session.fresh(session.clone_meta(fake), var, layout_known=session.info(tensor).layout_known)


class _Traced:
    """A hook as a Block that takes a gradient and gives one.

    Raises:
        TraceError: D2S275, it writes to the gradient.
    """

    def __init__(self, session: Session, tensor: torch.Tensor, hook: Any) -> None:
        self.once = False
        """Whether what it gives cannot be differentiated: it says itself whether gradients are on, or reads the tensor,
        whose gradient would come to the hook again."""
        self.changes = ""
        """What it changes, for errors."""
        self.lists: list[list[Any]] = []
        """Lists that it changes."""
        inside: list[torch.Tensor] = []
        before = session.graph.grad_switches

        def prepare(scope: Scope) -> None:
            inside.append(_given(session, tensor, scope))

        def run() -> torch.Tensor:
            (grad,) = inside
            with torch.no_grad(), session.outside.of_backward(), lookups.looking_up(session) as self.found:
                switches = session.graph.grad_switches
                result = call(hook, grad)
                self.once = session.graph.grad_switches != switches
                return spread(session, result, lambda one: _fitting(hook, one, grad))

        older = Older(session, [hook], [tensor])
        self.found = LookedUp()
        self.path = path = trace_path(session, "custom_grad", NO_NAMES, run, prepare)
        session.graph.grad_switches = before
        self.block = path.scope.block
        own = session.info(tensor).storage.value
        self.once |= any(
            hooked_tensors.may_have_history(op) and not {own, session.info(tensor).cached}.isdisjoint(op.inputs)
            for op in self.block.walk())
        self._note_changes(session, older, path, inside[0])
        if path.ended:
            self.block.yields.append(None)
            return
        with path.inside(session):
            self.block.yields.append(session.read(path.result))

    def _note_changes(self, session: Session, older: Older, path: Path, grad: torch.Tensor) -> None:
        for change in path.leaf_changes:
            raise change.error(session)
        storage = session.info(grad).storage
        value = path.storages.get(storage, storage.value)
        if value is not storage.first:
            raise session.error(
                "a hook of a tensor writes in place to the gradient that it is given, which may be other tensors', too",
                code="D2S275", hint="Return a new tensor.", location=written_at(self.block, value))
        for place in older.places(path):
            self.changes = f"stores to {place.describe()}"
            if place.kind == "content" and type(place.owner) is list:
                self.lists.append(place.owner)
        for _ in older.written(path):
            self.changes = "writes in place to a tensor that it did not make"


@acts_for_user
def _fitting(hook: Any, result: Any, grad: torch.Tensor) -> torch.Tensor:
    """The gradient after a hook; raises what torch raises when it calls one, whose name it says."""
    if result is None:
        return grad
    if not is_a(result, torch.Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    name = getattr(hook, "__name__", "<unknown>")
    sizes, its = grad.shape, result.shape
    if len(sizes) != len(its) or any(type(m) is int and type(n) is int and m != n for m, n in zip(sizes, its)):
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    if result.dtype != grad.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {_kind(grad)} got {_kind(result)})")
    return result


def _kind(tensor: torch.Tensor) -> str:
    return str(torch.empty((), dtype=tensor.dtype).type())


def _remove(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    args[0].remove()


HANDLERS = [(Handle.remove, _remove), (torch.Tensor.register_hook, register_hook),
            (torch.Tensor.register_post_accumulate_grad_hook, register_post_accumulate_grad_hook)]
HOOKS.update(register_hook=register_hook, register_post_accumulate_grad_hook=register_post_accumulate_grad_hook)
