"""Turns plain Python functions and modules that use PyTorch into Programs that train, save, load and export.

Write Python; decide on tensors where you like:

>>> import torch
>>> import dy2static
>>> @dy2static.to_static
... def halve_until_small(x, limit=1.0):
...     steps = 0
...     while x.abs().max() > limit:
...         x = x / 2
...         steps += 1
...     return x, steps

It is called as before, and gives what the plain function gives, Python types included:

>>> halve_until_small(torch.tensor([3.0, -8.0]))
(tensor([ 0.3750, -1.0000]), 3)
>>> halve_until_small(torch.tensor([0.5, 0.25]))
(tensor([0.5000, 0.2500]), 0)

One Program answered both calls, with a loop that runs as often as the data says:

>>> len(halve_until_small.programs)
1
>>> [op.name for op in halve_until_small.program.block.ops if op.name == "while_loop"]
['while_loop']

Gradients are PyTorch's:

>>> x = torch.tensor([3.0, -8.0], requires_grad=True)
>>> halve_until_small(x)[0].sum().backward()
>>> x.grad
tensor([0.1250, 0.1250])

A module keeps its class, parameters and hooks; ``to_static(module)`` converts its ``forward``. An ``InputSpec``
leaves sizes open (``None``) and is held against every call:

>>> spec = dy2static.InputSpec([None, 2], "float32")
>>> layer = dy2static.to_static(torch.nn.Linear(2, 1), input_spec=[spec])
>>> layer(torch.ones(5, 2)).shape, layer(torch.ones(7, 2)).shape, len(layer.forward.programs)
(torch.Size([5, 1]), torch.Size([7, 1]), 1)
>>> layer(torch.ones(2))  # doctest: +ELLIPSIS
Traceback (most recent call last):
runtime.errors.SignatureError: [D2S302] argument 'input' has 1 dimension, InputSpec says 2
  at ...
  Change the argument, or the input_spec the function was converted with.
"""

from __future__ import annotations

import importlib as _importlib
from pathlib import Path as _Path
from typing import TYPE_CHECKING
from typing import Any as _Any

import runtime as _runtime

if getattr(_runtime, "PROJECT", None) != "dy2static":
    raise ImportError(
        "dy2static needs its own package 'runtime', but another one of that name is found first: "
        f"{_runtime.__file__ or list(_runtime.__path__)} instead of {_Path(__file__).parents[1] / 'runtime'}"
    )

from runtime import torch_internals as _torch_internals  # says at once if PyTorch is one that was not tested
from runtime.version import UntestedTorchWarning, __version__

assert _torch_internals, "imported for what it says"

if TYPE_CHECKING:
    from dy2static import compress, onnx
    from dy2static.api import explain, to_static
    from dy2static.exclusions import ignore_module, not_to_static
    from dy2static.explaining import Explanation
    from dy2static.exported_program import to_exported_program
    from dy2static.exporting import export_c
    from dy2static.logs import set_code_level, set_verbosity
    from dy2static.mapping import vmap
    from dy2static.options_of_loops import loop_options
    from dy2static.program_cache import RetraceWarning
    from dy2static.saving import save
    from dy2static.settings import enable_to_static
    from dy2static.static_function import EagerWarning, StaticFunction
    from dy2static.traced_layer import TracedLayer
    from runtime.errors import ConversionError, Dy2StaticError, ProgramError, SignatureError, StorageError, TraceError
    from runtime.executor.limits import Limits
    from runtime.ir.input_spec import InputSpec
    from runtime.passes import BuildStrategy
    from runtime.translated import TranslatedLayer, load, load_state

__all__ = [
    "BuildStrategy", "ConversionError", "Dy2StaticError", "EagerWarning", "Explanation", "InputSpec", "Limits",
    "ProgramError", "RetraceWarning", "SignatureError", "StaticFunction", "StorageError", "TraceError", "TracedLayer",
    "TranslatedLayer", "UntestedTorchWarning", "__version__", "compress", "enable_to_static", "explain", "export_c",
    "ignore_module", "load", "load_state", "loop_options", "not_to_static", "onnx", "save", "set_code_level",
    "set_verbosity", "to_exported_program", "to_static", "vmap",
]  # fmt: skip

_HOMES = {
    "compress": "dy2static.compress",
    "BuildStrategy": "runtime.passes", "ConversionError": "runtime.errors", "Dy2StaticError": "runtime.errors",
    "EagerWarning": "dy2static.static_function", "InputSpec": "runtime.ir.input_spec",
    "ProgramError": "runtime.errors", "RetraceWarning": "dy2static.program_cache", "SignatureError": "runtime.errors",
    "StaticFunction": "dy2static.static_function", "StorageError": "runtime.errors", "TraceError": "runtime.errors",
    "Explanation": "dy2static.explaining", "Limits": "runtime.executor.limits",
    "TracedLayer": "dy2static.traced_layer", "TranslatedLayer": "runtime.translated",
    "enable_to_static": "dy2static.settings", "explain": "dy2static.api", "export_c": "dy2static.exporting",
    "ignore_module": "dy2static.exclusions", "load": "runtime.translated", "load_state": "runtime.translated",
    "loop_options": "dy2static.options_of_loops",
    "not_to_static": "dy2static.exclusions", "onnx": "dy2static.onnx", "save": "dy2static.saving",
    "set_code_level": "dy2static.logs", "set_verbosity": "dy2static.logs",
    "to_exported_program": "dy2static.exported_program", "to_static": "dy2static.api", "vmap": "dy2static.mapping",
}  # fmt: skip
"""Where public names come from. They are imported when they are first used: who loads a file needs no converter."""


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dy2static' has no attribute {name!r}")
    home = _importlib.import_module(_HOMES[name])
    value = globals()[name] = home if home.__name__ == f"{__name__}.{name}" else getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
