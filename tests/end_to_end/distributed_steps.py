"""Run by two processes (``test_distributed.py``): each way of training on several machines, eagerly and converted.

Prints a line for each: ``same``, or what differs, or what was raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import dy2static
from tests.oracle import difference


class Net(nn.Module):
    """Its loop and its branch depend on the data; one layer is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.never = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Tensor) -> Tensor:
        count = 0
        while x.abs().max() > 0.5 and count < 3:
            x = torch.tanh(self.a(x)) * 0.8
            count += 1
        if x.sum() > 0:
            x = x + self.b(x)
        result: Tensor = self.c(self.norm(x))
        return result


def batches(rank: int) -> list[Tensor]:
    """Those of the second process have the other sign: it takes the other branch."""
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(3, 4, generator=generator).abs() * (size + 1) * (-1) ** rank for size in range(5)]


Step = tuple[Tensor, list[Tensor | None], list[Tensor]]


def train(make: Callable[[nn.Module], nn.Module], inputs: Sequence[Tensor], whole: bool) -> list[Step]:
    """Losses, and gradients and parameters where every process has the ``whole`` of them."""
    torch.manual_seed(0)
    net = Net()
    model = make(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    found = []
    for x in inputs:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        state = list(net.parameters()) if whole else []
        grads = [None if p.grad is None else p.grad.clone() for p in state]
        found.append((loss.detach(), grads, [p.detach().clone() for p in state]))
    return found


def ddp(net: nn.Module) -> nn.Module:
    return DistributedDataParallel(net, find_unused_parameters=True)


def shard(net: nn.Module) -> nn.Module:
    made: nn.Module = fully_shard(net)
    return made


def shard_parts(net: nn.Module) -> nn.Module:
    for part in (net.a, net.b, net.c):
        fully_shard(part)
    return shard(net)


def convert(net: nn.Module) -> nn.Module:
    made: nn.Module = dy2static.to_static(net)
    return made


WAYS: dict[str, tuple[Callable[[nn.Module], nn.Module], Callable[[nn.Module], nn.Module]]] = {
    "DDP of a converted module": (ddp, lambda net: ddp(convert(net))),
    "a converted DDP module": (ddp, lambda net: convert(ddp(net))),
    "FSDP2 of a converted module": (shard, lambda net: shard(convert(net))),
    "a converted FSDP2 module": (shard, lambda net: convert(shard(net))),
    "FSDP2 of parts of a converted module": (shard_parts, lambda net: shard_parts(convert(net))),
}


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for name, (eager, static) in WAYS.items():
        sharded = "FSDP2" in name  # whose processes have to take the same paths
        inputs = batches(0 if sharded else rank)
        try:
            expected = train(eager, inputs, not sharded)
            result = difference(train(static, inputs, not sharded), expected) or "same"
        except dy2static.Dy2StaticError as error:
            result = f"refused {error.code}"
        everyone: list[str | None] = [None, None]
        dist.all_gather_object(everyone, result)
        if rank == 0:
            print(f"{name}: {everyone[0] if everyone[0] == everyone[1] else everyone}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
