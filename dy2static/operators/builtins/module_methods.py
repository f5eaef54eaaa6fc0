"""Methods of modules that replace their tensors: ``to``, ``double``, ``register_buffer``...

A conversion that changes nothing is a fact about the module; one that would replace tensors is refused, as it would
leave tensors of the trace in the module.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.builtins import moved_modules
from dy2static.operators.calls.call import call
from dy2static.operators.provenance import made_inside
from dy2static.operators.provenance.provenance import memo, note_module
from dy2static.operators.shared import module_parts
from dy2static.operators.shared.staging import Choice, Session, Staged, any_staged
from dy2static.operators.shared.stored import MODULES
from dy2static.operators.values import traced_attribute, traced_subscript
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import theirs

_CHANGES: dict[Any, tuple[str, ...]] = {
    torch.nn.ParameterList: ("append", "extend", "__setitem__", "__iadd__"),
    torch.nn.ParameterDict: ("__setitem__", "__delitem__", "__ior__", "setdefault", "pop", "popitem", "update",
                             "clear"),
}  # fmt: skip
_DTYPES = {"float": torch.float32, "double": torch.float64, "half": torch.float16, "bfloat16": torch.bfloat16}


def _conversion(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def convert(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        module = args[0]
        device, dtype = _target(name, args[1:], kwargs)
        made = {id(part) for part in module.modules() if id(part) in memo(session).created}
        for part in module.modules():
            if id(part) in made:
                continue
            for tensor in (*part._parameters.values(), *part._buffers.values()):
                if tensor is not None and not _fits(tensor, device, dtype, name):
                    raise made_inside.refusal(session, f"{name}() replaces the tensors of a {type(part).__name__}")
            note_module(session, part)
        if not made:
            return module
        with moved_modules.moved(session, made):
            return function(*args, **kwargs)

    return convert


def _target(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, torch.dtype | None]:
    """The device and dtype that a conversion asks for; an Ellipsis for one that cannot be told."""
    if name == "to":
        given = [arg.python_type(1) if is_a(arg, Staged) else arg for arg in args]
        device, dtype, _, memory_format = theirs(torch_internals.parse_to, *given, **kwargs)
        if any(is_a(arg, Staged) for arg in args):
            return ..., None
        return (... if memory_format is not None else device), dtype
    if name in _DTYPES:
        return None, _DTYPES[name]
    if name == "type":
        wanted = args[0] if args else kwargs["dst_type"]
        return (None, wanted) if is_a(wanted, torch.dtype) else (..., None)
    return (torch.device("cpu"), None) if name == "cpu" else (..., None)


def _fits(tensor: torch.Tensor, device: Any, dtype: torch.dtype | None, name: str) -> bool:
    if device is ... or (device is not None and torch.device(device) != tensor.device):
        return False
    if dtype is None or (name != "type" and not (tensor.is_floating_point() or tensor.is_complex())):
        return True
    return tensor.dtype == dtype


def _registration(function: Callable[..., Any]) -> Callable[..., Any]:
    def register(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if id(args[0]) not in memo(session).created:
            raise made_inside.refusal(session, f"{function.__name__}() adds a tensor to a {type(args[0]).__name__}")
        return function(*args, **kwargs)

    return register


def _change(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a ``ParameterList`` or ``ParameterDict`` that changes what it holds."""

    def change(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made_inside.require_made_inside(session, args[0])
        return function(*args, **kwargs)

    return change


def _train(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module.train(mode)``, as torch writes it: the mode may be a flag that only the Program knows."""
    module, mode = _mode(*args, **kwargs)
    if not is_a(mode, (bool, Choice)) and not (is_a(mode, Staged) and mode.kind == "bool"):
        raise ValueError("training mode is expected to be boolean")
    traced_attribute.write(session, module, "training", mode)
    for child in module.children():
        call(child.train, mode)
    return module


def _mode(self: torch.nn.Module, mode: Any = True) -> tuple[torch.nn.Module, Any]:
    return self, mode


def _item(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``super().__getitem__(index)`` of a list of modules, where only the run knows the index."""
    if kwargs or len(args) != 2 or not any_staged(args[1:]):
        return NotImplemented
    return traced_subscript.read(session, *args, own=True)


def _eval(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(args[0].train, False)


def _lbfgs(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise session.error(
        "a step of torch.optim.LBFGS inside a converted function: how often it evaluates the loss, and how much it "
        "remembers, depends on the values", code="D2S213",
        hint="Call it outside, or use another optimizer of torch.optim.")


def _per_content(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler, once for each of the contents that the module may have where only the run knows its parts."""

    def handle(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not module_parts.may_be_open(session):
            return handler(session, args, kwargs)
        given = [arg for arg in args if is_a(arg, torch.nn.Module)]
        return module_parts.per_content(session, given, functools.partial(handler, session, args, kwargs))

    return handle


_HANDLERS: list[tuple[Any, Any]] = [
    *((method, _conversion(name, method))
      for name in ("to", "cpu", "cuda", "float", "double", "half", "bfloat16", "type", "to_empty")
      if (method := getattr(torch.nn.Module, name)) is not None),
    (torch.nn.Module.register_buffer, _registration(torch.nn.Module.register_buffer)),
    *((method, _change(method)) for cls, names in _CHANGES.items()
      for name in names if (method := getattr(cls, name, None)) is not None),
    (inspect.unwrap(torch.optim.LBFGS.step), _lbfgs),
    (torch.nn.Module.train, _train),
    *((cls.__getitem__, _item) for cls in MODULES),
    (torch.nn.Module.eval, _eval),
    (torch.nn.Module.register_parameter, _registration(torch.nn.Module.register_parameter)),
]  # fmt: skip
HANDLERS: list[tuple[Any, Any]] = [(method, _per_content(handler)) for method, handler in _HANDLERS]
