"""``loss.backward()``, ``opt.step()`` and ``opt.zero_grad()`` of torch's optimizers inside converted functions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn, optim
from torch.optim import Optimizer

import dy2static
from dy2static import RetraceWarning, to_static
from runtime.errors import Dy2StaticError
from tests.end_to_end.training_programs import PLACEMENTS, X, Y, check, loops, model

FLAGS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "dampening": 0.5},
        {"weight_decay": 0.1}, {"maximize": True}, {"foreach": True, "momentum": 0.9}, {"fused": True, "momentum": 0.9},
    ],
    "Adam": [{}, {"amsgrad": True}, {"weight_decay": 0.1}, {"maximize": True}, {"foreach": True}, {"fused": True}],
    "AdamW": [{}, {"amsgrad": True, "maximize": True}, {"foreach": True}, {"fused": True}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}, {"foreach": True}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1}, {"foreach": True}, {"fused": True}],
    "Adadelta": [{}, {"weight_decay": 0.1, "maximize": True}, {"foreach": True}],
    "NAdam": [{}, {"decoupled_weight_decay": True, "weight_decay": 0.1}, {"foreach": True}],
    "RAdam": [{}, {"weight_decay": 0.1}, {"foreach": True}],
    "Adamax": [{}, {"weight_decay": 0.1, "maximize": True}, {"foreach": True}],
    "ASGD": [{}, {"weight_decay": 0.1}, {"foreach": True}],
    "Rprop": [{}, {"maximize": True}, {"foreach": True}],
}
CASES = [(name, flags) for name, several in FLAGS.items() for flags in several]


def _id(value: Any) -> str:
    return "-".join(value) or "plain" if isinstance(value, dict) else str(value)


def _sgd(parameters: Any) -> Optimizer:
    return optim.SGD(parameters, lr=0.1)


def _momentum(parameters: Any) -> Optimizer:
    return optim.SGD(parameters, lr=0.1, momentum=0.9)


def _adam(parameters: Any) -> Optimizer:
    return optim.Adam(parameters, lr=0.01)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "flags"), CASES, ids=_id)
def test_an_optimizer(name: str, flags: dict[str, Any]) -> None:
    """Parameters, gradients, state and results are eager's bit for bit, from the first call on."""
    check(PLACEMENTS["straight"], lambda parameters: getattr(optim, name)(parameters, lr=0.01, **flags))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", list(FLAGS))
@pytest.mark.parametrize("placement", ["rolled", "branch"])
def test_an_optimizer_in_a_loop_or_branch(name: str, placement: str) -> None:
    static = check(PLACEMENTS[placement], lambda parameters: getattr(optim, name)(parameters, lr=0.01), calls=2)
    assert placement != "rolled" or loops(static) == [1, 1]


@pytest.mark.parametrize("mode", ["straight", "rolled", "branch"])
def test_batch_normalisation(mode: str) -> None:
    """Running statistics are written without a history: no gradient goes through them."""
    nets = []
    for _ in range(2):
        torch.manual_seed(0)
        nets.append(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1), nn.BatchNorm1d(1)))
    opts = [_adam(net.parameters()) for net in nets]
    static = to_static(PLACEMENTS[mode])
    for _ in range(3 if mode == "straight" else 2):
        losses = [run(net, opt, X, Y) for run, net, opt in zip((static, PLACEMENTS[mode]), nets, opts)]
        assert torch.equal(*losses)
        for one, other in zip(nets[0].state_dict().values(), nets[1].state_dict().values()):
            assert torch.equal(one, other)


def test_running_statistics_need_no_gradient() -> None:
    norm = nn.BatchNorm1d(3)

    def f(x: torch.Tensor) -> tuple[bool, bool]:
        y = norm(x)
        assert norm.running_mean is not None
        return (norm.running_mean * 2).requires_grad, y.requires_grad

    assert f(X) == to_static(f)(X) == (False, True)


