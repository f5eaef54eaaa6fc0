"""Plain values among the arguments that change from call to call: a few Programs for all, and eager's results."""

from __future__ import annotations

import dataclasses
import math
import os
import threading
import warnings
from collections import OrderedDict, defaultdict, namedtuple

import pytest
import torch

import dy2static
from dy2static import subject, to_static
from tests.end_to_end.varying import MOST, X, alike, programs_for
from tests.oracle import difference

Pair = namedtuple("Pair", "x n")


@dataclasses.dataclass
class Settings:
    x: torch.Tensor
    lr: float = 0.1
    steps: int = 1


@dataclasses.dataclass(frozen=True)
class Fixed:
    lr: float
    steps: int
    name: str = ""


@dataclasses.dataclass
class Changed:
    lr: float
    steps: int

    def scaled(self, x):
        self.steps += 1
        return x * self.lr


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.seen = 0

    def forward(self, x, step, scale=1.0):
        self.seen = step
        return x * self.weight * scale + step

    def helper(self, x, step):
        return (x * self.weight).sum() * step, step


def use_as_operand(x, n):
    return x * n + n, n


def use_of_operators(x, n):
    return (x + n // 3 + n % 5, n * 2, n**2, -n, abs(n), n / 4, divmod(n, 3), n == 4, n < 3, min(n, 5), max(n, 2),
            bool(n))  # fmt: skip


def use_of_bits(x, n):
    return x, n << 1, n >> 1, n & 3, n | 4, n ^ 5, ~n


def use_as_size(x, n):
    return torch.zeros(n, 3).sum(0) + x, x.new_ones(n), x.expand(n, 2, 3)


def use_as_index(x, n):
    return x[:, n % 3], x[n % 2], x[0][: n % 4]


def use_as_bound(x, n):
    for k in range(n):
        x = x * 0.5 + k
    return x


def use_as_bound_of_while(x, n):
    k = 0
    while k < n:
        x = x + k
        k += 1
    return x, k


def use_as_condition(x, n):
    if n % 10 == 0:
        return x * 2, "tenth"
    return x, "other"


def use_as_condition_that_sets(x, n):
    scale, name = 1.0, None
    if n > 2:
        scale, name = 0.5, "late"
    return x * scale, scale, name


def use_as_truth(x, n):
    return x * 2 if n else x - 1


def use_in_text(x, n):
    return x, f"step {n:>3}", "%d of ten" % n, str(n), repr(n), "{} {}".format(n, x.dim())


def use_as_key(x, n):
    return {n: x, ...: n}


def use_of_a_table(x, n):
    table = {0: 1.0, 1: 2.0, 2: 3.0}
    return x * table.get(n, 9.0)


def use_of_a_list(x, n):
    return x * [1.0, 2.0, 3.0][n % 3]


def use_in_containers(x, n):
    kept = [n, (n, x)]
    kept.append(n + 1)
    return kept, {"n": n}


def use_of_its_type(x, n):
    return x * 2 if isinstance(n, int) else x * 3, type(n).__name__, type(n) is float


def use_of_math(x, n):
    return x * math.sqrt(n), math.floor(n / 2), float(n), int(n), round(n / 3, 1), math.exp(-n)


def use_of_torch(x, n):
    return torch.full((2,), n), torch.tensor(n), torch.arange(n), torch.as_tensor([n, 1])


def use_as_dimension(x, n):
    return x.sum(n % 2), x.transpose(0, n % 2), x.roll(n, 1)


def use_as_exponent(x, n):
    return x**n, 2**n, x.clamp(max=n), torch.pow(x, n)


def use_of_optional(x, n):
    return x if n is None else x + n


def use_that_raises(x, n):
    if n > 3:
        raise ValueError(f"{n} is too large")
    return x * n


def use_out_of_range(x, n):
    return x[0][n]


def use_that_catches(x, n):
    try:
        return x * [1.0, 2.0][n]
    except IndexError:
        return x


def use_that_writes(x, n):
    y = x.clone()
    y[n % 2] += n
    y.mul_(n)
    return y


def use_as_chunks(x, n):
    return x.view(-1).split(n + 1)


