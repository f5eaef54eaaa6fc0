"""What exists while tracing only says itself why it may not leave."""

from __future__ import annotations

from typing import NoReturn

import pytest

from runtime.tracer.values.identities import Identity
from runtime.tracer.values.transient import Transient


class Asked(Transient):
    __slots__ = ("why",)

    def leave(self) -> NoReturn:
        raise ValueError(self.why)


def test_a_class_of_them_says_why_it_may_not_leave() -> None:
    one = Asked()
    one.why = "not a result"
    assert isinstance(one, Transient) and not hasattr(one, "__dict__")
    with pytest.raises(ValueError, match="not a result"):
        one.leave()
    assert Transient.leave.__isabstractmethod__  # type: ignore[attr-defined]


def test_the_number_of_an_object_is_one() -> None:
    assert isinstance(Identity(3), Transient) and isinstance(Identity(3), int)
