"""``warnings.warn`` and calls of loggers inside a trace report at every run, with the place in the user's code.

    warnings.warn(f"sum {n}")      ->   warn("sum 3") attrs {category: "UserWarning", line: 3, ...}
    logger.info("sum %s", n)       ->   log("sum %s", None, %n) attrs {logger: "user", severity: 20, line: 3, ...}
    logger.info("at %r", point)    ->   log("at Point(x=1)", None): no Program holds an object of a user's class
"""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

from dy2static.callers import Caller, callers
from dy2static.operators.builtins.print_ import is_simple, spelled
from dy2static.operators.calls.call import call
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import Choice, Session, any_staged, distribute
from dy2static.operators.values.percent_format import percent
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import module_name
from runtime.tracer.boundary import told


def _refusal(session: Session, what: str, hint: str) -> Exception:
    return session.error(f"{what} inside a converted function", hint=hint, code="D2S268")


def _place(session: Session, level: Any) -> tuple[Caller, int]:
    """The user's call ``level`` calls up, and how many calls outside of the Program it is (0: it is the one given)."""
    if type(level) is not int:
        raise _refusal(session, "a stacklevel that is only known while the Program runs", "Give a number.")
    stack = list(callers(sys._getframe(1), memo(session).depth))
    level = max(level, 1)
    return (stack[level - 1], 0) if level <= len(stack) else (stack[-1], level - len(stack))


# -- warnings


def warn(
    session: Session, message: Any, category: Any = None, stacklevel: Any = 1, source: Any = None,
    *, skip_file_prefixes: Any = (),
) -> Any:
    if is_a(message, Choice):
        return distribute(session, message, lambda option: warn(
            session, option, category, stacklevel, source, skip_file_prefixes=skip_file_prefixes))
    if source is not None or skip_file_prefixes:
        raise _refusal(session, "warnings.warn with a source or skip_file_prefixes", "Leave them out.")
    args = message.args if is_a(message, Warning) else (message,)
    kind = type(message) if is_a(message, Warning) else UserWarning if category is None else category
    if not (is_a(kind, type) and issubclass(kind, Warning)):
        return warnings.warn(message, category, 2)  # raises what eager raises
    place, level = _place(session, stacklevel)
    return _warn_at(session, message, kind, args, {
        "file": place.file, "line": place.line, "level": level,
        "module": str(place.names.get("__name__") or "<string>"),
    })


def _warn_at(session: Session, message: Any, kind: type[Warning], args: tuple[Any, ...], place: dict[str, Any]) -> None:
    """A warning of this kind, with these arguments, at a place."""
    if warnings.filters is not memo(session).filters:
        return _under_filters(session, message, kind, args)
    if told.changed(session, told.of_warnings()):
        raise _refusal(session, "a warning after a change of the warnings' filters, or of showwarning,",
                       "Change them outside, around the call of the converted function.")
    name = kind.__name__ if module_name(kind) == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    session.exceptions.raised_types[name] = kind
    attrs = {"category": name, **place}
    session.emit("warn", [spelled(session, arg, "warned about") for arg in args], attrs=attrs)
    return None


def _under_filters(session: Session, message: Any, kind: type[Warning], args: tuple[Any, ...]) -> None:
    """A warning inside ``with warnings.catch_warnings()`` of the traced function itself: silence is all that stages."""
    for action, text, category, _, line in warnings.filters:
        if issubclass(kind, category) and text is None and line == 0:
            if action == "ignore":
                return
            break
    raise _refusal(session, "a warning under warnings.catch_warnings",
                   "Put the with statement around the call of the converted function.")


# -- logging


def _log(session: Session, logger: Any, level: Any, message: Any, args: tuple[Any, ...], options: dict[str, Any],
         configure: bool = False) -> Any:
    options = {"exc_info": None, "stack_info": False, "stacklevel": 1, "extra": None, **options}
    if set(options) != {"exc_info", "stack_info", "stacklevel", "extra"} or type(level) is not int:
        if any_staged([level]):
            raise _refusal(session, "a log level that is only known while the Program runs", "Use an if.")
        return logger._log(level, message, args, **options)  # raises what eager raises
    if options["exc_info"] or options["stack_info"]:
        raise _refusal(session, "a log record with a traceback (exception(), exc_info, stack_info)",
                       "Log the message alone, or log around the call of the converted function.")
    name, known = logger.name, logging.root.manager.loggerDict
    if all(logger is not one for one in (logging.root, known.get(name))):
        raise _refusal(session, f"a logger that logging.getLogger({name!r}) does not give",
                       "Make the logger with logging.getLogger.")
    if told.changed(session, told.of_logger(logger)):
        raise _refusal(session, f"a record of logger {name!r} after a change of its level, handlers or filters",
                       "Change them outside, around the call of the converted function.")
    extra = options["extra"]
    if extra is not None and type(extra) is not dict:
        extra = dict(extra)
    for index, arg in enumerate((message, *args)):
        if is_a(arg, Choice):
            return distribute(session, arg, lambda option, index=index: _log(  # type: ignore[misc]
                session, logger, level, option if index == 0 else message,
                args if index == 0 else (*args[: index - 1], option, *args[index:]), options, configure))
    if type(message) is str and not all(map(is_simple, args)):
        with contextlib.suppress(TypeError, ValueError, KeyError):  # which logging tells of, and goes on
            message, args = percent(message, args[0] if len(args) == 1 and is_a(args[0], dict) else args), ()
            return _log(session, logger, level, message, args, options, configure)
    place, outside = _place(session, options["stacklevel"])
    attrs = {
        "logger": logger.name, "severity": level, "file": place.file, "line": place.line, "function": place.function,
        "level": outside, "configure": configure,
    }
    spelling = [spelled(session, arg, "logged") for arg in args]
    session.emit("log", [spelled(session, message, "logged"), session.operand(extra), *spelling], attrs=attrs)
    return None


