"""``tensor.register_hook`` in converted functions: on what they compute, on views and leaves, in branches and loops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import dy2static
from dy2static import loop_options, to_static
from runtime.errors import Dy2StaticError
from tests.oracle import Comparison

Function = Callable[[Tensor, Tensor], Any]
OUTSIDE: list[Function] = []
"""Those whose gradient is asked for outside."""
INSIDE: list[Function] = []
"""Those that ask for it themselves."""
REFUSED: list[tuple[str, Function]] = []


def outside(function: Function) -> Function:
    OUTSIDE.append(function)
    return function


def inside(function: Function) -> Function:
    INSIDE.append(function)
    return function


def refused(code: str) -> Callable[[Function], Function]:
    def note(function: Function) -> Function:
        REFUSED.append((code, function))
        return function

    return note


# -- what hooks give, and what they read


@outside
def doubles(x, w):
    h = x * w
    h.register_hook(lambda g: g * 2)
    return h.sin().sum()


@outside
def gives_none(x, w):
    h = x * w
    h.register_hook(lambda g: None)
    return h.sin().sum()


@outside
def gives_none_on_a_path(x, w):
    h = x * w

    def hook(g):
        if g.sum() > 0:
            return g * 2

    h.register_hook(hook)
    return (h * x.sum()).sum()


@outside
def halves_until_small(x, w):
    h = x * w

    def hook(g):
        while g.abs().max() > 0.1:
            g = g / 2
        return g

    h.register_hook(hook)
    return h.sin().sum()


@outside
def several(x, w):
    h = x * w
    h.register_hook(lambda g: g * 2)
    h.register_hook(lambda g: g + 1)
    h.register_hook(lambda g: g**2)
    return h.sin().sum()


@outside
def of_several_tensors(x, w):
    a = x * w
    b = a.sin()
    a.register_hook(lambda g: g * 2)
    b.register_hook(lambda g: g + 1)
    return (a * b).sum()


@outside
def used_before(x, w):
    h = x * w
    y = h.sin()
    h.register_hook(lambda g: g * 2)
    return (y + h.cos()).sum()


@outside
def reads_what_came_before(x, w):
    scale = x.abs() + 1
    h = x * w
    h.register_hook(lambda g: g * scale)
    return h.sin().sum()


@outside
def reads_what_came_after(x, w):
    h = x * w
    positive, scale = h > 0, x.abs() + 1
    h.register_hook(lambda g: g * positive * scale)
    return h.sin().sum()


@outside
def reads_the_tensor(x, w):
    h = x * w
    size = h.detach().norm()
    h.register_hook(lambda g: g * h.detach() / size)
    h.register_hook(lambda g: g * (h > 1))
    return h.sin().sum()


@outside
def default_arguments(x, w):
    total = x.new_zeros(())
    for i in range(3):
        h = x * w * i
        h.register_hook(lambda g, i=i: g * i)
        total = total + h.sin().sum()
    return total


@outside
def callables(x, w):
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, g):
            return g * self.by

        def minus(self, g):
            return g - self.by

    h = x * w
    h.register_hook(Scale(3))
    h.register_hook(hook=Scale(4).minus)
    h.register_hook(torch.neg)
    h.register_hook(functools.partial(torch.mul, torch.tensor(3.0)))
    torch.Tensor.register_hook(h, lambda g: g + 0.5)
    return h.sin().sum()


@outside
def decorates(x, w):
    h = x * w

    @h.register_hook
    def hook(g):
        return g * 2

    return h.sin().sum()


@outside
def draws(x, w):
    h = x * w
    h.register_hook(lambda g: g + torch.randn(3))
    return h.sin().sum()


@outside
def catches(x, w):
    h = x * w

    def hook(g):
        try:
            return g[7]
        except IndexError:
            return g * 2

    h.register_hook(hook)
    return h.sin().sum()


@outside
def gradient_modes(x, w):
    h = x * w
    with torch.no_grad():
        h.register_hook(lambda g: g * 3)

    def hook(g):
        with torch.no_grad():
            return g + 1

    h.register_hook(hook)
    return h.sin().sum()


@outside
def autocast(x, w):
    with torch.autocast("cpu", torch.bfloat16):
        h = x.expand(2, 3) @ w.outer(w)
        h.register_hook(lambda g: g @ torch.eye(3, dtype=g.dtype))
        return h.sin().sum()


@outside
def complex_numbers(x, w):
    h = torch.complex(x * w, w)
    h.register_hook(lambda g: g * 2j)
    return h.abs().sum()


@outside
def a_larger_dtype(x, w):
    h = (x * w).double()
    h.register_hook(lambda g: g * 2)
    return h.sin().sum()


# -- exceptions


@outside
def no_gradient(x, w):
    (x * 2).register_hook(lambda g: g)
    return w.sum()


@outside
def without_gradients(x, w):
    with torch.no_grad():
        h = x * w
    h.register_hook(lambda g: g)
    return w.sum()


@outside
def other_size(x, w):
    h = x * w
    h.register_hook(lambda g: g.sum())
    return h.sum()


@outside
def other_size_of_a_batch(x, w):
    h = x[None] * w
    h.register_hook(lambda g: g.sum(1, keepdim=True))
    return h.sum()


@outside
def other_dtype(x, w):
    h = x * w
    h.register_hook(lambda g: g.double())
    return h.sum()


@outside
def a_number(x, w):
    h = x * w
    h.register_hook(lambda g: 3.0)
    return h.sum()


@outside
def raises(x, w):
    h = x * w

    def hook(g):
        if g.sum() > 0:
            raise ValueError("too large")
        return g

    h.register_hook(hook)
    return (h * x.sum()).sum()


@outside
def not_callable(x, w):
    h = x * w
    h.register_hook(3)
    return h.sum()


@outside
def without_a_hook(x, w):
    h = x * w
    h.register_hook()
    return h.sum()


@outside
def after_accumulation(x, w):
    h = x * w
    h.register_post_accumulate_grad_hook(lambda p: None)
    return h.sum()


# -- memory


@outside
def written_later(x, w):
    h = x * w
    h.register_hook(lambda g: g * 2)
    h.add_(1)
    h.register_hook(lambda g: g + 3)
    h[0] = 3.0
    return (h * h).sum()


@outside
def written_before(x, w):
    h = x * w
    h.mul_(2)
    h.register_hook(lambda g: g * 2)
    return h.sin().sum()


@outside
def views_of_it(x, w):
    h = x * w
    first = h[0]
    h.register_hook(lambda g: g * 2)
    return first.sin() + h[1:].sum()


@outside
def a_view(x, w):
    y = x * w
    h = y[1:]
    h.register_hook(lambda g: g * 2)
    return h[0].sin() + h.cos().sum() + y.sum()


@outside
def a_transposed_view(x, w):
    h = (x.expand(2, 3) * w).transpose(0, 1)
    h.register_hook(lambda g: g * torch.arange(3.0).unsqueeze(1))
    return h.sin().sum()


@outside
def one_of_several_results(x, w):
    a, b = (x * w).repeat(2).chunk(2)
    a.register_hook(lambda g: g * 2)
    values, _ = torch.sort(x * w)
    values.register_hook(lambda g: g * torch.arange(3.0))
    return (a.sin() + b.cos() + values.sin()).sum()


@outside
def detached_from_it(x, w):
    h = x * w
    h.register_hook(lambda g: g * 2)
    return (h * h.detach()).sum()


# -- branches and loops


@outside
def in_branches(x, w):
    if x.sum() > 0:
        h = x * w
        h.register_hook(lambda g: g * 2)
        y = h.sin()
    else:
        h = x * w
        h.register_hook(lambda g: g * 3)
        y = h.cos()
    return y.sum()


@outside
def in_a_loop(x, w):
    h, n = x, 0
    while h.abs().max() < 50 and n < 6:
        h = h * w
        h.register_hook(lambda g: g.clamp(-1, 1))
        n += 1
    y = h.sin()
    y.register_hook(lambda g: g * 3)
    return y.sum()


@outside
def reads_its_iterations(x, w):
    h, n = x, 0
    while n < 4 and h.abs().max() < 100:
        positive = h > 0
        h = h * w
        h.register_hook(lambda g, positive=positive: g * positive)
        n += 1
    return h.sum()


@outside
def a_recurrent_cell(x, w):
    h, states = torch.zeros(3), []
    for t in range(8):
        h = torch.tanh(x[t % 3] * w + h)
        h.register_hook(lambda g: g.clamp(-0.2, 0.2))
        states.append(h)
    return torch.stack(states).sum()


@outside
def after_a_branch(x, w):
    if x.sum() > 0:
        h = x * w
    else:
        h = x - w
    h.register_hook(lambda g: g * 3)
    return h.sin().sum()


@outside
def in_a_recursion(x, w):
    def grown(x):
        if x.abs().max() > 10:
            return x
        h = x * w.abs().add(1.3)
        h.register_hook(lambda g: g * 0.5)
        return grown(h)

    return grown(x).sum()


@outside
def computed_again(x, w):
    def layer(x):
        h = x * w
        h.register_hook(lambda g: g * 2)
        return h.sin()

    return checkpoint(layer, x, use_reentrant=False).sum()


@outside
def with_few_states(x, w):
    with loop_options(checkpoints=3):
        for _ in range(int(x.abs().sum()) + 9):
            x = torch.tanh(x * w)
            x.register_hook(lambda g: g.clamp(-0.1, 0.1))
    return x.sum()


# -- handles


@outside
def removed(x, w):
    h = x * w
    handles = [h.register_hook(lambda g: g * 3), h.register_hook(lambda g: g + 1), h.register_hook(lambda g: g**2)]
    handles[1].remove()
    handles[1].remove()
    return h.sin().sum()


@outside
def removed_first_and_last(x, w):
    h = x * w
    handles = [h.register_hook(lambda g: g * 3), h.register_hook(lambda g: g + 1), h.register_hook(lambda g: g**2)]
    handles[0].remove()
    handles[2].remove()
    h.register_hook(lambda g: g - 4)
    return h.sin().sum()


@outside
def all_removed(x, w):
    h = x * w
    positive = h > 0
    handle = h.register_hook(lambda g: g * positive)
    y = h.sin()
    handle.remove()
    return (y * positive).sum()


@outside
def for_a_while(x, w):
    h = x * w
    with h.register_hook(lambda g: g * 3):
        y = h.sin()
    return y.sum()


@outside
def removed_in_its_branch(x, w):
    if x.sum() > 0:
        h = x * w
        handle = h.register_hook(lambda g: g * 2)
        y = h.sin()
        handle.remove()
    else:
        y = w
    return y.sum()


@outside
def removed_after_a_branch(x, w):
    h = x * w
    handle = h.register_hook(lambda g: g * 2)
    y = h.sin() if x.sum() > 0 else h.cos()
    handle.remove()
    return y.sum()


@inside
def removed_after_backward(x, w):
    h = x * w
    handle = h.register_hook(lambda g: g * 3)
    h.sin().sum().backward()
    handle.remove()


@inside
def removed_after_another_gradient(x, w):
    h = x * w
    handle = h.register_hook(lambda g: g * 3)
    first = torch.autograd.grad((w * w).sum(), w)
    handle.remove()
    return first, torch.autograd.grad(h.sin().sum(), w)


@inside
def with_a_gradient_inside(x, w):
    h = x * w
    with h.register_hook(lambda g: g * 3):
        return torch.autograd.grad(h.sin().sum(), w)


# -- gradients inside


@inside
def goes_backward(x, w):
    h = x * w
    h.register_hook(lambda g: g * 3)
    h.sin().sum().backward()


@inside
def backward_to_inputs(x, w):
    h = x * w
    h.register_hook(lambda g: g * 3)
    h.sin().sum().backward(inputs=[w])


@inside
def asks_by_it(x, w):
    """Autograd gives what arrives if the gradient goes on to another input, else what hooks make of it."""
    a = x * w
    a.register_hook(lambda g: g * 2)
    b = a.sin()
    b.register_hook(lambda g: g + 1)
    y = b.cos().sum()
    found = [torch.autograd.grad(y, by, retain_graph=True) for by in ([a], [b], [a, b], [w], [a, w], [b, w])]
    return found, torch.autograd.grad(y, [a, b, w])


@inside
def retains_before(x, w):
    h = x * w
    h.retain_grad()
    h.register_hook(lambda g: g * 3)
    h.sin().sum().backward()
    return h.grad


@inside
def retains_after(x, w):
    h = x * w
    h.register_hook(lambda g: g * 3)
    h.retain_grad()
    h.sin().sum().backward()
    return h.grad


@outside
def second_derivative(x, w):
    h = x * w
    h.register_hook(lambda g: g * w)
    (g,) = torch.autograd.grad(h.sin().sum(), w, create_graph=True)
    return g.pow(2).sum()


@inside
def trains_in_a_loop(x, w):
    v = x.detach().clone().requires_grad_()
    for _ in range(10):
        h = v * w.detach()
        h.register_hook(lambda g: g.clamp(-0.5, 0.5))
        h.sin().sum().backward()
        with torch.no_grad():
            v -= 0.1 * v.grad
        v.grad = None
    return v.detach()


# -- hooks that change something


@inside
def keeps_gradients(x, w):
    seen, by_name = [], {}

    def save(name):
        def hook(g):
            by_name[name] = g

        return hook

    a = x * w
    b = a.sin()
    c = a.cos()
    d = b * c
    for name, one in (("a", a), ("b", b), ("c", c), ("d", d)):
        one.register_hook(lambda g, name=name: seen.append((name, g)))
        one.register_hook(save(name))
    d.sum().backward()
    return seen, list(by_name.items())


@inside
def keeps_and_changes(x, w):
    seen = []

    def hook(g):
        seen.append(g)
        return g * 2

    a = x * w
    b = a.sin()
    a.register_hook(hook)
    b.register_hook(hook)
    a.register_hook(lambda g: g + 1)
    a.register_hook(hook)
    b.sum().backward()
    return seen


@inside
def counts(x, w):
    count = 0

    def hook(g):
        nonlocal count
        count += 1

    a = x * w
    a.register_hook(hook)
    y = a.sin().sum()
    y.backward(retain_graph=True)
    y.backward()
    return count


@inside
def adds_up(x, w):
    total = torch.zeros(3)

    def hook(g):
        total.add_(g)

    a = x * w
    a.register_hook(hook)
    a.sin().sum().backward()
    return total


@inside
def only_what_is_reached(x, w):
    seen = []
    a = x * w
    b = a.sin()
    a.register_hook(seen.append)
    b.register_hook(seen.append)
    found = torch.autograd.grad(b.sum(), b, retain_graph=True), torch.autograd.grad((w * 2).sum(), w)
    return found, len(seen), torch.autograd.grad(b.sum(), a), seen


@inside
def counts_on_a_path(x, w):
    seen = []
    a = x * w
    a.register_hook(seen.append)
    y = a.sin().sum() if x.sum() > 0 else w.sum()
    y.backward()
    return len(seen)


@inside
def keeps_in_a_branch(x, w):
    seen = []
    if x.sum() > 0:
        a = x * w
        a.register_hook(seen.append)
        a.sin().sum().backward()
    return seen


@inside
def keeps_in_a_loop(x, w):
    seen, n = [], 0
    while n < 3 and x.abs().sum() < 100:
        a = x * w
        a.register_hook(lambda g: seen.append(g.sum()))
        a.sin().sum().backward()
        n += 1
    return seen


# -- leaves


@inside
def a_leaf_of_the_callers(x, w):
    with w.register_hook(lambda g: g * 3):
        return torch.autograd.grad((x * w).sum(), w)


@inside
def a_leaf_made_inside(x, w):
    v = (x * 2).detach().requires_grad_()
    v.register_hook(lambda g: g * 3)
    (v * w.detach()).sum().backward()
    return v.grad


@inside
def a_leaf_whose_gradient_is_kept(x, w):
    v = (x * 2).detach().requires_grad_()
    seen = []
    with v.register_hook(seen.append):
        (v * w.detach()).sum().backward()
    v.grad.mul_(2)
    return v.grad, seen


@inside
def after_a_leafs_gradient(x, w):
    v = (x * 2).detach().requires_grad_()

    def hook(p):
        p.grad.mul_(5)

    with v.register_post_accumulate_grad_hook(hook):
        (v * w.detach()).sum().backward()
    return v.grad


@inside
def in_autograds_order(x, w):
    seen = []
    v = (x * 2).detach().requires_grad_()
    with w.register_hook(lambda g: seen.append("w")), v.register_hook(lambda g: seen.append("v")):
        a = w * x
        a.register_hook(lambda g: seen.append("a"))
        b = a * v
        b.register_hook(lambda g: seen.append("b"))
        b.sum().backward()
    return seen


# -- what is refused


@refused("D2S213")
def used_with_a_graph_before(x, w):
    h = x * w
    size = h.norm()
    h.register_hook(lambda g: g * size)
    return h.sum()


@refused("D2S213")
def a_view_with_views(x, w):
    h = (x * w)[1:]
    first = h[0]
    h.register_hook(lambda g: g * 2)
    return first + h.sum()


@refused("D2S222")
def a_view_that_is_written(x, w):
    y = x * w
    h = y[1:]
    h.register_hook(lambda g: g * 2)
    h.mul_(2)
    return (y * y).sum()


@refused("D2S213")
def on_a_path_only(x, w):
    h = x * w
    if x.sum() > 0:
        h.register_hook(lambda g: g * 2)
    return h.sum()


@refused("D2S213")
def what_a_loop_hands_on(x, w):
    h = x * w
    while h.abs().max() < 50:
        h.register_hook(lambda g: g * 2)
        h = h * w
    return h.sum()


@refused("D2S245")
def another_one_on_a_path(x, w):
    y = x * w
    h = y if x.sum() > 0 else x - w
    h.register_hook(lambda g: g * 3)
    return h.sum() + y.sum()


@refused("D2S213")
def removed_on_a_path(x, w):
    h = x * w
    handle = h.register_hook(lambda g: g * 2)
    if x.sum() > 0:
        handle.remove()
    return h.sum()


@refused("D2S213")
def removed_too_late(x, w):
    h = x * w
    handle = h.register_hook(lambda g: g * 2)
    torch.autograd.grad(h.sum(), w, retain_graph=True)
    handle.remove()
    return h.sum()


@refused("D2S213")
def looks_up_what_changes(x, w):
    scale = 1.0
    h = x * w
    h.register_hook(lambda g: g * scale)
    scale = 2.0
    return h.sum()


@refused("D2S213")
def looks_up_a_loops_variable(x, w):
    total = x.new_zeros(())
    for i in range(3):
        h = x * w
        h.register_hook(lambda g: g * i)  # as beginners write it
        total = total + h.sum()
    return total


@refused("D2S213")
def looks_up_what_an_iteration_left(x, w):
    h, n = x, 0
    while n < 4 and h.abs().max() < 100:
        positive = h > 0
        h = h * w
        h.register_hook(lambda g: g * positive)  # as beginners write it
        n += 1
    return h.sum()


@refused("D2S213")
def looks_up_what_is_written(x, w):
    scale = torch.ones(3)
    h = x * w
    h.register_hook(lambda g: g * scale)
    scale.mul_(3)
    return h.sum()


@refused("D2S213")
def counts_and_multiplies(x, w):
    count = 0

    def hook(g):
        nonlocal count
        count += 1
        return g * count

    h = x * w
    h.register_hook(hook)
    y = h.sum()
    y.backward(retain_graph=True)
    y.backward()


@refused("D2S213")
def a_graph_through_itself(x, w):
    h = x * w
    h.register_hook(lambda g: g * h)
    return torch.autograd.grad(h.sin().sum(), w, create_graph=True)[0].sum()


@refused("D2S213")
def asked_by_what_a_loop_gave(x, w):
    h, n = x * 1.0, 0
    while n < 3 and h.abs().max() < 50:
        h = h * w
        h.register_hook(lambda g: g * 0.5)
        n += 1
    return torch.autograd.grad(h.sin().sum(), h)


@refused("D2S213")
def left_on_a_leaf(x, w):
    w.register_hook(lambda g: g * 3)
    return (x * w).sum()


@refused("D2S213")
def left_on_a_leaf_made_inside(x, w):
    v = (x * 2).detach().requires_grad_()
    v.register_hook(lambda g: g * 3)
    return (v * w).sum()


@refused("D2S275")
def writes_to_the_gradient(x, w):
    h = x * w
    h.register_hook(lambda g: g.mul_(2))
    return h.sum()


@refused("D2S275")
def keeps_outside(x, w):
    seen = []
    h = x * w
    h.register_hook(seen.append)
    return h.sum(), seen


@refused("D2S275")
def keeps_after_a_branch(x, w):
    seen = []
    if x.sum() > 0:
        h = x * w
        h.register_hook(seen.append)
        y = h.sin().sum()
    else:
        y = w.sum()
    y.backward()
    return len(seen)


@refused("D2S275")
def keeps_and_prints(x, w):
    seen = []

    def hook(g):
        print(g)
        seen.append(g)

    h = x * w
    h.register_hook(hook)
    h.sum().backward()
    return seen


@refused("D2S228")
def gives_the_handle(x, w):
    h = x * w
    return h.sum(), h.register_hook(lambda g: g)


@refused("D2S228")
def gives_the_tensor(x, w):
    h = x * w
    h.register_hook(lambda g: g * 2)
    return h


@refused("D2S213")
def of_several_at_once(x, w):
    a, b = x * w, x + w
    torch.autograd.graph.register_multi_grad_hook([a, b], lambda grads: None)
    return (a + b).sum()


# -- the tests

XS = (torch.tensor([1.0, 2.0, 1.0]), torch.tensor([-1.0, -2.0, 0.5]))
OPTIONS: dict[str, dict[str, Any]] = {
    "interpreter": {}, "autograd": {"autograd": "eager"}, "c": {"backend": "c"}, "pieces": {"full_graph": False},
}  # fmt: skip


def outcome(function: Function, x: Tensor) -> Any:
    """Two calls: what each gives, or raises, the gradient of the leaf, and the next random number."""
    torch.manual_seed(0)
    w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    found: list[Any] = []
    for _ in range(2):
        w.grad = None
        try:
            result = function(x.clone(), w)
            found.append(result)
            if isinstance(result, Tensor) and result.requires_grad:
                result.backward()
        except Dy2StaticError:
            raise
        except Exception as error:
            found.append((type(error).__name__, str(error)))
        found.append(w.grad)
    return found, torch.rand(())


def name_of(function: Any) -> str:
    return getattr(function, "__name__", str(function))


@pytest.mark.sample(4)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("function", [*OUTSIDE, *INSIDE], ids=name_of)
def test_as_in_eager(function: Function, options: str) -> None:
    for x in XS:
        comparison = Comparison(tolerance=1e-6 if options == "c" else 0.0)
        comparison.compare(outcome(to_static(function, **OPTIONS[options]), x), outcome(function, x), "result")


@pytest.mark.parametrize(("code", "function"), REFUSED, ids=name_of)
def test_refused(code: str, function: Function) -> None:
    with pytest.raises(Dy2StaticError) as caught:
        for x in XS:
            outcome(to_static(function), x)
    error = caught.value
    assert error.code == code, error
    assert error.location is not None and error.location.file == __file__
    assert str(error).count("\n") >= 3, "it names a way out"


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_what_a_hook_prints(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    def function(x, w):
        h = x * w
        h.register_hook(lambda g: print("gradient", g))
        y = h.sin().sum()
        if where == "inside":
            y.backward()
            return None
        return y

    said = []
    for one in (function, to_static(function)):
        outcome(one, XS[0])
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and said[0].count("gradient") == 2


def test_its_text_is_eagers() -> None:
    def function(x, w):
        h = x * w
        h.register_hook(lambda g: g * 2)
        k = h[1:]
        k.register_hook(lambda g: g * 2)
        return f"{h} {k} {h.grad_fn is None}"

    w = torch.ones(3, requires_grad=True)
    assert to_static(function)(XS[0], w) == function(XS[0], w)


def test_the_order_of_the_callers_hooks_on_leaves() -> None:
    """From the youngest node to the oldest, and each leaf as soon as its gradient is whole."""
    seen: list[str] = []

    def step(net: nn.Module, x: Tensor) -> None:
        net.zero_grad()
        net(x).sum().backward()

    def ask(net: nn.Module, x: Tensor) -> Any:
        return torch.autograd.grad(net(x).sum(), list(net.parameters()))

    for function in (step, ask):
        orders = []
        for one in (function, to_static(function)):
            torch.manual_seed(0)
            layers = nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 4, bias=False), nn.Linear(4, 1)
            net = nn.Sequential(*layers)
            for name, p in net.named_parameters():
                p.register_hook(lambda g, name=name: seen.append(name))
                p.register_post_accumulate_grad_hook(lambda p, name=name: seen.append("after " + name))
            seen.clear()
            one(net, torch.ones(2, 3))
            orders.append(list(seen))
        assert orders[0] == orders[1] and len(orders[0]) == 7 * (2 if function is step else 1)


class Clamped(nn.Module):
    """Hooks on what layers give, in the loop and in a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.most = nn.Linear(3, 4), nn.Linear(4, 2), 0.1

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        h.register_hook(lambda g: g.clamp(-self.most, self.most))
        n = 0
        while n < 3 and h.abs().max() < 4:
            h = h * 1.5 + self.a(x)
            h.register_hook(lambda g: g * 0.5)
            n += 1
        if h.sum() > 0:
            h = h.tanh()
            h.register_hook(lambda g: g + 0.1)
        return self.b(h)


