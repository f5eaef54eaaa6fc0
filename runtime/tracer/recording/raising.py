"""Exceptions of the user's program as Operators: a ``raise`` at the end of a path, or where a condition holds."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import Dy2StaticError, TraceError
from runtime.ir import Block, Operand
from runtime.kinds import is_a
from runtime.ops import exception_fields
from runtime.ops.assertion import CAUSE, CAUSE_FIELDS, of_cause
from runtime.ops.raised_objects import Made, NoCopy
from runtime.ops.raising import has_effect
from runtime.tracer.ambient import source_places
from runtime.tracer.ambient.unasked import module_name
from runtime.tracer.ambient.walks import walk
from runtime.tracer.memory.conditions import PathCondition
from runtime.tracer.numbers.scalars import kind_of
from runtime.tracer.python_state import ages, waiting
from runtime.tracer.recording import histories
from runtime.tracer.recording.session import Session
from runtime.tracer.values import choices, holding, structure


def must_run(session: Session, error: BaseException) -> bool:
    """Whether a raise on the main path must wait for the Program: something before it is seen or may raise itself, or
    a Program that always raises is what is wanted."""
    if is_a(error, (Dy2StaticError, RecursionError, *torch_internals.shape_errors())):
        return False
    if session.call.ahead.raising or _holds_traced(error) or _holds_made(session, error):
        return True
    if error.__cause__ is not None and _holds_traced(error.__cause__):
        return True
    ops = list(session.program.block.walk())
    return any(has_effect(op) for op in ops)


def chain(error: BaseException) -> list[BaseException]:
    """An exception and those it was raised from or while handling, without those with values that only a run knows."""
    found: dict[int, BaseException] = {}
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is not None and id(one) not in found and not _holds_traced(one):
            found[id(one)] = one
            todo += [one.__cause__, one.__context__]
    return list(found.values())


def _holds_traced(error: BaseException) -> bool:
    fields = exception_fields.fields_of(error)
    return any(map(structure.has_traced, (*error.args, *vars(error).values(), *fields.values())))


def _holds_made(session: Session, error: BaseException) -> bool:
    """Whether it has an object that the trace made: at its end that would hold nothing any more."""
    values = [one for one in (*error.args, *vars(error).values()) if not _plain(one)]
    return any(is_a(_of_the_function(session, one), Made) for one in values)


def stage_raise(session: Session, error: BaseException) -> None:
    """Record a ``raise``: eager would raise this only when it takes the path."""
    choices.require_converted(error)
    waiting.require_none_to_unwind(session)
    session.sizes.collect_of_inputs()
    cls = type(error)
    session.exceptions.raised_types[f"{cls.__module__}.{cls.__qualname__}"] = cls
    session.exceptions.raising = error
    try:
        _emit_raise(session, error)
    finally:
        session.exceptions.raising = None


def raise_where(session: Session, condition: PathCondition, error: BaseException) -> None:
    """Raise where a condition holds: at once if it always does, else when the Program runs."""
    if condition.never:
        return
    if condition.always:
        raise error
    flag = condition.operand(session)
    with session.open("cond") as taken:
        stage_raise(session, error)
    session.emit("cond", [flag], None, [], blocks=[taken.block, Block()])


def _emit_raise(session: Session, error: BaseException) -> None:
    cls = type(error)
    objects: dict[str, Operand] = {}
    session.emit(
        "raise",
        [_argument(session, arg, str(position), objects) for position, arg in enumerate(error.args)],
        {**{key: _argument(session, value, key, objects) for key, value in _beside(session, error).items()},
         **({} if error.__cause__ is None else _cause(session, error.__cause__, objects))},
        attrs={
            "exception": _name(cls),
            **({"suppress": True} if error.__suppress_context__ else {}),
            **({"objects": objects} if objects else {}),
        },
        location=source_places.error_place(error),
    )


def _beside(session: Session, error: BaseException) -> dict[str, Any]:
    """Its attributes and fields. What has been asked for an attribute, which Python keeps for its hints, is left out if
    no run could have it."""
    fields = exception_fields.fields_of(error)
    if "obj" in fields and is_a(error, AttributeError):
        asked = fields["obj"]
        with_values = not _plain(asked) and holding.leads_to_traced(asked)
        if with_values or is_a(asked, BaseException) or not _has_text(session, asked):
            del fields["obj"]
    return {**vars(error), **fields}


def _name(cls: type) -> str:
    return cls.__name__ if module_name(cls) == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _cause(session: Session, error: BaseException, objects: dict[str, Operand]) -> dict[str, Operand]:
    """What another exception was raised from: its class and its arguments, its attributes and fields. Of objects that
    no run could have their texts."""

    def kept(value: Any, place: Any) -> Operand:
        if not _plain(value) and holding.leads_to_traced(value):
            return _text(repr, value)
        try:
            return _argument(session, value, of_cause(place), objects)
        except TraceError:
            return _text(repr, value)

    session.exceptions.raised_types[_name(type(error))] = type(error)
    arguments = [kept(value, position) for position, value in enumerate(error.args)]
    found: dict[str, Operand] = {CAUSE: [_name(type(error)), *arguments]}
    beside = _beside(session, error)
    if beside:
        found[CAUSE_FIELDS] = {name: kept(value, name) for name, value in beside.items()}
    return found


def _argument(session: Session, value: Any, place: str, objects: dict[str, Operand]) -> Operand:
    """The operand of what an exception has: of an object that is no constant of Programs its text, and its name.

    Raises:
        TraceError: D2S228, for an object of which each run would have another.
    """
    if _plain(value):
        return _shown(session, value)
    if holding.leads_to_traced(value):
        raise session.error(
            f"an exception is raised with a {type(value).__name__} that holds values which only a run knows",
            code="D2S228", hint="Raise it with text, numbers or tensors, or lists, tuples and dicts of them.")
    name = f"object {len(session.exceptions.raised_types)} {type(value).__module__}.{type(value).__qualname__}"
    session.exceptions.raised_types[name] = kept = _of_the_function(session, value)
    if kept is value:
        session.guards.pin(value)
    objects[place] = [name, _text(str, value)]
    return _text(repr, value)


def _of_the_function(session: Session, value: Any) -> Any:
    """A value, or a `Made` where the function made something in it: what the trace stored in objects that it made is
    taken out of them at its end.

    Raises:
        TraceError: D2S228, for an object of a class of C's.
    """
    try:
        made = Made(value, lambda one: ages.existed_before(session, one) is False)
    except NoCopy:
        raise session.error(
            f"an exception is raised with a {type(value).__name__} that the function makes, and which holds more "
            "than attributes", code="D2S228",
            hint="Raise it with text, numbers or tensors, or lists, tuples and dicts of them.") from None
    return made if made.is_new else value


def _text(show: Callable[[Any], str], value: Any) -> str:
    """The text of an object; methods of users' classes are not run for it."""
    if is_a(value, (*_SHOWN, enum.Enum)):
        return show(value)
    return f"<{type(value).__qualname__} object>"


_SHOWN = (
    type, bytes, bytearray, frozenset, set, range, torch.Size, list, tuple, dict, types.FunctionType,
    types.BuiltinFunctionType, types.ModuleType,
)  # fmt: skip


def _shown(session: Session, arg: Any) -> Operand:
    """An exception's argument, which is there for its text."""
    return histories.shown(session, arg) if is_a(arg, torch.Tensor) else session.operand(arg)


def _has_text(session: Session, value: Any) -> bool:
    """Whether the name of the node that made it is known, if it is a tensor."""
    try:
        if is_a(value, torch.Tensor):
            histories.shown(session, value)
    except TraceError:
        return False
    return True


def _plain(value: Any) -> bool:
    return all(map(_is_plain, walk([value], _parts, _DEEPEST)))


_DEEPEST = 64


def _parts(value: Any) -> Any:
    if type(value) is dict:
        return value.values()
    return value if type(value) in (list, tuple) else ()


def _is_plain(value: Any) -> bool:
    constants = (torch.Tensor, torch.dtype, torch.device, torch.layout, torch.memory_format)
    if value is None or type(value) in (list, tuple, dict):
        return True
    return is_a(value, constants) or kind_of(value) is not None
