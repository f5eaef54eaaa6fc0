"""What ``torch.amp.GradScaler`` does that a Program would do to other objects at each call: a trace runs this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def update(scaler: Any, plain: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """``scaler.update()``, which is ``plain``. What a step has noted of optimizers is taken out of its dict.

    PyTorch puts another dict in its place: each step would be written to a dict that no later call has.
    """
    noted = getattr(scaler, "_per_optimizer_states", None)
    plain(scaler, *args, **kwargs)
    if noted is not None and not scaler._per_optimizer_states:
        noted.clear()
        scaler._per_optimizer_states = noted
