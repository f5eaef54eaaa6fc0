"""Methods of Python's containers, with the value as a key, as an item, and inside what they are given."""

from __future__ import annotations

LIST: dict[str, tuple[str, ...]] = {
    "append": ("r = [1]; r.append(v)", "r = []; r.append({v: 1})"),
    "clear": ("r = [v]; r.clear()",),
    "copy": ("[v, 1].copy()",),
    "count": ("[A, B, B].count(v)", "[v, v, A].count(A)", "[(v, 1)].count((A, 1))"),
    "extend": ("r = [1]; r.extend([v, v])", "r = [1]; r.extend((v,))", "r = []; r.extend({v: 1})"),
    "index": ("[A, B].index(v)", "[v, B].index(B)"),
    "insert": ("r = [1, 2]; r.insert(0, v)", "r = [1, 2, 3]; r.insert(v, 9)"),
    "pop": ("l = [1, v]; r = l.pop(), l", "l = [1, 2, 3]; r = l.pop(v), l"),
    "remove": ("r = [A, B, 3]; r.remove(v)", "r = [v, B, A]; r.remove(A)"),
    "reverse": ("r = [v, 1]; r.reverse()",),
    "sort": (
        "r = [v, A, B]; r.sort()",
        "r = [v, A]; r.sort(key=str)",
        "r = [3, 1, 2]; r.sort(key={1: v, 2: A, 3: B}.get)",
    ),
}

TUPLE: dict[str, tuple[str, ...]] = {
    "count": ("(A, B, B).count(v)", "(v, v, A).count(A)"),
    "index": ("(A, B).index(v)", "(v, B).index(B)"),
}

DEQUE: dict[str, tuple[str, ...]] = {
    "append": ("d = deque([1]); d.append(v); r = list(d)", "d = deque([1], 1); d.append(v); r = d[0]"),
    "appendleft": ("d = deque([1]); d.appendleft(v); r = list(d)",),
    "clear": ("d = deque([v]); d.clear(); r = len(d)",),
    "copy": ("list(deque([v, 1]).copy())",),
    "count": ("deque([A, B, B]).count(v)", "deque([v, A]).count(A)"),
    "extend": ("d = deque([1]); d.extend([v, v]); r = list(d)",),
    "extendleft": ("d = deque([1]); d.extendleft((v, 2)); r = list(d)",),
    "index": ("deque([A, B]).index(v)",),
    "insert": ("d = deque([1, 2]); d.insert(1, v); r = list(d)", "d = deque([1, 2]); d.insert(v, 9); r = list(d)"),
    "maxlen": ("deque([1, 2, 3], v).maxlen", "list(deque([1, 2, 3], v))"),
    "pop": ("d = deque([1, v]); r = d.pop()",),
    "popleft": ("d = deque([v, 1]); r = d.popleft()",),
    "remove": ("d = deque([A, B, 3]); d.remove(v); r = list(d)",),
    "reverse": ("d = deque([v, 1]); d.reverse(); r = list(d)",),
    "rotate": ("d = deque([v, 1]); d.rotate(1); r = list(d)", "d = deque([1, 2, 3]); d.rotate(v); r = list(d)"),
}

