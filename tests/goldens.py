"""Goldens: functions, and the Programs that the tracer makes of them, side by side in a text file.

    [two tensors]
    calls: (POS,), (NEG,)
    def f(x):
        ...
    ----
    program "f" {
    ...

``calls`` are the arguments of each call of ``f``, or of a module of the class ``Net``; they and the source may use the
names of ``NAMES``. Variables are counted anew, so that a golden does not change with what the tracer threw away on its
way. The Programs are the tracer's: no pass has run. ``python -m pytest tests/runtime/tracer --goldens`` writes what
they are now; read the difference before you commit it.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import dy2static
from runtime.ir.printer import print_operand, print_program
from tests.conformance import family

NAMES = {name: getattr(family, name) for name in ("POS", "NEG", "MIX", "vec", "ints", "num", "normal")}
_HEAD = "import dataclasses\nimport random\nfrom typing import NamedTuple\nimport torch\nfrom torch import nn\n\n\n"
_LINE = "----\n"
_MAIN = re.compile(r"^(def f|class Net)\(", re.MULTILINE)
_TITLE = re.compile(r"^\[(.+)\]\n", re.MULTILINE)


@dataclass(frozen=True)
class Golden:
    """One function, its calls, and the text of its Programs."""

    file: Path
    title: str
    calls: str
    source: str
    text: str


def read(file: Path) -> list[Golden]:
    """The goldens of a file.

    Raises:
        ValueError: A part that has no title, calls, source or line.
    """
    _, *parts = _TITLE.split(file.read_text())
    goldens = []
    for title, part in zip(parts[::2], parts[1::2]):
        body, line, text = part.partition(_LINE)
        first, _, source = body.partition("\n")
        if not line or not first.startswith("calls: ") or not _MAIN.search(source):
            raise ValueError(f"{file.name}, [{title}]: calls, source and a line {_LINE!r} are missing")
        goldens.append(Golden(file, title, first.removeprefix("calls: "), source.strip(), text.strip()))
    return goldens


def write(golden: Golden, text: str) -> None:
    """Put another text into the golden's file, in its place."""
    parts = [
        f"[{one.title}]\ncalls: {one.calls}\n{one.source}\n{_LINE}{text if one.title == golden.title else one.text}\n"
        for one in read(golden.file)
    ]
    golden.file.write_text("\n".join(parts))


def code_of(golden: Golden, folder: Path) -> Any:
    """The function ``f`` or the class ``Net``, from a file of its own."""
    path = folder / "golden.py"
    path.write_text(f"{_HEAD}{golden.source}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f if hasattr(module, "f") else module.Net


def calls_of(golden: Golden) -> list[tuple[Any, ...]]:
    """The arguments of each call."""
    calls: list[tuple[Any, ...]] = eval(f"[{golden.calls}]", dict(NAMES))  # it is our own text
    return calls


@contextmanager
def no_passes() -> Iterator[None]:
    """Programs stay as the tracer makes them."""
    with mock.patch.object(sys.modules["runtime.calling.prepare"], "chosen", lambda strategy: ()):
        yield


def text_of(static: dy2static.StaticFunction) -> str:
    """The Programs of a function, oldest first, each with what it stores in the caller's objects."""
    parts = []
    for specialization in reversed(static._dispatch.cache.all()):
        traced = specialization.traced
        parts.append(print_program(traced.program, locations=False).strip())
        parts += [f"store {effect.place.describe()}: {print_operand(effect.tree)}" for effect in traced.effects]
    return renumbered(in_newer_words("\n".join(parts)))


def in_newer_words(text: str) -> str:
    """What Python 3.10 says of a name that is unbound, as newer versions say it."""
    if sys.version_info >= (3, 11):
        return text
    newer = r"cannot access local variable '\1' where it is not associated with a value"
    return re.sub(r"local variable '(\w+)' referenced before assignment", newer, text)


def renumbered(text: str) -> str:
    """Variables without a name of their own, counted in the order in which they come.

    >>> renumbered("%7 = f(%x, %3)\\nyield %7")
    '%0 = f(%x, %1)\\nyield %0'
    """
    numbers: dict[str, int] = {}
    return re.sub(r"%(\d+)\b", lambda match: f"%{numbers.setdefault(match[1], len(numbers))}", text)
