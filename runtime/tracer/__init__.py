"""The tracer: runs a function once on fake tensors and records a Program."""

from runtime.tracer import choices as choices  # gives a Choice its operators
from runtime.tracer import cond as cond  # stages branches
from runtime.tracer.boundary import Arguments, Traced, flatten, trace
from runtime.tracer.scalars import Staged, StagedBool, StagedFloat, StagedInt, StagedStr

__all__ = ["Arguments", "Staged", "StagedBool", "StagedFloat", "StagedInt", "StagedStr", "Traced", "flatten", "trace"]
