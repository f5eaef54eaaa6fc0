"""Lists from outside that some paths add containers to: a path that is not taken leaves nothing, in any call."""

from __future__ import annotations

import contextlib
import contextvars
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.from_files import module_of
from tests.oracle import difference

HEAD = """
import collections
import contextvars
import operator
import torch

class Owner:
    def __init__(self):
        self.log = []

OWNED = {"a": [0]}
LOG, OTHER, NAMED, OWNER = [], [], {"l": []}, Owner()
Pair = collections.namedtuple("Pair", "a b")

def add(items, value):
    items.append(value)

def keep(*values):
    pass

"""
ITEMS = ("[]", "{'a': [1.0]}", "set()", "('a', [1])", "OWNED", "[len(x)]", "[x, [x.sum()]]", "Pair([1], 2)",
         "collections.deque([1])", "3", "x.sum().item()", "(x.shape, 'a')", "[x.shape]")  # fmt: skip
REFUSED = {("while", item) for item in ("set()", "collections.deque([1])")}
"""What loops whose length a tensor decides put into no list that grows there."""
PATHS = {
    "append": "if x.sum() > 3: LOG.append($I)",
    "extend": "if x.sum() > 3: LOG.extend([$I, [2]])",
    "extend by a generator": "if x.sum() > 3: LOG.extend($I for _ in range(2))",
    "plus": "global LOG\nif x.sum() > 3: LOG += [$I]",
    "early return": "if x.sum() > 3: return x * 2\nLOG.append($I)",
    "nested": "if x.sum() > 3:\n    if x[0] > 0: LOG.append($I)\n    else: OTHER.append($I)",
    "break": "for row in x:\n    if row < 0: break\n    LOG.append($I)",
    "for": "if x.sum() > 3:\n    for i in range(2): LOG.append($I)",
    "rows": "for row in x:\n    if row > 1: LOG.append($I)",
    "while": "y = x\nwhile y.sum().abs() < 20:\n    y = y * 2 + 1\n    if y[0] > 2: LOG.append($I)",
    "try": "try:\n    if x.sum() > 3: raise ValueError\nexcept ValueError:\n    LOG.append($I)",
    "helper": "if x.sum() > 3: add(LOG, $I)",
    "callback": "one = (lambda: LOG.append($I)) if x.sum() > 3 else (lambda: None)\none()",
    "item of a dict": "if x.sum() > 3: NAMED['l'].append($I)",
    "one of two": "(LOG if x.sum() > 3 else OTHER).append($I)",
    "one or the other": "if x.sum() > 3: LOG.append($I)\nelse: OTHER.append($I)",
    "both": "if x.sum() > 3: LOG.append($I)\nelse: LOG.append([2])",
    "and then": "if x.sum() > 3: LOG.append($I)\nLOG.append([2])",
    "attribute": "if x.sum() > 3: OWNER.log.append($I)",
    "item from a path": "k = $I if x.sum() > 3 else None\nif k is not None: LOG.append(k)",
    "item from before": "k = $I\nif x.sum() > 3: LOG.append(k)",
    "and": "x.sum() > 3 and LOG.append($I)",
}
CALLS = [torch.tensor(one) for one in ([1.0, 2.0, 3.0], [-3.0, -1.0, 2.0])]
ORDER = (0, 0, 1, 0, 1, 1, 0)


def _functions(tmp_path: Path, name: str) -> list[Any]:
    """A module for each item, twice."""
    found = []
    for number, item in enumerate(ITEMS):
        body = PATHS[name].replace("$I", item).replace("\n", "\n    ")
        file = tmp_path / f"adds_{number}.py"
        file.write_text(f"{HEAD}def f(x):\n    {body}\n    return x\n")
        found.append((module_of(file, f"adds_{number}"), module_of(file, f"adds_{number}")))
    return found


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_is_not_taken_adds_nothing(name: str, tmp_path: Path) -> None:
    for item, (eager, mine) in zip(ITEMS, _functions(tmp_path, name)):
        refused = (name, item) in REFUSED
        with pytest.raises(TraceError, match="D2S2[0-8]") if refused else contextlib.nullcontext():
            _hold(mine, eager, item)


def _hold(mine: Any, eager: Any, item: str) -> None:
    converted: Any = to_static(mine.f)
    for number in ORDER:
        results = [one(CALLS[number].clone()) for one in (converted, eager.f)]
        left = [[m.LOG, m.OTHER, m.NAMED, m.OWNER.log, m.OWNED] for m in (mine, eager)]
        assert not difference((results[0], left[0]), (results[1], left[1]), by_name=True), item


class Net(torch.nn.Module):
    """A step that notes what happened."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.history: list[Any] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One step, with its gradients."""
        loss = self.layer(x).square().mean()
        self.layer.zero_grad()
        loss.backward()
        norm = self.layer.weight.grad.norm()
        if norm > 1:
            self.layer.weight.grad.mul_(1 / norm)
            self.history.append({"event": "clipped", "norms": [1.0], "shape": x.shape})
        with torch.no_grad():
            for one in self.layer.parameters():
                one.sub_(one.grad * 0.1)
        return loss.detach()


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_a_train_step_notes_what_it_clipped() -> None:
    torch.manual_seed(0)
    eager, mine = Net(), Net()
    mine.load_state_dict(eager.state_dict())
    converted: Any = to_static(mine)
    for scale in (5.0, 5.0, 0.0, 5.0, 0.0, 0.0):
        x = torch.full((2, 3), scale)
        assert not difference((converted(x), mine.history), (eager(x), eager.history), 1e-6)
    assert 0 < len(mine.history) < 6


HOLDERS = {
    "a default": "contextvars.ContextVar('v', default=l)\n---\nh.get()",
    "a variable": "contextvars.ContextVar('v')\nh.set(l)\n---\nh.get()",
    "a slice": "slice(l, None)\n---\nh.start",
    "values": "{1: l}.values()\n---\nlist(h)[0]",
    "items": "{1: l}.items()\n---\nlist(h)[0][1]",
    "a property": "property(lambda self: l)\n---\nh.fget(0)",
    "a static method": "staticmethod(lambda: l)\n---\nh.__func__()",
    "a caller": "operator.methodcaller('a', l)\n---\nh.__reduce__()[1][1]",
}


@pytest.mark.parametrize("name", HOLDERS)
def test_a_list_that_only_an_object_of_c_leads_to_is_older_than_the_path(name: str, tmp_path: Path) -> None:
    make, get = HOLDERS[name].split("\n---\n")
    body = "\n    ".join(f"l = []\nh = {make}\nif x.sum() > 3: {get}.append([1])\nkeep(h)\nreturn l".split("\n"))
    (tmp_path / "held.py").write_text(f"{HEAD}def f(x):\n    {body}\n")
    f = module_of(tmp_path / "held.py").f
    converted: Any = to_static(f)

    def calls() -> None:
        for number in ORDER:
            assert not difference(converted(CALLS[number]), f(CALLS[number]))

    contextvars.Context().run(calls)
