"""Which Operators may raise: those that are said not to are run on what is hardest for them."""

from __future__ import annotations

import copy
import itertools
import math

import pytest
import torch

from runtime.ir.operator import Operator
from runtime.ir.parser import parse_program
from runtime.ir.types import ScalarType, TensorType
from runtime.ir.variable import Variable
from runtime.ops import aten, raising
from runtime.ops.scalar import FUNCTIONS, result_kind
from runtime.storage.allowed import allowed_operators
from tests.runtime.ops.calls import CALLS

NUMBERS = {
    "int": [0, 1, -1, 10**400, -(2**63)], "bool": [True, False],
    "float": [0.0, -1.5, math.inf, math.nan, 1e308, 5e-324], "str": ["", "a", "1"],
}  # fmt: skip
FILLS = [0, 1, -1, math.nan, math.inf, 1e30]


def parsed(line: str) -> Operator:
    text = f"""program "f" {{
      input %x : f32["s0", 3] = "x"
      input %y : f32["s0", 3] = "y"
      input %z : f32["s1", 3] = "z"
      input %k : i64[3] = "k"
      input %c : f32[3] = "c"
      input %w : f32[5, 3] = "w"
      input %d : f64[5, 3] = "d"
      input %e : f32[5] = "e"
      %n : int = scalar.item(%k)
      %t : float = scalar.item(%c)
      %b : bool = scalar.lt(%t, 0.0)
      {line}
      return %x as $0
    }}"""
    return parse_program(text).block.ops[-1]


@pytest.mark.parametrize("line", [
    "%r : f32[3, 3] = aten.select.int(%x, 0, %n)", '%r : f32["s0", 3] = aten.add.Tensor(%x, %z)',
    "%r : i64[3] = aten.div.Tensor_mode(%k, %k, rounding_mode=\"floor\")", "%r : f32[3] = aten.div.Scalar(%c, %n)",
    "%r : f32[3] = aten.index.Tensor(%c, [%k])", "%r : float = scalar.truediv(1, %n)",
    "%r : float = scalar.truediv(%n, 2)", "%r : int = scalar.mod(%n, 0)", "%r : int = scalar.int(%t)",
    "%r : float = scalar.float(%n)", "%r : f32[] = aten.select.int(%c, 0, %n)", "%r : float = scalar.item(%c)",
    '%r : f32["s2"] = aten.zeros.default([%n])', "%r : f32[3] = aten.add.Scalar(%c, %n)", "%r : str = scalar.str(%n)",
    '%r : f32["s2"] = aten.reshape.default(%x, [-1])', "%r : float = scalar.math.sqrt(%t)",
    "%r : f32[3] = aten.linalg_cholesky.default(%c)", "%r : int = scalar.invert(%b)",
    "%r : f32[1000000, 1000000] = aten.zeros.default([1000000, 1000000])",
    '%r : f32["s0", 5] = aten.linear.default(%x, %d)', '%r : f32["s0", 5] = aten.linear.default(%x, %w, %c)',
    "%r : f32[5, 5] = aten.mm.default(%w, %w)", "%r : f32[5] = aten.matmul.default(%w, %c)",
    '%r : f32["s0", 3] = aten.softmax.int(%x, 2)', '%r : f32["s0", 3] = aten.layer_norm.default(%x, [4])',
    '%r : f32["s0", 3] = aten.layer_norm.default(%x, [3], %e)', '%r : f32["s0"] = aten.log_softmax.int(%k, 0)',
])  # fmt: skip
def test_may(line):
    assert raising.may_raise(parsed(line))


@pytest.mark.parametrize("line", [
    '%r : f32["s0", 3] = aten.add.Tensor(%x, %y)', '%r : f32["s0", 3] = aten.mul.Tensor(%x, %c)',
    '%r : f32[3, "s0"] = aten.transpose.int(%x, 0, 1)', "%r : f32[3] = aten.add.Tensor(%c, %k)",
    "%r : f32[] = aten.select.int(%c, 0, 2)", "%r : int = scalar.add(%n, 1)", "%r : int = scalar.floordiv(%n, 2)",
    "%r : bool = scalar.lt(%n, %t)", "%r : f32[3] = aten.mul.Scalar(%c, %t)", "%r : f32[7] = aten.zeros.default([7])",
    '%r : f32["s0", 3] = aten.tanh.default(%x)', "%r : int = scalar.size(%x, 0)", "%r : float = scalar.abs(%t)",
    "%r : int = scalar.invert(%n)",
    '%r : f32["s0", 2] = aten.slice.Tensor(%x, 1, 0, 2)', '%r : f32["s0", 5] = aten.linear.default(%x, %w, %e)',
    '%r : f32["s0", 5] = aten.linear.default(%x, %w, None)', '%r : f32["s0", 3] = aten.softmax.int(%x, -1)',
    '%r : f32["s0", 3] = aten.layer_norm.default(%x, [3], %c, %c)', "%r : f32[5, 3] = aten.gelu.default(%w)",
])  # fmt: skip
def test_may_not(line):
    assert not raising.may_raise(parsed(line))


def test_no_scalar_operator_raises_that_is_said_not_to():
    proven = 0
    for name, function in FUNCTIONS.items():
        if name in ("scalar.item", "scalar.truth", "scalar.size", "scalar.numel", "scalar.dim", "scalar.select",
                    "scalar.is_none"):
            continue
        for count in (2,) if name == "scalar.mod" else (1, 2):
            for kinds in itertools.product(NUMBERS, repeat=count):
                for constant in (None, 0, 2, 0.0, 2.0):
                    if constant is not None and (count == 1 or kinds[1] != type(constant).__name__):
                        continue
                    variables = [Variable(f"v{position}", ScalarType(kind)) for position, kind in enumerate(kinds)]
                    args = tuple(variables) if constant is None else (variables[0], constant)
                    try:
                        result_kind(name, kinds, [None, constant] if constant is not None else [])
                    except Exception:  # no such operator
                        continue
                    if raising.may_raise(Operator(name, args)):
                        continue
                    proven += 1
                    for values in itertools.product(*(NUMBERS[kind] for kind in kinds)):
                        function(*(values if constant is None else (values[0], constant)))
    assert proven > 100


def test_no_tensor_operator_raises_that_is_said_not_to():
    proven = set()
    for name, args, *rest in CALLS:
        name, keywords = f"aten.{name}", rest[0] if rest else {}
        if name not in allowed_operators():
            continue
        made = [_variable(arg) for arg in args]
        if any(variable is None for variable in made):
            continue
        overload = aten.resolve(name)
        results = overload(*copy.deepcopy(args), **keywords)
        outputs = tuple(
            Variable("r", TensorType(out.dtype, tuple(out.shape)))
            for out in (results if isinstance(results, (tuple, list)) else [results])
            if isinstance(out, torch.Tensor)
        )
        if raising.may_raise(Operator(name, tuple(made), dict(keywords), outputs)):
            continue
        proven.add(name)
        for fill in FILLS:
            overload(*(_filled(arg, fill) for arg in args), **keywords)
    assert len(proven) > 20


def _variable(value):
    if isinstance(value, torch.Tensor):
        return Variable("v", TensorType(value.dtype, tuple(value.shape)))
    return None if isinstance(value, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in value) else value


def _filled(value, fill):
    if not isinstance(value, torch.Tensor):
        return value
    if not value.is_floating_point() and (fill != fill or abs(fill) > 2):
        return value
    return torch.full_like(value, fill)
