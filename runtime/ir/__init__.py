"""The Program: its Blocks, Operators and Variables, and their text form."""

from runtime.ir.block import Block
from runtime.ir.location import Location
from runtime.ir.operator import Operator, leaves
from runtime.ir.program import Assume, Input, Parameter, Program, Write
from runtime.ir.types import ArrayType, Dim, ObjectType, ScalarType, TensorType, Type
from runtime.ir.variable import UNDEF, Operand, Undef, Variable

__all__ = [
    "UNDEF", "ArrayType", "Assume", "Block", "Dim", "Input", "Location", "ObjectType", "Operand", "Operator",
    "Parameter", "Program", "ScalarType", "TensorType", "Type", "Undef", "Variable", "Write", "leaves",
]