def _method(name: str, level: int | None) -> Callable[..., Any]:
    """What stands for ``Logger.<name>`` and ``LoggerAdapter.<name>``."""

    def handler(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        logger, *rest = args
        severity = level if level is not None else rest.pop(0) if rest else kwargs.pop("level")
        message = rest.pop(0) if rest else kwargs.pop("msg")
        if name == "exception":
            kwargs = {"exc_info": True, **kwargs}
        while is_a(logger, logging.LoggerAdapter):
            message, kwargs = call(logger.process, message, kwargs)
            logger = logger.logger
        return _log(session, logger, severity, message, tuple(rest), dict(kwargs))

    return handler


def _function(name: str, level: int | None) -> Callable[..., Any]:
    """What stands for ``logging.<name>``: the root logger, configured when it is first used."""

    def handler(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rest = list(args)
        severity = level if level is not None else rest.pop(0) if rest else kwargs.pop("level")
        message = rest.pop(0) if rest else kwargs.pop("msg")
        if name == "exception":
            kwargs = {"exc_info": True, **kwargs}
        return _log(session, logging.root, severity, message, tuple(rest), dict(kwargs), configure=True)

    return handler


def _asked(method: Callable[..., Any]) -> Callable[..., Any]:
    """What stands for a question to a logger: its answer is a guard, for levels and handlers may change."""

    def handler(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = method(*args, **kwargs)
        logger, *rest = args
        key = ("logger", id(logger), method.__name__, tuple(rest), tuple(kwargs.items()))
        session.guards.add_test(
            key, f"{method.__name__} of logger '{logger.name}'", lambda: method(*args, **kwargs) == answer)
        return answer

    return handler


def _handle_warn(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return warn(session, *args, **kwargs)


def _explicit(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``warnings.warn_explicit``, which knows its place, and has no registry of what was warned about there before."""
    given = dict(zip(("message", "category", "filename", "lineno"), args)) | kwargs
    kind: Any = given.get("category")
    message, file, line = (given.get(name) for name in ("message", "filename", "lineno"))
    if is_a(message, Choice):
        return distribute(session, message, lambda option: _explicit(session, (), {**given, "message": option}))
    plain = is_a(kind, type) and issubclass(kind, Warning) and type(file) is str and type(line) is int
    if not plain or len(args) > 4 or len(given) != 4 or is_a(message, Warning):
        raise _refusal(session, "warnings.warn_explicit with a module, a registry or a source", "Use warnings.warn.")
    return _warn_at(session, message, kind, (message,), {
        "file": file, "line": line, "level": 0, "module": "", "alone": True})  # fmt: skip


def _filtering(change: Callable[..., Any]) -> Callable[..., Any]:
    """What stands for a function of `warnings` that changes the filters: those of the function's own ``with``."""

    def handler(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if warnings.filters is memo(session).filters:
            raise _refusal(session, f"warnings.{change.__name__}() for the warnings of the whole process",
                           "Call it outside, or under a `with warnings.catch_warnings()` of the function.")
        return change(*args, **kwargs)

    return handler


_LEVELS: dict[str, int | None] = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR,
    "exception": logging.ERROR, "critical": logging.CRITICAL, "log": None,
}
HANDLERS: list[tuple[Any, Any]] = [
    (warnings.warn, _handle_warn),
    (warnings.warn_explicit, _explicit),
    *((change, _filtering(change)) for change in (
        warnings.filterwarnings, warnings.simplefilter, warnings.resetwarnings)),
    *((getattr(owner, name), _method(name, level)) for owner in (logging.Logger, logging.LoggerAdapter)
      for name, level in _LEVELS.items()),
    *((getattr(logging, name), _function(name, level)) for name, level in _LEVELS.items()),
    *((method, _asked(method)) for owner in (logging.Logger, logging.LoggerAdapter)
      for method in (owner.isEnabledFor, owner.getEffectiveLevel, owner.hasHandlers)),
]  # fmt: skip
