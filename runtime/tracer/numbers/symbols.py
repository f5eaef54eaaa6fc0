"""sympy, imported when something of it is first asked for: a process that traces nothing never does.

    if TYPE_CHECKING:
        import sympy
    else:
        from runtime.tracer.numbers.symbols import sympy
"""

from __future__ import annotations

import importlib
from typing import Any


class _Later:
    """Stands for a module."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)
        return found


sympy = _Later("sympy")

__all__ = ["sympy"]
