"""Whether a value needs a gradient is decided by the path that was taken, as in eager."""

from __future__ import annotations

import pytest
import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.oracle import check


def changes_in_a_loop(x, n):
    a = x * 0.5
    i = torch.tensor(0)
    while i < n:
        with torch.no_grad():
            b = a * 2
        a = b if a.sum() > 1 else a + x
        i = i + 1
    return a


def moves_through_a_loop(x, n):
    a = torch.zeros(3)
    b = torch.zeros(3)
    c = x * 1
    for _ in range(n.sum()):
        a, b, c = b, c, torch.zeros(3)
    return a, b, c


def differs_between_items(x, n):
    out = []
    for i in range(n.sum()):
        if i == 1:
            out.append(x * 2)
        else:
            out.append(x.detach())
    return out


def list_operations(x, n):
    out = [x.detach()]
    for i in range(n.sum() + 1):
        out.append(x * 2 if i == 1 else x.detach())
    joined = torch.stack(out[1:])
    with torch.no_grad():
        off = torch.stack(out)
    first, rest = out[0], out[1:]
    last = out.pop()
    out[0] = x * 3
    return joined, off, first, rest, last, out[-1] * 2, out + rest, out


def lists_of_two_paths(x, n):
    out = []
    if n > 1:
        for _ in range(n.sum()):
            out.append(x.detach())
    else:
        for i in range(n.sum() + 2):
            out.append(x * 2 if i > 0 else x.detach())
    return out


def attributes_and_dicts(x, n):
    class Box:
        pass

    box, d = Box(), {"q": x}
    box.value = torch.zeros(3)
    for _ in range(n.sum()):
        box.value = box.value + 1
        if box.value.sum() > 4:
            d["q"] = box.value
            box.value = x * 1
    return box.value, d


def asked(x, n):
    y = x * 2 if x.sum() > 0 else torch.zeros(3)
    if y.requires_grad:
        return y * 2, (y * x).requires_grad
    return y - 1, (y * 3).requires_grad


def asked_in_a_loop(x, n):
    a = torch.zeros(3)
    if x.sum() > 0:
        a.add_(x)
    v = a[1:]
    hits = 0
    for _ in range(n.sum()):
        if v.requires_grad:
            hits = hits + 1
        a = a.detach() + 1 if a.requires_grad else a + x
    return a, v.requires_grad, hits


def asked_after_a_write(x, n):
    a = torch.zeros(3)
    hits = 0
    for _ in range(n.sum()):
        if a.requires_grad:
            hits += 1
        a.add_(x)
    return a, hits, a.requires_grad


def asked_on_two_paths(x, n):
    a = torch.zeros(3)
    if x.sum() > 0:
        if n > 1:
            a = a + x
        else:
            a.mul_(2)
        c = a.requires_grad
    else:
        c = a.requires_grad
    return a * 2, c, (a * 2 + x).requires_grad, (a * 2).requires_grad


FUNCTIONS = [
    changes_in_a_loop, moves_through_a_loop, differs_between_items, list_operations, lists_of_two_paths,
    attributes_and_dicts, asked, asked_in_a_loop, asked_after_a_write, asked_on_two_paths,
]  # fmt: skip


def calls():
    for value in (1.0, -1.0, 0.1):
        for n in (0, 1, 2, 3):
            yield torch.full((3,), value, requires_grad=True), torch.tensor(n)


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", ["program", "autograd"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_eager(function, path):
    check(function, *calls(), paths=(path,), none_is_zero=True)


def test_without_gradients_nothing_needs_one():
    with torch.no_grad():
        check(asked, *calls())
        check(asked_in_a_loop, *calls())


def test_a_graph_that_depends_on_the_path_is_not_looked_at():
    def f(x):
        y = x * 2 if x.sum() > 0 else torch.zeros(3)
        return 1 if y.grad_fn is None else 2

    with pytest.raises(Dy2StaticError, match="grad_fn depends on the path") as caught:
        dy2static.to_static(f)(torch.ones(3, requires_grad=True))
    assert caught.value.code == "D2S213"


def test_factories_start_a_graph():
    def f(x):
        p = torch.zeros(3, requires_grad=True)
        (g,) = torch.autograd.grad((x * (p + 1) ** 2).sum(), p, create_graph=True)
        return g, p.requires_grad, p.detach() + 1, torch.zeros_like(x, requires_grad=True).requires_grad

    check(f, (torch.ones(3, requires_grad=True),), (torch.full((3,), -2.0, requires_grad=True),))


def returned(x):
    p = x.detach().requires_grad_()
    return x * p, p


def made_by_a_factory(x):
    p = torch.ones(3, requires_grad=True)
    return x * p, [p]


def joined(x):
    p = torch.ones(3)
    if x.sum() > 0:
        p = x.detach().requires_grad_()
    return {"p": p}


def of_a_loop(x):
    p = torch.ones(3)
    while p.sum() < 10:
        p = (p + x).detach().requires_grad_()
    return p


