"""Runs of Operators that are recorded and replayed: what is recorded, and that replays give what the Operators give."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import to_static
from runtime import torch_internals
from runtime.calling import report
from runtime.executor.liveness import analyse
from runtime.ir.parser import parse_program
from runtime.kernels import launch, recorded, recording
from runtime.kernels.recorded import RecordedRun
from runtime.kernels.runs import changing_numbers, may_be_recorded, runs
from tests import devices
from tests.oracle import check, copied, difference, hold_modules, paired, run, same
from tests.runtime.kernels.host import Host


def _runs(static: Any) -> list[RecordedRun]:
    """The runs of a converted function's Programs, in the order they were made in."""
    executables = [made for one in static._dispatch.cache.all() for _, found in one.ready.runner.running()
                   for made in report._executables(found)]  # fmt: skip
    return [run for made in executables for run, _ in made.written.recorded]


def _replays(static: Any) -> int:
    return sum(run.replays for run in _runs(static))


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=devices.generator(seed), device=devices.DEVICE)


def decode(h: torch.Tensor, e: torch.Tensor, w: torch.Tensor, most: int) -> tuple[Any, ...]:
    """A loop whose body is one run, but for the store at a place of its own each time."""
    word = torch.ones(h.shape[0], dtype=torch.int64)
    out = torch.zeros(most, h.shape[0], dtype=torch.int64)
    n = 0
    while n < most and not bool((word == 0).all()):
        r, z = (e[word] + h @ w).chunk(2, 1)
        h = torch.tanh(r) * torch.sigmoid(z) + h * 0.5
        word = (h @ e[:, : h.shape[1]].t()).argmax(1)
        out[n] = word
        n += 1
    return out, h, n


@torch.no_grad()
def test_a_loop(host: Host) -> None:
    static: Any = to_static(decode, backend="cuda")
    args = [normal(3, 4), normal(7, 8, seed=1), normal(4, 8, seed=2), 12]
    for _ in range(3):
        same(static(*args), decode(*args), tolerance=1e-5)
    (run,) = _runs(static)
    assert run.replays > 10 and not run.reason and host.recordings <= 2, run.reason


@torch.no_grad()
def test_results_are_new_memory_each_time(host: Host) -> None:
    """What a call gave is not overwritten by the next, in a loop's list as between calls."""

    def f(x: torch.Tensor, n: torch.Tensor) -> list[torch.Tensor]:
        kept = []
        i = 0
        while i < n:
            x = torch.tanh(x * 1.5 + 0.25).exp() - x.sin() * x.cos()
            kept.append(x)
            i += 1
        return kept

    static: Any = to_static(f, backend="cuda")
    x = normal(5)
    results = [static(x, torch.tensor(6)) for _ in range(3)]
    for result in results:
        same(result, f(x, torch.tensor(6)), tolerance=1e-5)
    assert _replays(static) > 10
    assert len({one.data_ptr() for result in results for one in result}) == 18


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(6, 12), nn.Linear(12, 6), nn.LayerNorm(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x + self.b(torch.nn.functional.gelu(self.a(x))))
        return self.norm(y + self.b(torch.relu(self.a(y))))


def test_parameters_are_read_where_they_lie(host: Host) -> None:
    """A step of an optimizer, and weights that are put in their place, are seen."""
    block = Block()
    static: Any = to_static(block, backend="cuda")
    with torch.no_grad():
        for step in range(6):
            x = normal(2, 6, seed=step)
            same(static(x), Block.forward(block, x), tolerance=1e-5)
            block.a.weight.mul_(1.5)
        assert _replays(static.forward) >= 3
        for _ in range(3):
            block.a.weight.data = torch.randn(12, 6)
            same(static(normal(2, 6)), Block.forward(block, normal(2, 6)), tolerance=1e-5)
        block.load_state_dict({name: one * 2 for name, one in block.state_dict().items()})
        same(static(normal(2, 6)), Block.forward(block, normal(2, 6)), tolerance=1e-5)
        before = _replays(static.forward)
        same(static(normal(2, 6)), Block.forward(block, normal(2, 6)), tolerance=1e-5)
        assert _replays(static.forward) == before + 1 and not any(run.reason for run in _runs(static.forward))


def test_arguments_that_lie_elsewhere_each_time_are_copied(host: Host) -> None:
    """One that lay in the same place by chance is not read there any more."""

    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.tanh(x @ y) + x.sin()
        return (z.exp() * x).softmax(-1) @ y - z.cos()

    static: Any = to_static(f, backend="cuda")
    same_place, other = normal(4, 4), normal(4, 4, seed=1)
    keep = []
    for number in range(8):
        x = same_place if number < 4 else normal(4, 4, seed=number)
        keep.append(x)
        same(static(x, other), f(x, other), tolerance=1e-5)
    (run,) = _runs(static)
    assert run.replays >= 3 and run.again == 1 and not run.reason


