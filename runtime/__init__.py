"""The runtime: Programs, the tracer that makes them, and the executors that run them.

Its public names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from runtime.version import UntestedTorchWarning, __version__

if TYPE_CHECKING:
    from runtime.executor.limits import Limits
    from runtime.ir import Block, Operator, Program, Variable
    from runtime.ir.input_spec import InputSpec
    from runtime.passes import BuildStrategy, register_pass
    from runtime.regions import recompute
    from runtime.serving import Predictor
    from runtime.static import (
        ClipGradByGlobalNorm,
        ClipGradByNorm,
        ClipGradByValue,
        Executor,
        case,
        cond,
        data,
        default_main_program,
        default_startup_program,
        program_guard,
        switch_case,
        while_loop,
    )
    from runtime.static.gradients import append_backward, gradients
    from runtime.static.py_func import py_func
    from runtime.translated import TranslatedLayer, load, load_state, save

PROJECT = "dy2static"
"""The project this package belongs to: ``runtime`` is a general name, which another package may have too."""

_HOMES = {
    "Block": "runtime.ir", "Operator": "runtime.ir", "Program": "runtime.ir", "Variable": "runtime.ir",
    "append_backward": "runtime.static.gradients", "gradients": "runtime.static.gradients",
    "Predictor": "runtime.serving", "recompute": "runtime.regions",
    "BuildStrategy": "runtime.passes", "register_pass": "runtime.passes", "InputSpec": "runtime.ir.input_spec",
    "TranslatedLayer": "runtime.translated", "load": "runtime.translated",
    "Limits": "runtime.executor.limits", "load_state": "runtime.translated", "save": "runtime.translated",
}  # fmt: skip
_STATIC = (
    "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "Executor", "case", "cond", "data",
    "default_main_program", "default_startup_program", "program_guard", "py_func", "switch_case", "while_loop",
)  # fmt: skip
"""Of ``runtime.static``, which has more, ``Program`` and the optimizers among it."""
_HOMES.update(dict.fromkeys(_STATIC, "runtime.static"))


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'runtime' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "Block", "BuildStrategy", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "Executor", "InputSpec",
    "Limits", "Operator", "Predictor", "Program", "TranslatedLayer", "UntestedTorchWarning", "Variable",
    "__version__", "append_backward", "case", "cond", "data", "default_main_program", "default_startup_program",
    "gradients", "load", "load_state", "program_guard", "py_func", "recompute", "register_pass", "save",
    "switch_case", "while_loop",
]  # fmt: skip
