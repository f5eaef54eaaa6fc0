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
        verify: Whether the Program is verified, and again after each pass that changed it; by default, whether the
            environment variable ``DY2STATIC_VERIFY_PASSES`` is set.
        dump: Called with a name and the Program before the first pass and after each that changed it. By default it is
            written to files of the folder that ``DY2STATIC_DUMP_PASSES`` names, if it does.
        halves: Whether it is given halves of derivatives. Where a branch gives tensors of other sizes, the types in
            the half of the other path may say the wrong ones: such a half is not verified.
    """

    def __init__(
        self, passes: Sequence[Pass], *, verify: bool | None = None, dump: Dump | None = None, halves: bool = False
    ) -> None:
        self.passes = tuple(passes)
        self._halves = halves
        self._verify = bool(os.environ.get(_VERIFY)) if verify is None else verify
        folder = os.environ.get(_DUMP)
        self._dump = _into(Path(folder)) if dump is None and folder else dump

    def run(self, program: Program) -> Report:
        """Rewrite a Program in place.

        Raises:
            ProgramError: The Program breaks the rules, or a pass left one that does (only where it is verified).
        """
        report = Report()
        verified = self._verify and (not self._halves or _holds(program))
        if verified:
            verify(program, live=True)
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


def _holds(program: Program) -> bool:
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


__all__ = ["Applied", "Dump", "Pass", "PassManager", "Report"]
