"""What can be done with a list or deque whose length a tensor decides: programs made of one use each.

``programs()`` is a table of makings (grown in a branch, in a loop, a deque, a subclass, held by a tuple, dict or
object) times uses (methods, builtins, functions of the standard library, syntax). ``judge`` holds one against eager.
"""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import same

HEADER = """
import bisect, collections, copy, dataclasses, functools, heapq, itertools, json, math, operator, pickle, random
import statistics, string, textwrap, pprint
from collections import deque
import numpy as np
import torch

class L(list):
    pass

class Box:
    def __init__(self, items):
        self.items = items

class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.items = []

def two(a, b):
    return a, b

def three(a, b, c=None):
    return a, b, c

def every(*args, **kwargs):
    return len(args), list(args), kwargs

"""

_METHODS = r"""
r = xs.append({item}); r = xs[-1], len(xs)
r = xs.extend([{item}, {item}])
r = xs.extend(xs)
r = xs.extend(({item},))
r = xs.extend(v for v in [{item}])
r = xs.insert(0, {item})
r = xs.insert(1, {item}), xs[1]
r = xs.insert(-1, {item})
r = xs.pop()
r = xs.pop(0)
r = xs.remove({item})
r = xs.clear()
r = xs.index({first})
r = xs.count({first})
r = xs.reverse()
r = xs.sort()
r = xs.sort(key=lambda v: -v.sum() if isinstance(v, torch.Tensor) else -v)
r = xs.copy()
r = xs.__len__()
r = xs.__getitem__(0)
r = xs.__contains__({first})
r = xs.__setitem__(0, {item})
r = xs.__delitem__(0)
r = xs.__iadd__([{item}])
r = xs.__imul__(2)
r = xs.__add__([{item}])
r = xs.__mul__(2)
r = xs.__eq__([{first}])
r = xs.__iter__().__next__()
r = xs.__reversed__().__next__()
r = xs.__repr__()
r = xs.__sizeof__() > 0
r = type(xs).append(xs, {item})
r = type(xs).__len__(xs)
"""

_DEQUE = r"""
r = xs.appendleft({item})
r = xs.extendleft([{item}, {first}])
r = xs.popleft()
r = xs.rotate(1)
r = xs.rotate(-2)
r = xs.rotate()
r = xs.maxlen
r = collections.deque(xs, maxlen=1)
r = collections.deque(xs)
"""

