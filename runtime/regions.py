"""Trading time for memory: what is computed in a region is computed again in backward, rather than kept.

    with recompute():                       the results of the two layers are not kept for the gradient:
        h = self.b(torch.relu(self.a(h)))   backward computes them again from h and the weights
"""

from __future__ import annotations

from runtime.tracer.ambient import state
from runtime.tracer.recording.session import Session


class recompute:  # used like a function
    """A region whose intermediate results backward computes again. Random results (dropout masks) are kept.

    It changes no value. Outside a converted function it does nothing.

    >>> with recompute():
    ...     1 + 1
    2
    """

    def __init__(self) -> None:
        self._session: Session | None = None

    def __enter__(self) -> recompute:
        self._session = state.active()
        if self._session is not None:
            self._session.constructs.enter_region()
        return self

    def __exit__(self, *error: object) -> None:
        if self._session is not None:
            self._session.constructs.leave_region()
            self._session = None
