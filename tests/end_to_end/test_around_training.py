"""What people put around a model that they train, around a converted one: losses and parameters are eager's to the bit.

The model decides on its data: how often a layer is used, which of two layers, and when a loop ends.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, parameters_to_vector, parametrizations, prune
from torch.optim import lr_scheduler, swa_utils
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, TensorDataset

import dy2static
from tests.oracle import same

STEPS = 8


class Adaptive(nn.Module):
    """Ponders until it is sure, or four times; then one of two heads."""

    counting = True

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.inside = nn.Linear(4, 6)
        self.ponder = nn.GRUCell(6, 6)
        self.halt = nn.Linear(6, 1)
        self.norm = nn.BatchNorm1d(6)
        self.heads = nn.ModuleList([nn.Linear(6, 3), nn.Linear(6, 3)])
        self.dropout = dropout
        self.register_buffer("used", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores [N, 3] of [N, 4]."""
        h = torch.tanh(self.inside(x))
        still, count = torch.ones(()), 0
        while still > 0.3 and count < 4:
            h = self.ponder(h, h)
            still = still * (1 - torch.sigmoid(self.halt(h)).mean())
            count += 1
        if self.counting:
            self.used += count
        h = self.norm(F.dropout(h, self.dropout, self.training))
        if h.mean() > 0:
            return self.heads[0](h)
        return self.heads[1](h) * 2


def batches(seed: int = 1, dtype: torch.dtype = torch.float32) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(5, 4, generator=generator).to(dtype) * (number + 1) / 3, torch.arange(5) % 3)
        for number in range(STEPS)
    ]


Step = Callable[[nn.Module, torch.Tensor, torch.Tensor, int], torch.Tensor]
"""One training step: the loss."""


def tracked(
    make: Callable[[nn.Module], Step], model: Callable[[], nn.Module] = Adaptive, rounding: float = 0.0
) -> None:
    """Train from one seed, eagerly and converted: losses, parameters and buffers are the same in each step.

    ``rounding``: of gradients, relative to the largest. Then each step begins with eager's parameters.
    """
    torch.manual_seed(0)
    eager = model()
    static = dy2static.to_static(copy.deepcopy(eager))
    results: list[list[Any]] = []
    for module in (eager, static):
        torch.manual_seed(5)
        step = make(module)
        results.append([])
        for number, (x, y) in enumerate(batches()):
            if rounding and module is static and number:
                module.load_state_dict(results[0][number - 1][3])
            loss = step(module, x, y, number)
            buffers = [value.clone() for value in module.buffers()]
            grads = [None if p.grad is None else p.grad.clone() for p in module.parameters()]
            results[-1].append((loss.detach().clone(), buffers, grads, copy.deepcopy(module.state_dict())))
    for number, (one, other) in enumerate(zip(*results, strict=True)):
        same(other[:2], one[:2], f"step {number}")
        if rounding:
            close(one[2], other[2], rounding, f"step {number}")
        else:
            same(other[2:], one[2:], f"step {number}")


def close(one: list[Any], other: list[Any], rounding: float, where: str) -> None:
    """Not by the oracle: what gradients may differ by is a part of the largest number of each."""
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None), where
        if a is not None:
            most = rounding * a.nan_to_num(posinf=0, neginf=0).abs().max().item()
            torch.testing.assert_close(b, a, rtol=0, atol=most, equal_nan=True, msg=lambda text: f"{where}: {text}")


