"""``str.join`` of containers whose content a path decides."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.operators.values import str_join
from runtime.errors import TraceError
from tests.oracle import check

CALLS = [(torch.ones(2),), (-torch.ones(2),)]


def of_a_dict(x: Any) -> Any:
    v = {"a": x}
    if x.sum() > 0:
        v["b"] = x
    return "q".join(v), "".join(v)


def of_an_ordered_dict(x: Any) -> Any:
    v = OrderedDict(a=x)
    if x.sum() > 0:
        v["b"] = x
    return "q".join(v)


def of_a_counter(x: Any) -> Any:
    v = Counter("ab")
    if x.sum() > 0:
        v["c"] += 1
    return "q".join(v), "q".join(v.elements())


def of_a_dict_inside(x: Any) -> Any:
    v = {"n": {"a": x}}
    if x.sum() > 0:
        v["n"]["b"] = x
    return "q".join(v["n"]), "q".join(v)


def of_a_set(x: Any) -> Any:
    v = {"a"}
    if x.sum() > 0:
        v.add("b")
    return sorted("q".join(v))


def of_a_list_and_a_deque(x: Any) -> Any:
    v, w = ["a"], deque(["a"])
    if x.sum() > 0:
        v.append("b")
        w.appendleft("b")
    return "q".join(v), "q".join(w)


def of_keys_that_are_no_text(x: Any) -> Any:
    v = {"a": x}
    if x.sum() > 0:
        v[1] = x
    return "q".join(v)


def caught(x: Any) -> Any:
    v = {"a": x}
    if x.sum() > 0:
        v["b"] = x
    r = x
    if x.mean() > 0.1:
        try:
            "q".join(v)
            r = x + 3
        except RuntimeError:
            r = x + 2
    return r


@pytest.mark.parametrize("function", [
    of_a_dict, of_an_ordered_dict, of_a_counter, of_a_dict_inside, of_a_set, of_a_list_and_a_deque,
    of_keys_that_are_no_text, caught,
])  # fmt: skip
def test_content_that_a_path_decides(function: Callable[[Any], Any]) -> None:
    check(function, *CALLS)


def test_where_the_tracer_goes_round_no_handler_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A RecursionError of the tracer's is a RuntimeError, too."""
    def endless(session: Any, between: str, pieces: Any) -> Any:
        return endless(session, between, pieces)

    endless.__code__ = endless.__code__.replace(co_filename=str(str_join.__file__))
    monkeypatch.setattr(str_join, "str_join", endless)
    with pytest.raises(TraceError, match="D2S228"):
        to_static(caught)(torch.ones(2))
