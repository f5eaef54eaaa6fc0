"""Python literals as text: numbers, strings, and f-strings, whose nesting rules differ between Python versions."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable

NESTS_FREELY = sys.version_info >= (3, 12)  # PEP 701: any quote and backslash inside an f-string's braces
Printer = Callable[[ast.expr, tuple[str, ...]], str]  # prints what stands in braces, free of the given quotes
QUOTES = ("'", '"', '"""', "'''")


class Unprintable(Exception):
    """No literal of this Python version can stand here. Internal: the caller tries other quotes first."""


def number(value: int | float | complex) -> str:
    """The text of a non-negative number (signs are operators in Python).

    >>> number(10**5000) == hex(10**5000), number(float("inf")), number(2j)
    (True, '1e1000', '2j')
    """
    if isinstance(value, complex):
        return "1e1000j" if value.imag == float("inf") else repr(complex(0, value.imag))
    if isinstance(value, float):
        return "1e1000" if value == float("inf") else repr(value)
    if isinstance(value, bool) or value.bit_length() < 4000:
        return repr(value)
    return hex(value)  # Python limits the digits of decimal conversion


def string(value: str | bytes, forbidden: Iterable[str] = ()) -> str:
    r"""The text of a string; inside an f-string of an older Python it contains no ``forbidden`` and no backslash.

    >>> print(string("it's"), string(b"\x00a"), string("it's", forbidden=['"']))
    "it's" b'\x00a' '''it's'''
    """
    plain = repr(value)
    forbidden = tuple(forbidden)
    if not forbidden:
        return plain
    if isinstance(value, bytes):
        if not all(32 <= byte < 127 or byte == 10 for byte in value):
            raise Unprintable
        prefix, text = "b", value.decode("ascii")
    else:
        prefix, text = "", value
    for quote in QUOTES:
        literal = prefix + quote + text + quote
        if fits(literal, forbidden) and evaluates_to(literal, value):
            return literal
    raise Unprintable


def docstring(value: str, indent: str) -> str:
    """A string as a statement of its own: triple-quoted if that reads better and is exactly the same."""
    escaped = value.replace("\\", "\\\\").replace('"""', '""\\"')
    literal = f'"""{escaped}"""'
    if value.isprintable() or value.replace("\n", "").replace("\t", "").isprintable():
        if not value.endswith('"') and evaluates_to(literal, value):
            return literal
    return repr(value)


def fits(text: str, forbidden: Iterable[str]) -> bool:
    """May ``text`` stand in the braces of f-strings with these quotes (before Python 3.12)?"""
    single = any(len(quote) == 1 for quote in forbidden)
    return "\\" not in text and not (single and "\n" in text) and not any(quote in text for quote in forbidden)


def evaluates_to(literal: str, value: str | bytes) -> bool:
    try:
        parsed = ast.literal_eval(literal)
    except (SyntaxError, ValueError):
        return False
    return type(parsed) is type(value) and bool(parsed == value)


def f_string(node: ast.JoinedStr, forbidden: tuple[str, ...], expression: Printer) -> str:
    """The text of an f-string."""
    for quote in QUOTES:
        inner = () if NESTS_FREELY else (*forbidden, quote)
        try:
            text = "f" + quote + "".join(_parts(node, quote, inner, expression, bool(forbidden))) + quote
        except Unprintable:
            continue
        if not forbidden or fits(text, forbidden):
            return text
    raise Unprintable


def _parts(
    node: ast.JoinedStr,
    quote: str,
    inner: tuple[str, ...],
    expression: Printer,
    nested: bool,
) -> Iterable[str]:
    for value in node.values:
        if isinstance(value, ast.Constant):
            yield _literal(str(value.value), quote, nested).replace("{", "{{").replace("}", "}}")
        elif isinstance(value, ast.FormattedValue):
            text = expression(value.value, inner)
            if not NESTS_FREELY and not fits(text, inner):
                raise Unprintable
            conversion = "" if value.conversion == -1 else "!" + chr(value.conversion)
            spec = ""
            if isinstance(value.format_spec, ast.JoinedStr):
                spec = ":" + "".join(_parts(value.format_spec, quote, inner, expression, nested))
            yield "{" + (" " if text.startswith("{") else "") + text + conversion + spec + "}"
        else:
            raise Unprintable


def _literal(text: str, quote: str, nested: bool) -> str:
    """Literal text between the braces, escaped; a nested f-string of an older Python has no escapes."""
    escaped = repr(text + '"')[1:-2].replace("\\'", "'") if "'" in text else repr(text)[1:-1]
    escaped = escaped.replace(quote[0], "\\" + quote[0]) if quote[0] in escaped else escaped
    if nested and not NESTS_FREELY and "\\" in escaped:
        if "\\" in text or quote in text or not text.replace("\n", "").isprintable():
            raise Unprintable
        return text
    return escaped
