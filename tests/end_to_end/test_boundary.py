"""Everything that crosses the boundary of a call: arguments, results, and the caller's Python state."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import gc
import warnings
import weakref

import numpy
import pytest
import torch
import torch.utils.checkpoint

from dy2static import TraceError, to_static
from runtime import torch_internals
from tests.oracle import same

X = torch.tensor([1.0, 2.0, -0.5])
ARRAY = numpy.array([1.0, 2.0, 3.0], dtype="float32")
COUNT = 0


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Config:
    def __init__(self):
        self.n = 2
        self.t = torch.ones(3)
        self.items = [1, 2]


class Slots:
    __slots__ = ("t",)

    def __init__(self, t):
        self.t = t


class Result:
    def __init__(self, value):
        self.value = value
        self.notes = [1]


@dataclasses.dataclass
class Pair:
    a: torch.Tensor

    def __post_init__(self):
        self.extra = self.a * 3


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_dicts_with_any_keys():
    converted = to_static(lambda d: d[0, 1] + d[Colour.RED])
    for a, b in ((X, X * 2), (X * 2, X)):
        assert torch.equal(converted({(0, 1): a, Colour.RED: b}), X * 3)
    assert len(converted.programs) == 1


def test_a_defaultdict():
    def f(d):
        d["b"].append(d["a"][0] * 2)
        return d

    given = collections.defaultdict(list, {"a": [X]})
    assert to_static(f)(given) is given
    assert torch.equal(given["b"][0], X * 2)


def test_enums_are_told_apart():
    converted = to_static(lambda x, colour: x + 1 if colour is Colour.RED else x)
    for colour in (Colour.RED, Colour.BLUE, Colour.RED):
        assert torch.equal(converted(X, colour), X + 1 if colour is Colour.RED else X)


def test_an_object_whose_attributes_change():
    def f(x, config):
        return x * config.n + config.t * sum(config.items)

    converted, config = to_static(f), Config()

    def change_object():
        nonlocal config
        config = Config()
        config.n = 9

    for change in (
        lambda: None, lambda: setattr(config, "n", 3), lambda: setattr(config, "n", 3.0),
        lambda: setattr(config, "t", torch.zeros(3)), lambda: config.t.add_(1), lambda: config.items.append(5),
        lambda: config.items.__setitem__(0, -1), change_object,
    ):  # fmt: skip
        change()
        assert torch.equal(converted(X, config), f(X, config))


def test_an_object_with_slots():
    converted, slots = to_static(lambda s: s.t * 2), Slots(X)
    assert torch.equal(converted(slots), X * 2)
    slots.t = X * 5
    assert torch.equal(converted(slots), X * 10)


def test_arrays_are_compared_by_content():
    def f(x, array):
        return x + torch.from_numpy(array) * float(ARRAY[1])

    converted, array = to_static(f), numpy.ones(3, dtype="float32")
    assert torch.equal(converted(X, array), f(X, array))
    array[0] = 9
    assert torch.equal(converted(X, array), f(X, array))
    before = ARRAY[1]
    try:
        ARRAY[1] = 7
        assert torch.equal(converted(X, array), f(X, array))
    finally:
        ARRAY[1] = before


def test_a_module_as_argument():
    converted = to_static(lambda module, x: module(x))
    one, two = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)
    for module in (one, two, one):
        assert torch.equal(converted(module, X), module(X))


def test_variable_arguments():
    def f(*args, k=1, **more):
        return len(args), k, sorted(more), sum(args) + sum(more.values())

    converted = to_static(f)
    got, wanted = converted(X, X, k=2, z=X, y=X), f(X, X, k=2, z=X, y=X)
    assert got[:3] == wanted[:3] and torch.equal(got[3], wanted[3])
    assert converted(X)[:3] == (1, 1, [])


def test_mutable_default():
    def f(x, seen=[]):  # the point of the test
        seen.append(1)
        return x * len(seen)

    converted = to_static(f)
    assert torch.equal(converted(X), X) and torch.equal(converted(X), X * 2)
    assert f.__defaults__ == ([1, 1],)


# -- results -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda x: {"a": x + 1, "b": (x, [x * 2], None, 3, "s", 1.5, True)},
        lambda x: (x.sum().item(), int(x.sum()), bool(x.sum() > 0), x.shape, x.dtype, x.device),
        lambda x: collections.OrderedDict(keys=x, values=x * 2),
        lambda x: collections.Counter("aab"),
        lambda x: collections.deque([1, 2], maxlen=2),
        lambda x: {1, 2},
        lambda x: frozenset({1, 2}),
        lambda x: torch.sort(x),
        lambda x: slice(1, 2),
        lambda x: [],
        lambda x: None,
        lambda x: Ellipsis,
    ],
)
def test_results_are_as_eager_and_made_anew(make):
    converted = to_static(make)
    for x in (X, -X):
        got, wanted = converted(x), make(x)
        same(got, wanted)
    if isinstance(wanted, (dict, list, set, collections.deque)):
        got.clear()
        same(converted(x), wanted, "afterwards")  # what a caller does to a result stays with him


def test_objects_made_inside():
    converted = to_static(lambda x: (Result(x * 2), Slots(x * 3), Pair(x)))
    one, two = converted(X), converted(X * 2)
    for got, x in ((one, X), (two, X * 2)):
        assert [type(item) for item in got] == [Result, Slots, Pair]
        assert torch.equal(got[0].value, x * 2) and torch.equal(got[1].t, x * 3)
        assert got[2].a is x or torch.equal(got[2].a, x)
        assert torch.equal(got[2].extra, x * 3)
    assert one[0].notes is not two[0].notes


def test_a_dataclass_comes_back_as_itself():
    def f(pair):
        pair.a = pair.a * 2
        return pair, pair.extra

    converted = to_static(f)
    for _ in range(2):
        pair = Pair(X)
        got = converted(pair)
        assert got[0] is pair and torch.equal(pair.a, X * 2) and torch.equal(got[1], X * 3)


def test_containers_from_outside_come_back_as_themselves():
    names, table = ["a"], {"x": X}
    converted = to_static(lambda x: (names, table, x + table["x"]))
    for _ in range(2):
        got = converted(X)
        assert got[0] is names and got[1] is table and got[1]["x"] is X


def test_namedtuples_of_one_name():
    one = collections.namedtuple("Same", "a b")
    two = collections.namedtuple("Same", "b a")
    got = to_static(lambda x: (one(x, x * 2), two(x * 3, x * 4)))(X)
    assert type(got[0]) is one and type(got[1]) is two
    assert torch.equal(got[0].b, X * 2) and torch.equal(got[1].b, X * 3)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda x: (x * i for i in range(3)), "generator"),
        (lambda x: iter([1, 2]), "iterator"),
        (lambda x: {"a": x * 2}.items(), "dict_items that holds"),
        (lambda x: torch.jit.fork(torch.exp, x), "Future"),
        (lambda x: {"a": [x, torch.jit.fork(torch.exp, x)]}, "Future"),
        (lambda x: torch.jit._awaitable(torch.exp, x), "_Await"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.torch.jit:FutureWarning")
def test_results_that_no_call_can_make(make, what):
    with pytest.raises(TraceError, match=what) as caught:
        to_static(make)(X)
    assert caught.value.code == "D2S228"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.torch.jit:FutureWarning")
def test_futures_of_the_caller():
    def waits(future, x):
        return torch.jit.wait(future) + x, torch.jit.wait(torch.jit.fork(torch.exp, x)), future

    static = to_static(waits)
    for value in (X, X * 2):
        future = torch.jit.fork(torch.exp, value)
        got, expected = static(future, X), waits(future, X)
        assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1]) and got[2] is future


def test_views_of_arguments():
    converted = to_static(lambda x: (x[1:], x, x.detach(), x.view(1, 3), x.t()))
    x = torch.zeros(3)
    got = converted(x)
    assert got[1] is x
    for view in got:
        assert view.data_ptr() in (x.data_ptr(), x[1:].data_ptr())
    got[0].add_(1)
    assert x.tolist() == [0, 1, 1]


# -- in-place writes ---------------------------------------------------------------------------------------------------


def outcome(function, make):
    """What is raised, or the gradient, the tensor afterwards and its version."""
    leaf = torch.ones(3, requires_grad=True)
    x = make(leaf)
    try:
        total = function(x)
    except RuntimeError as error:
        return error
    (total + x.sum()).backward()
    return total, leaf.grad, x, x._version


@pytest.mark.parametrize("make", [lambda leaf: leaf, lambda leaf: leaf * 3, lambda leaf: (leaf * 3)[:2]])
def test_writes_to_an_argument_that_needs_gradients(make):
    def f(x):
        x.mul_(2)
        return x.square().sum()

    same(outcome(to_static(f), make), outcome(f, make))


def test_writes_of_attributes_globals_and_closures():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))
            self.steps = 0
            self.last = None
            self.cache = None
            self.log = []

        def forward(self, x):
            self.total = self.total + x
            self.steps += 1
            self.last = x * self.steps
            if self.cache is None:
                self.cache = x * 10
            self.log.append(self.last)
            return self.last + self.cache

    eager = Module()
    module = to_static(copy.deepcopy(eager))
    for step in range(4):
        assert torch.equal(module(X * step), eager(X * step))
        assert torch.equal(module.total, eager.total) and "total" in module._buffers
        assert module.steps == eager.steps and torch.equal(module.last, eager.last)
        assert torch.equal(module.cache, eager.cache)
        assert len(module.log) == len(eager.log) and all(map(torch.equal, module.log, eager.log))


def test_global_and_nonlocal_counters():
    calls = 0

    def f(x):
        global COUNT
        nonlocal calls
        COUNT += 1
        calls += 2
        return x * COUNT + calls

    global COUNT
    COUNT = 0
    converted = to_static(f)
    for step in range(1, 4):
        assert torch.equal(converted(X), X * step + 2 * step)
    assert (COUNT, calls) == (3, 6)


def test_memo_dict_and_lru_cache():
    memo = {}

    def f(x, key):
        if key not in memo:
            memo[key] = x * 2
        return memo[key] + x

    converted = to_static(f)
    for _ in range(2):
        assert torch.equal(converted(X, "a"), X * 3)
    assert torch.equal(memo["a"], X * 2)

    @functools.lru_cache
    def table(n):
        return torch.arange(n)

    other = to_static(lambda x: x + table(3))
    assert torch.equal(other(X), X + torch.arange(3)) and torch.equal(table(3), torch.arange(3))


# -- other tools -------------------------------------------------------------------------------------------------------


def test_function_transforms():
    converted = to_static(lambda x: (x * x).sum())
    assert torch.equal(torch.func.grad(converted)(X), 2 * X)
    assert torch.equal(torch.func.vmap(converted)(torch.ones(4, 3)), torch.full((4,), 3.0))


def test_functional_call_and_parametrizations():
    layer = torch.nn.Linear(3, 3)
    eager = copy.deepcopy(layer)
    to_static(layer)
    layer(X)
    replaced = {"weight": torch.eye(3), "bias": torch.zeros(3)}
    assert torch.equal(torch.func.functional_call(layer, replaced, (X,)), X)
    assert torch.equal(layer(X), eager(X))
    for one in (layer, eager):
        torch.nn.utils.parametrize.register_parametrization(one, "weight", torch.nn.Softplus())
    got, wanted = layer(X), eager(X)
    assert torch.equal(got, wanted)
    got.sum().backward()
    wanted.sum().backward()
    for a, b in zip(layer.parameters(), eager.parameters()):
        assert torch.equal(a.grad, b.grad)


def test_fake_tensors_of_another_tool():
    mode, _ = torch_internals.make_fake_mode()
    converted = to_static(lambda x: x @ x)
    with mode:
        assert converted(torch.empty(3, 3)).shape == (3, 3)
    assert converted.programs == []


@pytest.mark.filterwarnings("ignore:Guards may run slower on Python 3.13.0")  # torch's, about that Python
def test_torch_compile_export_and_trace():
    layer = to_static(torch.nn.Linear(3, 3))
    wanted = layer.forward.function(X)
    assert torch.equal(torch.compile(layer, backend="eager", fullgraph=True)(X), wanted)
    assert torch.equal(torch.export.export(layer, (X,)).module()(X), wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        assert torch.equal(torch.jit.trace(layer, X)(X), wanted)
    assert torch.equal(layer(X), wanted)


def test_checkpoint_and_anomaly_detection_around_a_call():
    layer = to_static(torch.nn.Linear(3, 3))
    for _ in range(2):
        x = X.clone().requires_grad_()
        torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
        torch.testing.assert_close(x.grad, layer.weight.detach().sum(0))
    with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True):
        warnings.simplefilter("ignore")
        total = to_static(lambda x: x.square().sum())
        x = X.clone().requires_grad_()
        total(x).backward()
    assert torch.equal(x.grad, 2 * X)


def test_arguments_are_not_kept_alive():
    converted = to_static(lambda x, items: x + items[0])
    x, items = torch.ones(3), [torch.ones(3)]
    converted(x, items)
    gone = [weakref.ref(x), weakref.ref(items[0])]
    del x, items
    gc.collect()
    assert [one() for one in gone] == [None, None]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.GRU(8, 4, bidirectional=True),
        lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
        lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(8, 3)),
        lambda: torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.LayerNorm(8)),
    ],
)
def test_layers_of_torch(make):
    eager = make()
    layer = to_static(copy.deepcopy(eager))
    for train in (True, False):
        layer.train(train), eager.train(train)
        for steps in (3, 5, 3):
            x = torch.randn(steps, 2, 8)
            results = []
            for one in (layer, eager):
                torch.manual_seed(steps)
                one.zero_grad()
                result = one(x)
                first = result[0] if isinstance(result, tuple) else result
                first.square().sum().backward()
                results.append((first, [parameter.grad for parameter in one.parameters()]))
            torch.testing.assert_close(results[0], results[1])
