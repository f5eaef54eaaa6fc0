"""What is called inside a trace: functions, objects, modules with hooks, torch's own code, what must be refused."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import random
from os import environ

import numpy
import pytest
import torch

import dy2static
from dy2static import not_to_static
from runtime.errors import TraceError
from tests.dy2static.operators.conftest import ready

GENERATOR = torch.Generator()
X = [torch.arange(12.0).reshape(3, 4) + shift for shift in (0, 0.2, -3, -8)]


class Scale:
    """A callable object with a property, a cached property, a static and a class method."""

    unit = 2

    def __init__(self, value):
        self.value = value
        self.calls = 0

    @property
    def sign(self):
        if self.value.sum() > 0:
            return 1
        return -1

    @functools.cached_property
    def norm(self):
        return self.value.abs().sum() + (1 if self.value.max() > 3 else 2)

    @staticmethod
    def double(x):
        return x * 2 if x.sum() > 0 else x

    @classmethod
    def of_unit(cls, x):
        return cls(x * cls.unit) if cls.unit > 1 else None

    def __call__(self, y):
        self.calls += 1
        if y.sum() > 1:
            self.calls += 10
        return y * self.sign + self.norm + self.norm

    def __len__(self):
        return 3 if self.value.sum() > 0 else 4

    def __getitem__(self, key):
        return self.value[key] if self.value.sum() > 0 else key

    def __contains__(self, key):
        return self.value.sum() > key

    def __bool__(self):
        return bool(self.value.max() > 5)

    def __iter__(self):
        return iter([self.value, self.double(self.value)])


def objects(x):
    scale = Scale(x)
    other = Scale.of_unit(x)
    part = functools.partial(scale, y=x)
    truth = "yes" if scale else "no"
    total = 0
    for item in scale:
        total = total + item
    return scale(x), part(), scale.calls, Scale.double(x), other.value, len(scale), scale[0], 3 in scale, truth, total


@functools.lru_cache(maxsize=None)
def cached(x):
    return x * 2 if x.sum() > 0 else x


@contextlib.contextmanager
def region():
    yield


def decorated_by(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result = function(*args, **kwargs)
        return result + 1 if result.sum() > 0 else result

    return wrapper


@decorated_by
@torch.no_grad()
@region()
def decorated(x):
    if x.mean() > 0:
        return x * 3
    return x


def functions(x):
    factor = 2

    def inner(y, *rest, scale=1, **more):
        nonlocal factor
        if y.sum() > 0:
            factor += scale
        return y * factor

    def recurse(y, depth):
        if depth == 0 or y.sum() > 20:
            return y
        return recurse(y + 1, depth - 1)

    picked = [lambda t: t + 1, lambda t: t - 1][int(x.sum() > 0)]
    mapped = list(map(lambda t: t if t > 0 else -t, [x.sum(), x.mean()]))
    ordered = sorted([3, 1, 2], key=lambda v: -v)
    reduced = functools.reduce(lambda a, b: a + b if a.sum() > 0 else b, [x, x * 2, x])
    return (
        inner(x),
        inner(x, scale=2),
        factor,
        recurse(x, 3),
        picked(x),
        mapped,
        ordered,
        reduced,
        cached(x) + 0,
        decorated(x),
    )


class Sub(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x, *, bias=0):
        self.count += 1
        if x.mean() > 0:
            return x * self.weight + bias
        return x - self.weight


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])
        self.box = torch.nn.Sequential(torch.nn.Linear(4, 4), Sub(), torch.nn.Dropout(0.5))
        self.steps = []
        self.last = None

    def forward(self, x):
        x = self.sub(x, bias=1)
        for layer in self.layers:
            x = layer(x)
            if x.abs().max() > 4:
                break
        self.steps.append(int(x.sum() > 0))
        self.last = x.sum()
        return self.box(self.layers[int(x.abs().sum()) % 3](x))


class Child(Net):
    def forward(self, x):
        x = super().forward(x)
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize("function", [objects, functions])
def test_functions_and_objects(check, function):
    check(function, *X)


@pytest.mark.parametrize("cls", [Net, Child])
@pytest.mark.parametrize("training", [True, False])
def test_modules(traced, cls, training):
    """One Program for all inputs, on two equal modules: results, gradients, buffers and Python state."""
    torch.manual_seed(1)
    eager, converted = cls().train(training), cls().train(training)
    converted.load_state_dict(eager.state_dict())
    program = None
    from runtime.tracer import flatten

    for x in X:
        if program is None or not all(guard.holds() for guard in program.guards):
            program = traced(converted, x)
        torch.manual_seed(0)
        expected = eager(x)
        torch.manual_seed(0)
        actual = ready(program).call(flatten({"x": x}))
        torch.testing.assert_close(actual, expected, rtol=0, atol=0)
        expected.sum().backward()
        actual.sum().backward()
        for (name, mine), (_, theirs) in zip(eager.named_parameters(), converted.named_parameters()):
            torch.testing.assert_close(theirs.grad, mine.grad, msg=name)
        for (name, mine), (_, theirs) in zip(eager.named_buffers(), converted.named_buffers()):
            assert torch.equal(mine, theirs), name
        assert eager.steps == converted.steps
        assert torch.equal(eager.last, converted.last)


def test_parameters_are_named_as_in_the_state_dict(traced):
    net = Net()
    names = [param.name for param in traced(net, X[0]).program.params]
    assert set(names) == set(net.state_dict())


def hooked(log):
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), Sub())
    net[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    net[0].register_forward_hook(lambda module, args, out: out + args[0] if out.sum() > 0 else None)
    net[1].register_forward_pre_hook(lambda module, args, kwargs: (args, {**kwargs, "bias": 3}), with_kwargs=True)
    net[1].register_forward_hook(lambda module, args, kwargs, out: out * kwargs["bias"], with_kwargs=True)
    net[1].register_forward_hook(lambda module, args, out: log.append(len(log)), always_call=True)
    return net


def test_hooks_run_in_order(check):
    torch.manual_seed(0)
    log = []
    net = hooked(log)
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1)
    try:
        check(net, X[0])
    finally:
        handle.remove()


def test_a_backward_hook_is_refused(traced):
    net = torch.nn.Linear(4, 4)
    net.register_full_backward_hook(lambda *args: None)
    with pytest.raises(TraceError, match="backward hook"):
        traced(net, X[0])


@not_to_static
def left_alone(x):
    return x * 2


@not_to_static
def left_alone_but_branches(x):
    return x if x.sum() > 0 else -x


def test_what_is_not_converted_runs_as_it_is(check, traced):
    check(lambda x: left_alone(x) + 1, X[0])
    with pytest.raises(
        TraceError, match="left_alone_but_branches, which was not converted: it is marked not_to_static"
    ):
        traced(lambda x: left_alone_but_branches(x), X[0])


@pytest.mark.parametrize(
    "read",
    [
        lambda x: random.randbytes(3),
        lambda x: random.getstate(),
        lambda x: os.environ.update(NEW="1"),
        lambda x: os.environ.setdefault("NEW", "1"),
        lambda x: numpy.random.bytes(3),
        lambda x: open(__file__),
        lambda x: torch.get_rng_state(),
        lambda x: torch.cuda.manual_seed_all(0),
        lambda x: torch.random.fork_rng(devices=[]),
        lambda x: torch.Generator().seed(),
        lambda x: GENERATOR.manual_seed(0),
        lambda x: torch.default_generator.get_state(),
    ],
)
def test_what_would_freeze_is_refused(traced, read):
    with pytest.raises(TraceError, match="D2S214"):
        traced(read, X[0])


def test_a_generator_of_the_caller_is_drawn_from_in_each_run():
    def noisy(x):
        return x + torch.rand(3, generator=GENERATOR)

    static = dy2static.to_static(noisy)
    for _ in range(2):
        GENERATOR.manual_seed(7)
        expected = [noisy(torch.zeros(3)), noisy(torch.zeros(3))]
        GENERATOR.manual_seed(7)
        assert torch.equal(torch.stack([static(torch.zeros(3)), static(torch.zeros(3))]), torch.stack(expected))


@pytest.mark.parametrize(
    "read",
    [
        lambda: os.getenv("D2S_TEST_SCALE", "1"),
        lambda: os.environ.get("D2S_TEST_SCALE", "1"),
        lambda: os.environ["D2S_TEST_SCALE"] if "D2S_TEST_SCALE" in os.environ else "1",
        lambda: dict(os.environ).get("D2S_TEST_SCALE", "1"),
        lambda: {**os.environ}.get("D2S_TEST_SCALE", "1"),
        lambda: environ.get("D2S_TEST_SCALE", "1"),
        lambda: ([environ[name] for name in environ if name == "D2S_TEST_SCALE"] or ["1"])[0],
    ],
)
def test_a_changed_environment_means_another_program(monkeypatch, read):
    @dy2static.to_static
    def scaled(x):
        return x * float(read())

    assert scaled(X[0]).equal(X[0])
    monkeypatch.setenv("D2S_TEST_SCALE", "3")
    assert scaled(X[0]).equal(X[0] * 3)
    assert scaled(X[0]).equal(X[0] * 3)
    assert len(scaled.programs) == 2
    monkeypatch.delenv("D2S_TEST_SCALE")
    assert scaled(X[0]).equal(X[0])


class Seen:
    """Made anew at each read of a property."""

    def __init__(self, owner):
        self.owner = owner

    def __getitem__(self, key):
        return self.owner.n + key


class Renamed:
    """A configuration whose names go through a map, as some libraries have."""

    names = {"m": "n"}

    def __init__(self):
        self.n = 2
        self.inner = {"a": [1.0]}

    def __getattribute__(self, key):
        if key != "names" and key in super().__getattribute__("names"):
            key = super().__getattribute__("names")[key]
        return super().__getattribute__(key)

    def __getattr__(self, key):
        if key == "absent":
            return 5
        raise AttributeError(key)

    @property
    def seen(self):
        return Seen(self)


def test_lookups_of_ones_own_and_copies_are_followed():
    config = Renamed()

    def configured(x):
        deep = copy.deepcopy(config)
        deep.k = deep.n + deep.inner["a"][0]
        del deep.n
        deep.inner["a"].append(7.0)
        flat = copy.copy(config)
        if x.sum() > 0:
            return x * config.m + config.seen[1] + deep.k + config.absent + flat.n + sum(deep.inner["a"])
        return x + getattr(config, "q", 3) + hasattr(config, "n")

    static = dy2static.to_static(configured)
    for count, change in enumerate((lambda: None, lambda: setattr(config, "n", 3),
                                    lambda: config.inner["a"].append(4.0)), 1):
        change()
        for x in (*X, *X):
            assert static(x).equal(configured(x))
        assert len(static.programs) == count


class Put(torch.autograd.Function):
    """Writes into its argument past autograd's eyes, and returns it."""

    @staticmethod
    def forward(ctx, scratch, value, index):
        ctx.index = index
        scratch.data[index] = value
        return scratch

    @staticmethod
    def backward(ctx, grad):
        return grad, grad[ctx.index] * 3, None


