"""Which Program answers which call: keys, guards, sizes, threads, and what a failed trace leaves behind."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import math
import threading
import warnings

import numpy
import pytest
import torch

from dy2static import RetraceWarning, TraceError, to_static
from dy2static.cache_key import value_key
from dy2static.program_cache import KEEP_AT_MOST, WARN_BEYOND
from dy2static.signature import Signature
from tests.oracle import hold_modules

X = torch.tensor([1.0, 2.0, -0.5])

LIMIT = 1.0
TENSOR = torch.ones(3)


# -- arguments ---------------------------------------------------------------------------------------------------------


class Signatures:
    def all_kinds(self, a, b=2, /, c=3, *rest, d, e=5, **more):
        pass

    def only_star(*args, **kwargs):
        pass

    def plain(self, a, b):
        pass


def test_bind_and_unbind():
    signature = Signature(Signatures.all_kinds, bound=True)
    values = signature.bind((1, 7, 8, 9), {"d": 4, "z": 0})
    assert values == {"a": 1, "b": 7, "c": 8, "rest": (9,), "d": 4, "e": 5, "more": {"z": 0}}
    assert signature.unbind(values) == ((1, 7, 8, 9), {"d": 4, "e": 5, "z": 0})
    assert Signature(Signatures.only_star, bound=True).bind((1,), {"k": 2}) == {"args": (1,), "kwargs": {"k": 2}}


@pytest.mark.parametrize(("args", "kwargs"), [((1,), {}), ((1, 2, 3), {}), ((1, 2), {"c": 1}), ((1, 2), {"a": 1})])
def test_wrong_arguments_get_pythons_own_error(args, kwargs):
    with pytest.raises(TypeError) as wanted:
        Signatures().plain(*args, **kwargs)
    with pytest.raises(TypeError) as got:
        to_static(Signatures().plain)(*args, **kwargs)
    assert str(got.value) == str(wanted.value)


def test_defaults_are_read_at_each_call():
    def f(x, n=1):
        return x * n

    converted = to_static(f)
    assert torch.equal(converted(X), X)
    f.__defaults__ = (3,)
    assert torch.equal(converted(X), X * 3)


PLAIN = [
    0, 1, -1, -2, True, False, 1.0, -1.0, 0.0, -0.0, math.inf, math.nan, 1j, complex(0.0, -0.0), "", "1", b"1",
    None, ..., (), [], {}, set(), (1,), [1], (True,), (1.0,), {1: 2}, {True: 2}, {1: 2.0}, [[1]], ([1],),
    slice(1), slice(1.0), range(2), range(0, 2, 3), range(0), range(1, 1), torch.float32, torch.float64,
    torch.device("cpu"), torch.Size([1]), numpy.float32(1), numpy.float64(1), numpy.int64(1), numpy.array([1]),
    numpy.array([1.0]), numpy.array([2]), frozenset({1}), frozenset({True}), int, bool,
]  # fmt: skip


def test_plain_values_never_collide():
    keys = [value_key(value) for value in PLAIN]
    for index, key in enumerate(keys):
        assert [other for other, one in enumerate(keys) if one == key] == [index], PLAIN[index]
    assert [value_key(copy.deepcopy(value)) == key for value, key in zip(PLAIN, keys)].count(False) == 0


@pytest.mark.parametrize("value", [1, True, 1.0, -1, -2, 0.0, -0.0, 2, None, "s"])
def test_each_value_gets_its_own_answer(value, shared={}):  # one converted function for all values
    converted = shared.setdefault("f", to_static(lambda x, v: (x + 1, v, repr(v))))
    got = converted(X, value)
    assert got[2] == repr(value) and type(got[1]) is type(value)
    assert math.copysign(1, got[1] or 0) == math.copysign(1, value or 0) if isinstance(value, float) else True
    assert converted(X, value)[2] == repr(value)


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor
    scale: float = 1.0


def test_containers_of_tensors():
    def f(items, table, point, pair):
        return {"sum": items[0] + table["a"], "rest": [point, (pair.first * pair.scale,)]}, Pair(pair.second, point.y)

    converted = to_static(f)
    for scale in (1.0, 2.0):
        args = ([torch.randn(2)], {"a": torch.randn(2)}, Point(torch.randn(2), torch.randn(2)),
                Pair(torch.randn(2), torch.randn(2), scale))  # fmt: skip
        got, wanted = converted(*args), f(*args)
        assert torch.equal(got[0]["sum"], wanted[0]["sum"])
        assert type(got[0]["rest"][0]) is Point and torch.equal(got[0]["rest"][0].x, args[2].x)
        assert torch.equal(got[0]["rest"][1][0], wanted[0]["rest"][1][0])
        assert type(got[1]) is Pair and torch.equal(got[1].first, wanted[1].first) and got[1].scale == 1.0
    assert len(converted.programs) == 2


def test_arguments_that_are_changed_and_returned():
    def f(table, items):
        table["y"] = table["x"] * 2
        items.append(table["y"])
        return table, items, [items]

    converted = to_static(f)
    for _ in range(3):
        table, items = {"x": torch.randn(2)}, []
        got = converted(table, items)
        assert got[0] is table and got[1] is items and got[2][0] is items
        assert list(table) == ["x", "y"] and torch.equal(table["y"], table["x"] * 2) and items[0] is table["y"]
    assert len(converted.programs) == 1


def test_one_list_twice_stays_one():
    def f(a, b):
        a.append(1)
        return len(b), a is b

    converted = to_static(f)
    one = [X]
    assert converted(one, one) == (2, True)
    assert converted([X], [X]) == (1, False)


def test_results_keep_their_sharing():
    def f(x):
        inner = [x + 1]
        return inner, inner, x, x + 0

    got = to_static(f)(X)
    assert got[0] is got[1] and got[2] is X and got[3] is not X


def test_callbacks_methods_and_partials_as_arguments():
    class Owner:
        def __init__(self, n):
            self.n = n

        def times(self, x):
            return x * self.n

    converted = to_static(lambda x, g: g(x))
    two, three = Owner(2), Owner(3)
    for owner in (two, three, two, three):
        assert torch.equal(converted(X, owner.times), X * owner.n)
    assert len(converted.programs) == 2
    for n in (2, 3, 2):
        assert torch.equal(converted(X, functools.partial(torch.mul, torch.tensor(n))), X * n)


# -- tensors -----------------------------------------------------------------------------------------------------------


def metadata(x):
    return x.dtype, x.dim(), x.requires_grad, type(x), x.is_contiguous(), (x.t() if x.dim() == 2 else x).reshape(-1) + 1


@pytest.mark.parametrize("order", [1, -1])
def test_kinds_of_tensors(order):
    converted = to_static(metadata)
    base = torch.arange(12.0).reshape(3, 4)
    tensors = [
        base, base.double(), base.long(), base.bool(), base[0], base.t(), base.t()[:, :2], base[:, ::2],
        base.clone().requires_grad_(), torch.nn.Parameter(base.clone()),
        torch.nn.Parameter(base.clone(), requires_grad=False), base[:0], base[:1], base[:, :1],
        torch.ones(3, 1).expand(3, 4), base.to(torch.complex64), torch.tensor(1.0), base[0, :1],
    ]  # fmt: skip
    for x in 2 * tensors[::order]:
        got, wanted = converted(x), metadata(x)
        assert got[:-1] == wanted[:-1]
        assert torch.equal(got[-1], wanted[-1]) and got[-1].dtype == wanted[-1].dtype


def test_sizes_that_change_become_open():
    converted = to_static(lambda x, y: (x + 1) @ y)
    y = torch.randn(4, 2)
    for rows in (3, 5, 0, 1, 7):
        x = torch.randn(rows, 4)
        assert torch.equal(converted(x, y), (x + 1) @ y)
    assert len(converted.programs) == 2
    newest = converted.programs[0]
    assert [given.var.type.shape for given in newest.inputs] == [("s0", 4), (4, 2)]


def test_an_open_size_is_remembered_for_other_programs():
    converted = to_static(lambda x, n: x * n)
    for rows in (3, 5):
        converted(torch.ones(rows), 1)
    for rows in (3, 5, 7):
        assert torch.equal(converted(torch.ones(rows), 2), torch.full((rows,), 2.0))
    assert len(converted.programs) == 3


def test_broadcast_of_an_open_size():
    converted = to_static(lambda x, y: x + y)
    for a, b in ((3, 3), (4, 4), (1, 4), (4, 1), (1, 1), (5, 5), (2, 1)):
        x, y = torch.randn(a), torch.randn(b)
        assert torch.equal(converted(x, y), x + y)
    with pytest.raises(RuntimeError):
        converted(torch.ones(3), torch.ones(2))


def test_python_decisions_on_sizes():
    def f(x):
        if x.shape[0] > 3:
            return x * 2
        return x - x.shape[0]

    converted = to_static(f)
    for rows in (2, 3, 4, 5, 1):
        x = torch.randn(rows)
        assert torch.equal(converted(x), f(x))


def test_arguments_that_share_memory():
    def f(x, y):
        x.add_(1)
        return y * 2

    converted = to_static(f)
    for make in (lambda t: (t, t[1:]), lambda t: (t[:2], t[1:]), lambda t: (t, t.clone()), lambda t: (t[:1], t[2:]),
                 lambda t: (t, t), lambda t: (t[::2], t[1::2])):  # fmt: skip
        for _ in range(2):
            ours, theirs = torch.arange(4.0), torch.arange(4.0)
            assert torch.equal(converted(*make(ours)), f(*make(theirs)))
            assert torch.equal(ours, theirs)


def test_an_argument_that_is_a_parameter():
    net = torch.nn.Linear(2, 2, bias=False)

    @to_static
    def f(x):
        x.mul_(2)
        return net(x)

    eager = f.function
    for _ in range(2):
        assert torch.equal(f(torch.ones(2, 2)), eager(torch.ones(2, 2)))
        with pytest.raises(TraceError, match="'weight' and 'x' share memory, and one was written"):
            f(net.weight.data)


# -- PyTorch's state ---------------------------------------------------------------------------------------------------


def test_grad_mode_inference_mode_and_default_dtype():
    converted = to_static(lambda x: (x * torch.ones(3)).sum())
    x = X.clone().requires_grad_()
    for _ in range(2):
        assert converted(x).requires_grad
        with torch.no_grad():
            assert not converted(x).requires_grad
        with torch.inference_mode():
            assert converted(x).is_inference()
    torch.set_default_dtype(torch.float64)
    assert converted(X).dtype is torch.float64
    torch.set_default_dtype(torch.float32)
    assert converted(X).dtype is torch.float32


def test_autocast():
    converted = to_static(lambda x: x @ x)
    x = torch.randn(3, 3)
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert converted(x).dtype is torch.bfloat16
        assert converted(x).dtype is torch.float32


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.threshold = 0.0

    def forward(self, x):
        h = self.norm(self.layer(x))
        if h[0, 0] > self.threshold:
            h = h + LIMIT
        return h + TENSOR


def held(net, eager, x):
    hold_modules(net, eager, [(x,)], tolerance=1e-6)


CHANGES = {
    "eval": lambda net: net.eval(),
    "part in eval": lambda net: net.norm.eval(),
    "attribute": lambda net: setattr(net, "threshold", -100.0),
    "frozen": lambda net: net.layer.weight.requires_grad_(False),
    "all frozen": lambda net: net.requires_grad_(False),
    "sublayer": lambda net: setattr(net, "layer", torch.nn.Linear(3, 3, bias=False)),
    "sublayer of another type": lambda net: setattr(net, "layer", torch.nn.Identity()),
    "parameter": lambda net: setattr(net.layer, "weight", torch.nn.Parameter(torch.eye(3))),
    "parameter's data": lambda net: setattr(net.layer.weight, "data", torch.eye(3).t()[:, [2, 1, 0]].t()),
    "hook": lambda net: net.layer.register_forward_hook(lambda module, args, out: out * 2),
    "momentum": lambda net: setattr(net.norm, "momentum", 0.9),
    "dtype": lambda net: net.double(),
    "load_state_dict": lambda net: net.load_state_dict({k: v * 2 for k, v in net.state_dict().items()}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_a_module_between_calls(name):
    net = Net()
    eager = copy.deepcopy(net)
    to_static(net)
    x = torch.randn(4, 3)
    held(net, eager, x)
    for one in (net, eager):
        torch.manual_seed(1)
        CHANGES[name](one)
    if name == "dtype":
        x = x.double()
    held(net, eager, x)
    held(net, eager, torch.randn(4, 3).to(x.dtype))


def test_globals_that_change(monkeypatch):
    net = Net().eval()
    eager = copy.deepcopy(net)
    to_static(net)
    x = torch.randn(4, 3)
    held(net, eager, x)
    monkeypatch.setitem(globals(), "LIMIT", 5.0)
    held(net, eager, x)
    monkeypatch.setitem(globals(), "LIMIT", 5)
    held(net, eager, x)
    monkeypatch.setitem(globals(), "TENSOR", torch.full((3,), 7.0))
    held(net, eager, x)


def test_closure_that_changes():
    factor = 2

    def f(x):
        return x * factor

    converted = to_static(f)
    assert torch.equal(converted(X), X * 2)
    factor = 3
    assert torch.equal(converted(X), X * 3)


def test_state_kept_in_python():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.last = None
            self.history = []

        def forward(self, x):
            self.count += 1
            self.last = x * self.count
            self.history.append(self.count)
            return self.last

    net = to_static(Counter())
    for step in range(1, 4):
        got = net(X)
        assert torch.equal(got, X * step) and net.last is got
        assert net.count == step and net.history == list(range(1, step + 1))


# -- the cache ---------------------------------------------------------------------------------------------------------


def test_a_warning_says_why_it_is_traced_again():
    converted = to_static(lambda x, n: {n: x, ...: x})  # such a key is needed as a constant
    for n in range(WARN_BEYOND):
        converted(X, n)
    with pytest.warns(RetraceWarning, match="has been traced 17 times.*argument 'n' is -1, and was 15"):
        converted(X, -1)
    converted(X, -2)  # once is enough


def test_the_warning_about_another_argument():
    converted = to_static(lambda x, n: x * n)
    for n in range(WARN_BEYOND):
        converted(X, complex(n))
    with pytest.warns(RetraceWarning, match="has been traced 17 times.*a Python argument"):
        converted(X, -1j)


def test_the_warning_names_the_guard():
    net = Net()
    to_static(net)
    x = torch.randn(2, 3)
    again = pytest.warns(RetraceWarning, match=r"forward\(\) has been traced 3 times again because .*threshold")
    with again, pytest.warns(RetraceWarning, match=r"forward\(\) has been traced 17 times, the last .*threshold"):
        for n in range(WARN_BEYOND + 1):
            net.threshold = numpy.float64(n)  # a plain float would become an input of the Program
            net(x)


def test_old_programs_are_let_go():
    converted = to_static(lambda x, n: x * n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for n in range(KEEP_AT_MOST + 3):
            converted(X, complex(n))  # a plain number would become an input of the Program
            converted(X, 0j)
    assert len(converted.programs) == KEEP_AT_MOST
    before = converted.programs
    assert torch.equal(converted(X, 0j), X * 0j)
    assert converted.programs[0] in before, "the one in use was kept"


def test_a_failed_trace_leaves_nothing():
    fail = True

    def f(x, items):
        items.append(1)
        if fail:
            raise KeyError("not yet")
        return x * len(items)

    converted = to_static(f)
    items = []
    with pytest.raises(KeyError, match="not yet"):
        converted(X, items)
    assert converted.programs == []
    fail = False
    items = []
    assert torch.equal(converted(X, items), X) and items == [1]


def test_eight_threads_call_one_fresh_function():
    def f(x):
        h = x
        while h.abs().max() < 100:
            h = h * 2 + x
        return h

    for _ in range(3):
        converted, start, results = to_static(f), threading.Barrier(8), [None] * 8
        inputs = [torch.full((3,), 1.0 + index) for index in range(8)]

        def run(index):
            start.wait()
            results[index] = [converted(inputs[index]) for _ in range(5)]

        threads = [threading.Thread(target=run, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for x, got in zip(inputs, results):
            assert got is not None and all(torch.equal(one, f(x)) for one in got)
        assert len(converted.programs) == 1


def test_a_converted_function_inside_another():
    @to_static
    def inner(x):
        if x.sum() > 0:
            x = x * 2
        return x

    outer = to_static(lambda x: inner(x) + inner(-x))
    assert torch.equal(outer(X), inner(X) + inner(-X))
    assert len(outer.programs) == 1 and str(outer.program).count("cond(") == 2


def test_concrete_program_runs_nothing():
    def f(x):
        x.add_(1)
        return x

    converted, x = to_static(f), torch.zeros(2)
    traced = converted.concrete_program(x)
    assert torch.equal(x, torch.zeros(2)) and traced.program is converted.program
    converted(x)
    assert torch.equal(x, torch.ones(2)) and len(converted.programs) == 1
