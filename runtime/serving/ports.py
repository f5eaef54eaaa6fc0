"""What goes into a Predictor and comes out of it, by name: a request is held against it before anything runs.

    x : float32 [s0, 3], y : float32 [s0]     {"x": ..., "y": ...}  ->  the Program's inputs, in order
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy
import torch

from runtime.errors import SignatureError, StorageError
from runtime.export.results import outputs_of, plain_name
from runtime.ir import Program, TensorType
from runtime.ir.assume import check
from runtime.ir.types import Dim
from runtime.ops import host_numpy

Request = Mapping[str, Any]


@dataclass(frozen=True)
class Input:
    """A tensor that every request holds. ``shape``: sizes; a text is a size that requests choose, one size a text."""

    name: str
    dtype: torch.dtype
    shape: tuple[Dim, ...]


@dataclass(frozen=True)
class Output:
    """A value that every answer holds: the yield at ``index``."""

    name: str
    index: int


class Ports:
    """The inputs and outputs of a Program."""

    def __init__(self, program: Program) -> None:
        taken: set[str] = set()
        self.inputs = tuple(_input(one.var.type, plain_name(one.name, taken), one.name) for one in program.inputs)
        self.outputs = tuple(Output(one.name, one.index) for one in outputs_of(program, "a Predictor", "D2S561"))
        self._assumes = program.assumes
        self._names = {one.name: port.name for one, port in zip(program.inputs, self.inputs)}
        self._places = {one.name: place for place, one in enumerate(program.inputs)}
        self._wanted = frozenset(one.name for one in self.inputs)

    def take(self, request: Request) -> list[torch.Tensor]:
        """The tensors of a request, in order; arrays become tensors.

        Errors raised: SignatureError that names the input: missing or unknown (D2S305), no tensor (D2S305), another
        number of dimensions (D2S302), dtype (D2S303) or size (D2S304), sizes that the Program is not for (D2S308).
        """
        if not isinstance(request, Mapping):
            _fail(f"a request is a mapping from names to tensors, not {type(request).__name__}", "D2S305",
                  self._told())  # fmt: skip
        if request.keys() != self._wanted:
            for name in request:
                if name not in self._wanted:
                    _fail(f"there is no input {name!r}", "D2S305", self._told())
            missing = [one.name for one in self.inputs if one.name not in request]
            _fail(f"input '{missing[0]}' is missing", "D2S305", self._told())
        sizes: dict[str, int] = {}
        where: dict[str, str] = {}
        found = []
        for port in self.inputs:
            tensor = _tensor(port, request[port.name])
            found.append(tensor)
            for dim, (size, wanted) in enumerate(zip(tensor.shape, port.shape)):
                if isinstance(wanted, str):
                    first = sizes.setdefault(wanted, size)
                    place = where.setdefault(wanted, f"that of '{port.name}' in dimension {dim}")
                    if first != size:
                        _size(port, dim, size, f"{place} is {first}")
                elif size != wanted:
                    _size(port, dim, size, f"{wanted} is needed")
        self.require_assumptions(found)
        return found

    def require_assumptions(self, tensors: Sequence[torch.Tensor]) -> None:
        """Errors raised: SignatureError (D2S308) for sizes that the Program is not for."""
        for assume in self._assumes:
            given = {symbol: tensors[self._places[name]].shape[dim] for symbol, (name, dim) in assume.symbols.items()}
            if not check(assume, given):
                told = ", ".join(f"'{self._names[name]}' has size {given[symbol]} in dimension {dim}"
                                 for symbol, (name, dim) in assume.symbols.items())  # fmt: skip
                words = {symbol: f"{self._names[name]}.shape[{dim}]" for symbol, (name, dim) in assume.symbols.items()}
                _fail(f"input {told}, but the model needs {_spelled(assume.expr, words)}", "D2S308",
                      "It was saved for such sizes only.")  # fmt: skip

    def _told(self) -> str:
        return f"The inputs are: {', '.join(one.name for one in self.inputs)}."


def _spelled(expr: str, words: Mapping[str, str]) -> str:
    for symbol, word in words.items():
        expr = expr.replace(symbol, word)
    return expr


def _input(type_: Any, name: str, said: str) -> Input:
    if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None:
        raise StorageError(
            f"'{said}' cannot be an input of a Predictor: its dtype or number of dimensions is not known",
            hint="Save it for tensors of a known dtype and number of dimensions.", code="D2S561")  # fmt: skip
    return Input(name, type_.dtype, type_.shape)


def _tensor(port: Input, given: Any) -> torch.Tensor:
    if isinstance(given, numpy.ndarray):
        try:
            given = host_numpy.to_tensor(given)
        except TypeError:
            _fail(f"input '{port.name}' is an array of {given.dtype}", "D2S303", f"Give {_spell(port.dtype)}.")
    if not isinstance(given, torch.Tensor):
        _fail(f"input '{port.name}' is {type(given).__name__}, not a tensor or array", "D2S305",
              f"Give a tensor of {_spell(port.dtype)}.")  # fmt: skip
    if given.dtype != port.dtype:
        _fail(f"input '{port.name}' has dtype {_spell(given.dtype)}, but {_spell(port.dtype)} is needed", "D2S303",
              f"Convert it: .to(torch.{_spell(port.dtype)}).")  # fmt: skip
    if given.dim() != len(port.shape):
        _fail(f"input '{port.name}' has {given.dim()} dimensions, but {len(port.shape)} are needed", "D2S302",
              _sizes(port))  # fmt: skip
    return given


def _sizes(port: Input) -> str:
    return f"Its sizes are [{', '.join('any' if isinstance(dim, str) else str(dim) for dim in port.shape)}]."


def _spell(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _size(port: Input, dim: int, size: int, wanted: str) -> NoReturn:
    _fail(f"input '{port.name}' has size {size} in dimension {dim}, but {wanted}", "D2S304",
          _sizes(port))  # fmt: skip


def _fail(problem: str, code: str, hint: str) -> NoReturn:
    raise SignatureError(problem, hint=hint, code=code)


def require_names(given: Sequence[str], known: Sequence[str]) -> None:
    """Errors raised: SignatureError (D2S305) for the name of an output that there is not."""
    for name in given:
        if name not in known:
            _fail(f"there is no output {name!r}", "D2S305", f"The outputs are: {', '.join(known)}.")


__all__ = ["Input", "Output", "Ports", "Request", "require_names"]
