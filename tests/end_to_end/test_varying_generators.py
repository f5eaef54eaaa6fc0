"""Random generators among the arguments: one Program draws from whichever a call gives, as eager does."""

from __future__ import annotations

import threading

import pytest
import torch

import dy2static
from dy2static import to_static
from tests.end_to_end.varying import MOST, X, alike, outcome
from tests.oracle import difference


def seeded(k: int) -> torch.Generator:
    return torch.Generator().manual_seed(k)


OWN = seeded(9)


@dy2static.not_to_static
def drawn(g):
    return torch.rand(3, generator=g)


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = OWN

    def forward(self, x, g):
        return x + torch.rand(3, generator=self.generator) + torch.rand(3, generator=g)


def draw_on_a_path(x, g):
    y = x + torch.rand(3, generator=g)
    if x.sum() > 0:
        y = y.normal_(generator=g)
    return y, torch.randn(2, generator=g)


def draw_in_a_loop(x, g):
    while x.sum() < 20:
        x = x + torch.rand(3, generator=g) * torch.rand(3)
    return x


def draw_if_given(x, g):
    return x if g is None else x + torch.rand(3, generator=g)


def draw_twice(x, g):
    return torch.randperm(5, generator=g), torch.randint(3, (4,), generator=g), x.clone().uniform_(generator=g)


def draw_from_own_too(x, g):
    return x + torch.rand(3, generator=OWN) + torch.rand(3, generator=g)


def draw_if_own(x, g):
    return x + torch.rand(3, generator=g), g is OWN


def draw_in_code_left_alone(x, g):
    return x + drawn(g)


def draw_after_questions(x, g):
    return x + torch.rand(3, generator=g), g in (OWN,), {g: 1}[g]


def draw_and_raise(x, g):
    y = torch.rand(3, generator=g)
    if y.sum() > 1.5:
        raise ValueError("too much")
    return y


ONE_PROGRAM = [draw_on_a_path, draw_in_a_loop, draw_twice, draw_if_given, draw_and_raise]
USES_OF_GENERATORS = [*ONE_PROGRAM, draw_from_own_too, draw_if_own, draw_in_code_left_alone, draw_after_questions,
                      Holder()]  # fmt: skip


@pytest.mark.parametrize("f", USES_OF_GENERATORS, ids=lambda f: getattr(f, "__name__", "module"))
def test_a_generator(f):
    static = to_static(type(f)() if isinstance(f, torch.nn.Module) else f)
    programs = (lambda: static.forward.programs) if isinstance(f, torch.nn.Module) else (lambda: static.programs)
    x = torch.tensor([1.0, 2.0, 3.0])
    for k in range(6):
        found = []
        for g in (f, static):
            torch.manual_seed(k), OWN.manual_seed(50)
            own = OWN if k % 3 == 2 else seeded(k)
            drawn = [outcome(g, (x, own), {}) for _ in range(2)]
            found.append((drawn, own.get_state(), OWN.get_state(), torch.get_rng_state()))
        assert alike(*found), k
    assert len(programs()) <= (1 if f in ONE_PROGRAM else 6)


def test_a_generator_is_the_one_that_a_result_holds():
    static = to_static(lambda x, g: (x + torch.rand(3, generator=g), g, lambda: g, {"g": [g]}))
    for k in range(3):
        own = seeded(k)
        y, g, made, held = static(X[0], own)
        assert g is own and made() is own and held["g"][0] is own
        assert torch.equal(y, X[0] + torch.rand(3, generator=seeded(k)))


def test_two_generators():
    def f(x, g, other):
        return torch.rand(3, generator=g), torch.rand(3, generator=other) + x

    static = to_static(f)
    for k in range(4):
        found = []
        for h in (f, static):
            a, b = seeded(k), seeded(k + 1)
            found.append([h(X[0], a, b), h(X[0], a, a), h(X[0], g=b, other=torch.default_generator)])
            torch.manual_seed(0)
            found[-1].append(h(X[0], torch.default_generator, b))
        assert alike(found[0][:2], found[1][:2]) and alike(found[0][3], found[1][3])
    assert len(static.programs) <= 8


def test_a_generator_among_changing_numbers():
    def f(x, options):
        return x + torch.rand(3, generator=options["g"]) * options["n"], options["n"]

    static = to_static(f)
    for k in range(9):
        a, b = ({"g": seeded(k), "n": k}, {"g": seeded(k), "n": k})
        assert alike(f(X[0], a), static(X[0], b)) and torch.equal(a["g"].get_state(), b["g"].get_state())
    assert len(static.programs) <= MOST


def test_generators_of_threads():
    static = to_static(lambda x, g: x + torch.rand(200, generator=g) + torch.rand(200, generator=g))
    failed = []

    def work(seed):
        for _ in range(20):
            g = seeded(seed)
            expected = torch.rand(200, generator=g) + torch.rand(200, generator=g)
            if difference(static(torch.zeros(200), seeded(seed)), expected):
                failed.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(static.programs) == 1
