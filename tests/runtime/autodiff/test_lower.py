"""Programs whose ``gradients`` are written out: what stands around these keeps its history, its strides' meaning and
its memory."""

from typing import Any

import pytest
import torch

from dy2static import to_static

_VIEWS = {
    "slice": lambda t: t[:, :3],
    "step": lambda t: t[:, ::2],
    "transpose": lambda t: t[:, :2].t(),
    "expand": lambda t: t[:, :1].expand(2, 3),
    "nothing": lambda t: t,
    "copy": lambda t: t[:, :3].clone(),
}


def _ask(how, loss, y):
    if how == "backward":
        loss.backward(retain_graph=True)
        return loss.detach()
    (g,) = torch.autograd.grad(loss, y, retain_graph=True, create_graph=how == "twice")
    return g.sum()


def _branch(view: Any, how: str, keep: bool) -> Any:
    def f(x, y):
        base = torch.cat([y, y * y], 1)
        p = view(base)
        g = x.sum()
        if x.sum() > 0:
            t = p * 1.5
            g = _ask(how, (t * t).sum(), y)
        else:
            p = p - 1
        return (p, g, base) if keep else (p, g)

    return f


def _other_branch(view: Any, how: str, keep: bool) -> Any:
    def f(x, y):
        base = torch.cat([y, y * y], 1)
        g = _ask(how, (base * base).sum(), y)
        p = view(base)
        if x.sum() > 0:
            p = p * 2
        q = p.cos()
        return (p, g, q, base) if keep else (p, g, q)

    return f


def _loop(view: Any, how: str, keep: bool) -> Any:
    def f(x, y):
        base = torch.cat([y, y * y], 1)
        p = view(base)
        g = x.sum()
        i = x.sum()
        while i > 0:
            g = g + _ask(how, (p * p).sum(), y)
            p = p * 0.5
            i = i - 2
        return (p, g, base) if keep else (p, g)

    return f


def _loop_of_views(view: Any, how: str, keep: bool) -> Any:
    def f(x, y):
        base = torch.cat([y, y * y], 1)
        p = base.sin()
        q = view(p)
        g = x.sum()
        i = x.sum()
        while i > 0:
            q = view(p)
            g = g + _ask(how, (q * q).sum(), y)
            i = i - 2
        return (q, g, p, base) if keep else (q, g)

    return f


def _results(f, x, y):
    """What eager or a Program gives: what can be told of each result, gradients by ``y`` through each, and what the
    others are after the last one was written."""
    leaf = y.clone().requires_grad_()
    results = f(x, leaf)
    told = [(one.requires_grad, one.dtype, tuple(one.shape)) for one in results]
    inner = leaf.grad
    gradients = []
    for one in results:
        if one.requires_grad:
            found = torch.autograd.grad(one.square().sum(), leaf, retain_graph=True, allow_unused=True)
            gradients.append(found[0])
    before = [one.detach().clone() for one in results]
    with torch.no_grad():
        results[-1].add_(1)
    return told, [inner, *gradients, *before, *(one.detach() for one in results)]


@pytest.mark.parametrize("keep", [False, True], ids=["alone", "beside its base"])
@pytest.mark.parametrize("how", ["grad", "twice", "backward"])
@pytest.mark.parametrize("view", _VIEWS)
@pytest.mark.parametrize("construct", [_branch, _other_branch, _loop, _loop_of_views])
def test_views_that_leave_a_construct_keep_history_and_memory(construct, view, how, keep):
    torch.manual_seed(0)
    f = construct(_VIEWS[view], how, keep)
    static = to_static(f)
    y = torch.randn(2, 3)
    for start in (-1.0, 1.0, 3.0):
        x = torch.full((1,), start)
        told, tensors = _results(f, x, y)
        told_static, tensors_static = _results(static, x, y)
        assert told == told_static
        for expected, given in zip(tensors, tensors_static, strict=True):
            assert (expected is None) == (given is None)
            if expected is not None:
                torch.testing.assert_close(given, expected)


def _writes_a_clone(x):
    p, r = x * 0.5, x + 1
    q = p / (r**2 + 1)
    p = p.clone()
    p[:1] = 0.3
    leaf = r.detach().requires_grad_()
    (leaf * 2).mean().backward()
    return p.sum() + q.sum()


def _writes_what_was_copied_to(x):
    p = x * 0.5
    q = p * p
    other = torch.empty_like(p)
    other.copy_(p)
    other.mul_(2)
    leaf = x.detach().requires_grad_()
    (leaf * 2).mean().backward()
    return other.sum() + q.sum()


@pytest.mark.parametrize("function", [_writes_a_clone, _writes_what_was_copied_to])
def test_a_write_to_a_copy_is_none_to_what_was_copied(function):
    """Not where a gradient is written out, either: what the copy was made of is kept for the gradient outside."""
    found = []
    for one in (function, to_static(function)):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        one(x).backward()
        found.append(x.grad)
    assert torch.equal(*found)
