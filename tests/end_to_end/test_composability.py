"""A converted module inside other tools, and other tools inside it: each works as eager does."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch.func import functional_call, grad, vmap
from torch.nn.utils import parametrizations, parametrize

import dy2static
from dy2static.static_function import StaticFunction
from tests import oracle

X = [torch.full((2, 3), 0.5), torch.full((2, 3), -0.7)]


class Net(torch.nn.Module):
    """Two layers; which one counts twice depends on the data."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 4)
        self.second = torch.nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if x.sum() > 0:
            x = x + self.second(torch.tanh(self.first(x)))
        else:
            x = x - self.second(self.first(x).relu())
        return self.second(self.first(x))


def pair(make=Net):
    torch.manual_seed(0)
    eager = make()
    return eager, dy2static.to_static(copy.deepcopy(eager))


def same(static, eager, inputs=X):
    """Values and gradients of input and parameters."""
    for x in inputs:
        results = []
        for module in (static, eager):
            module.zero_grad()
            mine = x.clone().requires_grad_()
            y = module(mine)
            y.square().sum().backward()
            results.append([y.detach(), mine.grad, *(p.grad for p in module.parameters())])
        oracle.same(*results, tolerance=2e-6)


def test_functional_call():
    eager, static = pair()
    other = {name: torch.randn_like(p) for name, p in eager.named_parameters()}
    for x in X:
        torch.testing.assert_close(functional_call(static, other, (x,)), functional_call(eager, other, (x,)))
        torch.testing.assert_close(static(x), eager(x))
        leaves = [{k: v.clone().requires_grad_() for k, v in other.items()} for _ in range(2)]
        for module, values in zip((static, eager), leaves):
            functional_call(module, values, (x,)).square().sum().backward()
        for name in other:
            torch.testing.assert_close(leaves[0][name].grad, leaves[1][name].grad)


def loss(module, x):
    return module(x).square().sum()


def test_grad():
    eager, static = pair()
    for x in X:
        torch.testing.assert_close(grad(lambda x: loss(static, x))(x), grad(lambda x: loss(eager, x))(x))
        values = dict(eager.named_parameters())
        got = grad(lambda p: functional_call(static, p, (x,)).square().sum())(values)
        expected = grad(lambda p: functional_call(eager, p, (x,)).square().sum())(values)
        for name in values:
            torch.testing.assert_close(got[name], expected[name])


def test_vmap():
    torch.manual_seed(0)
    eager = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
    static = dy2static.to_static(copy.deepcopy(eager))
    batch = torch.stack(X)
    torch.testing.assert_close(vmap(static)(batch), vmap(eager)(batch))
    eager, static = pair()
    with pytest.raises(RuntimeError, match="data-dependent control flow"):  # eager refuses a branch on a batch too
        vmap(eager)(batch)
    torch.testing.assert_close(vmap(static)(batch), torch.stack([eager(x) for x in X]))


def test_weight_norm():
    def make():
        net = Net()
        parametrizations.weight_norm(net.first)
        return net

    torch.manual_seed(0)
    eager = make()
    torch.manual_seed(0)
    static = dy2static.to_static(make())
    same(static, eager)
    for module in (static, eager):
        parametrize.remove_parametrizations(module.first, "weight")
    same(static, eager)


class LowRank(torch.nn.Module):
    """A layer with a trained correction of low rank; a scale of zero switches it off."""

    def __init__(self, layer, rank=2):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = torch.nn.Parameter(torch.randn(rank, layer.in_features))
        self.up = torch.nn.Parameter(torch.randn(layer.out_features, rank))
        self.scale = 0.5

    def forward(self, x):
        y = self.layer(x)
        return y + self.scale * (x @ self.down.t() @ self.up.t()) if self.scale else y


def test_low_rank_adapters():
    eager, static = pair()
    same(static, eager)
    for module in (eager, static):
        torch.manual_seed(1)
        module.first = LowRank(module.first)
    same(static, eager)
    for module in (eager, static):
        module.first.scale = 0.0
    same(static, eager)


def test_replicate():
    eager, static = pair()
    replica = static._replicate_for_data_parallel()  # what DataParallel makes one of for each device
    for name, child in static.named_children():
        setattr(replica, name, child._replicate_for_data_parallel())
        for key, parameter in child.named_parameters(recurse=False):
            getattr(replica, name)._parameters[key] = parameter * 2
    torch.testing.assert_close(replica(X[0]), functional_call(
        eager, {name: p * 2 for name, p in eager.named_parameters()}, (X[0],)))
    same(static, eager)


def test_copies_and_pickles():
    eager, static = pair()
    same(static, eager)
    twin = copy.deepcopy(static)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(2)
    same(static, eager)
    same(twin, copy.deepcopy(twin))
    expected = functional_call(eager, {name: p * 2 for name, p in eager.named_parameters()}, (X[0],))
    torch.testing.assert_close(twin(X[0]), expected)
    state = static.state_dict()
    other = dy2static.to_static(Net())
    other.load_state_dict(state)
    same(other, eager)
    loaded = pickle.loads(pickle.dumps(static))  # a pickle holds the module as it was before
    assert not isinstance(loaded.forward, StaticFunction)
    same(loaded, eager)
    same(dy2static.to_static(loaded), eager)


class Tagged(torch.Tensor):
    """A tensor that says so."""


def test_tensor_subclasses():
    eager, static = pair()
    for x in X:
        mine = x.as_subclass(Tagged)
        got, expected = static(mine), eager(mine)
        assert type(got) is type(expected)
        torch.testing.assert_close(got, expected)


