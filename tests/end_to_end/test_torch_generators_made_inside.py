"""``torch.Generator()`` in a converted function: each run draws from one of its own, and eager's numbers."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import check, check_saved

DRAWS = {
    "randn": "torch.randn(3, generator=g)", "rand": "torch.rand(x.shape, generator=g)",
    "randint": "torch.randint(0, 9, (2,), generator=g)", "randperm": "torch.randperm(5, generator=g)",
    "multinomial": "torch.multinomial(x.abs(), 2, generator=g)", "normal": "torch.normal(x, x.abs() + 1, generator=g)",
    "normal_": "torch.empty(3).normal_(generator=g)", "uniform_": "torch.empty(2).uniform_(1, 2, generator=g)",
    "bernoulli": "torch.bernoulli(x.sigmoid(), generator=g)", "poisson": "torch.poisson(x.abs(), generator=g)",
    "exponential_": "torch.empty(3).exponential_(generator=g)", "cauchy_": "torch.empty(3).cauchy_(generator=g)",
    "geometric_": "torch.empty(3).geometric_(0.3, generator=g)", "init": "torch.nn.init.normal_(x * 1, generator=g)",
    "log_normal_": "torch.empty(3).log_normal_(generator=g)", "random_": "torch.empty(3).random_(0, 7, generator=g)",
    "by a function": "drawn(x, gen=g)",
}  # fmt: skip
WAYS = {
    "constant": "g = torch.Generator()\ng.manual_seed(3)\nreturn {0} * x.sum(), {0}",
    "of the run": "g = torch.Generator().manual_seed(int(x.sum()))\nreturn {0}, {0}",
    "unseeded": "g = torch.Generator()\nreturn {0}, g.initial_seed(), torch.rand(2)",
    "again": "g = torch.Generator(device='cpu').manual_seed(2)\na = {0}\nif x.sum() > 2:\n    g.manual_seed(2)\n"
             "return a, {0}, g.initial_seed()",
    "on a path": "g = torch.Generator().manual_seed(2)\na = x\nif x.sum() > 2:\n    a = {0}\nreturn a, {0}",
    "in a loop": "g = torch.Generator().manual_seed(2)\na = []\nwhile x.sum() < 9:\n    a.append({0})\n"
                 "    x = x.abs() + torch.rand(3, generator=g)\nreturn x, a",
    "one each time": "a = []\nfor k in range(3):\n    g = torch.Generator().manual_seed(k)\n    a.append({0})\n"
                     "return a",
    "two": "g, h = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)\na = {0}\n"
           "b = torch.rand(2, generator=h)\nreturn a, b, {0}, torch.rand(2, generator=h)",
}  # fmt: skip
TEXT = "import torch\ndef drawn(x, gen=None):\n    return x + torch.randn(x.shape, generator=gen)\ndef f(x):\n    "


def function(tmp_path: Path, way: str, draw: str) -> Any:
    path = tmp_path / "draws.py"
    path.write_text(TEXT + WAYS[way].format(DRAWS[draw]).replace("\n", "\n    ") + "\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(9)
@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("way", WAYS)
def test_draws(way: str, draw: str, needs_gradient: bool, tmp_path: Path) -> None:
    values = ([1.0, 2.0, 3.0], [-1.0, 2.0, 0.5]) * 2
    calls = [(torch.tensor(one, requires_grad=needs_gradient),) for one in values]
    f = function(tmp_path, way, draw)
    check_saved(f, check(f, *calls), tmp_path / "f", *calls, paths=("program",))


def test_threads_have_one_each(tmp_path: Path) -> None:
    f = function(tmp_path, "in a loop", "rand")
    x = torch.tensor([1.0, 2.0, 0.5])
    static, (expected, _) = to_static(f), f(x)
    static(x)
    dy2static.save(static, tmp_path / "f")
    loaded = dy2static.load(tmp_path / "f")
    same: list[bool] = []
    threads = [threading.Thread(target=lambda one=one: same.extend(torch.equal(one(x)[0], expected) for _ in range(20)))
               for one in (static, loaded, pickle.loads(pickle.dumps(loaded))) for _ in range(4)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 240


def seeded_anew(x):
    g = torch.Generator()
    g.seed()
    return torch.rand(2, generator=g) + x


def state_read(x):
    g = torch.Generator()
    return g.get_state(), x


def given_out(x):
    return x, torch.Generator()


def made_in_a_loop(x):
    while x.sum() < 9:
        x = x + torch.rand(3, generator=torch.Generator())
    return x


def copied(x):
    return torch.rand(2, generator=torch.Generator().clone_state()) + x


@pytest.mark.parametrize(("f", "code"), [
    (seeded_anew, "D2S214"), (state_read, "D2S214"), (given_out, "D2S228"), (made_in_a_loop, "D2S214"),
    (copied, "D2S214")])  # fmt: skip
def test_refused(f: Any, code: str) -> None:
    with pytest.raises(Dy2StaticError) as caught:
        to_static(f)(torch.ones(3))
    assert caught.value.code == code and caught.value.location is not None


@pytest.mark.parametrize("draw", DRAWS)
def test_the_callers(draw: str, tmp_path: Path) -> None:
    """A generator among the arguments, for every function that takes one."""
    path = tmp_path / "draws.py"
    path.write_text(TEXT.replace("f(x)", "f(x, g)") + f"return {DRAWS[draw]}, {DRAWS[draw]}\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    static = to_static(names["f"])
    for seed in (3, 4, 3):
        mine, theirs = (torch.Generator().manual_seed(seed) for _ in range(2))
        x = torch.tensor([1.0, 2.0, 3.0])
        for got, expected in zip(static(x, mine), names["f"](x, theirs)):
            assert torch.equal(got, expected)
        assert torch.equal(mine.get_state(), theirs.get_state())
