"""Detached tensors that are written while gradients are recorded: the history is theirs, the memory is shared."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
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


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "function",
    [
        written, views_taken_before_and_after, two_of_one_tensor, detached_twice, through_a_view,
        without_history_the_base_keeps_its_own, written_in_a_branch, written_in_a_loop, detached_on_one_path,
        written_through_a_name_of_one_path, the_base_is_written_after_it, in_each_iteration,
        detached_on_some_iterations,
        detached_from_the_iteration_before, taking_turns, of_a_factory,
        again_in_a_function, what_no_name_shows_any_more, through_data, rows_before_a_write_through_data,
        one_of_two_names, of_a_factory_and_written, of_a_factory_in_a_loop, of_an_argument, rows,
        view_of_a_detached_tensor_whose_memory_is_written,
    ],
)  # fmt: skip
@pytest.mark.parametrize("needs", ["", "x", "y", "w", "xy", "xyw"])
def test_detached_written(function, needs):
    def arguments(*x):
        made = {"x": torch.tensor(x), "y": torch.tensor([0.5, -1.0, 2.0]), "w": torch.tensor([0.3, 0.2, -0.7])}
        return [value.requires_grad_(name in needs) for name, value in made.items()]

    calls = arguments(1.0, 2.0, -0.5), arguments(-1.0, -2.0, 0.5), arguments(0.1, 0.2, 0.3)
    check(function, *calls)


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
