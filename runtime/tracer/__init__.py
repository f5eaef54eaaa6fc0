"""The tracer: runs a function once on fake tensors and records a Program."""

from runtime.tracer.boundary.tracing import Arguments, Traced, flatten, trace
from runtime.tracer.control import cond as cond
from runtime.tracer.numbers.scalars import Staged, StagedBool, StagedFloat, StagedInt, StagedStr
from runtime.tracer.values import choices as choices

__all__ = ["Arguments", "Staged", "StagedBool", "StagedFloat", "StagedInt", "StagedStr", "Traced", "flatten", "trace"]
