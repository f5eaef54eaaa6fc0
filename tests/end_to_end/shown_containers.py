"""Programs in which a container changes on one path while something else shows it, or an operator of Python's reads it.

A snippet of several lines; ``q`` is the condition, ``r`` the result where nothing is returned.
"""

from __future__ import annotations

from collections.abc import Iterator

_DICT = "m = dict(a=1)\n{before}\nif q:\n    m['b'] = 5\nr = {use}"

_OF_VIEWS = (
    "list(v)", "len(v)", "sorted(v)", "[k for k in v]", "tuple(v)", "set(v)", "bool(v)",
    "(5 in v, 'b' in v, ('b', 5) in v)", "list(reversed(v))", "dict(zip(v, v))", "v == m.{view}()", "max(v)", "[*v]",
    "list(map(str, v))", "list(enumerate(v))", "next(iter(v))", "sum(1 for _ in v)", "len([*zip(v, v)])",
    "list(itertools.chain(v, v))", "'/'.join(map(str, v))", "{{*v}}", "(lambda *k: len(k))(*v)",
)  # fmt: skip
_OF_KEYS = ("v & {'b'}", "v | {'c'}", "v - {'a'}", "v ^ {'a'}", "v.isdisjoint({'b'})", "v <= {'a', 'b'}", "{'b'} - v")
_OF_PROXIES = ("v.get('b')", "len(v)", "'b' in v", "list(v)", "v['a']", "dict(v)", "v == m")
_OF_METHODS = ("m.get", "m.__getitem__", "m.__contains__")

_ITERATORS = (
    "iter(m)", "enumerate(m)", "zip(m, m)", "map(str, m)", "filter(None, m)", "itertools.cycle(m)",
    "itertools.chain(m, [3])", "itertools.islice(m, 5)", "itertools.accumulate(m)", "(k for k in m)",
)  # fmt: skip

_OF_SETS = (
    "s & {2}", "s - {1}", "s ^ {1}", "s | {5}", "{2} & s", "{1, 2} - s", "s <= {1}", "s < {1, 2}", "{2} <= s",
    "s == {1, 2}", "s != {1}", "s.isdisjoint({2})", "s.issubset({1})", "s.union({9})", "s.intersection({2})",
    "bool(s - {1})", "len(s & {2})", "sorted(s ^ {3})", "{1, 2}.issubset(s)", "{2}.intersection(s)",
    "frozenset(s) & {2}", "2 in (s & {2})", "s > {1}", "s >= {2}", "s - s", "s & s", "(s | {3}) - {1}",
    "(lambda a, b: a - b)(s, {1})", "[a & {2} for a in [s]]", "max(s - {1}, default=0)", "0 < len(s - {1}) < 2",
)  # fmt: skip
_ON_SETS = (
    "s &= {2}", "s -= {1}", "s |= {7}", "s ^= {1}", "s.intersection_update({2})", "s.difference_update({1})",
    "s.symmetric_difference_update({1})", "t &= s", "t -= s", "t |= s", "t ^= s", "t.update(s)",
    "t.difference_update(s)",
)  # fmt: skip

_OF_DICTS = (
    "d == {'a': 1}", "d | {'c': 1}", "{'c': 1} | d", "{**d}", "d != e", "d == e", "'b' in d", "not d",
    "d.keys() == {'a'}", "dict(d)", "list(d)", "[d] == [{'a': 1}]", "(d, 1) == ({'a': 1}, 1)", "d in [{'a': 1}]",
    "[{'a': 1}].count(d)", "{'k': d} == {'k': {'a': 1}}", "deque([d]) == deque([{'a': 1}])", "any(d)",
    "sorted(d.items())", "max(d.values())", "d.copy()", "len({**d, 'z': 0})", "tuple(d.items())", "dict(d, z=1)",
    "dict(**d)", "(lambda **k: len(k))(**d)", "(lambda *k: len(k))(*d)", "OrderedDict(d)", "Counter(d)",
    "ChainMap(d)['a']", "ChainMap({}, d).get('b', 3)", "SimpleNamespace(**d)",
    "d.keys() & {'b'}", "d.items() - {('a', 1)}", "dict.get(d, 'b')", "dict.__contains__(d, 'b')", "dict.__len__(d)",
    "list(dict.keys(d))", "(dict.pop(d, 'b', 3), d)", "(dict.setdefault(d, 'b', 3), d)",
)  # fmt: skip

