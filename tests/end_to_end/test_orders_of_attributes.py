"""The order of an object's attributes after one is deleted and set again: on paths, in iterations, in every way.

Where all paths leave one order it is eager's; where they do not, whoever may see it is refused (D2S254).
"""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import difference


class Plain:
    pass


class Module(torch.nn.Module):
    pass


OWNERS: dict[str, Callable[[], Any]] = {
    "plain": Plain, "namespace": types.SimpleNamespace, "module": Module, "python": lambda: types.ModuleType("some"),
}  # fmt: skip
MAKING = {"inside": "a = make()\na.u = x\na.v = x + 1", "outside": "a = outside"}
MOVES = {
    "del": "del a.u\na.u = x * 2",
    "delattr": "delattr(a, 'u')\nsetattr(a, 'u', x * 2)",
    "the same": "kept = a.u\ndel a.u\na.u = kept",
    "pop": "kept = vars(a).pop('u')\na.u = kept",
    "items": "del a.__dict__['u']\na.__dict__['u'] = x * 2",
    "last": "del a.v\na.v = x * 2",
    "both": "del a.u\na.u = x\ndel a.v\na.v = x",
    "added": "a.w = x\na.z = x + 2",
    "gone": "del a.u",
    "nothing": "a.u = x * 3",
}
CONSTRUCTS = {
    "straight": "{move}",
    "if": "if x.sum() > 0:\n    {move}",
    "else": "if x.sum() > 0:\n    a.v = x\nelse:\n    {move}",
    "both paths": "if x.sum() > 0:\n    {move}\nelse:\n    {move}",
    "nested": "if x.sum() > -9:\n    if x.sum() > 0:\n        {move}\n    a.v = x * 4",
    "while": "while x.sum() < 3:\n    {move}\n    x = x + 1",
    "for": "for i in range(2):\n    if x.sum() > i:\n        {move}",
}
USES = {
    "vars": "return list(vars(a))",
    "dict": "return [name for name, one in a.__dict__.items()]",
    "given back": "return a",
    "left": "return x",
    "copied": "import copy\nreturn list(vars(copy.copy(a)))",
}
CASES = list(itertools.product(MAKING, MOVES, CONSTRUCTS, USES))
SCALES = (1.0, -1.0, 4.0, 1.0)


def indented(text: str, pattern: str) -> str:
    lines = []
    for line in pattern.split("\n"):
        inner = line[: len(line) - len(line.lstrip())]
        lines += [inner + one for one in text.split("\n")] if "{move}" in line else [line]
    return "\n".join(lines)


def function_of(body: str, **names: Any) -> Any:
    source = "def f(x):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    name = f"<orders {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {"torch": torch, "__name__": __name__, **names}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def shown(value: Any) -> Any:
    """What can be seen of an object's attributes in their order, but for those that Python and PyTorch make."""
    if isinstance(value, (Plain, types.SimpleNamespace, Module, types.ModuleType)):
        return [(name, one) for name, one in vars(value).items() if name in ("u", "v", "w", "z")]
    return [one for one in value if not isinstance(one, str) or one in ("u", "v", "w", "z")] if (
        type(value) is list) else value


def outcome(function: Any, scale: float, outside: Any) -> Any:
    for name in ("u", "v", "w", "z"):
        if name in vars(outside):
            delattr(outside, name)
    outside.u, outside.v = torch.zeros(2), torch.ones(2)
    try:
        result = shown(function(torch.ones(2) * scale))
    except (AttributeError, KeyError) as error:
        return type(error)
    return result, shown(outside)


def held(making: str, move: str, construct: str, use: str, owner: str) -> list[str]:
    """``ok`` or the code of the refusal for each call; anything else fails."""
    if (owner, use) == ("python", "copied"):
        pytest.skip("Python copies no module")
    make = OWNERS[owner]
    outside = make()
    body = "\n".join((MAKING[making], indented(MOVES[move], CONSTRUCTS[construct]), USES[use]))
    eager = function_of(body, make=make, outside=outside)
    static = to_static(eager)
    found = []
    for scale in SCALES:
        expected = outcome(eager, scale, outside)
        try:
            got = outcome(static, scale, outside)
        except TraceError as error:
            found.append(str(error.code))
            continue
        assert not difference(got, expected), (body, scale, got, expected)
        found.append("ok")
    return found


@pytest.mark.sample(120)
@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize(("making", "move", "construct", "use"), CASES)
def test_the_order_is_eagers_or_is_refused(making: str, move: str, construct: str, use: str, owner: str) -> None:
    held(making, move, construct, use, owner)


@pytest.mark.parametrize("use", ["vars", "given back", "copied"])
@pytest.mark.parametrize("construct", ["straight", "both paths"])
@pytest.mark.parametrize("move", ["del", "delattr", "the same", "last", "both", "added", "nothing"])
def test_an_order_that_all_paths_leave_is_kept(move: str, construct: str, use: str) -> None:
    assert held("inside", move, construct, use, "plain") == ["ok"] * len(SCALES)


@pytest.mark.parametrize("use", ["vars", "dict", "given back", "copied"])
@pytest.mark.parametrize("construct", ["if", "else", "nested", "for"])
@pytest.mark.parametrize("move", ["del", "delattr", "the same", "pop", "items"])
def test_an_order_that_depends_on_the_path_is_refused(move: str, construct: str, use: str) -> None:
    assert set(held("inside", move, construct, use, "plain")) == {"D2S254"}


@pytest.mark.parametrize("move", ["del", "delattr", "the same"])
def test_nobody_asks_for_the_order(move: str) -> None:
    for construct in CONSTRUCTS:
        assert held("inside", move, construct, "left", "plain") == ["ok"] * len(SCALES)


def test_attributes_that_paths_add_in_another_order() -> None:
    body = "a = make()\nif x.sum() > 0:\n    a.u = x\n    a.v = x\nelse:\n    a.v = x\n    a.u = x\n"
    with pytest.raises(TraceError, match="D2S254"):
        to_static(function_of(body + "return list(vars(a))", make=Plain))(torch.ones(2))
    assert torch.equal(to_static(function_of(body + "return a.u", make=Plain))(torch.ones(2)), torch.ones(2))


def test_a_dict_of_attributes_that_was_read_before() -> None:
    body = "a = make()\na.u = x\na.v = x\nd = vars(a)\nif x.sum() > 0:\n    del a.u\n    a.u = x\nreturn list(d)"
    with pytest.raises(TraceError, match="D2S254"):
        to_static(function_of(body, make=Plain))(torch.ones(2))


def test_attributes_that_a_loop_sets_first() -> None:
    body = "a = make()\nwhile x.sum() < 5:\n    a.u = x\n    a.w = x\n    x = x + 1\nreturn a"
    eager = function_of(body, make=Plain)
    static = to_static(eager)
    for scale in (1.0, 9.0, -1.0):
        assert not difference(shown(static(torch.ones(2) * scale)), shown(eager(torch.ones(2) * scale)))
