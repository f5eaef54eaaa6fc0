"""Loops that the device runs by itself: which these are, and that they give what the host's loop gives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.calling import report
from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.ir.verify import verify
from runtime.kernels import launch
from runtime.kernels.device import form
from runtime.kernels.device.loops import DeviceLoop
from runtime.kernels.recorded import RecordedRun
from tests import devices
from tests.oracle import check, difference, same
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import compiled


def loops(static: Any) -> list[RecordedRun | str]:
    """The loops of a converted function's Programs: what has the device run them, or why the host does."""
    executables = [made for one in static._dispatch.cache.all() for _, found in one.ready.runner.running()
                   for made in report._executables(found)]  # fmt: skip
    return [loop for made in executables for loop in made.written.loops.values()]


def replays(static: Any) -> int:
    """How often the device ran a loop."""
    found = loops(static)
    for loop in found:
        assert not isinstance(loop, str), loop
        assert not loop.reason
        assert isinstance(loop.make, DeviceLoop)
        for program in (loop.make.form.first, loop.make.form.step):
            verify(program)
    return sum(loop.replays for loop in found if not isinstance(loop, str))


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=devices.generator(seed), device=devices.DEVICE)


def whole(*values: int) -> torch.Tensor:
    return torch.tensor(values if len(values) > 1 else values[0], device=devices.DEVICE)


def power(x: torch.Tensor, n: torch.Tensor) -> Any:
    change = x.new_ones(())
    while bool(change > 1e-4):
        y = x.tanh() * 0.5
        change = (y - x).abs().max()
        x = y
    return x


