"""What ``id`` and ``hash`` give for objects of which each call has its own: numbers of the trace.

They say which object is which, as keys and in comparisons, and there they are right for every call. As numbers they are
not: whatever looks at one as a number, or takes it out of the trace, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime import torch_internals
from runtime.tracer.ambient import state
from runtime.tracer.python_state.ages import existed_before
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.values.structure import is_container
from runtime.tracer.values.transient import Transient

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


class Identity(int, Transient):
    """Which object it is, while tracing."""

    def refuse(self, *args: Any) -> NoReturn:
        """What a look at the number raises.

        Raises:
            TraceError: D2S264.
        """
        raise state.current().error(
            "the number that id() or hash() gives for a tensor or object is used as a number; each call has another",
            hint="Use it as a key or compare it, inside the function; or take it outside, of the result.",
            code="D2S264")  # fmt: skip

    leave = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = __floordiv__ = refuse
    __rfloordiv__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = refuse
    __rshift__ = __rrshift__ = __neg__ = __pos__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = refuse
    __ge__ = __round__ = __float__ = __int__ = __index__ = __format__ = __str__ = refuse

    def __repr__(self) -> str:
        if state.active() is not None:
            self.refuse()
        return int.__repr__(self)


def noted(session: Session, value: Any, number: int) -> int:
    """What ``id(value)`` or ``hash(value)`` is, as a number of the trace if the next call has another."""
    return Identity(number) if varies(session, value) else number


def varies(session: Session, value: Any) -> bool:
    """Whether each call has an object of its own in a value's place, or in a tuple's or frozenset's."""
    if isinstance(value, torch.Tensor):
        return torch_internals.is_fake(value)
    if is_plain(value):
        return False
    external = session.objects.externals.get(id(value))
    if external is not None:
        return external[1] is not None
    if isinstance(value, (tuple, frozenset)):
        return any(varies(session, item) for item in value)
    return is_container(value) or not existed_before(session, value)


__all__ = ["Identity", "noted", "varies"]
