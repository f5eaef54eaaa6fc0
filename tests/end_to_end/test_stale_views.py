"""Views that autograd does not let be written, and what eager says about them; views made under ``no_grad``."""

from __future__ import annotations

import pytest
import torch

from tests.end_to_end.test_joined_views import row_written_round
from tests.oracle import check, check_saved


def unbind_base(x):
    a = x * 1
    r0, r1, r2 = a
    a.mul_(2.0)
    return a + r1


def chunk_base(x):
    a = x * 1
    p, q = a.chunk(2)
    a.mul_(2)
    return q + a.sum()


def split_with_sizes_base(x):
    a = x * 1
    p, q = a.split([1, 2])
    a.mul_(2)
    return q + a.sum()


def multi_slice_base(x):
    a = x * 1
    p, q = a.split(2)
    w = p[1:]
    a.mul_(2)
    return a.sum() + w


def multi_slice_write(x):
    a = x * 1
    p, q = a.split(2)
    w = p.view(1, 2)
    w.mul_(2)
    return a


def nograd_view(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
    v.mul_(2)
    return a + v.sum()


def nograd_view_base(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
    a.mul_(2)
    return a + v.sum()


def row_of_leaf_written_under_no_grad(x):
    r, *_ = x.unbind(0)
    with torch.no_grad():
        x.mul_(2.0)
    return r + 1


def no_grad_view_written_under_no_grad(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
        a.mul_(2)
    return v + a.sum()


def no_grad_view_writes_itself(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
        v.mul_(2)
    return v + a.sum()


def slice_of_no_grad_view(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
    w = v[1:]
    w.mul_(2)
    return a


def split_under_no_grad(x):
    a = x * 1
    with torch.no_grad():
        p, q = a.split([1, 2])
    a.mul_(2)
    return q + a.sum()


def row_of_plain_read(x):
    a = torch.zeros(3)
    p, q, r = a
    p.add_(1)
    a.add_(x)
    return a + p


def row_of_constant_gets_history(x):
    a = torch.zeros(3)
    p, q, r = a
    p.add_(x[0])
    return a


def before_branch(x):
    a = x * 1
    p, q, r = a
    a.mul_(2)
    if x.sum() > 0:
        return a + q
    return a


def loop_base(x):
    a = x * 1
    p, q, r = a
    i = torch.tensor(0)
    while i < x.abs().sum() and i < 2:
        a.mul_(2)
        i = i + 1
        a = a + q
    return a


def leaf_view(x):
    v = x[1:]
    v.mul_(2.0)
    return v + 1


def leaf_select(x):
    x[0] = 1.0
    return x


def leaf_view_nograd(x):
    with torch.no_grad():
        v = x[1:]
    v.mul_(2.0)
    return v + 1


def dead_overlap(x):
    c = torch.zeros(3)
    c[[0, 2]] = c[0]
    return x * 2


def dead_overlap2(x):
    c = x * 1
    c[1:].add_(c[:-1])
    return x * 2


def split_in_branch(x):
    a = x * 1
    if x.sum() > 0:
        r0, r1 = a.split(2)
        r0.add_(1)
    return a


def in_branch(x):
    a = x * 1
    p, q, r = a
    if x.sum() > 0:
        a.mul_(2)
        a = a + q
    return a


def tensor_split_base(x):
    a = x * 1
    p, q = a.tensor_split(2)
    a.mul_(2)
    return q + a.sum()


def row_of_plain(x):
    a = torch.zeros(3)
    p, q, r = a
    p.add_(1)
    a.add_(x)
    return a


def row_of_plain_read2(x):
    a = torch.zeros(3)
    p, q, r = a
    p.add_(1)
    return a + p + x


def loop_ok(x):
    a = x * 1
    i = torch.tensor(0)
    while i < 2:
        p, q, r = a
        a = a + q
        i = i + 1
    a.mul_(2)
    return a


def rows_of_what_was_rebound(x):
    a = x * 1
    for r in a:
        a = a + r
    a.add_(1)
    return a


def stale_row_only_detached(x):
    a = x * 1
    p, q, r = a
    a.mul_(2)
    return a + q.detach()


def stale_row_read_under_no_grad(x):
    a = x * 1
    p, q, r = a
    a.mul_(2)
    with torch.no_grad():
        s = q * 2
    return a + s


def no_grad_grad_flow(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
    return v * 2 + a.sum()


def no_grad_grad_flow2(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
    return (v * 2).sum()


def no_grad_grad_flow3(x):
    a = x * 1
    with torch.no_grad():
        v = a.contiguous()
        b = v.requires_grad
    v.mul_(3)
    return (v * 2).sum(), b


def no_grad_grad_ret(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
    return v, v.requires_grad, v * 2


def no_grad_reshape(x):
    a = x * 1
    with torch.no_grad():
        v = a.reshape(1, 3)
    return v, v.requires_grad, (v * 2).requires_grad


def no_grad_branch(x):
    a = x * 1
    if x.sum() > 0:
        with torch.no_grad():
            v = a[1:]
    else:
        v = a[1:] * 2
    return v * 2


def no_grad_branch2(x):
    a = x * 1
    with torch.no_grad():
        if x.sum() > 0:
            v = a[1:]
        else:
            v = a[1:] * 2
    return v * 2, v.requires_grad


def no_grad_loop(x):
    a = x * 1
    i = torch.tensor(0)
    t = torch.zeros(())
    while i < 2:
        with torch.no_grad():
            for r in a:
                t = t + r
        i = i + 1
    return t + a, t.requires_grad


def no_grad_append(x):
    out = []
    with torch.no_grad():
        for r in x:
            out.append(r)
    return torch.stack(out)


def leaf_in_branch(x):
    if x.sum() > 0:
        x[0] = 1.0
    return x * 1


def leaf_in_branch2(x):
    y = x * 2
    if x.sum() > 0:
        y[0] = 1.0
        x.mul_(2)
    return x * 1


def across_branch(x):
    a = x * 1
    p, q, r = a
    if x.sum() > 0:
        a.mul_(2)
    return a + q


def rows_branch(x):
    a = x * 1
    c = 0.0
    for r in a:
        c = c + r
        if c > 0:
            a -= 1
    return a + c


def rows_break(x):
    a = x * 1
    c = 0.0
    for r in a:
        c = c + r
        if c > 1e3:
            break
        a -= 1
    return a + c


def rows_with_a_staged_loop(x):
    a = x * 1
    c = 0.0
    for r in a:
        c = c + r
        for j in range((x > 0).sum()):
            a += 0.5
    return a + c


def read_in_the_next_iteration(x):
    a = x * 1
    p, q, r = a
    c = 0.0
    i = 0
    while i < (x > 0).sum():
        c = c + q
        a.mul_(2)
        i = i + 1
    return a + c


def written_in_some_iteration(x):
    a = x * 1
    p, q, r = a
    c = 0.0
    i = 0
    while i < (x > 0).sum():
        c = c + q
        if a.sum() < 10:
            a.mul_(2)
        i = i + 1
    return a + c


def across_loop_with_branches(x):
    a = x * 1
    p, q, r = a
    i = 0
    while i < (x > 0).sum():
        if a[2] > 2.5:
            a.mul_(2)
        if a[2] > 100:
            a.mul_(2)
        i = i + 1
    return a + q


def across_loops(x):
    a = x * 1
    p, q, r = a
    i = 0
    while i < (x > 0).sum():
        j = 0
        while j < (x > 1.5).sum():
            a.mul_(2)
            j = j + 1
        i = i + 1
    return a + q


def element_in_loop(x):
    a = x * 1
    p, q, r = a
    i = 0
    while i < (x > 0).sum():
        a[i] = 0.5
        i = i + 1
    return a + q


def two_branches_in_a_branch(x):
    a = x * 1
    p, q, r = a
    if x.sum() > 0:
        if x[0] > 0.5:
            a.mul_(2)
        if x[0] > 1.5:
            a.mul_(2)
    return a + q


def other_name_of_one_path(x):
    a = x * 1
    p, q, r = a
    b = x * 3
    if x.sum() > 0:
        b = a
    b.mul_(2)
    return a + b + q


def view_of_one_path(x):
    a = x * 1
    p, q, r = a
    b = x[1:] * 3
    if x.sum() > 0:
        b = a[1:]
    b.mul_(2)
    return a.sum() + b + q


def views_of_two_paths(x):
    a = x * 1
    b = x[1:] * 3
    if x[0] > 0:
        b = a[1:]
    d = (x * 4).view(3, 1)
    if x[1] > 0:
        d = a.view(3, 1)
    p, q, r = d
    b.mul_(2)
    return a.sum() + d.sum() + b + q


def other_name_from_an_iteration(x):
    a = x * 1
    p, q, r = a
    b = x * 3
    i = 0
    while i < (x > 0).sum():
        b.mul_(2)
        b = a
        i = i + 1
    return a + b + q


RAISING = [
    rows_with_a_staged_loop,
    read_in_the_next_iteration,
    written_in_some_iteration,
    across_loop_with_branches,
    across_loops,
    element_in_loop,
    two_branches_in_a_branch,
    other_name_of_one_path,
    view_of_one_path,
    views_of_two_paths,
    other_name_from_an_iteration,
    across_branch,
    rows_branch,
    rows_break,
    unbind_base,
    chunk_base,
    split_with_sizes_base,
    multi_slice_base,
    multi_slice_write,
    row_written_round,
    nograd_view,
    nograd_view_base,
    row_of_leaf_written_under_no_grad,
    no_grad_view_written_under_no_grad,
    no_grad_view_writes_itself,
    slice_of_no_grad_view,
    split_under_no_grad,
    row_of_plain_read,
    row_of_constant_gets_history,
    before_branch,
    loop_base,
    leaf_view,
    leaf_select,
    leaf_view_nograd,
    dead_overlap,
    dead_overlap2,
]
"""Eager raises on some path."""
RIGHT = [
    split_in_branch,
    in_branch,
    tensor_split_base,
    row_of_plain,
    row_of_plain_read2,
    loop_ok,
    rows_of_what_was_rebound,
    stale_row_only_detached,
    stale_row_read_under_no_grad,
    no_grad_grad_flow,
    no_grad_grad_flow2,
    no_grad_grad_flow3,
    no_grad_grad_ret,
    no_grad_reshape,
    no_grad_branch,
    no_grad_branch2,
    no_grad_loop,
    no_grad_append,
    leaf_in_branch,
    leaf_in_branch2,
]


def arguments():
    values = [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [-1.0, -2.0, 3.0], [-1.0, 2.0, 2.0], [1.0, -2.0, 3.0]]
    return [(torch.tensor(value, requires_grad=True),) for value in values]


@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_raises_what_eager_raises(f):
    with pytest.raises(RuntimeError):
        f(torch.tensor([1.0, 2.0, 3.0]).requires_grad_())
    check(f, *arguments())


@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_paths_that_eager_runs(f):
    check(f, *arguments())


@pytest.mark.parametrize("f", [unbind_base, chunk_base, nograd_view, nograd_view_base], ids=lambda f: f.__name__)
def test_nothing_is_refused_without_gradients(f):
    check(f, (torch.tensor([1.0, 2.0, 3.0]),))


OWN_VIEWS = {
    "linear of a vector": lambda x: torch.nn.functional.linear(x, torch.eye(3), torch.ones(3)),
    "linear of a matrix": lambda x: torch.nn.functional.linear(x[None], torch.eye(3), torch.ones(3)),
    "linear without bias": lambda x: torch.nn.functional.linear(x, torch.eye(3)),
    "matmul": lambda x: x @ torch.eye(3),
    "einsum": lambda x: torch.einsum("i,ij->j", x, torch.eye(3)),
    "tensordot": lambda x: torch.tensordot(x, torch.eye(3), 1),
    "reshape": lambda x: (x * 2).reshape(3, 1),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (3,)),
    "instance_norm": lambda x: torch.nn.functional.instance_norm(x.expand(2, 2, 3)),
}


@pytest.mark.parametrize("name", OWN_VIEWS)
def test_results_under_no_grad_that_are_views_of_what_the_operator_made(name):
    operator = OWN_VIEWS[name]

    def written(x):
        with torch.no_grad():
            b = operator(x)
        b += x.sum()
        return b

    def written_after_a_loop(x):
        b = x * 2
        with torch.no_grad():
            for _ in range((x > 0).sum()):
                b = operator(x)
        b += x.sum()
        return b

    def written_after_a_branch(x):
        with torch.no_grad():
            if x.sum() > 0:
                b = operator(x)
            else:
                b = operator(x) * 2
        b += x.sum()
        return b

    for function in (written, written_after_a_loop, written_after_a_branch):
        for requires_grad in (True, False):
            for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]):
                check(function, (torch.tensor(values, requires_grad=requires_grad),))


def a_view_of_the_iteration_before(x, y):
    r, p = torch.ones(3), x * 0.5
    for _ in range(2):
        with torch.no_grad():
            torch.neg(r, out=p)
            r = p[:]
        if y.sum() > 0:
            continue
        r = torch.ones(3)
    return p * 1, r * 1


def a_view_of_one_path(x, y):
    r, p = torch.ones(3), x * 0.5
    for _ in range(2):
        with torch.no_grad():
            torch.neg(r, out=p)
            if y.sum() > 0:
                r = p[:]
    return p * 1, r * 1


def written_itself(x, y):
    r, p = torch.ones(3), x * 0.5
    i = torch.zeros(3, dtype=torch.int64)
    for _ in range(2):
        with torch.no_grad():
            torch.sort(r, out=(p, i))
            torch.sort(p, out=(r[:], i))
            r = p[:]
        if y.sum() > 0:
            continue
        r = torch.ones(3)
    return p * 1, r * 1, i


def read_after_all(x, y):
    r, p = torch.ones(3), x * 0.5
    if y.sum() > 0:
        with torch.no_grad():
            r = p[:]
    with torch.no_grad():
        p.neg_()
    return p * 1, r * 1


def read_under_no_grad(x, y):
    r, p = torch.ones(3), x * 0.5
    if y.sum() > 0:
        with torch.no_grad():
            r = p[:]
    with torch.no_grad():
        p.neg_()
        z = r + 1
    return p * 1, z


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    "f", [a_view_of_the_iteration_before, a_view_of_one_path, written_itself, read_after_all, read_under_no_grad]
)
def test_views_made_under_no_grad_that_are_written_and_not_read(f, saved, tmp_path):
    calls = [(torch.tensor([1.0, 2.0, 3.0], requires_grad=True), sign * torch.ones(3)) for sign in (1, -1)]
    static = check(f, *calls)
    if saved and f is not read_after_all:  # a file's Program does not know whether inputs need gradients
        check_saved(f, static, tmp_path / "f", *calls)


def rows_where_a_backward_is_spoilt(x, y):
    p, q = x * 0.5, y * 2
    r = p if y.sum() < 1.5 else q
    n = 0
    while n < 2 and p[0] < p[1]:
        n += 1
        r.detach().add_(r.detach())
        with torch.no_grad():
            p = q.view(1, 3)[0]
            r = q.clone()
    s = torch.zeros(())
    for t in p:
        q.mul_(q)
        s = s + t
    return s, q


def test_what_is_said_of_a_view_where_autograd_differentiates_at_run_time():
    """Two writes spoil the backward, so there is no backward Program; taking the row would raise, too, about ``p``."""
    calls = [(torch.tensor([0.0, 1.0, 2.0]), torch.full((3,), y, requires_grad=True)) for y in (1.0, -1.0, 0.25)]
    check(rows_where_a_backward_is_spoilt, *calls, (torch.tensor([2.0, 1.0, 0.0]), torch.ones(3, requires_grad=True)))
