"""What is among the arguments may be changed between two calls: objects, containers and buffers of every kind."""

from __future__ import annotations

import argparse
import array
import collections
import dataclasses
import enum
import functools
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import difference


class Plain:
    factor = 2

    def __init__(self) -> None:
        self.n: Any = 1
        self.items = [1, 2]
        self.t = torch.ones(2)

    def m(self, x: torch.Tensor) -> Any:
        return x * self.n


class Other(Plain):
    factor = 5

    def m(self, x: torch.Tensor) -> Any:
        return x * self.n * 100


@dataclasses.dataclass
class Record:
    n: int = 1
    items: list[int] = dataclasses.field(default_factory=lambda: [1, 2])


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int = 1
    items: tuple[int, ...] = (1, 2)


class Slotted:
    __slots__ = ("items", "n")

    def __init__(self) -> None:
        self.n, self.items = 1, [1, 2]


class Dicts(dict[str, int]):
    pass


class Lists(list[int]):
    pass


BACK = {"a": 1, "b": 2}
KINDS: dict[str, tuple[Callable[[], Any], list[str], list[str]]] = {
    'obj': (
        Plain,
        ['a.n', 'a.m(x)', 'a.factor', 'type(a).__name__', 'len(a.items)', 'a.items[0]', "getattr(a, 'z', 7)",
         "hasattr(a, 'z')", 'sorted(vars(a))', 'a.t.sum()', 'isinstance(a, Other)', "'z' in dir(a)",
         'sum(a.items)'],
        ['a.n = 2', 'a.n = 2.0', 'a.n = True', 'a.items.append(3)', 'a.items[0] = 9', 'a.items = [5]',
         'a.z = 3', 'a.__class__ = Other', 'a.t = torch.ones(3)', 'a.t = torch.zeros(2)',
         'a.t = torch.nn.Parameter(torch.ones(2))', 'del a.z', 'Plain.factor = 9', 'a.m = lambda x: x + 50'],
    ),
    'dc': (
        Record,
        ['a.n', 'len(a.items)', 'a == type(a)()', 'repr(a)', 'dataclasses.asdict(a)',
         'dataclasses.replace(a, n=4).n', 'a.items[-1]'],
        ['a.n = 2', 'a.items.append(3)', 'a.items[0] = 9', 'a.n = 1.0', 'a.items = []'],
    ),
    'fz': (
        Frozen,
        ['a.n', 'a.items[0]', 'hash(a) == hash(a)', 'a == Frozen()'],
        ["object.__setattr__(a, 'n', 2)", "object.__setattr__(a, 'items', (5,))"],
    ),
    'slots': (
        Slotted,
        ['a.n', 'len(a.items)', 'a.items[0]', "hasattr(a, 'n')"],
        ['a.n = 2', 'a.items.append(1)', 'a.items = [8]', 'del a.n'],
    ),
    'od': (
        lambda: collections.OrderedDict(a=1, b=2),
        ['list(a)', 'list(a.values())[-1]', 'next(iter(a))', "a['a']", "a.get('z', 4)", 'len(a)',
         'list(a.items())', 'next(reversed(a))', '{**a}'],
        ["a.move_to_end('a')", "a['a'] = 5", "a['z'] = 1", "a.pop('b')", "a['a'] = 5.0", "a['a'] = True"],
    ),
    'dict': (
        lambda: {"a": 1, "b": 2},
        ['list(a)', 'list(a.values())[-1]', "a['a']", "a.get('z', 4)", 'len(a)', 'list(a.items())', '{**a}',
         'max(a.values())', 'kw(**a)'],
        ["a['a'] = 5", "a['z'] = 1", "a.pop('b')", "a['a'] = 5.0", "b = a.pop('a'); a['a'] = b",
         "a['a'] = True", "a['a'] = 1"],
    ),
    'dd': (
        lambda: collections.defaultdict(int, a=1),
        ["a['a']", "a['q']", 'len(a)', 'list(a)'],
        ["a['a'] = 3", "a['w'] = 2", 'a.default_factory = lambda: 9'],
    ),
    'list': (
        lambda: [1, 2, 3],
        ['a[0]', 'sum(a)', 'len(a)', 'a[-1]', '[v * 2 for v in a]', '2 in a', 'a == [1, 2, 3]', 'sorted(a)',
         'a[1:]', 'tuple(a)', 'fun(*a)'],
        ['a[0] = 9', 'a.append(4)', 'a.reverse()', 'a[0] = 9.0', 'a[0] = True', 'a.clear()'],
    ),
    'tupobj': (
        lambda: (Plain(), 1),
        ['a[0].n', 'a[1]', 'len(a[0].items)'],
        ['a[0].n = 5', 'a[0].items.append(3)', 'a[0].__class__ = Other'],
    ),
    'deque': (
        lambda: collections.deque([1, 2], 3),
        ['a[0]', 'len(a)', 'a.maxlen', 'list(a)', 'sum(a)'],
        ['a.append(5)', 'a.rotate(1)', 'a.popleft()'],
    ),
    'set': (
        lambda: {1, 2},
        ['1 in a', 'len(a)', 'sorted(a)', '5 in a', 'sum(a)'],
        ['a.add(5)', 'a.discard(1)'],
    ),
    'np': (
        lambda: np.array([1., 2.]),
        ['a[0]', 'a.sum()', 'torch.as_tensor(a).sum()', 'a.shape[0]', 'a.dtype.name', 'a.flags.writeable',
         'float(a.max())'],
        ['a[0] = 5', 'a *= 2', 'a.flags.writeable = False'],
    ),
    'ns': (
        lambda: argparse.Namespace(n=1, items=[1]),
        ['a.n', 'len(a.items)', "vars(a)['n']", "getattr(a, 'z', 6)", "'z' in a"],
        ['a.n = 3', 'a.items.append(2)', 'a.z = 1'],
    ),
    'myd': (
        lambda: Dicts(a=1),
        ["a['a']", 'len(a)', "getattr(a, 'q', 3)"],
        ["a['a'] = 4", 'a.q = 8', "a['n'] = 2"],
    ),
    'myl': (
        lambda: Lists([1, 2]),
        ['a[0]', 'len(a)', "getattr(a, 'q', 3)", 'sum(a)'],
        ['a[0] = 4', 'a.q = 8', 'a.append(2)'],
    ),
    'partial': (
        lambda: functools.partial(lambda k, x: x * k, 2),
        ['a(x)', 'a.args[0]', 'len(a.keywords)'],
        ['a.__setstate__((a.func, (5,), {}, {}))'],
    ),
    'func': (
        lambda: (lambda x, k=2: x * k),
        ['a(x)', 'a.__defaults__[0]', "getattr(a, 'q', 1)"],
        ['a.__defaults__ = (7,)', 'a.q = 5', 'a.__code__ = (lambda x, k=2: x + k).__code__'],
    ),
    'ba': (
        lambda: bytearray(b"ab"),
        ['a[0]', 'len(a)', 'sum(a)', 'bytes(a)'],
        ['a[0] = 9', 'a.append(3)'],
    ),
    'arr': (
        lambda: array.array("i", [1, 2]),
        ['a[0]', 'len(a)', 'sum(a)', 'list(a)'],
        ['a[0] = 9', 'a.append(3)'],
    ),
    'mv': (
        lambda: memoryview(bytearray(b"ab")),
        ['a[0]', 'len(a)', 'sum(a)', 'bytes(a)'],
        ['a[0] = 9'],
    ),
    'keys': (
        lambda: {"a": 1, "b": 2}.keys(),
        ['list(a)', 'len(a)', "'a' in a"],
        ['a.mapping'],
    ),
    'mp': (
        lambda: types.MappingProxyType(BACK),
        ['list(a)', "a['a']", 'len(a)'],
        ["BACK['a'] = 5", "BACK['q'] = 3"],
    ),
    'vals': (
        lambda: BACK.values(),
        ['list(a)', 'sum(a)'],
        ["BACK['a'] = 8", "BACK['w'] = 3"],
    ),
    'ul': (
        lambda: collections.UserList([1, 2]),
        ['list(a)', 'a[0]', 'len(a)', 'sum(a)'],
        ['a.append(3)', 'a.data[0] = 7', 'a.data = [5]'],
    ),
    'ud': (
        lambda: collections.UserDict(a=1),
        ['list(a)', "a['a']", 'len(a)', '{**a}'],
        ["a['q'] = 3", "a.data['a'] = 7"],
    ),
    'cm': (
        lambda: collections.ChainMap({"a": 1}, {"b": 2}),
        ['list(a)', "a['a']", 'len(a)'],
        ["a['q'] = 3", 'a.maps.reverse()', "a.maps[0]['a'] = 5"],
    ),
    'ctr': (
        lambda: collections.Counter("aab"),
        ["a['a']", 'a.most_common(1)', 'len(a)'],
        ["a['b'] += 5", "a.update('zz')"],
    ),
    'dqt': (
        lambda: collections.deque([torch.ones(2)]),
        ['a[0].sum()', 'len(a)', 'torch.stack(list(a)).sum()'],
        ['a.append(torch.zeros(2))', 'a[0] = torch.ones(2) * 5', 'a.rotate(1)', 'a[0].mul_(3)'],
    ),
    'lt': (
        lambda: [torch.ones(2)],
        ['a[0].sum()', 'len(a)', 'torch.stack(a).sum()'],
        ['a.append(torch.zeros(2))', 'a[0] = torch.ones(2) * 5', 'a.reverse()', 'a[0].mul_(3)'],
    ),
    'ldq': (
        lambda: [collections.deque([1, 2]), {"k": collections.deque([3])}],
        ['a[0][0]', 'len(a[0])', "sum(a[1]['k'])"],
        ['a[0].append(3)', 'a[0][0] = 5', "a[1]['k'].append(2)"],
    ),
    'objdq': (
        lambda: types.SimpleNamespace(d=collections.deque([1]), b=bytearray(b"a"), s={1}),
        ['a.d[0]', 'len(a.d)', 'a.b[0]', 'sum(a.s)'],
        ['a.d.append(3)', 'a.d[0] = 5', 'a.b[0] = 4', 'a.s.add(9)'],
    ),
    'enum': (
        lambda: enum.Enum("E", "A B").A,
        ['a.name', 'a.value', "getattr(a, 'q', 2)"],
        ['a._value_ = 9', 'a.q = 3'],
    ),
    'mod': (
        lambda: torch.nn.Linear(2, 2),
        ['a(x).shape[0]', 'a.training', 'a.weight.sum()', 'a.in_features', 'len(list(a.parameters()))',
         'type(a).__name__', "getattr(a, 'q', 2)", 'a.bias is None', 'len(a._forward_hooks)', 'a(x).sum()'],
        ['a.eval()', 'a.in_features = 5', 'a.bias = None', 'a.weight = torch.nn.Parameter(torch.ones(2, 2))',
         'a.q = 3', 'a.register_forward_hook(lambda m, i, o: o * 3)', "a.register_buffer('bb', torch.ones(1))",
         'a.double()', 'a.float()'],
    ),
}  # fmt: skip
"""How to make one, what is asked of it (``a``), and how it is changed."""
HEAD = """
import collections
import dataclasses
import torch

def kw(**k):
    return k

def fun(*a):
    return a
"""


