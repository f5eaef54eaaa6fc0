"""Context variables set, read and reset by converted code: eager's values inside, and eager's state after each call."""

from __future__ import annotations

import contextlib
import contextvars
import warnings
from typing import Any

import pytest
import torch

import dy2static
from dy2static.errors import Dy2StaticError

V: contextvars.ContextVar[Any] = contextvars.ContextVar("V")
W: contextvars.ContextVar[Any] = contextvars.ContextVar("W", default=2)
L: contextvars.ContextVar[list[Any]] = contextvars.ContextVar("L", default=[])


def set_and_reset(x):
    token = V.set(x * 2)
    try:
        return V.get() + 1
    finally:
        V.reset(token)


def default_read(x):
    return x * W.get()


def missing(x):
    return x + V.get(3)


def missing_raises(x):
    try:
        return x + V.get()
    except LookupError:
        return x - 1


def set_stays(x):
    W.set(W.get() + 1)
    return x * W.get()


def tensor_stays(x):
    W.set(x * 2)
    return x


def set_on_a_path(x):
    if x.sum() > 0:
        W.set(5)
    return x * W.get()


def reset_on_each_path(x):
    token = V.set(x)
    if x.sum() > 0:
        y = V.get() * 2
        V.reset(token)
    else:
        V.reset(token)
        y = V.get(x - 1)
    return y


def collected(x):
    token = V.set({"seen": []})
    try:
        for i in range(3):
            V.get()["seen"].append(x * i)
        found = V.get()
    finally:
        V.reset(token)
    return found["seen"], V.get(None)


def nested(x):
    a = W.set(x)
    b = W.set(W.get() * 2)
    y = W.get()
    W.reset(b)
    z = W.get()
    W.reset(a)
    return y, z, W.get()


def in_a_loop(x):
    n = 0
    while x.sum() < 10:
        token = W.set(x)
        x = W.get() + 1
        W.reset(token)
        n += 1
    return x, n, W.get()


def counted_in_a_loop(x):
    while x.sum() < 10:
        W.set(W.get() + 1)
        x = x + 1
    return x, W.get()


def first_set_on_a_path(x):
    if x.sum() > 0:
        V.set(x * 2)
    return V.get(x - 1), x


def raises_where_not_set(x):
    if x.sum() > 2:
        V.set(x * 2)
    try:
        return V.get()
    except LookupError:
        return x


@contextlib.contextmanager
def using(value):
    token = V.set(value)
    try:
        yield
    finally:
        V.reset(token)


def by_manager(x):
    with using(x * 3):
        y = V.get()
    return y, V.get("none")


class Using:
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        self.token = V.set(self.value)

    def __exit__(self, *args):
        V.reset(self.token)


def by_class(x):
    with Using(x):
        return V.get() + 1


def changed_default(x):
    if x.sum() > 0:
        L.get().append([1])
    L.get().append(2)
    return x, len(L.get()), L.get()[-2:]


def changed_default_where_set(x):
    if x.sum() > 2:
        L.set([5])
    L.get().append([x.sum().item()])
    return x, len(L.get())


FAMILY = [
    set_and_reset, default_read, missing, missing_raises, set_stays, tensor_stays, set_on_a_path, reset_on_each_path,
    collected, nested, in_a_loop, counted_in_a_loop, first_set_on_a_path, by_manager, by_class,
    changed_default, changed_default_where_set,
]  # fmt: skip


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [type(value), *(one for item in value for one in _flat(item))]
    return [value.tolist()] if isinstance(value, torch.Tensor) else [value]


def _history(function: Any) -> list[Any]:
    """What three calls give, and what the variables hold after each, in a context of their own."""
    said: list[Any] = []

    def calls() -> None:
        for x in (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]), torch.tensor([0.5, 0.5])):
            said.append(_flat(function(x)))
            said.append([_flat(V.get("unset")), _flat(W.get()), _flat(L.get())])

    contextvars.Context().run(L.get).clear()
    contextvars.Context().run(calls)
    return said


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")  # of the list that changes
@pytest.mark.parametrize("function", FAMILY, ids=lambda function: function.__name__)
def test_as_eager(function):
    assert _history(dy2static.to_static(function)) == _history(function)


@pytest.mark.parametrize("function", [set_and_reset, collected, nested, by_manager, by_class])
def test_what_is_reset_makes_one_program(function):
    static = dy2static.to_static(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _history(static)
    assert len(static.programs) == 1


def test_an_error_that_only_the_run_knows_is_refused_where_it_is_caught():
    with pytest.raises(Dy2StaticError, match="LookupError") as caught:
        contextvars.Context().run(dy2static.to_static(raises_where_not_set), torch.ones(2))
    assert caught.value.code == "D2S229"


def test_the_value_before_the_call_is_guarded():
    static = dy2static.to_static(default_read)

    def calls() -> None:
        for value in (3, 4, 3):
            W.set(value)
            assert static(torch.ones(2)).tolist() == [value, value]

    contextvars.Context().run(calls)
    assert len(static.programs) == 2


def test_an_equal_list_is_another_one():
    static = dy2static.to_static(lambda x: (x, V.get()))

    def calls() -> None:
        for _ in range(3):
            held = [1]
            V.set(held)
            assert static(torch.ones(2))[1] is held

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dy2static.RetraceWarning)
        contextvars.Context().run(calls)


def test_a_token_is_good_for_one_reset():
    def twice(x):
        token = V.set(x)
        V.reset(token)
        V.reset(token)
        return x

    with pytest.raises(RuntimeError, match="has already been used once"):
        contextvars.Context().run(dy2static.to_static(twice), torch.ones(2))


def test_a_token_may_not_leave_the_call():
    def keep(x):
        return x, V.set(1)

    with pytest.raises(Dy2StaticError, match="a token of a context variable") as caught:
        contextvars.Context().run(dy2static.to_static(keep), torch.ones(2))
    assert caught.value.code == "D2S228"


def test_another_variables_token_raises_as_in_eager():
    def mixed(x):
        token = V.set(x)
        W.reset(token)
        return x

    with pytest.raises(ValueError, match="different ContextVar"):
        contextvars.Context().run(dy2static.to_static(mixed), torch.ones(2))


def test_what_is_reset_can_be_saved(tmp_path):
    static = dy2static.to_static(set_and_reset, input_spec=[dy2static.InputSpec([None], torch.float32)])
    contextvars.Context().run(dy2static.save, static, tmp_path / "f.d2s")
    x = torch.ones(3)
    assert torch.equal(dy2static.load(tmp_path / "f.d2s")(x), set_and_reset(x))


def test_what_stays_set_cannot():
    static = dy2static.to_static(tensor_stays, input_spec=[dy2static.InputSpec([None], torch.float32)])
    with pytest.raises(Dy2StaticError, match="context variable W"):
        contextvars.Context().run(dy2static.save, static, "unused.d2s")
