"""f-strings: formatted at once, or when the Program runs.

    f"n={n:>3}"   ->   fstring("n=", format_value(n, -1, ">3"))
"""

from __future__ import annotations

import functools
import operator
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import torch

from dy2static.operators.calls import dataclass_methods, growing, numpy_arrays, shown_in_python
from dy2static.operators.calls.call import call
from dy2static.operators.constructs import user_methods
from dy2static.operators.provenance.provenance import note_modules
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import Choice, Session, Staged, active, any_staged, distribute, python_method
from dy2static.operators.values import texts
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers import scalars
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.recording import histories, users_tensors
from runtime.tracer.values import structure
from runtime.tracer.values.numpy_arrays import NumpyScalar, dtype_of

_CONVERSIONS = {-1: "", None: "", "": "", 115: "s", 114: "r", 97: "a", "s": "s", "r": "r", "a": "a"}
_FUNCTIONS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}


_UNSUPPORTED = "unsupported format string passed to Tensor.__format__"


def fstring(*parts: Any) -> Any:
    """The parts, already text, in one string."""
    session = active()
    if session is not None and any(not is_a(part, str) for part in parts):
        first, *rest = texts.few(session, parts)
        return functools.reduce(operator.add, rest, first)
    return "".join(parts)


def format_value(value: Any, conversion: Any = -1, spec: Any = "") -> Any:
    """One replacement field: ``conversion`` is that of ``ast.FormattedValue`` (-1, ``ord("r")``...) or its letter.

    >>> format_value("a", "r", ">5")
    "  'a'"
    """
    session = active()
    if session is not None and is_a(value, torch.nn.Module):
        note_modules(session, value)
    if session is not None and (is_a(value, (Staged, torch.Tensor, Choice)) or any_staged([spec])):
        return _staged(session, value, _CONVERSIONS[conversion], spec)
    if session is not None and is_a(value, NumpyScalar):
        return _of_numpy(session, value, _CONVERSIONS[conversion], spec)
    if session is not None and is_staged_container(value):
        return _staged_container(session, value, _CONVERSIONS[conversion], spec)
    letter = _CONVERSIONS[conversion]
    if session is not None and is_exception_of_traced(value, letter):
        return format_value(text_of_exception(session, value, letter), "", spec)
    if session is not None and not letter:
        found = user_methods.called(session, value, "__format__", spec)
        if found is not user_methods.NOT_USERS:
            return found
    plain = getattr(type(value), "__format__", None) is object.__format__
    if session is not None and plain and not letter and spec == "":
        letter = "s"
    if session is not None and letter and (session.containers.has_growing or _tells_itself(value)):
        return format_value(call(_FUNCTIONS[letter], value), "", spec)
    if session is not None:
        own = {"": asked_methods.SHOWN, "s": ("__str__", "__repr__")}.get(letter, ("__repr__",))
        asked_methods.require_shown(session, "an f-string", (value,), own)
    return format(_FUNCTIONS[letter](value) if letter else value, spec)


def _tells_itself(value: Any) -> bool:
    """Whether a user's class has a method that tells its text."""
    return any(python_method(value, name) is not None for name in ("__str__", "__repr__"))


def _staged(session: Session, value: Any, letter: str, spec: Any) -> Any:
    if is_a(value, Choice):
        return distribute(session, value, lambda option: format_value(option, letter, spec))
    if is_a(spec, Choice):
        return distribute(session, spec, lambda option: format_value(value, letter, option))
    if is_a(value, torch.Tensor):
        if not letter and session.fake(value).dim() == 0 and not isinstance(value, torch.nn.Parameter):
            users_tensors.require_known_text(session, value)
            value = value.item()
        elif letter == "r":
            value, letter = of_tensor(session, "repr", value), ""
        elif not letter and type(spec) is str and spec:
            raise TypeError(_UNSUPPORTED)
        else:
            if not letter and is_a(spec, Staged):
                empty = session.scalar("eq", spec, "")
                session.emit("assert", [session.operand(empty)],
                             attrs={"exception": "TypeError", "message": _UNSUPPORTED})
            value, letter = of_tensor(session, "str", value), ""
    if not letter and not is_a(value, (Staged, str, int, float)):
        format(value, "" if is_a(spec, Staged) else spec)  # a spec of the wrong type, as in eager
        raise _refusal(session, value)
    if letter:
        function = _FUNCTIONS[letter]
        value = session.scalar(function.__name__, value) if is_a(value, Staged) else function(value)
    elif is_a(value, Staged) and value.kind == "str" and is_a(spec, str) and not spec:
        return value
    return session.scalar("format", value, spec)