_MATCHED = (
    "m = dict(a=1)\nif q:\n    m['b'] = 5\nmatch m:\n    case {'a': t, **rest} if rest:\n        r = t, rest\n    "
    "case _:\n        r = None",
    "m = dict(a=1)\nif q:\n    m['b'] = 5\nmatch m:\n    case {'b': t}:\n        r = t\n    case {'a': t}:\n        "
    "r = -t",
    "m = dict(a=1, b=2) if q else dict(a=1)\nmatch (0, m):\n    case (0, {'a': t, **rest}) if rest:\n        "
    "r = t, rest\n    case _:\n        r = None",
    "m = [1]\nif q:\n    m.append(2)\nmatch m:\n    case [a]:\n        r = a\n    case [a, *b]:\n        r = a, b",
    "m = [1]\nif q:\n    m.append('s')\nmatch m:\n    case [a]:\n        r = a\n    case [a, b]:\n        r = b, a",
    "m = {1}\nif q:\n    m.add(2)\nmatch m:\n    case set() if 2 in m:\n        r = 'two'\n    case _:\n        r = m",
)

_CLASSES = (
    "c = ChainMap({'a': 1}, {'a': 2, 'b': 3})\nif q:\n    c['b'] = 5\nr = c['a'], c['b']",
    "c = ChainMap({'a': 1}, {'a': 2, 'b': 3})\nif q:\n    c['b'] = 5\nr = len(c), 'b' in c, c.get('a')",
    "p = {'a': 1}\nc = ChainMap(p, {'b': 2})\nif q:\n    p['b'] = 5\nr = c['b']",
    "c = UserDict(a=1)\nif q:\n    c['b'] = 5\nr = c['a'], len(c)",
    "c = UserDict(a=1)\nif q:\n    c['b'] = 5\nr = 'b' in c, c.get('b', 3)",
    "c = UserList([1])\nif q:\n    c.append(5)\nr = len(c), c[0], c[-1]",
    "c = UserString('ab')\nif q:\n    c = c + 'c'\nr = str(c), len(c)",
    "c = Counter('ab')\nif q:\n    c['c'] += 1\nr = c['a'], c['c'], sum(c.values())",
    "c = Counter('ab')\nif q:\n    c['a'] += 1\nr = c + Counter('a')",
    "c = defaultdict(list)\nif q:\n    c['c'].append(1)\nr = len(c), c.get('c')",
)

IMPORTS = "import itertools\nfrom collections import *\nfrom types import MappingProxyType, SimpleNamespace\n"


def snippets() -> Iterator[str]:
    """All of them."""
    for view in ("keys", "values", "items"):
        for use in (*_OF_VIEWS, *(_OF_KEYS if view == "keys" else ())):
            text = use.replace("{view}", view).replace("{{", "{").replace("}}", "}")
            yield _DICT.replace("{before}", f"v = m.{view}()").replace("{use}", text)
    for use in _OF_PROXIES:
        yield _DICT.replace("{before}", "v = MappingProxyType(m)").replace("{use}", use)
    for method in _OF_METHODS:
        yield _DICT.replace("{before}", f"h = {method}").replace("{use}", "h('a')")
    for iterator in _ITERATORS:
        yield f"m = [1]\nit = {iterator}\nif q:\n    m.append(2)\nr = list(itertools.islice(it, 4))"
    for use in _OF_SETS:
        yield f"s = {{1}}\nif q:\n    s.add(2)\nr = {use}"
    for statement in _ON_SETS:
        yield f"s = {{1}}\nt = {{1, 2, 3}}\nif q:\n    s.add(2)\n{statement}\nr = s, t, len(s), len(t)"
    for use in _OF_DICTS:
        yield f"d = dict(a=1)\ne = dict(a=1)\nif q:\n    d['b'] = 5\nr = {use}"
    yield from _MATCHED
    yield from _CLASSES


def module() -> str:
    """A module with a function for each snippet: ``f0``, ``f1``, ..."""
    functions = []
    for number, snippet in enumerate(snippets()):
        body = "\n".join(f"    {line}" for line in snippet.splitlines())
        functions.append(f"def f{number}(x):\n    q = x.sum() > 0\n{body}\n    return r\n")
    return IMPORTS + "\n\n".join(functions)
