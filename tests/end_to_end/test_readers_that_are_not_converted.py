"""Functions that are not converted and read a container by a global name, which the caller changed on some paths or
only adds to: what they see is eager's, or the call is refused."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import not_to_static, to_static
from dy2static.errors import Dy2StaticError

LOG: list[Any] = []
TABLE: dict[str, Any] = {}
OWNER = types.SimpleNamespace(log=[])
NESTED: dict[str, list[Any]] = {"a": []}


@not_to_static
def of_a_list() -> int:
    return len(LOG)


@not_to_static
def of_a_dict() -> int:
    return len(TABLE)


@not_to_static
def of_an_object() -> int:
    return len(OWNER.log)


@not_to_static
def of_a_nested_one() -> int:
    return len(NESTED["a"])


def _inner() -> int:
    return len(LOG)


@not_to_static
def by_another() -> int:
    return _inner()


@not_to_static
def in_a_comprehension() -> int:
    return sum(1 for _ in LOG)


def _closure() -> Callable[[], int]:
    log = LOG

    @not_to_static
    def inside() -> int:
        return len(log)

    return inside


READERS: dict[str, Callable[[], int]] = {
    "list": of_a_list, "dict": of_a_dict, "object": of_an_object, "nested": of_a_nested_one, "another": by_another,
    "comprehension": in_a_comprehension, "closure": _closure(),
}  # fmt: skip


def _put() -> None:
    LOG.append(1)
    TABLE["k"] = 1
    OWNER.log.append(1)
    NESTED["a"].append(1)


def on_a_path(x: Any, read: Callable[[], int]) -> Any:
    if x.sum() > 0:
        _put()
    return x * read()


def at_each_call(x: Any, read: Callable[[], int]) -> Any:
    _put()
    return x * read()


def in_a_loop(x: Any, read: Callable[[], int]) -> Any:
    while x.sum() < 10:
        _put()
        x = x + 2
    return x * read()


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("function", [on_a_path, at_each_call, in_a_loop], ids=lambda one: one.__name__)
def test_as_eager_or_refused(function: Callable[..., Any], name: str) -> None:
    def outcomes(called: Callable[..., Any]) -> list[Any]:
        for one in (LOG, TABLE, OWNER.log, NESTED["a"]):
            one.clear()
        return [(called(torch.ones(2) * sign).tolist(), len(LOG)) for sign in (1, -1, 1, 1, -1, 1)]

    expected = outcomes(lambda x: function(x, READERS[name]))
    try:
        got = outcomes(to_static(lambda x: function(x, READERS[name])))
    except Dy2StaticError as error:
        assert error.code in ("D2S253", "D2S254") and function is not at_each_call, str(error)
        return
    assert got == expected
