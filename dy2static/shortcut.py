"""The short way from a call to its Program: one generated check on the arguments as they come, then the run.

Made for a Program that has been found several times the long way (key, sizes, guards), for calls with tensors and plain
values, by place or by name. It holds only where the long way would find the same Program; what it refuses goes the long
way.
"""

from __future__ import annotations

import inspect
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dy2static import settings
from dy2static.cache_key import sharing
from dy2static.signature import Signature
from dy2static.specialization import PASSED, Specialization, layout_key
from runtime import torch_internals
from runtime.calling import build_tree
from runtime.ir.tree import Leaf
from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.boundary.tracing import Traced
from runtime.tracer.memory.hung import same
from runtime.tracer.python_state.guard_code import Check, CheckWriter
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.values import open_values
from runtime.tracer.values.arguments import Arguments, flatten
from runtime.tracer.values.open_values import numbers_of

MADE_AT = (3, 24, 192)
"""How often a Program is found the long way by calls of one form until a shortcut is made, and made anew if it does not
help."""
KEPT = 4
_PACKS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

Run = Callable[[tuple[Any, ...], "tuple[torch.Tensor, ...]"], Any]


class Shortcut:
    """For calls with so many arguments by place and these by name: ``check(*values)`` gives the Program's inputs and
    parameters, or None; ``run`` gets the values, too."""

    __slots__ = ("check", "count", "found", "names", "run")

    def __init__(self, count: int, names: tuple[str, ...], check: Check, run: Run, found: Specialization) -> None:
        self.count = count
        self.names = names
        self.check = check
        self.run = run
        self.found = found


@dataclass(frozen=True)
class Form:
    """How a call gives its arguments: so many by place, these by name. paths: where each value ends up, as open values
    are called; whole: whether no parameter is left to its default."""

    count: int
    names: tuple[str, ...]
    paths: tuple[tuple[Any, ...], ...]
    whole: bool


def form_of(signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> Form | None:
    """The form of a call that Python has bound; None if the function is no plain Python function."""
    if not signature.is_function:
        return None
    kinds = {kind: [one.name for one in signature.parameters if one.kind is kind] for kind in inspect._ParameterKind}
    by_place = [*kinds[inspect.Parameter.POSITIONAL_ONLY], *kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD]]
    by_name = {*kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD], *kinds[inspect.Parameter.KEYWORD_ONLY]}
    rest, others = (kinds[kind] for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD))
    paths: list[tuple[Any, ...]] = [(name,) for name in by_place[: len(args)]]
    paths += [(rest[0], index) for index in range(len(args) - len(by_place))] if rest else []
    paths += [(name,) if name in by_name else (others[0], name) for name in kwargs]
    given = {path[0] for path in paths}
    whole = all(name in given for name in (*by_place, *by_name))
    return Form(len(args), tuple(kwargs), tuple(paths), whole)


def make(found: Specialization, signature: Signature, args: Sequence[Any], kwargs: dict[str, Any],
         arguments: Arguments) -> Shortcut | None:  # fmt: skip
    """The shortcut for calls like this one, which ``found`` has just answered; None if they are not simple enough."""
    form = form_of(signature, args, kwargs)
    if form is None or found.traced.whole:
        return None
    given = [*args, *kwargs.values()]
    if not all(is_a(one, torch.Tensor) or is_plain(one) for one in given):
        return None
    names = {path[0] for path in form.paths}
    packed = {one.name for one in signature.parameters if one.kind in _PACKS}
    if not all(is_plain(value) for name, value in arguments.template.items() if name not in names | packed):
        return None  # a default that can be changed
    tensors = [one for one in given if is_a(one, torch.Tensor)]
    if sorted(map(id, tensors)) != sorted(map(id, arguments.tensors)):  # one in two places, or a default
        return None
    numbers = {id(tensor): number for number, tensor in enumerate(arguments.tensors)}
    writer = CheckWriter([f"x{index}" for index in range(len(given))])
    tests = torch_internals.state_tests()
    if tests is None:
        return None
    writer.require(f"{writer.bind(settings.is_enabled)}() and {writer.bind(state.active)}() is None")
    for function, asked, answer in tests:
        writer.require(f"{writer.bind(function)}({', '.join(map(repr, asked))}) is {writer.bind(answer)}")
    if not form.whole:
        for name in ("__defaults__", "__kwdefaults__"):
            now = getattr(signature.function, name)
            writer.require(f"{writer.bind(signature.function)}.{name} is {writer.bind(now)}")
    inputs = [""] * len(arguments.tensors)
    for index, (path, value) in enumerate(zip(form.paths, given)):
        if is_a(value, torch.Tensor):
            number = numbers[id(value)]
            inputs[number] = writer.tensor(f"x{index}", value, found.sizes[number])
        elif (path, type(value)) in found.open:
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
    run = _run(found, signature, form, arguments, exact)
    return Shortcut(form.count, form.names, check, run, found)


