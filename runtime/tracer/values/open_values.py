"""Plain values among a call's arguments that change from call to call: inputs of the Program in place of constants.

    f(x, step=3)    template {"x": Slot(0), "step": 3}             a Program for each number that ``step`` ever was
                    template {"x": Slot(0), "step": Open(0, int)}  one Program: ``step`` is an input of it

A number enters as numbers outside the arguments do (``python_state/facts.py``). A text is no input: the Program serves
all texts if nothing of it reads the text, and else the trace is of no use.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runtime.ir import ScalarType
from runtime.tracer.numbers import scalars
from runtime.tracer.python_state.facts import can_be_fact, number_input, number_tensor
from runtime.tracer.values.arguments import Again, Arguments, Container, Open, Path, Slot

if TYPE_CHECKING:
    import torch

    from runtime.tracer.recording.session import Session

Which = tuple[Path, type]
"""A place among the arguments, and the type of the plain value there."""


def can_be_open(value: Any) -> bool:
    """Whether a value can be an input of the Program, or stand for any other that nothing reads.

    >>> can_be_open(3), can_be_open(0.5), can_be_open("a"), can_be_open(True), can_be_open(2**70)
    (True, True, True, False, False)
    """
    return type(value) is str or can_be_fact(value)


def stays_open(value: Any, kind: type) -> bool:
    """Whether a value is another one of the same type that can be open."""
    return type(value) is kind and can_be_open(value)


def plain_values(arguments: Arguments) -> dict[Path, Any]:
    """The values among the arguments that can be open and are not, by their paths; in sets there are none."""
    return dict(_values(arguments.template.items(), ()))


def records(arguments: Arguments) -> dict[Path, Any]:
    """Instances of dataclasses among the arguments that are not taken apart, by their paths."""
    return dict(_records(arguments.template.items(), ()))


def _records(items: Iterable[tuple[Any, Any]], path: Path) -> Iterator[tuple[Path, Any]]:
    for step, value in items:
        if isinstance(value, Container):
            yield from _records(_items(value), (*path, step))
        elif dataclasses.is_dataclass(value) and not isinstance(value, (type, Slot, Again, Open)):
            yield (*path, step), value


def _values(items: Iterable[tuple[Any, Any]], path: Path) -> Iterator[tuple[Path, Any]]:
    for step, value in items:
        if can_be_open(value):
            yield (*path, step), value
        elif isinstance(value, Container):
            yield from _values(_items(value), (*path, step))


def _items(node: Container) -> Iterable[tuple[Any, Any]]:
    if node.keys is not None:
        return zip(node.keys, node.items)
    return () if node.kind is set else enumerate(node.items)


def opened(arguments: Arguments, which: Collection[Which]) -> Arguments:
    """The arguments with some of their plain values open: those in ``which`` that there are. Themselves, if none is."""
    found: dict[Path, Any] = {}

    def take(value: Any, path: Path) -> Any:
        if isinstance(value, Container):
            if value.kind is set:
                return value
            items = tuple(take(item, (*path, step)) for step, item in _items(value))
            return value if all(map(operator.is_, items, value.items)) else replace(value, items=items)
        if (path, type(value)) not in which or not can_be_open(value):
            return value
        found[path] = value
        return Open(len(found) - 1, type(value))

    template = {name: take(value, (name,)) for name, value in arguments.template.items()}
    return replace(arguments, template=template, opened=found) if found else arguments


def label(path: Path) -> str:
    """What a user would write for a place.

    >>> label(("options", "lr")), label(("steps", 0))
    ("options['lr']", 'steps[0]')
    """
    name, *steps = path
    return str(name) + "".join(f"[{step!r}]" for step in steps)


def enter(session: Session, arguments: Arguments) -> list[Any]:
    """The staged values that stand for open ones in a trace; numbers become inputs of the Program."""
    found: list[Any] = []
    for path, value in arguments.opened.items():
        if type(value) is str:
            found.append(scalars.wrap(session.new_variable(ScalarType("str"), label(path), session.root())))
        else:
            found.append(number_input(session, value, label(path)))
    return found


def tensors(arguments: Arguments) -> list[torch.Tensor]:
    """The inputs of a Program for the open numbers of a call, in their order."""
    return [number_tensor(value) for value in arguments.opened.values() if type(value) is not str]


class CannotBeOpen(Exception):  # noqa: N818  # a signal between the trace and who asked for it
    """A trace needs a value that was open: it has to be made again, with the value fixed."""


def require_no_whole(arguments: Arguments, whole: Set[int]) -> None:
    """Raises CannotBeOpen if a container stays the caller's own: its numbers are what they are."""
    if whole and arguments.opened:
        raise CannotBeOpen


def require_unread(session: Session, values: list[Any]) -> None:
    """Raises CannotBeOpen if the Program reads a text that has no value when it runs."""
    texts = {one.var for one in values if one.kind == "str"}
    if texts and any(used in texts for used in session.program.block.captures()):
        raise CannotBeOpen


__all__ = [
    "CannotBeOpen", "Which", "can_be_open", "enter", "label", "opened", "plain_values", "records",
    "require_no_whole", "require_unread", "stays_open", "tensors",
]  # fmt: skip
