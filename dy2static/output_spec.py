"""Some of a function's results: the others leave its Program, with what only they need.

    output_spec=["logits"], of {"logits": ..., "loss": ...}   ->   {"logits": ...}
    output_spec=[0], of (a, b)                                ->   (a,)
    output_spec="logits"                                      ->   the logits themselves
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from dy2static.errors import SignatureError
from runtime.ir import Operator
from runtime.ir.operator import leaves
from runtime.ir.tree import Leaf, Record, tree_leaves
from runtime.ops import aten
from runtime.ops.registry import definition
from runtime.passes.dead_code import remove_dead
from runtime.storage.trees import KEYED, parts
from runtime.tracer.boundary.tracing import Traced

OutputSpec = str | int | Sequence[str | int]
"""Names or indices of results; one alone stands for the result itself."""


def keep_results(traced: Traced, output_spec: OutputSpec, name: str) -> None:
    """Leave only some results of a traced function, in place, and take out of its Program what nothing needs any more.

    What does more than compute stays: writes, stores, printed lines, assertions, random numbers.

    Errors raised: SignatureError (D2S317) for a result that the function does not have.
    """
    program = traced.program
    output = _chosen(program.output, output_spec, name)
    trees = [output, *(effect.tree for effect in traced.effects)]
    used = sorted({leaf.index for tree in trees for leaf in tree_leaves(tree)} | {w.index for w in program.writes})
    number = {old: new for new, old in enumerate(used)}
    moved = _Moved(number)
    program.output = moved.tree(output)
    traced.effects[:] = [replace(effect, tree=moved.tree(effect.tree)) for effect in traced.effects]
    traced.same = {moved.ids[key]: path for key, path in traced.same.items() if key in moved.ids}
    traced.kept = {moved.ids[key]: value for key, value in traced.kept.items() if key in moved.ids}
    traced.views = {number[old]: view for old, view in traced.views.items() if old in number}
    for write in program.writes:
        write.index = number[write.index]
    program.block.yields = [program.block.yields[old] for old in used]
    remove_dead(program.block, program.block.yields, _does_more)
    _drop_parameters(traced)


def _does_more(op: Operator) -> bool:
    """Whether an Operator does anything but give results: it says something, or draws random numbers in this mode."""
    ops = [op, *(inner for block in op.blocks for inner in block.walk())]
    return any(
        definition(one.name).effect
        or (definition(one.name).random and aten.is_random(aten.resolve(one.name), one.args, one.kwargs))
        for one in ops
    )


def _drop_parameters(traced: Traced) -> None:
    program = traced.program
    read = {var for op in program.block.walk() for var in op.inputs}
    read |= {var for op in program.block.walk() for block in op.blocks for var in leaves(block.yields)}
    read |= {*leaves(program.block.yields), *(write.target for write in program.writes)}
    read |= {view.source for view in traced.views.values()}
    kept = [index for index, one in enumerate(program.params) if one.var in read]
    program.params = [program.params[index] for index in kept]
    traced.live = [traced.live[index] for index in kept]
    program.block.args = [*(one.var for one in program.inputs), *(one.var for one in program.params)]


class _Moved:
    """Trees with their results renumbered; what is one object in them stays one."""

    def __init__(self, number: dict[int, int]) -> None:
        self.number = number
        self.ids: dict[int, int] = {}
        """By identity of a part: that of the part in its place."""
        self._made: dict[int, tuple[Any, Any]] = {}

    def tree(self, tree: Any) -> Any:
        if id(tree) not in self._made:
            self._made[id(tree)] = (tree, self._new(tree))  # the old one is kept, so that its identity stays its own
            self.ids[id(tree)] = id(self._made[id(tree)][1])
        return self._made[id(tree)][1]

    def _new(self, tree: Any) -> Any:
        if isinstance(tree, Leaf):
            return Leaf(self.number[tree.index])
        if type(tree) in (list, tuple):
            return type(tree)(self.tree(item) for item in tree)
        if type(tree) is dict:
            return {key: self.tree(item) for key, item in tree.items()}
        if isinstance(tree, Record):
            return replace(tree, fields=tuple((name, self.tree(item)) for name, item in tree.fields))
        return tree


def _chosen(tree: Any, output_spec: OutputSpec, name: str) -> Any:
    """The part of an output tree that is asked for."""
    if isinstance(output_spec, (str, int)):
        return _part(tree, output_spec, name)
    wanted = list(output_spec) if isinstance(output_spec, Sequence) else []
    if not wanted or len({_key(one) for one in wanted}) < len(wanted):
        raise TypeError(f"output_spec has to name at least one result, and each once, not {output_spec!r}")
    found = [_part(tree, one, name) for one in wanted]
    if type(tree) in (list, tuple):
        return type(tree)(found)
    if type(tree) is dict:
        return dict(zip(wanted, found))
    if isinstance(tree, Record) and tree.kind in KEYED and not tree.type_name.startswith("torch."):
        names = [key for key, _ in parts(tree) or ()]
        keys = tuple(one if one in names else names[int(one)] for one in wanted)
        fields = dict(zip(names, tree.fields[1:]))
        return replace(tree, fields=(("keys", keys), *(fields[key] for key in keys)))
    return tuple(found)


def _part(tree: Any, wanted: str | int, name: str) -> Any:
    if type(wanted) not in (str, int):
        raise TypeError(f"output_spec takes names and indices of results, not {wanted!r}")
    inside = parts(tree)
    if inside is None or (isinstance(tree, Record) and tree.kind not in KEYED):
        if _key(wanted) == _key(0) and not isinstance(tree, Record):
            return tree
        _refuse(wanted, name, "which gives one result, 0")
    for key, item in inside:
        if _key(key) == _key(wanted):
            return item
    by_position = type(wanted) is int and isinstance(tree, Record) and tree.kind == "namedtuple"
    if by_position and 0 <= int(wanted) < len(inside):
        return inside[int(wanted)][1]
    _refuse(wanted, name, f"whose results are {', '.join(repr(key) for key, _ in inside) or 'none'}")


def _key(key: Any) -> tuple[type, Any]:
    return type(key), key


def _refuse(wanted: str | int, name: str, there: str) -> NoReturn:
    raise SignatureError(
        f"output_spec names the result {wanted!r} of {name}(), {there}",
        hint="Name results by their key or field, or by their index from 0.",
        code="D2S317",
    )


__all__ = ["OutputSpec", "keep_results"]
