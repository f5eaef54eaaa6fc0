"""``json.dumps`` written in Python: what a trace runs where only the run knows some of the values.

>>> dumps({"a": [1, 2.5, None, True], 3: "é\\n"}), dumps([{}, []], 2), dumps({"b": 1, "a": 2}, None, (",", ":"), True)
('{"a": [1, 2.5, null, true], "3": "\\\\u00e9\\\\n"}', '[\\n  {},\\n  []\\n]', '{"a":2,"b":1}')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def dumps(
    value: Any, indent: Any = None, separators: Any = None, sort_keys: bool = False, ensure_ascii: bool = True,
    allow_nan: bool = True, default: Callable[[Any], Any] | None = None,
) -> str:  # fmt: skip
    step = indent if indent is None or isinstance(indent, str) else " " * indent
    if separators is None:
        separators = (", ", ": ") if step is None else (",", ": ")
    return _text(value, "\n", (step, separators[0], separators[1], sort_keys, ensure_ascii, allow_nan, default))


def _text(value: Any, line: str, how: tuple[Any, ...]) -> str:
    """``line``: how a line begins here."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return _quoted(value, how[4])
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return _float(value, how[5])
    if isinstance(value, (list, tuple)):
        below = line if how[0] is None else line + how[0]
        return _between("[", [_text(item, below, how) for item in value], "]", line, how)
    if isinstance(value, dict):
        below = line if how[0] is None else line + how[0]
        items = sorted(value.items(), key=lambda item: item[0]) if how[3] else value.items()
        parts = [_quoted(_key(key, how[5]), how[4]) + how[2] + _text(item, below, how) for key, item in items]
        return _between("{", parts, "}", line, how)
    if how[6] is None:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return _text(how[6](value), line, how)


def _between(start: str, parts: list[str], end: str, line: str, how: tuple[Any, ...]) -> str:
    if len(parts) == 0:
        return start + end
    if how[0] is None:
        return start + how[1].join(parts) + end
    return start + line + how[0] + (how[1] + line + how[0]).join(parts) + line + end


def _float(value: float, allow_nan: bool) -> str:
    if value == value and value not in (float("inf"), float("-inf")):
        return repr(float(value))
    if not allow_nan:
        raise ValueError("Out of range float values are not JSON compliant")
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _key(key: Any, allow_nan: bool) -> str:
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return repr(int(key))
    if isinstance(key, float):
        return _float(key, allow_nan)
    raise TypeError(f"keys must be str, int, float, bool or None, not {type(key).__name__}")


_ESCAPED, _LETTERS = '"\\\n\r\t\b\f', '"\\nrtbf'


def _quoted(text: str, ensure_ascii: bool) -> str:
    if text.isalnum() and text.isascii():
        return '"' + text + '"'
    return '"' + "".join([_escaped(letter, ensure_ascii) for letter in text]) + '"'


def _escaped(letter: str, ensure_ascii: bool) -> str:
    if letter in _ESCAPED:
        return "\\" + _LETTERS[_ESCAPED.index(letter)]
    code = ord(letter)
    if code >= 32 and (code < 127 or not ensure_ascii):
        return letter
    if code < 65536:
        return f"\\u{code:04x}"
    return f"\\u{55296 + ((code - 65536) >> 10):04x}\\u{56320 + ((code - 65536) & 1023):04x}"


__all__ = ["dumps"]
