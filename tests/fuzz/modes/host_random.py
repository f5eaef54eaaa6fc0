"""What the host draws, sets and says: random numbers of Python, NumPy and PyTorch, clocks, identifiers, environment."""

from __future__ import annotations

import types
from typing import Any

from tests.fuzz.modes.beside import Beside

_HEAD = '''import contextlib, os, random, time, uuid
import numpy as np
import torch
from random import uniform
OWN, STATE, GENERATOR, TORCHS = random.Random(), np.random.RandomState(), np.random.default_rng(), torch.Generator()
class Box:
    def __init__(self, rng):
        self.rng, self.last = rng, 0.0
class Noise(torch.nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.rng, self.draws = rng, 0
    def forward(self, t):
        if self.rng.random() < 0.5:
            self.draws = self.draws + 1
            return t
        return torch.nn.functional.dropout(t, 0.5) * self.rng.uniform(0, 1)
BOX, NOISE = Box(random.Random()), Noise(random.Random())
def begin():
    OWN.seed(1)
    STATE.seed(2)
    GENERATOR.bit_generator.state = np.random.default_rng(3).bit_generator.state
    TORCHS.manual_seed(4)
    BOX.rng, BOX.last = random.Random(5), 0.0
    NOISE.rng.seed(6)
    NOISE.draws = 0
    os.environ["DRAWS"] = "3"
def shown(one):
    if isinstance(one, list):
        return [shown(item) for item in one]
    if isinstance(one, random.Random):
        return one.getstate()
    if isinstance(one, torch.Generator):
        return one.get_state()
    if isinstance(one, np.random.Generator):
        return repr(one.bit_generator.state)
    return repr(one.get_state()) if isinstance(one, np.random.RandomState) else one
def beside():
    streams = OWN, STATE, GENERATOR, TORCHS, BOX.rng, NOISE.rng
    return ([shown(one) for one in streams], random.getstate(), repr(np.random.get_state()), torch.get_rng_state(),
            BOX.last, NOISE.draws, os.environ.get("DRAWS"))
def flip(t, rng, chance=0.5):
    if rng.random() < chance:
        return t
    return -t
def picked(items, rng=random):
    return items[rng.randrange(len(items))]
def mixed(ts, rng):
    ts = list(ts)
    rng.shuffle(ts)
    return ts
def noisy(t, generator=None):
    return t + torch.randn(t.shape, generator=generator)
@contextlib.contextmanager
def put_back():
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
def f(x, y, k, g):
    p, q, r, n, u, w = x * 0.5, y * 2, torch.ones(len(x)), k, 0.5, "a"
    box, log, items, ts, table = Box(g), [], [1, 2.5, 4], [x, y, x + y], {"a": 1.0, "b": 2.0}
'''
_PYTHONS = ("OWN", "BOX.rng", "random", "NOISE.rng")


