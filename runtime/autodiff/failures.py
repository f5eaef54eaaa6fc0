"""Why a gradient is not written as a Program."""

from __future__ import annotations


class NotDifferentiable(Exception):
    """The gradient of the Program is computed by torch's autograd at run time instead."""


__all__ = ["NotDifferentiable"]
