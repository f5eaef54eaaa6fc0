"""Special methods, and data of Python's own modules, that are looked for and not there: the call after sees them."""

from __future__ import annotations

import bisect
import copy
import math
import operator
import string
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import same

X = torch.arange(1.0, 4.0)
GONE: Any = object()


class Refusing:
    """A stand-in for what Python says of a class without the method."""


def gives(value: Any) -> Callable[..., Any]:
    return lambda *given: value


def items(last: int) -> Callable[..., Any]:
    def one(self: Any, index: int) -> int:
        if index >= last:
            raise IndexError
        return index + 5

    return one


def shown(text: str) -> str:
    return "" if " object at " in text else text


def loops(one: Any) -> Any:
    first, *others = one
    return [item for item in one], first, others, [*one], sum(one), tuple(one), sorted(one), list(zip(one, one))


def holds(one: Any) -> bool:
    count = 0
    while one and count < 2:
        count += 1
    assert not one or count
    return bool(count)


def added(one: Any) -> Any:
    one += 1
    return one


def entered(one: Any) -> Any:
    with one as given:
        raise ValueError(given)
    return "swallowed"


def matched(one: Any) -> Any:
    match one:
        case object(more=1):
            return "one"
        case object(more=value):
            return value
    return None


READS: dict[str, tuple[Callable[[Any], Any], list[tuple[str, Any]]]] = {
    "int": (int, [("__trunc__", gives(1)), ("__index__", gives(2)), ("__int__", gives(3)), ("__int__", GONE)]),
    "float": (float, [("__index__", gives(2)), ("__float__", gives(3.0)), ("__float__", GONE)]),
    "complex": (complex, [("__index__", gives(2)), ("__float__", gives(3.0)), ("__complex__", gives(1j))]),
    "str": (lambda one: shown(str(one)),
            [("__repr__", gives("a")), ("__str__", gives("b")), ("__str__", GONE), ("__repr__", gives("c"))]),
    "text of a list": (lambda one: (shown(str([one])), shown(repr((one,)))),
                       [("__str__", gives("a")), ("__repr__", gives("b"))]),
    "list in a text": (lambda one: (shown(f"{[one]}"), shown("%s" % [one]), shown("{}".format([one]))),
                       [("__str__", gives("a")), ("__repr__", gives("b"))]),
    "formatted": (lambda one: (shown(f"{one}"), shown(format(one)), shown("%s" % one)),
                  [("__repr__", gives("a")), ("__str__", gives("b")), ("__format__", gives("c"))]),
    "items": (loops, [("__getitem__", items(2)), ("__iter__", lambda self: iter([1, 2])), ("__iter__", GONE),
                      ("__getitem__", items(3))]),
    "list": (list, [("__getitem__", items(2)), ("__iter__", lambda self: iter([1])), ("__iter__", None)]),
    "taken apart": (lambda one: ({**one}, dict(one)),
                    [("__getitem__", gives(5)), ("keys", gives(["a"])), ("keys", gives(["b"])), ("keys", GONE)]),
    "in": (lambda one: (5 in one, 1 not in one),
           [("__getitem__", items(2)), ("__iter__", lambda self: iter([1])), ("__contains__", gives(True))]),
    "reversed": (lambda one: list(reversed(one)),
                 [("__len__", gives(2)), ("__getitem__", items(2)), ("__reversed__", gives([9]))]),
    "length_hint": (lambda one: operator.length_hint(one, 7), [("__length_hint__", gives(3)), ("__len__", gives(2))]),
    "truth": (lambda one: (bool(one), not one, 1 if one else 2, one and 3, any([one]), operator.not_(one)),
              [("__len__", gives(0)), ("__bool__", gives(True)), ("__bool__", GONE), ("__bool__", gives(False))]),
    "while": (holds, [("__len__", gives(0)), ("__bool__", gives(True)), ("__len__", gives(1)), ("__bool__", GONE)]),
    "callable": (callable, [("__call__", gives(1)), ("__call__", GONE)]),
    "call": (lambda one: one(), [("__call__", gives(1)), ("__call__", gives(2)), ("__call__", GONE)]),
    "in place": (added, [("__add__", gives(1)), ("__iadd__", gives(2)), ("__iadd__", GONE)]),
    "rounded": (lambda one: (round(one), math.floor(one)), [("__float__", gives(1.5)), ("__round__", gives(3)),
                                                            ("__floor__", gives(4))]),
    "copied": (lambda one: copy.copy(one).more, [("more", 1), ("__copy__", gives(Refusing())), ("__copy__", GONE)]),
    "with": (entered, [("__exit__", gives(True)), ("__enter__", gives(1)), ("__exit__", gives(False))]),
    "match": (matched, [("more", 1), ("more", 2), ("more", GONE)]),
    "place": (lambda one: bisect.bisect_left([1, 2, 3], one), [("__gt__", gives(True)), ("__gt__", gives(False))]),
    "beside a tensor": (lambda one: X * one, [
        ("__rmul__", gives(1)), ("__torch_function__", classmethod(lambda cls, *given: 2)),
        ("__torch_function__", GONE)]),
}  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error)


