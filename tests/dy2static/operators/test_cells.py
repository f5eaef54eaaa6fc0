"""The variables of a construct, read and written through the closures of its blocks."""

from __future__ import annotations

from typing import Any

import pytest

from dy2static.operators.shared.cells import Cells
from runtime.tracer.python_state.journal import Place, Undefined


def shared() -> Any:
    """A function's variables ``x`` (bound) and ``y`` (not), two functions that share them, and what reads them."""
    x = 1
    y: int

    def body() -> None:
        nonlocal x
        x = 2

    def orelse() -> None:
        nonlocal y
        y = x

    def read() -> tuple[int, int]:
        return x, y

    return body, orelse, read


def test_every_block_is_looked_at() -> None:
    body, orelse, read = shared()
    cells = Cells("x y", body, None, orelse)
    x, y = cells.get()
    assert x == 1 and isinstance(y, Undefined) and y.name == "y"
    cells.set((3, 4))
    assert read() == (3, 4) and cells.get() == (3, 4)


def test_what_is_unbound_is_deleted() -> None:
    body, orelse, read = shared()
    cells = Cells("y x", body, orelse)
    cells.set((5, Undefined("x")))
    with pytest.raises(NameError, match="'x'"):
        read()
    orelse_fails = pytest.raises(NameError, orelse)
    assert "'x'" in str(orelse_fails.value)
    before = cells.get()
    cells.set(before)
    assert cells.get() == before and before[1] is cells.get()[1]  # one object for all, so that paths agree


def test_the_journal_knows_the_cells() -> None:
    body, orelse, read = shared()
    cells = Cells("x", body, orelse)
    mine = dict(zip(body.__code__.co_freevars, body.__closure__))
    others = dict(zip(orelse.__code__.co_freevars, orelse.__closure__))
    assert cells.holds(Place("attribute", mine["x"], "cell_contents"))
    assert not cells.holds(Place("attribute", others["y"], "cell_contents"))
    place = Place("attribute", others["y"], "cell_contents")
    assert isinstance(place.get(), Undefined)
    place.set(7)
    assert read() == (1, 7)
    place.set(Undefined("y"))
    assert isinstance(place.get(), Undefined)


def test_no_names() -> None:
    cells = Cells("", lambda: 1)
    assert cells.names == () and cells.get() == ()
    cells.set(())