_SYNTAX = r"""
a, b = xs; r = a, b
a, b, c = xs; r = a, b, c
(a,) = xs; r = a
[a, b] = xs; r = a, b
a, *b = xs; r = a, b
*a, b = xs; r = a, b
a, *b, c = xs; r = a, b, c
(a, b), c = xs, 1; r = a, b, c
(a, *b), c = xs, 1; r = a, b, c
a, (b, *c) = 1, xs; r = a, b, c
r = two(*xs)
r = three(*xs)
r = three(*xs, c=1)
r = every(*xs)
r = every(1, *xs)
r = every(*xs, *xs)
r = every(*xs, k=xs[0])
r = every(**dict(k=xs))
r = [*xs]
r = [*xs, {item}]
r = [{item}, *xs, *xs]
r = (*xs,)
r = ({item}, *xs)
r = {{*xs}}
r = {{**dict(k=xs)}}
r = {{'k': xs, **{{'m': xs}}}}
r = xs + [{item}]
r = [{item}] + xs
r = xs + xs
r = xs * 2
r = 2 * xs
r = xs * 0
xs += [{item}]; r = len(xs)
xs += ({item},); r = len(xs)
xs += xs; r = len(xs)
xs *= 2; r = len(xs)
xs *= 0; r = len(xs)
r = {first} in xs
r = {first} not in xs
r = xs == [{first}]
r = xs != [{first}]
r = xs == xs
r = xs == list(xs)
r = xs < [{first}]
r = xs >= [{first}]
r = [] < xs
r = xs <= []
r = xs is xs
r = bool(xs)
r = not xs
r = 1 if xs else 0
r = xs and 5
r = [] or xs
r = xs[0]
r = xs[-1]
r = xs[1:]
r = xs[:-1]
r = xs[::-1]
r = xs[-2:]
r = xs[0:2]
r = xs[7]
xs[0] = {item}; r = xs[0]
xs[-1] = {item}; r = xs[-1]
xs[:] = [{item}]; r = len(xs)
xs[0:1] = [{item}, {item}]; r = len(xs)
xs[1:] = []; r = len(xs)
xs[len(xs):] = [{item}]; r = len(xs)
xs[::2] = [{item}]; r = 0
xs[0] += {first}; r = xs[0]
del xs[0]; r = len(xs)
del xs[-1]; r = len(xs)
del xs[1:]; r = len(xs)
del xs[:]; r = len(xs)
r = f'{{xs}}'
r = '%s' % (xs,)
r = '%s' % xs
r = '{{}}'.format(xs)
r = [v for v in xs]
r = [v * 2 for v in xs]
r = [(i, v) for i, v in enumerate(xs)]
r = [v for v in xs if (v.sum() if isinstance(v, torch.Tensor) else v) > 0]
r = {{i: v for i, v in enumerate(xs)}}
r = {{1 for v in xs}}
r = (lambda q: [v for v in q])(xs)
r = (lambda q: [1 for v in q])(xs)
r = (lambda q: len(q))(xs)
r = (lambda q: [*q, 1])(xs)
r = (lambda *q: len(q))(*xs)
r = list(v for v in xs)
r = [w for v in [xs, xs] for w in v]
r = [(q := v) for v in xs]
r = [y for v in (xs,) for y in v]
r = 0\nfor v in xs:\n    r = r + v
r = 0\nfor i, v in enumerate(xs):\n    r = r + v * i
r = 0\nfor v in reversed(xs):\n    r = r * 2 + v
r = 0\nfor a, b in zip(xs, xs[1:]):\n    r = r + a * b
r = 0\nfor v in xs:\n    r = r + 1\n    if r > 1:\n        break
r = 0\nwhile xs:\n    r = r + xs.pop()
r = 0\nwhile len(xs) > 1:\n    r = r + xs.pop()
match xs:\n    case [a]:\n        r = 1\n    case [a, b]:\n        r = a, b\n    case [a, *b]:\n        r = b
match xs:\n    case (a, b, c):\n        r = a + b + c\n    case _:\n        r = 0
def g():\n    yield from xs\nr = list(g())
def g():\n    for v in xs:\n        yield v * 2\nr = list(g())
def g(q=xs):\n    return len(q)\nr = g()
z = enumerate(xs)\nr = []\nfor v in z:\n    r.append(v)\nfor v in z:\n    r.append(v)
z = zip(xs, xs)\nr = list(z), list(z)
z = reversed(xs)\nr = list(z), list(z)
z = map(lambda v: v * 2, xs)\nr = list(z), list(z)
z = iter(xs)\nr = next(z), next(z)
z = iter(xs)\nr = list(z), list(z)
assert xs\nr = 1
assert len(xs) == 2, xs\nr = 1
if len(xs) > 2:\n    raise ValueError(xs)\nr = 1
if len(xs) > 2:\n    raise ValueError(f'{{len(xs)}}')\nr = 1
try:\n    a, b = xs\n    r = 1\nexcept ValueError:\n    r = 2
try:\n    r = xs[2]\nexcept IndexError:\n    r = 2
with torch.no_grad():\n    a, *b = xs\nr = a
d = dict(k=1)\nd['k'], d['m'] = xs\nr = d
d = dict(k=1)\nfor d['k'] in xs:\n    pass\nr = d
ys = xs\nys.append({item})\nr = len(xs), ys is xs
ys = list(xs)\nys.append({item})\nr = len(xs), len(ys)
"""

