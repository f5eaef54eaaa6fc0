"""What docs/vmap.md says: its examples run, and give what stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

PAGE = (Path(__file__).parents[2] / "docs" / "vmap.md").read_text("utf-8")


def test_the_examples(tmp_path: Path) -> None:
    first, inside, second = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, Any] = {}
    for number, text in enumerate((first, inside, second)):
        file = tmp_path / f"example_{number}.py"
        file.write_text(text)
        exec(compile(text, str(file), "exec"), names)
    assert "# x: tensor([0.5000, 0.7500, 0.6250]), steps: tensor([0, 2, 6])" in first
    assert names["steps"].tolist() == [0, 2, 6]
    assert torch.equal(names["x"], torch.tensor([0.5, 0.75, 0.625]))
    assert names["descend"](torch.rand(4, 3) * 2).shape == (4, 3)
    assert names["gradients"].shape == (8, 3)
