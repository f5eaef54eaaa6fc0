"""Code that is nested deeply, and calls that are: what Python takes is converted, and what it does not has an error."""

from __future__ import annotations

import linecache
import sys
import types
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static import to_static
from runtime import recursion_limit
from runtime.errors import ConversionError, TraceError

SPACE = types.SimpleNamespace(**{f"f{number}": float(number) for number in range(300)})
X = torch.ones(2)


def written(text: str) -> Any:
    """The function ``f`` of a text that has a file name."""
    name = f"<doctest nested {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {"space": SPACE, "torch": torch}
    exec(compile(text, name, "exec"), names)
    return names["f"]


def terms(count: int) -> str:
    return " + ".join(f"space.f{number}" for number in range(count))


def chain(count: int) -> str:
    return "x" + ".abs()" * count


def choices(count: int) -> str:
    return "".join(f"x * {number} if space.f1 == {number + 5} else " for number in range(count)) + "x + 1"


def elifs(count: int, name: str = "k") -> str:
    rest = "".join(f"    elif {name} == {number + 7}:\n        return x * {number}\n" for number in range(count))
    return f"def f(x, k=5):\n    if {name} == -1:\n        return x\n{rest}    else:\n        return x + 1\n"


EXPRESSIONS = {
    "a sum": f"x + ({terms(300)})",
    "a sum of texts": f"x * len({' + '.join(repr(str(number)) for number in range(300))})",
    "methods": chain(250),
    "a branch below methods": f"({chain(150)} if x.sum() > 0 else x).sin()",
    "choices by numbers": choices(150),
    "calls in calls": "torch.abs(" * 150 + "x" + ")" * 150,
    "and": f"x + int({' and '.join(f'space.f{number} < 1e9' for number in range(300))})",
    "comparisons": " + ".join(["(x < 1)"] * 250),
    "lists in lists": f"torch.stack({'[' * 90}x{']' * 90}{'[0]' * 89})",
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name: str) -> None:
    f = written(f"def f(x):\n    return {EXPRESSIONS[name]}\n")
    before = sys.getrecursionlimit()
    assert torch.equal(to_static(f)(X), f(X))
    assert sys.getrecursionlimit() == before


def test_the_place_of_an_error_in_a_deep_expression_is_the_users() -> None:
    f = written(f"def f(x):\n    y = x.sin()\n    return ({chain(120)}\n        + hash(float(y.sum())))\n")
    with pytest.raises(TraceError, match="D2S210") as raised:
        to_static(f)(X)
    location = raised.value.location
    assert location is not None and location.line == 4 and location.text == "        + hash(float(y.sum())))"


@pytest.mark.parametrize("key", [torch.tensor(17), 17], ids=["by a tensor", "by a number"])
def test_elif(key: Any) -> None:
    f = written(elifs(150))
    static = to_static(f)
    for one in (key, key * 0 - 1, key * 100):
        assert torch.equal(static(X, one), f(X, one))


def down(x: torch.Tensor, depth: int) -> torch.Tensor:
    return x if depth == 0 else down(x * 1.01, depth - 1)


def by_loop(x: torch.Tensor, depth: int) -> torch.Tensor:
    found = x
    for _ in range(min(depth, 1)):
        with torch.enable_grad():
            found = by_loop(x + 1, depth - 1)
    return found


class Nested(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.inner = Nested(depth - 1) if depth else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.inner is None else self.inner(x + 1)


class Tree:
    """A chain of nodes, as a tree-LSTM has of a sentence."""

    def __init__(self, depth: int) -> None:
        self.left = Tree(depth - 1) if depth else None

    def total(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.left is None else (self.left.total(x) + 1 if x.sum() > 0 else x)


@pytest.mark.parametrize("depth", [70, 300])
@pytest.mark.parametrize("function", [down, by_loop])
def test_calls_that_plain_numbers_end(function: Any, depth: int) -> None:
    x = X.clone().requires_grad_()
    static = to_static(function)
    result, expected = static(x, depth), function(x, depth)
    assert torch.equal(result, expected)
    assert torch.equal(*(torch.autograd.grad(one.sum(), x)[0] for one in (result, expected)))


def test_modules_inside_modules(tmp_path: Any) -> None:
    layers: nn.Module = nn.Identity()
    for _ in range(150):
        layers = nn.Sequential(layers)
    for model in (Nested(150), layers):
        expected = model(X)
        static = to_static(model)
        assert torch.equal(static(X), expected)
        dy2static.save(static, tmp_path / "deep.d2s")
        assert torch.equal(dy2static.load(tmp_path / "deep.d2s")(X), expected)


def test_objects_inside_objects() -> None:
    tree = Tree(40)
    static = to_static(lambda x: tree.total(x))
    for x in (X, -X):
        assert torch.equal(static(x), tree.total(x))


class Asks:
    def __getattr__(self, name: str) -> Any:
        return getattr(self, name + "x")


def endless(x: torch.Tensor, depth: int = 0) -> torch.Tensor:
    return endless(x, depth + 1)


def asks(x: torch.Tensor) -> Any:
    return x + Asks().one


def yields(x: torch.Tensor) -> Any:
    yield from yields(x)


def drains(x: torch.Tensor) -> Any:
    return list(yields(x))


@pytest.mark.parametrize("function", [endless, asks, drains])
def test_calls_without_end_have_an_error(function: Any) -> None:
    with pytest.raises(RecursionError):
        function(X)
    before = sys.getrecursionlimit()
    with pytest.raises(TraceError, match="D2S270.*no tensor ends that") as raised:
        to_static(function)(X)
    assert raised.value.location is not None and raised.value.location.file == __file__
    assert sys.getrecursionlimit() == before


def test_what_is_nested_too_deeply_is_refused_where_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRAMES", "CONVERTING"):
        monkeypatch.setattr(recursion_limit, name, 1_000)
    f = written(f"\ndef f(x):\n    return {chain(400)}\n")
    with pytest.raises(ConversionError, match="D2S100.*nested too deeply") as raised:
        to_static(f)(X)
    assert raised.value.location is not None and raised.value.location.line == 2


def test_the_command_shows_deep_code(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from dy2static.cli import main

    file = tmp_path / "deep.py"
    file.write_text(f"def f(x):\n    y = {chain(150)}\n    if y.sum() > 0:\n        y = y * 2\n    return y\n")
    assert main(["diff", str(file), "--all"]) == 0
    assert "if_stmt" in capsys.readouterr().out
