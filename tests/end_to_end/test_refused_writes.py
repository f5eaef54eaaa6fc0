"""In-place writes that PyTorch refuses for what the tensors are on some paths only: the Program raises on those."""

from __future__ import annotations

import textwrap

import pytest
import torch

import dy2static
from tests.fuzz.judging import load
from tests.oracle import check

# -- a leaf that requires grad -----------------------------------------------------------------------------------------


def leaf(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x
    a += 1
    return a


def view_of_a_leaf(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x[1:]
    a.mul_(2)
    return a


def leaf_of_some_iterations(x, y):
    a = x * 2
    for i in range((y > 0).sum()):
        a += 1
        if i == 1:
            a = x
    return a


def other_error_after_it(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x
        late = 1
    a += 1
    return a * late


def detached_leaf(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x.detach()
    a += 1
    return a * 1


def detached_leaf_leaves(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x.detach()
    a += 1
    return a


def without_gradients(x, y):
    a = x * 2
    if y.sum() > 0:
        a = x
    with torch.no_grad():
        a += 1
    return a


@pytest.mark.parametrize(
    "function",
    [leaf, view_of_a_leaf, leaf_of_some_iterations, other_error_after_it, detached_leaf, without_gradients],
)
@pytest.mark.parametrize("requires_grad", [True, False])
def test_leaf_on_some_paths(function, requires_grad):
    x = torch.tensor([1.0, 2.0, -0.5], requires_grad=requires_grad)
    check(function, *[(x, torch.tensor(y)) for y in ([1.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])])


def test_what_may_be_the_argument_and_have_a_history_does_not_leave():
    """The caller would write the argument with the result, on some paths."""
    with pytest.raises(dy2static.errors.Dy2StaticError) as caught:
        dy2static.to_static(detached_leaf_leaves)(torch.ones(3, requires_grad=True), torch.ones(3))
    assert caught.value.code == "D2S222" and "x.detach()" in caught.value.location.text
    check(detached_leaf_leaves, (torch.ones(3), torch.ones(3)), (torch.ones(3), -torch.ones(3)))


def test_a_tensor_that_becomes_a_leaf_is_met_again():
    static = dy2static.to_static(leaf)
    x, y = torch.ones(3, requires_grad=True), torch.ones(3)
    assert static(x * 1, y).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        static(x, y)
    assert x.tolist() == [1.0, 1.0, 1.0]


# -- a view that was made before its memory had a history: PyTorch takes it for a leaf until it is read ----------------


def view_made_before(x, n):
    p, r = x * 1, torch.zeros(3)
    q = r.view(1, 3)[0]
    r[::2] += p[::2]
    q.copy_(p)
    return q


def memory_has_a_history_on_some_paths(x, n):
    p, r = x * 1, torch.zeros(3)
    q = r[:2]
    if n > 0:
        r += p
    q *= 2
    return q, r


def view_made_before_on_some_paths(x, n):
    p, r = x * 1, torch.zeros(3)
    if n > 0:
        r = x * 2
    q = r[:2]
    r += p
    q *= 2
    return q, r


def read_before_it_is_written(x, n):
    p, r = x * 1, torch.zeros(3)
    q = r[:2]
    r += p
    z = q * 2
    q.add_(1)
    return q * 1, r, z


def written_without_gradients(x, n):
    p, r = x * 1, torch.zeros(3)
    q = r[:2]
    r += p
    with torch.no_grad():
        q.add_(1)
    return q, r


def written_with_history_first(x, n):
    p, r = x * 1, torch.zeros(3)
    q = r[:2]
    q += p[:2]
    r *= 2
    q += 1
    return q, r


def written_in_each_iteration(x, n):
    r = torch.zeros(3)
    for _i in range(int(n)):
        q = r[:2]
        q += 1
        r += x
    return r


@pytest.mark.parametrize(
    "function",
    [
        view_made_before, memory_has_a_history_on_some_paths, view_made_before_on_some_paths, read_before_it_is_written,
        written_without_gradients, written_with_history_first, written_in_each_iteration,
    ],
)  # fmt: skip
@pytest.mark.parametrize("requires_grad", [True, False])
def test_views_without_a_history_of_their_own(function, requires_grad):
    check(function, *[(torch.ones(3, requires_grad=requires_grad), torch.tensor(n)) for n in (1, 0, 2)])


# -- the same where the view is one of several tensors -----------------------------------------------------------------

TAKEN = """
if x.sum() < 1.5:
    q = p
q *= 0.5
===
n = 0
while n < 2 and x.sum() < 5:
    n = n + 1
    p *= 0.5
===
n = 0
while n < 2 and x.sum() < 5:
    n = n + 1
    q *= 0.5
    p, q = q, p
===
n = 0
while n < 2 and x.sum() < 5:
    n = n + 1
    q *= 0.5
    q = p
===
n = 0
while n < 2 and x.sum() < 5:
    n = n + 1
    if n > 1:
        q *= 0.5
        p, q = q, p
    else:
        q = p
===
for _ in range(int((x < 5).sum())):
    if x[0] < 5:
        p, q = q, p
q *= 0.5
===
q = [y * 2, p][int((x < 0).any())]
q *= 0.5
===
q = (p if x[1] < 1.5 else q)[:2]
q *= 0.5
===
if x.sum() < 1.5:
    box = {"a": p}
else:
    box = {"a": q}
if x.sum() < 5:
    box["a"].mul_(0.5)
""".split("===\n")
"""What is done with ``p``, a view that is older than the history of its memory, and ``q``, which is no view."""

MADE = """
if x.sum() < 1.5:
    p = r.view(3)
else:
    p = y * 2
===
p = y * 2
n = 0
while n < 2 and x.sum() < 5:
    n = n + 1
    p = r.view(1, 3)[0]
===
p = r.view(3)
n = 0
while n < 2 and x.sum() < 5:
    n = n + 1
    p = p * 2
===
for n in range(int((x < 5).sum())):
    p = r.view(3) if n > 1 else y * 2
if n < 1:
    return p
===
with torch.no_grad():
    if x.sum() < 1.5:
        p = r.view(3)
    else:
        p = (y * 2).view(3)
""".split("===\n")
"""How ``p`` comes to be such a view."""


@pytest.mark.parametrize(
    ("number", "asked"), [*((n, False) for n in range(len(TAKEN) + len(MADE))), *((n, True) for n in range(len(TAKEN)))]
)
def test_a_view_without_a_history_that_is_one_of_several(number, asked, tmp_path):
    made = "p = r.view(3)\n" if number < len(TAKEN) else MADE[number - len(TAKEN)].lstrip("\n")
    taken = TAKEN[number] if number < len(TAKEN) else "p *= 0.5\n"
    look = "assert q.grad_fn is not None and p.grad_fn is not None\n" if asked else ""
    body = "q, r, n = y * 2, torch.zeros(3), 0\n" + made + "r[0] = y[2]\n" + look + taken.lstrip("\n")
    source = "import torch\n\n\ndef f(x, y):\n" + textwrap.indent(body, "    ") + "    return p * 1, q * 1, r * 1\n"
    function = load(source, number, str(tmp_path)).f
    y = torch.full((3,), 0.1, requires_grad=True)
    check(function, *[(torch.full((3,), value, requires_grad=True), y) for value in (-1.0, 1.0, 9.0)])


# -- other elements of the memory that is written ----------------------------------------------------------------------


def element_of_itself(x, y):
    c = x * 1
    c[[0, 2]] = (c if y.sum() > 0 else y)[0]
    return c


def shifted(x, y):
    c, d = x * 1, y * 1
    if y.sum() > 0:
        c = d
    c[1:] += d[:-1]
    return c, d


def whole_and_pointwise(x, y):
    c, d = x * 1, y * 1
    if y.sum() > 0:
        c = d
    c += d
    c.copy_(d)
    return c, d


def permuted(x, y):
    c, d = x * 1, y * 1
    if y.sum() > 0:
        c = d
    c[[2, 1, 0]] = d
    return c


def apart_or_not_by_iteration(x, y):
    c = x * 1
    d = c if y.sum() > 0 else y * 1
    for i in range(2):
        if y.sum() > i:
            c[:1] = d[1:2]
            c[: i + 1] = d[1 : i + 2]
    return c, d


def before_a_row_is_stale(x, y):
    q = x * 1
    s = 0
    for t in q:
        q[1:].sub_(q[:2])
        s = s + t
    return s


def drawn_by_its_own_chances(x, y):
    c = torch.full((3,), 0.5)
    c.bernoulli_(c if y.sum() > 0 else torch.sigmoid(y))
    return c, torch.rand(2)


def elements_apart(x, y):
    c = x * 1
    d = c if y.sum() > 0 else y * 1
    c[:1] = d[2:]
    return c, d


@pytest.mark.parametrize(
    "function", [element_of_itself, shifted, whole_and_pointwise, permuted, apart_or_not_by_iteration, elements_apart,
     before_a_row_is_stale, drawn_by_its_own_chances],
)  # fmt: skip
@pytest.mark.parametrize("requires_grad", [True, False])
def test_operand_that_is_the_written_memory_on_some_paths(function, requires_grad):
    x = torch.tensor([1.0, 2.0, -0.5], requires_grad=requires_grad)
    calls = [(x, torch.tensor(y)) for y in ([1.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])]
    # A copy of memory into itself under a gradient: two clones where eager has one object.
    check(function, *calls, apart=function is whole_and_pointwise and requires_grad)