@pytest.mark.slow
def test_many_steps_are_one_loop() -> None:
    def many(net: nn.Module, opt: Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(1000):
            opt.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
        return loss.detach()

    static = check(many, _momentum, calls=2)
    assert loops(static) == [1, 1]
    assert all(sum(1 for _ in program.block.walk()) < 150 for program in static.programs)


# -- learning rates


def test_a_learning_rate_that_changes_outside() -> None:
    """It is an input once it has changed a few times: no trace for each number."""
    def halve(opt: Optimizer, number: int) -> None:
        for group in opt.param_groups:
            group["lr"] = 0.1 / (number + 1)

    static = check(PLACEMENTS["straight"], _adam, calls=8, between=halve)
    assert len(static.programs) <= 4


def test_a_learning_rate_that_is_put_elsewhere() -> None:
    """Another dict in the place of a group's: the number that is read is that of the new one."""
    def replace(opt: Optimizer, number: int) -> None:
        opt.param_groups[0] = {**opt.param_groups[0], "lr": 0.1 / (number + 1)}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        check(PLACEMENTS["straight"], _sgd, calls=6, between=replace)


SCHEDULERS: dict[str, Any] = {
    "step": lambda opt: optim.lr_scheduler.StepLR(opt, 2),
    "cosine": lambda opt: optim.lr_scheduler.CosineAnnealingLR(opt, 10),
    "exponential": lambda opt: optim.lr_scheduler.ExponentialLR(opt, 0.9),
    "lambda": lambda opt: optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.9**epoch),
    "plateau": lambda opt: optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1),
}


