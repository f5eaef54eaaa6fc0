"""What ``id`` and ``hash`` give for objects of which each call has its own: numbers of the trace.

They say which object is which, as keys and in comparisons, and there they are right for every call. As numbers they are
not: whatever looks at one as a number, compares it with a number from elsewhere, or takes it out of the trace, is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.ambient.poison import Poison
from runtime.tracer.python_state.ages import existed_before
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.values.structure import is_container
from runtime.tracer.values.transient import Transient

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


_OF_KEYS: tuple[Any, ...] = (list, tuple, set, frozenset, dict, type({}.keys()), type({}.items()))
"""What may be compared by keys; pairs among others."""


class Identity(Poison, Transient):
    """Which object it is, while tracing. It is no int, which C code would read as the number that it is."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    if not TYPE_CHECKING:  # isinstance() asks this; a type checker knows it as an attribute

        @property
        def __class__(self) -> type:
            return int

    def refuse(self, *args: Any) -> NoReturn:
        """What a look at the number raises.

        Raises:
            TraceError: D2S264.
        """
        raise _refusal(state.current())

    leave = refuse

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if type(other) is Identity:
            return self.number == other.number
        session = state.active()
        if session is not None:
            require_known(session, [self], [other])
        return self.number == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> Identity:
        return self

    def __deepcopy__(self, memo: Any) -> Identity:
        return self

    def __repr__(self) -> str:
        if state.active() is not None:
            self.refuse()
        return repr(self.number)


def _refusal(session: Session) -> Exception:
    return session.error(
        "the number that id() or hash() gives for a tensor or object is used as a number; each call has another",
        hint="Use it as a key or compare it, inside the function; or take it outside, of the result.",
        code="D2S264")  # fmt: skip


def require_known(session: Session, values: Iterable[Any], others: Iterable[Any]) -> None:
    """Refuse to look for numbers of the trace among others, one of which a call may have in its place.

    Raises:
        TraceError: D2S264.
    """
    asked = [one for one in values if any_in([one])]
    if asked and any(_may_be(session, one, other) for other in others for one in asked):
        raise _refusal(session)


def require_known_in_both(session: Session, a: Any, b: Any) -> None:
    """The same of two containers, whose items Python compares with each other.

    Raises:
        TraceError: D2S264.
    """
    if is_a(a, _OF_KEYS) and is_a(b, _OF_KEYS):
        require_known(session, a, b)
        require_known(session, b, a)


def require_none(session: Session, values: Iterable[Any]) -> None:
    """Refuse numbers of the trace among what a function of torch's is given.

    Raises:
        TraceError: D2S264.
    """
    if any_in(values):
        raise _refusal(session)


def any_in(values: Iterable[Any]) -> bool:
    """Whether there is a number of the trace among the values, or in lists and tuples among them."""
    return any(type(one) is Identity or type(one) in (tuple, list) and any_in(one) for one in values)


def _may_be(session: Session, value: Any, other: Any) -> bool:
    if type(value) is Identity:
        return type(other) in (int, float) and other not in session.objects.numbers
    both = type(value) is type(other) is tuple and len(value) == len(other)
    return both and any(_may_be(session, one, each) for one, each in zip(value, other))


def noted(session: Session, value: Any, number: int) -> Any:
    """What ``id(value)`` or ``hash(value)`` is, as a number of the trace if the next call has another."""
    if varies(session, value):
        return Identity(number)
    session.objects.numbers.add(number)
    return number


def varies(session: Session, value: Any) -> bool:
    """Whether each call has an object of its own in a value's place, or in a tuple's or frozenset's."""
    if is_a(value, torch.Tensor):
        return torch_internals.is_fake(value)
    if is_plain(value):
        return False
    external = session.objects.externals.get(id(value))
    if external is not None:
        return external[1] is not None
    if is_a(value, (tuple, frozenset)):
        return any(varies(session, item) for item in value)
    return is_container(value) or not existed_before(session, value)


__all__ = ["Identity", "any_in", "noted", "require_known", "require_known_in_both", "require_none", "varies"]