_BUILTINS = r"""
r = len(xs)
r = list(xs)
r = tuple(xs)
r = set(xs)
r = frozenset(xs)
r = dict(enumerate(xs))
r = dict(zip('ab', xs))
r = dict.fromkeys(xs, 1)
r = dict.fromkeys('ab', xs)
r = sum(xs)
r = sum(xs, {item})
r = min(xs)
r = max(xs)
r = min(xs, key=lambda v: v.sum() if isinstance(v, torch.Tensor) else v)
r = max(xs, default=0)
r = max(*xs)
r = any(v > 0 if isinstance(v, int) else v.sum() > 0 for v in xs)
r = all([v > 0 if isinstance(v, int) else v.sum() > 0 for v in xs])
r = any(xs)
r = all(xs)
r = sorted(xs)
r = sorted(xs, key=lambda v: v.sum() if isinstance(v, torch.Tensor) else v)
r = sorted(xs, reverse=True)
r = list(reversed(xs))
r = list(enumerate(xs))
r = list(enumerate(xs, 1))
r = list(zip(xs, xs))
r = list(zip(xs, [1, 2]))
r = list(zip(*[xs, xs]))
r = list(zip(*xs))
r = list(zip(xs, range(9), strict=True))
r = list(map(lambda v: v * 2, xs))
r = list(map(lambda a, b: a * b, xs, xs))
r = list(filter(None, xs))
r = list(filter(lambda v: (v.sum() if isinstance(v, torch.Tensor) else v) > 1, xs))
r = list(iter(xs))
r = next(iter(xs))
r = next(reversed(xs))
r = next(enumerate(xs))
r = next(zip(xs, xs))
r = next(map(lambda v: v * 2, xs))
r = isinstance(xs, list)
r = isinstance(xs, (tuple, dict))
r = type(xs) is list
r = callable(xs)
r = hasattr(xs, 'append')
r = getattr(xs, 'append')({item})
r = getattr(xs, '__len__')()
r = id(xs) == id(xs)
r = hash(xs)
r = repr(xs)
r = str(xs)
r = str([xs])
r = ascii(xs)
r = format(xs)
r = print(xs)
r = print(*xs)
r = print([xs])
r = print(xs, sep='')
r = slice(xs).stop[0]
r = range(len(xs))[0]
r = list(range(len(xs)))
r = bytes(xs)
r = bytearray(xs)
r = memoryview(xs)
r = int(xs)
r = float(xs)
r = abs(xs)
r = round(xs)
r = divmod(xs, 2)
r = pow(xs, 2)
r = list(xs, )[0]
r = ','.join(xs)
r = ','.join(str(v) for v in xs)
r = ','.join(map(str, xs))
r = dir(xs)[0]
r = (1, 2).__add__(tuple(xs))
r = [1].__add__(xs)
r = [[1], xs].index(xs)
r = [xs, [1]].count(xs)
r = [1, 2].extend(xs)
q = [{item}]; q.extend(xs); r = q
q = [{item}]; q[1:] = xs; r = q
q = [{item}]; q[:] = xs; r = q
q = [{item}]; q[0:0] = xs; r = q
q = [{item}]; q += xs; r = q
q = [{item}]; q = q + xs; r = q
q = [{item}]; q.append(xs); r = len(q)
q = [{item}]; q.append(xs); r = len(q[1])
q = [{item}]; q.insert(0, xs); r = len(q[0])
q = deque([{item}]); q.extend(xs); r = q
q = deque(xs); r = q
q = deque(xs, 2); r = q
q = deque(xs); q.appendleft({item}); r = q
q = L(xs); r = len(q)
q = L(xs); q.append({item}); r = len(q)
q = set(); q.update(xs); r = len(q)
q = {{}}; q.update(enumerate(xs)); r = q
q = {{}}; q.update(zip('ab', xs)); r = q
q = {{'a': xs}}; r = len(q.get('a', []))
q = {{'a': xs}}; r = len(q.pop('a'))
q = {{'a': xs}}; r = [len(v) for v in q.values()]
q = {{'a': xs}}; r = [(k, len(v)) for k, v in q.items()]
q = {{}}; r = q.setdefault('a', xs)
q = {{}}; r = len(q.setdefault('a', xs))
q = (xs, 1); r = len(q[0]), q.index(1)
q = (xs, 1); r = q.count(1)
q = (1, xs); a, b = q; r = len(b)
q = dict(a=xs); r = q
q = dict([('a', xs)]); r = q
"""

