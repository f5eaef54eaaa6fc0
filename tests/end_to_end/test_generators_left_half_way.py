"""Generators that are left half-way inside of a ``try`` or ``with``: what these do at their end is done once, where
eager does it, or the function is refused."""

from __future__ import annotations

import io
import itertools
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import load, save, to_static
from dy2static.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import difference

BODIES = {
    "finally": "try:\n        yield x\n        yield x * 2\n        yield x * 3\n    finally:\n        END",
    "except": "try:\n        yield x\n        yield x * 2\n        yield x * 3\n"
              "    except GeneratorExit:\n        END\n"
              "        raise",
    "any exception": "try:\n        yield x\n        yield x * 2\n        yield x * 3\n    except:\n"
                     "        END\n        raise",
    "with": "with Manager(x):\n        yield x\n        yield x * 2\n        yield x * 3",
    "nested": "try:\n        with Manager(x):\n            for i in range(3):\n"
              "                yield x * i\n    finally:\n"
              "        END",
    "delegated": "try:\n        yield from inner(x)\n    finally:\n        END",
    "later": "yield x\n    try:\n        yield x * 2\n    finally:\n        END\n    yield x * 3",
}  # fmt: skip
ENDS = {
    "print": "print('left')", "number": "print('left', x.sum().item())", "state": "STATE.left += 1; LOG.append('left')",
}  # fmt: skip
USES = {
    "next": "g = gen(x); a = next(g); print('body')",
    "next twice": "g = gen(x); a = next(g) + next(g); print('body')",
    "fresh": "a = next(gen(x)); print('body')",
    "break": "\n    for a in gen(x):\n        break\n    print('body')",
    "break by a tensor": "\n    for a in gen(x):\n        if a.sum() > 2:\n            break\n    print('body')",
    "break while held": "g = gen(x)\n    for a in g:\n        break\n    print('body')",
    "zip": "a = x\n    for i, b in zip(range(2), gen(x)):\n        a = a + b\n    print('body')",
    "zip first": "a = x\n    for b, i in zip(gen(x), range(2)):\n        a = a + b\n    print('body')",
    "islice": "a, *b = itertools.islice(gen(x), 2); print('body')",
    "unpack": "a, *b = gen(x); print('body')",
    "too many": "a = x\n    try:\n        a, b = gen(x)\n    except ValueError:\n"
                "        print('many')\n    print('body')",
    "close": "g = gen(x); a = next(g); g.close(); print('body')",
    "throw": "g = gen(x); a = next(g)\n    try:\n        g.throw(KeyError('k'))\n"
             "    except KeyError:\n        print('key')\n"
             "    print('body')",
    "del": "g = gen(x); a = next(g); del g; print('body')",
    "another value": "g = gen(x); a = next(g); g = None; print('body')",
    "in a list": "g = [gen(x)]; a = next(g[0]); g.pop(); print('body')",
    "in a list of a function": "a = in_list(x); print('body')",
    "in a function": "a = taken(x); print('body')",
    "on a path": "a = x\n    if x.sum() > 0:\n        g = gen(x); a = next(g); print('path')\n    print('body')",
    "in a function on a path": "a = x\n    if x.sum() > 0:\n        a = taken(x); print('path')\n    print('body')",
    "left on a path": "g = gen(x); a = next(g)\n    if x.sum() > 0:\n        g.close(); print('path')\n"
                      "    print('body')",
    "dropped on a path": "g = gen(x); a = next(g)\n    if x.sum() > 0:\n        g = None; print('path')\n"
                         "    print('body', g is None)",
    "in a loop": "a = x\n    while a.sum().abs() < 9:\n        g = gen(a + 1); next(g); a = next(g) + 1; print('one')\n"
                 "    print('body')",
    "in a function in a loop": "a = x\n    while a.sum().abs() < 9:\n        a = a + taken(a).abs() + 1; print('one')\n"
                               "    print('body')",
    "raise": "g = gen(x); a = next(g)\n    if x.sum() > 3:\n        raise ValueError('much')\n    print('body')",
    "raise always": "g = gen(x); a = next(g); print('body')\n    raise ValueError('much')",
    "expression": "e = (v + 1 for v in gen(x)); a = next(e); print('body')",
    "map": "a = next(map(abs, gen(x))); print('body')",
    "any": "a = any(v.sum() > 1 for v in gen(x)); print('body')",
    "two": "g, h = gen(x), gen(x * 2); a = next(g) + next(h); del g; print('body')",
}  # fmt: skip
TEXT = """import itertools
class State:
    left = 0
STATE, LOG = State(), []
class Manager:
    def __init__(self, x):
        self.x = x
    def __enter__(self):
        print('in')
        return self
    def __exit__(self, kind, error, trace):
        END_OF_MANAGER
def inner(x):
    try:
        yield x
        yield x * 2
    finally:
        print('inner')
def gen(x):
    BODY
def taken(x):
    g = gen(x)
    next(g)
    return next(g)
def in_list(x):
    g = [gen(x)]
    a = next(g[0])
    print('in list')
    return a
def f(x):
    USE
    return a
"""


