"""``tensor.grad`` inside a trace: what stands there, what a store puts there, what ``backward()`` adds; and whether a
tensor that is no leaf is to keep one (``retain_grad``).

    p.grad = None          a store like that to any attribute: journaled, joined where paths meet, done at each run
    p.grad                 what was stored, or the caller's tensor that hangs there, which each call looks up anew

A `Gradient` stands for the place. That nothing hangs there when a call begins, or what a tensor there looks like, is a
guard.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Location, Operand, Variable
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.memory import aliases, hung
from runtime.tracer.memory.deferred import unneeded
from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.recording.gradient_paths import reached
from runtime.tracer.recording.gradient_sources import Sources
from runtime.tracer.recording.raising import raise_where
from runtime.tracer.values.choices import spread
from runtime.tracer.values.structure import Choice

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


class Gradient:
    """The ``.grad`` of one tensor while it is traced: ``grad`` is what stands there now."""

    def __init__(self, tensor: torch.Tensor, grad: Any) -> None:
        self.tensor, self.grad = tensor, grad
        self.placed: torch.Tensor | None = None
        """What the end of a backward pass put there, which is no view, whatever the formula gave."""


class Retaining:
    """What stands for a tensor on which ``retain_grad()`` was called; ``retains_grad``: whether on the path taken."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.retains_grad: Any = False


class LeafHook:
    """A hook that the function put on a leaf; ``after``: it is called when the gradient is in ``.grad``."""

    def __init__(self, tensor: torch.Tensor, hook: Any, after: bool, where: Location | None) -> None:
        self.tensor, self.hook, self.after, self.where = tensor, hook, after, where


class LeafHooks:
    """What stands for a leaf on which the function puts hooks; ``hooks``: those that are there now."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.hooks: Any = ()


class _Place:
    """Where a call finds what hangs on a tensor that it finds by ``find``."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    @property
    def grad(self) -> Any:
        """What hangs there now."""
        return self._find().grad


def of(session: Session, tensor: torch.Tensor) -> Gradient:
    """What stands for ``tensor.grad``.

    Raises:
        TraceError: D2S245, the tensor is another one on some path.
    """
    tensor = session.itself(tensor)
    found = session.graph.gradients.get(id(tensor))
    if found is None:
        if torch_internals.is_fake(tensor):
            hung.require_told(session, tensor, "is asked for its .grad")
            _require_sole(session, tensor)
            _require_none_of_argument(session, tensor)
            first = None
        else:
            first = _of_outside(session, tensor)
        found = session.graph.gradients[id(tensor)] = Gradient(tensor, first)
        session.objects.externals[id(found)] = (found, None)
    return found


def _require_sole(session: Session, tensor: torch.Tensor) -> None:
    """Refuse a tensor that is another one on some path, where that one may have a gradient, or is to get it."""
    info = session.info(tensor)
    found, reached = aliases.few_roots(info, ())
    several = reached or info.storage.alias_sets or any(not root.when.always and not root.steps for root in found)
    if several or Sources(session).is_leaf(info.storage.first) is None:
        raise session.error("the .grad of a tensor that is another one on some path", code="D2S245",
                            hint="Keep the gradient beside the tensor, as torch.autograd.grad gives it.")


def _of_outside(session: Session, real: torch.Tensor) -> torch.Tensor | None:
    """What hangs on a parameter, or on another tensor that is no argument."""
    session.inputs.lift(real)
    find = session.inputs.place_of(real)
    label = session.inputs.label_of(real)
    if real.grad is None:
        session.guards.add((id(real), "grad"), f"whether '{label}' has a gradient", lambda: find().grad is None, True)
        return None
    session.inputs.hint_source(real.grad, _Place(find), "grad", f"{label}.grad")
    return real.grad


def _require_none_of_argument(session: Session, tensor: torch.Tensor) -> None:
    """Nothing hangs on an argument, or the trace is one for this very tensor; a tensor made inside has no gradient yet.

    Raises:
        Restart: To begin again with the tensor itself.
        TraceError: D2S213, the Program is for a file.
    """
    with torch_internals.no_modes():
        found = hung.ask(session, tensor, "grad is None", lambda real: real.grad is None)
    if found is False:
        session.inputs.require_itself(tensor)
        raise session.error("the .grad of an argument, which has one when the call begins, is asked for inside a "
                            "converted function", code="D2S213",
                            hint="Set it to None before the call, or make the argument a parameter of a module.")


