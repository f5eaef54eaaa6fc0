"""Lists, dicts, sets and deques that differ between paths and iterations: they join by reference."""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from types import FrameType
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import check, same

X = torch.tensor([1.0, -2.0, 3.0])
CALLS = [(X,), (-X,), (X.abs(),), (-X.abs(),)]
CASES: list[Any] = []


def case(function: Any) -> Any:
    CASES.append(function)
    return function


@case
def a_key_on_one_path(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x + 1
    return d, len(d), "q" in d


@case
def an_alias_on_one_path(x):
    a = [x]
    if x.sum() > 0:
        b = a
    else:
        b = [x * 2]
    b.append(x * 3)
    return a, b, a is b, len(a)


@case
def an_item_that_stays(x):
    xs = [x, x + 1]
    if x.sum() > 0:
        xs[1] = x * 5
    return xs[0] is x, xs


@case
def a_list_of_each_path(x):
    if x.sum() > 0:
        xs = [x, x * 2]
    else:
        xs = [x * 3, x]
    return xs[0] + xs[1], xs


@case
def a_list_that_each_iteration_makes(x):
    s = [x, x * 2]
    while s[0].sum() < 50:
        s = [s[0] + s[1].abs() + 1, s[1] * 1.1]
    return s


@case
def a_list_in_a_list(x):
    g = [[]]
    if x.sum() > 0:
        g.append([])
    g[-1].append(x)
    return g


@case
def a_set(x):
    s = {1}
    if x.sum() > 0:
        s.add(2)
    return s, len(s), 2 in s


@case
def a_deque(x):
    d = deque([x])
    if x.sum() > 0:
        d.append(x * 2)
    return len(d), d[-1], list(d)


@case
def keys_on_many_paths(x):
    d = {}
    for i in range(3):
        if x.sum() > i:
            d[i] = x + i
    return d, len(d), list(d)


@case
def lists_in_a_dict(x):
    d = {"a": [x]}
    if x.sum() > 0:
        d["a"].append(x + 1)
    else:
        d["b"] = [x - 1]
    for k in d:
        d[k].append(x * 0)
    return d


@case
def a_group_on_one_path(x):
    cur = []
    groups = []
    groups.append(cur)
    if x.sum() > 0:
        cur = []
        groups.append(cur)
    cur.append(x)
    return groups, cur


@case
def one_of_two_lists_changed(x):
    a = [x]
    b = [x]
    c = a if x.sum() > 0 else b
    c += [x + 1]
    c[0] = x * 9
    return a, b, c is a, c is b


@case
def an_ordered_dict(x):
    d = OrderedDict(a=x)
    if x.sum() > 0:
        d["z"] = x + 1
    d.update(a=x * 2)
    d["q"] = x
    return d, list(d.items())


@case
def a_defaultdict(x):
    d = defaultdict(list)
    if x.sum() > 0:
        d["k"].append(x)
    d["k"].append(x + 1)
    d["m"].append(x)
    return dict(d), d


@case
def rebound_while_another_name_knows_it(x):
    xs = [x]
    ys = xs
    n = 0
    while xs[-1].sum() < 20 and n < 5:
        xs = xs + [xs[-1] * 2 + 1]
        n += 1
    return xs, ys, xs is ys


@case
def two_names_in_a_loop(x):
    xs = [x]
    ys = xs
    n = 0
    while x.sum() < 5:
        x = x + 1
        n += 1
        if n == 2:
            ys = [x]
        xs.append(x)
    ys.append(x * 0)
    return xs, ys, xs is ys


@case
def the_first_list_by_another_name(x):
    h = [x, x * 2]
    keep = h
    for i in range(int((x > 0).sum())):
        h = [h[1], h[0] + 1]
        h[0] = h[0] * 2
    keep[0] = x * 100
    return h, keep, h is keep


@case
def a_key_in_a_loop(x):
    d = {"p": x}
    n = 0
    while n < int((x > 0).sum()):
        d["q"] = x + n
        n += 1
    return d, "q" in d


@case
def beams(x):
    best = None
    bs = [(x, 0.0)]
    for t in range(3):
        nb = []
        for v, s in bs:
            nb.append((v + 1, s + float(v.sum())))
            if v.sum() > 0:
                nb.append((v * 2, s))
        bs = nb
    return bs


@case
def two_choices(x):
    a = [x]
    b = a if x.sum() > 0 else [x * 2]
    c = b if x[0] > 1 else a
    c.append(x + 7)
    return a, b, c


@case
def changed_by_a_function(x):
    def push(items, value):
        items.append(value)
        return items

    a = []
    r = push(a, x) if x.sum() > 0 else push([1], x * 2)
    push(r, 3)
    return a, r


@case
def a_counter(x):
    c = Counter()
    if x.sum() > 0:
        c["u"] += 1
    c["v"] += 2
    return c


@case
def items_swapped(x):
    l = [[x], [x + 1]]
    if x.sum() > 0:
        l[0], l[1] = l[1], l[0]
    l[0].append(x * 3)
    return l


@case
def popped_or_inserted(x):
    l = [x, x + 1, x + 2]
    if x.sum() > 0:
        l.pop()
    else:
        l.insert(0, x * 5)
    l.reverse()
    return l, len(l), l[-1]


@case
def lists_by_key(x):
    acc = []
    seen = {}
    for i in range(4):
        k = "up" if x[i % 3] > 0 else "down"
        seen.setdefault(k, []).append(i)
        acc.append(seen[k])
    return acc, seen


@case
def a_stack(x):
    stack = [x]
    out = []
    while len(stack) > 0 and len(out) < 4:
        t = stack.pop()
        out.append(t)
        if t.sum() > -3:
            stack.append(t - 1)
    return out, stack


@case
def groups(x):
    cur = []
    groups = [cur]
    for v in (x, x * 2, -x):
        if v.sum() > 0:
            cur = []
            groups.append(cur)
        cur.append(v)
    return groups


@case
def the_best_of(x):
    best = {"v": x, "n": 0}
    for i in range(3):
        cand = {"v": best["v"] + 1, "n": i}
        if cand["v"].sum() > i * 2:
            best = cand
        best["n"] += 10
    return best


@case
def names_swapped_in_a_loop(x):
    a = [x]
    b = [x * 2]
    n = 0
    while n < int((x > 0).sum()):
        a, b = b, a
        a.append(x + n)
        n += 1
    return a, b


@case
def attributes_of_objects(x):
    class N:
        pass

    n = N()
    n.items = [x]
    m = n
    if x.sum() > 0:
        m = N()
        m.items = [x * 3]
    m.items.append(x)
    return n.items, m.items, m is n


@case
def a_deque_with_a_maximum(x):
    q = deque([x], maxlen=2)
    for i in range(3):
        if x[i] > 0:
            q.append(x * i)
    return list(q), len(q), q[0]


@case
def a_set_of_many_contents(x):
    s = set()
    for i in range(3):
        if x[i] > 0:
            s.add(i)
    return sorted(s), len(s), 1 in s


@case
def a_copy_of_one_of_two(x):
    xs = [x, x + 1] if x.sum() > 0 else [x * 2]
    ys = xs[:]
    ys.append(x)
    return xs, ys, xs is ys, len(xs), torch.stack(xs), torch.cat(ys)


@case
def dicts_that_differ_in_lists_that_do_not(x):
    if x.sum() > 0:
        xs = [{"a": x}]
    else:
        xs = [{"b": x * 2}]
    xs.append(x)
    return xs, len(xs), list(xs[0])


@case
def lists_that_differ_in_dicts_that_do_not(x):
    if x.sum() > 0:
        d = {"k": [1, "s"], "m": [x]}
    else:
        d = {"k": [x], "m": [x * 2]}
    d["m"].append(x)
    return d


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_as_eager(function: Any) -> None:
    check(function, *CALLS, paths=("program",))


def _watching(frame: FrameType, event: str, arg: Any) -> Any:
    """What a debugger does: it looks at every variable."""
    dict(frame.f_locals)
    return _watching


@pytest.mark.skipif(
    sys.version_info[:3] == (3, 13, 0), reason="Python 3.13.0 itself crashes when a trace function copies f_locals")
@pytest.mark.parametrize("function", [a_key_on_one_path, a_list_that_each_iteration_makes, an_alias_on_one_path])
def test_a_debugger_changes_nothing(function: Any) -> None:
    plain = to_static(function)(X)
    before = sys.gettrace()
    sys.settrace(_watching)
    try:
        watched = to_static(function)(X)
    finally:
        sys.settrace(before)
    same(watched, plain)


def test_a_list_that_each_path_makes_is_one_afterwards(request: pytest.FixtureRequest) -> None:
    """The Program of many branches that rebind a list is no longer than what the branches do."""
    if request.config.getoption("--held"):
        pytest.skip("what is saved where nothing else refers to the list")

    def rebound(x: Any) -> Any:
        state = [x, x * 2]
        for i in range(8):
            if x.sum() > i:
                state = [state[0] + 1, state[1] * 0.5]
        return state

    static = to_static(rebound)
    static(X)
    assert not any(op.name == "switch" for op in static.program.block.walk())
