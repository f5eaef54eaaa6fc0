"""Whether two values are the same: types, structure, values, and which objects are one object in both.

>>> difference([1, torch.ones(2)], [1, torch.ones(2)])
''
>>> difference((1.0,), (1,), "result")
'result[0] is a float, and in eager an int'
>>> difference({"a": torch.tensor([1.0, 2.5])}, {"a": torch.tensor([1.0, 2.0])}, "result")
"result['a'] differs by 0.5 (1 of 2 elements; the largest in eager is 2.0)"
"""

from __future__ import annotations

import collections
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

_RTOL = {torch.float16: 1e-3, torch.bfloat16: 1.6e-2, torch.float32: 1.3e-6, torch.complex64: 1.3e-6}
_ATOMS = (int, complex, str, bytes, bool, type(None), torch.dtype, torch.device)
_CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, torch.Generator)
_ASIDE = ("_dy2static_", "_dynamo_", "__weakref")
"""Attributes that say nothing of the value: what conversions and ``torch.compile`` keep with an object."""


class Different(Exception):
    """Two values that are not the same; the message says where and how."""


@dataclass
class Comparison:
    """One walk through pairs of values. ``tolerance``: relative to the largest element; None: the dtype's own."""

    tolerance: float | None = None
    _there: dict[int, int] = field(default_factory=dict)
    _back: dict[int, int] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)

    def compare(self, got: Any, expected: Any, path: str) -> None:
        """Raises Different."""
        if got is expected:
            return
        if type(got) is not type(expected):
            raise Different(f"{path} is {_a(got)}, and in eager {_a(expected)}")
        if isinstance(got, float):
            self._numbers(got, expected, path)
        elif isinstance(got, _ATOMS):
            if got != expected:
                raise Different(f"{path} is {_short(got)}, and in eager {_short(expected)}")
        elif isinstance(got, _CODE) or isinstance(got, Iterator):
            return
        elif isinstance(got, tuple):
            self._items(got, expected, path)
        elif not self._met(got, expected, path):
            self._objects(got, expected, path)

    def _met(self, got: Any, expected: Any, path: str) -> bool:
        here, there = id(got), id(expected)
        if here not in self._there and there not in self._back:
            self._there[here], self._back[there] = there, here
            self._alive += got, expected  # no other object gets their ids
            return False
        if self._there.get(here) != there and isinstance(got, (torch.Tensor, list, dict)):
            raise Different(f"{path} is another object than in eager (one that two places share, or do not)")
        return True

    def _objects(self, got: Any, expected: Any, path: str) -> None:
        if isinstance(got, torch.Tensor):
            self.tensors(got, expected, path)
        elif isinstance(got, (list, collections.deque)):
            self._items(got, expected, path)
        elif isinstance(got, Mapping):
            if list(map(_name, got)) != list(map(_name, expected)):
                raise Different(f"{path} has the keys {_short(list(got))}, and in eager {_short(list(expected))}")
            for key, one, other in zip(got, list(got.values()), list(expected.values())):
                self.compare(one, other, f"{path}[{_name(key)}]")
        elif isinstance(got, np.ndarray):
            if got.dtype != expected.dtype or got.shape != expected.shape or got.dtype != object and not (
                    np.array_equal(got, expected) or np.allclose(got, expected, equal_nan=True)):  # fmt: skip
                raise Different(f"{path} is {_short(got)}, and in eager {_short(expected)}")
        elif isinstance(got, BaseException):
            self._items(got.args, expected.args, f"{path}.args")
        elif isinstance(got, types.MethodType):
            self.compare(got.__self__, expected.__self__, f"{path}.__self__")
        self._attributes(got, expected, path)

    def _attributes(self, got: Any, expected: Any, path: str) -> None:
        if isinstance(got, torch.jit.ScriptModule):
            return self.compare(got.state_dict(), expected.state_dict(), f"{path}.state_dict()")
        if type(got).__module__ in ("torch.nn.modules.module", "torch.utils.hooks"):
            return None  # what stands around a hook: its copy is bare
        mine, theirs = getattr(got, "__dict__", None), getattr(expected, "__dict__", None)
        if not isinstance(mine, dict) or not isinstance(theirs, dict):
            return
        names = [[name for name in one if not str(name).startswith(_ASIDE)] for one in (mine, theirs)]
        if set(names[0]) != set(names[1]):
            odd = sorted(map(str, set(names[0]) ^ set(names[1])))
            raise Different(f"{path} has attributes on one side only: {', '.join(odd)}")
        for name in names[0]:
            self.compare(mine[name], theirs[name], f"{path}.{name}")

    def _items(self, got: Sequence[Any], expected: Sequence[Any], path: str) -> None:
        if isinstance(got, (list, tuple)):  # whatever a class of the user's makes of len()
            cls: Any = tuple if isinstance(got, tuple) else list
            got, expected = list(cls.__iter__(got)), list(cls.__iter__(expected))
        if len(got) != len(expected):
            raise Different(f"{path} has {len(got)} items, and in eager {len(expected)}")
        for index, (item, other) in enumerate(zip(got, expected)):
            self.compare(item, other, f"{path}[{index}]")

    def _numbers(self, got: float, expected: float, path: str) -> None:
        near = abs(got - expected) <= (1e-6 if self.tolerance is None else self.tolerance) * abs(expected)
        if got != expected and not (got != got and expected != expected) and not near:
            raise Different(f"{path} is {got}, and in eager {expected}")

    def tensors(self, got: torch.Tensor, expected: torch.Tensor, path: str) -> None:
        """Raises Different."""
        for fact in ("dtype", "shape", "layout", "device", "requires_grad"):
            seen = getattr(got, fact), getattr(expected, fact)
            if seen[0] != seen[1]:
                raise Different(f"{path} has {fact} {_short(seen[0])}, and in eager {_short(seen[1])}")
        self.values(got, expected, path)
        if got.is_leaf and expected.is_leaf and (got.grad is not None or expected.grad is not None):
            self.compare(got.grad, expected.grad, f"{path}.grad")

    def values(self, got: torch.Tensor, expected: torch.Tensor, path: str) -> None:
        """The elements of two tensors of one dtype and shape. Raises Different."""
        if got.is_meta or got.numel() == 0:
            return
        got, expected = _plain(got), _plain(expected)
        unequal = ~((got == expected) | ((got != got) & (expected != expected)))
        if not unequal.any():
            return
        if got.dtype.is_floating_point or got.dtype.is_complex:
            wide = torch.complex128 if got.dtype.is_complex else torch.float64
            rtol = _RTOL.get(got.dtype, 1e-7) if self.tolerance is None else self.tolerance
            apart = torch.where(unequal, (got.to(wide) - expected.to(wide)).abs(), 0.0)
            largest = float(torch.nan_to_num(expected.to(wide).abs(), 0.0, 0.0, 0.0).max())
            if bool((apart <= rtol * largest).all()):
                return
            how = f"by {float(apart.max()):.6g}"
            scale = f"; the largest in eager is {largest}"
        else:
            how, scale = "in value", ""
        raise Different(f"{path} differs {how} ({int(unequal.sum())} of {unequal.numel()} elements{scale})")


def difference(got: Any, expected: Any, path: str = "result", tolerance: float | None = None) -> str:
    """How two values differ; empty if they do not."""
    try:
        Comparison(tolerance).compare(got, expected, path)
    except Different as found:
        return str(found)
    return ""


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return tensor.resolve_conj().resolve_neg()


def _name(key: Any) -> str:
    plain = isinstance(key, (str, int, float, bool, tuple, frozenset, bytes, type(None)))
    return repr(key) if plain else f"a {type(key).__name__}"


def _a(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


__all__ = ["Comparison", "Different", "difference"]