def sgd(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


def plain(module: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss = F.cross_entropy(module(x), y)
    loss.backward()
    optimizer.step()
    return loss


# -- mixed precision ---------------------------------------------------------------------------------------------------

# A weight that is used several times under one autocast is cast once by eager, so the shares of its gradient are added
# in bfloat16. In a Program they are added in float32.
LOW = 2.0**-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_around(dtype: torch.dtype) -> None:
    def make(module: nn.Module) -> Step:
        optimizer = sgd(module)

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype):
                loss = F.cross_entropy(module(x).float(), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    tracked(make, rounding=LOW)


class Mixed(Adaptive):
    """Autocast inside: around the whole, around a branch, in a loop, and switched off in it."""

    where = "all"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.where == "all"):
            h = torch.tanh(self.inside(x))
            count = 0
            while h.float().abs().sum() > 3 and count < 3:
                with torch.autocast("cpu", torch.bfloat16, enabled=self.where == "loop"):
                    h = torch.tanh(self.ponder.weight_ih[:6] @ h.t().to(x.dtype)).t() * 0.7
                count += 1
            h = h.float()
            if h.mean() > 0:
                with torch.autocast("cpu", torch.bfloat16, enabled=self.where == "branch"):
                    return self.heads[0](h).float()
            with torch.autocast("cpu", enabled=False):
                return self.heads[1](h)


@pytest.mark.parametrize("where", ["all", "loop", "branch", "nowhere"])
def test_autocast_inside(where: str) -> None:
    def model() -> nn.Module:
        made = Mixed()
        made.where = where
        return made

    rounding = 1e-6 if where == "nowhere" else LOW  # the product of a transposed matrix rounds in its own way
    tracked(lambda module: (lambda m, x, y, n, o=sgd(module): plain(m, o, x, y)), model, rounding)


@pytest.mark.parametrize("overflow", [False, True])
def test_a_scaler_outside(overflow: bool) -> None:
    def make(module: nn.Module) -> Step:
        optimizer = sgd(module)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = F.cross_entropy(module(x).float(), y)
            scaler.scale(loss * (float("inf") if overflow and number == 3 else 1)).backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(module.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
            return torch.stack([loss.detach(), torch.tensor(scales[-1])])

        return step

    scales: list[float] = []
    tracked(make, rounding=LOW)
    assert scales[:STEPS] == scales[STEPS:] and (scales[3] < scales[2]) is overflow


# -- gradients between backward and step -------------------------------------------------------------------------------

CLIPS: dict[str, Callable[[nn.Module], Any]] = {
    "norm": lambda module: clip_grad_norm_(module.parameters(), 0.5),
    "one by one": lambda module: clip_grad_norm_(module.parameters(), 0.5, foreach=False),
    "value": lambda module: clip_grad_value_(module.parameters(), 0.05),
    "infinity": lambda module: clip_grad_norm_(module.parameters(), 0.5, norm_type=float("inf")),
    "noise": lambda module: [one.grad.add_(torch.randn_like(one.grad) * 0.01) for one in module.parameters()
                             if one.grad is not None],
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("accumulated", [1, 3])
def test_clipping_and_accumulation(clip: str, accumulated: int) -> None:
    def make(module: nn.Module) -> Step:
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            loss = F.cross_entropy(module(x), y) / accumulated
            loss.backward()
            if number % accumulated == accumulated - 1:
                CLIPS[clip](module)
                optimizer.step()
                optimizer.zero_grad(set_to_none=number % 2 == 0)
            return loss

        return step

    tracked(make)


def test_hooks_of_parameters_and_modules() -> None:
    def make(module: Any) -> Step:
        optimizer = sgd(module)

        def clamp(p: torch.Tensor) -> None:
            assert p.grad is not None
            p.grad.clamp_(-0.1, 0.1)

        module.inside.weight.register_hook(lambda grad: grad * 0.5)
        module.halt.register_forward_hook(lambda m, args, out: out * 1.5)
        for p in module.heads.parameters():
            p.register_post_accumulate_grad_hook(clamp)
        return lambda m, x, y, n: plain(m, optimizer, x, y)

    tracked(make)


# -- learning rates and averages ---------------------------------------------------------------------------------------

SCHEDULES: dict[str, Callable[[torch.optim.Optimizer], Any]] = {
    "step": lambda o: lr_scheduler.StepLR(o, 2, 0.5),
    "cosine": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.2, total_steps=STEPS + 1),
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.2, step_size_up=2),
    "one after another": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=3), lr_scheduler.ExponentialLR(o, 0.8)], [3]
    ),
    "function": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=1, factor=0.3),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule: str) -> None:
    def make(module: nn.Module) -> Step:
        optimizer = sgd(module)
        scheduler = SCHEDULES[schedule](optimizer)

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            loss = plain(module, optimizer, x, y)
            scheduler.step(*([loss.detach()] if schedule == "plateau" else []))
            return loss

        return step

    tracked(make)


