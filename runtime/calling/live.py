"""A traced Program as this process calls it: parameters and numbers are read where they are now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.calling.callee import Callee
from runtime.calling.prepare import Options, prepare
from runtime.tracer.boundary.tracing import Traced
from runtime.tracer.memory import outside_graphs
from runtime.tracer.values.arguments import Arguments
from runtime.tracer.values.open_generators import Exchange


class LiveCallee:
    """What a trace left, made ready; it does not ask whether a call fits."""

    def __init__(self, traced: Traced, options: Options) -> None:
        runner = prepare(traced.program, options)
        self.traced = traced
        self.callee = Callee(
            traced.program, runner, traced.classes, traced.views, traced.same, traced.effects, traced.kept
        )
        self.runner = runner
        self.uses_first = True
        """Whether a run uses what caches hold before it does anything else, as nobody repeats one that raises."""
        self._exchange = Exchange(traced.generators) if traced.generators else None

    @property
    def only_results(self) -> bool:
        """Whether all that follows a run on a call's arguments are writes, and a result made of what it yields."""
        traced = self.traced
        return self.callee.only_results and not (
            traced.bases or traced.facts or traced.uses or traced.generators or traced.gradients)

    def call(self, arguments: Arguments, params: Sequence[Any] | None = None) -> Any:
        """Run the Program on a call's arguments. ``params``: the live tensors, where the caller has them already."""
        traced = self.traced
        if not traced.uses:
            return self._run(arguments, params)
        if self.uses_first:
            self.use()
            return self._run(arguments, params)
        result = self._run(arguments, params)
        self.use()
        return result

    def use(self) -> None:
        """Use what caches hold, as the calls of cached functions in a run do."""
        for use in self.traced.uses:
            use()

    def _run(self, arguments: Arguments, params: Sequence[Any] | None) -> Any:
        traced = self.traced
        params = traced.parameters() if params is None else params
        inputs = traced.inputs(arguments)
        if traced.gradients:
            outside_graphs.require_apart(traced.gradients, dict(zip(traced.program.block.args, [*inputs, *params])))
        if self._exchange is None:
            return self.callee.call(arguments, inputs, params)
        with self._exchange.of(list(arguments.opened.values())):
            return self.callee.call(arguments, inputs, params)


__all__ = ["LiveCallee"]
