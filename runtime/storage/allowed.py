"""Which operators a loaded Program may hold: structural ones, listed ATen ones, and named libraries.

A file is data from somewhere else, and ``torch.ops`` holds operators that create files, swap storages or start
processes; so an operator runs only if it is on the list.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Collection

from runtime.errors import StorageError
from runtime.ir import Operator, Program, Variable
from runtime.ops.assertion import CAUSE, exception_class
from runtime.ops.host import Made, MadeTorch
from runtime.ops.registry import STRUCTURAL

UNSAVED = {
    "py_func": "calls a Python function, which an artefact cannot hold",
}
"""Structural operators that cannot be saved, with the reason."""


@functools.lru_cache(maxsize=1)
def allowed_operators() -> frozenset[str]:
    """The ATen operators of the list, by name.

    >>> "aten.add.Tensor" in allowed_operators(), "aten.from_file.default" in allowed_operators()
    (True, False)
    """
    text = importlib.resources.files("runtime.storage").joinpath("allowed_operators.txt").read_text("ascii")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def namespaces(program: Program) -> list[str]:
    """The libraries, other than PyTorch's own, whose operators a Program uses."""
    names = {op.name for op in program.block.walk()} - STRUCTURAL.keys()
    return sorted({name.partition(".")[0] for name in names} - {"aten"})


def require_no_code(program: Program) -> None:
    """Errors raised: StorageError for an operator that calls what no file has: a function, a generator from outside."""
    for op in program.block.walk():
        if op.name in UNSAVED:
            raise StorageError(
                f"the operator {op.name!r} {UNSAVED[op.name]}",
                hint="Leave that call out of the saved function, or write it with torch operations.",
                location=op.location,
                code="D2S503",
            )
        generator = op.kwargs.get("generator")
        if generator is not None and not isinstance(generator, (Variable, Made, MadeTorch)):
            kind = type(generator)
            raise StorageError(
                f"random numbers come from a {kind.__module__}.{kind.__qualname__} of the caller's, which an artefact "
                "cannot hold",
                hint="Draw from the generator that all share (torch.rand, random.random, np.random.rand), or pass the "
                "numbers in.",
                location=op.location,
                code="D2S503",
            )


def check_operators(program: Program, allow: Collection[str] = ()) -> None:
    """Errors raised: StorageError for an operator that may not be saved or loaded, at its place in the source."""
    known = allowed_operators()
    require_no_code(program)
    for op in program.block.walk():
        library = op.name.partition(".")[0]
        if op.name in STRUCTURAL:
            _check_exception(op)
        elif library == "aten" and op.name not in known:
            raise StorageError(
                f"the operator {op.name!r} is not among those that an artefact may hold",
                hint="Only computations on tensors are.",
                location=op.location,
                code="D2S515",
            )
        elif library != "aten" and library not in allow:
            raise StorageError(
                f"the operator {op.name!r} belongs to the library {library!r}",
                hint=f"If you trust it, import it and pass allow=[{library!r}].",
                location=op.location,
                code="D2S515",
            )


def _check_exception(op: Operator) -> None:
    if op.name not in ("assert", "raise"):
        return
    cause = op.kwargs.get(CAUSE)
    for name in (op.attrs.get("exception"), *(cause[:1] if isinstance(cause, (list, tuple)) else ())):
        if "." not in str(name) and not issubclass(exception_class(str(name)), Exception):
            text = f"{name} is no error that a saved Program may raise"
            raise StorageError(text, location=op.location, code="D2S515")
