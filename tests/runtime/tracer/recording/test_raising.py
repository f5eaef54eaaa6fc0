"""Exceptions of the user's program as Operators: what stands in a ``raise``, and when one has to run."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import ScalarType
from runtime.ops.assertion import CAUSE, CAUSE_FIELDS
from runtime.tracer.ambient.calls import Ahead
from runtime.tracer.memory.conditions import ALWAYS, NEVER, when
from runtime.tracer.recording import raising
from runtime.tracer.recording.session import Session
from tests.oracle import check


class Problem(Exception):
    def __init__(self, text: Any, **fields: Any) -> None:
        super().__init__(text)
        vars(self).update(fields)


class Thing:
    def __str__(self) -> str:
        raise AssertionError("asked")

    __repr__ = __str__


def raised_from(error: BaseException, cause: BaseException | None) -> BaseException:
    """An exception as ``raise error from cause`` leaves it."""
    try:
        raise error from cause
    except BaseException as found:
        return found


# -- a raise as an Operator


def test_a_builtin_exception_has_its_own_name_and_arguments(session: Session, number: Any) -> None:
    n = number()
    raising.stage_raise(session, ValueError("n is", n, [1, (n,)], None, torch.float32))
    op = session.program.block.ops[-1]
    assert op.name == "raise" and op.outputs == () and op.kwargs == {}
    assert op.args == ("n is", n.var, [1, (n.var,)], None, torch.float32)
    assert op.attrs == {"exception": "ValueError"}
    assert session.exceptions.raised_types["builtins.ValueError"] is ValueError
    assert session.exceptions.raising is None


def test_a_users_exception_has_its_fields(session: Session, given: Any) -> None:
    x = given("x", 2)
    raising.stage_raise(session, Problem("no", where=x, count=3))
    op = session.program.block.ops[-1]
    assert op.attrs["exception"] == f"{__name__}.Problem" and op.args == ("no",)
    assert op.kwargs == {"where": session.read(x), "count": 3}
    assert session.exceptions.raised_types[f"{__name__}.Problem"] is Problem


def test_what_it_was_raised_from(session: Session, number: Any) -> None:
    n = number()
    cause = Problem("deep", count=n, thing=Thing())
    raising.stage_raise(session, raised_from(KeyError("k"), cause))
    op = session.program.block.ops[-1]
    assert op.attrs["suppress"] is True
    assert op.kwargs[CAUSE] == [f"{__name__}.Problem", "deep"]
    assert op.kwargs[CAUSE_FIELDS] == {"count": n.var, "thing": "<Thing object>"}
    assert session.exceptions.raised_types[f"{__name__}.Problem"] is Problem


def test_raised_from_none(session: Session) -> None:
    raising.stage_raise(session, raised_from(KeyError("k"), None))
    op = session.program.block.ops[-1]
    assert op.attrs["suppress"] is True and op.kwargs == {}


def test_an_object_is_there_for_its_text(session: Session) -> None:
    """Its own methods are not run for that, and the next call has to find the same object."""
    thing, numbers = Thing(), {3}
    session.objects.externals[id(thing)] = (thing, ("x",))  # the caller's
    raising.stage_raise(session, Problem(thing, held=numbers))
    op = session.program.block.ops[-1]
    (name, text), (held, shown) = op.attrs["objects"]["0"], op.attrs["objects"]["held"]
    assert (text, shown) == ("<Thing object>", "{3}") and op.args == ("<Thing object>",)
    assert session.exceptions.raised_types[name] is thing and session.exceptions.raised_types[held] is numbers
    assert name.endswith(f"{__name__}.Thing") and op.kwargs == {"held": "{3}"}


def test_an_object_with_values_of_the_run(session: Session, number: Any, refused: Any) -> None:
    error = Problem(deque([number()]))
    with refused("D2S228", "raising.stage_raise(session, error)", said="raised with a deque that holds values"):
        raising.stage_raise(session, error)
    assert session.exceptions.raising is None


# -- where a condition holds


def test_a_raise_on_no_path_and_on_every_path(session: Session) -> None:
    error = KeyError("k")
    raising.raise_where(session, NEVER, error)
    assert session.program.block.ops == []
    with pytest.raises(KeyError) as found:
        raising.raise_where(session, ALWAYS, error)
    assert found.value is error and session.program.block.ops == []


def test_a_raise_on_some_paths(session: Session, program: Any) -> None:
    flag = session.new_variable(ScalarType("bool"), "flag")
    raising.raise_where(session, when(flag), KeyError("k"))
    assert program() == ["cond(%flag) {", 'raise("k") attrs {exception: "KeyError"}', "} {", "}"]


# -- which have to run


def test_a_raise_at_once_if_nothing_before_it_is_seen(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    assert not raising.must_run(session, KeyError("k"))
    made(lambda: x * 2)
    assert not raising.must_run(session, KeyError("k"))
    session.emit("print", ["text"], types=[])
    assert raising.must_run(session, KeyError("k"))


def test_a_raise_with_a_value_of_the_run_has_to_run(session: Session, number: Any) -> None:
    n = number()
    assert raising.must_run(session, KeyError(n)) and raising.must_run(session, Problem("no", held=[n]))
    assert raising.must_run(session, raised_from(KeyError("k"), ValueError(n)))
    assert not raising.must_run(session, raised_from(KeyError("k"), ValueError(3)))


def test_a_program_that_always_raises_may_be_wanted(session: Session) -> None:
    session.call.ahead = Ahead(raising=True)
    assert raising.must_run(session, KeyError("k"))
    assert not raising.must_run(session, TraceError("no")) and not raising.must_run(session, RecursionError())


def test_a_chain_leaves_out_what_holds_values_of_the_run(session: Session, number: Any) -> None:
    first, second, third = KeyError("first"), ValueError("second"), KeyError(number())
    second.__context__ = first
    third.__context__ = first
    last = raised_from(OSError("last"), second)
    last.__context__ = third
    assert {id(one) for one in raising.chain(last)} == {id(one) for one in (last, second, first)}
    first.__context__ = last
    assert len(raising.chain(last)) == 3, "each is there once, though they go round"


@pytest.mark.parametrize("needs", [False, True])
def test_an_attribute_of_what_is_a_list_in_each_run(needs: bool) -> None:
    """The rows of lists are in one heap with tensors: on a path that no run takes, a tensor is asked for ``append``."""
    def f(x, y):
        a, b = x * 0.5, y * 2
        p, q, r = [], [a], [b, a]
        box = [p]
        n = 0
        while n < 2 and b.sum() > 0:
            n += 1
            if (a > 0).any():
                return r, p
            p = [t * 2 for t in q]
            box[0] = r
        q = box[0]
        if a.sum() > 0:
            q.append(a)
        return p, q, r

    signs = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))
    check(f, *([torch.full([2], one).requires_grad_(needs) for one in pair] for pair in signs))
