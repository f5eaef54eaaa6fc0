"""Transforms of ``torch.func`` inside a trace: PyTorch runs them, on stand-ins, and what arrives below is recorded.

    torch.vmap(f)(x)              f runs once, on a row of all; the Program has the operators for all rows
    torch.func.jacrev(f)(x)       the formulas of the derivative are operators of the Program, too

What they are given runs as it is, like any function that is not converted: what it may read is guarded, what it changes
is found, and it may not decide on tensors (PyTorch's own ``vmap`` refuses that as well).
"""

from __future__ import annotations

import functools
import inspect
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from dy2static.operators.calls import boundary
from dy2static.operators.provenance.names_read import note_reads
from dy2static.operators.provenance.provenance import CONTAINERS, adopt, global_names, note_modules
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a
from runtime.torch_internals import batches
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.recording import users_tensors

REASON = "torch.func runs it"

_PUBLIC = frozenset({"vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian"})
_FILES = ("apis.py", "eager_transforms.py", "vmap.py")
_MOST = 256
"""Objects that are looked at for what a transform may run."""


def is_transform(f: Any) -> bool:
    """Whether ``f`` is a transform of ``torch.func``, or a function that one made."""
    code = unasked(f, "__code__")
    if not is_a(f, types.FunctionType) or not code.co_filename.startswith(batches.TRANSFORMS):
        return False
    if not code.co_filename.endswith(_FILES):
        return False
    return bool(code.co_flags & inspect.CO_NESTED) or code.co_name in _PUBLIC


def note_what_runs(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Guard what the functions and modules read that a transform runs; the objects that these may change.

    Raises:
        TraceError: D2S254, one of them holds a list whose length only the run knows; D2S213, there are tensors of a
            user's class.
    """
    users_tensors.require_no_transform(session)
    given = (*args, *kwargs.values())
    held: list[Any] = []
    for one in _reached((f, *given)):
        if is_a(one, torch.nn.Module):
            note_modules(session, one)
            held.append(one)
            forward = type(one).forward
            if is_a(forward, types.FunctionType) and not home_of(forward.__code__.co_filename):
                note_reads(session, forward, (one, *given))
        elif is_a(one, types.FunctionType):
            boundary.require(session, one, args, kwargs)
            note_reads(session, one, given)
            mine = [*contents.cells_of(one), *(one.__globals__.get(name) for name in global_names(one.__code__))]
            for value in mine:
                if is_a(value, CONTAINERS) and value is not one.__globals__:
                    adopt(session, value)
            held += mine
    return held


def require_no_assert(session: Session, f: Any, error: RuntimeError) -> None:
    """Refuse what PyTorch's transforms assume of tensors with data: that a tangent lies in memory as its primal does.

    Raises:
        TraceError: D2S271.
    """
    if "INTERNAL ASSERT FAILED" in str(error):
        raise session.error(
            f"{f.__name__}() asks how tensors lie in memory, which only a run knows", code="D2S271",
            hint="Give it a tensor of its own memory (x[0].clone()), or apply it to the converted function.") from error


def _reached(values: tuple[Any, ...]) -> Iterator[Any]:
    """The modules and the users' functions that may run: of closures, methods, partial functions, sequences."""
    todo, seen = deque(values), set[int]()
    while todo and len(seen) < _MOST:
        one = todo.popleft()
        if id(one) in seen or is_a(one, torch.Tensor):
            continue
        seen.add(id(one))
        if is_a(one, types.MethodType):
            todo += (one.__self__, one.__func__)
        elif is_a(one, functools.partial):
            todo += (one.func, *one.args, *one.keywords.values())
        elif is_a(one, types.FunctionType):
            todo += contents.cells_of(one)
            if not home_of(one.__code__.co_filename):
                yield one
                todo += [one.__globals__.get(name) for name in global_names(one.__code__)]
        elif is_a(one, torch.nn.Module):
            yield one
        elif type(one) in (list, tuple):
            todo += one
        elif type(one) is dict:
            todo += one.values()


__all__ = ["REASON", "is_transform", "note_what_runs", "require_no_assert"]
