"""A Program of which regions run as a machine has them; where operators are watched, the interpreter runs it all."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.executor.executable import Executable


class WatchedExecutable(Executable):
    """A base class: who derives from it says what writes the code (``_emitter``)."""

    label = "dy2static"
    """What a profiler sees of a run."""

    @functools.cached_property
    def interpreter(self) -> Executable:
        """The same Program on the reference executor; it counts what Blocks run in the same places."""
        made = Executable(self.program, self._functions, self._exceptions, False, self._consuming,
                          self._memory)  # fmt: skip
        made._hits, made._counted = self._hits, self._counted
        made._variants.clear()
        return made

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """The flat results of the Program, in the order of its main Block's yields; values that do not exist are None.
        """
        if self._may_set_device_aside():
            with torch_internals.without_default_device():
                return self.run(inputs, params)
        if torch_internals.nothing_watches():
            if torch_internals.is_profiled():
                with torch.profiler.record_function(f"{self.label}: {self.program.name}"):
                    return super().run(inputs, params)
            return super().run(inputs, params)
        return self.interpreter.run(self._plain(inputs), params)

    def _plain(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Arguments as the interpreter takes them."""
        return inputs

    def _generate(self, grad: bool, ordinary: bool) -> Any:
        return super()._generate(grad, False)  # what is between regions reads and gives what types say


__all__ = ["WatchedExecutable"]
