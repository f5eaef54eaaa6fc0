"""``collections``: its classes and their methods."""

from __future__ import annotations

COLLECTIONS: dict[str, tuple[str, ...]] = {
    "ChainMap": ("ChainMap({A: 1}, {B: 2})[v]", "ChainMap({v: 1}, {A: 2})[A]", "v in ChainMap({A: 1})"),
    "Counter": (
        "Counter([v, A])[A]",
        "Counter([A, A, B])[v]",
        "dict(Counter([v, v]))",
        "c = Counter([A, B]); c[v] += 1; r = dict(c)",
        "v in Counter([A])",
        "Counter({v: 2})[A]",
    ),
    "OrderedDict": ("OrderedDict([(v, 1)])", "list(OrderedDict([(A, 1), (v, 2)]))", "OrderedDict({A: 1, B: 2})[v]"),
    "UserDict": ("UserDict({A: 1, B: 2})[v]", "UserDict({v: 1})[A]"),
    "UserList": ("UserList([v, A])[0]", "UserList([v]).count(A)", "UserList([1, 2, 3])[v]"),
    "UserString": ("str(UserString(v))", "UserString('up').count(v)"),
    "defaultdict": (
        "d = defaultdict(list); d[v].append(1); r = dict(d)",
        "d = defaultdict(int, {A: 1, B: 2}); d[v] += 1; r = dict(d)",
        "d = defaultdict(int); r = d[v]",
        "d = defaultdict(lambda: v); r = d['k']",
    ),
    "deque": (
        "v in deque([A])",
        "list(deque([v]))",
        "deque([v, 1])[0]",
        "deque([1, 2, 3])[v]",
        "deque([v]) == deque([A])",
    ),
    "namedtuple": (
        "namedtuple('P', 'a b')(v, 1).a",
        "namedtuple('P', 'a b')(v, 1)._asdict()",
        "namedtuple('P', 'a b')(v, 1)._replace(b=2)[0]",
        "namedtuple('P', [v])",
        "hash(namedtuple('P', 'a b')(v, 1))",
        "namedtuple('P', 'a b')(v, 1) == (A, 1)",
    ),
}

COUNTER: dict[str, tuple[str, ...]] = {
    "clear": ("c = Counter([v]); c.clear(); r = len(c)",),
    "copy": ("Counter([v]).copy()[A]",),
    "elements": ("list(Counter([v, A]).elements())",),
    "fromkeys": (),
    "get": ("Counter([A, A]).get(v, 0)",),
    "items": ("list(Counter([v]).items())",),
    "keys": ("v in Counter([A]).keys()",),
    "most_common": ("Counter([v, A, A]).most_common(1)", "Counter([1, 1, 2]).most_common(v)"),
    "pop": ("Counter([A, B]).pop(v)",),
    "popitem": ("Counter([v]).popitem()",),
    "setdefault": ("Counter([A, B]).setdefault(v, 9)",),
    "subtract": (
        "c = Counter([A, B]); c.subtract([v]); r = dict(c)",
        "c = Counter([A, B]); c.subtract({v: 2}); r = c[A]",
    ),
    "total": ("Counter([v, A]).total()", "Counter({'k': v}).total()"),
    "update": ("c = Counter([A, B]); c.update([v]); r = dict(c)", "c = Counter(); c.update({v: 2}); r = c[A]"),
    "values": ("list(Counter([v, A]).values())",),
}

ORDERED: dict[str, tuple[str, ...]] = {
    "clear": ("d = OrderedDict([(v, 1)]); d.clear(); r = len(d)",),
    "copy": ("OrderedDict([(v, 1)]).copy()",),
    "fromkeys": ("OrderedDict.fromkeys([v])",),
    "get": ("OrderedDict({A: 1}).get(v, 0)",),
    "items": ("list(OrderedDict([(v, 1)]).items())",),
    "keys": ("list(OrderedDict([(v, 1)]).keys())",),
    "move_to_end": ("d = OrderedDict([(A, 1), (B, 2)]); d.move_to_end(v); r = list(d)",),
    "pop": ("OrderedDict([(A, 1), (B, 2)]).pop(v)",),
    "popitem": ("OrderedDict([(v, 1)]).popitem()",),
    "setdefault": ("OrderedDict([(A, 1), (B, 2)]).setdefault(v, 3)",),
    "update": ("d = OrderedDict([(A, 1), (B, 2)]); d.update({v: 3}); r = d",),
    "values": ("list(OrderedDict([(v, v)]).values())",),
}

CHAIN: dict[str, tuple[str, ...]] = {
    "clear": ("c = ChainMap({v: 1}); c.clear(); r = len(c)",),
    "copy": ("ChainMap({v: 1}).copy()[A]",),
    "fromkeys": ("ChainMap.fromkeys([v])[A]",),
    "get": ("ChainMap({A: 1}, {B: 2}).get(v, 0)", "ChainMap({A: 1}).get(v)"),
    "items": ("list(ChainMap({v: 1}).items())",),
    "keys": ("list(ChainMap({v: 1}).keys())",),
    "new_child": ("ChainMap({A: 1}).new_child({v: 2})[A]",),
    "parents": ("ChainMap({v: 1}, {A: 1}).parents[v]",),
    "pop": ("ChainMap({A: 1, B: 2}).pop(v)",),
    "popitem": ("ChainMap({v: 1}).popitem()",),
    "setdefault": ("ChainMap({A: 1}).setdefault(v, 2)",),
    "update": ("c = ChainMap({A: 1, B: 2}); c.update({v: 3}); r = c[A]",),
    "values": ("list(ChainMap({v: 1, A: 2}).values())",),
}

DEFAULT: dict[str, tuple[str, ...]] = {
    "clear": (),
    "copy": ("defaultdict(int, {v: 1}).copy()[A]",),
    "default_factory": ("d = defaultdict(int); d.default_factory = lambda: v; r = d['k']",),
    "fromkeys": (),
    "get": ("defaultdict(int, {A: 1}).get(v)",),
    "items": (),
    "keys": (),
    "pop": ("defaultdict(int, {A: 1, B: 2}).pop(v)",),
    "popitem": (),
    "setdefault": ("defaultdict(int, {A: 1, B: 2}).setdefault(v)",),
    "update": ("d = defaultdict(int, {A: 1, B: 2}); d.update({v: 5}); r = dict(d)",),
    "values": (),
}