_LIBRARY = r"""
r = list(itertools.accumulate(xs))
r = list(itertools.chain(xs, xs))
r = list(itertools.chain.from_iterable([xs, xs]))
r = list(itertools.islice(xs, 1))
r = list(itertools.islice(xs, 1, None))
r = list(itertools.islice(itertools.cycle(xs), 5))
r = list(itertools.combinations(xs, 2))
r = list(itertools.permutations(xs, 2))
r = list(itertools.product(xs, xs))
r = list(itertools.product(xs, repeat=2))
r = list(itertools.combinations_with_replacement(xs, 2))
r = list(itertools.compress(xs, [1, 0, 1]))
r = list(itertools.compress('abc', xs))
r = list(itertools.dropwhile(lambda v: False, xs))
r = list(itertools.takewhile(lambda v: True, xs))
r = list(itertools.filterfalse(None, xs))
r = list(itertools.groupby(xs))
r = list(itertools.pairwise(xs))
r = list(itertools.starmap(lambda a, b: a, zip(xs, xs)))
r = list(itertools.starmap(lambda a, b: a, [xs]))
r = [list(v) for v in itertools.tee(xs)]
r = list(itertools.zip_longest(xs, [1]))
r = list(zip(itertools.repeat(xs, 2)))
r = operator.itemgetter(0)(xs)
r = operator.itemgetter(-1)(xs)
r = operator.itemgetter(0, 1)(xs)
r = operator.getitem(xs, 0)
r = operator.setitem(xs, 0, {item})
r = operator.delitem(xs, 0)
r = operator.length_hint(xs)
r = operator.contains(xs, {first})
r = operator.countOf(xs, {first})
r = operator.indexOf(xs, {first})
r = operator.add(xs, [{item}])
r = operator.concat(xs, [{item}])
r = operator.iadd(xs, [{item}])
r = operator.iconcat(xs, [{item}])
r = operator.mul(xs, 2)
r = operator.imul(xs, 2)
r = operator.eq(xs, [{first}])
r = operator.ne(xs, [])
r = operator.lt([], xs)
r = operator.not_(xs)
r = operator.truth(xs)
r = operator.is_(xs, xs)
r = operator.methodcaller('pop')(xs)
r = operator.attrgetter('__len__')(xs)()
r = functools.reduce(lambda a, b: a + b, xs)
r = functools.reduce(operator.add, xs)
r = functools.reduce(lambda a, b: a + b, xs, {item})
r = functools.partial(len, xs)()
r = functools.partial(every)(*xs)
r = functools.partial(every, *xs)()
r = heapq.heappush(xs, {item})
r = heapq.heappop(xs)
r = heapq.heapify(xs)
r = heapq.nlargest(1, xs)
r = heapq.nsmallest(1, xs)
r = heapq.heappushpop(xs, {item})
r = heapq.heapreplace(xs, {item})
r = list(heapq.merge(xs, xs))
r = bisect.bisect(xs, {first})
r = bisect.bisect_left(xs, {first})
r = bisect.insort(xs, {first})
r = copy.copy(xs)
r = copy.deepcopy(xs)
r = copy.copy([xs])
r = copy.deepcopy([xs])
r = copy.deepcopy(Box(xs)).items
r = copy.copy(Box(xs)).items
r = json.dumps(xs)
r = json.dumps(dict(k=[xs]))
r = len(pickle.dumps(xs)) > 0
r = pprint.pformat(xs)
r = textwrap.wrap(str(len(xs)))
r = math.prod(xs)
r = math.fsum(xs)
r = math.dist(xs, xs)
r = math.hypot(*xs)
r = math.gcd(*xs)
r = statistics.mean(xs)
r = statistics.median(xs)
r = random.choice(xs)
r = random.shuffle(xs)
r = random.sample(xs, 1)
r = random.choices(xs)
r = collections.Counter(xs)
r = collections.Counter(enumerate(xs))
r = collections.OrderedDict(enumerate(xs))
r = collections.defaultdict(list, enumerate(xs))
r = collections.UserList(xs)
r = collections.ChainMap(dict(k=xs))['k']
r = tuple(collections.namedtuple('P', 'a b')(*xs))
r = tuple(collections.namedtuple('P', 'a b')._make(xs))
r = collections.namedtuple('P', 'a')(xs).a
r = string.Template('$a').substitute(a=xs)
r = np.array(xs)
r = np.asarray(xs)
r = np.stack(xs)
r = np.sum(xs)
r = np.add(xs, 1)
r = np.mean(xs)
r = torch.stack(xs)
r = torch.stack(xs, 1)
r = torch.stack(tuple(xs))
r = torch.cat(xs)
r = torch.cat([*xs, x])
r = torch.stack(list(xs)).sum()
r = torch.stack([v * 2 for v in xs])
r = torch.vstack(xs)
r = torch.hstack(xs)
r = torch.tensor(xs)
r = torch.as_tensor(xs)
r = torch.tensor([xs, xs])
r = torch.zeros(xs)
r = torch.zeros(*xs)
r = torch.block_diag(*xs)
r = torch.einsum('i,i->i', xs)
r = torch.einsum('i,i->i', *xs)
r = torch.broadcast_tensors(*xs)
r = torch.meshgrid(xs)
r = torch.meshgrid(*xs)
r = torch.Size(xs)
r = x.new_tensor(xs)
r = x[xs]
r = x[[0], ][0] if len(xs) else 0
r = x.view(xs)
r = torch.nn.utils.rnn.pad_sequence(xs)
r = torch.utils._pytree.tree_leaves(xs)
r = torch.utils._pytree.tree_map(lambda v: v, xs)
r = torch.nn.ParameterList(xs)
r = torch.save(xs, '/dev/null')
r = torch.equal(xs[0], xs[-1]) if isinstance(xs[0], torch.Tensor) else 0
r = torch._foreach_add(xs, 1)
r = torch.is_tensor(xs)
r = dataclasses.is_dataclass(xs)
r = Box(xs).items[0]
r = vars(Box(xs))['items'][0]
r = [*Box(xs).items]
r = sum(map(len, [xs, xs]))
r = list(map(len, [xs, xs]))
r = list(map(list, [xs, xs]))
r = max([xs, xs], key=len)
r = sorted([xs, [1]], key=len)
r = sorted([xs, [{first}]])
r = max(xs, [{first}])
"""

