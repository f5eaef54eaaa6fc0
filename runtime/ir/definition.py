"""What an operator's name means.

The records themselves live in ``runtime.ops``; this file knows only their shape and where to ask, so that the
verifier needs no list of operators.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NoReturn, Protocol

from runtime.ir.flow import PLAIN, Flow, no_name
from runtime.ir.operator import Operator
from runtime.ir.types import Type
from runtime.ir.variable import Variable


class Fail(Protocol):
    """How a rule refuses an Operator: ``fail(rule, message)`` raises ProgramError with the place printed."""

    def __call__(self, rule: str, message: str) -> NoReturn: ...


def accept(op: Operator, fail: Fail) -> None:
    """The check of an operator that has nothing to check."""


def nothing(op: Operator) -> tuple[Variable, ...]:
    """No Variables: the operator writes none, or its results are views of none."""
    return ()


class About(Enum):
    """What operators of ours compute with."""

    NUMBERS = auto()
    """Python's numbers, texts and truth values."""
    LISTS = auto()
    """Lists whose lengths only a run knows."""


@dataclass(frozen=True)
class OpDefinition:
    """An operator: its name, what it does in a sentence, and what walks over Programs ask of it.

    ``verify`` checks one Operator (arity, Blocks, yields, attrs). ``evaluate`` computes it from Python values, for
    operators without Blocks. ``infer`` tells the types of an Operator's results from its operands, attributes and
    Blocks, None for a result of which they tell nothing (ask ``runtime.ir.inference``). ``asks_torch``: it runs
    torch's shape rules for that, which takes time: the verifier leaves it out. ``effect``: it may not be dropped,
    doubled or moved over another effect.
    ``undef_yields``: its Blocks may yield UNDEF; ``undef_args``: its arguments may be UNDEF. ``writes`` gives the
    Variables whose memory it writes, ``views`` those whose memory its results are, or a copy. ``flow``: how its Blocks
    run.
    ``neutral``: it does the same in every grad and autocast mode. ``passes_gradient``: a gradient may go through it.
    ``hands_on``: its results are arguments as they are, or hold them, as a list does.
    ``own_gradient``: its gradient is one that it brings along; says for each argument whether it gets one in any case
    (else it gets one at times).
    ``says``: it only tells something, which running a Program again must not tell twice. ``raises``: whether running
    an Operator may end in an exception, its Blocks left out; None if that is known from elsewhere
    (``runtime.ops.raising``). ``again``: the name of the Operator around it whose Block it runs again.
    ``about``: what it computes with; None for torch's operators and those that are about no kind of values.
    ``only_reads``: it reads what it is given, and neither keeps it nor gives any of its memory. ``asserts``: it does
    nothing but raise an exception where what it is given does not hold.
    """

    name: str
    doc: str
    verify: Callable[[Operator, Fail], None] = accept
    evaluate: Callable[..., Any] | None = None
    infer: Callable[[Operator], Sequence[Type | None]] | None = None
    asks_torch: bool = False
    effect: bool = False
    random: bool = False
    undef_yields: bool = False
    undef_args: bool = False
    writes: Callable[[Operator], tuple[Variable, ...]] = nothing
    views: Callable[[Operator], tuple[Variable, ...]] = nothing
    flow: Flow = PLAIN
    neutral: bool = False
    passes_gradient: bool = True
    hands_on: bool = False
    own_gradient: Callable[[Operator], Sequence[bool]] | None = None
    says: bool = False
    raises: Callable[[Operator], bool] | None = None
    again: Callable[[Operator], str | None] = no_name
    about: About | None = None
    only_reads: bool = False
    asserts: bool = False


@functools.lru_cache(maxsize=1)
def _provider() -> Callable[[str], OpDefinition]:
    # Looked up by name, as a plug-in: this package is below runtime.ops and must not import it.
    definition: Callable[[str], OpDefinition] = importlib.import_module("runtime.ops.registry").definition
    return definition


def definition_of(name: str) -> OpDefinition:
    """The definition of an operator's name. Errors raised: ProgramError if there is none."""
    return _provider()(name)
