"""Metadata of results: torch's rules where they hold, eager's errors where they raise, ours where they are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime import torch_internals
from runtime.ops import aten
from runtime.tracer.recording import faults, shape_rules
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


Rule = Callable[[Any, Callable[..., Any]], None]


@pytest.fixture
def rule(monkeypatch: pytest.MonkeyPatch) -> Rule:
    """``rule(func, says)``: what the shape rule of an operator does instead of its own."""
    def replace(func: Any, says: Callable[..., Any]) -> None:
        own = torch_internals.fake_call

        def call(mode: Any, one: Any, args: Any, kwargs: Any, casting: Any = ()) -> Any:
            return says(*args) if one is func else own(mode, one, args, kwargs, casting)

        monkeypatch.setattr(torch_internals, "fake_call", call)

    return replace


def mistaken(*args: Any) -> Any:
    raise ValueError("a mistake in the rule")


EAGER: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "view": lambda x, m: x.view(4),
    "product": lambda x, m: m @ m,
    "broadcast": lambda x, m: x[:2] + m,
    "cat": lambda x, m: torch.cat([x, m]),
    "dimension": lambda x, m: m.sum(2),
    "index": lambda x, m: m[5],
    "dtype": lambda x, m: torch.linalg.inv(m[:, :2].long()),
    "square": lambda x, m: torch.linalg.cholesky(m),
    "in place": lambda x, m: x.clone().add_(m),
}


@pytest.mark.parametrize("name", EAGER)
def test_a_rule_that_raises_is_eagers_error(name: str, as_eager: Any) -> None:
    error = as_eager(EAGER[name], torch.ones(3), torch.ones(2, 3))
    assert not faults.is_ours(error)


def test_an_operator_without_a_rule(given: Any, made: Any, refused: Any) -> None:
    with torch.library._scoped_library("of_shape_rules", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        func = torch.ops.of_shape_rules.twice.default
        with refused("D2S232", "func(x)", said="the operator of_shape_rules.twice.default has no shape rule"):
            made(lambda x: func(x), given("x", 3))


def test_a_rule_that_raises_where_the_operator_does_not(
    rule: Rule, session: Session, given: Any, made: Any, recorded: Any
) -> None:
    """The operator is tried: its result is taken to be like the real one, and held against that in the run."""
    rule(torch.ops.aten.tril.default, mistaken)
    y = made(lambda x: torch.tril(x), given("x", 3, 2))
    assert tuple(y.shape) == (3, 2) and recorded() == ["aten.tril.default"]
    assert session.program.block.ops[-1].attrs == {aten.CHECKED: [[torch.float32, [3, 2], [0, 1]]]}


def test_a_rule_that_raises_where_the_operator_gives_its_argument(
    rule: Rule, given: Any, made: Any, refused: Any
) -> None:
    """Which memory that is a trial on other tensors does not tell."""
    rule(torch.ops.aten.t.default, mistaken)
    with refused("D2S235", "x.t()", said="its shape rule raises ValueError (a mistake in the rule), and the operator"):
        made(lambda x: x.t(), given("x", 3, 2))


def test_a_rule_that_says_something_else_than_the_operator(rule: Rule, given: Any, made: Any) -> None:
    rule(torch.ops.aten.tril.default, mistaken)
    with pytest.raises(RuntimeError) as expected:
        torch.tril(torch.ones(3))
    with pytest.raises(RuntimeError) as found:
        made(lambda x: torch.tril(x), given("x", 3))
    assert found.value.args == expected.value.args and faults.is_vetted(found.value)


def test_a_rule_that_raises_for_sizes_of_which_some_work(rule: Rule, given: Any, made: Any, refused: Any) -> None:
    rule(torch.ops.aten.pixel_shuffle.default, mistaken)
    with refused("D2S235", "torch.pixel_shuffle(x, 2)", said="whether pixel_shuffle works here depends on sizes"):
        made(lambda x: torch.pixel_shuffle(x, 2), given("x", None, 2, 2))


def test_a_size_for_which_some_calls_raise(session: Session, given: Any, made: Any) -> None:
    """A rule that settles a size makes it a fact of the Program; one that raises settles nothing."""
    x = given("x", None)
    made(lambda: x + torch.ones(5))
    assert [one.expr for one in session.program.assumes] == ["Eq(s0, 5)"]
    y = given("y", None, 3)
    with pytest.raises(RuntimeError):
        made(lambda: y + torch.ones(5))
    assert [one.expr for one in session.program.assumes] == ["Eq(s0, 5)"] and type(y.shape[0]) is torch.SymInt


def test_joining_vectors_without_elements(given: Any, made: Any) -> None:
    """``cat`` passes over them, whatever the others' rank is."""
    m = given("m", 2, 3)
    some = made(lambda x: x[x > 0], given("x", 3))
    assert tuple(made(lambda: torch.cat([some, m])).shape) == (2, 3)
    with pytest.raises(RuntimeError):
        made(lambda: torch.cat([torch.ones(3), m]))


def test_places_of_out(session: Session, given: Any) -> None:
    out, x = given("out", 3), given("x", 2)
    func = torch.ops.aten.neg.out
    (found,) = shape_rules.places(func, [x], {"out": out})
    assert found == (out, (torch.Size([3]), (1,), 0))
    assert shape_rules.places(torch.ops.aten.neg.default, [x], {}) == []
    assert shape_rules.resized(session, func, [x], {"out": out}, [found]) and out.shape == (2,)
    shape_rules.put_back(session, [found])
    assert (out.shape, out.stride(), out.storage_offset()) == ((3,), (1,), 0)


def test_what_stands_for_the_arguments(session: Session, given: Any) -> None:
    x, real = given("x", 2), torch.ones(3)
    args, kwargs = shape_rules.call_fakes(session, [x, [real, (1, x)]], {"other": real, "alpha": 2})
    lifted = session.fake(real)
    assert args[0] is x and args[1][0] is lifted and args[1][1][1] is x and kwargs["other"] is lifted
    assert type(args[1][1]) is tuple and kwargs["alpha"] == 2 and len(session.program.params) == 1
