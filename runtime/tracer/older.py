"""Containers that existed before a construct: a path that yields one yields that very object, not a copy.

The bodies of a construct are functions, so what they can reach from outside is in their closure cells, or was noted as
the caller's when it was read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from types import MappingProxyType, ModuleType
from typing import Any

import torch

from runtime.ir import Block, Operator, Variable
from runtime.tracer.scalars import Staged
from runtime.tracer.session import Scope, Session
from runtime.tracer.structure import Choice

_LIMIT = 4000
_LEAVES = (
    torch.Tensor, str, bytes, int, float, type, type(None), ModuleType, Session, Scope, Staged, Block, Operator,
    Variable,
)  # fmt: skip
"""What holds no container of the user's. Operators' functions close over the session: it is the whole trace."""


def older(
    session: Session, functions: Iterable[Callable[..., Any]], values: Iterable[Any] = (),
    objects: set[int] | None = None,
) -> frozenset[int]:  # fmt: skip
    """Identities of the lists, dicts and sets reachable from functions' closures and from some values.

    ``objects`` gets those of everything else, closure cells included. They are valid while the construct is traced:
    its entry values and the journal keep those objects alive.
    """
    found: set[int] = set()
    seen: set[int] = set()
    todo: deque[Any] = deque([*functions, *values, *(owner for owner, _ in session.externals.values())])
    while todo and len(seen) < _LIMIT:
        value = todo.popleft()  # what the construct itself can reach comes first
        if id(value) in seen or isinstance(value, _LEAVES):
            continue
        seen.add(id(value))
        if isinstance(value, (list, tuple, set, frozenset)):
            todo += value
        elif isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, Choice):
            todo += value.options
        elif callable(value) and getattr(value, "__closure__", None):
            for cell in value.__closure__:
                seen.add(id(cell))
                try:
                    todo.append(cell.cell_contents)
                except ValueError:
                    continue
        elif not isinstance(value, torch.nn.Module):
            namespace = getattr(value, "__dict__", None)  # some classes give that name another meaning
            if isinstance(namespace, (dict, MappingProxyType)):
                todo += namespace.values()
        if isinstance(value, (list, dict, set)):
            found.add(id(value))
    if objects is not None:
        objects |= seen
    return frozenset(found)
