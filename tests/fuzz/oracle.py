"""What a random program does, converted, against what it does in eager."""

from __future__ import annotations

import copy
import importlib.util
import tempfile
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.end_to_end.oracle import _copy, _run, _with_zeros, check, same

ALLOWED = frozenset(
    {
        "D2S222",  # a write to memory that may or may not be shared
        "D2S226",  # a change of a list or dict that may be the same object as another
        "D2S250",  # a loop's variables never reach a fixed structure
        "D2S251",  # items of a list that grows differ in structure
        "D2S254",  # a container that may hold too many different sets of items
        "D2S255",  # a value that may be one of too many
    }
)
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Outcome:
    """``kind``: same, refused, different or internal; ``code`` of what refused it."""

    kind: str
    code: str = ""
    detail: str = ""


def inputs(seed: int) -> list[tuple[Any, ...]]:
    """Three calls: mixed signs, all positive, all negative. Every fourth program gets another int in the last one."""
    generator = torch.Generator().manual_seed(seed)
    calls = []
    for number, shift in enumerate((0.0, 1.0, -1.0)):
        x = (torch.randn(3, generator=generator) + shift).requires_grad_()
        y = (torch.randn(3, generator=generator) * 0.5).requires_grad_()
        calls.append((x, y, (seed + (number // 2 if seed % 4 == 0 else 0)) % 3))
    return calls


def load(source: str, seed: int, folder: str) -> types.ModuleType:
    """The program, from a real file."""
    path = Path(folder) / f"program_{seed}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(f"fuzz_program_{seed}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judge(source: str, seed: int) -> Outcome:
    """Run a program on the inputs of a seed."""
    with tempfile.TemporaryDirectory() as folder:
        module = load(source, seed, folder)
        try:
            if hasattr(module, "Model"):
                check_model(module.Model, inputs(seed))
            else:
                check(module.f, *inputs(seed), tolerance=TOLERANCE, paths=("program",), none_is_zero=True)
        except AssertionError as error:
            return Outcome("different", difference(str(error)), str(error))
        except Dy2StaticError as error:
            return Outcome("refused" if error.code in ALLOWED else "internal", error.code, str(error))
        except Exception as error:  # whatever it is, it is ours
            return Outcome("internal", type(error).__name__, "".join(traceback.format_exception(error))[-3000:])
    return Outcome("same")


def difference(text: str) -> str:
    """What differs, in a word or two."""
    words = "message", "eager raises", "requires_grad", "gradients", "random stream", "arguments", "buffers", "items"
    for word in words:
        if word in text:
            return word
    if "<class" in text:
        return "type"
    return "value"


def check_model(model: type[torch.nn.Module], calls: list[tuple[Any, ...]]) -> None:
    """A module and its conversion, each through all calls, so that what one leaves behind is there in the next."""
    torch.manual_seed(1234)
    eager = model()
    layer = dy2static.to_static(copy.deepcopy(eager))
    for number, call in enumerate(calls):
        mine, theirs = _copy(call), _copy(call)
        eager.zero_grad()
        layer.zero_grad()
        parameters = [list(module.parameters()) for module in (layer, eager)]
        expected = _run(eager, [*theirs], number, parameters[1])
        got = _run(layer, [*mine], number, parameters[0])
        where = f"call {number}"
        if isinstance(got[0], Dy2StaticError):
            raise got[0]
        if isinstance(expected[0], Exception):
            said = f"{where}: eager raises {expected[0]!r}, converted gives {got[0]!r}"
            assert type(got[0]) is type(expected[0]), said
            assert str(got[0]).split("\n")[0] == str(expected[0]).split("\n")[0], f"{where} message"
            return
        if isinstance(got[0], Exception):
            raise got[0]
        same(got[0], expected[0], where, TOLERANCE)
        refused = [any(isinstance(grad, str) for grad in grads) for grads in (got[1], expected[1])]
        assert refused[0] == refused[1], f"{where} gradients refused"
        if not any(refused):
            same(_with_zeros(got)[1], _with_zeros(expected)[1], f"{where} gradients", TOLERANCE)
        same(dict(layer.named_buffers()), dict(eager.named_buffers()), f"{where} buffers", TOLERANCE)
        same(layer.steps, eager.steps, f"{where} self.steps")
        same(got[2], expected[2], f"{where} random stream")