def _of_numpy(session: Session, value: NumpyScalar, letter: str, spec: Any) -> Any:
    """The text of a scalar of NumPy's: that of Python's number, where NumPy says the same.

    Raises:
        TraceError: D2S213, it says something else (it shows fewer digits of a float32).
    """
    dtype = dtype_of(value)
    if not letter and spec != "" and dtype.kind in "iuf":
        return format_value(numpy_arrays.number(session, value), "", spec)
    if dtype.kind in "iub" or dtype == numpy.float64:
        number = numpy_arrays.number(session, value)
        if letter in ("", "s") and (dtype.kind != "b" or not spec):
            return format_value(number, "s", spec)
        before, zero, after = repr(dtype.type(0)).partition("0.0" if dtype.kind == "f" else "0")
        if dtype.kind != "b" and zero:
            return format_value(fstring(before, format_value(number, "r"), after), "", spec)
    raise session.error(
        f"the text of a {dtype.name} of NumPy's that is only known while the Program runs", code="D2S213",
        hint="Say how many digits (f'{v:.3f}'), or make it a Python number: float(v).")


def of_tensor(session: Session, name: str, tensor: torch.Tensor) -> Any:
    """``str(tensor)`` or ``repr(tensor)``, as ``name`` says, when the Program runs."""
    (var,) = session.emit(f"scalar.{name}", [histories.shown(session, tensor)])
    return scalars.wrap(var)


def is_staged_container(value: Any) -> bool:
    """Whether a list, tuple, dict, size or other container of Python's, whose text has that of what it holds, holds
    what is only known while the Program runs, or an object whose text a method of its class tells, which is asked in
    converted code."""
    if not is_a(value, (list, tuple, dict)) and type(value) not in _TEXTS or _tells(value):
        return False
    return structure.has_traced(value) or any(map(_is_open, walk([value], _parts, _DEEPEST)))


def is_told(value: Any) -> bool:
    """Whether the text of a value is made in converted code: it, or something in it, is only known while the Program
    runs, or the user's class tells its text itself."""
    shown = is_a(value, (torch.Tensor, Staged, Choice, Keyed)) or is_exception_of_traced(value, "s")
    return shown or growing.is_growing(value) or is_staged_container(value) or _tells(value) or any(
        user_methods.is_users(python_method(value, name)) for name in ("__str__", "__format__"))


def _parts(value: Any) -> Any:
    """What the text of a value shows."""
    cls = type(value)
    if is_a(value, dict) and cls in (dict, *_TEXTS):
        return [*dict.keys(value), *dict.values(value)]
    if cls is SimpleNamespace:
        return list(vars(value).values())
    return value if cls in (list, tuple) and not growing.is_growing(value) else list(value) if cls is deque else ()


def _is_open(value: Any) -> bool:
    return structure.has_traced(value) or _tells(value)


def _tells(value: Any) -> bool:
    """Whether a class's own ``__repr__`` is converted."""
    return not _is_named(value) and dataclass_methods.is_shown_by_method(value)


def _is_named(value: Any) -> bool:
    return is_a(value, tuple) and getattr(type(value).__repr__, "__code__", None) is _NAMED


_DEEPEST = 100


def _staged_container(session: Session, value: Any, letter: str, spec: Any) -> Any:
    if letter and spec:
        return format_value(_staged_container(session, value, letter, ""), "", spec)
    if spec:
        if type(value) in (list, tuple, dict, StagedSize) and spec:
            format(type(value)(), spec)  # raises what eager raises
        raise _refusal(session, value)
    return text_of(session, value, ascii if letter == "a" else repr)


