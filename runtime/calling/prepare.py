"""Making a Program ready to be called: passes, then gradients, then an executor.

    program -> passes (in place) -> Runner: derive when a gradient is asked for -> executor of a backend
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from runtime.autodiff import Runner
from runtime.calling.executors import SUCCESSORS, executor
from runtime.calling.takeover import AfterSomeCalls
from runtime.ir import Program
from runtime.passes import DEFAULT, PassManager


@dataclass(frozen=True)
class Options:
    """How a Program is made ready.

    backend: The executor's name. exceptions: The classes that its ``raise`` and ``assert`` Operators name, beside
    Python's own. views: Positions of results that are built elsewhere, and pass no gradient. eager_autograd: Whether
    it always runs under torch's autograd, operator by operator.
    """

    backend: str = "interpreter"
    exceptions: Mapping[str, type[BaseException]] = field(default_factory=dict)
    views: Collection[int] = ()
    eager_autograd: bool = False


def prepare(program: Program, options: Options) -> Runner:
    """Rewrite a Program in place by the passes, and make it runnable, with gradients.

    Raises:
        ValueError: A backend that does not exist.
        ProgramError: A pass broke the Program (where passes are verified).
    """
    exceptions = dict(options.exceptions)
    compiled = functools.partial(executor(options.backend), exceptions=exceptions)
    later = SUCCESSORS.get(options.backend)
    takeover = None if later is None else AfterSomeCalls(functools.partial(later, exceptions=exceptions))
    PassManager(DEFAULT).run(program)
    return Runner(program, compiled, list(options.views), eager=options.eager_autograd, takeover=takeover)


__all__ = ["Options", "prepare"]