def use_as_module(x, n):
    made = torch.nn.Flatten(n % 2)
    return made(x)


def use_in_other_functions(x, n):
    return use_as_operand(x, n + 1), sorted([3, n, 1]), sum([n, 2]), list(range(n))


def use_of_dropout(x, n):
    return torch.nn.functional.dropout(x, n / 100, training=False), torch.nn.functional.pad(x, (n, 0))


INTS = [use_as_operand, use_of_operators, use_of_bits, use_as_size, use_as_index, use_as_bound, use_as_bound_of_while,
        use_as_condition, use_as_condition_that_sets, use_as_truth, use_in_text, use_of_a_list, use_in_containers,
        use_of_its_type, use_of_math, use_as_exponent, use_of_optional, use_that_raises, use_that_writes,
        use_as_dimension]  # fmt: skip
AS_CONSTANTS = [use_as_key, use_of_torch, use_that_catches, use_as_chunks, use_as_module, use_in_other_functions,
                use_out_of_range, use_of_dropout, use_of_a_table]  # fmt: skip
"""Uses of which some make a Program for each value: results are eager's all the same."""
FLOATS = [use_as_operand, use_as_condition, use_as_truth, use_in_containers, use_of_its_type, use_that_raises,
          use_of_optional]  # fmt: skip


@pytest.mark.parametrize("f", INTS, ids=lambda f: f.__name__)
def test_an_int(f):
    programs_for(f, [((X, n), {}) for n in range(12)])


@pytest.mark.parametrize("f", AS_CONSTANTS, ids=lambda f: f.__name__)
def test_an_int_that_may_be_needed_as_a_constant(f):
    programs_for(f, [((X, n), {}) for n in range(7)], most=8)


@pytest.mark.parametrize("f", FLOATS, ids=lambda f: f.__name__)
def test_a_float(f):
    values = [0.1, 1.5, -0.0, 0.0, math.inf, -math.inf, math.nan, 1e300, 5e-324, 3.0, 10.0]
    programs_for(f, [((X, n), {}) for n in values])


def test_a_step_counter_and_a_temperature():
    programs_for(lambda x, step, t: (x * step / t, step, t), [((X, k, 1.0 + k * 0.1), {}) for k in range(30)])


def test_numbers_in_containers():
    def f(x, batch, pair, *rest, **options):
        return (x * batch["scale"] + batch["inner"][1] + pair.n, batch, pair.n, rest[0] + 1, options["lr"] * 2,
                options["deep"]["a"], batch["inner"])  # fmt: skip

    def calls():
        for k in range(12):
            batch = {"scale": k + 0.5, "inner": [X, k]}
            yield (X, batch, Pair(X, k), k * 2, X), {"lr": 0.1 * k, "deep": OrderedDict(a=k, b=X)}

    programs_for(f, calls())


def test_containers_stay_the_callers():
    def f(x, numbers, table):
        numbers.append(x)
        table["last"] = numbers[0]
        return numbers, x * table["n"]

    static = to_static(f)
    for k in range(8):
        numbers, table = [k, 2], defaultdict(int, n=k)
        found, y = static(X, numbers, table)
        assert found is numbers and numbers[0] == k and type(numbers[0]) is int and numbers[2] is X
        assert table == {"n": k, "last": k} and type(table["last"]) is int and torch.equal(y, X * k)
    assert len(static.programs) <= MOST


def test_a_dataclass():
    def f(s):
        s.steps = s.steps + 1
        return s.x * s.lr, s.steps, s

    static = to_static(f)
    for k in range(9):
        settings = Settings(X, 0.5 * k, k)
        y, steps, same = static(settings)
        assert same is settings and settings.steps == steps == k + 1 and type(steps) is int
        assert torch.equal(y, X * (0.5 * k))
    assert len(static.programs) <= MOST


