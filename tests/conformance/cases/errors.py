"""What is refused: at the user's line, with a code, and with what to change."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import dy2static
from dy2static.errors import Dy2StaticError
from tests.conformance.family import BOTH, NEG, POS, Family, num, vec
from tests.conformance.runner import assert_refused

family = Family("Errors")
case = family.case
scenario = family.scenario


@case("a NumPy array whose size depends on values", *BOTH, refused="D2S213")
def to_numpy(x):
    array = x.detach().numpy()
    return array[array > 0]


@case("data_ptr()", *BOTH, refused="D2S213")
def data_ptr(x):
    if x.data_ptr() == 0:
        return x
    return x * 2


@case("a NumPy array is written", *BOTH)
def array_of(x):
    import numpy

    array = numpy.asarray(x.detach())
    array[0] = 1
    return array


@case("a write to memory that may be shared", *BOTH, refused="D2S222")
def shared_write(x):
    row = x * 2
    rows = []
    while len(rows) < x.sum().abs() + 1:
        rows.append(row)
    row += 1
    return rows


@case("a loop that never reaches a fixed structure", (vec(1.0), num(3)), refused="D2S250")
def no_structure(x, n):
    state = x
    for i in range(n):
        state = (state, x)
    return state


@case("a dict key that a tensor decides", (num(1),), (num(2),), (num(3),))
def dict_key(n):
    table = {1: "one", 2: "two"}
    return table[int(n)]


@case("a Python set of numbers read off tensors", (num(1),), (num(2),))
def set_of_numbers(n):
    return {int(n), 1}


@case("sorting many numbers read off tensors", (num(1),), refused="D2S263")
def sorted_many(n):
    return sorted([int(n) * k for k in range(40)])


@case("recursion without end", (num(3),), refused="D2S270")
def endless(n):
    if n > 0:
        return endless(n - 1) + 1
    return endless(n + 1)


@case("exec of code that decides on a tensor", *BOTH, refused="D2S212")
def exec_decides(x):
    return eval("x * 2 if x.sum() > 0 else x")


SOURCE = """
def made(x):
    if x.sum() > 0:
        return x * 2
    return x

def plain(x):
    return x * 2
"""
SPACE: dict = {}
exec(SOURCE, SPACE)


@scenario("a function without source runs unconverted")
def without_source():
    converted = dy2static.to_static(SPACE["plain"])
    assert torch.equal(converted(POS), POS * 2)


@scenario("a function without source that decides on a tensor", refused="D2S212")
def without_source_decides():
    with pytest.raises(Dy2StaticError) as caught:
        dy2static.to_static(SPACE["made"])(POS)
    assert caught.value.code == "D2S212" and "made" in str(caught.value)


@case("a helper without source that decides on a tensor", *BOTH, refused="D2S212")
def helper_without_source(x):
    return SPACE["made"](x)


@case("a helper without source", *BOTH)
def helper_without_source_plain(x):
    if x.sum() > 0:
        return SPACE["plain"](x)
    return x


@dy2static.not_to_static
def excluded(x):
    if x.sum() > 0:
        return x * 2
    return x


@case("not_to_static on a function that decides", *BOTH, refused="D2S212")
def calls_excluded(x):
    return excluded(x)


@dy2static.not_to_static
def excluded_plain(x):
    return torch.relu(x) * 2


@case("not_to_static on a function that does not", *BOTH)
def calls_excluded_plain(x):
    if x.sum() > 0:
        return excluded_plain(x)
    return x


@case("C functions", *BOTH)
def c_functions(x):
    import math

    k = math.sqrt(4) if x.sum() > 0 else len("abc")
    return x * k


@case("torch.jit and torch.compile functions", *BOTH)
def compiled_function(x):
    def inner(v):
        if v.sum() > 0:
            return v * 2
        return v

    return torch.compile(inner, backend="eager")(x)


@scenario("the message names the user's variable and line")
def message():
    def f(x):
        if x.sum() > 0:
            y = x.long()
        else:
            y = x
        return y.data_ptr()

    with pytest.raises(Dy2StaticError) as caught:
        dy2static.to_static(f)(POS)
    assert_refused(caught.value, "D2S213", __name__)
    assert "return y.data_ptr()" in str(caught.value)


@scenario("unbound names carry the user's name")
def unbound():
    def f(x):
        if x.sum() > 0:
            result = x
        return result

    converted = dy2static.to_static(f)
    converted(POS)
    with pytest.raises(UnboundLocalError, match="'result'"):
        converted(NEG)


@scenario("errors at run time show the user's line")
def run_time_location():
    def f(x, n):
        y = x
        for i in range(n):
            y = torch.cat([y, y])
        return y.view(3, 2)

    import traceback

    converted = dy2static.to_static(f)
    with pytest.raises(RuntimeError) as caught:
        converted(POS, torch.tensor(2))
    assert "y.view(3, 2)" in "".join(traceback.format_exception(caught.value))


@scenario("an InputSpec that does not fit", refused="D2S302")
def input_spec():
    layer = dy2static.to_static(nn.Linear(2, 1), input_spec=[dy2static.InputSpec([None, 2], "float32")])
    with pytest.raises(dy2static.SignatureError) as caught:
        layer(torch.ones(2))
    assert caught.value.code == "D2S302"


@case("a missing attribute raises as in Python", *BOTH)
def missing_attribute(x):
    if x.sum() > 0:
        return x.no_such_attribute
    return x


@case("a missing name raises as in Python", *BOTH)
def missing_name(x):
    if x.sum() > 0:
        return no_such_name  # noqa: F821
    return x


@scenario("shapes that do not fit raise as in eager")
def bad_shapes():
    def f(x):
        if x.sum() > 0:
            return x @ torch.ones(4)
        return x

    converted = dy2static.to_static(f)
    assert torch.equal(converted(NEG), NEG)
    with pytest.raises(RuntimeError, match="size"):
        converted(POS)


@case("too many values to unpack raise as in Python", *BOTH)
def bad_unpack(x):
    a, b = x
    return a


@case("a staged generator as an argument", *BOTH)
def generator_argument(x):
    return torch.stack([v for v in (a * 2 for a in x)])
