"""Of what class a value is, without asking the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builtins import isinstance as is_a  # type checkers know what it tells
else:

    def is_a(value: Any, kinds: Any) -> bool:
        """``isinstance(value, kinds)`` by the class that the object has, not by the one that it says it has.

        ``isinstance`` asks an object of another class for its ``__class__``. A user's ``__getattribute__`` would see
        that (one that counts or logs who asks, a proxy that loads what it stands for), and a tracer looks at each value
        hundreds of times. A class is one of ``kinds`` also by what an abstract base class has registered.

        >>> class Proxy:
        ...     __class__ = property(lambda self: int)
        >>> isinstance(Proxy(), int), is_a(Proxy(), int), is_a(True, (str, int))
        (True, False, True)
        """
        return issubclass(type(value), kinds)


__all__ = ["is_a"]
