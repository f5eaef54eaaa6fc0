"""Special methods of users' classes whose answer a tensor decides, called by syntax, builtins and libraries.

Each gives what eager gives, or is refused where code that is not converted calls the method.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import InternalError, TraceError
from tests.from_files import module_of
from tests.oracle import difference

METHODS: dict[str, tuple[str, str, list[str]]] = {
    "__len__": ("2", "0", ["len(O)", "bool(O)", "x * len(O)", "1 if O else 2", "not O", "O and 3", "O or 4",
        "operator.length_hint(O)", "operator.truth(O)"]),
    "__bool__": ("True", "False", ["bool(O)", "1 if O else 2", "not O", "O and 3", "O or 4", "[1, 2][not O]",
        "all([O, 1])", "any([O, 0])", "operator.not_(O)", "list(filter(None, [O, 1]))[-1]",
        "[v for v in (1, 2) if O]", "sum(1 for v in (1, 2) if O)", "next((v for v in (1, 2) if O), 5)",
        "max([0, 1], key=lambda v: v if O else -v)"]),
    "__contains__": ("True", "False", ["3 in O", "3 not in O", "operator.contains(O, 3)", "1 if 3 in O else 2"]),
    '__getitem__': ('7', '8', ['O[0]', "O['a']", 'O[1:2]', 'operator.itemgetter(0)(O)', 'operator.getitem(O, 1)',
        'O[0, 1]', "'{0[a]}'.format(O)", 'O[x]']),
    "__call__": ("7", "8.5", ["O()", "O(1)", "list(map(O, [1, 2]))", "max([1, 2], key=O)", "sorted([2, 1], key=O)",
        "functools.partial(O, 1)()", "functools.reduce(O, [1, 2])", "callable(O)", "[1, 2].sort(key=O)",
        "operator.call(O, 1)", "list(filter(O, [1, 2]))"]),
    '__iter__': ('iter([1, 2])', 'iter([3])', ['list(O)', '[v for v in O]', 'sum(O)', 'tuple(O)', '[*O]',
        'fun(*O)', 'set(O)', 'max(O)', 'sorted(O)', '3 in O', 'list(zip(O, O))', 'list(enumerate(O))',
        "','.join(map(str, O))", 'dict.fromkeys(O)', 'list(itertools.chain(O, O))', 'collections.Counter(O)',
        'list(map(str, O))', 'any(v > 2 for v in O)', 'first(O)', 'collections.deque(O)', 'sum(v * x for v in O)',
        'math.prod(O)', 'functools.reduce(operator.add, O)', 'list(itertools.accumulate(O))', '[0, *O, 9]',
        'frozenset(O)', 'ext(O)', 'min(O)', 'all(O)', 'heapq.nlargest(1, O)', 'statistics.mean(O)',
        'torch.tensor(list(O)).sum()', 'bytes(O)', 'list(reversed(list(O)))']),
    "__next__": ("4", "5", ["next(O)", "next(O, 1)"]),
    '__index__': ('1', '2', ['[7, 8, 9][O]', 'range(O)', 'operator.index(O)', 'bin(O)', 'int(O)', 'x[O]',
        "'abc'[O]", '[1, 2, 3][:O]', 'list(range(O))', 'x.sum(dim=0) * operator.index(O)', 'hex(O)', '[0] * O',
        'round(1.234, O)', 'torch.zeros(O)', 'x.repeat(O)', 'float(O)', 'math.factorial(O)', 'chr(O)', 'bytes(O)',
        'divmod(7, operator.index(O))', 'list(itertools.islice([1, 2, 3], O))']),
    "__int__": ("3", "4", ["int(O)", "x * int(O)"]),
    '__float__': ('3.5', '4.5', ['float(O)', 'math.sqrt(O)', 'x * float(O)', 'math.floor(O)', 'complex(O)',
        "'%f' % O", 'math.isnan(O)', 'torch.tensor(float(O))']),
    "__complex__": ("1j", "2j", ["complex(O)"]),
    '__str__': ("'a'", "'bb'", ['str(O)', "f'{O}'", "'%s' % O", "'{}'.format(O)", 'len(str(O))', "f'{O!s:>4}'",
        "''.join([str(O)])", "'{:>5}'.format(str(O))"]),
    '__repr__': ("'a'", "'bb'", ['repr(O)', 'str(O)', "f'{O}'", "f'{O!r}'", "'%r' % O", 'str([O])',
        "'{!r}'.format(O)", 'ascii(O)', 'repr({1: O})']),
    '__format__': ("'a'", "'bb'", ['format(O)', "format(O, 'x')", "f'{O}'", "f'{O:x}'", "'{:x}'.format(O)"]),
    "__hash__": ("1", "2", ["hash(O)", "hash((O, 1)) == hash((O, 1))", "{O: 1}[O]", "O in {O}"]),
    '__eq__': ('True', 'False', ['O == 1', 'O != 1', '1 == O', 'O in [O2]', '[O2, 3].index(O)', '[O2].count(O)',
        '(O, 1) == (O2, 1)', '[O] == [O2]', 'operator.eq(O, 3)', 'O2 in (1, O)', "{'a': O} == {'a': O2}", 'mtch(O)']),
    "__ne__": ("True", "False", ["O != 1", "operator.ne(O, 1)"]),
    "__lt__": ("True", "False", ["O < 1", "1 > O", "sorted([O, O2])[0] is O", "min(O, O2) is O",
        "(O, 1) < (O2, 1)", "max([O2, O]) is O", "operator.lt(O, 2)", "[O] < [O2]"]),
    "__gt__": ("True", "False", ["O > 1", "1 < O", "max(O, O2) is O", "(O2, 1) < (O, 1)"]),
    "__le__": ("True", "False", ["O <= 1", "1 >= O"]),
    "__ge__": ("True", "False", ["O >= 1", "1 <= O"]),
    "__add__": ("7", "8.5", ["O + 1", "O + x", "sum([O, 1], O)", "operator.add(O, 1)",
        "functools.reduce(operator.add, [O, 1])", "aug(O, 1)"]),
    '__radd__': ('7', '8.5', ['1 + O', 'sum([O])', 'x + O', '[1] + O', "'a' + O", 'sum([O], start=0)']),
    "__iadd__": ("7", "self", ["aug(O, 1)", "operator.iadd(O, 1)"]),
    "__sub__": ("7", "8.5", ["O - 1", "O - x"]),
    "__rsub__": ("7", "8.5", ["1 - O", "x - O"]),
    "__mul__": ("7", "8.5", ["O * 2", "O * x", "math.prod([O, 2], start=O)"]),
    "__rmul__": ("7", "8.5", ["2 * O", "x * O", "[1] * O", "math.prod([O])"]),
    "__matmul__": ("7", "8.5", ["O @ 2", "O @ x"]),
    "__rmatmul__": ("7", "8.5", ["2 @ O", "x @ O"]),
    "__truediv__": ("7", "8.5", ["O / 2"]),
    "__floordiv__": ("7", "8.5", ["O // 2"]),
    "__mod__": ("7", "8.5", ["O % 2", "divmod(7, 2)"]),
    "__divmod__": ("(1, 2)", "(3, 4)", ["divmod(O, 2)"]),
    "__rdivmod__": ("(1, 2)", "(3, 4)", ["divmod(2, O)"]),
    "__pow__": ("7", "8.5", ["O ** 2", "pow(O, 2)", "pow(O, 2, 3)"]),
    "__rpow__": ("7", "8.5", ["2 ** O", "x ** O"]),
    "__lshift__": ("7", "8", ["O << 2"]),
    "__and__": ("7", "8", ["O & 2"]),
    "__or__": ("7", "8", ["O | 2"]),
    "__xor__": ("7", "8", ["O ^ 2"]),
    "__ror__": ("7", "8", ["2 | O"]),
    "__neg__": ("7", "8.5", ["-O", "operator.neg(O)"]),
    "__pos__": ("7", "8.5", ["+O"]),
    "__invert__": ("7", "8", ["~O"]),
    "__abs__": ("7", "8.5", ["abs(O)", "operator.abs(O)"]),
    "__round__": ("7", "8.5", ["round(O)", "round(O, 2)"]),
    "__trunc__": ("7", "8", ["math.trunc(O)"]),
    "__floor__": ("7", "8", ["math.floor(O)"]),
    "__ceil__": ("7", "8", ["math.ceil(O)"]),
    "__reversed__": ("iter([1, 2])", "iter([3])", ["list(reversed(O))", "[v for v in reversed(O)]"]),
    "__length_hint__": ("3", "4", ["operator.length_hint(O)"]),
    '__getattr__': ('7', '8.5', ['O.zz', "getattr(O, 'zz')", "getattr(O, 'zz', 3)", "hasattr(O, 'zz')",
        "operator.attrgetter('zz')(O)", "'{0.zz}'.format(O)", "f'{O.zz}'"]),
    "__enter__": ("7", "8.5", ["wth(O)"]),
    '__missing__': ('7', '8.5', ["DD['q']", "operator.getitem(DD, 'q')", "DD.get('q', 1)", "'{q}'.format_map(DD)"]),
    "__copy__": ("7", "8.5", ["copy.copy(O)"]),
    "__deepcopy__": ("7", "8.5", ["copy.deepcopy(O)", "copy.deepcopy([O])"]),
    '__dir__': ("['a']", "['b', 'c']", ['dir(O)']),
    "__sizeof__": ("7", "8", ["O.__sizeof__()"]),
    '__bytes__': ("b'a'", "b'bc'", ['bytes(O)']),
    '__fspath__': ("'a'", "'b'", ['os.fspath(O)', "os.path.join('q', O)"]),
    "__instancecheck__": ("True", "False", ["isinstance(3, KK)", "isinstance(3, (str, KK))"]),
    "__subclasscheck__": ("True", "False", ["issubclass(int, KK)"]),
    "__array__": ("np.ones(2)", "np.zeros(2)", ["np.asarray(O)", "torch.as_tensor(np.asarray(O))"]),
    "__torch_function__": ("7", "8", ["torch.add(O, x)"]),
}  # fmt: skip
"""What it gives on one path and on the other, and what calls it: of ``O``, ``O2``, a dict ``DD``, a class ``KK``."""
HEAD = """
import torch, operator, functools, itertools, collections, math, heapq, statistics, copy, os
import numpy as np
def fun(*a): return len(a), a
def first(o):
    a, *b = o
    return a, b
