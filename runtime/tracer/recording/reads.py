"""Reading tensors as Python values: ``.item()``, ``.tolist()``, ``bool(t)``, ``torch.equal`` are staged."""

from __future__ import annotations

import numbers
import operator
from typing import Any

import torch

from runtime.ir import ScalarType
from runtime.kinds import is_a
from runtime.ops import scalar as scalar_ops
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.numbers import scalars
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording.session import Session


def item(session: Session, tensor: torch.Tensor) -> Any:
    """``tensor.item()`` as a staged number; RuntimeError as eager if it has more than one element."""
    fake = session.fake(tensor)
    if all(type(size) is int for size in fake.shape) and fake.numel() != 1:
        raise RuntimeError(f"a Tensor with {fake.numel()} elements cannot be converted to Scalar")
    kind = scalar_ops.kind_of_dtype(fake.dtype)
    if kind == "complex":
        raise session.error(
            "the .item() of a complex tensor cannot be a number of the Program",
            code="D2S215",
            hint="Take .real and .imag apart first.",
        )
    return session.from_tensor("item", tensor, kind=kind)


def number(session: Session, tensor: torch.Tensor) -> Any:
    """What ``int(tensor)``, ``float(tensor)`` and functions of ``math`` take it for: its item, as a staged number.

    ValueError as eager if it has more than one element, or none.
    """
    return _single(session, tensor, "number", ValueError(scalar_ops.NOT_ONE))


def index(session: Session, tensor: torch.Tensor) -> Any:
    """``tensor.__index__()`` as a staged int; TypeError as eager if it has more than one element, or is no integer."""
    dtype = session.fake(tensor).dtype
    error = TypeError(scalar_ops.NO_INDEX)
    if dtype.is_floating_point or dtype.is_complex:
        raise error
    return session.scalar("int", _single(session, tensor, "index", error))


def _single(session: Session, tensor: torch.Tensor, name: str, error: Exception) -> Any:
    fake = session.fake(tensor)
    if not all(type(size) is int for size in fake.shape):
        kind = scalar_ops.kind_of_dtype(fake.dtype)
        return item(session, tensor) if kind == "complex" else session.from_tensor(name, tensor, kind=kind)
    if fake.numel() != 1:
        raise error
    return tensor.item()


def has_open_length(session: Session, tensor: torch.Tensor) -> bool:
    """Whether only the run knows how many items ``tensor.tolist()`` has."""
    if not session.knows(tensor):
        return False
    fake = session.fake(tensor)
    return fake.layout is torch.strided and not all(type(size) is int for size in fake.shape)


def is_open_along(session: Session, tensor: torch.Tensor, dim: Any) -> bool:
    """Whether only the run knows how long a tensor is in a dimension."""
    if type(dim) is not int or not session.knows(tensor):
        return False
    fake = session.fake(tensor)
    if fake.layout is not torch.strided or not -fake.dim() <= dim < fake.dim():
        return False
    size: Any = fake.shape[dim]
    return type(size) is not int and not size.node.expr.is_number


def tolist(session: Session, tensor: torch.Tensor) -> Any:
    """``tensor.tolist()`` as nested lists of staged numbers; the sizes must be fixed."""
    fake = session.fake(tensor)
    if fake.layout is not torch.strided:
        raise session.error(".tolist() of a sparse tensor", code="D2S216", hint="Make it dense: x.to_dense().tolist().")
    if not all(type(size) is int for size in fake.shape):
        raise session.error(
            ".tolist() of a tensor whose size is only known while the Program runs",
            code="D2S216",
            hint="Loop over the tensor with for, or index it.",
        )
    if fake.numel() > 4096:
        raise session.error(
            f".tolist() of {fake.numel()} elements inside a converted function",
            code="D2S216",
            hint="Keep the values in a tensor.",
        )

    def nested(t: torch.Tensor) -> Any:
        return item(session, t) if t.dim() == 0 else [nested(row) for row in t.unbind(0)]

    return nested(tensor)


def _with_tolerances(session: Session, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of ``allclose`` with numbers for its tolerances, which tensors without dimensions may be.

    Errors raised: TypeError, as torch words it.
    """
    def number(value: Any, what: str) -> Any:
        if not is_a(value, torch.Tensor):
            return value
        if session.fake(value).dim() or session.info(value).requires_grad:
            raise TypeError(f"allclose(): argument {what} must be float, not Tensor")
        return item(session, value)

    names = ("rtol", "atol")
    given = [number(one, f"'{name}' (position {place + 3})") for place, (one, name) in enumerate(zip(args[2:], names))]
    return [*args[:2], *given, *args[4:]], {
        key: number(one, f"'{key}'") if key in names else one for key, one in kwargs.items()}


def read(session: Session, name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """What a function that reads a tensor's data gives: a staged value, or a located error."""
    tensor = args[0]
    if name == "item":
        return item(session, tensor)
    if name == "tolist":
        return tolist(session, tensor)
    if name == "equal":
        return _recorded(session, "aten.equal.default", list(args), {}, "bool")
    if name == "allclose":
        return _recorded(session, "aten.allclose.default", *_with_tolerances(session, args, kwargs), "bool")
    if name == "is_nonzero":
        return session.from_tensor("truth", tensor, kind="bool")
    if name == "__contains__":
        (element,) = args[1:]
        if not is_a(element, (torch.Tensor, numbers.Number, Staged)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
        return session.from_tensor("truth", theirs(operator.eq, element, tensor).any(), kind="bool")
    if name == "__index__":
        fake = session.fake(tensor)
        if fake.dtype.is_floating_point or fake.dtype.is_complex:
            raise TypeError("only integer tensors of a single element can be converted to an index")
    what = {
        "__bool__": "used as a condition",
        "__int__": "converted to int",
        "__float__": "converted to float",
        "__index__": "used as an index",
        "__complex__": "converted to complex",
        "__format__": "formatted",
        "__repr__": "turned into text",
    }[name]
    raise session.error(
        f"a tensor is {what} in code that is not converted",
        code="D2S212",
        hint="Let the function be converted (it needs Python source and must not be ignored), or use tensor operations "
        "such as torch.where.",
    )


def _recorded(session: Session, name: str, args: list[Any], kwargs: dict[str, Any], kind: str) -> Any:
    """Record an operator whose result is a Python number (``torch.equal``)."""
    (var,) = session.emit(
        name,
        [session.operand(arg) for arg in args],
        {key: session.operand(value) for key, value in kwargs.items()},
        [ScalarType(kind)],  # type: ignore[arg-type]
    )
    return scalars.wrap(var)
