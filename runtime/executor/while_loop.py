"""``while_loop``: a Python ``while``. Carried values live in one local each, from the first value to the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from runtime.executor.emitter import Emitter
from runtime.ir import Block, Operator, Variable


def emit(emitter: Emitter, op: Operator) -> None:
    """``c = first; while True: ...; if not flag: break; ...; c = next``; with ``max_iterations``, a counter beside."""
    test, body = op.blocks
    live = emitter.live
    carried = [emitter.fresh("c") for _ in op.args]
    for local, *variables in zip(carried, test.args, body.args, op.outputs):
        emitter.names.update(dict.fromkeys(variables, local))
    for position, (value, arg) in enumerate(zip(op.args, test.args)):
        emitter.line(f"{carried[position]} = {emitter.operand(value)}")
        if arg in emitter.own.flags:
            emitter.set_flag(arg, emitter.owner(id(op), position, value))
    captured = {var for block in op.blocks for var in live.captured(block)}
    dying = live.dying[id(op)]
    emitter.drop(var for var in dying if var not in captured)
    limit = op.attrs.get("max_iterations")
    if limit is not None:
        counter, check = emitter.fresh("n"), emitter.bind(_limit(limit, op.attrs.get("already", 0)), "f")
        emitter.line(f"{counter} = 0")
    with emitter.indented("while True:", nests=True):
        emitter.enter(test)
        emitter.operators(test)
        (flag,) = test.yields
        with emitter.indented(f"if not {emitter.operand(flag)}:"):
            emitter.drop(var for var in live.at_exit[id(test)])
            emitter.line("break")
        emitter.drop(var for var in live.at_exit[id(test)])
        if limit is not None:
            emitter.line(f"if {counter} == {limit}: {check}()")
            emitter.line(f"{counter} += 1")
        emitter.iteration()
        emitter.enter(body)
        emitter.operators(body)
        carry_on(emitter, body, test.args, carried)
    emitter.drop([var for var in dying if var in captured])
    emitter.drop(live.unread[id(op)])


def _limit(limit: int, already: int) -> Callable[[], NoReturn]:
    def reached() -> NoReturn:
        raise RuntimeError(f"this loop goes on after max_iterations={limit + already} iterations")

    return reached


def carry_on(emitter: Emitter, body: Block, heads: Sequence[Variable], carried: list[str]) -> None:
    """``c1, c2 = a, b``: all at once, since a value may be carried on into another place.

    ``heads`` are the Variables with which an iteration begins, ``carried`` their locals.
    """
    targets: list[str] = []
    values: list[str] = []
    for position, (local, value, arg) in enumerate(zip(carried, body.yields, heads)):
        expression = emitter.operand(value)
        if expression != local:
            targets.append(local)
            values.append(expression)
        if arg in emitter.own.flags:
            owner = emitter.owner(id(body), position, value)
            if owner != emitter.flag(arg):
                targets.append(emitter.flag(arg))
                values.append(owner)
    if targets:
        emitter.line(f"{', '.join(targets)} = {', '.join(values)}")
    kept = set(carried)
    emitter.drop(var for var in emitter.live.at_exit[id(body)] if emitter.name(var) not in kept)
