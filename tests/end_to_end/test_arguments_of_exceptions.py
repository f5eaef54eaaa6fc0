"""What an exception that a Program raises is given: the objects of the user's code, or their texts in a loaded file."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import TraceError


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Held:
    def __repr__(self) -> str:
        return "held"


HELD = Held()
SIZE = torch.Size([2])


class Unfit(Exception):
    def __init__(self, what: Any, by: Any) -> None:
        super().__init__(what)
        self.by = by


def fail(error: BaseException) -> None:
    raise error


def delete(d: Any, key: Any) -> None:
    del d[key]


Use = Callable[[torch.Tensor], Any]

USES: dict[str, Use] = {
    "a key that is a dtype": lambda x: delete({}, torch.float32),
    "a key that is an Enum": lambda x: {}[Color.RED],
    "a key that is None": lambda x: {}.pop(None),
    "a key that is a type": lambda x: {1: 2}[int],
    "a key that is bytes": lambda x: {1: 2}[b"k"],
    "a key that is a size": lambda x: {1: 2}[SIZE],
    "a key that is a frozenset": lambda x: {1: 2}[frozenset([1])],
    "a tuple of those": lambda x: {1: 2}[(torch.int32, Color.BLUE, b"k")],
    "a key of a set": lambda x: {1}.remove(Color.RED),
    "a key of a Counter": lambda x: Counter().pop(Color.RED),
    "a key to move": lambda x: OrderedDict().move_to_end(torch.int8),
    "an item of a list": lambda x: [1].index(Color.RED),
    "an item of a deque": lambda x: deque([1]).remove(Color.RED),
    "a chosen key": lambda x: {}[torch.float32 if x.sum() > 2 else torch.int64],
    "a device": lambda x: fail(ValueError(x.device)),
    "two": lambda x: fail(ValueError(Color.RED, 3)),
    "an object": lambda x: fail(ValueError(HELD)),
    "an attribute": lambda x: fail(Unfit(Color.RED, HELD)),
    "what only bytes do for": lambda x: fail(UnicodeDecodeError("ascii", b"b", 0, 1, "odd")),
    "text and an object": lambda x: fail(KeyError("no", torch.float16)),
}


def _raised(f: Callable[..., Any], *args: Any) -> Exception:
    try:
        f(*args)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("name", list(USES))
def test_of_a_path(name: str, tmp_path: Path) -> None:
    use = USES[name]

    def f(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            use(x)
        return x * 2

    static = dy2static.to_static(f)
    x = torch.ones(2)
    assert torch.equal(static(-x), f(-x))
    eager, mine = _raised(f, x), _raised(static, x)
    assert type(mine) is type(eager) and str(mine).split("\n")[0] == str(eager)
    assert mine.args == eager.args
    assert all(type(a) is type(b) for a, b in zip(mine.args, eager.args))
    if isinstance(eager, Unfit):
        assert isinstance(mine, Unfit) and mine.by is HELD
    path = dy2static.save(static, tmp_path / "f.d2s")
    again = _raised(dy2static.load(path), x)
    if name not in ("an object", "an attribute"):  # a file runs no code for the text of a user's object
        assert str(again).split("\n")[0] == str(eager)


def test_an_object_that_holds_values_of_the_run() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            raise ValueError({x.sum().item()})
        return x * 2

    with pytest.raises(TraceError, match="D2S2"):
        dy2static.to_static(f)(torch.ones(2))
