"""A name that only a path binds is local to the function everywhere: a read before it finds no other variable."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check

name: Any = 7
BINDINGS = {
    "assigned": "name = 3",
    "starred": "a, *name = 3, 4",
    "nested": "(a, [b, *name]), d = (1, [2, 3]), 4",
    "imported": "import math as name",
    "a function": "def name(): pass",
    "a class": "class name: pass",
    "an exception": "try:\n            raise ValueError\n        except ValueError as name:\n            pass",
    "a walrus": "len([name := 3])",
    "a loop": "for name in range(2):\n            pass",
    "a starred loop": "for a, *name in [(1, 2)]:\n            pass",
    "a pattern": "match [1, 2]:\n            case [a, *name]:\n                pass",
    "a context": "with torch.no_grad() as name:\n            pass",
    "deleted": "name = 1\n        del name",
    "augmented": "name += 1",
}
READS = {
    "at the top": "    y = name",
    "in a branch": "    y = 1\n    if x.sum() < 10:\n        y = name",
    "in a loop": "    y = 1\n    while y < x.sum() * 0 + 2:\n        y = y + name",
    "in a lambda": "    y = (lambda: name)()",
    "in a comprehension": "    y = [name for _ in range(2)]",
    "in a condition": "    y = 1\n    if x.sum() > name:\n        y = 2",
    "in an f-string": "    y = f'{name}'",
}
PATHS = {"if": "if x.sum() > 0", "while": "while x.sum() > 0", "for": "for _ in range(int((x > 0).sum()))"}


def made(read: str, path: str, binding: str, inside: bool) -> Callable[..., Any]:
    text = f"{read}\n    {path}:\n        {binding}\n        x = x - 9\n    return y, x"
    if inside:
        text = "    name = 5\n    def inner(x):\n" + "\n".join("    " + line for line in text.split("\n"))
        text += "\n    return inner(x)"
    space: dict[str, Any] = {"torch": torch, "name": 7}
    file = f"<names {len(linecache.cache)}>"
    source = f"def f(x):\n{text}\n"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), space)
    found: Callable[..., Any] = space["f"]
    return found


@pytest.mark.parametrize("inside", [False, True], ids=["global", "of the function around"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("read", READS)
@pytest.mark.sample(6)
def test_as_eager(read: str, binding: str, path: str, inside: bool) -> None:
    function = made(READS[read], PATHS[path], BINDINGS[binding], inside)
    with pytest.raises(NameError if read in ("in a lambda", "in a comprehension") else UnboundLocalError):
        function(torch.ones(2))
    if read == "in a comprehension":  # a NameError before Python 3.12, which made it a part of the function
        with pytest.raises(UnboundLocalError):
            dy2static.to_static(function)(torch.ones(2))
    else:
        check(function, (torch.ones(2),), (-torch.ones(2),))
