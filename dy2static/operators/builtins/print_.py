"""``print`` inside a trace prints at every run.

    print("loss", t)   ->   print("loss", %t) attrs {sep: " ", end: "\\n"}
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedSequence, StagedSize
from dy2static.operators.shared.staging import Choice, Session, Staged, any_staged, distribute
from dy2static.operators.values import texts
from dy2static.operators.values.f_string import is_told, text_of
from runtime.ir.constants import spell_constant
from runtime.kinds import is_a
from runtime.tracer.recording import histories
from runtime.tracer.values import structure


def _print(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = {"sep": " ", "end": "\n", "file": None, "flush": False, **kwargs}
    if set(options) != {"sep", "end", "file", "flush"}:
        return print(*args, **kwargs)
    if options["file"] not in (None, sys.stdout):
        raise session.error("print to a file inside a converted function", code="D2S268",
                            hint="Print to the standard output, or write the file outside.")
    args = tuple(texts.few(session, list(map(with_text, args))))
    for index, arg in enumerate(args):
        if is_a(arg, Choice):
            return distribute(session, arg, lambda option, index=index: _print(  # type: ignore[misc]
                session, (*args[:index], option, *args[index + 1:]), kwargs))
    attrs: dict[str, Any] = {}
    for name in ("sep", "end"):
        value = options[name]
        if is_a(value, Choice):
            return distribute(session, value, lambda option, name=name: _print(  # type: ignore[misc]
                session, args, {**kwargs, name: option}))
        if not is_a(value, (str, Staged)) and value is not None:
            raise TypeError(f"{name} must be None or a string, not {type(value).__name__}")
        if is_a(value, Staged):
            raise session.error(f"the '{name}' of print is only known while the Program runs", code="D2S268",
                                hint="Print it as a value instead.")
        attrs[name] = {"sep": " ", "end": "\n"}[name] if value is None else value
    if options["flush"]:
        attrs["flush"] = True
    session.emit("print", [spelled(session, arg, "printed") for arg in args], attrs=attrs)
    return None


def with_text(value: Any) -> Any:
    """What is printed (warned about, logged), or its text, where that is made in converted code."""
    return call(str, value) if not is_simple(value) and not is_a(value, Choice) and is_told(value) else value


def spelled(session: Session, value: Any, done: str) -> Any:
    """What is printed: a value of the Program, or the text of anything else; ``value`` is what ``with_text`` gives."""
    if is_a(value, torch.Tensor):
        return histories.shown(session, value)
    if is_a(value, Staged):
        return session.operand(value)
    if is_a(value, StagedSize):
        return session.operand(text_of(session, value))
    if is_a(value, StagedSequence) or (any_staged([value]) and not is_simple(value)):
        raise session.error(f"a {type(value).__name__} that holds numbers only known while the Program runs is {done}",
                            hint="Give its items one by one.", code="D2S268")
    if is_simple(value):
        return _shown(session, value)
    if structure.has_traced(value):
        raise session.error(f"a {type(value).__name__} that holds tensors is {done}", code="D2S268",
                            hint="Give its items one by one.")
    return str(value)


def _shown(session: Session, value: Any) -> Any:
    """The value with its tensors as their text has them."""
    if is_a(value, torch.Tensor):
        return histories.shown(session, value)
    if type(value) in (list, tuple):
        return type(value)(_shown(session, item) for item in value)
    if type(value) is dict:
        return {key: _shown(session, item) for key, item in value.items()}
    return session.operand(value)


def is_simple(value: Any) -> bool:
    """Whether an operand can hold the value so that it prints the same."""
    if is_a(value, (torch.Tensor, Staged)):
        return True
    if type(value) in (list, tuple):
        return all(is_simple(item) for item in value)
    if type(value) is dict:
        return all(is_a(key, (str, int)) and is_simple(item) for key, item in value.items())
    return type(value) in (bool, int, float, complex, str, type(None)) and spell_constant(value) is not None


HANDLERS: list[tuple[Any, Any]] = [(print, _print)]
