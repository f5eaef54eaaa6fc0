"""Tests that stage branches and loops by hand, in a trace in which calls of torch are recorded."""

from __future__ import annotations

from tests.runtime.tracer.control.staging import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
