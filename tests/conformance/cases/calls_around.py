"""Context managers, exceptions, hooks, autograd functions, randomness and containers of modules."""

from __future__ import annotations

import contextlib

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.conformance.family import BOTH, EACH, NEG, POS, Family, normal, num, vec

family = Family("Calls")
case = family.case


@case("torch.no_grad", *BOTH)
def no_grad(x):
    with torch.no_grad():
        y = x * 2
        if y.sum() > 0:
            y = y + 1
    return y * x


@case("torch.enable_grad inside no_grad", *BOTH)
def enable_grad(x):
    with torch.no_grad():
        with torch.enable_grad():
            y = x * 2
            if y.sum() > 0:
                y = y * y
        z = y * 3
    return y, z


@case("torch.set_grad_enabled", (POS, True), (NEG, True), (POS, False), (NEG, False))
def set_grad_enabled(x, flag):
    with torch.set_grad_enabled(flag):
        if x.sum() > 0:
            return x * 2
        return x * 3


@case("autocast", *BOTH, tolerance=1e-2)
def autocast(x):
    w = torch.ones(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        if y.float().sum() > 0:
            y = y @ w
    return y.float(), y.dtype == torch.bfloat16


class Managed:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return 2

    def __exit__(self, *exc):
        self.log.append("out")
        return False


@case("user-defined context manager", *BOTH)
def user_manager(x):
    log = []
    with Managed(log) as k:
        if x.sum() > 0:
            x = x * k
    return x, log


@contextlib.contextmanager
def scaled(k):
    yield k * 2


@case("contextlib.contextmanager", *BOTH)
def generator_manager(x):
    with scaled(3) as k, contextlib.suppress(KeyError):
        if x.sum() > 0:
            return x * k
    return x


class Count:
    def __init__(self):
        self.entered, self.left = 0, 0

    def __enter__(self):
        self.entered += 1
        return self

    def __exit__(self, *error):
        self.left += self.entered


@case("user-defined context manager with effects in a branch", *BOTH)
def manager_in_branch(x):
    count = Count()
    if x.sum() > 0:
        with count as same:
            x = x * same.entered
    return x, count.entered, count.left


@case("user-defined context manager with effects in a loop", *BOTH)
def manager_in_loop(x):
    count = Count()
    while x.sum() < 10:
        with count:
            x = x + 1
    return x, count.entered, count.left


class Swallows:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is ValueError


@case("a context manager that may swallow a raise that a tensor decides", *BOTH)
def swallowing_manager(x):
    with Swallows():
        if x.sum() > 0:
            raise ValueError("positive")
        x = x * 2
    return x


@case("which context manager a tensor decides", *BOTH, refused="D2S212")
def chosen_manager(x):
    with torch.no_grad() if x.sum() > 0 else contextlib.nullcontext():
        return x * 2


@case("a setting of torch changed in a branch", *BOTH, refused="D2S227")
def setting_in_branch(x):
    if x.sum() > 0:
        torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(True)
    return y


@case("exception swallowed by a context manager", *BOTH)
def suppressed(x):
    with contextlib.suppress(ValueError):
        if x.shape[0] == 3:
            raise ValueError
        x = x * 100
    return x


@case("suppress around a raise that a tensor decides", *BOTH)
def suppressed_staged(x):
    with contextlib.suppress(ValueError):
        if x.sum() > 0:
            raise ValueError("positive")
    return x


@case("try and except of Python errors", (POS, {"a": 1}), (NEG, {"a": 1}), (POS, {}), search=1)
def except_key(x, d):
    try:
        k = d["a"]
    except KeyError:
        k = 5
    else:
        k = k + 1
    if x.sum() > 0:
        return x * k
    return x


@case("finally", *BOTH)
def final(x):
    log = []
    try:
        if x.sum() > 0:
            x = x * 2
    finally:
        log.append(1)
    return x, log


@case("except with a name, and re-raise", (POS, 1), (POS, 0), (NEG, 1))
def reraised(x, k):
    try:
        y = x / (1 // k)
    except ZeroDivisionError as error:
        raise ValueError(f"bad k: {error}") from error
    if y.sum() > 0:
        return y * 2
    return y


@case("raise in a branch that is not taken", *EACH)
def raise_not_taken(x):
    if x.sum() > 1.5:
        raise ValueError("too large", 3)
    if x.sum() < 0:
        raise KeyError("negative")
    return x


class OwnError(RuntimeError):
    pass


@case("raise of a user's exception class", *BOTH)
def raise_own(x):
    if x.sum() > 0:
        raise OwnError(f"sum of {x.shape[0]}")
    return x


@case("raise with a number read off a tensor", (num(3),), (num(-3),))
def raise_with_number(t):
    if t > 0:
        raise ValueError(f"got {int(t)}")
    return t


@case("raise in a loop", *[(vec(1.0), num(n)) for n in (0, 2, 9)])
def raise_in_loop(x, n):
    for i in range(n):
        x = x * 2
        if x.sum() > 50:
            raise OverflowError("diverged")
    return x


@case("assert in a branch", *BOTH)
def assert_in_branch(x):
    if x.sum() > 0:
        assert x.max() < 1, "too large"
    return x


@case("except around a raise that a tensor decides", *BOTH)
def except_staged(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive", x)
        x = x - 1
    except ValueError as error:
        x = error.args[1] * 2
    return x


@case("except around a raise in a loop that a tensor decides", *BOTH, search=1)
def except_staged_loop(x):
    count = 0
    while x.sum() < 10:
        try:
            x = x + 1
            for k in range(3):
                assert x.sum() + k < 6, k
            count += 1
        except AssertionError as error:
            x = x + error.args[0] + 1
        finally:
            count += 10
    return x, count


def positive(x):
    if x.sum() > 0:
        raise ValueError("positive")
    return x


@case("except around a call that raises as a tensor decides", *BOTH, idle=3)
def except_around_call(x):
    try:
        return positive(x)
    except ValueError:
        return x * 2


@case("except around calls by map that raise as a tensor decides", *BOTH, refused="D2S229")
def except_around_map(x):
    try:
        return list(map(positive, [x, x * 2]))
    except ValueError:
        return x * 2


@case("except around an index that a tensor decides", *BOTH, (vec(0, 0, 0),), (vec(1, 0, 0),))
def except_around_index(x):
    try:
        return [x, x * 2][int(x.sum())]
    except IndexError:
        return x


@case("except around linear algebra", *BOTH, idle=3)
def except_around_cholesky(x):
    try:
        return torch.linalg.cholesky(torch.diag(x))
    except RuntimeError:
        return torch.diag(x)


@case("NotImplementedError in a helper", *BOTH)
def not_implemented(x):
    def todo(v):
        raise NotImplementedError("later")

    if x.sum() > 0:
        return todo(x)
    return x


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 7 * x


@case("torch.autograd.Function keeps its backward", *BOTH)
def own_backward(x):
    y = Square.apply(x)
    if x.sum() > 0:
        y = Square.apply(y) + y
    return y


@case("torch.autograd.Function in a loop", *[(vec(0.5, 1.5), num(n)) for n in (0, 1, 3)])
def own_backward_loop(x, n):
    for i in range(n):
        x = Square.apply(x) * 0.5
    return x


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(x, scale):
        return torch.round(x) * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


@case("torch.autograd.Function with setup_context", *BOTH)
def straight_through(x):
    if x.sum() > 0:
        return Straight.apply(x, 2.0)
    return Straight.apply(x, 3.0)


@case("torch.autograd.grad inside", *BOTH)
def gradient_inside(x):
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    if g.sum() > 0:
        return g * 2
    return g


@case("dropout", *BOTH)
def dropout(x):
    if x.sum() > 0:
        x = nn.functional.dropout(x, 0.5)
    return nn.functional.dropout(x, 0.3) + torch.rand(3)


@case("dropout in a loop", *[(vec(1.0, 2.0, 3.0, 4.0), num(n)) for n in (0, 1, 4)])
class DropoutLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

    def forward(self, x, n):
        for i in range(n):
            x = self.drop(torch.tanh(self.layer(x)))
        return x


@case("other randomness", *BOTH)
def randomness(x):
    y = torch.randn(3) + torch.randint(0, 5, (3,)) + torch.randperm(3)
    if x.sum() > 0:
        y = y + torch.bernoulli(torch.full((3,), 0.5)) + torch.normal(0.0, 1.0, (3,))
    return x * y, torch.multinomial(torch.ones(3), 2)


@case("rejection sampling", *BOTH)
def rejection(x):
    y = torch.randn(3)
    while y.sum() < 1:
        y = torch.randn(3)
    return x * y


@case("forward hooks and pre-hooks", *EACH)
class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
        self.layer.register_forward_hook(self.after)

    @staticmethod
    def after(module, args, output):
        if output.sum() > 0:
            return output * 3
        return None

    def forward(self, x):
        return self.layer(x)


@case("hook that changes a list", *BOTH, idle=2)
class Stores(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.seen = []
        self.layer.register_forward_hook(lambda m, a, out: self.seen.append(len(self.seen)))

    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        return self.layer(x)


@case("Sequential, ModuleList, ModuleDict", *EACH, search=1)
class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.rest = nn.ModuleList([nn.Linear(3, 3), nn.Identity()])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 2)})

    def forward(self, x):
        x = self.body(x)
        for layer in self.rest:
            x = layer(x)
        key = "a" if x.sum() > 0 else "b"
        if key == "a":
            return self.heads["a"](x)
        return self.heads["b"](x)


@case("ModuleList indexed by a tensor", *[(vec(1.0, 2.0, 3.0), num(n)) for n in (0, 1, -1)])
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 2) for _ in range(2))

    def forward(self, x, n):
        return self.experts[int(n)](x)


