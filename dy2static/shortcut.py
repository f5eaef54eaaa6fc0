"""The short way from a call to its Program: one generated check on the arguments as they come, then the run.

Made for a Program that has been found several times the long way (key, sizes, guards), for calls with tensors and plain
values in their places. It holds only where the long way would find the same Program; what it refuses goes the long way.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dy2static import settings
from dy2static.cache_key import sharing
from dy2static.signature import Signature
from dy2static.specialization import PASSED, Specialization, layout_key
from runtime import torch_internals
from runtime.calling import build_tree
from runtime.ir.template import TensorSlot
from runtime.ir.tree import Leaf
from runtime.tracer.ambient import state
from runtime.tracer.boundary.tracing import Traced
from runtime.tracer.memory.hung import same
from runtime.tracer.python_state.guard_code import Check, CheckWriter
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.values import open_values
from runtime.tracer.values.arguments import Arguments, flatten
from runtime.tracer.values.open_values import numbers_of

MADE_AT = (3, 24, 192)
"""How often a Program is found the long way until a shortcut is made, and made anew if it does not help."""
KEPT = 4

Run = Callable[[tuple[Any, ...], "tuple[torch.Tensor, ...]"], Any]


class Shortcut:
    """For calls with ``count`` arguments: ``check(*args)`` gives the Program's inputs and parameters, or None."""

    __slots__ = ("check", "count", "found", "run")

    def __init__(self, count: int, check: Check, run: Run, found: Specialization) -> None:
        self.count = count
        self.check = check
        self.run = run
        self.found = found


def make(found: Specialization, signature: Signature, args: Sequence[Any], arguments: Arguments) -> Shortcut | None:
    """The shortcut for calls like ``args``, which ``found`` has just answered; None if they are not simple enough."""
    names, values = list(arguments.template), list(arguments.template.values())
    if len(args) > len(values) or not signature.is_plain:
        return None
    if not all(isinstance(value, TensorSlot) or is_plain(value) for value in values):
        return None
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    if list(map(id, tensors)) != list(map(id, arguments.tensors)):  # one in two places, or a default
        return None
    writer = CheckWriter([f"x{index}" for index in range(len(args))])
    tests = torch_internals.state_tests()
    if tests is None:
        return None
    writer.require(f"{writer.bind(settings.is_enabled)}() and {writer.bind(state.active)}() is None")
    for function, given, value in tests:
        writer.require(f"{writer.bind(function)}({', '.join(map(repr, given))}) is {writer.bind(value)}")
    if len(args) < len(values):
        for name in ("__defaults__", "__kwdefaults__"):
            now = getattr(signature.function, name)
            writer.require(f"{writer.bind(signature.function)}.{name} is {writer.bind(now)}")
    inputs = []
    for index, value in enumerate(values[: len(args)]):
        if isinstance(value, TensorSlot):
            inputs.append(writer.tensor(f"x{index}", arguments.tensors[value.index], found.sizes[value.index]))
        elif ((names[index],), type(value)) in found.open:
            writer.require(f"{writer.bind(open_values.stays_open)}(x{index}, {writer.bind(type(value))})")
        else:
            writer.like(f"x{index}", value)
    for local in inputs:
        writer.give(local)
    for guard in found.traced.guards:
        writer.guard(guard)
    for read in found.reads:
        writer.give(read.write(writer))
    check = writer.finish(_conditions(found, writer, inputs, arguments))
    if check is None:
        return None
    exact = all(None not in sizes for sizes in found.sizes)
    return Shortcut(len(args), check, _run(found, signature, arguments, exact), found)


