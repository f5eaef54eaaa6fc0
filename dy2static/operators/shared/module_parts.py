"""The parts of a module, where only some paths registered one: ``_modules``, ``_parameters`` and ``_buffers``.

    if x.sum() > 0:
        layers.append(nn.Tanh())        len(layers), layers[-1], layers.children(), "1" in layers._modules

Such a dict holds a stand-in for one of several contents, or, of an attribute that some paths stored, an option that
means "not set", which is made contents (`settle`) before anybody sees the dict. PyTorch's own code can read neither: it
runs once for each of the contents (`per_content`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.python_state.journal import MISSING, Place
from runtime.tracer.recording.session import Session
from runtime.tracer.values import containers
from runtime.tracer.values.choices import distribute
from runtime.tracer.values.containers import several
from runtime.tracer.values.structure import Choice

SLOTS = ("_parameters", "_buffers", "_modules")
_STATE = (*SLOTS, "_keys", "_non_persistent_buffers_set",
          "_forward_pre_hooks", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
          "_forward_pre_hooks_with_kwargs")
"""What PyTorch's own code reads of a module."""


def may_be_open(session: Session) -> bool:
    """Whether there may be such a module in the trace at all."""
    return session.containers.has_contents or session.containers.has_unset


def is_unset(value: Any) -> bool:
    """Whether a value was stored on some of the paths that lead here only."""
    return is_a(value, Choice) and any(option is MISSING for option in value.options)


def is_open(module: torch.nn.Module) -> bool:
    """Whether it depends on the path which parts a module has."""
    return any(_differs(held) for held in _slots(module))


def _slots(module: torch.nn.Module) -> list[Any]:
    space = unasked(module, "__dict__", {})
    found = (space.get(name) for name in _STATE)
    return [held for held in found if is_a(held, (dict, set)) and held]


def _differs(held: Any) -> bool:
    return several(held) is not None or is_a(held, dict) and any(map(is_unset, held.values()))


def inside(root: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """The modules in a module, itself first, with the path to each: on whichever paths they are there."""
    todo: deque[tuple[str, Any]] = deque([("", root)])
    seen: set[int] = set()
    while todo:
        path, value = todo.popleft()
        if is_a(value, Choice):
            todo.extendleft((path, option) for option in reversed(value.options))
        elif is_a(value, torch.nn.Module) and id(value) not in seen:
            seen.add(id(value))
            yield path, value
            todo.extendleft([(f"{path}.{name}" if path else name, one) for name, one in _modules_of(value)][::-1])


def _modules_of(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    todo = [unasked(module, "__dict__", {}).get("_modules")]
    while todo:
        held = todo.pop()
        if is_a(held, dict):
            found = several(held)
            if found is None:
                yield from held.items()
            else:
                todo += reversed(found.options)
        elif held is not None:  # of a scripted module, which keeps its parts elsewhere
            yield from held.items()


def among(values: Iterable[torch.nn.Module]) -> bool:
    """Whether one of some modules is such a module, or has one inside."""
    return any(is_open(one) for value in values for _, one in inside(value))


def settle(session: Session, module: torch.nn.Module) -> None:
    """Make contents of the options that mean "not set", in each of a module's dicts."""
    for held in _slots(module):
        _settle(session, held)


def _settle(session: Session, held: Any) -> None:
    found = several(held)
    if found is not None:
        for one in found.options:
            _settle(session, one)
    elif is_a(held, dict) and any(map(is_unset, held.values())):
        containers.put(session, held, containers.as_content(_split(dict(held))))


def _split(held: dict[str, Any]) -> Any:
    """What a dict holds, as a Choice of dicts in which every item is there; of those, if several are."""
    first = next((value for value in held.values() if is_unset(value)), None)
    if first is None:
        return held
    contents = []
    for number in range(len(first.options)):
        made = {}
        for name, value in held.items():
            if is_a(value, Choice) and value.selector.var is first.selector.var:
                value = value.options[number]
            if value is not MISSING:
                made[name] = value
        contents.append(_split(made))
    return Choice(first.selector, tuple(contents))


def per_content(session: Session, values: list[torch.nn.Module], run: Callable[[], Any]) -> Any:
    """``run()``, once for each of the contents that modules, and those inside, may have: they have it meanwhile."""
    module = next((one for value in values for _, one in inside(value) if is_open(one)), None)
    if module is None:
        return run()
    settle(session, module)
    held = next(filter(_differs, _slots(module)))
    choice = several(held)
    assert choice is not None

    def with_content(option: Any) -> Any:
        session.journal.write(Place("content", held), Place("content", option).get())
        return per_content(session, values, run)

    return distribute(session, choice, with_content, itself=True)


def has_chosen(module: Any, name: str) -> bool:
    """Whether one of several contents of a module's dicts may be where it has an attribute."""
    if not is_a(module, torch.nn.Module) or name in module.__dict__:
        return False
    if any(name in vars(cls) for cls in type(module).__mro__):
        return False
    return any(several(held) is not None for slot in SLOTS if (held := module.__dict__.get(slot)))


def look(
    session: Session, module: torch.nn.Module, name: str, found: Callable[[Any], Any], absent: Callable[[], Any]
) -> Any:
    """``found(value)`` of the part that a module has by a name, as ``nn.Module.__getattr__`` looks for it, or
    ``absent()``: on each path what is so there."""
    settle(session, module)

    def among_slots(slots: tuple[str, ...]) -> Any:
        if not slots:
            return absent()
        held = module.__dict__.get(slots[0]) or {}
        choice = several(held)
        return of_one(held, slots) if choice is None else distribute(session, choice, lambda one: of_one(one, slots))

    def of_one(held: Any, slots: tuple[str, ...]) -> Any:
        return found(held[name]) if name in held else among_slots(slots[1:])

    return among_slots(SLOTS)


def registers(session: Session, module: Any, name: str, *value: Any) -> bool:
    """Whether a store to an attribute of a module, or a deletion, is about its parts, and the journal has these by the
    contents of its dicts: an attribute would be joined beside them."""
    if not may_be_open(session) or not is_a(module, torch.nn.Module):
        return False
    held = [one for slot in SLOTS if is_a(one := module.__dict__.get(slot), dict)]
    noted = session.journal.frames[0]
    if not any(Place("content", one) in noted or several(one) is not None for one in held):
        return False
    first = value[:1] and value[0]
    of_module = is_a(first, (torch.nn.Module, Choice)) or is_a(first, torch.Tensor) and (
        isinstance(first, torch.nn.Parameter) or isinstance(first, torch.nn.Buffer))
    return of_module or any(_may_have(one, name) for one in held)


def _may_have(held: dict[str, Any], name: str) -> bool:
    choice = several(held)
    return name in held if choice is None else any(_may_have(one, name) for one in choice.options)


def note_parts(session: Session, module: torch.nn.Module, name: str) -> None:
    """Call before a store or deletion that is about the parts of a module."""
    for slot in SLOTS:
        session.journal.note_content(module.__dict__[slot])
    if name in module.__dict__:
        session.journal.note_attribute(module, name)


__all__ = [
    "SLOTS", "among", "has_chosen", "inside", "is_open", "is_unset", "look", "may_be_open", "note_parts", "per_content",
    "registers", "settle",
]  # fmt: skip
