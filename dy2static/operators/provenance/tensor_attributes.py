"""Attributes of tensors inside a trace: what the class says of itself, and what users hang on tensors.

``y.note = 3`` is Python state as that of any object. A run of the Program makes other tensor objects than the trace: it
hangs on its results, and on the caller's tensors, what the trace hung on those that stand for them. What hangs on an
argument is a guard when it is read.
"""

from __future__ import annotations

import operator
import types
from typing import Any

import torch

from dy2static.operators.provenance.provenance import note_attribute_read
from dy2static.operators.shared.staging import MISSING, Session
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.state import active
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.memory import hung
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording import leaf_gradients, transforms, users_tensors
from runtime.tracer.recording.interceptor import OF_DTYPES
from runtime.tracer.values import structure

_OF_THE_OBJECT = frozenset({
    "__dict__", "__weakref__", "_cdata", "const_data_ptr", "_version", "_python_dispatch", "__getstate__", "__dir__",
    "__reduce__", "_backward_hooks", "_base",
    "_is_view",
})  # fmt: skip
"""What is about this very object, its memory or its history."""
_BUILTINS: dict[tuple[str, int], Any] = {
    ("__str__", 0): str, ("__repr__", 0): repr, ("__hash__", 0): hash, ("__format__", 1): format,
    ("__bool__", 0): bool, ("__nonzero__", 0): bool, ("__int__", 0): int, ("__long__", 0): int,
    ("__float__", 0): float, ("__complex__", 0): complex, ("__index__", 0): operator.index,
    ("__getitem__", 1): operator.getitem, ("__setitem__", 2): operator.setitem, ("__delitem__", 1): operator.delitem,
    ("__setattr__", 2): setattr, ("__delattr__", 1): delattr, ("__getattribute__", 1): getattr,
}  # fmt: skip
"""Methods, with so many arguments, that do what a function of Python's does."""
_OF_ITEMS = ("__getitem__", "__setitem__", "__delitem__")
"""Those that are found in the class as well: ``torch.Tensor.__getitem__(x, 0)``."""


def eager_class(tensor: torch.Tensor) -> type:
    """What ``type(tensor)`` is in eager, where an operator may have given back the tensor that it was given."""
    session = active()
    return torch_internals.eager_class(tensor if session is None else session.itself(tensor))


def read(session: Session, tensor: torch.Tensor, name: str) -> Any:
    """``tensor.name``.

    Raises:
        AttributeError: Eager's tensor has none.
        TraceError: D2S213 for what is about the object that only exists in the trace; D2S245.
    """
    if transforms.is_inside(session, tensor):
        return getattr(tensor, name)
    if name == "__class__":
        session.inputs.require_plain_classes()
        hung.ask_class(session, tensor)
        return eager_class(tensor)
    if name == "grad":
        return leaf_gradients.read(session, tensor)
    if name == hung.RETAINS:
        return leaf_gradients.retains(session, tensor)
    if not torch_internals.is_fake(tensor):
        return _of_real(session, tensor, name)
    if name in _OF_THE_OBJECT:
        raise session.error(f"'.{name}' of a tensor is about an object that is another one in each run", code="D2S213",
                            hint="Ask outside the converted function.")
    if not _has(name):
        tensor = session.itself(tensor)
        if not torch_internals.is_fake(tensor):
            return _of_real(session, tensor, name)
    if _has(name):
        if name in OF_DTYPES and not callable(getattr(torch.Tensor, name)):
            session.note_dtype(tensor)
        return _of_class(tensor, name)
    if hung.has(session, tensor, name):
        return tensor.__dict__[name]
    hung.require_sole(session, tensor, name, writes=False)
    users_tensors.require_no_attribute(session, name)
    return _of_argument(session, tensor, name)


def _has(name: str) -> bool:
    """Whether tensors have an attribute of their class: what its own class has, as ``__call__``, they do not."""
    return any(name in cls.__dict__ for cls in torch.Tensor.__mro__)


def builtin_of(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]] | None:
    """The function of Python's that does what this method of a tensor does with ``args``, and what it is given; None
    for anything else."""
    if is_a(function, structure.BOUND):
        args = function.__self__, *args
    elif not is_a(function, types.WrapperDescriptorType) or function.__name__ not in _OF_ITEMS:
        return None
    if not args or not is_a(args[0], torch.Tensor):
        return None
    found = _BUILTINS.get((function.__name__, len(args) - 1))
    return None if found is None else (found, args)


def _of_class(tensor: torch.Tensor, name: str) -> Any:
    if name.startswith("__") or callable(getattr(torch.Tensor, name)):
        return torch_internals.method_of(tensor, name)
    return getattr(tensor, name)