def text_of(session: Session, value: Any, text: Callable[[Any], str] = repr) -> Any:
    """``repr(value)``, or ``ascii(value)`` if that is ``text``, put together from the text of its items where some are
    only known while the Program runs."""
    if is_a(value, torch.Tensor):
        return of_tensor(session, "repr", value)
    if is_a(value, Staged):
        return session.scalar(text.__name__, value)
    if is_a(value, Choice):
        return distribute(session, value, lambda option: text_of(session, option, text))
    if type(value) is dict:
        items = [(text_of(session, key, text), ": ", text_of(session, item, text)) for key, item in value.items()]
        return _join("{", items, "}")
    if type(value) is StagedSize:
        return _join("torch.Size([", [(text_of(session, size, text),) for size in value], "])")
    if type(value) in (list, tuple) and growing.is_growing(value):
        return call(shown_in_python.of_list if type(value) is list else shown_in_python.of_tuple, value, text)
    if type(value) is list:
        return _join("[", [(text_of(session, item, text),) for item in value], "]")
    if type(value) is tuple:
        return _join("(", [(text_of(session, item, text),) for item in value], ",)" if len(value) == 1 else ")")
    if type(value) in _TEXTS:
        return call(_TEXTS[type(value)], value, text)
    if _is_named(value):
        fields = zip(type(value)._fields, value)
        written = [(f"{_name(name, text)}=", text_of(session, item, text)) for name, item in fields]
        return _join(f"{_name(type(value).__name__, text)}(", written, ")")
    if _tells(value):
        return call(text, value)
    if structure.has_traced(value):
        raise _refusal(session, value)
    if is_a(value, torch.nn.Module):  # its text has its settings, and those of the modules inside
        note_modules(session, value)
    return text(value)


def _name(name: str, text: Callable[[Any], str]) -> str:
    """A name of the user's as a text has it."""
    return ascii(name)[1:-1] if text is ascii else name


_TEXTS: dict[type, Any] = {
    deque: shown_in_python.of_deque, defaultdict: shown_in_python.of_default_dict,
    OrderedDict: shown_in_python.of_ordered_dict if sys.version_info < (3, 12) else
    shown_in_python.of_ordered_dict_as_dict, SimpleNamespace: shown_in_python.of_namespace,
}  # fmt: skip
_NAMED = namedtuple("_NAMED", "field").__repr__.__code__
"""What every ``namedtuple`` has for its text."""


def is_exception_of_traced(value: Any, letter: str) -> bool:
    """Whether an exception, whose class leaves the text of a ``letter`` to Python, holds what is only known while the
    Program runs."""
    if not is_a(value, BaseException) or not structure.has_traced(value.args):
        return False
    if letter in ("r", "a"):
        return type(value).__repr__ is BaseException.__repr__
    return type(value).__str__ in (BaseException.__str__, KeyError.__str__)


def text_of_exception(session: Session, error: BaseException, letter: str) -> Any:
    """``repr(error)`` or ``str(error)``, as ``letter`` says, of one that holds what only a run knows."""
    args = error.args
    if letter in ("r", "a"):
        text = _FUNCTIONS[letter]
        return _join(f"{_name(type(error).__name__, text)}(", [(text_of(session, arg, text),) for arg in args], ")")
    if len(args) == 1 and type(error).__str__ is not KeyError.__str__:
        return call(str, args[0])
    return text_of(session, args[0] if len(args) == 1 else args)


def _join(before: str, items: list[tuple[Any, ...]], after: str) -> Any:
    parts = [part for index, item in enumerate(items) for part in ((", ", *item) if index else item)]
    return fstring(before, *parts, after)


def _refusal(session: Session, value: Any) -> Exception:
    return session.error(
        f"a {type(value).__name__} that holds numbers only known while the Program runs is formatted",
        hint="Format its items one by one.", code="D2S260",
    )
