"""An attribute that is not there, and is there later: of objects of every kind, asked for in every way."""

from __future__ import annotations

import argparse
import collections
import contextlib
import enum
import functools
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import difference


class Plain:
    pass


class Derived(Plain):
    pass


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    pass


class Slotted:
    __slots__ = ("factor",)


class Lists(list[int]):
    pass


class Dicts(dict[str, int]):
    pass


class Deques(collections.deque[int]):
    pass


class Ordered(collections.OrderedDict[str, int]):
    pass


class Texts(str):
    pass


class Numbers(int):
    pass


class Arrays(np.ndarray):
    pass


class Color(enum.Enum):
    RED = 1


class Asked:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Computed:
    @property
    def product(self) -> Any:
        return self.factor  # type: ignore[attr-defined]


def function() -> None:
    pass


KINDS: dict[str, Callable[[], Any]] = {
    "namespace": types.SimpleNamespace, "object": Plain, "class": lambda: type("Made", (Plain,), {}),
    "derived": Derived, "metaclass": lambda: Meta("Made", (), {}), "module": lambda: types.ModuleType("made"),
    "slots": Slotted, "list": Lists, "dict": Dicts, "deque": Deques, "ordered": Ordered,
    "OrderedDict": collections.OrderedDict, "text": lambda: Texts("a"), "number": lambda: Numbers(3),
    "array": lambda: np.ones(2).view(Arrays), "enum": lambda: Color.RED, "exception": lambda: ValueError("a"),
    "function": lambda: types.FunctionType(function.__code__, {}), "partial": lambda: functools.partial(function),
    "net": torch.nn.Module, "layer": lambda: torch.nn.Linear(2, 2), "local": threading.local, "asked": Asked,
    "arguments": argparse.Namespace, "UserDict": collections.UserDict, "computed": Computed,
    "cached": lambda: functools.cache(lambda: 1), "tensor": lambda: torch.ones(2),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
}  # fmt: skip
WAYS = ("x * HELD.factor", "x * getattr(HELD, 'factor', 5)", "x * (2 if hasattr(HELD, 'factor') else 3)",
        "x * vars(HELD).get('factor', 4)", "x * ('factor' in dir(HELD))", "x * object.__getattribute__(HELD, 'factor')",
        "x * HELD.__dict__.get('factor', 4)", "x * len([n for n in dir(HELD) if n == 'factor'])")  # fmt: skip
PROGRAMS = """
def plain{number}(x):
    q = x
    if x.sum() > 0:
        q = {expression}
    return q

def caught{number}(x):
    q = x
    if x.sum() > 0:
        try:
            q = {expression}
        except AttributeError:
            q = x * 7
    return q
"""


def _outcome(function: Any, x: torch.Tensor) -> Any:
    try:
        return function(x)
    except (AttributeError, TypeError) as error:
        return type(error).__name__, str(error).split("\n")[0]


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_seen(tmp_path: Path, kind: str) -> None:
    text = "".join(PROGRAMS.format(number=number, expression=one) for number, one in enumerate(WAYS))
    (tmp_path / "attributes.py").write_text("HELD = None\n" + text)
    module = module_of(tmp_path / "attributes.py")
    held = module.HELD = KINDS[kind]()
    functions = [getattr(module, f"{name}{number}") for number in range(len(WAYS)) for name in ("plain", "caught")]
    converted: list[Any] = [to_static(one) for one in functions]

    def compare(when: str) -> None:
        for theirs, mine in zip(functions, converted):
            for x in (torch.ones(2), -torch.ones(2)):
                found = difference(_outcome(mine, x), _outcome(theirs, x), tolerance=1e-6)
                assert not found, (when, WAYS[int(theirs.__name__[-1])], found)

    compare("at first")
    held.factor = 9
    compare("with the attribute")
    with contextlib.suppress(AttributeError):
        del held.factor
    compare("without it")
    if type(held).__flags__ & (1 << 9) and not isinstance(held, torch.Tensor) and type(held).__module__ == __name__:
        type(held).factor = 7  # type: ignore[attr-defined]
        compare("its class has it")
        del type(held).factor  # type: ignore[attr-defined]
