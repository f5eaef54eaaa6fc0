"""Programs that were built by hand as files: training goes on to the bit, inference gives what the Program gave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import runtime
from runtime import static
from runtime.errors import ProgramError, StorageError
from runtime.static import optimizer

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: optimizer.SGD(0.1), "momentum": lambda: optimizer.Momentum(0.1),
    "adam": lambda: optimizer.Adam(0.01, grad_clip=static.ClipGradByGlobalNorm(0.5)),
    "adamw by a function": lambda: optimizer.AdamW(lambda: 0.02),
}  # fmt: skip


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, 3))


def batch(number: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    return {"x": torch.randn(5 + number, 4, generator=generator),
            "label": torch.randint(0, 3, (5 + number,), generator=generator)}  # fmt: skip


class Built:
    """A network with its optimizer, after three steps."""

    def __init__(self, make: Callable[[], Any] = OPTIMIZERS["adam"], module: nn.Module | None = None) -> None:
        self.main, self.startup = static.Program("main"), static.Program("startup")
        self.scope, self.executor = static.Scope(), static.Executor("cpu")
        with static.program_guard(self.main, self.startup):
            self.x, self.label = static.data("x", [None, 4]), static.data("label", [None], "int64")
            self.scores = (module or network())(self.x)
            self.prediction = torch.softmax(self.scores, 1)
            self.loss = F.cross_entropy(self.scores, self.label)
            make().minimize(self.loss)
        torch.manual_seed(0)
        self.executor.run(self.startup, scope=self.scope)
        for number in range(3):
            self.step(self.main, number, self.scope)

    def step(self, program: static.Program, number: int, scope: static.Scope) -> float:
        torch.manual_seed(number)
        name = self.main.name_of(self.loss)
        return float(self.executor.run(program, batch(number), [name], scope=scope)[0])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on(name: str, tmp_path: Path) -> None:
    built = Built(OPTIMIZERS[name])
    static.save(built.main, tmp_path / "run", built.scope)
    scope = static.Scope()
    loaded = static.load(tmp_path / "run", scope)
    assert {*scope.names()} == {*built.scope.names()}
    for number in range(3, 8):
        assert built.step(loaded, number, scope) == built.step(built.main, number, built.scope)
    for held in scope.names():
        assert torch.equal(scope.find_var(held), built.scope.find_var(held)), held


def test_a_loaded_program_is_saved_again(tmp_path: Path) -> None:
    built, scope = Built(), static.Scope()
    static.save(built.main, tmp_path / "one", built.scope)
    again = static.load(tmp_path / "one", scope)
    built.step(again, 3, scope)
    built.step(built.main, 3, built.scope)
    static.save(again, tmp_path / "two", scope)
    other = static.Scope()
    assert built.step(static.load(tmp_path / "two", other), 4, other) == built.step(built.main, 4, built.scope)


def test_learning_rates(tmp_path: Path) -> None:
    """They are saved as the numbers that they are, and can be set."""
    rates = [0.1]
    built = Built(lambda: optimizer.SGD(lambda: rates[0]))
    rates[0] = 0.05
    static.save(built.main, tmp_path / "run", built.scope)
    scope = static.Scope()
    loaded = static.load(tmp_path / "run", scope)
    assert list(loaded.learning_rates.values()) == [0.05]
    rates[0] = loaded.learning_rates["learning_rate_0"] = 0.2
    for number in range(2):
        assert built.step(loaded, number, scope) == built.step(built.main, number, built.scope)
    weight = "linear_1.weight"
    assert torch.equal(scope.find_var(weight), built.scope.find_var(weight))


def test_inference(tmp_path: Path) -> None:
    """The fetched results only, in evaluation; as a Program and as a module."""
    built = Built()
    x = torch.randn(7, 4)
    fed = {"x": x, "label": torch.zeros(7, dtype=torch.long)}
    expected = built.executor.run(built.main.clone(for_test=True), fed, [built.prediction, built.scores],
                                  scope=built.scope)  # fmt: skip
    names = [built.main.name_of(one) for one in (built.prediction, built.scores)]
    file = static.save_inference_model(
        tmp_path / "net", [built.x], [built.prediction, built.scores], built.main, built.scope)
    scope = static.Scope()
    loaded = static.load(file, scope)
    assert (loaded.feed_names, loaded.fetch_names) == (["x"], names)
    assert {*scope.names()} == {
        "linear_0.weight", "linear_0.bias", "linear_1.weight", "linear_1.bias", "batchnorm1d_0.weight",
        "batchnorm1d_0.bias", "batchnorm1d_0.running_mean", "batchnorm1d_0.running_var"}  # fmt: skip
    got = built.executor.run(loaded, {"x": x}, loaded.fetch_names, scope=scope)
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    layer: Any = runtime.load(file)
    found = layer(x)
    assert list(found) == names
    for one, theirs in zip(found.values(), expected, strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), theirs)
    assert torch.equal(layer.state_dict()["linear_0.weight"], built.scope.find_var("linear_0.weight"))
    found[names[1]].sum().backward()
    assert layer.linear_0.weight.grad is not None


def test_modules_from_outside(tmp_path: Path) -> None:
    """Their tensors are in the file as they are now; loaded, they are the scope's."""
    torch.manual_seed(3)
    module = network()
    built, scope = Built(module=module), static.Scope()
    static.save(built.main, tmp_path / "run", built.scope)
    loaded = static.load(tmp_path / "run", scope)
    before = module[0].weight.detach().clone()
    first = built.step(loaded, 3, scope)
    assert torch.equal(module[0].weight, before)
    assert first == built.step(built.main, 3, built.scope)


