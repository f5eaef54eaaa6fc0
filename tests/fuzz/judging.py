"""What a random program does, converted, against what it does in eager."""

from __future__ import annotations

import random
import tempfile
import traceback
import types
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests import devices
from tests.from_files import module_of
from tests.oracle import Terms, check, copied, hold, hold_modules, opened, paired, run

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
    generator = devices.generator(seed)
    calls = []
    for number, shift in enumerate((0.0, 1.0, -1.0)):
        x = (torch.randn(3, generator=generator) + shift).requires_grad_()
        y = (torch.randn(3, generator=generator) * 0.5).requires_grad_()
        calls.append((x, y, (seed + (number // 2 if seed % 4 == 0 else 0)) % 3))
    return calls


def extreme_inputs(seed: int) -> list[tuple[Any, ...]]:
    """The same with zeros, infinities and numbers that overflow among the elements: formulas that a path does not use
    are infinite there."""
    chance = random.Random(seed)
    calls = inputs(seed)
    with torch.no_grad():
        for call in calls:
            for tensor in call[:2]:
                for index in range(len(tensor)):
                    if chance.random() < 0.4:
                        tensor[index] = chance.choice((0.0, 0.0, 1e20, -1e20, float("inf"), -1.0, 1.0))
    return calls


def load(source: str, seed: int, folder: str) -> types.ModuleType:
    """The program, from a real file."""
    path = Path(folder) / f"program_{seed}.py"
    path.write_text(source)
    return module_of(path, f"fuzz_program_{seed}")


OF_FILES = frozenset(
    {
        "D2S319",  # an argument that answers otherwise than the examples that a file is made of
        "D2S515",  # an operator that files do not hold
        "D2S518",  # a store that changes what the Program was traced for
        "D2S520",  # gradients that are left in .grad
    }
)


def judge(
    source: str, seed: int, given: Callable[[int], list[tuple[Any, ...]]] = inputs, loaded: bool = False
) -> Outcome:
    """Run a program on the inputs of a seed; ``loaded``: what comes back from a file that it is saved to."""

    def compare(folder: str) -> None:
        module = load(source, seed, folder)
        if loaded:
            _compare_loaded(module, seed, given(seed), Path(folder) / "saved")
        elif hasattr(module, "Model"):
            layer, eager = paired(module.Model)
            hold_modules(layer, eager, given(seed), to_the_end=False, tolerance=TOLERANCE, none_is_zero=True,
                         separate_gradients=True)
        else:
            check(module.f, *given(seed), tolerance=TOLERANCE, paths=("program",), none_is_zero=True,
                  separate_gradients=True)

    return judged(compare, ALLOWED | OF_FILES if loaded else ALLOWED)


def _compare_loaded(module: types.ModuleType, seed: int, calls: list[tuple[Any, ...]], file: Path) -> None:
    """A file has what the calls' tensors look like; numbers among the arguments are constants of its Programs."""
    terms: dict[str, Any] = {"tolerance": TOLERANCE, "none_is_zero": True, "separate_gradients": True, "by_name": True}
    for constants in dict.fromkeys(_constants(call) for call in calls):
        same = [call for call in calls if _constants(call) == constants]
        specs = [dy2static.InputSpec.from_tensor(one) if isinstance(one, torch.Tensor) else one for one in same[0]]
        if hasattr(module, "Model"):
            layer, eager = paired(module.Model)
            dy2static.save(layer, file, input_spec=specs)
            _hold_loaded(dy2static.load(file).train(), eager, same, Terms(**terms))
        else:
            dy2static.save(module.f, file, input_spec=specs)
            saved = dy2static.load(file)
            check(lambda *args: opened(module.f(*args)), *same, static=lambda *args: opened(saved(*args)),
                  paths=("program",), **terms)


def _hold_loaded(
    loaded: torch.nn.Module, eager: torch.nn.Module, calls: list[tuple[Any, ...]], terms: Terms
) -> None:
    """As ``hold_modules``; of what a layer holds a loaded one shows what has a name in its state dict."""
    names = [name for name, _ in eager.named_parameters()]
    theirs_by_name, mine_by_name = dict(eager.named_parameters()), dict(loaded.named_parameters())
    for number, call in enumerate(calls):
        mine, theirs = copied(call), copied(call)
        expected = run(lambda *args: opened(eager(*args)), theirs, number, [theirs_by_name[name] for name in names])
        got = run(lambda *args: opened(loaded(*args)), mine, number, [mine_by_name[name] for name in names])
        state = eager.state_dict()
        around = [("arguments", mine, theirs),
                  ("state", dict(loaded.state_dict()), {name: state[name] for name in loaded.state_dict()})]
        if not hold(got, expected, f"call {number}", terms, around):
            return


def _constants(call: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one for one in call if not isinstance(one, torch.Tensor))


def judged(compare: Callable[[str], None], allowed: Set[str], source: str = "") -> Outcome:
    """What comes of a comparison, which is given a folder; ``source`` is shown with what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            compare(folder)
        except AssertionError as error:
            return Outcome("different", difference(str(error)), f"{error}\n{source}")
        except Dy2StaticError as error:
            return Outcome("refused" if error.code in allowed else "internal", error.code, f"{error}\n{source}")
        except Exception as error:  # whatever it is, it is ours
            text = "".join(traceback.format_exception(error))[-3000:]
            return Outcome("internal", type(error).__name__, f"{text}\n{source}")
    return Outcome("same")


def difference(text: str) -> str:
    """What differs, in a word or two."""
    words = (
        "retraced",
        "message", "eager raises", "requires_grad", "gradients", "random stream", "printed", "arguments", "state",
        "identity", "items",
    )  # fmt: skip
    for word in words:
        if word in text:
            return word
    if "<class" in text:
        return "type"
    return "value"
