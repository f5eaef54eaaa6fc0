"""Lists whose length is only known while the Program runs (they grew in a staged loop): what can be done with them."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from dy2static.operators.sequences import StagedSequence
from dy2static.operators.staging import Session, Staged, any_staged
from runtime.tracer import array
from runtime.tracer.structure import Growing, growing


class GrownItems(StagedSequence):
    """The items of such a list, as they are when a loop over them starts."""

    python_name = "list"

    def __init__(self, target: list[Any]) -> None:
        self.target = array.copy(target)

    def length(self, session: Session) -> Any:
        return array.length(session, self.target)

    def get(self, session: Session, index: Any) -> Any:
        return array.get(session, self.target, index)


def is_growing(value: object) -> bool:
    """Whether a value is such a list."""
    return growing(value) is not None


def method(session: Session, target: list[Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``target.name(*args)``."""
    if name == "copy":
        return array.copy(target)
    if name == "__len__":
        return array.length(session, target)
    if name == "extend" and not isinstance(args[0], (list, tuple)):
        args = (list(args[0]),)
    function = array.METHODS.get(name)
    if function is None or kwargs:
        raise refusal(session, f"list.{name}")
    return function(session, target, *args)


def read(session: Session, target: list[Any], key: Any) -> Any:
    """``target[key]``."""
    return array.slice_(session, target, key) if isinstance(key, slice) else array.get(session, target, key)


def write(session: Session, target: list[Any], key: Any, value: Any) -> None:
    """``target[key] = value``."""
    if isinstance(key, slice) and key == slice(None) and isinstance(value, (list, tuple)):
        array.replace(session, target, list(value))
        return
    if isinstance(key, slice):
        raise refusal(session, "assignment to a slice")
    array.set_(session, target, key, value)


def to_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of torch with such a list among its arguments: ``stack`` and ``cat`` take one."""
    name = {torch.stack: "aten.stack.default", torch.cat: "aten.cat.default", torch.concat: "aten.cat.default",
            torch.concatenate: "aten.cat.default"}.get(f)  # fmt: skip
    given = dict(zip(("tensors", "dim"), args)) | kwargs
    dim = given.get("dim", given.get("axis", 0))
    if name is None or set(given) - {"tensors", "dim", "axis"} or isinstance(dim, Staged):
        raise refusal(session, getattr(f, "__name__", str(f)))
    return array.join(session, name, given["tensors"], dim)


def holds(values: Any) -> bool:
    """Whether such a list is among the arguments of a call."""
    return any(is_growing(value) or isinstance(value, Growing) for value in values)


def require_none(session: Session, f: Any, values: Any) -> None:
    """Refuse to give such a list, or numbers of the Program, to a function of NumPy's that would take it for data.

    Raises:
        TraceError: D2S253, D2S213.
    """
    if not str(getattr(f, "__module__", None) or "").startswith("numpy") or isinstance(f, numpy.ufunc):
        return
    for value in values:
        if isinstance(value, (list, tuple)) and (is_growing(value) or any(map(is_growing, value))):
            raise refusal(session, getattr(f, "__name__", str(f)))
    if any_staged(values):
        raise session.error(
            f"numpy.{getattr(f, '__name__', f)}() gets a value that is only known while the Program runs",
            hint="Use torch.tensor(), or do it outside the converted function.", code="D2S213")


def refusal(session: Session, what: str) -> Exception:
    """The located error for what such a list cannot do."""
    return session.error(
        f"{what} of a list whose length is only known while the Program runs", code="D2S253",
        hint="Use append, extend, pop, reverse, indexing, slices, len, for, torch.stack or torch.cat.")
