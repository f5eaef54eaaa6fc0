"""What one run keeps for its backward.

Tensors go through ``save_for_backward``: version checks and saved-tensor hooks see them. Stacks of loops, thousands of
tensors that mostly nobody else can reach, are kept as lists, checked by version, and given up item by item while
backward consumes them. Under saved-tensor hooks their items go the first way too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime import torch_internals


@dataclass
class Saved:
    """The residuals of one run: ``plan`` says for each where it is."""

    plan: list[Any] = field(default_factory=list)
    versions: list[Any] = field(default_factory=list)
    hooked: bool = False


class _Slot:
    """A tensor that went through ``save_for_backward``."""

    __slots__ = ()


_SLOT = _Slot()


def save(ctx: Any, residuals: Sequence[Any], results: Sequence[Any]) -> Saved:
    """Keep the residuals of a run whose results autograd is about to see."""
    saved = Saved(hooked=torch_internals.saved_tensor_hooks_active())
    if not residuals:
        return saved
    seen = {id(result) for result in results}
    tensors: list[torch.Tensor] = []
    for value in residuals:
        versions = None
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            value = _SLOT
        elif type(value) is list and _numbers(value):
            value = value.copy()
        else:
            value = _keep(value, seen, tensors if saved.hooked else None)
            if type(value) is list:
                versions = _versions(value)
        saved.plan.append(value)
        saved.versions.append(versions)
    ctx.save_for_backward(*tensors)
    return saved


def _copied(value: list[Any], leaf: Callable[[Any], Any]) -> list[Any]:
    """A copy of a list, and of lists in it, with whatever else is in it changed.

    No function that calls itself: what calls of a recursion keep is as deep as they were, and a closure that calls
    itself is a cycle, which would keep what it holds until Python looks for such.
    """
    made: list[Any] = []
    todo = [(value, made)]
    while todo:
        items, copy = todo.pop()
        if _numbers(items):
            copy.extend(items)
            continue
        for item in items:
            if type(item) is list:
                inner: list[Any] = []
                copy.append(inner)
                todo.append((item, inner))
            else:
                copy.append(leaf(item))
    return made


def _keep(value: Any, results: AbstractSet[int], tensors: list[torch.Tensor] | None) -> Any:
    """A stack as it is kept; under hooks its tensors go to ``tensors``."""
    def kept(item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        if tensors is not None:
            tensors.append(item)
            return _SLOT
        # A result that holds its own node would never be freed.
        return item.detach() if id(item) in results else item

    return _copied(value, kept) if type(value) is list else kept(value)


def _fill(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    """What was kept, with the tensors that autograd gives back in their places; lists are copies."""
    def filled(item: Any) -> Any:
        return next(tensors) if item is _SLOT else item

    return _copied(value, filled) if type(value) is list else filled(value)


def load(ctx: Any, saved: Saved, *, keep: bool) -> list[Any]:
    """The residuals again. ``keep``: backward may be asked once more; otherwise lists are handed over.

    Errors raised: RuntimeError if one was modified in place since, or if they were handed over before.
    """
    tensors = iter(ctx.saved_tensors)
    if saved.plan is _GONE:
        raise RuntimeError(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            "already been freed). Specify retain_graph=True if you need to backward through the graph a second time."
        )

    for value, versions in zip(saved.plan, saved.versions):
        if versions is not None and versions != _versions(value):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                "a value that a loop or recursion of a converted function kept for its gradient"
            )
    if not keep:
        ctx.maybe_clear_saved_tensors()  # each lives until its last use from here on
    if keep or saved.hooked:
        return [_fill(value, tensors) for value in saved.plan]
    found = [next(tensors) if value is _SLOT else value for value in saved.plan]
    saved.plan = _GONE
    return found


_GONE: list[Any] = []


_NUMBERS = frozenset({int, float, bool})


def _numbers(items: list[Any]) -> bool:
    """Whether a list holds nothing but numbers: it may be long, and there is nothing to do for each."""
    return _NUMBERS.issuperset(map(type, items))


def _versions(value: list[Any]) -> list[Any]:
    """How often the tensors in a list, and in lists in it, were written."""
    found: list[Any] = []
    todo = [value]
    while todo:
        items = todo.pop()
        for item in () if _numbers(items) else items:
            if type(item) is list:
                todo.append(item)
            else:
                found.append(item._version if isinstance(item, torch.Tensor) else None)
    return found
