"""Checkpoint operators: which states of a loop are kept while it runs, when nobody knows how long it will be.

    %steps, %levels, %place = checkpoint.keep(%steps, %levels, %step, 3)     step is kept now, something else may go
    %states = checkpoint.put(%states, %place, %state)                        the list of states follows, one a value

On the way forward the schedule is that of Wang, Moin and Iaccarino, "Minimal repetition dynamic checkpointing algorithm
for unsteady adjoint calculation" (2009). A kept step has a level. While there is room, a step is kept at level 0. After
that it takes the place of a kept step of which a later one has a higher level; where there is none, it takes the place
of the last one, one level higher. Step 0 is never given up.

Backward goes from the last step to the first. For each it takes the last state that is kept at or before it
(``checkpoint.back``, ``checkpoint.top``), and computes forward from there. How far that is, is known: what is kept on
the way (``checkpoint.keep_again``) follows Griewank and Walther, "Algorithm 799: revolve" (2000), which computes the
fewest steps.

No operator changes its arguments: a list here has as many items as states are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.inference import element_of, type_of
from runtime.ir.operator import Operator
from runtime.ir.types import ArrayType, ScalarType, TensorType, Type
from runtime.ops.arity import check_attrs, check_no_kwargs, check_plain

KEPT = -1
"""The place of a step whose state is not to be stored: it is kept already, or never will be."""


def keep(steps: list[int], levels: list[int], step: int, most: int) -> tuple[list[int], list[int], int]:
    """The steps that are kept, of which ``most`` may be, and their levels, with one more; whose place it takes.

    >>> steps, levels, places = [], [], []
    >>> for step in range(5):
    ...     steps, levels, place = keep(steps, levels, step, 3)
    ...     places.append(place)
    >>> steps, levels, places
    ([0, 3, 4], [0, 1, 0], [0, 1, 2, 2, 1])
    """
    count = len(steps)
    if count and step <= steps[-1]:
        return steps, levels, KEPT
    if count < most:
        return [*steps, step], [*levels, 0], count
    if most == 1:
        return steps, levels, KEPT
    place, level, highest = count - 1, levels[-1] + 1, -1
    for at in range(count - 1, 0, -1):
        if levels[at] < highest:
            place, level = at, 0
            break
        highest = max(highest, levels[at])
    return [*steps[:place], *steps[place + 1:], step], [*levels[:place], *levels[place + 1:], level], place


def put(states: list[Any], place: int, state: Any) -> list[Any]:
    """The states that are kept with one more, as ``keep`` said of their steps."""
    return states if place == KEPT else [*states[:place], *states[place + 1:], state]


def own(state: torch.Tensor, step: int) -> torch.Tensor:
    """The state of a step, in memory of its own if it is the first: that may be the caller's, and be written."""
    return state if step else state.clone()


def back(steps: list[int], step: int) -> tuple[list[int], int]:
    """The kept steps up to one; the last of them."""
    count = len(steps)
    while steps[count - 1] > step:
        count -= 1
    return steps[:count], steps[count - 1]


def keep_again(steps: list[int], step: int, last: int, most: int) -> tuple[list[int], int]:
    """The steps that are kept, with one more if it is its turn on the way to ``last``; its place."""
    count, passed = len(steps), step - steps[-1]
    if not passed or passed != distance(last - steps[-1] + 1, most - count + 1):
        return steps, KEPT
    return [*steps, step], count


def distance(length: int, most: int) -> int:
    """How far after a kept step the next one is kept, for the fewest steps in all; 0: none is.

    So many steps, the kept one among them, are gone back over with ``most`` states, its own among them.

    >>> distance(10, 3), distance(10, 1)
    (4, 0)
    """
    if most < 2 or length < 2:
        return 0
    times = 1  # how often a step is computed at most
    while math.comb(most + times, most) < length:
        times += 1
    fewer = math.comb(most + times - 2, most) if times > 1 else 0
    return max(fewer, length - math.comb(most - 1 + times, times), 1)


def top(states: list[Any], steps: list[int]) -> tuple[list[Any], Any]:
    """The states of the kept steps; the last of them."""
    count = len(steps)
    return states[:count], states[count - 1]


def generators(own: Sequence[torch.Generator]) -> list[torch.Tensor]:
    """The states of PyTorch's random generators, and of some of the user's."""
    return [*torch_internals.rng_state(), *(one.get_state() for one in own)]


def restore(states: list[torch.Tensor], own: Sequence[torch.Generator]) -> None:
    """Random numbers go on from other states of the generators."""
    count = len(states) - len(own)
    torch_internals.set_rng_state(states[:count])
    for one, state in zip(own, states[count:]):
        one.set_state(state)


# name -> (function, arguments, outputs)
_TABLE: dict[str, tuple[Callable[..., Any], int, int]] = {
    "checkpoint.keep": (keep, 4, 3),
    "checkpoint.put": (put, 3, 1),
    "checkpoint.own": (own, 2, 1),
    "checkpoint.back": (back, 2, 2),
    "checkpoint.keep_again": (keep_again, 4, 2),
    "checkpoint.top": (top, 2, 2),
    "checkpoint.generators": (generators, 1, 1),
    "checkpoint.restore": (restore, 2, 0),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {name: row[0] for name, row in _TABLE.items()}
"""``"checkpoint.keep" -> keep``: what each operator computes."""

STEPS = ArrayType(ScalarType("int"))
GENERATORS = ArrayType(TensorType(torch.uint8, None))


def _verify(op: Operator, fail: Fail) -> None:
    _, arguments, outputs = _TABLE[op.name]
    check_plain(op, fail, arguments, arguments, outputs)
    check_no_kwargs(op, fail)
    check_attrs(op, fail, {})


_INFER: dict[str, Callable[[Operator], list[Type | None]]] = {
    "checkpoint.keep": lambda op: [STEPS, STEPS, ScalarType("int")],
    "checkpoint.put": lambda op: [type_of(op.args[0])],
    "checkpoint.own": lambda op: [type_of(op.args[0])],
    "checkpoint.back": lambda op: [STEPS, ScalarType("int")],
    "checkpoint.keep_again": lambda op: [STEPS, ScalarType("int")],
    "checkpoint.top": lambda op: [type_of(op.args[0]), element_of(op.args[0])],
    "checkpoint.generators": lambda op: [GENERATORS],
    "checkpoint.restore": lambda op: [],
}

_ON_GENERATORS = frozenset({"checkpoint.generators", "checkpoint.restore"})

DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition(name, str(function.__doc__).partition("\n")[0], verify=_verify, evaluate=function,
                 infer=_INFER[name], effect=name in _ON_GENERATORS, passes_gradient=False, raises=lambda op: False)
    for name, function in FUNCTIONS.items()
]  # fmt: skip
