"""Where a module keeps an attribute: in one of its dicts of tensors and modules, or among its own."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked

_SLOTS = ("_parameters", "_buffers", "_modules")
_taken_out: WeakIdKeyDictionary = WeakIdKeyDictionary()
"""Of modules: which of their dicts attributes were taken out of last, by name. What is put back under that name belongs
there; what it is does not tell (``object.__setattr__`` keeps a module out of them)."""


def _registered(owner: Any, name: str) -> str | None:
    """Which dict of a module's has a tensor or module by that name."""
    if is_a(owner, torch.nn.Module):
        space = unasked(owner, "__dict__")  # empty before Module.__init__ ran
        for slot in _SLOTS:
            if name in (space.get(slot) or ()):
                return slot
    return None


def hides(owner: Any, name: str) -> bool:
    """Whether a module has an attribute of its own by the name of a tensor or module that it has registered."""
    return is_a(owner, torch.nn.Module) and name in unasked(owner, "__dict__") and _registered(owner, name) is not None


def found_in(owner: Any, name: str) -> dict[str, Any] | None:
    """The dict in which Python finds an attribute of a module; it asks the module's own attributes first."""
    slot = None if name in unasked(owner, "__dict__", ()) else _registered(owner, name)
    return None if slot is None else unasked(owner, "__dict__")[slot]


def take_out(owner: torch.nn.Module, name: str) -> None:
    """Delete an attribute from the dict that has it; what is put back goes there again."""
    slot = _registered(owner, name)
    assert slot is not None
    del unasked(owner, "__dict__")[slot][name]
    _taken_out.setdefault(owner, {})[name] = slot


def take_own(owner: Any, name: str) -> None:
    """Delete an attribute of an object's own; what is put back is one again."""
    del unasked(owner, "__dict__")[name]
    if is_a(owner, torch.nn.Module):
        _taken_out.get(owner, {}).pop(name, None)


def to_fill(owner: Any, name: str) -> dict[str, Any] | None:
    """The dict in which a module keeps what is stored to an attribute of it; None for one of its own."""
    slot = found_in(owner, name)
    if slot is None and is_a(owner, torch.nn.Module) and name not in unasked(owner, "__dict__"):
        kept = _taken_out.get(owner, {}).get(name)
        slot = None if kept is None else unasked(owner, "__dict__").get(kept)
    return slot


__all__ = ["found_in", "hides", "take_out", "take_own", "to_fill"]
