"""``torch.vmap`` and the transforms of ``torch.func`` inside a converted function, between its branches and loops."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

import dy2static
from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import same

pytestmark = [  # PyTorch's own
    pytest.mark.filterwarnings(f"ignore:.torch.jit.script. is deprecated:{kind}")
    for kind in ("DeprecationWarning", "FutureWarning")
]

LAYER = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
SCALE = 2.0
CALLS: list[int] = []


def energy(row: torch.Tensor) -> torch.Tensor:
    return (LAYER(row) ** 2).sum() * SCALE


def rows(x, w):
    if x.sum() > 0:
        x = x * 2
    return vmap(lambda r: (r @ w).sin().sum())(x)


def pairs(x, w):
    y = x * 2 if x.sum() > 0 else x
    return vmap(lambda a, b: a * b.sum(), in_dims=(0, None), out_dims=1)(y, w)


def rows_of_rows(x, w):
    y = x * 2 if x.sum() > 0 else x
    return vmap(vmap(lambda a, b: a * b + 1, in_dims=(0, 0)), in_dims=(0, None))(y, w)


def tuples(x, w):
    y = x * 2 if x.sum() > 0 else x
    out = vmap(lambda r: (r.sum(), {"max": r.max(), "w": r * w}))(y)
    return out[0] + 1, out[1]["max"], out[1]["w"]


def gradients(x, w):
    if x.sum() > 0:
        x = x * 2
    return grad(lambda r: (r @ w).sin().sum())(x)


def of_a_global_function(x, w):
    y = x * 2 if x.sum() > 0 else x
    return vmap(grad(energy))(y) * w


def with_values(x, w):
    y = x * 2 if x.sum() > 0 else x
    return grad_and_value(lambda r, s: ((r * s).sum(), r.cos()), argnums=1, has_aux=True)(y, w)


def per_sample_gradients(x, w):
    def loss(params, row):
        return functional_call(LAYER, params, (row,)).square().sum()

    y = x * 2 if x.sum() > 0 else x
    found = vmap(grad(loss), in_dims=(None, 0))(dict(LAYER.named_parameters()), y)
    return found["0.weight"], found["2.bias"] * w[0]


def jacobians(x, w):
    y = x * 2 if x.sum() > 0 else x
    return jacrev(LAYER)(y[0]) * w, jacfwd(lambda r: LAYER(r) * w.sum())(y[1])


def laplacian(x, w):
    def trace(row):
        return hessian(lambda r: LAYER(r).tanh().sum())(row).trace()

    y = x * 2 if x.sum() > 0 else x
    return vmap(trace)(y) * w[0]


def product_with_the_hessian(x, w):
    y = x * 2 if x.sum() > 0 else x
    return jvp(grad(energy), (y[0] * 1,), (w,))[1]


def products(x, w):
    y = x * 2 if x.sum() > 0 else x
    value, pull = vjp(lambda r: (r * w).sin(), y)
    (back,) = pull(torch.ones_like(value))
    return value, back


def tangents(x, w):
    y = x * 2 if x.sum() > 0 else x
    return jvp(lambda r: LAYER(r) * w[:2], (y,), (y * 2,))


def in_a_loop(x, w):
    n = x.sum()
    y = x
    while n > 0:
        y = y - 0.1 * vmap(grad(energy))(y)
        n = n - 3.0
    return y * w


def decided_after(x, w):
    g = grad(lambda r: (r * w).sin().sum())(x)
    if g.sum() > 0:
        return g * 2
    return g - 1


def library_functions(x, w):
    y = x * 2 if x.sum() > 0 else x
    return vmap(partial(torch.add, w))(y), vmap(torch.sum)(y), vmap(LAYER)(y), vmap(LAYER[0].forward)(y)


def newton(x, w):
    y = x[0]
    for _ in range(3):
        g, h = grad(energy)(y), hessian(energy)(y)
        step = torch.linalg.solve(h + 10 * torch.eye(3), g)
        if step.norm() < 1e-3:
            break
        y = y - step
    return y * w


def with_statements_around(x, w):
    y = x * 2 if x.sum() > 0 else x
    with torch.no_grad():
        a = vmap(lambda r: r * w)(y)
    return a, vmap(lambda r: r.detach() * w)(y)


FUNCTIONS = [
    rows, pairs, rows_of_rows, tuples, gradients, of_a_global_function, with_values, per_sample_gradients, jacobians,
    laplacian, product_with_the_hessian, products, tangents, in_a_loop, decided_after, library_functions, newton,
    with_statements_around,
]


def _leaves(found: Any) -> list[torch.Tensor]:
    if isinstance(found, torch.Tensor):
        return [found]
    return [leaf for one in (found.values() if isinstance(found, dict) else found) for leaf in _leaves(one)]


def _tell(f: Any, x: torch.Tensor, w: torch.Tensor, needs: bool) -> Any:
    x, w = x.clone().requires_grad_(needs), w.clone().requires_grad_(needs)
    result = f(x, w)
    outs = [one for one in _leaves(result) if one.requires_grad]
    given = [x, w, *LAYER.parameters()]
    loss = sum(one.square().sum() for one in outs)
    asked = [one for one in given if one.requires_grad]
    gradients = torch.autograd.grad(loss, asked, allow_unused=True) if outs else ()
    return result, gradients


def _inputs(size: int, sign: float) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(size)
    return torch.rand(size, 3, generator=generator) * sign, torch.rand(3, generator=generator)


@pytest.mark.parametrize("needs", [True, False], ids=["with gradients", "without"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_transform_inside(f, needs):
    static = to_static(f)
    for size, sign in ((4, 1.0), (4, -1.0), (2, 1.0), (5, -1.0), (5, 1.0)):
        if f is rows_of_rows and size != 4:
            continue
        x, w = _inputs(size, sign)
        same(_tell(static, x, w, needs), _tell(f, x, w, needs), tolerance=1e-5)


@pytest.mark.parametrize("f", [rows, of_a_global_function, laplacian, in_a_loop, products], ids=lambda f: f.__name__)
def test_of_a_loaded_program(f, tmp_path):
    static = to_static(f)
    for sign in (1.0, -1.0):
        _tell(static, *_inputs(4, sign), True)
    dy2static.save(static, tmp_path / "f")
    loaded = dy2static.load(tmp_path / "f")
    for sign in (1.0, -1.0):
        x, w = _inputs(4, sign)
        same(loaded(x, w), f(x, w), tolerance=1e-5)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers(randomness):
    def f(x):
        y = x * 2 if x.sum() > 0 else x
        return vmap(lambda r: r + torch.rand_like(r) + torch.randn(3), randomness=randomness)(y)

    static = to_static(f)
    for sign in (1.0, -1.0):
        x, _ = _inputs(4, sign)
        torch.manual_seed(0)
        expected = f(x), torch.rand(1)
        torch.manual_seed(0)
        same((static(x), torch.rand(1)), expected)


def test_what_vmap_refuses_it_refuses_here():
    def f(x):
        return vmap(lambda r: r + torch.rand_like(r))(x)

    def g(x):
        return vmap(lambda r: r * 2 if r.sum() > 0 else r)(x)

    x, _ = _inputs(4, 1.0)
    for one in (f, g):
        with pytest.raises(RuntimeError, match="vmap") as expected:
            one(x)
        with pytest.raises((RuntimeError, TraceError)) as given:
            to_static(one)(x)
        assert isinstance(given.value, TraceError) or str(given.value) == str(expected.value)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.scale = 2.0
        self.calls = 0
        self.register_buffer("seen", torch.zeros(()))

    def energy(self, row: torch.Tensor) -> torch.Tensor:
        return (self.layer(row) * self.scale).square().sum()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2 if x.sum() > 0 else x
        self.calls += 1
        self.seen += y.sum().detach()
        return vmap(grad(self.energy))(y)


def test_what_changes_between_calls_is_seen():
    torch.manual_seed(0)
    module = Scaled()
    static = to_static(module)
    eager = Scaled()
    eager.load_state_dict(module.state_dict())
    x, _ = _inputs(4, 1.0)
    for step in range(6):
        if step == 2:
            module.scale = eager.scale = 3.0
        if step == 4:
            module.layer.weight = nn.Parameter(torch.ones(3, 3))
            eager.layer.weight = nn.Parameter(torch.ones(3, 3))
        same(static(x), eager(x), tolerance=1e-5)
    same((module.calls, module.seen), (eager.calls, eager.seen))


def test_a_global_that_changes(monkeypatch):
    def f(x):
        return vmap(energy)(x * 2 if x.sum() > 0 else x)

    static = to_static(f)
    x, _ = _inputs(4, 1.0)
    same(static(x), f(x))
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    same(static(x), f(x))


def _counted(row: torch.Tensor) -> torch.Tensor:
    CALLS.append(1)
    return row * 2


def test_what_it_changes_is_repeated_or_refused():
    def of_a_global(x):
        return vmap(_counted)(x)

    def of_a_local(x):
        found = []

        def mine(row):
            found.append(1)
            return row * 2

        y = vmap(mine)(x)
        return y, len(found)

    def of_a_name(x):
        count = 0

        def mine(row):
            nonlocal count
            count += 1
            return row * 2

        y = vmap(mine)(x)
        return y, count

    x, _ = _inputs(4, 1.0)
    for f in (of_a_global, of_a_local, of_a_name):
        static = to_static(f)
        for _ in range(3):
            CALLS.clear()
            expected = f(x), list(CALLS)
            CALLS.clear()
            try:
                given = static(x), list(CALLS)
            except TraceError:
                break
            same(given, expected)


@pytest.mark.parametrize("takes", [
    lambda r: r * r.sum().item(), lambda r: r * 2 if r.sum() > 0 else r, lambda r: [r, r * 2][int(r.sum() > 0)],
    lambda r: r * float(r.sum()), lambda r: r * len(r.tolist()), lambda r: (print(r), r)[1],
    lambda r: r * (f"{r}" == ""),
], ids=["item", "if", "index", "float", "tolist", "print", "format"])  # fmt: skip
@pytest.mark.parametrize("transform", [vmap, lambda f: grad(lambda r: f(r).sum())], ids=["vmap", "grad"])
def test_a_value_cannot_be_taken(transform, takes):
    def f(x):
        return transform(takes)(x)

    x, _ = _inputs(4, 1.0)
    with pytest.raises((TraceError, RuntimeError)) as error:
        to_static(f)(x)
    assert isinstance(error.value, TraceError) or "vmap" in str(error.value)
    assert getattr(error.value, "code", "") != "D2S290"


def test_a_converted_function_inside_of_a_transform_is_refused():
    inner = to_static(lambda r: r * 2 if r.sum() > 0 else r)

    def f(x):
        return grad(lambda r: inner(r).sum())(x)

    x, _ = _inputs(4, 1.0)
    with pytest.raises(TraceError, match="D2S271"):
        to_static(f)(x)


def test_a_forward_derivative_by_a_view_is_right_or_refused():
    def f(x, w):
        y = x * 2 if x.sum() > 0 else x
        return jvp(grad(energy), (y[0],), (w,))[1]

    x, w = _inputs(4, 1.0)
    try:
        found = to_static(f)(x, w)
    except TraceError as error:
        assert error.code == "D2S271"
    else:
        same(found, f(x, w), tolerance=1e-5)


@pytest.mark.parametrize("needs", [True, False], ids=["with gradients", "without"])
def test_whether_a_row_needs_a_gradient(needs):
    def f(x):
        y = x * 2 if x.sum() > 0 else x
        a = vmap(lambda r: r * 2 if r.requires_grad else r * 3)(y)
        b = grad(lambda r: (r * 2 if r.requires_grad else r * 3).sum())(y)
        return a, b, vmap(lambda r: r.detach() * 2 if r.detach().requires_grad else r * 3)(y)

    static = to_static(f)
    for sign in (1.0, -1.0):
        x, _ = _inputs(4, sign)
        same(static(x.clone().requires_grad_(needs)), f(x.clone().requires_grad_(needs)))


@pytest.mark.parametrize("asks", [lambda r: r.grad_fn is None, lambda r: r.is_leaf, lambda r: r.grad is None],
                         ids=["grad_fn", "is_leaf", "grad"])  # fmt: skip
def test_the_graph_inside_cannot_be_asked(asks):
    x, _ = _inputs(4, 1.0)
    with pytest.raises(TraceError, match="D2S271"):
        to_static(lambda x: vmap(lambda r: r * 2 if asks(r) else r)(x))(x.requires_grad_())


def test_the_trace_is_in_order_after_an_error():
    def f(x, bad):
        try:
            y = vmap(lambda r: r @ torch.ones(2 if bad else 3))(x)
        except RuntimeError:
            y = x.sum(1)
        return y * 2 if y.sum() > 0 else y

    static = to_static(f)
    x, _ = _inputs(4, 1.0)
    for bad in (True, False, True):
        same(static(x, bad), f(x, bad))


def test_the_vmap_of_before_torch_func_is_refused():
    """It is how ``torch.autograd.functional`` and older libraries find Hessians."""
    from torch._vmap_internals import _vmap

    def hessian(x):
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return _vmap(lambda v: torch.autograd.grad(g, x, v, retain_graph=True)[0])(torch.eye(2))

    with pytest.raises(TraceError, match="D2S271"):
        to_static(hessian)(torch.ones(2, requires_grad=True))
