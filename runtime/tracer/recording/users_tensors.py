"""Functions that are given tensors of a user's class: what such a class changes without overriding anything.

What a function of PyTorch computes of a tensor of the user's class has that class as well, and with it what the class
adds. The stand-ins of a trace have torch's class; a run hands the tensors themselves from Operator to Operator, so that
nearly all results get the class that they have in eager. Here is refused what would get another one, and what asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.calls import tensors_in
from runtime.tracer.ambient.unasked import module_name
from runtime.tracer.memory.inputs import users_class_of
from runtime.tracer.recording.session import Session

_COPYING = frozenset({"tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor"})
"""Functions that make a tensor of torch's class of what they are given, or one of the class of another tensor."""
_PASSING = frozenset({"as_tensor", "asarray"})
"""Those of them that hand on a tensor that they are given alone."""
_UNKNOWN = object()


def are_there(types: Iterable[type]) -> bool:
    """Whether a class of the user's is among the classes of what a function of PyTorch's is given."""
    return any(module_name(cls).partition(".")[0] != "torch" for cls in types)


def stand_ins(session: Session, given: Any) -> Any:
    """Arguments with what stands for tensors of a user's class that are the caller's: ``__torch_function__`` of the
    class would make results of that class of the stand-ins that the trace computes with."""
    if is_a(given, torch.Tensor):
        own = not torch_internals.is_fake(given) and users_class_of(given) is not None
        return session.inputs.lift(given) if own else given
    if type(given) in (list, tuple):
        return type(given)(stand_ins(session, one) for one in given)
    if type(given) is dict:
        return {name: stand_ins(session, one) for name, one in given.items()}
    return given


def require_known(session: Session, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call of a function of PyTorch's whose result might have another class in eager, or that asks for it.

    Raises:
        TraceError: D2S213.
    """
    if not session.inputs.users_classes:
        return
    if name in _COPYING and not (name in _PASSING and _is_only_a_tensor(args, kwargs)):
        if not _are_plain(session, tensors_in(args, kwargs)):
            _refuse(session, f"{name}() gives a tensor of torch's class")
    elif is_a(kwargs.get("out"), torch.Tensor):
        others = {key: value for key, value in kwargs.items() if key != "out"}
        _require_of_same(session, name, kwargs["out"], tensors_in(args, others))
    elif args and is_a(args[0], torch.Tensor) and is_in_place(name):
        _require_of_same(session, name, args[0], tensors_in(args[1:], kwargs))


def _is_only_a_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return len(args) == 1 and not kwargs and is_a(args[0], torch.Tensor)


def require_known_text(session: Session, tensor: torch.Tensor) -> None:
    """Refuse the text of a tensor where eager's might be another one: ``f"{x.sum()}"`` names the user's class, and so
    does what autograd's graph calls the tensor.

    Raises:
        TraceError: D2S213.
    """
    if session.inputs.users_classes and (tensor.dim() == 0 or session.info(tensor).requires_grad):
        if not _are_plain(session, (tensor,)):
            _refuse(session, "the text of a tensor says its class")


def is_in_place(name: str) -> bool:
    """Whether a method writes its tensor and gives it back: ``add_``, ``__iadd__``."""
    return name.startswith("__i") and name[3:-2] in _AUGMENTED if name.endswith("__") else name.endswith("_")


_AUGMENTED = frozenset({
    "add", "sub", "mul", "truediv", "floordiv", "div", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul",
})  # fmt: skip


def note(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """Keep of which class the tensors are that a function gave, if that is known."""
    if not session.inputs.users_classes:
        return
    classes = {_class_of(session, one) for one in tensors_in(args, kwargs)} - {None}
    if _UNKNOWN in classes and len(session.inputs.users_classes) > 1 or len(classes - {_UNKNOWN}) > 1:
        return  # the most derived class decides
    found = next(iter(classes - {_UNKNOWN}), None)
    if found is None and classes:
        return
    for one in tensors_in((result,), {}):
        session.inputs.classes.setdefault(id(one), (one, found))


def require_no_attribute(session: Session, name: str) -> None:
    """Refuse to read of a tensor what it has by its class, where it may be the user's.

    Raises:
        TraceError: D2S213.
    """
    if any(name in vars(base) for cls in session.inputs.users_classes for base in _own(cls)):
        _refuse(session, f"'.{name}' of a tensor is an attribute of that class")


def require_no_transform(session: Session) -> None:
    """Refuse the transforms of ``torch.func`` where tensors of a user's class are.

    Raises:
        TraceError: D2S213.
    """
    if session.inputs.users_classes:
        _refuse(session, "torch.func gives tensors of torch's class")


def _own(cls: type) -> tuple[type, ...]:
    return cls.__mro__[: cls.__mro__.index(torch.Tensor)]


def _require_of_same(session: Session, name: str, written: torch.Tensor, others: Iterator[torch.Tensor]) -> None:
    """In eager, what is given back has the class of the others, and is another object than the tensor written."""
    cls = _class_of(session, written)
    found = {_class_of(session, other) for other in others} - {None}
    if is_a(cls, type):
        found = set() if len(session.inputs.users_classes) == 1 else found - {cls}
    if found:
        _refuse(session, f"{name}() writes a tensor and gives it back as one of the class of what it is given besides")


def _are_plain(session: Session, tensors: Any) -> bool:
    return all(_class_of(session, one) is None for one in tensors)


def _class_of(session: Session, tensor: torch.Tensor) -> Any:
    """The user's class that a tensor has in eager, None for torch's own, or that it is not known."""
    known = session.inputs.classes.get(id(tensor))
    if known is not None:
        return known[1]
    real = session.inputs.given_as(tensor) if torch_internals.is_fake(tensor) else tensor
    return _UNKNOWN if real is None else users_class_of(real)


def _refuse(session: Session, what: str) -> NoReturn:
    name = min(cls.__name__ for cls in session.inputs.users_classes)
    raise session.error(
        f"{what}, in a function that is given a {name}: while traced, tensors are torch's own", code="D2S213",
        hint="Give the function x.as_subclass(torch.Tensor), or leave it out with not_to_static.")


__all__ = [
    "are_there", "is_in_place", "note", "require_known", "require_known_text", "require_no_attribute",
    "require_no_transform", "stand_ins",
]  # fmt: skip
