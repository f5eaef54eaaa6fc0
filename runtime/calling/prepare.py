"""Making a Program ready to be called: passes, then gradients, then an executor.

    program -> passes (in place) -> order of reads -> Runner: derive when a gradient is asked for -> executor
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime.autodiff import Runner
from runtime.calling.executors import executor
from runtime.calling.takeover import AfterSomeCalls, gains_with_gradients
from runtime.executor.limits import Limits
from runtime.executor.reuse import USUAL, Memory
from runtime.ir import Program
from runtime.passes import BuildStrategy, PassManager, chosen, chosen_unwatched
from runtime.passes.manager import require_order


@dataclass(frozen=True)
class Options:
    """How a Program is made ready.

    backend: The executor's name. exceptions: The classes that its ``raise`` and ``assert`` Operators name, beside
    Python's own. views: Positions of results that are built elsewhere, and pass no gradient. eager_autograd: Whether
    it always runs under torch's autograd, operator by operator. strategy: Which passes it goes through, and where the
    executor writes results. functions: What its ``py_func`` Operators call, by name. limits: What a run may ask of the
    process; an executor that does not keep to them takes none. frozen: Whether nothing ever changes its parameters.
    """

    backend: str = "interpreter"
    exceptions: Mapping[str, type[BaseException]] = field(default_factory=dict)
    views: Collection[int] = ()
    eager_autograd: bool = False
    strategy: BuildStrategy = field(default_factory=BuildStrategy)
    functions: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits | None = None
    frozen: bool = False


def prepare(program: Program, options: Options) -> Runner:
    """Rewrite a Program in place by the passes, and make it runnable, with gradients.

    What a trace made may say too little or too much of sizes that paths give, so a Program is refused only if an
    Operator reads what is not there yet, or a Variable is assigned twice (``require_order``). The verifier is asked
    after the passes: a Program by hand holds more than is fetched until then. That takes less than a hundredth of a
    trace.

    Raises:
        ValueError: A backend that does not exist, or limits for one that does not keep to them.
        ProgramError: An Operator reads what is not there yet, a Variable is assigned twice, or a pass broke the Program
            (where passes are verified).
    """
    strategy = options.strategy
    given: dict[str, Any] = {"exceptions": dict(options.exceptions)}
    if options.functions:
        given["functions"] = dict(options.functions)
    memory = Memory(strategy.enable_inplace, strategy.fuse_elewise_add_act_ops, strategy.fuse_relu_depthwise_conv,
                    strategy.enable_addto, strategy.memory_optimize)  # fmt: skip
    if memory != USUAL:
        given["memory"] = memory
    chosen_executor = executor(options.backend)
    later = chosen_executor.successor
    packing = {"frozen": True} if options.frozen and chosen_executor.packs else {}
    compiled: Any = functools.partial(chosen_executor.compile, **given, **({} if later else packing))
    if options.limits is not None:
        if chosen_executor.limited is None:
            raise ValueError(f"backend {options.backend!r} keeps to no limits")
        compiled = functools.partial(chosen_executor.limited, limits=options.limits, **given)
    takeover = None if later is None else AfterSomeCalls(functools.partial(later, **given, **packing))
    PassManager(chosen(strategy)).run(program)
    require_order(program, always=True)
    one_by_one = chosen_executor.exact or (takeover is not None and not gains_with_gradients(program))
    return Runner(program, compiled, list(options.views), eager=options.eager_autograd, takeover=takeover,
                  unwatched=PassManager(chosen_unwatched(strategy)),
                  interpreted=one_by_one)  # fmt: skip


__all__ = ["Options", "prepare"]
