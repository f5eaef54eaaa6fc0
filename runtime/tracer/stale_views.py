"""Views that autograd does not let be written: rows of ``unbind`` and ``split``, and views made under ``no_grad``.

PyTorch cannot give such a view a new history. It refuses to write one, and to use one after its base, or another view
of it, was written. A Program reads the view anew and would go on; so the trace raises what eager raises there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch

from runtime.ir import Block, Operand, Operator, Variable
from runtime.tracer.aliases import BOOL, Flags, JoinOutput, Late, LoopValue, PathEnd, any_of
from runtime.tracer.branches import Path, stage_raise
from runtime.tracer.session import Scope, Session
from runtime.tracer.storage_table import FixedView, Storage, TensorInfo, ViewStep

_SEVERAL = {
    "aten.unbind.int": "Unbind",
    "aten.split.Tensor": "Split",
    "aten.split.sizes": "SplitWithSizes",
    "aten.split_with_sizes.default": "SplitWithSizes",
    "aten.chunk.default": "Split",
}
"""Operators that give several views at once, and how autograd calls them."""


def of(session: Session, source: TensorInfo, step: ViewStep, needs: bool) -> tuple[FixedView, ...]:
    """What is to be known of a new view; nothing if it may be written. ``needs``: whether it gets a history."""
    several = step.name in _SEVERAL and not _without_grad(session, step)
    has_node = needs and not _without_grad(session, step)
    node = _SEVERAL.get(step.name) or "".join(part.title() for part in step.name.split(".")[1].split("_"))
    output = f"Output {step.index} of {node}"
    made = [
        replace(fixed, output=output, has_node=has_node, several=several or fixed.several) for fixed in source.fixed
    ]
    if all(fixed.when for fixed in made) and (several or _without_grad(session, step)):
        made.append(FixedView(source.storage.value, output, has_node, several))
    return tuple(made)


def note_join(session: Session, storage: Storage, op: Operator, before: Variable, paths: Sequence[Path]) -> None:
    """Remember which paths of a join wrote the storage, whose value is an output of ``op``."""
    rows: list[tuple[PathEnd, Operand | list[Flags]]] = []
    for path in paths:
        rows.append((PathEnd(path.scope, path.ended), _cases(storage, path.storages.get(storage, before), before)))
    storage.written[storage.value] = JoinOutput(op, session.scope, BOOL, rows), before


class LoopWrites:
    """Whether the iterations of a ``while_loop`` wrote a storage so far: carried round if something asks for it."""

    def __init__(self, storage: Storage, before: Variable, body: Scope) -> None:
        """The storage's value is the body's argument for it, which held ``before`` before the loop."""
        self._storage, self._before, self._argument = storage, before, storage.value
        self._value = LoopValue(BOOL, False, body)
        storage.written[storage.value] = self._value.inside, before

    def finish(self, session: Session, op: Operator, path: Path) -> None:
        """The loop is recorded, and the storage's value is an output of it."""
        storage = self._storage
        cases = _cases(storage, path.storages.get(storage, self._argument), self._argument)
        self._value.next = True if cases is True else [(self._value.inside,), *(cases or [])]
        self._value.finish(session, op, PathEnd(path.scope, path.ended))
        storage.written[storage.value] = self._value.after, self._before


def require_readable(session: Session, infos: Iterable[TensorInfo]) -> None:
    """Raise what eager raises when such a view, written behind its back, is used where gradients are recorded.

    Errors raised: RuntimeError as torch does.
    """
    if not torch.is_grad_enabled() or session.replaying is not None:
        return
    for info in infos:
        for fixed in info.fixed:
            if info.requires_grad and (fixed.when or not info.sometimes):
                for case in stale_cases(info, fixed, info.storage.value):
                    _raise_if(session, case, _message(fixed, "its base or another view of its base has been"))


def require_writable(session: Session, written: Iterable[TensorInfo], infos: Iterable[TensorInfo]) -> None:
    """Raise what eager raises when such a view is written where gradients are recorded.

    Errors raised: RuntimeError as torch does.
    """
    if not torch.is_grad_enabled() or session.replaying is not None:
        return
    needs = any(info.requires_grad and not info.sometimes for info in infos)
    for info in written:
        for fixed in info.fixed:
            if not info.detached and (needs or fixed.when):
                _raise_if(session, fixed.when, _message(fixed, "is being"))


def stale_cases(info: TensorInfo, fixed: FixedView, value: Variable) -> list[Flags]:
    """When the base of such a view was written behind its back, up to where its storage holds ``value``."""
    written = _cases(info.storage, value, fixed.base)
    cases = [()] if written is True else written or []
    return [*fixed.stale, *((*fixed.when, *case) for case in cases)]


def _writes(storage: Storage, value: Variable, since: Variable) -> Iterator[Late | bool]:
    """For each change of a storage from ``since`` to ``value``, as far as it is known, whether it is a write."""
    while value is not since and value in storage.written:
        flag, value = storage.written[value]
        yield flag


def _cases(storage: Storage, value: Variable, since: Variable) -> bool | list[Flags]:
    """The same as one operand, or the cases in which it was written."""
    flags = list(_writes(storage, value, since))
    return True if True in flags else [(flag,) for flag in flags if not isinstance(flag, bool)] or False


def _raise_if(session: Session, case: Flags, text: str) -> None:
    if not case:
        raise RuntimeError(text)
    flag = any_of(session, [case])
    with session.open("cond") as taken:
        stage_raise(session, RuntimeError(text))
    session.emit("cond", [flag], None, [], blocks=[taken.block, Block()])


def _without_grad(session: Session, step: ViewStep) -> bool:
    mode = step.modes[0]
    off = mode == "off" or (mode == "inherit" and not session.ambient_grad)
    return off and step.name != "aten.detach.default"


def _message(fixed: FixedView, what: str) -> str:
    """PyTorch's own words."""
    text = f"{fixed.output} is a view"
    if not fixed.has_node:
        text = f"A view was created in no_grad mode and {what} modified inplace with grad mode enabled."
    elif fixed.several:
        text += f" and {what} modified inplace."
    else:
        text += f" of a view which was created in no_grad mode and {what} modified inplace with grad mode enabled."
    if fixed.several:
        return (
            f"{text} This view is the output of a function that returns multiple views. Such functions do not allow "
            "the output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
        )
    return (
        f"{text} Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
        "moving both the view and the inplace either both inside the no_grad block (if you don't want the inplace to "
        "be tracked) or both outside (if you want the inplace to be tracked)."
    )
