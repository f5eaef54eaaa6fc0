"""One call of a region, seen from Python: whose memory is whose, Operators that C asks for, results."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import Operator, ScalarType, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.walk import map_operand
from runtime.native.stack import Stack, listed
from runtime.native.values import GONE, Items, Nothing, Number, Stacked, Tensor, Value
from runtime.ops import aten


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    if name.startswith("scalar."):
        found = definition_of(name).evaluate
        assert found is not None
        return found
    return aten.resolve(name)


def _words(address: int, count: int) -> ctypes.Array[ctypes.c_int64]:
    """Words of C's memory, which may be written."""
    return (ctypes.c_int64 * count).from_address(address)


def _float(word: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", word))[0]
    return value


SMALL = 1 << 16
"""Bytes from which on a stack has memory of its own; smaller ones of a call share theirs, which is kept while one of
them is."""
VIEW = 1 << 50
"""What is set in the number of an object that is a view."""


Reader = Callable[["Call", list[int]], Any]
"""What makes a value of the words that C wrote."""


class Unfit(Exception):
    """What an Operator gives has no form in C: the region gives up."""


class Call:
    """The tensors of one call: those that were given, and what is made for C or of what C has made."""

    __slots__ = (
        "_operators", "_out", "_read", "_shapes", "begin", "counters", "error", "found", "given", "hits", "made",
        "memory_of", "needed", "objects", "places", "room", "sources", "space",
    )  # fmt: skip

    def __init__(
        self, operators: Sequence[tuple[Operator, list[Variable]]], read: Reader | None, sources: list[Any],
        out: ctypes.Array[ctypes.c_int64], shapes: Sequence[tuple[tuple[int, ...], torch.dtype] | None] = (),
    ) -> None:  # fmt: skip
        self._operators = operators
        self._shapes = shapes
        self._read = read
        """What gives the values of all outputs; None if there are none."""
        self._out = out
        """The words that C writes its results to."""
        self.sources = sources
        self.error: BaseException | None = None
        self.found: tuple[Any, ...] | None = None if read else ()
        self.given: list[Any] = []
        """The arguments, as they were handed over."""
        self.places: Sequence[int] = ()
        """Where in ``given`` each tensor stands."""
        self.counters: Sequence[int] = ()
        self.hits: Sequence[int] = ()
        """How often the counted Blocks ran."""
        self.made: dict[int, torch.Tensor] = {}
        """Memory of C -> the tensor that stands for all of it."""
        self.memory_of: dict[int, torch.Tensor] = {}
        """The same for memory that C asked for: bytes, or an output."""
        self.objects: dict[int, torch.Tensor] = {}
        self.room: torch.Tensor | None = None
        """Memory for small stacks, its address and size."""
        self.begin = self.space = 0
        self.needed = 0
        """How many bytes of it all small stacks take."""

    def tensor(
        self, dtype: torch.dtype, rank: int, buf: int, src: int, offset: int, obj: int, data: int, size: int,
        dims: Sequence[int], dense: bool = False,
    ) -> torch.Tensor:  # fmt: skip
        """The tensor that some words tell of. ``dims``: sizes, then strides; ``dense``: those of dense memory."""
        if src >= 0 and obj == src + 1:
            found: torch.Tensor = self._source(src)
            return found
        known = self.objects.get(obj)
        if known is not None:
            return known
        sizes, strides = dims[:rank], dims[rank:]
        width = dtype.itemsize
        if src >= 0:
            base = self._source(src)
            made = _sharing(base, sizes, strides, int(base.storage_offset()) + offset // width, bool(obj & VIEW))
        elif buf in self.memory_of and obj & VIEW and self.memory_of[buf].dtype is dtype:
            made = self.memory_of[buf].as_strided(sizes, strides, offset // width)
        elif buf in self.memory_of:
            base = torch.empty(0, dtype=dtype)
            base.set_(self.memory_of[buf].untyped_storage(), offset // width, sizes, strides)
            made = base.as_strided(sizes, strides) if obj & VIEW else base
        else:
            whole = self.made.get(buf)
            if whole is None and not obj & VIEW and offset == 0 and _product(sizes) * width == size:
                made = torch.empty(sizes, dtype=dtype) if dense or _is_dense(sizes, strides) else (
                    torch.empty_strided(sizes, strides, dtype=dtype))  # fmt: skip
                self.made[buf] = made
                if size:
                    ctypes.memmove(made.data_ptr(), data, size)
            else:
                if whole is None:
                    whole = self.made[buf] = torch.empty(size // width, dtype=dtype)
                    if size:
                        ctypes.memmove(whole.data_ptr(), data, size)
                made = _sharing(whole, sizes, strides, offset // width, bool(obj & VIEW))
        self.objects[obj] = made
        return made

    def _source(self, number: int) -> torch.Tensor:
        found: Any = self.sources[number]
        whole: torch.Tensor = found.rows if isinstance(found, Stack) else found
        return whole

    def take(self, size: int) -> tuple[int, int]:
        """The address and size of memory for small stacks."""
        self.room = torch.empty(size, dtype=torch.uint8)
        self.begin = self.room.data_ptr()
        self.space = size
        return self.begin, size

    def stack(self, dtype: torch.dtype, shape: Sequence[int], data: int, size: int) -> Stack | None:
        """The stack in the room for small ones, if that is where it lies. All that are small are counted."""
        if size >= SMALL:
            return None
        self.needed += _aligned(size)
        start = data - self.begin
        return Stack(self.room, shape, dtype, start) if self.room is not None and 0 <= start < self.space else None

    def is_new(self, buf: int, obj: int) -> bool:
        """Whether neither an object nor its memory was made a tensor yet."""
        return obj not in self.objects and buf not in self.made

    def is_c_own(self, buf: int, obj: int) -> bool:
        """Whether this is C's own memory, of which no tensor was made yet."""
        return obj not in self.objects and buf not in self.made and buf not in self.memory_of

    def own(self, buf: int) -> torch.Tensor | None:
        """The tensor, of bytes or an output, whose memory C asked for."""
        return self.memory_of.get(buf)

    def note(self, buf: int, obj: int, whole: torch.Tensor, made: torch.Tensor) -> None:
        """An object is a tensor from now on, and another one, or itself, the copy of its memory."""
        self.made[buf] = whole
        self.objects[obj] = made

    def memory(self, address: int) -> None:
        """Memory of so many bytes for C; its address is written over their number."""
        words = _words(address, 2)
        made = torch.empty(words[0], dtype=torch.uint8)
        self.memory_of[words[1]] = made
        words[0] = made.data_ptr()

    def result(self, address: int) -> None:
        """Memory of an output for C; its address is written over the output's number."""
        words = _words(address, 2)
        shape = self._shapes[words[0]]
        assert shape is not None
        made = torch.empty(shape[0], dtype=shape[1])
        self.memory_of[words[1]] = made
        words[0] = made.data_ptr()

    def let_go(self, source: int) -> None:
        """C was the last to read an argument."""
        self.sources[source] = self.given[self.places[source]] = None

    def forget(self, address: int) -> None:
        """C is done with some memory."""
        del self.memory_of[_words(address, 1)[0]]

    def operator(self, number: int, address: int) -> None:
        """Run an Operator for C. Errors raised: what it raises, Unfit."""
        op, variables = self._operators[number]
        at = address
        values: dict[Variable, Any] = {}
        for var in variables:
            if isinstance(var.type, TensorType):
                rank = len(var.type.shape or ())
                src, offset, obj, data, size, *dims = _words(at, 5 + 2 * rank)
                assert var.type.dtype is not None
                if src >= 0:
                    values[var] = self.tensor(var.type.dtype, rank, 0, src, offset, obj, data, size, dims)
                else:
                    values[var] = _copied(var.type.dtype, dims[:rank], dims[rank:], data, size, offset)
                at += 8 * (5 + 2 * rank)
            else:
                (word,) = _words(at, 1)
                values[var] = _number(var.type.kind, word) if isinstance(var.type, ScalarType) else None
                at += 8
        args = [map_operand(arg, lambda var: values[var]) for arg in op.args]
        kwargs = {key: map_operand(arg, lambda var: values[var]) for key, arg in op.kwargs.items()}
        with torch.no_grad():
            results = _function(op.name)(*args, **kwargs)
        if len(op.outputs) == 1 and not isinstance(results, (list, tuple)):
            results = (results,)
        if len(results) != len(op.outputs):
            raise Unfit
        at = address
        for out, result in zip(op.outputs, results):
            at = self._back(out, result, at)

    def _back(self, out: Variable, result: Any, at: int) -> int:
        """Write an Operator's result as words. Errors raised: Unfit."""
        type_ = out.type
        if isinstance(type_, TensorType):
            rank = len(type_.shape or ())
            if not isinstance(result, torch.Tensor) or result.dtype != type_.dtype or result.dim() != rank or (
                    not result.is_contiguous()):  # fmt: skip
                raise Unfit
            words = _words(at, 2 + rank)
            words[:] = [len(self.sources), result.data_ptr(), *result.shape]
            self.sources.append(result)
            return at + 8 * (2 + rank)
        assert isinstance(type_, ScalarType)
        if type(result).__name__ != type_.kind:
            raise Unfit
        word = struct.unpack("<q", struct.pack("<d", result))[0] if type_.kind == "float" else int(result)
        if not -(1 << 63) <= word < 1 << 63:
            raise Unfit
        _words(at, 1)[0] = word
        return at + 8

    def results(self) -> None:
        """The values of the region's outputs."""
        words = self._out[:]
        if self._read is not None:
            self.found = self._read(self, words)
        if self.counters:
            self.hits = words[-len(self.counters) :]


def _is_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    total = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if size != 1 and stride != total:
            return False
        total *= size
    return True


def _sharing(
    base: torch.Tensor, sizes: Sequence[int], strides: Sequence[int], offset: int, view: bool
) -> torch.Tensor:
    """Another tensor with the same memory; what is detached is no view."""
    if view:
        return base.as_strided(sizes, strides, offset)
    made = torch.empty(0, dtype=base.dtype)
    return made.set_(base.untyped_storage(), offset, sizes, strides)


def _copied(
    dtype: torch.dtype, sizes: Sequence[int], strides: Sequence[int], data: int, size: int, offset: int
) -> torch.Tensor:
    """A tensor with a copy of C's memory, which may be used again before the tensor is gone."""
    whole = torch.empty(size // dtype.itemsize, dtype=dtype)
    if size:
        ctypes.memmove(whole.data_ptr(), data, size)
    if offset == 0 and _is_dense(sizes, strides) and len(sizes) and whole.numel() == _product(sizes):
        return whole.view(sizes)
    return whole.as_strided(sizes, strides, offset // dtype.itemsize)


def _aligned(size: int) -> int:
    return (size + 63) // 64 * 64


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def readers(outputs: Sequence[Value | Stacked]) -> list[Reader]:
    """What reads each output from the words that C writes, one output's after another's."""
    found: list[Reader] = []
    at = 0
    for output in outputs:
        if isinstance(output, Stacked):
            found.append(_stack_reader(output, at))
        else:
            found.append(_reader(output, at))
        at += words_of(output)
    return found


def words_of(output: Value | Stacked) -> int:
    """How many words C writes for an output."""
    if isinstance(output, Stacked):
        return words_of(output.rows) + words_of(output.items)
    if isinstance(output, Tensor):
        return 6 + 2 * output.rank
    return {Number: 2, Items: 2, Nothing: 0}[type(output)]


def _reader(value: Value, at: int) -> Reader:
    """What reads a value from the words that C wrote, of which its own begin at ``at``."""
    if isinstance(value, Number):
        kind = value.kind
        return lambda call, words: _number(kind, words[at + 1]) if words[at] else None
    if isinstance(value, Items):
        return _list_reader(value, at)
    if isinstance(value, Tensor):
        return _tensor_reader(value, at)
    return lambda call, words: None


def _tensor_reader(value: Tensor, at: int) -> Reader:
    dtype, rank, dense = value.dtype, value.rank, value.strides is None and value.straight

    def read(call: Call, words: list[int]) -> torch.Tensor | None:
        buf, src, offset, obj, data, size = words[at : at + 6]
        if not buf:
            return None
        return call.tensor(dtype, rank, buf, src, offset, obj, data, size, words[at + 6 : at + 6 + 2 * rank], dense)

    sizes = [size for size in value.dims if isinstance(size, int)]
    if not dense or len(sizes) < rank:
        return read
    shape, bytes_, empty, copy = tuple(sizes), _product(sizes) * dtype.itemsize, torch.empty, ctypes.memmove

    def read_whole(call: Call, words: list[int]) -> torch.Tensor | None:
        """The same, quicker for memory of C's that is this tensor and nothing else."""
        buf, src, offset, obj, data, size = words[at : at + 6]
        if src >= 0 or size != bytes_ or not buf or not bytes_ or not call.is_new(buf, obj):
            return read(call, words)
        if obj & VIEW:
            if offset or not call.is_c_own(buf, obj):
                return read(call, words)
            base = empty(shape, dtype=dtype)
            copy(base.data_ptr(), data, bytes_)
            call.note(buf, obj, base, made := base.view(shape))
            return made
        own = call.own(buf)
        if own is not None:
            if own.dtype is not dtype or own.shape != shape:
                return read(call, words)
            call.note(buf, obj, own, own)
            return own
        made = empty(shape, dtype=dtype)
        copy(made.data_ptr(), data, bytes_)
        call.note(buf, obj, made, made)
        return made

    return read_whole


def _stack_reader(value: Stacked, at: int) -> Reader:
    dtype, rank = value.rows.dtype, value.rows.rank
    rows = _tensor_reader(value.rows, at)
    items = _list_reader(value.items, at + 6 + 2 * rank)
    hooked = torch_internals.saved_tensor_hooks_active

    def read(call: Call, words: list[int]) -> Any:
        if hooked():
            whole = rows(call, words)
            return items(call, words) if whole is None else listed(Stack(whole))
        buf, src, _, _, data, size = words[at : at + 6]
        if buf and src < 0 < size:
            shape = words[at + 6 : at + 6 + rank]
            found = call.stack(dtype, shape, data, size)
            if found is not None:
                return found
            own = call.own(buf)
            if own is not None:
                return Stack(own, shape, dtype)
            stack = Stack(torch.empty(size, dtype=torch.uint8), shape, dtype)
            ctypes.memmove(stack.address, data, size)
            return stack
        whole = rows(call, words)
        return items(call, words) if whole is None else Stack(whole)

    return read


def _list_reader(value: Items, at: int) -> Reader:
    item, width = value.item, value.width

    def read(call: Call, words: list[int]) -> list[Any] | None:
        length, items = words[at], words[at + 1]
        if length < 0:
            return None
        if isinstance(item, Number):
            found = (ctypes.c_int64 * length).from_address(items)[:]
            if GONE in found:
                return [None if word == GONE else _number(item.kind, word) for word in found]
            if item.kind == "float":
                return (ctypes.c_double * length).from_address(items)[:]
            return list(map(bool, found)) if item.kind == "bool" else found
        tensors: list[Any] = []
        inner = _words(items, length * width)[:]
        for start in range(0, length * width, width):
            buf, data, obj, *dims = inner[start : start + width]
            if not buf:
                tensors.append(None)
                continue
            _, size, src, _, base = _words(buf, 5)
            tensors.append(call.tensor(item.dtype, item.rank, buf, src, data - base, obj, base, size, dims))
        return tensors

    return read


def _number(kind: str, word: int) -> Any:
    return _float(word) if kind == "float" else bool(word) if kind == "bool" else word
