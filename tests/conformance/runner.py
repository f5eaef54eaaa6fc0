"""Runs a case: converted against eager on every call, or refused at the user's line with the code it states."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

import dy2static
from dy2static import StaticFunction, settings
from dy2static.errors import Dy2StaticError
from runtime.autodiff import gradient_path
from runtime.calling.executors import EXECUTORS
from runtime.executor.coverage import BlockRuns
from tests.conformance.family import Call, Case
from tests.end_to_end.oracle import _copy, _tensors, check, same

_OURS = re.compile(r"_d2s|\b[us]\d+\b|TODO")
_PATH = re.compile(r"\(at [^)]*\)")
_SEARCH = 200
_PATHS = ("program", "autograd")


def run(case: Case, backend: str = "interpreter", rounding: float = 0.0) -> list[BlockRuns]:
    """Run a case; the Blocks of its Programs with how often they ran. AssertionError if it is not as it says.

    ``rounding``: what results may differ by in any case, where a backend computes in another order.
    """
    if rounding > case.tolerance:
        case = dataclasses.replace(case, tolerance=rounding)
    with mock.patch.dict(os.environ, {settings.BACKEND_VARIABLE: backend}):
        return _run(case, backend)


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
    missed = [block for block in blocks if not block.runs]
    assert len(missed) == case.idle, "these Blocks never ran:\n" + "\n".join(map(str, missed))
    return blocks


@contextmanager
def _counting(backend: str) -> Iterator[None]:
    """Programs made in the block count the runs of their Blocks."""
    compile_program = EXECUTORS[backend]

    def compiled(*args: Any, **kwargs: Any) -> Any:
        return compile_program(*args, coverage=True, **kwargs)

    with mock.patch.dict(EXECUTORS, {backend: compiled}):
        yield


def blocks_of(function: StaticFunction) -> list[BlockRuns]:
    """Every Block of every Program of a converted function."""
    return [
        block
        for one in function._cache.all()
        for block in one.traced.executable.plain.coverage_report().blocks  # type: ignore[union-attr]
    ]


def _refuses(case: Case) -> None:
    """Each call gives what eager gives, or the error the case states; at least one gives the error."""
    torch.manual_seed(1234)
    module = case.target() if case.kind == "module" else None
    converted = dy2static.to_static(case.target if module is None else module)
    refused = 0
    for call in case.calls:
        try:
            got = converted(*_copy(call))
        except Dy2StaticError as error:
            assert_refused(error, case.refused, case.target.__module__)
            refused += 1
        else:
            same(got, case.target(*_copy(call)) if module is None else _eager(case)(*_copy(call)))
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
    generator = torch.Generator().manual_seed(0)
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
    """A module on every call: results, gradients, buffers and attributes, on both gradient paths."""
    torch.manual_seed(1234)
    original = case.target()
    for path in _PATHS:
        eager = copy.deepcopy(original)
        layer = dy2static.to_static(copy.deepcopy(original))
        for number, call in enumerate(_calls(case, layer.forward)):
            mine, theirs = _copy(call), _copy(call)
            with gradient_path(path):
                got = _call(layer, mine, number)
            expected = _call(eager, theirs, number)
            where = f"call {number} ({path})"
            if isinstance(expected[0], Exception):
                assert type(got[0]) is type(expected[0]), f"{where}: {expected[0]!r} and {got[0]!r}"
                assert str(got[0]).split("\n")[0] == str(expected[0]).split("\n")[0], where
                continue
            if isinstance(got[0], Exception):
                raise got[0]
            same(got[0], expected[0], where, case.tolerance)
            same(got[1], expected[1], f"{where} gradients", max(case.tolerance, 1e-6))
            same(got[2], expected[2], f"{where} state", case.tolerance)
            same(mine, theirs, f"{where} arguments", case.tolerance)
            same(got[3], expected[3], f"{where} random stream")
    return layer.forward


def _call(module: torch.nn.Module, args: Sequence[Any], seed: int) -> tuple[Any, ...]:
    """Result or exception, gradients of parameters and arguments, buffers and attributes, the next random number."""
    torch.manual_seed(seed)
    module.zero_grad(set_to_none=True)
    try:
        result = module(*args)
    except Exception as error:  # whatever eager raises is what is compared
        return error, None, None, None
    outputs = [t for t in _tensors(result) if t.requires_grad]
    leaves = [t for t in _tensors(list(args)) if t.requires_grad and t.is_leaf]
    if outputs:
        sum((t.double().abs() * (index + 1)).sum() for index, t in enumerate(outputs)).backward()
    grads = [{name: p.grad for name, p in module.named_parameters()}, [leaf.grad for leaf in leaves]]
    return result, grads, state_of(module), torch.rand(())


def state_of(module: torch.nn.Module) -> dict[str, Any]:
    """What a user sees of a module between calls: buffers, and attributes that hold data."""
    found: dict[str, Any] = dict(module.named_buffers())
    for prefix, inner in module.named_modules():
        for name, value in vars(inner).items():
            if name.startswith("_") or name == "forward" or callable(value):
                continue
            found[f"{prefix}.{name}"] = vars(value) if hasattr(value, "__dict__") and not _is_plain(value) else value
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, int, float, str, list, tuple, dict, set, type(None)))
