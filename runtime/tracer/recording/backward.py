"""``loss.backward()`` inside a trace: gradients of everything it was made of, added to the ``.grad`` of the leaves.

    loss.backward()      ->      %g, %h = gradients([%loss], [%w, %b], None), then what ``w.grad += g`` does

Which leaves it reaches is asked of the Program so far (``gradient_paths``): the others keep the ``.grad`` they have, None
among them. One that it reaches on some paths only has a gradient that may be None, and a `Choice` in its ``.grad``.
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.tracer.ambient import state
from runtime.tracer.recording import gradients, leaf_gradients
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
        grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    if inputs is not None and not isinstance(inputs, torch.Tensor) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = gradients.roots(session, tensors, grad_tensors)
    if inputs is None:
        wanted = [*_leaves(session), *(one.tensor for one in list(session.gradients.values()) if one.retained)]
    else:
        wanted = gradients.tensors(session, inputs, "inputs")
    wanted = list({id(one): one for one in wanted}.values())
    paths = gradients.paths(session, roots, wanted, retain_graph=bool(retain_graph), whole=inputs is None)
    reached = [one for one in wanted if session.read(one) in paths]
    certain = [paths[session.read(one)] for one in reached]
    if not reached:
        return
    found = gradients.emit(session, roots, reached, certain, {
        "create_graph": False, "allow_unused": False, "retain_graph": bool(retain_graph), "materialize_grads": False,
    })  # fmt: skip
    for tensor, grad in zip(reached, found):
        leaf_gradients.accumulate(session, tensor, grad)


def _leaves(session: Session) -> list[torch.Tensor]:
    return [tensor for tensor, _ in gradients.leaves(session)]


__all__ = ["backward"]
