"""Programs that are built by hand train as the same model does in eager, bit for bit; modules from outside, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import dy2static
from runtime import static
from runtime.errors import ProgramError
from runtime.static import optimizer

OPTIMIZERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sgd": (lambda **k: optimizer.SGD(0.1, **k), lambda p: torch.optim.SGD(p, 0.1)),
    "sgd with decay": (
        lambda **k: optimizer.SGD(0.1, weight_decay=0.1, **k), lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.1)),
    "momentum": (lambda **k: optimizer.Momentum(0.1, **k), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "nesterov": (
        lambda **k: optimizer.Momentum(0.1, 0.8, use_nesterov=True, **k),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.8, nesterov=True)),
    "adam": (lambda **k: optimizer.Adam(0.01, **k), lambda p: torch.optim.Adam(p, 0.01)),
    "adam with decay": (
        lambda **k: optimizer.Adam(0.01, weight_decay=0.1, **k), lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1)),
    "adamw": (lambda **k: optimizer.AdamW(0.01, **k), lambda p: torch.optim.AdamW(p, 0.01)),
}  # fmt: skip
CLIPS = {
    "value": static.ClipGradByValue(0.02), "norm": static.ClipGradByNorm(0.05),
    "global norm": static.ClipGradByGlobalNorm(0.1),
}  # fmt: skip


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2))


def batches(steps: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    sizes = range(6, 6 + steps)
    return [(torch.randn(n, 4, generator=generator), torch.randn(n, 2, generator=generator)) for n in sizes]


def eager(make: Callable[..., Any], steps: int, clip: static.ClipGradByNorm | None = None) -> tuple[Any, list[float]]:
    torch.manual_seed(0)
    model = network()
    step = make(model.parameters())
    if clip is not None:
        clip.attach(step)
    losses = []
    for x, target in batches(steps):
        step.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        step.step()
        losses.append(float(loss.detach()))
    return model, losses


Built = tuple[static.Program, static.Program, torch.Tensor]


def built(make: Callable[..., Any], model: nn.Module | None = None) -> Built:
    main, startup = static.Program("main"), static.Program("startup")
    with static.program_guard(main, startup):
        x, target = static.data("x", [None, 4]), static.data("target", [None, 2])
        loss = F.mse_loss((model or network())(x), target)
        make().minimize(loss)
    return main, startup, loss


def losses_of(main: static.Program, loss: torch.Tensor, scope: static.Scope, steps: int, **options: Any) -> list[float]:
    executor = static.Executor(**options)
    return [
        float(executor.run(main, feed={"x": x.numpy(), "target": target}, fetch_list=[loss], scope=scope)[0])
        for x, target in batches(steps)
    ]


def parameters(scope: static.Scope) -> list[Any]:
    names = ("linear_0.weight", "linear_0.bias", "batchnorm1d_0.weight", "batchnorm1d_0.bias", "linear_1.weight",
             "linear_1.bias")  # fmt: skip
    return [scope.find_var(name) for name in names]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_torch(name: str) -> None:
    mine, torchs = OPTIMIZERS[name]
    model, expected = eager(torchs, 5)
    main, startup, loss = built(mine)
    scope = static.Scope()
    torch.manual_seed(0)
    static.Executor().run(startup, scope=scope)
    assert losses_of(main, loss, scope, 5) == expected
    for one, other in zip(parameters(scope), model.parameters()):
        assert torch.equal(one, other)
    statistics = scope.find_var("batchnorm1d_0.running_var"), scope.find_var("batchnorm1d_0.num_batches_tracked")
    assert torch.equal(statistics[0], model[1].running_var) and torch.equal(statistics[1], model[1].num_batches_tracked)


@pytest.mark.parametrize("name", CLIPS)
def test_clipped_gradients_are_those_of_a_torch_optimizer_that_clips(name: str) -> None:
    model, expected = eager(OPTIMIZERS["sgd"][1], 4, CLIPS[name])  # type: ignore[arg-type]
    free, _ = eager(OPTIMIZERS["sgd"][1], 4)
    main, startup, loss = built(lambda: OPTIMIZERS["sgd"][0](grad_clip=CLIPS[name]))
    scope = static.Scope()
    torch.manual_seed(0)
    static.Executor().run(startup, scope=scope)
    assert losses_of(main, loss, scope, 4) == expected
    assert all(torch.equal(one, other) for one, other in zip(parameters(scope), model.parameters()))
    assert not torch.equal(next(model.parameters()), next(free.parameters()))


def test_gradients_that_are_not_clipped() -> None:
    model, _ = eager(OPTIMIZERS["sgd"][1], 1)
    clip = static.ClipGradByValue(0.0, no_clip=["linear_1.bias"])
    main, startup, loss = built(lambda: optimizer.SGD(0.1, grad_clip=clip))
    scope = static.Scope()
    torch.manual_seed(0)
    static.Executor().run(startup, scope=scope)
    before = [value.clone() for value in parameters(scope)]
    losses_of(main, loss, scope, 1)
    changed = [not torch.equal(one, other) for one, other in zip(before, parameters(scope))]
    assert changed == [False] * 5 + [True] and torch.equal(parameters(scope)[5], model[3].bias)

    torchs = network()
    step = torch.optim.SGD(torchs.parameters(), 0.1)
    handle = static.ClipGradByNorm(1e-3, no_clip=[torchs[0].weight]).attach(step)
    for one in torchs.parameters():
        one.grad = torch.ones_like(one)
    step.step()
    assert torch.equal(torchs[0].weight.grad, torch.ones(5, 4)) and torchs[0].bias.grad.norm() <= 1.001e-3
    handle.remove()
    torchs[0].bias.grad = torch.ones(5)
    step.step()
    assert torch.equal(torchs[0].bias.grad, torch.ones(5))


NO_CLIP: dict[str, Callable[[nn.Module, torch.Tensor], Any]] = {
    "a tensor": lambda layer, w: [w], "a name": lambda layer, w: ["w"], "alone": lambda layer, w: w,
    "a name alone": lambda layer, w: "w", "a set": lambda layer, w: {w},
    "of a module": lambda layer, w: [layer.bias], "of a module, by name": lambda layer, w: ["linear_0.bias"],
    "all": lambda layer, w: [w, *layer.parameters()],
}  # fmt: skip


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("clip", [static.ClipGradByValue, static.ClipGradByNorm, static.ClipGradByGlobalNorm])
@pytest.mark.parametrize("name", NO_CLIP)
def test_what_no_clip_has_is_not_clipped(name: str, clip: Any, outside: bool) -> None:
    made = nn.Linear(4, 3) if outside else None
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        layer = made or nn.Linear(4, 3)
        w = static.create_parameter([3], name="w", is_bias=True)
        loss = (layer(static.data("x", [2, 4])) + w).sum()
        no_clip = NO_CLIP[name](layer, w)
        optimizer.SGD(0.5, grad_clip=clip(0.01, no_clip=no_clip)).minimize(loss)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    held = {"bias": made.bias if made is not None else scope.find_var("linear_0.bias"), "w": scope.find_var("w")}
    before = {key: value.detach().clone() for key, value in held.items()}
    executor.run(main, feed={"x": torch.ones(2, 4)}, scope=scope)
    moved = {key for key, value in held.items() if torch.allclose(before[key] - value, torch.ones(3))}
    assert moved == ({"bias", "w"} if name == "all" else {"bias"} if "module" in name else {"w"})


WRONG_CLIP: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "a mistyped name": (lambda x: ["linear_0.wieght"], r"'linear_0.wieght', which is no parameter(.|\n)*0.weight"),
    "data": (lambda x: [x], "no parameter"), "what is computed": (lambda x: [x * 2], "no parameter"),
    "another tensor": (lambda x: [torch.ones(2)], "no parameter"), "a number": (lambda x: [3], "has a int"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CLIP)
def test_what_no_clip_cannot_have(name: str) -> None:
    given, message = WRONG_CLIP[name]
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 4])
        loss = nn.Linear(4, 3)(x).sum()
        before = list(main.current_block().ops)
        with pytest.raises(ProgramError, match=message):
            optimizer.Adam(0.5, grad_clip=static.ClipGradByNorm(0.01, no_clip=given(x))).minimize(loss)
        after = main.current_block().ops
        assert after[: len(before)] == before and not any(op.name == "update" for op in after)


def test_what_no_clip_cannot_have_for_an_optimizer_of_torchs() -> None:
    layer = nn.Linear(4, 3)
    step = torch.optim.SGD(layer.parameters(), 0.1)
    for wrong, message in (("weight", "knows no names"), (torch.ones(2), "no parameter of the optimizer")):
        with pytest.raises(ProgramError, match=message):
            static.ClipGradByNorm(0.01, no_clip=[wrong]).attach(step)


def trained_by_torch(make: Callable[..., torch.optim.Optimizer]) -> Callable[[nn.Module, torch.Tensor], Any]:
    def train(model: nn.Module, x: torch.Tensor) -> None:
        step = make(model.parameters())
        step.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        step.step()

    return train


def stepped(model: nn.Module, x: torch.Tensor) -> None:
    step = torch.optim.Adam(model.parameters())
    model(x).sum()
    step.step()


BY_TORCH: dict[str, tuple[Callable[[nn.Module, torch.Tensor], Any], str]] = {
    **{name: (trained_by_torch(torchs), r"backward\(\)") for name, (_, torchs) in OPTIMIZERS.items()},
    "one by one": (trained_by_torch(lambda p: torch.optim.SGD(p, 0.1, foreach=False)), r"backward\(\)"),
    "backward": (lambda model, x: model(x).sum().backward(), r"backward\(\)"),
    "of a penalty": (lambda model, x: next(model.parameters()).square().sum().backward(), r"backward\(\)"),
    "with inputs": (lambda model, x: model(x).sum().backward(inputs=[*model.parameters()]), r"backward\(\)"),
    "step": (stepped, r"step\(\) of torch.optim.Adam"),
}  # fmt: skip


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("name", BY_TORCH)
def test_training_as_in_eager_is_refused(name: str, outside: bool) -> None:
    train, message = BY_TORCH[name]
    if outside and name == "of a penalty":
        pytest.skip("ordinary tensors: eager's")
    made = nn.Linear(4, 3) if outside else None
    with pytest.raises(ProgramError, match=rf"{message}(.|\n)*minimize\(loss\)") as raised:
        with static.program_guard(static.Program(), static.Program()):
            train(made or nn.Linear(4, 3), static.data("x", [2, 4]))
    assert raised.value.location is not None and raised.value.location.file.endswith("test_training.py")


def test_training_of_something_else_inside_of_a_guard() -> None:
    weight = torch.ones(3, requires_grad=True)
    step = torch.optim.SGD([weight], 0.5)
    with static.program_guard(static.Program(), static.Program()):
        nn.Linear(4, 3)(static.data("x", [2, 4]))
        (weight * 2).sum().backward()
        step.step()
    assert weight.tolist() == [0.0] * 3


def test_modules_from_outside_are_trained_themselves() -> None:
    expected, losses = eager(OPTIMIZERS["adam"][1], 4)
    torch.manual_seed(0)
    model = network()
    main, startup, loss = built(OPTIMIZERS["adam"][0], model)
    scope = static.Scope()
    static.Executor().run(startup, scope=scope)  # the optimizer's state
    found = losses_of(main, loss, scope, 4)
    assert found == losses
    for (name, one), other in zip(model.state_dict().items(), expected.state_dict().values()):
        assert torch.equal(one, other), name


def test_the_c_backend_agrees() -> None:
    main, startup, loss = built(OPTIMIZERS["adam"][0])
    values = []
    for backend in ("interpreter", "c"):
        scope = static.Scope()
        torch.manual_seed(0)
        static.Executor().run(startup, scope=scope)
        values.append(losses_of(main, loss, scope, 4, backend=backend))
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_the_learning_rate_is_asked_for_at_each_run() -> None:
    rates = iter([0.5, 0.25, 0.0])
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        weight = static.create_parameter([2], name="w", default_initializer=nn.init.ones_)
        optimizer.SGD(lambda: next(rates)).minimize((weight * 3).sum())
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    seen = [executor.run(main, fetch_list="w", scope=scope)[0].tolist() for _ in range(3)]
    assert seen == [[-0.5, -0.5], [-1.25, -1.25], [-1.25, -1.25]]


def test_a_clone_for_tests() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        hidden = F.dropout(nn.BatchNorm1d(4)(x), 0.5)
        loss = hidden.sum()
        test = main.clone(for_test=True)
        optimizer.SGD(0.1).minimize(loss)
        after = main.clone(for_test=True)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    x_now = np.ones((3, 4), "float32") * 2
    executor.run(main, feed={"x": x_now}, scope=scope)
    held = {name: scope.find_var(name).clone() for name in scope.names()}
    normal = nn.BatchNorm1d(4).eval()
    normal.load_state_dict({name.split(".")[1]: value for name, value in held.items() if name.startswith("batch")})
    for program in (test, after):
        (found,) = executor.run(program, feed={"x": x_now}, fetch_list=[hidden], scope=scope, return_numpy=False)
        assert torch.equal(found, normal(torch.from_numpy(x_now)).detach())
    assert all(torch.equal(scope.find_var(name), value) for name, value in held.items())
    with pytest.raises(ProgramError, match="cannot be recorded"), static.program_guard(test, startup):
        pass


def test_two_optimizers_of_one_program() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 3])
        w, v = (static.create_parameter([3], name=name, default_initializer=nn.init.ones_) for name in "wv")
        first, second = (x * w).sum(), (x * v).pow(2).sum()
        optimizer.SGD(0.1).minimize(first, parameters=["w"])
        optimizer.Momentum(0.1).minimize(second, parameters=["v"])
        test = main.clone(for_test=True)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    eager = [torch.ones(3, requires_grad=True) for _ in "wv"]
    steps = torch.optim.SGD(eager[:1], 0.1), torch.optim.SGD(eager[1:], 0.1, momentum=0.9)
    x_now = torch.ones(2, 3)
    for _ in range(3):
        losses = (x_now * eager[0]).sum(), (x_now * eager[1]).pow(2).sum()
        expected = [float(loss.detach()) for loss in losses]
        assert [float(one) for one in executor.run(test, feed={"x": x_now}, fetch_list=[first, second], scope=scope)
                ] == expected
        assert [float(one) for one in executor.run(main, feed={"x": x_now}, fetch_list=[first, second], scope=scope)
                ] == expected
        for step, loss in zip(steps, losses):
            step.zero_grad()
            loss.backward()
            step.step()
    for name, one in zip("wv", eager):
        held = scope.find_var(name)
        assert held is not None and torch.equal(held, one)


def pooled(x: torch.Tensor) -> torch.Tensor:
    return F.adaptive_avg_pool2d(F.relu(x), 1).flatten(1)


def mean_of(*dims: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda y: y.mean(dims)


REDUCED: dict[str, tuple[Callable[[], nn.Module], Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "sum": (lambda: nn.Linear(4, 5), lambda y: y.sum(1), torch.randn(5, 4)),
    "mean of two": (lambda: nn.Conv2d(3, 2, 3), mean_of(2, 3), torch.randn(5, 3, 6, 6)),
    "kept dimension": (lambda: nn.Conv2d(3, 2, 3), lambda y: y - y.mean(1, keepdim=True), torch.randn(5, 3, 6, 6)),
    "mean of the batch": (lambda: nn.Linear(4, 5), mean_of(0), torch.randn(5, 4)),
    "embedding": (lambda: nn.Embedding(9, 4), mean_of(1), torch.randint(0, 9, (5, 3))),
    "norm": (lambda: nn.Linear(4, 5), lambda y: y / y.norm(dim=1, keepdim=True), torch.randn(5, 4)),
    "var": (lambda: nn.Linear(4, 5), lambda y: y.var(1), torch.randn(5, 4)),
    "pooling": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), pooled, torch.randn(5, 3, 6, 6)),
    "expanded": (lambda: nn.Linear(4, 1), lambda y: y.expand(-1, 3) * torch.arange(3.0), torch.randn(5, 4)),
    "attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), mean_of(1), torch.randn(5, 3, 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCED)
def test_reductions_with_an_open_batch_are_trained(name: str) -> None:
    make, reduce, x = REDUCED[name]
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = reduce(make()(static.data("x", [None, *x.shape[1:]], x.dtype))).square().mean()
        _, pairs = optimizer.SGD(0.0).minimize(loss)
    names = list(startup.graph.persistables)
    grads = [grad for _, grad in sorted(pairs, key=lambda pair: names.index(main.graph.name_of(pair[0])))]
    for size in (3, 1, 5):
        scope, executor = static.Scope(), static.Executor()
        torch.manual_seed(2)
        executor.run(startup, scope=scope)
        found = executor.run(main, feed={"x": x[:size]}, fetch_list=[loss, *grads], scope=scope, return_numpy=False)
        torch.manual_seed(2)
        model = make()
        expected = reduce(model(x[:size])).square().mean()
        expected.backward()
        torch.testing.assert_close(found, [expected.detach(), *(one.grad for one in model.parameters())])


RECURRENT: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(4, 5), "gru": lambda: nn.GRU(4, 5), "rnn": lambda: nn.RNN(4, 5),
    "relu": lambda: nn.RNN(4, 5, nonlinearity="relu"),
    "both ways": lambda: nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True),
    "projected": lambda: nn.LSTM(4, 5, proj_size=3), "without bias": lambda: nn.GRU(4, 5, bias=False),
    "cell": lambda: nn.LSTMCell(4, 5),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")  # PyTorch's own, since 2.15
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_networks_of_fixed_sizes_are_trained(name: str) -> None:
    make, x = RECURRENT[name], torch.randn(3, 2, 4)
    x = x[0] if name == "cell" else x
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = make()(static.data("x", list(x.shape)))[0].square().mean()
        _, pairs = optimizer.SGD(0.0).minimize(loss)
        test = main.clone(for_test=True)
    assert not name.startswith("lstm") or "lstm" in str(test)  # only for its gradient it is taken apart
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(2)
    executor.run(startup, scope=scope)
    fetched = [loss, *(grad for _, grad in pairs)]
    found = executor.run(main, feed={"x": x}, fetch_list=fetched, scope=scope, return_numpy=False)
    torch.manual_seed(2)
    model = make()
    expected = model(x)[0].square().mean()
    expected.backward()
    torch.testing.assert_close(found, [expected.detach(), *(one.grad for one in model.parameters())])
    assert torch.backends.mkldnn.is_available() is False or torch._C._get_mkldnn_enabled()


OPEN: dict[str, tuple[Callable[[], nn.Module], list[int | None]]] = {
    "lstm": (lambda: nn.LSTM(4, 5, batch_first=True), [None, 3, 4]),
    "lstm of any length": (lambda: nn.LSTM(4, 5), [None, None, 4]),
    "gru": (lambda: nn.GRU(4, 5, batch_first=True), [None, 3, 4]),
    "rnn of any length": (lambda: nn.RNN(4, 5), [None, 2, 4]),
    "cell": (lambda: nn.GRUCell(4, 5), [None, 4]),
}  # fmt: skip


@pytest.mark.parametrize("steps", ["sgd", "adam"])
@pytest.mark.parametrize("name", OPEN)
def test_recurrent_networks_of_open_sizes_are_trained(name: str, steps: str) -> None:
    make, shape = OPEN[name]

    def loss_of(made: Any) -> torch.Tensor:
        return (made[0] if isinstance(made, tuple) else made).square().mean()

    def fed(size: int) -> torch.Tensor:
        return torch.randn([size if one is None else one for one in shape], generator=torch.Generator().manual_seed(1))

    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        fetched = loss_of(make()(static.data("x", shape)))
        OPTIMIZERS[steps][0]().minimize(fetched)
        test = main.clone(for_test=True)
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(2)
    executor.run(startup, scope=scope)
    torch.manual_seed(2)
    model = make()
    step = OPTIMIZERS[steps][1](model.parameters())
    for size in (3, 8, 1, 5, 3):
        step.zero_grad()
        loss = loss_of(model(fed(size)))
        loss.backward()
        for program in (test, main):
            (found,) = executor.run(program, feed={"x": fed(size)}, fetch_list=[fetched], scope=scope)
            assert float(found) == pytest.approx(float(loss.detach()), rel=1e-5)
        step.step()
    held = [value for key in scope.names() if key.count(".") == 1 and (value := scope.find_var(key)) is not None]
    torch.testing.assert_close(held, list(model.parameters()))
    assert not any(value.grad_fn is not None for value in held)


def test_gradients_that_are_asked_for_beside_an_optimizer() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        layer = nn.Linear(4, 5)
        loss = layer(static.data("x", [None, 4])).square().mean()
        grads = torch.autograd.grad(loss, [layer.weight, layer.bias], retain_graph=True)
        optimizer.SGD(0.1).minimize(loss)
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(0)
    executor.run(startup, scope=scope)
    torch.manual_seed(0)
    model = nn.Linear(4, 5)
    step = torch.optim.SGD(model.parameters(), 0.1)
    for size in (2, 3):
        x = torch.ones(size, 4)
        found = executor.run(main, feed={"x": x}, fetch_list=list(grads), scope=scope, return_numpy=False)
        step.zero_grad()
        model(x).square().mean().backward()
        torch.testing.assert_close(found, [model.weight.grad, model.bias.grad])
        step.step()


def test_a_gradient_that_stops_and_cannot_be_written_out_is_refused() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        hidden = static.fc(static.data("x", [None, 3, 4]), 4, num_flatten_dims=2)
        loss = nn.GRU(4, 5, batch_first=True)(hidden)[0].mean()
        before = list(main.current_block().ops)
        with pytest.raises(ProgramError, match="no gradient can be added.*say the size in place of None"):
            optimizer.SGD(0.1).minimize(loss, no_grad_set=[hidden])
    assert main.current_block().ops == before


def test_losses_are_those_of_the_converted_model() -> None:
    """A Program built by hand and the same training step, converted as a whole, are equal step by step."""

    def step(model: nn.Module, adam: torch.optim.Optimizer, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        adam.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        adam.step()
        return loss.detach()

    torch.manual_seed(0)
    model = network()
    adam = torch.optim.Adam(model.parameters(), 0.01)
    converted = dy2static.to_static(step)
    expected = [float(converted(model, adam, x, target)) for x, target in batches(6)]
    main, startup, loss = built(OPTIMIZERS["adam"][0])
    scope = static.Scope()
    torch.manual_seed(0)
    static.Executor().run(startup, scope=scope)
    assert losses_of(main, loss, scope, 6) == expected
    assert all(torch.equal(one, other) for one, other in zip(parameters(scope), model.parameters(), strict=True))
