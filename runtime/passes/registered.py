"""``register_pass``: passes of users, run at a named place among ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.errors import ProgramError
from runtime.ir import Program
from runtime.ir.verify import verify
from runtime.passes.manager import Pass

Rewrite = Callable[[Program], Program | None]


@dataclass(eq=False)
class Registered:
    """A user's pass; ``remove`` ends it."""

    made: Pass
    before: str = ""
    after: str = ""

    def remove(self) -> None:
        """Programs that are prepared from now on do not go through it; a second time does nothing."""
        if self in _registered:
            _registered.remove(self)


_registered: list[Registered] = []


def register_pass(
    rewrite: Rewrite, *, name: str = "", before: str = "", after: str = "", known: Sequence[str] = ()
) -> Registered:
    """Let every Program that is prepared from now on go through a pass of yours.

    Args:
        rewrite: Takes a Program, and changes it in place or gives another one with the same inputs and parameters. What
            it makes is verified.
        name: What the pass is called in errors, reports and dumps; by default what the function is called.
        before: The name of one of our passes (``BuildStrategy`` has them), or of one registered earlier.
        after: Likewise. With neither the pass is the last one.
        known: Names that there are; ``runtime.register_pass`` gives them.

    Raises:
        ValueError: Both places are named, or one that does not exist, or the name is taken.
    """
    own = name or getattr(rewrite, "__name__", type(rewrite).__name__)
    names = [*known, *(one.made.name for one in _registered)]
    if before and after:
        raise ValueError("a pass stands before another one or after it: name one place")
    for place in filter(None, (before, after)):
        if place not in names:
            raise ValueError(f"there is no pass {place!r}; there are: {', '.join(names)}")
    if own in names:
        raise ValueError(f"there is a pass {own!r} already")
    doc = (rewrite.__doc__ or "").strip().split("\n")[0]
    made = Registered(Pass(own, doc, lambda program: _run(rewrite, own, program)), before, after)
    _registered.append(made)
    return made


def with_registered(passes: Sequence[Pass]) -> tuple[Pass, ...]:
    """Passes, and users' at their places; one whose place is left out stands at the end."""
    found = list(passes)
    for one in _registered:
        names = [other.name for other in found]
        if one.before in names:
            found.insert(names.index(one.before), one.made)
        elif one.after in names:
            found.insert(names.index(one.after) + 1, one.made)
        else:
            found.append(one.made)
    return tuple(found)


def _run(rewrite: Rewrite, name: str, program: Program) -> int:
    inputs, params = [one.name for one in program.inputs], [one.name for one in program.params]
    made = rewrite(program)
    if made is not None and not isinstance(made, Program):
        raise ProgramError(f"the pass {name!r} gives a {type(made).__name__}", hint="Give a Program, or None.")
    if made is not None and made is not program:
        if [one.name for one in made.inputs] != inputs or [one.name for one in made.params] != params:
            raise ProgramError(f"the pass {name!r} gives a Program with other inputs or parameters")
        for part in ("block", "inputs", "params", "output", "writes", "assumes"):
            setattr(program, part, getattr(made, part))
    try:
        verify(program, live=True)
    except ProgramError as error:
        raise ProgramError(f"the pass {name!r} broke the Program: {error.summary}", location=error.location) from error
    return 1


__all__ = ["Registered", "register_pass", "with_registered"]
