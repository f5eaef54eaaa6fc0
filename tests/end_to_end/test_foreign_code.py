"""Code of other parts of torch and of NumPy met inside: torch.jit, torch.cond, DistributedDataParallel, arrays."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any, List, Optional  # torch.jit reads these

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from dy2static import EagerWarning, InputSpec, TraceError, load, save, to_static
from tests.oracle import check, same

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning"),  # the same since torch 2.15
    pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning"),  # eager's own arrays
]
X = torch.tensor([1.0, 2.0, 3.0, 4.0])


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.tanh(self.first(x)))


class Deciding(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x


def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


class Holder(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x):
        y = self.part(x)
        if y.sum() > 0:
            y = y + 1
        i = 0
        while i < x.sum() - 8:
            y = self.part(y)
            i += 1
        return y


def gradients(function: Any, x: torch.Tensor, parameters: Any) -> tuple[Any, list[Any]]:
    torch.manual_seed(3)
    x = x.clone().requires_grad_()
    result = function(x)
    return result.detach(), list(torch.autograd.grad(result.sum(), [x, *parameters], allow_unused=True))


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("compiled", ["trace", "script"])
def test_modules_of_torch_jit(compiled: str, train: bool) -> None:
    chain = Chain()
    part = torch.jit.script(chain) if compiled == "script" else torch.jit.trace(chain.eval(), X)
    model = Holder(part).train(train)
    twin = copy.deepcopy(model)
    static = to_static(model)
    for x in (X, -X, X * 2):
        expected = gradients(twin, x, list(twin.parameters()))
        same(expected, gradients(static, x, list(model.parameters())), tolerance=1e-6)
    model.train(not train)
    twin.train(not train)
    expected = gradients(twin, X, list(twin.parameters()))
    same(expected, gradients(static, X, list(model.parameters())), tolerance=1e-6)


class Scripted(nn.Module):
    """Defaults, keywords, a state and a second method, for ``torch.jit.script``."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x, k: int = 2, flag: bool = True, y: Optional[torch.Tensor] = None):
        self.count += 1
        z = self.dropout(self.linear(x)) * k
        if flag:
            z = z + 1
        return z if y is None else z + y

    @torch.jit.export
    def other(self, x):
        return self.linear(x) * 2


def summed(a, b: float = 0.5, xs: Optional[List[torch.Tensor]] = None):
    if xs is not None:
        for x in xs:
            a = a + x
    return a * b, {"a": a}


@pytest.mark.parametrize("needs", [False, True], ids=["plain", "with a gradient"])
@pytest.mark.parametrize("before", [0, 2], ids=["first call", "called before"])
def test_calls_before_the_conversion_leave_nothing_behind(before: int, needs: bool) -> None:
    module, function = torch.jit.script(Scripted()), torch.jit.script(summed)
    calls = [
        lambda x: module(x), lambda x: module(x, k=3, flag=False), lambda x: module(x, 3, True, x),
        lambda x: module.other(x), lambda x: module.forward(x), lambda x: function(x),
        lambda x: function(x, 2.0, [x, x]), lambda x: function(x, xs=[x]), lambda x: function(x, wrong=1),
        lambda x: function(), lambda x: module(x) if x.sum() > 0 else module.other(x),
    ]  # fmt: skip
    for call in calls:
        for _ in range(before):  # with such inputs torch.jit makes code that has no gradients at all
            with contextlib.suppress(Exception):
                call(torch.ones(2, 4))
        inputs = [(sign * torch.ones(2, 4)).requires_grad_(needs) for sign in (1, -1)]
        check(call, *((x,) for x in inputs), paths=("program",), parameters=list(module.parameters()))


def test_hooks_of_all_modules_run_around_compiled_ones() -> None:
    module = torch.jit.script(Scripted().eval())
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda module, args, result: result * 2 if isinstance(result, torch.Tensor) else None)
    try:
        check(lambda x: module(x) + x, (torch.ones(2, 4),), paths=("program",))
    finally:
        handle.remove()


@pytest.mark.parametrize("caught", [False, True], ids=["plain", "in a try"])
def test_a_trace_inside_is_refused(caught: bool) -> None:
    def f(x):
        return torch.jit.trace(lambda a: a * 2, x)(x)

    def g(x):
        try:
            return torch.jit.trace(lambda a: a * 2, x)(x)
        except RuntimeError:
            return x * 0

    with pytest.raises(TraceError, match="D2S292"):
        to_static(g if caught else f)(X)


