"""Views that autograd does not let be written: after a branch or loop they are such where a path made them such."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.oracle import same
from tests.runtime.tracer.control.staging import Local, Plain, Staging, tensors


def outcome(run: Any, values: dict[str, Any]) -> Any:
    """What a call gives, with the gradient of ``w``, or how its exception begins."""
    given = tensors(values)
    try:
        found = run(**given)
        if isinstance(found, torch.Tensor) and found.requires_grad:
            found.square().sum().backward()
    except RuntimeError as error:
        return str(error).split(".")[0].split("\n")[0]
    return found, given["w"].grad


def held(staging: Staging, told: Any, *starts: float) -> list[bool]:
    """Hold the trace of ``told`` against plain Python; which of the calls raise."""
    x, w = staging.given("x w")
    run = staging.finish(told(staging, x, w))
    raised = []
    for start in starts:
        values = {"x": [start, 1.0, 1.0], "w": [1.0, 2.0, 3.0]}
        expected = outcome(lambda x, w: told(Plain(), x, w), values)
        got = outcome(run, values)
        assert isinstance(got, str) == isinstance(expected, str), (got, expected)
        if isinstance(expected, str):
            assert got == expected
        else:
            same(got, expected, apart=True)
        raised.append(isinstance(expected, str))
    return raised


VIEWS: dict[str, tuple[Any, Any, list[bool]]] = {
    "a row of unbind or a row": (lambda y: y.unbind()[0], lambda y: y[0], [True, False]),
    "a part of split or a copy": (lambda y: y.split(2)[1], lambda y: y[2:] * 1, [True, False]),
    "a part of chunk on both paths": (lambda y: y.chunk(3)[0], lambda y: y.split(1)[1], [True, True]),
    "no such view": (lambda y: y[:1], lambda y: y[1:2], [False, False]),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_a_write_to_what_a_path_took(kind: str, staging: Staging) -> None:
    first, second, expected = VIEWS[kind]

    def told(do: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
        y = w * 2
        local = Local(v=None)

        def if_true() -> None:
            local.v = first(y)

        def if_false() -> None:
            local.v = second(y)

        do.branch(x.sum() > 0, local, if_true, if_false)
        local.v.mul_(3)
        return y

    assert held(staging, told, 1.0, -9.0) == expected


@pytest.mark.parametrize("write", ["before", "after"])
def test_its_base_is_written(write: str, staging: Staging) -> None:
    """Then such a view may not even be read."""

    def told(do: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
        y = w * 2
        local = Local(v=None)

        def if_true() -> None:
            local.v = y.unbind()[0]
            if write == "before":
                y.mul_(2)

        def if_false() -> None:
            local.v = y[0]

        do.branch(x.sum() > 0, local, if_true, if_false)
        if write == "after":
            y.mul_(2)
        return local.v * 2

    assert held(staging, told, 1.0, -9.0) == [True, False]


def test_such_a_view_from_before_stays_one(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
        y = w * 2
        v = y.unbind()[0]
        local = Local(v=v)

        def if_true() -> None:
            local.v = y[0]

        do.branch(x.sum() > 0, local, if_true, lambda: None)
        v.mul_(3)
        return y

    x, w = staging.given("x w")
    with pytest.raises(RuntimeError, match="Output 0 of Unbind.* is a view and is being modified inplace"):
        told(staging, x, w)


def test_what_is_known_of_the_result(staging: Staging) -> None:
    """Two flags: on one path it is such a view, on that path the base was written; neither is recorded unasked."""
    x, w = staging.given("x w")
    y = w * 2
    local = Local(v=None)

    def if_true() -> None:
        local.v = y.split(1)[1]
        y.mul_(2)

    def if_false() -> None:
        local.v = y[1:2] * 1

    staging.branch(x.sum() > 0, local, if_true, if_false)
    (fixed,) = staging.session.info(local.v).fixed
    assert fixed.output.startswith("Output 1 of Split") and fixed.several and fixed.has_node and fixed.noticed
    assert fixed.when.maybe and fixed.stale.maybe
    op = staging.session.program.block.ops[-1]
    assert len(op.outputs) == 2, "the view, and what y holds"


def test_a_view_of_either_path_is_always_one(staging: Staging) -> None:
    x, w = staging.given("x w")
    y = w * 2
    local = Local(v=None)

    def path(by: int) -> Any:
        def run() -> None:
            local.v = (y * by).unbind()[0]

        return run

    staging.branch(x.sum() > 0, local, path(1), path(2))
    (fixed,) = staging.session.info(local.v).fixed
    assert fixed.when.always and fixed.stale.never and fixed.output.startswith("Output 0 of Unbind")


@pytest.mark.parametrize("where", ["body", "after"])
def test_what_an_iteration_leaves(where: str, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
        y = w * 2
        local = Local(v=y[1], n=0)

        def body() -> None:
            local.n = local.n + 1
            if where == "body":
                local.v.mul_(3)
            local.v = (y * 2).unbind()[0]

        do.loop(local, lambda: local.n < do.number(x.int().sum()), body)
        if where == "after":
            local.v.mul_(3)
        return local.v + y[0]

    assert held(staging, told, -2.0, -1.0, 0.0) == ([False, False, True] if where == "body" else [False, True, True])


def test_a_view_before_a_loop_that_iterations_replace(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
        y = w * 2
        local = Local(v=y.unbind()[0], n=0)

        def body() -> None:
            local.n = local.n + 1
            local.v = y[0] * 2

        do.loop(local, lambda: local.n < do.number(x.int().sum()), body)
        local.v.mul_(3)
        return local.v + y[0]

    assert held(staging, told, -2.0, -1.0, 0.0) == [True, False, False]


def test_a_path_that_raised_counts_for_nothing(staging: Staging) -> None:
    x, w = staging.given("x w")
    y = w * 2
    local = Local(v=y[0])

    def fails() -> None:
        local.v = y.unbind()[0]
        raise ValueError

    def goes_on() -> None:
        local.v = y[1]

    staging.branch(x.sum() > 0, local, fails, goes_on)
    assert staging.session.info(local.v).fixed == ()
