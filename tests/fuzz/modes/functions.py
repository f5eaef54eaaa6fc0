"""``torch.autograd.Function``s of users that decide, save on paths and change state; ``requires_grad_`` and hooks."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

import dy2static
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import Terms, copied, hold, run, same

_HEAD = """import torch
LOG = []
class Holder:
    def __init__(self):
        self.count, self.last, self.total = 0, "none", torch.zeros(3)
HOLD = Holder()
BUFFER = torch.zeros(3)
"""


class Functions(Mode):
    """Functions of random forwards and backwards, some derived from others, called on paths, beside other tensors.

    What is refused for good stands in few programs: a ``backward`` that changes state, hooks that are registered
    inside, ``detach_`` and ``requires_grad_`` on paths. A forward changes state in straight code only, and there no
    tensor and no number that is read.
    """

    head = _HEAD
    tail = "    return p, q, n\n"
    names = ("p", "q")
    stays = True
    refusals = frozenset({"D2S213", "D2S218", "D2S221", "D2S228", "D2S245", "D2S275"})

    def source(self) -> str:
        """Two or three classes, and the function."""
        text = self.head
        self.kinds = self.rng.randint(2, 3)
        for number in range(self.kinds):
            text += self._class(number)
        body = "\n".join(self.block(self.depth, "    ", False))
        return f"{text}def f(x, y, k):\n    p, q, n = x * 0.5, y * 2, k\n{body}\n{self.tail}"

    def _class(self, number: int) -> str:
        """A class; a later one may be derived from the one before, and ask it for its forward or backward."""
        rng = self.rng
        name, base = f"F{number}", f"F{number - 1}"
        derived = number > 0 and rng.random() < 0.4
        lines = [f"class {name}({base if derived else 'torch.autograd.Function'}):", "    @staticmethod",
                 "    def forward(ctx, a, b, n):"]  # fmt: skip
        lines += ["        " + line for line in self._changes()]
        if derived:
            call = rng.choice((f"{base}.forward(ctx, a, b, n)", f"super({name}, {name}).forward(ctx, a, b, n)"))
            lines.append(f"        return {call} * {rng.choice(('0.5', '2'))}")
            if rng.random() < 0.5:
                call = rng.choice((f"{base}.backward(ctx, g)", f"super({name}, {name}).backward(ctx, g)"))
                lines += ["    @staticmethod", "    def backward(ctx, g):", f"        ga, gb, _ = {call}",
                          f"        return ga * {rng.choice(('0.5', '3'))}, gb, None"]  # fmt: skip
            return "\n".join(lines) + "\n"
        asked = rng.choice(("a.sum() > 0", "(b > 0).any()", "(a * b).sum() < 0.5", "n > 0"))
        way = rng.choice(("both", "path", "flag", "attribute"))
        saving = {
            "both": ["ctx.save_for_backward(a, b)"],
            "path": [f"if {asked}:", "    ctx.save_for_backward(a, b)", "else:", "    ctx.save_for_backward(a)"],
            "flag": ["ctx.save_for_backward(a, b)", f"ctx.flag = bool({asked})"],
            "attribute": ["ctx.save_for_backward(a, b)", f"ctx.scale = 2.0 if {asked} else 0.5", "ctx.n = n"],
        }
        result = rng.choice(("a * b + n", "torch.tanh(a) * b", "a + b * 0.5", "torch.where(a > 0, a, b)"))
        lines += ["        " + line for line in (f"out = {result}", *saving[way])]
        if rng.random() < 0.3:
            lines += [f"        if {asked}:", f"            out = out {rng.choice(('* 2', '+ a', '- b'))}"]
        lines += ["        return out", "    @staticmethod", "    def backward(ctx, g):"]
        gradients = {
            "both": ["a, b = ctx.saved_tensors", "return g * b, g * a, None"],
            "path": ["saved = ctx.saved_tensors", "if len(saved) == 2:", "    return g * saved[1], g * saved[0], None",
                     "return g * 0.5, g * saved[0], None"],
            "flag": ["a, b = ctx.saved_tensors", "if ctx.flag:", "    return g * b, g * 2, None",
                     "return g, g * torch.tanh(a), None"],
            "attribute": ["a, b = ctx.saved_tensors", "if g.sum() > 0:", "    return g * ctx.scale, g * b, None",
                          "return g * ctx.scale * a, g * ctx.n, None"],
        }  # fmt: skip
        changing = ["HOLD.count += 1"] if self.free and rng.random() < 0.5 else []
        lines += ["        " + line for line in (*changing, *gradients[way])]
        return "\n".join(lines) + "\n"

    def _changes(self) -> list[str]:
        """What a forward changes beside its result."""
        rng = self.rng
        if rng.random() < 0.5:
            return []
        if rng.random() < 0.4:
            return [f"if {rng.choice(('a', 'b'))}.sum() > 0:", "    ctx.more = n"]
        return [rng.choice(("HOLD.last = 'seen'", "ctx.more = n"))]

    def simple(self) -> str:
        """A call, a hook or flag, a value."""
        rng, one, other = self.rng, self.name(), self.name()
        number = rng.choice(("n", "1", "k"))
        kind = f"F{rng.randrange(self.kinds)}"
        calls = (f"{one} = {kind}.apply({one}, {other}, {number})", f"{one} = {kind}.apply({other}, x, {number})",
                 f"{one} = {kind}.apply({other}.detach(), {one}, {number}) + {one}",
                 f"with torch.no_grad():\n    t = {kind}.apply({one}, {other}, {number})\n{one} = {one} + t",
                 f"{one} = {one} + {kind}.apply({kind}.apply({one}, y, 1), {other}, {number}) * 0.5",
                 f"t = {kind}.apply({one}, {other}, {number})\n{one} = t * (2 if t.requires_grad else 3)")  # fmt: skip
        flags: tuple[str, ...] = (f"t = {one}.detach().requires_grad_()\n"
                 f"g, = torch.autograd.grad({kind}.apply(t, {other}, 1).sum(), t)\n"
                 f"{one} = {one} + g.detach()",
                 f"t = ({one} * 2).detach()\nt.requires_grad_({other}.requires_grad)\n{one} = {one} + t.sum().detach()",
                 f"n = n + {one}.requires_grad", f"n = n + ({one}.grad_fn is None)",
                 f"t = {one}.detach()\nt.detach_()\n{one} = t + {other}")  # fmt: skip
        if self.free:
            flags = (*flags, f"{one}.register_hook(lambda g: g * 2)", f"{one}.detach_()", f"{one}.retain_grad()",
                     f"{one} = {one}.detach()\nif {self.condition()}:\n    {one}.requires_grad_()")  # fmt: skip
        values = (f"{one} = {other} * 0.5 + 0.1", f"{one} = {one} - {other}", "n = n + 1", f"{one} = {one} + BUFFER",
                  "n = n + len(LOG)", "n = n + HOLD.count", f"{one} = {one} * 2 + HOLD.total")  # fmt: skip
        return rng.choice(rng.choices((calls, flags, values), (5, 2, 3))[0])

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Two copies of the program; then hooks of the caller's on arguments and results, and ``.grad``."""
        theirs, mine = load_program(), load_program()
        converted = dy2static.to_static(mine.f)
        for number, call in enumerate(self.calls(seed)):
            states = [("LOG", mine.LOG, theirs.LOG), ("HOLD", vars(mine.HOLD), vars(theirs.HOLD)),
                      ("BUFFER", mine.BUFFER, theirs.BUFFER)]  # fmt: skip
            expected, got = run(theirs.f, copied(call), number), run(converted, copied(call), number)
            terms = Terms(tolerance=TOLERANCE, none_is_zero=True)
            if not hold(got, expected, f"call {number}", terms, states):
                return
            if any(one.requires_grad for one in call[:2]) and not expected.refused:
                same(hooked(converted, copied(call)), hooked(theirs.f, copied(call)), f"call {number} hooks", TOLERANCE)
                state = [(module.LOG, vars(module.HOLD), module.BUFFER) for module in (mine, theirs)]
                same(state[0], state[1], f"call {number} state")


def hooked(function: Callable[..., Any], args: list[Any]) -> Any:
    """What hooks on arguments and results see, and what results and arguments have as gradients afterwards."""
    seen: list[tuple[str, torch.Tensor]] = []
    for name, one in zip("xy", args):
        one.register_hook(lambda grad, name=name: seen.append((name, grad.clone())))
    results = [one for one in function(*args) if isinstance(one, torch.Tensor) and one.requires_grad]
    for number, one in enumerate(results):
        if not one.is_leaf:
            one.retain_grad()
            one.register_hook(lambda grad, number=number: seen.append((f"result {number}", grad.clone())))
    if results:
        torch.stack([one.sum() for one in results]).sum().backward()
    zero = torch.zeros(3)
    gradients = [zero if one.grad is None else one.grad for one in (*results, *args[:2])]
    return sorted(seen, key=lambda pair: pair[0]), gradients