def test_dataclasses_of_numbers_alone():
    def f(x, fixed):
        return x * fixed.lr + fixed.steps, fixed.steps, fixed.lr

    programs_for(f, [((X, Fixed(k / 2, k, f"n{k}")), {}) for k in range(12)])

    def g(x, settings):
        return settings.scaled(x), settings, {"inner": settings}["inner"] is settings

    static = to_static(g)
    for k in range(9):
        one = Changed(k / 2, k)
        y, same, itself = static(X, one)
        assert torch.equal(y, X * (k / 2)) and same is one and itself is True
        assert one.steps == k + 1 and type(one.steps) is int
        y, same, itself = static(X, one)
        assert torch.equal(y, X * (k / 2)) and same is one and one.steps == k + 2
    assert len(static.programs) <= 5  # two for each of the first two objects


def test_one_dataclass_that_changes():
    one = Changed(0.5, 1)
    static = to_static(lambda x, s: x * s.lr + s.steps)
    for k in range(9):
        one.lr, one.steps = k / 2, k
        assert torch.equal(static(X, one), X * (k / 2) + k)
    assert len(static.programs) <= MOST


HELD = Changed(0.0, 0)


def test_a_dataclass_that_is_known_elsewhere():
    static = to_static(lambda x, s: (x * s.lr, s is HELD))
    for k in range(8):
        one = HELD if k % 3 == 2 else Changed(0.0, 0)
        one.lr = k / 2
        y, same = static(X, one)
        assert torch.equal(y, X * (k / 2)) and same is (one is HELD)


def test_keywords_and_defaults():
    def f(x, n=1, *, scale=2.0):
        return x * scale + n, n, scale

    static = to_static(f)
    programs_for(f, [((X,), {}), ((X,), {"n": 1}), ((X, 1), {"scale": 2.0})], most=1, static=static)
    programs_for(f, [((X,), {"n": k}) for k in range(8)], static=static)
    programs_for(f, [((X,), {"scale": k / 2}) for k in range(8)], most=6, static=static)
    programs_for(f, [((X, k), {"scale": k / 3}) for k in range(20)], most=6, static=static)


def test_an_int_and_a_float_are_two_kinds():
    f = use_of_its_type
    static = programs_for(f, [((X, k), {}) for k in range(8)])
    programs_for(f, [((X, float(k)), {}) for k in range(8)], most=2 * MOST, static=static)
    programs_for(f, [((X, True), {}), ((X, False), {}), ((X, None), {})], most=2 * MOST + 3, static=static)
    programs_for(f, [((X, 2**70 + k), {}) for k in range(3)], most=2 * MOST + 6, static=static)


def test_two_values_have_programs_of_their_own():
    static = programs_for(use_as_operand, [((X, k % 2), {}) for k in range(10)], most=2)
    assert all(len(program.inputs) == 1 for program in static.programs)


def test_what_is_needed_as_a_constant_is_tried_once(monkeypatch):
    traced = []

    def trace(*args, **kwargs):
        traced.append(args)
        return real(*args, **kwargs)

    real = subject.trace
    monkeypatch.setattr(subject, "trace", trace)
    static = programs_for(use_as_key, [((X, k), {}) for k in range(12)], most=12)
    assert len(traced) == 13
    programs_for(use_as_key, [((X, k), {}) for k in range(12)], most=12, static=static)
    assert len(traced) == 13


def test_an_error_of_the_callers_makes_no_constant():
    def f(x, y, n):
        return x @ y * n, n

    static = to_static(f)
    for k in range(4):
        with pytest.raises(RuntimeError):
            static(X, X, k)
    programs_for(f, [((X, X.T, k), {}) for k in range(12)], static=static)


def test_a_part_that_is_a_constant_leaves_the_others_open():
    def f(x, n, t):
        return {n: x * t}

    programs_for(f, [((X, k % 4, k / 4), {}) for k in range(24)], most=6)


def test_retraces_name_the_argument():
    static = to_static(use_as_key)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for k in range(20):
            static(X, k)
    assert [str(one.message) for one in found if "argument 'n' is 16, and was 15" in str(one.message)]


