"""Functions of Python's that check, or make a kind of, what they are given, with values that only the Program knows."""

from __future__ import annotations

import itertools
import operator
import struct
import textwrap
import warnings
from collections import deque

import pytest
import torch

import dy2static
from dy2static.errors import TraceError
from tests.from_files import module_of
from tests.oracle import check


def _module(folder, source):
    """A module with this source, from a file of its own."""
    path = folder / "some_functions.py"
    path.write_text(textwrap.dedent(source))
    return module_of(path)


CALLS = [(torch.full((2,), value),) for value in (1.0, -1.0, 0.0)]


def slices(x):
    n = int(x.sum()) + 2
    return list(itertools.islice("abcdefgh", n)), list(itertools.islice("abcdefgh", n, n + 4, n + 1))


def slices_by_tensors(x):
    n = (x.sum() + 2).long()
    return list(itertools.islice("abcdefgh", n)), list(itertools.islice("abcdefgh", n, None))


def slices_by_a_path(x):
    n = 2 if x.sum() > 0 else None
    return list(itertools.islice("abc", n))


def counts(x):
    flag = bool(x.sum() > 0)
    return next(itertools.count(flag)), list(zip(itertools.count(flag, True), "ab")), next(itertools.count(step=flag))


def totals(x):
    first = 5 if x.sum() > 0 else None
    return list(itertools.accumulate([1, 2], initial=first))


def one_tuple_for_all(x):
    pair = ("a", 1) if x.sum() > 0 else ("b", 2)
    return dict.fromkeys(["p", "q"], pair), dict.fromkeys("pq", [1])


def names(x):
    n, text = int(x.sum()), f"{int(x.sum())}"
    return dir(n), dir(n > 0), dir(x.sum().item()), dir(text), dir(n) == dir(1)


def shifts(x):
    a, b = (8, 1) if x.sum() > 0 else (3, 2)
    return operator.lshift(a, b), operator.rshift(a, b), a << b, 64 >> b


def hints(x):
    text = "ab" if x.sum() > 0 else "abc"
    return operator.length_hint(text), operator.length_hint(int(x.sum()), 7)


def searched(x):
    text = f"{int(x.sum())}"
    return text in range(3), text in range(0, 10, 3), int(x.sum()) in range(0, 10, 2)


def made_classes(x):
    name = "Up" if x.sum() > 0 else "Down"
    made = type(name, (dict,), {"size": 3})
    return made.__name__, made.__mro__[1], len(made(a=1)), made.size


@pytest.mark.parametrize("function", [
    slices, slices_by_tensors, slices_by_a_path, counts, totals, one_tuple_for_all, names, shifts, hints, searched,
    made_classes,
], ids=lambda f: f.__name__)  # fmt: skip
def test_equal(function):
    check(function, *CALLS)


@pytest.mark.parametrize("bounds", ["n", "n, None", "0, n", "0, 9, n", "0, 9, n + 1"])
@pytest.mark.parametrize("least", [-3, -1, 0])
def test_bounds_of_islice_that_it_does_not_take(bounds, least, tmp_path):
    module = _module(tmp_path, f"""
        import itertools

        def f(x):
            n = int(x.sum()) + {least}
            return list(itertools.islice("abcdef", {bounds}))
    """)
    check(module.f, (torch.zeros(1),), (torch.full((1,), 2.0),))


def of_a_float(x):
    return list(itertools.islice("abc", x.sum().item()))


def of_text(x):
    return list(itertools.islice("abc", "a" if x.sum() > 0 else "b"))


def shifted_text(x):
    return operator.rshift("a" if x.sum() > 0 else "b", 1)


def powers_of_text(x):
    return operator.ipow(f"{int(x.sum())}", 2)


def tensors_of_text(x):
    return torch.tensor([f"{int(x.sum())}"])


@pytest.mark.parametrize("function", [of_a_float, of_text, shifted_text, powers_of_text, tensors_of_text],
                         ids=lambda f: f.__name__)
def test_errors(function):
    check(function, *CALLS)


def test_how_long_a_deque_may_be_is_refused():
    def f(x):
        return deque([1, 2, 3], int(x.sum())).maxlen

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(torch.ones(2))
    assert caught.value.code == "D2S210"


def test_a_function_that_puts_an_error_of_its_own_in_the_place_of_ours():
    with pytest.raises(TraceError, match="was converted to a float") as caught:
        dy2static.to_static(lambda x: struct.pack("f", x.sum().item()))(torch.ones(2))
    assert caught.value.code == "D2S210" and isinstance(caught.value.__cause__, struct.error)


def test_a_class_is_made_once():
    made = []

    class Base:
        def __init_subclass__(cls):
            made.append(cls.__name__)

    def f(x):
        return type("Inside", (Base,), {}).__name__, x + 1

    f(torch.ones(1))
    once = list(made)
    made.clear()
    dy2static.to_static(f)(torch.ones(1))
    assert made == once


def test_what_python_warns_of_in_source_is_said_once(tmp_path, recwarn):
    warnings.simplefilter("default")
    module = _module(tmp_path, """
        def f(x):
            return x + 1

        def g(x):
            return x is "a"
    """)
    recwarn.clear()
    assert dy2static.to_static(module.f)(torch.ones(1)).item() == 2
    assert not [one for one in recwarn if one.category is SyntaxWarning]
