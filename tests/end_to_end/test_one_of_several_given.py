"""What is one of several at run time, where Python takes an exception, a class or text: raised, asked, or refused."""

from __future__ import annotations

import functools
import json
import shlex
import textwrap

import pytest
import torch

import dy2static
from dy2static.errors import TraceError
from tests.oracle import check

CALLS = ((torch.tensor([1.0, 2.0], requires_grad=True),), (torch.tensor([-1.0, -2.0], requires_grad=True),))


def kept_in_a_name(x):
    err = None
    if x.sum() > 0:
        err = ValueError("p")
    if err is not None:
        raise err
    return x * 2


def none_on_one_path(x):
    err = None
    if x.sum() > 0:
        err = ValueError("p")
    raise err


def one_of_two(x):
    err = KeyError("a")
    if x.sum() > 0:
        err = ValueError("p", 3)
    raise err


def a_class_that_is_called(x):
    raise (ValueError if x.sum() > 0 else KeyError)("no")


def a_class(x):
    raise ValueError if x.sum() > 0 else KeyError


def under_a_condition(x):
    if x.abs().sum() > 100:
        raise (ValueError if x.sum() > 0 else KeyError)("no")
    return x * 2


def the_cause(x):
    cause = None
    if x.sum() > 0:
        cause = KeyError("c")
    raise ValueError("v") from cause


def in_a_loop(x):
    err = None
    i = 0
    while i < x.abs().sum():
        if x[0] > 0:
            err = ValueError("p")
        i += 1
    if err is not None:
        raise err
    return x * i


def class_asked_for(x):
    return isinstance(3, int if x.sum() > 0 else float), x * 1


def class_that_decides(x):
    if isinstance(3, int if x.sum() > 0 else float):
        return x * 2
    return x * 3


def classes_in_a_tuple(x):
    return isinstance(1.5, (str, float if x.sum() > 0 else int)), issubclass(bool, int if x.sum() > 0 else str), x * 1


def value_and_class(x):
    value = 3 if x.sum() > 0 else 3.5
    return isinstance(value, int if x[0] > 0 else float), issubclass(type(value), int), x * 1


@pytest.mark.parametrize("function", [
    kept_in_a_name, none_on_one_path, one_of_two, a_class_that_is_called, a_class, under_a_condition, the_cause,
    class_asked_for, class_that_decides, classes_in_a_tuple, value_and_class,
])  # fmt: skip
def test_as_eager(function):
    check(function, *CALLS)


def test_an_exception_of_an_iteration():
    check(in_a_loop, (torch.ones(2),), (-torch.ones(2),))


def test_after_loading(tmp_path):
    static = dy2static.to_static(one_of_two)
    with pytest.raises(ValueError, match="p"):
        static(torch.ones(2))
    dy2static.save(static, str(tmp_path / "f"))
    loaded = dy2static.load(str(tmp_path / "f"))
    with pytest.raises(ValueError, match="p"):
        loaded(torch.ones(2))
    with pytest.raises(KeyError, match="a"):
        loaded(-torch.ones(2))


def name_of(x):
    return "a" if x.sum() > 0 else "b"


@pytest.mark.parametrize("function", [
    lambda x: json.dumps(name_of(x)), lambda x: json.dumps({"k": name_of(x)}), lambda x: shlex.quote(name_of(x)),
    lambda x: json.loads("1" if x.sum() > 0 else "2"), lambda x: textwrap.shorten(name_of(x), 5),
])  # fmt: skip
def test_libraries_that_compute(function):
    check(function, *CALLS)


@pytest.mark.parametrize("function", [
    lambda x: json.JSONEncoder().encode({"k": int(x[0])}), lambda x: textwrap.shorten(str(x.sum().item()), 5),
])  # fmt: skip
def test_libraries_that_cannot_take_them(function):
    with pytest.raises(TraceError) as caught:
        dy2static.to_static(function)(torch.ones(2))
    assert caught.value.code == "D2S210" and caught.value.location is not None
    assert caught.value.location.file == __file__


class Power:
    def __call__(self, x, p=1):
        if x.sum() > 0:
            return x**p
        return x * p


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x, p=1):
        if x.sum() > 0:
            return x * self.weight**p
        return x * p


@pytest.mark.parametrize("made", [Power, Scaled, lambda: Power().__call__, lambda: functools.partial(Power(), p=5)])
def test_a_partial_of_what_is_called(made):
    converted = dy2static.to_static(functools.partial(made(), p=2))
    eager = functools.partial(made(), p=2)
    for (x,) in CALLS:
        torch.testing.assert_close(converted(x), eager(x))
        expected, = torch.autograd.grad(eager(x).sum(), x)
        torch.testing.assert_close(torch.autograd.grad(converted(x).sum(), x)[0], expected)


def test_a_partial_of_what_has_no_python_code():
    with pytest.raises(TypeError, match="takes a Python function"):
        dy2static.to_static(functools.partial(torch.mul, other=2))


@pytest.mark.parametrize("make", [lambda y: {t for t in y}, set, lambda y: {"k": {t for t in y}}],
                         ids=["comprehension", "set", "in a dict"])  # fmt: skip
def test_parts_of_a_tensor_of_one_path_in_a_set_are_refused(make):
    """They would be taken of it where it is not there."""

    def f(x):
        y = x if x.sum() > 0 else x.double()
        return make(y)

    with pytest.raises(TraceError, match="D2S220"):
        dy2static.to_static(f)(torch.ones(2))
