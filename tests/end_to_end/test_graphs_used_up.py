"""Which parts of a graph a gradient uses up: random programs that ask for several, and then for those of their results.

``grad(y, x)`` goes through what leads from y to x and frees what that kept; a gradient through the same again raises.
With ``create_graph=True`` the gradients have graphs of their own, of which the same is so.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from dy2static import load, save, to_static
from runtime.autodiff import gradient_path
from runtime.errors import TraceError
from tests.from_files import module_of
from tests.oracle import PATHS, Terms, check, copied, hold, run, same

ONE = (
    "{}.exp()", "{}.sin()", "{} + 1", "{} * 2", "{}.neg()", "{}.clone()", "{}.relu()", "{} ** 2", "{}.tanh()",
    "{}.expand(3)", "{}.abs()", "{}.cumsum(0)", "{} / 2", "{}.sigmoid()", "{}.detach()", "{}.masked_fill({} > 0, 1.0)",
    "{}[torch.tensor([0, 2, 1])]", "{}.flip(0)", "F.softmax({}, 0)", "F.layer_norm({}, (3,))", "F.elu({})",
    "{}.sort()[0]",
)  # fmt: skip
TWO = (
    "{} + {}", "{} * {}", "{} - {}", "torch.where(x > 0, {}, {})", "torch.max({}, {})", "{} / {}.exp()",
    "torch.addcmul({}, {}, w)", "torch.stack([{}, {}]).sum(0)", "F.mse_loss({}, {}) * {}",
    "F.linear({}[None], w.outer(w), {})[0]", "torch.lerp({}, {}, 0.3)", "torch.dot({}, {}) * v",
)  # fmt: skip


class Random:
    """A program of one seed. ``paths``: some of it is in branches."""

    def __init__(self, seed: int, paths: bool) -> None:
        self.rng, self.paths = random.Random(seed), paths
        self.names, self.made = ["x", "w", "v"], list[str]()

    def source(self) -> str:
        lines: list[str] = []
        for number in range(self.rng.randint(3, 7)):
            if not self.made or self.rng.random() < 0.6:
                lines += self.value(f"a{number}")
            if self.rng.random() < 0.6:
                lines += self.gradient(f"g{number}")
        results = self.rng.sample(self.made, min(len(self.made), self.rng.randint(1, 2)))
        head = "import torch\nimport torch.nn.functional as F\nfrom torch.autograd import grad\ndef f(x, w, v):\n"
        return head + "".join(f"    {line}\n" for line in [*lines, f"return {', '.join(results)},"])

    def expression(self) -> str:
        template = self.rng.choice(ONE + TWO)
        if template in ONE:
            return template.replace("{}", self.rng.choice(self.names))
        return template.format(*(self.rng.choice(self.names) for _ in range(template.count("{}"))))

    def value(self, name: str) -> list[str]:
        lines = [f"{name} = {self.expression()}"]
        if self.paths and self.rng.random() < 0.2:
            lines = ["if v.sum() > 0:", f"    {lines[0]}", "else:", f"    {name} = {self.expression()}"]
        self.names.append(name)
        self.made.append(name)
        return lines

    def gradient(self, name: str) -> list[str]:
        root, by = self.rng.choice(self.made), self.rng.choice(self.names)
        how = self.rng.choice(("", "", ", create_graph=True", ", create_graph=True", ", retain_graph=True"))
        lines = [f"{name} = None", f"if {root}.requires_grad and {by}.requires_grad:"]
        lines += [f"    {name} = grad({root}.sum(), {by}, allow_unused=True{how})[0]"]
        lines += [f"if {name} is None:", f"    {name} = torch.zeros(3)"]
        if self.paths and self.rng.random() < 0.15:
            return ["if w.sum() > 0:", *("    " + line for line in lines)]
        self.names.append(name)
        self.made.append(name)
        return lines


def calls(seed: int) -> list[list[torch.Tensor]]:
    torch.manual_seed(seed)
    return [[torch.randn(3, requires_grad=True), (torch.randn(3) + shift).requires_grad_(),
             torch.randn(3, requires_grad=seed % 3 > 0)] for shift in (0.0, 1.5, -1.5)]  # fmt: skip


@pytest.mark.sample(6)
@pytest.mark.parametrize("paths", [False, True], ids=["straight", "paths"])
@pytest.mark.parametrize("seed", range(300))
def test_a_second_gradient_raises_where_it_does_in_eager(seed, paths, tmp_path):
    (tmp_path / "one.py").write_text(Random(seed, paths).source())
    f = module_of(tmp_path / "one.py").f
    static = to_static(f)
    for number, call in enumerate(calls(seed)):
        expected = run(f, copied(call))
        try:
            got = run(static, copied(call))
        except TraceError as refused:
            assert refused.code == "D2S213" and "a second time" in str(refused), refused
            # in a branch a Program is refused for all calls
            assert paths or "a second time" in f"{expected.error} {expected.refused}"
            return
        hold(got, expected, f"call {number}", Terms(tolerance=1e-5, gradient_tolerance=1e-4, none_is_zero=True))


def test_each_iteration_uses_up_what_its_own_branches_made():
    def f(x, w, v):
        n = 0
        while n < v.sum():
            t = w.detach().clone().requires_grad_()
            y = t.exp() if x.sum() > n else t.sin()
            w = w + torch.autograd.grad(y.sum(), t)[0]
            n += 1
        return w

    static = to_static(f)
    for shift in (0.0, 1.0, -1.0):
        call = [torch.full((3,), shift), torch.ones(3, requires_grad=True), torch.full((3,), 0.9)]
        hold(run(static, copied(call)), run(f, copied(call)), "call", Terms(tolerance=1e-5))


LOOPS = """import torch
from torch.autograd import grad
def f(y, b, c):
    u = y.detach().clone().requires_grad_()
    h = u * 1.0
    loss = (h * c).sum()
    n = 0
    {header}
        n = n + 1
        {first}
        {second}
    gs = grad(loss, [b, c, u], allow_unused=True{keeps})
    g = grad(h.sum(), [b], allow_unused=True)[0]
    return loss.detach(), n, gs, g
