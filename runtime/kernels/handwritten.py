"""Kernels written by hand: a text for all dtypes, made one for each when it is first launched.

The text speaks of ``T``, the type in memory, and ``R``, the type that is computed in; ``LOAD(p, i)`` and
``STORE(p, i, v)`` go from one to the other; ``EXP``, ``TANH`` and ``SQRT`` are of ``R``. Each kernel stands beside a
function of PyTorch's operators that gives the same, and which answers where the kernel cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.kernels import launch
from runtime.kernels.launch import Kernels
from runtime.kernels.text import Kernel, Kind
from runtime.native.values import CTYPES, HALVES

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
"""The dtypes that a text is made for."""


def head(dtype: torch.dtype) -> str:
    """What a text's words are for a dtype."""
    short = HALVES.get(dtype)
    real = "double" if dtype is torch.float64 else "float"
    end = "d" if dtype is torch.float64 else "f"
    load = f"{short}_wide((p)[i])" if short else "(p)[i]"
    store = f"{short}_narrow(v)" if short else "(v)"
    return "\n".join([
        f"typedef {CTYPES[dtype]} T;", f"typedef {real} R;", f"#define LOAD(p, i) {load}",
        f"#define STORE(p, i, v) ((p)[i] = {store})", f"#define EXP m_exp_{end}", f"#define TANH m_tanh_{end}",
        f"#define SQRT {'sqrt' if end == 'd' else 'sqrtf'}", "#define SIGMOID(x) ((R)1 / ((R)1 + EXP(-(x))))",
    ])  # fmt: skip


@dataclass(eq=False)
class Handwritten:
    """A file of kernels. kernels: name, kind, the C parameters after the name, and the body, for each."""

    kernels: Sequence[tuple[str, Kind, str, str]]
    made: dict[torch.dtype, Kernels] = field(default_factory=dict)

    def of(self, dtype: torch.dtype) -> Kernels:
        """The kernels for a dtype."""
        found = self.made.get(dtype)
        if found is None:
            texts = []
            for place, (name, kind, parameters, body) in enumerate(self.kernels):
                signature = "".join("d" if one.split()[0] == "double" else "q" for one in parameters.split(", "))
                begin = "" if place else head(dtype) + "\n"
                text = f'{begin}extern "C" __global__ void {name}({parameters}) {{\n{body.strip()}\n}}'
                texts.append(Kernel(name, text, kind, (), signature))
            found = self.made[dtype] = Kernels(tuple(texts))
        return found

    def is_ready(self, dtype: torch.dtype, device: torch.device) -> bool:
        """Whether they are compiled for a device; if that fails, a warning says why, once."""
        return self.of(dtype).prepare(device)

    def launch(self, number: int, dtype: torch.dtype, device: torch.device, count: int, width: int,
               *parameters: Any) -> None:  # fmt: skip
        """Launch one of them; a tensor that is None is no memory."""
        self.of(dtype).launch(number, device, count, width, *[0 if one is None else one for one in parameters])


def alike(tensors: Iterable[torch.Tensor | None]) -> tuple[torch.dtype, torch.device] | None:
    """The dtype and device of tensors that a kernel can take together; None where it cannot."""
    found: tuple[torch.dtype, torch.device] | None = None
    for one in tensors:
        if one is None:
            continue
        own = (one.dtype, one.device)
        if own[0] not in DTYPES or (found is not None and own != found) or not one.is_contiguous() or (
                not launch.machine.takes(one)):  # fmt: skip
            return None
        found = own
    return found


__all__ = ["DTYPES", "Handwritten", "alike", "head"]
