"""Functions that are not converted: what they read is guarded, what they change is repeated, modes they set hold."""

from __future__ import annotations

import array
import io
import random
import types

import numpy
import pytest
import torch

import dy2static
from dy2static import RetraceWarning, not_to_static, to_static
from runtime.errors import TraceError
from tests.oracle import same

X = torch.ones(3)
SPACE = types.SimpleNamespace(n=2.0, inner=types.SimpleNamespace(k=3.0))
NUMBER = 4.0
TABLE = {"a": [1.0]}
BUFFER = bytearray(b"ab")


@not_to_static
def reads_all(x, given):
    return x * SPACE.n * SPACE.inner.k * NUMBER * TABLE["a"][0] * given.scale * BUFFER[0]


def test_what_it_reads_is_guarded():
    given = types.SimpleNamespace(scale=1.0)
    static = to_static(lambda x: reads_all(x, given))

    def changed(change):
        change()
        same(static(X), reads_all(X, given))

    changed(lambda: None)
    changed(lambda: setattr(SPACE, "n", 5.0))
    changed(lambda: setattr(SPACE.inner, "k", 6.0))
    changed(lambda: globals().update(NUMBER=7.0))
    changed(lambda: TABLE["a"].append(0.0))
    changed(lambda: TABLE["a"].__setitem__(0, 8.0))
    changed(lambda: setattr(given, "scale", 9.0))
    changed(lambda: BUFFER.__setitem__(0, 3))
    number = len(static.programs)
    changed(lambda: setattr(SPACE, "other", 1))
    assert len(static.programs) == number


class Left:
    factor = 2.0

    def __init__(self):
        self.value, self.tensor = 3.0, torch.ones(3)

    @not_to_static
    def method(self, x):
        return x * self.value * self.helped() * self.factor * self.prop * Others.number * helper()

    @not_to_static
    def held(self):
        return self.tensor

    def helped(self):
        return [self.inner for _ in range(1)][0]

    inner = 4.0

    @property
    def prop(self):
        return NUMBER


class Others:
    number = 1.0


def helper(k=1.0):
    return TABLE["a"][0] * k


def test_what_a_method_reads_is_guarded():
    one = Left()
    static, shape = to_static(lambda x: one.method(x)), to_static(lambda x: (x, len(one.held())))
    for change in (
        lambda: None,
        lambda: setattr(one, "value", 5.0),
        lambda: setattr(Left, "factor", 6.0),
        lambda: setattr(Left, "inner", 7.0),
        lambda: setattr(one, "inner", 8.0),
        lambda: setattr(Others, "number", 9.0),
        lambda: TABLE.update(a=[10.0]),
        lambda: setattr(helper, "__defaults__", (11.0,)),
        lambda: setattr(Left, "prop", property(lambda self: 12.0)),
        lambda: setattr(Left, "helped", lambda self: 13.0),
        lambda: setattr(one, "tensor", torch.ones(5)),
        lambda: setattr(one, "tensor", [1.0]),
    ):
        change()
        assert torch.equal(static(X), one.method(X))
        assert shape(X)[1] == len(one.held())


def test_what_a_method_changes_is_repeated():
    class Counted:
        count = 0

        @not_to_static
        def step(self):
            self.count += 1

    def steps(x, one):
        one.step()
        return x * one.count

    eager, one = Counted(), Counted()
    static = to_static(lambda x: steps(x, one))
    for _ in range(5):
        assert torch.equal(static(X), steps(X, eager))
    assert one.count == eager.count == 5


@pytest.mark.parametrize("make", [
    lambda: bytearray(b"ab"), lambda: array.array("i", [1, 2]), lambda: array.array("d", [1.0]),
    lambda: numpy.zeros(2), lambda: numpy.array([1, "a"], dtype=object), lambda: memoryview(bytearray(b"ab")),
])  # fmt: skip
def test_an_item_of_a_buffer_is_guarded_by_content(make):
    held = make()
    holder = types.SimpleNamespace(it=held, items=[held])
    for function in (lambda x: x * held[0], lambda x: x * holder.it[0], lambda x: x * holder.items[0][0]):
        held[0] = 3
        static = to_static(function)
        for value in (3, 5, 5):
            held[0] = value
            assert torch.equal(static(X), function(X))
        assert len(static.programs) == 2


def test_what_is_made_inside_is_no_reason_to_trace_again():
    def f(x):
        table, text = numpy.zeros(3), io.StringIO()
        table[0] = 2
        text.write("ab")
        if x.sum() > 0:
            other, data = numpy.ones(3), bytearray(2)
            other[1:][0] = 4
            data.append(3)
            x = x + torch.as_tensor(other) + len(data)
        return x * torch.as_tensor(table)

    static = to_static(f)
    for x in (X, -X, X):
        assert torch.equal(static(x), f(x))
    assert len(static.programs) == 1


def nested():
    inner = torch.nn.Sequential(torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Dropout(1.0)))
    return torch.nn.Sequential(torch.nn.Sequential(inner))


def modes(model):
    return [module.training for module in model.modules()]


def test_a_mode_set_inside():
    def f(x, model):
        model.eval()
        return model(x)

    static, mine, theirs = to_static(f), nested(), nested()
    for _ in range(3):
        mine.train(), theirs.train()
        assert torch.equal(static(torch.ones(2, 3), mine), f(torch.ones(2, 3), theirs))
        assert modes(mine) == modes(theirs)


