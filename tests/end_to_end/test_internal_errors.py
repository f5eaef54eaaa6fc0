"""Whatever goes wrong in our own code while a function is traced is a located error with a code.

The functions of the tracer, of what rewritten code calls, of the gradient and of the executor are broken one after
another: each gets code that raises, at a place in its own file. A program that uses all of them is traced then.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import pkgutil
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import Dy2StaticError, to_static
from runtime.tracer.values import tensor_pairs
from tests.oracle import same

ROOMS = ("runtime.tracer", "runtime.autodiff", "runtime.executor", "dy2static.operators")
REPORTING = {
    "runtime.tracer.recording.faults", "runtime.tracer.ambient.state", "runtime.tracer.ambient.theirs",
    "runtime.executor.traceback",
    "dy2static.operators.shared.handler",
}  # fmt: skip
"""Modules that tell of errors, and the slot that the session is in."""
REPORTING_NAMES = {
    "Session.error", "Session.location", "Place.set", "Place.put_back", "_is_slot", "_set_attribute", "_set_content",
    "_registered", "found_in", "take_out", "take_own", "to_fill", "attributes", "is_plain", "storage_key", "slots_of",
    "module_name", "unasked", "has_unasked",
}  # fmt: skip
"""Functions of other modules that do; ``Place.set``, what it calls and what calls it put the user's objects back; the
next two are what the watch for leaks (``tests.leaks``) calls, too; then what a call asks before it is traced, and what
says whose an error is."""
FAULTS = ("assert False, 'broken'", "None.broken", "{}['broken']", "(1)(2)", "raise AssertionError('broken')")
ACTING_FAULTS = ("assert False, 'broken'", "None.broken", "{}['broken']")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.calls = 0
        self.kept: list[Any] = []

    def forward(self, x, n):
        self.calls = self.calls + 1
        y = self.inner(x)
        out = []
        for i in range(n.item()):
            y = y * 0.5 + i
            out.append(y.sum())
        if y.sum() > 0:
            y = y + 1
            z = [x, y]
        else:
            z = [y, x]
        w = torch.zeros(3)
        w[0] = y[0, 0]
        w.add_(1.0)
        while w.sum() < 3:
            w = w + 1
        assert y.shape[0] == 2, "two rows"
        return z[0] * w, torch.stack(out) if out else w, f"{self.calls}"


INPUTS = (torch.tensor([[0.5, 1.0, -1.0], [0.25, 2.0, 0.5]]), torch.tensor(2))


def make() -> Net:
    torch.manual_seed(0)
    return Net()


def run(net: Net) -> Any:
    x = INPUTS[0].clone().requires_grad_()
    result = net(x, INPUTS[1])
    result[0].sum().backward()
    return result, x.grad


def functions() -> dict[types.CodeType, tuple[str, types.FunctionType]]:
    """Every function and method of the rooms, by its code."""
    found: dict[types.CodeType, tuple[str, types.FunctionType]] = {}
    for room in ROOMS:
        package = importlib.import_module(room)
        for info in pkgutil.walk_packages(package.__path__, room + "."):
            module = importlib.import_module(info.name)
            if info.name in REPORTING:
                continue
            for name, value in vars(module).items():
                inside = vars(value).items() if isinstance(value, type) else ((None, value),)
                for inner, one in inside:
                    one = getattr(one, "fget", getattr(one, "__wrapped__", getattr(one, "__func__", one)))
                    if isinstance(one, types.FunctionType) and one.__module__ == info.name and not one.__closure__:
                        label = name if inner is None else f"{name}.{inner}"
                        if one.__code__.co_filename == module.__file__ and label not in REPORTING_NAMES:
                            found[one.__code__] = (f"{info.name}.{label}", one)
    return found


def called_while_tracing() -> list[tuple[str, types.FunctionType]]:
    """Those of them that the program needs, in order."""
    known = functions()
    seen: dict[types.CodeType, None] = {}

    def note(frame: types.FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code in known:
            seen[frame.f_code] = None

    static = to_static(make())
    sys.setprofile(note)
    try:
        static.forward.concrete_program(*INPUTS)
        first = set(seen)
        run(static)
    finally:
        sys.setprofile(None)
    prepares = ("runtime.autodiff.derive", "runtime.autodiff.forward", "runtime.autodiff.backward",
                "runtime.autodiff.segment", "runtime.executor.emitter", "runtime.executor.ownership")  # fmt: skip
    return [known[code] for code in seen if code in first or known[code][0].startswith(prepares)]


def fault(function: types.FunctionType, text: str) -> types.CodeType:
    """Code that does ``text`` in the function's own file."""
    made: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        program = compile(f"def broken(*args, **kwargs):\n    {text}\n", function.__code__.co_filename, "exec")
    exec(program, made)
    code = made["broken"].__code__
    return code.replace(co_name=function.__code__.co_name)