"""
HEADERS = ("while n < 3 and loss < 2:", "for _ in range(int((y > 0).sum())):")
BEFORE = ("loss = (h ** 2).sum()", "loss = loss + (h ** 2).sum()", "loss = loss * h.mean()")
MADE = ("h = b * 1.0", "h = b.sin()", "h = b.exp() * y", "h = h * b", "h = h + b", "h = torch.where(h > 0, b, h).sin()")
APART = tuple(MADE[:3])
"""What each iteration makes anew: its graph is another one than that of what the iteration before made."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("keeps", ["", ", retain_graph=True"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("header", HEADERS)
def test_iterations_have_graphs_of_their_own(
    header: str, before: str, made: str, swapped: bool, keeps: str, tmp_path: Path
) -> None:
    """``loss`` is of what the iteration before made; where it is of the same, eager raises in the second gradient."""
    first, second = (made, before) if swapped else (before, made)
    (tmp_path / "loops.py").write_text(LOOPS.format(header=header, first=first, second=second, keeps=keeps))
    f = module_of(tmp_path / "loops.py").f
    given = [([0.1, 0.2], 0.1), ([0.1, -0.2], 3.0), ([9.0, 9.0], 0.1), ([-1.0, -2.0], 0.5)]
    calls = [(torch.tensor(y), torch.full((2,), b, requires_grad=True), torch.ones(2, requires_grad=True))
             for y, b in given]
    try:
        check(f, *calls, paths=("program",))
    except TraceError as error:
        assert error.code == "D2S213" and not keeps and (swapped or made not in APART)


HIDDEN = """import torch
from torch.autograd import grad
def f(x, w):
    t = x.detach().clone().requires_grad_()
    u = {inner}
    g, = grad(u.sum(), t, create_graph=True)
    h, = grad(g.pow(2).sum(), t, allow_unused=True)
    y = x * w
    {result}
    return y, h
"""
INNER = ("t * t * t", "t.sin()", "t.sin() * x.detach()", "(t * t * w).exp()", "t.sin() + w",
         "torch.where(w > 0, t ** 3, t)")  # fmt: skip
RESULTS = ("y = y + g", "y = y * g", "y = y + g.detach()", "y = g * 2", "if w.sum() > 1:\n        y = y + g",
           "for _ in range(1 + int(w.sum() > 1)):\n        y = y * g")  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("file", [False, True], ids=["live", "loaded"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("inner", INNER)
def test_used_up_on_the_way_to_a_leaf_of_the_functions_own(
    inner: str, result: str, path: str, file: bool, tmp_path: Path
) -> None:
    """``grad(result, inputs)`` does not go there, ``result.backward()`` does."""
    (tmp_path / "hidden.py").write_text(HIDDEN.format(inner=inner, result=result))
    f = module_of(tmp_path / "hidden.py").f
    static = to_static(f)
    static(torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    if file:
        save(static, tmp_path / "f.d2s")
        static = load(tmp_path / "f.d2s")
    for value in (0.9, -0.4):
        for ask in (_by_inputs, _of_all_leaves):
            answers = []
            for one in (f, static):
                x, w = torch.tensor([0.3, -0.7], requires_grad=True), torch.full((2,), value, requires_grad=True)
                with gradient_path(path):
                    answers.append(ask(one(x, w), x, w))
            same(answers[1], answers[0], tolerance=1e-6)


def _by_inputs(results: list[torch.Tensor], *inputs: torch.Tensor) -> object:
    try:
        return torch.autograd.grad(results[0].sum(), inputs, allow_unused=True)
    except RuntimeError as error:
        return str(error)[:60]


def _of_all_leaves(results: list[torch.Tensor], *inputs: torch.Tensor) -> object:
    try:
        results[0].sum().backward()
    except RuntimeError as error:
        return str(error)[:60]
    return [one.grad for one in inputs]
