"""No gradient arrives at what a path does not use: eager does not walk back from it, so nothing that is infinite or NaN
there reaches anything else."""

from __future__ import annotations

import pytest
import torch

import dy2static
from runtime.autodiff import segment
from tests.oracle import same

INF = float("inf")
FORMULAS = {
    "division": lambda c: c / (c - c),
    "root": lambda c: (c - c).sqrt(),
    "logarithm": lambda c: (c * 0).log(),
    "product": lambda c: c * (c * INF - INF).mean(),
    "power": lambda c: (c - c).pow(0.5),
    "softmax": lambda c: (c * INF).softmax(0),
    "norm": lambda c: (c - c).norm() * c,
    "overflow": lambda c: (c * 1e30).exp(),
    "written": lambda c: c.clone().mul_((c * INF - c * INF)),
    "several steps": lambda c: ((c / (c - c)).sin() * c).cumsum(0),
    "a number of the run": lambda c: c / (c.detach().sum() * 0).item(),
    "a tensor without dimensions": lambda c: c / (c.detach().sum() * 0),
    "alpha": lambda c: torch.add(c, c, alpha=INF),
    "abs": lambda c: (c / 0 * 0).abs(),
    "amax": lambda c: (c / 0 * 0).amax() + c,
}
"""Each gives NaN for a gradient of zeros."""


def in_a_branch(make, x, n):
    c = x * 1
    w = make(c)
    return c + w if n > 7 else c - 0.25


def in_each_of_two(make, x, n):
    c = x * 1
    v, w = make(c), make(c * 2)
    if n > 7:
        return c * 2 + v
    if n > 6:
        c = c + w
    return c * 3


def not_even_the_other(make, x, n):
    c = x * 1
    v, w = make(c), c.exp()
    y = x * 0
    if n > 7:
        y = y + v
    else:
        y = y + w
    return y


def in_a_loop(make, x, n):
    c = x * 1
    for i in range(int(n)):
        w = make(c)
        c = c + w if i > 7 else c * 0.5
    return c


def before_a_loop(make, x, n):
    c = x * 1
    w = make(c)
    for i in range(int(n)):
        if i > 7:
            c = c + w
        c = c * 2
    return c


def before_a_loop_without_iterations(make, x, n):
    c = x * 1
    w = make(c)
    while n > 7:
        c, n = c + w, n - 1
    return c * 2


def in_a_list(make, x, n):
    c, found = x * 1, []
    for _ in range(int(n)):
        found.append(make(c))
        c = c + 1
    return c + found[0] if n > 7 else c


def result_that_nobody_asks(make, x, n):
    a, b = make(x * 1), x * 2
    for _ in range(int(n)):
        a, b = make(a), b * x
    return b, a


def many_paths(make, x, n):
    c = x * 1
    ws = [make(c), make(c + 1), make(c + 2), make(c + 3), make(c + 4)]
    for number, w in enumerate(ws):
        if n > number + 7:
            c = c + w
    return c * c


