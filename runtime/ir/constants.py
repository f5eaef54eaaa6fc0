"""Constants and names in the text form: the spelling that the printer writes and the parser reads.

Exact for every constant an Operator may hold: NaN and its sign, negative zero, ints of any size, any unicode.
"""

from __future__ import annotations

import math
import re

import torch

KEYWORDS = frozenset(
    "program input param assume where return as write yield op attrs grad autocast in".split()
)
"""Words that begin or continue a statement; an Operator of such a name is spelled ``op "name"(...)``."""

SHORT_DTYPES: dict[str, torch.dtype] = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
    "bool": torch.bool, "c32": torch.complex32, "c64": torch.complex64, "c128": torch.complex128,
}  # fmt: skip
DTYPE_NAMES = {dtype: short for short, dtype in SHORT_DTYPES.items()}

TORCH_CONSTANTS: dict[str, object] = {
    str(value): value
    for value in vars(torch).values()
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format))
}
"""``"torch.float32" -> torch.float32``: every dtype, layout and memory format of this torch."""

_HINTED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\.[0-9]+)?\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*\Z")
_VARIABLE = re.compile(r"[A-Za-z0-9_.]+\Z")
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_UNESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_DECIMAL_BITS = 10_000  # beyond this Python may refuse decimal digits; hexadecimal has no limit


class MadeByRuns:
    """An operand that each run makes anew, so that a file holds it by a number: a random generator of the function's.

    The text form has none.
    """


def quote(text: str) -> str:
    r"""A string in double quotes; what is not printable is escaped.

    >>> print(quote('a"b\n\ud800'))
    "a\"b\n\ud800"
    """
    return '"' + "".join(_escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def unquote(text: str) -> str:
    r"""The string that ``quote`` spelled; ValueError for an unknown escape.

    >>> unquote(r'"a\"b\x00"')
    'a"b\x00'
    """
    parts: list[str] = []
    at, end = 1, len(text) - 1
    while at < end:
        char = text[at]
        if char != "\\":
            parts.append(char)
            at += 1
            continue
        kind = text[at + 1]
        width = {"x": 2, "u": 4, "U": 8}.get(kind)
        if width is None:
            if kind not in _UNESCAPES:
                raise ValueError(f"unknown escape \\{kind} in a string")
            parts.append(_UNESCAPES[kind])
            at += 2
            continue
        digits = text[at + 2 : min(at + 2 + width, end)]
        if not re.fullmatch(rf"[0-9a-fA-F]{{{width}}}", digits):
            raise ValueError(f"\\{kind} needs {width} hexadecimal digits")
        if int(digits, 16) > 0x10FFFF:
            raise ValueError(f"\\{kind}{digits} is no character")
        parts.append(chr(int(digits, 16)))
        at += 2 + width
    return "".join(parts)


def spell_identifier(name: str) -> str:
    """A keyword argument, symbol or attribute name: bare where possible, else quoted."""
    return name if _IDENTIFIER.match(name) else quote(name)


def spell_operator(name: str) -> str:
    """An Operator's name: bare where possible, else ``op "name"``."""
    return name if _DOTTED.match(name) and name not in KEYWORDS else f"op {quote(name)}"


def spell_variable(name: str) -> str:
    """``%name``, or ``%"any name"``."""
    return f"%{name}" if _VARIABLE.match(name) else f"%{quote(name)}"


def implied_hint(name: str) -> str:
    """The user's name that a Variable's own name tells: a hint that is just this is not written.

    >>> implied_hint("h"), implied_hint("h.2"), implied_hint("7")
    ('h', 'h', '')
    """
    match = _HINTED.match(name)
    return match.group(1) if match else ""


def spell_constant(value: object) -> str | None:
    """A leaf constant's spelling, or None for an object that is no constant of the IR.

    >>> [spell_constant(value) for value in (-0.0, float("nan"), 1e16, complex(0, -1), torch.float32)]
    ['-0.0', 'nan', '1e+16', 'complex(0.0, -1.0)', 'torch.float32']
    """
    kind = type(value)
    if value is None or kind is bool:
        return str(value)
    if isinstance(value, int) and kind is int:
        return str(value) if value.bit_length() < _DECIMAL_BITS else hex(value)
    if isinstance(value, float) and kind is float:
        return _spell_float(value)
    if isinstance(value, complex) and kind is complex:
        return f"complex({_spell_float(value.real)}, {_spell_float(value.imag)})"
    if isinstance(value, str) and kind is str:
        return quote(value)
    if isinstance(value, torch.device):
        return f"device({quote(str(value))})"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    return None


def _spell_float(value: float) -> str:
    if math.isnan(value):
        return "nan" if math.copysign(1.0, value) > 0 else "-nan"
    return repr(value)
