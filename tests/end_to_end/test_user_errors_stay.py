"""Exceptions of the user's own code, and of operators on real tensors, reach the user as they are; ours do not become
part of a Program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from dy2static import InputSpec, TraceError, load, save, to_static

X = torch.tensor([1.0, 2.0, 3.0])


class Own(ValueError):
    """An exception class of the user's."""


class Strict:
    def __init__(self, number: int) -> None:
        self.number = number

    def __add__(self, other: Any) -> Any:
        raise Own(f"no adding to {self.number}")

    def __getitem__(self, key: Any) -> Any:
        return {"a": 1}[key]

    def __len__(self) -> int:
        return -1


def by_hand(x):
    raise Own("by hand", 3)


def of_python(x):
    return x * [1, 2][5]


def of_a_key(x):
    return x * {"a": 1}["b"]


def of_an_attribute(x):
    return x.nothing_like_it


def of_a_conversion(x):
    return x * int("seven")


def of_a_call(x):
    return by_hand(x, 1, 2)


def of_an_operator(x):
    return x @ torch.ones(2, 2)


def of_a_view(x):
    return x.view(2, 2)


def of_an_own_operator(x):
    return Strict(1) + x


def of_an_own_item(x):
    return x * Strict(1)["b"]


def of_an_own_length(x):
    return x * len(Strict(1))


def of_arguments(x):
    return torch.zeros(2, 3, dim=7)


def of_types(x):
    return "a" + 1


def of_dtypes(x):
    return F.embedding(x, torch.ones(3, 3))


def of_unpacking(x):
    a, b = x
    return a + b


def of_iteration(x):
    return [y for y in 3]


def of_an_assert(x):
    assert x.dim() == 2, "rows"
    return x


CASES = (
    by_hand, of_python, of_a_key, of_an_attribute, of_a_conversion, of_a_call, of_an_operator, of_a_view,
    of_an_own_operator, of_an_own_item, of_an_own_length, of_arguments, of_types, of_dtypes, of_unpacking,
    of_iteration, of_an_assert,
)  # fmt: skip


def raised(function: Any, *args: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # which one is what is compared
        function(*args)
    return caught.value


def on_a_path(function):
    def chosen(x, flag):
        if flag > 0:
            return function(x)
        return x

    return chosen


@pytest.mark.parametrize("function", CASES, ids=lambda one: one.__name__)
def test_everywhere(function: Any) -> None:
    expected = raised(function, X)
    for failure in (
        raised(to_static(function), X),
        raised(to_static(on_a_path(function)), X, torch.tensor(1)),
    ):
        assert type(failure) is type(expected)
        assert str(failure).split("\n")[0] == str(expected).split("\n")[0]
        files = []
        entry = failure.__traceback__
        while entry is not None:
            files.append(entry.tb_frame.f_code.co_filename)
            entry = entry.tb_next
        assert files.count(__file__) >= 2, "at the user's line"
    assert to_static(on_a_path(function))(X, torch.tensor(-1)) is X


@pytest.mark.parametrize("function", CASES, ids=lambda one: one.__name__)
def test_handlers_of_the_user_see_them(function: Any) -> None:
    kind = type(raised(function, X))

    def caught(x):
        try:
            return function(x)
        except kind:
            return x * 2

    assert torch.equal(to_static(caught)(X), X * 2)


def test_a_staged_argument_that_torch_does_not_take_is_no_exception_of_the_users(tmp_path) -> None:
    """The fake run raises a TypeError where the real operator does not: no ``raise`` of the Program."""

    def inner(x, n):
        i = 0
        while i < n:
            x = x.to(torch.float64, copy=bool(x.sum() > 100)).to(torch.float32)
            i = i + 1
        return x

    try:
        save(inner, tmp_path / "m", input_spec=[InputSpec([3]), InputSpec([], torch.int64)])
    except TraceError as error:
        assert error.location is not None and error.location.file == __file__
    else:
        loaded = load(tmp_path / "m")
        assert torch.equal(loaded(X, torch.tensor(2)), inner(X, torch.tensor(2)))


def test_a_shape_rule_that_is_wrong_is_not_believed() -> None:
    """What the rule raises is compared with the operator itself, on tensors that look alike."""
    from runtime import torch_internals

    rule = torch_internals.fake_call
    from runtime.tracer.recording import shape_rules

    def wrong(mode: Any, func: Any, *args: Any) -> Any:
        if func in (torch.ops.aten.sin.default, torch.ops.aten.t.default):
            raise TypeError(f"{func} takes no tensors")
        return rule(mode, func, *args)

    def f(x, flag):
        if flag > 0:
            try:
                return x.sin().t()
            except TypeError:
                return x
        return x

    static = to_static(f)
    before, shape_rules.torch_internals.fake_call = rule, wrong  # type: ignore[attr-defined]
    try:
        with pytest.raises(TraceError, match=r"D2S235.*aten.t.default takes no tensors") as caught:
            static(X, torch.tensor(1))
    finally:
        shape_rules.torch_internals.fake_call = before  # type: ignore[attr-defined]
    assert caught.value.location is not None and "x.sin().t()" in caught.value.location.text
    assert torch.equal(static(X, torch.tensor(1)), X.sin().t())
