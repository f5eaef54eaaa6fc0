"""What a backward changes besides giving gradients is refused: a Program's would not do it."""

from __future__ import annotations

import types

import pytest
import torch
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

LOG = []
TABLE = {}
COUNT = 0
STATE = types.SimpleNamespace(n=0, last=None)
BUFFER = torch.zeros(2)


def appends(value):
    LOG.append(1)


def appends_what_it_is_given(value):
    LOG.append(value.detach())


def counts_in_a_global(value):
    global COUNT
    COUNT += 1


def counts_in_an_attribute(value):
    STATE.n += 1


def adds_to_a_buffer(value):
    BUFFER.add_(value.detach())


def adds_keys(value):
    TABLE[len(TABLE)] = 1


def adds_to_a_sum(value):
    STATE.n = STATE.n + value.detach().sum().item()


def keeps_the_last(value):
    STATE.last = value.detach() * 2


def keeps_an_item(value):
    TABLE["last"] = value.detach().norm()


def keeps_a_number(value):
    STATE.last = 3


def only_reads(value):
    return len(LOG) + STATE.n


MORE = [appends, appends_what_it_is_given, counts_in_a_global, counts_in_an_attribute, adds_to_a_buffer, adds_keys,
        adds_to_a_sum]  # fmt: skip
AGAIN = [keeps_the_last, keeps_an_item, keeps_a_number]


@pytest.fixture(autouse=True)
def as_before():
    yield
    LOG.clear()
    TABLE.clear()
    globals()["COUNT"] = 0
    STATE.__dict__.update(n=0, last=None)
    BUFFER.zero_()


def function_of(deed):
    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            deed(g)
            (x,) = ctx.saved_tensors
            return g * x.cos()

    return Sine


def ones():
    return torch.ones(2, requires_grad=True)


def refused(f, *args):
    with pytest.raises(TraceError) as error:
        to_static(f)(*args)
    assert error.value.code == "D2S275", error.value
    assert error.value.location.file == __file__
    return str(error.value)


@pytest.mark.parametrize("deed", [*MORE, *AGAIN])
@pytest.mark.parametrize("where", ["alone", "in a loop", "on a path", "gradient inside"])
def test_a_backward_changes_state(deed, where):
    sine = function_of(deed)

    def alone(x):
        return sine.apply(x).sum()

    def in_a_loop(x):
        while x.sum() < 0:
            x = sine.apply(x) + 1
        return sine.apply(x).sum()

    def on_a_path(x):
        return sine.apply(x).sum() if x.sum() > 0 else x.sum()

    def gradient_inside(x):
        return torch.autograd.grad(sine.apply(x).sum(), x)

    f = {"alone": alone, "in a loop": in_a_loop, "on a path": on_a_path, "gradient inside": gradient_inside}[where]
    assert "Sine.backward" in refused(f, ones())
    assert not LOG and not TABLE and not COUNT and STATE.n == 0 and not BUFFER.any()


@pytest.mark.parametrize("deed", MORE)
def test_no_gradient_is_asked_for(deed):
    sine = function_of(deed)
    check(lambda x: sine.apply(x).sum(), (torch.ones(2),))


def test_a_backward_that_only_reads():
    check(lambda x, sine=function_of(only_reads): sine.apply(x).sum(), (ones(),))


