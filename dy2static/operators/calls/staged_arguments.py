"""Staged values where a function of torch needs a plain one: the call becomes a branch for each value there may be.

    F.dropout(x, 0.5, bool(t))   ->   cond(t, dropout(x, 0.5, True), dropout(x, 0.5, False))
    x.sum(int(d))                ->   switch(d + 3, ..., x.sum(-1), x.sum(0), x.sum(1), ..., IndexError)

What an argument takes is read from the operators' schemas. Sizes and numbers that operators take as such are not
touched here. Another ``float`` or ``int`` in a schema is a number that a kernel reads when it is called: the Operator
is recorded with the staged one as its operand (``runtime.tracer.numbers.number_operands``).

    F.avg_pool1d(x, int(n))   ->   aten.avg_pool1d(x, [n], ...)
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dy2static.operators.shared import staged_counts
from dy2static.operators.shared.staging import NO_NAMES, Session, Staged
from runtime import torch_internals
from runtime.errors import Dy2StaticError
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.control.branches import PathEnds
from runtime.tracer.numbers import known_sizes, number_operands
from runtime.tracer.recording import attempt, sampled_shapes
from runtime.tracer.recording.raising import stage_raise

Call = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Place = tuple[int | str, ...]
"""Where an argument stands: its position or name, and positions inside lists from there."""

_SIZES = frozenset({"SymInt", "SymInt[]"})
_FIXED = ("requires_grad", "pin_memory", "non_blocking", "copy")
"""Truth values that no schema tells of: torch's Python functions take them."""

_WORDS: dict[str, tuple[str, ...]] = {
    "rounding_mode": ("trunc", "floor"), "approximate": ("none", "tanh"), "indexing": ("ij", "xy"),
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"), "UPLO": ("L", "U"),
    "norm": ("backward", "ortho", "forward"), "side": ("left", "right"), "ord": ("fro", "nuc"),
    "driver": ("gels", "gelsy", "gelsd", "gelss", "gesvd", "gesvdj", "gesvda"), "mode": ("reduced", "complete", "r"),
    "padding": ("valid", "same"), "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
}  # fmt: skip
"""What text may stand for, by the name of the argument."""

_DIMENSIONS = ("source", "destination")
"""Names of arguments that are dimensions, beside those that say so."""

_ADDING = ("unsqueeze", "unsqueeze_copy", "stack", "diag_embed")
"""Functions whose dimensions are those of the result, which has one more."""

_PATHS = 400
_BEYOND = 2**31 - 9
"""A number that is no dimension of any tensor."""


def decided(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call) -> Any:
    """``call(args, kwargs)`` with plain values, or numbers that ``f`` takes, in place of all staged ones."""
    overloads = torch_internals.overloads_of(f)
    owner = unasked(f, "__self__")
    method = is_a(owner, torch.Tensor)
    staged = sorted(_staged(args, kwargs), key=lambda one: one[1].kind not in ("bool", "str"))
    for place, value in staged:
        taken = torch_internals.types_taken(overloads, place[0], method)
        names = torch_internals.names_at(overloads, place[0], method)
        run = _run_with(session, f, args, kwargs, place, call)
        if value.kind == "bool" and _is_plain_flag(taken, place):
            return _of_flag(session, value, run)
        if value.kind == "str":
            return _of_words(session, f, value, names, run)
        limits = staged_counts.bounds(f, names, args, kwargs) if value.kind == "int" and len(place) == 1 else None
        if limits is not None:
            given, named = args, kwargs
            for other, _ in staged:
                given, named = _put(given, named, other, 1)
            return _of_count(session, f, value, names, limits, run, _run_with(session, f, given, named, place, call))
        if value.kind in ("int", "bool") and taken & {"int", "int[]"} and not taken & (_SIZES | {"Scalar", "float"}):
            if not _is_dimension(names):
                return _of_int(session, f, value, names, run)
            if len(staged) > 1 and (2 * _rank(args, kwargs, owner) + 1) ** len(staged) > _PATHS:
                raise _refusal(session, f, value, names)
            given, named = args, kwargs
            for other, _ in staged:
                given, named = _put(given, named, other, 0)
            beyond = _run_with(session, f, given, named, place, call)
            return _of_dimension(session, f, value, names, _rank(args, kwargs, owner), run, beyond)
        if taken & {"float", "float[]"} and not taken & (_SIZES | {"Scalar", "any"}):
            return _of_float(session, f, value, names, run)
    return call(args, kwargs)


def _is_dimension(names: frozenset[str]) -> bool:
    return any("dim" in name or "axis" in name or name in _DIMENSIONS for name in names)


def _is_plain_flag(taken: frozenset[str], place: Place) -> bool:
    return bool(taken & {"bool", "int", "int[]", "SymInt", "SymInt[]", "float"}) or place[0] in _FIXED


