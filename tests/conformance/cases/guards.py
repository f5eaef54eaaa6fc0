"""A Program is used only while what it was made from still holds."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import dy2static
from tests.conformance.family import NEG, POS, Family, normal
from tests.oracle import same

family = Family("Guards")
case = family.case
scenario = family.scenario


def both(converted, eager, *args):
    """Call both and compare."""
    same(converted(*args), eager(*args))


@case("arguments by value and type", *[(POS, k) for k in (1, True, 1.0, -1, -2, 0, False, -0.0, 0.0, 2.5, None, "1")])
def by_value_and_type(x, k):
    return repr(k), x * 2 if k else x


@case("containers by content", *[(POS, k) for k in ([1, 2], [1], (1, 2), {"a": 1}, {"b": 1}, [[1], 2], [])])
def by_content(x, k):
    return x * len(k), repr(k)


FACTOR = 2


@scenario("globals")
def global_changes():
    global FACTOR

    def f(x):
        if x.sum() > 0:
            return x * FACTOR
        return x

    converted = dy2static.to_static(f)
    for FACTOR in (2, 3, 3.0, -1, 2):
        both(converted, f, POS)
        both(converted, f, NEG)
    FACTOR = 2


TABLE = {"k": [1, 2]}


@scenario("globals that are containers")
def global_container_changes():
    def f(x):
        return x * TABLE["k"][0] + len(TABLE)

    converted = dy2static.to_static(f)
    both(converted, f, POS)
    TABLE["k"][0] = 5
    both(converted, f, POS)
    TABLE["q"] = 1
    both(converted, f, POS)
    TABLE["k"] = [1, 2]
    del TABLE["q"]


def helper(x):
    return x + 1


@scenario("globals that are functions")
def global_function_changes():
    global helper

    def f(x):
        return helper(x)

    converted, before = dy2static.to_static(f), helper
    both(converted, f, POS)
    helper = lambda x: x * 9
    both(converted, f, POS)
    helper = before


@scenario("closure cells")
def closure_changes():
    k = 2

    def f(x):
        if x.sum() > 0:
            return x * k
        return x - k

    converted = dy2static.to_static(f)
    for k in (2, 5, 5.0):
        both(converted, f, POS)
        both(converted, f, NEG)


@scenario("tensors in closures and globals")
def closure_tensor_changes():
    w = torch.ones(3)

    def f(x):
        if x.sum() > 0:
            return x * w
        return x - w

    converted = dy2static.to_static(f)
    both(converted, f, POS)
    w += 5
    both(converted, f, POS)
    w = torch.arange(3.0)
    both(converted, f, POS)
    w = torch.ones(1, dtype=torch.float64)
    both(converted, f, POS)


class Settings:
    def __init__(self):
        self.limit = 0.0
        self.nested = {"k": 1}


@scenario("attributes of objects")
def object_changes():
    settings = Settings()

    def f(x):
        if x.sum() > settings.limit:
            return x * settings.nested["k"]
        return x

    converted = dy2static.to_static(f)
    both(converted, f, POS)
    settings.limit = 100.0
    both(converted, f, POS)
    settings.limit = 0.0
    settings.nested["k"] = 4
    both(converted, f, POS)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.threshold = 0.0
        self.layer = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.names = ["a"]

    def forward(self, x):
        y = self.drop(self.layer(x))
        if y.sum() > self.threshold:
            return y * len(self.names)
        return y - 1


def nets():
    """The same network twice, one converted."""
    torch.manual_seed(0)
    eager = Net()
    torch.manual_seed(0)
    return dy2static.to_static(Net()), eager


def pair(layer, eager, x=POS):
    """Call both under one seed, compare results and gradients."""
    outputs = []
    for module in (layer, eager):
        torch.manual_seed(1)
        module.zero_grad(set_to_none=True)
        y = module(x)
        if y.requires_grad:
            y.sum().backward()
        outputs.append((y, [p.grad for p in module.parameters()]))
    same(outputs[0], outputs[1], tolerance=1e-6)


@scenario("attributes of modules")
def module_attribute_changes():
    layer, eager = nets()
    for module_threshold in (0.0, 100.0, -100.0):
        layer.threshold = eager.threshold = module_threshold
        pair(layer, eager)
    layer.names.append("b")
    eager.names.append("b")
    pair(layer, eager)


@scenario("train and eval")
def modes():
    layer, eager = nets()
    for mode in ("train", "eval", "train"):
        getattr(layer, mode)()
        getattr(eager, mode)()
        pair(layer, eager)
    layer.drop.eval()
    eager.drop.eval()
    pair(layer, eager)


@scenario("a sublayer is replaced")
def sublayer_replaced():
    layer, eager = nets()
    pair(layer, eager)
    torch.manual_seed(5)
    new = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    layer.layer = new
    eager.layer = new
    pair(layer, eager)
    layer.layer = eager.layer = nn.Identity()
    pair(layer, eager)


@scenario("a parameter is frozen")
def frozen():
    layer, eager = nets()
    pair(layer, eager)
    layer.layer.weight.requires_grad_(False)
    eager.layer.weight.requires_grad_(False)
    pair(layer, eager)
    layer.layer.bias.requires_grad_(False)
    eager.layer.bias.requires_grad_(False)
    pair(layer, eager)


@scenario("a parameter is replaced, loaded or moved")
def parameter_replaced():
    layer, eager = nets()
    pair(layer, eager)
    for module in (layer, eager):
        module.layer.weight = nn.Parameter(torch.full((3, 3), 0.5))
    pair(layer, eager)
    state = {name: value * 2 for name, value in eager.state_dict().items()}
    layer.load_state_dict(state)
    eager.load_state_dict(state)
    pair(layer, eager)
    layer.double()
    eager.double()
    pair(layer, eager, POS.double())


@scenario("hooks are added and removed")
def hooks_change():
    layer, eager = nets()
    pair(layer, eager)
    handles = [m.layer.register_forward_hook(lambda module, args, out: out * 3) for m in (layer, eager)]
    pair(layer, eager)
    [handle.remove() for handle in handles]
    pair(layer, eager)


@scenario("a method is replaced on the class")
def method_replaced():
    class Plus(nn.Module):
        def step(self, x):
            return x + 1

        def forward(self, x):
            return self.step(x)

    layer, eager = dy2static.to_static(Plus()), Plus()
    both(layer, eager, POS)
    Plus.step = lambda self, x: x * 7
    both(layer, eager, POS)


@scenario("grad mode")
def grad_mode():
    def f(x):
        if torch.is_grad_enabled():
            return x * 2
        return x * 3

    converted = dy2static.to_static(f)
    both(converted, f, POS)
    with torch.no_grad():
        both(converted, f, POS)
    with torch.inference_mode():
        both(converted, f, POS)
    both(converted, f, POS)


@scenario("autocast")
def autocast():
    def f(x):
        y = x @ torch.ones(3, 3)
        if y.sum() > 0:
            return y
        return y * 2

    converted = dy2static.to_static(f)
    x = POS.detach()
    both(converted, f, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        both(converted, f, x)
    both(converted, f, x)


@scenario("default dtype")
def default_dtype():
    def f(x):
        return torch.zeros(3) + torch.arange(3.0), x * 1

    converted = dy2static.to_static(f)
    both(converted, f, POS)
    torch.set_default_dtype(torch.float64)
    try:
        both(converted, f, POS)
    finally:
        torch.set_default_dtype(torch.float32)


@scenario("requires_grad of arguments")
def requires_grad():
    def f(x):
        if x.requires_grad:
            return x * 2
        return x * 3

    converted = dy2static.to_static(f)
    both(converted, f, POS)
    both(converted, f, POS.detach())


@scenario("dtype and rank of arguments")
def dtype_and_rank():
    def f(x):
        if x.dtype == torch.float64:
            return x * 2
        return x.sum(-1) if x.dim() > 1 else x

    converted = dy2static.to_static(f)
    for x in (POS, POS.double(), POS.unsqueeze(0), POS.half(), POS.long()):
        both(converted, f, x)


@scenario("a second size makes the dimension dynamic")
def sizes_become_dynamic():
    def f(x):
        y = x * x.shape[0]
        if y.sum() > 0:
            return y.mean(0), len(x)
        return y.sum(0), x.shape[0] + 1

    converted = dy2static.to_static(f)
    for n in (3, 4, 5, 6, 7, 12):
        both(converted, f, normal(n, 2))
        both(converted, f, -normal(n, 2).abs())
    assert len(converted.programs) <= 2


@scenario("a guard on a size retraces")
def size_guard():
    def f(x):
        if x.shape[0] > 4:
            return x[:4] * 2
        return x

    converted = dy2static.to_static(f)
    for n in (3, 5, 4, 8, 2, 9, 1, 0):
        both(converted, f, normal(n, 2))


@scenario("sizes of 0 and 1 are not special")
def zero_and_one():
    def f(x):
        y = torch.zeros(3, 2)
        return x.sum(0) + x.shape[0], x.mean(0) * y.sum(0)

    converted = dy2static.to_static(f, input_spec=[dy2static.InputSpec([None, 2], "float32")])
    for n in (3, 1, 0, 5):
        both(converted, f, normal(n, 2).detach())


@scenario("operators on unknown sizes")
def unknown_sizes():
    def f(x):
        image = x[None, None]
        return (
            torch.nn.functional.pad(x, (1, 1)), x.split(2), x.chunk(2), x.unbind(1), x.flatten(), x.numel() == 0,
            torch.nn.functional.max_pool2d(image, 2, ceil_mode=True),
            torch.nn.functional.interpolate(image, scale_factor=2.0),
            torch.nn.functional.scaled_dot_product_attention(image, image, image),
            torch.equal(x, x * 1), x[x > 0].sum(), (x > 0).nonzero().shape[1],
            torch.nn.functional.batch_norm(x, None, None, training=True), x.transpose(0, 1).reshape(-1),
        )

    converted = dy2static.to_static(f)
    for n in (4, 6, 5, 3, 7):
        same(converted(normal(n, 3)), f(normal(n, 3)), tolerance=1e-6)


@scenario("a warning once retracing passes a limit")
def retrace_warning():
    def f(x, k):
        return x * len(k)

    converted = dy2static.to_static(f)
    with pytest.warns(dy2static.RetraceWarning, match="k"):
        for k in range(40):
            both(converted, f, POS, str(k))


@scenario("threads")
def threads():
    def f(x):
        while x.abs().sum() > 1:
            x = x / 2
        return x

    converted = dy2static.to_static(f)
    wrong = []

    def work(seed):
        for number in range(10):
            x = normal(2 + number % 3, seed=seed).detach() * 9
            if not torch.equal(converted(x), f(x)):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert not wrong


@scenario("arguments that share memory")
def sharing():
    def f(x, y):
        x += 1
        return y * 2

    converted = dy2static.to_static(f)
    for share in (False, True, False):
        results = []
        for function in (converted, f):
            x = torch.zeros(3)
            results.append((function(x, x if share else torch.zeros(3)), x))
        same(results[0], results[1])


@scenario("strides of arguments")
def strides():
    def f(x):
        if x.is_contiguous():
            return x.view(-1)
        return x.reshape(-1) * 2

    converted = dy2static.to_static(f)
    x = normal(2, 3)
    for argument in (x, x.t(), normal(2, 6)[:, ::2], x):
        both(converted, f, argument)
