"""``while_loop``: a Python ``while``. Carried values live in one local each, from the first value to the last."""

from __future__ import annotations

from runtime.executor.emitter import Emitter
from runtime.ir import Operator


def emit(emitter: Emitter, op: Operator) -> None:
    """``c = first; while True: ...; if not flag: break; ...; c = next``.

    ``max_iterations`` is advice for executors that set memory aside; here the test alone decides.
    """
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
    with emitter.indented("while True:", nests=True):
        emitter.enter(test)
        emitter.operators(test)
        (flag,) = test.yields
        with emitter.indented(f"if not {emitter.operand(flag)}:"):
            emitter.drop(var for var in live.at_exit[id(test)])
            emitter.line("break")
        emitter.drop(var for var in live.at_exit[id(test)])
        emitter.enter(body)
        emitter.operators(body)
        _next(emitter, op, carried)
    emitter.drop([var for var in dying if var in captured])
    emitter.drop(live.unread[id(op)])


def _next(emitter: Emitter, op: Operator, carried: list[str]) -> None:
    """``c1, c2 = a, b``: all at once, since a value may be carried on into another place."""
    test, body = op.blocks
    targets: list[str] = []
    values: list[str] = []
    for position, (local, value, arg) in enumerate(zip(carried, body.yields, test.args)):
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
