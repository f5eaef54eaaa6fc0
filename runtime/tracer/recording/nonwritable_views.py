"""Views that autograd does not let be written: rows of ``unbind`` and ``split``, and views made under ``no_grad``.

PyTorch cannot give such a view a new history. It refuses to write one, and to use one after its base, or another view
of it, was written. A Program reads the view anew and would go on; so the trace raises what eager raises there.

Of what ``unsafe_chunk`` gives autograd does not know that it is a view: a write changes the memory of both, and the
history of the one written alone. A Program has one history for a memory, so the trace refuses there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Operator, Variable
from runtime.ir.views import HOLE
from runtime.torch_internals import node_in_messages
from runtime.tracer.memory.conditions import NEVER, PathCondition, any_of, when
from runtime.tracer.memory.deferred import CarriedCondition, Needed, PathEnd, joined, needed, unneeded
from runtime.tracer.memory.storage_table import FixedView, RecordedStep, Storage, TensorInfo, Write
from runtime.tracer.recording import leaf_writes
from runtime.tracer.recording.raising import raise_where
from runtime.tracer.recording.session import Scope, Session

if TYPE_CHECKING:
    from runtime.tracer.control.branches import Path

_SEVERAL = {
    "aten.unbind.int": "Unbind",
    "aten.split.Tensor": "Split",
    "aten.split.sizes": "SplitWithSizes",
    "aten.split_with_sizes.default": "SplitWithSizes",
    "aten.chunk.default": "Split",
}
"""Operators that give several views at once, and how autograd calls them."""

_UNNOTICED = frozenset({"aten.unsafe_chunk.default", "aten.unsafe_split.Tensor", "aten.unsafe_split_with_sizes.default",
                        "aten._unsafe_view.default", "aten.lift.default"})  # fmt: skip
"""Operators that give views of which autograd does not know."""


def of(session: Session, source: TensorInfo, step: RecordedStep, needs: bool) -> tuple[FixedView, ...]:
    """What is to be known of a new view; nothing if it may be written. ``needs``: whether it gets a history."""
    if step.detaches:  # to autograd it is no view
        return ()
    off = session.is_apart(step)
    if step.name in _UNNOTICED:
        made = FixedView(source.storage.value, f"a result of {step.name.split('.')[1]}()", True, False, noticed=False)
        return (*_made(source, source.storage.value, made.output, True, False, False), made)
    several = step.name in _SEVERAL and not off
    output = f"Output {step.index} of {node_in_messages(_SEVERAL.get(step.name) or _node(step.name))}"
    return _made(source, source.storage.value, output, needs and not off, several, several or off)


_UNSAFE = frozenset(f"aten.unsafe_{name}" for name in ("chunk.default", "split.Tensor", "split_with_sizes.default"))


def alone(step: RecordedStep, outputs: Sequence[Any], replaying: bool = False) -> RecordedStep:
    """The step that gives one of several views by itself, as far as sizes are known: PyTorch lets that be written.

    What a Program writes through a view it replays; whether the user may is asked before. ``replaying``: what autograd
    takes for no view is one, too: the Program that is recorded may be differentiated again, memory and all (a GRU's
    cell writes the parts of one product).
    """
    if step.name not in _SEVERAL and not (replaying and step.name in _UNSAFE):
        return step
    position = 1 if step.name == "aten.unbind.int" else 2
    dim = step.args[position] if len(step.args) > position else dict(step.kwargs).get("dim", 0)
    if type(dim) is not int:
        return step
    if step.name == "aten.unbind.int":
        return replace(step, name="aten.select.int", args=(HOLE, dim, step.index), kwargs=(), index=0, results=1)
    sizes = [output.shape[dim] for output in outputs]
    if not all(type(size) is int for size in sizes):
        return step
    start = sum(sizes[: step.index])
    args = (HOLE, dim, start, start + sizes[step.index])
    return replace(step, name="aten.slice.Tensor", args=args, kwargs=(), index=0, results=1)


def of_its_own(value: Variable, name: str) -> tuple[FixedView, ...]:
    """What is to be known of the result of an operator under ``no_grad`` that is a view of what it made itself."""
    return (FixedView(value, f"Output 0 of {node_in_messages(_node(name))}", False, False),)


def _node(name: str) -> str:
    return "".join(part.title() for part in name.split(".")[1].split("_"))


def _made(
    source: TensorInfo, base: Variable, output: str, has_node: bool, several: bool, fixes: bool
) -> tuple[FixedView, ...]:
    """A view of such views, which itself is one if it ``fixes``; ``has_node``: where ``base`` needs a gradient."""
    made = [
        replace(old, base=base, output=output, has_node=has_node, several=several if fixes else old.several,
                stale=NEVER, behind=NEVER, index=None) if old.noticed else old
        for old in source.fixed
    ]
    if fixes and not any(fixed.noticed and fixed.when.always for fixed in made):
        made.append(FixedView(base, output, has_node, several))
    if not (has_node and source.grad_in_some_runs):
        return tuple(made)
    is_needed, not_needed = Needed(base), Needed(base, negated=True)
    return tuple(
        replace(fixed, when=fixed.when & when(flag), has_node=flag is is_needed)
        for fixed in made
        for flag in (is_needed, not_needed)
    )


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
        output = f"{f'Output {index}' if known else 'An output'} of {node_in_messages('Unbind')}"
        made = _made(self._source, self._base, output, self._source.requires_grad, True, True)
        row.fixed = made if known else tuple(replace(fixed, index=index) for fixed in made)


def note_join(session: Session, storage: Storage, op: Operator, before: Variable, paths: Sequence[Path]) -> None:
    """Remember which paths of a join wrote the storage, whose value is an output of ``op``."""
    ends = [(PathEnd(path.scope, path.ended), path.storages.get(storage, before)) for path in paths]
    storage.written[storage.value] = Write(before, *(
        joined(session, op, session.scope, [(end, _since(storage, value, before, of)) for end, value in ends])
        for of in (_HAPPENED, _BEHIND)))  # fmt: skip


class LoopWrites:
    """Whether the iterations of a ``while_loop`` wrote a storage so far: carried round if something asks for it."""

    def __init__(self, storage: Storage, before: Variable, body: Scope) -> None:
        """The storage's value is the body's argument for it, which held ``before`` before the loop."""
        self._storage, self._before, self._argument = storage, before, storage.value
        self._values = {of: CarriedCondition(False, body) for of in (_HAPPENED, _BEHIND)}
        storage.written[storage.value] = Write(before, *(value.inside for value in self._values.values()))

    def finish(self, session: Session, op: Operator, path: Path) -> None:
        """The loop is recorded, and the storage's value is an output of it."""
        storage = self._storage
        for of, value in self._values.items():
            now = _since(storage, path.storages.get(storage, self._argument), self._argument, of)
            value.next = value.inside | now
            value.finish(session, op, PathEnd(path.scope, path.ended))
        storage.written[storage.value] = Write(self._before, *(value.after for value in self._values.values()))