@torch.no_grad()
def test_sizes_and_numbers(host: Host) -> None:
    """A recording for each; where each call is another kind, none is made any more."""

    def f(x: torch.Tensor, scale: float) -> torch.Tensor:
        y = torch.tanh(x * scale) + x.sin()
        return (y.exp() * x).view(x.shape[0], -1).softmax(-1) - y.cos().sum()

    static: Any = to_static(f, backend="cuda")
    for number in range(30):
        for size in (2, 3, 4):
            x = normal(size, 3, seed=number)
            same(static(x, 0.5), f(x, 0.5), tolerance=1e-5)
    assert _replays(static) > 20
    for number in range(90):
        same(static(normal(2, 3), number / 7), f(normal(2, 3), number / 7), tolerance=1e-5)


@torch.no_grad()
def test_zeros_have_signs(host: Host) -> None:
    """-0.0 is another number than 0.0, and True than 1."""

    def f(x: torch.Tensor, scale: Any) -> torch.Tensor:
        y = torch.full_like(x, scale) * x.abs().exp().sin().cos().tanh().sigmoid()
        return torch.atan2(y, -x.abs())

    static: Any = to_static(f, backend="cuda")
    for _ in range(6):
        for scale in (0.0, -0.0, 1, True):
            same(static(torch.ones(3), scale), f(torch.ones(3), scale), tolerance=1e-6)


@torch.no_grad()
def test_results_that_share_memory(host: Host) -> None:
    """Parts of one tensor stay parts of one; views of an argument are views of it."""

    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.tanh(x.sin().cos().exp() * x + 1.0)
        a, b = y.chunk(2, -1)
        return y, a, b.t(), x.t(), x[1:]

    static: Any = to_static(f, backend="cuda")
    for number in range(5):
        x = normal(3, 4, seed=number)
        got, expected = static(x), f(x)
        same(got, expected, tolerance=1e-6, strides=True)
        got[1].fill_(7.0)
        expected[1].fill_(7.0)
        same(got, expected, tolerance=1e-6, strides=True)
        x.add_(1.0)
        same(got, expected, tolerance=1e-6, strides=True)
    assert _replays(static) >= 2


@torch.no_grad()
def test_layouts(host: Host) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.sin().cos().exp() * x + 1.0).sigmoid() - x

    static: Any = to_static(f, backend="cuda")
    whole = normal(4, 6)
    for x in (whole, whole.t(), whole[:, ::2], whole[:, :1].expand(4, 6), whole[0].expand(3, 6)):
        for _ in range(5):
            same(static(x), f(x), tolerance=1e-6, strides=True)


def test_gradients(host: Host) -> None:
    """Halves of a Program are recorded; operators that autograd records are not."""
    _, eager = paired(Block)
    mine: Any = to_static(Block(), backend="cuda")
    mine.load_state_dict(eager.state_dict())
    hold_modules(mine, eager, [[normal(2, 6, seed=number)] for number in range(6)], tolerance=1e-5)
    assert len(_runs(mine.forward)) == 2 and _replays(mine.forward) >= 6, [run.reason for run in _runs(mine.forward)]


def test_training(host: Host) -> None:
    found = []
    for backend in ("interpreter", "cuda"):
        torch.manual_seed(0)
        block: Any = to_static(Block().double(), backend=backend)
        optimizer = torch.optim.AdamW(block.parameters(), lr=0.05)
        losses = []
        for step in range(8):
            loss = block(normal(3, 6, seed=step).double()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        found.append([*losses, *[one.detach() for one in block.parameters()]])
    assert _replays(block.forward) >= 8, [run.reason for run in _runs(block.forward)]
    same(found[1], found[0], tolerance=1e-9)


@torch.no_grad()
def test_modes(host: Host) -> None:
    """Inference tensors where eager has them."""

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.sin().cos().exp() * x + 1.0).sigmoid() - x

    static: Any = to_static(f, backend="cuda")
    x = normal(3)
    for _ in range(5):
        with torch.inference_mode():
            got = static(x)
            assert got.is_inference()
            same(got, f(x), tolerance=1e-6)
        got = static(x)
        assert not got.is_inference()
        same(got.add_(1), f(x).add_(1), tolerance=1e-6)


def test_errors_are_eagers(host: Host) -> None:
    """A call that fails leaves everything usable."""

    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.sin().cos().exp() @ y + 1.0).sigmoid() - y.sum()

    good, bad = [normal(3, 3), normal(3, 3)], [normal(3, 3), normal(2, 3)]
    static: Any = to_static(f, backend="cuda")
    for call in (good, good, good, good, bad, good, bad, good):
        expected, got = run(f, copied(call)), run(static, copied(call))
        assert type(expected.error) is type(got.error)
        same(got.result, expected.result, tolerance=1e-5)