@pytest.mark.parametrize("how", ["program", "eager"])
def test_gradients(how):
    def f(x, w, n, t):
        if n % 2 == 0:
            y = (x * w * t).sum() + n
        else:
            y = (x * w).sum() * n / t
        for _ in range(n):
            y = y * 0.5 + w.sum()
        return y

    static = to_static(f, autograd=how) if how == "eager" else to_static(f)
    for k in range(9):
        grads = []
        for g in (f, static):
            x, w = X.clone().requires_grad_(), torch.ones(3, requires_grad=True)
            y = g(x, w, k, 1.0 + k / 7)
            y.backward()
            grads.append((y.detach(), x.grad, w.grad))
        for a, b in zip(*grads):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=0)
    assert len(static.programs) <= MOST


def test_modules():
    eager, static = Layer(), to_static(Layer())
    for mode in (True, False):
        eager.train(mode), static.train(mode)
        for k in range(12):
            a, b = eager(X, k, scale=k / 4), static(X, k, scale=k / 4)
            assert alike(a, b) and static.seen == eager.seen == k and type(static.seen) is int
            a.sum().backward(), b.sum().backward()
            assert torch.equal(eager.weight.grad, static.weight.grad)
    assert len(static.forward.programs) <= 2 * MOST


def test_methods():
    layer = Layer()
    static = to_static(layer.helper)
    programs_for(layer.helper, [((X, k), {}) for k in range(12)], static=static)


def test_with_and_without_gradients():
    def f(x, n):
        return x * n, torch.is_grad_enabled(), n

    static = to_static(f)
    for k in range(12):
        with torch.set_grad_enabled(k % 2 == 0):
            programs_for(f, [((X, k), {})], most=2 * MOST, static=static)


def test_sizes_that_change_as_well():
    def f(x, n):
        return x[:n] * n, x.shape[0] + n

    programs_for(f, [((torch.randn(3 + k % 5, 2), k), {}) for k in range(20)], most=7)


def test_threads():
    static = to_static(use_as_condition_that_sets)
    failed = []

    def work(start):
        for k in range(start, start + 40):
            scale = 0.5 if k > 2 else 1.0
            y, found, _ = static(X, k)
            if found != scale or difference(y, X * scale):
                failed.append(k)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 7, 100, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(static.programs) <= MOST


def test_piece_by_piece():
    def f(x, n):
        y = use_as_condition(x, n)[0]
        return y * n, n

    programs_for(f, [((X, k), {}) for k in range(15)], static=to_static(f, full_graph=False))

    def g(x, n):
        return {n: x * len(os.urandom(2))}, n

    static = to_static(g, full_graph=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dy2static.EagerWarning)
        programs_for(g, [((X, k), {}) for k in range(15)], static=static)


def test_under_vmap():
    def f(x, n):
        return x * n + n

    static = to_static(f)
    for k in range(6):
        assert torch.equal(torch.vmap(lambda x, k=k: static(x, k))(X), X * k + k)
        assert alike(static(X[0], k), f(X[0], k))


@pytest.mark.parametrize("backend", ["c", "auto"])
def test_backends(backend):
    def f(x, n, t):
        y = x * n
        for k in range(n):
            y = y + k * t
        return y if n % 3 else -y, n

    programs_for(f, [((X, k, k / 4), {}) for k in range(12)], static=to_static(f, backend=backend))


def test_what_calls_had_is_saved(tmp_path):
    def f(x, n):
        return x * n + n, n

    static = programs_for(f, [((X, k), {}) for k in range(6)])
    dy2static.save(static, tmp_path / "f.d2s")
    loaded = dy2static.load(tmp_path / "f.d2s")
    for k in range(6):
        assert alike(f(X, k), loaded(X, k))
    assert static.concrete_program(X, 3).program.inputs[0].name == "x"


def test_an_input_spec_stays_what_it_says():
    static = to_static(use_as_operand, input_spec=[dy2static.InputSpec([None, 3]), 3])
    assert alike(static(X, 3), use_as_operand(X, 3))
    with pytest.raises(dy2static.SignatureError, match="D2S306"):
        static(X, 4)


# -- texts


def test_a_text_that_nothing_reads():
    def f(x, options, name="a"):
        return x * options["k"]

    programs_for(f, [((X, {"k": 2.0, "mode": f"m{k}"}), {"name": f"n{k}"}) for k in range(12)])