DICT: dict[str, tuple[str, ...]] = {
    "clear": ("r = {'k': v}; r.clear()", "r = {v: 1}; r.clear()"),
    "copy": ("{'k': v}.copy()", "{v: 1}.copy()"),
    "fromkeys": (
        "dict.fromkeys([v, A], 1)",
        "dict.fromkeys(['a'], v)",
        "dict.fromkeys((v,))",
        "dict.fromkeys([A], v)[A]",
    ),
    "get": (
        "{A: 2.0, B: 0.5}.get(v, 1.0)",
        "{A: 2.0}.get(v)",
        "{A: x}.get(v, x * 2)",
        "{'k': v}.get('k')",
        "{}.get('z', v)",
        "{(A, 1): 2.0}.get((v, 1), 1.0)",
        "{A: [1], B: [2]}.get(v)",
        "dict.get({A: 1}, v, 0)",
    ),
    "items": ("list({'k': v}.items())", "list({v: 1}.items())", "(v, 1) in {A: 1}.items()"),
    "keys": ("v in {A: 1}.keys()", "list({v: 1}.keys())", "{A: 1}.keys() & {v}", "{A: 1}.keys().isdisjoint([v])"),
    "pop": (
        "{A: 2.0, B: 0.5}.pop(v, 1.0)",
        "{A: 2.0}.pop(v, None)",
        "d = {A: 1, B: 2}; r = d.pop(v), len(d)",
        "d = {A: 1, B: 2}; d.pop(v); r = d",
        "d = {'k': v}; r = d.pop('k'), d",
    ),
    "popitem": ("{'k': v}.popitem()", "{v: 1}.popitem()"),
    "setdefault": (
        "d = {A: 1, B: 2}; r = d.setdefault(v, 3), d",
        "d = {A: 1}; r = d.setdefault(v, 3)",
        "d = {A: 1}; d.setdefault(v, 3); r = d",
        "d = {A: 1}; d.setdefault(v, 3); r = list(d)",
        "d = {A: 1}; d.setdefault('k', v); r = d",
        "d = {A: [], B: []}; d.setdefault(v, []).append(x); r = d",
    ),
    "update": (
        "r = {A: 1, B: 2}; r.update({v: 3})",
        "r = {A: 1, B: 2}; r.update([(v, 3)])",
        "r = {}; r.update({v: 3})",
        "r = {}; r.update(k=v)",
        "r = {'k': 1}; r.update({'k': v})",
        "r = {}; r.update(zip([v], [1]))",
    ),
    "values": ("list({'k': v}.values())", "v in {'k': A}.values()", "list({v: 1}.values())"),
}

SET: dict[str, tuple[str, ...]] = {
    "add": ("s = {A}; s.add(v); r = len(s)", "s = set(); s.add(v); r = v in s", "s = {A, B}; s.add(v); r = s"),
    "clear": ("s = {v}; s.clear(); r = len(s)",),
    "copy": ("{v}.copy()", "{v, A}.copy() == {A}"),
    "difference": ("{A, B}.difference([v])", "len({A, B}.difference({v}))", "{A, B} - {v}"),
    "difference_update": ("s = {A, B}; s.difference_update([v]); r = s", "s = {A}; s -= {v}; r = len(s)"),
    "discard": ("s = {A, B}; s.discard(v); r = len(s)", "s = {A}; s.discard(v); r = s"),
    "intersection": ("{A}.intersection([v])", "len({A, 1} & {v})"),
    "intersection_update": ("s = {A, B}; s.intersection_update((v,)); r = s", "s = {A}; s &= {v}; r = len(s)"),
    "isdisjoint": ("{A}.isdisjoint([v])", "{v}.isdisjoint({A})"),
    "issubset": ("{v}.issubset([A])", "{A} <= {v, B}"),
    "issuperset": ("{A}.issuperset([v])", "{v} >= {A}"),
    "pop": ("s = {v}; r = s.pop()",),
    "remove": ("s = {A, B}; s.remove(v); r = s", "s = {A}; s.remove(v); r = len(s)"),
    "symmetric_difference": ("{A}.symmetric_difference([v])", "len({A} ^ {v})"),
    "symmetric_difference_update": (
        "s = {A}; s.symmetric_difference_update([v]); r = s",
        "s = {A}; s ^= {v}; r = len(s)",
    ),
    "union": ("{A}.union([v])", "len({A} | {v})", "{A, B}.union([v])"),
    "update": ("s = {A}; s.update([v]); r = s", "s = {A, B}; s |= {v}; r = s", "s = {A, B}; s.update((v,)); r = s"),
}

FROZENSET: dict[str, tuple[str, ...]] = {
    "copy": ("frozenset([v]).copy()",),
    "difference": ("frozenset([A, B]).difference([v])",),
    "intersection": ("frozenset([A]).intersection([v])",),
    "isdisjoint": ("frozenset([A]).isdisjoint([v])",),
    "issubset": ("frozenset([v]).issubset([A])",),
    "issuperset": ("frozenset([A]).issuperset([v])",),
    "symmetric_difference": ("frozenset([A]).symmetric_difference([v])",),
    "union": ("frozenset([A]).union([v])", "len(frozenset([A]) | {v})"),
}
