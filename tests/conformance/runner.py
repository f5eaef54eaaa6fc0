"""Runs a case: converted against eager on every call, or refused at the user's line with the code it states."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch

import dy2static
from dy2static import StaticFunction, settings
from dy2static.errors import Dy2StaticError
from runtime.calling.executors import EXECUTORS
from runtime.executor.coverage import BlockRuns
from tests import devices, oracle
from tests.conformance.family import Call, Case
from tests.oracle import PATHS, check, copied, hold_modules, paired, same

_OURS = re.compile(r"_d2s|\b[us]\d+\b|TODO")
_PATH = re.compile(r"\(at [^)]*\)")
_SEARCH = 200


def run(case: Case, backend: str = "interpreter", rounding: float = 0.0) -> list[BlockRuns]:
    """Run a case; the Blocks of its Programs with how often they ran. AssertionError if it is not as it says.

    ``rounding``: what results may differ by in any case, where a backend computes in another order.
    """
    with mock.patch.object(oracle, "ROUNDING", rounding):
        with mock.patch.dict(os.environ, {settings.BACKEND_VARIABLE: backend}):
            try:
                return _run(case, backend)
            except TypeError as error:
                if devices.on_cuda() and str(error).startswith("can't convert cuda"):
                    pytest.skip("NumPy takes no tensors of a device")
                raise


def _run(case: Case, backend: str) -> list[BlockRuns]:
    if case.kind == "scenario":
        case.target()
        return []
    with _counting(backend):
        if case.refused:
            _refuses(case)
            return []
        if case.kind == "module":
            converted = _like_eager(case)
        else:
            converted = check(case.target, *case.calls, tolerance=case.tolerance)
            for call in itertools.islice(_calls(case, converted), len(case.calls), None):
                check(case.target, call, tolerance=case.tolerance, static=converted, paths=("autograd",))
    blocks = blocks_of(converted)
    if backend == "auto" or devices.on_cuda():  # only the interpreter's share is counted; other numbers are drawn
        return blocks
    missed = [block for block in blocks if not block.runs]
    assert len(missed) == case.idle, "these Blocks never ran:\n" + "\n".join(map(str, missed))
    return blocks


@contextmanager
def _counting(backend: str) -> Iterator[None]:
    """Programs made in the block count the runs of their Blocks."""
    executor = EXECUTORS[backend]

    def compiled(*args: Any, **kwargs: Any) -> Any:
        return executor.compile(*args, coverage=True, **kwargs)

    with mock.patch.dict(EXECUTORS, {backend: replace(executor, compile=compiled)}):
        yield


def blocks_of(function: StaticFunction) -> list[BlockRuns]:
    """Every Block of every Program of a converted function."""
    return [
        block
        for one in function._dispatch.cache.all()
        for block in one.ready.runner.plain.coverage_report().blocks  # type: ignore[union-attr]
    ]


def _refuses(case: Case) -> None:
    """Each call gives what eager gives, or the error the case states; at least one gives the error."""
    torch.manual_seed(1234)
    module = case.target() if case.kind == "module" else None
    converted = dy2static.to_static(case.target if module is None else module)
    refused = 0
    for call in case.calls:
        try:
            got = converted(*copied(call))
        except Dy2StaticError as error:
            assert_refused(error, case.refused, case.target.__module__)
            refused += 1
        else:
            same(got, case.target(*copied(call)) if module is None else _eager(case)(*copied(call)))
    assert refused, f"it was to be refused with {case.refused}, and works"


def _eager(case: Case) -> Any:
    torch.manual_seed(1234)
    return case.target()


def assert_refused(error: Dy2StaticError, code: str, module: str) -> None:
    """The error has the code, shows the user's line, and names nothing that the user did not write."""
    assert error.code == code, f"{error.code} instead of {code}: {error}"
    assert error.location is not None and error.location.text, f"the error shows no line: {error}"
    assert error.location.file.endswith(module.replace(".", "/") + ".py"), f"not the user's file: {error}"
    said = _PATH.sub("", error.summary + error.hint)  # a folder may be called anything
    assert not _OURS.search(said), f"a name of our own: {error}"
    assert error.hint, f"the error does not say what to change: {error}"


def _calls(case: Case, converted: StaticFunction) -> Iterator[Call]:
    """The case's calls, then random ones until every Block that can run has."""
    yield from case.calls
    generator = devices.generator(0)
    for number in range(_SEARCH if case.search else 0):
        if sum(not block.runs for block in blocks_of(converted)) <= case.idle:
            return
        scale = case.search * (0.2, 0.5, 1.0, 2.0)[number % 4]
        yield varied(case.calls[number % len(case.calls)], scale, generator)


def varied(call: Sequence[Any], scale: float, generator: torch.Generator) -> list[Any]:
    """A call with other numbers in its tensors of float32."""
    found = []
    for item in call:
        if isinstance(item, torch.Tensor) and item.dtype is torch.float32:
            noise = torch.randn(item.shape, generator=generator) * scale
            shift = torch.randn((), generator=generator) * scale
            found.append((noise + shift).requires_grad_(item.requires_grad))
        else:
            found.append(item)
    return found


def _like_eager(case: Case) -> StaticFunction:
    """A module on every call, on both gradient paths."""
    for path in PATHS:
        layer, eager = paired(case.target)
        hold_modules(layer, eager, _calls(case, layer.forward), path, tolerance=case.tolerance)
    return layer.forward
