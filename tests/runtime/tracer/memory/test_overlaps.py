"""In-place calls that read other elements of what they write, on some paths only: a run raises where eager does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.ir.walk import blocks
from runtime.tracer.memory import aliases
from runtime.tracer.memory.conditions import ALWAYS
from runtime.tracer.recording.session import Session
from tests.runtime.tracer.control.staging import Local, Plain, Staging

Tensor = torch.Tensor
CALLS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "shifted": lambda y, z: y[1:].add_(z[:-1]),
    "the read one is written": lambda y, z: z[1:].mul_(y[:-1]),
    "the same elements": lambda y, z: y.add_(z),
    "the same part": lambda y, z: y[1:].add_(z[1:]),
    "apart": lambda y, z: y[2:].add_(z[:-2]),
    "every second": lambda y, z: y[::2].add_(z[1::2]),
    "a copy of other elements": lambda y, z: y[1:].copy_(z[:-1]),
    "one element": lambda y, z: y.add_(z[0]),
    "of two operands": lambda y, z: y[1:].addcmul_(z[:-1], y[1:]),
    "of two operands that are both read elsewhere": lambda y, z: y[1:].addcmul_(z[:-1], z[:-1], value=2),
    "an option": lambda y, z: y[1:].add_(z[:-1], alpha=2),
    "an output": lambda y, z: torch.mul(z[:-1], 2, out=y[1:]),
    "a list": lambda y, z: torch.cat([z[:2], z[:2]], out=y),
    "the next of a list": lambda y, z: torch._foreach_add_([y[1:]], [z[:-1]]),
    "sorted": lambda y, z: torch.sort(z, out=(y, torch.zeros(4, dtype=torch.int64))),
    "gathered": lambda y, z: torch.gather(z, 0, 3 - torch.arange(4), out=y),
    "a running sum of itself": lambda y, z: y.cumsum_(0).add_(z),
    "transposed": lambda y, z: y.view(2, 2).add_(z.view(2, 2).t()),
    "two that are written": lambda y, z: torch.max(z.view(2, 2), 0, out=(y[:2], torch.zeros(2, dtype=torch.int64))),
    "a mask": lambda y, z: y[1:].masked_fill_(z[:-1] > 2, 0),
}  # fmt: skip


OF_VIEWS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "the view is written": lambda y, z: z.add_(y[:3]),
    "a part of the view is written": lambda y, z: z[1:].add_(y[:2]),
    "the view is read": lambda y, z: y[:3].add_(z),
    "what the view shows": lambda y, z: z.add_(y[1:]),
    "what the view does not show": lambda y, z: y[:1].add_(z[:1]),
    "both are written": lambda y, z: torch._foreach_add_([z[1:], y[:1]], [y[:2], z[:1]]),
}  # fmt: skip


def told(do: Any, call: Callable[[Tensor, Tensor], Any], x: Tensor, first: int = 0) -> Any:
    """``z`` is ``y[first:]`` where the sum of ``x`` is positive, and a copy of it elsewhere."""
    y = x * 1
    local = Local(z=None)

    def shows() -> None:
        local.z = y[first:] if first else y

    def copies() -> None:
        local.z = y[first:].clone()

    do.branch(x.sum() > 0, local, shows, copies)
    call(y, local.z)
    return y.clone(), local.z.clone()


def outcome(run: Callable[[], Any]) -> Any:
    try:
        return [one.tolist() for one in run()]
    except RuntimeError as error:
        return type(error), str(error).splitlines()[0]


@pytest.mark.parametrize(("name", "first"), [*((name, 0) for name in CALLS), *((name, 1) for name in OF_VIEWS)])
def test_a_run_raises_where_eager_does(name: str, first: int, session: Session, given: Any) -> None:
    call, staging, x = {**CALLS, **OF_VIEWS}[name], Staging(session), given("x", 4)
    staging.enter()
    run = staging.finish(told(staging, call, x, first))
    for values in ([1.0, 2.0, 3.0, 4.0], [-1.0, -2.0, -3.0, -4.0]):
        eager = outcome(lambda: told(Plain(), call, torch.tensor(values), first))
        assert outcome(lambda: run(x=torch.tensor(values))) == eager


def test_some_of_them_raise() -> None:
    """Else they would show nothing."""
    raising = {name for name, call in CALLS.items()
               if isinstance(outcome(lambda: told(Plain(), call, torch.arange(4.0))), tuple)}  # fmt: skip
    assert {"shifted", "the read one is written", "an output", "a list", "transposed"} < raising
    assert raising.isdisjoint({"the same elements", "the same part", "apart", "every second"})


@pytest.fixture
def repeats(session: Session) -> Callable[[], int]:
    """How many calls are recorded once more, to raise."""
    def count() -> int:
        found = [op for block in blocks(session.program) for op in block.ops if "repeats" in op.attrs]
        assert all(op.grad_mode == "off" for op in found), "they have no part in the graph"
        return len(found)

    return count


def test_memory_that_is_known_is_asked_for_nothing(given: Any, made: Any, repeats: Any) -> None:
    x, z = given("x", 4), given("z", 4)
    made(lambda: x[1:].add_(z[:-1]))
    assert repeats() == 0


ONCE: dict[str, tuple[Callable[[Tensor, Tensor], Any], int]] = {
    "other elements": (lambda y, z: y[1:].add_(z[:-1]), 1), "the same ones": (lambda y, z: y[1:].add_(z[1:]), 0),
    "not element by element": (lambda y, z: torch.cumsum(z, 0, out=y), 1),
    "random": (lambda y, z: y[1:].bernoulli_(z[:-1]), 0), "another tensor": (lambda y, z: y.add_(1), 0),
    "twice": (lambda y, z: y[2:].addcmul_(z[:-2], z[1:-1]), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", ONCE)
def test_what_is_recorded_once_more(name: str, session: Session, given: Any, made: Any, repeats: Any) -> None:
    call, times = ONCE[name]
    y, z = made(lambda x: (x * 1, x * 2), given("x", 4))
    aliases.add(session.info(z).storage, session.info(y).storage, (), ALWAYS)
    made(lambda: call(y, z))
    assert repeats() == times


def test_views_that_meet_in_a_third_memory(session: Session, given: Any, made: Any, repeats: Any) -> None:
    y, z, base = made(lambda x: (x * 1, x * 2, x * 3), given("x", 4))
    steps = session.info(made(lambda: base[1:])).steps
    y, z = made(lambda: (y[:3].clone(), z[:3].clone()))
    aliases.add(session.info(y).storage, session.info(base).storage, (), ALWAYS)
    aliases.add(session.info(z).storage, session.info(base).storage, steps, ALWAYS)
    made(lambda: y.add_(z))
    assert repeats() == 1


def test_two_ways_through_one_memory_are_its_matter(session: Session, given: Any, made: Any, repeats: Any) -> None:
    """Both are views of ``near`` first: that it is one memory with ``far`` shows nothing more."""
    far, near = made(lambda x: (x * 1, x * 2), given("x", 4))
    one, other = made(lambda: (near * 1, near * 2))
    for tensor in (one, other):
        aliases.add(session.info(tensor).storage, session.info(near).storage, (), ALWAYS)
    aliases.add(session.info(near).storage, session.info(far).storage, (), ALWAYS)
    made(lambda: one[1:].add_(other[:-1]))
    assert repeats() == 1
