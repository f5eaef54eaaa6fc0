"""Sizes that change between calls: one converted object must answer all of them, with few Programs."""

from __future__ import annotations

import operator

import pytest
import torch

from dy2static import InputSpec, RetraceWarning, to_static
from runtime.errors import TraceError
from tests.oracle import check, check_saved, hold, run, same


def count_up(x):
    out = torch.zeros(x.shape[0], 2)
    for i in range(x.shape[0]):
        out[i] = x[i, :2] * i
    return out


def rows_above_zero(x):
    n = 0
    for row in x:
        if row.sum() > 0:
            n += 1
    return n


def by_parity(x):
    if x.shape[0] % 2 == 0:
        return x.reshape(-1, x.shape[0]).sum(0)
    return x.flatten()


def text(x):
    return f"{x.shape[0]} {tuple(x.shape)} {x.shape} {len(x)} {x.numel()}"


FUNCTIONS = [
    count_up,
    rows_above_zero,
    by_parity,
    text,
    lambda x: x.view(x.shape[0], 2, -1),
    lambda x: x.t().contiguous().view(-1),
    lambda x: [t * 2 for t in x],
    lambda x: x.flatten().tolist(),
    lambda x: x.chunk(2)[0] + 1,
    lambda x: torch.nn.functional.pad(x, (0, 0, 0, 8 - x.shape[0])),
    lambda x: torch.arange(x.shape[0]) * 2,
    lambda x: x[x > 0],
    lambda x: x.nonzero().shape[0] + x.size(0),
    lambda x: x @ x.t(),
    lambda x: torch.cat([x, x[1:]]).sum() / x.shape[0],
    lambda x: torch.nn.functional.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.long)),
    lambda x: x.is_contiguous(),
    lambda x: torch.nn.functional.softmax(x, 0).max(1),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_numbers_of_rows(function):
    converted = to_static(function)
    for rows in (2, 3, 5, 1, 7, 4):
        x = torch.randn(rows, 4)
        got, wanted = converted(x), function(x)
        same(got, wanted)


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f not in (text,)])
def test_layouts(function):
    converted = to_static(function)
    for x in (torch.randn(2, 4), torch.randn(6, 4)[::2], torch.randn(4, 5).t(), torch.randn(3, 8)[:, ::2],
              torch.randn(1, 4).expand(3, 4), torch.randn(4, 1).t(), torch.randn(4, 3).t()):  # fmt: skip
        torch.testing.assert_close(converted(x), function(x))


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (lambda: torch.nn.Embedding(10, 4), [torch.zeros(b, t, dtype=torch.long) for b, t in ((2, 3), (4, 5), (1, 1))]),
        (lambda: torch.nn.Linear(4, 2), [torch.randn(b, t, 4) for b, t in ((2, 3), (4, 5), (1, 1), (0, 3))]),
        (lambda: torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
         [torch.randn(b, t, 4) for b, t in ((2, 3), (4, 5), (1, 1), (3, 7))]),
        (lambda: torch.nn.Conv2d(3, 4, 3), [torch.randn(b, 3, n, n) for b, n in ((2, 8), (3, 10), (1, 12), (1, 3))]),
    ],
)  # fmt: skip
def test_layers_need_few_programs(make, inputs):
    layer = make()
    eager = [layer(x) for x in inputs]
    to_static(layer)
    for x, wanted in zip(inputs, eager):
        torch.testing.assert_close(layer(x), wanted)
    assert len(layer.forward.programs) <= 3


@pytest.mark.parametrize("function", [count_up, rows_above_zero, FUNCTIONS[5], FUNCTIONS[11], FUNCTIONS[13]])
def test_open_from_the_start(function):
    converted = to_static(function, input_spec=[InputSpec([None, 4])])
    for rows in (1, 2, 5, 0):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(converted(x), function(x))
        assert len(converted.programs) == 1 or rows == 0, "an empty tensor may be a case of its own"


def test_a_size_that_an_operator_fixes_is_said():
    converted = to_static(lambda x, y: x + y, input_spec=[InputSpec([None]), InputSpec([None])])
    for size in (3, 5):
        x, y = torch.randn(size), torch.randn(size)
        assert torch.equal(converted(x, y), x + y)
    x, y = torch.randn(4), torch.randn(1)
    with pytest.warns(RetraceWarning, match="the size of 'x' in dimension 0 is fixed for this call"):
        assert torch.equal(converted(x, y), x + y)
    x, y = torch.randn(6), torch.randn(6)
    assert torch.equal(converted(x, y), x + y)
    assert len(converted.programs) == 2