def hold(use: Callable[[Any], Any], changes: list[Callable[[], Any]]) -> None:
    """The same function eager and converted, again after each change."""
    static = to_static(use)
    same(outcome(lambda: static(X)), outcome(lambda: use(X)))
    for number, change in enumerate(changes):
        change()
        for _ in range(2):
            same(outcome(lambda: static(X)), outcome(lambda: use(X)), f"after change {number}")


def setting(cls: Any, name: str, value: Any) -> Callable[[], Any]:
    return lambda: delattr(cls, name) if value is GONE else setattr(cls, name, value)


@pytest.mark.parametrize("name", READS)
def test_what_a_class_gets_and_loses(name: str) -> None:
    read, changes = READS[name]

    class Made:
        pass

    one = Made()

    def use(x: Any) -> Any:
        found = read(one)
        return (x * 2 if x.sum() > 0 else x), found

    hold(use, [setting(Made, key, value) for key, value in changes])


def test_what_containers_of_users_classes_get() -> None:
    class Dict(dict[str, Any]):
        pass

    class List(list[int]):
        pass

    table, row = Dict(a=1), List([1, 2])

    def missing() -> Any:
        try:
            return table["b"]
        except KeyError:
            return None

    def use(x: Any) -> Any:
        return x * 2, missing(), table.get("a"), table["a"], len(table), bool(row), row[0], list(row), 1 in row

    hold(use, [
        setting(Dict, "__missing__", gives(3)), setting(Dict, "get", gives(4)), setting(Dict, "__getitem__", gives(5)),
        setting(Dict, "get", GONE), setting(List, "__len__", gives(0)), setting(List, "__bool__", gives(True)),
        setting(List, "__iter__", lambda self: iter([7])), setting(List, "__contains__", gives(False)),
        setting(List, "__bool__", GONE),
    ])  # fmt: skip


def test_what_a_metaclass_gets() -> None:
    class Meta(type):
        pass

    class Made(metaclass=Meta):
        pass

    def use(x: Any) -> Any:
        return x * 2, isinstance(3, Made), issubclass(int, Made), bool(Made)

    hold(use, [
        setting(Meta, "__instancecheck__", gives(True)), setting(Meta, "__subclasscheck__", gives(True)),
        setting(Meta, "__bool__", gives(False)), setting(Meta, "__instancecheck__", GONE),
    ])  # fmt: skip


def test_the_classes_that_are_derived_from_one() -> None:
    class Base:
        scale = 1.0

    made: list[Any] = []

    def every(cls: Any) -> list[Any]:
        return [one for derived in cls.__subclasses__() for one in (derived, *every(derived))]

    def use(x: Any) -> Any:
        for one in every(Base):
            x = x * one.scale
        return x, len(type.__subclasses__(Base))

    hold(use, [lambda: made.append(type("First", (Base,), {"scale": 2.0})),
               lambda: made.append(type("Second", (made[0],), {"scale": 3.0}))])  # fmt: skip


def test_the_order_of_positional_patterns() -> None:
    class Pair:
        __match_args__: Any = ("a", "b")
        a, b = 1, 2

    pair = Pair()

    def use(x: Any) -> Any:
        match pair:
            case Pair(1, 2):
                return x
            case Pair(first, second):
                return x * first + second
        return None

    hold(use, [setting(Pair, "__match_args__", ("b", "a")), setting(Pair, "__match_args__", ("a", "b"))])


@pytest.mark.parametrize("answer", (True, False, NotImplemented))
def test_unequal_by_a_method_of_another_name(answer: Any) -> None:
    """Python's own ``__ne__`` turns round what ``__eq__`` says, whatever that function is called."""

    class Made:
        pass

    class Other:
        pass

    one, other = Made(), Other()
    use = lambda x: (x * 2 if one != other else x, other != one, one == other, one != one)
    hold(use, [setting(Made, "__eq__", gives(answer)), setting(Other, "__eq__", gives(answer is False)),
               setting(Made, "__ne__", gives(5)), setting(Made, "__ne__", GONE)])  # fmt: skip


def test_data_of_pythons_own_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, texts and containers there are compared; functions and classes are those that were traced."""
    monkeypatch.setattr(sys, "argv", ["first"])

    def use(x: Any) -> Any:
        more = getattr(sys, "tests_more", 0), hasattr(sys, "tests_more")
        return x * len(sys.argv), sys.argv[0], [len(one) for one in sys.argv], string.digits, more

    hold(use, [
        lambda: sys.argv.append("more"), lambda: setattr(sys, "argv", ["other"]),
        lambda: monkeypatch.setattr(sys, "tests_more", 3, raising=False),
        lambda: monkeypatch.setattr(sys, "tests_more", 4), lambda: monkeypatch.setattr(string, "digits", "01"),
    ])  # fmt: skip
