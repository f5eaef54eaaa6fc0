"""What users do to the parts and tensors of a loaded layer: as eager, or an error that says what is not followed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from runtime.errors import SignatureError
from tests.oracle import same

X = torch.linspace(-3, 4, 15).view(5, 3)


class Inner(nn.Module):
    """An activation that may be missing, a part in two places, one that only the other method calls."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.act = nn.ReLU()
        self.rest = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Sequential(nn.Sigmoid()))
        self.again = self.first
        self.aside = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        if self.act is not None:
            h = self.act(h)
        while h.norm() > 2:
            h = self.rest(h) * 0.3
        return self.again(h)

    def other(self, x: torch.Tensor) -> torch.Tensor:
        return self.aside(x)


class Tied(nn.Module):
    """A parameter and a buffer, each with two names."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 3)
        self.bias = self.out.bias
        self.register_buffer("scale", torch.full((3,), 2.0))
        self.register_buffer("same", self.scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.out(x)
        while h.norm() > 3:
            h = h / self.scale + self.bias * 0.1
        return h * self.same


def paired(make: Callable[[], Any], folder: Path) -> tuple[Any, Any]:
    """A loaded layer and the original, in training."""
    torch.manual_seed(0)
    model = make()
    methods = ["other"] if isinstance(model, Inner) else None
    spec = dy2static.InputSpec([None, 3])
    path = dy2static.save(model, folder / "model", [spec], methods=None if methods is None else {"other": [spec]})
    return dy2static.load(path).train(), model.train()


def outcome(module: Any) -> list[Any]:
    module.zero_grad()
    result = module(X)
    result.square().sum().backward()
    return [result, {name: one.grad for name, one in module.named_parameters(remove_duplicate=False)}]


def put(path: str, made: Callable[[], Any]) -> Callable[[Any], None]:
    """A change of a module: something else stands at a place."""

    def change(module: Any) -> None:
        above, _, name = path.rpartition(".")
        module.get_submodule(above)._modules[name] = made()

    return change


def gone(path: str) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        above, _, name = path.rpartition(".")
        del module.get_submodule(above)._modules[name]

    return change


def exchanged(module: Any) -> None:
    rest = module.get_submodule("rest")
    rest._modules["1"], module._modules["act"] = module._modules["act"], rest._modules["1"]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("change", "message"), [
    (put("act", nn.GELU), r"D2S314. the part 'act' .* was replaced by a GELU"),
    (put("act", lambda: None), r"D2S309. the part 'act' was removed"),
    (gone("act"), r"D2S309. the part 'act' was removed"),
    (put("first", lambda: nn.Linear(3, 3)), r"D2S314. the part 'again' .* is another module than 'first'"),
    (put("again", lambda: nn.Linear(3, 3)), r"D2S314. the part 'again' .* is another module than 'first'"),
    (put("rest.0", lambda: nn.Linear(3, 3)), r"D2S314. the part 'rest.0' .* was replaced by a Linear"),
    (put("rest.1", nn.ReLU), r"D2S314. the part 'rest.1' .* was replaced by a ReLU"),
    (put("rest.2.0", nn.ReLU), r"D2S314. the part 'rest.2.0' .* was replaced by a ReLU"),
    (put("rest.2", nn.ReLU), r"D2S314. the part 'rest.2' .* was replaced by a ReLU"),
    (put("rest", lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU())), r"D2S314. the part 'rest.0' .* replaced by a Lin"),
    (gone("rest"), r"D2S309. the part 'rest.0' was removed"),
    (exchanged, r"D2S314. the part '(act|rest.1)' .* was replaced by the part '(act|rest.1)'"),
])  # fmt: skip
def test_another_module_in_a_place_is_refused(
    change: Callable[[Any], None], message: str, training: bool, tmp_path: Path
) -> None:
    layer, _ = paired(Inner, tmp_path)
    layer(X)
    change(layer)
    with pytest.raises(SignatureError, match=message) as e:
        layer.train(training)(X)
    assert e.value.location is not None and e.value.location.file == __file__


@pytest.mark.parametrize("change", [gone("aside"), put("aside", nn.Identity), put("more", lambda: nn.Linear(3, 3))])
def test_a_module_that_a_method_does_not_call_may_be_another(change: Callable[[Any], None], tmp_path: Path) -> None:
    layer, model = paired(Inner, tmp_path)
    change(layer)
    change(model)
    same(outcome(layer), outcome(model), tolerance=1e-6)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_have_their_parts(copied: Callable[[Any], Any], tmp_path: Path) -> None:
    layer, model = paired(Inner, tmp_path)
    same(outcome(copied(layer)), outcome(model), tolerance=1e-6)
    other = copied(layer)
    other._modules = dict(other._modules, act=nn.GELU())
    with pytest.raises(SignatureError, match="D2S314"):
        other(X)


@pytest.mark.parametrize("register", [
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "register_backward_hook",
])  # fmt: skip
@pytest.mark.parametrize("path", ["act", "rest.0", "rest.2.0"])
def test_hooks_of_a_part_are_refused(register: str, path: str, tmp_path: Path) -> None:
    layer, _ = paired(Inner, tmp_path)
    hook = getattr(layer.get_submodule(path), register)(lambda *args: None)
    with pytest.raises(SignatureError, match=rf"D2S314. the part '{path}' of a loaded layer has (for|back)ward hooks"):
        layer(X)
    hook.remove()
    layer(X)


class Empty(nn.Module):
    """Slots that hold None."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3, bias=False)
        self.norm = nn.BatchNorm1d(3, affine=False, track_running_stats=False)
        self.register_buffer("offset", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.lin(x))
        return h if self.offset is None else h + self.offset


