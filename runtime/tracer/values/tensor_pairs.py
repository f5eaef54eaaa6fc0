"""The tensors of a value beside those of what was built for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.values import structure


def _carries(joined: torch.Tensor, inside: Any) -> bool:
    """Whether a joined tensor can be what carries a path's: of several options, those of another dtype cannot."""
    if not is_a(inside, torch.Tensor):
        return False
    return (joined.dtype, joined.dim(), joined.device) == (inside.dtype, inside.dim(), inside.device)


def tensor_pairs(inside: Any, joined: Any, item: structure.Structure) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Tensors of a path's value beside the joined tensors that carry them."""
    if is_a(item, structure.Tensor):
        return [(inside, joined)] if is_a(joined, torch.Tensor) and _carries(joined, inside) else []
    if is_a(item, structure.Sequence):
        if type(inside) is not item.kind or type(joined) is not item.kind:
            return []
        mine, theirs = list(inside), list(joined)  # type: ignore[call-overload]
        return [pair for a, b, i in zip(mine, theirs, item.items) for pair in tensor_pairs(a, b, i)]
    if is_a(item, structure.Fields):
        if type(inside) is not item.cls or type(joined) is not item.cls:
            return []
        a, b = structure.field_items(inside), structure.field_items(joined)
        if a is None or b is None:  # a method of an object that is none of the structures
            return []
        return [pair for x, y, i in zip(a[1], b[1], item.items) for pair in tensor_pairs(x, y, i)]
    if is_a(item, structure.Options) and is_a(joined, structure.Choice):
        targets = list(zip(joined.options, item.options))
        pairs = ((option, target, i) for option in _options(inside) for target, i in targets if _may_be(option, i))
        return [pair for option, target, i in pairs for pair in tensor_pairs(option, target, i)]
    return []


def _options(value: Any) -> Iterator[Any]:
    """What one of several may be; some of these may be one of several in turn."""
    if is_a(value, structure.Choice):
        for option in value.options:
            yield from _options(option)
    else:
        yield value


def _may_be(value: Any, option: structure.Structure) -> bool:
    """Whether one of several structures can be the one that a value goes to: others hold nothing there.

    It may say so of too many: tensors of another dtype are cast, and whether a number fits is not asked.
    """
    if is_a(option, structure.Tensor):
        return is_a(value, (torch.Tensor, Staged, int, float, complex))
    if is_a(option, structure.Sequence):
        if type(value) is not option.kind or len(value) != len(option.items):  # type: ignore[arg-type]
            return False
        return all(map(_may_be, value, option.items))  # type: ignore[call-overload]
    if is_a(option, structure.Fields):
        fields = structure.field_items(value) if type(value) is option.cls else None
        if fields is None or not structure.same_keys(fields[0], option.keys):
            return False
        return all(map(_may_be, fields[1], option.items))
    if is_a(option, structure.Known) and structure.is_plain(option.value):
        return structure.same_known(value, option.value)
    return True
