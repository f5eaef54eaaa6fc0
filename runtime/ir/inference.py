"""What an Operator's results are, told by its definition: one statement for who records, verifies and rewrites.

    %b : list<f32[3]> = array.append(%a, %x)       the type of %a
    %n : int = array.len(%a)                       int
    %y = cond(%p) { yield %u } { yield %v }        what holds the types of %u and %v

A definition tells a type, or None where operands do not tell it (the items of an empty list, a gradient that is None).
A *declared* type may say less than the one that is told: sizes that are not known yet, no dtype, no rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runtime.errors import ProgramError
from runtime.ir.definition import Fail, definition_of
from runtime.ir.operator import Operator
from runtime.ir.printer import print_type
from runtime.ir.types import ArrayType, ObjectType, ScalarType, TensorType, Type
from runtime.ir.variable import Operand, Variable

_SCALARS: dict[type, ScalarType] = {
    bool: ScalarType("bool"), int: ScalarType("int"), float: ScalarType("float"), complex: ScalarType("complex"),
    str: ScalarType("str"),
}  # fmt: skip


def infer(op: Operator) -> tuple[Type | None, ...] | None:
    """The types of an Operator's results, None for one that is not told; None if its definition tells none at all.

    Raises:
        TypeError: What Python raises for such operands.
    """
    rule = definition_of(op.name).infer
    return None if rule is None else tuple(rule(op))


def told(op: Operator) -> tuple[Type, ...]:
    """The types of an Operator's results, which has none if its definition tells none.

    Raises:
        ProgramError: A type is not told: it has to be stated.
    """
    found = infer(op) or ()
    types = tuple(one for one in found if one is not None)
    if len(types) < len(found):
        raise ProgramError(f"what {op.name} gives is not told by its operands", location=op.location)
    return types


def type_of(operand: Operand) -> Type | None:
    """The type of an operand: a Variable's own, that of a Python number or string; None for all else."""
    return operand.type if isinstance(operand, Variable) else _SCALARS.get(type(operand))


def element_of(operand: Operand) -> Type | None:
    """The type of a list's items."""
    found = type_of(operand)
    return found.element if isinstance(found, ArrayType) else None


def fits(value: Type | None, declared: Type) -> bool:
    """Whether a value of one type may stand where another is declared: what both say is the same.

    >>> import torch
    >>> known = TensorType(torch.float32, (2, 3))
    >>> fits(known, TensorType(None, ("s0", 3))), fits(known, TensorType(None, (2, 4)))
    (True, False)
    """
    if value is None or isinstance(value, ObjectType) or isinstance(declared, ObjectType):
        return True
    if isinstance(value, TensorType) and isinstance(declared, TensorType):
        if None not in (value.dtype, declared.dtype) and value.dtype != declared.dtype:
            return False
        if None not in (value.device, declared.device) and value.device != declared.device:
            return False
        if value.shape is None or declared.shape is None:
            return True
        pairs = zip(value.shape, declared.shape)
        return len(value.shape) == len(declared.shape) and not any(
            a != b for a, b in pairs if type(a) is int and type(b) is int
        )
    if isinstance(value, ArrayType) and isinstance(declared, ArrayType):
        return fits(value.element, declared.element)
    return value == declared


def common(types: Iterable[Type | None]) -> Type | None:
    """The type that says what all of some types say; None where one of them is not told, or they differ in kind."""
    found = list(types)
    if not found or any(one is None for one in found):
        return None
    result = found[0]
    for one in found[1:]:
        result = _both(result, one)
    return result


def _both(a: Type | None, b: Type | None) -> Type | None:
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        shape = None
        if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
            shape = a.shape if a.shape == b.shape else None
        return TensorType(a.dtype if a.dtype == b.dtype else None, shape, a.device if a.device == b.device else None)
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        element = _both(a.element, b.element)
        return None if element is None else ArrayType(element)
    return a if a == b else None


def check_types(op: Operator, fail: Fail) -> None:
    """The results of an Operator are declared as what its definition tells."""
    if definition_of(op.name).asks_torch:
        return
    try:
        told = infer(op)
    except TypeError as error:
        fail("type", f"{op.name} cannot take these operands: {error}")
    for position, (out, type_) in enumerate(zip(op.outputs, told or ())):
        if not fits(type_, out.type):
            which = "the result" if len(op.outputs) == 1 else f"result {position}"
            fail("type", f"{which} of {op.name} is {print_type(type_ or out.type)}, not {print_type(out.type)}")


def check_flow(
    op: Operator, fail: Fail, what: str, values: Sequence[Operand], into: Sequence[Variable]
) -> None:
    """Each value may become the Variable in its place: what a loop carries keeps its type."""
    for value, target in zip(values, into):
        type_ = type_of(value)
        if type_ is not None and not fits(type_, target.type):
            fail("type", f"{op.name} {what} {print_type(type_)} as %{target.name}, which is {print_type(target.type)}")


__all__ = ["check_flow", "check_types", "common", "element_of", "fits", "infer", "told", "type_of"]
