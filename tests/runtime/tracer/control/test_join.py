"""One structure for what the paths of a construct bring out, and what of it is there without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from runtime.ir import UNDEF
from runtime.tracer.control.branches import Path, include_new, trace_path
from runtime.tracer.control.join import NOWHERE, Join, outside
from runtime.tracer.values.structure import (
    PLAIN,
    Array,
    Choice,
    Fields,
    Known,
    ListContent,
    Number,
    Options,
    Sequence,
    Tensor,
)
from tests.runtime.tracer.control.staging import Local, Staging


class Pair(NamedTuple):
    first: Any
    second: Any


def joined(staging: Staging, *runs: Callable[[], Any]) -> tuple[Join, list[Path]]:
    """A join of some paths, which nothing was added to."""
    session = staging.session
    entry = session.storages.snapshot()
    paths = [trace_path(session, "cond", Local(), run) for run in runs]
    include_new(entry, paths)
    return Join(session, paths, entry, PLAIN), paths


def fails() -> None:
    raise ValueError


KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Any]] = {
    "the same number": (lambda x: 1, lambda x: 1, Known),
    "the same text": (lambda x: "a", lambda x: "a", Known),
    "nothing": (lambda x: None, lambda x: None, Known),
    "the same tensor": (lambda x: x, lambda x: x, Known),
    "numbers": (lambda x: 1, lambda x: 2, Number),
    "zeros of two signs": (lambda x: 0.0, lambda x: -0.0, Number),
    "a number and a bool": (lambda x: 1, lambda x: True, Options),
    "a number and a float": (lambda x: 1, lambda x: 1.0, Options),
    "bools": (lambda x: True, lambda x: False, Number),
    "texts": (lambda x: "a", lambda x: "b", Options),
    "a text and nothing": (lambda x: "a", lambda x: None, Options),
    "tensors": (lambda x: x * 2, lambda x: x * 3, Tensor),
    "tensors of two sizes": (lambda x: x[:1] * 2, lambda x: x * 3, Tensor),
    "tensors of two dtypes": (lambda x: x.int(), lambda x: x * 3, Options),
    "a tensor and nothing": (lambda x: x * 2, lambda x: None, Options),
    "tuples": (lambda x: (x, 1), lambda x: (x * 2, 1), Sequence),
    "tuples of two lengths": (lambda x: (x,), lambda x: (x, x), Options),
    "contents of lists": (lambda x: ListContent([x]), lambda x: ListContent([x * 2]), Sequence),
    "contents of lists of two lengths": (lambda x: ListContent([x]), lambda x: ListContent([x, x]), Array),
    "named tuples": (lambda x: Pair(x, 1), lambda x: Pair(x, 2), Fields),
    "a list and another one": (lambda x: [1], lambda x: [1], Options),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_structure_of_two_values(kind: str, staging: Staging) -> None:
    first, second, wanted = KINDS[kind]
    x = staging.given("x")
    join, paths = joined(staging, lambda: first(x), lambda: second(x))
    join.add([path.result for path in paths], "hint")
    ((values, found, hint),) = join.items
    assert isinstance(found, wanted) and hint == "hint" and [a is b.result for a, b in zip(values, paths)] == [True] * 2


def test_values_of_paths_that_ended_or_have_none_are_not_looked_at(staging: Staging) -> None:
    x = staging.given("x")
    join, _ = joined(staging, lambda: 1, fails, lambda: 2, lambda: None)
    join.add([x, object(), x, NOWHERE])
    join.add([1, "ended", 2, NOWHERE])
    join.add([NOWHERE, "ended", NOWHERE, NOWHERE])
    first, second, third = (item for _, item, _ in join.items)
    assert isinstance(first, Known) and first.value is x
    assert isinstance(second, Number) and isinstance(third, Known) and third.value is None


def test_what_one_path_alone_made_is_carried_out_of_it(staging: Staging) -> None:
    """Also where no other path goes on: outside of the path it means nothing."""
    x = staging.given("x")
    join, paths = joined(staging, lambda: (x * 2, 1), fails)
    join.add([path.result for path in paths])
    join.add([(x, 1), None])
    made, known = (item for _, item, _ in join.items)
    assert isinstance(made, Sequence) and isinstance(made.items[0], Tensor) and isinstance(known, Known)


def test_the_options_of_a_choice_given_back_in_order_are_the_choice(staging: Staging) -> None:
    x = staging.given("x")
    choice = Choice(staging.number(x.int().sum()), (x, None))
    join, _ = joined(staging, lambda: None, lambda: None)
    join.add(list(choice.options), of=choice)
    join.add(list(reversed(choice.options)), of=choice)
    first, second = (item for _, item, _ in join.items)
    assert isinstance(first, Known) and first.value is choice and isinstance(second, Options)


def test_the_operator_yields_what_differs(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    flag = staging.truth(x.sum() > 0)
    join, paths = joined(staging, lambda: x * 2, lambda: x + 1)
    join.add([path.result for path in paths], "y")
    join.add([1, 2], "n")
    join.add(["a", "a"], "same")
    y, n, same = join.emit("cond", flag, None)
    op = session.program.block.ops[-1]
    assert op.name == "cond" and op.args == (flag.var,) and [out.hint for out in op.outputs] == ["y", "n"]
    assert session.read(y) is op.outputs[0] and n.var is op.outputs[1] and same == "a"
    assert [block.yields for block in op.blocks] == [
        [path.scope.block.ops[-1].outputs[0], number] for path, number in zip(paths, (1, 2))
    ]  # fmt: skip
    run = staging.finish((y, n))
    assert torch.equal(run(x=torch.ones(3))[0], torch.full((3,), 2.0)) and run(x=-torch.ones(3))[1] == 2


def test_a_path_that_ended_yields_nothing_that_is_defined(staging: Staging) -> None:
    x = staging.given("x")
    flag = staging.truth(x.sum() > 0)
    join, paths = joined(staging, lambda: x * 2, fails)
    join.add([paths[0].result, None])
    join.emit("cond", flag, None)
    assert paths[1].scope.block.yields == [UNDEF]


def test_no_values_where_no_path_goes_on(staging: Staging) -> None:
    x = staging.given("x")
    flag = staging.truth(x.sum() > 0)
    join, _ = joined(staging, fails, fails)
    join.add([1, 2])
    assert join.emit("cond", flag, None) == [] and staging.session.program.block.ops[-1].outputs == ()


def test_two_variables_that_are_one_object_on_every_path_are_one_after(staging: Staging) -> None:
    x = staging.given("x")
    flag = staging.truth(x.sum() > 0)
    join, (a, b) = joined(staging, lambda: (x * 2, x * 2), lambda: (x + 1, x + 2))
    join.add([a.result[0], b.result[0]])
    join.add([a.result[0], b.result[0]])
    join.add([a.result[0], b.result[1]])
    join.add([a.result[1], b.result[1]])
    first, again, third, fourth = join.emit("cond", flag, None)
    assert first is again and first is not third and third is not fourth


def test_what_tells_the_path_in_the_same_way_is_one_variable(staging: Staging) -> None:
    """What several values are is then known together."""
    x = staging.given("x")
    flag = staging.truth(x.sum() > 0)
    join, _ = joined(staging, lambda: None, lambda: None)
    for values in (["a", None], ["b", None], [None, "c"], [1, 0]):
        join.add(list(values))
    one, two, three, number = join.emit("cond", flag, None)
    assert one.selector.var is two.selector.var and len(one.options) == len(two.options) == 2
    assert three.selector.var is one.selector.var and number.var is not one.selector.var


def test_what_exists_outside(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    number = staging.number(x.int().sum())
    entry = session.storages.snapshot()

    def run() -> None:
        made, inner = x * 2, number + 1
        view, late = x[1:], torch.select(x, 0, 0)
        there = [x, number, 1, "a", None, (x, [number]), {"a": x}, Pair(x, 1), view, late, Choice(number, (x, None))]
        new = [made, inner, (x, [inner]), {"a": made}, Pair(1, made), made[0], Choice(inner, (x, None)),
               Choice(number, (x, made))]  # fmt: skip
        path_scope = session.scope
        assert path_scope.parent is not None
        with session.reopen(path_scope.parent):
            assert [outside(session, entry, one) for one in there] == [True] * len(there)
            assert [outside(session, entry, one) for one in new] == [False] * len(new)

    assert not trace_path(session, "cond", Local(), run).ended
