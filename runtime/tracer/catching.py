"""``try`` around what may raise only while the Program runs: no handler can catch that, so it is refused.

    try:
        if x.sum() > 0:           # both paths are traced; the Program raises, long after the handler is gone
            raise ValueError
    except ValueError:
        ...
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.tracer.session import Session

_RAISES: dict[str, type[BaseException]] = {
    "scalar.truediv": ZeroDivisionError, "scalar.floordiv": ZeroDivisionError, "scalar.mod": ZeroDivisionError,
    "switch": IndexError, "array.get": IndexError, "array.set": IndexError, "array.pop": IndexError,
    "scalar.math.sqrt": ValueError, "scalar.math.log": ValueError,
}  # fmt: skip


def require_uncaught(session: Session, name: str, attrs: dict[str, Any]) -> None:
    """Refuse an Operator that may raise what an ``except`` clause around it names.

    Raises:
        TraceError: The clause would not see the exception.
    """
    if name in ("raise", "assert"):
        exception = str(attrs.get("exception", ""))
        error = getattr(builtins, exception, None) or session.raised_types.get(exception)
        if name == "assert" and error is RuntimeError:
            return
    else:
        error = _RAISES.get(name)
    if not (isinstance(error, type) and issubclass(error, BaseException)):
        return
    for types in session.catching:
        caught = types()
        for one in caught if isinstance(caught, tuple) else (caught,):
            if isinstance(one, type) and issubclass(error, one):
                raise session.error(
                    f"whether this raises {error.__name__} is only known while the Program runs, where the except "
                    f"{one.__name__} around it cannot catch it",
                    hint="Test the condition with if instead, or move the try out of the converted function.",
                    code="D2S229",
                )
