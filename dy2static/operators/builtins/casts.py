"""``int float bool complex str repr ascii format``, ``len``: of tensors and staged numbers when the Program runs.

    int(t)   ->   %0 = scalar.item(%t); %1 = scalar.int(%0)
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.calls import numpy_arrays, shown_in_python
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedIterator, StagedSequence, stored_sequence
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs import user_methods
from dy2static.operators.provenance.provenance import note_modules
from dy2static.operators.shared.staging import (
    Choice,
    Session,
    Staged,
    distribute,
    held_choice,
    python_method,
    spread,
)
from dy2static.operators.values.f_string import (
    format_value,
    is_exception_of_traced,
    is_staged_container,
    text_of_exception,
)
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.recording import reads
from runtime.tracer.values.numpy_arrays import NumpyArray, NumpyScalar


def _number(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def cast(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not args:
            return function(**kwargs)
        value, *rest = args
        if is_a(value, Choice):
            return distribute(session, value, lambda option: cast(session, (option, *rest), kwargs))
        if is_a(value, torch.Tensor) and not rest:
            value = reads.number(session, value)
        if name == "complex" and type(value) is NumpyScalar:
            value = numpy_arrays.number(session, value)
        if is_a(value, NumpyArray) and not rest:
            return numpy_arrays.as_number(session, value, name)
        if name == "complex" and (is_a(value, Staged) or any(is_a(one, Staged) for one in rest)):
            raise session.error("a complex number is made of numbers that are only known while the Program runs",
                                hint="Use torch.complex on tensors.", code="D2S263")
        if is_a(value, Staged):
            return session.scalar(name, value, *rest, *kwargs.values())
        method = python_method(value, f"__{name}__")
        if method is not None:
            return call(method, value)
        if not hasattr(type(value), f"__{name}__"):
            number = user_methods.as_number(session, value, *_INSTEAD[name])
            if number is not value:
                return cast(session, (number, *rest), kwargs)
        return function(*args, **kwargs)

    return cast


_INSTEAD = {"int": ("__index__",), "float": ("__index__",), "complex": ("__float__", "__index__")}
"""What Python asks where a class has no method of the name itself."""


def _index(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1 and is_a(args[0], Choice):
        return distribute(session, args[0], lambda option: _index(session, (option,), kwargs))
    if len(args) == 1 and is_a(args[0], torch.Tensor):
        return reads.index(session, args[0])
    if len(args) == 1 and is_a(args[0], Staged):
        if args[0].kind not in ("int", "bool"):
            raise TypeError(f"'{args[0].kind}' object cannot be interpreted as an integer")
        return args[0] if args[0].kind == "int" else session.scalar("int", args[0])
    found = user_methods.as_number(session, args[0], "__index__") if len(args) == 1 else None
    return operator.index(*args, **kwargs) if not args or found is args[0] else found


def _bool(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return truth_of(session, *args) if len(args) == 1 and not kwargs else bool(*args, **kwargs)


def _text(letter: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def convert(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) > 1 and held_choice((args, kwargs)) is not None:
            return spread(session, (args, kwargs), lambda given: convert(session, *given))
        if len(args) == 1 and not kwargs and is_a(args[0], (Staged, torch.Tensor, Choice, NumpyScalar)):
            if is_a(args[0], Staged) and args[0].kind == "str" and letter == "s":
                return args[0]
            return format_value(args[0], letter)
        if len(args) == 1 and not kwargs and is_staged_container(args[0]):
            return format_value(args[0], letter)
        if len(args) == 1 and not kwargs and is_exception_of_traced(args[0], letter):
            return text_of_exception(session, args[0], letter)
        if args and kwargs and is_a(args[0], (Staged, torch.Tensor, Choice)):
            return theirs(function, "", *args[1:], **kwargs)  # which no text is made of: Python says so
        if args and is_a(args[0], torch.nn.Module):  # its text has its settings, and those of what is inside
            note_modules(session, args[0])
        method = _method_for(args[0], letter) if len(args) == 1 else None
        if method is not None:
            shown = call(method, args[0])
            return call(_ESCAPED, shown) if letter == "a" and is_a(shown, (str, Staged, Choice)) else shown
        return function(*args, **kwargs)

    return convert


_ESCAPED: Any = shown_in_python.escaped


def _method_for(value: Any, letter: str) -> Any:
    """The method of a user's class that tells its text."""
    if letter == "s" and getattr(type(value), "__str__", None) is not object.__str__:
        return python_method(value, "__str__")
    return python_method(value, "__repr__")


def _format(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 2 and not is_a(args[1], (str, Staged, Choice)):
        format("", args[1])  # raises
    return format_value(args[0], "", *args[1:])


def _number_text(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``bin oct hex chr`` and ``ord``."""

    def text(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) != 1 or kwargs:
            return function(*args, **kwargs)
        (value,) = args
        if is_a(value, Choice):
            return distribute(session, value, lambda option: text(session, (option,), {}))
        if name != "ord" and not is_a(value, (int, Staged)):
            value = call(operator.index, value)
        return session.scalar(name, value) if is_a(value, Staged) else function(value)

    return text


def _len(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1 or kwargs:
        return len(*args, **kwargs)
    (value,) = args
    if is_a(value, Choice):
        return distribute(session, value, lambda option: _len(session, (option,), {}))
    if is_a(value, NumpyArray):
        return numpy_arrays.length(session, value)
    if is_a(value, Staged):
        if value.kind != "str":
            raise TypeError(f"object of type '{value.kind}' has no len()")
        return session.scalar("str.len", value)
    method = None if is_a(value, StagedSequence) else python_method(value, "__len__")
    if method is not None:
        result = call(method, value)
        if type(result) is int and result < 0:
            raise ValueError("__len__() should return >= 0")
        return result
    sequence = stored_sequence(session, value)
    if is_a(sequence, StagedIterator):
        raise TypeError(f"object of type '{sequence.python_name}' has no len()")
    if sequence is not None:
        return sequence.length(session)
    return len(value)


HANDLERS: list[tuple[Any, Any]] = [
    (int, _number("int", int)), (float, _number("float", float)), (complex, _number("complex", complex)), (bool, _bool),
    (str, _text("s", str)), (repr, _text("r", repr)), (ascii, _text("a", ascii)), (format, _format), (len, _len),
    (operator.index, _index), *((one, _number_text(one.__name__, one)) for one in (bin, oct, hex, chr, ord)),
]  # fmt: skip