def _run_with(
    session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], place: Place, call: Call
) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        given, named = _put(args, kwargs, place, value)
        return decided(session, f, given, named, call)

    return run


# -- finding and replacing arguments


def _staged(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Place, Staged]]:
    for position, value in enumerate(args):
        yield from _inside(value, (position,))
    for name, value in kwargs.items():
        yield from _inside(value, (name,))


def _inside(value: Any, place: Place) -> Iterator[tuple[Place, Staged]]:
    if is_a(value, Staged):
        yield place, value
    elif is_a(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _inside(item, (*place, index))


def _put(
    args: tuple[Any, ...], kwargs: dict[str, Any], place: Place, value: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    key, *rest = place
    if is_a(key, str):
        return args, {**kwargs, key: _replaced(kwargs[key], rest, value)}
    return (*args[:key], _replaced(args[key], rest, value), *args[key + 1 :]), kwargs


def _replaced(held: Any, place: list[int | str], value: Any) -> Any:
    if not place:
        return value
    items = list(held)
    index: Any = place[0]
    items[index] = _replaced(items[index], place[1:], value)
    return items if is_a(held, list) else tuple(items)


def _rank(args: tuple[Any, ...], kwargs: dict[str, Any], owner: Any) -> int:
    """The number of dimensions of the first tensor of a call."""
    for value in (owner, *args, *kwargs.values()):
        for one in value if is_a(value, (list, tuple)) else (value,):
            if is_a(one, torch.Tensor):
                return one.dim()
    return 0


# -- what the call is done with


def _of_flag(session: Session, flag: Any, run: Callable[[Any], Any]) -> Any:
    known = known_sizes.decide(session, flag)
    if not is_a(known, Staged):
        return run(known)
    return tracer_cond.cond(session, flag, lambda: run(True), lambda: run(False), NO_NAMES)


def _of_dimension(
    session: Session, f: Any, value: Any, names: frozenset[str], rank: int, run: Callable[[Any], Any],
    beyond: Callable[[Any], Any],
) -> Any:
    """A switch over the dimensions that the tensor has, and a path that raises what the function does for others."""
    rank += unasked(f, "__name__", "").rstrip("_") in _ADDING
    last = max(rank, 1)
    dims = range(-last, last)
    index = session.scalar("add", value, last)
    outside = session.scalar("or_", index < 0, index >= len(dims))
    index = session.scalar("select", outside, len(dims), index)
    paths = [lambda dim=dim: run(dim) for dim in dims]
    rest = _raising(session, f, value, names, beyond, _BEYOND, rank)
    return tracer_cond.switch(session, index, [*paths, rest], NO_NAMES)


def _of_count(
    session: Session, f: Any, value: Any, names: frozenset[str], limits: staged_counts.Bounds,
    run: Callable[[Any], Any], beyond: Callable[[Any], Any],
) -> Any:
    """A switch over the values that differ in meaning, and paths for those below and above."""
    low, high = limits.low, limits.high
    paths = [lambda number=number: run(number) for number in range(low, high + 1)]
    if limits.period is not None:
        return tracer_cond.switch(session, session.scalar("mod", value, limits.period), paths, NO_NAMES)
    def outside(number: int) -> Callable[[], Any]:
        """What all values that differ no more do, but that an exception may name the value."""
        def path() -> Any:
            error = _tried(session, lambda: run(number))
            says = error is not None and any(str(number) in str(arg) for arg in error.args)
            return _raising(session, f, value, names, run, number)() if says else run(number)

        return path

    below = outside(low - 1) if limits.same_below else _raising(session, f, value, names, beyond, -_BEYOND)
    above = outside(high + 1) if limits.same else _raising(session, f, value, names, beyond, _BEYOND)
    index = session.scalar("sub", value, low)
    index = session.scalar("select", index < 0, len(paths), index)
    index = session.scalar("select", value > high, len(paths) + 1, index)
    return tracer_cond.switch(session, index, [*paths, below, above], NO_NAMES)


def _of_words(session: Session, f: Any, value: Any, names: frozenset[str], run: Callable[[Any], Any]) -> Any:
    words = next((_WORDS[name] for name in sorted(names) if name in _WORDS), None)
    if words is None:
        raise _refusal(session, f, value, names)
    rest: Callable[[], Any] = _raising(session, f, value, names, run, "text of this kind")

    def of(position: int) -> Callable[[], Any]:
        def path() -> Any:
            if position == len(words):
                return rest()
            same = value == words[position]
            return tracer_cond.cond(session, same, lambda: run(words[position]), of(position + 1), NO_NAMES)

        return path

    return of(0)()


def _raising(
    session: Session, f: Any, value: Any, names: frozenset[str], run: Callable[[Any], Any], sample: Any,
    rank: int = 0,
) -> Callable[[], Any]:
    """A path that raises what the function raises for a value outside its domain; ``sample`` is one."""

    def path() -> Any:
        error = _tried(session, lambda: run(sample))
        if error is not None:
            args = error.args
            if is_a(error, IndexError) and not any(str(sample) in str(arg) for arg in args):
                args = (_out_of_range(rank),)
            raised = type(error)(*(_with_value(session, arg, str(sample), value) for arg in args))
        else:  # shape rules do not look; kernels do
            if value.kind == "str":
                raise _refusal(session, f, value, names)
            raised = IndexError(_with_value(session, _out_of_range(rank), str(sample), value))
        stage_raise(session, raised)
        raise PathEnds

    return path


def _tried(session: Session, run: Callable[[], Any]) -> Exception | None:
    """What a call raises that leaves nothing in the trace."""
    with attempt.Attempt(session) as tried:
        try:
            run()
        except Dy2StaticError:
            raise
        except Exception as error:
            tried.undo()
            return error
        tried.undo()
    return None


def _out_of_range(rank: int) -> str:
    low, high = (-rank, rank - 1) if rank else (-1, 0)
    return f"Dimension out of range (expected to be in range of [{low}, {high}], but got {_BEYOND})"


def _with_value(session: Session, text: Any, sample: str, value: Any) -> Any:
    """The text with what a staged value is in place of the sample."""
    if not is_a(text, str) or sample not in text:
        return text
    before, _, after = text.partition(sample)
    said = value if value.kind == "str" else session.scalar("str", value)
    if before:
        said = session.scalar("add", before, said)
    return session.scalar("add", said, after) if after else said


def _of_int(
    session: Session, f: Any, value: Any, names: frozenset[str], run: Callable[[Any], Any],
    special: frozenset[int] = frozenset(),
) -> Any:
    """The call with a number in place of the staged one, for which the Operator gets the staged one as its operand.

    A value for which the result has another form gets a path of its own; those in ``special`` have one.
    """
    if is_a(f, types.FunctionType):  # it computes with the number before an operator has it
        raise _refusal(session, f, value, names)
    number = value if value.kind == "int" else session.scalar("int", value)
    placeholder = number_operands.int_stand_in(session, number)
    session.values.special_numbers[placeholder] = special
    ops = session.scope.block.ops
    before = len(ops)
    with attempt.Attempt(session) as tried:
        try:
            result = run(placeholder)
        except sampled_shapes.Unlike as unlike:
            if unlike.stand_in != placeholder:
                raise
            other = unlike.value
            tried.undo()
        else:
            if not number_operands.is_used(number, ops[before:]):
                raise _refusal(session, f, number, names)
            return result
    return tracer_cond.cond(
        session, session.scalar("eq", number, other), lambda: run(other),
        lambda: _of_int(session, f, value, names, run, special | {other}), NO_NAMES)


_SAMPLES = (0.5, 1.5, 3.0, 0.001, 20.0, -0.5)


def _of_float(session: Session, f: Any, value: Any, names: frozenset[str], run: Callable[[Any], Any]) -> Any:
    """The call with a number in place of the staged one, for which the Operator gets the staged one as its operand."""
    number = value if value.kind == "float" else session.scalar("float", value)
    if names & {"p"}:  # a dropout of nothing gives its input itself
        nothing = session.scalar("eq", number, 0.0)
        return tracer_cond.cond(session, nothing, lambda: run(0.0), lambda: _recorded(session, f, number, names, run),
                                NO_NAMES)
    return _recorded(session, f, number, names, run)


def _recorded(session: Session, f: Any, number: Any, names: frozenset[str], run: Callable[[Any], Any]) -> Any:
    failures: list[Exception] = []
    ops = session.scope.block.ops
    before = len(ops)
    for sample in _SAMPLES:
        with attempt.Attempt(session) as tried:
            placeholder = number_operands.stand_in(session, number, sample)
            try:
                result = run(placeholder)
            except Dy2StaticError:
                raise
            except (RuntimeError, ValueError, IndexError) as error:  # not for this value
                failures.append(error)
                tried.undo()
                continue
        if not number_operands.is_used(number, ops[before:]):
            break
        return result
    if len(failures) == len(_SAMPLES) and len(set(map(str, failures))) == 1:  # whatever the number is
        raise failures[0]
    raise _refusal(session, f, number, names) from (failures[0] if failures else None)


def _refusal(session: Session, f: Any, value: Any, names: frozenset[str]) -> Exception:
    name = f"the argument {' or '.join(repr(one) for one in sorted(names))}" if names else "an argument"
    return session.error(
        f"{name} of torch's {getattr(f, '__name__', type(f).__name__)}() is a Python {value.kind} that is only known "
        "while the Program runs, and it takes a fixed one",
        hint="Choose between fixed values with if, and call the function on each path.",
        code="D2S234" if value.kind == "str" else "D2S238")
