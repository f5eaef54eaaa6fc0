"""What stands in a container while tracing for items that only the run knows: Python may ask it nothing.

Our operators look for these by their class. Everything else that Python can do with an object raises a located error,
also where a default of Python's would answer: hash, ``==``, truth.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

from runtime.tracer.ambient import state

_OPERATORS = (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or",
    "xor",
)  # fmt: skip
PROTOCOL = (
    *_OPERATORS, *(f"r{name}" for name in _OPERATORS), *(f"i{name}" for name in _OPERATORS if name != "divmod"),
    "lt", "le", "gt", "ge", "eq", "ne", "hash", "bool", "len", "length_hint", "iter", "reversed", "next", "contains",
    "getitem", "setitem", "delitem", "call", "index", "int", "float", "complex", "str", "format", "bytes", "fspath",
    "neg", "pos", "abs", "invert", "round", "trunc", "floor", "ceil", "reduce", "reduce_ex", "copy", "deepcopy",
    "array", "enter", "await", "aiter", "anext", "aenter",
)  # fmt: skip
"""The methods, without underscores, by which Python and its libraries ask an object for something."""


class Poison:
    """A stand-in of which every method that Python asks for raises."""

    __slots__ = ()
    text = "<known while the Program runs>"
    whatever_it_is = False
    """Whether it stands in a list whose content is no matter: guards compare the list by identity."""

    def refuse(self, *args: Any) -> NoReturn:
        """What an operation on it raises.

        Raises:
            TraceError: each class says which.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        if state.active() is not None:  # the text of what holds it
            self.refuse()
        return self.text

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # Python and torch ask any object for these
            raise AttributeError(name)
        self.refuse()


def _method(name: str) -> Any:
    def method(self: Poison, *args: Any) -> NoReturn:
        self.refuse()

    method.__name__ = method.__qualname__ = name
    return method


for _name in PROTOCOL:
    setattr(Poison, f"__{_name}__", _method(f"__{_name}__"))
del _name


class Key(Poison):
    """A stand-in that may be a dict's key, or in a set: for the tracer it has a hash, and is equal to itself."""

    __slots__ = ()

    def __hash__(self) -> int:
        if not _answering.depth:
            self.refuse()
        return id(self)

    def __eq__(self, other: object) -> bool:
        if not _answering.depth:
            self.refuse()
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class _Answering(threading.local):
    depth = 0
    """How many blocks of ``keys_answer`` run."""


_answering = _Answering()


@contextlib.contextmanager
def keys_answer() -> Iterator[None]:
    """While the block runs, the tracer stores what may be a ``Key``, looks it up or compares it."""
    _answering.depth += 1
    try:
        yield
    finally:
        _answering.depth -= 1


__all__ = ["PROTOCOL", "Key", "Poison", "keys_answer"]
