"""What Python's own exceptions keep beside their arguments, of those that are caught, returned and raised."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static
from tests.oracle import same

FIELDS = ("name", "obj", "path", "msg", "value", "code", "encoding", "object", "start", "end", "reason", "errno",
          "strerror", "filename", "filename2", "lineno", "offset", "text")  # fmt: skip


class Thing:
    @property
    def inside(self) -> Any:
        return self.missing  # type: ignore[attr-defined]


class Telling:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"nothing by the name {name}")


class UsersName(NameError):
    pass


class UsersOS(OSError):
    def __init__(self, number: int, text: str, more: int) -> None:
        super().__init__(number, text)
        self.more = more


class UsersText(UnicodeDecodeError):
    pass


THING, TELLING, ITEMS = Thing(), Telling(), [1]


def unbound(x: Any) -> Any:
    if ITEMS == [2]:
        value = x
    return value


ACTS: dict[str, Callable[[Any], Any]] = {
    "a name": lambda x: undefined_name,  # type: ignore[name-defined]  # noqa: F821
    "not bound": unbound,
    "an attribute": lambda x: THING.missing,  # type: ignore[attr-defined]
    "of a list": lambda x: ITEMS.missing,  # type: ignore[attr-defined]
    "by getattr": lambda x: getattr(THING, "missing"),
    "of a module": lambda x: sys.missing,  # type: ignore[attr-defined]
    "of a class": lambda x: Thing.missing,  # type: ignore[attr-defined]
    "of a number": lambda x: (3).missing,  # type: ignore[attr-defined]
    "in a property": lambda x: THING.inside,
    "by a user's method": lambda x: TELLING.missing,
    "a module": lambda x: importlib.import_module("no_such_module"),
    "a key": lambda x: {"a": 1}["b"],
    "an item": lambda x: [][3],
    "the end": lambda x: next(iter([])),
    "bytes": lambda x: b"\xff".decode(),
    "text": lambda x: "\xe9".encode("ascii"),
    "syntax": lambda x: compile("a b", "f.py", "exec"),
    "the process": lambda x: sys.exit(4),
}
ERRORS: dict[str, Callable[[], BaseException]] = {
    "NameError": lambda: NameError("no", name="a"), "AttributeError": lambda: AttributeError("no", name="a", obj=THING),
    "ImportError": lambda: ImportError("no", name="a", path="b"), "StopIteration": lambda: StopIteration(3),
    "SystemExit": lambda: SystemExit((1, 2)), "OSError": lambda: OSError(2, "no", "file"),
    "two files": lambda: OSError(2, "no", "file", None, "other"), "a user's name": lambda: UsersName("no", name="a"),
    "a user's": lambda: UsersOS(2, "no", more=5), "a user's text": lambda: UsersText("utf8", b"abc", 0, 1, "why"),
    "changed": lambda: changed(OSError(2, "no", "file"), filename="other", errno=3),
    "syntax": lambda: SyntaxError("m", ("f", 1, 2, "t")),
}  # fmt: skip


def changed(error: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def seen(error: Any) -> Any:
    cause = error.__cause__
    return (type(error).__name__, str(error), error.args, {name: getattr(error, name, None) for name in FIELDS},
            vars(error), None if cause is None else seen(cause))  # fmt: skip


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    try:
        result = function(x)
    except BaseException as error:
        if isinstance(error, dy2static.errors.Dy2StaticError):
            raise
        return "raised", seen(error), error.__context__ is None or error.__cause__ is not None
    return "gave", seen(result) if isinstance(result, BaseException) else result


def check(function: Callable[[Any], Any]) -> None:
    converted = to_static(function)
    for x in (torch.ones(2), -torch.ones(2)):
        same(outcome(converted, x), outcome(function, x))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ACTS)
def test_what_python_raises(name: str) -> None:
    act = ACTS[name]

    def caught(x: Any) -> Any:
        try:
            act(x)
        except BaseException as error:
            return error

    def caught_on_a_path(x: Any) -> Any:
        if x.sum() > 0:
            try:
                act(x)
            except BaseException as error:
                return error
        return ValueError(1)

    def raised_on_a_path(x: Any) -> Any:
        y = x * 2
        if x.sum() > 0:
            act(x)
        return y

    for function in (act, caught, caught_on_a_path, raised_on_a_path):
        check(function)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ERRORS)
def test_what_a_function_makes(name: str) -> None:
    make = ERRORS[name]

    def raised(x: Any) -> Any:
        raise make()

    def raised_on_a_path(x: Any) -> Any:
        if x.sum() > 0:
            raise make()
        return x

    def caught(x: Any) -> Any:
        try:
            raise make()
        except BaseException as error:
            return error

    def a_cause(x: Any) -> Any:
        if x.sum() > 0:
            raise ValueError("a") from make()
        return x

    for function in (lambda x: make(), lambda x: make() if x.sum() > 0 else None, raised, raised_on_a_path, caught,
                     a_cause):  # fmt: skip
        check(function)


class Box:
    def __init__(self, held: Any) -> None:
        self.held = held


def asked(value: Any) -> Any:
    try:
        return value.missing
    except AttributeError as error:
        return error


VALUES: dict[str, Callable[[Any], Any]] = {
    "a tensor": lambda x: x, "of the function": lambda x: x * 2, "a number": lambda x: int(x.sum()),
    "an object": lambda x: Box(x * 2), "a list": lambda x: [x * 3], "a range": lambda x: range(int(x.sum().abs())),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_was_asked_has_a_value_of_the_run(name: str) -> None:
    make = VALUES[name]

    def read(x: Any) -> Any:
        value = make(x)
        error = asked(value)
        return error.name, error.obj is value, value

    def given(x: Any) -> Any:
        error = asked(make(x))
        return (error, error.obj) if name != "a range" else error.name

    def raised(x: Any) -> Any:
        return make(x).missing

    for function in (read, given, raised):
        converted = to_static(function)
        for x in (torch.ones(2), torch.ones(2) * 2):
            if function is raised:
                with pytest.raises(AttributeError) as mine:
                    converted(x)
                assert mine.value.name == "missing"
                if name in ("a tensor", "of the function", "a number"):
                    same(mine.value.obj, make(x))
                continue
            got, expected = converted(x), function(x)
            if function is given and name != "a range":
                assert got[0].obj is got[1] or name == "a number"
                got, expected = vars_of(got[1]), vars_of(expected[1])
            same(got, expected)


def end_of_an_iterator(x: Any) -> Any:
    try:
        next(iter([]))
    except StopIteration as error:
        return error, error.value


def with_a_note(x: Any) -> Any:
    try:
        {}["a"]
    except KeyError as error:
        error.note = x * 2  # type: ignore[attr-defined]
        return error, error.args[0]


@pytest.mark.parametrize("function", [end_of_an_iterator, with_a_note])
def test_each_call_has_an_exception_of_its_own(function: Callable[[Any], Any]) -> None:
    """Where something of it was read, each call gave the same one."""
    converted = to_static(function)
    results = [converted(torch.ones(2) * number) for number in (1, 2, 3)]
    assert len({id(error) for error, _ in results}) == 3
    for number, found in enumerate(results, 1):
        same(found, function(torch.ones(2) * number))


def vars_of(value: Any) -> Any:
    return vars(value) if isinstance(value, Box) else value


def with_a_cause(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        raise NameError("u", name="q") from OSError(2, "no", "file")
    return x * 2


def of_a_user(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        raise UsersOS(2, "no", more=int(x.sum()))
    return x * 2


@pytest.mark.parametrize("function", [with_a_cause, of_a_user])
def test_a_file_keeps_them(function: Callable[[Any], Any], tmp_path: Path) -> None:
    dy2static.save(to_static(function), tmp_path / "f", input_spec=[dy2static.InputSpec([2])])
    loaded = dy2static.load(tmp_path / "f")
    for x in (torch.ones(2), -torch.ones(2)):
        same(outcome(loaded, x), outcome(function, x))
