"""Grad mode and autocast: which Operators run under which switch.

"inherit" and None mean the modes of the Program's caller, however deep in branches and loops the Operator stands. So
control flow runs in the caller's modes, and only the Operators inside are put under a switch; a branch or loop whose
Operators all want the same switch is put under it as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ir import Operator
from runtime.ir.definition import definition_of
from runtime.ir.flow import Kind
from runtime.ir.operator import GradMode

Autocast = tuple[tuple[str, bool, str], ...]
Switch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Modes:
    """Grad mode and autocast state; "inherit" and None: whatever they are when the generated function is called."""

    grad: GradMode = "inherit"
    autocast: Autocast | None = None
    settings: torch_internals.Settings = ()
    """What differs from the caller's (``torch_internals.settings``)."""

    def switch(self, root: Modes) -> Switch:
        """What to enter to get from the caller's modes to these."""
        parts: list[Switch] = [partial(_autocast, *one) for one in self.autocast or ()]
        if self.grad != root.grad:
            parts.append(torch.no_grad if self.grad == "off" else torch.enable_grad)
        if self.settings:
            parts.append(partial(torch_internals.under_settings, self.settings))
        return parts[0] if len(parts) == 1 else partial(_enter_all, tuple(parts))


def dtype_of(name: str) -> torch.dtype:
    """The dtype called ``torch.float16`` or ``float16``."""
    found = getattr(torch, name.removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{name!r} is no dtype")
    return found


def _autocast(device: str, enabled: bool, dtype: str) -> AbstractContextManager[Any]:
    """Without the cache of casts: gradients of a tensor's uses are added in its own precision, on every road."""
    return torch.autocast(device, dtype=dtype_of(dtype), enabled=enabled, cache_enabled=False)


def _enter_all(parts: tuple[Switch, ...]) -> AbstractContextManager[Any]:
    stack = ExitStack()
    try:
        for part in parts:
            stack.enter_context(part())
    except BaseException:
        stack.close()
        raise
    return stack


def _settings(op: Operator) -> torch_internals.Settings:
    """The settings that an Operator names.

    Raises:
        ProgramError: There is no such setting, or it has another type (a file may hold anything).
    """
    found = op.attrs.get("settings", ())
    if not all(isinstance(one, tuple) and len(one) == 2 and torch_internals.is_setting(*one) for one in found):
        raise ProgramError(f"{op.name}: {found!r} are no settings of PyTorch's", location=op.location)
    return tuple(found)


class ModeMap:
    """The modes that each Operator of a Program wants. ``root`` are those of the caller, as far as they are known."""

    def __init__(self, root: Modes) -> None:
        self.root = root
        self.known: dict[int, Modes | None] = {}

    def wanted(self, op: Operator) -> Modes | None:
        """The modes an Operator must run in; None if it computes the same in all."""
        if id(op) not in self.known:
            self.known[id(op)] = self._find(op)
        return self.known[id(op)]

    def _find(self, op: Operator) -> Modes | None:
        definition = definition_of(op.name)
        if definition.neutral:
            return None
        if definition.flow.kind not in (Kind.PLAIN, Kind.FUNCTION):
            inside = {self.wanted(inner) for block in op.blocks for inner in block.ops} - {None}
            return None if not inside else inside.pop() if len(inside) == 1 else self.root
        grad = self.root.grad if op.grad_mode == "inherit" else op.grad_mode
        return Modes(grad, op.autocast, _settings(op))

    def regions(self, ops: Iterable[Operator], current: Modes) -> Iterator[tuple[Modes, list[Operator]]]:
        """Consecutive Operators under one switch. ``current`` are the modes that hold already."""
        modes, region = current, list[Operator]()
        for op in ops:
            wanted = self.wanted(op) or modes
            if wanted != modes and region:
                yield modes, region
                region = []
            modes = wanted
            region.append(op)
        if region:
            yield modes, region