def _program(body: str, end: str, use: str) -> str:
    text = TEXT.replace("BODY", BODIES[body]).replace("USE", USES[use])
    return text.replace("END_OF_MANAGER", ENDS[end].replace("x.", "self.x.")).replace("END", ENDS[end])


def _outcome(function: Any, module: Any, x: torch.Tensor) -> Any:
    """What a call gives, prints and leaves."""
    text = io.StringIO()
    with redirect_stdout(text):
        try:
            result = function(x)
        except Dy2StaticError:
            raise
        except Exception as error:
            result = type(error), str(error)
    return result, text.getvalue(), module.STATE.left, list(module.LOG)


FORMS = list(itertools.product(BODIES, ENDS, USES))
CALLS = [torch.ones(2), torch.ones(2) * 2, -torch.ones(2), torch.ones(2)]


@pytest.mark.sample(16)
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize(("body", "end", "use"), FORMS)
def test_as_eager_or_refused(body: str, end: str, use: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(_program(body, end, use))
    eager, mine = (module_of(tmp_path / "one.py", name) for name in ("eager", "mine"))
    static = to_static(mine.f)
    for x in CALLS:
        expected = _outcome(eager.f, eager, x.clone())
        try:
            got = _outcome(static, mine, x.clone())
        except Dy2StaticError as error:
            assert error.code in ("D2S266", "D2S227", "D2S229", "D2S212", "D2S210")
            return
        assert not difference(got, expected)


WORK = ("next", "next twice", "fresh", "break", "del", "another value", "in a function", "unpack")


@pytest.mark.parametrize("use", WORK)
@pytest.mark.parametrize("body", ["finally", "with", "nested"])
def test_works_live_and_loaded(body: str, use: str, tmp_path: Path) -> None:
    """What begins and ends on one path, on each call, and where nothing refers to it for longer."""
    (tmp_path / "one.py").write_text(_program(body, "number", use))
    eager, mine = (module_of(tmp_path / "one.py", name) for name in ("eager", "mine"))
    static = to_static(mine.f)
    for _ in range(2):
        for x in CALLS:
            assert not difference(_outcome(static, mine, x.clone()), _outcome(eager.f, eager, x.clone()))
    save(static, tmp_path / "f.d2s")
    loaded = load(tmp_path / "f.d2s")
    for x in CALLS:
        assert not difference(_outcome(loaded, mine, x.clone())[:2], _outcome(eager.f, eager, x.clone())[:2])


def test_refused() -> None:
    """One that a path leaves, and nobody ends there."""

    def numbers(x: torch.Tensor) -> Any:
        try:
            yield x
            yield x * 2
        finally:
            print("left")

    def f(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            g = numbers(x)
            x = next(g)
        return x + 1

    with pytest.raises(Dy2StaticError, match="left half-way") as caught:
        to_static(f)(torch.ones(2))
    assert caught.value.code == "D2S266"
