"""What initialises parameters runs once, in the startup Program, and gives eager's numbers; frozen ones stay."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from runtime import static
from runtime.errors import ProgramError
from runtime.static import optimizer

X = torch.arange(8.0).reshape(2, 4) / 8


def no_grad(func: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    def init(weight: torch.Tensor) -> None:
        with torch.no_grad():
            func(weight)

    return init


def rotation(weight: torch.Tensor) -> None:
    q, r = torch.linalg.qr(weight.new_empty(4, 4).normal_())
    with torch.no_grad():
        weight.copy_((q * torch.diag(r).sign())[:3])


def rescaled(weight: torch.Tensor) -> None:
    nn.init.normal_(weight)
    with torch.no_grad():
        norm = weight.norm(dim=1, keepdim=True)
        weight.div_(norm)


def through_like(weight: torch.Tensor) -> None:
    other = torch.randn_like(weight) + torch.ones_like(weight) * 2
    weight.data.copy_(other)


INITS: dict[str, Callable[[torch.Tensor], Any]] = {
    "uniform_": nn.init.uniform_,
    "normal_": nn.init.normal_,
    "trunc_normal_": nn.init.trunc_normal_,
    "trunc_normal_ far out": lambda w: nn.init.trunc_normal_(w, 0.0, 1.0, 1.5, 3.0),
    "trunc_normal_ with a generator": lambda w: nn.init.trunc_normal_(w, generator=torch.Generator().manual_seed(3)),
    "constant_": lambda w: nn.init.constant_(w, 0.5),
    "ones_": nn.init.ones_,
    "zeros_": nn.init.zeros_,
    "eye_": nn.init.eye_,
    "xavier_uniform_": nn.init.xavier_uniform_,
    "xavier_normal_": nn.init.xavier_normal_,
    "kaiming_uniform_": nn.init.kaiming_uniform_,
    "kaiming_normal_": lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu"),
    "orthogonal_": nn.init.orthogonal_,
    "sparse_": lambda w: nn.init.sparse_(w, 0.5),
    "dirac_": lambda w: nn.init.dirac_(w.data.unsqueeze(-1)),
    "with a generator": lambda w: nn.init.normal_(w, generator=torch.Generator().manual_seed(3)),
    "rotation by hand": rotation,
    "rescaled": rescaled,
    "through _like": through_like,
    "data.copy_": lambda w: w.data.copy_(torch.eye(3, 4)),
    "data by index": lambda w: w.data.__setitem__(0, 5.0),
    "detach().fill_": lambda w: w.detach().fill_(3.0),
    "view": no_grad(lambda w: w.view(-1).fill_(2.0)),
    "rows": no_grad(lambda w: [row.fill_(float(n)) for n, row in enumerate(w)]),
    "transposed": no_grad(lambda w: w.T.copy_(torch.randn(4, 3))),
    "from NumPy": no_grad(lambda w: w.copy_(torch.from_numpy(np.arange(12, dtype="float32").reshape(3, 4)))),
    "index_fill_": no_grad(lambda w: w.index_fill_(0, torch.tensor([1]), 2.0)),
    "view with a gradient": lambda w: no_grad(lambda view: view.fill_(2.0))(w.view(-1)),
    "rows with a gradient": lambda w: nn.init.normal_(w[1]),
    "transposed with a gradient": lambda w: nn.init.orthogonal_(w.T),
    "from what has a gradient": lambda w: no_grad(lambda half: w.copy_(half))(w / 2),
    "after a penalty": lambda w: ((w**2).sum(), nn.init.normal_(w)),
    "frozen, then drawn": lambda w: nn.init.orthogonal_(w.requires_grad_(False)),
}


def of_a_module(init: Callable[[torch.Tensor], Any]) -> torch.Tensor:
    layer = nn.Linear(4, 3)
    init(layer.weight)
    return layer.weight


def in_a_module(init: Callable[[torch.Tensor], Any]) -> torch.Tensor:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 3)
            self.apply(self.start)

        def start(self, module: nn.Module) -> None:
            if isinstance(module, nn.Linear):
                init(module.weight)

    return Net().inner.weight


def of_the_parameter(init: Callable[[torch.Tensor], Any]) -> torch.Tensor:
    weight = static.create_parameter([3, 4], default_initializer=nn.init.zeros_)
    init(weight)
    return weight


def by_default_initializer(init: Callable[[torch.Tensor], Any]) -> torch.Tensor:
    return static.create_parameter([3, 4], default_initializer=lambda w: (nn.init.zeros_(w), init(w)))


def eagers(init: Callable[[torch.Tensor], Any], like: Callable[..., torch.Tensor]) -> torch.Tensor:
    torch.manual_seed(5)
    if like in (of_a_module, in_a_module):
        return like(init).detach()
    weight = nn.Parameter(torch.zeros(3, 4))
    init(weight)
    return weight.detach()


@pytest.mark.parametrize("make", [of_a_module, in_a_module, of_the_parameter, by_default_initializer])
@pytest.mark.parametrize("name", INITS)
def test_weights_are_eagers_and_stay_what_they_are(name: str, make: Callable[..., torch.Tensor]) -> None:
    init = INITS[name]
    expected = eagers(init, make)
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 4])
        weight = make(init)
        y = x @ weight.T
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(5)
    executor.run(startup, scope=scope)
    state = torch.get_rng_state()
    (stored,) = [value for key in scope.names() if (value := scope.find_var(key)) is not None and value.dim() == 2]
    assert torch.equal(stored, expected)
    for _ in range(2):
        (found,) = executor.run(main, feed={"x": X}, fetch_list=[y], scope=scope, return_numpy=False)
        assert torch.equal(found, X @ expected.T) and torch.equal(stored, expected)
    assert torch.equal(torch.get_rng_state(), state) and not main.snapshot().stores


def test_a_new_parameter_like_another() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        layer = nn.Linear(4, 3)
        layer.weight = nn.Parameter(torch.full_like(layer.weight, 2.0))
        layer.register_buffer("mask", torch.ones_like(layer.bias))
        y = layer(static.data("x", [2, 4])) * layer.mask + torch.zeros_like(layer.bias)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    bias = scope.find_var("linear_0.bias")
    (found,) = executor.run(main, feed={"x": X}, fetch_list=[y], scope=scope, return_numpy=False)
    assert torch.equal(found, nn.functional.linear(X, torch.full((3, 4), 2.0), bias).detach())
    assert scope.names() == ["linear_0.weight", "linear_0.bias", "linear_0.mask"]


class Average(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.average = copy.deepcopy(self.inner).requires_grad_(False)
        for one in self.average.parameters():
            one.data.mul_(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + nn.functional.linear(x, self.average.weight, self.average.bias)


class Loaded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.load_state_dict(self.a.state_dict())
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.b(self.a(x)))


class Gates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LSTM(4, 4, batch_first=True)
        for name, one in self.inner.named_parameters():
            if "weight_hh" in name:
                for gate in one.chunk(4):
                    nn.init.orthogonal_(gate)
            elif "bias" in name:
                one.data.fill_(0)
                one.data[one.size(0) // 4 : one.size(0) // 2].fill_(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.inner(x)[0])


class Computed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.scale = nn.Parameter(self.inner.weight.norm(dim=1).detach().clone())
        self.register_buffer("mask", (self.inner.weight.abs() > 0.1).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.inner.weight * self.mask * self.scale[:, None], self.inner.bias)


MODULES: dict[str, Callable[[], nn.Module]] = {
    "average": Average, "loaded and tied": Loaded, "gates": Gates, "computed": Computed,
    "encoder": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)),
    "spectral norm": lambda: nn.utils.spectral_norm(nn.Linear(4, 4)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*spectral_norm.*:FutureWarning")
@pytest.mark.parametrize("name", MODULES)
def test_modules_that_compute_their_parameters_train_as_eager(name: str) -> None:
    x_now = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        fetched = MODULES[name]()(static.data("x", [2, 3, 4])).square().mean()
        optimizer.SGD(0.1).minimize(fetched)
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(0)
    executor.run(startup, scope=scope)
    found = [float(executor.run(main, feed={"x": x_now}, fetch_list=[fetched], scope=scope)[0]) for _ in range(4)]
    torch.manual_seed(0)
    model = MODULES[name]()
    step = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.1)
    expected = []
    for _ in range(4):
        step.zero_grad()
        loss = model(x_now).square().mean()
        loss.backward()
        step.step()
        expected.append(float(loss.detach()))
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_penalty_before_data_has_its_gradient() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        layer = nn.Linear(4, 3)
        penalty = (layer.weight**2).sum() + layer.weight.T.abs().sum() * 0
        loss = layer(static.data("x", [2, 4])).sum() * 0 + penalty
        _, pairs = optimizer.SGD(0.25).minimize(loss)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    held = scope.find_var("linear_0.weight")
    assert held is not None
    before = held.detach().clone()
    executor.run(main, feed={"x": X}, scope=scope)
    assert len(pairs) == 2 and torch.allclose(held, before / 2)


def written_later(layer: nn.Linear, x: torch.Tensor) -> None:
    with torch.no_grad():
        view = layer.weight.view(-1)
    layer(x)
    with torch.no_grad():
        view.fill_(0.0)


def used_later(layer: nn.Linear, x: torch.Tensor) -> None:
    penalty = (layer.weight**2).sum()
    with torch.no_grad():
        layer.weight.fill_(1.0)
    layer(x).sum() + penalty


def used_after_a_run_wrote(layer: nn.Linear, x: torch.Tensor) -> None:
    double = layer.weight * 2
    layer(x)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    x @ double.T


def itself_written(layer: nn.Linear, x: torch.Tensor) -> None:
    double = layer.weight.detach() * 2
    double.add_(1)
    x @ double.T


UNCLEAR: dict[str, tuple[Callable[[nn.Linear, torch.Tensor], Any], str]] = {
    "a penalty on what was there before": (used_later, "written since"),
    "computed before a run writes": (used_after_a_run_wrote, "after it was written"),
    "written itself": (itself_written, "written since"),
    "through a view from before": (written_later, "after it met data"),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_may_be_initialisation_or_not_is_refused(name: str) -> None:
    body, message = UNCLEAR[name]
    main, startup = static.Program(), static.Program()
    with pytest.raises(ProgramError, match=message), static.program_guard(main, startup):
        body(nn.Linear(4, 3), static.data("x", [2, 4]))


def test_what_was_made_before_is_used_in_branches_and_after_them() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 4])
        steps = torch.arange(4.0)
        double = static.create_parameter([4], default_initializer=nn.init.ones_) * 2
        y = static.cond(x.sum() > 100, lambda: x * steps + double, lambda: x + steps + double)
        (z,) = static.while_loop(lambda a: a.sum() < 50, lambda a: [a + double], [x])
        fetched = [y, z, x * steps, double]
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    found = executor.run(main, feed={"x": torch.ones(2, 4)}, fetch_list=fetched, scope=scope, return_numpy=False)
    expected = [torch.arange(4.0) + 3, torch.full((4,), 7.0), torch.arange(4.0), torch.full((4,), 2.0)]
    assert all(torch.equal(one, other.expand(one.shape)) for one, other in zip(found, expected, strict=True))


def test_a_guard_that_goes_on_knows_what_met_data() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        layer = nn.Linear(4, 3)
        y = layer(static.data("x", [2, 4]))
    with static.program_guard(main, startup), torch.no_grad():
        layer.bias.fill_(2.0)
        layer.bias.add_(y.sum() * 0 + 1)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    bias = scope.find_var("linear_0.bias")
    assert bias is not None and float(bias.detach().abs().max()) <= 0.5
    executor.run(main, feed={"x": X}, scope=scope)
    assert bias.tolist() == [3.0] * 3


FROZEN: dict[str, Callable[[nn.Linear], Any]] = {
    "module": lambda layer: layer.requires_grad_(False),
    "method": lambda layer: [one.requires_grad_(False) for one in layer.parameters()],
    "keyword": lambda layer: [one.requires_grad_(requires_grad=False) for one in layer.parameters()],
    "function": lambda layer: [torch.Tensor.requires_grad_(one, False) for one in layer.parameters()],
    "attribute": lambda layer: [setattr(one, "requires_grad", False) for one in layer.parameters()],
    "again and again": lambda layer: layer.requires_grad_(False).requires_grad_(True).requires_grad_(False),
    "replaced": lambda layer: [
        setattr(layer, name, nn.Parameter(one.data, requires_grad=False))
        for name, one in list(layer.named_parameters())],
    "made anew": lambda layer: [
        setattr(layer, name, nn.Parameter(torch.ones_like(one), False))
        for name, one in list(layer.named_parameters())],
}  # fmt: skip
STEPS: dict[str, tuple[Callable[[], Any], Callable[[Any], torch.optim.Optimizer]]] = {
    "sgd": (lambda: optimizer.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "momentum": (lambda: optimizer.Momentum(0.1), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "adam": (lambda: optimizer.Adam(0.1), lambda p: torch.optim.Adam(p, 0.1)),
    "adamw": (lambda: optimizer.AdamW(0.1), lambda p: torch.optim.AdamW(p, 0.1)),
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("name", FROZEN)
def test_frozen_parameters_are_not_trained(name: str, outside: bool, steps: str) -> None:
    def network() -> tuple[nn.Linear, nn.Linear]:
        frozen, head = nn.Linear(4, 4), nn.Linear(4, 3)
        FROZEN[name](frozen)
        return frozen, head

    torch.manual_seed(0)
    frozen, head = network()
    step = STEPS[steps][1](head.parameters())
    expected = []
    for _ in range(3):
        step.zero_grad()
        loss = head(frozen(X)).square().mean()
        loss.backward()
        step.step()
        expected.append(float(loss.detach()))

    torch.manual_seed(0)
    made = network() if outside else None
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        frozen, head = made or network()
        fetched = head(frozen(static.data("x", [2, 4]))).square().mean()
        _, pairs = STEPS[steps][0]().minimize(fetched)
        assert [frozen.weight.requires_grad, head.weight.requires_grad, len(pairs)] == [False, True, 2]
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(0)
    executor.run(startup, scope=scope)
    found = [float(executor.run(main, feed={"x": X}, fetch_list=[fetched], scope=scope)[0]) for _ in range(3)]
    assert found == expected
    assert not any("linear_0." in one and one.count(".") > 1 for one in scope.names())  # no state for them


@pytest.mark.parametrize("freeze", [lambda w: w.requires_grad_(False), lambda w: setattr(w, "requires_grad", False)])
def test_frozen_parameters_that_were_created(freeze: Callable[[torch.Tensor], Any]) -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        first, second = static.create_parameter([4, 3], name="a"), static.create_parameter([4, 3], name="b")
        freeze(first)
        x = static.data("x", [2, 4])
        _, pairs = optimizer.SGD(0.1).minimize((x @ first + x @ second).mean())
        assert not first.requires_grad and second.requires_grad and not (x @ first).requires_grad
    assert [main.name_of(one) for one, _ in pairs] != [] and len(pairs) == 1 and pairs[0][0] is second
    assert [one.requires_grad for one in main.params[:2]] == [False, True]


def test_a_parameter_is_frozen_before_it_meets_data() -> None:
    main, startup = static.Program(), static.Program()
    with pytest.raises(ProgramError, match="after it met data"), static.program_guard(main, startup):
        layer = nn.Linear(4, 3)
        layer(static.data("x", [2, 4]))
        layer.requires_grad_(True)  # what it is
        layer.requires_grad_(False)