def test_control_flow_and_plain_names(tmp_path: Path) -> None:
    main, startup, scope, executor = static.Program("f"), static.Program(), static.Scope(), static.Executor()
    with static.program_guard(main, startup):
        x = static.data("x", [None])
        w = static.create_parameter([1], name="w")
        big = static.cond(x.sum() > 0, lambda: x * w, lambda: x - w)
        (count,) = static.while_loop(lambda c: (c < 10).all(), lambda c: [c * c + 1], [big.sum()])
    executor.run(startup, scope=scope)
    file = static.save_inference_model(tmp_path / "f", ["x"], [count, big], main, scope)
    layer: Any = runtime.load(file)
    for x in (torch.ones(3), -torch.ones(2)):
        expected = executor.run(main, {"x": x}, [count, big], scope=scope)
        for one, theirs in zip(layer(x=x).values(), expected, strict=True):
            np.testing.assert_array_equal(one.detach().numpy(), theirs)


def with_function() -> static.Program:
    def sinc(x: Any) -> Any:
        return np.sinc(x)

    main = static.Program("main")
    with static.program_guard(main, static.Program()):
        x = static.data("x", [None, 2])
        out = static.py_func(sinc, x, main.current_block().create_var("out", "float32", (None, 2)))
        out + 1
    return main


WRONG: dict[str, tuple[Callable[[Built, Path], Any], type[Exception], str]] = {
    "feed": (lambda b, p: static.save_inference_model(p, ["y"], [b.scores], b.main, b.scope), ProgramError,
             "feed has 'y', which is no input of the Program"),
    "fetch": (lambda b, p: static.save_inference_model(p, ["x"], ["y"], b.main, b.scope), ProgramError,
              "no variable called 'y'"),
    "too little fed": (lambda b, p: static.save_inference_model(p, ["x"], [b.loss], b.main, b.scope), ProgramError,
                       "depends on 'label', which is not in feed"),
    "no values": (lambda b, p: static.save(b.main, p, static.Scope()), ProgramError, "has no value yet"),
    "no values for inference": (
        lambda b, p: static.save_inference_model(p, ["x"], [b.scores], b.main, static.Scope()), ProgramError,
        "has no value yet"),
    "a function": (lambda b, p: static.save(with_function(), p), StorageError, r"function 'sinc' \(py_func\)"),
    "a function in inference": (
        lambda b, p: static.save_inference_model(p, ["x"], ["out"], with_function()), StorageError,
        r"function 'sinc' \(py_func\)"),
    "no folder": (lambda b, p: static.save(b.main, Path(__file__) / "a" / "b", b.scope), StorageError, "is no folder"),
    "no file": (lambda b, p: static.load(p), StorageError, "D2S506"),
    "fetched after loading": (
        lambda b, p: b.executor.run(static.load(static.save(b.main, p, b.scope), static.Scope()), batch(0), ["y"]),
        ProgramError, "no variable called 'y'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_refused(kind: str, tmp_path: Path) -> None:
    use, error, text = WRONG[kind]
    with pytest.raises(error, match=text):
        use(Built(), tmp_path / "file")
    if kind not in ("fetched after loading",):
        assert not list(tmp_path.iterdir())


def test_other_files(tmp_path: Path) -> None:
    from dy2static import save

    linear = nn.Linear(2, 1)
    file = save(linear, tmp_path / "linear", input_spec=[torch.ones(3, 2)])
    with pytest.raises(StorageError, match=r"no Program that was built by hand[\s\S]*runtime.load"):
        static.load(file)
