"""From Operators to one C function: values, memory, and the walk through Blocks.

Memory is counted as Python counts references: each local that holds a tensor holds one reference, given up after the
value's last use as the interpreter's liveness has it. What is counted once may be written in place.

Where C meets what it does not know (an int beyond 64 bits, sizes that differ, an exception of the user's) it gives up:
nothing outside has changed by then, and the same Operators run again in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.executor.liveness import Liveness
from runtime.ir import UNDEF, ArrayType, Block, Operand, Operator, ScalarType, TensorType, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.native.layout import Layout
from runtime.native.nest import Nest
from runtime.native.nest_in_c import write_nest
from runtime.native.outer import Input, make_input
from runtime.native.target import C, RowLoops, Target
from runtime.native.values import (
    CTYPES,
    HALVES,
    NUMBERS,
    UNKNOWN,
    Assumed,
    Expr,
    Items,
    Nothing,
    Number,
    Tensor,
    Unsupported,
    Value,
    identity,
)
from runtime.native.writer import BAIL, Writer

Rule = Callable[["Lowering", Operator], None]
RULES: dict[str, Rule] = {}
FAMILIES: dict[str, Rule] = {}
"""How an Operator becomes C, by its name or the first part of it: ``rules.py`` fills both."""

OF_HALVES: set[str] = set()
"""Operators whose C is right for floats of 16 bits; others Python runs for C."""

LIMIT = 1 << 63


class Retry(Exception):
    """A loop carries something else than was taken for granted; what was learned is kept for the next try."""


@dataclass(frozen=True)
class Rows:
    """Of which tensor a loop takes rows, by which number, and by how much that changes from one to the next."""

    whole: Operand
    index: Operand
    step: int


@dataclass
class Loop:
    """A loop being written: tensors numbered up to ``start`` were there before it, and stay what they are."""

    start: int
    body: Block
    rows: dict[Variable, Rows]
    """What it takes of tensors, one after another."""
    kept: list[str] = field(default_factory=list)
    """Memory of what is computed once for all iterations."""


@dataclass
class Part:
    """What is zero but for one part: ``of`` gives that part of a tensor of these sizes, ``grad`` what stands there.

    rows: the part is rows with these numbers, that of ``padding`` left out.
    """

    grad: Tensor
    dims: tuple[Expr, ...]
    of: Callable[[Tensor], Tensor]
    rows: tuple[Tensor, ...] = ()
    padding: int | None = None


@dataclass
class Lowering:
    """The generator of one region. ``live``: the Program's liveness; ``assumed``: what earlier tries learned."""

    live: Liveness
    assumed: dict[tuple[int, int], Assumed] = field(default_factory=dict)
    called: dict[int, Operator] = field(default_factory=dict)
    """Operators that Python runs for C, by identity."""
    w: Writer = field(default_factory=Writer)
    values: dict[Variable, Value] = field(default_factory=dict)
    nest: Nest | None = None
    calls: list[tuple[Operator, list[Value]]] = field(default_factory=list)
    random: bool = False
    ops: Sequence[Operator] = ()
    """What the region runs."""
    outer: frozenset[Variable] = frozenset()
    """What the region may read from outside."""
    leaving: frozenset[Variable] = frozenset()
    """Tensors from outside that the region is the last to read, and may let go before it ends."""
    dead: list[Tensor] = field(default_factory=list)
    """Those of them that nothing reads any more but what is pending."""
    ends: list[tuple[int, list[Tensor]]] = field(default_factory=list)
    """Between which lines, outside of loops and branches, something may be let go, and what is dead by then."""
    counted: dict[int, int] = field(default_factory=dict)
    """Block identity -> counter, where Blocks are counted."""
    inputs: list[Input] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)
    hits: dict[int, str] = field(default_factory=dict)
    """Counter -> the local that counts."""
    in_c: dict[int, str] = field(default_factory=dict)
    """Operators that C runs itself."""
    loops: list[Loop] = field(default_factory=list)
    """The loops around what is being written, the outermost first."""
    frozen: frozenset[Variable] = frozenset()
    """Parameters that nothing ever changes: matrices among them are packed once."""
    layouts: Mapping[Variable, Layout] = field(default_factory=dict)
    """How arguments lie in memory, where that is not row after row."""
    around: list[Sequence[Operator]] = field(default_factory=list)
    """The Operators of the Blocks that are being written, the innermost last."""
    parts: dict[Variable, Part] = field(default_factory=dict)
    """Gradients of slices that are only added to a total: never made."""
    turned: dict[tuple[int, int], str] = field(default_factory=dict)
    """Of the matrices that loops keep transposed: the loop and the matrix -> the memory."""
    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)
    """How an Operator becomes C, by its name; "call" says what happens to those that no rule takes."""
    copies: list[Tensor] = field(default_factory=list)
    """Dense copies of what the Operator that is being written reads; they are given up after it."""
    alone: bool = False
    """Whether nothing runs the Operators again where C gives up: then C tells of an exception itself."""
    writing: bool = False
    """Whether a tensor is being written: a view of it must be a view."""
    target: Target = C
    """What is particular to the machine in what is computed."""
    write_nest: Callable[[Lowering, Nest], None] = write_nest
    """How a nest is said."""
    row: RowLoops = field(default_factory=RowLoops)
    """How rows are gone over."""
    failure: Callable[[Operator], str] = field(default=lambda op: BAIL)
    """How an Operator gives up, as C."""

    # -- operands ------------------------------------------------------------------------------------------------

    def value(self, operand: Operand) -> Value:
        """An operand in C. Errors raised: Unsupported for a value that C has no form for."""
        if isinstance(operand, Variable):
            found = self.values.get(operand)
            if found is None and operand in self.outer:
                made = make_input(self.w, operand, self.ops, self.symbols, self.layouts.get(operand))
                if made is not None:
                    self.inputs.append(made)
                    if self.w.early is not None:
                        self.w.early |= made.new
                        if isinstance(made.value, (Tensor, Number)):
                            self.w.early.add(f"b{made.value.n}" if isinstance(made.value, Tensor) else made.value.text)
                    found = self.values[operand] = made.value
            if found is None:
                raise Unsupported(f"%{operand.name}")
            return found
        if operand is None or operand is UNDEF:
            return Nothing()
        if type(operand) is bool:
            return Number("bool", str(int(operand)))
        if type(operand) is int and abs(operand) < LIMIT:
            return Number("int", f"((i64){operand}LL)", dim=operand)
        if type(operand) is float:
            return Number("float", double(operand))
        raise Unsupported(f"{operand!r}")

    def tensor(self, operand: Operand) -> Tensor:
        """An operand that must be a tensor, and exists."""
        found = self.value(operand)
        if not isinstance(found, Tensor):
            raise Unsupported("no tensor")
        if found.null:
            self.w.bail(f"!b{found.n}")
        return found

    def number(self, operand: Operand) -> Number:
        """An operand that must be a number, and exists."""
        found = self.value(operand)
        if not isinstance(found, Number):
            raise Unsupported("no number")
        if found.has != "1":
            self.w.bail(f"!{found.has}")
        return found

    def integer(self, operand: Operand) -> Number:
        """An operand that must be a whole number."""
        found = self.number(operand)
        if found.kind == "float":
            raise Unsupported("no int")
        return found

    def items(self, operand: Operand) -> Items:
        """An operand that must be a list, and exists."""
        found = self.value(operand)
        if not isinstance(found, Items):
            raise Unsupported("no list")
        if found.null:
            self.w.bail(f"!l{found.n}")
        return found

    def size(self, operand: Operand) -> Expr:
        """A whole number as a size: a constant, or a local that keeps its value."""
        if type(operand) is int:
            return operand
        found = self.integer(operand)
        return found.dim if found.dim is not None else found.text

    def sizes(self, operand: Operand) -> tuple[Expr, ...]:
        """A list of sizes."""
        if not isinstance(operand, (list, tuple)):
            raise Unsupported("sizes that are no list")
        return tuple(self.size(item) for item in operand)

    # -- memory --------------------------------------------------------------------------------------------------

    def blank(self, dtype: torch.dtype | None, dims: Sequence[Expr]) -> Tensor:
        """The locals of a tensor, without memory yet."""
        if dtype not in CTYPES:
            raise Unsupported(f"{dtype}")
        assert dtype is not None
        n = self.w.fresh()
        self.w.declare("buf *", f"b{n}")
        self.w.declare(f"{CTYPES[dtype]} *", f"p{n}")
        self.w.declare("i64", f"o{n}")
        return Tensor(n, dtype, tuple(dims), order=identity(len(dims)))

    def allocate(self, t: Tensor) -> Tensor:
        """Give it memory of its own: dense, its dimensions in its order."""
        width = torch.empty((), dtype=t.dtype).element_size()
        count = self.w.product(t.dims)
        bytes_ = count * width if isinstance(count, int) else f"{count} * {width}"
        self.w.line(f"if (!(b{t.n} = d2s_new(c, {bytes_}))) goto bail;")
        self.w.line(f"p{t.n} = ({t.ctype} *)b{t.n}->data; o{t.n} = ++objects;")
        return t

    def fresh(self, dtype: torch.dtype | None, dims: Sequence[Expr]) -> Tensor:
        """A new dense tensor, its content not written."""
        return self.allocate(self.blank(dtype, dims))

    def memory(self, t: Tensor) -> Tensor:
        """The same tensor, in memory."""
        if t.pending:
            self.flush()
        if t.reg:
            reg, t.reg = t.reg, ""
            self.allocate(t)
            self.w.line(f"*p{t.n} = {reg};")
        return t

    def strides(self, t: Tensor) -> tuple[Expr, ...]:
        """Its strides."""
        if t.strides is not None:
            return t.strides
        if t.straight:
            return self.w.dense(t.dims)
        inner = self.w.dense(tuple(t.dims[dim] for dim in t.order))
        found: list[Expr] = [0] * t.rank
        for place, dim in enumerate(t.order):
            found[dim] = inner[place]
        return tuple(found)

    def view(self, t: Tensor, dims: Sequence[Expr], strides: Sequence[Expr] | None, offset: Expr = 0,
             order: Sequence[int] | None = None, *, detached: bool = False) -> Tensor:  # fmt: skip
        """Another object with the same memory, ``offset`` elements further; ``detached``: PyTorch calls it no view."""
        self.memory(t)
        made = self.blank(t.dtype, dims)
        made.strides = None if strides is None else tuple(strides)
        made.order = identity(len(dims)) if order is None else tuple(order)
        shift = "" if offset == 0 else f" + {offset}"
        self.w.line(f"b{made.n} = b{t.n}; b{t.n}->rc++; p{made.n} = p{t.n}{shift}; "
                    f"o{made.n} = ++objects{'' if detached else ' | VIEW'};")  # fmt: skip
        return made

    def same(self, t: Tensor) -> Tensor:
        """The very same object by another Variable."""
        self.memory(t)
        made = self.blank(t.dtype, t.dims)
        made.strides, made.order, made.null = t.strides, t.order, t.null
        self.w.line(f"b{made.n} = b{t.n}; d2s_ref(b{t.n}); p{made.n} = p{t.n}; o{made.n} = o{t.n};")
        return made

    def dense(self, t: Tensor) -> Tensor:
        """The tensor in dense row-major memory: itself, or a copy that the caller gives up with ``release``."""
        self.memory(t)
        if t.strides is None and t.straight:
            return t
        made = self.fresh(t.dtype, t.dims)
        self.copy(made, t)
        return made

    def dense_operand(self, operand: Operand, *, may_copy: bool = True) -> Tensor:
        """A tensor in dense row-major memory: itself, or a copy that lasts as long as the Operator that reads it.

        ``may_copy``: whether no more than the Operator's own work is spent on it. Errors raised: Unsupported.
        """
        return self.copied(self.memory(self.tensor(operand)), may_copy)

    def copied(self, t: Tensor, may_copy: bool = True) -> Tensor:
        """The same of what is in memory."""
        if t.strides is None and t.straight:
            return t
        if not (may_copy and self.target.copies):
            raise Unsupported("a layout")
        self.flush()
        self.copies.append(self.dense(t))
        return self.copies[-1]

    def copy(self, to: Tensor, source: Tensor) -> None:
        """Write the elements of one tensor into the memory of another, of the same dtype and sizes."""
        self.flush()
        self.memory(source)
        if to.strides is None and source.strides is None and to.order == source.order:
            count = self.w.product(to.dims)
            self.w.line(f"d2s_copy(p{to.n}, p{source.n}, ({count}) * sizeof({to.ctype}));")
            return
        nest = Nest(to.dims, to.order)
        nest.store(self, to, nest.load(self, source))
        nest.write(self)

    def release(self, value: Value) -> None:
        """Give up a reference."""
        if isinstance(value, Tensor) and not value.reg and not value.pending and value.mine:
            if self.nest is not None and self.nest.reads(value):
                self.nest.releases.append(value)
            else:
                self.w.line(f"d2s_put(c, b{value.n}); b{value.n} = 0;")
        elif isinstance(value, Tensor) and value.pending:
            assert self.nest is not None
            if self.nest.holds(value):
                self.nest.forget(value)
            elif not value.reg and value.mine:
                self.nest.releases.append(value)
        elif isinstance(value, Items) and value.mine:
            self.w.line(f"l_put(c, l{value.n}); l{value.n} = 0;")

    def drop(self, variables: Iterable[Variable]) -> None:
        """Values that are dead give up their memory."""
        for var in dict.fromkeys(variables):
            value = self.values.get(var)
            if value is not None and var not in self.live.pinned:
                self.release(value)

    def flush(self) -> None:
        """Write the nest that is pending."""
        nest, self.nest = self.nest, None
        if nest is not None:
            nest.write(self)
            self.end()

    def end(self) -> None:
        """Note what may be let go here of what came from outside."""
        if self.w.indent > 1 or not self.leaving:
            return
        pending = [t for t in self.dead if self.nest is not None and self.nest.reads(t)]
        self.ends.append((len(self.w.lines), [t for t in self.dead if t not in pending]))
        self.dead = pending

    @contextmanager
    def loop(self, start: int, body: Block, rows: dict[Variable, Rows]) -> Iterator[None]:
        """Around the text of a loop, before which there were so many names."""
        self.loops.append(Loop(start, body, rows))
        yield
        for name in self.loops.pop().kept:
            self.w.line(f"d2s_put(c, {name}); {name} = 0;")

    def unchanging(self, t: Tensor) -> Loop | None:
        """The outermost loop in which a tensor that was there before is read; None if it changes in all."""
        for loop in self.loops:
            if not t.mine or t.n <= loop.start:
                return loop
        return None

    def packed(self, t: Tensor, turned: bool) -> str | None:
        """The local with the panels of a matrix that never changes, ``turned`` if it lies the other way round; None if
        it may change, is small, or sizes are not known."""
        var = next((one.var for one in self.inputs if one.value is t), None)
        if var not in self.frozen or var is None or not all(isinstance(size, int) and size >= 16 for size in t.dims):
            return None
        for one in self.inputs:
            if one.kind == "packed" and one.var is var and one.turned == turned:
                assert isinstance(one.value, Tensor)
                return f"k{one.value.n}"
        n = self.w.fresh()
        self.w.declare(f"const {t.ctype} *", f"k{n}")
        self.inputs.append(Input(var, "packed", Tensor(n, t.dtype, t.dims), t.dims, turned=turned))
        return f"k{n}"

    def is_unit(self, t: Tensor) -> bool:
        """Whether the elements of its innermost dimension lie side by side."""
        return bool(t.order) and (t.strides is None or t.strides[t.order[-1]] == 1)

    # -- results -------------------------------------------------------------------------------------------------

    def give(self, var: Variable, value: Value) -> None:
        """A Variable's value."""
        self.values[var] = value

    def let(self, var: Variable, kind: str, text: str) -> Number:
        """A new number."""
        ctype = NUMBERS.get(kind)
        if ctype is None:
            raise Unsupported(kind)
        name = self.w.local(ctype, "n")
        self.w.line(f"{name} = {text};")
        made = Number(kind, name)
        self.give(var, made)
        return made

    # -- the walk ------------------------------------------------------------------------------------------------

    def operators(self, ops: Sequence[Operator]) -> None:
        """Operators, one after another."""
        self.around.append(ops)
        for op in ops:
            self.operator(op)
        self.around.pop()

    def operator(self, op: Operator) -> None:
        """One Operator, and the end of what it was the last to read."""
        self.w.note(op.location)
        outer, self.w.failure = self.w.failure, self.failure(op)
        indent, copies = self.w.indent, len(self.copies)
        rule = self.rules.get(op.name) or FAMILIES.get(op.name.partition(".")[0])
        if id(op) in self.called or rule is None:
            rule = self.rules["call"]
        if rule is not self.rules["call"] and op.name not in OF_HALVES and _has_halves(op):
            if flow_of(op).kind not in (Kind.PLAIN, Kind.INLINE):
                pass  # its Blocks are asked one by one
            elif op.blocks or not op.name.startswith(("aten.", "scalar.")):
                raise Unsupported("floats of 16 bits")
            else:
                rule = self.rules["call"]
        try:
            rule(self, op)
            if id(op) not in self.called:
                self.in_c[id(op)] = op.name
        except Unsupported as reason:
            reason.op = reason.op or op
            if id(op) in self.called or op.blocks:
                raise
            self.w.close(indent)
            self.rules["call"](self, op)
        while len(self.copies) > copies:
            self.release(self.copies.pop())
        if not op.blocks:
            self.drop([*self.live.dying[id(op)], *self.live.unread[id(op)]])
        if not self.around and self.leaving:
            given = [self.values.get(var) for var in self.live.dying[id(op)] if var in self.leaving]
            self.dead += [value for value in given if isinstance(value, Tensor)]
            self.end()
        self.w.failure = outer

    def enter(self, block: Block) -> None:
        """What every Block starts with: its counter, and the end of values that only its siblings need."""
        counter = self.counted.get(id(block))
        if counter is not None:
            if counter not in self.hits:
                self.hits[counter] = self.w.local("i64", "k")
            self.w.line(f"{self.hits[counter]}++;")
        self.drop(self.live.at_entry.get(id(block), ()))

    # -- joins ---------------------------------------------------------------------------------------------------

    def slot(self, like: Value, type_: Any) -> Value:
        """Locals for a value that more than one path gives; like one of them, or as its type says."""
        if isinstance(like, Nothing):
            like = self.like(type_)
        if isinstance(like, Number):
            name = self.w.local(NUMBERS[like.kind], "n")
            return Number(like.kind, name, self.w.local("i64", "h"))
        if isinstance(like, Items):
            n = self.w.fresh()
            self.w.declare("lst *", f"l{n}")
            return Items(n, like.item)
        assert isinstance(like, Tensor)
        made = self.blank(like.dtype, [0] * like.rank)
        for dim in range(made.rank):
            self.w.declare("i64", f"d{made.n}_{dim}")
            self.w.declare("i64", f"s{made.n}_{dim}")
        made.dims = tuple(f"d{made.n}_{dim}" for dim in range(made.rank))
        return made

    def like(self, type_: Any) -> Value:
        """A value of a type, of which only the kind counts. Errors raised: Unsupported where the type says too little.
        """
        if isinstance(type_, TensorType) and type_.shape is not None and type_.dtype in CTYPES:
            assert type_.dtype is not None
            dims = tuple(dim if isinstance(dim, int) else UNKNOWN for dim in type_.shape)
            return Tensor(0, type_.dtype, dims, order=identity(len(dims)))
        if isinstance(type_, ScalarType) and type_.kind in NUMBERS:
            return Number(type_.kind, "0")
        if isinstance(type_, ArrayType):
            item = self.like(type_.element)
            if isinstance(item, (Tensor, Number)):
                if isinstance(item, Tensor):
                    item.null = True
                return Items(0, item)
        raise Unsupported(f"{type_}")

    def assign(self, slot: Value, value: Value, *, moved: bool = False) -> None:
        """``slot = value``; the slot gets a reference of its own, or the value's if it is ``moved``."""
        if isinstance(slot, Number):
            if isinstance(value, Nothing):
                self.w.line(f"{slot.has} = 0;")
            elif isinstance(value, Number) and value.kind == slot.kind:
                has = "" if slot.has == "1" else f" {slot.has} = {value.has};"
                self.w.line(f"{slot.text} = {value.text};{has}")
            else:
                raise Unsupported("a number of another kind")
            return
        if isinstance(slot, Items):
            if isinstance(value, Nothing):
                self.w.line(f"l{slot.n} = 0;")
            elif isinstance(value, Items) and alike(value, slot):
                self.w.line(f"l{slot.n} = l{value.n}; l_ref(l{slot.n});")
            else:
                raise Unsupported("another list")
            return
        assert isinstance(slot, Tensor)
        if isinstance(value, Nothing):
            self.w.line(f"b{slot.n} = 0; p{slot.n} = 0;")
            return
        if not isinstance(value, Tensor) or not alike(value, slot):
            raise Unsupported("another tensor")
        self.memory(value)
        strides = self.strides(value)
        parts = [f"b{slot.n} = b{value.n}; d2s_ref(b{slot.n}); p{slot.n} = p{value.n}; o{slot.n} = o{value.n};"]
        for dim in range(slot.rank):
            parts.append(f"d{slot.n}_{dim} = {value.dims[dim]}; s{slot.n}_{dim} = {strides[dim]};")
        self.w.line(" ".join(parts))

    def staged(self, value: Value, like: Value) -> Value:
        """A copy of a value's locals, which keeps the value when they change."""
        made = self.slot(like if isinstance(value, Nothing) else value, None)
        self.assign(made, value)
        return self.settle(made, [value])

    def settle(self, slot: Value, values: Sequence[Value], type_: Any = None) -> Value:
        """The slot once all paths are known: what they have in common is certain."""
        if isinstance(slot, Number):
            sure = all(isinstance(value, Number) and value.has == "1" for value in values)
            slot.has = "1" if sure else slot.has
        elif isinstance(slot, Items):
            slot.null = any(isinstance(value, Nothing) or value.null for value in values)  # type: ignore[union-attr]
        elif isinstance(slot, Tensor):
            tensors = [value for value in values if isinstance(value, Tensor)]
            slot.null = len(tensors) < len(values) or any(value.null for value in tensors)
            if not tensors:
                slot.null = True
                return slot
            first = tensors[0]
            common = all(value.order == first.order for value in tensors)
            if common and all(value.strides is None for value in tensors):
                slot.order = first.order
            else:
                unit = first.order[-1:] if common and all(self.is_unit(value) for value in tensors) else ()
                slot.strides = tuple(1 if (dim,) == unit else f"s{slot.n}_{dim}" for dim in range(slot.rank))
                slot.order = first.order if common else ()
            slot.dims = tuple(
                first.dims[dim] if isinstance(first.dims[dim], int) and all(v.dims[dim] == first.dims[dim] for v in
                tensors) else f"d{slot.n}_{dim}" for dim in range(slot.rank)
            )  # fmt: skip
        return slot


def _has_halves(op: Operator) -> bool:
    """Whether an Operator reads or gives floats of 16 bits."""
    types = [var.type for var in (*op.inputs, *op.outputs)]
    types += [type_.element for type_ in types if isinstance(type_, ArrayType)]
    return any(isinstance(type_, TensorType) and type_.dtype in HALVES for type_ in types)


def alike(a: Value, b: Value) -> bool:
    """Whether two values have one form in C."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.dtype == b.dtype and a.rank == b.rank
    if isinstance(a, Number):
        return isinstance(b, Number) and a.kind == b.kind
    if not (isinstance(a, Items) and isinstance(b, Items) and alike(a.item, b.item)):
        return False
    return not (isinstance(a.item, Tensor) and isinstance(b.item, Tensor)) or a.item.dims == b.item.dims


def double(value: float) -> str:
    """A float as C.

    >>> double(0.5), double(float("inf")), double(-0.0)
    ('0x1.0000000000000p-1', 'INFINITY', '(-0x0.0p+0)')
    """
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = value.hex()
    return f"({text})" if text.startswith("-") else text
