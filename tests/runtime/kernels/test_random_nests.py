"""Random straight Programs of elements, folds and rows, broadcast, in any layout: kernels on the CPU, and PyTorch."""

from __future__ import annotations

import random

import pytest
import torch

from tests import devices
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import agree, compiled, gave_up

Shape = tuple[str, ...]
_SHAPES: list[Shape] = [("a", "b", "c"), ("a", "b", "c"), ("b", "c"), ("c",), ("a", "1", "c"), ("a", "b", "1"),
                        ("1", "b", "1"), ()]  # fmt: skip
_ONE = ["neg", "tanh", "sigmoid", "abs", "square", "relu", "cos"]
_TWO = ["add.Tensor", "sub.Tensor", "mul.Tensor", "maximum.default", "minimum.default"]


class Maker:
    """Grows a Program; each result may be read by later lines."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.values: list[tuple[str, Shape]] = [(f"x{place}", self.random.choice(_SHAPES)) for place in range(3)]
        self.inputs = list(self.values)

    def pick(self) -> tuple[str, Shape]:
        """A value, more often a late one."""
        return self.random.choice(self.values[-5:] if self.random.random() < 0.7 else self.values)

    def give(self, shape: Shape, text: str) -> None:
        """One more line."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"  %{name} : f64[{', '.join(shape)}] = aten.{text}")
        self.values.append((name, shape))

    def line(self) -> None:
        """An Operator."""
        kind = self.random.choice(["one", "two", "two", "number", "fold", "softmax", "norm", "gelu"])
        name, shape = self.pick()
        if kind == "two":
            other, its = self.pick()
            rank = max(len(shape), len(its))
            whole = [("1",) * (rank - len(one)) + one for one in (shape, its)]
            joined = tuple(b if a == "1" else a for a, b in zip(*whole))
            self.give(joined, f"{self.random.choice(_TWO)}(%{name}, %{other})")
        elif kind == "number":
            self.give(shape, f"{self.random.choice(['add.Tensor', 'mul.Tensor'])}(%{name}, 0.5)")
        elif kind == "fold" and shape:
            tail = self.random.randint(1, len(shape))
            keep = self.random.random() < 0.8
            dims = list(range(len(shape) - tail, len(shape)))
            left = (*shape[: len(shape) - tail], *(("1",) * tail if keep else ()))
            self.give(left, f"{self.random.choice(['sum.dim_IntList', 'mean.dim'])}(%{name}, {dims}, {keep})")
        elif kind == "softmax" and shape:
            log = self.random.choice(["", "log_"])
            self.give(shape, f"_{log}softmax.default(%{name}, -1, False)")
        elif kind == "norm" and shape and shape[-1] == "1":
            self.give(shape, f"layer_norm.default(%{name}, [1])")
        elif kind == "gelu":
            self.give(shape, f"gelu.default(%{name})")
        else:
            self.give(shape, f"{self.random.choice(_ONE)}.default(%{name})")

    def text(self, count: int) -> str:
        """The whole Program, with some of its values as results."""
        for _ in range(count):
            self.line()
        made = self.values[len(self.inputs) :]
        results = self.random.sample(made, min(3, len(made)))
        given = [f'  input %{name} : f64[{", ".join(shape)}] = "{name}"' for name, shape in self.inputs]
        names = ", ".join(f"%{name}" for name, _ in results)
        places = ", ".join(f"${place}" for place in range(len(results)))
        return "\n".join(['program "f" {', *given, *self.lines, f"  return {names} as ({places})", "}"])

    def tensors(self) -> list[torch.Tensor]:
        """Arguments, which may lie anyhow."""
        sizes = {letter: self.random.choice([1, 2, 3, 3, 5, 40]) for letter in "abc"} | {"1": 1}
        generator = devices.generator(self.random.randint(0, 1000))
        found = []
        for _, shape in self.inputs:
            dims = [sizes[one] for one in shape]
            x = torch.randn(dims, generator=generator, dtype=torch.float64)
            way = self.random.choice(["plain", "plain", "turned", "gaps"])
            if way == "turned" and len(dims) > 1:
                x = x.transpose(0, -1).contiguous().transpose(0, -1)
            elif way == "gaps" and dims:
                x = torch.stack([x, x], -1)[..., 0]
            found.append(x)
        return found


def check(seed: int) -> None:
    """Three calls of one Program."""
    maker = Maker(seed)
    text = maker.text(maker.random.randint(3, 14))
    made = compiled(text)
    share = len(made.in_kernels())
    agree(text, *(maker.tensors() for _ in range(3)), rounding=1e-9, in_kernels=share)


@pytest.mark.sample(3)
@pytest.mark.parametrize("part", range(3))
def test_random_nests(host: Host, part: int) -> None:
    for seed in range(part * 8, part * 8 + 8):
        check(seed)
    assert host.launches


@pytest.mark.slow
def test_many_random_nests(host: Host) -> None:
    for seed in range(1000, 1250):
        check(seed)


def test_dense_arguments_are_no_reason_to_give_up(host: Host) -> None:
    """No region gives up where sizes fit and memory is plain."""
    regions = failures = 0
    for seed in range(40, 52):
        maker = Maker(seed)
        made = compiled(maker.text(8))
        made.run([torch.randn([1 if one == "1" else 3 for one in shape], dtype=torch.float64)
                  for _, shape in maker.inputs], [])  # fmt: skip
        regions += len(made.written.compiled)
        failures += gave_up(made)
    assert regions > 8 and failures == 0
