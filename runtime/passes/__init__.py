"""Passes: rewriting Programs before they are differentiated and run."""

from runtime.passes import common_subexpressions, constants, dead_code, fold_conv_bn, identities, scan
from runtime.passes.build_strategy import BuildStrategy
from runtime.passes.manager import Applied, Pass, PassManager, Report

DEFAULT = (identities.PASS, constants.PASS, common_subexpressions.PASS, dead_code.PASS, scan.PASS)
"""The passes that every Program goes through, in this order: what the first ones leave unread dead code
drops, and what loops carry for nobody before they may become scans."""



def chosen(strategy: BuildStrategy) -> tuple[Pass, ...]:
    """The passes that a strategy asks for, in their order.

    >>> [one.name for one in chosen(BuildStrategy(constants=False, scan=False, fold_conv_bn=True))]
    ['fold_conv_bn', 'identities', 'common_subexpressions', 'dead_code']
    """
    return tuple(one for one in (fold_conv_bn.PASS, *DEFAULT) if getattr(strategy, one.name))


__all__ = ["DEFAULT", "Applied", "BuildStrategy", "Pass", "PassManager", "Report", "chosen"]
