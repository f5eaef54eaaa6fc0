"""Functions that ``torch.jit.script`` compiled, and that decide on tensors: the Python they were made of is converted.

    @torch.jit.script
    def clipped(x: Tensor, limit: float):      no call of compiled code can be recorded that asks what a tensor holds
        if bool(x.norm() > limit):
            return x / x.norm() * limit
        return x

That is done where the two mean the same: tensors and numbers are given and come back, and neither prints, raises, asks
whether it is scripted, or reads data by a name.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

from dy2static.operators.calls.call import call
from dy2static.operators.shared import policy
from dy2static.operators.shared.staging import Staged
from runtime import torch_internals
from runtime.kinds import is_a

_DECIDING = frozenset({"prim::If", "prim::Loop"})
_READING = frozenset({
    "aten::Bool", "aten::Int", "aten::Float", "aten::item", "aten::IntImplicit", "aten::FloatImplicit",
    "aten::ScalarImplicit", "aten::is_nonzero", "aten::equal", "aten::allclose",
})  # fmt: skip
_OTHERWISE = frozenset({"prim::Print", "prim::RaiseException", "aten::warn", "aten::format"})
"""What Python does in another way, as it writes tensors and raises exceptions of the user's."""
_PLAIN = frozenset({"Tensor", "int", "float", "bool", "str", "Optional[Tensor]", "Optional[int]", "Optional[float]",
                    "NoneType"})  # fmt: skip
_ASKING = frozenset({"is_scripting", "is_tracing", "print", "isinstance", "annotate"})


Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def in_python(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """The Python function, and arguments as compiled code takes them; None where the compiled one is called."""
    original = torch_internals.scripted_from(f)
    if original is None or not _means_the_same(f, original):
        return None
    parameters = f.schema.arguments
    given = dict(zip((one.name for one in parameters), args)) | kwargs
    if len(args) > len(parameters) or len(given) < len(args) + len(kwargs):
        return None
    kinds = {one.name: str(one.type) for one in parameters}
    if not given.keys() <= kinds.keys():
        return None
    fitted = {name: _fitted(value, kinds[name]) for name, value in given.items()}
    return None if any(value is NotImplemented for value in fitted.values()) else (original, (), fitted)


def _fitted(value: Any, kind: str) -> Any:
    """A value as the compiled function takes it: a whole number as a float; NotImplemented for what it refuses."""
    of = value.kind if is_a(value, Staged) else type(value).__name__
    if is_a(value, torch.Tensor):
        return value if "Tensor" in kind else NotImplemented
    if kind == "float" and of == "int":
        return call(float, value)
    return value if of in (kind, kind.removeprefix("Optional[").removesuffix("]")) or (
        value is None and kind.startswith("Optional")) else NotImplemented  # fmt: skip


@functools.cache
def _means_the_same(f: Any, original: types.FunctionType) -> bool:
    kinds = torch_internals.scripted_kinds(f)
    if not (kinds & _DECIDING and kinds & _READING) or kinds & _OTHERWISE:
        return False
    types_ = [str(one.type) for one in (*f.schema.arguments, *f.schema.returns)]
    return all(one in _PLAIN for one in types_) and _names_code_alone(original, set())


def _names_code_alone(function: types.FunctionType, seen: set[int]) -> bool:
    """Whether what a function names are functions, classes and modules: data was read when it was compiled."""
    code = function.__code__
    if id(function) in seen:
        return True
    seen.add(id(function))
    if not _ASKING.isdisjoint(code.co_names):
        return False
    named = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    named += [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    for one in named:
        one = torch_internals.scripted_from(one) or one
        if is_a(one, types.FunctionType) and not policy.home_of(one.__code__.co_filename):
            if not _names_code_alone(one, seen):
                return False
        elif not is_a(one, (types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
            return False
    return True


__all__ = ["in_python"]
