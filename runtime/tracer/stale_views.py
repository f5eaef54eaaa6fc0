"""Views that autograd does not let be written: rows of ``unbind`` and ``split``, and views made under ``no_grad``.

PyTorch cannot give such a view a new history. It refuses to write one, and to use one after its base, or another view
of it, was written. A Program reads the view anew and would go on; so the trace raises what eager raises there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch

from runtime.ir import Operand, Operator, Variable
from runtime.tracer.branches import Path, raise_where
from runtime.tracer.late import BOOL, Flags, JoinOutput, LoopValue, PathEnd
from runtime.tracer.session import Scope, Session
from runtime.tracer.storage_table import FixedView, Storage, TensorInfo, ViewStep, Write

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
    output = f"Output {step.index} of {_SEVERAL.get(step.name) or _node(step.name)}"
    return _made(source, source.storage.value, output, has_node, several, several or _without_grad(session, step))


def of_its_own(value: Variable, name: str) -> tuple[FixedView, ...]:
    """What is to be known of the result of an operator under ``no_grad`` that is a view of what it made itself."""
    return (FixedView(value, f"Output 0 of {_node(name)}", False, False),)


def _node(name: str) -> str:
    return "".join(part.title() for part in name.split(".")[1].split("_"))


def _made(
    source: TensorInfo, base: Variable, output: str, has_node: bool, several: bool, fixes: bool
) -> tuple[FixedView, ...]:
    """A view of such views, which itself is one if it ``fixes``."""
    made = [
        replace(fixed, output=output, index=None, has_node=has_node, several=several or fixed.several)
        for fixed in source.fixed
    ]
    if fixes and all(fixed.when for fixed in made):
        made.append(FixedView(base, output, has_node, several))
    return tuple(made)


class Rows:
    """The rows of a tensor that is iterated over: those of one ``unbind``, taken when the iteration began."""

    def __init__(self, source: TensorInfo) -> None:
        self._source, self._base = source, source.storage.value
        self._without_grad = not torch.is_grad_enabled()

    def note(self, row: TensorInfo, index: Any) -> None:
        """``row`` is the one at ``index``, which may be staged: PyTorch names it in its message."""
        if self._without_grad:
            return
        known = type(index) is int
        output = f"Output {index} of Unbind" if known else "An output of Unbind"
        made = _made(self._source, self._base, output, self._source.requires_grad, True, True)
        row.fixed = made if known else tuple(replace(fixed, index=index) for fixed in made)


def note_join(session: Session, storage: Storage, op: Operator, before: Variable, paths: Sequence[Path]) -> None:
    """Remember which paths of a join wrote the storage, whose value is an output of ``op``."""

    def output(graph: bool) -> JoinOutput:
        rows: list[tuple[PathEnd, Operand | list[Flags]]] = []
        for path in paths:
            cases = _cases(storage, path.storages.get(storage, before), before, graph)
            rows.append((PathEnd(path.scope, path.ended), cases))
        return JoinOutput(op, session.scope, BOOL, rows)

    storage.written[storage.value] = Write(before, output(False), output(True))


class LoopWrites:
    """Whether the iterations of a ``while_loop`` wrote a storage so far: carried round if something asks for it."""

    def __init__(self, storage: Storage, before: Variable, body: Scope) -> None:
        """The storage's value is the body's argument for it, which held ``before`` before the loop."""
        self._storage, self._before, self._argument = storage, before, storage.value
        self._values = LoopValue(BOOL, False, body), LoopValue(BOOL, False, body)
        happened, graph = self._values
        storage.written[storage.value] = Write(before, happened.inside, graph.inside)

    def finish(self, session: Session, op: Operator, path: Path) -> None:
        """The loop is recorded, and the storage's value is an output of it."""
        storage = self._storage
        for graph, value in enumerate(self._values):
            end = path.storages.get(storage, self._argument)
            cases = _cases(storage, end, self._argument, bool(graph))
            value.next = [(value.inside,), *cases]
            value.finish(session, op, PathEnd(path.scope, path.ended))
        storage.written[storage.value] = Write(self._before, *(value.after for value in self._values))


def require_readable(session: Session, infos: Iterable[TensorInfo]) -> None:
    """Raise what eager raises when such a view, written behind its back, is used where gradients are recorded.

    Errors raised: RuntimeError as torch does.
    """
    if not torch.is_grad_enabled() or session.replaying is not None:
        return
    for info in infos:
        for fixed in info.fixed:
            if not info.requires_grad:
                continue
            if fixed.when or not info.sometimes:
                cases = stale_cases(info, fixed, info.storage.value)
            elif not fixed.has_node:  # then what was written since is why it needs a gradient
                cases = _cases(info.storage, info.storage.value, fixed.base, True)
            else:
                continue
            for case in cases:
                text = _message(session, fixed, "its base or another view of its base has been")
                raise_where(session, case, RuntimeError(text))


def require_writable(session: Session, written: Iterable[TensorInfo], infos: Iterable[TensorInfo]) -> None:
    """Raise what eager raises when such a view is written where gradients are recorded.

    Errors raised: RuntimeError as torch does.
    """
    if not torch.is_grad_enabled() or session.replaying is not None:
        return
    needs = any(info.requires_grad and not info.sometimes for info in infos)
    for info in written:
        for fixed in info.fixed:
            if not info.detached and (needs or (fixed.when and info.requires_grad)):
                raise_where(session, fixed.when, RuntimeError(_message(session, fixed, "is being")))


def stale_cases(info: TensorInfo, fixed: FixedView, value: Variable) -> list[Flags]:
    """When the base of such a view was written behind its back, up to where its storage holds ``value``."""
    return [*fixed.stale, *((*fixed.when, *case) for case in _cases(info.storage, value, fixed.base))]


def _cases(storage: Storage, value: Variable, since: Variable, graph: bool = False) -> list[Flags]:
    """The cases in which a storage was written between holding ``since`` and ``value``, as far as it is known.

    ``graph``: in which it was written what needs a gradient.
    """
    cases: list[Flags] = []
    while value is not since and value in storage.written:
        write = storage.written[value]
        flag, value = write.graph if graph else write.happened, write.before
        if flag is True:
            return [()]
        if flag is not False:
            cases.append((flag,))
    return cases


def _without_grad(session: Session, step: ViewStep) -> bool:
    mode = step.modes[0]
    off = mode == "off" or (mode == "inherit" and not session.ambient_grad)
    return off and not step.detaches


def _message(session: Session, fixed: FixedView, what: str) -> Any:
    """PyTorch's own words, staged if they name a number that is."""
    text = _words(fixed, what)
    if fixed.index is None or not text.startswith(fixed.output):
        return text
    number = session.scalar("add", "Output ", session.scalar("str", fixed.index))
    return session.scalar("add", number, text.removeprefix("An output"))


def _words(fixed: FixedView, what: str) -> str:
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
