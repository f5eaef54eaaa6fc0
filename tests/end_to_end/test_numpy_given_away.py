"""NumPy's arrays and scalars of the run, given to what takes a buffer or a number: done as eager, or refused."""

from __future__ import annotations

import base64
import binascii
import bz2
import cmath
import ctypes
import datetime
import decimal
import fractions
import hashlib
import hmac
import io
import json
import linecache
import lzma
import math
import operator
import pickle
import re
import statistics
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import difference

BUFFERS = (
    "memoryview(a)", "bytes(a)", "bytearray(a)", "io.BytesIO(a)", "io.BytesIO().write(a)",
    "io.BytesIO(b'abcd').readinto(a)",
    "base64.b64encode(a)", "base64.b32encode(a)", "base64.b16encode(a)", "base64.b85encode(a)", "base64.b64decode(a)",
    "base64.urlsafe_b64encode(a)", "hashlib.md5(a)", "hashlib.new('md5', a)", "hashlib.sha256(string=a)",
    "hashlib.sha1().update(a)", "hmac.new(b'k', a, 'md5')", "zlib.crc32(a)", "zlib.adler32(a)", "zlib.compress(a)",
    "binascii.hexlify(a)", "binascii.b2a_base64(a)", "bz2.compress(a)", "lzma.compress(a)", "pickle.dumps(a)",
    "struct.unpack_from('f', a)", "struct.pack_into('f', a, 0, 1.0)", "b''.join([a])", "int.from_bytes(a, 'little')",
    "str(a, 'latin1')", "re.match(b'a', a)", "b'ab'.find(a)", "bytearray().extend(a)", "json.dumps(a)", "a.tobytes()",
    "statistics.mean(a)", "statistics.stdev(a)", "(ctypes.c_char * 4).from_buffer(a)", "np.frombuffer(a)",
)  # fmt: skip
NUMBERS = (
    "complex(a)", "complex(a, a)", "complex(1.0, a)", "float(a)", "int(a)", "bool(a)", "round(a)", "abs(a)",
    "divmod(a, 2)",
    "memoryview(a)", "io.BytesIO(a)", "math.sqrt(a)", "math.trunc(a)", "math.floor(a)", "cmath.sqrt(a)",
    "cmath.polar(a)",
    "fractions.Fraction(a)", "decimal.Decimal(a)", "datetime.timedelta(seconds=a)", "struct.pack('d', a)",
    "json.dumps(a)", "ctypes.c_float(a).value", "statistics.mean([a, a])", "a.hex()", "a.is_integer()",
    "a.as_integer_ratio()", "operator.index(a)", "range(a)", "chr(a)", "bytes(a)", "max(a, 1.0)", "sum([a, a])",
    "a.item()",
)  # fmt: skip
ARRAYS = {"array": "x.numpy() * 1", "ints": "x.long().numpy() * 1", "copy": "np.array(x)"}
SCALARS = {
    "float32": "(x.numpy() * 1)[0]", "float64": "(x.double().numpy() * 1)[0]",
    "int64": "(x.long().numpy() * 1)[0]",
    "sum": "x.numpy().sum()",
}  # fmt: skip
LIBRARIES = {one.__name__: one for one in (
    base64, binascii, bz2, cmath, ctypes, datetime, decimal, fractions, hashlib, hmac, io, json, lzma, math, operator,
    pickle, re, statistics, struct, zlib)}  # fmt: skip


def outcome(function: Any, scale: float) -> Any:
    try:
        result = function(torch.ones(2) * scale)
    except TraceError as error:
        return error
    except Exception as error:
        return type(error)
    return type(result).__name__ if re.search(" at 0x", repr(result)) else result


def held(make: str, use: str) -> set[str]:
    """The codes of the refusals; what is not refused is eager's."""
    source = f"def f(x):\n    a = {make}\n    return {use}\n"
    name = f"<given {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {**LIBRARIES, "np": np, "__name__": __name__}
    exec(compile(source, name, "exec"), space)
    static, codes = to_static(space["f"]), set()
    for scale in (1.0, 2.0):
        got, expected = outcome(static, scale), outcome(space["f"], scale)
        if isinstance(got, TraceError):
            assert got.location is not None and "Numpy" not in str(got)
            codes.add(str(got.code))
        else:
            assert not difference(got, expected), (use, got, expected)
    return codes


@pytest.mark.parametrize("make", ARRAYS)
@pytest.mark.parametrize("use", BUFFERS)
def test_an_array_for_its_memory(use: str, make: str) -> None:
    assert held(ARRAYS[make], use) <= {"D2S213", "D2S214"}


@pytest.mark.parametrize("make", SCALARS)
@pytest.mark.parametrize("use", NUMBERS)
def test_a_scalar_for_its_number(use: str, make: str) -> None:
    assert held(SCALARS[make], use) <= {"D2S213", "D2S263", "D2S267"}


@pytest.mark.parametrize("use", BUFFERS[:4] + BUFFERS[6:12])
def test_memory_is_refused(use: str) -> None:
    assert held(ARRAYS["array"], use) == {"D2S213"}
