"""What torch's functions take, by the schemas of the operators behind them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from runtime.kinds import is_a

_ALIASES = {"axis": "dim", "axes": "dim", "keepdims": "keepdim", "input": "self", "axis0": "dim0", "axis1": "dim1"}
"""Names that torch's Python functions take for NumPy's sake, and what the schemas call them."""


@functools.lru_cache(maxsize=4096)
def _overloads(name: str) -> tuple[Any, ...]:
    packet = getattr(torch.ops.aten, name, None)
    if not is_a(packet, torch._ops.OpOverloadPacket):
        return ()
    return tuple(getattr(packet, overload) for overload in packet.overloads() if not overload.endswith("out"))


def overloads_of(function: Any) -> tuple[Any, ...]:
    """The overloads that a function of torch may call: those of an operator of its name; none if there is no such.

    >>> str(overloads_of(torch.Tensor.transpose)[0])
    'aten.transpose.int'
    """
    if is_a(function, torch._ops.OpOverload):
        return (function,)
    if is_a(function, torch._ops.OpOverloadPacket):
        return tuple(getattr(function, name) for name in function.overloads())
    return _overloads(getattr(function, "__name__", ""))


def types_taken(overloads: Sequence[Any], position: int | str, method: bool = False) -> frozenset[str]:
    """The types, as schemas write them and without ``?``, that an argument may have, by its position or its name.

    A list that stands last may be given item by item: ``x.permute(2, 0, 1)``. ``method``: the function is bound to the
    tensor that schemas call ``self``.

    >>> sorted(types_taken(overloads_of(torch.permute), 1)), sorted(types_taken(overloads_of(torch.sum), "keepdim"))
    (['int[]'], ['bool'])
    """
    found: set[str] = set()
    for overload in overloads:
        arguments = _arguments(overload, method)
        if is_a(position, str):
            names = (position, _ALIASES.get(position, position))
            found |= {_type(one) for one in arguments if one.name in names}
            continue
        places = [one for one in arguments if not one.kwarg_only]
        lists = [index for index, one in enumerate(places) if _type(one) in ("int[]", "SymInt[]")]
        if position < len(places):
            found.add(_type(places[position]))
        elif lists and lists[-1] == len(places) - 1:
            found.add(_type(places[-1]))
    return frozenset(found)


def names_at(overloads: Sequence[Any], position: int | str, method: bool = False) -> frozenset[str]:
    """The names that schemas give an argument."""
    if is_a(position, str):
        return frozenset({_ALIASES.get(position, position)})
    found: set[str] = set()
    for overload in overloads:
        places = [one for one in _arguments(overload, method) if not one.kwarg_only]
        if places:
            found.add(places[min(position, len(places) - 1)].name)
    return frozenset(found)


def _arguments(overload: Any, method: bool) -> list[Any]:
    """What a call gives: all arguments, without the tensor that a method is bound to (``polygamma`` has it second)."""
    arguments = list(overload._schema.arguments)
    own = next((place for place, one in enumerate(arguments) if one.name == "self"), 0)
    return arguments[:own] + arguments[own + 1 :] if method else arguments


def _type(argument: Any) -> str:
    return str(argument.real_type.str()).replace("?", "")


_READ = frozenset({"int", "int[]", "float", "float[]"})


def kernel_numbers(overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """What a call gives where the schema says ``int`` or ``float``: numbers that kernels read when they are called."""
    found = []
    for index, argument in enumerate(overload._schema.arguments):
        if _type(argument) in _READ:
            if argument.name in kwargs:
                found.append(kwargs[argument.name])
            elif index < len(args) and not argument.kwarg_only:
                found.append(args[index])
    return found