def ext(o):
    l = [0]
    l.extend(o)
    return l
def aug(o, v):
    o += v
    return o
def mtch(o):
    match o:
        case 1: return 'one'
        case _: return 'no'
def wth(o):
    with o as v:
        return v
"""
PLAIN = (int, float, str, bytes, list, tuple, set, frozenset, dict, torch.Tensor, complex, range, np.ndarray,
         type(None))  # fmt: skip


def _program(name: str) -> str:
    first, second, expressions = METHODS[name]
    held = "HELD[0]" if name in ("__instancecheck__", "__subclasscheck__") else "self.__dict__['t']"
    method = f"    def {name}(self, *a, **k):\n        if {held}.sum() > 0:\n            return {first}\n"
    method += f"        return {second}\n"
    made = "    def __init__(self, t):\n        self.t = t\n"
    if held == "HELD[0]":
        text = f"HELD = [None]\nclass Meta(type):\n{method}class Owner(metaclass=Meta):\n"
        text += "    def __init__(self, t):\n        HELD[0] = t\n"
    elif name == "__missing__":
        text = f"class Owner(dict):\n{made}{method}"
    else:
        extra = {"__enter__": "    def __exit__(self, *e):\n        return None\n",
                 "__eq__": "    __hash__ = object.__hash__\n"}  # fmt: skip
        text = f"class Owner:\n{made}{extra.get(name, '')}{method}"
    for number, expression in enumerate(expressions):
        start = "    O, O2 = Owner(x), Owner(x)\n    DD, KK = O, Owner\n"
        text += f"def given{number}(x):\n{start}    return x * 2, shown({expression})\n"
        text += f"def on_a_path{number}(x):\n{start}    r = x\n    if x.sum() > 1:\n        q = {expression}\n"
        text += "        r = x * 3\n    return r\n"
    return HEAD + text


def shown(value: Any) -> Any:
    return value if isinstance(value, PLAIN) else type(value).__name__


def _outcome(function: Any, x: torch.Tensor) -> Any:
    try:
        return function(x)
    except (TraceError, InternalError):
        raise
    except Exception as error:
        return type(error).__name__, re.sub("0x[0-9a-f]+", "", str(error).split("\n")[0])


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", METHODS)
def test_equal_or_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "special_methods.py").write_text(_program(name))
    module = module_of(tmp_path / "special_methods.py")
    module.shown = shown
    for number, expression in enumerate(METHODS[name][2]):
        for kind in ("given", "on_a_path"):
            function = getattr(module, f"{kind}{number}")
            converted: Any = to_static(function)
            for x in (torch.ones(2), -torch.ones(2), torch.ones(2, requires_grad=True)):
                expected = _outcome(function, x)
                try:
                    got = _outcome(converted, x)
                except TraceError as error:
                    assert error.code in ("D2S212", "D2S253", "D2S261", "D2S263"), (expression, str(error))
                    break
                assert not difference(got, expected), (expression, kind)
