"""Calls with arguments that vary, held against eager: what the tests of them share."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from dy2static import RetraceWarning, to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import difference

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]])
MOST = 3
"""So many Programs serve all values of an argument."""


def shows(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a tensor is another's memory."""
    return tensor.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def alike(a: Any, b: Any) -> bool:
    """The same values, bit for bit, of the same types; ``X`` is the same tensor and memory for both."""
    return not difference((X, b), (X, a), strides=True, bits=True)


def outcome(f, args, kwargs):
    """A call's result, or its exception."""
    try:
        return f(*args, **kwargs)
    except Dy2StaticError:
        raise
    except Exception as error:
        return (type(error), str(error))


def programs_for(f, calls, most=MOST, static=None):
    """Calls of a converted function held against eager's; how many Programs there are."""
    static = to_static(f) if static is None else static
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for args, kwargs in calls:
            expected, found = outcome(f, args, kwargs), outcome(static, args, kwargs)
            assert alike(expected, found), (args[1:], kwargs, expected, found)
    assert len(static.programs) <= most, len(static.programs)
    return static