class HostRandom(Beside):
    """Three tensors, numbers and lists that are drawn and drawn from.

    Few programs have what is refused for good: states that are read, generators of PyTorch's that are made inside.
    """

    head = _HEAD
    tail = "    return p * 1, q, r, n, u, w, log, items, ts, table, box.last\n"
    names = ("p", "q", "r")
    stays = True
    refusals = frozenset({"D2S214", "D2S228", "D2S229", "D2S264", "D2S265", "D2S277", "D2S213", "D2S216"})
    pythons: tuple[str, ...] = _PYTHONS
    """What there is with the methods of ``random.Random``."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.kind = self.rng.choice(("random", "state", "generator", "torch"))
        """What generator is an argument: in all calls one like another."""
        if self.kind == "random":
            self.pythons = (*_PYTHONS, "g", "box.rng")

    def arguments(self, call: tuple[Any, ...], module: types.ModuleType, number: int) -> list[Any]:
        """A generator comes with each call, in a state of its own."""
        np, torch = module.np, module.torch
        made = {"random": module.random.Random, "state": np.random.RandomState, "generator": np.random.default_rng}
        one = made[self.kind](number) if self.kind in made else torch.Generator().manual_seed(number)
        self.given = one
        return [*super().arguments(call, module, number), one]

    def python(self) -> str:
        """Something with the methods of ``random.Random``."""
        return self.rng.choice(self.pythons)

    def numpy(self) -> str:
        """Something with the methods of ``RandomState`` and ``Generator``."""
        found = ["STATE", "np.random", "GENERATOR"]
        return self.rng.choice([*found, "g", "box.rng"] if self.kind in ("state", "generator") else found)

    def pytorchs(self) -> str:
        """A generator of PyTorch's, as an argument."""
        found = ["TORCHS", "None"]
        return self.rng.choice([*found, "g", "box.rng"] if self.kind == "torch" else found)

    def number(self) -> str:
        """A number, drawn or not."""
        rng, one, n = self.rng, self.python(), self.numpy()
        if rng.random() < 0.06 and not self.inside:
            return str(rng.choice((
                "random.Random(3).random()", "np.random.default_rng(k).random()",
                "np.random.RandomState(k + 1).rand()",
                "random.Random(f'{k}').randint(0, 9)",
                "float(np.random.default_rng(np.random.SeedSequence(5)).normal())",
            )))  # fmt: skip
        return str(rng.choice((
            "u", "n", "0.5", "2", "uniform(0, 1)", f"{one}.random()", f"{one}.random()", f"{one}.uniform(-1, 1)",
            f"{one}.uniform(-1, u)", f"{one}.gauss(0, 1)", f"{one}.randint(1, 3)", f"{one}.randrange(4)",
            f"{one}.randint(0, abs(int(u)) + 1)", f"{one}.getrandbits(3)", f"{one}.choice([1, 2, 5])",
            f"{one}.choice([u, 1.0])", f"{one}.betavariate(2, 3)", f"{one}.expovariate(1.5)",
            f"{one}.triangular(0, 1, 0.5)",
            f"{one}.choice(range(2, 9, 3))", f"{one}.choices([1, 2], [3, 1])[0]",
            f"{one}.sample([1.5, 2.5, 3.5], 2)[1]",
            f"{one}.choice(items)", f"{one}.normalvariate(0, 1)", f"float({n}.normal())", f"float({n}.uniform(0, 2))",
            f"{n}.standard_normal()", f"{n}.uniform(-1, 1)", f"float({n}.exponential())",
            f"int({n}.binomial(5, 0.5))",
            f"int({n}.poisson(2.0))", f"float({n}.choice([1.0, 2.0]))", f"len({n}.permutation(3))",
            f"float({n}.normal(size=2).sum())",
            "np.random.rand()", "float(np.random.rand(2).mean())", "int(np.random.randint(0, 4))",
            "float(STATE.randn())",
            "int(GENERATOR.integers(0, 4))", "float(GENERATOR.random())", "GENERATOR.random()",
            "np.random.randint(3)",
            "torch.rand(()).item()", "int(torch.randint(0, 3, ()))",
            f"torch.rand((), generator={self.pytorchs()}).item()",
            "int(os.environ.get('DRAWS', 1))", "len(uuid.uuid4().hex)", "torch.initial_seed() % 7", "table['a']",
            f"table[{one}.choice(['a', 'b'])]", f"sum({one}.random() for _ in range(2))", "box.last", "BOX.last",
            f"max({one}.random(), u)", "float(time.time() > 0)",
            "(lambda t: time.perf_counter() >= t)(time.perf_counter())",
                        f"int({one}.random() < 0.5)", f"round({one}.random(), 3)", f"{one}.random() * {one}.random()",
            f"picked(items, {one})", "picked([1, u])", f"int({one}.random() * 4)", f"-{one}.random()",
        )))  # fmt: skip

    def tensor(self) -> str:
        """A tensor of as many numbers as ``x`` has."""
        rng, one, other, p, n = self.rng, self.name(), self.name(), self.python(), self.numpy()
        g = self.pytorchs()
        return str(rng.choice((
            f"{one} * {self.number()}", f"{one} + {self.number()}", f"{one} - {other}", f"torch.tanh({one} * u)",
            f"{one} + torch.rand(len(x))", f"torch.nn.functional.dropout({one}, 0.5)",
            f"{one} + torch.randn_like({other})",
            f"{one} * torch.rand(len(x), generator={g})", f"noisy({one}, {g})",
            f"torch.bernoulli({one}.detach().sigmoid())",
            f"{one}[torch.randperm(len(x))]", f"{one}[torch.randperm(len(x), generator={g})]",
            f"{one} + torch.normal(0.0, 1.0, (len(x),))",
            f"{p}.choice([{one}, {other}])", f"{p}.choice(ts) + {one}", f"picked(ts, {p}) * 0.5",
            f"mixed([{one}, {other}], {p})[0]",
            f"{p}.sample(ts, 2)[1] + {one}", f"flip({one}, {p})", f"flip({one}, {p}, chance=u)",
            f"sum({p}.sample([p, q, r], 2))",
            f"{one} if {p}.random() < 0.5 else {other}", f"{one} * torch.tensor({self.number()})", f"NOISE({one})",
            f"{one} + torch.from_numpy({n}.normal(size=len(x))).float()",
            f"{one} + torch.tensor({n}.uniform(0, 1, len(x)))",
            f"{one}[{p}.sample(range(len(x)), len(x))]", f"{one}[torch.from_numpy({n}.permutation(len(x)))]",
            f"{one}[{p}.randrange(len(x))] + {other}",
            f"{one} + torch.as_tensor({n}.standard_normal(len(x)), dtype=torch.float32)",
            f"{one}.clone().uniform_(0, 1, generator={g})", f"{one} + torch.empty(len(x)).normal_(generator={g})",
            f"torch.stack(mixed([{one}, {other}, x], {p})).sum(0)",
            f"{one} + torch.multinomial(torch.ones(4), len(x), True, generator={g})",
            f"{one}.roll({p}.randint(0, 2))", f"{one} + {p}.choice((1, 2.0))",
            f"dict(a={one}, b={other})[{p}.choice('ab')]",
            f"torch.full((len(x),), {p}.random())", f"{one}.dropout(0.5, True)" if False else f"{one} / 2",
            f"torch.nn.Dropout(0.5)({one})", f"torch.stack([{one} * {p}.random() for _ in range(2)]).mean(0)",
        )))  # fmt: skip

    def truth(self) -> str:
        """A condition on what is drawn."""
        rng, one, n = self.rng, self.python(), self.numpy()
        return str(rng.choice((
            f"{one}.random() < 0.5", f"{one}.random() < u", f"{self.number()} > {self.number()}",
            f"{n}.uniform(0, 1) < 0.5",
            f"{one}.randint(0, 2) == n", "torch.rand(()) < 0.5", f"{one}.choice([True, False])",
            f"{one}.choice('ab') == w",
            "w in ('a', 'c')", f"u < {one}.random() < 0.9", f"{one}.getrandbits(1)", "uuid.uuid4() != uuid.uuid4()",
            "os.environ.get('DRAWS') == '3'", "time.time() > 0", f"{one}.random() < 0.5 and {one}.random() < 0.7",
            f"not {one}.randrange(3)", f"torch.rand((), generator={self.pytorchs()}).item() > 0.5",
            "'NO_SUCH_NAME' in os.environ", f"any({one}.random() < 0.3 for _ in range(3))",
            f"{one} is random" if rng.random() < 0.2 else f"{one}.random() > 0.5", f"len(mixed(items, {one})) == 3",
        )))  # fmt: skip

    def condition(self) -> str:
        """One on tensors or on draws."""
        return self.truth() if self.rng.random() < 0.6 else super().condition()

    def simple(self) -> str:
        """A computation, a seed, a list that is shuffled, something that is noted."""
        rng, one, p, n = self.rng, self.name(), self.python(), self.numpy()
        names = (f"{one} = {self.tensor()}", f"{one} = {self.tensor()}", f"u = {self.number()}",
                 f"n = int({self.number()})",
                 f"n = n + {p}.randint(0, 1)", f"w = {p}.choice(['a', 'b', 'c'])", f"u = u * 0.5 + {self.number()}",
                 f"{one}.mul_({self.number()})", f"w = {p}.choice('abc')")  # fmt: skip
        python = "random" if p == "random" else p
        seeds = [f"{python}.seed({rng.choice(('3', 'k', 'n', '7'))})", "random.seed(k)", "np.random.seed(k + 1)",
                 "torch.manual_seed(3)",
                 "torch.manual_seed(k)", "np.random.seed(3)", "STATE.seed(1)",
                 "random.seed('text')", "random.seed()\nrandom.seed(4)"]  # fmt: skip
        made = (f"rng = random.Random({rng.choice(('3', 'k'))})\n{one} = flip({one}, rng) * rng.random()\n"
                f"log.append(rng.randint(1, 9))",
                f"rng = np.random.default_rng({rng.choice(('3', 'k'))})\n{one} = {one} * rng.random()\n"
                f"log.append(rng.normal())",
                f"rng = np.random.RandomState(3)\n{one} = {one} + torch.from_numpy(rng.rand(len(x))).float()",
                f"rng = np.random.default_rng(np.random.SeedSequence([k, 3]))\n{one} = {one} * rng.uniform(0, 1)",
                f"gen = torch.Generator().manual_seed({rng.choice(('3', 'k'))})\n"
                f"{one} = {one} + torch.rand(len(x), generator=gen)")  # fmt: skip
        lists = (f"{python}.shuffle(items)", f"{python}.shuffle(ts)", f"items = {python}.sample(items, 3)",
                 f"ts = {python}.sample(ts, 3)", f"items.append({self.number()})", f"ts = mixed(ts, {python})",
                 f"order = list(range(3))\n{python}.shuffle(order)\nts = [ts[i] for i in order]",
                 f"table[w] = {self.number()}", f"table[{p}.choice(['a', 'b'])] = {self.number()}",
                 f"items[{p}.randrange(3)] = u",
                 f"ts[{p}.randrange(3)] = {one}", "np.random.shuffle(items)",
                 f"for t in {python}.sample(ts, 2):\n    {one} = {one} + t",
                 f"pairs = list(zip(items, ts))\n{python}.shuffle(pairs)\nfor i, t in pairs:\n"
                 f"    {one} = {one} * 0.5 + t * i",
                 f"axes = {{f'axis.{{uuid.uuid4().int}}': {one}, 'other': x}}\n{one} = sum(axes.values())",
                 f"key = uuid.uuid4()\ntemporary = {{key: {one}}}\n{one} = temporary[key] * 2",
                 f"if {p}.random() < 0.5:\n    ts = ts[::-1]")  # fmt: skip
        loops = (f"for _ in range({p}.randint(0, 2)):\n    {one} = {one} + {self.number()}",
                 f"for i in range({p}.randrange(1, 3)):\n    log.append({p}.random())\n    {one} = {one} * 0.5",
                 f"while {p}.random() < 0.4:\n    n = n + 1\n    {one} = {one} + 1",
                 f"for i in {p}.sample(range(3), 2):\n    {one} = {one} + ts[i] * i",
                 f"while True:\n    u = {p}.random()\n    if u < 0.6:\n        break\n    {one} = {one} + u",
                 f"for t in ts:\n    if {p}.random() < 0.5:\n        {one} = {one} + t",
                 f"log.append([{p}.random() for _ in range(2)])",
                 f"log.append([t for t in ts if {p}.random() < 0.5])")  # fmt: skip
        notes = (f"log.append({self.number()})", f"log.append({self.truth()})", f"box.last = {self.number()}",
                 f"BOX.last = {p}.random()",
                 f"log.append({p}.choice(['left', 'right']))", f"log.append(({p}.random(), {n}.normal()))",
                 "log.append(w)",
                 f"log.extend({p}.choices([1, 2.5, 'c'], k=2))", f"log.append({n}.permutation(3))",
                 f"log.append({n}.normal(size=2))",
                 f"e = {self.number()}\nlog.append(f'{{e:.3f}}')", f"{p}.random()",
                 f"log.append(list({n}.choice(3, 2, replace=False)))",
                 "NOISE.draws = 0", "log.append(int(os.environ['DRAWS']))")  # fmt: skip
        rare = ("state = random.getstate()\nlog.append(random.random())\nrandom.setstate(state)",
                f"with torch.random.fork_rng(devices=[]):\n    torch.manual_seed(3)\n"
                f"    {one} = {one} + torch.rand(len(x))",
                f"try:\n    n = {p}.randint(2, n)\nexcept ValueError:\n    n = 0", "BOX.rng = random.Random(k)",
                "with put_back():\n    u = random.random()",
                "os.environ['DRAWS'] = '4'",
                "state = torch.get_rng_state()\nr = r + torch.rand(len(x))\ntorch.set_rng_state(state)",
                "log.append(random.randbytes(2))", "log.append(os.getpid() > 0)",
                "log.append(str(uuid.uuid4())[8] == '-')",
                "state = np.random.get_state()\nu = np.random.rand()\nnp.random.set_state(state)",
                "log.append(time.time_ns() % 1 == 0)",
                "log.append(uuid.UUID(int=random.getrandbits(128)).int % 5)", "TORCHS.manual_seed(3)",
                "log.append(len(os.urandom(3)))",
                "log.append(np.random.SeedSequence(k).generate_state(1)[0])",
                "gens = [np.random.default_rng(s) for s in np.random.SeedSequence(3).spawn(2)]\nu = gens[1].random()",
                "copy = random.Random()\ncopy.setstate(OWN.getstate())\nlog.append(copy.random())")  # fmt: skip
        if self.free:
            seeds += rare
        if self.free or not self.inside:  # one that a loop makes is another one each time
            seeds += made
        return str(rng.choice(rng.choices((names, seeds, lists, loops, notes), (6, 2, 3, 2, 2))[0]))