def test_a_function_that_fills_its_argument():
    def filled(x):
        k = torch.zeros(3, *x.shape)
        k = Put.apply(k, x * 2, 0)
        if x.sum() > 0:
            k = Put.apply(k, k[0] + x, 1)
        return k, k[:2].sum(0) * x

    static = dy2static.to_static(filled)
    for x in X:
        mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, expected = static(mine), filled(theirs)
        for a, b in zip(got, expected):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
        (got[0] * x).sum().add(got[1].sum()).backward()
        (expected[0] * x).sum().add(expected[1].sum()).backward()
        torch.testing.assert_close(mine.grad, theirs.grad)
    assert len(static.programs) == 1


def test_an_argument_that_a_function_filled_is_not_read_again(traced):
    def old(x):
        k = torch.zeros_like(x)
        Put.apply(k, x[0], 0)
        return k

    with pytest.raises(TraceError, match="D2S220"):
        traced(old, X[0])
    with pytest.raises(TraceError, match="D2S218"):
        traced(lambda x: Put.apply(x, x[0], 0), X[0])


class Counts(torch.autograd.Function):
    calls = torch.zeros(())

    @staticmethod
    def forward(ctx, x, held):
        (held[0] if held else Counts.calls).add_(1)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


@pytest.mark.parametrize("held", [True, False], ids=["in a list", "in a class"])
def test_a_tensor_from_outside_that_a_function_writes_is_refused(held):
    def counted(x):
        other = [torch.zeros(())]
        y = Counts.apply(x, other if held else None)
        return y + Counts.calls if x.sum() > 0 else y

    with pytest.raises(TraceError, match="D2S218.*did not make" if not held else "D2S218"):
        dy2static.to_static(counted)(X[0].clone().requires_grad_())
    assert Counts.calls == 0