def counts(x: torch.Tensor, n: torch.Tensor) -> Any:
    i, k, s, even = 0, 5, 0.5, False
    while i < n:
        i += 3
        k = k * 3 - 7
        s = s * 1.5 - 0.25
        even = (k // 3) % -5 == -2 or k % 2 == 0
        x = x * 0.5 + 1.0
    return x, i, k, s, even, -k // 7, i / 2


def rows(x: torch.Tensor, n: torch.Tensor) -> Any:
    t, total = 0, torch.zeros(x.shape[1])
    while t < n:
        total = torch.tanh(total + x[t] * 2.0)
        t += 1
    return total, t


def backwards(x: torch.Tensor, n: torch.Tensor) -> Any:
    t, total = -1, torch.zeros(x.shape[1])
    while t > -n:
        total = total * 0.5 + x[t]
        t -= 1
    return total


def stores(x: torch.Tensor, n: torch.Tensor) -> Any:
    out = torch.zeros(6, x.shape[1])
    word = torch.ones(x.shape[1])
    i = 0
    while i < n:
        word = (word + x[0]).sin()
        out[i] = word
        out[-1 - i] = 7.0
        i += 1
    return out, word, i


def other_dimension(x: torch.Tensor, n: torch.Tensor) -> Any:
    out = torch.zeros(4, 6, dtype=torch.float64)
    i = 0
    while i < n:
        out[:, i] = x[:, i % 2] * 2.0
        i += 1
    return out


def breaks(x: torch.Tensor, n: torch.Tensor) -> Any:
    k = 0
    while k < 20:
        k += 1
        if k % 3 == 0:
            continue
        x = x * 1.25
        if bool(x.abs().max() > n):
            break
    return x, k


def returns(x: torch.Tensor, n: torch.Tensor) -> Any:
    k = 0
    while k < n:
        k += 1
        new = x.tanh()
        if bool((new - x).abs().max() < 1e-2):
            return new, k
        x = new
    return x, -1


def branches(x: torch.Tensor, n: torch.Tensor) -> Any:
    i, s = 0, 0.0
    y = x + 1.0
    while i < n:
        if bool(y.sum() > 1.0):
            y = y - 0.5
            s += 1.0
        else:
            y = y * 0.5 + 0.75
            s = -s
        i += 1
    return y, s


def nothing_to_do(x: torch.Tensor, n: torch.Tensor) -> Any:
    i = 0
    while i < n - 100:
        x = x * 2.0
        i += 1
    return x, i


def fibonacci(x: torch.Tensor, n: torch.Tensor) -> Any:
    a, b, i = 0, 1, 0
    while i < n:
        a, b = b, a + b
        i += 1
        x = x + 1.0
    return a, b, x


def reads(x: torch.Tensor, n: torch.Tensor) -> Any:
    last, i, best = 0.0, 0, 0
    while i < n:
        x = x * 0.75
        last = float(x.max())
        best = max(best, int((x > 0.1).sum()))
        i += 1
    return x, last, best


def raises(x: torch.Tensor, n: torch.Tensor) -> Any:
    i = 0
    while i < n:
        x = x * 1.5 + 0.5
        if i > 7:
            raise ValueError("too many")
        elif i == 2:
            x = x - 0.25
        i += 1
    return x, i


def one_tensor(x: torch.Tensor, n: torch.Tensor) -> Any:
    y, z, i = x, x, 0
    while i < n:
        y = (y + z).sin()
        z = y
        i += 1
    return y, z


_TAKEN: list[Callable[..., Any]] = [power, counts, rows, backwards, stores, other_dimension, breaks, branches,
                                    fibonacci, raises, reads, one_tensor]  # fmt: skip


@pytest.mark.parametrize("f", _TAKEN, ids=lambda f: f.__name__)
@torch.no_grad()
def test_the_device_gives_what_the_host_gives(host: Host, f: Callable[..., Any]) -> None:
    """From the third call of a kind on, with the types of Python's numbers, for other tensors as well."""
    static: Any = to_static(f, backend="cuda")
    for number in range(7):
        check(f, [normal(4, 3, seed=number), whole(3)], static=static, tolerance=1e-6, paths=("program",))
    assert replays(static) >= 4 and 1 <= host.loops <= 2
    for number in (1, 2, 4, *([20, 3] if f is raises else [])):
        check(f, [normal(4, 3, seed=number), whole(number)], static=static, tolerance=1e-6, paths=("program",))


SWITCH = """program "f" {
  input %x : f32[2] = "x"
  input %d : int = "d"
  %m : bool, %n : int, %y : f32[2], %z : int = while_loop(True, 0, %x, 0) {
    ^(%m1 : bool, %n1 : int, %y1 : f32[2], %z1 : int):
      yield %m1
  } {
    ^(%m2 : bool, %n2 : int, %y2 : f32[2], %z2 : int):
      %n3 : int = scalar.add(%n2, 1)
      %g : bool = scalar.lt(%n3, 5)
      %i : int = scalar.sub(%n2, %d)
      %y3 : f32[2], %z3 : int = switch(%i) {
        %p : f32[2] = aten.neg.default(%y2)
        yield %p, 1
      } {
        %q : f32[2] = aten.add.Tensor(%y2, 1)
        yield %q, %n3
      } {
        yield %y2, %z2
      } {
        %r : f32[2] = aten.mul.Tensor(%y2, 2)
        yield %r, %i
      }
      yield %g, %n3, %y3, %z3
  }
  return %n, %y, %z as ($0, $1, $2)
}"""


@torch.no_grad()
def test_a_switch(host: Host) -> None:
    """Indices from the end, and out of range."""
    text = SWITCH.replace("f32[2]", 'f32[2] on "cuda:0"') if devices.on_cuda() else SWITCH
    mine, reference = compiled(text), interpreted(parse_program(text))
    for d in (3, 3, 3, 3, 3, 4, 4, 4, 4, 2, 1, 0, 0, 0, 0, 5, 5, 5, 5, 3):
        x = normal(2)
        try:
            expected = reference.run([x, d], [])
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                mine.run([x, d], [])
            continue
        same(mine.run([x, d], []), expected, tolerance=1e-6)
    (loop,) = mine.written.loops.values()
    assert not isinstance(loop, str)
    assert loop.replays >= 5 and loop.gave_up >= 2, loop.reason


@torch.no_grad()
def test_no_iteration(host: Host) -> None:
    """Then the results are what the loop was given."""
    static: Any = to_static(nothing_to_do, backend="cuda")
    for n in (101, 3, 3, 3, 3, 103, 104, 105, 106, 3, 103):
        check(nothing_to_do, [normal(4, 3), whole(n)], static=static, paths=("program",))
    assert replays(static) >= 4
    x = normal(3)
    assert static(x, whole(3))[0] is x


@torch.no_grad()
def test_early_returns(host: Host) -> None:
    static: Any = to_static(returns, backend="cuda")
    for n in (3, 30, 200, 30, 3, 3, 30, 200):
        check(returns, [normal(4, 3), whole(n)], static=static, tolerance=1e-6, paths=("program",))


@torch.no_grad()
def test_an_index_out_of_range(host: Host) -> None:
    """Is eager's error, of the same line, and the next call is right."""
    static: Any = to_static(rows, backend="cuda")
    for n in (3, 3, 3, 3, 9, 4, 5, 3):
        check(rows, [normal(4, 3), whole(n)], static=static, tolerance=1e-6, paths=("program",))
    (loop,) = loops(static)
    assert not isinstance(loop, str)
    assert loop.gave_up == 2 and loop.replays == 4
    for f in (stores, backwards):
        static = to_static(f, backend="cuda")
        for n in (3, 3, 3, 3, 9, 4, 12, 3):
            check(f, [normal(4, 3), whole(n)], static=static, tolerance=1e-6, paths=("program",))


@torch.no_grad()
def test_ints_of_more_than_64_bits(host: Host) -> None:
    static: Any = to_static(counts, backend="cuda")
    for n in (9, 9, 9, 9, 90, 130, 300, 9):
        check(counts, [normal(4, 3), whole(n)], static=static, tolerance=1e-6, paths=("program",))
    (loop,) = loops(static)
    assert not isinstance(loop, str)
    assert loop.gave_up >= 2 and loop.replays >= 3


@torch.no_grad()
def test_an_argument_that_the_loop_writes(host: Host) -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> Any:
        i = 0
        while i < n:
            x[i] = x[0] * 2.0 + 1.0
            x.add_(0.5)
            i += 1
        return x

    static: Any = to_static(f, backend="cuda")
    for number in range(6):
        check(f, [normal(4, 3, seed=number), whole(3)], static=static, tolerance=1e-6, paths=("program",))
    assert replays(static) >= 3
    for n in (6, 0, 4):
        check(f, [normal(4, 3), whole(n)], static=static, tolerance=1e-6, paths=("program",))


@torch.no_grad()
def test_more_iterations_than_one_launch_has(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "MOST_ITERATIONS", 3)
    for f in (counts, rows, stores):
        static: Any = to_static(f, backend="cuda")
        for n in (1, 4, 3, 6, 4, 5, 2):
            check(f, [normal(6, 3), whole(n)], static=static, tolerance=1e-6, paths=("program",))
        assert replays(static) >= 5


@torch.no_grad()
def test_assertions(host: Host) -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> Any:
        i = 0
        while i < n:
            x = x * 2.0
            i += 1
            assert i < 6, "too many"
        return x

    static: Any = to_static(f, backend="cuda")
    for n in (3, 3, 3, 3, 9, 5, 3):
        check(f, [normal(3), whole(n)], static=static, paths=("program",))
    assert replays(static) >= 4


@torch.no_grad()
def test_sizes_numbers_and_types(host: Host) -> None:
    """A recording for each kind of call."""

    def f(x: torch.Tensor, n: torch.Tensor, scale: Any) -> Any:
        i = 0
        while i < n:
            x = (x * scale).sin()
            i += 1
        return x, i

    static: Any = to_static(f, backend="cuda")
    for _ in range(4):
        for dtype in (torch.float32, torch.float64):
            for size in (2, 3):
                for scale in (0.5, 2):
                    args = [normal(size).to(dtype), whole(3), scale]
                    check(f, args, static=static, tolerance=1e-6, paths=("program",))
    assert replays(static) >= 8


def test_gradients_are_the_hosts(host: Host) -> None:
    """What autograd records is no part of a recording."""
    static: Any = to_static(rows, backend="cuda")
    for number in range(5):
        x = normal(4, 3, seed=number).requires_grad_()
        check(rows, [x, whole(3)], static=static, tolerance=1e-6)


@torch.no_grad()
def test_threads(host: Host) -> None:
    static: Any = to_static(rows, backend="cuda")
    wrong: list[Any] = []

    def work(seed: int) -> None:
        with torch.no_grad():
            for number in range(20):
                x = normal(4, 3, seed=100 * seed + number)
                if difference(static(x, whole(3)), rows(x, whole(3)), 1e-6):
                    wrong.append((seed, number))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@torch.no_grad()
def test_results_are_new_memory_each_time(host: Host) -> None:
    static: Any = to_static(stores, backend="cuda")
    results = [static(normal(4, 3, seed=number), whole(3)) for number in range(6)]
    for number, result in enumerate(results):
        same(result, stores(normal(4, 3, seed=number), whole(3)), tolerance=1e-6)


@torch.no_grad()
def test_what_cannot_be_recorded_runs_as_it_is(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Any:
        raise RuntimeError("the CUDA driver has no cuGraphAddNode_v2")

    monkeypatch.setattr(launch.machine, "record_loop", fail)
    static: Any = to_static(rows, backend="cuda")
    for _ in range(5):
        check(rows, [normal(4, 3), whole(3)], static=static, tolerance=1e-6, paths=("program",))
    (loop,) = loops(static)
    assert not isinstance(loop, str) and loop.reason == "RuntimeError: the CUDA driver has no cuGraphAddNode_v2"


@torch.no_grad()
def test_switched_off(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DY2STATIC_CUDA_GRAPHS", "DY2STATIC_CUDA_LOOPS"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "off")
            static: Any = to_static(rows, backend="cuda")
            for _ in range(5):
                check(rows, [normal(4, 3), whole(3)], static=static, tolerance=1e-6, paths=("program",))
            assert not loops(static)
    assert not host.loops


def first_or_later(x: torch.Tensor, n: torch.Tensor, most: torch.Tensor) -> Any:
    best, i, y = x, 0, x.new_zeros(x.shape)
    while i < most:
        y = y * 1.5 + 0.25
        if bool(y.sum() > n):
            best = y - 1.0
        elif bool(y.sum() > n * 2):
            best = y * 2.0
        i += 1
    return best, i


@torch.no_grad()
def test_a_result_that_is_the_argument_on_some_paths(host: Host) -> None:
    static: Any = to_static(first_or_later, backend="cuda")
    for n in (3, 3, 3, 1000, 3, 0, 1000):
        check(first_or_later, [normal(4, 3), whole(n), whole(6)], static=static, tolerance=1e-6, paths=("program",))
    assert replays(static) >= 4
    x = normal(4, 3)
    assert static(x, whole(1000), whole(6))[0] is x and static(x, whole(0), whole(6))[0] is not x


def draws(x: torch.Tensor, n: torch.Tensor) -> Any:
    i = 0
    while i < n:
        x = x + torch.rand_like(x)
        i += 1
    return x


def grows(x: torch.Tensor, n: torch.Tensor) -> Any:
    i = 0
    while i < n:
        x = torch.cat([x, x[:1]])
        i += 1
    return x


def lists(x: torch.Tensor, n: torch.Tensor) -> Any:
    i, kept = 0, []
    while i < n:
        x = x * 2.0
        kept.append(x)
        i += 1
    return kept


def divides(x: torch.Tensor, n: torch.Tensor) -> Any:
    i, s = 0, 100.0
    while i < n:
        i += 1
        s = s / i
        x = x + 1.0
    return x, s


def gives_its_argument(x: torch.Tensor, n: torch.Tensor) -> Any:
    a, b, i = x, x + 1.0, 0
    while i < n:
        a, b = b, a + b
        i += 1
    return a, b


def gives_a_part(x: torch.Tensor, n: torch.Tensor) -> Any:
    i, y = 0, x[0]
    while i < n:
        y = x[i]
        i += 1
    return y


def nested(x: torch.Tensor, n: torch.Tensor) -> Any:
    i = 0
    while i < n:
        j = 0
        while j < i:
            x = x * 0.5 + 1.0
            j += 1
        i += 1
    return x


@pytest.mark.parametrize(("f", "why"), [
    (draws, "aten.rand_like.default"), (grows, "sizes or strides"), (lists, "ArrayType"),
    (divides, "a divisor that may be zero"), (gives_its_argument, "what the loop was given"),
    (gives_a_part, "what the loop was given"), (nested, "while_loop"),
])  # fmt: skip
@torch.no_grad()
def test_what_the_host_runs(host: Host, f: Callable[..., Any], why: str) -> None:
    """And why it does."""
    static: Any = to_static(f, backend="cuda")
    for number in range(5):
        check(f, [normal(4, 3, seed=number), whole(3)], static=static, tolerance=1e-6, paths=("program",))
    found = [loop if isinstance(loop, str) else loop.reason for loop in loops(static)]
    assert any(why in one for one in found), found
