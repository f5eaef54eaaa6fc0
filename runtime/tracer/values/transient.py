"""Objects that exist while tracing only, and stand for no value of the Program."""

from __future__ import annotations

from abc import abstractmethod
from typing import NoReturn


class Transient:
    """What a function may ask while it is traced, but neither return nor store outside."""

    __slots__ = ()

    @abstractmethod
    def leave(self) -> NoReturn:
        """Refuse to be a result.

        Raises:
            TraceError: With the code of what it is.
        """


__all__ = ["Transient"]
