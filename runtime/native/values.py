"""What the generator knows of a value in C: the locals that hold it, and what is certain before it runs.

    %h : f32[4, n]      ->      buf *b7; float *p7; i64 o7;      dims (4, "d7_1"), contiguous
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from runtime.ir import Operator

Expr = int | str
"""A whole number that C computes: a constant, or an expression without side effects."""

CTYPES: dict[torch.dtype, str] = {
    torch.float32: "float", torch.float64: "double", torch.int64: "int64_t", torch.int32: "int32_t",
    torch.int16: "int16_t", torch.int8: "int8_t", torch.uint8: "uint8_t", torch.bool: "uint8_t",
    torch.bfloat16: "uint16_t", torch.float16: "uint16_t",
}  # fmt: skip
"""The dtypes that C computes with."""

HALVES = {torch.bfloat16: "bf", torch.float16: "hf"}
"""Floats of 16 bits: C moves their bits, and computes with them as floats of 32."""

NUMBERS = {"int": "i64", "float": "double", "bool": "i64"}
"""The kinds of Python numbers that C computes with; an int that does not fit ends the attempt."""


UNKNOWN = -1
"""A size of a list's items that no type tells."""


GONE = 0x7FF4D25D5E1F0001
"""The word of a list of numbers that stands for None, or no value: as a float a NaN that no operation gives. An int
that is this very number ends the attempt."""


class Unsupported(Exception):
    """C cannot do this: the Operator ``op`` runs in Python."""

    op: Operator | None = None


@dataclass(eq=False)
class Tensor:
    """A tensor: its memory ``b``, its first element ``p``, which object it is ``o``; or a number ``reg`` of rank 0.

    strides: None where it is dense in row-major order. order: its dimensions from the outermost in memory inwards.
    null: it may be None. mine: the region counts references to it. pending: it stands in a nest that is not written.
    origin: the tensor of which it is the transposed whole. half: of a float32 tensor that is nowhere, the tensor of 16
    bits whose elements it has.
    """

    n: int
    dtype: torch.dtype
    dims: tuple[Expr, ...]
    strides: tuple[Expr, ...] | None = None
    order: tuple[int, ...] = ()
    null: bool = False
    mine: bool = True
    reg: str = ""
    pending: bool = False
    origin: Tensor | None = None
    half: Tensor | None = None

    @property
    def ctype(self) -> str:
        """The C type of an element."""
        return CTYPES[self.dtype]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def straight(self) -> bool:
        """Whether its dimensions lie in memory in their own order."""
        return self.order == tuple(range(self.rank))


@dataclass(eq=False)
class Number:
    """A Python number: an expression, and whether it exists (``has``: "1", or a local)."""

    kind: str
    text: str
    has: str = "1"
    dim: Expr | None = None
    """For an int that is a size: the size."""


@dataclass(eq=False)
class Items:
    """A list: ``l``; of items like ``item`` (for tensors: their dtype and rank), ``width`` words each."""

    n: int
    item: Tensor | Number
    null: bool = False
    mine: bool = True

    @property
    def width(self) -> int:
        """Words of an item: memory, first element, object, sizes, strides; or one number."""
        return 3 + 2 * self.item.rank if isinstance(self.item, Tensor) else 1


@dataclass(frozen=True)
class Nothing:
    """None, or no value."""


@dataclass(eq=False)
class Stacked:
    """A list that leaves C as the rows of one tensor, where its items have one size."""

    items: Items
    rows: Tensor


Value = Tensor | Number | Items | Nothing


@dataclass
class Assumed:
    """What a loop takes for granted of a value it carries, until an iteration proves it wrong."""

    contiguous: bool = True
    null: bool = False
    order: tuple[int, ...] | None = None
    fixed: dict[int, bool] = field(default_factory=dict)
    has: bool = True


def identity(rank: int) -> tuple[int, ...]:
    """The order of dimensions of a row-major tensor.

    >>> identity(3)
    (0, 1, 2)
    """
    return tuple(range(rank))
