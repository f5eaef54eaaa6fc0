"""The device that tests make their tensors on: the CPU, or what ``DY2STATIC_TEST_DEVICE`` names.

    DY2STATIC_TEST_DEVICE=cuda python -m pytest tests/conformance -m ""
    DY2STATIC_TEST_DEVICE=cuda python -m tests.fuzz.run --count 200

Eager runs on the same device: what is compared is the same. Importing this makes it PyTorch's default device.
"""

from __future__ import annotations

import os

import torch

VARIABLE = "DY2STATIC_TEST_DEVICE"
DEVICE = torch.device(os.environ.get(VARIABLE) or "cpu")

if os.environ.get(VARIABLE):
    torch.set_default_device(DEVICE)


def generator(seed: int) -> torch.Generator:
    """Random numbers on the device."""
    return torch.Generator(device=DEVICE).manual_seed(seed)


def on_cuda() -> bool:
    """Whether tests make their tensors on a CUDA device."""
    return DEVICE.type == "cuda"
