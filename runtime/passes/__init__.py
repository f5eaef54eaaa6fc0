"""Passes: rewriting Programs before they are differentiated and run."""

from runtime.passes import common_subexpressions, constants, dead_code, fold_conv_bn, hoist, identities, scan
from runtime.passes.build_strategy import BuildStrategy
from runtime.passes.manager import Applied, Pass, PassManager, Report

DEFAULT = (identities.PASS, constants.PASS, common_subexpressions.PASS, dead_code.PASS, scan.PASS)
"""The passes that every Program goes through, in this order: what the first ones leave unread dead code
drops, and what loops carry for nobody before they may become scans."""

UNWATCHED = (hoist.PASS,)
"""The passes of Programs that no autograd watches: what runs without gradients, and the halves of derivatives."""


def chosen(strategy: BuildStrategy) -> tuple[Pass, ...]:
    """The passes that a strategy asks for, in their order.

    >>> [one.name for one in chosen(BuildStrategy(constants=False, scan=False, fold_conv_bn=True))]
    ['fold_conv_bn', 'identities', 'common_subexpressions', 'dead_code']
    """
    return tuple(one for one in (fold_conv_bn.PASS, *DEFAULT) if getattr(strategy, one.name))


def chosen_unwatched(strategy: BuildStrategy) -> tuple[Pass, ...]:
    """The passes that a strategy asks for where no autograd watches.

    >>> [one.name for one in chosen_unwatched(BuildStrategy())]
    ['hoist']
    """
    return tuple(one for one in UNWATCHED if getattr(strategy, one.name))


__all__ = [
    "DEFAULT", "UNWATCHED", "Applied", "BuildStrategy", "Pass", "PassManager", "Report", "chosen", "chosen_unwatched",
]  # fmt: skip
