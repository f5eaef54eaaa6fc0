"""``loss.backward()`` inside a trace: gradients of everything it was made of, added to the ``.grad`` of the leaves.

    loss.backward()      ->      %g, %h = gradients([%loss], [%w, %b], None), then what ``w.grad += g`` does

Which leaves it reaches is asked of the Program so far (``gradient_paths``): the others keep the ``.grad`` they have, or
None. One that it reaches on some paths only has a gradient that may be None, and a `Choice` in its ``.grad``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.memory.deferred import unneeded
from runtime.tracer.recording import gradients, hook_calls, hooked_tensors, leaf_gradients, shared_gradients
from runtime.tracer.recording.raising import raise_where
from runtime.tracer.recording.session import Session


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """``torch.autograd.backward``, staged as a ``gradients`` Operator.

    Errors raised: RuntimeError as torch does; TraceError for what has no static meaning.
    """
    session = state.current()
    if create_graph:
        raise session.error("backward(create_graph=True) inside a converted function", code="D2S217",
                            hint="Use torch.autograd.grad(..., create_graph=True).")
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                               "`backward()`. Please only use `grad_tensors`.")  # fmt: skip
        grad_tensors = grad_variables
    inputs = tuple(inputs) if is_a(inputs, Iterator) else inputs
    if inputs is not None and not is_a(inputs, torch.Tensor) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = gradients.roots(session, tensors, grad_tensors)
    if inputs is None:
        session.inputs.require_decided()
        wanted = [*_leaves(session), *leaf_gradients.retained(session)]
    else:
        wanted = gradients.tensors(session, inputs, "inputs")
        for tensor in wanted:
            raise_where(session, unneeded([session.info(tensor)]),
                        RuntimeError("can't retain_grad on Tensor that has requires_grad=False"))
    wanted = list({id(one): one for one in wanted}.values())
    owners, wanted = wanted, hooked_tensors.before_hooks(session, wanted)
    paths = gradients.paths(session, roots, wanted, retain_graph=bool(retain_graph), whole=inputs is None)
    places = [place for place, one in enumerate(wanted) if session.read(one) in paths.found]
    if not places:
        return
    hooks = hook_calls.changing(session, paths.heard)
    also = [hooked_tensors.behind(session, op) for op in hooks]
    reached = [*(wanted[place] for place in places), *also]
    found = gradients.emit(session, roots, reached, gradients.sure(session, paths, reached), {
        "create_graph": False, "allow_unused": False, "retain_graph": bool(retain_graph), "materialize_grads": False,
    })  # fmt: skip
    if also:
        stops = [session.read(leaf) for leaf in _leaves(session)]
        shared_gradients.note(session, roots, also, found[len(places):], stops)
    accumulate = leaf_gradients.accumulate_where_asked if inputs is None else leaf_gradients.accumulate
    arrivals = [
        hook_calls.Arrival(session.read(wanted[place]), leaf_gradients.is_leaf(session, owners[place]),
                           functools.partial(accumulate, session, owners[place], grad))
        for place, grad in zip(places, found)]  # fmt: skip
    if paths.heard or len([place for place in places if leaf_gradients.has_hooks(session, owners[place])]) > 1:
        hook_calls.call_in_order(session, paths, arrivals, paths.heard, dict(zip(hooks, found[len(places):])))
    else:
        for one in arrivals:
            one.done()


def of_tensor(
    tensor: torch.Tensor,
    gradient: torch.Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """``tensor.backward()``."""
    backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


def _leaves(session: Session) -> list[torch.Tensor]:
    return [tensor for tensor, _ in gradients.leaves(session)]


__all__ = ["backward", "of_tensor"]
