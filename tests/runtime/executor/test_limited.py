"""What a Program may ask of the process: memory and iterations, looked at before it is too late."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import InputSpec, Limits, StorageError, load, loop_options, save
from runtime.executor.limited import compile_limited
from runtime.executor.limits import Meter
from runtime.ir.parser import parse_program
from tests.oracle import same

MB = 1 << 20
X = InputSpec([None])
ONE = InputSpec([])


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """What gets through fails at once, and takes no machine down."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + (2048 * MB), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def loaded(function: Any, folder: Path, specs: list[Any], **limits: int) -> Any:
    save(function, folder / "f", specs)
    return load(folder / "f", limits=Limits(**limits))


def grow(x, n):
    while n > 0:
        x = torch.cat([x, x])
        n = n - 1
    return x.sum()


def zeros(n):
    return torch.zeros(n.item(), 1024).sum()


def outer(x):
    return (x[:, None] * x[None, :]).sum()


def keeps(x, n):
    rows = []
    while n > 0:
        rows.append(x + n)
        n = n - 1
    return len(rows), rows[0]


def spreads(x, n):
    return x.expand(n.item()).sum()


def repeats(x, n):
    return torch.repeat_interleave(x[:1], n).sum()


def counts(n):
    return torch.bincount(n.reshape(1)).sum()


def one_hot(n):
    return torch.nn.functional.one_hot(n.reshape(1)).sum()


def products(x):
    return (x.reshape(-1, 1) @ x.reshape(1, -1)).sum()


N = InputSpec([], "int64")
LONG = torch.tensor(3_000_000_000)


@pytest.mark.parametrize(
    ("function", "specs", "small", "large"),
    [
        (grow, [X, N], (torch.ones(4), torch.tensor(3)), (torch.ones(4), torch.tensor(40))),
        (zeros, [N], (torch.tensor(5),), (LONG,)),
        (outer, [X], (torch.ones(9),), (torch.ones(60_000),)),
        (products, [X], (torch.ones(9),), (torch.ones(60_000),)),
        (keeps, [X, N], (torch.ones(9), torch.tensor(20)), (torch.ones(1_000_000), torch.tensor(10_000))),
        (spreads, [InputSpec([1]), N], (torch.ones(1), torch.tensor(7)), (torch.ones(1), LONG)),
        (repeats, [X, N], (torch.ones(2), torch.tensor(7)), (torch.ones(2), LONG)),
        (counts, [N], (torch.tensor(7),), (LONG,)),
        (one_hot, [N], (torch.tensor(7),), (LONG,)),
    ],
)
def test_memory(function: Any, specs: Any, small: Any, large: Any, tmp_path: Path) -> None:
    layer = loaded(function, tmp_path, specs, max_bytes=100 * MB)
    same(layer(*small), function(*small))
    for _ in range(2):
        with pytest.raises(StorageError, match=rf"D2S523. the loaded Program asks for (.|\n)*the limit is {100 * MB}"):
            layer(*large)
    same(layer(*small), function(*small), "afterwards")  # a run that was refused leaves nothing behind


def test_memory_that_is_let_go_is_counted_no_more(tmp_path: Path) -> None:
    def f(x, n):
        while n > 0:
            x = x * 1.5 - torch.ones_like(x)
            n = n - 1
        return x

    layer, x = loaded(f, tmp_path, [X, N], max_bytes=5 * MB), torch.ones(200_000)
    with torch.no_grad():
        assert torch.equal(layer(x, torch.tensor(100)), f(x, torch.tensor(100)))
    kept = [layer(x, torch.tensor(1)) for _ in range(20)]
    assert len(kept) == 20, "what earlier runs gave is the caller's"
    with pytest.raises(StorageError, match="D2S523"):
        layer(torch.ones(600_000), torch.tensor(3))


