"""Random numbers of Python's and NumPy's, seeds and clocks in converted functions: what each run draws, where the
streams are afterwards, in branches and loops, with gradients, loaded, in C.
"""

import collections
import functools
import random
import secrets
import time

import numpy as np
import pytest
import torch

import dy2static
import runtime
from dy2static import InputSpec, loop_options, not_to_static, to_static
from runtime.errors import ProgramError, StorageError, TraceError
from runtime.ir.parser import parse_program
from runtime.ir.verify import verify
from runtime.ops import host
from tests.oracle import same

X = torch.tensor([1.0, 2.0, 3.0])
OWN = random.Random(5)
OWN_STATE = np.random.RandomState(3)
OWN_GENERATOR = np.random.default_rng(2)


def reset():
    """All streams, at their beginning."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    OWN.seed(1)
    OWN_STATE.seed(1)
    OWN_GENERATOR.bit_generator.state = np.random.default_rng(7).bit_generator.state


def streams():
    """Where all streams are."""
    shared, own = np.random.get_state(), OWN_STATE.get_state()
    return (random.getstate(), OWN.getstate(), shared[1].tobytes(), shared[2:], own[1].tobytes(), own[2:],
            OWN_GENERATOR.bit_generator.state, torch.get_rng_state().tolist())


def outcome(function, given, times=3):
    """What some calls give or raise, and where they leave the streams."""
    reset()
    found = []
    for _ in range(times):
        try:
            found.append(function(*given()))
        except Exception as error:
            found.append((type(error), str(error).splitlines()[0]))
    return found, streams()


def check(function, given=lambda: (X.clone(),), **options):
    """Hold a converted function against the function."""
    expected = outcome(function, given)
    static = to_static(function, **options)
    same(outcome(static, given), expected)
    return static


# -- the whole table, generated

ARGUMENTS = {
    "uniform": (2, 5.5), "triangular": (0.0, 4.0, 1.5), "betavariate": (1.5, 2.5), "expovariate": (1.5,),
    "gammavariate": (2.0, 3.0), "gauss": (1.0, 2.0), "lognormvariate": (0.0, 1.0), "normalvariate": (1.0, 2.0),
    "paretovariate": (3.0,), "vonmisesvariate": (1.0, 2.0), "weibullvariate": (1.0, 2.0), "binomialvariate": (10, 0.4),
    "getrandbits": (70,), "randint": (1, 6), "randrange": (0, 20, 3), "choice": ([3, 5, 7],),
    "choices": ([1.5, 2.5], [3, 1]),
    "sample": ([3, 5, 7], 2), "seed": (3,), "beta": (1.5, 2.5), "chisquare": (3,), "f": (3, 4), "gamma": (2.0,),
    "noncentral_chisquare": (3, 1.0), "noncentral_f": (3, 4, 1.0), "pareto": (3.0,), "power": (3.0,),
    "standard_gamma": (2.0,), "standard_t": (4,), "vonmises": (1.0, 2.0), "wald": (1.0, 2.0), "weibull": (2.0,),
    "binomial": (10, 0.4), "geometric": (0.3,), "hypergeometric": (5, 6, 4), "logseries": (0.4,),
    "negative_binomial": (3, 0.4), "zipf": (2.5,), "randbelow": (9,), "token_hex": (4,),
    "token_urlsafe": (4,), "manual_seed": (3,), "dirichlet": ([1.0, 2.0],), "integers": (5,),
    "multinomial": (5, [0.2, 0.8]), "multivariate_hypergeometric": ([3, 4], 2), "permutation": (4,),
    "multivariate_normal": ([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]), "permuted": ([1, 2, 3],), "random_integers": (5,),
}  # fmt: skip
"""What functions that need arguments are given."""
OWNERS = {"random": random, "numpy": np.random, "time": time, "secrets": secrets, "torch": torch,
          "generator": OWN_GENERATOR, "system": random.SystemRandom()}  # fmt: skip
NAMES = [name for name in sorted(host.FUNCTIONS) if not name.endswith((".shuffle", ".new"))]
SAME_EACH_TIME = ("random", "numpy", "generator")
"""Families that a seed makes repeatable."""


def arguments_of(name):
    _, family, short = name.split(".")
    if short == "triangular" and family != "random":
        return (0.0, 1.5, 4.0)
    if name == "host.torch.seed":
        return ()
    return ARGUMENTS.get(short, ())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_function_of_the_table(name):
    _, family, short = name.split(".")
    owner, given = OWNERS[family], arguments_of(name)

    def once(x):
        return getattr(owner, short)(*given), x

    if family in SAME_EACH_TIME or name in ("host.torch.initial_seed", "host.torch.manual_seed"):
        static = check(once)
    else:
        static = to_static(once)
        assert type(once(X)[0]) is type(static(X)[0])
    (program,) = static.programs
    assert [op.name for op in program.block.walk()] == [name]
    if family != "generator":  # an object of the caller's has no text
        verify(program)
        assert str(parse_program(str(program))) == str(program)


def test_the_table_is_whole():
    """What Python's and NumPy's generators have is in the table, or is known not to be."""
    pythons = {name for name in dir(random.Random) if not name.startswith("_")} - {"VERSION"}
    known = {name.split(".")[2] for name in host.FUNCTIONS if name.startswith("host.random.")}
    assert pythons - known == {"getstate", "setstate", "randbytes"}
    numpys = {name for name in dir(np.random.RandomState) if not name.startswith("_")}
    known = {name.split(".")[2] for name in host.FUNCTIONS if name.startswith("host.numpy.")}
    assert numpys - known == {"bytes", "get_state", "set_state", "tomaxint"}
    print(f"{len(host.FUNCTIONS)} functions, {len(pythons)} of random.Random, {len(numpys)} of RandomState looked at")


# -- values, streams, paths


def in_a_branch(x):
    if x.sum() > 5:
        y = x * random.random()
    else:
        y = x + np.random.rand()
    return y, random.random()


def a_branch_by_a_draw(x):
    return x * 2 if random.random() < 0.5 else x * random.uniform(1, 2)


def in_a_loop(x):
    s = 0.0
    while x.sum() < 50:
        s = s + random.random()
        x = x + s + np.random.normal(2.0, 0.5)
    return x, s


def how_many_iterations(x):
    for _ in range(random.randint(1, 4)):
        x = x * 2
    return x


def in_a_comprehension(x):
    return x * sum([random.random() for _ in range(4)])


def by_a_number_of_the_run(x):
    n = random.randint(0, int(x.sum()))
    return n, random.uniform(0, n), random.randrange(n + 1), x * n


def from_keywords(x):
    return random.randint(b=10, a=1), random.gauss(mu=1.0, sigma=2.0), np.random.normal(loc=1.0, scale=3.0), x


def from_own_generators(x):
    return x * OWN.random() + OWN.randint(1, 6), OWN_STATE.rand(), OWN_STATE.randint(5), OWN_GENERATOR.normal()


def seeded(x):
    random.seed(4)
    np.random.seed(5)
    torch.manual_seed(6)
    y = x * random.random() + np.random.rand() + torch.rand(3)
    torch.manual_seed(seed=7)
    return y + torch.rand(3), torch.initial_seed()


def seeded_on_a_path(x):
    if x.sum() > 5:
        torch.manual_seed(3)
        random.seed(9)
    return x + torch.rand(3), random.random()


def shuffled_numbers(x):
    places = list(range(3))
    random.shuffle(places)
    return x[places], places


def shuffled_tensors(x):
    items = [x, x * 2, x * 3]
    random.shuffle(items)
    return items, items[0] - items[1]


def chosen(x):
    return random.choice([1.0, 2.0]), random.choice([x, x * 2]), random.choice(x), random.choice((x, 2, "a")), \
        random.choice(range(3, 30, 4)), random.choice("abc")


def chosen_key(x):
    table = {"a": x, "b": x * 2}
    return table[random.choice(list(table))], table[random.choice(["a", "b"])]


def chosen_mode(x):
    mode = random.choice(["double", "triple"])
    return x * 2 if mode == "double" else x * 3


def sampled(x):
    return x[random.sample(range(3), 2)], random.sample([x, x + 1, x + 2], 2), random.sample([1, 2, 3], 3), \
        random.choices([x, x * 2], weights=[1, 3], k=3), random.choices("ab", k=2), random.choices([1, 2], [1, 5])


def from_a_list_that_grew(x):
    items = []
    for i in range(int(x.sum())):
        items.append(x * i)
    return random.choice(items)


def wrong_numbers(x):
    return x * random.randint(3, 1)


def wrong_on_another_path(x):
    if x.sum() > 100:
        random.randint(3, 1)
    return x * random.random()


def nothing_to_choose_from(x):
    return x * random.random(), random.choice([])


def nothing_left_to_choose_from(x):
    n = int(x.sum() * 0)
    return x * random.random(), random.choice([x, x + 1][:n])


def too_many(x):
    return random.sample([1, 2, 3], 4)


def wrong_numbers_of_the_run(x):
    return random.randint(int(x.sum()), 1)


def wrong_numbers_that_are_caught(x):
    try:
        n = random.randint(3, 1)
    except ValueError:
        n = 2
    return x * n


def through_other_functions(x):
    found = list(map(random.uniform, [0, 1], [2, 3]))
    found += sorted([3, 1, 2], key=lambda _: random.random())
    found.append(functools.partial(random.uniform, 0, 1)())
    found.append(getattr(random, "random")())
    return x * max(random.random() for _ in range(3)), found


def until_one_fits(x):
    while True:
        a, b = random.uniform(-1, 1), random.uniform(-1, 1)
        if a * a + b * b < 1:
            return x * a + b


def wrong_kind(x):
    return random.uniform("a", 1)


def a_setting_of_the_systems(x):
    return 0 <= random.SystemRandom().random() < 1, secrets.randbelow(1), x


def unused(x):
    random.random()
    np.random.rand()
    return x * 2


FUNCTIONS = [
    in_a_branch, a_branch_by_a_draw, in_a_loop, how_many_iterations, in_a_comprehension, by_a_number_of_the_run,
    from_keywords, from_own_generators, seeded, seeded_on_a_path, shuffled_numbers, shuffled_tensors, chosen,
    chosen_key, chosen_mode, sampled, from_a_list_that_grew, wrong_numbers, wrong_on_another_path,
    nothing_to_choose_from, nothing_left_to_choose_from, too_many, wrong_numbers_of_the_run, wrong_kind,
    wrong_numbers_that_are_caught, through_other_functions, until_one_fits, a_setting_of_the_systems, unused,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("given", [lambda: (X.clone(),), lambda: (X * 0.5,)], ids=["large", "small"])
def test_draws_are_eagers(function, given):
    static = check(function, given)
    if "wrong" not in function.__name__:
        assert len(static.programs) <= 1


@pytest.mark.parametrize("function", [in_a_branch, in_a_loop, shuffled_tensors, seeded, sampled, how_many_iterations])
def test_draws_in_c(function):
    expected = outcome(function, lambda: (X.clone(),))
    static = to_static(function, backend="c")
    same(outcome(static, lambda: (X.clone(),)), expected)


SAVED = [in_a_branch, in_a_loop, how_many_iterations, by_a_number_of_the_run, seeded, chosen, chosen_mode, sampled,
         shuffled_numbers]  # fmt: skip


@pytest.mark.parametrize("function", SAVED)
@pytest.mark.parametrize("limits", [None, runtime.Limits()], ids=["", "limits"])
def test_a_loaded_file_draws(function, limits, tmp_path):
    expected = outcome(function, lambda: (X.clone(),))
    static = to_static(function)
    reset()
    before = streams()
    dy2static.save(static, tmp_path / "saved", input_spec=[InputSpec([3])])
    assert streams() == before
    loaded = runtime.load(tmp_path / "saved", limits=limits)
    same(outcome(loaded, lambda: (X.clone(),)), expected)


def test_a_generator_as_an_argument():
    def noisy(x, generator):
        return x * generator.random() + generator.randint(1, 6)

    check(noisy, lambda: (X, OWN))
    static = to_static(noisy)
    for seed in range(3):  # each its own stream
        assert torch.equal(static(X, random.Random(seed)), noisy(X, random.Random(seed)))


def test_clocks_are_read_by_each_run():
    def timed(x):
        start = time.perf_counter()
        y = x * 2
        return y, time.perf_counter() - start, time.time()

    static = to_static(timed)
    before = time.time()
    (_, took, first), (_, _, second) = static(X), static(X)
    assert before <= first <= second <= time.time() and took >= 0
    assert len(static.programs) == 1


# -- gradients


def gradient_function(x):
    y = x
    for _ in range(3):
        if random.random() < 0.7:
            y = y * y * random.uniform(1, 2)
    while y.sum() < 100:
        y = y * (1 + random.random())
    return y + np.random.rand()


def reseeds(x):
    y = torch.rand(3) * x * x
    torch.manual_seed(7)
    return y * torch.rand(3) * random.random()


def gradients_inside(x):
    (g,) = torch.autograd.grad((x**3).sum() * random.random(), x, create_graph=True)
    return (g * random.random()).sum()


@pytest.mark.parametrize("function", [gradient_function, reseeds, gradients_inside])
@pytest.mark.parametrize("twice", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("options", [{}, {"backend": "c"}, {"autograd": "eager"}], ids=["", "c", "eager"])
def test_gradients(function, twice, options):
    def gradients(function):
        reset()
        found = []
        for _ in range(2):
            x = X.clone().requires_grad_()
            y = function(x).sum()
            (g,) = torch.autograd.grad(y, x, create_graph=twice)
            found += [y.detach(), g.detach()]
            if twice:
                found += torch.autograd.grad(g.sum(), x)
        return found, streams()

    expected, after = gradients(function)
    found, where = gradients(to_static(function, **options))
    torch.testing.assert_close(found, expected)
    assert where == after


def test_rows_share_a_draw():
    def noisy(x):
        return x * random.random()

    expected = outcome(torch.func.vmap(noisy), lambda: (torch.ones(3, 2),))
    same(outcome(torch.func.vmap(to_static(noisy)), lambda: (torch.ones(3, 2),)), expected)


# -- refusals


def own_generator_saved(x):
    return x * OWN.random()


def test_a_generator_of_the_callers_is_not_saved(tmp_path):
    with pytest.raises(StorageError) as caught:
        dy2static.save(to_static(own_generator_saved), tmp_path / "saved", input_spec=[InputSpec([3])])
    assert caught.value.code == "D2S503" and caught.value.location is not None
    assert not list(tmp_path.iterdir())


def checkpointed(x):
    return torch.utils.checkpoint.checkpoint(lambda x: x * random.random(), x, use_reentrant=False)


def default_factory(x):
    table = collections.defaultdict(random.random)
    return x * table["a"]


@not_to_static
def alone(x):
    return x * random.random()


def drawn_alone_after_the_program(x):
    return random.random() + alone(x)


def loop_with_checkpoints(x):
    with loop_options(checkpoints=2):
        while x.sum() < 100:
            x = x * (1 + random.random())
    return x


def random_bytes(x):
    return random.randbytes(3), x


def state_kept(x):
    state = random.getstate()
    random.setstate(state)
    return x


@pytest.mark.parametrize("function", [
    checkpointed, default_factory, drawn_alone_after_the_program, loop_with_checkpoints, random_bytes, state_kept])
def test_refused(function):
    reset()
    before = streams()
    with pytest.raises(TraceError) as caught:
        to_static(function)(X)
    assert caught.value.code == "D2S214" and caught.value.location is not None
    assert streams() == before


HOSTILE = [
    'host.os.system("ls")', "host.random.getstate()", 'host.builtins.eval("1")', "host.generator.random()",
    'host.random.__class__("x")', "host.random.random(generator=3)", "host.random.uniform",
]  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE)
def test_a_program_names_no_other_function(line):
    with pytest.raises(ProgramError):
        verify(parse_program(f"program f(%x : f32[3]) {{\n  %0 : float = {line}\n  yield %0\n}}"))


def test_a_loaded_file_draws_no_more_than_its_limits(tmp_path):
    def large(x, n):
        return random.getrandbits(n.item()), x

    static = to_static(large)
    dy2static.save(static, tmp_path / "saved", input_spec=[InputSpec([3]), InputSpec([], "int64")])
    loaded = runtime.load(tmp_path / "saved", limits=runtime.Limits(max_bytes=1 << 20))
    assert loaded(X, torch.tensor(8))[0] < 256
    with pytest.raises(StorageError):
        loaded(X, torch.tensor(1 << 40))


class Counter:
    """A state that is written before something is raised."""

    def __init__(self):
        self.count = 0


COUNTER = Counter()


def python_before_a_raise(x):
    COUNTER.count += 1
    drawn = random.random() + OWN.random()
    if x.sum() > 7:
        raise ValueError("too large")
    return x * drawn + random.random()


def numpy_before_a_raise(x):
    COUNTER.count += 1
    drawn = float(np.random.rand()) + float(OWN_STATE.rand()) + OWN_GENERATOR.random()
    if x.sum() > 7:
        raise ValueError("too large")
    return x * drawn + np.random.rand()


def seed_before_a_raise(x):
    COUNTER.count += 1
    random.seed(3)
    np.random.seed(4)
    torch.manual_seed(5)
    if x.sum() > 7:
        raise ValueError("too large")
    return x * random.random() + torch.rand(3)


@pytest.mark.parametrize("function", [python_before_a_raise, numpy_before_a_raise, seed_before_a_raise])
def test_a_call_that_is_done_again_draws_the_same(function):
    """Where plain Python may take over it does what a Program that raises has not done: what it wrote before."""
    results = []
    for one in (function, to_static(function, full_graph=False)):
        COUNTER.count = 0
        given = iter((X.clone(), X + 1, X.clone(), X + 2, X.clone()))
        results.append((outcome(one, lambda: (next(given),), times=5), COUNTER.count))
    same(results[1], results[0])
