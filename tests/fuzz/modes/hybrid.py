"""Programs that are none as a whole, with ``full_graph=False``: a frame that reads the host's random numbers or NumPy's
arrays calls random functions, writes to what they give, keeps it, and catches what they raise."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import dy2static
from tests.fuzz.generator import Generator
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.library import HEADER
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import check

_FRAME = '''
import random
import numpy as np
KEPT = []
def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for one in value.values() for t in tensors(one)]
    if isinstance(value, (list, tuple)):
        return [t for one in value for t in tensors(one)]
    return []
def broken(value):
    return [float(np.tanh(t.detach().numpy()).sum()) for t in tensors(value) if t.dtype == torch.float32]
def f(x, y, k):
    KEPT.clear()
    a, b, n, got, log = x * 1, y * 1, k, [], []
'''


class Hybrid(Mode):
    """Two random functions in a frame that cannot be a Program."""

    head = _FRAME
    tail = "    return a, b, n, got, log, list(KEPT)\n"
    names = ("a", "b")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed

    def source(self) -> str:
        """The functions, then the frame."""
        own = []
        for number, name in enumerate(("g", "h")):
            generator = Generator(2 * self.seed + number, depth=2)
            generator.module = False
            own.append(generator.source().removeprefix(HEADER).replace("def f(", f"def {name}(", 1))
        body = "\n".join(self.block(self.depth, "    ", False))
        return HEADER + "".join(own) + self.head + f"    log.append(random.random())\n{body}\n" + self.tail

    def simple(self) -> str:
        """A call of one of the functions, something that no Program does, or a write to what came out."""
        rng, one, other = self.rng, self.name(), self.name()
        name = rng.choice("gh")
        call = f"{name}({one}, {other}, {rng.choice(('k', 'n % 3', '1'))})"
        calls = (
            f"got.append({call})", f"got = [{call}]", f"last = {call}\ngot.append((last, last))",
            f"KEPT.append({call})",
            f"try:\n    got.append({call})\nexcept (ValueError, IndexError, RuntimeError, TypeError) as error:\n"
            "    log.append(type(error).__name__)",
            f"with torch.no_grad():\n    got.append({call})",
            f"{one} = sum([t.sum() for t in tensors({call}) if t.is_floating_point()], {one} * 0.5)",
        )
        outside = (
            "log.append(random.random())", "log.extend(broken(got))",
            f"log.append(float({one}.detach().numpy().sum()))",
            "n = n + random.randint(0, 1)", "log.append(round(float(np.random.rand()), 6))",
        )
        writes = (
            f"{one} = {other} + 0.5", f"{one}.mul_(0.5)", f"{one} = {other}",
            "for t in tensors(got)[:2]:\n    if t.is_floating_point() and not (t.is_leaf and t.requires_grad):\n"
            "        t.mul_(2)",
            f"if tensors(got):\n    {one} = {one} + tensors(got)[-1].float().mean()",
            "log.append([t is x or t is a for t in tensors(got)])",
        )
        return str(rng.choice(rng.choices((calls, outside, writes), (4, 2, 3))[0]))

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Each call twice, with gradients and without."""
        program: Any = load_program()
        static = dy2static.to_static(program.f, full_graph=False)
        calls = [call for call in self.calls(seed) for _ in range(2)]
        check(program.f, *calls, static=static, tolerance=TOLERANCE, paths=("program",), none_is_zero=True)
        parts = list(static.explain().walk())
        self.told = "with Programs" if any(part.programs for part in parts) else "in plain Python"
