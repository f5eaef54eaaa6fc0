"""Random programs: functions and modules with every statement the converter knows, nested at random.

The same seed gives the same program. ``Generator(seed).source()`` is complete Python text that defines
``f(x, y, k)``, or ``Model`` with such a forward; ``used`` says which constructs it holds and ``pairs`` what each
stands in.
"""

from __future__ import annotations

from tests.fuzz import compound, statements  # noqa: F401  # they register what they write
from tests.fuzz.library import HEADER, MODULE
from tests.fuzz.writer import Writer, block

START = (
    "global total",
    "total = 0",
    "a, b, c = x * 0.5, torch.tanh(y), torch.zeros(3)",
    "i, j, m, s = 0, k, 1, 0.5",
    "out, last, pair = [], None, (x, 1)",
    "d, box = {'p': x, 'n': 0}, Box(x * 1)",
    "named, record = Pair(y, 2), Record(x * 2)",
)

ENDS = (
    "return a, b, c, i, j, m",
    "return a + b + c, (i, m), out, s",
    "return {'a': a, 'b': b, 'c': c, 'j': j, 'd': d}",
    "return [a, b, c, len(out), box.value, box.hits]",
    "return a.sum() + b.sum() * 2 + c.sum() * 3 + i",
    "return Pair(a + c, last), pair, s, total",
    "return record, named, b, box.table",
)


class Generator(Writer):
    """Writes one random program."""

    def __init__(self, seed: int, *, depth: int = 3, size: int = 3, draws: bool = True) -> None:
        super().__init__(seed, size)
        self.draws = draws
        self.depth = depth
        self.module = self.chance(0.25)

    def source(self) -> str:
        """The module's text."""
        if self.module:
            self.note("module")
            self.indent = 2
        for text in START:
            self.line(text)
        for _ in range(2):
            block(self, self.depth)
        self.line(self.pick(ENDS))
        body = "\n".join(self.lines) + "\n"
        if self.module:
            return HEADER + MODULE + "    def forward(self, x, y, k):\n" + body
        return HEADER + "def f(x, y, k):\n" + body