def read(session: Session, tensor: torch.Tensor) -> Any:
    """``tensor.grad``."""
    return of(session, tensor).grad


def write(session: Session, tensor: torch.Tensor, value: Any) -> None:
    """``tensor.grad = value``.

    Raises:
        TypeError: It is neither a tensor nor None.
        RuntimeError: PyTorch lets no such tensor be this one's gradient.
        TraceError: What ``of`` raises.
    """
    for one in value.options if is_a(value, Choice) else (value,):
        _require_fitting(session, tensor, one)
    _store(session, of(session, tensor), value)


def _store(session: Session, place: Gradient, value: Any) -> None:
    session.journal.note_attribute(place, "grad")
    place.grad = value


def _require_fitting(session: Session, tensor: torch.Tensor, value: Any) -> None:
    """Raise what PyTorch raises, which compares what the two look like."""
    if value is None:
        return
    if not is_a(value, torch.Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    mine, given = session.fake(tensor), session.fake(value)
    if any(type(size) is not int for size in (*mine.shape, *given.shape)):
        return
    if mine.device != given.device:
        raise RuntimeError("assigned grad has data located on a different device")
    torch_internals.assign_gradient(mine, given)


def accumulate(session: Session, tensor: torch.Tensor, grad: Any) -> None:
    """What the end of a backward pass does with the gradient of a leaf: adds it in place to one that is there.

    ``grad``: a tensor, or one of several values, None among them.
    """
    place = of(session, tensor)
    first, last = _hooks(session, place.tensor)

    def add(both: tuple[Any, Any]) -> None:
        before, more = both
        if more is None:
            return
        more = _through(session, first, more)
        if before is None:
            place.placed = _in_layout(session, tensor, more, copied=bool(first))
            _store(session, place, place.placed)
        else:
            before.add_(more)
        for hook in last:
            if _call[0](hook, tensor) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")

    with torch.no_grad():
        theirs(spread, session, (place.grad, grad), add)


def hooked(session: Session, tensor: torch.Tensor, grad: Any) -> Any:
    """What ``torch.autograd.grad`` gives for a tensor on which the caller put hooks: what they make of the gradient.

    ``grad``: a tensor, or one of several values, None among them.
    """
    first, _ = _hooks(session, session.itself(tensor))
    if not first:
        return grad
    return theirs(spread, session, grad, lambda one: None if one is None else _through(session, first, one))


def _through(session: Session, hooks: list[Any], grad: torch.Tensor) -> torch.Tensor:
    """A gradient after hooks."""
    for hook in hooks:
        grad = _given_by(session, _call[0](hook, grad), grad)
    return grad


def accumulate_where_asked(session: Session, tensor: torch.Tensor, grad: Any) -> None:
    """``accumulate``; of a tensor that is no leaf where its gradient is retained on the path taken."""
    asked = hung.retains(session, tensor)
    if is_a(asked, bool):
        accumulate(session, tensor, grad)
        return
    chosen = Choice(session.scalar("select", asked, 1, 0), (False, True))
    spread(session, chosen, lambda keeps: accumulate(session, tensor, grad) if keeps else None)


def _plainly(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


_call: list[Callable[..., Any]] = [_plainly]


def register(call: Callable[..., Any]) -> None:
    """How users' hooks are called: the converter says so itself."""
    _call[0] = call


def _hooks(session: Session, tensor: torch.Tensor) -> tuple[list[Any], list[Any]]:
    """The hooks of a leaf: those that the caller put on it, then those that the function did.

    Raises:
        TraceError: D2S213, which those are depends on the path.
    """
    first, last = _callers_hooks(session, tensor)
    place = session.graph.hooks.get(id(tensor))
    if place is None:
        return first, last
    if is_a(place.hooks, Choice):
        raise session.error("which hooks a tensor has depends on the path that was taken", code="D2S213",
                            hint="Register the hook on every path, and let it decide what it does.")
    return ([*first, *(one.hook for one in place.hooks if not one.after)],
            [*last, *(one.hook for one in place.hooks if one.after)])


def has_hooks(session: Session, tensor: torch.Tensor) -> bool:
    """Whether a leaf has hooks."""
    return any(_hooks(session, session.itself(tensor)))


def add_hook(session: Session, tensor: torch.Tensor, hook: Any, after: bool) -> LeafHook:
    """Put a hook on a leaf; ``after``: one that is called when the gradient is in ``.grad``.

    Raises:
        TraceError: D2S245, the leaf is another tensor on some path.
    """
    tensor = session.itself(tensor)
    if torch_internals.is_fake(tensor):
        _require_sole(session, tensor)
    else:
        session.inputs.lift(tensor)
    made = LeafHook(tensor, hook, after, session.location())
    place = session.graph.hooks.get(id(tensor))
    if place is None:
        place = session.graph.hooks[id(tensor)] = LeafHooks(tensor)
        session.objects.externals[id(place)] = (place, None)
    _set_hooks(session, place, lambda hooks: (*hooks, made))
    return made


def remove_hook(session: Session, hook: LeafHook) -> None:
    """Take a hook off a leaf, if it is there."""
    place = session.graph.hooks[id(hook.tensor)]
    _set_hooks(session, place, lambda hooks: tuple(one for one in hooks if one is not hook))


def _set_hooks(session: Session, place: LeafHooks, change: Callable[[Any], Any]) -> None:
    if is_a(place.hooks, Choice):
        raise session.error("which hooks a tensor has depends on the path that was taken", code="D2S213",
                            hint="Register and remove the hook on every path.")
    session.journal.note_attribute(place, "hooks")
    place.hooks = change(place.hooks)


def require_no_hooks(session: Session, results: Collection[Operand]) -> None:
    """Refuse hooks on leaves that are there at the end of the function: the next call would add others. One that only
    the function knows may have some, if no gradient of the ``results`` comes to it.

    Raises:
        TraceError: D2S213.
    """
    left = [place for place in session.graph.hooks.values() if is_a(place.hooks, Choice) or place.hooks]
    looks = session.looks.of
    roots = [one for one in results if is_a(one, Variable) and one in looks and looks[one].requires_grad]
    for place in left:
        tensor = place.tensor
        inside = torch_internals.is_fake(tensor) and session.inputs.own_variable(tensor) is None
        if inside and not (session.visible(session.info(tensor).storage.first) and session.read(tensor) in reached(
                session, roots, [session.read(tensor)]).found):
            continue
        where = None if is_a(place.hooks, Choice) else place.hooks[0].where
        raise session.error(
            "a hook that a converted function registered on a leaf is still there when it returns: "
            + ("no gradient that is asked for outside would go through it" if inside else
               "each call would add another one"), code="D2S213", location=where,
            hint="Call remove() of its handle before the function returns, or register the hook once, outside.")


def _callers_hooks(session: Session, tensor: torch.Tensor) -> tuple[list[Any], list[Any]]:
    """The hooks that the caller put on a leaf; which they are is a guard."""
    if torch_internals.is_fake(tensor):
        found = hung.ask(session, tensor, "has hooks", torch_internals.gradient_hooks)
        return ([], []) if found is MISSING else found
    find = session.inputs.place_of(tensor)
    hooks = torch_internals.gradient_hooks(tensor)
    session.guards.add((id(tensor), "hooks"), f"the hooks of '{session.inputs.label_of(tensor)}'",
                       lambda: torch_internals.gradient_hooks(find()), hooks)
    return hooks


def _given_by(session: Session, result: Any, grad: torch.Tensor) -> torch.Tensor:
    """The gradient after a hook that gave ``result``."""
    if is_a(result, Choice):
        raise session.error("a hook gives another gradient on some paths only", code="D2S213",
                            hint="Return a tensor on every path.")
    if result is not None and not is_a(result, torch.Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    return grad if result is None else result


def _in_layout(session: Session, tensor: torch.Tensor, grad: torch.Tensor, copied: bool) -> torch.Tensor:
    """A gradient as a leaf keeps it: laid out in memory as the leaf. ``copied``: a hook may hold what it was given."""
    mine = session.fake(tensor)
    if not torch_internals.contiguity(mine)[0]:
        return torch.empty_like(mine).copy_(grad)
    type_ = session.type_of(mine)  # memory of its own: nobody else has the gradient any more, or it is copied
    how: dict[str, Operand] = {"memory_format": torch.contiguous_format} if copied else {}
    name = "aten.clone.default" if copied else "aten.contiguous.default"
    (var,) = session.emit(name, [session.read(grad)], how, types=[type_])
    return session.fresh(session.clone_meta(mine, shape=mine.shape), var)


def retain(session: Session, tensor: torch.Tensor) -> None:
    """``tensor.retain_grad()``, which does nothing of a leaf.

    Raises:
        RuntimeError: The tensor needs no gradient.
        TraceError: D2S245, it is another one on some path.
    """
    raise_where(session, unneeded([session.info(tensor)]),
                RuntimeError("can't retain_grad on Tensor that has requires_grad=False"))
    tensor = session.itself(tensor)
    if torch_internals.is_fake(tensor):
        if is_leaf(session, tensor):
            return
        hung.require_sole(session, tensor, hung.RETAINS, writes=True)
    elif tensor.is_leaf:
        return
    else:
        session.inputs.lift(tensor)
    place = session.graph.retaining.get(id(tensor))
    if place is None:
        place = session.graph.retaining[id(tensor)] = Retaining(tensor)
        session.objects.externals[id(place)] = (place, None)
    session.journal.note_attribute(place, hung.RETAINS)
    place.retains_grad = True


def is_leaf(session: Session, tensor: torch.Tensor) -> bool:
    """Whether this is a leaf for certain: one of the caller's, or made inside."""
    if not torch_internals.is_fake(tensor):
        return tensor.is_leaf
    info = session.info(tensor)
    if info.steps or info.storage.in_graph:
        return False
    answer = hung.ask(session, tensor, "is_leaf", lambda real: real.is_leaf)
    return Sources(session).is_leaf(info.storage.first) is True if answer is MISSING else bool(answer)


def retains(session: Session, tensor: torch.Tensor) -> Any:
    """``tensor.retains_grad``: True, False, or a staged bool where the path decides.

    Raises:
        TraceError: D2S245, the tensor is another one on some path.
    """
    tensor = session.itself(tensor)
    hung.require_told(session, tensor, "is asked for retains_grad")
    asked = hung.retains(session, tensor)
    if not torch_internals.is_fake(tensor):
        return tensor.retains_grad if tensor.is_leaf or asked is False else asked
    before = hung.ask(session, tensor, hung.RETAINS, lambda real: real.retains_grad)
    if before is MISSING:
        hung.require_sole(session, tensor, hung.RETAINS, writes=False)
        return asked
    if before or asked is False:
        return before
    return not hung.ask(session, tensor, "is_leaf", lambda real: real.is_leaf) and asked


def retained(session: Session) -> list[torch.Tensor]:
    """The tensors whose gradient a ``backward()`` is to keep although they are no leaves, on some paths at least.

    One that was made in a branch or loop body before is reached by no name: what stands for it knows no ``.grad``.
    """
    found = [one.tensor for one in session.graph.retaining.values() if one.retains_grad is not False]
    return [one for one in found if not torch_internals.is_fake(one) or (
        session.visible(session.info(one).storage.value) and session.visible(session.read(one)))]


def require_none(session: Session, tensor: torch.Tensor) -> None:
    """Refuse to let go of a tensor made inside that has a gradient: another object stands for it from then on.

    Raises:
        TraceError: D2S228.
    """
    found = session.graph.gradients.get(id(tensor))
    if found is not None and found.grad is not None:
        raise session.error("a tensor made inside a converted function leaves it with a .grad", code="D2S228",
                            hint="Return the gradient beside it, and a .detach() of the tensor.")


__all__ = [
    "Gradient", "LeafHook", "LeafHooks", "Retaining", "accumulate", "accumulate_where_asked", "add_hook", "has_hooks",
    "hooked", "is_leaf", "of", "read", "register", "remove_hook", "require_no_hooks", "require_none", "retain",
    "retained", "retains", "write",
]  # fmt: skip