@case("ModuleDict indexed by joined text", *EACH)
class ByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"up": nn.Linear(3, 2), "down": nn.Linear(3, 2)})

    def forward(self, x):
        return self.heads["up" if x.sum() > 0 else "down"](x)


@case("mixture of experts by token", (normal(5, 3),), (normal(5, 3, seed=2),), search=1)
class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(3, 2)
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def forward(self, x):
        choice = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            mask = choice == index
            if mask.any():
                out[mask] = expert(x[mask])
        return out


@case("parameters and ParameterList", *BOTH)
class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.steps = nn.ParameterList([torch.ones(3), torch.zeros(3)])

    def forward(self, x):
        for w in self.steps:
            if x.sum() > 0:
                x = x * self.scale + w
        return x


@case("RNN, LSTM and packed by hand", (normal(3, 2, 4),), (normal(3, 2, 4, seed=1),))
class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        if y.sum() > 0:
            h = h * 2
        return y, h, c


@case("torch.utils.checkpoint", *BOTH)
class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def block(self, x):
        x = torch.tanh(self.layer(x))
        if x.sum() > 0:
            x = x * 2
        return x

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


@case("torch.distributions", *BOTH, idle=3)
def distributions(x):
    d = torch.distributions.Normal(x, x.abs() + 1)
    if d.mean.sum() > 0:
        return d.log_prob(x * 2)
    return d.entropy()