class Own(Function):
    """Its backward has lists, dicts, tensors and attributes of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.big = x * 2
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        parts, table = [], {}
        for number in range(2):
            parts.append(g * number)
            table[number] = parts[-1]
        total = torch.zeros_like(g)
        total.add_(table[1])
        ctx.total = total
        ctx.big = None
        return ctx.total * ctx.saved_tensors[0].cos()


def test_what_a_backward_makes():
    check(lambda x: Own.apply(x).sum(), (ones(),))


class Counting(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = 0
        return x * 2

    @staticmethod
    def backward(ctx, g):
        ctx.n += 1
        return g * 2 * ctx.n


class CountingLazily(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if not hasattr(ctx, "n"):
            ctx.n = 0
        ctx.n += 1
        return g * 2 * ctx.n


@pytest.mark.parametrize("cls", [Counting, CountingLazily])
def test_attributes_that_count_calls(cls):
    assert "ctx.n" in refused(lambda x: cls.apply(x).sum(), ones())


class WritesSaved(Function):
    @staticmethod
    def forward(ctx, x, which):
        y = x.sin()
        hidden = x * 3
        ctx.save_for_backward((x, y, hidden)[which])
        return y

    @staticmethod
    def backward(ctx, g):
        (kept,) = ctx.saved_tensors
        kept.mul_(2)
        return g * kept, None


@pytest.mark.parametrize("which", [0, 1])
def test_writes_to_saved_tensors_that_others_see(which):
    refused(lambda x: WritesSaved.apply(x, which).sum(), ones())


def test_writes_to_saved_tensors_that_nobody_sees():
    check(lambda x: WritesSaved.apply(x, 2).sum(), (ones(),))


# -- ctx on some paths only


def forward_of(saves):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            return saves(ctx, x)

        @staticmethod
        def backward(ctx, g, *rest):
            kept = ctx.saved_tensors
            return g * kept[-1] * len(kept) if kept else g

    return Square


def saves_one_of_two(ctx, x):
    if x.sum() > 0:
        ctx.save_for_backward(x)
    else:
        ctx.save_for_backward(x * 2)
    return x * x


def saves_one_or_two(ctx, x):
    if x.sum() > 0:
        ctx.save_for_backward(x)
    else:
        ctx.save_for_backward(x * 2, x * 3)
    return x * x


def saves_or_not(ctx, x):
    if x.sum() > 0:
        ctx.save_for_backward(x)
    return x * x


@pytest.mark.parametrize("saves", [saves_one_of_two, saves_one_or_two, saves_or_not])
def test_what_is_saved_depends_on_the_path(saves):
    square = forward_of(saves)
    check(lambda x: square.apply(x).sum(), (ones(),), ((-torch.ones(2)).requires_grad_(),))


def materialises_on_a_path(ctx, x):
    if x.sum() > 0:
        ctx.set_materialize_grads(False)
    return x * x


def marks_on_a_path(ctx, x):
    y = x * x
    if x.sum() > 0:
        ctx.mark_non_differentiable(y)
    return y


@pytest.mark.parametrize("saves", [materialises_on_a_path, marks_on_a_path])
def test_what_decides_how_backward_is_called(saves):
    square = forward_of(saves)
    assert "on some paths only" in refused(lambda x: square.apply(x).sum(), ones())


# -- checkpoints: eager's backward calls the function again


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("deed", MORE)
def test_a_checkpointed_function_that_changes_more_each_time(deed, reentrant):
    def part(x):
        deed(x)
        return x.sin()

    def f(x):
        return checkpoint(part, x, use_reentrant=reentrant).sum()

    assert "checkpoint" in refused(f, ones())
    if not reentrant:  # that warns
        check(f, (torch.ones(2),))


@pytest.mark.parametrize("deed", AGAIN)
def test_a_checkpointed_function_that_leaves_the_same_each_time(deed):
    def part(x):
        deed(x)
        return x.sin()

    def f(x):
        return checkpoint(part, x, use_reentrant=False).sum(), STATE.last, TABLE.get("last")

    check(f, (ones(),))


class Normed(torch.nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.part = torch.nn.Sequential(torch.nn.Linear(3, 3), norm)

    def forward(self, x):
        return checkpoint(self.part, x, use_reentrant=False)


def test_running_statistics_in_a_checkpoint():
    batch = Normed(torch.nn.BatchNorm1d(3))
    x = torch.randn(4, 3, requires_grad=True)
    assert "running_mean" in refused(batch, x) or "num_batches_tracked" in refused(batch, x)
    check(batch.eval(), (x,))
    check(Normed(torch.nn.LayerNorm(3)), (x,))
    with torch.no_grad():
        check(Normed(torch.nn.BatchNorm1d(3)), (x,))


# -- gradients that forward takes itself


class Energy(Function):
    """``forward`` takes a gradient under ``enable_grad``, and keeps it."""

    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            v = x.detach().requires_grad_()
            (g,) = torch.autograd.grad((v**3).sum(), v)
        ctx.save_for_backward(g)
        return (x**3).sum()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class OnPaths(Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            v = x.detach().requires_grad_()
            o = (v**3).sum()
            if v.sum() > 0:
                o.backward()
                g = v.grad
            else:
                g = v.detach()
        ctx.save_for_backward(g)
        return o.detach()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class InALoop(Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            v = x.detach().requires_grad_()
            o = v
            for _ in range(int((v > 0).sum())):
                o = o * v
            (g,) = torch.autograd.grad(o.sum(), v)
        ctx.save_for_backward(g)
        return o.detach()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@pytest.mark.parametrize("cls", [Energy, OnPaths, InALoop])
@pytest.mark.parametrize("needed", [True, False])
def test_gradients_inside_forward(cls, needed):
    check(lambda x: cls.apply(x).sum(), *[(torch.tensor(values, requires_grad=needed),) for values in (
        (1.0, 2.0, -0.5), (-1.0, -2.0, -3.0))])  # fmt: skip
