"""Every name of ``torch.Tensor``, read and called without arguments, of tensors of all kinds at all places.

A *kind* is what the tensor is (a matrix, an empty one, a complex one, one that needs a gradient), a *place* is where
the converted function has it from (an argument, a parameter, a result, a view, an ``if``). A *use* is what the function
does with the name. ``outcome`` runs one of each converted and not, and says whether the two agree in everything that
can be seen of what comes back, of the argument, and of the tensors outside.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

import dy2static
from tests.oracle import same

NAMES = tuple(dir(torch.Tensor))


class Holder:
    """The tensors outside, made anew for each run."""

    weight: Any = None
    tensor: Any = None


def argument(x: Any) -> Any:
    return x


def result(x: Any) -> Any:
    return x.clone()


def view(x: Any) -> Any:
    return x[...]


def view_of_result(x: Any) -> Any:
    return x.clone()[...]


def parameter(x: Any) -> Any:
    return Holder.weight


def outside(x: Any) -> Any:
    return Holder.tensor


def joined(x: Any) -> Any:
    if (x == x).any():
        t = x.clone()
    else:
        t = x.mul(1)
    return t


PLACES = (argument, result, view, view_of_result, parameter, outside, joined)

_MATRIX = torch.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]])
_SQUARE = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
KINDS: dict[str, Callable[[], torch.Tensor]] = {
    "matrix": lambda: _MATRIX.clone(),
    "matrix_with_gradient": lambda: _MATRIX.clone().requires_grad_(),
    "square": lambda: _SQUARE.clone(),
    "square_with_gradient": lambda: _SQUARE.clone().requires_grad_(),
    "vector": lambda: _MATRIX[1].clone(),
    "integers": lambda: torch.tensor([3, 0, 2]),
    "integer_matrix": lambda: torch.tensor([[1, 2, 3], [4, 5, 0]]),
    "complex": lambda: torch.complex(_SQUARE, _SQUARE.flip(0)),
    "complex_with_gradient": lambda: torch.complex(_SQUARE, _SQUARE.flip(0)).requires_grad_(),
    "booleans": lambda: torch.tensor([[True, False], [True, True]]),
    "number": lambda: torch.tensor(1.5),
    "number_with_gradient": lambda: torch.tensor(1.5, requires_grad=True),
    "integer": lambda: torch.tensor(3),
    "boolean": lambda: torch.tensor(True),
    "half": lambda: _MATRIX.to(torch.float16),
    "empty": lambda: torch.empty(0, 3),
    "strided": lambda: _MATRIX.clone().t(),
}

_SOURCES = {
    "read": "t.{name}\n    return t, v",
    "ask": "t.{name}\n    same = isinstance(v, torch.Tensor) and v is t.{name}\n"
           "    return v is t, v is x, v is None, type(v), same, hasattr(t, '{name}'), callable(v)",
    "call": "t.{name}()\n    return t, v",
    "ask_call": "t.{name}()\n    return v is t, v is x, v is None, type(v)",
}
USES = tuple(_SOURCES)


def use_of(use: str, name: str) -> Any:
    """The function that does one thing with one name."""
    source = f"def {use}_{name}(x, place):\n    t = place(x)\n    v = {_SOURCES[use].format(name=name)}\n"
    path = f"<{use} {name}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    names: dict[str, Any] = {"torch": torch}
    exec(compile(source, path, "exec"), names)
    return names[f"{use}_{name}"]


def _pairs() -> list[tuple[Any, str]]:
    """Every kind at the first two places, some kinds at the others."""
    found = [(place, kind) for place in PLACES[:2] for kind in KINDS]
    found += [(place, kind) for place in PLACES[2:] for kind in ("matrix", "square_with_gradient", "complex", "empty")]
    return [*found, *((place, "integer_matrix") for place in PLACES[2:] if place is not parameter)]


def cases() -> Iterator[tuple[str, str, Any, str]]:
    """Use, name, place and kind: every call, and of what is not called an eighth of the places and kinds each."""
    pairs = _pairs()
    for number, name in enumerate(NAMES):
        method = callable(getattr(torch.Tensor, name, None))
        for use in USES if method else USES[:2]:
            for place, kind in pairs if use == "call" else pairs[number % 8 :: 8]:
                if (use, name) not in _KNOWN:
                    yield use, name, place, kind


_KNOWN = {
    ("call", "__hash__"): "is the id of an object, another one in each run",
    ("call", "to_sparse_csr"): "its error for another rank speaks of sizes that depend on the values",
    ("call", "_to_sparse_csr"): "as to_sparse_csr",
    ("ask_call", "to_sparse_csr"): "as when it is called",
    ("ask_call", "_to_sparse_csr"): "as when it is called",
}
"""What eager does not say twice itself, or says of values, and why."""


def outcome(function: Any, place: Any, kind: str) -> str:
    """``equal``, ``raises`` where both raise the same, the code of a refusal, or what is different."""
    try:
        expected = _run(function, place, kind)
        got = _run(dy2static.to_static(function), place, kind)
        if isinstance(got, dy2static.Dy2StaticError):
            if not got.code or got.code == "D2S290" or got.location is None:
                return f"different: {got.code} at {got.location}: {got}"
            return str(got.code)
        if isinstance(expected, Exception) or isinstance(got, Exception):
            assert _said(expected) == _said(got), f"eager {_said(expected)}, converted {_said(got)}"
            return "raises"
        same(got, expected, strides=True)
    except AssertionError as error:
        return "different: " + " ".join(str(error).split())
    return "equal"


def _said(value: Any) -> str:
    """Type and first line of an exception. Python chooses between ``TensorBase.apply_``, ``Tensor.apply_`` and
    ``Parameter.apply_``."""
    if not isinstance(value, Exception):
        return "a result"
    text = re.sub(r"\b(TensorBase|Parameter)\.", "Tensor.", str(value).partition(chr(10))[0])
    return f"{type(value).__name__}: {text}"


def _run(function: Any, place: Any, kind: str) -> Any:
    """What comes back, or is raised, and the tensors that it may have changed."""
    torch.manual_seed(0)
    x = KINDS[kind]()
    Holder.tensor = KINDS[kind]()
    Holder.weight = None
    if place is parameter:
        Holder.weight = torch.nn.Parameter(KINDS[kind]().detach(), requires_grad=x.requires_grad)
    try:
        value = function(x, place)
    except Exception as error:  # whatever eager raises is what is compared
        return error
    return value, x, Holder.weight, Holder.tensor, torch.rand(())