def test_text_format(check):
    def described(x):
        n = int(x.sum())
        if x.sum() > 66:
            n += 1
        label = "{} of {total:>{width}} {0!r}".format if n > -100 else "".format
        return "{:5.1f}|{}|{{{n}}}".format(x.sum(), x[0], n=n) + label(n, total=x.max(), width=6)

    check(described, *X)


def test_slices_bounded_by_tensors(check):
    def bounded(x, n):
        y = x.clone()
        y[n:] = 0
        return x[:n], x[n - 1 : n + 1, None], y

    for n in (1, 2):
        check(bounded, (X[0], torch.tensor(n)))


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        result = x.exp() if x.sum() > 0 else x * 2
        ctx.save_for_backward(result, x)
        ctx.factor = factor
        ctx.positive = x.sum() > 0
        return result * factor

    @staticmethod
    def backward(ctx, grad):
        result, x = ctx.saved_tensors
        if ctx.positive:
            return grad * result * ctx.factor * 10, None
        return grad * ctx.factor * 20 + x * 0, None


class TwoResults(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y, x.argmax()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, grad, _):
        x, y = ctx.saved_tensors
        assert ctx.needs_input_grad[0]
        return grad * y * 7, grad * x * 5


def custom(x):
    y = Exponential.apply(x / 10, 3)
    z, where = TwoResults.apply(y, x + 1)
    return z, where


