"""Run by two processes (``test_distributed.py``): each way of training on several machines, eagerly and converted.

Prints a line for each: ``same``, or what differs, or what was raised.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
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


def columns_and_rows(net: nn.Module) -> nn.Module:
    """A plan of tensor parallelism: a layer's outputs are divided between the processes, another one's inputs."""
    plan = {"b": ColwiseParallel(output_layouts=Replicate()), "c": RowwiseParallel(input_layouts=Replicate())}
    return parallelize_module(net, init_device_mesh("cpu", (2,)), plan)


def in_pieces(net: nn.Module) -> nn.Module:
    made: nn.Module = dy2static.to_static(net, full_graph=False)
    return made


def convert(net: nn.Module) -> nn.Module:
    made: nn.Module = dy2static.to_static(net)
    return made


def convert_parts(net: nn.Module) -> nn.Module:
    for name in ("a", "b", "c"):
        setattr(net, name, convert(getattr(net, name)))
    return net


WAYS: dict[str, tuple[Callable[[nn.Module], nn.Module], Callable[[nn.Module], nn.Module]]] = {
    "DDP of a converted module": (ddp, lambda net: ddp(convert(net))),
    "a converted DDP module": (ddp, lambda net: convert(ddp(net))),
    "FSDP2 of a converted module": (shard, lambda net: shard(convert(net))),
    "a converted FSDP2 module": (shard, lambda net: convert(shard(net))),
    "FSDP2 of parts of a converted module": (shard_parts, lambda net: shard_parts(convert(net))),
    "FSDP2 of converted parts": (shard_parts, lambda net: shard_parts(convert_parts(net))),
    "converted parts under FSDP2": (shard_parts, lambda net: convert_parts(shard_parts(net))),
    "FSDP2 of parts in pieces": (shard_parts, lambda net: in_pieces(shard_parts(net))),
    "a converted tensor parallel module": (columns_and_rows, lambda net: convert(columns_and_rows(net))),
    "a tensor parallel module in pieces": (columns_and_rows, lambda net: in_pieces(columns_and_rows(net))),
}


SOME_HAVE_NO_STATE = StateDictOptions(strict=False)
"""The layer that is never used."""


def through_a_checkpoint() -> str:
    """What ``torch.distributed.checkpoint`` writes of a converted module and its optimizer, read into others."""
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else ""]
    dist.broadcast_object_list(folder)
    x, made = torch.ones(3, 4), []
    for seed in (1, 2):
        torch.manual_seed(seed)
        net = convert(Net())
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
        net(x).sum().backward()
        optimizer.step()
        model, state = get_state_dict(net, optimizer)
        held = {"model": model, "optimizer": state}
        if seed == 1:
            checkpoint.save(held, checkpoint_id=folder[0])
        else:
            checkpoint.load(held, checkpoint_id=folder[0])
            set_state_dict(net, optimizer, model_state_dict=model, optim_state_dict=state, options=SOME_HAVE_NO_STATE)
        made.append((net, optimizer))
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder[0])
    for net, optimizer in made:
        optimizer.zero_grad()
        net(x * 2).square().sum().backward()
        optimizer.step()
    (one, _), (other, _) = made
    return difference(dict(other.state_dict()), dict(one.state_dict())) or "same"


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for name, (eager, static) in WAYS.items():
        sharded = "FSDP2" in name or "tensor parallel" in name  # whose processes have to take the same paths
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
    result = through_a_checkpoint()
    if rank == 0:
        print(f"a checkpoint of several processes: {result}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
