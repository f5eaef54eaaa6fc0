"""Powers of ints: an int, or a float where the exponent is negative, so one of two values at run time.

    2 ** n   ->   cond(n < 0) {a float} {an int}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.ir import ScalarType
from runtime.kinds import is_a
from runtime.tracer.numbers import known_sizes, scalars, staging
from runtime.tracer.numbers.scalars import Staged

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_WHOLE = ("int", "bool")


def is_open(name: str, kinds: Sequence[str], args: Sequence[Any]) -> bool:
    """Whether this is a power of ints whose exponent is only known while the Program runs."""
    return name == "pow" and len(args) == 2 and all(kind in _WHOLE for kind in kinds) and is_a(args[1], Staged)


def power(session: Session, base: Any, exponent: Any) -> Any:
    """``base ** exponent``."""
    def of(kind: Any) -> Any:
        operands = [session.operand(base), session.operand(exponent)]
        (var,) = session.emit("scalar.pow", operands, types=[ScalarType(kind)])
        return scalars.wrap(var)

    if known_sizes.not_negative(session, exponent):
        return of("int")
    return staging.cond(session, session.scalar("lt", exponent, 0), lambda: of("float"), lambda: of("int"))
