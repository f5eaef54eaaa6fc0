"""Functions that are left alone because they look at their variables: what they ask of a tensor's class, and what they
call, is as in eager."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import same

WAYS = {
    "locals twice": "first = locals()\n    log.append({ask})\n    second = locals()",
    "locals in a loop": "for i in range(2):\n        here, there = locals(), locals()\n        log.append({ask})",
    "locals on a path": (
        "if k > 3:\n        here = locals()\n        log.append({ask})\n    else:\n        here = locals()\n"
        "        log.append([{ask}])"
    ),
    "dir": "names = dir()\n    log.append({ask})\n    log.append('p' in names)",
    "eval": "log.append(eval('k + 1'))\n    log.append({ask})",
    "in a comprehension": "found = [len(locals()) > 0 for i in range(2)]\n    log.append({ask})",
}  # fmt: skip
ASKS = {
    "name of the type": "type(p).__name__", "is it": "type(p) is torch.Tensor", "class": "p.__class__.__name__",
    "is it, by class": "p.__class__ is torch.Tensor", "text": "str(type(p))", "formatted": "f'{type(p)}'",
    "formatted, with a call": "f'{type(p).__name__!r:>9}{len(str(k))}'", "percent": "'%s' % type(p)",
    "of a number": "type(n).__name__", "of a list": "type([p]).__name__",
    "in a set": "{type(v).__name__ for v in (p, n)}",
    "isinstance": "[isinstance(p, torch.Tensor), isinstance(p, torch.nn.Parameter)]", "same": "type(p) is type(x)",
    "in a dict": "{torch.Tensor: 1}[type(p)]", "a helper that decides": "helper(p)", "keywords": "helper(t=p, y=n)",
    "starred": "helper(*(p,))", "method": "p.abs().sum()", "number of the run": "int(p.sum())",
    "in a lambda": "(lambda t: type(t).__name__)(p)", "map": "list(map(type, [p, n]))[0] is torch.Tensor",
    "mro": "[cls.__name__ for cls in type(p).__mro__[:2]]", "subclass": "issubclass(type(p), torch.Tensor)",
}  # fmt: skip
TEXT = """
import torch

def helper(t, y=1.0):
    if t.sum() > 0:
        return t * y
    return t - y

def f(x, k):
    log, n = [], 2
    p = x * 0.5
    {way}
    return p * 1, log

def outer(x, k):
    p, log = f(x, k)
    if x.sum() > 100:
        p = p + 1
    return p, log
"""
CASES = [*itertools.product(WAYS, ASKS)]


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")  # of eval()
@pytest.mark.sample(30)
@pytest.mark.parametrize(("way", "ask"), CASES)
def test_what_is_asked(way: str, ask: str, tmp_path: Path) -> None:
    text = TEXT.format(way=WAYS[way].replace("{ask}", ASKS[ask]))
    path = tmp_path / "program.py"
    path.write_text(text)
    module: Any = module_of(path)
    static = to_static(module.outer)
    for sign, k in ((1.0, 3), (1.0, 4), (-1.0, 4), (50.0, 3)):
        x = torch.full((3,), sign)
        same(static(x, k), module.outer(x, k))


CHANGES = """
import random
import torch

LOG, TABLE, SEEN, BUFFER = [], {"n": 0}, set(), torch.zeros(2)


class Box:
    def __init__(self):
        self.n, self.items = 0, []


def helper(t, box):
    box.items.append(1)
    box.n += 1
    if t.sum() > 0:
        return t * 2
    return t - 1


def left(x, given, box, k):
    first, second = locals(), locals()
    LOG.append(k)
    given.append(k)
    given.extend([k, k])
    TABLE["n"] += 1
    TABLE.update(k=k)
    SEEN.add(k)
    setattr(box, "m", k)
    box.items.append(len(first) > 0)
    print("left", k)
    BUFFER.add_(1)
    return helper(x, box), given[-1], len(given), box.n, sorted(SEEN), given.pop(0), random.random() < 2


def f(x, given, box, k):
    p = left(x, given, box, k)
    if x.sum() > 100:
        x = x + 1
    return p, x


def state(given, box):
    return list(LOG), dict(TABLE), sorted(SEEN), BUFFER.clone(), list(given), dict(vars(box)), list(box.items)
"""


def test_what_it_changes_is_changed_once_a_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "changes.py"
    path.write_text(CHANGES)
    found = []
    for convert in (lambda function: function, to_static):
        random.seed(0)
        module: Any = module_of(path)
        function, given, box, outcomes = convert(module.f), [], module.Box(), []
        for k, sign in itertools.product((1, 2, 2, 3), (1.0, -1.0)):
            outcomes.append((function(torch.full((3,), sign), given, box, k), module.state(given, box)))
        found.append((outcomes, capsys.readouterr().out, random.random()))
    same(found[1], found[0])
