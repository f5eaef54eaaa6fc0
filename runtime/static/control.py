"""Control flow of Programs that are built by hand: ``cond``, ``while_loop``, ``case``, ``switch_case``.

Each path is a function that torch is called in; it is called once, while it is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.errors import ProgramError
from runtime.static.guard import Guard, current
from runtime.tracer.ambient import state
from runtime.tracer.control import cond as branches
from runtime.tracer.control import while_loop as loops
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.session import Session

Branch = Callable[[], Any]


class _Names:
    """The values that a loop carries, in the place of local variables."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.names = tuple(f"loop_var_{number}" for number in range(len(values)))
        self.values = tuple(values)

    def get(self) -> tuple[Any, ...]:
        return self.values

    def set(self, values: tuple[Any, ...]) -> None:
        self.values = tuple(values)

    def holds(self, place: Place) -> bool:
        return False


def _recorded(run: Callable[[Session, Guard], Any]) -> Any:
    """Run something that stages, in the main Program; inside of another path as well."""
    guard = current()
    active = state.active()
    if active is None:
        with guard.main.recording(guard.translation()) as session:
            return run(session, guard)
    if active is not guard.main.session:
        raise ProgramError("control flow is part of the main Program, and a startup Program is being recorded")
    return run(active, guard)


def _truth(session: Session, guard: Guard, value: Any) -> Staged:
    found = branches.truth(session, guard.own(value)) if isinstance(value, torch.Tensor) else value
    if not isinstance(found, Staged):
        raise ProgramError(f"the condition is {value!r}: it has to be a tensor of one element that depends on data",
                           hint="Use a Python if for what is known while the Program is built.")
    return found


def cond(pred: torch.Tensor, true_fn: Branch, false_fn: Branch | None = None) -> Any:
    """What ``true_fn`` gives where ``pred`` is true, else what ``false_fn`` gives (None without one).

    Both give results of one structure; shapes and dtypes may differ. Tensors from around them may be read and written.

    Raises:
        ProgramError: ``pred`` is no tensor of the Program.
    """

    def run(session: Session, guard: Guard) -> Any:
        flag = _truth(session, guard, pred)
        return branches.cond(session, flag, lambda: guard.own(true_fn()),
                             lambda: guard.own(false_fn()) if false_fn is not None else None, _Names(()))

    return _recorded(run)


def while_loop(
    cond: Callable[..., torch.Tensor], body: Callable[..., Sequence[Any]], loop_vars: Sequence[Any]
) -> list[Any]:
    """``loop_vars`` after ``body`` made new ones of them for as long as ``cond`` of them is true.

    Args:
        cond: Takes the loop's variables, gives a tensor of one element.
        body: Takes them, gives as many; sizes may change from one iteration to the next.
        loop_vars: Tensors, numbers, and lists, tuples and dicts of them.

    Raises:
        ProgramError: ``cond`` depends on no data, or ``body`` gives another number of values.
    """

    def run(session: Session, guard: Guard) -> list[Any]:
        names = _Names([guard.own(one) for one in loop_vars])

        def test() -> Staged:
            return _truth(session, guard, cond(*names.values))

        def step() -> None:
            made = body(*names.values)
            made = [made] if isinstance(made, torch.Tensor) or not isinstance(made, (list, tuple)) else list(made)
            if len(made) != len(names.names):
                raise ProgramError(f"the body gives {len(made)} values, and the loop has {len(names.names)} variables")
            names.set(tuple(guard.own(made)))

        loops.while_loop(session, test(), test, step, names)
        return list(names.values)

    found: list[Any] = _recorded(run)
    return found


def case(pred_fn_pairs: Sequence[tuple[torch.Tensor, Branch]], default: Branch | None = None) -> Any:
    """What the function of the first true condition gives; without a ``default`` the last one is it.

    Raises:
        ProgramError: There are no pairs.
    """
    if not pred_fn_pairs:
        raise ProgramError("case() needs a pair of a condition and a function")
    (pred, path), *others = pred_fn_pairs
    if others:
        return cond(pred, path, lambda: case(others, default))
    return cond(pred, path, default) if default is not None else path()


def switch_case(
    branch_index: torch.Tensor, branch_fns: Sequence[Branch] | Sequence[tuple[int, Branch]] | dict[int, Branch],
    default: Branch | None = None,
) -> Any:  # fmt: skip
    """What the function for an index gives; for others ``default``, or else the function for the largest index.

    Args:
        branch_index: An integer tensor of one element.
        branch_fns: Functions in order, pairs of an index and a function, or a dict of such.
        default: For indices that have none.

    Raises:
        ProgramError: There are no functions, or an index has two.
    """
    given = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    pairs: list[tuple[int, Branch]] = [
        one if isinstance(one, tuple) else (number, one) for number, one in enumerate(given)]
    if not pairs or len({number for number, _ in pairs}) < len(pairs):
        raise ProgramError("switch_case() needs one function for each index")
    pairs.sort(key=lambda pair: pair[0])
    last = default if default is not None else pairs.pop()[1]
    if not pairs:
        return last()
    return case([(branch_index == number, path) for number, path in pairs], last)


__all__ = ["case", "cond", "switch_case", "while_loop"]
