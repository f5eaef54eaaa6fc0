"""Ten files to make mutants of: of both versions of the format, layers and functions, most of what files can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.runtime.storage.goldens import golden


class _Routed(nn.Module):
    """Lists that grow, branches in loops, exceptions, printed lines."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3, bias=False)])

    def forward(self, x: torch.Tensor, options: dict[str, Any]) -> Any:
        rows = []
        for row in x:
            if row.sum() > 0:
                row = self.experts[0](row)
            elif row.max() > 5:
                raise ValueError("too much", options["name"])
            rows.append(row)
        print("routed", len(rows))
        return {"rows": rows, "options": options, "shape": x.shape}, f"{x.sum().item():.2f}"


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return 2 * ctx.saved_tensors[0] * grad


def _custom(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = x * 2
    return _Square.apply(x) + y


def _inner_gradient(x: torch.Tensor) -> torch.Tensor:
    y = x.detach().requires_grad_()
    (grad,) = torch.autograd.grad((y * y * y).sum(), [y])
    return x + grad


def _scanned(x: torch.Tensor, n: int = 40) -> Any:
    state, seen = x, []
    for i in range(n):
        state = torch.tanh(state * 0.9 + i)
        seen.append(state)
    return torch.stack(seen), state[0].item() > 0 and x[1:2]


def _written(x: torch.Tensor, log: dict[str, Any]) -> Any:
    x[1:].mul_(2)
    log["last"] = x.sum()
    return x[0], log


def artefacts(folder: Path) -> list[bytes]:
    """Ten files: of both versions of the format, layers and functions, with most of what files can hold."""
    import dy2static
    from dy2static import InputSpec

    torch.manual_seed(0)
    spec = InputSpec([None, 3])
    saved: list[tuple[Any, Any, dict[str, Any]]] = [
        (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), [InputSpec([None, 5, 4])], {}),
        (nn.LSTM(3, 2, 2, batch_first=True), [InputSpec([None, 4, 3])], {"modes": ["eval"], "output_spec": [0]}),
        (_Routed(), [InputSpec([2, 3]), {"name": "a", "x": spec}], {"metadata": {"a": [1, 2.5, None, {"b": "c"}]}}),
        (_custom, [InputSpec([3])], {"source_locations": False}),
        (_inner_gradient, [InputSpec([3])], {}),
        (_scanned, [InputSpec([3])], {"variants": {"n": [2, 40]}}),
        (_written, [InputSpec([3]), {"first": InputSpec([1])}], {}),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.1)), [InputSpec([None, 1, 8, 8])], {}),
    ]
    found = [golden(1).read_bytes(), golden(2).read_bytes()]
    for number, (layer, specs, options) in enumerate(saved):
        found.append(dy2static.save(layer, folder / f"artefact{number}", specs, **options).read_bytes())
    return found
