"""What users hang on tensors (``y.note = 3``, ``y.retain_grad()``), and what a trace asked the caller's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from runtime.tracer.ambient.closing import CannotBeOpen
from runtime.tracer.memory import aliases
from runtime.tracer.python_state.journal import MISSING

if TYPE_CHECKING:
    from runtime.ir import Variable
    from runtime.tracer.memory.storage_table import Storage
    from runtime.tracer.recording.session import Session

Question = tuple[str, Callable[[torch.Tensor], Any], Any]
"""What was asked of an argument, how to ask it again, and the answer that the Program rests on."""

RETAINS = "retains_grad"
"""The attribute that ``retain_grad()`` sets; what stands for the tensor has it (``leaf_gradients.Retaining``)."""


def note(session: Session, tensor: torch.Tensor, name: str) -> None:
    """Call before an attribute is hung on a tensor of the trace, or taken off."""
    session.journal.note_attribute(tensor, name)
    session.objects.hung.setdefault(id(tensor), (tensor, set()))[1].add(name)


def has(session: Session, tensor: torch.Tensor, name: str) -> bool:
    """Whether something of the user's hangs on a tensor of the trace under a name."""
    found = session.objects.hung.get(id(tensor))
    return found is not None and name in found[1] and name in tensor.__dict__


def names(session: Session, tensor: torch.Tensor) -> list[str]:
    """What hangs on a tensor of the trace."""
    found = session.objects.hung.get(id(tensor))
    users = sorted(name for name in found[1] if name in tensor.__dict__) if found is not None else []
    return [*users, RETAINS] if retains(session, tensor) is not False else users


def holders(session: Session) -> list[torch.Tensor]:
    """The tensors of the trace on which something hangs, or did."""
    retaining = [one.tensor for one in session.graph.retaining.values() if one.retains_grad is not False]
    return [*(tensor for tensor, _ in session.objects.hung.values()), *retaining]


def retains(session: Session, tensor: torch.Tensor) -> Any:
    """Whether the trace asked a tensor to retain its gradient: a bool, or a staged one."""
    found = session.graph.retaining.get(id(tensor))
    return False if found is None else found.retains_grad


def noted(session: Session, tensor: torch.Tensor) -> set[str]:
    """The names under which the trace hung something on a tensor, or took it off."""
    found = session.objects.hung.get(id(tensor))
    return found[1] if found is not None else set()


def was_taken_off(session: Session, tensor: torch.Tensor, name: str) -> bool:
    """Whether the trace knows that nothing hangs there, whatever the caller's tensor has."""
    found = session.objects.hung.get(id(tensor))
    return found is not None and name in found[1] and name not in tensor.__dict__


def others(session: Session, tensor: torch.Tensor) -> list[Storage]:
    """Memory whose tensor, not a view of it, this one may be in a run that only the run knows."""
    info = session.info(tensor)
    found, reached = aliases.few_roots(info, ())
    sometimes = [root for root in found if not root.when.always and not root.steps]
    whole = [root.storage for root in sometimes if root.storage is not info.storage]
    return [*whole, *reached, *([info.storage] if info.storage.alias_sets or info.storage.unknown_aliases else [])]


def require_sole(session: Session, tensor: torch.Tensor, name: str, writes: bool) -> None:
    """Refuse an attribute of a tensor that is another one on some path, where that one may have it, or is to get it.

    Raises:
        TraceError: D2S245.
    """
    storages = others(session, tensor)
    if not storages:
        return
    hangs = writes or any(name in names(session, one) for one in holders(session) if one is not tensor)
    for storage in storages:
        origin = storage.origin
        real = session.inputs.real(origin) if origin is not None else None
        if origin is not None and real is not None and not hangs:
            answer = question(name)(real)
            hangs = answer is not MISSING
            if all(one.var is not origin for one in session.program.inputs):  # it is the same one in each call
                session.guards.add((id(real), name, "present"), f"whether a tensor has '{name}'",
                                   functools.partial(hasattr, real, name), hangs)
            session.inputs.asked.setdefault(origin, {}).setdefault(name, (name, question(name), answer))
    if hangs:
        raise session.error(f"the attribute '{name}' of a tensor that is another one on some path", code="D2S245",
                            hint="Keep the value beside the tensor, in a tuple or an object.")


def question(name: str) -> Callable[[torch.Tensor], Any]:
    """What a tensor has under a name."""
    return lambda real: getattr(real, name, MISSING)


def is_tracers(tensor: torch.Tensor, name: str) -> bool:
    """Whether the tensor that stands for the user's has such an attribute itself."""
    return hasattr(type(tensor), name) or name in tensor.__dict__


def require_told(session: Session, tensor: torch.Tensor, what: str) -> None:
    """Refuse what matters of a joined tensor that retains its gradient where a path gave one that does.

    Raises:
        TraceError: D2S245.
    """
    if session.knows(tensor) and session.info(tensor).perhaps_retains and retains(session, tensor) is not True:
        raise perhaps_retained(session, what)


