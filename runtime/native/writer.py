"""The text of one C function: lines, locals, sizes that are computed once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath

from runtime.ir.location import Location
from runtime.native.values import Expr

BAIL = "goto bail;"
"""What C does where it cannot go on."""

_NAME = re.compile(r"\b[A-Za-z_]\w*")
_NOTE = re.compile(r"( *)/\*@(\d+)\*/")


def bare(text: str) -> str:
    """C without its notes: what the compiler gets.

    >>> bare("  /*@0*/\\n  x = 1;")
    '  x = 1;'
    """
    return "\n".join(line for line in text.split("\n") if not _NOTE.fullmatch(line))


def annotated(text: str, places: Sequence[Location]) -> str:
    """C with the user's lines as comments, for reading.

    >>> print(annotated("  /*@0*/\\n  x = 1;", [Location("a/user.py", 7, text="    y = x  # */ ")]))
      /* user.py:7: y = x # * / */
      x = 1;
    """
    lines = text.split("\n")
    for index, line in enumerate(lines):
        found = _NOTE.fullmatch(line)
        if found is not None:
            place = places[int(found[2])]
            said = f"{PurePath(place.file).name}:{place.line}: {' '.join(place.text.split())}"
            said = "".join(letter if letter.isprintable() else "?" for letter in said)
            lines[index] = f"{found[1]}/* {said.replace('*/', '* /').replace('/*', '/ *')} */"
    return "\n".join(lines)


class Writer:
    """A C function being written. All names in it are ours."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.locals: list[str] = []
        self.indent = 1
        self.count = 0
        self.failure = BAIL
        """What stands for ``BAIL`` in lines."""
        self.checked = False
        """Whether sizes are multiplied with a look at 64 bits."""
        self.head: list[str] = []
        """What comes before all lines: sizes, and checks, that need no more than ``early``."""
        self.early: set[str] | None = None
        """Locals that have their value from the start and keep it; None where there is no head."""
        self.places: list[Location] = []
        """Where in the user's source the lines came from, in their order."""
        self._known: list[dict[tuple[str, Expr, Expr], str]] = [{}]

    def fresh(self) -> int:
        """A number that no name has yet."""
        self.count += 1
        return self.count

    def local(self, ctype: str, stem: str, first: str = "0") -> str:
        """A new local of the function, declared at its beginning."""
        name = f"{stem}{self.fresh()}"
        self.declare(ctype, name, first)
        return name

    def declare(self, ctype: str, name: str, first: str = "0") -> None:
        """Declare a local at the beginning of the function."""
        self.locals.append(f"  {ctype} {name} = {first};")

    def line(self, text: str) -> None:
        """One more line."""
        if self.failure is not BAIL:
            text = text.replace(BAIL, self.failure)
        self.lines.append("  " * self.indent + text)

    def note(self, place: Location | None) -> None:
        """What follows is of a place in the user's source. The text gets its number; ``annotated`` puts it there."""
        if place is not None and (not self.places or self.places[-1].line != place.line
                                  or self.places[-1].file != place.file):  # fmt: skip
            self.line(f"/*@{len(self.places)}*/")
            self.places.append(place)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """``header { ... }``; sizes computed inside are not known after."""
        self.line(header + " {")
        self.indent += 1
        self._known.append({})
        yield
        self._known.pop()
        self.indent -= 1
        self.line("}")

    def close(self, indent: int) -> None:
        """End the blocks that a rule opened before it found that it cannot go on; what was written in them is unused.
        """
        while self.indent > indent:
            self._known.pop()
            self.indent -= 1
            self.line("}")

    def bail(self, condition: str) -> None:
        """Give up under a condition: the region runs again in Python. What is known of sizes from the start is tested
        there, and that a size differs from itself nowhere."""
        size, _, other = condition.partition(" != ")
        if size == other:
            return
        text = f"if ({condition}) goto bail;"
        if self.indent == 1 and self.failure is BAIL and self._is_early(condition):
            if "  " + text not in self.head:
                self.head.append("  " + text)
            return
        self.line(text)

    def _is_early(self, text: Expr) -> bool:
        """Whether an expression can be computed before all lines."""
        return self.early is not None and (isinstance(text, int) or self.early.issuperset(_NAME.findall(text)))

    def _before_all(self, name: str, text: str) -> str:
        """Give a local its value before all lines."""
        assert self.early is not None
        self.head.append(f"  {name} = {text};")
        self.early.add(name)
        return name

    # -- sizes ---------------------------------------------------------------------------------------------------

    def arith(self, sign: str, a: Expr, b: Expr) -> Expr:
        """``a * b`` and its like as a constant, or a local that is computed once."""
        if isinstance(a, int) and isinstance(b, int):
            return {"*": a * b, "+": a + b, "-": a - b}[sign]
        if sign == "*":
            if 0 in (a, b):
                return 0
            if a == 1:
                return b
            if b == 1:
                return a
        elif b == 0:
            return a
        elif sign == "+" and a == 0:
            return b
        key = (sign, a, b)
        for known in self._known:
            if key in known:
                return known[key]
        name = self.local("i64", "z")
        if sign == "*" and self.checked:
            self.bail(f"__builtin_mul_overflow((i64){a}, (i64){b}, &{name})")
        elif self._is_early(a) and self._is_early(b):
            self._known[0][key] = self._before_all(name, f"{a} {sign} {b}")
            return name
        else:
            self.line(f"{name} = {a} {sign} {b};")
        self._known[-1][key] = name
        return name

    def product(self, dims: tuple[Expr, ...]) -> Expr:
        """The product of sizes."""
        total: Expr = 1
        for dim in reversed(dims):
            total = self.arith("*", dim, total)
        return total

    def dense(self, dims: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The strides of a dense row-major tensor of these sizes."""
        strides: list[Expr] = []
        total: Expr = 1
        for dim in reversed(dims):
            strides.append(total)
            total = self.arith("*", dim, total)
        return tuple(reversed(strides))

    def kept(self, value: Expr) -> Expr:
        """A size as a constant or a local of its own, which keeps its value."""
        if isinstance(value, int):
            return value
        name = self.local("i64", "z")
        self.line(f"{name} = {value};")
        return name

    def text(self, signature: str) -> str:
        """The whole function."""
        return "\n".join([signature + " {", *self.locals, *self.lines, "}"])
