"""loop_options: limits, unrolling, sizes that change."""

from __future__ import annotations

import itertools

import pytest
import torch

from dy2static import InputSpec, load, loop_options, save, to_static
from dy2static.errors import TraceError
from tests.oracle import check


def loops(static):
    return [op for op in static.program.block.walk() if op.name == "while_loop"]


def double(x, limit=3):
    with loop_options(max_iterations=3):
        while x.sum() < 100:
            x = x * 2
    return x


def counted(x, n):
    with loop_options(max_iterations=3):
        for _ in range(n):
            x = x * 2
    return x


def plain(x, n):
    with loop_options(max_iterations=3):
        for _ in range(int(3 if n > 5 else 2)):
            x = x * 2
            if x.sum() > 50:
                break
    return x


def endless(x, n):
    with loop_options(max_iterations=3):
        for k in itertools.count(1):
            if k > 1 and x.sum() > 10 * n:
                break
            x = x * 2
    return x


def test_the_limit_is_kept() -> None:
    static = to_static(double)
    x = torch.tensor([20.0], requires_grad=True)
    y = static(x)
    y.sum().backward()
    assert y.item() == 160 and x.grad.item() == 8
    for small in (torch.tensor([1.0]), torch.tensor([1.0], requires_grad=True)):
        with pytest.raises(RuntimeError, match=r"^this loop goes on after max_iterations=3 iterations$") as caught:
            static(small)
        assert caught.traceback[-1].path.name == "test_options_of_loops.py"
        assert caught.traceback[-1].lineno + 1 == double.__code__.co_firstlineno + 2
    assert len(static.programs) == 2 and all(op.attrs == {"max_iterations": 3} for op in loops(static))
    assert torch.equal(double(torch.tensor([1.0])), torch.tensor([128.0]))


@pytest.mark.parametrize("function, good, bad", [
    (counted, 3, 4), (endless, 0, 100),
])  # fmt: skip
def test_limits_of_other_loops(function, good, bad) -> None:
    static = to_static(function)
    x = torch.ones(2)
    assert torch.equal(static(x, torch.tensor(good)), function(x, torch.tensor(good)))
    with pytest.raises(RuntimeError, match="max_iterations=3 iterations"):
        static(x, torch.tensor(bad))
    with pytest.raises(RuntimeError, match="max_iterations=3 iterations"):
        static(x, bad)  # a plain number: while tracing


def test_the_limit_of_a_loop_that_becomes_staged() -> None:
    static = to_static(plain)
    for value in (1.0, 20.0):
        x = torch.full((2,), value)
        assert torch.equal(static(x, 9), plain(x, 9))


def test_the_limit_travels_with_the_file(tmp_path) -> None:
    save(double, tmp_path / "m", input_spec=[InputSpec([None])])
    layer = load(tmp_path / "m")
    assert layer(torch.tensor([20.0])).item() == 160
    with pytest.raises(RuntimeError, match="max_iterations=3"):
        layer(torch.tensor([1.0]))


def test_unroll() -> None:
    def f(x, n):
        with loop_options(unroll=n > 70):
            for k in range(n):
                x = x + k
        return x

    for n, staged in ((4, True), (65, True), (80, False)):
        static = to_static(f)
        assert torch.equal(static(torch.zeros(2), n), f(torch.zeros(2), n))
        assert bool(loops(static)) is staged


def of_rows(x, h):
    with loop_options(unroll=False):
        for row in x:
            h = torch.tanh(row + h * 0.5)
            if h.sum() > 2:
                break
    return h


def written_rows(x, h):
    y = x.detach().clone()
    with loop_options(unroll=False):
        for row in y:
            row.mul_(2)
            h = h + row
    return y, h


@pytest.mark.parametrize("function", [of_rows, written_rows])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_rows_of_a_known_number_are_a_loop(function, count) -> None:
    x, h = (torch.arange(count * 2.0).reshape(count, 2) - 1).requires_grad_(), torch.ones(2, requires_grad=True)
    check(function, (x, h), paths=("program",), none_is_zero=True)
    static = to_static(function)
    static(x, h)
    assert len(loops(static)) == (1 if count else 0)


def test_there_are_no_rows_of_a_number() -> None:
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        to_static(of_rows)(torch.tensor(1.0), torch.ones(2))


