"""Dicts that are in lists which grow, or in objects that are, and get keys there: no name of them misses one."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved

MADE = ("{}", "defaultdict(int)", "Counter()", "OrderedDict()", "{'a': {}}", "([], {})")
HOLDER = {
    "alone": "A, B = {made}, {made}",
    "object": "A, B = Holder({made}), Holder({made})",
    "slots": "A, B = Slotted({made}), Slotted({made})",
}
CHANGED = {
    "item": "{one}[0] = 1", "number": "{one}['k'] = x[0].item()", "open": "{one}[int(x[0] > 0)] = 2",
    "tensor": "{one}['t'] = x", "update": "{one}.update(b=1)",
    "default": "{one}.setdefault('q', 4)", "tuple": "{one}[0, 'z'] = None",
}  # fmt: skip
BY = {
    "item": "node = path[-1]", "open": "node = path[int(x[2] > 0)]", "loop": "for node in path:\n        pass",
    "backwards": "for node in reversed(path):\n        pass", "taken": "node = path.pop()",
    "other": "node = path[-1]\n    other = A",
}  # fmt: skip
BODY = """from collections import Counter, OrderedDict, defaultdict
class Holder:
    def __init__(self, held):
        self.count = 0
        self.held = held
class Slotted:
    __slots__ = ("held",)
    def __init__(self, held):
        self.held = held
def f(x):
    {holder}
    path = []
    i = 0
    while i < 2 and x[i] > -100:
        path.append(A if x[0] > 0 else B)
        i += 1
    {by}
    {change}
    return list({a}), list({b}), list({node}), list({node}.values()), len({b})
"""
CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, 2.0, -3.0], [2.0, -200.0, -1.0])]
CASES = list(itertools.product(MADE, HOLDER, CHANGED, BY))


def function(path: Path, made: str, holder: str, changed: str, by: str) -> Any:
    inside = {"{'a': {}}": "['a']", "([], {})": "[1]"}.get(made, "")
    where = ("" if holder == "alone" else ".held") + inside
    changing = ("other" if by == "other" else "node") + where
    path.write_text(BODY.format(
        holder=HOLDER[holder].format(made=made), by=BY[by], change=CHANGED[changed].format(one=changing),
        a="A" + where, b="B" + where, node="node" + where))  # fmt: skip
    names: dict[str, Any] = {"__name__": "written"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(40)
@pytest.mark.parametrize(("made", "holder", "changed", "by"), CASES)
def test_in_grown_lists(made: str, holder: str, changed: str, by: str, tmp_path: Path) -> None:
    f = function(tmp_path / "f.py", made, holder, changed, by)
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


class Node:
    def __init__(self, prior):
        self.prior = prior
        self.children = {}
        self.visits = 0
        self.value_sum = 0.0

    def value(self):
        return self.value_sum / self.visits if self.visits > 0 else 0.0


def score(parent, child):
    return child.value() + 1.5 * child.prior * math.sqrt(parent.visits) / (1 + child.visits)


def search(priors, values):
    """A Monte Carlo tree search: each simulation goes down to a leaf, gives it children, and tells all on its path."""
    root = Node(1.0)
    start = torch.tensor([1.0, -0.5, 0.25, 0.1])
    for _ in range(4):
        node, state, path = root, start, [root]
        while node.children and len(path) < 3:
            action, node = max(node.children.items(), key=lambda pair: score(path[-1], pair[1]))
            state = torch.roll(state, action + 1) * 0.9
            path.append(node)
        for action, prior in enumerate((state @ priors).softmax(-1)):
            node.children[action] = Node(prior.item())
        value = torch.tanh(state @ values).item()
        for one in reversed(path):
            one.value_sum += value
            one.visits += 1
            value = -value
    counts = {action: child.visits for action, child in root.children.items()}
    return max(counts, key=counts.get), counts, root.value()


@pytest.mark.slow
@pytest.mark.parametrize("actions", [2, 3])
def test_a_search_tree(actions: int, tmp_path: Path) -> None:
    calls = []
    for seed, scale in enumerate((1.0, 3.0, 0.2)):
        torch.manual_seed(seed)
        calls.append((torch.randn(4, actions), torch.randn(4) * scale))
    check_saved(search, check(search, *calls), tmp_path / "search", *calls)


def named(x):
    found: dict[Any, Any] = {int(x[0]): 3}
    found.update(a=1, b=int(x[1]))
    counts: Counter[Any] = Counter()
    counts[int(x[0])] += 1
    counts.update(a=2, b=int(x[1]))
    counts.subtract(a=1, c=4)
    return found, counts


def test_keys_given_by_name() -> None:
    check(named, *CALLS)
