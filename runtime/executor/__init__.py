"""Executors: how Programs run. ``compile_program`` gives the reference, an interpreter of ATen calls."""

from runtime.executor import rules as rules  # fills the emitter's table
from runtime.executor.coverage import Coverage
from runtime.executor.executable import Executable, compile_program

__all__ = ["Coverage", "Executable", "compile_program"]