@pytest.mark.parametrize("name", list(SCHEDULERS))
def test_a_scheduler_inside(name: str) -> None:
    def step(net: nn.Module, opt: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        if name == "plateau":
            opt.scheduler.step(loss.detach())
        else:
            opt.scheduler.step()
        return loss.detach()

    def make(parameters: Any) -> Optimizer:
        opt: Any = _momentum(parameters)
        opt.scheduler = SCHEDULERS[name](opt)
        return opt  # type: ignore[no-any-return]

    static = check(step, make, calls=8)
    assert len(static.programs) <= 5


def test_a_scheduler_in_a_loop() -> None:
    def step(net: nn.Module, opt: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(10):
            opt.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            opt.scheduler.step()
        return loss.detach()

    def make(parameters: Any) -> Optimizer:
        opt: Any = _sgd(parameters)
        opt.scheduler = optim.lr_scheduler.ExponentialLR(opt, 0.9)
        return opt  # type: ignore[no-any-return]

    check(step, make, calls=2)


# -- gradients


def _zero_to_zeros(net: Any, opt: Any, x: Any, y: Any) -> Any:
    opt.zero_grad(set_to_none=False)
    net(x).sum().backward()
    opt.step()
    return net[0].weight.grad


def _accumulated(net: Any, opt: Any, x: Any, y: Any) -> Any:
    net.zero_grad()
    for factor in range(3):
        ((net(x * factor) - y) ** 2).mean().backward()
    opt.step()
    return net[0].weight.grad


def _never_forgotten(net: Any, opt: Any, x: Any, y: Any) -> Any:
    net(x).sum().backward()
    opt.step()


def _retained(net: Any, opt: Any, x: Any, y: Any) -> Any:
    loss = net(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()


def _given(net: Any, opt: Any, x: Any, y: Any) -> Any:
    out = net(x)
    out.backward(gradient=torch.ones_like(out) * 2)
    torch.autograd.backward([net(x).sum(), net(x)], [None, torch.ones(5, 1)])


def _some_inputs(net: Any, opt: Any, x: Any, y: Any) -> Any:
    net(x).sum().backward(inputs=[net[0].weight, net[2].bias])


def _clipped(net: Any, opt: Any, x: Any, y: Any) -> Any:
    opt.zero_grad()
    ((net(x) - y) ** 2).mean().backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    torch.nn.utils.clip_grad_value_(net.parameters(), 0.05)
    opt.step()
    return norm


def _kept(net: Any, opt: Any, x: Any, y: Any) -> Any:
    h = net[0](x)
    h.retain_grad()
    net[2](net[1](h)).sum().backward()
    return h.grad


def _assigned(net: Any, opt: Any, x: Any, y: Any) -> Any:
    net[0].weight.grad = torch.ones_like(net[0].weight)
    net[0].bias.grad = None
    opt.step()
    return net[0].weight.grad is None, net[0].bias.grad is None


def _one_gradient_of_two(net: Any, opt: Any, x: Any, y: Any) -> Any:
    net.zero_grad()
    (net[0].bias + net[2].weight[0]).sum().backward()
    net[0].bias.grad.mul_(3)


def _leaf_made_inside(net: Any, opt: Any, x: Any, y: Any) -> Any:
    shift = torch.zeros_like(x).requires_grad_()
    for _ in range(3):
        ((net(x + shift) - y) ** 2).mean().backward()
        with torch.no_grad():
            shift += 0.1 * shift.grad.sign()
        shift.grad.zero_()
    return shift.detach()


def _closure(net: Any, opt: Any, x: Any, y: Any) -> Any:
    def loss() -> Any:
        opt.zero_grad()
        value = ((net(x) - y) ** 2).mean()
        value.backward()
        return value

    return opt.step(loss).detach()


def _made_inside(net: Any, opt: Any, x: Any, y: Any) -> Any:
    other = optim.Adam(net.parameters(), lr=0.01)
    for _ in range(6):
        other.zero_grad()
        net(x).pow(2).sum().backward()
        other.step()


def _after_the_step(net: Any, opt: Any, x: Any, y: Any) -> Any:
    opt.zero_grad()
    net(x).sum().backward()
    opt.step()
    return net(x).sum()


def _unused(net: Any, opt: Any, x: Any, y: Any) -> Any:
    net[0](x).sum().backward()
    opt.step()
    return net[2].weight.grad is None, torch.autograd.grad(net[0](x).sum(), net[2].weight, allow_unused=True)


def _overwritten(net: Any, opt: Any, x: Any, y: Any) -> Any:
    h = net[0](x).sigmoid()
    h.mul_(2)
    h.sum().backward()


def _hook_inside(net: Any, opt: Any, x: Any, y: Any) -> Any:
    h = net[0](x)
    h.register_hook(lambda grad: grad * 2)
    h.sum().backward()


USES = [_zero_to_zeros, _accumulated, _never_forgotten, _retained, _given, _some_inputs, _clipped, _kept, _assigned,
        _one_gradient_of_two, _leaf_made_inside, _closure, _made_inside, _after_the_step, _unused,
        _hook_inside]  # fmt: skip


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__.strip("_"))
def test_gradients(use: Any) -> None:
    check(use, _sgd)


def test_a_value_that_was_overwritten() -> None:
    net = model()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        to_static(_overwritten)(net, _sgd(net.parameters()), X, Y)


def test_a_result_whose_graph_is_used_up() -> None:
    def step(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
        loss = net(x).sigmoid().sum()
        loss.backward()
        return loss

    loss = to_static(step)(model(), X)
    assert loss.requires_grad
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()


def test_a_result_goes_on_from_the_parameters_as_they_are() -> None:
    got, expected = model(), model()
    to_static(_after_the_step)(got, _sgd(got.parameters()), X, Y).backward()
    _after_the_step(expected, _sgd(expected.parameters()), X, Y).backward()
    for one, other in zip(got.parameters(), expected.parameters()):
        assert torch.equal(one.grad, other.grad)  # type: ignore[arg-type]


# -- hooks


def _watched(parameters: Any) -> Optimizer:
    opt: Any = _sgd(parameters)
    opt.steps = 0

    def before(opt: Any, args: Any, kwargs: Any) -> None:
        opt.param_groups[0]["params"][0].grad.mul_(2)

    def after(opt: Any, args: Any, kwargs: Any) -> None:
        opt.steps = opt.steps + 1

    opt.register_step_pre_hook(before)
    opt.register_step_post_hook(after)
    return opt  # type: ignore[no-any-return]


def test_hooks_of_the_optimizer() -> None:
    check(PLACEMENTS["straight"], _watched)


def test_hooks_of_parameters() -> None:
    def doubled(parameters: Any) -> Optimizer:
        held = list(parameters)
        held[0].register_hook(lambda grad: grad * 2)
        held[1].register_post_accumulate_grad_hook(_triple)
        return _sgd(held)

    check(PLACEMENTS["straight"], doubled)


def _triple(one: torch.Tensor) -> None:
    assert one.grad is not None
    one.grad.mul_(3)


def test_a_hook_that_comes_later() -> None:
    """Which hooks there are is a guard."""
    def more(opt: Optimizer, number: int) -> None:
        if number == 2:
            opt.param_groups[0]["params"][0].register_hook(lambda grad: grad * 5)

    check(PLACEMENTS["straight"], _sgd, calls=4, between=more)


# -- loops that are left


def _until_small(net: Any, opt: Any, x: Any, y: Any) -> Any:
    steps = 0
    loss = ((net(x) - y) ** 2).mean()
    while loss > 0.4:
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        steps += 1
    return loss.detach(), steps


def _carried(net: Any, opt: Any, x: Any, y: Any) -> Any:
    """The loss of an iteration is differentiated in the next one."""
    loss = ((net(x) - y) ** 2).mean()
    while loss > 0.4:
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss = ((net(x) - y) ** 2).mean()
    return loss.detach()


def _converged(net: Any, opt: Any, x: Any, y: Any) -> Any:
    best = torch.tensor(1e9)
    for step in range(300):
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        if loss.item() > best.item() - 1e-4:
            break
        best = loss.detach()
    return best, step


def _skipping(net: Any, opt: Any, x: Any, y: Any) -> Any:
    skipped = 0
    for _ in range(30):
        opt.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        if torch.isfinite(torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)):
            opt.step()
        else:
            skipped += 1
    return skipped


LOOPS = [
    *((loop, _sgd) for loop in (_until_small, _carried, _converged, _skipping)),
    *(pytest.param(loop, _adam, marks=pytest.mark.slow) for loop in (_until_small, _carried, _converged)),
]


@pytest.mark.parametrize(("loop", "make"), LOOPS, ids=lambda one: one.__name__[1:])
def test_loops(loop: Any, make: Any) -> None:
    check(loop, make, calls=2)


def _with_state(parameters: Any) -> Optimizer:
    """Adam after a step without gradients: what it remembers is there."""
    held = list(parameters)
    opt = _adam(held)
    for one in held:
        one.grad = torch.zeros_like(one)
    opt.step()
    return opt


@pytest.mark.slow
def test_a_loop_that_may_skip_the_first_step() -> None:
    """Whether the optimizer remembers anything would depend on the path in each iteration: it has to before."""
    check(_skipping, _with_state, calls=2)
    net = model()
    with pytest.raises(Dy2StaticError) as caught:
        to_static(_skipping)(net, _adam(net.parameters()), X, Y)
    assert caught.value.code == "D2S255"


# -- what is refused


def _second_time(net: Any, opt: Any, x: Any, y: Any) -> Any:
    loss = net(x).sigmoid().sum()
    loss.backward()
    loss.backward()


def _again_in_each_iteration(net: Any, opt: Any, x: Any, y: Any) -> Any:
    loss, more = net(x).sigmoid().sum(), x.sum()
    while more < 100:
        loss.backward()
        more = more + 50


def _before_the_step(net: Any, opt: Any, x: Any, y: Any) -> Any:
    one, two = net(x).sum(), net(x).sum()
    one.backward()
    opt.step()
    two.backward()


def _graph_of_gradients(net: Any, opt: Any, x: Any, y: Any) -> Any:
    net(x).sum().backward(create_graph=True)


REFUSED = {"D2S213": [_second_time, _again_in_each_iteration, _before_the_step],
           "D2S217": [_graph_of_gradients]}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "use"), [(code, use) for code, uses in REFUSED.items() for use in uses],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_refusals(code: str, use: Any) -> None:
    net = model()
    before = [one.detach().clone() for one in net.parameters()]
    with pytest.raises(Dy2StaticError) as caught:
        to_static(use)(net, _sgd(net.parameters()), X, Y)
    assert caught.value.code == code
    assert caught.value.location is not None
    assert all(torch.equal(one, old) and one.grad is None for one, old in zip(net.parameters(), before))


def test_lbfgs_refuses() -> None:
    net = model()
    with pytest.raises(Dy2StaticError) as caught:
        to_static(_closure)(net, optim.LBFGS(net.parameters()), X, Y)
    assert caught.value.code == "D2S213"


def test_a_graph_of_the_callers() -> None:
    def f(x: torch.Tensor) -> None:
        (x * x).sum().backward()

    x = torch.ones(3, requires_grad=True) * 2
    with pytest.raises(Dy2StaticError) as caught:
        to_static(f)(x)
    assert caught.value.code == "D2S213"


def test_an_argument_that_is_a_leaf() -> None:
    def f(x: torch.Tensor) -> Any:
        (x * x).sum().backward()
        return x.grad

    got, expected = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    static = to_static(f)
    assert torch.equal(static(got), f(expected))
    assert torch.equal(got.grad, expected.grad)  # type: ignore[arg-type]
    for _ in range(2):  # it has a gradient now
        assert torch.equal(static(got), f(expected))
        assert torch.equal(got.grad, expected.grad)  # type: ignore[arg-type]
    got.grad = None
    assert torch.equal(static(got), f(torch.tensor([1.0, 2.0], requires_grad=True)))
    assert len(static.programs) == 2
    for _ in range(3):  # and any other tensor without one is answered by the first
        assert torch.equal(static(torch.ones(2, requires_grad=True)), torch.full((2,), 2.0))
    assert len(static.programs) == 2


# -- what else a Program is for


class _Trainer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = model()
        self.opt = _adam(self.net.parameters())

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return PLACEMENTS["straight"](self.net, self.opt, x, y)  # type: ignore[no-any-return]


def test_a_file_holds_no_optimizer(tmp_path: Path) -> None:
    with pytest.raises(Dy2StaticError, match="leaves gradients in the .grad of its parameters") as caught:
        dy2static.save(_Trainer(), tmp_path / "trainer", input_spec=[X, Y])
    assert caught.value.code == "D2S520"


def test_what_was_trained_is_saved(tmp_path: Path) -> None:
    trainer = _Trainer()
    static = to_static(trainer)
    for _ in range(3):
        static(X, Y)
    path = dy2static.save(trainer.net, tmp_path / "net", input_spec=[X])
    assert torch.equal(dy2static.load(path)(X), trainer.net(X))


@pytest.mark.parametrize("backend", ["c", "auto"])
def test_other_executors(backend: str) -> None:
    nets = [model(), model()]
    opts = [_adam(net.parameters()) for net in nets]
    static = to_static(PLACEMENTS["rolled"], backend=backend)
    for _ in range(3):
        torch.testing.assert_close(static(nets[0], opts[0], X, Y), PLACEMENTS["rolled"](nets[1], opts[1], X, Y))
    for one, other in zip(nets[0].parameters(), nets[1].parameters()):
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(one.grad, other.grad)


def _penalty(x: torch.Tensor) -> torch.Tensor:
    (gradient,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    return gradient * 2 if gradient.sum() > 0 else gradient


def _inner_steps(x: torch.Tensor) -> torch.Tensor:
    count = 0
    while count < 3 and x.sum().abs() > 0.1:
        (gradient,) = torch.autograd.grad(x.tanh().sum(), x, create_graph=True)
        x = x - 0.1 * gradient
        count += 1
    return x


@pytest.mark.parametrize("function", [_penalty, _inner_steps], ids=lambda function: function.__name__)
def test_the_gradient_of_what_the_caller_computed(function: Any) -> None:
    """It ends at the argument: what that was computed from gets its share in the caller's backward."""
    static = dy2static.to_static(function)
    for sign in (1.0, -1.0):
        found = []
        for one in (function, static):
            leaf = torch.full((3,), sign, requires_grad=True)
            result = one(leaf * 2)
            result.sum().backward()
            found.append((result.detach(), leaf.grad))
        for a, b in zip(*found):
            assert torch.equal(a, b)


@pytest.mark.parametrize("assigned", [False, True])
def test_a_gradient_that_is_placed_is_no_view(assigned: bool) -> None:
    """What ``backward()`` puts there stands alone, what the user's code puts there is what that has."""
    def step(net: torch.nn.Linear, x: torch.Tensor) -> Any:
        loss = net(x).square().sum()
        if assigned:
            for p, grad in zip(net.parameters(), torch.autograd.grad(loss, list(net.parameters()))):
                p.grad = grad
        else:
            loss.backward()
        return loss, net.weight.grad

    for function in (step, to_static(step)):
        net = torch.nn.Linear(3, 4)
        for _ in range(3):
            _, grad = function(net, torch.ones(2, 3))
            grads = [p.grad for p in net.parameters() if p.grad is not None]
            assert grad is grads[0] and [one._is_view() for one in grads] == [assigned, assigned]
            if not assigned:
                for one in grads:
                    one.detach_()  # what old training loops do before ``zero_()``
            net.zero_grad()
