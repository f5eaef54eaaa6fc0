"""The pass manager: rewrites of Programs, one after another, each held against the rules of a Program.

    prepare -> PassManager(DEFAULT).run(program) -> autodiff, executor

A pass changes a Program in place and says how much it changed. What a Program takes, gives, writes and assumes stays,
and so do all results and their gradients, bit for bit, what is the same object as what, and what may raise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runtime.errors import ProgramError
from runtime.ir import Program
from runtime.ir.printer import print_program
from runtime.ir.verify import verify


@dataclass(frozen=True)
class Pass:
    """A rewrite: ``run`` changes a Program in place; how many Operators, operands or values it changed."""

    name: str
    doc: str
    run: Callable[[Program], int]


@dataclass(frozen=True)
class Applied:
    """What one pass did: how much it changed, and how many Operators there were before and after."""

    name: str
    changes: int
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.name}: {self.changes} changes, {self.before} -> {self.after} operators"


@dataclass
class Report:
    """What all passes did, in order."""

    applied: list[Applied] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """How much was changed in all."""
        return sum(one.changes for one in self.applied)

    def __str__(self) -> str:
        return "\n".join(map(str, self.applied))


Dump = Callable[[str, Program], None]
"""Gets ``"0.before"``, ``"1.dead_code"``, ... and the Program as it is then."""

_DUMP = "DY2STATIC_DUMP_PASSES"
_VERIFY = "DY2STATIC_VERIFY_PASSES"


class PassManager:
    """Runs passes in order.

    Args:
        passes: The passes.
        verify: Whether a Program that keeps the rules is verified after each pass that changed it; by default, whether
            the environment variable ``DY2STATIC_VERIFY_PASSES`` is set.
        dump: Called with a name and the Program before the first pass and after each that changed it. By default it is
            written to files of the folder that ``DY2STATIC_DUMP_PASSES`` names, if it does.
    """

    def __init__(self, passes: Sequence[Pass], *, verify: bool | None = None, dump: Dump | None = None) -> None:
        self.passes = tuple(passes)
        self._verify = bool(os.environ.get(_VERIFY)) if verify is None else verify
        folder = os.environ.get(_DUMP)
        self._dump = _into(Path(folder)) if dump is None and folder else dump

    def run(self, program: Program) -> Report:
        """Rewrite a Program in place.

        Raises:
            ProgramError: A pass left a Program that breaks the rules (only where it is verified).
        """
        report = Report()
        verified = self._verify and _holds(program)
        if self._dump is not None:
            self._dump("0.before", program)
        count = _operators(program)
        for number, one in enumerate(self.passes, start=1):
            changes = one.run(program)
            after = _operators(program) if changes else count
            report.applied.append(Applied(one.name, changes, count, after))
            count = after
            if changes and verified:
                _hold(program, one)
            if changes and self._dump is not None:
                self._dump(f"{number}.{one.name}", program)
        return report


def require_order(program: Program, always: bool = False) -> None:
    """Refuse a Program that reads what is not there yet, or gives a Variable twice; what its types say of a path that
    gives other sizes may be wrong. Without ``always`` it is asked only where Programs are verified after passes.

    Errors raised: ProgramError naming the Operator.
    """
    if always or os.environ.get(_VERIFY):
        try:
            verify(program, live=True)
        except ProgramError as error:
            if any(f"rule {rule!r}" in error.summary for rule in ("dominance", "assigned-once")):
                raise


def _holds(program: Program) -> bool:
    """Whether a Program keeps the rules. What is made here may not: a half of a derivative where paths give other
    sizes, a write to what only may be a view, a Program by hand before it is cut to what is fetched."""
    try:
        verify(program, live=True)
    except ProgramError:
        return False
    return True


def _hold(program: Program, one: Pass) -> None:
    try:
        verify(program, live=True)
    except ProgramError as error:
        raise ProgramError(f"the pass {one.name!r} broke the Program: {error.summary}") from error


def _operators(program: Program) -> int:
    return sum(1 for _ in program.block.walk())


def _into(folder: Path) -> Dump:
    def dump(name: str, program: Program) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{_file_name(program.name)}.{name}.txt").write_text(print_program(program))

    return dump


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)


__all__ = ["Applied", "Dump", "Pass", "PassManager", "Report", "require_order"]