@case("torch.vmap inside", *BOTH)
def vmap_inside(x):
    return torch.vmap(lambda v: v * 2)(x * 3 if x.sum() > 0 else x)


@case("torch.func.grad and jacrev inside", *BOTH)
def derivatives_inside(x):
    y = torch.func.grad(lambda v: (v * v.sin()).sum())(x)
    if y.sum() > 0:
        return y * 2
    return torch.func.jacrev(lambda v: v * v)(y)


@case("match: literals, sequences, captures", (POS, 1), (NEG, [1, 2]), (POS, (3, 4)), (POS, "other"), (NEG, None),
      search=1)
def match_plain(x, value):
    match value:
        case 1:
            k = 1
        case [a, b]:
            k = a + b
        case "other" | "more":
            k = 7
        case _:
            k = 0
    if x.sum() > 0:
        return x * k
    return x, k


@case("match over a number read off a tensor", *[(vec(1.0), num(n)) for n in (0, 1, 2, 4, 9)])
def match_staged(x, n):
    match int(n):
        case 0:
            return x
        case 1 | 2:
            x = x * 2
        case k if k > 5:
            x = x * k
    return x


@case("import inside a function", *BOTH)
def imports(x):
    import math
    from math import pi as half_turn

    if x.sum() > 0:
        return x * math.e
    return x * half_turn


@case("a generator function defined inside", *BOTH)
def uses_generator(x):
    def numbers():
        yield from (1, 2, 3)

    total = x
    for k in numbers():
        if total.sum() > 0:
            total = total + k
    return total


@case("eval in a function that decides on a tensor", *BOTH, refused="D2S212")
def evaluated(x):
    k = eval("1 + 2")
    if x.sum() > 0:
        return x * k
    return x


@case("is_compiling and is_tracing read False", *BOTH)
def detours(x):
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.jit.is_scripting():
        return x * 100
    if x.sum() > 0:
        return x
    return -x


@case("except around pops of a list whose length a tensor decides", *BOTH)
def except_around_pops(x):
    items = []
    for k in range((x > 0).sum()):
        items.append(x * k)
    while True:
        try:
            x = items.pop() + x * 2
        except IndexError:
            break
    return x
