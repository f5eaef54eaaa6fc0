"""How PyTorch's own ONNX exporter writes one ATen operator: its table of converters, and calls of them.

A converter is a Python function that, when it is called, has its nodes recorded.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from runtime.kinds import is_a

LOWEST_OPSET, HIGHEST_OPSET = 18, 23
"""The opsets that the converters know."""


@dataclass(frozen=True)
class Converted:
    """What a converter made: values, or one sequence; the nodes in order; functions of the model's that nodes call."""

    results: Any
    nodes: Sequence[Any]
    functions: Mapping[Any, Any]


class NoConversion(Exception):
    """A converter does not take these arguments."""


class OnnxConverters:
    """PyTorch's converters for one opset.

    Errors raised: ImportError where the packages onnx, onnx_ir or onnxscript are not installed.
    """

    def __init__(self, opset_version: int) -> None:
        with _quiet():
            import onnxscript
            from torch.onnx._internal.exporter import _building, _tensors

            self._registry = _registry(opset_version)
        self._recorder: Any = _building.OpRecorder
        self._tensors, self._evaluator = _tensors, onnxscript.evaluator
        self._opset = onnxscript.values.Opset("", opset_version)

    def new_value(self, name: str | None = None, type: Any = None, shape: Any = None) -> Any:
        """A value as converters take them."""
        return self._tensors.SymbolicTensor(self._opset, name=name, type=type, shape=shape)

    def find(self, overload: Any) -> Callable[..., Any] | None:
        """The converter of an overload for real numbers."""
        found = [one for one in self._registry.get_decomps(overload) if not one.is_complex]
        return found[0].onnx_function if found else None

    def names(self) -> list[str]:
        """The overloads that have converters: ``"aten::add.Tensor"``."""
        return sorted(name for name, found in self._registry.functions.items()
                      if is_a(name, str) and any(not one.is_complex for one in found))  # fmt: skip

    def call(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Converted:
        """Call a converter. Errors raised: NoConversion."""
        recorder: Any = self._recorder(self._opset, {})
        with _quiet(), self._evaluator.default_as(recorder):
            try:
                results = function(*args, **kwargs)
            except Exception as error:
                while error.__cause__ is not None and is_a(error.__cause__, Exception):
                    error = error.__cause__
                raise NoConversion(str(error).split("\n")[0][:200]) from None
        return Converted(results, recorder.nodes, recorder.functions)


@functools.cache
def _registry(opset_version: int) -> Any:
    """PyTorch's table for one opset, which takes seconds to fill."""
    from torch.onnx._internal.exporter import _registration

    return _registration.ONNXRegistry.from_torchlib(opset_version)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what these modules log and warn of while they are loaded."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx._internal.exporter", "onnx_ir")]
    before = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for one, level in zip(loggers, before):
            one.setLevel(level)


__all__ = ["HIGHEST_OPSET", "LOWEST_OPSET", "Converted", "NoConversion", "OnnxConverters"]
