"""Operands and output trees survive the document bit by bit."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import StorageError
from runtime.ir import UNDEF, TensorType, Variable
from runtime.ir.constants import TORCH_CONSTANTS
from runtime.ir.tree import Leaf, Record
from runtime.storage.document import Node, read_json, write_json
from runtime.storage.operands import decode, encode
from tests.oracle import same

X = Variable("x", TensorType(torch.float32, ()))


def round_trip(value: Any) -> Any:
    return decode(read_json(write_json(encode(value)), "document"), {"x": X})


CONSTANTS = [
    None, True, False, 0, 1, -1, 2**63, -(2**63), 2**64 + 1, -(10**5000), 1.0, -0.0, 0.1, 1e16, 5e-324, 1.8e308 / 2,
    math.inf, -math.inf, math.nan, math.copysign(math.nan, -1.0), 1j, complex(-0.0, math.nan), complex(math.inf, -0.0),
    "", "a\"\\\n\x00", "\ud83d\ude00", "😀", "\ud800", "int", b"\x00\xff", torch.device("cpu"), torch.device("cuda", 1),
    slice(None), slice(1, X, -1), [], (), {}, [1, [2.0, (X,)]], {"a": X, 1: (None,)}, {(1, 2): "b"}, {"tuple": [1]},
    {"dict": []},
    UNDEF, Leaf(3), Record("namedtuple", "m.P", (("keys", ("a", "b")), ("a", Leaf(0)), ("b", [1.0]))),
    *TORCH_CONSTANTS.values(),
]  # fmt: skip


@pytest.mark.parametrize("value", CONSTANTS, ids=lambda value: type(value).__name__)
def test_constant_survives(value: Any) -> None:
    same(round_trip(value), value, bits=True)


ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.sampled_from(list(TORCH_CONSTANTS.values()))
    | st.just(X)
)
KEYS = st.none() | st.booleans() | st.text() | st.integers()
TREES = st.recursive(ATOMS, lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner))


@given(TREES)
def test_any_tree_survives(value: Any) -> None:
    again = round_trip(value)
    # a NaN's payload is not kept, its sign is
    assert encode(again) == encode(value) and type(again) is type(value)


@pytest.mark.parametrize("value", [object(), {1}, torch.ones(1), [object()], len, int, torch.Size([1])])
def test_other_objects_are_refused(value: Any) -> None:
    with pytest.raises(StorageError, match=r"an object of type .* cannot be saved"):
        encode(value)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"var": "y"}, r"d\.var: %y is read before it is assigned"),
        ({"dtype": "float33"}, "no dtype 'float33'"),
        ({"dtype": "strided"}, "no dtype 'strided'"),
        ({"device": "abacus"}, "'abacus' is no device"),
        ({"float": "1.0"}, "expected 'inf' or"),
        ({"complex": [1, 2.0]}, "expected a float"),
        ({"int": "0xg"}, "expected a hexadecimal number"),
        ({"dict": [[[1], 2]]}, r"d\.dict\[0\]\[0\]: this cannot be a key"),
        ({"dict": [[1, 2], [1, 3]]}, "a key stands twice"),
        ({"dict": [[1]]}, "expected 2 items, found 1"),
        ({"pickle": "x"}, "unknown kind of operand 'pickle'"),
        ({"tuple": 1, "list": 2}, "expected an object with one key"),
        ({"undef": False}, "expected true"),
        ({"leaf": -1}, "at least 0"),
        ({"bytes": "0"}, "hexadecimal digits"),
        ({"str": {"codes": [1114112]}}, "expected a string"),
    ],
)
def test_malformed_operand_is_located(document: Any, problem: str) -> None:
    with pytest.raises(StorageError, match=problem):
        decode(Node(document, "d"), {"x": X})
