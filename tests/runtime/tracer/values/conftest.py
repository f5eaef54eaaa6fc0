"""Tests of values in a trace: those that stage branches are called as they are in ``control``."""

from __future__ import annotations

from tests.runtime.tracer.control.staging import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