def perhaps_retained(session: Session, what: str) -> Exception:
    """The error for such a tensor, of which something was asked: D2S245."""
    return session.error(f"a tensor whose gradient is retained on some path, or in some iteration, {what}",
                         code="D2S245",
                         hint="Call retain_grad() after the branch or loop, or outside the converted function.")


def require_none(session: Session, tensor: torch.Tensor, what: str, retained: bool = False) -> None:
    """Refuse to let go of a tensor on which something hangs: another object stands for it from then on. ``retained``:
    one whose gradient is retained is let go of, as what stands for it says so (``TensorInfo.perhaps_retains``).

    Raises:
        TraceError: D2S245.
    """
    found = names(session, tensor)
    if found == [RETAINS] and retained:
        return
    if found == [RETAINS]:
        raise session.error(f"a tensor whose gradient is retained {what}", code="D2S245",
                            hint="Call retain_grad() after it, or outside the converted function.")
    if found:
        raise session.error(f"a tensor with the attribute '{found[0]}' {what}", code="D2S245",
                            hint="Keep the value beside the tensor, in a tuple or an object.")


def ask(session: Session, tensor: torch.Tensor, name: str, question: Callable[[torch.Tensor], Any]) -> Any:
    """The answer of the caller's tensor, if this is one, which becomes a condition of the Program; MISSING if not."""
    own = session.inputs.own_variable(tensor)
    real = session.inputs.real(own) if own is not None else None
    if own is None or real is None:
        if session.containers.open_alias_sets and session.knows(tensor):
            _require_other(session, session.info(tensor).storage, name)
        return MISSING
    return _answer(session, own, real, name, question)


def require_certain(session: Session, tensor: torch.Tensor, what: str) -> None:
    """Refuse a question about a tensor that is an argument or a copy of it, as that lies in memory.

    Raises:
        TraceError: D2S213.
    """
    if session.knows(tensor) and session.info(tensor).perhaps_itself:
        raise session.error(
            f"{what} of a tensor that is an argument itself or a copy of it, as the argument lies in memory",
            code="D2S213", hint="Ask the argument.")


def ask_class(session: Session, tensor: torch.Tensor) -> None:
    """The class of a tensor matters: what is no parameter among the arguments is none in a later call.

    Raises:
        TraceError: D2S213, it is an argument or a copy of it.
    """
    tensor = session.itself(tensor)  # what ``+p`` gave is the parameter
    require_certain(session, tensor, "the class")
    if session.inputs.own_variable(tensor) is not None:  # an item of an open list may be any of them, of one class
        ask(session, tensor, "is a Parameter", _is_parameter)


def _is_parameter(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch.nn.Parameter)


def ask_memory(session: Session, tensor: torch.Tensor, name: str, question: Callable[[torch.Tensor], Any]) -> Any:
    """The answer of the argument or parameter whose memory this tensor is in, which becomes a condition of the Program;
    MISSING for memory of the trace's own.

    Raises:
        TraceError: D2S213, it is in memory that several arguments share.
    """
    origin = session.info(tensor).storage.origin
    if origin is None:
        return MISSING
    real = session.inputs.real(origin)
    if real is None:
        raise session.error(f".{name} of a tensor in memory that several arguments share", code="D2S213",
                            hint="Ask it outside of the function.")
    return _answer(session, origin, real, name, question)


def _answer(
    session: Session, own: Variable, real: torch.Tensor, name: str, question: Callable[[torch.Tensor], Any]
) -> Any:
    """What an argument or parameter says, which becomes a condition of the Program."""
    found = question(real)
    live = next((one for one in session.inputs.live if one.parameter.var is own), None)
    if live is None:
        session.inputs.asked.setdefault(own, {}).setdefault(name, (name, question, found))
        return found
    owner, attribute = live.owner, live.attribute

    def still() -> bool:
        return same(question(real if owner is None else getattr(owner, attribute)), found)

    session.guards.add_test((id(owner), attribute, name), f"'{live.parameter.name}.{name}'", still)
    return found


def _require_other(session: Session, storage: Storage, name: str) -> None:
    """Raises CannotBeOpen for a tensor that may be an item of an open list: it may be any of them."""
    if any(alias_set.may_hold(storage) for alias_set, _ in session.containers.open_alias_sets):
        raise CannotBeOpen(f"an item of a list among the arguments is asked for '{name}'")


def same(answer: Any, before: Any) -> bool:
    """Whether an answer is the one before."""
    return answer is before or (type(answer) is type(before) and bool(answer == before))


__all__ = ["RETAINS", "Question", "ask", "ask_class", "ask_memory", "has", "holders", "is_tracers", "names", "note",
           "noted", "others", "perhaps_retained", "question", "require_certain", "require_none", "require_sole",
           "require_told", "retains", "same", "was_taken_off"]  # fmt: skip
