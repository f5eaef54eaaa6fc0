"""Functions whose calls alone are rewritten: they do what they did, and what they call can be seen."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from dy2static.calls_only import calls_rewritten
from dy2static.operators.shared import frames


def seen_by(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """What a function gives with rewritten calls, and the names of what it calls."""
    names: list[str] = []

    def caller(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names.append(getattr(f, "__name__", type(f).__name__))
        return f(*args, **kwargs)

    made = calls_rewritten(function)
    assert made is not None and made is not function
    return frames.run(lambda: made(*args, **kwargs), (), {}, caller), names


def helper(*values: Any, **more: Any) -> Any:
    return values, more


class Base:
    def value(self, x: int) -> int:
        return x + 1


class Derived(Base):
    def value(self, x: int) -> int:
        names = sorted(locals())
        return super().value(helper(x, names)[0][0])

    def hidden(self) -> Any:
        return self.__secret() or locals()

    def __secret(self) -> int:
        return 1


OUTSIDE = 3


def looks(a, *rest, b=2, **more):
    c = helper(a, *rest, key=b, **more)
    return sorted(locals()), locals()["c"], f"{helper(a)}", [helper(v) for v in rest]


def test_locals_are_the_users_own() -> None:
    result, names = seen_by(looks, 1, 5, 6, z=9)
    assert result == looks(1, 5, 6, z=9)
    assert names.count("helper") == 4 and "sorted" in names


def test_methods_and_super() -> None:
    result, names = seen_by(Derived.value, Derived(), 4)
    assert result == 5 and names == ["sorted", "helper", "value"]
    assert calls_rewritten(Derived.hidden) is None, "private names need their class"


def test_generators_are_lazy_and_take_what_is_sent() -> None:
    def rows(count):
        for n in range(count):
            got = yield helper(n)
            if got:
                yield helper(got, OUTSIDE)
        yield from map(helper, "ab")

    def all_of(function):
        source = function(2)
        return [next(source), source.send("x"), *source]

    made = calls_rewritten(rows)
    assert made is not None and inspect.isgeneratorfunction(made)
    assert all_of(made) == all_of(rows)


def test_exceptions_and_finally() -> None:
    def f(values):
        for value in values:
            try:
                return int(value)
            except ValueError:
                continue
            finally:
                if value == "stop":
                    break
        return helper("none")

    made = calls_rewritten(f)
    assert made is not None
    for values in (["x", "3"], ["x", "stop"], ["stop", "4"], [], ["y"]):
        assert made(values) == f(values)
    with pytest.raises(TypeError):
        made([None])


def test_closures_and_defaults_are_shared() -> None:
    count = 0

    def f(step=2):
        nonlocal count
        count += len(helper(step)[0]) * step
        return eval("step"), count

    made = calls_rewritten(f)
    assert made is not None
    assert made() == (2, 2) and f() == (2, 4) and made(5) == (5, 9)
    assert made.__defaults__ is f.__defaults__ and made.__name__ == "f"


def test_what_has_no_source_is_none() -> None:
    space: dict[str, Any] = {}
    exec("def f(x): return x", space)
    assert calls_rewritten(space["f"]) is None
