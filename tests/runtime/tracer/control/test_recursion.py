"""Functions that call themselves: what calls are given and give is a fixed point, and what a call may not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import Operator
from runtime.tracer.control import recursion
from runtime.tracer.control.branches import PathEnds
from runtime.tracer.control.recursion import Argument, begin, open_recursion
from runtime.tracer.python_state.journal import Place
from tests.runtime.tracer.control.staging import Local, Staging, agree, xs

CALLS = xs((1, 2, 3), (0.25, 0.25, 0.25), (40, 1, 1), (-1, 0, 0))


def call(do: Any, f: Callable[..., Any], **given: Any) -> Any:
    """A call of a function that calls itself."""
    if not isinstance(do, Staging):
        return f(do, **given)
    arguments = [Argument(name, value) for name, value in given.items()]
    found = open_recursion(do.session, f)
    if found is not None:
        return found.again(arguments)

    def body(values: Any) -> Any:
        return f(do, **dict(zip(given, values)))

    return begin(do.session, f, f.__name__, [f], arguments, body)


def halved(do: Any, x: Any) -> Any:
    return do.branch(x.sum() > 1, Local(), lambda: call(do, halved, x=x / 2), lambda: x)


def doubled_back(do: Any, x: Any) -> Any:
    return do.branch(x.sum() > 1, Local(), lambda: call(do, doubled_back, x=x / 2) * 2 + 1, lambda: x * 1)


def counted(do: Any, x: Any, n: Any) -> Any:
    return do.branch(x.sum() > 1, Local(), lambda: call(do, counted, x=x / 2, n=n + 1), lambda: (x * 1, n))


def with_a_text(do: Any, x: Any, word: Any) -> Any:
    return do.branch(x.sum() > 1, Local(), lambda: call(do, with_a_text, x=x / 2, word="more"), lambda: (x * 1, word))


def with_none(do: Any, x: Any, before: Any) -> Any:
    return do.branch(x.sum() > 1, Local(), lambda: call(do, with_none, x=x / 2, before=x), lambda: (x * 1, before))


def tree(do: Any, x: Any) -> Any:
    def parts() -> Any:
        return call(do, tree, x=x / 2) + call(do, tree, x=x / 3)

    return do.branch(x.sum() > 1, Local(), parts, lambda: x * 2)


def listed(do: Any, x: Any) -> Any:
    """A list that each call makes."""

    def more() -> Any:
        found = call(do, listed, x=x / 2)
        return [found[0] + 1, found[1] + 1]

    return do.branch(x.sum() > 1, Local(), more, lambda: [x * 1, 0])


def sizes(do: Any, x: Any) -> Any:
    return do.branch(x.sum() > 1, Local(), lambda: call(do, sizes, x=x[:-1] * 1), lambda: x * 2)


def fixed(do: Any, x: Any, kept: Any, factor: Any) -> Any:
    """What is the same in all calls is no argument of the Block."""

    def more() -> Any:
        return call(do, fixed, x=x / factor, kept=kept, factor=factor) + kept

    return do.branch(x.sum() > 1, Local(), more, lambda: x * 1)


def in_a_loop(do: Any, x: Any) -> Any:
    local = Local(y=x, n=0)

    def body() -> None:
        local.y, local.n = call(do, in_a_loop, x=local.y / 4) + 1, local.n + 1

    do.loop(local, lambda: local.y.sum() > 4, body)
    return local.y * 1


SIMPLE = {
    f.__name__: (f, given)
    for f, given in [
        (halved, {}), (doubled_back, {}), (counted, {"n": 0}), (with_a_text, {"word": "first"}),
        (with_none, {"before": None}), (tree, {}), (listed, {}), (sizes, {}), (in_a_loop, {}),
    ]
}  # fmt: skip


@pytest.mark.parametrize("name", SIMPLE)
def test_what_a_call_gives(name: str, staging: Staging) -> None:
    f, more = SIMPLE[name]
    calls = xs((0.25, 0.25, 0.25), (2, 2, 2), (10, 1, 1)) if f is in_a_loop else CALLS
    agree(staging, lambda do, x: call(do, f, x=x, **more), *calls)
    assert {"recursion", "recur"} <= {op.name for op in staging.session.program.block.walk()}


def recursion_of(staging: Staging) -> Operator:
    return next(op for op in staging.session.program.block.ops if op.name == "recursion")


def test_what_is_the_same_in_all_calls_is_no_argument(staging: Staging) -> None:
    def told(do: Any, x: Any, y: Any) -> Any:
        return call(do, fixed, x=x, kept=y * 2, factor=2)

    agree(staging, told, *({**one, "y": [1.0, 2.0, 4.0]} for one in CALLS))
    assert [arg.hint for arg in recursion_of(staging).blocks[0].args] == ["x"]


def test_what_differs_is_one(staging: Staging) -> None:
    x = staging.given("x")
    call(staging, counted, x=x, n=0)
    op = recursion_of(staging)
    assert [arg.hint for arg in op.blocks[0].args] == ["x", "n"] and op.args[1] == 0
    (inner,) = [one for one in op.blocks[0].walk() if one.name == "recur"]
    assert len(inner.args) == 2 and inner.attrs == op.attrs and len(inner.outputs) == len(op.outputs) == 2


def test_a_function_that_does_not_call_itself_leaves_no_recursion(staging: Staging) -> None:
    def told(do: Any, x: Any) -> Any:
        return call(do, lambda do, x: do.branch(x.sum() > 1, Local(), lambda: x * 2, lambda: x), x=x)

    agree(staging, told, *CALLS)
    assert not [op for op in staging.session.program.block.walk() if op.name == "recursion"]


def test_an_open_recursion_is_that_of_the_key(staging: Staging) -> None:
    session = staging.session
    x = staging.given("x")

    def f(do: Any, x: Any) -> Any:
        found = open_recursion(session, f)
        assert found is not None and found.key is f and open_recursion(session, halved) is None
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2), lambda: x * 1)

    assert open_recursion(session, f) is None
    call(staging, f, x=x)
    assert open_recursion(session, f) is None and session.code.recursions == []


def test_a_result_may_be_memory_from_before(staging: Staging) -> None:
    """It may be the argument: a write to either has no static meaning."""
    x = staging.given("x")
    found = call(staging, halved, x=x)
    storage = staging.session.info(found).storage
    others = [one.other() for one in storage.unknown_aliases]
    assert staging.session.info(x).storage in others
    with pytest.raises(TraceError, match="may be its argument, or memory from before it was called") as caught:
        found.add_(1)
    assert caught.value.code == "D2S222"
    with pytest.raises(TraceError, match="may be its argument, or memory from before it was called"):
        x.add_(1)


def test_a_result_that_every_call_makes_is_nobodys(staging: Staging) -> None:
    x = staging.given("x")
    found = call(staging, doubled_back, x=x)
    assert staging.session.info(x).storage not in [
        one.other() for one in staging.session.info(found).storage.unknown_aliases
    ]  # fmt: skip


class Box:
    def __init__(self) -> None:
        self.value = 0


def refused(staging: Staging, f: Callable[..., Any], **given: Any) -> TraceError:
    x = staging.given("x")
    names = {"x": x, **given}
    with pytest.raises(TraceError) as caught:
        call(staging, f, **names)
    assert caught.value.code == "D2S270" and caught.value.location is not None
    assert staging.session.code.recursions == [] and staging.session.scope.parent is None
    return caught.value


def test_a_write_to_an_argument(staging: Staging) -> None:
    def f(do: Any, x: Any) -> Any:
        x.add_(1)
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2), lambda: x * 1)

    error = refused(staging, f)
    assert "f(), which calls itself, writes in place to 'x', which is older than the call" in str(error)
    assert error.location is not None and error.location.text.strip() == "x.add_(1)"


def test_a_store_to_an_object_from_before(staging: Staging) -> None:
    box = staging.new(Box())

    def f(do: Any, x: Any) -> Any:
        do.store(box, "value", 1)
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2), lambda: x * 1)

    assert "stores to attribute 'value' of a Box, which is older than the call" in str(refused(staging, f))
    assert box.value == 0


def test_a_store_on_the_path_that_makes_no_call(staging: Staging) -> None:
    """No call inside finds it, and still there is one for each call that ends so."""
    box = staging.new(Box())

    def f(do: Any, x: Any) -> Any:
        def last() -> Any:
            do.store(box, "value", 1)
            return x * 1

        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2), last)

    assert "stores to attribute 'value' of a Box, which is older than the call" in str(refused(staging, f))
    assert box.value == 0


def test_a_change_of_a_list_from_before(staging: Staging) -> None:
    rows: list[int] = []

    def f(do: Any, x: Any) -> Any:
        do.change(rows, lambda held: held.append(1))
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2), lambda: x * 1)

    assert "stores to a list, which is older than the call" in str(refused(staging, f)) and rows == []


def test_a_change_that_is_put_back_is_seen_by_the_call_inside(staging: Staging) -> None:
    box = staging.new(Box())

    def f(do: Any, x: Any) -> Any:
        def more() -> Any:
            do.store(box, "value", 1)
            found = call(do, f, x=x / 2)
            do.store(box, "value", 0)
            return found

        return do.branch(x.sum() > 1, Local(), more, lambda: x * 1)

    assert "stores to attribute 'value' of a Box" in str(refused(staging, f))


def test_a_variable_of_the_function_around(staging: Staging) -> None:
    count = 0

    def f(do: Any, x: Any) -> Any:
        (cell,) = [cell for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()) if name == "count"]
        do.session.journal.write(Place("attribute", cell, "cell_contents"), count + 1)
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2), lambda: x * 1)

    assert "stores to the variable 'count' of the function around it" in str(refused(staging, f)) and count == 0


def test_no_way_out(staging: Staging) -> None:
    def f(do: Any, x: Any) -> Any:
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2), lambda: call(do, f, x=x / 3))

    assert "f() calls itself on every path, so that it never ends" in str(refused(staging, f))


def test_another_mode(staging: Staging) -> None:
    def f(do: Any, x: Any) -> Any:
        def more() -> Any:
            with torch.no_grad():
                return call(do, f, x=x / 2)

        return do.branch(x.sum() > 1, Local(), more, lambda: x * 1)

    assert "f() calls itself where the grad mode is another one than in its first call" in str(refused(staging, f))


def test_an_object_that_each_call_makes(staging: Staging) -> None:
    def f(do: Any, x: Any, box: Any) -> Any:
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2, box=do.new(Box())), lambda: x * 1)

    error = refused(staging, f, box=staging.new(Box()))
    assert "'box' of a recursive call of f() is a Box that each call makes" in str(error)


def test_one_list_in_two_places(staging: Staging) -> None:
    def f(do: Any, x: Any) -> Any:
        made = [x * 1]
        do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2) and None, lambda: None)
        return made, made

    assert "f() gives one list in two places" in str(refused(staging, f))


def test_what_gets_no_fixed_structure(staging: Staging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion, "TRIES", 4)

    def f(do: Any, x: Any, y: Any) -> Any:
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2, y=(y,)), lambda: x * 1)

    text = str(refused(staging, f, y=1))
    assert "what f() is given or gives never reaches a fixed structure: after 4 attempts" in text and "'y'" in text


def test_every_path_raises(staging: Staging) -> None:
    x = staging.given("x")

    def fails() -> None:
        raise ValueError("the end")

    def f(do: Any, x: Any) -> Any:
        return do.branch(x.sum() > 1, Local(), lambda: call(do, f, x=x / 2), fails)

    with pytest.raises((PathEnds, TraceError)):
        call(staging, f, x=x)
    assert staging.session.code.recursions == []
