"""What the eager world sees of the one node: hooks, retained graphs, version checks, double backward."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from dy2static import to_static


def tensors(*shapes, grad=True):
    return [torch.randn(shape, dtype=torch.float64, requires_grad=grad) for shape in shapes]


def step(x, w, n):
    h = x
    i = torch.tensor(0)
    while i < n:
        if h.sum() > 0:
            h = torch.tanh(h @ w)
        else:
            h = torch.sin(h @ w.t()) + x
        i = i + 1
    return h


@pytest.fixture
def converted():
    return to_static(step)


THREE = torch.tensor(3)


def test_a_call_is_one_node(converted):
    x, w = tensors((3, 3), (3, 3))
    out = converted(x, w, THREE)
    assert type(out.grad_fn).__name__ == "ProgramNodeBackward"
    assert {type(node).__name__ for node, _ in out.grad_fn.next_functions if node} == {"AccumulateGrad"}


def test_retained_graph_and_its_end(converted):
    x, w = tensors((3, 3), (3, 3))
    out = converted(x, w, THREE).sum()
    (first,) = torch.autograd.grad(out, w, retain_graph=True)
    (second,) = torch.autograd.grad(out, w, retain_graph=True)
    (third,) = torch.autograd.grad(out, w)
    assert torch.equal(first, second) and torch.equal(first, third)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(out, w)


def test_several_forwards_before_one_backward_and_accumulation(converted):
    (w,) = tensors((3, 3))
    torch.manual_seed(1)
    xs = tensors((3, 3), (3, 3), (3, 3), grad=False)
    sum(converted(x, w, torch.tensor(k)).sum() for k, x in enumerate(xs)).backward()
    converted(xs[0], w, THREE).sum().backward()
    found, w.grad = w.grad, None
    sum(step(x, w, torch.tensor(k)).sum() for k, x in enumerate(xs)).backward()
    step(xs[0], w, THREE).sum().backward()
    torch.testing.assert_close(found, w.grad)


def test_only_inputs_or_only_weights(converted):
    for which in ([True, False], [False, True]):
        x, w = (torch.randn(3, 3, dtype=torch.float64, requires_grad=need) for need in which)
        leaf = x if which[0] else w
        (found,) = torch.autograd.grad(converted(x, w, THREE).sum(), leaf)
        (wanted,) = torch.autograd.grad(step(x, w, THREE).sum(), leaf)
        torch.testing.assert_close(found, wanted)


def test_unused_input():
    def f(x, unused, w):
        return x @ w if x.sum() > 0 else x - w

    x, unused, w = tensors((3, 3), (2,), (3, 3))
    out = to_static(f)(x, unused, w)
    assert torch.autograd.grad(out.sum(), [x, unused], allow_unused=True)[1] is None


@pytest.mark.parametrize("make", [
    lambda g: g.expand(3, 3), lambda g: torch.randn(3, 3, dtype=torch.float64).t(),
    lambda g: torch.randn(3, 6, dtype=torch.float64)[:, ::2], lambda g: torch.zeros(3, 3, dtype=torch.float64),
])
def test_gradients_of_any_layout_come_in(converted, make):
    x, w = tensors((3, 3), (3, 3))
    given = make(torch.ones(1, 1, dtype=torch.float64))
    found = torch.autograd.grad(converted(x, w, THREE), [x, w], given)
    wanted = torch.autograd.grad(step(x, w, THREE), [x, w], given)
    torch.testing.assert_close(found, wanted)


def test_hooks_on_results_and_leaves(converted):
    x, w = tensors((3, 3), (3, 3))
    seen = []
    out = converted(x, w, THREE)
    out.register_hook(lambda g: g * 2)
    w.register_hook(lambda g: seen.append(g.clone()))
    out.retain_grad()
    out.sum().backward()
    (wanted,) = torch.autograd.grad(step(x, w, THREE).sum() * 2, w)
    torch.testing.assert_close(w.grad, wanted)
    torch.testing.assert_close(seen[0], wanted)
    torch.testing.assert_close(out.grad, torch.full_like(out, 2.0))


@pytest.mark.parametrize("victim", ["w", "x", "result"])
def test_a_saved_tensor_that_was_modified_is_refused(victim):
    def f(x, w):
        return torch.tanh(x @ w) if x.sum() > 0 else torch.exp(x @ w)

    x, w = tensors((3, 3), (3, 3))
    for function in (f, to_static(f)):
        out = function(x, w)
        with torch.no_grad():
            {"w": w, "x": x, "result": out}[victim].add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


def test_a_first_carried_value_that_was_modified_is_refused(converted):
    x, w = tensors((3, 3), (3, 3), grad=False)
    w.requires_grad_()
    x.abs_()
    out = converted(x, w, THREE)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_saved_tensor_hooks_see_residuals(converted):
    x, w = tensors((3, 3), (3, 3))
    packed = []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor.clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = converted(x, w, THREE).sum()
    assert len(packed) >= 4
    (wanted,) = torch.autograd.grad(step(x, w, THREE).sum(), w)
    (found,) = torch.autograd.grad(out, w)
    torch.testing.assert_close(found, wanted)


def test_saved_on_cpu(converted):
    x, w = tensors((3, 3), (3, 3))
    with torch.autograd.graph.save_on_cpu():
        out = converted(x, w, THREE).sum()
    torch.testing.assert_close(torch.autograd.grad(out, w), torch.autograd.grad(step(x, w, THREE).sum(), w))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.filterwarnings("ignore:Error detected in ProgramNodeBackward")
def test_anomaly_mode(converted):
    x, w = tensors((3, 3), (3, 3))
    with torch.autograd.detect_anomaly():
        converted(x, w, THREE).sum().backward()

        def f(x):
            return torch.sqrt(x) if x.sum() < 1 else x

        bad = torch.zeros(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="ProgramNodeBackward.*returned nan values"):
            (to_static(f)(bad) * 0).sum().backward()


def test_results_do_not_keep_their_node_alive(converted):
    x, w = tensors((3, 3), (3, 3))
    gc.collect()
    gc.disable()
    try:
        out = converted(x, w, THREE)
        alive = weakref.ref(out)
        del out
        assert alive() is None, "a result is held by its own node"
    finally:
        gc.enable()


@pytest.mark.parametrize("n", [0, 1, 3])
def test_double_backward(converted, n):
    count = torch.tensor(n)
    x, w = tensors((3, 3), (3, 3))

    def second(function):
        out = function(x, w, count)
        grads = torch.autograd.grad(out.square().sum(), [x, w], create_graph=True, allow_unused=True)
        return torch.autograd.grad(sum(g.square().sum() for g in grads if g is not None), [x, w], allow_unused=True)

    for found, wanted in zip(second(converted), second(step)):
        assert (found is None) == (wanted is None)
        if wanted is not None:
            torch.testing.assert_close(found, wanted)


def test_gradgradcheck(converted):
    x, w = tensors((2, 2), (2, 2))
    assert torch.autograd.gradcheck(lambda x, w: converted(x, w, torch.tensor(2)), (x, w))
    assert torch.autograd.gradgradcheck(lambda x, w: converted(x, w, torch.tensor(2)), (x, w))


def test_double_backward_draws_the_same_dropout_and_prints_once(capsys):
    def f(x, w):
        if x.sum() > -100:
            print("once")
            return torch.nn.functional.dropout(x @ w, 0.5).square()
        return x

    x, w = tensors((8, 8), (8, 8))
    results = []
    for function in (f, to_static(f)):
        torch.manual_seed(1)
        out = function(x, w)
        (g,) = torch.autograd.grad(out.sum(), w, create_graph=True)
        results.append([g, *torch.autograd.grad(g.square().sum(), [x, w]), torch.rand(1)])
    torch.testing.assert_close(results[1][:3], results[0][:3])
    assert torch.equal(results[0][3], results[1][3])
    assert capsys.readouterr().out == "once\nonce\n"


def test_double_backward_after_a_buffer_was_written():
    class Counted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones((), dtype=torch.float64))

        def forward(self, x):
            y = x.pow(3) + self.scale if x.sum() > -100 else x
            self.scale += 1
            return y.square()

    grads = []
    for convert in (lambda m: m, to_static):
        module = convert(Counted())
        x = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(module(x).sum(), x, create_graph=True)
        grads.append(torch.autograd.grad(g.sum(), x)[0])
    torch.testing.assert_close(grads[1], grads[0])


def test_no_grad_calls_have_no_history(converted):
    x, w = tensors((3, 3), (3, 3))
    with torch.no_grad():
        assert not converted(x, w, THREE).requires_grad
    with torch.inference_mode():
        assert not converted(x.detach(), w.detach(), THREE).requires_grad
    assert converted(x, w, THREE).requires_grad


def test_frozen_parameters_get_no_gradient():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(3, 3)
            self.b = torch.nn.Linear(3, 3)

        def forward(self, x):
            h = self.a(x)
            return self.b(h) if h.sum() > -1000 else h

    module = Two()
    static = to_static(module)
    module.a.requires_grad_(False)
    static(torch.randn(2, 3)).sum().backward()
    assert module.a.weight.grad is None and module.b.weight.grad is not None
    module.a.requires_grad_(True)
    static(torch.randn(2, 3)).sum().backward()
    assert module.a.weight.grad is not None


def test_a_detached_twin_of_a_result_needs_no_gradient():
    def f(x):
        y = x * 2 if x.sum() > 0 else x * 3
        return y, y.detach(), y.detach().clone()

    x = torch.ones(3, requires_grad=True)
    a, b, c = to_static(f)(x)
    assert (a.requires_grad, b.requires_grad, c.requires_grad) == (True, False, False)


def test_results_may_be_written_in_place():
    def f(x, w):
        y = x @ w if x.sum() > 0 else x
        return y, y.sum()

    grads = []
    for function in (f, to_static(f)):
        x, w = torch.ones(3, 3, requires_grad=True), torch.full((3, 3), 0.5, requires_grad=True)
        y, total = function(x, w)
        y.mul_(2)
        (y.sum() + total).backward()
        grads.append(w.grad)
    torch.testing.assert_close(grads[1], grads[0])


def test_an_optimizer_clipping_and_a_scaler_train_the_same(converted):
    finals = []
    for function in (step, converted):
        torch.manual_seed(0)
        w = torch.randn(3, 3, requires_grad=True)
        optimizer = torch.optim.AdamW([w], lr=0.1, weight_decay=0.1)
        for k in range(1, 6):
            optimizer.zero_grad()
            function(torch.randn(2, 3), w, torch.tensor(k)).square().sum().mul(128).backward()
            if w.grad is not None:
                w.grad.div_(128)
                torch.nn.utils.clip_grad_norm_([w], 0.5)
            optimizer.step()
        finals.append(w.detach().clone())
    torch.testing.assert_close(finals[1], finals[0])


def test_a_write_that_spoils_backward_is_refused_there():
    from dy2static import to_static

    def square(x, n):
        y = torch.tanh(x)
        y *= y
        while y.sum() < n:
            y = y + 1
        return y

    def beside(x, n):
        with torch.no_grad():
            z = x * 2
        return square(x, n), z, x.detach()

    x = torch.randn(3).requires_grad_()
    assert [value.requires_grad for value in to_static(beside)(x, torch.tensor(2.0))] == [True, False, False]
    expected = square(x, torch.tensor(2.0))
    result = to_static(square)(x, torch.tensor(2.0))
    torch.testing.assert_close(result.detach(), expected.detach())
    for value in (expected, result):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            value.sum().backward()


def test_a_write_that_spoils_backward_does_so_on_its_own_path():
    from dy2static import to_static

    def square(x):
        y = torch.tanh(x)
        if x.sum() > 0:
            y *= y
        return y

    converted = to_static(square)
    for value, spoiled in ((1.0, True), (-1.0, False)):
        mine, theirs = (torch.full((3,), value).requires_grad_() for _ in range(2))
        result, expected = converted(mine), square(theirs)
        torch.testing.assert_close(result.detach(), expected.detach())
        if spoiled:
            for one in (result, expected):
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    one.sum().backward()
        else:
            result.sum().backward()
            expected.sum().backward()
            torch.testing.assert_close(mine.grad, theirs.grad)
