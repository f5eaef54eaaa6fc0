"""Passes: rewriting Programs before they are differentiated and run."""

from runtime.passes import common_subexpressions, constants, dead_code, fold_conv_bn, hoist, identities, scan
from runtime.passes.build_strategy import BuildStrategy
from runtime.passes.manager import Applied, Pass, PassManager, Report
from runtime.passes.registered import Registered, Rewrite, with_registered
from runtime.passes.registered import register_pass as _register_pass

DEFAULT = (identities.PASS, constants.PASS, common_subexpressions.PASS, dead_code.PASS, scan.PASS)
"""The passes that every Program goes through, in this order: what the first ones leave unread dead code
drops, and what loops carry for nobody before they may become scans."""

UNWATCHED = (hoist.PASS,)
"""The passes of Programs that no autograd watches: what runs without gradients, and the halves of derivatives."""


def chosen(strategy: BuildStrategy) -> tuple[Pass, ...]:
    """The passes that a strategy asks for, in their order, and those that were registered.

    >>> [one.name for one in chosen(BuildStrategy(constants=False, scan=False, fold_conv_bn=True))]
    ['fold_conv_bn', 'identities', 'common_subexpressions', 'dead_code']
    """
    return with_registered([one for one in (fold_conv_bn.PASS, *DEFAULT) if getattr(strategy, one.name)])


def chosen_unwatched(strategy: BuildStrategy) -> tuple[Pass, ...]:
    """The passes that a strategy asks for where no autograd watches.

    >>> [one.name for one in chosen_unwatched(BuildStrategy())]
    ['hoist']
    """
    return tuple(one for one in UNWATCHED if getattr(strategy, one.name))


def register_pass(rewrite: Rewrite, *, name: str = "", before: str = "", after: str = "") -> Registered:
    """Let every Program that is prepared from now on go through a pass of yours.

    Args:
        rewrite: Takes a Program, and changes it in place or gives another one with the same inputs and parameters. What
            it makes is verified.
        name: What the pass is called in errors and dumps; by default what the function is called.
        before: The name of one of our passes (``BuildStrategy`` has them), or of one registered earlier.
        after: Likewise. With neither the pass is the last one.

    ``remove()`` of what is given ends it. Programs that were prepared before stay as they are.

    Raises:
        ValueError: Both places are named, or one that does not exist, or the name is taken.

    >>> handle = register_pass(lambda program: None, name="looks only", before="dead_code")
    >>> [one.name for one in chosen(BuildStrategy())]
    ['identities', 'constants', 'common_subexpressions', 'looks only', 'dead_code', 'scan']
    >>> handle.remove()
    """
    known = [one.name for one in (fold_conv_bn.PASS, *DEFAULT)]
    return _register_pass(rewrite, name=name, before=before, after=after, known=known)


__all__ = [
    "DEFAULT", "UNWATCHED", "Applied", "BuildStrategy", "Pass", "PassManager", "Registered", "Report", "chosen",
    "chosen_unwatched", "register_pass",
]  # fmt: skip
