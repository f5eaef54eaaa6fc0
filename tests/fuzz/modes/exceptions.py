"""Exceptions of users' classes that tensors decide: raised in calls, loops, generators and ``with``, and handled."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

import dy2static
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import check

_HEAD = '''import contextlib
import sys
import torch
class Far(Exception):
    def __init__(self, n, t=None):
        super().__init__("far", n)
        self.n, self.t = n, t
class Near(Far):
    pass
class Gone(BaseException):
    def __init__(self, n):
        super().__init__(n)
        self.n = n
class Bad(ValueError):
    def __str__(self):
        return f"bad {self.args[0]}"
class Guard:
    def __init__(self):
        self.left, self.kind = 0, "none"
    def __enter__(self):
        return self
    def __exit__(self, kind, error, trace):
        self.left += 1
        self.kind = "none" if kind is None else kind.__name__
    def close(self):
        self.left += 5
@contextlib.contextmanager
def scope(guard):
    guard.left += 1
    try:
        yield guard
    finally:
        guard.left += 10
'''
_TAIL = "    return p, q, n, text, guard.left, guard.kind\n"
_START = '    n, text, guard = k, "", Guard()\n'
_CONTEXTS = ("guard", "scope(guard)", "torch.no_grad()", "contextlib.closing(guard)",
             "contextlib.closing(Guard()) as other")  # fmt: skip
_CLASSES = ("Far", "Near", "Gone", "Bad", "ValueError", "SystemExit")
_CAUGHT = ("Far", "Near", "Gone", "Bad", "ValueError", "(Far, Bad)", "(Gone, SystemExit)", "SystemExit", "Exception",
           "BaseException", "(ValueError, Gone)")  # fmt: skip


class Exceptions(Mode):
    """Helpers that raise, one calling another, and handlers at several depths that read what they caught.

    What is refused for good stands in few programs: managers that swallow, generators that raise, ``closing`` (whose
    code is not converted) on a path, a SystemExit with a number that only a run knows.
    """

    head = _HEAD
    tail = _TAIL
    names = ("p", "q")
    refusals = frozenset({"D2S220", "D2S227", "D2S228", "D2S229", "D2S266"})
    helpers: Sequence[str] = ()
    """The functions that what is being written may call."""
    caught: tuple[str, ...] = ()
    """The variables of the handlers around what is being written."""
    own = False
    """Whether a helper is being written."""

    def source(self) -> str:
        """Helpers, each of which may call those before it, and the function."""
        text = self.head
        self.own = True
        for number in range(self.rng.randint(1, 3)):
            body = "\n".join(self.block(1, "    ", False))
            text += f"def helper_{number}(p, q, n, text, guard):\n{body}\n    return p, q, n, text\n"
            self.helpers = (*self.helpers, f"helper_{number}")
        rows = f"        {self._raising()}\n" if self.free else ""
        text += f"def rows(p, n):\n    while n < 3:\n        p, n = p * 0.5, n + 1\n{rows}        yield p\n"
        self.own = False
        body = "\n".join(self.block(self.depth, "    ", False))
        return f"{text}def f(x, y, k):\n    p, q = x * 0.5, y * 2\n{_START}{body}\n{self.tail}"

    def leaving(self, in_loop: bool) -> str:
        """A helper returns other values than the function."""
        leaving = super().leaving(in_loop)
        return "return p, q, n, text" if self.own and leaving.startswith("return") else leaving

    def condition(self) -> str:
        """A condition that depends on a tensor that every function has."""
        one = self.name()
        return self.rng.choice((f"{one}.sum() > 0", f"({one} > 0).any()", f"{one}.sum() < 1.5", f"{one}.max() > 1"))

    def nested(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        """Half of them are ``try``."""
        rng, inner = self.rng, pad + "    "
        self.contexts = _CONTEXTS if self.free or not (self.own or self.inside) else _CONTEXTS[:3]
        if rng.random() < 0.5:
            return super().nested(depth, pad, in_loop)
        lines = [f"{pad}try:", *self.block(depth, inner, in_loop)]
        if rng.random() < 0.7:
            lines.append(f"{inner}{self._raising()}")
        handlers = rng.choice((0, 1, 1, 1, 2))
        around = self.caught
        for caught in rng.sample(_CAUGHT, handlers):
            name = f"error{len(around)}"
            lines.append(f"{pad}except {caught} as {name}:")
            self.caught = (*around, name)
            lines += [inner + self._reading(), *self.block(min(depth, 1), inner, in_loop)]
            if rng.random() < 0.25:
                ways = ("raise", f"raise {self._made()} from {name}", f"raise {self._made()}", f"raise {name}",
                        f"raise {self._made()} from None")  # fmt: skip
                lines.append(inner + self._under(rng.choice(ways)))
        self.caught = around
        if handlers and rng.random() < 0.3:
            lines += [f"{pad}else:", *self.block(0, inner, in_loop)]
        if not handlers or rng.random() < 0.35:
            lines += [f"{pad}finally:", f"{inner}n = n + 1", *self._calm(inner)]
        return lines

    def _calm(self, pad: str) -> list[str]:
        """A block that neither leaves nor calls."""
        one, other = self.name(), self.name()
        lines = (f"{one} = {other} + 0.5", "guard.left += 2", 'text = text + "f"',
                 f"if {self.condition()}:\n{pad}    n += 2")  # fmt: skip
        return [pad + line for line in self.rng.sample(lines, self.rng.randint(0, 2))]

    def _made(self) -> str:
        """An exception."""
        kind = self.rng.choice(_CLASSES)
        if kind in ("Far", "Near") and self.rng.random() < 0.5:
            return f"{kind}(n, {self.name()})"
        number = "2" if kind == "SystemExit" and not self.free else self.rng.choice(("n", "n", "2"))
        return f"{kind}({number})"

    def _raising(self) -> str:
        """A raise that a tensor decides."""
        return self._under("sys.exit(3)" if self.rng.random() < 0.1 else f"raise {self._made()}")

    def _under(self, text: str) -> str:
        return f"if {self.condition()}: {text}" if self.rng.random() < 0.85 else text

    def _reading(self) -> str:
        """What a handler reads of what it caught."""
        one, error = self.name(), self.caught[-1]
        return self.rng.choice((
            f"n = n + len({error}.args)", f'n = n + getattr({error}, "n", 7)', f"text = text + type({error}).__name__",
            f"n = n + isinstance({error}, Far)", f"n = n + ({error}.__cause__ is None)", f"n = n + {error}.args[-1]",
            f"n = n + ({error}.__context__ is None)", f"text = text + type({error}.__cause__).__name__",
            f'{one} = {one} if getattr({error}, "t", None) is None else {error}.t * 2', f"text = text + str({error})",
            f"text = text + repr({error})", f"n = n + (3 if {error}.__suppress_context__ else 4)",
            f'n = n + (getattr({error}, "code", None) or 1)',
        ))  # fmt: skip

    def simple(self) -> str:
        """A value, a raise, a call of what raises."""
        rng, one, other = self.rng, self.name(), self.name()
        values = (f"{one} = {other} * 0.5 + 0.1", f"{one} = {one} - {other}", "n = n + 1", 'text = text + "a"',
                  "guard.left += 3", f"{one} = {one} + n")  # fmt: skip
        kinds = [values, values, (self._raising(),)]
        if self.helpers:
            kinds.append((f"p, q, n, text = {rng.choice(self.helpers)}({one}, {other}, n, text, guard)",
                          f"{one} = {rng.choice(self.helpers)}({one}, {other}, n, text, guard)[0]"))
        if not self.own:
            kinds.append((
                f"for row in rows({one}, k):\n    {other} = {other} + row\n    {self._raising()}",
                f"for row in rows({one}, k):\n    {other} = {other} + row", f"n = n + len(list(rows({one}, k)))",
            ))  # fmt: skip
        if self.caught:
            kinds.append((self._reading(),))
        if self.free:
            kinds.append((f"with contextlib.suppress(Far):\n    {self._raising()}",))
        return rng.choice(rng.choice(kinds))

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """What leaves the function is told as a result."""
        program = load_program()
        ends = (program.Far, program.Gone, ValueError, SystemExit, UnboundLocalError, IndexError, TypeError)
        static = _told(dy2static.to_static(program.f), ends)
        check(_told(program.f, ends), *self.calls(seed), static=static, tolerance=TOLERANCE, paths=("program",),
              none_is_zero=True)  # fmt: skip


def _told(function: Callable[..., Any], ends: tuple[type[BaseException], ...]) -> Callable[..., Any]:
    """The function; of an exception that leaves it, what can be read of it and of what it was raised from.

    Not of what was being handled, which a Program does not keep, nor gradients of tensors that an exception holds.
    """

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except ends as error:
            told = []
            for one in (error, error.__cause__):
                held = {name: value.detach() if isinstance(value, torch.Tensor) else value
                        for name, value in ({} if one is None else vars(one)).items()}
                told.append(None if one is None else (type(one).__name__, one.args, str(one), held))
            return [*told, error.__suppress_context__]

    return call
