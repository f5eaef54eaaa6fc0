"""Which code a trace is in: its own for each trace, and put back where an attempt fails."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from runtime.tracer.ambient.session_parts import ITEMS, PARTS, VALUE, states
from runtime.tracer.ambient.user_code import UserCode
from runtime.tracer.recording.session import Session

CHANGED: dict[str, Any] = {
    "functions": "a.py:3", "activations": "call", "recursions": "f", "module_name": "layer.0", "unconverted": "h",
    "transforms": 1, "given_classes": {1: int}, "surrounding": ("cells",), "loop_options": "limit", "waiting": "w",
    "misplaced": "at", "memo": None,
}  # fmt: skip


class Memo:
    """What the converter keeps: attributes, and what those hold."""

    def __init__(self) -> None:
        self.count = 0
        self.names = ["a"]
        self.known = {"a": 1}


def change(code: UserCode, name: str) -> None:
    held, value = getattr(code, name), CHANGED[name]
    if isinstance(held, list):
        held.append(value)
    elif isinstance(held, dict):
        held.update(value)
    else:
        setattr(code, name, value)


def test_every_field_says_how_it_is_put_back() -> None:
    found = dict(states(UserCode()))
    assert set(found) == set(CHANGED) and found["memo"] == PARTS and set(found.values()) == {ITEMS, VALUE, PARTS}


@pytest.mark.parametrize("name", sorted(set(CHANGED) - {"memo"}))
def test_each_trace_has_its_own(name: str) -> None:
    one, other = UserCode(), UserCode()
    before = copy.copy(getattr(one, name))
    assert not before
    change(one, name)
    assert getattr(one, name) != before == getattr(other, name) and one != other


@pytest.mark.parametrize("name", sorted(set(CHANGED) - {"memo"}))
def test_a_failed_attempt_puts_it_back(name: str, session: Session, undone: Any) -> None:
    held, before = getattr(session.code, name), copy.copy(getattr(session.code, name))
    with undone():
        change(session.code, name)
        assert getattr(session.code, name) != before
    assert getattr(session.code, name) is held and held == before


def test_what_the_converter_remembers_is_put_back_part_by_part(session: Session, undone: Any) -> None:
    memo = session.code.memo = Memo()
    names, known = memo.names, memo.known
    with undone():
        memo.count = 5
        memo.names.append("b")
        memo.known = {}
        known["b"] = 2
    assert session.code.memo is memo and memo.count == 0
    assert memo.names is names == ["a"] and memo.known is known == {"a": 1}


def test_an_error_says_what_is_not_converted(session: Session) -> None:
    session.code.unconverted.append(("outer", "first"))
    session.code.unconverted.append(("h", "it is in C"))
    assert "inside h, which was not converted: it is in C" in session.error("no").summary
    session.code.unconverted.pop()
    assert "inside outer" in session.error("no").summary
