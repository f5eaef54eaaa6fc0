"""Functions that hand an exception to their caller as a value."""

import contextlib
import textwrap

import pytest

from dy2static import operators
from dy2static.transforms import escaping
from dy2static.transforms.base import rewritten


def new(source: str) -> str:
    return rewritten(textwrap.dedent(source), escaping.transform)


UNCHANGED = {
    "no call": "return x + 1",
    "builtins": "return len(x) + int(x[0])",
    "tensors": "return torch.stack([x.sum(), F.relu(x)])",
    "a raise on the only path": "raise ValueError(x)",
    "a generator": "yield g(x)",
    "behind and": "return x and g(x)",
    "a lambda": "return lambda: g(x)",
    "a comprehension": "return [g(y) for y in x]",
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_left_alone(name: str) -> None:
    source = f"def f(x):\n    {UNCHANGED[name]}"
    assert new(source).strip() == source


ORDERED = {
    "a + f(b)": ["b", "f"],
    "f(a) + g(b) * h(c)": ["f", "g", "h"],
    "f(g(a), h(b), k=k(c))": ["g", "h", "k", "f"],
    "[f(a), (g(b), x)], {h(c): k(d)}": ["f", "g", "h", "k"],
    "m.f(g(a)).g(h(b))": ["g", "f", "h", "g"],
    "f(a)[g(b)]": ["f", "g"],
    "f(a) < g(b)": ["f", "g"],
    "f(*g(a), **h(b))": ["g", "h", "f"],
    "f(a), f'{f(a)} and {g(b):>3}'": ["f", "g"],
}


class Seen:
    """A function of any name, which notes that it is called."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def __call__(self, *args: object, **keywords: object) -> object:
        self.log.append(self.name)
        return Value(self.log)


class Value(list[object]):
    """What may be called, added, compared and taken apart."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log

    def keys(self) -> list[str]:
        return []

    def __hash__(self) -> int:
        return 1

    def __format__(self, how: str) -> str:
        self.log.append(f"format {how}")
        return ""

    def __getitem__(self, key: object) -> object:
        self.log.append("item")
        return self

    def __getattr__(self, name: str) -> object:
        self.log.append(f".{name}")
        return Seen(self.log, name)

    def _noted(self, other: object) -> "Value":
        self.log.append("operator")
        return self

    __add__ = __mul__ = __lt__ = _noted  # type: ignore[assignment]


@pytest.mark.parametrize("text", ORDERED)
def test_order_of_evaluation(text: str) -> None:
    """What an expression does, in the order in which Python does it."""
    source = f"def f_(a, b, c, d, x, m, f, g, h, k):\n    return {text}\n"
    logs = []
    for code in (source, new(source)):
        log: list[str] = []
        space: dict[str, object] = {"_d2s": operators}
        exec(code, space)
        values = [Value(log) for _ in range(6)]
        space["f_"](*values, *(Seen(log, name) for name in "fghk"))  # type: ignore[operator]
        logs.append(log)
    assert logs[0] == logs[1] and set(ORDERED[text]) - {"b"} <= set(logs[0]), new(source)


def test_a_shared_name_is_read_before_the_call() -> None:
    source = """
    def f(x):
        n = 1
        def g():
            nonlocal n
            n = n + 10
            return n
        return n + g() + n
    """
    space: dict[str, object] = {"_d2s": operators}
    exec(new(source), space)
    assert space["f"](0) == 1 + 11 + 11  # type: ignore[operator]


def test_many_calls_do_not_nest_without_limit() -> None:
    calls = "\n            ".join(f"y = g(y, {n})" for n in range(60))
    source = f"""
    def f(g):
        y = 0
        try:
            {calls}
        except ValueError:
            y = -1
        return y
    """
    text = new(source)
    assert max(len(line) - len(line.lstrip()) for line in text.splitlines()) < 4 * 20
    space: dict[str, object] = {"_d2s": operators}
    exec(text, space)
    assert space["f"](lambda y, n: y + n) == sum(range(60))  # type: ignore[operator]


def test_plain_python_is_the_same() -> None:
    """Outside a trace the rewritten function raises as it is written."""
    source = """
    def f(g, log):
        for n in range(4):
            try:
                with manager:
                    y = g(n) + 1
                log.append(y)
            except KeyError:
                log.append("key")
                continue
            except ValueError as error:
                log.append(str(error))
                break
            else:
                log.append("else")
            finally:
                log.append("finally")
        else:
            log.append("end")
        assert g(0) == 0, "zero"
        return log
    """

    def number(n: int) -> int:
        if n == 1:
            raise KeyError(n)
        if n == 3:
            raise ValueError("three")
        return n

    results = []
    for code in (textwrap.dedent(source), new(source)):
        space: dict[str, object] = {"_d2s": operators, "manager": contextlib.nullcontext()}
        exec(code, space)
        results.append(space["f"](number, []))  # type: ignore[operator]
    assert results[0] == results[1]
    assert results[0][-1] == "finally"  # type: ignore[index]
