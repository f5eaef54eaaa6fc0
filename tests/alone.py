"""Saved models in a process of their own: no converter, nothing of what the converter needs, no source of the models.

    python alone.py FOLDER

Each ``NAME.pt`` of the folder says what the model in ``NAME.d2s`` is called with, and what eager gave: the results, the
losses of some training steps, and the state afterwards. What differs is printed, a line each. This file imports nothing
of the tests; ``exercise`` is what the parent has run on the eager model.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

BLOCKED = (
    "gast", "astor", "dy2static.conversion", "dy2static.transforms", "dy2static.operators", "tests", "transformers",
)  # fmt: skip
"""What the process must do without."""
STEPS = 20
RATE = 1e-3


def leaves(value: Any) -> Iterator[Any]:
    """The tensors, numbers and texts in a result, in order, whatever holds them."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from leaves(item)
    elif isinstance(value, (set, frozenset)):
        yield from sorted(value, key=repr)
    elif isinstance(value, torch.Tensor) or isinstance(value, (str, int, float, bool, type(None))):
        yield value.detach().clone() if isinstance(value, torch.Tensor) else value
    elif isinstance(value, Sequence):
        for item in value:
            yield from leaves(item)
    elif dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            yield from leaves(getattr(value, one.name))
    elif hasattr(value, "__dict__"):
        for _, item in sorted(vars(value).items()):
            yield from leaves(item)


def differentiable(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a result that a loss may be made of."""
    if isinstance(value, torch.Tensor):
        if value.requires_grad and value.is_floating_point():
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from differentiable(item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from differentiable(item)


def called(model: Any, call: tuple[Sequence[Any], dict[str, Any]], seed: int) -> Any:
    """What one call gives, or the name of the exception that it raises."""
    args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda one: one.detach().clone(), call)
    torch.manual_seed(seed)
    try:
        return model(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


def exercise(model: torch.nn.Module, calls: Sequence[tuple[Sequence[Any], dict[str, Any]]]) -> dict[str, Any]:
    """Each call's results in evaluation mode, then training steps: their losses, and the state afterwards."""
    model.eval()
    with torch.no_grad():
        results = [list(leaves(called(model, call, number))) for number, call in enumerate(calls)]
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE) if any(True for _ in model.parameters()) else None
    losses: list[float] = []
    for step in range(STEPS):
        outputs = list(differentiable(called(model, calls[step % len(calls)], step)))
        if optimizer is not None and outputs:
            loss = torch.stack([output.double().square().mean() for output in outputs]).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return {"results": results, "losses": losses, "state": dict(model.state_dict())}


def differences(got: Any, wanted: Any, place: str, tolerance: float) -> Iterator[str]:
    """Where two outcomes differ; types count, and the dtypes and shapes of tensors."""
    if isinstance(wanted, torch.Tensor) and isinstance(got, torch.Tensor):
        if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
            yield f"{place}: {got.dtype}{list(got.shape)} for {wanted.dtype}{list(wanted.shape)}"
        elif not torch.allclose(got.double(), wanted.double(), rtol=tolerance, atol=tolerance, equal_nan=True):
            yield f"{place}: {(got.double() - wanted.double()).abs().max():.2e} apart"
    elif type(got) is not type(wanted):
        yield f"{place}: {got!r} for {wanted!r}"
    elif isinstance(wanted, dict):
        if list(got) != list(wanted):
            yield f"{place}: {list(got)} for {list(wanted)}"
        for key in [key for key in wanted if key in got]:
            yield from differences(got[key], wanted[key], f"{place} {key}", tolerance)
    elif isinstance(wanted, list):
        if len(got) != len(wanted):
            yield f"{place}: {len(got)} for {len(wanted)}"
        for number, (one, other) in enumerate(zip(got, wanted)):
            yield from differences(one, other, f"{place}[{number}]", tolerance)
    elif isinstance(wanted, float):
        if not torch.isclose(torch.tensor(got), torch.tensor(wanted), rtol=tolerance, atol=tolerance, equal_nan=True):
            yield f"{place}: {got} for {wanted}"
    elif got != wanted:
        yield f"{place}: {got!r} for {wanted!r}"


class _Absent:
    """An import hook for which these modules do not exist."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if any(name == one or name.startswith(f"{one}.") for one in BLOCKED):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(folder: Path, load: Callable[[Path], Any]) -> int:
    """How many models are the same."""
    same = 0
    for file in sorted(folder.glob("*.pt")):
        wanted = torch.load(file, weights_only=False)
        try:
            model = load(file.with_suffix(".d2s"))
            got = exercise(model, wanted["calls"])
            found = list(differences(got, wanted["outcome"], file.stem, wanted["tolerance"]))
        except Exception as error:
            found = [f"{file.stem}: {type(error).__name__}: {error}"]
        for line in found[:3]:
            print(line)
        same += not found
    return same


if __name__ == "__main__":
    sys.meta_path.insert(0, _Absent())  # type: ignore[arg-type]
    torch.set_num_threads(1)
    import dy2static

    print("same", main(Path(sys.argv[1]), dy2static.load))
