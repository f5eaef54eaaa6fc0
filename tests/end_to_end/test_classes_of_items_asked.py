"""``torch.jit.isinstance``, which asks for the classes of a container's items, where only the run knows these."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union

import pytest
import torch

from dy2static import to_static

VALUES: dict[str, Any] = {
    "int": lambda x: int(x.sum()),
    "float": lambda x: float(x.mean()),
    "bool": lambda x: bool(x.sum() > 1),
    "text": lambda x: f"{int(x.sum())}",
    "tensor": lambda x: x,
    "ints": lambda x: [int(x.sum()), 2],
    "floats": lambda x: [float(x.mean())],
    "mixed": lambda x: [int(x.sum()), 0.5],
    "nested": lambda x: [[int(x.sum())], [1, 2]],
    "pair": lambda x: (int(x.sum()), float(x.mean())),
    "dict": lambda x: {"a": int(x.sum())},
    "dict of lists": lambda x: {"a": [x]},
    "one of two": lambda x: [1] if x.sum() > 1 else ["a"],
    "none or int": lambda x: None if x.sum() > 1 else int(x.sum()),
    "grown": lambda x: [i for i in range(int(x.sum()))],
    "grown of tensors": lambda x: [x for _ in range(int(x.sum()))],
}
TARGETS: tuple[Any, ...] = (
    int, float, bool, str, torch.Tensor, List[int], List[float], List[List[int]], Tuple[int, float], Dict[str, int],
    Dict[str, List[torch.Tensor]], List[torch.Tensor], Optional[int], Union[List[str], int], (List[str], int),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", VALUES)
def test_as_eager(value: str) -> None:
    def f(x: Any) -> Any:
        held = VALUES[value](x)
        return [torch.jit.isinstance(held, target) for target in TARGETS]

    static = to_static(f)
    for x in (torch.ones(3), torch.full((3,), 0.2), torch.full((2,), 2.0)):
        assert static(x) == f(x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool])
@pytest.mark.parametrize("shape", [(3,), (2, 2), (1, 2, 2), (0, 2)])
def test_annotated_values_are_what_they_are(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    def f(flag: Any, x: Any) -> Any:
        rows, found = None, []
        if flag > 0:
            rows = torch.jit.annotate(list, x.tolist())
            torch.jit.annotate(list, found).append(len(rows))
        return rows, found

    static = to_static(f)
    for flag in (torch.ones(()), -torch.ones(())):
        x = torch.ones(shape).to(dtype)
        assert static(flag, x) == f(flag, x)