def test_custom_functions_keep_their_backward(traced):
    from runtime.tracer import flatten

    program = traced(custom, X[0].clone().requires_grad_())
    for x in X:
        results = []
        for run in (custom, lambda t: ready(program).call(flatten({"x": t}))):
            t = x.clone().requires_grad_()
            z, where = run(t)
            z.sum().backward()
            assert not where.requires_grad
            results.append((z.detach(), where, t.grad))
        for mine, theirs in zip(*results):
            torch.testing.assert_close(theirs, mine, rtol=0, atol=0)


class Counting(torch.nn.Module):
    def __call__(self, x):
        return super().__call__(x if x.sum() > 0 else -x) + 1

    def forward(self, x):
        return x * 2 if x.max() > 3 else x


def test_a_module_with_its_own_call(check):
    check(Counting(), *X)


def test_transforms_that_make_programs_of_their_own_are_refused(traced):
    with pytest.raises(TraceError, match="torch.func.functionalize"):
        traced(lambda x: torch.func.functionalize(torch.sin)(x), X[0])
    with pytest.raises(TraceError, match="torch.func.linearize"):
        traced(lambda x: torch.func.linearize(torch.sin, x)[0], X[0])


def test_local_functions_leave_no_guards(traced):
    def outer(x):
        count = 0

        def step(y):
            nonlocal count
            count += 1
            return y * count

        return step(step(x))

    assert all(guard.holds() for guard in traced(outer, X[0]).guards)


class Marked(torch.Tensor):
    pass


@pytest.mark.parametrize("make", [
    lambda x: x.as_subclass(Marked), Marked, lambda x: torch.Tensor._make_subclass(Marked, x),
])  # fmt: skip
def test_a_tensor_of_a_users_class_is_not_made(make):
    def f(x):
        return make(x) * 2

    with pytest.raises(TraceError, match=r"D2S213[\s\S]*test_calls.py"):
        dy2static.to_static(f)(torch.ones(3))
