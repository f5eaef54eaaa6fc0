"""Random small functions over ints and lists: every construct, nested at random, names often unbound on purpose."""

from __future__ import annotations

import random

HEADER = '''"""Random programs."""
import contextlib

LOG = []
COUNT = 0
FUEL = [0]


class Box:
    def __init__(self):
        self.v = 1

    def __eq__(self, other):
        return type(other) is Box and self.__dict__ == other.__dict__


class OutOfFuel(Exception):
    pass


def log(value):
    LOG.append(value if isinstance(value, (int, str, list, tuple)) else type(value).__name__)
    return value


def tick():
    FUEL[0] += 1
    if FUEL[0] > 9:
        raise OutOfFuel("out of fuel")
    return True


'''

NAMES = ["a", "b", "c", "d", "e"]


class Generator:
    """Writes one function; ``random.Random(seed)`` decides all."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.size = 0
        self.serial = 0
        self.nesting = 0

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def name(self) -> str:
        return self.random.choice(NAMES)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # --- expressions

    def expression(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.25):
            return self.pick(self.name(), self.name(), "0", "1", "2", "-1", "box.v", "COUNT")
        e = lambda: self.expression(depth - 1)
        kind = self.random.randrange(19)
        forms = [
            lambda: f"({e()} + {e()})",
            lambda: f"({e()} - {e()})",
            lambda: f"({e()} * 2)",
            lambda: f"({e()} // {e()})",
            lambda: f"log({e()})",
            lambda: f"({e()} and {e()})",
            lambda: f"({e()} or {e()})",
            lambda: f"(not {e()})",
            lambda: f"({e()} if {e()} else {e()})",
            lambda: f"({e()} < {e()})",
            lambda: f"({e()} <= {e()} != {e()})",
            lambda: f"({self.name()} := {e()})",
            lambda: f"sum([{e()} for {self.pick('x', 'a', 'b')} in range(3) if {e()}])",
            lambda: f"(lambda {self.pick('x', 'a')}={e()}: {e()})()",
            lambda: f"[{e()}, {e()}][{e()}]",
            lambda: f"({e()} in [{e()}, {e()}])",
            lambda: f"len(f'{{{self.name()}!r:>{{2}}}}{{log({self.name()})}}')",
            lambda: f"max({e()}, *[{e()}, {e()}])",
            lambda: f"(0 < log({e()}) < log({e()}) < 9)",
        ]
        return forms[kind]()

    # --- statements

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)
        self.size += 1

    def block(self, indent: int, loop: bool, depth: int) -> None:
        start = len(self.lines)
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, loop, depth)
        if len(self.lines) == start:
            self.emit(indent, "pass")

    def statement(self, indent: int, loop: bool, depth: int) -> None:
        simple = depth <= 0 or self.size > 45
        kind = self.random.randrange(12 if simple else 22)
        if kind < 4:
            self.emit(indent, f"{self.name()} = {self.expression()}")
        elif kind == 4:
            self.emit(indent, f"{self.name()} {self.pick('+=', '-=', '|=')} {self.expression()}")
        elif kind == 5:
            self.emit(indent, f"log({self.expression()})")
        elif kind == 6:
            self.emit(indent, self.pick("break", "continue") if loop else f"return {self.expression()}")
        elif kind == 7:
            self.emit(indent, f"return {self.expression()}" if self.chance(0.6) else f"del {self.name()}")
        elif kind == 8:
            self.emit(indent, f"{self.name()}, {self.pick('box.v', 'e', '*c')} = log(1), {self.expression()}")
        elif kind == 9:
            self.emit(indent, self.pick(f"box.v = {self.expression()}", f"box.v += {self.expression()}"))
        elif kind == 10:
            self.emit(indent, self.pick("raise KeyError(1)", f"assert {self.expression()}, {self.expression(1)}"))
        elif kind == 11:
            self.emit(indent, f"log([{self.name()} for {self.name()} in range({self.pick('2', '3', self.name())})])")
        else:
            self.compound(indent, loop, depth - 1, kind)

    def compound(self, indent: int, loop: bool, depth: int, kind: int) -> None:
        if kind < 15:
            self.emit(indent, f"if {self.expression()}:")
            self.block(indent + 1, loop, depth)
            while self.chance(0.2):
                self.emit(indent, f"elif {self.expression()}:")
                self.block(indent + 1, loop, depth)
            if self.chance(0.5):
                self.emit(indent, "else:")
                self.block(indent + 1, loop, depth)
        elif kind == 15:
            self.emit(indent, f"while tick() and {self.expression()}:")
            self.block(indent + 1, True, depth)
            self.loop_else(indent, loop, depth)
        elif kind < 18:
            iterable = self.pick("range(3)", "[2, 0, 5]", "()", f"[{self.expression(1)}]", "range(COUNT, 4)")
            self.emit(indent, f"for {self.pick(*NAMES, 'box.v')} in {iterable}:")
            self.block(indent + 1, True, depth)
            self.loop_else(indent, loop, depth)
        elif kind == 18:
            self.try_statement(indent, loop, depth)
        elif kind == 19:
            manager = self.pick("contextlib.nullcontext(1)", "contextlib.suppress(KeyError, TypeError)")
            self.emit(indent, f"with {manager} as {self.name()}:")
            self.block(indent + 1, loop, depth)
        else:
            self.function(indent, depth)

    def loop_else(self, indent: int, loop: bool, depth: int) -> None:
        if self.chance(0.3):
            self.emit(indent, "else:")
            self.block(indent + 1, loop, depth)

    def try_statement(self, indent: int, loop: bool, depth: int) -> None:
        self.emit(indent, "try:")
        self.block(indent + 1, loop, depth)
        final = self.chance(0.3)
        if not final or self.chance(0.7):
            caught = self.pick("KeyError", "(TypeError, ZeroDivisionError)", "Exception", "NameError")
            self.emit(indent, f"except {caught}" + (f" as {self.name()}:" if self.chance(0.4) else ":"))
            self.block(indent + 1, loop, depth)
            if self.chance(0.3):
                self.emit(indent, "else:")
                self.block(indent + 1, loop, depth)
        if final:
            self.emit(indent, "finally:")
            self.emit(indent + 1, f"{self.name()} = log({self.expression(1)})")
            if self.chance(0.3):
                self.emit(indent + 1, f"if {self.expression(1)}:")
                self.emit(indent + 2, f"{self.name()} = 8")

    def function(self, indent: int, depth: int) -> None:
        self.serial += 1
        self.nesting += 1
        name = f"g{self.serial}"
        parameter = self.pick("", "x", "a", "b=7")
        self.emit(indent, f"def {name}({parameter}):")
        candidates = [n for n in NAMES if n != parameter[:1]]
        if self.chance(0.6):
            self.emit(indent + 1, f"nonlocal {', '.join(sorted(self.random.sample(candidates, 2)))}")
        self.block(indent + 1, False, min(depth, 1))
        self.nesting -= 1
        argument = self.expression(1) if parameter in ("x", "a") else ""
        call = f"{name}({argument})"
        self.emit(indent, self.pick(f"log({call})", f"{self.name()} = {call}", f"{self.name()} = {name}"))
        if self.chance(0.3):
            self.emit(indent, f"log({call})")

    def program(self, name: str) -> str:
        self.emit(0, f"def {name}(a, b, box):")
        if self.chance(0.2):
            self.emit(1, "global COUNT")
            self.emit(1, "COUNT += a")
        for local in "cde":
            if self.chance(0.7):
                self.emit(1, f"{local} = {self.expression(1) if self.chance(0.3) else self.pick('0', '1', '[2]')}")
        self.emit(1, "if 0: c = d = e = 0")
        for _ in range(self.random.randint(2, 5)):
            self.statement(1, False, 3)
        self.emit(1, "return " + self.pick("a", "(a, b)", "c", "[d, e]", "box.v"))
        return "\n".join(self.lines) + "\n"


def module_text(seeds: range) -> str:
    """A module of random programs, one for each seed; those that do not compile are left out."""
    parts = [HEADER]
    names = []
    for seed in seeds:
        name = f"program_{seed}"
        text = Generator(seed).program(name)
        try:
            compile(text, name, "exec")
        except SyntaxError:
            continue
        parts.append(text + "\n\n")
        names.append(name)
    arguments = "[(0, 1, Box()), (2, 0, Box()), (1, 3, Box())]"
    parts.append(f"CASES = dict.fromkeys([{', '.join(names)}], {arguments})\n")
    return "".join(parts)