def test_compiled_code_in_closures_and_files(tmp_path) -> None:
    part = torch.jit.trace(nn.Linear(4, 2), X)
    scaled = torch.jit.script(scale)

    def f(x):
        if x.sum() > 0:
            return scaled(part(x), 3.0)
        return part.forward(x)

    static = to_static(f)
    for x in (X, -X):
        same(f(x).detach(), static(x).detach())
    save(f, tmp_path / "m", input_spec=[InputSpec([4])])
    for x in (X, -X):
        same(f(x).detach(), load(tmp_path / "m")(x).detach())


def test_compiled_code_that_decides_is_refused() -> None:
    part = torch.jit.script(Deciding())

    def f(x):
        return part(x) + 1

    with pytest.raises(TraceError, match="D2S292.*Deciding was compiled by torch.jit") as caught:
        to_static(f)(X)
    assert caught.value.location is not None and "part(x)" in caught.value.location.text
    with pytest.warns(EagerWarning, match="D2S292"):
        same(f(X), to_static(f, full_graph=False)(X))


def test_torch_cond_and_while_loop() -> None:
    def f(x, n):
        y = torch.cond(x.sum() > 0, lambda a, b: a * b, lambda a, b: a - b, (x, x + 1))
        i, z = torch.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z * 2), (torch.tensor(0), y))
        return y, i, z

    def plain(x, n):  # what they stand for; eager runs them through torch.compile
        y = x * (x + 1) if x.sum() > 0 else x - (x + 1)
        i, z = torch.tensor(0), y
        while i < n:
            i, z = i + 1, z * 2
        return y, i, z

    static = to_static(f)
    for x in (X, -X):
        for n in (0, 3):
            same(plain(x, torch.tensor(n)), static(x, torch.tensor(n)))
    w = X.clone().requires_grad_()
    expected = torch.autograd.grad(plain(w, torch.tensor(2))[2].sum(), w)
    same(expected, torch.autograd.grad(static(w, torch.tensor(2))[2].sum(), w))
    assert len(static.programs) == 2  # with and without a gradient


def test_other_operators_that_call_functions_are_refused() -> None:
    from torch._higher_order_ops.map import map as torch_map

    def f(x):
        return torch_map(lambda row: row * 2, x)

    with pytest.raises(TraceError, match="D2S292"):
        to_static(f)(X)


@pytest.fixture
def alone(tmp_path) -> Iterator[None]:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this build of torch has no torch.distributed")
def test_distributed_data_parallel(alone: None, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            y = self.linear(x)
            if y.sum() > 0:
                y = y * 2
            return y

    plain = Net()
    held = DistributedDataParallel(Net())

    def f(x):
        y = held(x)
        if y.sum() > 1:
            y = y - 1
        return y

    def expected(x):
        y = plain(x)
        return y - 1 if y.sum() > 1 else y

    static = to_static(f)
    outer = to_static(DistributedDataParallel(Net()))
    inner = DistributedDataParallel(to_static(Net()))
    assert isinstance(outer, DistributedDataParallel)
    for x in (X, -X, X * 3):
        reference = gradients(expected, x, plain.parameters())
        same(reference, gradients(static, x, held.parameters()))
        for model in (outer, inner):
            model.zero_grad()
            plain.zero_grad()
            model(x).sum().backward()
            plain(x).sum().backward()
            same([p.grad for p in plain.parameters()], [p.grad for p in model.parameters()])
    assert outer.module.forward.programs
    save(outer, tmp_path / "m", input_spec=[InputSpec([4])])
    same(plain(X).detach(), load(tmp_path / "m")(X).detach())

    class Two:
        """A group of more than one process."""

        @staticmethod
        def size() -> int:
            return 2

    monkeypatch.setattr(held, "process_group", Two())
    with pytest.raises(TraceError, match="D2S293"):
        to_static(f)(X)
    held.require_backward_grad_sync = False  # no_sync()
    same(expected(X).detach(), to_static(f)(X).detach())


def array_left(x):
    return np.ones(4) / x


def array_right(x):
    return x / np.ones(4)


def array_function(x):
    return np.unique(x)


def array_of_numbers(x):
    return np.full(2, x.sum().item())


@pytest.mark.parametrize(
    "function", [array_left, array_right, array_function, array_of_numbers],
    ids=lambda one: one.__name__,
)  # fmt: skip
def test_what_needs_data_is_refused_where_it_stands(function: Any) -> None:
    with pytest.raises(TraceError, match="D2S213|D2S253") as caught:
        to_static(function)(X)
    location = caught.value.location
    assert location is not None and location.file == __file__ and caught.value.hint
    with pytest.warns(EagerWarning):
        got, expected = to_static(function, full_graph=False)(X), function(X)
    assert type(got) is type(expected)
    np.testing.assert_array_equal(np.asarray(got.detach() if isinstance(got, torch.Tensor) else got),
                                  np.asarray(expected.detach() if isinstance(expected, torch.Tensor) else expected))
