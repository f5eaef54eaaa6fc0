"""Objects that the function makes, in exceptions that leave it: they have the attributes that they have in eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError

X = torch.ones(2)


class Info:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.seen: list[Any] = []
        self.seen.append(value)


class Told(Exception):
    pass


class Informed(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__("informed")
        self.info = Info(value)


OUTSIDE = Info(7)


def straight(x: Any) -> Any:
    raise Told(Info(1))


def on_a_path(x: Any) -> Any:
    if x.sum() > 0:
        raise Told(Info(1))
    return x


def in_an_attribute(x: Any) -> Any:
    raise Informed(3)


def in_an_attribute_on_a_path(x: Any) -> Any:
    if x.sum() > 0:
        raise Informed([1, {"a": Info(2)}])
    return x


def in_each_other(x: Any) -> Any:
    inner = Info(5)
    inner.outer = Info(inner)  # type: ignore[attr-defined]
    if x.sum() > 0:
        raise Told(inner)
    return x


def from_outside(x: Any) -> Any:
    if x.sum() > 0:
        raise Told(OUTSIDE)
    return x


def changed_after(x: Any) -> Any:
    info = Info(1)
    if x.sum() > 0:
        info.value = 2
        raise Told(info)
    info.value = 3
    return x * info.value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def in_a_list(x: Any) -> Any:
    raise Told([Info(1)])


def in_a_tuple_on_a_path(x: Any) -> Any:
    if x.sum() > 0:
        raise Told((Info(1), Info((Info(2),))))
    return x


def shown(value: Any, inside: tuple[int, ...] = ()) -> Any:
    if id(value) in inside:
        return "again"
    inside = (*inside, id(value))
    if isinstance(value, (list, tuple)):
        return [shown(item, inside) for item in value]
    if isinstance(value, dict):
        return {key: shown(item, inside) for key, item in value.items()}
    return (type(value).__name__, shown(vars(value), inside)) if hasattr(value, "__dict__") else value


def raised(function: Any) -> Any:
    with pytest.raises((Told, Informed)) as caught:
        function(X)
    return shown(caught.value.args), shown(vars(caught.value))


@pytest.mark.parametrize("function", [
    straight, on_a_path, in_an_attribute, in_an_attribute_on_a_path, in_each_other, from_outside, changed_after,
    in_a_list, in_a_tuple_on_a_path,
])  # fmt: skip
def test_they_have_their_attributes(function: Any) -> None:
    static = to_static(function)
    for _ in range(3):
        assert raised(static) == raised(function)


def test_each_raise_has_an_object_of_its_own() -> None:
    static, found = to_static(on_a_path), []
    for _ in range(2):
        with pytest.raises(Told) as caught:
            static(X)
        found.append(caught.value.args[0])
        caught.value.args[0].seen.append("changed by the handler")
    assert found[0] is not found[1] and found[1].seen == [1, "changed by the handler"]


def test_slots_come_along_and_more_than_attributes_is_refused() -> None:
    class Held(dict):  # type: ignore[type-arg]
        pass

    def told(x: Any, kind: Any) -> Any:
        value = kind(3) if kind is Slotted else kind(a=3)
        if x.sum() > 0:
            raise Told(value)
        return x

    with pytest.raises(Told) as caught:
        to_static(lambda x: told(x, Slotted))(X)
    assert caught.value.args[0].value == 3
    with pytest.raises(TraceError, match="D2S228.*more than attributes"):
        to_static(lambda x: told(x, Held))(X)


def test_one_from_outside_is_that_one() -> None:
    with pytest.raises(Told) as caught:
        to_static(from_outside)(X)
    assert caught.value.args[0] is OUTSIDE


@pytest.mark.parametrize("value", [lambda x: x * 2, lambda x: [x * 2], lambda x: {"a": Info(x * 2)}],
                         ids=["tensor", "list", "object"])  # fmt: skip
@pytest.mark.parametrize("straight", [True, False])
def test_values_of_the_run_in_them_are_refused(value: Any, straight: bool) -> None:
    def told(x: Any) -> Any:
        if straight or x.sum() > 0:
            raise Told(Info(value(x)))
        return x

    with pytest.raises(TraceError, match="D2S228.*holds values which only a run knows") as caught:
        to_static(told)(X)
    assert caught.value.location is not None and caught.value.location.file == __file__
