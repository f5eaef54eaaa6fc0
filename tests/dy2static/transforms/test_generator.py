"""The transform of `generator` alone: both forms of a generator give what the original gives, in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import gast
import pytest

from dy2static import operators
from dy2static.conversion import convert
from dy2static.pipeline import STEPS
from tests.dy2static.steps import convert_with


def test_alone(alone: Any) -> None:
    alone({"generator", "analyses"}, gast.Yield, gast.YieldFrom)


def test_generator_expressions_alone(alone: Any) -> None:
    alone({"comprehension", "generator", "analyses", "local_names"}, gast.GeneratorExp)


def several(n, log):
    log.append("start")
    try:
        for i in range(n):
            if i % 2:
                got = yield i
                log.append(got)
                continue
            yield from (i, "twice")
            if i > 4:
                return log.append("returns")
    finally:
        log.append("finally")
    yield "last"


def pushed(function: Callable[..., Any], *args: Any, stop: int) -> list[Any]:
    """The items that the other form of a generator gives until the consumer has had ``stop`` of them."""
    forms: list[Any] = []
    with mock.patch.object(operators, "generator", lambda pull, push, values, name: forms.append((push, values))):
        function(*args)
    ((push, values),) = forms
    items: list[Any] = []

    def give(item: Any) -> bool:
        items.append(item)
        return len(items) >= stop

    push(give, *values)
    return items


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("stop", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("n", [0, 1, 3, 9])
def test_the_other_form(n: int, stop: int, full: bool) -> None:
    chosen = [step for step in STEPS if step.name in ("prepare", "generator")]
    mine: list[Any] = []
    theirs: list[Any] = []
    items = []
    for item in several(n, theirs):
        items.append(item)
        if len(items) >= stop:
            break
    converted = convert(several) if full else convert_with(several, chosen)
    assert pushed(converted, n, mine, stop=stop) == items
    assert mine == theirs


def sees_exceptions(xs):
    for x in xs:
        try:
            yield x
        except ValueError:
            return


def in_a_with(xs, manager):
    with manager:
        yield xs


def takes_a_result(xs):
    result = yield from xs
    yield result


@pytest.mark.parametrize("function", [sees_exceptions, in_a_with, takes_a_result])
def test_one_form_only(function: Any) -> None:
    assert "_d2s.generator" not in convert(function).__dy2static_source__


def test_it_is_named_like_the_users() -> None:
    assert convert(several)(3, []).__name__ == "several"
