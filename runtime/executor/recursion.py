"""``recursion``: a Python function of the Block's arguments and of what it captures; ``recur`` is a call of it."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.executor.emitter import Emitter
from runtime.ir import Operator, Variable
from runtime.ops.recursion import name_of


def emit(emitter: Emitter, op: Operator) -> None:
    """``def g(w, x): ...; return (y,)`` and ``y, = g(w, x)``."""
    (body,) = op.blocks
    emitter.live.uses(op)  # from here on it knows whose Block is run again
    captured = emitter.live.captured(body)
    with emitter.function([emitter.name(var) for var in (*captured, *body.args)]) as function:
        emitter.repeated[name_of(op)] = function, captured
        emitter.iteration()
        emitter.enter(body)
        emitter.operators(body)
        emitter.line("return (" + "".join(emitter.operand(value) + ", " for value in body.yields) + ")")
    _call(emitter, op, function, captured)
    emitter.drop([*emitter.live.dying[id(op)], *emitter.live.unread[id(op)]])


def emit_again(emitter: Emitter, op: Operator) -> None:
    """``y, = g(w, x)``."""
    function, captured = emitter.repeated[name_of(op)]
    _call(emitter, op, function, captured)


def emit_frame(emitter: Emitter, op: Operator) -> None:
    """``f = [x, n]`` and ``x = f[0]``: lists, through which what is kept for a backward is found."""
    given = list(map(emitter.operand, op.args))
    made = f"[{', '.join(given)}]" if op.name == "frame.new" else f"{given[0]}[{given[1]}]"
    emitter.assign(op.outputs, made, unpack=False)


def _call(emitter: Emitter, op: Operator, function: str, captured: Iterable[Variable]) -> None:
    given = [*map(emitter.name, captured), *map(emitter.operand, op.args)]
    emitter.assign(op.outputs, f"{function}({', '.join(given)})", unpack=True)