USES = {"method": _METHODS, "deque": _DEQUE, "syntax": _SYNTAX, "builtin": _BUILTINS, "library": _LIBRARY}
"""By group: a use a line; ``{item}`` and ``{first}`` stand for an item of the list's kind, and its first one."""

KINDS = {
    "tensors": ("[x, y]", "x * 2", "y * 3", "x"),
    "ints": ("[3, 1]", "2", "5", "3"),
    "pairs": ("[(x, 1), (y, 2)]", "(x * 2, 3)", "(y, 4)", "(x, 1)"),
}
"""By kind of item: what the list starts with, what it grows by, an item, its first item."""

_BRANCH = "if x.sum() > 0:\n    {name}.append({more})"
_LOOP = "t = x.sum()\nwhile t > 0:\n    {name}.append({more})\n    t = t - 4"

MAKINGS = {
    "branch": "xs = {start}\n" + _BRANCH.format(name="xs", more="{more}"),
    "loop": "xs = {start}\n" + _LOOP.format(name="xs", more="{more}"),
    "deque": "xs = deque({start})\n" + _BRANCH.format(name="xs", more="{more}"),
    "deque_loop": "xs = deque({start})\n" + _LOOP.format(name="xs", more="{more}"),
    "maxlen": "xs = deque({start}, maxlen=3)\n" + _LOOP.format(name="xs", more="{more}"),
    "subclass": "xs = L({start})\n" + _BRANCH.format(name="xs", more="{more}"),
    "tuple": "held = ({start}, 1)\n" + _BRANCH.format(name="held[0]", more="{more}") + "\nxs = held[0]",
    "dict": "held = {{'k': {start}}}\n" + _LOOP.format(name="held['k']", more="{more}") + "\nxs = held['k']",
    "attribute": "held = Box({start})\n" + _BRANCH.format(name="held.items", more="{more}") + "\nxs = held.items",
    "argument": _BRANCH.format(name="given", more="{more}") + "\nxs = given",
    "older_deque": "xs = given_deque\n" + _BRANCH.format(name="xs", more="{more}"),
}
"""How the list comes to have a length that a tensor decides."""


