"""The runtime: Programs, the tracer that makes them, and the executors that run them.

Its public names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from runtime.version import UntestedTorchWarning, __version__

if TYPE_CHECKING:
    from runtime.autodiff.static import append_backward, gradients
    from runtime.ir import Block, Operator, Program, Variable
    from runtime.ir.input_spec import InputSpec
    from runtime.passes import BuildStrategy, register_pass
    from runtime.recompute import recompute
    from runtime.serving import Predictor
    from runtime.translated import TranslatedLayer, load, save

PROJECT = "dy2static"
"""The project this package belongs to: ``runtime`` is a general name, which another package may have too."""

_HOMES = {
    "Block": "runtime.ir", "Operator": "runtime.ir", "Program": "runtime.ir", "Variable": "runtime.ir",
    "append_backward": "runtime.autodiff.static", "gradients": "runtime.autodiff.static",
    "Predictor": "runtime.serving", "recompute": "runtime.recompute",
    "BuildStrategy": "runtime.passes", "register_pass": "runtime.passes", "InputSpec": "runtime.ir.input_spec",
    "TranslatedLayer": "runtime.translated", "load": "runtime.translated", "save": "runtime.translated",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'runtime' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "Block", "BuildStrategy", "InputSpec", "Operator", "Predictor", "Program", "TranslatedLayer",
    "UntestedTorchWarning", "Variable", "__version__", "append_backward", "gradients", "load", "recompute",
    "register_pass", "save",
]  # fmt: skip
