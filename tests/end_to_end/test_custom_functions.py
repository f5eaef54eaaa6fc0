"""``torch.autograd.Function`` in every shape that torch documents: the converted gradient is the user's own."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction, once_differentiable

import dy2static
from dy2static.errors import TraceError
from dy2static.operators.calls.autograd_function import Context
from tests.oracle import check


def vec(*values):
    return torch.tensor(values, requires_grad=True)


CALLS = ((vec(1.0, 2.0, 3.0),), (vec(-1.0, -2.0, -3.0),), (vec(0.1, 0.2, -0.1),))


class Missing(Function):
    """Its backward tells a missing gradient from zeros."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        if a is None:
            return b * 100
        if b is None:
            return a * 10
        return a + b


class Product(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        gx = gy = None
        if a is not None:
            gx, gy = a * y, a * x
        if b is not None:
            gx = b if gx is None else gx + b
        return gx, gy


@pytest.mark.parametrize("use", [0, 1, slice(None)])
def test_missing_gradients_are_none(use):
    def f(x):
        return Missing.apply(x)[use]

    check(f, *CALLS)


def test_missing_gradients_on_one_path():
    def f(x):
        a, b = Missing.apply(x)
        if x.sum() > 0:
            return a
        return b

    check(f, *CALLS)


def test_missing_gradients_where_only_a_run_tells():
    def f(x):
        a, b = Missing.apply(x)
        y = 0
        if x[0] > 0:
            y = y + b
        if x[1] > 0:
            y = y + a
        return y

    check(f, *CALLS, (vec(1.0, -2.0, 3.0),), (vec(-1.0, 2.0, 3.0),))


def test_missing_gradients_in_a_loop():
    def f(x):
        n = 0
        while n < 3 and x.sum() < 100:
            a, b = Missing.apply(x)
            x = a if n % 2 else b
            n += 1
        return x

    check(f, *CALLS)


@pytest.mark.parametrize("use", [0, 1])
def test_a_gradient_that_is_none(use):
    def f(x, y):
        return Product.apply(x, y)[use]

    check(f, (vec(1.0, 2.0), vec(3.0, 4.0)), (vec(1.0, 2.0), torch.ones(2)))


def test_missing_gradients_after_loading(tmp_path):
    def f(x):
        a, b = Missing.apply(x)
        if x.sum() > 0:
            return a
        return b

    static = dy2static.to_static(f)
    static(torch.ones(3))
    dy2static.save(static, str(tmp_path / "f"))
    loaded = dy2static.load(str(tmp_path / "f"))
    for sign, factor in ((1.0, 10.0), (-1.0, 100.0)):
        x = torch.full((3,), sign, requires_grad=True)
        loaded(x).sum().backward()
        assert x.grad.tolist() == [factor] * 3


def test_a_backward_that_is_not_reached_does_not_run():
    class One(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g + 1

    def f(x, y):
        z = One.apply(x)
        if y.sum() > 0:
            y = y + z
        return y

    check(f, (vec(1.0, 2.0), vec(3.0, 4.0)), (vec(1.0, 2.0), vec(-3.0, -4.0)))


def test_too_many_combinations_of_missing_gradients():
    class Many(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2, x * 3, x * 4, x * 5

        @staticmethod
        def backward(ctx, *grads):
            return sum(g for g in grads if g is not None)

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(lambda x: Many.apply(x)[0])(vec(1.0))
    assert caught.value.code == "D2S275"


def test_none_on_some_paths_is_refused():
    class Sometimes(Function):
        @staticmethod
        def forward(ctx, x, flag):
            ctx.flag = flag
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return (g, None) if ctx.flag else (None, None)

    def f(x):
        return Sometimes.apply(x, bool(x.sum() > 0)) + x

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(vec(1.0))
    assert caught.value.code == "D2S275"


def test_results_without_a_gradient():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return values, order

        @staticmethod
        def backward(ctx, g, none):
            (order,) = ctx.saved_tensors
            return torch.zeros_like(g).scatter(0, order, g) + none.sum()

    check(lambda x: Sort.apply(x), *CALLS)


def test_a_float_result_without_a_gradient():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_non_differentiable(y)
            return x * 3, y

        @staticmethod
        def backward(ctx, g, none):
            return g * 3

    def f(x):
        a, b = Both.apply(x)
        if x.sum() > 0:
            return b
        return a + b

    check(lambda x: Both.apply(x), *CALLS)
    check(f, *CALLS)


@pytest.mark.parametrize("materialize", [True, False])
def test_a_result_of_integers(materialize):
    class Whole(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x.long()

        @staticmethod
        def backward(ctx, a, b):
            return a * 4 if b is None else a * 5 + b.sum()

    check(lambda x: Whole.apply(x), *CALLS)


def test_results_that_are_no_tensors():
    class Mixed(Function):
        @staticmethod
        def forward(ctx, x):
            return 5, x * 2, "a", None

        @staticmethod
        def backward(ctx, five, g, text, none):
            assert five is None and text is None and none is None
            return g * 4

    check(lambda x: Mixed.apply(x), *CALLS)


@pytest.mark.parametrize("give", [lambda x: x, lambda x: x.view_as(x), lambda x: x.view(-1, 1)])
def test_the_argument_itself_or_a_view(give):
    class Reverse(Function):
        @staticmethod
        def forward(ctx, x):
            return give(x)

        @staticmethod
        def backward(ctx, g):
            return g.reshape(-1) * -9

    check(lambda x: Reverse.apply(x), *CALLS)
    check(lambda x: Reverse.apply(x * 2), *CALLS)


def test_needs_input_grad_and_plain_arguments():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, y, k):
            ctx.save_for_backward(x, y)
            ctx.k = k
            return x * y * k

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            gx = g * y * ctx.k if ctx.needs_input_grad[0] else None
            gy = g * x * ctx.k * 5 if ctx.needs_input_grad[1] else None
            return gx, gy, None

    def f(x, y):
        return Scale.apply(x, y, x.sum().item())

    plain = torch.ones(2)
    check(f, (vec(1.0, 2.0), plain), (plain, vec(1.0, 2.0)), (plain, plain), (vec(1.0, 2.0), vec(3.0, 1.0)))


def test_setup_context_with_defaults():
    class Setup(Function):
        @staticmethod
        def forward(x, y, alpha=2.0):
            return x * y * alpha, x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, y, ctx.alpha = inputs
            ctx.save_for_backward(x, y)
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            if g is None:
                return h, h * 7, None
            return g * y * ctx.alpha + (0 if h is None else h), g * x * ctx.alpha * 2, None

    check(lambda x: Setup.apply(x, x * 2)[0], *CALLS)
    check(lambda x: Setup.apply(x, x * 2, 3.0)[1], *CALLS)
    check(lambda x: Setup.apply(x, x * 2, 3.0), *CALLS)


def test_decisions_in_forward_and_backward():
    class Paths(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.flag = x.sum() > 0
            if x.sum() > 0:
                ctx.k = 5
                return x * 2
            ctx.k = 7
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k if ctx.flag else g * ctx.k * 2

    check(lambda x: Paths.apply(x), *CALLS)


def test_a_second_derivative_and_once_differentiable():
    class Missing2(Missing):
        pass

    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0]

    def f(x):
        (g,) = torch.autograd.grad(Missing2.apply(x)[0].sum(), x, create_graph=True)
        return g * 2 + x

    check(f, *CALLS)
    check(lambda x: Once.apply(x), *CALLS)


class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 5


twice = Twice.apply


def test_an_apply_kept_in_a_variable():
    def f(x):
        if x.sum() > 0:
            x = twice(x) + sum(map(twice, [x, x * 3]))
        while x.norm() < 10:
            x = twice(x)
        return functools.partial(twice, x)()

    check(f, *CALLS)
    check(twice, *CALLS)


def test_an_apply_kept_in_a_variable_called_by_code_that_is_not_converted():
    @dy2static.not_to_static
    def excluded(x):
        return twice(x)

    with pytest.raises(TraceError, match="Twice.apply, kept in a variable") as caught:
        dy2static.to_static(lambda x: excluded(x))(vec(1.0))
    assert caught.value.code == "D2S212"
    x = vec(1.0)
    twice(x).backward()
    assert x.grad.item() == 5


def test_whatever_else_ctx_has_is_refused():
    names = [name for name in dir(BackwardCFunction) if not name.startswith("_") and not hasattr(Context, name)]
    names.remove("needs_input_grad")
    for name in names:

        class Asks(Twice):
            @staticmethod
            def forward(ctx, x, name=name):
                getattr(ctx, name)
                return x * 2

        with pytest.raises(TraceError, match=rf"ctx\.{name} of an autograd\.Function has no static form") as caught:
            dy2static.to_static(lambda x: Asks.apply(x))(vec(1.0))
        assert caught.value.code == "D2S275"
    print(f"{len(names)} attributes of ctx refused")
    assert "register_hook" in names and "next_functions" in names

    def f(x):
        return Missing2.apply(x)

    class Missing2(Twice):
        @staticmethod
        def forward(ctx, x):
            return x * (3 if hasattr(ctx, "no_such_thing") else 4)

    check(f, *CALLS)


class Weighted(Function):
    @staticmethod
    def forward(ctx, a, b, c=None):
        ctx.save_for_backward(a)
        return a * 2 + b * 3

    @staticmethod
    def backward(ctx, g):
        return g * 2, g * 3, None


class Keyworded(Function):
    @staticmethod
    def forward(a, b, c=5, *, d=1):
        return a * c + b * 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.c = inputs[2]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.c, g * 3, None


class OneTooFew(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * 2 + b

    @staticmethod
    def backward(ctx, g):
        return g * 2


BY_NAME = {
    "second": lambda x, y: Weighted.apply(x, b=y),
    "all": lambda x, y: Weighted.apply(a=x, b=y),
    "another_order": lambda x, y: Weighted.apply(b=y, a=x),
    "with_a_number": lambda x, y: Weighted.apply(c=3, a=x, b=y),
    "a_gap": lambda x, y: Weighted.apply(x, c=y),
    "unknown": lambda x, y: Weighted.apply(x, y, q=1),
    "context": lambda x, y: Weighted.apply(x, y, ctx=1),
    "twice": lambda x, y: Weighted.apply(x, y, a=1),
    "setup_second": lambda x, y: Keyworded.apply(x, b=y),
    "setup_default": lambda x, y: Keyworded.apply(b=y, c=3.0, a=x),
    "kept": lambda x, y: (lambda apply: apply(x, b=y))(Weighted.apply),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_arguments_by_name(name):
    function = BY_NAME[name]
    if "setup" not in name:
        check(function, (vec(1.0, 2.0), vec(3.0, 4.0)), (torch.ones(2), torch.ones(2)))
        return
    try:  # a keyword-only parameter is one that eager's own apply may refuse
        function(torch.ones(2), torch.ones(2))
    except TypeError:
        with pytest.raises(TypeError):
            dy2static.to_static(function)(torch.ones(2), torch.ones(2))
    else:
        check(function, (vec(1.0, 2.0), vec(3.0, 4.0)), (torch.ones(2), torch.ones(2)))


def test_too_few_gradients_are_an_error_of_backward():
    def function(x, y):
        return OneTooFew.apply(x, y) * 2

    check(function, (torch.ones(2), torch.ones(2)))
    for one in (function, dy2static.to_static(function)):
        result = one(vec(1.0, 2.0), vec(3.0, 4.0))
        with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 1\)"):
            result.sum().backward()


class _Doubles(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * 2 + x * 0


class _OfItsClass(_Doubles):
    @classmethod
    def forward(cls, ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return super().forward(ctx, x)

    @classmethod
    def backward(cls, ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return super().backward(ctx, grad) * 3


class _OfTwoNames(_Doubles):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return super(_OfTwoNames, _OfTwoNames).forward(ctx, x) + 1


class _OfApply(_Doubles):
    @classmethod
    def apply(cls, x: torch.Tensor) -> torch.Tensor:
        return super().apply(x) - 1


@pytest.mark.parametrize("decides", [False, True])
@pytest.mark.parametrize("function", [_OfItsClass, _OfTwoNames, _OfApply], ids=lambda one: one.__name__.strip("_"))
def test_what_the_class_before_does(function: Any, decides: bool) -> None:
    """``super()`` in ``forward``, ``backward`` and ``apply``."""
    def f(x: torch.Tensor) -> torch.Tensor:
        y = function.apply(x)
        if decides and y.sum() > 4:
            y = function.apply(y)
        return y

    found = []
    for one in (f, dy2static.to_static(f)):
        for size in (1.0, 3.0):
            x = torch.full((2,), size, requires_grad=True)
            y = one(x)
            y.sum().backward()
            found += [y.detach(), x.grad]
    for a, b in zip(found[:4], found[4:]):
        torch.testing.assert_close(a, b)


class ByFlag(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        out = a + b * 0.5
        ctx.save_for_backward(a, b)
        ctx.flag = bool((b > 0).any())
        if (b > 0).any():
            out = out * 2
        return out

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return (g * b, g * 2) if ctx.flag else (g, g * torch.tanh(a))


class ByGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        if g.sum() > 0:
            return g, g * b
        return g * a, g


@pytest.mark.parametrize("read", [True, False])
def test_numbers_kept_beside_a_gradient_asked_for_inside(read):
    def f(x, y):
        p, q = x * 0.5, y * 2
        t = q.detach().requires_grad_()
        (g,) = torch.autograd.grad(ByGradient.apply(t, p).sum(), t)
        h = ByFlag.apply(q, p)
        return (p, q, g, h) if read else (p, q)

    given = [[torch.tensor([1.0, 2.0]) * sign, torch.tensor([0.5, 3.0]) * sign] for sign in (1, -1)]
    check(f, *given, *[[one.clone().requires_grad_() for one in call] for call in given])


class Keeping(Function):
    """Keeps one of its tensors, saved or only held, and asks in backward whether it needs a gradient."""

    @staticmethod
    def forward(ctx, x, other, which, saved):
        result, hidden, inside = x * 2 + other, x * 3, x + 1
        ctx.mark_non_differentiable(hidden)
        kept = {"argument": x, "no gradient": other, "result": result, "hidden": hidden, "inside": inside}[which]
        ctx.saved = saved
        if saved:
            ctx.save_for_backward(kept)
        else:
            ctx.kept = kept
        return result, hidden

    @staticmethod
    def backward(ctx, g, _):
        kept = ctx.saved_tensors[0] if ctx.saved else ctx.kept
        return g * (2.0 if kept.requires_grad else 3.0), g, None, None


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("which", ["argument", "no gradient", "result", "hidden", "inside"])
def test_what_a_function_keeps_needs_a_gradient_in_backward_as_in_eager(which, saved):
    def f(x, other):
        result, hidden = Keeping.apply(x, other, which, saved)
        return result * hidden

    check(f, *[(call[0], torch.tensor([1.0, 0.5, 2.0])) for call in CALLS])


class ThroughItsResult(Function):
    """An implicit function's backward: it differentiates an equation at the result that it kept."""

    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result, x)
        return result

    @staticmethod
    def backward(ctx, g):
        result, x = ctx.saved_tensors
        with torch.enable_grad():
            residual = (result.log() - x.detach()).sum()
        (slope,) = torch.autograd.grad(residual, result)
        return g / slope


def test_a_backward_differentiates_at_the_result():
    check(lambda x: ThroughItsResult.apply(x if x.sum() > 0 else x * 2), *CALLS, tolerance=1e-6)