def a_parameter(x):
    return torch.nn.Parameter(x.detach() * 2, requires_grad=False)


@pytest.mark.parametrize("function", [returned, made_by_a_factory, joined, of_a_loop, a_parameter])
def test_a_leaf_made_inside_does_not_leave(function):
    with pytest.raises(Dy2StaticError, match="D2S228"):
        dy2static.to_static(function)(torch.ones(3))


def needing_on_a_path(x):
    return x * 2 if x.sum() > 0 else x.detach() * 3


def kept_gradient(x):
    q = needing_on_a_path(x)
    q.retain_grad()
    return q * 2


def gradient_of_it(x):
    q = needing_on_a_path(x)
    (g,) = torch.autograd.grad((q * q).sum(), q)
    return g


def gradient_for_it(x):
    q = needing_on_a_path(x)
    return torch.autograd.grad((q * x * x).sum(), [q, x], allow_unused=True)[1]


def as_an_array(x):
    q = needing_on_a_path(x)
    return torch.from_numpy(q.numpy() * 2)


def as_an_array_by_force(x):
    q = needing_on_a_path(x)
    return torch.from_numpy(q.numpy(force=True) * 2)


@pytest.mark.parametrize("needs", [False, True], ids=["plain", "needing"])
@pytest.mark.parametrize(
    "function", [kept_gradient, gradient_of_it, gradient_for_it, as_an_array, as_an_array_by_force])  # fmt: skip
def test_what_takes_tensors_that_need_a_gradient_or_others_only(function, needs):
    calls = [(torch.full((3,), value, requires_grad=needs),) for value in (1.0, -1.0)]
    check(function, *calls, paths=("program",))


@pytest.mark.parametrize("wanted", [True, False])
def test_a_tensor_that_needs_a_gradient_on_a_path_is_made_no_leaf(wanted):
    def f(x):
        q = needing_on_a_path(x)
        return q.requires_grad_(wanted) * 2

    with pytest.raises(Dy2StaticError, match="D2S213"):
        dy2static.to_static(f)(torch.ones(3, requires_grad=True))


def flag_of_a_result(x):
    y = x * 1
    y.requires_grad = True
    return y * 2


def flag_of_a_leaf_twice(x):
    y = x.detach()
    y.requires_grad = True
    y.requires_grad = True
    return (y * x).sum().detach()


def flag_of_a_view_of_a_leaf(x):
    y = x.detach().requires_grad_()
    z = y.view(3)
    z.requires_grad = True
    return (z * x).detach()


def flag_of_a_view_without_history(x):
    with torch.no_grad():
        y = x.view(3)
    y.requires_grad = True
    return (y * x).detach()


def method_of_a_result(x):
    y = x * 1
    y.requires_grad_()
    return y.requires_grad_(True) * 2


def flag_on_a_path(x):
    y = x * 1
    if x.sum() > 0:
        y.requires_grad = True
    return y * 2


@pytest.mark.parametrize("function", [flag_of_a_result, flag_of_a_leaf_twice, flag_of_a_view_of_a_leaf,
                                      flag_of_a_view_without_history, method_of_a_result, flag_on_a_path])  # fmt: skip
def test_the_flag_is_set(function):
    for value in (1.0, -1.0):
        try:
            check(function, (torch.full((3,), value, requires_grad=True),), paths=("program",))
        except Dy2StaticError as error:
            assert error.code in ("D2S213", "D2S228")


def _joined(x, y):
    q, r = y * 2, torch.zeros(3)
    if x.sum() > 0:
        q = r
    return q, r


def _carried(x, y):
    q, r = y * 2, torch.zeros(3)
    for _ in range(int((x > 0).sum())):
        q = r
    return q, r


DETACHED = {
    "copied": lambda q, r: r.copy_(q.detach()), "added": lambda q, r: r.add_(q.detach()),
    "a part": lambda q, r: r[1:].copy_(q.detach()[1:]), "of a part": lambda q, r: r[0].add_(q.detach().sum()),
    "to what is detached": lambda q, r: r.detach().add_(q), "data": lambda q, r: r.copy_(q.data),
    "with a history": lambda q, r: r.add_(q), "both": lambda q, r: r.add_(q.detach() * q),
}  # fmt: skip


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("write", DETACHED)
@pytest.mark.parametrize("made", [_joined, _carried])
def test_a_write_of_what_is_detached_brings_no_history(made, write, before):
    """Of a tensor that is the written one on some paths, and needs a gradient on others."""

    def f(x, y):
        q, r = made(x, y)
        p = q.detach()
        if before:
            with torch.no_grad():
                q[0] = 1.0
        DETACHED[write](q, r)
        return r * 1, p * 1, q * 1, r.requires_grad

    calls = [(torch.tensor(x), torch.ones(3, requires_grad=True)) for x in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0])]
    check(f, *calls)