def _conditions(found: Specialization, writer: CheckWriter, inputs: list[str], arguments: Arguments) -> list[str]:
    """What is left to check of the tensors: layouts where sizes are free, shared memory, assumptions about sizes."""
    conditions = [f"{inputs[position]}.is_leaf is {leaf}" for position, leaf in found.traced.leaves.items()]
    for position, questions in found.traced.asked.items():
        for _, question, answer in questions:
            now = f"{writer.bind(question)}({inputs[position]})"
            conditions.append(f"{writer.bind(same)}({now}, {writer.bind(answer)})")
    for local, sizes, layout in zip(inputs, found.sizes, found.layouts):
        if None in sizes:
            slow = f"{writer.bind(layout_key)}({local}, {writer.bind(sizes)}) == {writer.bind(layout)}"
            quick = f"min({local}.shape, default=2) > 1 and {local}.is_contiguous()"  # else strides may be any
            conditions.append(f"({quick} or {slow})" if _in_order(sizes, layout) else slow)
    every = f"[{', '.join(inputs)}]"
    if len(inputs) > 1:
        shared = sharing(arguments.tensors)
        if shared:
            conditions.append(f"{writer.bind(sharing)}({every}) == {writer.bind(shared)}")
        else:
            conditions.append(_apart(writer, dict(zip(inputs, arguments.tensors))))
    if found.traced.tells_apart:
        tensors = [*arguments.tensors, *found.tensors()]
        if not found.sharing and len(writer.given) == len(tensors):
            conditions.append(_apart(writer, dict(zip(writer.given, tensors))))
        else:
            everything = f"[{', '.join(writer.given)}]"
            conditions.append(f"{writer.bind(sharing)}({everything}) == {writer.bind(found.sharing)}")
    if found.assumes:
        conditions.append(f"{writer.bind(found.broken_assumption_of)}({every}) is None")
    return conditions


def _in_order(sizes: Sequence[int | None], layout: Any) -> bool:
    """Whether the layout of a tensor of open sizes is that of rows one after another."""
    return bool(layout == tuple((dim, None) for dim in reversed(range(len(sizes)))))


def _apart(writer: CheckWriter, tensors: dict[str, torch.Tensor]) -> str:
    """The condition that tensors, by local, have each a memory of its own. That they are of their classes and have the
    layouts they have now is checked before."""
    slow = writer.bind(torch_internals.storage_identity)
    asked = {
        local: f"{local}.untyped_storage()._cdata" if torch_internals.tells_its_memory(tensor) else f"{slow}({local})"
        for local, tensor in tensors.items() if tensor.layout is torch.strided
    }  # fmt: skip
    return f"len({{{', '.join(asked.values())}}}) == {len(asked)}" if len(asked) > 1 else "True"


def _run(found: Specialization, signature: Signature, form: Form, arguments: Arguments, exact: bool) -> Run:
    """What runs the Program, decided once: how gradients are computed, and how the result is built."""
    count = len(arguments.tensors)
    ready = found.ready
    assert ready is not None
    if ready.only_results and found.open and exact:
        return _run_with_numbers(found, form, arguments)
    if not ready.only_results or found.open:
        def whole(values: tuple[Any, ...], tensors: tuple[torch.Tensor, ...]) -> Any:
            bound = signature.bind(values[: form.count], dict(zip(form.names, values[form.count :])))
            return ready.call(found.opened(flatten(bound)), list(tensors[count:]))

        return whole
    if exact or all(None not in sizes or _in_order(sizes, layout) for sizes, layout in zip(found.sizes, found.layouts)):
        execute = ready.runner.settled([*arguments.tensors, *found.traced.parameters()], count, exact=exact)
    else:
        runner = ready.runner
        execute = lambda tensors: runner.run(tensors[:count], tensors[count:])  # noqa: E731
    build = _builder(found.traced)
    if not found.traced.program.writes:
        return lambda _, tensors: build(execute(tensors))
    put = ready.callee.put

    def run(_: tuple[Any, ...], tensors: tuple[torch.Tensor, ...]) -> Any:
        values = execute(tensors)
        put(tensors, values)
        return build(values)

    return run


def _run_with_numbers(found: Specialization, form: Form, arguments: Arguments) -> Run:
    """The same for a Program with open values: its inputs are the tensors, then the numbers among them."""
    count = len(arguments.tensors)
    where = {path: index for index, path in enumerate(form.paths)}
    open_ = [(where.get(path), value) for path, value in found.opened(arguments).opened.items()]
    ready, passed = found.ready, found.passed
    assert ready is not None
    example = [*arguments.tensors, *numbers_of([value for _, value in open_])]
    execute = ready.runner.settled([*example, *found.traced.parameters()], len(example))
    build, put = _builder(found.traced), ready.callee.put

    def run(given: tuple[Any, ...], tensors: tuple[torch.Tensor, ...]) -> Any:
        now = [value if index is None else given[index] for index, value in open_]
        if len(passed) < PASSED:
            found.note(now)
        every = (*tensors[:count], *numbers_of(now), *tensors[count:])
        values = execute(every)
        put(every, values)
        return build(values)

    return run


def _builder(traced: Traced) -> Callable[[list[Any]], Any]:
    tree, classes = traced.program.output, traced.classes
    if is_a(tree, Leaf):
        return operator.itemgetter(tree.index)
    if type(tree) is tuple and len(tree) > 1 and all(is_a(item, Leaf) for item in tree):
        return operator.itemgetter(*(item.index for item in tree))
    return lambda values: build_tree(tree, values, classes)


def front(shortcuts: tuple[Shortcut, ...], made: Shortcut) -> tuple[Shortcut, ...]:
    """The shortcuts with a new one first, and without an older one for calls of the same form to the same Program."""
    others = (one for one in shortcuts
              if one.found is not made.found or (one.count, one.names) != (made.count, made.names))  # fmt: skip
    return (made, *itertools.islice(others, KEPT - 1))


__all__ = ["MADE_AT", "Shortcut", "front", "make"]