@pytest.mark.parametrize("use", [
    lambda x, s: x * 2 if s == "m3" else x, lambda x, s: x if s != "none" else -x, lambda x, s: x * len(s),
    lambda x, s: {s: x}, lambda x, s: (x, s), lambda x, s: (x, f"<{s}>"), lambda x, s: x * (s is WORDS[3]),
    lambda x, s: x * (s in WORDS), lambda x, s: x * {"m3": 2.0}.get(s, 1.0), lambda x, s: x * hash(s),
    lambda x, s: [c for c in s] and x, lambda x, s: x * s.startswith("m3"), lambda x, s: (x, str(s)),
    lambda x, s: x * 2 if isinstance(s, str) else x, lambda x, s: getattr(x, s.replace(s, "abs"))(),
    lambda x, s: (x, type(s)), lambda x, s: (x, lambda: s)[0] * 2, lambda x, s: x * 2 if s else x,
    lambda x, s: x * 2 if s is None else x, lambda x, s: (x, lambda: s)[1]() + "b",
])  # fmt: skip
def test_a_text_that_is_read(use):
    programs_for(use, [((X, s), {}) for s in WORDS], most=len(WORDS))


WORDS = [f"m{k}" for k in range(6)]


def test_texts_of_a_module():
    class Model(torch.nn.Module):
        def forward(self, x, mode):
            self.mode = mode
            return x * 2

    static = to_static(Model())
    for word in WORDS:
        assert torch.equal(static(X, word), X * 2) and static.mode == word


def use_that_catches_what_torch_raises(x, n):
    try:
        return x.narrow(1, 0, n), n
    except RuntimeError:
        return x, -1


def test_a_program_that_raises_where_eager_does_not_is_given_up():
    numbers = [0, 1, 2, 3, 4, 5, 2, 4]
    static = programs_for(use_that_catches_what_torch_raises, [((X, n), {}) for n in numbers], most=8)
    (found,) = {len(program.inputs) for program in static.programs}
    assert found == 1  # the Program whose input was the number raised for 4, where the handler is passed over


def test_drawn_numbers_of_a_run_that_is_repeated():
    def f(x, n):
        y = x + torch.rand(3)
        try:
            return y.narrow(1, 0, n) + torch.rand(1)
        except RuntimeError:
            return y

    static = to_static(f)
    for n in (0, 1, 2, 3, 4, 2):
        found = []
        for g in (f, static):
            torch.manual_seed(n)
            found.append((g(X, n), torch.get_rng_state()))
        assert alike(*found), n


@pytest.mark.parametrize("full_graph", [True, False])
def test_what_the_caller_did_wrong_stays_his(full_graph):
    static = to_static(use_that_raises, full_graph=full_graph)
    programs_for(use_that_raises, [((X, n), {}) for n in range(30)], most=30, static=static)
    assert any(len(program.inputs) == 2 for program in static.programs)  # it is believed, and stays


def test_a_long_list_of_numbers():
    def f(x, numbers, n):
        return x * sum(numbers) + n

    programs_for(f, [((X, [k] * 50, k), {}) for k in range(6)])
    programs_for(f, [((X, [k] * 100, 1), {}) for k in range(6)], most=6)


def test_calls_found_quickly_are_the_same():
    def f(x, n, name, t=0.5):
        return x * n + t, n

    static = to_static(f)
    calls = [((X, k, f"s{k}"), {}) for k in range(40)] + [((X, k, "s", k / 2), {}) for k in range(40)]
    programs_for(f, calls, most=6, static=static)
    assert static._dispatch.shortcuts and any(one.found.open for one in static._dispatch.shortcuts)
    programs_for(f, [((X, True, "s"), {}), ((X, 2**70, "s"), {}), ((X, 1.5, "s"), {}), ((X, 41, None), {})], most=10,
                 static=static)  # fmt: skip
    w = torch.ones(3, requires_grad=True)
    g = to_static(lambda x, n: (x * w * n).sum())
    for k in range(40):
        w.grad = None
        g(X, k).backward()
        assert torch.equal(w.grad, (X * k).sum(0))
    assert len(g.programs) <= MOST