def uses(group: str) -> list[str]:
    """The uses of a group."""
    return [line.replace("\\n", "\n") for line in USES[group].strip().split("\n")]


def program(making: str, kind: str, use: str) -> str:
    """The source of a program."""
    start, more, item, first = KINDS[kind]
    lines = MAKINGS[making].format(start=start, more=more).split("\n")
    lines += use.format(item=item, first=first).split("\n")
    body = "\n".join("    " + line for line in [*lines, "return r, xs"])
    return f"def f(x, y, given, given_deque):\n{body}\n"


def programs(makings: list[str], kinds: list[str], groups: list[str]) -> Iterator[tuple[str, str, str, str]]:
    """Making, kind of item, use and source of every program of a part of the table."""
    for making, kind, group in itertools.product(makings, kinds, groups):
        for use in uses(group):
            yield making, kind, use, program(making, kind, use)


def judge(f: Any, kind: str) -> tuple[str, str]:
    """What comes of a program: equal, refused with a code, different or internal, and a word on it."""
    static = dy2static.to_static(f)
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([-3.0, 1.0])):
        y = torch.tensor([0.5, 4.0])
        expected, mine = _outcome(f, x, y, kind), _outcome(static, x, y, kind)
        if isinstance(mine, Dy2StaticError):
            internal = mine.code in ("D2S200", "D2S290", "D2S291")
            return ("internal" if internal else "refused"), f"{mine.code} {mine.summary}"
        if isinstance(expected, Exception) or isinstance(mine, Exception):
            if type(expected) is not type(mine) or _words(expected) != _words(mine):
                return "different", f"eager {expected!r:.150}, converted {mine!r:.150}"
            continue
        try:
            same(mine, expected)
        except AssertionError as error:
            return "different", str(error)[:200]
    return "equal", ""


def _words(error: Exception) -> str:
    return str(error).split("\n")[0]


def _outcome(f: Any, x: torch.Tensor, y: torch.Tensor, kind: str) -> Any:
    start = eval(KINDS[kind][0], {"x": x, "y": y})
    try:
        torch.manual_seed(0)
        random.seed(0)
        return f(x.clone(), y.clone(), list(start), collections.deque(start))
    except Exception as error:  # what eager raises is what is compared
        return error


def load(sources: list[str], folder: Path) -> list[Any]:
    """The functions of many programs, from one real file."""
    path = folder / "grown_programs.py"
    named = [source.replace("def f(", f"def f{number}(", 1) for number, source in enumerate(sources)]
    path.write_text(HEADER + "\n".join(named))
    module = module_of(path)
    return [getattr(module, f"f{number}") for number in range(len(sources))]
