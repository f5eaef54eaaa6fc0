"""Executors: how Programs run. ``compile_program`` gives the reference, an interpreter of ATen calls."""

from runtime.executor.coverage import Coverage
from runtime.executor.executable import Executable, compile_program

__all__ = ["Coverage", "Executable", "compile_program"]
