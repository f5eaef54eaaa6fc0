"""``min max abs round divmod pow`` and the functions of ``math``."""

from __future__ import annotations

import builtins
import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.calls import growing, numpy_arrays
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedSequence, staged_sequence
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import generator_uses
from dy2static.operators.iteration.generator_uses import listed
from dy2static.operators.iteration.traced_for import fold, iterate
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.shared.staging import (
    NO_NAMES,
    Choice,
    Session,
    Staged,
    any_staged,
    distribute,
    python_method,
    stages,
)
from dy2static.operators.values.binary import binary, require_number
from dy2static.operators.values.sequence_operators import decides
from runtime.kinds import is_a
from runtime.ops import scalar as scalar_ops
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.recording import reads
from runtime.tracer.values.numpy_arrays import NumpyScalar

_MISSING = object()
_BETTER = {"min": "<", "max": ">"}


def _extreme(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def pick(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values = args
        if len(args) == 1:
            if is_a(args[0], Choice):
                given = args[0]
                if all(type(one) is list and staged_sequence(session, one) is None for one in given.options):
                    given = distribute(session, given, tuple)  # those of one length are one tuple of what they hold
                if is_a(given, Choice):
                    return distribute(session, given, lambda option: pick(session, (option,), kwargs))
                return pick(session, (given,), kwargs)
            sequence = staged_sequence(session, args[0])
            if sequence is not None:
                return _of_sequence(session, name, sequence, kwargs)
            given = listed(session, args[0])
            if given is not args[0]:
                return pick(session, (given,), kwargs)
            values = tuple(iterate(session, args[0]))
        if not values or len(values) == 1 and len(args) > 1 or set(kwargs) - {"key", "default"}:
            return function(*([values] if len(args) == 1 else args), **kwargs)
        key = kwargs.get("key")
        keys = list(values)
        if key is not None:
            keys = [call(key, value) for value in values]
        if not any(map(decides, keys)):
            return function(zip(keys, values), key=lambda pair: pair[0])[1]
        if key is None and all(is_a(value, Staged) or type(value) in (int, float, bool) for value in values):
            kinds = {value.kind if is_a(value, Staged) else type(value).__name__ for value in values}
            if len(kinds) == 1:
                return session.scalar(name, *values)
        return _fold(session, name, list(zip(keys, values)))

    return pick


def _of_sequence(session: Session, name: str, sequence: StagedSequence, kwargs: dict[str, Any]) -> Any:
    """The extreme item of a sequence whose length is staged."""
    key = kwargs.get("key")
    if set(kwargs) - {"key", "default"}:
        return getattr(builtins, name)((), **kwargs)  # raises what eager raises

    def pair(item: Any) -> tuple[Any, Any]:
        return (item if key is None else call(key, item)), item

    def step(best: Any, item: Any) -> Any:
        return _better(session, name, best, pair(item)) if key is not None else _fold(
            session, name, [(best, best), (item, item)])

    def best_of_some() -> Any:
        first = sequence.get(session, 0)
        if key is None:
            return fold(session, sequence, first, step, first=1)
        return fold(session, sequence, pair(first), step, first=1)[1]

    some = sequence.length(session) > 0
    if "default" in kwargs:
        default = kwargs["default"]
        return tracer_cond.cond(session, some, best_of_some, lambda: default, NO_NAMES)
    empty = "iterable argument is empty" if sys.version_info >= (3, 12) else "arg is an empty sequence"
    session.emit("assert", [session.operand(some)], attrs={"exception": "ValueError", "message": f"{name}() {empty}"})
    return best_of_some()


def _better(session: Session, name: str, best: tuple[Any, Any], other: tuple[Any, Any]) -> Any:
    """The pair with the better key; the first of equals stays."""
    flag = truth_of(session, binary(other[0], _BETTER[name], best[0]))
    if not is_a(flag, Staged):
        return other if flag else best
    return tracer_cond.cond(session, flag, lambda: other, lambda: best, NO_NAMES)


def _fold(session: Session, name: str, pairs: list[tuple[Any, Any]]) -> Any:
    """Python's own loop: the first of equals stays."""
    best_key, best = pairs[0]
    for key, value in pairs[1:]:
        better = truth_of(session, binary(key, _BETTER[name], best_key))
        if is_a(better, Staged):
            new, old = (key, value), (best_key, best)

            def take(pair: tuple[Any, Any] = new) -> tuple[Any, Any]:
                return pair

            def keep(pair: tuple[Any, Any] = old) -> tuple[Any, Any]:
                return pair

            best_key, best = tracer_cond.cond(session, better, take, keep, NO_NAMES)
        elif better:
            best_key, best = key, value
    return best


def numeric(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``math``: of tensors it takes their value, as eagerly."""

    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for index, arg in enumerate(args):
            if is_a(arg, Choice):
                return distribute(session, arg, lambda option, index=index: apply(  # type: ignore[misc]
                    session, (*args[:index], option, *args[index + 1:]), kwargs))
        if name == "scalar.math.trunc" and args and is_a(args[0], torch.Tensor):
            raise TypeError("type Tensor doesn't define __trunc__ method")
        if name == "scalar.math.trunc" and args and type(args[0]) is NumpyScalar:
            cls = numpy_arrays.eager_class(args[0])
            if not hasattr(cls, "__trunc__"):
                theirs(function, cls())
        args = tuple(numpy_arrays.number(session, arg) if type(arg) is NumpyScalar else arg for arg in args)
        own = name.removeprefix("scalar.math.")
        if own in _OWN and args:
            found = user_methods.called(session, args[0], f"__{own}__")
            if found is not user_methods.NOT_USERS:
                return found
        if name not in _OF_ITEMS and own != "prod":
            asked = ("__index__",) if name in _OF_INTEGERS else ("__float__", "__index__")
            args = tuple(
                arg if is_a(arg, float) else user_methods.as_number(session, arg, *asked) for arg in args
            )
        read = name not in _OF_ITEMS
        if not read:
            note_answers(session, *args)
        values = [_value(session, name, arg) if read and is_a(arg, torch.Tensor) else arg for arg in args]
        if not any_staged([values, kwargs]):
            return function(*values, **kwargs)
        short = name.removeprefix("scalar.math.")
        if short in scalar_ops.MATH_PAIRS and len(values) == 1 and not kwargs:
            return tuple(session.scalar(f"math.{short}.{at}", *values) for at in (0, 1))
        if name not in scalar_ops.FUNCTIONS or kwargs:
            raise session.error(f"math.{short} of a number that is only known while the Program runs", code="D2S267",
                                hint="Use torch's function on a tensor, or simpler functions of math.")
        return session.scalar("math." + short, *values)

    return apply


_OWN = ("floor", "ceil", "trunc")
"""Functions for which a class may have a special method."""
_OF_ITEMS = frozenset(f"scalar.math.{name}" for name in ("dist", "fsum", "sumprod"))
"""Functions that take the items of what they are given, by code that is not converted."""
_OF_INTEGERS = frozenset(f"scalar.math.{name}" for name in ("comb", "factorial", "gcd", "isqrt", "lcm", "perm"))


def _value(session: Session, name: str, tensor: torch.Tensor) -> Any:
    """What a function of ``math`` takes a tensor for."""
    if name in _OF_INTEGERS:
        return reads.index(session, tensor)
    return session.scalar("float", reads.number(session, tensor))


def _prod(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``math.prod``: the product of the items, which may be tensors."""
    if is_a(args[0], Choice):
        return distribute(session, args[0], lambda option: _prod(session, (option,), kwargs))
    if is_a(args[0], (torch.Tensor, StagedSequence)) or stages(list(kwargs.values())) or (
            is_a(args[0], (list, tuple)) and (
                growing.is_growing(args[0]) or any(map(stages, args[0])) or any(map(_multiplies, args[0])))):
        items = iter(args[0]) if is_a(args[0], torch.Tensor) else args[0]  # raises for one without dimensions
        return call(functools.reduce, operator.mul, items, kwargs.get("start", 1))
    if generator_uses.gives_items(session, args[0]):
        return call(math.prod, generator_uses.listed(session, args[0]), **kwargs)
    return math.prod(*args, **kwargs)


def _multiplies(value: Any) -> bool:
    return any(user_methods.is_users(python_method(value, name)) for name in ("__mul__", "__rmul__"))


def _round(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    number = args[0] if args else kwargs.get("number")
    digits = args[1] if len(args) > 1 else kwargs.get("ndigits", _MISSING)
    if is_a(number, Choice):
        return distribute(session, number, lambda option: _round(session, (option, *args[1:]), kwargs))
    if digits is not _MISSING and type(digits) is not int:
        digits = user_methods.as_number(session, digits, "__index__")
        args, kwargs = (number, digits), {}
    if is_a(digits, Staged):
        return session.scalar("round", number, digits)
    found = user_methods.called(session, number, "__round__", *() if digits is _MISSING else (digits,))
    if found is not user_methods.NOT_USERS:
        return found
    return round(*args, **kwargs)


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for index, arg in enumerate(args):
            if is_a(arg, Choice):
                return distribute(session, arg, lambda option, index=index: apply(  # type: ignore[misc]
                    session, (*args[:index], option, *args[index + 1:]), kwargs))
        if function is pow and len(args) == 3 and any_staged(args):
            return session.scalar("pow", *args)
        if not kwargs and len(args) == (1 if function is abs else 2):
            found = user_methods.called(session, *args, "__abs__") if function is abs else user_methods.operated(
                session, args[0], "**" if function is pow else "divmod", args[1])
            if found is not user_methods.NOT_USERS:
                return found
            if function is pow:
                require_number(*args)
        return function(*args, **kwargs)

    return apply


HANDLERS: list[tuple[Any, Any]] = [
    (min, _extreme("min", min)), (max, _extreme("max", max)), (round, _round),
    *((function, _binary(function)) for function in (abs, divmod, pow)),
    *((getattr(math, name), numeric(f"scalar.math.{name}", getattr(math, name)))
      for name in sorted(vars(math)) if is_a(getattr(math, name), type(builtins.len)) and name != "prod"),
    (math.prod, _prod),
]  # fmt: skip
