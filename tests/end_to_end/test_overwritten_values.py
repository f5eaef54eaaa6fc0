"""Backward where what it reads was overwritten: eager's raises, or reads the new content if ``.data`` was written."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from dy2static import InputSpec, load, save, to_static
from runtime.autodiff import gradient_path
from tests.oracle import same

MESSAGE = "one of the variables needed for gradient computation has been modified by an inplace operation"


def straight(x, n):
    y = x * 2
    z = y * y
    y.add_(1)
    return z


def through_a_view(x, n):
    y = x.exp()
    z = y[0] * y[1]
    y[2].mul_(2)
    return z


def result_that_is_kept(x, n):
    y = x.exp()
    y[0] = 0
    return y * 3


def detached(x, n):
    y = x * 2
    z = y * y
    y.detach().add_(1)
    return z


def without_gradient(x, n):
    y = x * 2
    z = y * y
    with torch.no_grad():
        y.zero_()
    return z


def no_gradient_of_its_own(x, n):
    m = torch.ones(3)
    z = x * m
    m.add_(1)
    return z


def nothing_is_kept(x, n):
    y = x * 2
    z = y + y
    y.add_(1)
    return z


def chain_of_writes(x, n):
    y = x * 2
    y.relu_()
    y.mul_(y)
    return y


def in_a_branch(x, n):
    y = x * 2
    z = y * y
    if n > 1:
        y.add_(1)
    return z


def in_nested_branches(x, n):
    y = x * 2
    if n > 1:
        z = y * y
        if n > 2:
            y.add_(1)
    else:
        z = y * 3
    return z


def written_after_a_branch(x, n):
    y = x * 2
    if n > 1:
        z = y * y
    else:
        z = y * 3
    y.add_(1)
    return z


def in_a_loop(x, n):
    y, t = x * 2, 0
    for _ in range(int(n)):
        t = t + (y * y).sum()
        y.add_(1)
    return t + x.sum()


def before_use_in_a_loop(x, n):
    y, t = x * 2, 0
    for _ in range(int(n)):
        y.add_(1)
        t = t + (y * y).sum()
    return t + x.sum()


def by_a_later_loop(x, n):
    y = x * 2
    z = y * y
    for _ in range(int(n)):
        y.add_(1)
    return z


def in_some_iteration(x, n):
    y = x * 2
    z = y * y
    for i in range(3):
        if i == n:
            y.add_(1)
    return z


def between_iterations(x, n):
    y, t = x * 2, 0
    for i in range(4):
        if i == n:
            t = t + (y * y).sum()
        if i == 1:
            y.add_(1)
    return t + x.sum()


def rows(x, n):
    buffer, h = torch.zeros(4, 3), x
    for i in range(int(n) + 1):
        h = torch.tanh(h * buffer[i])
        buffer[i] = h
    return h, buffer


def rows_that_are_added(x, n):
    buffer, h = torch.zeros(4, 3), x
    for i in range(int(n) + 1):
        h = torch.tanh(h + buffer.sum(0))
        buffer[i] = h
    return h, buffer


def in_nested_loops(x, n):
    buffer, h = torch.ones(4, 3), x
    for i in range(int(n) + 1):
        for _ in range(2):
            h = torch.tanh(h * buffer[i])
        buffer[i] = 1.0
    return h


def new_in_each_iteration(x, n):
    h = x * 1
    for _ in range(int(n)):
        h = h.exp()
        h += 1
    return h


def listed(x, n):
    y, squares = x * 2, []
    for i in range(int(n) + 1):
        squares.append(y * y)
        if i > 0:
            y.mul_(2)
    return sum([one.sum() for one in squares])


def not_asked_for(x, n):
    y = x * 2
    z = y * y
    y.add_(1)
    return z.detach(), y


def past_autograd(x, n):
    y = x * 2
    z = y * y
    y.data.add_(1)
    return z


def past_autograd_an_argument(x, n):
    z = x.sin()
    x.data.mul_(2)
    return z


def past_autograd_a_result(x, n):
    y = x.exp()
    y.data.add_(1)
    return y


def past_autograd_twice(x, n):
    y = x * 2
    z = y[0] * y
    y.data.add_(1)
    y.data.add_(1)
    return z * y


def past_autograd_in_a_branch(x, n):
    y = x * 2
    z = y * y
    if n > 1:
        y.data.add_(1)
    return z


def past_autograd_in_a_loop(x, n):
    y = x * 2
    z = y * y
    for _ in range(int(n)):
        y.data.mul_(2)
    return z


def other_needs_a_gradient_on_a_path(x, n):
    a, c = x * 0.5, torch.ones(3)
    if n > 1:
        c = c + x
    z = a * c
    a.add_(1)
    return z


def other_needs_a_gradient_in_an_iteration(x, n):
    a, b, c = x * 0.5, x, torch.ones(3)
    for i in range(int(n)):
        b = b + c * a
        a *= c
        c = c + x if x.sum() > 0 else c - 0.25
    return a, b, c


def it_needs_a_gradient_on_a_path(x, n):
    c = torch.ones(3)
    if n > 1:
        c = c + x
    z = x + c.sin()
    c.add_(1)
    return z


def result_needs_a_gradient_on_a_path(x, n):
    c = torch.ones(3)
    if n > 1:
        c = c + x
    z = c.exp()
    y = x + z
    z.add_(1)
    return y


def one_of_three_needs_a_gradient_on_a_path(x, n):
    a, b, c = x * 2, torch.ones(3), torch.ones(3)
    if n > 1:
        b = b + x
    if n > 2:
        c = c + x
    z = torch.addcmul(a, b, c)
    c.add_(1)
    return z


def of_a_composite_operator(x, n):
    a, c = x[None] * 0.5, torch.ones(3, 3)
    if n > 1:
        c = c + x
    z = torch.nn.functional.linear(a, c)
    a.add_(1)
    return z


def of_a_write(x, n):
    a, c = x * 0.5, torch.ones(3)
    if n > 1:
        c = c + x
    z = x * 2
    z.addcmul_(a, c)
    a.add_(1)
    return z


def written_on_a_path_and_needed_on_another(x, n):
    a, c = x * 0.5, torch.ones(3)
    if n > 1:
        c = c + x
    z = a / c
    if n == 1:
        c.add_(1)
    if n == 2:
        a.add_(1)
    return z


def needed_by_neither(x, n):
    a, c = x * 0.5, torch.ones(3)
    if n > 1:
        c = c + x
    z = a + c
    w = a * 2 - c
    a.add_(1)
    c.add_(1)
    return z * w


def made_on_a_path_and_written_after_it(x, n):
    a, z = x * 0.5, x
    if n > 1:
        a = x + 1
        z = x.tanh() * a
    a += 0.5
    return z


def what_the_result_was_is_written(x, n):
    a = x * 0.5
    b = a if n > 1 else x + 1
    z = x.tanh() * b
    a += 0.5
    return z


def another_result_is_written(x, n):
    a, b = x * 0.5, x + 1
    if n > 1:
        c, d = a, a
    else:
        c, d = a, b
    z = x.tanh() * d
    c += 0.5
    return z


def result_of_nested_branches_is_written(x, n):
    a, b, c = x * 0.5, x + 1, x * 2
    z = x.tanh() * a
    if n > 0:
        d = b
        if n > 2:
            d = a
    else:
        d = c
    d += 0.5
    return z


def result_is_written_in_a_branch(x, n):
    a, b = x * 0.5, x + 1
    z = x.tanh() * a
    d = a if n > 0 else b
    if n < 2:
        d += 0.5
    return z


def result_is_written_in_a_loop(x, n):
    a, b = x * 0.5, x + 1
    z = x.tanh() * a
    d = a if n > 1 else b
    for _ in range(n.item()):
        d += 0.5
    return z


def made_in_a_branch_of_a_loop(x, n):
    z = x
    for i in range(3):
        a = x * 0.5
        if i < n:
            a = z + 1
            z = z * a
        a += 0.5
    return z


def carried_from_some_iteration_on(x, n):
    a, t = x * 0.5, 0
    for i in range((x > 0).sum() + 1):
        t = t + (a * a).sum()
        if i == 1:
            a = a + 1
        if i == n:
            a.mul_(2)
    return t


def made_in_one_iteration_and_written_in_a_later_one(x, n):
    a, t = x * 0.5, 0
    for i in range((x > 0).sum()):
        if i == n:
            a.mul_(2)
        if i == 0:
            a = x.exp()
            t = t + (a * a).sum()
    return t


def made_anew_in_each_iteration(x, n):
    a, t = x * 0.5, 0
    for _ in range(int(n)):
        t = t + (a * a).sum()
        a = a.exp()
    a.mul_(2)
    return t + x.sum()


def what_came_in_is_written_after_the_loop(x, n):
    a, t = x * 0.5, 0
    b = a
    for i in range((x > 0).sum()):
        if i == n:
            t = t + (a * a).sum()
        a = a + 1
    b.mul_(2)
    return t + x.sum()


def what_came_in_is_written_by_a_later_iteration(x, n):
    a, t = x * 0.5, 0
    b = a
    for i in range((x > 0).sum() + 1):
        if i == n:
            t = t + (a * a).sum()
        if i == 2:
            b.mul_(2)
        if i == 1:
            a = a + 1
    return t + x.sum()


def becomes_an_older_one(x, n):
    a, b, t = x * 0.5, x * 3, 0
    for i in range((x > 0).sum() + 1):
        t = t + (b * b).sum()
        if i == n:
            a = b
        if i == 2:
            a.mul_(2)
    return t


def becomes_an_older_one_saved_before(x, n):
    a, b = x * 0.5, x * 3
    z = b * b
    for i in range(int(n)):
        if i > 0:
            a.mul_(2)
        a = b
    return z


def of_the_other(x, n):
    a, b, t = x * 0.5, x * 3, 0
    for i in range((x > 0).sum() + 1):
        if i == n:
            t = t + (a * a).sum()
        if i == 3:
            b.mul_(2)
        a, b = b, a
    return t + x.sum()


def two_names_for_one(x, n):
    a, b, t = x * 0.5, x * 3, 0
    for i in range((x > 0).sum() + 1):
        if i == n:
            a = x.exp()
            b = a
        if i == 1:
            t = t + (a * a).sum()
        if i == 2:
            b.mul_(2)
    return t + x.sum()


def view_of_the_carried(x, n):
    a, t = x * 0.5, 0
    for i in range((x > 0).sum() + 1):
        t = t + (a * a).sum()
        if i == 1:
            a = a + 1
        if i == n:
            a[0].mul_(2)
    return t


def detached_carried(x, n):
    a, t = x * 0.5, 0
    for i in range((x > 0).sum() + 1):
        t = t + (a * a).sum()
        if i == 1:
            a = a + 1
        if i == n:
            a.detach().mul_(2)
    return t


def carried_through_nested_loops(x, n):
    a, t = x * 0.5, 0
    for i in range((x > 0).sum()):
        for j in range((x > 0.1).sum()):
            t = t + (a * a).sum()
            if i == 0:
                a = a + j
        if i == n:
            a.mul_(2)
    return t


def written_by_an_inner_loop(x, n):
    a, t = x * 0.5, 0
    for i in range((x > 0).sum()):
        t = t + (a * a).sum()
        for j in range((x > 0.1).sum()):
            if i + j == n + 1:
                a.mul_(2)
            if j == 1 and i == 0:
                a = a + 1
    return t


def saved_by_an_inner_loop(x, n):
    a, t = x * 0.5, 0
    for i in range((x > 0).sum()):
        b = a
        for j in range((x > 0.1).sum()):
            t = t + (b * b).sum()
            b = b + 1 if j == 0 else b
        a = b if i == 1 else a
        if i == n:
            a.mul_(2)
    return t


def left_early(x, n):
    a, t, i = x * 0.5, 0, 0
    while i < 4 * x.sign()[0]:
        t = t + (a * a).sum()
        if i == n:
            break
        a = a * 2
        i += 1
    a.mul_(2)
    return t


def left_before_the_write(x, n):
    a, t, i = x * 0.5, 0, 0
    while i < 4 * x.sign()[0]:
        t = t + (a * a).sum()
        if i == n:
            break
        if i == 1:
            a.mul_(2)
        if i == 0:
            a = a + 1
        i += 1
    return t


def result_is_written(x, n):
    a, t = x * 0.5, 0
    for i in range((x > 0).sum()):
        if i == n:
            a = a + 1
        t = t + (a * a).sum()
    if t > 0 and n != 1:
        a.mul_(2)
    return t


def result_may_be_an_older_one(x, n):
    a, b = x * 0.5, x * 3
    z = b * b
    for _ in range(int(n)):
        a = b
    a.mul_(2)
    return z


def two_results_are_one(x, n):
    a, b = x * 0.5, x * 3
    for i in range((x > 0).sum()):
        if i < n:
            a = x.exp()
            b = a if i == 1 else x + 1
    z = a * a
    b.mul_(2)
    return z


def carried_in_a_branch(x, n):
    a, t = x * 0.5, 0
    if n > 0:
        for i in range((x > 0).sum()):
            t = t + (a * a).sum()
            if i == 0:
                a = a + 1
    if n > 1:
        a.mul_(2)
    return t + x.sum()


def inner_branch_and_later_write(x, n):
    a, b, z = x * 0.5, x + 1, x
    if n > 0:
        d = a if n > 1 else b
        z = x.tanh() * d
    a += 0.5
    return z


def past_autograd_of_the_carried(x, n):
    a, t = x * 0.5, 0
    for i in range(int(n)):
        t = t + a.sum()
        a = a * 2
        a.data.mul_(2)
    return t + x.sum()


def argument_written_in_a_loop(x, n):
    t, w = 0, x.detach()
    for i in range(int(n)):
        t = t + (x * x).sum()
        if i == 1:
            w.mul_(2)
    return t + x.sum()


def several_names_in_nested_loops(x, n):
    a, b, c, i, kept = x * 0.5, x * 3, torch.zeros(3), 0, x * 0.5
    while i < 2 and n * x[0] < 0.25:
        i += 1
        b[::2] += a[::2]
        with torch.no_grad():
            a = b * 0.5
            c.copy_(b)
        c = c.detach()
        for _ in range((b > 0.6 * n).sum()):
            a = a.detach().clone()
            kept = b
    a = a.clone()
    a[1:] = 0.5
    b[0] *= x[0]
    return a * x, b * x, c * x, kept * x


def read_by_a_write_of_a_part(x, n):
    y, w = x * 2, x * 3
    y[0].mul_(w[1])
    if n > 1:
        w.add_(1)
    return y


def read_by_a_write_of_a_part_on_a_path(x, n):
    y, w = torch.ones(3), x * 3
    if n > 1:
        y = y + x
    y[0].mul_(w[1])
    w.add_(1)
    return y


def detached_on_a_path_and_read_by_the_write(x, n):
    p, q = x * 0.5, x.detach() * 2
    if n > 1:
        q = p.detach()
    p.mul_(q)
    return p * 1


def view_of_one_detached_on_a_path_and_read_by_the_write(x, n):
    p, q = x * 0.5, x.detach() * 2
    if n > 1:
        q = p.detach()
    p.mul_(q.view(1, 3)[0])
    return p * 1


def copied_into_a_part(x, n):
    y, w = x * 2, x * 3
    y[0] = w[1]
    y[1:] += w[1:]
    w.add_(1)
    return y


def read_by_a_write_of_a_part_in_a_loop(x, n):
    y, w = x * 2, x * 3
    for i in range((x > 0).sum()):
        y[0].mul_(w[1])
        if i == n:
            w.mul_(2)
    return y


def nothing_arrives_at_what_keeps_it(x, n):
    a = x * 0.5
    for _ in range((x > 0).sum()):
        t = a * x
        a *= x
        if n > 1:
            a = t * 1
    return a


RAISE_ALWAYS = [
    straight, through_a_view, result_that_is_kept, detached, without_gradient, no_gradient_of_its_own, rows,
    in_nested_loops, left_early, chain_of_writes,
]  # fmt: skip
RAISE_SOMETIMES = [
    in_a_branch, in_nested_branches, written_after_a_branch, in_a_loop, before_use_in_a_loop, by_a_later_loop,
    in_some_iteration, between_iterations, listed,
    new_in_each_iteration, other_needs_a_gradient_on_a_path, other_needs_a_gradient_in_an_iteration,
    it_needs_a_gradient_on_a_path, result_needs_a_gradient_on_a_path, one_of_three_needs_a_gradient_on_a_path,
    of_a_composite_operator, of_a_write, written_on_a_path_and_needed_on_another,
    made_on_a_path_and_written_after_it, what_the_result_was_is_written, another_result_is_written,
    result_of_nested_branches_is_written, result_is_written_in_a_branch, result_is_written_in_a_loop,
    made_in_a_branch_of_a_loop,
    carried_from_some_iteration_on, made_in_one_iteration_and_written_in_a_later_one,
    what_came_in_is_written_after_the_loop, what_came_in_is_written_by_a_later_iteration,
    becomes_an_older_one, becomes_an_older_one_saved_before, of_the_other, two_names_for_one,
    view_of_the_carried, detached_carried, carried_through_nested_loops, written_by_an_inner_loop,
    saved_by_an_inner_loop, nothing_arrives_at_what_keeps_it, left_before_the_write, result_is_written,
    result_may_be_an_older_one, read_by_a_write_of_a_part, read_by_a_write_of_a_part_on_a_path,
    read_by_a_write_of_a_part_in_a_loop,
    detached_on_a_path_and_read_by_the_write,
    view_of_one_detached_on_a_path_and_read_by_the_write,
    two_results_are_one, carried_in_a_branch, inner_branch_and_later_write, argument_written_in_a_loop,
]  # fmt: skip
RAISE_NEVER = [
    nothing_is_kept, needed_by_neither, rows_that_are_added, not_asked_for, past_autograd,
    past_autograd_an_argument, past_autograd_a_result, past_autograd_twice, past_autograd_in_a_branch,
    past_autograd_in_a_loop, several_names_in_nested_loops, copied_into_a_part,
    made_anew_in_each_iteration, past_autograd_of_the_carried,
]  # fmt: skip


def gradient(function: Any, n: int, create_graph: bool = False) -> Any:
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    results = function(x, torch.tensor(n))
    total = sum(one.sum() for one in (results if isinstance(results, tuple) else (results,)))
    try:
        return torch.autograd.grad(total, x, create_graph=create_graph)[0].detach()
    except RuntimeError as error:
        assert str(error).startswith(MESSAGE), error
        return "raises"


def held(eager: Any, converted: Any, create_graph: bool = False) -> int:
    raised = 0
    for n in range(4):
        expected, got = gradient(eager, n, create_graph), gradient(converted, n, create_graph)
        same(got, expected, f"n={n}", 2e-6)
        raised += isinstance(expected, str)
    return raised


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "eager", [*RAISE_ALWAYS, *RAISE_SOMETIMES, *RAISE_NEVER], ids=lambda function: function.__name__
)
def test_backward_is_eagers(eager, tmp_path):
    converted = to_static(eager, input_spec=[InputSpec([3], "float32"), InputSpec([], "int64")])
    raised = held(eager, converted)
    with gradient_path("autograd"):
        assert held(eager, converted) == raised
    assert raised in ([4] if eager in RAISE_ALWAYS else [0] if eager in RAISE_NEVER else [1, 2, 3])
    save(converted, tmp_path / "f")
    held(eager, load(tmp_path / "f"))


@pytest.mark.parametrize("eager", [straight, in_a_branch, nothing_is_kept], ids=lambda function: function.__name__)
def test_with_create_graph(eager):
    held(eager, to_static(eager), create_graph=True)


def test_the_message_names_the_write():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"MulBackward0 reads, was written at .*: y.add_\(1\)"):
        to_static(straight)(x, torch.tensor(1)).sum().backward()


def test_what_an_inner_gradient_reads():
    def f(x, n):
        w = x.detach().requires_grad_()
        y = w * 2
        z = (y * y).sum()
        if n > 1:
            y.detach().add_(1)
        return torch.autograd.grad(z, w)[0]

    converted = to_static(f)
    for n in (0, 2):
        results = []
        for run in (f, converted):
            try:
                results.append(run(torch.ones(3), torch.tensor(n)))
            except RuntimeError as error:
                results.append(str(error)[: len(MESSAGE)])
        same(results[1], results[0])


def test_statistics_that_the_schema_does_not_announce():
    norm = nn.BatchNorm1d(3)

    def f(x):
        return norm(norm(x) * 2) ** 2

    x = torch.randn(4, 3, requires_grad=True)
    to_static(f)(x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("way", ["mul", "div", "pow", "sigmoid", "exp", "where"])
@pytest.mark.parametrize("asked", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])
def test_a_value_that_an_operator_overwrites_itself_among_other_results(way: str, asked: list[int]) -> None:
    """Eager raises where a gradient arrives there, and only there; an earlier result is an ancestor of it."""

    def f(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        b = torch.tanh(y)
        a = torch.tanh(b * x) * 1
        if way == "mul":
            a *= a
        elif way == "div":
            a /= a
        elif way == "pow":
            a **= 2
        elif way == "sigmoid":
            a.sigmoid_()
        elif way == "exp":
            a.exp_()
        else:
            a.mul_(torch.where(a > 0, a, b))
        return a, b, y * 0.5

    outcomes = []
    for call in (to_static(f), f):
        x, y = torch.full((3,), 0.5, requires_grad=True), torch.ones(3, requires_grad=True)
        results = call(x, y)
        try:
            total = sum(results[place].sum() for place in asked)
            outcomes.append(torch.autograd.grad(total, [x, y], allow_unused=True))
        except RuntimeError as error:
            outcomes.append("has been modified by an inplace operation" in str(error))
    same(*outcomes, tolerance=1e-6)
