"""Programs: a main Block and the contract between it and its caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from runtime.ir.block import Block
from runtime.ir.location import Location
from runtime.ir.printer import print_program
from runtime.ir.variable import Variable


@dataclass
class Input:
    """An argument of the Program. ``name`` is how the user would write it: ``x``, ``batch['ids'][0]``."""

    var: Variable
    name: str


@dataclass
class Parameter:
    """A tensor the Program owns or closes over: ``name`` is its state-dict name where it has one."""

    var: Variable
    name: str
    kind: Literal["parameter", "buffer", "constant"]
    requires_grad: bool = False


@dataclass
class Assume:
    """A fact about sizes that held while tracing: ``expr`` is a Python expression over symbols (``"s0 > 4"``).

    ``symbols`` says where each symbol comes from: symbol -> (input name, dimension).
    """

    expr: str
    symbols: dict[str, tuple[str, int]]
    location: Location | None = None


@dataclass
class Write:
    """After the Program ran, the value of ``block.yields[index]`` is copied into the input or parameter ``target``."""

    target: Variable
    index: int


@dataclass
class Program:
    """A traced function.

    ``block.args`` are the inputs' Variables, then the parameters'. ``block.yields`` are the flat results:
    first those that ``output`` (a tree, see runtime.tree) refers to by position, then those that ``writes`` name.
    """

    name: str
    block: Block = field(default_factory=Block)
    inputs: list[Input] = field(default_factory=list)
    params: list[Parameter] = field(default_factory=list)
    output: Any = None
    writes: list[Write] = field(default_factory=list)
    assumes: list[Assume] = field(default_factory=list)

    def __str__(self) -> str:
        return print_program(self)