def test_training_within_limits_is_the_same(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    layers = [load(tmp_path / "m", limits=limits).train() for limits in (None, Limits(MB, 10))]
    for layer in layers:
        torch.manual_seed(0)
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            layer(torch.ones(3, 4)).sum().backward()
            optimizer.step()
    assert all(map(torch.equal, layers[0].parameters(), layers[1].parameters()))


def test_backward_keeps_to_limits_too(tmp_path: Path) -> None:
    def f(x):
        return (x.reshape(-1, 1) * x.reshape(1, -1)).sum()

    x = torch.ones(2000, requires_grad=True)
    layer = loaded(f, tmp_path, [X], max_bytes=60 * MB)
    result = layer(x)
    result.backward()
    assert x.grad is not None and x.grad[0] == 4000
    with pytest.raises(StorageError, match="D2S523"):
        layer(torch.ones(4500, requires_grad=True))


def forever(x):
    while x.sum() > 0:
        x = x + 1
    return x


def counted(n):
    total = 0
    for i in range(n.item()):
        total = total + i
    return total


def nested(n):
    total, a = 0, n
    while a > 0:
        b = n
        while b > 0:
            total = total + 1
            b = b - 1
        a = a - 1
    return total


def scanned(x):
    for i in range(200):
        x = torch.tanh(x * 0.5 + i)
    return x


@pytest.mark.parametrize(
    ("function", "spec", "small", "large"),
    [
        (forever, X, torch.zeros(2), torch.ones(2)), (counted, N, torch.tensor(100), LONG),
        (nested, N, torch.tensor(5), torch.tensor(20)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("grad", [False, True])
def test_iterations(function: Any, spec: Any, small: Any, large: Any, grad: bool, tmp_path: Path) -> None:
    layer = loaded(function, tmp_path, [spec], max_iterations=100)
    if grad and small.is_floating_point():
        small, large = small.requires_grad_(), large.requires_grad_()
    for _ in range(3):
        same(layer(small), function(small))
        with pytest.raises(StorageError, match=r"D2S524. the loaded Program goes on after 100 iterations"):
            layer(large)


def test_loops_of_known_length_are_counted(tmp_path: Path) -> None:
    layer = loaded(scanned, tmp_path, [X], max_iterations=199)
    for x in (torch.ones(2), torch.ones(2, requires_grad=True)):
        with pytest.raises(StorageError, match="D2S524"):
            layer(x)
    layer = load(tmp_path / "f", limits=Limits(max_iterations=200))
    x = torch.ones(2, requires_grad=True)
    layer(x).sum().backward()
    y = torch.ones(2, requires_grad=True)
    scanned(y).sum().backward()
    assert torch.allclose(x.grad, y.grad)


def test_limits_go_with_options_of_loops_and_copies(tmp_path: Path) -> None:
    import copy
    import pickle

    def f(x):
        with loop_options(max_iterations=50):
            while x.sum() > 0:
                x = x + 1
        return x

    layer = loaded(f, tmp_path, [X], max_iterations=100)
    with pytest.raises(RuntimeError, match="max_iterations=50"):
        layer(torch.ones(1))
    for copied in (copy.deepcopy(loaded(forever, tmp_path, [X], max_iterations=9)), pickle.loads(pickle.dumps(load(
            tmp_path / "f", limits=Limits(max_iterations=9))))):  # fmt: skip
        with pytest.raises(StorageError, match="after 9 iterations"):
            copied(torch.ones(1))


def power(n):
    return 10 ** n.item() > 3


def shifted(n):
    return 1 << n.item() > 3


def squared(n):
    value = 3
    while n > 0:
        value = value * value
        n = n - 1
    return value > 3


def padded(n):
    return f"{n.item():>{5}}" + "x" * n.item()


@pytest.mark.parametrize(
    ("function", "small", "large"),
    [(power, 3, 10**12), (shifted, 3, 10**12), (squared, 3, 60), (padded, 3, 10**12)],
)
def test_numbers_and_texts(function: Any, small: int, large: int, tmp_path: Path) -> None:
    layer = loaded(function, tmp_path, [N], max_bytes=100 * MB)
    assert layer(torch.tensor(small)) == function(torch.tensor(small))
    with pytest.raises(StorageError, match="D2S523.*a number or text, the result of"):
        layer(torch.tensor(large))


LISTS = """program "f" {
  input %n : i64[] = "n"
  %k : int = scalar.item(%n)
  %go : bool = scalar.gt(%k, 0)
  %list.0 : list<int> = array.new([1, 2])
  %_ : bool, %i : int, %made : list<int> = while_loop(%go, %k, %list.0) {
    ^(%f : bool, %i.0 : int, %l.0 : list<int>):
      yield %f
  } {
    ^(%f.1 : bool, %i.1 : int, %l.1 : list<int>):
      %l.2 : list<int> = array.concat(%l.1, %l.1)
      %i.2 : int = scalar.sub(%i.1, 1)
      %f.2 : bool = scalar.gt(%i.2, 0)
      yield %f.2, %i.2, %l.2
  }
  %size : int = array.len(%made)
  return %size as $0
}"""


def test_lists() -> None:
    made = compile_limited(parse_program(LISTS), limits=Limits(max_bytes=MB))
    assert made.run([torch.tensor(3)], []) == [16]
    with pytest.raises(StorageError, match="D2S523.*a list"):
        made.run([torch.tensor(60)], [])


def test_the_file_itself(tmp_path: Path) -> None:
    path = save(torch.nn.Linear(100, 100), tmp_path / "m", [InputSpec([None, 100])])
    size = path.stat().st_size
    with pytest.raises(StorageError, match=rf"D2S523.*m\.d2s has {size} bytes, and the limit is {size - 1}"):
        load(path, limits=Limits(max_bytes=size - 1))
    assert load(path, limits=Limits(max_bytes=size))(torch.ones(1, 100)).shape == (1, 100)


def test_many_threads_have_meters_of_their_own(tmp_path: Path) -> None:
    layer, failed = loaded(counted, tmp_path, [N], max_iterations=100, max_bytes=MB), []

    def run() -> None:
        for _ in range(10):
            try:
                assert layer(torch.tensor(90)) == 4005
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_meter_counts_what_is_there() -> None:
    meter = Meter(Limits(max_bytes=1000))
    tensor = torch.ones(100)
    meter.made(tensor)
    meter.made(tensor[:50])
    assert meter.bytes == 400
    view = tensor[:5]
    del tensor
    assert meter.bytes == 400
    del view
    assert meter.bytes == 0


@pytest.mark.parametrize("wrong", [-1, 1.5, "1", True])
def test_what_is_no_limit(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_bytes is a whole number or None"):
        Limits(max_bytes=wrong)
    save(torch.nn.Linear(1, 1), tmp_path / "m", [InputSpec([None, 1])])
    with pytest.raises(TypeError, match=r"limits takes Limits\(\.\.\.\)"):
        load(tmp_path / "m", limits=wrong)
