"""``DistributedDataParallel``: what it does around its module happens in each eager call, never in a Program.

Before and after the module it prepares the exchange of gradients, and sends buffers to the other processes. A trace
would do that once, and the Program never: gradients would differ between the processes without a word.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.shared.staging import Session

Parallel: Any = torch.nn.parallel.DistributedDataParallel


def inner(session: Session, module: Any) -> torch.nn.Module:
    """The module inside, which may be called in its place.

    Raises:
        TraceError: D2S293: there is something to exchange with other processes.
    """
    alone = module.process_group.size() == 1
    sends = torch.is_grad_enabled() and module.require_backward_grad_sync
    if (sends or module.will_sync_module_buffers()) and not alone:
        raise session.error(
            "DistributedDataParallel is called inside a converted function: gradients and buffers would be exchanged "
            "between the processes while tracing only",
            hint="Convert the module: to_static(ddp) converts the one inside, and the call of ddp stays outside.",
            code="D2S293",
        )
    if module.mixed_precision is not None:
        raise session.error(
            "DistributedDataParallel with mixed precision is called inside a converted function",
            hint="Convert the module: to_static(ddp) converts the one inside, and the call of ddp stays outside.",
            code="D2S293",
        )
    found: torch.nn.Module = module.module
    return found


__all__ = ["Parallel", "inner"]
