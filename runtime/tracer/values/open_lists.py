"""Lists of tensors among a call's arguments whose length changes: inputs of the Program in place of a tensor for each.

    f([a, b])    template {"xs": Container(list, [TensorSlot(0), TensorSlot(1)])}       a Program for each length
                 template {"xs": Container(list, [Open(0, kind)])}          one Program; its input is the list

While tracing, such a list is one that grew (``array.py``). The run is given the caller's tensors themselves, under
torch's autograd, so a result may be one of them. They may not be written: no list says which of its items that was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import ArrayType, Input, TensorType, Variable
from runtime.ir.template import KeyPath, TensorSlot
from runtime.ir.types import said
from runtime.kinds import is_a
from runtime.tracer.ambient.closing import CannotBeOpen
from runtime.tracer.values.alias_sets import AliasSet
from runtime.tracer.values.arguments import Arguments, Container
from runtime.tracer.values.structure import Growing
from runtime.tracer.values.structure import Tensor as TensorItem

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


def is_kind(kind: Any) -> bool:
    """Whether the kind of an open value is one of lists."""
    return type(kind) is tuple and kind[0] in (list, tuple)


def lists(arguments: Arguments) -> dict[KeyPath, Any]:
    """Lists and tuples that could be open, by their paths, with their kinds: what their tensors look like.

    Their tensors are alike and plain: of one size, dtype and device, contiguous, nowhere else among the arguments.
    """
    counts: dict[int, int] = {}
    found: dict[KeyPath, tuple[Container, Any]] = {}
    for path, value in _nodes(arguments.template.items(), ()):
        if is_a(value, TensorSlot):
            counts[value.index] = counts.get(value.index, 0) + 1
        elif is_a(value, Container) and value.kind in (list, tuple) and value.items:
            kind = _kind(value, arguments.tensors)
            if kind is not None:
                found[path] = value, kind
    return {path: kind for path, (node, kind) in found.items() if _are_alone(node, counts)}


def _are_alone(node: Container, counts: Mapping[int, int]) -> bool:
    """Whether the tensors of a list stand nowhere else; ``counts``: how often each stands anywhere."""
    own = Counter(slot.index for slot in node.items)
    return all(counts[index] == count for index, count in own.items())


def lengths(arguments: Arguments) -> dict[KeyPath, tuple[Any, int]]:
    """The kinds and lengths of those."""
    return {path: (kind, len(_at(arguments, path).items)) for path, kind in lists(arguments).items()}


def _at(arguments: Arguments, path: KeyPath) -> Container:
    node: Any = arguments.template[path[0]]
    for step in path[1:]:
        node = node.items[step if node.keys is None else node.keys.index(step)]
    assert is_a(node, Container)
    return node


def _nodes(items: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for step, value in items:
        yield (*path, step), value
        if is_a(value, Container) and value.kind is not set:
            inner = enumerate(value.items) if value.keys is None else zip(value.keys, value.items)
            yield from _nodes(inner, (*path, step))


def _kind(node: Container, tensors: Sequence[torch.Tensor]) -> Any:
    if not all(is_a(item, TensorSlot) for item in node.items):
        return None
    kinds = {_look(tensors[item.index]) for item in node.items}
    (kind, *others) = kinds
    return (node.kind, kind) if kind is not None and not others else None


def _look(tensor: torch.Tensor) -> Any:
    """What is the same of all tensors of a list; None for one that is more than its values."""
    if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or not tensor.is_contiguous():
        return None
    if tensor.is_conj() or tensor.is_neg() or tensor.is_inference():
        return None
    return (tensor.dtype, tensor.device, tuple(tensor.shape), tensor.requires_grad, tensor.is_leaf)


def without_tensors(arguments: Arguments, gone: Set[int]) -> Arguments:
    """The arguments without some tensors, to which no ``TensorSlot`` refers any more."""
    places = {old: new for new, old in enumerate(one for one in range(len(arguments.tensors)) if one not in gone)}

    def renumber(value: Any) -> Any:
        if is_a(value, TensorSlot):
            return TensorSlot(places[value.index])
        if is_a(value, Container) and value.kind is not set:
            return replace(value, items=tuple(map(renumber, value.items)))
        return value

    return replace(
        arguments, tensors=[arguments.tensors[one] for one in places], labels=[arguments.labels[one] for one in places],
        template={name: renumber(value) for name, value in arguments.template.items()}, only_tensors=None,
    )  # fmt: skip


def enter(session: Session, items: Sequence[torch.Tensor], label: str) -> Growing:
    """Declare an input of the Program for a list; its content while tracing."""
    first = items[0]
    item = TensorType(first.dtype, tuple(first.shape), said(first.device))
    var = session.new_variable(ArrayType(item), label, session.root())
    session.program.inputs.append(Input(var, label))
    session.containers.has_growing = True
    like = TensorItem(tuple(first.shape), None, first.dtype, first.device, first.requires_grad, True)
    alias_set = AliasSet()
    session.containers.open_alias_sets.append((alias_set, first.requires_grad))
    return Growing((var,), like, alias_set)


def require_only_read(session: Session, opened: Sequence[Any], writes: Sequence[Any]) -> None:
    """Raises CannotBeOpen if the Program may write a tensor of an open list, or one that shares its memory, or is to
    give it a gradient."""
    items = [one.item for one in opened if is_a(one, Growing)]
    if not items:
        return
    if any(is_a(item, TensorItem) and item.requires_grad for item in items):
        if any(op.name == "gradients" for op in session.program.block.walk()):
            raise CannotBeOpen("gradients are asked for, which an item of a list among the arguments may get")
    if writes:
        raise CannotBeOpen("an argument is written, which may share memory with an item of a list")
    made: set[Variable] = set()
    for op in session.program.block.walk():
        if op.name.startswith("aten."):
            made.update(op.outputs)
        elif op.name == "update" and not all(var in made for var in op.inputs if is_a(var.type, TensorType)):
            raise CannotBeOpen("a tensor is written that may be an item of a list among the arguments")
        elif op.name == "update":
            made.update(op.outputs)


__all__ = ["enter", "is_kind", "lengths", "lists", "require_only_read", "without_tensors"]
