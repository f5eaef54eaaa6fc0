"""``torch.amp.GradScaler`` in a training step: its Python is converted, with another end of ``update``."""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.builtins import scalers_in_python
from dy2static.operators.calls import functions
from dy2static.operators.shared.staging import Session

_UPDATE: Any = torch.amp.GradScaler.update
_OURS: Any = scalers_in_python.update


def _update(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def plain(*given: Any, **named: Any) -> Any:
        return functions.call_function(session, _UPDATE, given, named)

    return functions.call_function(session, _OURS, (args[0], plain, *args[1:]), kwargs)


HANDLERS: list[tuple[Any, Any]] = [(_UPDATE, _update)]
