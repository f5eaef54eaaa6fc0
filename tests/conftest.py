"""What every test starts from: a watch for leaks, one seed, and PyTorch's global settings put back afterwards."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import numpy
import pytest
import torch
from hypothesis import settings

from tests.leaks import watching

# Examples are the same on every run, and a busy machine is no failure.
settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")

if "PYTEST_XDIST_WORKER" in os.environ:  # the processes share the cores
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    """No stand-in of the tracer's leaves a call, or reaches a function that would misread it."""
    with watching() as found:
        yield
    assert not found, "\n".join(found)


@pytest.fixture(autouse=True)
def clean_torch_state() -> Iterator[None]:
    """Seeds every random generator; restores dtype, grad mode and determinism however the test left them."""
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    grad, deterministic = torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()
    yield
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(grad)
    torch.use_deterministic_algorithms(deterministic)
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
