"""A number that only the run knows beside a Fraction, a Decimal, a timedelta, NumPy's numbers, complex numbers and
classes of the user's: what eager gives, or a located error; never another value, class or exception."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from runtime.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import check

HEAD = """import enum
import functools
import operator
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
import numpy as np
class Color(enum.IntEnum):
    A = 3
class Own:
    def __init__(self, v):
        self.v = v
    def __eq__(self, other):
        return self.v == (other.v if isinstance(other, Own) else other)
    def __hash__(self):
        return hash(self.v)
    def __add__(self, other):
        return self.v + other
    __radd__ = __add__
class OwnInt(int):
    pass
def f(x):
    n = int((x > 0).sum()){kind}
    k = {one}
    return {use}
"""
ONES = (
    "Fraction(3)", "Decimal(3)", "np.int64(3)", "np.float32(3)", "np.float64(3)", "np.bool_(True)", "timedelta(3)",
    "complex(3)", "True", "3.0", "Color.A", "date(2020, 1, 3)", "Own(3)", "OwnInt(3)", "Decimal('NaN')",
)  # fmt: skip
USES = (
    "n == k", "k == n", "n != k", "n in [k]", "n in (k, 1)", "n in {k}", "k in [n]", "[k].index(n)", "[k, 1].count(n)",
    "{k: 1}.get(n)", "{k: 1}[n]", "n in {k: 1}", "n < k", "k <= n", "n + k", "k + n", "k * n", "n - k", "k ** n",
    "n // k", "k % n", "divmod(n, k)", "divmod(k, n)", "pow(k, n)", "max(n, k)", "sum([k, n])", "[n, k].index(k)",
    "(n, 1) == (k, 1)", "[n] == [k]", "{'a': n} == {'a': k}", "n is k", "abs(k) + n", "all([k, n])", "k or n",
    "operator.add(k, n)", "functools.reduce(operator.mul, [k, n])", "round(n, k)", "sorted([n, k])", "len({k, n})",
)  # fmt: skip
KINDS = {"int": "", "float": " * 1.0", "bool": " > 2"}
REFUSED = {"D2S210", "D2S212", "D2S264", "D2S265"}
_NUMBERS = itertools.count()


@pytest.mark.filterwarnings("ignore:divide by zero")  # NumPy names a scalar's operator in it, and an array's
@pytest.mark.sample(40)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("one", ONES)
@pytest.mark.parametrize("kind", KINDS)
def test_as_eager_or_refused(kind, one, use, tmp_path):
    if one in ("Own(3)", "Decimal('NaN')") and use == "k or n":
        pytest.skip("no two of these are equal")
    number = next(_NUMBERS)
    path = Path(tmp_path) / f"program_{number}.py"
    path.write_text(HEAD.format(kind=KINDS[kind], one=one, use=use))
    function = module_of(path, f"numbers_beside_libraries_{number}").f
    try:
        check(function, (torch.tensor([1.0, 1.0, 1.0]),), (torch.tensor([1.0, -1.0, 1.0]),), paths=("program",))
    except Dy2StaticError as error:
        assert error.code in REFUSED, error
    except AssertionError as error:
        # an order that Python does not have: the other way round, in words
        assert "complex" in one and "not supported between" in str(error)


def test_a_key_of_numpys_is_no_missing_key():
    import numpy as np

    def f(x):
        return {np.int64(3): 1, 2: 5}.get(int((x > 0).sum()), 0)

    with pytest.raises(Dy2StaticError, match="D2S265"):
        check(f, (torch.ones(3),))
