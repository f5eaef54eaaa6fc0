"""Looking into the arguments and results of an ATen call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def tensors_in(args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """Every tensor among the arguments, in order, with repeats."""
    for value in (*args, *kwargs.values()):
        yield from _tensors(value)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def flatten_results(result: Any) -> list[Any]:
    """An operator's results in one list: nested lists flattened. One of several results may be None, which is kept.

    >>> flatten_results(None), flatten_results((1, None, [2, 3]))
    ([], [1, None, 2, 3])
    """
    if result is None:
        return []
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in ([None] if item is None else flatten_results(item))]
    return [result]


def unflatten_results(template: Any, flat: list[Any]) -> Any:
    """The inverse: ``flat`` in the shape of ``template``."""
    if template is None:
        return None
    remaining = iter(flat)

    def build(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            items = [build(item) for item in value]
            if hasattr(value, "_fields"):
                return type(value)(*items)
            return type(value)(items)
        return next(remaining)

    return build(template)


class RestartWithSharedInputs(BaseException):
    """The trace wrote to memory that several of the caller's tensors share: trace again with one base for them.

    Not an Exception, so that no handler in user code catches it.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names