def _conditions(found: Specialization, writer: CheckWriter, inputs: list[str], arguments: Arguments) -> list[str]:
    """What is left to check of the tensors: layouts where sizes are free, shared memory, assumptions about sizes."""
    conditions = [f"{inputs[position]}.is_leaf is {leaf}" for position, leaf in found.traced.leaves.items()]
    for position, questions in found.traced.asked.items():
        for _, question, answer in questions:
            now = f"{writer.bind(question)}({inputs[position]})"
            conditions.append(f"{writer.bind(same)}({now}, {writer.bind(answer)})")
    for local, sizes, layout in zip(inputs, found.sizes, found.layouts):
        if None in sizes:
            conditions.append(f"{writer.bind(layout_key)}({local}, {writer.bind(sizes)}) == {writer.bind(layout)}")
    every = f"[{', '.join(inputs)}]"
    if len(inputs) > 1:
        shared = sharing(arguments.tensors)
        if shared:
            conditions.append(f"{writer.bind(sharing)}({every}) == {writer.bind(shared)}")
        else:
            conditions.append(_apart(writer, dict(zip(inputs, arguments.tensors))))
    if found.traced.program.writes:
        tensors = [*arguments.tensors, *found.tensors()]
        if not found.sharing and len(writer.given) == len(tensors):
            conditions.append(_apart(writer, dict(zip(writer.given, tensors))))
        else:
            everything = f"[{', '.join(writer.given)}]"
            conditions.append(f"{writer.bind(sharing)}({everything}) == {writer.bind(found.sharing)}")
    if found.assumes:
        conditions.append(f"{writer.bind(found.broken_assumption_of)}({every}) is None")
    return conditions


def _apart(writer: CheckWriter, tensors: dict[str, torch.Tensor]) -> str:
    """The condition that tensors, by local, have each a memory of its own. That they are of their classes and have the
    layouts they have now is checked before."""
    slow = writer.bind(torch_internals.storage_identity)
    asked = {
        local: f"{local}.untyped_storage()._cdata" if torch_internals.tells_its_memory(tensor) else f"{slow}({local})"
        for local, tensor in tensors.items() if tensor.layout is torch.strided
    }  # fmt: skip
    return f"len({{{', '.join(asked.values())}}}) == {len(asked)}" if len(asked) > 1 else "True"


def _run(found: Specialization, signature: Signature, arguments: Arguments, exact: bool) -> Run:
    """What runs the Program, decided once: how gradients are computed, and how the result is built."""
    count = len(arguments.tensors)
    ready = found.ready
    assert ready is not None
    direct = ready.only_results and exact
    if direct and found.open:
        return _run_with_numbers(found, arguments)
    if not direct:
        def whole(args: tuple[Any, ...], tensors: tuple[torch.Tensor, ...]) -> Any:
            return ready.call(found.opened(flatten(signature.bind(args, {}))), list(tensors[count:]))

        return whole
    execute = ready.runner.settled([*arguments.tensors, *found.traced.parameters()], count)
    build = _builder(found.traced)
    if not found.traced.program.writes:
        return lambda args, tensors: build(execute(tensors))
    put = ready.callee.put

    def run(args: tuple[Any, ...], tensors: tuple[torch.Tensor, ...]) -> Any:
        values = execute(tensors)
        put(tensors, values)
        return build(values)

    return run


def _run_with_numbers(found: Specialization, arguments: Arguments) -> Run:
    """The same for a Program with open values: its inputs are the tensors, then the numbers among them."""
    count = len(arguments.tensors)
    names, values = list(arguments.template), list(arguments.template.values())
    places = [index for index, name in enumerate(names) if ((name,), type(values[index])) in found.open]
    ready, passed = found.ready, found.passed
    assert ready is not None
    example = [*arguments.tensors, *numbers_of([values[index] for index in places])]
    execute = ready.runner.settled([*example, *found.traced.parameters()], len(example))
    build, put = _builder(found.traced), ready.callee.put

    def run(args: tuple[Any, ...], tensors: tuple[torch.Tensor, ...]) -> Any:
        given = [args[index] if index < len(args) else values[index] for index in places]
        if len(passed) < PASSED:
            found.note(given)
        every = (*tensors[:count], *numbers_of(given), *tensors[count:])
        values = execute(every)
        put(every, values)
        return build(values)

    return run


def _builder(traced: Traced) -> Callable[[list[Any]], Any]:
    tree, classes = traced.program.output, traced.classes
    if isinstance(tree, Leaf):
        return operator.itemgetter(tree.index)
    if type(tree) is tuple and len(tree) > 1 and all(isinstance(item, Leaf) for item in tree):
        return operator.itemgetter(*(item.index for item in tree))
    return lambda values: build_tree(tree, values, classes)


def front(shortcuts: tuple[Shortcut, ...], made: Shortcut) -> tuple[Shortcut, ...]:
    """The shortcuts with a new one first, and without an older one to the same Program."""
    others = (one for one in shortcuts if one.found is not made.found)
    return (made, *itertools.islice(others, KEPT - 1))


__all__ = ["MADE_AT", "Shortcut", "front", "make"]
