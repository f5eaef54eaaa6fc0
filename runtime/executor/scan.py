"""``scan``: a Python ``for`` over a range. Items are collected in lists; what is stacked is stacked on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.executor.emitter import Emitter
from runtime.executor.ownership import Owner
from runtime.executor.while_loop import carry_on
from runtime.ir import Operator, TensorType
from runtime.ops import scan


def rows_of(column: torch.Tensor) -> Sequence[torch.Tensor]:
    """The rows of a tensor."""
    if column.layout is torch.strided:
        return column.unbind(0)
    return [column.select(0, index) for index in range(len(column))]


_MANY = 32


class Rows:
    """Items that become the rows of one tensor of ``length``: many at a time, so that few are there twice.

    Under autograd they are stacked in one operation, at the end. So are items of more than two dimensions: whether
    ``torch.stack`` gives these in another memory format depends on all of them.
    """

    def __init__(self, length: int, reverse: bool, grad: bool) -> None:
        self._length, self._reverse = length, reverse
        self._items: list[torch.Tensor] = []
        self._whole: torch.Tensor | None = None
        self._done = 0
        self._often = not grad and length > _MANY

    def append(self, item: torch.Tensor) -> None:
        """One more item."""
        self._items.append(item)
        if self._often and len(self._items) == _MANY:
            self._flush()

    def _flush(self) -> None:
        first = self._items[0]
        if self._whole is None:
            self._often = first.dim() <= 2 and first.layout is torch.strided and type(first) is torch.Tensor
            if not self._often:
                return
            self._whole = first.new_empty((self._length, *first.shape))
        count = len(self._items)
        start = self._length - self._done - count if self._reverse else self._done
        torch.stack(self._items[::-1] if self._reverse else self._items, out=self._whole[start : start + count])
        self._done += count
        self._items.clear()

    def finish(self) -> torch.Tensor | None:
        """The tensor; None if there were no items."""
        if self._whole is None:
            return torch.stack(self._items[::-1] if self._reverse else self._items) if self._items else None
        if self._items:
            self._flush()
        return self._whole


def emit(emitter: Emitter, op: Operator) -> None:
    """``for i in range(n): row = x[i]; ...; items.append(item); c = next``, and ``hs = items.finish()``.

    Of a list that nobody else has, a scan that goes in reverse takes the items out: each is dropped after its use.
    """
    (body,) = op.blocks
    live = emitter.live
    count = scan.carried(op)
    index, *args = body.args
    carried = [emitter.fresh("c") for _ in range(count)]
    for local, *variables in zip(carried, args, op.outputs):
        emitter.names.update(dict.fromkeys(variables, local))
    for position, (local, value, arg) in enumerate(zip(carried, op.args[1:], args), start=1):
        emitter.line(f"{local} = {emitter.operand(value)}")
        if arg in emitter.own.flags:
            emitter.set_flag(arg, emitter.owner(id(op), position, value))
    length = emitter.operand(op.args[0])
    reverse = bool(op.attrs.get("reverse"))
    number = emitter.name(index)
    columns = [_column(emitter, op, place, number) for place in range(1 + count, len(op.args))]
    made = [emitter.fresh("s") for _ in op.outputs[count:]]
    grad = emitter.open[-1].modes.root.grad != "off"
    for local, out in zip(made, op.outputs[count:]):
        rows = f"{emitter.bind(Rows, 'f')}({length}, {reverse}, {grad})"
        emitter.line(f"{local} = {rows if isinstance(out.type, TensorType) else '[]'}")
    numbers = emitter.fresh("r")
    span = f"{emitter.bind(range)}({length})"
    emitter.line(f"{numbers} = {emitter.bind(reversed)}({span})" if reverse else f"{numbers} = {span}")
    captured = set(live.captured(body))
    dying = live.dying[id(op)]
    emitter.drop(var for var in dying if var not in captured)
    with emitter.indented(f"for {number} in {numbers}:", nests=True):
        emitter.iteration()
        for arg, (_, item) in zip(args[count:], columns):
            emitter.line(f"{emitter.name(arg)} = {item}")
        emitter.enter(body)
        emitter.operators(body)
        for local, value in zip(made, body.yields[count:]):
            emitter.line(f"{local}.append({emitter.operand(value)})")
        carry_on(emitter, body, args, carried)
    for local, out in zip(made, op.outputs[count:]):
        whole = isinstance(out.type, TensorType)
        if reverse and not whole:
            emitter.line(f"{local}.reverse()")
        emitter.line(f"{emitter.name(out)} = {local}{'.finish()' if whole else ''}")
    emitter.line("del " + ", ".join([numbers, *made, *(local for local, _ in columns)]))
    emitter.drop([var for var in dying if var in captured])
    emitter.drop(live.unread[id(op)])


def _column(emitter: Emitter, op: Operator, place: int, index: str) -> tuple[str, str]:
    """The local that holds the slices, and how an iteration reads its own."""
    column: Any = op.args[place]
    local = emitter.fresh("q")
    rows = isinstance(column.type, TensorType)
    name = emitter.name(column)
    emitter.line(f"{local} = {emitter.bind(rows_of, 'f')}({name})" if rows else f"{local} = {name}")
    taken = op.attrs.get("reverse") and emitter.own.donated.get((id(op), place)) is Owner.YES
    return local, f"{local}.pop()" if taken else f"{local}[{index}]"
