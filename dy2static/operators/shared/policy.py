"""Who is converted: the user's Python, not libraries that know nothing of control flow over tensors."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import types
from collections import ChainMap, Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy
import torch

import runtime
from dy2static.exclusions import exclusion_of
from dy2static.origin import IN_PYTHON, STANDARD_CONVERTED, is_torch_function_file, whole_path
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked

_OWN = tuple(
    os.path.dirname(os.path.abspath(str(file))) + os.sep for file in (Path(__file__).parents[1], runtime.__file__)
)
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
_STANDARD = tuple({
    os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
})  # fmt: skip
_TORCH_CONVERTED = tuple(_TORCH + path for path in (
    os.path.join("nn", "modules", "container.py"), os.path.join("nn", "modules", "transformer.py"),
    "distributions" + os.sep, "optim" + os.sep,
    *(os.path.join("nn", "utils", f"{name}.py") for name in ("weight_norm", "spectral_norm", "prune")),  # as hooks
    os.path.join("nn", "utils", "clip_grad.py"), os.path.join("nn", "utils", "rnn.py"),
    os.path.join("amp", "grad_scaler.py"),
    os.path.join("_functorch", "functional_call.py"), os.path.join("nn", "utils", "stateless.py"),
    os.path.join("nn", "utils", "_named_member_accessor.py"), os.path.join("autograd", "functional.py"),
))  # fmt: skip

_TORCH_MACHINERY = tuple(_TORCH + path for path in (
    *(f"{name}{os.sep}" for name in (
        "_C", "_custom_op", "_decomp", "_dispatch", "_dynamo", "_export", "_functorch", "_higher_order_ops",
        "_inductor", "_library", "_logging", "_numpy", "_prims", "_prims_common", "_refs", "_subclasses", "_vendor",
        "autograd", "backends", "cuda", "distributed", "export", "func", "fx", "jit", "multiprocessing", "onnx",
        "package", "profiler", "testing", "utils",
    )),
    *(f"{name}.py" for name in (
        "__init__", "_compile", "_guards", "_meta_registrations", "_ops", "_tensor_str", "_utils", "hub", "library",
        "overrides", "random", "serialization", "storage", "types",
    )),
))  # fmt: skip


def is_plain_torch(function: types.FunctionType) -> bool:
    """Whether a function of torch is Python over tensors and numbers, which may be converted like a user's."""
    return is_torch_function_file(function.__code__.co_filename) and exclusion_of(function) is None


def may_decide(function: types.FunctionType) -> bool:
    """Whether a function of torch that turned out to read a tensor may be converted: not if it is part of the
    machinery that tensors, traces and processes run on."""
    file = whole_path(function.__code__.co_filename)
    return file.startswith(_TORCH) and not file.startswith(_TORCH_MACHINERY) and exclusion_of(function) is None


def reason_not_converted(function: types.FunctionType) -> str:
    """Why a Python function runs as it is; empty if it is converted."""
    excluded = exclusion_of(function)
    if excluded is not None:
        return excluded
    home = home_of(function.__code__.co_filename)
    if function in AS_IT_IS:
        return "it is part of the standard library"
    if function.__code__ in ORDERINGS or function in torch_internals.ABOUT_CLASSES:
        return ""
    if home and not (home in ("torch", "the standard library") and _wraps_user_function(function)):
        return f"it is part of {home}"
    return ""


ORDERINGS = frozenset(
    method.__code__ for made in functools._convert.values() for _, method in made)  # type: ignore[attr-defined]
"""What ``functools.total_ordering`` gives a class, written in terms of a method of the class's."""
AS_IT_IS: frozenset[Any] = frozenset({
    Counter.__init__, Counter.update, Counter.subtract, ChainMap.__init__, ChainMap.__getitem__})  # fmt: skip
"""Functions of ``collections`` that run as they are unless what they read depends on the path: C code counts, and which
map has a key is asked with ``except``."""


@lru_cache(maxsize=4096)
def home_of(file: str) -> str:
    """The library that a file belongs to; empty for the user's files and those of other packages."""
    file = whole_path(file)
    if file.startswith(_OWN):
        return "" if file in IN_PYTHON else "dy2static"
    if file.startswith(_TORCH):
        return "" if file.startswith(_TORCH_CONVERTED) else "torch"
    if file.startswith(_NUMPY):
        return "NumPy"
    if file.startswith("<frozen "):
        return "the standard library"
    if file in STANDARD_CONVERTED:
        return ""
    if file.startswith(_STANDARD) and not is_installed(file):
        return "the standard library"
    return ""


def _wraps_user_function(function: types.FunctionType) -> bool:
    """A decorator of torch or the standard library around a user's function (``@torch.no_grad()``)."""
    inner = unasked(function, "__wrapped__")
    while inner is not None:
        code = unasked(inner, "__code__")
        if code is not None and not home_of(code.co_filename):
            return True
        inner = unasked(inner, "__wrapped__")
    return False


def is_torch(target: Any) -> bool:
    """Whether a callable belongs to torch."""
    code = unasked(target, "__code__")
    if code is not None:
        return whole_path(code.co_filename).startswith(_TORCH)
    owner = unasked(target, "__self__")
    if is_a(owner, torch.Tensor) or unasked(target, "__objclass__") in torch.Tensor.__mro__[:-1]:
        return True
    module = unasked(target, "__module__") or unasked(owner, "__module__") or type(target).__module__
    return _under(module, "torch")


def is_optimizers(module: str) -> bool:
    """Whether a module is one of ``torch.optim``: its classes are converted, and its objects hold state as a user's."""
    return module.startswith("torch.optim.")


def has_converted_methods(module: str) -> bool:
    """Whether what Python asks of a class of torch's that is defined there (its text, its length) is asked of methods
    that are converted."""
    return is_optimizers(module) or module.startswith("torch.distributions.")


def is_library(module: types.ModuleType) -> bool:
    """Whether a Python module is torch's, NumPy's or Python's own: its functions and classes are taken as fixed."""
    return is_librarys(module.__name__)


def holds_data(module: types.ModuleType) -> bool:
    """Whether a module is Python's own: programs change numbers, texts and containers there (``sys.argv``)."""
    return module.__name__.split(".")[0] in sys.stdlib_module_names


def is_installed(file: str) -> bool:
    """Whether a file is of an installed package, which knows nothing of the modules that use it."""
    return any(os.sep + part + os.sep in file for part in ("site-packages", "dist-packages"))


def is_librarys(name: str) -> bool:
    """The same of what a module of that name defines."""
    top = name.split(".")[0]
    return top in ("torch", "numpy") or top in sys.stdlib_module_names


def _under(module: Any, package: str) -> bool:
    return is_a(module, str) and (module == package or module.startswith(package + "."))