@pytest.mark.parametrize("options", [{"scale_factor": 2.0}, {"size": 7}], ids=["scale_factor", "size"])
def test_derivatives_that_hold_for_one_size(options):
    def f(x):
        return torch.nn.functional.interpolate(x[None], **options)

    check(f, *[[torch.randn(size, 3, requires_grad=True)] for size in (3, 4, 6, 5, 4, 3)])


DIVIDED = {
    "view": lambda x, m: x.view(m - 2, -1),
    "reshape": lambda x, m: x.reshape(-1, m - 2),
    "unflatten": lambda x, m: x.unflatten(0, (m - 2, -1)),
    "chunk": lambda x, m: x.chunk(m - 2),
    "unfold": lambda x, m: x.unfold(0, 2, m - 2),
    "expand": lambda x, m: x[None].expand(m - 2, 4).reshape(m - 2, 2, -1),
}
AT_MOST_TWO = {
    "narrow": lambda y, m: y.narrow(0, 0, 2 + m),
    "view": lambda y, m: torch.ones(m).view(2),
    "check": lambda y, m: torch._check(m <= 2),
    "product": lambda y, m: torch.ones(3, m) @ y[:2],
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("then", AT_MOST_TWO)
@pytest.mark.parametrize("first", DIVIDED)
def test_sizes_that_no_run_has(first, then, grad):
    """What divides by a size that is not 0, before what works for 2 and less: every run raises, at its place."""
    divided, conflict = DIVIDED[first], AT_MOST_TWO[then]

    def f(x, y):
        m = int((x > 0).sum())
        divided(x, m)
        conflict(y, m)
        return x * 2

    converted = to_static(f)
    for positive in (4, 3, 2, 1):
        x = torch.tensor([1.0] * positive + [-1.0] * (4 - positive), requires_grad=grad)
        with pytest.raises(Exception) as eager:
            f(x, torch.arange(4.0))
        with pytest.raises(Exception) as got:
            converted(x, torch.arange(4.0))
        assert type(got.value) is type(eager.value) or got.value.code in ("D2S235", "D2S238", "D2S265"), got.value


EXPANDED = {
    "to a length": lambda a, b: a.expand(len(b)) + b,
    "with a dimension more": lambda a, b: a.expand(2, b.shape[0]) * b,
    "as": lambda a, b: (a.expand_as(b) * b, a.expand_as(b).shape[0]),
    "to a shape": lambda a, b: torch.broadcast_to(a, b.shape) - b,
    "on a path": lambda a, b: a.expand(len(b)) if b.sum() > 1 else b * 2,
    "in a loop": lambda a, b: [a.expand(len(b)) * i + b for i in range(2)],
    "once more": lambda a, b: a.expand(len(b)).expand(len(b)).unsqueeze(0).expand(2, len(b)).sum(0),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_what_is_expanded_to_a_size_that_data_decides(name, tmp_path):
    """A size of 1 becomes the other, as in eager; what does not fit is PyTorch's error."""
    inner = EXPANDED[name]

    def f(x, y):
        return inner(x[x > 0], y[y > 0])

    sizes = ((2, 2), (1, 3), (1, 1), (0, 0), (3, 1), (3, 2), (1, 0))
    for grad in (False, True):
        vectors = [
            [torch.tensor([1.0, 2.0, 3.0][:n] + [-1.0] * (4 - n), requires_grad=grad) for n in pair] for pair in sizes
        ]
        static = check(f, *vectors)
    check_saved(f, static, tmp_path / "expanded.d2s", *vectors)


def in_a_branch(x):
    if x.sum() > 3:
        y = x.new(x.size()).zero_()
    else:
        y = torch.Tensor(x.shape[1:]).zero_()
    return y


def in_a_loop(x):
    total = x.sum() * 0
    for row in x:
        total = total + torch.Tensor(row.shape).zero_().sum() + len(row)
    while total > 20:
        total = total - x.new(x.shape).zero_().numel() - 1
    return total


def by_a_number_of_the_run(x):
    count = int(x.sum())
    return torch.Tensor(torch.Size((count, 2))).shape, x.new(torch.Size((count, 2))).shape, torch.Tensor(count, 2).shape


CONSTRUCTORS = [
    lambda x: x.new(x.size()).zero_(),
    lambda x: x.new(x.t().size()).shape,
    lambda x: x.new(x.shape, device="cpu").shape,
    lambda x: x.new(x.shape[:1]).shape,
    lambda x: x.new(x.shape + x.shape).shape,
    lambda x: x.new(*x.shape).shape,
    lambda x: x.new(x.shape[0]).shape,
    lambda x: x.new((x.shape[0], 3)),
    lambda x: x.new([x.shape[0], 3]),
    lambda x: torch.Tensor.new(x, x.shape).shape,
    lambda x: torch.Tensor(x.shape).zero_(),
    lambda x: torch.Tensor(torch.Size((len(x), 2))).shape,
    lambda x: torch.Tensor(x.shape + (2,)).shape,
    lambda x: torch.Tensor(*x.shape).shape,
    lambda x: torch.Tensor(tuple(x.shape)),
    lambda x: torch.Tensor(list(x.shape)),
    lambda x: torch.Tensor([x.shape[0], 3]),
    lambda x: torch.Tensor(x.shape[0]).shape,
    lambda x: [one(x.shape).shape for one in (torch.FloatTensor, torch.LongTensor, torch.BoolTensor)],
    lambda x: torch.LongTensor((x.shape[0], 3)),
    lambda x: torch.LongTensor(x.shape[0]).shape,
    lambda x: torch.Tensor([[len(x), 1], [2, int(x.sum())]]),
    lambda x: (torch.LongTensor([int(x.sum()), 2]), torch.Tensor([x.detach().sum(), 2])),
    lambda x: (torch.LongTensor(range(len(x))), torch.Tensor([float(x.detach().sum())]), x.new(range(len(x)))),
    lambda x: torch.Tensor.new_tensor(x, [len(x)]) + torch.Tensor.new(x, [len(x)]),
    lambda x: x.new_tensor(x.shape),
    lambda x: x.new_tensor([x.shape[0], 1]),
    lambda x: x.new_tensor(x.shape[0]),
    in_a_branch, in_a_loop, by_a_number_of_the_run,
]  # fmt: skip


@pytest.mark.parametrize("function", CONSTRUCTORS)
def test_constructors_that_take_data_or_sizes(function, tmp_path):
    calls = [(torch.ones(2, 3),), (torch.ones(4, 3),), (torch.ones(5, 7),), (torch.ones(1, 2, requires_grad=True),)]
    static = check(function, *calls, paths=("program",))
    check_saved(function, static, tmp_path / "f", *calls[:3], paths=("program",))


@pytest.mark.parametrize("function", [CONSTRUCTORS[0], CONSTRUCTORS[10], in_a_branch])
def test_constructors_where_all_sizes_are_open(function, tmp_path):
    calls = [(torch.ones(rows, columns),) for rows, columns in ((2, 3), (4, 3), (5, 7), (0, 2))]
    static = to_static(function, input_spec=[InputSpec([None, None])])
    check(function, *calls, static=static, paths=("program",))
    check_saved(function, static, tmp_path / "f", *calls[:3], paths=("program",))


OUTSIDE = torch.Size([3])


def sum_on_a_path(x, n):
    size = torch.Size([3])
    if x.sum() > 9:
        size = size + (int(n),)
    else:
        size = OUTSIDE + torch.Size([5])
    for more in range(2):
        size += (int(n) + more,)
    return size, torch.zeros(size)


SUMS = [
    lambda x, n: torch.Size([3]) + (int(n),),
    lambda x, n: torch.Size(x.shape) + torch.Size([int(n)]),
    lambda x, n: OUTSIDE + (int(n),) + x.shape,
    lambda x, n: ((int(n),) + torch.Size([3]), (int(n), 1) + OUTSIDE),
    lambda x, n: (x.shape + OUTSIDE) * 2 + 2 * torch.Size([int(n)]),
    lambda x, n: (torch.Size([int(n), 4, 5])[1:], (torch.Size([3]) + (int(n),))[0], torch.Size([3, 4, 5])[int(n) - 1]),
    lambda x, n: ((torch.Size([3]) + (int(n),)).numel(), len(torch.Size([3]) + (int(n),))),
    lambda x, n: (torch.Size([3, int(n), 2]).count(2), torch.Size([3, 2, 2]).count(int(n))),
    lambda x, n: (torch.Size([3, 2]) == (3, int(n)), torch.Size([2]) != torch.Size([int(n)])),
    lambda x, n: (int(n) in torch.Size([3, 2]), 2 in torch.Size([3, int(n)]), len(x) in torch.Size([3])),
    lambda x, n: (operator.add(torch.Size([3]), (int(n),)), str(OUTSIDE + (int(n),))),
    lambda x, n: sum([(int(n),)], torch.Size([3])),
    lambda x, n: torch.Size([3]) + (float(n),),
    lambda x, n: (float(n),) + torch.Size([3]),
    lambda x, n: torch.Size([int(n)]) + ("a",),
    lambda x, n: torch.Size([3]) + [int(n)],
    sum_on_a_path,
]  # fmt: skip


@pytest.mark.parametrize("function", SUMS)
@pytest.mark.parametrize("needs", [False, True])
def test_sizes_of_numbers_that_only_the_run_knows(function, needs, tmp_path):
    calls = [(torch.ones(n + 1, 3, requires_grad=needs), torch.tensor(n)) for n in (2, 1, 3)]
    static = check(function, *calls, paths=("program",))
    if static.programs and not needs and function not in SUMS[12:16]:
        check_saved(function, static, tmp_path / "f", *calls, paths=("program",))


class Normed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(x) * 2


@pytest.mark.parametrize("spec", [None, [InputSpec([None, 3])]])
def test_sizes_that_torchs_python_refuses(spec):
    """The Program that raises is for these sizes, and its message names them."""
    torch.manual_seed(0)
    layer, eager = to_static(Normed(), input_spec=spec), Normed()
    for number, size in enumerate((3, 8, 1, 5, 1, 7)):
        x = torch.randn(size, 3)
        expected, got = run(eager, [x], number), run(layer, [x], number)
        assert (expected.error is not None) == (size == 1)
        hold(got, expected, f"call {number}")


def refused_or_doubled(x):
    try:
        return torch.nn.functional.batch_norm(x, None, None, training=True) * 2
    except ValueError:
        return x


@pytest.mark.parametrize("spec", [None, [InputSpec([None, 3])]])
def test_sizes_that_torchs_python_refuses_and_a_handler_takes(spec):
    """The Program in which the handler runs is for these sizes."""
    static = to_static(refused_or_doubled, input_spec=spec)
    for size in (3, 8, 1, 5, 1, 7):
        x = torch.arange(3.0 * size).reshape(size, 3)
        same(static(x), refused_or_doubled(x), tolerance=1e-6)


LEFT = {
    "reshape": lambda x, c: x.reshape((1, -1) if c > 0 else (-1, 1)),
    "view": lambda x, c: x.view((2, -1) if c > 0 else (-1, 2)),
    "one by one": lambda x, c: x.reshape(1 if c > 0 else -1, -1 if c > 0 else 1),
    "unflatten": lambda x, c: x.unflatten(0, (2, -1) if c > 0 else (-1, 2)),
}
OF_A_PATH = {
    "sizes": lambda x, c: x.reshape((1, 4) if c > 0 else (4, 1)),
    "one": lambda x, c: x.reshape(2, 2 if c > 0 else -1),
    "on each path": lambda x, c: x.reshape((1, -1)) if c > 0 else x.reshape((-1, 1)),
    "numbers": lambda x, c: x.view(int(c.abs()), int(c.abs()) + 3),
}


@pytest.mark.parametrize("use", LEFT)
def test_which_size_is_left_may_not_depend_on_the_path(use):
    with pytest.raises(TraceError, match="D2S235"):
        to_static(LEFT[use])(torch.randn(4), torch.tensor(1))


@pytest.mark.parametrize("use", OF_A_PATH)
def test_sizes_of_a_shape_that_depend_on_the_path(use):
    x = torch.randn(4, requires_grad=True)
    check(OF_A_PATH[use], (x, torch.tensor(1)), (x, torch.tensor(-1)))