@pytest.mark.parametrize("kind", ["average", "moving", "moving with buffers"])
def test_averaged_models(kind: str) -> None:
    """An average copies the converted module, and is one: it converts when it is called."""

    def make(module: nn.Module) -> Step:
        optimizer = sgd(module)
        average = swa_utils.AveragedModel(
            module, multi_avg_fn=None if kind == "average" else swa_utils.get_ema_multi_avg_fn(0.9),
            use_buffers=kind == "moving with buffers",
        )  # fmt: skip

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            loss = plain(module, optimizer, x, y)
            average.update_parameters(module)
            average.eval()
            with torch.no_grad():
                flat = [loss.detach().reshape(1), average(x).reshape(-1), parameters_to_vector(average.parameters())]
                return torch.cat(flat)

        return step

    tracked(make)


def test_weights_averaged_at_the_end() -> None:
    """Stochastic weight averaging, with the statistics of batch norm taken anew."""

    def make(module: nn.Module) -> Step:
        optimizer = sgd(module)
        average = swa_utils.AveragedModel(module)
        schedule = swa_utils.SWALR(optimizer, 0.05)
        loader = DataLoader(TensorDataset(torch.cat([x for x, _ in batches(3)])), batch_size=5)

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            loss = plain(module, optimizer, x, y)
            if number >= 3:
                average.update_parameters(module)
                schedule.step()
                swa_utils.update_bn(loader, average)
                with torch.no_grad():
                    return torch.cat([loss.detach().reshape(1), average(x).reshape(-1)])
            return loss

        return step

    tracked(make)


# -- what changes the module -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::dy2static.program_cache.RetraceWarning")
def test_pruning_between_steps() -> None:
    def make(module: Any) -> Step:
        optimizer = sgd(module)

        def step(module: Any, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            if number == 2:
                prune.l1_unstructured(module.inside, "weight", amount=0.4)
            if number == 4:
                prune.ln_structured(module.heads[0], "weight", amount=0.3, n=2, dim=0)
            if number == 6:
                prune.remove(module.inside, "weight")
            return plain(module, optimizer, x, y)

        return step

    tracked(make)


PARAMETRIZED = {"weight norm": parametrizations.weight_norm, "spectral norm": parametrizations.spectral_norm,
                "orthogonal": parametrizations.orthogonal}  # fmt: skip


@pytest.mark.parametrize("kind", PARAMETRIZED)
def test_parametrizations(kind: str) -> None:
    def model() -> nn.Module:
        made = Adaptive()
        PARAMETRIZED[kind](made.inside)
        return made

    tracked(lambda module: (lambda m, x, y, n, o=sgd(module): plain(m, o, x, y)), model)


def test_freezing_train_and_eval_and_dropout() -> None:
    def make(module: Any) -> Step:
        optimizer = sgd(module)

        def step(module: Any, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            module.train(number % 4 != 3)
            module.inside.requires_grad_(number < 5)
            module.dropout = 0.5 if number < 4 else 0.1
            return plain(module, optimizer, x, y)

        return step

    tracked(make, lambda: Adaptive(0.5))


def test_a_state_put_back() -> None:
    """Early stopping: the best weights are kept and loaded."""

    def make(module: nn.Module) -> Step:
        optimizer, best = sgd(module), {}

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            loss = plain(module, optimizer, x, y)
            if number == 2:
                best["model"] = copy.deepcopy(module.state_dict())
                best["optimizer"] = copy.deepcopy(optimizer.state_dict())
            if number == 5:
                module.load_state_dict(best["model"])
                optimizer.load_state_dict(best["optimizer"])
            if number == 6:
                module.load_state_dict({key: value * 0.5 if value.is_floating_point() else value
                                        for key, value in best["model"].items()}, assign=False)
            return loss

        return step

    tracked(make)


def test_checkpoint_around_and_distillation() -> None:
    """The converted module as a student under ``torch.utils.checkpoint``, and as its own teacher."""

    def model() -> nn.Module:
        made = Adaptive().eval()  # eager computes it again in backward, and changes buffers once more
        made.counting = False
        return made

    def make(module: nn.Module) -> Step:
        optimizer = sgd(module)
        teacher = copy.deepcopy(module).eval().requires_grad_(False)

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            optimizer.zero_grad()
            mine = checkpoint(module, x, use_reentrant=False, preserve_rng_state=True)
            theirs = teacher(x)
            loss = F.kl_div(mine.log_softmax(1), theirs.softmax(1), reduction="batchmean") + F.cross_entropy(mine, y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    tracked(make, model)


def test_checkpoint_changes_buffers_once() -> None:
    """Eager's second run in backward counts, too. A Program's ends when what was kept is there, and writes nothing."""
    static = dy2static.to_static(Adaptive().eval())
    for number in range(1, 4):
        before = static.used.clone()
        static(torch.ones(5, 4))
        once = static.used - before
        checkpoint(static, torch.ones(5, 4), use_reentrant=False).sum().backward()
        assert static.used == before + 2 * once, number


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05), "Adadelta": lambda p: torch.optim.Adadelta(p),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01), "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.05), "Rprop": lambda p: torch.optim.Rprop(p),
    "Adam, one kernel": lambda p: torch.optim.Adam(p, lr=0.01, fused=True, amsgrad=True),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer: str) -> None:
    def make(module: nn.Module) -> Step:
        made = OPTIMIZERS[optimizer](module.parameters())
        return lambda m, x, y, n: plain(m, made, x, y)

    tracked(make)


