"""Whether ``int``, ``float``, ``chr`` and functions of ``math`` raise ValueError for a value, written in Python: what a
trace asks of numbers and texts that only the run knows.
"""

from __future__ import annotations

from typing import Any

_INFINITE = float("inf")
_LARGEST_EXPONENT = 709.782712893384  # ``math.log(sys.float_info.max)``


def no_int(text: Any) -> bool:
    return not is_int(text)


def no_float(text: Any) -> bool:
    return not is_float(text)


def is_nan(number: Any) -> Any:
    return number != number


def is_infinite(number: Any) -> Any:
    return number == _INFINITE or number == -_INFINITE


def exp_overflows(number: Any) -> Any:
    return number > _LARGEST_EXPONENT and number != _INFINITE


def is_negative(number: Any) -> Any:
    return number < 0


def is_not_positive(number: Any) -> Any:
    return number <= 0


def is_no_character(number: Any) -> Any:
    return number < 0 or number > 0x10FFFF


def is_int(text: Any) -> bool:
    """Whether ``int(text)`` is a number.

    >>> [is_int(one) for one in (" -12", "1_000", "", "1.0", "1__0", "+")]
    [True, True, False, False, False, False]
    """
    return _are_digits(_without_sign(text.strip()))


def is_float(text: Any) -> bool:
    """Whether ``float(text)`` is a number.

    >>> [is_float(one) for one in ("1", "-.5e-3\\n", "1.", "nan", "-Infinity", ".", "1e", "1_.0", "x")]
    [True, True, True, True, True, False, False, False, False]
    """
    rest = _without_sign(text.strip().lower())
    if rest == "inf" or rest == "infinity" or rest == "nan":
        return True
    place = rest.find("e")
    if place >= 0:
        if not _are_digits(_without_sign(rest[place + 1 :])):
            return False
        rest = rest[:place]
    point = rest.find(".")
    if point < 0:
        return _are_digits(rest)
    whole, part = rest[:point], rest[point + 1 :]
    if len(whole) == 0:
        return _are_digits(part)
    return _are_digits(whole) and (len(part) == 0 or _are_digits(part))


def _without_sign(text: Any) -> Any:
    if text[:1] == "+" or text[:1] == "-":
        return text[1:]
    return text


def _are_digits(text: Any) -> bool:
    """Whether it is decimal digits, between which single underscores may stand."""
    apart = text.find("__") < 0 and not text.startswith("_") and not text.endswith("_")
    return apart and text.replace("_", "").isdecimal()
