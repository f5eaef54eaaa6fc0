"""What a type checker says of converted functions, methods and modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dy2static

PROGRAM = '''
import typing
import torch
from torch import Tensor
import dy2static
from dy2static import to_static

@to_static
def grow(x: Tensor, limit: float = 1.0) -> tuple[Tensor, int]:
    return x, 1

@to_static(full_graph=False)
def other(x: Tensor, *, n: int) -> Tensor:
    return x

class Net(torch.nn.Module):
    size: int = 3
    @to_static
    def forward(self, x: Tensor) -> Tensor:
        return x
    @to_static(backend="c")
    def step(self, x: Tensor, times: int) -> int:
        return times

net = to_static(Net())
reveal_type(grow(torch.ones(1), limit=2.0))
reveal_type(other(torch.ones(1), n=2))
reveal_type(net)
reveal_type(net.size)
reveal_type(Net().step(torch.ones(1), 2))
reveal_type(typing.cast(dy2static.StaticFunction, grow).programs)
reveal_type(to_static(Net().step))
reveal_type(to_static(input_spec=[dy2static.InputSpec([None], "float32")])(Net()))
reveal_type(to_static(lambda x: x))
grow("text")
other(torch.ones(1))
net.forward(1)
Net().step(torch.ones(1), times="two")
to_static(grow, full_grap=True)
class Loud(Net):
    @to_static
    @staticmethod
    def shout(text: str) -> str:
        return text
reveal_type(Loud.shout("a"))
@dy2static.not_to_static
def left(x: Tensor) -> int:
    return 1
reveal_type(left)
'''
REVEALED = [
    "tuple[torch._tensor.Tensor, int]", "torch._tensor.Tensor", "program.Net", "int", "int",
    "list[runtime.ir.program.Program]",
    "def (x: torch._tensor.Tensor, times: int) -> int", "program.Net", "def (x: Any) -> Any", "str",
    "def (x: torch._tensor.Tensor) -> int",
]  # fmt: skip
ERRORS = [
    'Argument 1 to "grow" has incompatible type "str"; expected "Tensor"',
    'Missing named argument "n"', 'incompatible type "int"; expected "Tensor"',
    'Argument "times" to "step" of "Net" has incompatible type "str"; expected "int"', "did you mean",
    "No overload variant",
]  # fmt: skip


@pytest.mark.slow
def test_what_mypy_says(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    root = Path(dy2static.__path__[0]).parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports", "--config-file=",
         "program.py"], cwd=tmp_path, env={"MYPYPATH": str(root), "PATH": ""}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    revealed = [match[1] for line in lines if (match := re.search(r'Revealed type is "(.*)"', line))]
    assert len(revealed) == len(REVEALED), done.stdout
    for said, expected in zip(revealed, REVEALED):
        assert expected in said, f"{said}, not {expected}"
    errors = [line.partition(" error: ")[2] for line in lines if " error: " in line]
    assert len(errors) == len(ERRORS), done.stdout
    for said, expected in zip(errors, ERRORS):
        assert expected in said
