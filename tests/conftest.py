"""What every test starts from: a watch for leaks, one seed, and PyTorch's global settings put back afterwards.

    python -m pytest tests/conformance --frames
    python -m pytest tests/conformance tests/end_to_end/test_containers_by_reference.py --held
    python -m pytest tests/conformance --checkpoints 3

run tests while a debugger reads the local variables of all frames, as if something else referred to every object, and
with gradients of loops that keep three states: the results must be the same (see ``tests.frames`` and
``runtime.autodiff.checkpoints``).
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import shutil
import tempfile
import types
from collections.abc import Iterator
from contextlib import ExitStack
from unittest import mock

import pytest
import torch
from hypothesis import settings
from torch.distributions import Distribution

from runtime.autodiff import checkpoints, node
from tests.frames import all_held, looked_at
from tests.leaks import watching
from tests.oracle import seeded
from tests.order import slowest_first
from tests.sampling import mark_the_others_slow

# Examples are the same on every run, and a busy machine is no failure.
settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")

os.environ.setdefault("DY2STATIC_VERIFY_PASSES", "1")  # each pass leaves a Program that holds

if "DY2STATIC_CACHE" not in os.environ:  # compiled libraries, for this session and the processes that it starts
    os.environ["DY2STATIC_CACHE"] = tempfile.mkdtemp(prefix="dy2static-tests-")
    atexit.register(shutil.rmtree, os.environ["DY2STATIC_CACHE"], ignore_errors=True)

if "PYTEST_XDIST_WORKER" in os.environ:  # the processes share the cores
    torch.set_num_threads(1)

gc.set_threshold(20_000, 20, 20)  # looking for garbage among 10,000 tests took a tenth of their time

# PyTorch keeps records of each trace for a service of its makers, with a picture of the stack for each symbol. It stops
# at the first that nobody takes; pytest takes those of every logger that does not propagate.
_records = logging.getLogger("torch.__trace")
_records.handlers.clear()
_records.propagate = True


def pytest_addoption(parser: pytest.Parser) -> None:
    """What tests can be run under."""
    parser.addoption("--checkpoints", type=int, help="the gradient of each loop keeps so many of its states")
    parser.addoption("--frames", action="store_true", help="a debugger reads f_locals of all frames")
    parser.addoption("--goldens", action="store_true", help="write the tracer's goldens anew (see tests.goldens)")
    parser.addoption("--held", action="store_true", help="as if something referred to every object of a trace")


def pytest_configure(config: pytest.Config) -> None:
    """Where several processes share the files, they take them in the order of ``tests.order``. Garbage is collected
    less often than in a user's process."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    gc.set_threshold(50_000, 20, 50)  # a trace makes many objects, and looks through all of torch's were a tenth of it


@pytest.hookimpl(tryfirst=True)  # before those that are slow are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """See there, and ``tests.sampling``."""
    mark_the_others_slow(items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        slowest_first(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """The reporter keeps the tests that are left out, to count them: most objects of the process, and whatever looks
    through all objects looks at them."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and "deselected" in reporter.stats:
        reporter.stats["deselected"] = [types.SimpleNamespace()] * len(reporter.stats["deselected"])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collecting tests makes nothing but what stays, or is left out: garbage is looked for afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()


@pytest.fixture(autouse=True)
def straight_lines_have_backward_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small calls without branches would run under torch's autograd, and the formulas of a Program stay untested."""
    monkeypatch.setattr(node, "BIG", 0)


@pytest.fixture(autouse=True)
def onlookers(request: pytest.FixtureRequest) -> Iterator[None]:
    """The debugger and the references that were asked for."""
    with ExitStack() as stack:
        if request.config.getoption("--frames"):
            stack.enter_context(looked_at())
        if request.config.getoption("--held"):
            stack.enter_context(all_held())
        if most := request.config.getoption("--checkpoints"):
            stack.enter_context(mock.patch.object(checkpoints, "asked", lambda op: most))
        yield


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    """No stand-in of the tracer's leaves a call, or reaches a function that would misread it."""
    with watching() as found:
        yield
    assert not found, "\n".join(found)


@pytest.fixture(autouse=True)
def clean_torch_state() -> Iterator[None]:
    """Seeds every random generator; restores dtype, grad mode and determinism however the test left them.

    torch.compile lets distributions check no arguments from then on; that is undone as well.
    """
    seeded(0)
    validate = Distribution._validate_args
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    grad, deterministic = torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()
    yield
    Distribution.set_default_validate_args(validate)
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(grad)
    torch.use_deterministic_algorithms(deterministic)
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
