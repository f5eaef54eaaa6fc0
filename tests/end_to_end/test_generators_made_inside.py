"""Random generators that a converted function makes (``random.Random(3)``): each run makes them, and draws what eager
draws."""

from __future__ import annotations

import copy
import pickle
import random
import threading

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, check_saved

CALLS = [[torch.tensor([1.0, 2.0, 3.0])], [torch.tensor([-1.0, 2.0, -3.5])], [torch.ones(4)]]
OWN = random.Random(5)
OWN_GENERATOR = np.random.default_rng(2)


def with_a_seed(x):
    rng = random.Random(4)
    a = rng.random()
    if x.sum() > 0:
        a = a + rng.random()
    order = [1, 2, 3]
    rng.shuffle(order)
    kind = type(rng) is random.Random
    return x * a, rng.randint(0, 9), rng.choice(["a", "b"]), order, isinstance(rng, random.Random), kind


def with_a_seed_of_the_run(x):
    rng = random.Random(int(x.sum() * 100))
    total = 0.0
    while total < 2:
        total = total + rng.random()
    return x * total, total


def one_of_two(x):
    rng = random.Random(1) if x.sum() > 0 else random.Random(x=2)
    return x * rng.random(), rng.random()


def of_numpy(x):
    rng, state = np.random.default_rng(3), np.random.RandomState(seed=int(x.numel()))
    return x * torch.from_numpy(rng.normal(size=x.shape[0])), state.rand(), rng.integers(5), state.permutation(3)


def of_numpy_with_a_seed_of_the_run(x):
    rng = np.random.default_rng(int(abs(x.sum())))
    if x.sum() > 0:
        rng.random()
    return x * float(rng.random())


def without_a_seed(x):
    return 0 <= random.Random().random() < 1, 0 <= float(np.random.default_rng().random()) < 1, x


def one_for_each(x):
    return [random.Random(i).random() for i in range(3)], x


def seeded_again(x):
    rng = random.Random(3)
    a = rng.random()
    rng.seed(3)
    return x, a == rng.random()


def in_a_helper(x):
    def noisy(rng, v):
        return v + rng.gauss(0, 1) * (2 if v.sum() > 0 else 1)

    rng = random.Random(0)
    return noisy(rng, noisy(rng, x))


def with_a_bad_seed(x):
    try:
        np.random.default_rng(-1)
    except ValueError as error:
        return str(error), x
    return x


def copied(x):
    return x * copy.copy(OWN).random()


def copied_deeply(x):
    return x * float(copy.deepcopy(OWN_GENERATOR).random())


def pickled(x):
    return x * pickle.loads(pickle.dumps(OWN)).random()


@pytest.mark.parametrize("function", [
    with_a_seed, with_a_seed_of_the_run, one_of_two, of_numpy, of_numpy_with_a_seed_of_the_run, without_a_seed,
    one_for_each, seeded_again, in_a_helper, with_a_bad_seed, copied, copied_deeply, pickled,
], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_draws_are_eagers(function, tmp_path):
    check(function, *CALLS)
    if function not in (copied, copied_deeply, pickled):  # of the caller's
        same = CALLS[:2]  # with arrays whose sizes are known
        check_saved(function, check(function, *same), tmp_path / "f", *same, paths=("program",))


def test_draws_in_c():
    check(with_a_seed_of_the_run, *CALLS, static=to_static(with_a_seed_of_the_run, backend="c"))


def test_each_thread_makes_its_own():
    static = to_static(with_a_seed_of_the_run)
    expected = [with_a_seed_of_the_run(*call)[1] for call in CALLS[:2]]
    found = {}

    def run(index):
        found[index] = [static(*CALLS[index % 2])[1] for _ in range(20)]

    run(0), run(1)
    threads = [threading.Thread(target=run, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {index: [expected[index % 2]] * 20 for index in range(4)}


class _Holder:
    rng = None


def _returned(x):
    return random.Random(3), x


def _its_method_returned(x):
    return random.Random(3).random, x


def _stored(x):
    _Holder.rng = random.Random(3)
    return x * _Holder.rng.random()


@pytest.mark.parametrize("function", [_returned, _its_method_returned, _stored], ids=lambda f: f.__name__)
def test_one_that_leaves_is_refused(function):
    with pytest.raises(TraceError, match="D2S228"):
        to_static(function)(*CALLS[0])


def _in_a_loop_of_the_run(x):
    n = 0
    while x.norm() > 0.5:
        x = x * 0.5
        n = n + random.Random(3).randint(1, 3)
    return x, n


def _copied_after_a_draw(x):
    rng = random.Random(3)
    a = rng.random()
    return x * a, copy.copy(rng).random()


def _drawn_by_other_code(x):
    return x * random.Random.random(random.Random(3))


def _asked_for_its_state(x):
    return x, random.Random(3).getstate()


@pytest.mark.parametrize("function", [
    _in_a_loop_of_the_run, _copied_after_a_draw, _drawn_by_other_code, _asked_for_its_state,
], ids=lambda f: f.__name__)
def test_what_no_run_could_do_is_refused(function):
    with pytest.raises(TraceError, match="D2S214") as caught:
        to_static(function)(*CALLS[0])
    assert caught.value.location.file == __file__