def test_an_optimizer_with_a_closure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It calls the module some twenty times a step, and its line search follows each bit."""
    monkeypatch.setenv("DY2STATIC_BACKEND", "interpreter")

    def make(module: nn.Module) -> Step:
        optimizer = torch.optim.LBFGS(module.parameters(), lr=0.1, max_iter=4, line_search_fn="strong_wolfe")

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            def closure() -> torch.Tensor:
                optimizer.zero_grad()
                loss = F.cross_entropy(module(x), y)
                loss.backward()
                return loss

            found = optimizer.step(closure)
            assert isinstance(found, torch.Tensor)
            return found

        return step

    tracked(make, lambda: Adaptive().eval())


# -- data --------------------------------------------------------------------------------------------------------------


@dy2static.to_static
def normalized(x: torch.Tensor) -> torch.Tensor:
    """A transform that decides on its data."""
    while x.abs().max() > 1:
        x = x / 2
    return x


class Rows(Dataset[tuple[torch.Tensor, int]]):
    """Rows that a converted function has transformed, in the loader's worker."""

    def __init__(self) -> None:
        self.rows = torch.cat([x for x, _ in batches()]) * 4

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return normalized(self.rows[index]), index % 3


@pytest.mark.parametrize("start", [None, "fork", "spawn"])
def test_loaders_with_workers(start: str | None) -> None:
    """Workers begin with what the process has (fork) or convert on their own (spawn)."""
    if start == "fork":
        normalized(torch.ones(4) * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads, in newer Pythons
        loader = DataLoader(Rows(), batch_size=8, num_workers=0 if start is None else 2, multiprocessing_context=start)
        found = torch.cat([x for x, _ in loader])
    expected = torch.stack([row / 2 ** max(0, int(row.abs().max().log2().ceil())) for row in Rows().rows])
    assert torch.equal(found, expected)


def test_a_converted_model_fed_by_workers() -> None:
    def of(module: nn.Module) -> Iterator[torch.Tensor]:
        optimizer = sgd(module)
        for x, y in DataLoader(Rows(), batch_size=8, num_workers=2, multiprocessing_context="fork"):
            yield plain(module, optimizer, x, y).detach()

    torch.manual_seed(0)
    eager = Adaptive()
    static = dy2static.to_static(copy.deepcopy(eager))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        losses = [list(of(module)) for module in (eager, static)]
    same(losses[0], losses[1], "losses")


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning", "ignore:Guards may run slower:RuntimeWarning")
def test_a_compiled_sibling() -> None:
    """torch.compile beside: a compiled copy and the converted module share their parameters."""

    def make(module: nn.Module) -> Step:
        optimizer = sgd(module)
        head = torch.compile(nn.Sequential(nn.Linear(3, 3), nn.Tanh()), backend="eager")

        def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, number: int) -> torch.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(head(module(x)), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    tracked(make)
