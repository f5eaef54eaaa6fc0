"""Writes to slices whose bounds only the run knows: caches that are filled piece by piece, ring buffers."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from tests.oracle import same


def copied(x):
    buffer = torch.zeros(8)
    n = int(x.abs().sum()) % 4
    buffer[n : n + 2].copy_(torch.stack([x[0], x[1]]))
    return buffer


def ring(x):
    memory = torch.zeros(5, 2)
    p = int(x.abs().sum()) % 5
    x = torch.stack([x, x * 2, x * 3])
    if p + len(x) > 5:
        k = 5 - p
        memory[p:] = x[:k]
        memory[: len(x) - k] = x[k:]
    else:
        memory[p : p + len(x)] = x
    return memory


def again(x):
    memory = torch.zeros(5, 2)
    p = int(x.abs().sum()) % 3
    memory[p : p + 2] += x
    memory[p : p + 2] = memory[p : p + 2] * 2
    part = memory[p : p + 3]
    part.mul_(2)
    part[:2] = x
    return memory, part * 1


def one_for_all(x):
    memory = torch.zeros(5, 2)
    p = int(x.abs().sum()) % 5
    memory[p : p + 2] = x
    return memory


def cache(x):
    keys = torch.zeros(1, 8, 2)
    position = int(x.abs().sum()) % 3
    found = []
    for step in range(2):
        keys[:, position : position + 2] = torch.stack([x, x + step])[None]
        position = position + 2
        found.append(keys[:, :position].sum(1))
    return torch.cat(found), position


@pytest.mark.parametrize("needs", [True, False], ids=["with gradients", "without"])
@pytest.mark.parametrize("f", [copied, ring, again, one_for_all, cache], ids=lambda f: f.__name__)
def test_what_a_slice_of_the_run_is_given(f, needs):
    static = to_static(f)
    for value in range(6):
        found = []
        for one in (f, static):
            x = torch.tensor([float(value), 0.4], requires_grad=needs)
            result = one(x)
            first = result[0] if isinstance(result, tuple) else result
            if first.requires_grad:
                first.square().sum().backward()
            found.append((result, x.grad))
        same(found[1], found[0])
