"""The fields of Python's own exceptions: which another one of the same arguments would not have, and giving them."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.ops.exception_fields import fields_of, names_of, rebuilt, with_fields


class Told(OSError):
    def __init__(self, number: int, text: str, more: int) -> None:
        super().__init__(number, text)
        self.more = more


class Slotted(NameError):
    __slots__ = ("own",)


def changed(error: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(error, name, value)
    return error


FIELDS: list[tuple[BaseException, dict[str, Any]]] = [
    (ValueError("a"), {}), (KeyError("a"), {}), (NameError("a"), {}), (NameError("a", name="b"), {"name": "b"}),
    (AttributeError("a", name="b", obj=3), {"name": "b", "obj": 3}), (UnboundLocalError("a", name="b"), {"name": "b"}),
    (ImportError("a", name="b", path="c"), {"name": "b", "path": "c"}), (StopIteration(3), {}), (SystemExit(3), {}),
    (changed(StopIteration(3), value=4), {"value": 4}), (OSError(2, "a"), {}),
    (OSError(2, "a", "f"), {"filename": "f"}),
    (OSError(2, "a", "f", None, "g"), {"filename": "f", "filename2": "g"}), (OSError("a"), {}),
    (UnicodeDecodeError("utf8", b"a", 0, 1, "why"), {}),
    (changed(UnicodeDecodeError("utf8", b"a", 0, 1, "why"), reason="b"), {"reason": "b"}),
    (SyntaxError("a", ("f", 1, 2, "t")), {}), (Told(2, "a", 4), {"errno": 2, "strerror": "a"}),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(FIELDS)))
def test_what_arguments_do_not_say(place: int) -> None:
    error, expected = FIELDS[place]
    assert fields_of(error) == expected
    again = rebuilt(type(error), *error.args, **fields_of(error), **vars(error))
    assert type(again) is type(error) and again.args == error.args and str(again) == str(error)
    assert [getattr(again, name, None) for name in names_of(type(error))] == [
        getattr(error, name, None) for name in names_of(type(error))]  # fmt: skip
    assert vars(again) == vars(error)


def test_other_arguments_were_given() -> None:
    error = OSError(2, "a", "f")
    assert fields_of(error, (2, "a", "f")) == {} and fields_of(error, ()) == {
        "errno": 2, "strerror": "a", "filename": "f"}  # fmt: skip


def test_equal_numbers_of_other_kinds_are_not_the_same() -> None:
    assert fields_of(changed(SystemExit(1), code=True)) == {"code": True}
    held = [1]
    assert fields_of(changed(SystemExit([1]), code=held)) == {"code": held}


def test_slots_of_users_are_theirs() -> None:
    error: Any = Slotted("a", name="b")
    error.own = 3
    assert fields_of(error) == {"name": "b"} and "own" not in names_of(Slotted)


def test_what_may_not_be_changed_stays() -> None:
    group = pytest.importorskip("builtins").__dict__.get("ExceptionGroup")
    if group is None:
        pytest.skip("this Python has no groups of exceptions")
    error = group("a", [ValueError(1)])
    assert fields_of(error) == {}
    with_fields(error, {"message": "b", "more": 3})
    assert error.message == "a" and error.more == 3