def test_threads(host: Host) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.sin().cos().exp() * x + 1.0).sigmoid() - x

    static: Any = to_static(f, backend="cuda")
    static(normal(4))
    wrong: list[Any] = []

    def work(seed: int) -> None:
        with torch.no_grad():
            for number in range(60):
                x = normal(4, seed=100 * seed + number)
                if difference(static(x), f(x), 1e-5):
                    wrong.append((seed, number))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_results_are_not_copied(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_BYTES", 100)

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.sin().cos().exp() * x + 1.0).sigmoid() - x

    static: Any = to_static(f, backend="cuda")
    for size, replays in ((4, 4), (40, 4)):
        for _ in range(6):
            x = normal(size)
            same(static(x), f(x), tolerance=1e-6)
        assert _replays(static) == replays


def test_what_is_never_recorded_is_looked_at_now_and_then(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of a kind too large cost little, and others are recorded soon enough."""
    monkeypatch.setattr(recording, "MOST_BYTES", 100)
    monkeypatch.setattr(recorded, "SKIPPED", 9)
    looked = 0
    kind_of = RecordedRun._kind

    def counting(self: RecordedRun, given: Any) -> Any:
        nonlocal looked
        looked += 1
        return kind_of(self, given)

    monkeypatch.setattr(RecordedRun, "_kind", counting)

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.sin().cos().exp() * x + 1.0).sigmoid() - x

    static: Any = to_static(f, backend="cuda")
    for _ in range(100):
        x = normal(40)
        same(static(x), f(x), tolerance=1e-6)
    assert 50 < looked < 75 and _replays(static) == 0
    for _ in range(20):
        x = normal(4)
        same(static(x), f(x), tolerance=1e-6)
    assert _replays(static) > 5


def test_what_cannot_be_recorded_runs_as_it_is(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(launch.machine, "record", fail)

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.sin().cos().exp() * x + 1.0).sigmoid() - x

    static: Any = to_static(f, backend="cuda")
    for _ in range(5):
        same(static(torch.ones(3)), f(torch.ones(3)), tolerance=1e-6)
    (found,) = _runs(static)
    assert found.reason == "RuntimeError: operation not permitted when stream is capturing"


_KINDS: list[tuple[Callable[..., Any], bool]] = [
    (lambda x, i: x.tanh(), True),
    (lambda x, i: torch.rand_like(x), False),
    (lambda x, i: torch.nn.functional.dropout(x, 0.5, True), False),
    (lambda x, i: torch.nn.functional.dropout(x, 0.5, False), True),
    (lambda x, i: x[x > 0].sum(), False),
    (lambda x, i: x[(x > 0).nonzero()[:, 0]].sum(), False),
    (lambda x, i: x[i], True),
    (lambda x, i: x * float(x.sum().item()), False),
    (lambda x, i: torch.linalg.inv(x.outer(x) + torch.eye(3)), False),
    (lambda x, i: x.sigmoid().bernoulli(), False),
    (lambda x, i: torch.zeros(3) + x, True),
    (lambda x, i: x.cumsum(0).sort()[0], True),
]


@pytest.mark.parametrize("place", range(len(_KINDS)))
@torch.no_grad()
def test_what_is_recorded(host: Host, place: int) -> None:
    """Between two runs, each kind of operator; what is drawn, read or counted is no part of them."""
    part, expected = _KINDS[place]

    def f(x: torch.Tensor, i: torch.Tensor) -> Any:
        x = torch.tanh(x.sin().cos().exp() * x + 1.0).sigmoid() - x
        y = part(x, i)
        return torch.tanh((x + y.sum()).sin().cos().exp() * x + 1.0).sigmoid() - x

    static: Any = to_static(f, backend="cuda")
    given = [normal(3), torch.tensor([2, 0, 1])]
    for _ in range(5):
        check(f, given, static=static, tolerance=1e-5, paths=("program",))
    found = _runs(static)
    assert (len(found) == 1) == expected, found
    assert all(one.replays for one in found)


def test_many_views_of_what_is_outside() -> None:
    """Each is a piece of its own, however many there are."""
    lines = [f"%v{place} : f32[2] = aten.select.int(%x, 0, {place})" for place in range(3000)]
    results = ", ".join(f"%v{place}" for place in range(3000))
    targets = ", ".join(f"${place}" for place in range(3000))
    head = 'program "f" {\n  input %x : f32[3000, 2] = "x"\n  '
    program = parse_program(head + "\n  ".join(lines) + f"\n  return ({results}) as ({targets})\n}}")
    (found,) = runs(program.block.ops, analyse(program), frozenset(), "cpu")
    assert found == (False, program.block.ops)


def test_changing_numbers() -> None:
    text = """program "f" {
      input %x : f32[a] = "x"
      input %k : int = "k"
      %s : int = scalar.size(%x, 0)
      %d : int = scalar.mul(%s, %k)
      %t : bool = scalar.lt(0, %d)
      %m : bool, %n : int, %y : f32[a] = while_loop(%t, 0, %x) {
        ^(%a : bool, %b : int, %c : f32[a]):
          yield %a
      } {
        ^(%e : bool, %f : int, %g : f32[a]):
          %h : int = scalar.add(%f, %d)
          %i : f32[a] = aten.mul.Scalar(%g, %h)
          %j : f32[a] = aten.mul.Scalar(%g, %d)
          %l : bool = scalar.lt(%h, 20)
          yield %l, %h, %j
      }
      return %y as $0
    }"""
    program = parse_program(text)
    changing = changing_numbers(program)
    names = {var.name for var in changing}
    assert {"f", "h", "l", "n", "m", "b"} <= names and not names & {"s", "d", "t", "k"}
    may = {op.outputs[0].name: may_be_recorded(op, changing, "cpu") for op in program.block.walk() if "aten" in op.name}
    assert may == {"i": False, "j": True}


@torch.no_grad()
def test_values_that_may_be_none(host: Host) -> None:
    """Which of two is there is more than that one is."""

    def either(a: torch.Tensor | None, b: torch.Tensor | None) -> tuple[torch.Tensor]:
        if a is None:
            assert b is not None
            return (b * 10,)
        return (a + 1,)

    recorded_run = RecordedRun()
    x = torch.ones(3)
    for given in [(x, None)] * 6 + [(None, x)] * 6 + [(x, None), (None, x)]:
        same(recorded_run(either, *given), either(*given))
    assert recorded_run.replays >= 8


@pytest.mark.parametrize("change", ["deterministic", "attention", "precision"])
@torch.no_grad()
def test_settings(host: Host, change: str) -> None:
    """Kernels are chosen when they are recorded: under another setting, others are."""

    def f(x: torch.Tensor) -> tuple[torch.Tensor]:
        return (x + 1,)

    def call() -> int:
        before = host.recordings
        for _ in range(6):
            recorded_run(f, x)
        return host.recordings - before

    recorded_run = RecordedRun()
    x = normal(3)
    before = torch_internals.settings()
    assert call() == 1
    try:
        if change == "deterministic":
            torch.use_deterministic_algorithms(True)
        elif change == "attention":
            torch.backends.cuda.enable_flash_sdp(False)
        else:
            torch.set_float32_matmul_precision("high")
        assert call() == 1
    finally:
        torch.use_deterministic_algorithms(False)
        torch_internals.put_back_settings(before)
    assert call() == 0


@torch.no_grad()
def test_recordings_share_memory(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is replayed on a stream until results are copied, neither by a thread nor by what is called below,
    as finalizers are."""
    if devices.on_cuda():
        pytest.skip("the CPU shows what CUDA graphs may do")
    record = host.record
    memory: list[torch.Tensor] = []

    def shared(function: Any, arguments: Any, device: Any) -> Any:
        play, results = record(function, arguments, device)

        def replay() -> None:
            for one in memory:
                one.fill_(7.0)
            play()

        memory.extend(results)
        return replay, results

    monkeypatch.setattr(host, "record", shared)
    copy_all = recording.torch_internals.copy_all
    between: list[Callable[[], Any]] = []

    def copying(to: Any, given: Any) -> None:
        while between:
            between.pop()()
        copy_all(to, given)

    monkeypatch.setattr(recording.torch_internals, "copy_all", copying)
    first, second = RecordedRun(), RecordedRun()
    x = torch.ones(3)  # read where it lies, so that what is copied are the results
    others: list[Any] = []

    def other() -> None:
        with torch.no_grad():
            others.extend(second(lambda y: (y * 3,), x))

    def in_a_thread() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    for _ in range(6):
        first(lambda y: (y + 1,), x)
        other()
    for step in (other, in_a_thread):
        between.append(step)
        same(first(lambda y: (y + 1,), x), (x + 1,))
        for one in others:
            same(one, x * 3)
    assert first.replays >= 5 and second.replays >= 3


def test_nothing_to_launch(host: Host) -> None:
    recorded_run = RecordedRun()
    for _ in range(6):
        same(recorded_run(lambda x: (x + 1,), torch.ones(0)), (torch.ones(0),))
    assert not host.recordings and not recorded_run.reason


def test_errors_of_the_operators_are_none_of_recordings(host: Host) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor]:
        return (x.view(3) + 1,)

    recorded_run = RecordedRun()
    for _ in range(5):
        with pytest.raises(RuntimeError):
            recorded_run(f, torch.ones(4))
    for _ in range(5):
        same(recorded_run(f, torch.ones(3)), (torch.full((3,), 2.0),))
    assert recorded_run.replays >= 2 and not recorded_run.reason