def require_readable(session: Session, infos: Iterable[TensorInfo]) -> None:
    """Raise what eager raises when such a view, written behind its back, is used where gradients are recorded.

    Errors raised: RuntimeError as torch does; TraceError (D2S222) for a view of which autograd does not know.
    """
    if not torch.is_grad_enabled() or session.replaying is not None:
        return
    for info in infos:
        if not info.requires_grad:
            continue
        leaf_writes.note_history(session, info, unneeded([info]))
        for fixed in info.fixed:
            stale, behind = stale_when(info, fixed, info.storage.value), behind_when(info, fixed, info.storage.value)
            condition = (stale if fixed.has_node else stale & needed(info)) | behind
            if not condition.never:
                _require_noticed(session, fixed)
                text = _message(session, fixed, "its base or another view of its base has been")
                raise_where(session, condition, RuntimeError(text))


def require_returnable(session: Session, info: TensorInfo) -> None:
    """Refuse to return a view of which autograd does not know, if its memory was written and it needs a gradient.

    Raises:
        TraceError: D2S222.
    """
    for fixed in info.fixed if info.requires_grad else ():
        if not fixed.noticed and not stale_when(info, fixed, info.storage.value).never:
            _require_noticed(session, fixed)


def require_writable(
    session: Session, written: Iterable[TensorInfo], infos: Iterable[TensorInfo], first: Callable[[], str | None]
) -> None:
    """Raise what eager raises when such a view is written where gradients are recorded. ``first``: what it says before
    that, of ``out=``.

    Errors raised: RuntimeError as torch does; TraceError (D2S222) for a view of which autograd does not know.
    """
    if not torch.is_grad_enabled() or session.replaying is not None:
        return
    fixed_views = [fixed for info in written if not info.detached for fixed in info.fixed]
    if not fixed_views:
        return
    needing = [info for info in infos if info.requires_grad]
    condition = any_of(map(needed, needing))
    for fixed in fixed_views:
        is_there = fixed.when & condition
        if not is_there.never:
            _require_noticed(session, fixed)
        said = None if is_there.never else first()
        raise_where(session, is_there, RuntimeError(said or _message(session, fixed, "is being")))


def refusal(written: Iterable[TensorInfo], infos: Iterable[TensorInfo]) -> str | None:
    """What PyTorch says of a write of such a view where something needs a gradient that does not in this trace."""
    if not torch.is_grad_enabled() or any(info.requires_grad for info in infos):
        return None
    every = [one for info in written if not info.detached for one in info.fixed]
    fixed = [one for one in every if one.noticed and one.when.always]
    return _words(replace(fixed[0], has_node=fixed[0].several), "is being") if fixed else None


def stale_when(info: TensorInfo, fixed: FixedView, value: Variable) -> PathCondition:
    """When the base of such a view was written behind its back, up to where its storage holds ``value``."""
    return fixed.stale | (fixed.when & _since(info.storage, value, fixed.base, _HAPPENED))


def behind_when(info: TensorInfo, fixed: FixedView, value: Variable) -> PathCondition:
    """When its base got a history by that which did not come to it."""
    if fixed.has_node:
        return NEVER
    return fixed.behind | (fixed.when & _since(info.storage, value, fixed.base, _BEHIND))


def needed_by_base(info: TensorInfo) -> PathCondition:
    """When a tensor is such a view whose base has a history that did not come to it: to PyTorch it needs a gradient."""
    return any_of(behind_when(info, fixed, info.storage.value) for fixed in info.fixed)


_Of = Callable[[Write], PathCondition]
_HAPPENED: _Of = operator.attrgetter("happened")
_BEHIND: _Of = operator.attrgetter("behind")


def _since(storage: Storage, value: Variable, since: Variable, of: _Of) -> PathCondition:
    """When a storage was written (``of``) between holding ``since`` and ``value``, as far as it is known."""
    found = NEVER
    while value is not since and value in storage.written and not found.always:
        write = storage.written[value]
        found, value = found | of(write), write.before
    return found


def _require_noticed(session: Session, fixed: FixedView) -> None:
    """Raises TraceError (D2S222) for a view of which autograd does not know."""
    if not fixed.noticed:
        raise session.error(
            f"a write to memory of which {fixed.output} is a view, of which PyTorch's autograd does not know: what the "
            "memory holds and the gradients go different ways", code="D2S222",
            hint="Use the operator without 'unsafe', or clone() its result.")


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
