"""Detached tensors that are written while gradients are recorded: the history is theirs, the memory is shared."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dy2static import InputSpec, load, save, to_static
from runtime.errors import Dy2StaticError
from tests.oracle import check, check_module, same


def written(x, y, w):
    b = y * 3
    c = b.detach()
    c -= x * 0.5
    return b, c, c * 2, c.detach()


def views_taken_before_and_after(x, y, w):
    b = y * 3
    c = b.detach()
    before = c[:2]
    c -= x * 0.5
    after = c[1:]
    after *= w[1:]
    return before, c, after, b


def two_of_one_tensor(x, y, w):
    b = y * 3
    c, d = b.detach(), b.detach()
    c += w
    d *= w
    b += 1
    return b, c, d


def detached_twice(x, y, w):
    b = y * 3
    d = b.detach().detach()
    d *= w
    return b, d


def through_a_view(x, y, w):
    b = y * 3
    c = b.detach().view(3, 1).t()
    c *= w
    return b, c


def without_history_the_base_keeps_its_own(x, y, w):
    b = y * 3
    c = b.detach()
    c -= 1
    return b, c, c * x


def written_in_a_branch(x, y, w):
    b = y * 3
    c = b.detach()
    if x.sum() > 0:
        c -= x
    return b, c


def written_in_a_loop(x, y, w):
    b = y * 3
    c = b.detach()
    for _i in range((x > 0).sum()):
        c -= w
    return b, c


def detached_on_one_path(x, y, w):
    b = y * 3
    c = b
    if x.sum() > 0:
        c = b.detach()
    c -= w
    return b, c


def written_through_a_name_of_one_path(x, y, w):
    b = y * 3
    c = b.detach()
    d = c if x.sum() > 0 else x * 2
    d += w
    c += y
    return b, c, d


def the_base_is_written_after_it(x, y, w):
    b = y * 3
    c = b.detach()
    c -= w
    b *= y
    return b, c


def in_each_iteration(x, y, w):
    h = torch.zeros(3)
    n = 0
    while n < (x > 0).sum():
        g = h.detach()
        g += w * x
        h = g * 2
        n += 1
    return h


def detached_on_some_iterations(x, y, w):
    c = (y * 3).detach()
    for i in range(3):
        if x.sum() > i:
            c = c.detach()
            c += w
        else:
            c *= w
    return c


def detached_from_the_iteration_before(x, y, w):
    h = x * 1
    out = []
    i = 0
    while i < (y > 0).sum():
        h = h.detach()
        h += w
        out.append(h * 2)
        i += 1
    return out, h


def taking_turns(x, y, w):
    h = w * 2
    c = h.detach()
    i = 0
    while i < (x > 0).sum():
        c, h = h.detach(), c
        c += w
        i += 1
    return h, c


def of_a_factory(x, y, w):
    c = torch.zeros(3)
    d, e = c.detach(), c.data
    c *= x
    c += w
    return c, d, e


def of_a_factory_and_written(x, y, w):
    c = torch.zeros(3)
    d = c.detach()[:]
    if x.sum() > 0:
        d += w
    else:
        c += w
    return c, d


def of_a_factory_in_a_loop(x, y, w):
    c = torch.zeros(3)
    d = c[:2].detach()
    for _i in range((x > 0).sum()):
        c += w
        d = d.detach()
        d *= x[:2]
    return c, d


def again_in_a_function(x, y, w):
    def twist(t, u):
        if u.sum() > 0:
            t = t.detach()
        t += u
        return t

    p = x * 0.5
    q = p.detach()
    r = twist(q, p)
    return p * 1, q * 1, r * 1


def what_no_name_shows_any_more(x, y, w):
    r = x * 1
    p = r.detach()
    if y.sum() > 0:
        p = x * 2
    p[0] = w[2]
    r[::2] += 1
    return p * 1, r


def through_data(x, y, w):
    p = w * 2
    if x.sum() > 0:
        p = y * 1
    r = p.data
    _a, b, _c = p
    r.copy_(p)
    return r + b


def rows_before_a_write_through_data(x, y, w):
    p = w * 2
    _a, b, _c = p
    p.data.mul_(0.5)
    return p + b


def one_of_two_names(x, y, w):
    p = w * 0.5
    r = torch.zeros(3)
    q = p.data
    if (p > 0).any():
        r = q if r.sum() < 1.5 else p
    else:
        p = p + 1
    if q[0] < q[1]:
        r = p.detach()
    r.detach().add_(p.detach())
    return p, q, r


def of_an_argument(x, y, w):
    c = x.detach()
    c += w
    return c, x * 2


def rows(x, y, w):
    b = y * 3
    found = [r.detach() for r in b.view(3, 1)]
    found[0] += w[:1]
    return found, b


def view_of_a_detached_tensor_whose_memory_is_written(x, y, w):
    b = torch.tanh(y)
    e = b.detach()[:2]
    b -= 0.5
    return e, b


FUNCTIONS = [
    written, views_taken_before_and_after, two_of_one_tensor, detached_twice, through_a_view,
    without_history_the_base_keeps_its_own, written_in_a_branch, written_in_a_loop, detached_on_one_path,
    written_through_a_name_of_one_path, the_base_is_written_after_it, in_each_iteration,
    detached_on_some_iterations,
    detached_from_the_iteration_before, taking_turns, of_a_factory,
    again_in_a_function, what_no_name_shows_any_more, through_data, rows_before_a_write_through_data,
    one_of_two_names, of_a_factory_and_written, of_a_factory_in_a_loop, of_an_argument, rows,
    view_of_a_detached_tensor_whose_memory_is_written,
]  # fmt: skip


def _arguments(needs, *x):
    made = {"x": torch.tensor(x), "y": torch.tensor([0.5, -1.0, 2.0]), "w": torch.tensor([0.3, 0.2, -0.7])}
    return [value.requires_grad_(name in needs) for name, value in made.items()]


def _cloned(value):
    return value.clone() if isinstance(value, torch.Tensor) else [_cloned(one) for one in value]


@pytest.mark.sample(4)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("needs", ["", "x", "y", "w", "xy", "xyw"])
def test_detached_written(function, needs):
    def apart(x, y, w):
        return _cloned(function(x, y, w))

    check(apart, *(_arguments(needs, *x) for x in ((1.0, 2.0, -0.5), (-1.0, -2.0, 0.5), (0.1, 0.2, 0.3))))


def _tensors(value):
    if isinstance(value, np.ndarray):
        return [torch.from_numpy(value)]
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in (value.values() if isinstance(value, dict) else value) for one in _tensors(item)]


def _written_by_the_caller(function, arguments):
    """What the results hold, and all of them after a write to each."""
    results = _tensors(function(*arguments))
    told = [[one.requires_grad for one in results]]
    for one in [None, *results]:
        if one is not None:
            with torch.no_grad():
                one.add_(1)
        told.append([each.detach().clone() for each in (*results, *arguments)])
    return told


def _share_or_are_refused(function, static, arguments):
    """Whether what is one memory in eager is one; else D2S222 says so."""
    expected = _written_by_the_caller(function, [one.detach().clone().requires_grad_(one.requires_grad)
                                                 for one in arguments])  # fmt: skip
    try:
        found = _written_by_the_caller(static, arguments)
    except Dy2StaticError as error:
        assert error.code in ("D2S222", "D2S319"), error
        assert "test_detached_written" in str(error) or error.code == "D2S319"
        return False
    same(found, expected)
    return True


@pytest.mark.sample(4)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("needs", ["", "x", "xyw"])
def test_results_share_memory_or_are_refused(function, needs):
    static = to_static(function)
    for x in ((1.0, 2.0, -0.5), (-1.0, -2.0, 0.5)):
        assert _share_or_are_refused(function, static, _arguments(needs, *x)) or needs


def of_zeros(x):
    a = torch.zeros(3)
    t = a.detach()
    t += x
    return a, t


def a_view_of_it(x):
    a = torch.zeros(3)
    t = a.detach()[1:]
    t += x[1:]
    return a[:2], t, a


def through_data_of_zeros(x):
    d = {"a": torch.zeros(3)}
    d["t"] = d["a"].data
    d["t"].mul_(0).add_(x)
    return d


def of_an_array(x):
    a = np.zeros(3, dtype=np.float32)
    t = torch.from_numpy(a)
    t += x
    return t, a, a[1:]


def others_detached(x):
    a = torch.zeros(3)
    t, u = a.detach(), a.detach()
    t += x
    v = t.detach()
    v += 1
    return u, [a, v], t[1:]


def in_a_branch(x):
    a = torch.zeros(3)
    t = a.detach()
    if x.sum() > 0:
        t += x
    return a, t


def in_a_loop(x):
    a, i = torch.zeros(3), torch.tensor(0)
    t = a.detach()
    while i < 3:
        t += x
        i = i + 1
    return t, a


def written_without_a_history(x):
    a = torch.zeros(3)
    t = a.detach()
    t += x
    with torch.no_grad():
        a.add_(1)
    return a, t, (t * t).sum() + (a * 2).sum()


@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("function", [
    of_zeros, a_view_of_it, through_data_of_zeros, pytest.param(of_an_array, marks=pytest.mark.slow), others_detached,
    in_a_branch, in_a_loop, written_without_a_history], ids=lambda one: one.__name__)  # fmt: skip
def test_results_share_memory(function, backend, tmp_path):
    static = to_static(function, backend=backend)
    save(function, tmp_path / "f", [InputSpec([3], "float32", "x")])
    for x in (torch.tensor([1.0, 2.0, -0.5]), torch.tensor([-1.0, -2.0, 0.5])):
        for needs in (False, True):
            assert _share_or_are_refused(function, static, [x.clone().requires_grad_(needs)])
            assert _share_or_are_refused(function, load(tmp_path / "f"), [x.clone().requires_grad_(needs)])


def test_an_array_shares_memory():
    assert _share_or_are_refused(of_an_array, to_static(of_an_array), [torch.ones(3, requires_grad=True)])


def of_a_part(x):
    a = torch.zeros(4)
    t = a[1:].detach()
    t += x
    return a, t


def twice(x):
    a = torch.zeros(3)
    t, u = a.detach(), a.detach()
    t += x
    u *= x
    return t, u


def on_one_path(x):
    a = torch.zeros(3)
    t = x * 1
    if x.sum() > 0:
        t = a.detach()
        t += x
    return a, t


@pytest.mark.parametrize("function", [of_a_part, twice, on_one_path], ids=lambda one: one.__name__)
def test_refused(function):
    x = torch.tensor([1.0, 2.0, -0.5])
    with pytest.raises(Dy2StaticError, match="D2S222.*\n.*detach|D2S222"):
        to_static(function)(x.clone().requires_grad_())
    assert _share_or_are_refused(function, to_static(function), [x])


class Kept(torch.nn.Module):
    def forward(self, x):
        self.a = torch.zeros(3)
        self.t = self.a.detach()
        self.t += x
        return self.t * 2


def test_stored_results_share_memory():
    found = []
    for model in (Kept(), to_static(Kept())):
        x = torch.ones(3, requires_grad=True)
        y = model(x)
        with torch.no_grad():
            model.a.add_(1)
        found.append([y, model.a, model.t, *torch.autograd.grad(model.t.sum(), x)])
    same(found[1], found[0])


class Running(torch.nn.Module):
    """A buffer becomes one of the arguments, detached, and is written by a loop."""

    running: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running", torch.zeros(3))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        b = torch.tanh(y)
        self.running = (x if (b > 0).any() else y).detach()
        if (x > 0).any():
            for t in reversed([x * 0.5, torch.sin(y)]):
                b = b + t * 0.1
                self.running.mul_(0.5)
        return b * x


def test_a_buffer_that_is_an_argument() -> None:
    for first, second in ((1.0, 2.0), (-1.0, 2.0), (1.0, -2.0), (-1.0, -2.0)):
        check_module(Running, (torch.full((3,), first), torch.full((3,), second)))
        found = []
        for module in (Running(), to_static(Running())):
            x, y = torch.full((3,), first, requires_grad=True), torch.full((3,), second, requires_grad=True)
            result = module(x, y)
            found.append((result, x, y, module.running))
        same(found[1], found[0])