def _of_argument(session: Session, tensor: torch.Tensor, name: str) -> Any:
    """What the caller hung on an argument; a tensor made inside has nothing that is not known."""
    known = hung.was_taken_off(session, tensor, name)
    value = MISSING if known else hung.ask(session, tensor, name, hung.question(name))
    if value is MISSING:
        raise AttributeError(f"'{eager_class(tensor).__name__}' object has no attribute '{name}'")
    if not is_plain(value):
        raise session.error(f"the attribute '{name}' that hangs on an argument is a {type(value).__name__}",
                            hint="Pass it as an argument of its own.", code="D2S245")
    return value


_OF_GRADIENTS = ("requires_grad", "is_leaf", "grad_fn")
"""What is otherwise for a parameter that is frozen."""


def _of_real(session: Session, tensor: torch.Tensor, name: str) -> Any:
    """An attribute of a parameter, or of another tensor from outside: what hangs on it is a guard, and what it is."""
    if name == "__dict__":
        with_names(session, tensor)
    if hasattr(torch.Tensor, name):
        session.inputs.lift(tensor)  # its sizes and dtype are looked at in each call
        session.inputs.asks_needs |= name in _OF_GRADIENTS
        if name == "requires_grad":
            session.graph.asked_flags.add(id(tensor))
        return getattr(tensor, name)
    users_tensors.require_no_attribute(session, name)
    session.objects.externals.setdefault(id(tensor), (tensor, None))
    value = Place("attribute", tensor, name).get()
    if value is MISSING:
        note_absent(session, tensor, name)
        raise AttributeError(f"'{type(tensor).__name__}' object has no attribute '{name}'")
    return note_attribute_read(session, tensor, name, value)


def with_names(session: Session, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor from outside, and a guard on what hangs on it."""
    session.guards.add((id(tensor), "names"), "what hangs on a tensor", lambda: dict(tensor.__dict__),
                       dict(tensor.__dict__))  # fmt: skip
    return tensor


def note_absent(session: Session, tensor: torch.Tensor, name: str) -> None:
    """Guard that a tensor from outside has no such attribute."""
    session.guards.add((id(tensor), name, "present"), f"whether a tensor has '{name}'",
                       lambda: hasattr(tensor, name), False)


def has(session: Session, tensor: torch.Tensor, name: str) -> bool:
    """``hasattr(tensor, name)``."""
    if hasattr(torch.Tensor, name):
        return hasattr(tensor, name)
    try:
        read(session, tensor, name)
    except AttributeError:
        return False
    return True


def write(session: Session, tensor: torch.Tensor, name: str, value: Any) -> None:
    """``tensor.name = value``.

    Raises:
        TraceError: D2S245 for a tensor from outside that is no argument, or one that is another one on some path.
    """
    if name in ("grad", "_grad"):
        theirs(leaf_gradients.write, session, tensor, value)
        return
    if hasattr(torch.Tensor, name):
        setattr(tensor, name, value)
        return
    tensor = session.itself(tensor)
    _require_own(session, tensor, name)
    if len(session.journal.frames) > 1:
        _take_over(session, tensor, name)  # a path that hangs nothing there leaves what it was
    hung.note(session, tensor, name)
    tensor.__dict__[name] = value


def delete(session: Session, tensor: torch.Tensor, name: str) -> None:
    """``del tensor.name``; of ``grad`` it is a store of None."""
    if name in ("grad", "_grad"):
        theirs(leaf_gradients.write, session, tensor, None)
        return
    if hasattr(torch.Tensor, name):
        delattr(tensor, name)
        return
    tensor = session.itself(tensor)
    _require_own(session, tensor, name)
    read(session, tensor, name)
    _take_over(session, tensor, name)
    hung.note(session, tensor, name)
    del tensor.__dict__[name]


def _take_over(session: Session, tensor: torch.Tensor, name: str) -> None:
    """Let the tensor of the trace have what the caller's has, before that is changed."""
    if session.inputs.own_variable(tensor) is None or name in hung.noted(session, tensor):
        return
    try:
        value = _of_argument(session, tensor, name)
    except AttributeError:
        return
    tensor.__dict__[name] = value
    session.objects.hung.setdefault(id(tensor), (tensor, set()))[1].add(name)


def _require_own(session: Session, tensor: torch.Tensor, name: str) -> None:
    if not torch_internals.is_fake(tensor):
        raise session.error(f"the attribute '{name}' is hung on a tensor from outside that is no argument",
                            code="D2S245", hint="Do it outside the converted function, or return the value.")
    hung.require_sole(session, tensor, name, writes=True)
    if not hung.has(session, tensor, name) and hung.is_tracers(tensor, name):
        raise session.error(f"an attribute of a tensor is called '{name}', as one of the tracer's own", code="D2S245",
                            hint="Call it something else.")


__all__ = ["builtin_of", "delete", "eager_class", "has", "read", "with_names", "write"]
