"""What autograd's graph says of tensors: whether one was computed from another."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def first_reached(tensor: torch.Tensor, goals: Iterable[torch.Tensor]) -> torch.Tensor | None:
    """One of some tensors that a gradient of ``tensor`` goes back to by the graph it has now; ``tensor`` is none.

    Hooks are not followed. A tensor that autograd's graph begins with has a node only if something was computed of it.
    """
    if tensor.grad_fn is None:
        return None
    by_node = {one.grad_fn: one for one in goals if one.grad_fn is not None and one is not tensor}
    starts = {id(one): one for one in goals if one.grad_fn is None}
    seen, todo = {tensor.grad_fn}, [tensor.grad_fn]
    while todo:
        node = todo.pop()
        found = by_node.get(node)
        if found is None:
            found = starts.get(id(getattr(node, "variable", None)))
        if found is not None:
            return found
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)
    return None


__all__ = ["first_reached"]
