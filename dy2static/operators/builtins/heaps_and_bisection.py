"""``heapq`` and ``bisect`` over items that only the run can compare: Python's own Python versions of them, converted.

    heapq.heappush(beams, (score, i))       the score is a tensor's
    bisect.bisect(edges, x.item())

The C versions stay for anything else.
"""

from __future__ import annotations

import functools
import heapq
import importlib.util
import inspect
import operator
import sys
import threading
import types
from collections import deque
from typing import Any

from dy2static.operators.calls import boundary, functions, growing
from dy2static.operators.calls.call import call, traced
from dy2static.operators.shared.staging import Choice, Session, Staged, distribute
from dy2static.operators.values.sequence_operators import decides
from runtime.kinds import is_a

_lock = threading.Lock()


@functools.cache
def _in_python(name: str) -> types.ModuleType:
    """The standard library's module without the C functions that take the place of its own."""
    with _lock:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        accelerator = f"_{name}"
        before = sys.modules.get(accelerator)
        sys.modules[accelerator] = None  # type: ignore[assignment]  # importing it fails
        try:
            spec.loader.exec_module(module)
        finally:
            if before is None:
                del sys.modules[accelerator]
            else:
                sys.modules[accelerator] = before
    return module


def _handler(original: types.BuiltinFunctionType) -> tuple[Any, Any]:
    def handle(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args and is_a(args[0], Choice):
            return distribute(session, args[0], lambda option: call(original, option, *args[1:], **kwargs))
        if not args or not _compares(*args, *kwargs.values()):
            return NotImplemented
        if original.__module__ == "_heapq" and not is_a(args[0], list):
            return original(*args, **kwargs)  # raises
        module = _in_python(original.__module__.removeprefix("_"))
        return functions.call_function(session, getattr(module, original.__name__), args, kwargs)

    return original, handle


def _compares(items: Any, *given: Any) -> bool:
    """Whether only the run can compare some of the items, or the others given."""
    if growing.is_growing(items):
        return True
    return any(map(decides, (*(items if is_a(items, (list, tuple, deque)) else ()), *given)))


def _several(original: Any, reverse: bool) -> tuple[Any, Any]:
    """``nsmallest`` and ``nlargest``: the first ones in order."""

    def handle(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
        n, items = given["n"], given["iterable"]
        if is_a(n, Staged) or not _compares(items):
            return NotImplemented
        ordered = traced(session, sorted, (items,), {"key": given.get("key"), "reverse": reverse})
        return traced(session, operator.getitem, (ordered, slice(max(n, 0))), {})

    return original, handle


HANDLERS: list[tuple[Any, Any]] = [
    *map(_handler, boundary.COMPARING), _several(heapq.nsmallest, False), _several(heapq.nlargest, True),
]
