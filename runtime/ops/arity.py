"""Checks that the definitions of operators share: numbers of arguments, Blocks, yields and outputs, known attrs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from runtime.ir.block import Block
from runtime.ir.definition import Fail, definition_of
from runtime.ir.operator import Operator
from runtime.ir.types import TensorType
from runtime.ir.variable import Operand, Variable


def count(number: int, noun: str) -> str:
    """``1 output``, ``2 outputs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def check_args(op: Operator, fail: Fail, least: int, most: int | None) -> None:
    """The Operator has between ``least`` and ``most`` arguments (None: any number)."""
    got = len(op.args)
    if got < least or (most is not None and got > most):
        wanted = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
        fail("arity", f"{op.name} takes {wanted} arguments, not {got}")


def check_no_kwargs(op: Operator, fail: Fail) -> None:
    """The Operator has no keyword arguments."""
    if op.kwargs:
        fail("arity", f"{op.name} takes no keyword arguments")


def check_outputs(op: Operator, fail: Fail, outputs: int) -> None:
    """The Operator has exactly this many outputs."""
    if len(op.outputs) != outputs:
        fail("arity", f"{op.name} has {count(outputs, 'output')}, not {len(op.outputs)}")


def check_blocks(op: Operator, fail: Fail, names: Iterable[str]) -> None:
    """The Operator has exactly these Blocks."""
    names = tuple(names)
    if len(op.blocks) != len(names):
        what = count(len(names), "block") + (f" ({', '.join(names)})" if names else "")
        fail("blocks", f"{op.name} has {what}, not {len(op.blocks)}")


def check_block(op: Operator, fail: Fail, name: str, block: Block, args: int, yields: int | None = None) -> None:
    """A Block of the Operator has this many arguments and yields (None: as many as the Operator has outputs)."""
    if len(block.args) != args:
        fail("block-args", f"the {name} block of {op.name} has {count(len(block.args), 'argument')}, not {args}")
    wanted = len(op.outputs) if yields is None else yields
    if len(block.yields) != wanted:
        reason = "" if yields is not None else f", but {op.name} has {count(wanted, 'output')}"
        expected = f", not {wanted}" if yields is not None else reason
        fail("yields", f"the {name} block of {op.name} yields {count(len(block.yields), 'value')}{expected}")


_ON_ALL: Mapping[str, tuple[type, ...]] = {"caught": (str,)}


def check_attrs(op: Operator, fail: Fail, known: Mapping[str, tuple[type, ...]], required: Iterable[str] = ()) -> None:
    """The Operator's attrs are known, of the right type, and the required ones are there.

    Any may have ``caught``: the handlers of the user's around it, for what it raises.
    """
    known = {**known, **_ON_ALL}
    for key in required:
        if key not in op.attrs:
            fail("attrs", f"{op.name} needs the attribute {key!r}")
    for key, value in op.attrs.items():
        if key not in known:
            others = ", ".join(sorted(known.keys() - _ON_ALL.keys()))
            fail("attrs", f"{op.name} has no attribute {key!r} (it has: {others or 'none'})")
        if type(value) not in known[key]:
            wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in known[key])
            fail("attrs", f"the attribute {key!r} of {op.name} must be {wanted}, not {value!r}")


def check_backward(op: Operator, fail: Fail) -> None:
    """An Operator that is the gradient of another draws no random numbers: they would differ from the forward ones."""
    if not op.attrs.get("backward"):
        return
    for inner in _drawing(op):
        fail("backward-random", f"{inner.name} draws random numbers in the backward of a {op.name}")


def _drawing(op: Operator) -> Iterator[Operator]:
    """The random Operators in an Operator's Blocks. A loop with checkpoints draws the numbers of the forward half again
    and puts the generators back.
    """
    if "checkpoints" in op.attrs:
        return
    for inner in (inner for block in op.blocks for inner in block.ops):
        if definition_of(inner.name).random:
            yield inner
        yield from _drawing(inner)


def check_plain(op: Operator, fail: Fail, least: int, most: int | None, outputs: int) -> None:
    """An Operator without Blocks, with so many arguments and outputs."""
    check_args(op, fail, least, most)
    check_outputs(op, fail, outputs)
    check_blocks(op, fail, ())


def is_truth(flag: Operand) -> bool:
    """Whether a flag is a number, or a tensor that surely has one element."""
    if not isinstance(flag, Variable) or not isinstance(flag.type, TensorType):
        return True
    return flag.type.shape is not None and all(size == 1 for size in flag.type.shape)
