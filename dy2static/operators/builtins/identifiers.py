"""``uuid.uuid4()`` inside a trace: an identifier that only tells things apart is made while tracing.

    name = f"axis.{uuid.uuid4().int}"     a name that nobody else has, as a key or to be compared by ``==``
    table[name] = x

Eager makes another one in each run, so nothing else may come of it. To compute with its number is refused (D2S214);
that the Program would be the same with any other is tried (``runtime/tracer/boundary/identifiers.py``). An identifier
that is made of values (``UUID(int=n)``) is a constant: of values that only the run knows it is refused, too.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NoReturn

from dy2static.operators.shared import impure
from dy2static.operators.shared.staging import Session, any_staged, held_choice
from runtime.tracer.ambient import state
from runtime.tracer.boundary import identifiers


def _refuse() -> NoReturn:
    impure.refuse(state.current(), "uuid4()", "random identifiers")


def _refused(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse()

    method.__name__ = method.__qualname__ = name
    return method


_ASKING = (
    "add", "sub", "mul", "mod", "floordiv", "truediv", "pow", "divmod", "and", "or", "xor", "lshift", "rshift", "radd",
    "rsub", "rmul", "rmod", "rfloordiv", "rtruediv", "rpow", "rdivmod", "rand", "ror", "rxor", "rlshift", "rrshift",
    "lt", "le", "gt", "ge", "bool", "int", "float", "index", "abs", "neg", "pos", "invert", "round", "trunc", "floor",
    "ceil",
)  # fmt: skip
Number: type[int] = type("int", (int,), {
    **{f"__{name}__": _refused(f"__{name}__") for name in _ASKING},
    **{name: _refused(name) for name in ("to_bytes", "bit_length", "bit_count", "as_integer_ratio", "conjugate")},
})  # fmt: skip
"""The number of an identifier, which may be written, hashed and compared by ``==``."""


def _make(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args or kwargs:
        return uuid.uuid4(*args, **kwargs)  # raises what eager raises
    made = identifiers.make(session)
    object.__setattr__(made, "int", Number(made.int))
    return made


def _of_values(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``UUID(int=n)``: an identifier is made while tracing, of what is known then."""
    given = [args, kwargs]
    if any_staged(given) and held_choice(given) is None:
        raise session.error(
            "UUID() is given a value that is only known while the Program runs, and would be made while tracing",
            hint="Make it outside and pass it in, or compute with the number itself.", code="D2S214")
    return NotImplemented


HANDLERS: list[tuple[Any, Any]] = [(uuid.uuid4, _make), (uuid.UUID, _of_values), (uuid.UUID.__init__, _of_values)]