@pytest.mark.parametrize(("path", "make"), [
    ("offset", torch.ones), ("lin.bias", nn.Parameter), ("norm.weight", nn.Parameter),
    ("norm.running_mean", torch.ones),
])  # fmt: skip
def test_a_tensor_where_none_was_is_refused(path: str, make: Callable[[Any], Any], tmp_path: Path) -> None:
    layer, model = paired(Empty, tmp_path)
    same(outcome(layer), outcome(model), tolerance=1e-6)
    above, _, name = path.rpartition(".")
    setattr(layer.get_submodule(above), name, make(torch.ones(3) if make is nn.Parameter else 3))
    with pytest.raises(SignatureError, match=rf"D2S309. '{path}' was None when the layer was saved"):
        layer(X)


def parametrized(module: Any) -> None:
    class Doubled(nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight * 2

    nn.utils.parametrize.register_parametrization(module.get_submodule("rest.0"), "weight", Doubled())
    nn.utils.parametrizations.weight_norm(module.get_submodule("first"))


def test_parametrizations_of_a_part(tmp_path: Path) -> None:
    layer, model = paired(Inner, tmp_path)
    parametrized(layer)
    parametrized(model)
    same(outcome(layer), outcome(model), tolerance=1e-6)


def assigned(module: Any) -> None:
    module.load_state_dict({name: value + 1 for name, value in module.state_dict().items()}, assign=True)


def detached(module: Any) -> None:
    """Two parameters that share their memory."""
    module.load_state_dict(module.state_dict(), assign=True)


UNTIED = [
    lambda module: setattr(module, "bias", nn.Parameter(torch.ones(3))),
    lambda module: setattr(module.get_submodule("out"), "bias", nn.Parameter(torch.ones(3))),
    lambda module: setattr(module, "same", torch.ones(3)),
    lambda module: setattr(module, "scale", torch.full((3,), 3.0)),
    assigned,
    detached,
]


@pytest.mark.parametrize("change", UNTIED)
def test_one_tensor_that_became_two_is_refused(change: Callable[[Any], None], tmp_path: Path) -> None:
    layer, _ = paired(Tied, tmp_path)
    change(layer)
    with pytest.raises(SignatureError, match=r"D2S309. '.*' and '.*' were one tensor when the layer was saved"):
        layer(X)


def test_the_same_memory_will_do_without_gradients(tmp_path: Path) -> None:
    layer, model = paired(Tied, tmp_path)
    detached(layer)
    with torch.no_grad():
        same(layer(X), model(X))


@pytest.mark.parametrize("change", [*UNTIED[:2], assigned])
def test_tied_again(change: Callable[[Any], None], tmp_path: Path) -> None:
    layer, model = paired(Tied, tmp_path)
    for module in (layer, model):
        change(module)
        module.bias = module.get_submodule("out").bias
        module.same = module.scale
    same(outcome(layer), outcome(model), tolerance=1e-6)


def test_ties_stay_where_a_layer_is_moved(tmp_path: Path) -> None:
    paired(Tied, tmp_path)
    layer = dy2static.load(tmp_path / "model", device="meta").to_empty(device="cpu")
    assert layer.bias is layer.get_submodule("out").bias and layer.same is layer.scale
    layer.load_state_dict(dy2static.load_state(tmp_path / "model"))
    same(outcome(layer), outcome(dy2static.load(tmp_path / "model")), tolerance=1e-6)
    again = dy2static.load(dy2static.save(layer, tmp_path / "again"))
    assert again.bias is again.get_submodule("out").bias and again.same is again.scale
