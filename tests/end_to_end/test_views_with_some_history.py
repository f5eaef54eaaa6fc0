"""Views that autograd does not let be written, of tensors that need a gradient on some paths only."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import check


def some_history(w, x, n):
    """A tensor that needs a gradient where ``n`` is not positive."""
    b = torch.tanh(w)
    with torch.no_grad():
        if n.sum() > 0:
            b = b + 1
    a = x * 1
    a += b
    return a


def rows_and_a_write_on_a_path(w, v, x, y, n):
    a = some_history(w, x, n)
    c = torch.zeros(())
    for m, r in enumerate(a):
        c = c + r * m
        if y.max() > m:
            b = a
            b -= v
    return c, m


def rows_then_written_with_history(w, v, x, y, n):
    a = some_history(w, x, n)
    p, q, _r = a
    a -= v
    return p + q


def rows_then_written(w, v, x, y, n):
    a = some_history(w, x, n)
    p, q, _r = a
    a -= 1
    return p + q


def rows_then_one_written(w, v, x, y, n):
    a = some_history(w, x, n)
    p, q, _r = a
    a -= 1
    p -= v[0]
    return p + q


def no_grad_view_then_base_written_with_history(w, v, x, y, n):
    a = some_history(w, x, n)
    with torch.no_grad():
        e = a[1:]
    a -= v
    return e * 2


def no_grad_view_then_base_written(w, v, x, y, n):
    a = some_history(w, x, n)
    with torch.no_grad():
        e = a[1:]
    a -= 1
    return e * 2


def no_grad_view_written(w, v, x, y, n):
    a = some_history(w, x, n)
    with torch.no_grad():
        e = a[1:]
    e -= 1
    return a, e * 2


def no_grad_view_written_with_history(w, v, x, y, n):
    a = some_history(w, x, n)
    with torch.no_grad():
        e = a[1:]
    e -= v[1:]
    return a, e * 2


def row_written(w, v, x, y, n):
    a = some_history(w, x, n)
    p, _q, _r = a
    p -= 1
    return a


def row_written_with_history(w, v, x, y, n):
    a = some_history(w, x, n)
    p, _q, _r = a
    p -= v[0]
    return a, p


def row_written_with_some_history(w, v, x, y, n):
    b = some_history(w, x, n)
    a = v * 2
    p, _q, _r = a
    p -= b[0]
    return a, p


def plain_row_written_with_some_history(w, v, x, y, n):
    b = some_history(w, x, n)
    a = x * 2
    p, _q, _r = a
    p -= b[0]
    return a, p


def base_written_with_some_history(w, v, x, y, n):
    b = some_history(w, x, n)
    a = v * 2
    p, _q, _r = a
    a -= b
    return a, p * 1


def plain_base_written_with_some_history(w, v, x, y, n):
    b = some_history(w, x, n)
    a = x * 2
    p, _q, _r = a
    a -= b
    return a, p * 1


def split_written(w, v, x, y, n):
    a = some_history(w, x, n)
    b = some_history(w, x, -n)
    _p, q = a.split([1, 2])
    q -= b[1:]
    return a, q


def split_written_in_a_loop(w, v, x, y, n):
    a = v * 2
    p, q = a.split(2)
    b = some_history(w, x, -n)
    for _i in range((y > 0).sum()):
        q -= b[1]
    return a, q, p


def chunk_of_one_path(w, v, x, y, n):
    a = some_history(w, x, n)
    if y.sum() > 0:
        p, q = a.chunk(2)
    else:
        p, q = a[:2] * 1, a[2:]
    a -= 1
    return p * 1, q


def rows_of_the_iteration_before(w, v, x, y, n):
    a = some_history(w, x, n)
    p = x[0]
    o = 0
    i = 0
    while i < 3 * (x < 5).sum():
        o = o + p
        p, _q, _r = a
        if y.sum() > 0 and i == 1:
            a *= v
        i += 1
    return o


def view_of_a_row(w, v, x, y, n):
    a = some_history(w, x, n)
    o = 0
    for m, r in enumerate(a):
        s = r[None]
        if y.sum() > 0 and m == 1:
            a *= 2
        o = o + s
    return o


def no_grad_view_of_a_row_written(w, v, x, y, n):
    a = some_history(w, x, n)
    o = 0
    for m, r in enumerate(a):
        with torch.no_grad():
            s = r[None]
        if y.sum() > 0 and m == 1:
            s *= 2
        o = o + s
    return o, a


def no_grad_view_handed_on(w, v, x, y, n):
    q, p = v * 2, x * 0.5
    i = 0
    while i < (y > 0).sum():
        i += 1
        q = q + p
        with torch.no_grad():
            p = q.view(3)
    return q


def no_grad_views_of_no_grad_views(w, v, x, y, n):
    q = w * 2
    with torch.no_grad():
        for _t in q:
            q += q
            q = q.view(1, 3)[0]
    r = q.view(1, 3)[0]
    if n.sum() > 0:
        q += r
    return q * 1, r * 1


def rows_of_a_no_grad_view_of_the_iteration_before(w, v, x, y, n):
    p, q, r = w * 0.5, v * 2, torch.zeros(3)
    i = 0
    while i < 3 and y[0] > 0:
        i += 1
        _a, b, _c = r
        q.detach().add_(r.detach())
        r = r if n.sum() > 0 else p
        q = q + b
        with torch.no_grad():
            p = q.view(3)
    return p * 1, q * 1, r * 1


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "function",
    [
        rows_and_a_write_on_a_path, rows_then_written_with_history, rows_then_written, rows_then_one_written,
        no_grad_view_then_base_written_with_history, no_grad_view_then_base_written, no_grad_view_written,
        no_grad_view_written_with_history, row_written, row_written_with_history, row_written_with_some_history,
        plain_row_written_with_some_history, base_written_with_some_history, plain_base_written_with_some_history,
        split_written, split_written_in_a_loop, chunk_of_one_path, rows_of_the_iteration_before, view_of_a_row,
        no_grad_view_of_a_row_written, no_grad_view_handed_on, no_grad_views_of_no_grad_views,
        rows_of_a_no_grad_view_of_the_iteration_before,
    ],
)  # fmt: skip
@pytest.mark.parametrize("needs", ["w", "v", "wv", ""])
def test_views_with_some_history(function, needs):
    w, v = (torch.tensor([0.3, 0.2, -0.7], requires_grad=name in needs) for name in "wv")
    x = torch.tensor([0.0, 1.0, 2.0])
    check(
        function,
        *[(w, v, x, torch.full((3,), y), torch.tensor([n])) for y in (1.0, -1.0) for n in (1.0, -1.0)],
    )
