"""Places that hold a value outside of a function, from where it is read, and where another is put between two calls.

``$I`` stands for the number of the place, which keeps names apart, ``$X`` for the expression of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One place: ``setup`` makes it, ``read`` is the expression, ``assign`` puts another value there."""

    setup: str
    read: Sequence[str]
    assign: Sequence[str]
    others: Sequence[str] = ()
    """Further changes around the place."""
    asks: Sequence[str] = ()
    """Expressions about the place, whatever is in it."""
    names: Sequence[str] = ()
    """Globals that changes bind."""


PLACES: dict[str, Place] = {
    "global": Place(
        "P$I = $X\n",
        ("P$I", "P$I", "globals()['P$I']"),
        ("P$I = $X",),
        asks=("'P$I' in globals()",),
        names=("P$I",),
    ),
    "absent global": Place(
        "def g$I():\n"
        "    try:\n"
        "        return P$I\n"
        "    except NameError:\n"
        "        return None\n",
        ("g$I()",),
        ("P$I = $X",),
        others=("del P$I",),
        names=("P$I",),
    ),
    "shadowed builtin": Place(
        "def g$I():\n"
        "    return len([1, 2])\n"
        "P$I = $X\n",
        ("P$I",),
        ("P$I = $X",),
        others=("global len\nlen = lambda v: 7", "globals().pop('len', None)"),
        asks=("g$I()",),
        names=("P$I",),
    ),
    "attribute": Place(
        "class C$I:\n"
        "    pass\n"
        "P$I = C$I()\n"
        "P$I.held = $X\n",
        (
            "P$I.held", "getattr(P$I, 'held')", "getattr(P$I, 'he' + 'ld')", "vars(P$I)['held']",
            "P$I.__dict__['held']", "operator.attrgetter('held')(P$I)", "object.__getattribute__(P$I, 'held')",
        ),
        ("P$I.held = $X", "setattr(P$I, 'held', $X)", "P$I.__dict__['held'] = $X"),
        others=(
            "P$I = C$I()\nP$I.held = $X", "del P$I.held", "P$I.other = 1", "C$I.held = property(lambda self: 5)",
            "P$I.__class__ = Plain", "C$I.__getattr__ = lambda self, name: 8",
        ),
        asks=("hasattr(P$I, 'held')", "getattr(P$I, 'more', 1)", "len(vars(P$I))"),
        names=("P$I",),
    ),
    "class attribute": Place(
        "class C$I:\n"
        "    held = $X\n"
        "P$I = C$I()\n",
        (
            "P$I.held", "C$I.held", "type(P$I).held", "getattr(C$I, 'held')", "C$I.__dict__['held']", "C$I().held",
            "vars(C$I)['held']",
        ),
        ("C$I.held = $X", "P$I.held = $X", "setattr(C$I, 'held', $X)"),
        others=("del P$I.held", "C$I.more = 3", "P$I = C$I()", "C$I.held = property(lambda self: 5)"),
        asks=("hasattr(P$I, 'more')", "getattr(P$I, 'more', 1)", "'held' in vars(P$I)"),
        names=("P$I",),
    ),
    "base class": Place(
        "class B$I:\n"
        "    held = $X\n"
        "class M$I:\n"
        "    pass\n"
        "class C$I(M$I, B$I):\n"
        "    def get(self):\n"
        "        return super().held\n"
        "P$I = C$I()\n",
        ("P$I.held", "C$I.held", "P$I.get()", "super(C$I, P$I).held", "B$I.held"),
        ("B$I.held = $X", "M$I.held = $X", "C$I.held = $X"),
        others=(
            "del M$I.held", "del C$I.held", "C$I.__bases__ = (B$I, M$I)", "C$I.__bases__ = (M$I, B$I)",
            "C$I.get = lambda self: 4",
        ),
        asks=("[c.__name__ for c in C$I.__mro__]", "issubclass(C$I, M$I)", "isinstance(P$I, B$I)"),
    ),
    "metaclass": Place(
        "class T$I(type):\n"
        "    held = $X\n"
        "class C$I(metaclass=T$I):\n"
        "    pass\n",
        ("C$I.held", "type(C$I).held"),
        ("T$I.held = $X", "C$I.held = $X"),
        others=("del C$I.held",),
        asks=("hasattr(C$I, 'more')",),
    ),
    "closure": Place(
        "def make$I():\n"
        "    held = $X\n"
        "    def get():\n"
        "        return held\n"
        "    def put(value):\n"
        "        nonlocal held\n"
        "        held = value\n"
        "    return get, put\n"
        "get$I, put$I = make$I()\n",
        ("get$I()", "get$I.__closure__[0].cell_contents"),
        ("put$I($X)", "get$I.__closure__[0].cell_contents = $X"),
        others=("get$I, put$I = make$I()",),
        names=("get$I", "put$I"),
    ),
    "default": Place(
        "def d$I(held=$X):\n"
        "    return held\n",
        ("d$I()",),
        ("d$I.__defaults__ = ($X,)",),
        others=("d$I.__code__ = (lambda held: 4).__code__", "d$I = lambda: 9"),
        asks=("d$I.__defaults__ is None",),
        names=("d$I",),
    ),
    "keyword default": Place(
        "def d$I(*, held=$X):\n"
        "    return held\n",
        ("d$I()",),
        ("d$I.__kwdefaults__ = {'held': $X}", "d$I.__kwdefaults__['held'] = $X"),
    ),
    "function attribute": Place(
        "def d$I():\n"
        "    return d$I.held\n"
        "d$I.held = $X\n",
        ("d$I.held", "d$I()"),
        ("d$I.held = $X",),
        others=("del d$I.held",),
        asks=("hasattr(d$I, 'held')", "getattr(d$I, 'more', 1)"),
    ),
    "dict item": Place(
        "P$I = {'held': $X, 'other': 1}\n",
        (
            "P$I['held']", "P$I.get('held')", "operator.itemgetter('held')(P$I)", "dict(P$I)['held']",
            "{**P$I}['held']", "list(P$I.values())[0]", "(lambda held, other: held)(**P$I)",
        ),
        ("P$I['held'] = $X", "P$I.update(held=$X)", "P$I = {'held': $X, 'other': 1}"),
        others=("del P$I['held']", "P$I['other'] = 2", "P$I['held'] = P$I.pop('held')"),
        asks=("len(P$I)", "'more' in P$I", "list(P$I)"),
        names=("P$I",),
    ),
    "list item": Place(
        "P$I = [0, $X]\n",
        (
            "P$I[1]", "P$I[-1]", "P$I[1:][0]", "[v for v in P$I][1]", "(lambda a, b: b)(*P$I)",
            "list(reversed(P$I))[0]",
        ),
        ("P$I[1] = $X", "P$I[-1:] = [$X]", "P$I = [0, $X]"),
        others=("P$I[0] = 1", "P$I[0] = False", "P$I.append(1)"),
        asks=("len(P$I)", "P$I[0]"),
        names=("P$I",),
    ),
    "nested": Place(
        "P$I = {'a': [types.SimpleNamespace(held={'b': ($X, 1)})]}\n",
        ("P$I['a'][0].held['b'][0]", "[o.held['b'] for o in P$I['a']][0][0]"),
        (
            "P$I['a'][0].held['b'] = ($X, 1)", "P$I['a'][0].held = {'b': ($X, 1)}",
            "P$I['a'][0] = types.SimpleNamespace(held={'b': ($X, 1)})",
            "P$I['a'] = [types.SimpleNamespace(held={'b': ($X, 1)})]",
        ),
        others=("P$I['c'] = 1",),
        asks=("len(P$I)",),
    ),
    "namedtuple": Place(
        "P$I = Pair($X, 1)\n",
        ("P$I.a", "P$I[0]", "getattr(P$I, 'a')", "P$I._asdict()['a']"),
        ("P$I = P$I._replace(a=$X)",),
        others=("P$I = (P$I[0], 1)",),
        names=("P$I",),
    ),
    "dataclass": Place(
        "P$I = Record($X, 1)\n",
        ("P$I.a", "dataclasses.astuple(P$I)[0]", "dataclasses.replace(P$I, b=3).a"),
        ("P$I.a = $X", "P$I = Record($X, 1)"),
        others=("P$I.b = 3",),
        names=("P$I",),
    ),
    "frozen dataclass": Place(
        "P$I = Frozen($X, 1)\n",
        ("P$I.a", "getattr(P$I, 'a')"),
        ("object.__setattr__(P$I, 'a', $X)", "P$I = Frozen($X, 1)"),
        names=("P$I",),
    ),
    "slots": Place(
        "P$I = Slotted($X, 1)\n",
        ("P$I.a", "getattr(P$I, 'a')", "type(P$I).a.__get__(P$I)"),
        ("P$I.a = $X", "Slotted.a.__set__(P$I, $X)"),
        others=("del P$I.a", "P$I.more = 1"),
        asks=("hasattr(P$I, 'more')", "getattr(P$I, 'more', 0)"),
    ),
    "partial": Place(
        "def given$I(one=0, *, held=None):\n"
        "    return held\n"
        "P$I = functools.partial(given$I, held=$X)\n",
        ("P$I()", "P$I.keywords['held']"),
        ("P$I.keywords['held'] = $X", "P$I = functools.partial(given$I, held=$X)"),
        names=("P$I",),
    ),
    "property": Place(
        "class C$I:\n"
        "    def __init__(self):\n"
        "        self._held = $X\n"
        "    @property\n"
        "    def held(self):\n"
        "        return self._held\n"
        "P$I = C$I()\n",
        ("P$I.held", "getattr(P$I, 'held')", "operator.attrgetter('held')(P$I)", "C$I.held.fget(P$I)"),
        ("P$I._held = $X",),
        others=("C$I.held = property(lambda self: 4)", "C$I.held = 5"),
        asks=("isinstance(C$I.held, property)",),
    ),
    "cached property": Place(
        "class C$I:\n"
        "    source = $X\n"
        "    @functools.cached_property\n"
        "    def held(self):\n"
        "        return self.source\n"
        "P$I = C$I()\n"
        "P$I.held\n",
        ("P$I.held", "C$I().held"),
        ("C$I.source = $X\nP$I.__dict__.pop('held', None)\nP$I.held", "P$I.held = $X"),
        others=("C$I.source = 1",),
    ),
    "descriptor": Place(
        "class D$I:\n"
        "    def __init__(self, value):\n"
        "        self.value = value\n"
        "    def __get__(self, one, owner=None):\n"
        "        return self.value\n"
        "class C$I:\n"
        "    held = D$I($X)\n"
        "P$I = C$I()\n",
        ("P$I.held", "C$I.held", "getattr(P$I, 'held')", "C$I().held"),
        ("vars(C$I)['held'].value = $X", "C$I.held = D$I($X)", "P$I.held = $X"),
        others=(
            "del P$I.held", "D$I.__set__ = lambda self, one, value: None",
            "D$I.__get__ = lambda self, one, owner=None: 3",
        ),
    ),
    "__getattr__": Place(
        "class C$I:\n"
        "    def __init__(self):\n"
        "        self.parts = {'held': $X}\n"
        "    def __getattr__(self, name):\n"
        "        if name == 'parts' or name not in self.parts:\n"
        "            raise AttributeError(name)\n"
        "        return self.parts[name]\n"
        "P$I = C$I()\n",
        ("P$I.held", "getattr(P$I, 'held')", "operator.attrgetter('held')(P$I)"),
        ("P$I.parts['held'] = $X", "P$I.held = $X", "P$I.parts = {'held': $X}"),
        others=(
            "del P$I.held", "P$I.parts['more'] = 1", "C$I.held = 4", "del C$I.held",
            "C$I.__getattr__ = lambda self, name: 9",
        ),
        asks=("hasattr(P$I, 'more')", "getattr(P$I, 'more', 0)"),
    ),
    "item of an object": Place(
        "class C$I:\n"
        "    def __init__(self):\n"
        "        self.parts = [$X]\n"
        "    def __getitem__(self, key):\n"
        "        return self.parts[key]\n"
        "    def __iter__(self):\n"
        "        return iter(self.parts)\n"
        "    def __len__(self):\n"
        "        return len(self.parts)\n"
        "    def __contains__(self, one):\n"
        "        return one in self.parts\n"
        "P$I = C$I()\n",
        (
            "P$I[0]", "list(P$I)[0]", "next(iter(P$I))", "[v for v in P$I][0]", "(lambda a, *rest: a)(*P$I)",
            "operator.itemgetter(0)(P$I)",
        ),
        ("P$I.parts[0] = $X", "P$I.parts = [$X]"),
        others=(
            "P$I.parts.append(1)", "C$I.__getitem__ = lambda self, key: 5", "C$I.__iter__ = lambda self: iter((6,))",
            "C$I.__len__ = lambda self: 3",
        ),
        asks=("len(P$I)", "bool(P$I)", "1 in P$I", "len(list(P$I))"),
    ),
    "derived dict": Place(
        "class C$I(dict):\n"
        "    tag = 1\n"
        "    def __missing__(self, key):\n"
        "        return self.tag\n"
        "P$I = C$I(held=$X)\n",
        ("P$I['held']", "P$I.get('held')", "dict(P$I)['held']"),
        ("P$I['held'] = $X",),
        others=("C$I.tag = 4", "P$I.tag = 5", "P$I.more = 1"),
        asks=("P$I['other']", "P$I.tag", "len(P$I)", "getattr(P$I, 'more', 0)"),
    ),
    "derived list": Place(
        "class C$I(list):\n"
        "    tag = 1\n"
        "P$I = C$I([$X])\n",
        ("P$I[0]", "list(P$I)[0]", "[v for v in P$I][0]"),
        ("P$I[0] = $X", "P$I[:] = [$X]"),
        others=("C$I.tag = 4", "P$I.tag = 5"),
        asks=("P$I.tag", "len(P$I)"),
    ),
    "ordered dict": Place(
        "P$I = collections.OrderedDict(other=1, held=$X)\n",
        ("P$I['held']", "list(P$I.values())[-1]", "next(reversed(P$I.values()))"),
        ("P$I['held'] = $X",),
        others=("P$I.move_to_end('other')", "P$I.move_to_end('held')"),
        asks=("list(P$I)",),
    ),
    "default dict": Place(
        "P$I = collections.defaultdict(lambda: 4, held=$X)\n",
        ("P$I['held']", "P$I.get('held')"),
        ("P$I['held'] = $X",),
        others=("P$I.default_factory = lambda: 8", "P$I['other'] = 2"),
        asks=("P$I.get('other')", "dict(P$I).get('other', 1)", "len(P$I)"),
    ),
    "deque": Place(
        "P$I = collections.deque([1, $X])\n",
        ("P$I[-1]", "P$I[1]", "list(P$I)[1]"),
        ("P$I[1] = $X", "P$I.pop()\nP$I.append($X)"),
        others=("P$I[0] = 2", "P$I.appendleft(0)"),
        asks=("len(P$I)", "P$I[0]"),
    ),
    "mapping proxy": Place(
        "Q$I = {'held': $X}\n"
        "P$I = types.MappingProxyType(Q$I)\n",
        ("P$I['held']", "dict(P$I)['held']", "P$I.get('held')"),
        ("Q$I['held'] = $X",),
        others=("Q$I['more'] = 1",),
        asks=("len(P$I)", "'more' in P$I"),
    ),
    "chain of maps": Place(
        "P$I = collections.ChainMap({}, {'held': $X})\n",
        ("P$I['held']", "P$I.get('held')", "dict(P$I)['held']"),
        ("P$I['held'] = $X", "P$I.maps[1]['held'] = $X"),
        others=("P$I.pop('held')",),
        asks=("len(P$I)",),
    ),
    "user dict": Place(
        "P$I = collections.UserDict(held=$X)\n",
        ("P$I['held']", "P$I.data['held']"),
        ("P$I['held'] = $X", "P$I.data = {'held': $X}"),
        others=("P$I['more'] = 1",),
        asks=("len(P$I)", "'more' in P$I"),
    ),
    "python module": Place(
        "P$I = types.ModuleType('p$I')\n"
        "P$I.held = $X\n",
        ("P$I.held", "vars(P$I)['held']", "getattr(P$I, 'held')"),
        ("P$I.held = $X", "P$I.__dict__['held'] = $X"),
        others=("P$I.more = 1",),
        asks=("hasattr(P$I, 'more')",),
    ),
    "thread's own": Place(
        "P$I = threading.local()\n"
        "P$I.held = $X\n",
        ("P$I.held",),
        ("P$I.held = $X",),
        asks=("hasattr(P$I, 'more')",),
    ),
    "context variable": Place(
        "P$I = contextvars.ContextVar('p$I')\n"
        "P$I.set($X)\n",
        ("P$I.get()", "P$I.get(None)"),
        ("P$I.set($X)",),
    ),
    "weak reference": Place(
        "class C$I:\n"
        "    pass\n"
        "Q$I = C$I()\n"
        "Q$I.held = $X\n"
        "P$I = weakref.ref(Q$I)\n",
        ("P$I().held",),
        ("Q$I.held = $X",),
    ),
    "tensor's attribute": Place(
        "P$I = torch.ones(3)\n"
        "P$I.held = $X\n",
        ("P$I.held", "getattr(P$I, 'held')"),
        ("P$I.held = $X",),
        others=("del P$I.held", "P$I.more = 1"),
        asks=("hasattr(P$I, 'more')",),
    ),
    "module's attribute": Place(
        "class C$I(torch.nn.Module):\n"
        "    def forward(self, t):\n"
        "        return t * 2\n"
        "P$I = C$I()\n"
        "P$I.held = $X\n",
        ("P$I.held", "getattr(P$I, 'held')", "vars(P$I).get('held', 1)"),
        ("P$I.held = $X",),
        others=("P$I.eval()", "P$I.train()", "del P$I.held", "P$I.more = 1"),
        asks=("P$I.training", "hasattr(P$I, 'more')", "len(list(P$I.parameters()))", "len(P$I.state_dict())"),
    ),
    "from a function": Place(
        "def d$I():\n"
        "    return $X\n",
        ("d$I()",),
        ("d$I = lambda: $X", "d$I.__code__ = (lambda: $X).__code__"),
        names=("d$I",),
    ),
    "cached function": Place(
        "Q$I = [$X]\n"
        "@functools.lru_cache\n"
        "def d$I(key=0):\n"
        "    return Q$I[0]\n",
        ("d$I()", "d$I(1)"),
        ("Q$I[0] = $X\nd$I.cache_clear()",),
        others=("d$I(1)",),
    ),
    "instance method": Place(
        "class C$I:\n"
        "    def __init__(self):\n"
        "        self.value = $X\n"
        "    def held(self):\n"
        "        return self.value\n"
        "P$I = C$I()\n"
        "M$I = P$I.held\n",
        ("P$I.held()", "M$I()", "C$I.held(P$I)", "operator.methodcaller('held')(P$I)", "getattr(P$I, 'held')()"),
        ("P$I.value = $X", "P$I.held = lambda: $X", "C$I.held = lambda self: $X"),
        others=("P$I.__dict__.pop('held', None)", "M$I = C$I().held"),
        names=("M$I",),
    ),
    "instance made inside": Place(
        "class C$I:\n"
        "    start = $X\n"
        "    def __init__(self):\n"
        "        self.held = self.start\n"
        "    def get(self):\n"
        "        return self.held\n"
        "    @property\n"
        "    def seen(self):\n"
        "        return self.start\n",
        ("C$I().held", "C$I().get()", "C$I().seen", "C$I().start"),
        ("C$I.start = $X",),
        others=(
            "C$I.get = lambda self: 3", "C$I.seen = property(lambda self: 4)",
            "C$I.__init__ = lambda self: setattr(self, 'held', 6)",
            "C$I.__getattribute__ = lambda self, name: 2 if name == 'held' else object.__getattribute__(self, name)",
            "C$I.__new__ = lambda cls: BOX", "C$I.more = 1",
        ),
        asks=("hasattr(C$I(), 'more')", "type(C$I()).__name__"),
    ),
    "generator's": Place(
        "Q$I = [$X]\n"
        "def d$I():\n"
        "    for one in Q$I:\n"
        "        yield one\n",
        ("next(d$I())", "list(d$I())[0]", "[v for v in d$I()][0]"),
        ("Q$I[0] = $X", "Q$I[:] = [$X, 1]"),
        others=("Q$I.append(2)",),
        asks=("len(list(d$I()))", "sum(1 for _ in d$I())"),
    ),
    "not converted": Place(
        "Q$I = {'held': $X}\n"
        "@dy2static.not_to_static\n"
        "def d$I():\n"
        "    return Q$I['held']\n",
        ("d$I()",),
        ("Q$I['held'] = $X",),
        others=("d$I = lambda: 3",),
        names=("d$I",),
    ),
    "not converted method": Place(
        "class C$I:\n"
        "    def __init__(self):\n"
        "        self.value = $X\n"
        "    @dy2static.not_to_static\n"
        "    def held(self):\n"
        "        return self.value\n"
        "P$I = C$I()\n",
        ("P$I.held()",),
        ("P$I.value = $X",),
        others=("C$I.held = lambda self: 5",),
    ),
    "alias": Place(
        "P$I = $X\n"
        "Q$I = [P$I, P$I]\n",
        ("P$I", "Q$I[0]", "Q$I[1]"),
        ("P$I = $X", "Q$I[0] = $X", "Q$I[1] = P$I", "P$I = Q$I[0]"),
        asks=("Q$I[0] is Q$I[1]", "P$I is Q$I[0]"),
        names=("P$I",),
    ),
}  # fmt: skip