PROGRAMS = [
    in_a_branch, in_each_of_two, not_even_the_other, in_a_loop, before_a_loop, before_a_loop_without_iterations,
    in_a_list, result_that_nobody_asks, many_paths,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", FORMULAS)
def test_as_eager(kind, program):
    make = FORMULAS[kind]

    def f(x, n):
        return program(make, x, n)

    static = dy2static.to_static(f)
    for count in (3, 0):
        found = []
        for function in (f, static):
            x = torch.tensor([1.0, 2.0, 0.5], requires_grad=True)
            result = function(x, torch.tensor(count))
            asked = result[0] if isinstance(result, tuple) else result
            found.append(torch.autograd.grad(asked.sum(), x)[0])
        assert found[1].isfinite().all()
        same(found[0], found[1], f"gradient for {count}", 1e-5)


@pytest.mark.parametrize("nested", [0, 1])
def test_without_a_test_in_each_other(nested, monkeypatch):
    """Beyond a number of such results each is walked back from alone."""
    monkeypatch.setattr(segment, "_MOST_NESTED", nested)
    for kind in ("division", "product", "written"):
        test_as_eager(kind, many_paths)
        test_as_eager(kind, in_each_of_two)


def eigenvalues(x, n):
    values, vectors = torch.linalg.eigh(torch.diag(x) + torch.eye(3) * x.sum())
    return values.sum() + (vectors.abs().sum() if n > 7 else 0)


def singular_values(x, n):
    u, s, v = torch.linalg.svd(torch.diag(x))
    if n > 7:
        return (u @ v).sum()
    return s.sum()


def log_determinant(x, n):
    sign, log = torch.linalg.slogdet(torch.diag(x * 0 + 1) * x.mean())
    return log + x.sum() if n < 7 else sign


@pytest.mark.parametrize("f", [eigenvalues, singular_values, log_determinant], ids=lambda f: f.__name__)
def test_one_of_several_results_of_an_operator(f):
    """Equal eigenvalues: the formula for the vectors divides by their difference."""
    found = []
    for function in (f, dy2static.to_static(f)):
        x = torch.ones(3, requires_grad=True)
        found.append(torch.autograd.grad(function(x, torch.tensor(3)).sum(), x)[0])
    assert found[0].isfinite().all()
    same(found[1], found[0], "gradient", 1e-5)


def test_paths_that_are_taken():
    """What is used gets its share, from every combination of paths."""

    def f(x, n):
        c = x * 1
        ws = [c.exp(), c / (c + 1), c.sin() * c, (c * c).sqrt()]
        y = c * 0.5
        for number, w in enumerate(ws):
            if (n >> number) & 1 == 1:
                y = y + w
        return y

    static = dy2static.to_static(f)
    for n in range(16):
        grads = []
        for function in (f, static):
            x = torch.tensor([1.0, 2.0, 0.5], requires_grad=True)
            grads.append(torch.autograd.grad(function(x, torch.tensor(n)).sum(), x)[0])
        same(grads[1], grads[0], f"gradient for {n}", 1e-6)


DIVIDING = {
    "a number of the run": lambda y, m: y / m,
    "a tensor": lambda y, m: y / (y - y),
    "root": lambda y, m: (y - y).sqrt(),
    "reverse root": lambda y, m: (y - y).rsqrt(),
    "logarithm": lambda y, m: (y * 0).log(),
    "log1p": lambda y, m: (y * 0 - 1).log1p(),
    "log2": lambda y, m: (y * 0).log2(),
    "log10": lambda y, m: (y * 0).log10(),
    "power": lambda y, m: (y * 0).pow(0.5),
    "reciprocal": lambda y, m: (y * 0).reciprocal(),
    "acos": lambda y, m: (y * 0 + 1).acos(),
    "asin": lambda y, m: (y * 0 + 1).asin(),
    "atanh": lambda y, m: (y * 0 + 1).atanh(),
    "acosh": lambda y, m: (y * 0 + 1).acosh(),
    "logit": lambda y, m: (y * 0).logit(),
    "erfinv": lambda y, m: (y * 0 + 1).erfinv(),
    "product": lambda y, m: (y * 0).prod() + y,
    "std": lambda y, m: (y * 0).std() + y,
    "xlogy": lambda y, m: torch.xlogy(y * 0, y * 0),
}  # fmt: skip
"""Each divides by zero in its gradient, or gives what another path makes of zero by zero."""


def apart(divide, x, y, n, m):
    """``p`` needs what ``x`` is, ``q`` does not: they lead to different leaves, through one division."""
    p, q = x * 1, y * 1
    if n > 0:
        q = divide(q, m)
        p = p - q
    return p, q


def apart_in_a_loop(divide, x, y, n, m):
    p, q = x * 1, y * 1
    while n > 0:
        q = divide(q, m)
        p, n = p - q * 2, n - 1
    return p, q


def three_results(divide, x, y, n, m):
    p, q, r = x * 1, y * 1, x * y
    if n > 0:
        q = divide(q, m)
        p, r = p - q, r * 2 + q
    return p, q, r


@pytest.mark.parametrize("program", [apart, apart_in_a_loop, three_results], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", DIVIDING)
def test_what_is_divided_is_added_up_before(kind, program):
    """A gradient that is zero, and one that is not, reach one division: 0 / 0 + 1 / 0 is no (0 + 1) / 0."""
    divide = DIVIDING[kind]

    def f(x, y, n):
        return program(divide, x, y, n, int(n) - 1)

    static = dy2static.to_static(f)
    for weights in ((0.0, 1.0, 0.0), (1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)):
        for count in (1, 0):
            found = []
            for function in (f, static):
                x, y = (torch.tensor([1.0, 2.0, 0.5], requires_grad=True) for _ in range(2))
                results = function(x, y, torch.tensor(count))
                given = [torch.full((3,), weight) for weight in weights[: len(results)]]
                found.append(torch.autograd.grad(results, (x, y), given, allow_unused=True))
            same(found[1], found[0], f"gradient for {weights}, {count}", 1e-5)
