"""``backend="auto"``: who runs which call, whatever the clock says."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.autodiff import node
from runtime.calling import takeover
from runtime.calling.takeover import TAKE_OVER, Turn
from runtime.native import NativeExecutable, build, cache, executable
from runtime.native.background import queue

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compiling takes little time, and the one warning has not been given."""
    monkeypatch.setattr(build, "optimise", "-O1")
    monkeypatch.setattr(takeover, "_told", threading.Event())
    yield


def halve(x: torch.Tensor) -> torch.Tensor:
    """A loop whose sums C rounds in another way than PyTorch."""
    total = x.sum() * 0
    while x.abs().sum() > 1:
        total = total + (x * 1.1).sum() / 3
        x = x * 0.7
    return total


def recurrent(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Keeps something of each iteration for its gradient."""
    h = torch.zeros_like(w)
    while h.sum() < 1.5:
        h = torch.tanh(h * w + x) + h * 0.5 + 0.1
    return h.sum()


def runner(static: Any) -> Any:
    """What runs the Program that was used last."""
    return static.specialization().ready.runner


def turn(static: Any) -> Turn[Any]:
    """The turn of the one kind of calls there were."""
    found = runner(static)
    (one,) = [*(half.turn for half in found._halves.values())] or [found._ungraded.turn]
    return one  # type: ignore[no-any-return]


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.detach().numpy().tobytes()


def test_the_first_calls_are_the_interpreters_and_the_others_cs() -> None:
    auto, c, plain = (to_static(halve, backend=backend) for backend in ("auto", "c", "interpreter"))
    torch.manual_seed(0)
    inputs = [torch.randn(37) for _ in range(TAKE_OVER + 3)]
    got = [bits(auto(x)) for x in inputs]
    split = TAKE_OVER - 1
    assert got[:split] == [bits(plain(x)) for x in inputs[:split]]
    assert got[split:] == [bits(c(x)) for x in inputs[split:]]
    assert got[:split] != [bits(c(x)) for x in inputs[:split]], "the two differ, else this test shows nothing"
    assert turn(auto).state == "compiled"


def test_so_it_is_with_gradients() -> None:
    torch.manual_seed(0)
    starts = [torch.rand(5) * 0.3 for _ in range(TAKE_OVER + 3)]
    w = torch.rand(5) * 0.5 + 0.3

    def gradients(backend: str) -> list[bytes]:
        static = to_static(recurrent, backend=backend)
        found = []
        for x in starts:
            leaf = w.clone().requires_grad_()
            static(x, leaf).backward()
            found.append(bits(leaf.grad))  # type: ignore[arg-type]
        if backend == "auto":
            assert turn(static).state == "compiled"
        return found

    auto, c, plain = map(gradients, ("auto", "c", "interpreter"))
    split = TAKE_OVER - 1
    assert auto[:split] == plain[:split] and auto[split:] == c[split:]


@pytest.mark.parametrize("which", ["first", "second"])
def test_a_graph_is_finished_by_who_began_it(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph of the last call before the take-over, with lists that C would have kept as one tensor."""
    static = to_static(recurrent, backend="auto")
    graphs = []
    for _ in range(TAKE_OVER + 1):
        leaf = torch.full((5,), 0.5, requires_grad=True)
        graphs.append((leaf, static(torch.full((5,), 0.1), leaf)))
    one = turn(static)
    assert one.over and one.now is not one.first
    ran = []
    for name, half in (("first", one.first), ("second", one.now)):
        for stage in half.stages:
            for backward in {stage.backward, stage.whole}:
                def run(*args: Any, name: str = name, run: Any = backward.run) -> Any:
                    ran.append(name)
                    return run(*args)

                monkeypatch.setattr(backward, "run", run)
    leaf, result = graphs[TAKE_OVER - 2 if which == "first" else TAKE_OVER - 1]
    result.backward()
    assert ran == [which]
    expected = torch.full((5,), 0.5, requires_grad=True)
    recurrent(torch.full((5,), 0.1), expected).backward()
    torch.testing.assert_close(leaf.grad, expected.grad)


def test_calls_through_the_shortcut_count_too() -> None:
    """Programs that were found several times are called on a shorter way."""
    static = to_static(halve, backend="auto")
    x = torch.randn(8)
    for number in range(1, TAKE_OVER + 20):
        static(x)
        assert turn(static).over == (number >= TAKE_OVER)
    assert static._dispatch.shortcuts and turn(static).calls == TAKE_OVER


def test_calls_with_and_without_gradients_are_counted_apart() -> None:
    static = to_static(recurrent, backend="auto")
    x, w = torch.full((5,), 0.1), torch.full((5,), 0.5, requires_grad=True)
    static(x, w)
    found = runner(static)
    for _ in range(TAKE_OVER - 2):
        found.run([x, w], [])
        found.run([x, w.detach()], [])
    (half,) = found._halves.values()
    assert not half.turn.over and not found._ungraded.turn.over
    static(x, w)
    assert half.turn.over and not found._ungraded.turn.over


def test_deterministic_algorithms_have_one_executor_from_the_first_call() -> None:
    static, c = to_static(halve, backend="auto"), to_static(halve, backend="c")
    torch.manual_seed(1)
    x = torch.randn(37)
    torch.use_deterministic_algorithms(True)
    try:
        assert bits(static(x)) == bits(c(x))
    finally:
        torch.use_deterministic_algorithms(False)
    assert turn(static).state == "compiled" and turn(static).calls == 1


def test_a_call_in_another_grad_mode_after_the_take_over() -> None:
    static, c = to_static(halve, backend="auto"), to_static(halve, backend="c")
    x = torch.randn(37)
    with torch.no_grad():
        for _ in range(TAKE_OVER):
            static(x)
        c(x)
        auto, all_c = runner(static), runner(c)
    assert turn(static).state == "compiled"
    with torch.enable_grad():
        assert bits(auto.run([x], [])[0]) == bits(all_c.run([x], [])[0])


def test_what_c_gains_nothing_in_stays_the_interpreters() -> None:
    static = to_static(lambda x: x + 1, backend="auto")
    for _ in range(TAKE_OVER + 1):
        static(torch.ones(2))
    one = turn(static)
    assert one.over and one.state == "interpreter" and one.now is one.first


class Unrolled(torch.nn.Module):
    """Elementwise operators in a row, with one parameter or with one each."""

    def __init__(self, steps: int, each: bool) -> None:
        super().__init__()
        self.scales = torch.nn.ParameterList(torch.full((3,), 0.9) for _ in range(steps if each else 1))
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in range(self.steps):
            x = torch.tanh(x * self.scales[step % len(self.scales)] + 0.5)
        return x.sum()


@pytest.mark.parametrize(("steps", "each", "taken"), [(2, False, False), (12, False, True), (12, True, False)])
def test_straight_lines_with_gradients_are_cs_where_it_has_enough_to_do(
    steps: int, each: bool, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """36 operators with one parameter and with 12; 6 operators."""
    monkeypatch.setattr(node, "BIG", 65_536)  # tests have 0
    model, plain = Unrolled(steps, each), Unrolled(steps, each)
    static = to_static(model, backend="auto")
    for number in range(TAKE_OVER + 2):
        for one in (static, plain):
            one.zero_grad()
            one(torch.full((3,), 0.1 * number)).backward()
        for a, b in zip(model.parameters(), plain.parameters()):
            torch.testing.assert_close(a.grad, b.grad)
    (told,) = model.forward.compiled
    assert ("compiled" in [part.state for part in told.parts if part.what == "with gradients"]) is taken


def test_big_tensors_in_straight_lines_go_through_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "BIG", 65_536)
    model = Unrolled(2, False)
    static = to_static(model, backend="auto")
    for _ in range(TAKE_OVER + 1):
        static(torch.ones(40_000, 3)).backward()
    (told,) = model.forward.compiled
    assert "compiled" in [part.state for part in told.parts if part.what == "with gradients"]


def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(build, "compiler", lambda: None)
    return "there is no C compiler"


def _refusing(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(build, "compiler", lambda: ("sh", "-c", "echo nonsense >&2; exit 1"))
    return "the C compiler refuses what was generated:\nnonsense"


def _missing(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(build, "compiler", lambda: ("/nowhere/cc",))
    monkeypatch.setattr(build, "_version", lambda: "")
    return "the C compiler cannot be run"


def _fault(monkeypatch: pytest.MonkeyPatch) -> str:
    def fail(*args: Any) -> Any:
        raise AssertionError("a fault of the generator's")

    monkeypatch.setattr(NativeExecutable, "ready", fail)
    return "a fault of the generator's"


@pytest.mark.parametrize("fault", [_no_compiler, _refusing, _missing, _fault])
def test_where_nothing_can_be_compiled_the_interpreter_stays(
    fault: Callable[[pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path))
    message = fault(monkeypatch)
    plain = to_static(halve, backend="interpreter")
    x = torch.randn(9)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for static in (to_static(halve, backend="auto"), to_static(recurrent, backend="auto")):
            for _ in range(TAKE_OVER + 2):
                if static.__name__ == "halve":
                    assert bits(static(x)) == bits(plain(x))
                else:
                    static(torch.full((5,), 0.1), torch.full((5,), 0.5, requires_grad=True)).backward()
            assert turn(static).state == "failed" and turn(static).now is turn(static).first
    (one,) = [warning for warning in told if "interpreter only" in str(warning.message)]
    assert message in str(one.message) and str(one.message).startswith("halve runs on the interpreter only")


def test_many_threads_take_over_together() -> None:
    static, c, plain = (to_static(halve, backend=backend) for backend in ("auto", "c", "interpreter"))
    x = torch.randn(37)
    expected = {bits(c(x)), bits(plain(x))}
    static(x)
    seen: list[bytes] = []

    def work() -> None:
        for _ in range(20):
            seen.append(bits(static(x)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) <= expected and len(seen) == 160
    assert turn(static).state == "compiled" and bits(static(x)) == bits(c(x))


def _calls_in_a_child(static: Any, x: torch.Tensor, answers: Any) -> None:
    answers.put([bits(static(x)) for _ in range(TAKE_OVER)])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_the_library_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    parent, compile_ = os.getpid(), executable.build.build

    def slow(*args: Any) -> Any:
        if os.getpid() == parent:
            entered.set()
            assert go_on.wait(300)
        return compile_(*args)

    monkeypatch.setattr(build, "build", slow)
    static, c = to_static(halve, backend="auto"), to_static(halve, backend="c")
    x = torch.randn(37)
    static(x)
    static(x)
    assert entered.wait(300)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_calls_in_a_child, args=(static, x, answers))
    child.start()
    got = answers.get(timeout=300)
    child.join(300)
    go_on.set()
    assert child.exitcode == 0
    assert got[-1] == bits(c(x)), "call 18 is C's"


_TRAIN = """
import hashlib, sys, time
import torch
from dy2static import to_static
from runtime.native import build
from runtime.native.background import queue
from runtime.calling import takeover

build.optimise = "-O1"
if "slow" in sys.argv:
    make = build._run
    build._run = lambda *args: (time.sleep(0.5), make(*args))[1]
if "eager" in sys.argv:
    takeover.TAKE_OVER = 10**9

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.state, self.out = torch.nn.Linear(6, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 1)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], 16)
        step = 0
        while step < len(x) and h.abs().mean() < 0.9:  # a loop: small branches alone are left to autograd
            h = torch.tanh(self.inner(x[step]) + self.state(h))
            step = step + 1
        return self.out(torch.nn.functional.dropout(h, 0.1))

torch.manual_seed(7)
net = to_static(Net(), backend="auto")
optimiser = torch.optim.Adam(net.parameters(), 1e-2)
digest = hashlib.sha256()
for step in range(30):
    x = torch.randn(5, 4, 6)
    loss = (net(x) - x.sum((0, 2))[:, None]).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 5 == 0:
        with torch.no_grad():
            digest.update(net(x).numpy().tobytes())
    digest.update(loss.detach().numpy().tobytes())
for parameter in net.parameters():
    digest.update(parameter.detach().numpy().tobytes())
thread = queue.thread  # the few calls without gradients begin a library that no call waits for
if thread is not None:
    thread.join()
runner = net.forward.specialization().ready.runner
print(digest.hexdigest(), *sorted({half.turn.state for half in runner._halves.values()}))
"""


@pytest.mark.slow
@pytest.mark.sample(3)
def test_training_twice_gives_the_same_bits(tmp_path: Path) -> None:
    """With a cold cache, a warm one, none, and a slow compiler; the interpreter alone gives other bits."""
    (tmp_path / "train.py").write_text(_TRAIN)

    def train(folder: str, *words: str) -> list[str]:
        environment = {**os.environ, cache.FOLDER: folder, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, str(tmp_path / "train.py"), *words], env=environment, text=True,
                              capture_output=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    place = str(tmp_path / "cache")
    cold = train(place)
    assert cold[1:] == ["compiled"]
    libraries = sorted(Path(place).iterdir())
    assert libraries
    assert train(place) == cold and sorted(Path(place).iterdir()) == libraries
    assert train("off", "slow") == cold
    assert train(place, "eager")[0] != cold[0]


def test_nothing_is_built_for_a_program_that_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "submit", None)
    to_static(halve, backend="auto")(torch.ones(3))