def test_quantised_weights():
    class Int8(torch.nn.Module):
        """Weights as int8 with a scale for each row."""

        def __init__(self, layer):
            super().__init__()
            scale = layer.weight.detach().abs().amax(1, keepdim=True) / 127
            self.register_buffer("scale", scale)
            self.register_buffer("weight", (layer.weight.detach() / scale).round().to(torch.int8))
            self.bias = layer.bias

        def forward(self, x):
            return torch.nn.functional.linear(x, self.weight.to(x.dtype) * self.scale, self.bias)

    def make():
        net = Net()
        net.first, net.second = Int8(net.first), Int8(net.second)
        return net

    same(*reversed(pair(make)))


@torch.library.custom_op("d2s_compose::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    """An operator of the user's, opaque to everyone."""
    return torch.from_numpy(x.detach().numpy() * 2)


twice.register_fake(lambda x: torch.empty_like(x))
twice.register_autograd(lambda ctx, gradient: gradient * 2)


def test_custom_operators_stay_one():
    def doubled(x):
        return twice(x) if x.sum() > 0 else twice(twice(x))

    static = dy2static.to_static(doubled)
    for x in X:
        mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, expected = static(mine), doubled(theirs)
        torch.testing.assert_close(got, expected)
        got.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(mine.grad, theirs.grad)
    names = [op.name for op in static.program.block.walk()]
    assert names.count("d2s_compose.twice.default") == 3


def test_hooks_that_stash_activations():
    def stash(module):
        kept = {}
        module.first.register_forward_hook(lambda layer, args, output: kept.update(first=output))
        return kept

    eager, static = pair()
    theirs, mine = stash(eager), stash(static)
    for x in X:
        torch.testing.assert_close(static(x), eager(x))
        torch.testing.assert_close(mine["first"], theirs["first"])


def test_hooks_outside_a_branch_stash_activations():
    def make():
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 3))

    eager, static = pair(make)
    stashes = []
    for module in (eager, static):
        kept = {}
        module[0].register_forward_hook(lambda layer, args, output, kept=kept: kept.update(first=output))
        stashes.append(kept)
    for x in X:
        torch.testing.assert_close(static(x), eager(x))
        torch.testing.assert_close(stashes[1]["first"], stashes[0]["first"])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_around(reentrant):
    eager, static = pair()

    def run(module, x):
        return torch.utils.checkpoint.checkpoint(module, x, use_reentrant=reentrant)

    for x in X:
        grads = []
        for module in (static, eager):
            module.zero_grad()
            mine = x.clone().requires_grad_()
            y = run(module, mine)
            y.square().sum().backward()
            grads.append([y.detach(), mine.grad, *(p.grad for p in module.parameters())])
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(a, b)


def test_checkpoint_inside():
    class Outer(Net):
        def forward(self, x):
            inner = torch.utils.checkpoint.checkpoint(self.first, x, use_reentrant=False)
            return self.second(inner) if inner.sum() > 0 else self.second(-inner)

    same(*reversed(pair(Outer)))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # torch.compile asks for it
@pytest.mark.filterwarnings("ignore:Guards may run slower on Python 3.13.0")
def test_inside_compile():
    eager, static = pair()
    compiled = torch.compile(lambda x: static(x) * 2, backend="eager")
    for x in X:
        torch.testing.assert_close(compiled(x), eager(x) * 2)


class Counted(torch.nn.Module):
    """Branches on its data, and counts its calls in a buffer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        y = self.first(x)
        return self.second(y) if y.sum() > 0 else y * 2


@pytest.mark.parametrize("replaced", ["all", "some", "buffers too"])
def test_functional_call_inside(replaced):
    """The module is as it was afterwards; what the call wrote to a buffer that was given is in the dict."""
    torch.manual_seed(0)
    module = Counted()

    def f(x, scale):
        given = {name: value * scale for name, value in module.named_parameters()}
        if replaced == "some":
            given = {name: value for name, value in given.items() if name.startswith("first")}
        if replaced == "buffers too":
            given["calls"] = torch.ones(()) * 5
        total = functional_call(module, given, (x,))
        if total.sum() > 0:
            total = total + functional_call(module, given, args=(x * 2,))
        return total, given.get("calls"), module.first.weight is module.second.weight

    own, state = dict(module.named_parameters()), {name: one.clone() for name, one in module.state_dict().items()}
    static, ends = dy2static.to_static(f), []
    for run in (f, static):
        module.load_state_dict(state)
        found = []
        for sign in (1.0, -1.0, 1.0):
            result = run(torch.full((2, 3), sign), torch.tensor(2.0, requires_grad=True))
            found.append((result, torch.autograd.grad(result[0].sum(), list(own.values()), allow_unused=True)))
        ends.append((found, module.calls.clone()))
        assert all(one is own[name] for name, one in module.named_parameters())
    oracle.same(ends[1], ends[0], tolerance=1e-6)


def test_functional_call_inside_with_wrong_names():
    module = torch.nn.Linear(2, 2)

    def f(x):
        return functional_call(module, {"weights": x}, (x,), strict=True)

    said = []
    for run in (f, dy2static.to_static(f)):
        with pytest.raises(RuntimeError) as raised:
            run(torch.ones(2, 2))
        said.append(str(raised.value).split("\n")[:3])
    assert said[0] == said[1]


def test_errors_about_an_optimizer_stand_at_the_users_line_after_torch_compile():
    """Once it is imported, PyTorch's compiler stands around the methods of optimizers."""
    import torch._dynamo

    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.LBFGS([weight])

    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = (weight * x).sum() ** 2
            loss.backward()
            return loss

        return optimizer.step(closure)

    with pytest.raises(dy2static.TraceError) as caught:
        dy2static.to_static(step)(torch.ones(2))
    assert caught.value.location.file == __file__
