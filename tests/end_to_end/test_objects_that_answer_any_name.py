"""Objects whose ``__getattr__`` answers every name in its own way: what a trace wants to know does not ask them.

``class Config(dict): __getattr__ = dict.__getitem__`` raises KeyError; a mock has something for each name.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import difference

ANSWERS = {
    "KeyError": "raise KeyError(name)", "ValueError": "raise ValueError(name)",
    "AttributeError": "raise AttributeError(name)", "None": "return None", "itself": "return self",
    "number": "return 1.0", "function": "return lambda *a, **k: 1.0",
}  # fmt: skip
CLASSES = """
import functools
import torch

ASKED = []


class Plain:
    def __init__(self, v):
        self.v = v

    def __getattr__(self, name):
        ASKED.append(name)
        {answer}


class Slots:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v

    def __getattr__(self, name):
        ASKED.append(name)
        {answer}


class Hidden(Slots):
    __slots__ = ("__w",)

    def change(self, x):
        self.__w = x
        if x.sum() > 0:
            self.__w = x * 2
        return self.__w


class Called(Plain):
    def __call__(self, x):
        return x * self.v


class Items(Plain):
    def __iter__(self):
        return iter([1, 2])

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.v


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.held = Plain(2.0)

    def __getattr__(self, name):
        ASKED.append(name)
        {answer}

    def forward(self, x):
        return x * self.held.v if x.sum() > 0 else x


GLOBAL, CALLED, MODULE = Plain(3.0), Called(2.0), Module()


def changed(p, x):
    if x.sum() > 0:
        p.v = x * 2
    return p.v


def joined(p, q, x):
    return (p if x.sum() > 0 else q).v


def looped(p, x):
    while p.v.sum().abs() < 20:
        p.v = p.v * 1.5
    return p.v


def grown(p, q, x):
    held = [p]
    if x.sum() > 0:
        held.append(q)
    return held[-1].v, len(held)


def put(p, q, x):
    held = {{"a": p}}
    if x.sum() > 0:
        held["b"] = q
    return {{name: one.v for name, one in held.items()}}


def unset(p, x):
    del p.v
    return x


"""
USES = """
x * GLOBAL.v|CALLED(x)|MODULE(x)|Plain(x).v|Slots(x).v|Called(2.0)(x)|changed(Plain(x), x)|changed(Slots(x), x)
joined(Plain(x), Plain(x * 3), x)|joined(Plain(x), Slots(x * 3), x)|looped(Plain(x), x)|looped(Slots(x), x)
grown(Plain(x), Plain(x * 2), x)|put(Plain(x), Slots(x * 2), x)|unset(Plain(x), x)|Hidden(x).change(x)
isinstance(Plain(x), Plain), type(Plain(x)).__name__, bool(Plain(x)), callable(Plain(x)), callable(Called(x))
GLOBAL in [GLOBAL], GLOBAL == GLOBAL, GLOBAL is GLOBAL, hash(GLOBAL) == hash(GLOBAL)|str(type(Plain(x)))
Items(2.0)[0], list(Items(x)), len(Items(x)), sum(Items(x)), [*Items(x)], max(Items(x)), 2 in Items(x)
sorted([Plain(x), Plain(x)], key=lambda p: float(p.v.sum()))[0].v|list(map(Called(x), [1.0, 2.0]))
functools.partial(Called(x), x)()|vars(Plain(x))|Plain(x).__dict__|getattr(Plain(x), "v", 1), hasattr(Plain(x), "v")
Plain(x).zz|hasattr(Plain(x), "zz")|Plain(x) + 1|1 + Plain(x)|-Plain(x)|abs(Plain(x))|round(Plain(x))|[1, 2][Plain(x)]
range(Plain(x))|reversed(Plain(x))|sum([Plain(x)])|sorted([Plain(x), Plain(x)])|isinstance(x, Plain(x))|next(Plain(x))
1 in Plain(x)|float(Plain(x))|int(Plain(x))|Plain(x)()|Plain(x) < Plain(x)|len(Plain(x))|[i for i in Plain(x)]
"".join([Plain(x)])|dict(**Plain(x))|super(Plain, Plain(x)).__init__(3)|zip(Plain(x))|torch.nn.functional.relu(Plain(x))
"""
EXPRESSIONS = [one for line in USES.strip().split("\n") for one in line.split("|")]


@functools.cache
def program(answer: str, folder: Path) -> types.ModuleType:
    text = CLASSES.format(answer=ANSWERS[answer])
    for number, expression in enumerate(EXPRESSIONS):
        text += f"def use{number}(x):\n    return {expression}\n\n\n"
    (folder / f"any_name_{answer}.py").write_text(text)
    return module_of(folder / f"any_name_{answer}.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any_name")


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)), ids=EXPRESSIONS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_asked_what_eager_asks(answer: str, number: int, folder: Path) -> None:
    module = program(answer, folder)
    function = getattr(module, f"use{number}")
    converted: Any = to_static(function)
    for x in (torch.ones(2), -torch.ones(2)):
        expected, got = outcome(function, x, module.ASKED), outcome(converted, x, module.ASKED)
        assert not difference(got[0], expected[0])
        assert set(got[1]) <= set(expected[1])  # how often torch asks is its own affair


def outcome(function: Callable[..., Any], x: torch.Tensor, asked: list[str]) -> tuple[Any, list[str]]:
    asked.clear()
    try:
        found = function(x)
        if not isinstance(found, (torch.Tensor, tuple, list, dict, str, bool, int, float)):
            found = type(found).__name__
        return found, list(asked)
    except Exception as error:
        return (type(error).__name__, str(error).split("\n")[0].split(" at 0x")[0]), list(asked)
