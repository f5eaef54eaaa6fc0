"""Two processes train one classifier that decides on its data, with PyTorch's DistributedDataParallel around it.

    torchrun --nproc-per-node 2 examples/train_distributed.py

Each process has its own batches, so each may take another path through the model: one refines its state twice, the
other three times, and a layer may be used in one process only. DDP's ``find_unused_parameters=True`` is for that, as
without dy2static. It runs on CPUs (gloo).
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import dy2static


class Refining(nn.Module):
    """Refines its state until it is sure of it, and corrects it where it is large."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(8, 16)
        self.refine = nn.Linear(16, 16)
        self.correct = nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [N, 3] of [N, 8]."""
        h = torch.tanh(self.inside(x))
        for _ in range(3):
            if self.head(h).softmax(-1).amax(-1).mean() > 0.8:
                break
            h = torch.tanh(self.refine(h)) + h
        if h.abs().max() > 1.5:
            h = h - 0.1 * torch.relu(self.correct(h))
        return self.head(h)


def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """32 points around three centres, and which."""
    kinds = torch.randint(0, 3, (32,), generator=generator)
    centres = torch.eye(3, 8) * 3
    return centres[kinds] + torch.randn(32, 8, generator=generator), kinds


def main() -> None:
    """Train, and say what became of it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--eager", action="store_true", help="without dy2static: the same losses")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net: nn.Module = Refining()
    if not options.eager:
        net = dy2static.to_static(net)
    model = DistributedDataParallel(net, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(rank)
    for step in range(options.steps):
        x, kinds = batch(generator)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), kinds)
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == options.steps - 1:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step:3}: loss {mean.item() / dist.get_world_size():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
