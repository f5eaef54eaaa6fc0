"""Questions about operators, asked of every one that may be saved: all versions of torch have an answer."""

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ops import aten
from runtime.storage.allowed import allowed_operators


def test_every_operator_is_composite_or_not():
    found = {}
    for name in allowed_operators():
        try:
            overload = aten.resolve(name)
        except ProgramError:  # of another version of torch
            continue
        found[name] = torch_internals.is_composite(overload)
    assert found["aten.linear.default"] and not found["aten.add.Tensor"] and len(found) > 2500
