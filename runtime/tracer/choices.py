"""Operations on a value that is one of several, known only at run time: done to each of them, staged as a switch."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime.tracer import state
from runtime.tracer.journal import MISSING
from runtime.tracer.theirs import theirs

if TYPE_CHECKING:
    from runtime.tracer.session import Session


def unbound_message(name: str, free: bool = False) -> str:
    """What this version of Python says when an unbound local (``free``: of an outer function) is read."""
    if sys.version_info >= (3, 11):
        if free:
            return f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        return f"cannot access local variable '{name}' where it is not associated with a value"
    if free:
        return f"free variable '{name}' referenced before assignment in enclosing scope"
    return f"local variable '{name}' referenced before assignment"


def distribute(session: Session, choice: Any, function: Callable[[Any], Any]) -> Any:
    """``function(value)`` where the value is one of several at run time: staged for each of them."""
    from runtime.tracer.cond import NoNames, switch
    from runtime.tracer.structure import Undefined

    def path(option: Any) -> Callable[[], Any]:
        def run() -> Any:
            if isinstance(option, Undefined):
                raise UnboundLocalError(unbound_message(option.name))
            if option is MISSING:
                raise AttributeError("this attribute is not set on the path that was taken")
            return function(option)

        return run

    return switch(session, choice.selector, [path(option) for option in choice.options], NoNames(), choice)


def held_choice(value: Any, depth: int = 0) -> Any:
    """The first value of several that is ``value``, or is inside lists, tuples and dicts; None without one."""
    if isinstance(value, ChoiceOperators):
        return value
    if depth > 4 or not isinstance(value, (list, tuple, dict)):
        return None
    for item in value.values() if isinstance(value, dict) else value:
        found = held_choice(item, depth + 1)
        if found is not None:
            return found
    return None


def with_option(value: Any, choice: Any, option: Any) -> Any:
    """``value`` with one of its options in place of a choice, wherever that is inside."""
    if value is choice:
        return option
    if held_choice(value) is None:
        return value
    if isinstance(value, dict):
        return {key: with_option(item, choice, option) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [with_option(item, choice, option) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def spread(session: Session, values: Any, function: Callable[[Any], Any]) -> Any:
    """``function(values)``, staged for each option of every choice in the values (lists, tuples, dicts)."""
    choice = held_choice(values)
    if choice is None:
        return function(values)
    return distribute(session, choice, lambda option: spread(session, with_option(values, choice, option), function))


def _left(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        session = state.current()
        return distribute(session, self, lambda option: theirs(function, option, option if other is self else other))

    return method


def _right(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return distribute(state.current(), self, lambda option: theirs(function, other, option))

    return method


def _alone(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return distribute(state.current(), self, lambda option: theirs(function, option))

    return method


def _refused(how: str) -> Callable[..., NoReturn]:
    def method(self: Any, *args: Any) -> NoReturn:
        raise state.current().error(
            f"a value that differs between paths is {how} in code that is not converted",
            hint="Let the function be converted, or give the variable a value of one kind on every path.",
            code="D2S210",
        )

    return method


def require_converted(error: BaseException) -> None:
    """Refuse an exception that code which is not converted raised because a value is one of several."""
    if isinstance(error, AttributeError) and isinstance(error.obj, ChoiceOperators):
        from runtime.tracer.session import error_place

        raise state.current().error(
            f"a value that differs between paths is asked for its attribute {error.name!r} in code that is "
            "not converted",
            hint="Let the function be converted, or give the variable one object on every path.",
            code="D2S210",
            location=error_place(error),
        )


def _length(value: Any) -> int | None:
    """How many items unpacking finds in a value, if that is known."""
    from runtime.tracer.structure import growing

    if isinstance(value, torch.Tensor):
        size = value.shape[0] if value.dim() else None
        return size if type(size) is int else None
    known = isinstance(value, (list, tuple)) and growing(value) is None
    return len(value) if known else None


class ChoiceOperators:
    """Python's operators, applied to whichever value it is."""

    options: tuple[Any, ...]

    __slots__ = ()

    __add__, __radd__ = _left(operator.add), _right(operator.add)
    __sub__, __rsub__ = _left(operator.sub), _right(operator.sub)
    __mul__, __rmul__ = _left(operator.mul), _right(operator.mul)
    __matmul__, __rmatmul__ = _left(operator.matmul), _right(operator.matmul)
    __truediv__, __rtruediv__ = _left(operator.truediv), _right(operator.truediv)
    __floordiv__, __rfloordiv__ = _left(operator.floordiv), _right(operator.floordiv)
    __mod__, __rmod__ = _left(operator.mod), _right(operator.mod)
    __pow__, __rpow__ = _left(operator.pow), _right(operator.pow)
    __and__, __rand__ = _left(operator.and_), _right(operator.and_)
    __or__, __ror__ = _left(operator.or_), _right(operator.or_)
    __xor__, __rxor__ = _left(operator.xor), _right(operator.xor)
    __lt__, __le__ = _left(operator.lt), _left(operator.le)
    __gt__, __ge__ = _left(operator.gt), _left(operator.ge)
    __eq__, __ne__ = _left(operator.eq), _left(operator.ne)
    __neg__, __pos__, __abs__, __invert__ = (
        _alone(operator.neg), _alone(operator.pos), _alone(abs), _alone(operator.invert),
    )  # fmt: skip
    __hash__ = object.__hash__
    __bool__ = _refused("used as a condition")

    def __iter__(self) -> Iterator[Any]:
        """Items one by one, where every value it may be has as many: what unpacking asks for."""
        from runtime.tracer.structure import Undefined

        options = [option for option in self.options if not isinstance(option, Undefined) and option is not MISSING]
        lengths = {_length(option) for option in options}
        if len(lengths) != 1 or lengths == {None}:
            _refused("iterated over")(self)
        count = lengths.pop()
        assert count is not None
        items = [distribute(state.current(), self, operator.itemgetter(index)) for index in range(count)]
        return iter(items)

    __len__ = _refused("asked for its length")
    keys = _refused("unpacked")
    __index__ = _refused("used as an index")
    __int__, __float__ = _refused("converted to an int"), _refused("converted to a float")
    __str__ = __format__ = _refused("turned into text")
