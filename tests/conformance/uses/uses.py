"""Every function and method of Python's that may meet a value which only the run knows, and what becomes of each.

A use is an expression or a few statements about ``v``: one of two values (``A`` and ``B``) chosen by a branch, or a
number or text that is computed while the Program runs. Each is run in eager and converted, on both paths.
"""

from __future__ import annotations

import builtins
import collections
import functools
import importlib.util
import io
import itertools
import operator
import re
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import dy2static
from dy2static.program_cache import RetraceWarning
from runtime.errors import Dy2StaticError
from tests.conformance.uses import collecting, containers, functions, text
from tests.oracle import same

TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "syntax": functions.SYNTAX, "builtins": functions.BUILTINS, "str": text.TABLE, "list": containers.LIST,
    "tuple": containers.TUPLE, "dict": containers.DICT, "set": containers.SET, "frozenset": containers.FROZENSET,
    "deque": containers.DEQUE, "collections": collecting.COLLECTIONS, "Counter": collecting.COUNTER,
    "OrderedDict": collecting.ORDERED, "ChainMap": collecting.CHAIN, "defaultdict": collecting.DEFAULT,
    "itertools": functions.ITERTOOLS, "operator": functions.OPERATOR, "functools": functions.FUNCTOOLS,
    "other modules": functions.OTHERS,
}  # fmt: skip

OWNERS: dict[str, Any] = {
    "builtins": builtins, "str": str, "list": list, "tuple": tuple, "dict": dict, "set": set, "frozenset": frozenset,
    "deque": collections.deque, "collections": collections, "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict, "ChainMap": collections.ChainMap, "defaultdict": collections.defaultdict,
    "itertools": itertools, "operator": operator, "functools": functools,
}  # fmt: skip
"""Whose public names a table must have."""

KINDS: dict[str, tuple[str, str]] = {
    "str": ("'up'", "'down'"), "Enum": ("Way.UP", "Way.DOWN"), "str or None": ("'up'", "None"),
    "dtype": ("torch.float32", "torch.float64"), "type": ("int", "float"), "tuple": ("('a', 1)", "('b', 2)"),
    "int": ("1", "2"), "float": ("0.5", "2.5"), "bool": ("True", "False"), "text": ("'1'", "'0'"),
}  # fmt: skip
"""What ``v`` is, and the two values it takes; "text" is made from a number while the Program runs."""

_HEAD = """import bisect, copy, dataclasses, enum, functools, heapq, itertools, json, math, operator, pickle, pprint
import random, re, statistics, string, types
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple
import torch


class Way(enum.Enum):
    UP = 1
    DOWN = 2


class Bag:
    def __init__(self, **items):
        self.up, self.down = 1.0, 2.0
        for name, value in items.items():
            setattr(self, name, value)


@dataclasses.dataclass(frozen=True)
class Point:
    key: object
    n: int = 1

"""
_IDENTITY = ("is", "is_", "is_not", "id")
_LITERALS = ("tuple", "int", "float", "text")
"""Kinds of which Python itself does not say whether two equal ones are the same object."""
_LIMIT = 20


@dataclass(frozen=True)
class Use:
    """``number`` of the uses of ``name`` in a table, with a value of some kind."""

    table: str
    name: str
    number: int
    kind: str

    @property
    def text(self) -> str:
        """The use itself."""
        return TABLES[self.table][self.name][self.number]

    @property
    def in_this_python(self) -> bool:
        """Whether this version of Python has the name."""
        return self.table not in OWNERS or hasattr(OWNERS[self.table], self.name)

    @property
    def id(self) -> str:
        """A name for the test."""
        return f"{self.table}-{self.name}-{self.number}-{self.kind}".replace(" ", "_")

    def source(self, function: str) -> str:
        """The program, as a function of this name."""
        a, b = KINDS[self.kind]
        chosen = f"    if x.sum() > 0:\n        v = {a}\n    else:\n        v = {b}\n"
        if self.kind == "text":
            chosen = "    v = str(int(x.sum() > 0))\n"
        body = self.text if re.search(r"\br\b[^=]*= |\bas r\b|r = ", self.text) else f"r = {self.text}"
        lines = [line if line.startswith(" ") else f"    {line}" for line in body.replace("; ", "\n").split("\n")]
        body = re.sub(r"\bA\b", a, re.sub(r"\bB\b", b, "\n".join(lines)))
        return f"def {function}(x):\n{chosen}{body}\n    return r\n"


def every() -> list[Use]:
    """All uses, of each kind."""
    return [Use(table, name, number, kind) for table, names in TABLES.items() for name, uses in names.items()
            for number in range(len(uses)) for kind in KINDS if not (name in _IDENTITY and kind in _LITERALS)]


@dataclass(frozen=True)
class Outcome:
    """``word``: equal, refused, raises (eager raises on both paths, and so does the converted), silent or internal."""

    word: str
    detail: str = ""


@contextmanager
def loaded(uses: list[Use]) -> Iterator[types.ModuleType]:
    """A module with the programs, ``use_0`` and so on, from a real file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "programs_of_uses.py"
        path.write_text(_HEAD + "\n\n".join(use.source(f"use_{number}") for number, use in enumerate(uses)))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # "is" with a literal
                spec.loader.exec_module(module)
            yield module
        finally:
            del sys.modules[path.stem]


def judge(function: Any) -> Outcome:
    """What becomes of one program."""
    inputs = [torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])]
    expected = [_run(function, x) for x in inputs]
    converted = dy2static.to_static(function)
    raising = all(isinstance(one[0], Exception) for one in expected)
    codes = []
    for x, (want, said) in zip(inputs, expected):
        got, printed = _run(converted, x)
        if isinstance(got, Dy2StaticError):
            if not got.code or got.code == "D2S290":
                return Outcome("internal", str(got))
            codes.append(got.code)
            continue
        if isinstance(want, Exception) or isinstance(got, Exception):
            if type(want) is not type(got):
                word = "internal" if isinstance(got, Exception) else "silent"
                return Outcome(word, f"eager gives {want!r}, converted {got!r}")
            continue
        try:
            same(got, want)
            same(printed, said)
        except (AssertionError, Dy2StaticError) as error:
            return Outcome("silent", str(error))
    return Outcome("refused", codes[0]) if codes else Outcome("raises" if raising else "equal")


def _run(function: Any, x: torch.Tensor) -> tuple[Any, str]:
    printed = io.StringIO()
    try:
        with _limited(), redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore", RetraceWarning)
            result = function(x.clone())
    except Exception as error:  # whatever it is, it is compared
        return error, printed.getvalue()
    return result, printed.getvalue()


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"no answer in {_LIMIT} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _LIMIT)  # of the processor: others may be at work
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def outcomes(uses: list[Use]) -> Iterator[tuple[Use, Outcome]]:
    """The outcome of each use."""
    with loaded(uses) as module:
        for number, use in enumerate(uses):
            yield use, judge(getattr(module, f"use_{number}"))