@contextlib.contextmanager
def broken(function: types.FunctionType, text: str) -> Iterator[None]:
    before = function.__code__
    function.__code__ = fault(function, text)
    try:
        yield
    finally:
        function.__code__ = before


def check(name: str, function: types.FunctionType, text: str) -> None:
    eager, expected = run(make())
    static = to_static(make())
    with broken(function, text):
        try:
            run(static)
        except Dy2StaticError as error:
            failure: BaseException | None = error
        except BaseException as error:  # the failure of this test says which
            raise AssertionError(f"{name}: {text} came out as {type(error).__name__}: {error}") from error
        else:
            failure = None  # a part that is only for speed or for messages
    if failure is not None:
        assert failure.code.startswith("D2S2"), (name, failure)
        assert failure.location is not None and failure.location.file == __file__, (name, failure)
        assert failure.hint, name
    lenient = to_static(make(), full_graph=False)
    with broken(function, text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, grad = run(lenient)
    same((result, grad), (eager, expected), name, 1e-6)


@pytest.mark.filterwarnings("ignore:Assigning a code object of non-matching type:DeprecationWarning")
def test_every_function_of_the_tracer(capsys: pytest.CaptureFixture[str]) -> None:
    """A part of them here, each with the next kind of fault; all of them in the slow test."""
    found = called_while_tracing()
    kinds = itertools.cycle(FAULTS)
    chosen = found[::24]
    for name, function in chosen:
        text = next(kinds)
        check(name, function, text if name.startswith("runtime") else ACTING_FAULTS[0])
    with capsys.disabled():
        print(f" {len(chosen)} of {len(found)} functions broken", end="")
    assert len(found) > 250


@pytest.mark.slow
def test_every_function_of_the_tracer_in_full() -> None:
    for number, (name, function) in enumerate(called_while_tracing()):
        check(name, function, FAULTS[number % len(FAULTS)] if name.startswith("runtime") else ACTING_FAULTS[0])


def test_an_operator_that_our_own_code_asks_for_is_no_error_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tensors of different sizes that code of ours compares with ``==``: the real operator raises as well."""
    space: dict[str, Any] = {}
    text = "import torch\ndef may_be(value, option):\n    return bool((torch.ones(3) == torch.ones(4)).all())\n"
    exec(compile(text, str(tensor_pairs.__file__), "exec"), space)

    def f(x: torch.Tensor) -> Any:
        t: Any = (x * 3, x * 3)
        n = 0
        while n < 2 and x.sum() < 100:
            if x.sum() > 0:
                t = (x, x * 2, x)
            n = n + 1
        return t[0] * 1

    same(to_static(f)(torch.ones(3)), f(torch.ones(3)))
    monkeypatch.setattr(tensor_pairs, "_may_be", space["may_be"])
    with pytest.raises(Dy2StaticError, match="D2S290.*size of tensor a"):
        to_static(f)(torch.ones(3))
