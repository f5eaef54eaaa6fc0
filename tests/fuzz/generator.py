"""Random programs: functions of tensors with every statement the converter knows, nested at random.

The same seed gives the same program. ``Generator(seed).source()`` is complete Python text that defines ``f(x, y, k)``;
``used`` says which constructs it holds and in which construct each stands.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager

HEADER = """\
import torch
import torch.nn.functional as F


def helper(a, limit):
    if a.sum() > limit:
        return a * 0.5
    for _ in range(2):
        a = a - 0.1
        if a.sum() < limit:
            break
    return a


def count_up(a, n):
    i = 0
    while i < n:
        a = torch.sin(a) + i
        i += 1
    return a, i


class Box:
    def __init__(self, value):
        self.value = value
        self.hits = 0

    def push(self, a):
        if a.mean() > 0:
            self.value = self.value + a
            return self.value
        return a


"""

TENSORS = ("x", "y", "a", "b", "c")
INTS = ("i", "j", "m")


class Generator:
    """Writes one random program."""

    def __init__(self, seed: int, *, depth: int = 3, size: int = 5) -> None:
        self.random = random.Random(seed)
        self.depth = depth
        self.size = size
        self.lines: list[str] = []
        self.indent = 1
        self.loops: list[str] = []
        self.stack: list[str] = ["function"]
        self.used: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.fresh = 0
        self.lists = 0

    # -- text ----------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def inside(self, kind: str, header: str):
        self.line(header)
        self.indent += 1
        self.stack.append(kind)
        yield
        self.stack.pop()
        self.indent -= 1

    def note(self, kind: str) -> None:
        self.used[kind] += 1
        self.pairs[self.stack[-1], kind] += 1

    def name(self, stem: str) -> str:
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def source(self) -> str:
        """The module's text."""
        self.line("a = x * 0.5")
        self.line("b = torch.tanh(y)")
        self.line("c = torch.zeros(3)")
        self.line("i = 0")
        self.line("j = k")
        self.line("m = 1")
        self.line("out = []")
        self.line("d = {'p': x, 'n': 0}")
        self.line("box = Box(x * 1)")
        self.block(self.depth)
        self.line(
            self.random.choice(
                [
                    "return a, b, c, i, j, m",
                    "return a + b + c, (i, m), out",
                    "return {'a': a, 'b': b, 'c': c, 'j': j, 'd': d}",
                    "return [a, b, c, len(out), box.value, box.hits]",
                    "return a.sum() + b.sum() * 2 + c.sum() * 3 + i",
                ]
            )
        )
        return HEADER + "def f(x, y, k):\n" + "\n".join(self.lines) + "\n"

    # -- expressions ---------------------------------------------------------------------------------------------

    def tensor(self, depth: int = 2) -> str:
        """A float tensor of three elements."""
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice(TENSORS)
        one = self.tensor(depth - 1)
        return r.choice(
            [
                lambda: f"torch.tanh({one})",
                lambda: f"torch.sin({one} + {self.tensor(depth - 1)})",
                lambda: f"({one} * {self.tensor(depth - 1)} * 0.5)",
                lambda: f"({one} - {self.number()})",
                lambda: f"({one} + {self.integer()} * 0.25)",
                lambda: f"torch.relu({one})",
                lambda: f"({one} * {one}.mean())",
                lambda: f"helper({one}, {self.number()})",
                lambda: f"({one} if {self.condition()} else {self.tensor(depth - 1)})",
                lambda: f"torch.where({one} > 0, {self.tensor(depth - 1)}, -{one})",
                lambda: f"{one}.flip(0)",
                lambda: f"{one}[[1, 2, 0]]",
                lambda: f"torch.cat([{one}[:1], {self.tensor(depth - 1)}[1:]])",
                lambda: f"({one} / (1 + {self.tensor(depth - 1)}.abs()))",
                lambda: f"count_up({one}, {self.random.randint(0, 2)})[0]",
                lambda: f"F.dropout({one}, 0.3)" if r.random() < 0.3 else f"torch.sigmoid({one})",
                lambda: f"(lambda q: q * 2 if q.sum() < 1 else q - 1)({one})" if r.random() < 0.5 else f"{one}.cos()",
            ]
        )()

    def number(self) -> str:
        return self.random.choice(["0.1", "-0.2", "0.5", "1.0", "-0.7", "0.0"])

    def integer(self) -> str:
        r = self.random
        return r.choice(
            [
                lambda: r.choice(INTS),
                lambda: str(r.randint(-2, 3)),
                lambda: "k",
                lambda: "len(out)",
                lambda: f"({r.choice(INTS)} + {r.randint(0, 2)})",
                lambda: f"min({r.choice(INTS)}, 3)",
                lambda: f"abs({r.choice(INTS)})",
                lambda: f"({r.choice(INTS)} % 3)",
                lambda: f"int({r.choice(TENSORS)}.sum() > 0)",
                lambda: f"({r.choice(INTS)} // 2)",
                lambda: f"x.shape[0] - {r.randint(0, 2)}",
            ]
        )()

    def condition(self, depth: int = 1) -> str:
        r = self.random
        t = r.choice(TENSORS)
        simple = [
            lambda: f"{t}.sum() > {self.number()}",
            lambda: f"{t}.mean() < {self.number()}",
            lambda: f"{t}[0] > {r.choice(TENSORS)}[1]",
            lambda: f"{self.integer()} > {self.integer()}",
            lambda: f"{t}.sum().item() > {self.number()}",
            lambda: f"({t} > 0).any()",
            lambda: f"bool(({t} < 0).all())",
            lambda: f"{self.number()} < {t}.max() < 1.5",
            lambda: f"k == {r.randint(0, 2)}",
            lambda: f"{self.integer()} in (0, 2)",
            lambda: f"len(out) > {r.randint(0, 2)}",
        ]
        if depth and r.random() < 0.4:
            return r.choice(
                [
                    lambda: f"{self.condition(0)} and {self.condition(0)}",
                    lambda: f"{self.condition(0)} or {self.condition(0)}",
                    lambda: f"not ({self.condition(0)})",
                ]
            )()
        return r.choice(simple)()

    # -- statements ----------------------------------------------------------------------------------------------

    def block(self, depth: int) -> None:
        for _ in range(self.random.randint(1, self.size)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        r = self.random
        simple: list[tuple[str, Callable[[], None]]] = [
            ("assign", self._assign),
            ("assign", self._assign),
            ("augmented", self._augmented),
            ("in_place", self._in_place),
            ("set_item", self._set_item),
            ("integer", self._integer),
            ("append", self._append),
            ("use_list", self._use_list),
            ("swap", self._swap),
            ("dict", self._dict),
            ("view_write", self._view_write),
            ("attribute", self._attribute),
            ("call", self._call),
            ("assert", self._assert),
            ("walrus", self._walrus),
            ("closure", self._closure),
            ("comprehension", self._comprehension),
        ]
        nested: list[tuple[str, Callable[[int], None]]] = [
            ("if", self._if),
            ("if", self._if),
            ("if", self._if),
            ("while", self._while),
            ("while", self._while),
            ("for_range", self._for_range),
            ("for_staged", self._for_staged),
            ("for_rows", self._for_rows),
            ("for_list", self._for_list),
            ("no_grad", self._no_grad),
            ("try", self._try),
        ]
        if depth > 0 and r.random() < 0.45:
            kind, compound = r.choice(nested)
            self.note(kind)
            compound(depth - 1)
            return
        if len(self.stack) > 1 and r.random() < 0.12:
            self._leave()
            return
        kind, write = r.choice(simple)
        self.note(kind)
        write()

    def _assign(self) -> None:
        self.line(f"{self.random.choice(TENSORS[2:])} = {self.tensor()}")

    def _augmented(self) -> None:
        name = self.random.choice(("a", "b"))
        if self.random.random() < 0.5:
            self.line(f"{name} = {name} * 1")
        self.line(f"{name} {self.random.choice(['+=', '-=', '*='])} {self.random.choice(['0.5', self.tensor(1)])}")

    def _in_place(self) -> None:
        name = self.random.choice(("a", "b", "c"))
        self.line(f"{name} = {name}.clone()")
        self.line(
            f"{name}."
            + self.random.choice(["add_(0.5)", "mul_(0.5)", f"sub_({self.tensor(1)}.detach())", "clamp_(-1, 1)"])
        )

    def _set_item(self) -> None:
        name = self.random.choice(("a", "b", "c"))
        self.line(f"{name} = {name} + 0")
        index = self.random.choice(["0", "1:", "-1", "[0, 2]", f"{name} > 0"])
        value = self.random.choice(["0.5", f"{self.tensor(1)}.sum()", f"{self.tensor(1)}[0]"])
        self.line(f"{name}[{index}] = {value}")

    def _integer(self) -> None:
        self.line(f"{self.random.choice(INTS)} {self.random.choice(['=', '+='])} {self.integer()}")

    def _append(self) -> None:
        self.line(f"out.append({self.tensor(1)})")

    def _use_list(self) -> None:
        name = self.random.choice(("a", "b"))
        with self.inside("if", "if len(out) > 0:"):
            self.line(
                f"{name} = {name} + " + self.random.choice(["out[-1]", "out[0] * 0.5", "torch.stack(out).sum(0) * 0.1"])
            )

    def _swap(self) -> None:
        one, two = self.random.sample(TENSORS[2:], 2)
        self.line(f"{one}, {two} = {two}, {one} * 0.5")

    def _dict(self) -> None:
        self.line(
            self.random.choice(
                [
                    f"d['p'] = {self.tensor(1)}",
                    "d['n'] += 1",
                    f"{self.random.choice(('a', 'b'))} = d['p'] + d['n']",
                ]
            )
        )

    def _view_write(self) -> None:
        name, view = self.random.choice(("a", "b")), self.name("v")
        self.line(f"{name} = {name}.clone()")
        self.line(f"{view} = {name}[{self.random.choice(['1:', ':2', '::2'])}]")
        self.line(f"{view}.mul_({self.random.choice(['0.5', '-1'])})")

    def _attribute(self) -> None:
        self.line(
            self.random.choice(
                [
                    f"box.value = {self.tensor(1)}",
                    "box.hits += 1",
                    "a = box.push(a)",
                    "b = b + box.value * 0.1",
                ]
            )
        )

    def _call(self) -> None:
        self.line(
            f"c, m = count_up({self.tensor(1)}, {self.random.choice(['1', '2', 'int(x.sum() > 0)', 'min(abs(j), 3)'])})"
        )

    def _assert(self) -> None:
        self.line("assert a.sum() < 1e6, 'too large'")

    def _walrus(self) -> None:
        name = self.name("w")
        self.line(f"c = c + {name} if ({name} := {self.tensor(1)}).sum() > 0 else c - 0.25")

    def _closure(self) -> None:
        name = self.name("g")
        with self.inside("closure", f"def {name}(q):"):
            self.line(f"return q * {self.random.choice(('a', 'b'))} if q.sum() > {self.number()} else q + i")
        self.line(f"c = {name}({self.random.choice(TENSORS)})")

    def _comprehension(self) -> None:
        self.line(
            self.random.choice(
                [
                    "c = sum([t * 0.5 for t in (a, b, c)])",
                    "m = len([t for t in (a, b) if t.shape[0] > 2])",
                    "c = torch.stack([helper(t, 0.0) for t in (a, b)]).mean(0)",
                ]
            )
        )

    def _if(self, depth: int) -> None:
        with self.inside("if", f"if {self.condition()}:"):
            self.block(depth)
        while self.random.random() < 0.2:
            with self.inside("if", f"elif {self.condition()}:"):
                self.block(depth)
        if self.random.random() < 0.6:
            with self.inside("if", "else:"):
                self.block(depth)

    def _loop_body(self, kind: str, header: str, depth: int, before: str = "") -> None:
        self.loops.append(kind)
        with self.inside(kind, header):
            if before:
                self.line(before)
            self.block(depth)
        self.loops.pop()
        if self.random.random() < 0.2:
            with self.inside(kind, "else:"):
                self.block(0)

    def _while(self, depth: int) -> None:
        count = self.name("n")
        self.line(f"{count} = {self.random.choice(['0', 'torch.tensor(0)', 'int(x.sum() > 0)'])}")
        limit = self.random.choice(["3", "2", "1"])
        self._loop_body(
            "while",
            f"while {count} < {limit}" + (f" and {self.condition(0)}:" if self.random.random() < 0.5 else ":"),
            depth,
            f"{count} = {count} + 1",
        )

    def _for_range(self, depth: int) -> None:
        self._loop_body(
            "for_range", f"for i in range({self.random.choice(['2', '3', 'k', '1, 3', '2, 0, -1'])}):", depth
        )

    def _for_staged(self, depth: int) -> None:
        bound = self.random.choice(
            ["int((x > 0).sum())", "int(y.abs().sum() > 1) + 1", "(x > 0).sum()", "min(abs(j), 2)"]
        )
        self._loop_body("for_staged", f"for j in range({bound}):", depth)

    def _for_rows(self, depth: int) -> None:
        self._loop_body(
            "for_rows", f"for r in torch.stack([{self.tensor(1)}, {self.tensor(1)}]):", depth, "c = c + r * 0.5"
        )

    def _for_list(self, depth: int) -> None:
        self._loop_body(
            "for_list", f"for m, t in enumerate(({self.tensor(1)}, {self.tensor(1)})):", depth, "b = b + t * 0.1"
        )

    def _no_grad(self, depth: int) -> None:
        with self.inside("no_grad", "with torch.no_grad():"):
            self.block(min(depth, 1))

    def _try(self, depth: int) -> None:
        with self.inside("try", "try:"):
            self.block(depth)
        with self.inside("try", "finally:"):
            self.line("m = m + 1")

    def _leave(self) -> None:
        r = self.random
        kinds = ["return"] + (["break", "continue", "break"] if self.loops else [])
        kind = r.choice(kinds)
        self.note(kind)
        with self.inside("if", f"if {self.condition()}:"):
            if kind == "return":
                self.line(
                    r.choice(
                        ["return a, b", "return a * 2", f"return {self.tensor(1)}, i", "return None", "return out"]
                    )
                )
            else:
                self.line(kind)
