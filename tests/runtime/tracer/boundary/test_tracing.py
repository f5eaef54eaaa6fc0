"""One trace from the arguments to the Program, and what it leaves of the caller's world: nothing but the Program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from dy2static import TraceError
from runtime.ir.printer import print_operand
from runtime.torch_internals import ambient_modes
from runtime.tracer.ambient import state
from runtime.tracer.boundary import tracing
from runtime.tracer.boundary.tracing import Traced, flatten, live_tensor, trace
from runtime.tracer.memory.inputs import LiveParameter
from runtime.tracer.python_state.journal import Place

ONE = torch.ones(3)


def traced(function: Any, **bound: Any) -> Traced:
    return trace(function, flatten(bound), name="f")


def names(made: Traced) -> list[str]:
    return [op.name for op in tracing.operators(made.program)]


def test_a_program_and_its_output() -> None:
    made = traced(lambda x, k: ([x * k], x), x=ONE, k=3)
    assert names(made) == ["aten.mul.Tensor"] and made.program.name == "f"
    assert print_operand(made.program.output) == "([$0], $1)" and list(made.views) == [1]
    assert [one.name for one in made.program.inputs] == ["x"] and state.active() is None


def test_open_sizes_and_another_call() -> None:
    seen: list[Any] = []

    def call(function: Any, bound: dict[str, Any]) -> Any:
        seen.append(sorted(bound))
        return function(bound["x"], 2)

    made = trace(lambda x, k: x.shape[0] * k, flatten({"x": ONE}), name="f", dynamic={"x": frozenset((0,))}, call=call)
    assert names(made) == ["scalar.size", "scalar.mul"] and seen == [["x"]]


def test_stores_are_effects_and_put_back() -> None:
    rows, table = [ONE], {"a": 1}

    def function(xs: Any, d: Any) -> Any:
        xs.append(xs[0] * 2)
        d["b"] = 2
        d["a"] = 1
        return len(xs)

    made = traced(function, xs=rows, d=table)
    assert made.program.output == 2 and len(rows) == 1 and table == {"a": 1}
    assert [(one.path, print_operand(one.tree)) for one in made.effects] == [
        (("xs",), "[$0, $1]"), (("d",), '{"a": 1, "b": 2}'),
    ]  # fmt: skip
    assert traced(lambda xs: xs.append(1) or xs.pop(), xs=[ONE]).effects == [], "what is as before is no effect"


def test_a_global_name_is_put_back() -> None:
    world: dict[str, Any] = {"__name__": "m", "COUNT": 1, "SAME": ONE}

    def function(x: Any) -> Any:
        for name, value in (("COUNT", 2), ("SAME", ONE), ("NEW", x)):
            state.current().journal.note(Place("global", world, name))
            world[name] = value
        return world["COUNT"]

    made = traced(function, x=ONE.clone())
    assert made.program.output == 2 and world == {"__name__": "m", "COUNT": 1, "SAME": ONE}
    assert [(one.place.name, print_operand(one.tree), one.path) for one in made.effects] == [
        ("COUNT", "2", None), ("NEW", "$0", None),
    ]  # fmt: skip


def test_writes_name_the_argument_and_the_yield() -> None:
    x, y = ONE.clone(), ONE.clone()
    made = traced(lambda x, y: y.add_(x).sum(), x=x, y=y)
    [write] = made.program.writes
    assert write.target is made.program.inputs[1].var and torch.equal(y, ONE)
    assert made.program.block.yields[write.index] is not write.target


def test_parameters_are_read_where_they_are_now() -> None:
    layer = torch.nn.Linear(3, 1)
    layer.register_buffer("scale", torch.ones(1))
    made = traced(lambda x: layer(x) * layer.scale, x=ONE)
    before = made.parameters()
    assert len(before) == 3
    layer.weight, layer.scale = torch.nn.Parameter(torch.zeros(1, 3)), torch.zeros(1)
    now = {id(one) for one in made.parameters()}
    assert now == set(map(id, (layer.weight, layer.bias, layer.scale))) and len(now - set(map(id, before))) == 2


def test_where_a_live_tensor_is() -> None:
    class Holder:
        kept = ONE

    layer, real = torch.nn.Linear(1, 1), torch.zeros(1)
    parameter: Any = None
    assert live_tensor(LiveParameter(parameter, real)) is real
    assert live_tensor(LiveParameter(parameter, real, layer, "bias")) is layer.bias
    assert live_tensor(LiveParameter(parameter, real, Holder(), "kept")) is ONE
    layer.plain = ONE
    assert live_tensor(LiveParameter(parameter, real, layer, "plain")) is ONE


def test_inputs_of_a_call() -> None:
    arguments = flatten({"x": ONE, "d": {"y": ONE * 2}})
    made = trace(lambda x, d: x + d["y"], arguments, name="f")
    assert [id(one) for one in made.inputs(arguments)] == [id(one) for one in arguments.tensors]
    base = torch.zeros(6)
    shared = flatten({"x": base[:4], "y": base[2:]})
    made = trace(lambda x, y: x.add_(1).sum() + y.sum(), shared, name="f")
    (*own, whole) = made.inputs(shared)
    assert list(map(id, own)) == list(map(id, shared.tensors)) and whole.numel() == 6
    assert whole.data_ptr() == base.data_ptr()


def test_an_error_after_which_something_is_to_be_done_is_raised_by_the_program() -> None:
    def function(x: Any, writes: bool) -> Any:
        if writes:
            x.add_(1)
        raise KeyError("a")

    made = traced(function, x=ONE.clone(), writes=True)
    assert names(made)[-1] == "raise" and made.program.output is None and made.ends_in is None
    assert KeyError in made.raised.values() and len(made.program.writes) == 1
    with pytest.raises(KeyError, match="a"):
        traced(function, x=ONE.clone(), writes=False)


def test_a_trace_that_fails_leaves_nothing() -> None:
    rows = [ONE]

    def function(xs: Any) -> Any:
        xs.append(1)
        return iter([xs[0]])

    with pytest.raises(TraceError):
        traced(function, xs=rows)
    assert len(rows) == 1 and state.active() is None


def test_modes_have_to_be_put_back() -> None:
    before = ambient_modes()

    def function(x: Any) -> Any:
        torch.set_grad_enabled(False)
        return x

    with pytest.raises(TraceError) as caught:
        traced(function, x=ONE)
    assert caught.value.code == "D2S214" and ambient_modes() == before and torch.is_grad_enabled()


def test_contexts_are_entered_around_each_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    @contextlib.contextmanager
    def context(session: Any) -> Iterator[None]:
        told.append(session.program.name)
        yield
        told.append("end")

    monkeypatch.setattr(tracing, "trace_contexts", [context])
    traced(lambda x: told.append("run"), x=ONE)
    assert told == ["f", "run", "end"]


def test_the_same_content() -> None:
    one, other = object(), object()
    same = tracing._same_content
    assert same([1, one], [1, one]) and not same([1, one], [1, other]) and not same([1], [1, 1])
    assert same({"a": one}, {"a": one}) and not same({"a": one}, {"b": one}) and not same({"a": one}, {"a": other})
    assert not same({"a": 1, "b": 2}, {"b": 2, "a": 1}), "the order of the keys is seen"
    assert same({1, 2}, {2, 1}) and not same({1}, {2})


def test_iterators_among_arguments() -> None:
    one, other = iter([1]), iter("a")
    held: list[Any] = [one, {"a": (other,), "b": 3}]
    held.append(held)
    assert list(tracing._iterators(held, set())) == [one, other] and list(tracing._iterators([[], "ab"], set())) == []
