"""What a conversion puts into a module's ``__dict__``, and what becomes of it when the module is copied.

    copy.deepcopy     a converted module again, with a forward of its own
    copy.copy         the module as it was before: Python tells nobody whose the copied ``__dict__`` is
    pickle            the module as it was before
    a replica         (DataParallel) as it was before: it lives for one call

``forward`` is found in the module itself, where Python binds nothing: one that came along into another module would
run on the tensors of the first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

_FORWARD, _REPLICATE, _STATE = "forward", "_replicate_for_data_parallel", "__getstate__"


class ConvertedModule:
    """A module with a converted forward; ``before``: the forward that stood in the module itself, if one did."""

    def __init__(self, module: Any, forward: Any, before: Any = None) -> None:
        self.module = module
        self.forward = forward
        self.before = before

    def enter(self) -> None:
        """Put the conversion into the module."""
        self.module.__dict__.update(self._entries())

    def leave(self, module: Any) -> bool:
        """Take it out of the module, or of one that got its ``__dict__``; whether it was there."""
        space = module.__dict__
        if space.get(_FORWARD) is not self.forward:
            return False
        self._clear(space)
        return True

    def _entries(self) -> dict[str, Any]:
        return {
            _FORWARD: self.forward, _REPLICATE: _Hook(self, ConvertedModule.replicate),
            _STATE: _Hook(self, ConvertedModule.state),
        }  # fmt: skip

    def _clear(self, space: dict[str, Any]) -> None:
        for name in (_FORWARD, _REPLICATE, _STATE):
            space.pop(name, None)
        if self.before is not None:
            space[_FORWARD] = self.before

    def replicate(self) -> Any:
        """A replica, which runs its own forward on its own parameters."""
        replica = type(self.module)._replicate_for_data_parallel(self.module)
        self._clear(replica.__dict__)
        return replica

    def state(self) -> Any:
        """What copying and pickling see of the module: it, as it was before."""
        state = _own_state(self.module)
        if type(state) is not dict or state.get(_FORWARD) is not self.forward:
            return state
        plain = _State(state)
        plain.conversion = self
        self._clear(plain)
        return plain

    def __deepcopy__(self, memo: dict[int, Any]) -> ConvertedModule:
        twin = ConvertedModule(None, None)
        memo[id(self)] = twin
        twin.module = copy.deepcopy(self.module, memo)
        twin.before = copy.deepcopy(self.before, memo)
        twin.forward = copy.deepcopy(self.forward, memo)
        return twin


class _Hook:
    """A method of a conversion, in a module's ``__dict__``."""

    def __init__(self, conversion: ConvertedModule, method: Callable[[ConvertedModule], Any]) -> None:
        self._conversion = conversion
        self._method = method

    def __call__(self) -> Any:
        return self._method(self._conversion)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hook:
        return _Hook(copy.deepcopy(self._conversion, memo), self._method)


class _State(dict[str, Any]):
    """The ``__dict__`` of a module as it was before; a deep copy is converted again, a pickle is a plain dict."""

    conversion: ConvertedModule

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        result: dict[str, Any] = copy.deepcopy(dict(self), memo)
        result.update(copy.deepcopy(self.conversion, memo)._entries())
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (dict, (), None, None, iter(self.items()))


def _own_state(module: Any) -> Any:
    """What the module's class gives as its state."""
    own = getattr(type(module), _STATE, None)  # Python 3.10 has none for all objects
    return dict(module.__dict__) if own is None else own(module)


__all__ = ["ConvertedModule"]
