"""``assert`` and ``raise``: the exception eager Python would raise, when its condition comes true."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence

from runtime.executor.emitter import Emitter
from runtime.ir import Operator
from runtime.ops.assertion import CAUSE, CAUSE_FIELDS, of_cause
from runtime.ops.exception_fields import rebuilt
from runtime.ops.raised_objects import Made


def exception(emitter: Emitter, name: str) -> str:
    """The exception class of this name as a global: a builtin, or one that the caller knows; else a RuntimeError."""
    found = emitter.exceptions.get(name) or getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        return emitter.bind(found, "e")

    def unknown(*args: object) -> RuntimeError:
        return RuntimeError(f"{name}: {', '.join(map(str, args))}" if args else name)

    emitter.namespace[global_name := emitter.fresh("e")] = unknown
    return global_name


def message(*parts: object) -> str:
    """The parts of a message, joined."""
    return "".join(map(str, parts))


def emit_assert(emitter: Emitter, op: Operator) -> None:
    """``if not flag: raise AssertionError(message)``. One part stays what it is, several are joined to a string."""
    flag, *parts = op.args
    text = op.attrs.get("message")
    if text is not None:
        parts = [text, *parts]
    args = [emitter.operand(part) for part in parts]
    if len(args) > 1:
        args = [f"{emitter.bind(message, 'f')}({', '.join(args)})"]
    with emitter.indented(f"if not {emitter.operand(flag)}:"):
        emitter.line(f"raise {exception(emitter, op.attrs['exception'])}({', '.join(args)})")


class Shown:
    """What stands for an object that an exception has, where a file could not keep the object: its texts."""

    def __init__(self, text: str, described: str) -> None:
        self._text, self._described = text, described

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._described


def _held(emitter: Emitter, op: Operator, place: str, operand: object) -> str:
    """The expression for what an exception has at a place."""
    found = op.attrs.get("objects", {}).get(place)
    if found is None:
        return emitter.operand(operand)
    name, text = found
    known: Mapping[str, object] = emitter.exceptions
    if name in known:
        held = known[name]
        return f"{emitter.bind(held, 'o')}.again()" if isinstance(held, Made) else emitter.bind(held, "o")
    described = str(operand)
    is_bytes = name.endswith(" builtins.bytes")  # some exceptions take nothing else
    return emitter.bind(ast.literal_eval(described) if is_bytes else Shown(text, described), "o")


def _made(emitter: Emitter, kind: str, args: Sequence[str], fields: Mapping[str, str]) -> str:
    """The expression for an exception of the class of that name."""
    name = exception(emitter, kind)
    cls = emitter.namespace[name]
    if isinstance(cls, type) and (fields or cls.__module__ != "builtins"):
        given = f"**{{{', '.join(f'{key!r}: {value}' for key, value in fields.items())}}}"
        return f"{emitter.bind(rebuilt, 'f')}({', '.join([name, *args, given])})"
    return f"{name}({', '.join(args)})"


def emit_raise(emitter: Emitter, op: Operator) -> None:
    """``raise ValueError(a, b)``, with the attributes that the user's code gave the exception."""
    args = [_held(emitter, op, str(position), arg) for position, arg in enumerate(op.args)]
    kept = {key: value for key, value in op.kwargs.items() if key not in (CAUSE, CAUSE_FIELDS)}
    fields = {key: _held(emitter, op, key, value) for key, value in kept.items()}
    made = _made(emitter, op.attrs["exception"], args, fields)
    cause = op.kwargs.get(CAUSE)
    if isinstance(cause, (list, tuple)):
        beside = op.kwargs.get(CAUSE_FIELDS)
        named = beside.items() if isinstance(beside, Mapping) else ()
        behind = {str(key): _held(emitter, op, of_cause(key), value) for key, value in named}
        given = [_held(emitter, op, of_cause(position), value) for position, value in enumerate(cause[1:])]
        first = _made(emitter, str(cause[0]), given, behind)
        emitter.line(f"raise {made} from {first}")
    else:
        emitter.line(f"raise {made} from None" if op.attrs.get("suppress") else f"raise {made}")