def _outcome(function: Any, given: Any) -> Any:
    dtype = given.weight.dtype if isinstance(given, torch.nn.Linear) else torch.float32
    try:
        return function(torch.ones(2, dtype=dtype), given)
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        return type(error).__name__, str(error).split("\n")[0]


@pytest.mark.filterwarnings("ignore:.*has been traced 3 times again.*", "ignore:.*NumPy array is not writable.*")
@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_seen(tmp_path: Path, kind: str) -> None:
    make, reads, changes = KINDS[kind]
    text = "".join(f"\ndef function{number}(x, a):\n    q = x * 2 if x.sum() > 0 else x\n    return q, {read}\n"
                   for number, read in enumerate(reads))  # fmt: skip
    (tmp_path / "changed_arguments.py").write_text(HEAD + text)
    module = module_of(tmp_path / "changed_arguments.py")
    module.Other, module.Frozen = Other, Frozen
    for number, read in enumerate(reads):
        function = getattr(module, f"function{number}")
        converted: Any = to_static(function)
        torch.manual_seed(0)
        given, before = make(), Plain.factor
        for change in ("pass", *changes):
            space = {**globals(), "a": given}
            try:
                exec(change, space)
            except (AttributeError, ValueError, TypeError, LookupError):
                continue
            given = space["a"]
            for _ in range(2):
                found = difference(_outcome(converted, given), _outcome(function, given))
                assert not found, (read, change, found)
        Plain.factor = before
        BACK.clear()
        BACK.update(a=1, b=2)