@pytest.mark.parametrize("spec", [[torch.ones(5, 3)], [dy2static.InputSpec([None, 3])]], ids=["fixed", "open"])
def test_loaded(spec: list[Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    eager = Clamped()
    loaded = dy2static.load(dy2static.save(Clamped(), tmp_path / "clamped", input_spec=spec))
    loaded.load_state_dict(eager.state_dict())
    for sign in (1, -1):
        x = torch.randn(5, 3) * sign
        for module in (eager, loaded):
            module.zero_grad()
            module(x).square().sum().backward()
        for one, other in zip(loaded.parameters(), eager.parameters()):
            torch.testing.assert_close(one.grad, other.grad)


def test_a_module_whose_number_changes() -> None:
    """What a hook reads of the module is a condition of the Program, as for any code."""
    torch.manual_seed(0)
    eager = Clamped()
    static = to_static(Clamped())
    static.load_state_dict(eager.state_dict())
    x = torch.randn(5, 3)
    for most in (0.1, 0.5, 0.2):
        for module in (eager, static):
            module.most = most
            module.zero_grad()
            module(x).square().sum().backward()
        for one, other in zip(static.parameters(), eager.parameters()):
            torch.testing.assert_close(one.grad, other.grad)


def test_an_argument_with_a_history() -> None:
    def function(x: Tensor) -> Tensor:
        x.register_hook(lambda g: g * 2)
        return x.sin().sum()

    with pytest.raises(Dy2StaticError) as caught:
        to_static(function)(torch.ones(3, requires_grad=True) * 2)
    assert caught.value.code == "D2S213" and "clone" in str(caught.value)


def test_many_rows() -> None:
    w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    rows = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    for function in (doubles, in_branches, in_a_loop):
        dy2static.vmap(to_static(lambda x, function=function: function(x, w)))(rows).sum().backward()
        assert w.grad is not None
        got, w.grad = w.grad, None
        sum(function(row, w) for row in rows).backward()
        torch.testing.assert_close(got, w.grad)
        w.grad = None


def test_derivatives_of_derivatives_outside() -> None:
    w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    found = []
    for function in (doubles, to_static(doubles)):
        (g,) = torch.autograd.grad(function(XS[0], w), w, create_graph=True)
        found.append((g.detach(), *torch.autograd.grad(g.sum(), w)))
    torch.testing.assert_close(*found)


# -- hooks that change what there was before the call: each backward calls them

NOTES: dict[Any, Any] = {}


class Watched(nn.Module):
    """A subclass says what its hook is."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.out = nn.Linear(3, 4), nn.Linear(4, 2)
        self.last: Any = None
        self.log: list[Any] = []
        self.count = 0
        self.total = torch.zeros(4)

    def hook(self) -> Any:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        h = self.inside(x)
        h.register_hook(self.hook())
        if h.sum() > 0:
            h = h.tanh()
            h.register_hook(self.hook())
        n = 0
        while n < 2 and h.abs().max() < 3:
            h = h * 1.5
            h.register_hook(self.hook())
            n += 1
        return self.out(h)


class Keeps(Watched):
    def hook(self) -> Any:
        return self.save

    def save(self, grad: Tensor) -> None:
        self.last = grad


class Logs(Watched):
    def hook(self) -> Any:
        return lambda grad: self.log.append(grad.norm())


class Appends(Watched):
    def hook(self) -> Any:
        return self.log.append


class CountsAndScales(Watched):
    def hook(self) -> Any:
        def hook(grad: Tensor) -> Tensor:
            self.count += 1
            return grad * self.count

        return hook


class AddsUp(Watched):
    def hook(self) -> Any:
        def hook(grad: Tensor) -> None:
            self.total += grad.sum(0)

        return hook


class NotesByName(Watched):
    def hook(self) -> Any:
        def note(name: str, grad: Tensor) -> None:
            NOTES[name] = grad

        return functools.partial(note, "h")


class ChangesSize(Watched):
    def hook(self) -> Any:
        def hook(grad: Tensor) -> Tensor:
            self.count += 1
            return grad.sum()

        return hook


class Raises(Watched):
    def hook(self) -> Any:
        def hook(grad: Tensor) -> None:
            self.count += 1
            raise ValueError(f"hook {self.count}")

        return hook


WATCHED: dict[type[Watched], int] = {Keeps: 4, Logs: 6, Appends: 8, CountsAndScales: 6, AddsUp: 4, NotesByName: 8,
                                     ChangesSize: 8, Raises: 8}  # fmt: skip
"""How many Programs there are at most after as many calls: as in any code, what is read may not change at each call."""


@pytest.mark.sample(4)
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.__name__)
def test_what_there_was_before_is_changed_by_each_backward(kind: type[Watched], options: str) -> None:
    found = []
    for convert in (lambda module: module, lambda module: to_static(module, **OPTIONS[options])):
        torch.manual_seed(0)
        NOTES.clear()
        module = convert(kind())
        seen: list[Any] = []
        for number in range(8):
            module.zero_grad()
            result = module(torch.randn(5, 3) * (number % 3)).square().sum()
            assert not module.log or number, "nothing happens before backward"
            try:
                result.backward()
            except (RuntimeError, ValueError) as error:
                seen.append((type(error), str(error)))
                continue  # eager's nodes before it have left gradients
            seen.append([None if p.grad is None else p.grad.clone() for p in module.parameters()])
        found.append((seen, module.last, list(module.log), module.count, module.total.clone(), dict(NOTES)))
    Comparison(tolerance=1e-5 if options == "c" else 0.0).compare(found[1], found[0], kind.__name__)
    if options == "interpreter":
        assert len(module.forward.programs) <= WATCHED[kind]


def test_what_a_hook_keeps_stays_what_it_is() -> None:
    """Backward goes on with memory of its own."""
    def function(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(3):
            x = torch.tanh(x * w)
            x.register_hook(KEPT.append)
        return x.sum()

    found = []
    for one in (function, to_static(function)):
        KEPT.clear()
        w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
        one(XS[0], w).backward()
        found.append([*KEPT, w.grad])
        KEPT[0].zero_()
    Comparison().compare(found[1], found[0], "kept")


KEPT: list[Any] = []


def test_no_file_holds_what_a_hook_changes(tmp_path: Path) -> None:
    with pytest.raises(Dy2StaticError) as caught:
        dy2static.save(Keeps(), tmp_path / "keeps", input_spec=[torch.ones(5, 3)])
    assert caught.value.code == "D2S503" and caught.value.location is not None


@pytest.mark.parametrize("given", ["an argument", "made inside"])
def test_what_is_another_one_in_each_call_is_refused(given: str) -> None:
    def function(w: Tensor, seen: list[Tensor]) -> Any:
        mine = seen if given == "an argument" else []
        h = w * 2
        h.register_hook(mine.append)
        return h.sum(), mine

    with pytest.raises(Dy2StaticError) as caught:
        to_static(function)(torch.ones(3, requires_grad=True), [])
    assert caught.value.code == "D2S275" and caught.value.location is not None


def test_asked_for_inside_and_outside() -> None:
    """A hook that was called while tracing is not called by backward, too."""
    def function(w: Tensor) -> Any:
        h = w * 2
        h.register_hook(KEPT.append)
        y = h.sin().sum()
        return torch.autograd.grad(y, w, retain_graph=True), y

    with pytest.raises(Dy2StaticError) as caught:
        to_static(function)(torch.ones(3, requires_grad=True))
    assert caught.value.code == "D2S275"


# -- as people write it


class GradCam:
    """A forward hook of a layer puts a hook on what the layer gives."""

    def __init__(self, layer: nn.Module) -> None:
        self.activation: Any = None
        self.gradient: Any = None
        layer.register_forward_hook(self.forward)

    def forward(self, module: nn.Module, inputs: Any, output: Tensor) -> None:
        self.activation = output.detach()
        output.register_hook(self.backward)

    def backward(self, grad: Tensor) -> None:
        self.gradient = grad


Convert = Callable[[Any], Any]


def grad_cam(convert: Convert) -> Any:
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
    cam = GradCam(net[0])
    model, found = convert(net), []
    for _ in range(3):
        net.zero_grad()
        model(torch.randn(2, 1, 6, 6)).sum().backward()
        found.append((cam.gradient, cam.activation, net[0].weight.grad.clone()))  # type: ignore[union-attr]
    return found


def recurrent_layer(convert: Convert) -> Any:
    net, out = nn.LSTM(3, 4), nn.Linear(4, 1)

    def loss(x: Tensor) -> Tensor:
        states, (h, c) = net(x)
        states.register_hook(lambda g: g.clamp(-0.1, 0.1))
        h.register_hook(lambda g: g * 2)
        return out(states).sum() + h.sum() + c.sum()

    convert(loss)(torch.randn(5, 2, 3)).backward()
    return [p.grad for p in net.parameters()]


def generator(convert: Convert) -> Any:
    w = torch.ones(3, requires_grad=True)

    def layers(x: Tensor) -> Any:
        for _ in range(3):
            x = x * w
            x.register_hook(lambda g: g * 0.5)
            yield x

    convert(lambda x: sum(y.sum() for y in layers(x)))(torch.ones(3)).backward()
    return w.grad


def norms_of_a_training_step(convert: Convert) -> Any:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)

    def step(x: Tensor) -> Any:
        norms: list[Tensor] = []
        optimizer.zero_grad()
        h = net[0](x)
        h.register_hook(lambda g: norms.append(g.norm()))
        net[2](net[1](h)).pow(2).mean().backward()
        optimizer.step()
        return norms

    one = convert(step)
    return [one(torch.randn(4, 3)) for _ in range(4)], [p.detach() for p in net.parameters()]


def many_training_steps(convert: Convert) -> Any:
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def fit(x: Tensor) -> Tensor:
        for _ in range(20):
            optimizer.zero_grad()
            h = net(x)
            h.register_hook(lambda g: g.clamp(-0.01, 0.01))
            h.pow(2).mean().backward()
            optimizer.step()
        return h.detach()

    one = convert(fit)
    return [one(torch.randn(4, 3)) for _ in range(3)], net.weight.detach()


def a_parameters_hook_for_one_step(convert: Convert) -> Any:
    net = nn.Linear(3, 1)

    def step(x: Tensor) -> Any:
        handle = net.weight.register_hook(lambda g: g * 2)
        net(x).sum().backward()
        handle.remove()
        return net.weight.grad.clone()  # type: ignore[union-attr]

    one = convert(step)
    return [one(torch.ones(2, 3)) for _ in range(3)]


@pytest.mark.parametrize("use", [grad_cam, recurrent_layer, generator, norms_of_a_training_step, many_training_steps,
                                 a_parameters_hook_for_one_step], ids=name_of)  # fmt: skip
def test_as_people_write_it(use: Callable[[Convert], Any]) -> None:
    found = []
    for convert in (lambda one: one, to_static):
        torch.manual_seed(0)
        found.append(use(convert))
    Comparison(tolerance=1e-6).compare(found[1], found[0], use.__name__)


HELD = {"k": 1.5}
RATE = 2.0


def rated(grad: torch.Tensor) -> torch.Tensor:
    return grad * RATE


class Looking(nn.Module):
    """Its hooks look things up when backward calls them."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.scale = 2.0
        self.factor = torch.tensor(3.0)

    def scaled(self, grad: torch.Tensor) -> torch.Tensor:
        return grad * self.scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x * 2
        if self.how == "attribute":
            h.register_hook(lambda grad: grad * self.scale)
        elif self.how == "tensor":
            h.register_hook(lambda grad: grad * self.factor)
        elif self.how == "item":
            h.register_hook(lambda grad: grad * HELD["k"])
        elif self.how == "global":
            h.register_hook(rated)
        elif self.how == "method":
            h.register_hook(self.scaled)
        elif self.how == "partial":
            h.register_hook(functools.partial(Looking.scaled, self))
        else:
            h.register_hook(lambda grad, scale=self.scale: grad * scale)
        return h * 1.0 if x.sum() > 0 else h - 1


def _looked_up(module: Any, x: torch.Tensor, change: bool, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    monkeypatch.setitem(HELD, "k", 1.5)
    monkeypatch.setitem(globals(), "RATE", 2.0)
    module.scale, module.factor = 2.0, torch.tensor(3.0)
    given = x.clone().requires_grad_()
    y = module(given)
    if change:
        monkeypatch.setitem(HELD, "k", 4.0)
        monkeypatch.setitem(globals(), "RATE", 5.0)
        module.scale, module.factor = 6.0, torch.tensor(7.0)
    (gradient,) = torch.autograd.grad(y.sum(), [given])
    return gradient


@pytest.mark.parametrize("how", ["attribute", "tensor", "item", "global", "method", "partial", "default"])
def test_what_a_hook_looks_up_changes_before_backward(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called by backward itself; a value that it was given as a default is what it was."""
    module, static = Looking(how), dy2static.to_static(Looking(how))
    for change in (False, True, False, True):
        for x in (torch.ones(3), -torch.ones(3)):
            found = [_looked_up(one, x, change, monkeypatch) for one in (module, static)]
            assert torch.equal(*found), (change, x)


@pytest.mark.parametrize("how", ["attribute", "tensor", "item", "global", "method"])
def test_what_a_hook_looks_up_is_in_a_file_what_it_was(how: str, tmp_path: Path) -> None:
    module = Looking(how)
    dy2static.save(module, tmp_path / "model", [dy2static.InputSpec([None], "float32", "x")])
    loaded = dy2static.load(tmp_path / "model")
    for x in (torch.ones(3), -torch.ones(3)):
        found = []
        for one in (module, loaded):
            given = x.clone().requires_grad_()
            found.append(torch.autograd.grad(one(given).sum(), [given])[0])
        assert torch.equal(*found)
