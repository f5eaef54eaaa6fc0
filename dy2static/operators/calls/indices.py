"""Objects of users' classes as arguments of torch's operators: only some arguments ask for their ``__index__``.

torch takes such an object where its schema says SymInt, and raises TypeError for others (``x + obj``). Which it is is
left to torch: it gets an object of the same class name whose ``__index__`` runs the user's converted.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2static.errors import Dy2StaticError
from dy2static.operators.calls.call import call
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import any_staged, python_method
from runtime.kinds import is_a


class Asked:
    """What stands for a user's object.

    ``staged``: its number is known only while the Program runs; torch, which wants one at once, was told that there is
    none. ``failure``: what was raised instead, which torch hides.
    """

    staged = False
    failure: BaseException | None = None

    def __init__(self, value: Any, method: Any) -> None:
        self.value = value
        self.method = method
        self.numbers: list[Any] = []

    def __index__(self) -> Any:
        if not self.numbers:  # asked once, though torch looks at an argument more than once
            try:
                self.numbers.append(call(self.method, self.value))
            except BaseException as error:
                self.failure = error
                raise
        if any_staged(self.numbers):
            self.staged = True
            raise TypeError("a number that the Program computes")
        return self.numbers[0]


def require_asked(asked: list[Asked]) -> bool:
    """Whether torch, which raised TypeError, asked for a number that is staged.

    Raises:
        BaseException: what stopped a trace in a user's ``__index__``; a user's own exception torch hides in eager too.
    """
    for one in asked:
        if one.failure is not None and (
                is_a(one.failure, Dy2StaticError) or not is_a(one.failure, Exception)):  # fmt: skip
            raise one.failure
    return any(one.staged for one in asked)


def in_place_of_objects(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], list[Asked]]:
    """The arguments with stand-ins for the objects that have an ``__index__`` of a user's, and these stand-ins."""
    asked: list[Asked] = []
    known: dict[int, Any] = {}

    def replaced(value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind in (list, tuple):
            if id(value) not in known:
                known[id(value)] = value  # for one that holds itself
                items = [item if type(item) in _PLAIN else replaced(item) for item in value]
                same = all(one is other for one, other in zip(items, value))
                known[id(value)] = value if same else kind(items)
            return known[id(value)]
        method = None if is_a(value, int) else python_method(value, "__index__")
        if method is None or home_of(method.__code__.co_filename) or hasattr(kind, "__torch_function__"):
            return value
        asked.append(type(kind.__name__, (Asked,), {})(value, method))
        return asked[-1]

    return tuple(map(replaced, args)), {name: replaced(arg) for name, arg in kwargs.items()}, asked


def with_numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with the staged numbers that torch asked for, in place of what stood for the objects."""

    def replaced(value: Any) -> Any:
        if type(value) in (list, tuple):
            items = [replaced(item) for item in value]
            return value if all(one is other for one, other in zip(items, value)) else type(value)(items)
        return value.numbers[0] if is_a(value, Asked) and value.staged else value

    return tuple(map(replaced, args)), {name: replaced(arg) for name, arg in kwargs.items()}


_PLAIN = (int, float, bool, str, type(None), torch.Tensor, torch.nn.Parameter, torch.dtype)

__all__ = ["Asked", "in_place_of_objects", "require_asked", "with_numbers"]
