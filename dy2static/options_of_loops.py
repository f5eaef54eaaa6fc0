"""What code cannot say about a loop: how often it runs at most, whether it is unrolled, which sizes it may change,
what backward computes again.

    with dy2static.loop_options(max_iterations=100):
        while x.norm() > 1:
            x = step(x)
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from runtime.errors import TraceError
from runtime.ir import Location
from runtime.tracer.ambient import state
from runtime.tracer.recording.session import Session


class loop_options:  # used like a function
    """Options for the loops that stand directly in a ``with`` block; not for those inside them.

    Args:
        max_iterations: RuntimeError, when the Program runs, if a loop goes on after so many iterations.
        unroll: True: each iteration is recorded by itself (D2S280 if only a tensor knows how many there are).
            False: a ``range``, or the rows of a tensor, become a staged loop, however few there are.
        shape_invariants: For variables of the loop that hold tensors, their sizes in every iteration, None for those
            that may change: ``{"x": [None, 3]}``.
        recompute: True: backward computes each iteration's intermediate results again, rather than keeping them
            (random results are kept), as ``runtime.recompute()`` around the body does.
        checkpoints: How many states of a staged loop are kept for backward, which computes the others again: memory
            that does not grow with the number of iterations. Random numbers are drawn again, the same ones. A
            ``range``, or the rows of a tensor, become a staged loop then.

    It changes no value, and outside a converted function it does nothing.

    >>> import torch
    >>> from dy2static import to_static
    >>> @to_static
    ... def grow(x):
    ...     with loop_options(max_iterations=3):
    ...         while x.sum() < 100:
    ...             x = x * 2
    ...     return x
    >>> grow(torch.tensor(20.0))
    tensor(160.)
    >>> grow(torch.tensor(1.0))
    Traceback (most recent call last):
    RuntimeError: this loop goes on after max_iterations=3 iterations

    Errors raised: TypeError or ValueError for options that make no sense.
    """

    def __init__(
        self,
        *,
        max_iterations: int | None = None,
        unroll: bool | None = None,
        shape_invariants: Mapping[str, Sequence[int | None]] | None = None,
        recompute: bool = False,
        checkpoints: int | None = None,
    ) -> None:
        if max_iterations is not None and type(max_iterations) is not int:
            raise TypeError(f"max_iterations must be an int that is known before the loop, not {max_iterations!r}")
        if max_iterations is not None and max_iterations < 0:
            raise ValueError(f"max_iterations must not be negative: {max_iterations}")
        if unroll is not None and type(unroll) is not bool:
            raise TypeError(f"unroll must be True, False or None, not {unroll!r}")
        if type(recompute) is not bool:
            raise TypeError(f"recompute must be True or False, not {recompute!r}")
        if checkpoints is not None and type(checkpoints) is not int:
            raise TypeError(f"checkpoints must be an int that is known before the loop, not {checkpoints!r}")
        if checkpoints is not None and checkpoints < 1:
            raise ValueError(f"checkpoints must be at least 1: {checkpoints}")
        if unroll and checkpoints is not None:
            raise ValueError("an unrolled loop has no checkpoints")
        if unroll and shape_invariants:
            raise ValueError("an unrolled loop has no shape_invariants")
        self.max_iterations = max_iterations
        self.unroll = False if checkpoints is not None else unroll
        self.shape_invariants = _invariants(shape_invariants or {})
        self.recompute = recompute
        self.checkpoints = checkpoints
        self._session: Session | None = None
        self._frame: FrameType | None = None
        self._place: Location | None = None
        self._used = False

    def __enter__(self) -> loop_options:
        self._session = state.active()
        if self._session is not None:
            self._frame = sys._getframe(1)
            self._place = self._session.location()
            self._used = False
            self._session.code.loop_options.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._session is not None:
            session, self._session, self._frame = self._session, None, None
            session.code.loop_options.remove(self)
            if kind is None and not self._used:
                raise TraceError(
                    "no loop stands directly in this block of loop_options", code="D2S281", location=self._place,
                    hint="Put the with statement right around the loop.",
                )  # fmt: skip

    def stands_in(self, frame: FrameType) -> bool:
        """Whether a loop that this frame starts stands directly in the block."""
        found = frame is self._frame
        self._used = self._used or found
        return found


def options_of(session: Session, frame: FrameType) -> dict[str, Any] | None:
    """The options of a loop that ``frame`` starts, inner blocks first."""
    for options in reversed(session.code.loop_options):
        if options.stands_in(frame):
            chosen = {
                "max_iterations": options.max_iterations, "unroll": options.unroll,
                "shape_invariants": options.shape_invariants or None, "recompute": options.recompute or None,
                "checkpoints": options.checkpoints,
            }  # fmt: skip
            return {name: value for name, value in chosen.items() if value is not None}
    return None


def _invariants(given: Mapping[str, Sequence[int | None]]) -> dict[str, tuple[int | None, ...]]:
    if not isinstance(given, Mapping):
        raise TypeError(f"shape_invariants must be a dict of names and sizes, not {given!r}")
    found = {}
    for name, sizes in given.items():
        if not isinstance(name, str) or not isinstance(sizes, (list, tuple)):
            raise TypeError(f"shape_invariants must be a dict of names and sizes, not {given!r}")
        if any(size is not None and type(size) is not int for size in sizes):
            raise TypeError(f"the sizes of '{name}' in shape_invariants must be ints or None, not {sizes!r}")
        found[name] = tuple(sizes)
    return found


__all__ = ["loop_options", "options_of"]
