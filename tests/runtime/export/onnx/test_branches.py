"""Branches in models: what decides them."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch import nn

from dy2static import InputSpec
from tests.runtime.export import judging
from tests.runtime.export.onnx.conformance import attempt
from tests.runtime.export.onnx.harness import Model, check

X = [InputSpec([None, 3], "float32", "x")]
CALLS = [(torch.ones(2, 3),), (-torch.ones(1, 3),)]


class Limited(nn.Module):
    """A weight and a tensor that it makes decide, a call does not."""

    def __init__(self):
        super().__init__()
        self.limit = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        kept = torch.zeros(3)
        if self.limit > 0 and (kept < 1).all():
            if x.sum() > 0:
                if kept.sum() > 0:
                    raise ValueError("never")
                x = x * 2
            else:
                kept = kept - 1
        return x, kept


def test_what_constants_and_weights_decide_is_decided_in_the_call(tmp_path):
    model = check(Limited().eval(), tmp_path, X, *CALLS)
    known = _known(model)
    flags = [node.input[0] for node in _nodes(onnx.load(str(model.exported.path)).graph) if node.op_type == "If"]
    assert len(flags) >= 3 and not known & set(flags)


def _nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _known(model: Model) -> set[str]:
    """What a runtime can compute while it loads the model."""
    graph = onnx.load(str(model.exported.path)).graph
    known = {one.name for one in graph.initializer}
    for node in _nodes(graph):
        if set(node.input) <= known and not any(attribute.HasField("g") for attribute in node.attribute):
            known.update(node.output)
    return known


@pytest.mark.slow
def test_branches_of_constants_that_onnx_runtime_cannot_load():
    """It crashed while it put such branches in their place."""
    assert judging.of_seed(700000017, attempt).kind == "exported"
