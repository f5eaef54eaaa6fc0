"""Containers of ``collections`` that two paths changed in two ways, and what their classes can do, a program each."""

from __future__ import annotations

STARTS: dict[str, str] = {
    "counter": """\
c = Counter(a=1, b=3)
if x.sum() > 0:
    c["c"] += 2
else:
    c["a"] = 5
""",
    "chain": """\
c = ChainMap({"a": x, "n": 1}, {"b": 2, "n": 7})
if x.sum() > 0:
    c["b"] = 5
else:
    c.maps[1]["z"] = 3
""",
    "userdict": """\
c = UserDict(a=1)
if x.sum() > 0:
    c["b"] = x * 2
else:
    c["a"] = 4
""",
    "userlist": """\
c = UserList([1, 2])
if x.sum() > 0:
    c.append(5)
else:
    c[0] = 7
""",
    "odict": """\
c = OrderedDict(a=1, b=2)
if x.sum() > 0:
    c["c"] = 3
else:
    c.move_to_end("a")
""",
    "named": """\
P = namedtuple("P", "a b")
c = P(x, 1)
if x.sum() > 0:
    c = c._replace(b=2)
else:
    c = P._make([x * 2, 3])
""",
}
"""How each is made, and changed where a tensor decides."""

USES: dict[str, list[str]] = {
    "counter": [
        'c.update("abz"); r = dict(c)', 'c.update(["a", "q"]); r = sorted(c.items())',
        'c.update({"a": 2, "k": 1}); r = dict(c)', 'c.update(a=3); r = c["a"]', 'c.subtract("ab"); r = dict(c)',
        'c.subtract({"a": 7}); r = dict(c)', "r = list(c.elements())", "r = c.most_common()", "r = c.most_common(2)",
        "r = c.total()", "r = dict(c + Counter(a=1))", "r = dict(c - Counter(a=1, b=9))",
        "r = dict(c & Counter(a=1, b=9))", "r = dict(c | Counter(z=2))", 'c += Counter("ab"); r = dict(c)',
        'c -= Counter("ab"); r = dict(c)', 'c |= Counter("abq"); r = dict(c)', 'c &= Counter("abq"); r = dict(c)',
        "r = dict(+c)", "r = dict(-c)", "r = c == Counter(a=5, b=3)", "r = c <= Counter(a=5, b=3, c=2)",
        "r = c >= Counter(a=1)", "r = c < Counter(a=9,b=9,c=9)", "r = dict(c.copy())", 'r = c["nope"], "c" in c',
        'del c["b"]; r = dict(c)', 'del c["nope"]; r = len(c)', 'r = c.pop("c", 0)', "r = sum(c.values())",
        "r = max(c, key=c.get)", "r = repr(c)", "c.clear(); r = len(c)", "r = dict(Counter(c))",
        'd = copy.copy(c); d["a"] += 1; r = c["a"], d["a"]',
    ],
    "chain": [
        'r = c["b"], len(c)', "r = list(c)", 'r = c.get("z"), c.get("q", 4)', 'r = "z" in c', "r = dict(c)",
        'd = c.new_child({"b": 9}); d["k"] = 1; r = d["b"], len(d), len(c)', "r = dict(c.parents)",
        'r = c.pop("n"), c["n"]', "r = c.popitem()[0]", "c.update(q=1); r = sorted(c)",
        'r = c.setdefault("b", 8), c.setdefault("y", 8)', "r = [k for k, v in c.items()]", 'del c["n"]; r = c["n"]',
        "r = bool(c)", 'r = c.maps[0].keys() == {"a", "n"}', 'd = c.copy(); d["b"] = 0; r = c["b"]',
        "r = sorted(c.keys())", "r = repr(c.maps[1])", 'd = c | {"b": 1}; r = d["b"]', "c.clear(); r = len(c)",
    ],
    "userdict": [
        'r = len(c), "b" in c', "r = list(c)", "c.update(q=1); r = sorted(c)", 'r = c.get("b") is None',
        'r = c.pop("a")', 'r = c.setdefault("b", 3) is not None', "r = list(c.items())[0]",
        'd = c.copy(); d["a"] = 7; r = c["a"]', 'r = dict(c | {"k": 1})["k"]', 'del c["a"]; r = len(c)',
        "r = list(c.data)", 'r = c == {"a": 4}', "r = sorted(c.keys())",
    ],
    "userlist": [
        "r = len(c), c[0]", "r = list(c)", "c.extend([3]); r = c.data", "c.insert(0, 9); r = list(c)", "r = c.pop()",
        "r = c.index(2)", "r = c.count(2)", "r = 5 in c", "r = (c + [1]).data", "r = (c * 2).data",
        "c.reverse(); r = list(c)", "c.sort(); r = list(c)", "r = c[-1]", "r = c[1:].data", "c += [8]; r = list(c)",
        "r = c == [1, 2, 5]", "r = c < [3]", "c.remove(2); r = list(c)", "d = c.copy(); d.append(0); r = len(c)",
        "c.clear(); r = len(c)", "r = sum(c)", "r = max(c)",
    ],
    "odict": [
        "r = list(c)", 'c.move_to_end("b", last=False); r = list(c)', "r = c.popitem()", "r = c.popitem(last=False)",
        "c.update(z=1); r = list(c.items())", "r = list(reversed(c))", "r = c == OrderedDict(b=2, a=1)",
        'r = c.pop("a")', 'r = c.setdefault("c", 4)', 'd = c.copy(); d["a"] = 0; r = c["a"]',
        'r = list(c | {"k": 1})', "r = len(c), list(c.values())",
    ],
    "named": [
        "r = c.b", 'r = c._asdict()["b"]', "r = c._replace(b=9).b", "r = tuple(c)[1]", "a, b = c; r = b",
        "r = c._fields", "r = len(c)",
    ],
}  # fmt: skip
"""What is done with it, up to the result ``r``."""
