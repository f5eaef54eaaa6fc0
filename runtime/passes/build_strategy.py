"""What a user may say about how a Program is built."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields


@dataclass
class BuildStrategy:
    """Which passes a Program goes through before it runs, and where the interpreter writes results.

    docs/build_strategy.md says more of each. The names of the second and third group are Paddle's. An option that
    does not exist is an error, when it is set, too.

    >>> BuildStrategy(fold_conv_bn=True).fold_conv_bn
    True
    >>> BuildStrategy().enable_in_place = True
    Traceback (most recent call last):
    AttributeError: BuildStrategy has no option 'enable_in_place'; did you mean 'enable_inplace'?

    Raises:
        TypeError: A value that is neither True nor False.
    """

    identities: bool = True
    """Numbers that surely are one of their operands are that operand."""
    constants: bool = True
    """Numbers that are known are computed before, and branches whose flag is known are taken."""
    common_subexpressions: bool = True
    """Numbers that were computed already are not computed again."""
    dead_code: bool = True
    """What nothing reads is left out."""
    scan: bool = True
    """Loops of known length that make lists become scans."""
    hoist: bool = True
    """What is the same in all iterations of a loop is computed once, before it."""

    enable_inplace: bool = True
    """Results of pointwise operators are written in the place of operands that nobody else can see."""
    memory_optimize: bool = True
    """What is written in place by your code is not copied where nobody else can see it."""

    fuse_elewise_add_act_ops: bool = False
    """An activation is written in the place of the sum it is of, where ``enable_inplace`` is off, too."""
    fuse_relu_depthwise_conv: bool = False
    """A relu that only depthwise convolutions read is written in its operand's place, likewise."""
    enable_addto: bool = False
    """Gradients are added up in place, likewise."""

    fold_conv_bn: bool = False
    """In eval, a batch normalisation after a convolution becomes part of the convolution's weight and bias."""

    def __setattr__(self, name: str, value: object) -> None:
        names = [one.name for one in fields(self)]
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise AttributeError(f"BuildStrategy has no option {name!r}; {advice}")
        if not isinstance(value, bool):
            raise TypeError(f"{name} of a BuildStrategy is True or False, not {value!r}")
        super().__setattr__(name, value)


__all__ = ["BuildStrategy"]