def test_shape_invariants() -> None:
    def f(x, y):
        with loop_options(shape_invariants={"x": [None, 2]}):
            while x.sum() < y:
                x = torch.cat([x, x])
        return x

    static = to_static(f)
    for y in (1.0, 10.0, 100.0):
        assert torch.equal(static(torch.ones(1, 2), torch.tensor(y)), f(torch.ones(1, 2), torch.tensor(y)))
    assert len(static.programs) == 1

    def g(x, names):
        with loop_options(shape_invariants=names):
            while x.sum() < 10:
                x = x * 2
        return x

    for names, what in (({"x": [3, 3]}, "is 1, but"), ({"x": [2]}, "has 2 dimensions"), ({"z": [2]}, "names 'z'")):
        with pytest.raises(TraceError, match=f"D2S282(.|\n)*{what}"):
            to_static(g)(torch.ones(1, 2), names)


def test_inner_and_called_loops_are_not_meant() -> None:
    def helper(x):
        for _ in range(5):
            x = x + 1
        return x

    def f(x):
        with loop_options(max_iterations=2):
            while x.sum() < 20:
                for _ in range(3):
                    x = x + 1
                x = helper(x)
        return x

    assert torch.equal(to_static(f)(torch.zeros(2)), f(torch.zeros(2)))


@pytest.mark.parametrize("options, error", [
    ({"max_iterations": -1}, ValueError), ({"max_iterations": 2.0}, TypeError), ({"max_iterations": True}, TypeError),
    ({"unroll": 1}, TypeError), ({"shape_invariants": [1]}, TypeError), ({"shape_invariants": {"x": 3}}, TypeError),
    ({"shape_invariants": {"x": ["a"]}}, TypeError), ({"unroll": True, "shape_invariants": {"x": [1]}}, ValueError),
])  # fmt: skip
def test_options_that_make_no_sense(options, error) -> None:
    with pytest.raises(error):
        loop_options(**options)


# -- recompute


def stepping(x, w, n, recompute):
    with loop_options(recompute=recompute):
        while x.sum() < 30:
            x = torch.tanh(x @ w) + x * 1.5
    with loop_options(recompute=recompute):
        for _ in range(n):
            x = torch.sigmoid(torch.tanh(x) @ w) + x
    with loop_options(recompute=recompute):
        for row in x:
            x = x + torch.exp(torch.sin(row)) * w
    return x


@pytest.mark.parametrize("n", [2, torch.tensor(3)], ids=["unrolled", "staged"])
def test_recompute_keeps_less_and_changes_nothing(n) -> None:
    found, kept = [], []
    for recompute in (False, True, None):
        x, w = torch.full((2, 2), 0.5, requires_grad=True), torch.rand(2, 2, requires_grad=True)
        torch.manual_seed(0)
        with torch.no_grad():
            w.copy_(torch.rand(2, 2))
        static = stepping if recompute is None else to_static(stepping)
        y = static(x, w, n, bool(recompute))
        y.square().sum().backward()
        found.append((y, x.grad, w.grad))
        if recompute is not None:
            (halves,) = static.specialization().ready.runner._halves.values()
            forward = halves.derivative.forward
            kept.append(len(forward.block.yields))
            assert all(op.attrs.get("recompute", False) is recompute for op in loops(static))
    for values in zip(*found):
        torch.testing.assert_close(values[0], values[2])
        torch.testing.assert_close(values[1], values[2])
    assert kept[1] < kept[0]


# -- checkpoints


def kept_states(x, n):
    with loop_options(checkpoints=2, max_iterations=7):
        while x.sum() < n:
            x = x * 1.5
    with loop_options(checkpoints=3):
        for _ in range(2):
            x = torch.sin(x)
    return x


def test_checkpoints_travel_with_the_loop() -> None:
    static = to_static(kept_states)
    x = torch.tensor([0.5, 0.25], requires_grad=True)
    y, eager = static(x, torch.tensor(5)), kept_states(x, torch.tensor(5))
    assert [op.attrs for op in loops(static)] == [{"max_iterations": 7, "checkpoints": 2}, {"checkpoints": 3}]
    torch.testing.assert_close(y, eager, rtol=0, atol=0)
    (got,), (expected,) = (torch.autograd.grad(one.sum(), x) for one in (y, eager))
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize(("checkpoints", "error", "message"), [
    (0, ValueError, "checkpoints must be at least 1: 0"), (True, TypeError, "must be an int .* not True"),
    (2.0, TypeError, "must be an int .* not 2.0"),
])  # fmt: skip
def test_checkpoints_are_a_number(checkpoints, error, message) -> None:
    with pytest.raises(error, match=message):
        loop_options(checkpoints=checkpoints)


def test_an_unrolled_loop_has_no_checkpoints() -> None:
    with pytest.raises(ValueError, match="an unrolled loop has no checkpoints"):
        loop_options(unroll=True, checkpoints=3)


def test_recompute_is_a_bool() -> None:
    with pytest.raises(TypeError, match="recompute must be True or False, not 1"):
        loop_options(recompute=1)
