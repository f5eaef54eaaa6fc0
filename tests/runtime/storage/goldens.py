"""The module that the files in ``golden`` hold, one file a version of the format.

``python -m tests.runtime.storage.goldens`` writes the file of the current version. A file that is there stays as it is:
users have files of its version.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

FOLDER = Path(__file__).parent / "golden"


def golden(version: int) -> Path:
    """The file of a version."""
    return FOLDER / f"version_{version}.d2s"


class Net(nn.Module):
    """Ties, shared memory, buffers, a constant, dropout, control flow, defaults and records: what files can hold."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 4, bias=False)
        self.encoder = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.out = nn.Linear(4, 4)
        self.out.weight = self.embed.weight
        self.alias = self.out
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("hidden", torch.ones(2), persistent=False)
        self.table = nn.Parameter(torch.arange(6.0))
        self.register_buffer("head", self.table.data[:4])
        self.scale = torch.tensor([1.0, -0.5, 2.0, 0.25])

    def forward(self, x: torch.Tensor, limit: float = 1.0, *, names: Any = ("a", None)) -> dict[str, Any]:
        h = self.encoder(self.embed(x)) * self.scale + self.head
        self.calls += 1
        steps = 0
        rows = []
        while h.abs().max() > limit:
            h = h / 2
            rows.append(h.sum())
            steps += 1
        if h.mean() > 0:
            h = torch.tanh(h)
        return {"h": self.out(h), "steps": steps, "rows": rows, "x": x, "size": x.shape, "names": names}

    def decode(self, z: torch.Tensor, more: torch.Tensor = torch.ones(4)) -> torch.Tensor:
        if torch.is_grad_enabled():
            z = z * 2
        if z.sum() > 100:
            raise ValueError("too much")
        return self.alias(z) + more


def made() -> Net:
    """The module with the numbers that the files hold."""
    torch.manual_seed(20)
    return Net()


def write(version: int) -> Path:
    """Write the file of the current version, unless it is there. Places in the source are without the folder."""
    from dy2static import InputSpec
    from dy2static.saving import make_artefact
    from runtime.storage import write_artefact

    path = golden(version)
    if path.exists():
        raise FileExistsError(path)
    spec = InputSpec([None, 4])
    artefact = make_artefact(made(), [spec], {"decode": [spec]}, {"limit": [1.0, 3.0]})
    for method in artefact.methods.values():
        for variant in method.all():
            for one in (*variant.program.block.walk(), *variant.program.assumes):
                if one.location is not None:
                    place = replace(one.location, file=Path(one.location.file).name)
                    object.__setattr__(one, "location", place)
    artefact.metadata = {"labels": ["a", "b"], "accuracy": 0.5}
    return write_artefact(artefact, path)


if __name__ == "__main__":
    from runtime.storage.upgrade import VERSION

    print(write(VERSION))
