"""Every operator a Program may hold, by name.

    definition("cond")  definition("aten.add.Tensor")  definition("scalar.add")

The structural operators are a closed set, listed here; any overload in ``torch.ops`` is defined by its schema.
"""

from __future__ import annotations

from runtime.errors import ProgramError
from runtime.ir.definition import OpDefinition
from runtime.ops import (
    array,
    assertion,
    aten,
    checkpoint,
    cond,
    custom_grad,
    grad,
    gradients,
    host,
    host_numpy,
    printing,
    py_func,
    recursion,
    reporting,
    scalar,
    scan,
    switch,
    update,
    while_loop,
)

STRUCTURAL: dict[str, OpDefinition] = {
    one.name: one
    for one in (
        cond.DEFINITION,
        while_loop.DEFINITION,
        scan.DEFINITION,
        switch.DEFINITION,
        update.DEFINITION,
        custom_grad.DEFINITION,
        *recursion.DEFINITIONS,
        gradients.DEFINITION,
        py_func.DEFINITION,
        py_func.UNCHANGED,
        printing.DEFINITION,
        *assertion.DEFINITIONS,
        *reporting.DEFINITIONS,
        *array.DEFINITIONS,
        *grad.DEFINITIONS,
        *checkpoint.DEFINITIONS,
        *host.DEFINITIONS,
        *host_numpy.DEFINITIONS,
        *scalar.DEFINITIONS,
    )
}
"""The operators that are not ATen's, by name."""


def definition(name: str) -> OpDefinition:
    """The definition of an operator. Errors raised: ProgramError if the name is unknown.

    >>> definition("cond").doc
    'Run the first block if the flag is true, else the second.'
    """
    found = STRUCTURAL.get(name)
    if found is not None:
        return found
    if "." not in name or name.startswith(("scalar.", "array.", "grad.", "checkpoint.", "frame.", host.FAMILY)):
        raise ProgramError(f"unknown operator {name!r}", hint=f"Known: {_similar(name)}.")
    return aten.define(name)


def _similar(name: str) -> str:
    family = name.partition(".")[0] + "."
    names = [one for one in STRUCTURAL if one.startswith(family)] if "." in name else []
    return ", ".join(names or [one for one in STRUCTURAL if "." not in one])
