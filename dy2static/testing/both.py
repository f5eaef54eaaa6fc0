"""One call, both ways: converted on what it is given, eagerly on a copy; then everything that can be seen is compared.

    copy what the call is given  ->  run converted on the original  ->  run eagerly on the copy, random state put back
                                 ->  compare exceptions, results, what was changed, random state, gradients

The caller gets the converted call's result. A call that is refused, or cannot be copied, runs eagerly instead. Where
the two differ, eager runs on a second copy: a function that does not repeat itself is no witness.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from dy2static.errors import Dy2StaticError
from dy2static.testing.copies import CannotCopy, Pair, duplicate
from dy2static.testing.report import DIFFERENT, REFUSED, SAME, SKIPPED, UNCOMPARED, Verdict
from dy2static.testing.sameness import Comparison, Different


@dataclass
class Call:
    """A function of an ``owner`` (what it is bound to, in a tuple of none or one) with its arguments."""

    original: Callable[..., Any]
    """Takes the owner first, if there is one."""
    converted: Callable[..., Any]
    """Takes the arguments only."""
    owner: tuple[Any, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def eagerly(self) -> Any:
        """The call as it is without conversion."""
        return self.original(*self.owner, *self.args, **self.kwargs)

    def given(self) -> Any:
        """All that the call reads and may change; the function itself among it, for its closure."""
        return (self.owner, self.args, self.kwargs, self.original)


@dataclass
class Outcome:
    """What a run did."""

    given: Any
    result: Any = None
    error: BaseException | None = None
    random: Any = None
    gradients: list[torch.Tensor | None] = field(default_factory=list)
    no_gradient: str = ""
    """What torch said where there is none to be had."""


def call(what: Call, tolerance: float | None, compare: bool = True) -> tuple[Verdict, Callable[[], Any]]:
    """The verdict on a call, and what gives its result, or raises what it raises."""
    if not compare:
        return _unseen(what)
    try:
        twin, pairs = duplicate(what.given())
    except CannotCopy as reason:
        return Verdict(SKIPPED, text=f"its arguments cannot be copied: {reason}"), what.eagerly
    odd = _difference(Outcome(what.given()), Outcome(twin), tolerance)
    state = random_state()
    try:
        outcome = Outcome(what.given(), result=what.converted(*what.args, **what.kwargs))
    except Dy2StaticError as error:
        set_random_state(state)
        return refusal(error), what.eagerly
    except Exception as error:
        outcome = Outcome(what.given(), error=error)
    outcome.random = random_state()
    inputs = [pair for pair in pairs if pair.original.is_leaf or _version(pair.original) == pair.version]
    differentiable = outcome.error is None and not _has_hooks(what, pairs)
    if differentiable:
        _differentiate(outcome, [pair.original for pair in inputs])
    found = _judged(what, outcome, twin, inputs, differentiable, state, tolerance)
    set_random_state(outcome.random)
    if odd and found.text == odd:  # a class that copies itself in part
        found = Verdict(SKIPPED, text=f"a copy of its arguments is not like them: {odd}")
    if found.kind == DIFFERENT and outcome.error is not None:
        return _confirmed(what, outcome.error, found, state)
    return found, lambda: _given_back(outcome)


def _confirmed(
    what: Call, error: BaseException, found: Verdict, state: Any
) -> tuple[Verdict, Callable[[], Any]]:
    """The verdict where converted code raises: eager may raise the same on the original, if not on its copy."""
    set_random_state(state)
    again = Outcome(None)
    _run(again, what.eagerly)
    return (Verdict(SAME) if type(again.error) is type(error) else found), lambda: _given_back(again)


def _unseen(what: Call) -> tuple[Verdict, Callable[[], Any]]:
    """A call that runs converted and is not compared."""
    state = random_state()
    try:
        result = what.converted(*what.args, **what.kwargs)
    except Dy2StaticError as error:
        set_random_state(state)
        return refusal(error), what.eagerly
    except Exception as error:
        failed = Outcome(None, error=error)
        return Verdict(UNCOMPARED), lambda: _given_back(failed)
    return Verdict(UNCOMPARED), lambda: result


def refusal(error: Dy2StaticError) -> Verdict:
    """The verdict for a call that an error refused."""
    place = error.location
    where = "" if place is None else f" at {_shown(place.file)}:{place.line}"
    return Verdict(REFUSED, error.code, f"{error.summary}{where}")


def _judged(
    what: Call, outcome: Outcome, twin: Any, inputs: Sequence[Pair], differentiable: bool, state: Any,
    tolerance: float | None,
) -> Verdict:
    """Run eagerly on the copy, and on a second one where something differs."""
    try:
        second, pairs = duplicate(twin)
    except CannotCopy as reason:
        return Verdict(SKIPPED, text=f"a copy of its arguments cannot be copied: {reason}")
    leaf_of = {id(pair.original): pair.leaf for pair in pairs}
    if not all(id(pair.twin) in leaf_of for pair in inputs):
        return Verdict(SKIPPED, text="a tensor of a class of its own copies itself in a way of its own")
    second_leaves = [leaf_of[id(pair.twin)] for pair in inputs]
    eager = _eager(twin, [pair.leaf for pair in inputs], differentiable, state)
    found = _difference(outcome, eager, tolerance)
    if not found:
        return Verdict(SAME)
    if _difference(_eager(second, second_leaves, differentiable, state), eager, tolerance):
        return Verdict(SKIPPED, text="eager does not repeat itself on equal arguments")
    if outcome.error is None and eager.error is not None and not _raises(what, state, eager.error):
        return Verdict(SKIPPED, text=f"eager raises {type(eager.error).__name__} on a copy of the arguments only")
    return Verdict(DIFFERENT, text=found)


def _raises(what: Call, state: Any, error: BaseException) -> bool:
    after = random_state()
    set_random_state(state)
    again = Outcome(None)
    try:
        second, _ = duplicate(what.given())
    except CannotCopy:
        return True
    with _quiet():
        _run(again, lambda: second[3](*second[0], *second[1], **second[2]))
    set_random_state(after)
    return type(again.error) is type(error)


def _eager(given: Any, leaves: Sequence[torch.Tensor], may_differentiate: bool, state: Any) -> Outcome:
    owner, args, kwargs, original = given
    set_random_state(state)
    outcome = Outcome(given)
    with _quiet():
        _run(outcome, lambda: original(*owner, *args, **kwargs))
        outcome.random = random_state()
        if may_differentiate and outcome.error is None:
            _differentiate(outcome, leaves)
    return outcome


def _run(outcome: Outcome, function: Callable[[], Any]) -> None:
    try:
        outcome.result = function()
    except Exception as error:  # whatever eager raises is what is compared
        outcome.error = error


def _difference(got: Outcome, expected: Outcome, tolerance: float | None) -> str:
    walk = Comparison(tolerance)
    if type(got.error) is not type(expected.error):
        return f"{_raised(got.error)}, and in eager {_raised(expected.error)}"
    try:
        for name, one, other in zip(("self", "args", "kwargs"), got.given, expected.given):
            walk.compare(one, other, name)
        walk.compare(got.result, expected.result, "result")
        if got.random is not None and not _same_state(got.random, expected.random):
            raise Different("the state of a random generator afterwards differs")
        if bool(got.no_gradient) != bool(expected.no_gradient):
            raise Different(f"gradients: {got.no_gradient or 'there are some'}, "
                            f"and in eager {expected.no_gradient or 'there are some'}")  # fmt: skip
        for index, (one, other) in enumerate(zip(got.gradients, expected.gradients)):
            path = f"the gradient of input {index}"
            if (one is None) != (other is None):
                raise Different(f"{path} is {_is(one)}, and in eager {_is(other)}")
            if one is not None and other is not None:
                if one.shape != other.shape or one.dtype != other.dtype:
                    raise Different(f"{path} is {one.dtype}{tuple(one.shape)}, and in eager "
                                    f"{other.dtype}{tuple(other.shape)}")  # fmt: skip
                walk.values(one, other, path)
    except Different as found:
        return str(found)
    return ""


def _is(gradient: torch.Tensor | None) -> str:
    return "None" if gradient is None else "a tensor"


def _raised(error: BaseException | None) -> str:
    return "nothing is raised" if error is None else f"{type(error).__name__} is raised ({_short(error)})"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _differentiate(outcome: Outcome, inputs: Sequence[torch.Tensor]) -> None:
    loss = _loss([tensor for tensor in _tensors(outcome.result, set()) if tensor.requires_grad])
    if loss is None or not inputs:
        return
    try:
        outcome.gradients = list(torch.autograd.grad(loss, list(inputs), retain_graph=True, allow_unused=True))
    except (RuntimeError, NotImplementedError, Dy2StaticError) as error:
        outcome.no_gradient = _short(error)


def _loss(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """A number in which every element counts, each with its own weight."""
    total = None
    for index, tensor in enumerate(tensors):
        with torch.enable_grad(), torch.autocast(tensor.device.type, enabled=False):
            value = tensor.to_dense() if tensor.layout is not torch.strided else tensor
            value = torch.view_as_real(value) if value.is_complex() else value
            value = value.double() if value.device.type != "mps" else value.float()
            weights = (torch.arange(value.numel(), device=value.device) % 3 + index + 1).reshape(value.shape)
            part = (value * weights).sum()
            total = part if total is None else total + part.to(total.device)
    return total


def _tensors(value: Any, seen: set[int]) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item, seen)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        yield from _tensors(dict(vars(value)), seen)


def _has_hooks(what: Call, pairs: Sequence[Pair]) -> bool:
    """Whether a gradient would run hooks of the user's, which count or change something."""
    if any(pair.original._backward_hooks for pair in pairs):
        return True
    modules = [one for owner in what.owner if isinstance(owner, torch.nn.Module) for one in owner.modules()]
    return any(one._backward_hooks or one._backward_pre_hooks for one in modules)


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _given_back(outcome: Outcome) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


def random_state() -> Any:
    """The state of all generators that code uses without naming one."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    return torch.get_rng_state(), random.getstate(), np.random.get_state(), cuda


def set_random_state(state: Any) -> None:
    """Put back what ``random_state`` gave."""
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    np.random.set_state(state[2])
    if state[3]:
        torch.cuda.set_rng_state_all(state[3])


def _same_state(one: Any, other: Any) -> bool:
    same = torch.equal(one[0], other[0]) and one[1] == other[1] and all(map(torch.equal, one[3], other[3]))
    return bool(same and all(np.array_equal(a, b) for a, b in zip(one[2], other[2])))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What eager prints, warns and logs was seen once already."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):  # fmt: skip
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _shown(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


__all__ = ["Call", "call", "random_state", "refusal", "set_random_state"]