def test_a_mode_that_depends_on_the_path():
    mine, theirs = nested(), nested()

    def make(model):
        def f(x):
            if x.sum() > 0:
                model.train()
            else:
                model.eval()
            return model(x)

        return f

    static, eager = to_static(make(mine)), make(theirs)
    for sign in (1, -1, -1, 1):
        x = sign * (torch.arange(6.0).view(2, 3) + 1)
        torch.testing.assert_close(static(x), eager(x))
        assert modes(mine) == modes(theirs)
        for a, b in zip(mine.state_dict().values(), theirs.state_dict().values()):
            torch.testing.assert_close(a, b)


def test_a_mode_that_a_loop_flips():
    model = torch.nn.Sequential(torch.nn.Dropout(1.0))

    def f(x):
        while x.sum() < 5:
            x = model(x) + 1
            model.train(not model.training)
        return x

    for x in (torch.zeros(3), X * 5, X):
        model.train()
        wanted, mode = f(x), modes(model)
        model.train()
        assert torch.equal(to_static(f)(x), wanted) and modes(model) == mode


def test_a_mode_that_is_no_bool_is_eagers_error():
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        to_static(lambda x: torch.nn.ReLU().train(1)(x))(X)


def test_evaluated_text_is_read_at_each_call():
    space = types.SimpleNamespace(n=2.0)
    globals().update(evaluated=space)

    def f(x):
        return x * eval("evaluated.n")

    static = to_static(f)
    static(X)
    space.n = 3.0
    with pytest.warns(RetraceWarning, match=r"because eval\(\) is called"):
        assert torch.equal(static(X), X * 3)


def keeps_random_state(x):
    with torch.random.fork_rng(devices=[]):
        return x * torch.rand(3)


def puts_back_random_state(x):
    state = torch.get_rng_state()
    result = x * torch.rand(3)
    torch.set_rng_state(state)
    return result


def seeds_in_a_class(x):
    class Seeded:
        def __enter__(self):
            torch.manual_seed(3)

        def __exit__(self, *error):
            pass

    with Seeded():
        return x * torch.rand(3)


SEEDS = {
    "manual_seed": lambda x: (torch.manual_seed(3), x * torch.rand(3))[1],
    "seed": lambda x: (torch.seed(), x * torch.rand(3))[1],
    "initial_seed": lambda x: x * (torch.initial_seed() % 7),
    "random.manual_seed": lambda x: (torch.random.manual_seed(3), x * torch.rand(3))[1],
    "by another name": lambda x, seed=torch.manual_seed: (seed(3), x * torch.rand(3))[1],
    "fork_rng": keeps_random_state, "set_rng_state": puts_back_random_state, "a context": seeds_in_a_class,
}  # fmt: skip


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("on_a_path", [False, True])
def test_seeding_is_refused(name, on_a_path):
    alone = not_to_static(SEEDS[name])

    def straight(x):
        return alone(x) + 1

    def branching(x):
        if x.sum() > 0:
            x = alone(x)
        return x + 1

    static = to_static(branching if on_a_path else straight)
    with pytest.raises(TraceError) as caught:
        static(X)
    assert caught.value.code == "D2S214"
    assert "not converted" in str(caught.value)
    assert isinstance(torch.random.default_generator, torch.Generator)


def test_seeding_outside_of_a_trace():
    """The same function is called as it is by a function that is left alone wherever no trace runs."""
    static = to_static(lambda x: SEEDS["manual_seed"](x), full_graph=False)
    torch.manual_seed(3)
    expected = X * torch.rand(3)
    with pytest.warns(dy2static.EagerWarning):
        assert torch.equal(static(X), expected)
    assert torch.equal(static(X), expected)


HOST_DRAWS = {
    "random": lambda x: x * random.random(),
    "random by another name": lambda x, draw=random.random: x * draw(),
    "shuffle": lambda x: x * [*random.sample([1.0, 2.0, 3.0, 4.0, 5.0], 3)][0],
    "numpy": lambda x: x * float(numpy.random.rand()),
    "numpy normal": lambda x: x * numpy.random.normal(),
}


class Draws(torch.nn.Module):
    def forward(self, x):
        return x * random.random()


class Drawing:
    @not_to_static
    def draw(self, x):
        return x * random.random()


@pytest.mark.parametrize("name", [*HOST_DRAWS, "module", "method"])
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_random_numbers_of_the_host_are_drawn_at_each_call(name):
    alone = {"module": not_to_static(Draws()), "method": Drawing().draw}.get(name) or not_to_static(HOST_DRAWS[name])

    def function(x):
        return alone(x) + 1

    static = to_static(function)
    results = []
    for one in (static, function):
        random.seed(5)
        numpy.random.seed(5)
        results.append([one(X) for _ in range(4)])
    assert all(map(torch.equal, *results))
    assert not torch.equal(results[0][0], results[0][1])


@pytest.mark.parametrize("name", HOST_DRAWS)
def test_random_numbers_of_the_host_on_a_path(name):
    alone = not_to_static(HOST_DRAWS[name])

    def function(x):
        if x.sum() > 0:
            x = alone(x)
        return x

    with pytest.raises(TraceError) as caught:
        to_static(function)(X)
    assert caught.value.code == "D2S277"


def test_drawing_is_no_seeding():
    alone = not_to_static(lambda x: x * torch.rand(3) + torch.nn.functional.dropout(x, 0.5))
    static = to_static(lambda x: alone(x))
    for seed in range(3):
        torch.manual_seed(seed)
        got = static(X)
        torch.manual_seed(seed)
        assert torch.equal(got, alone(X))
