"""Autocast reaches what is inside operators that are written in terms of others, as it does in eager."""

from __future__ import annotations

import contextlib
import copy
import functools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from runtime import torch_internals
from runtime.autodiff import gradient_path
from runtime.errors import ProgramError
from runtime.ops import aten
from runtime.storage.allowed import allowed_operators
from tests.end_to_end.operator_calls import call_of, composites
from tests.oracle import check, check_module, same

pytestmark = pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")
PACKED = {f"aten.{kind}.data" for kind in ("gru", "lstm", "rnn_tanh", "rnn_relu")}
"""The shapes of their results depend on data: refused, with autocast and without."""

DTYPES = [torch.bfloat16, torch.float16]
NO_KERNEL = "could not create a primitive"
"""What eager says of recurrent layers where the processor has none for the lower precision."""


def autocast(dtype: torch.dtype = torch.bfloat16, enabled: bool = True) -> torch.autocast:
    """Autocast without its cache, which adds the gradients of a weight's uses in the lower precision."""
    return torch.autocast("cpu", dtype, enabled=enabled, cache_enabled=False)


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in value for one in tensors(item)] if isinstance(value, (list, tuple)) else []


def needing(value: Any) -> Any:
    """The same arguments as leaves that need gradients."""
    if isinstance(value, torch.Tensor):
        return value.clone().requires_grad_() if value.is_floating_point() else value
    return [needing(item) for item in value] if isinstance(value, list) else value


def differs(overload: Any, args: list[Any], dtype: torch.dtype) -> bool:
    """Whether autocast makes a difference to a call in eager: to a value, whatever the dtype, so not by the oracle."""
    torch.manual_seed(0)
    plain = tensors(overload(*copy.deepcopy(args)))
    torch.manual_seed(0)
    try:
        with autocast(dtype):
            cast = tensors(overload(*copy.deepcopy(args)))
    except RuntimeError as error:
        if NO_KERNEL in str(error):
            return False
        raise
    pairs = [(a.dtype, b.dtype, a.to(torch.complex128), b.to(torch.complex128)) for a, b in zip(plain, cast)]
    return any(one != other or not torch.equal(a, b) for one, other, a, b in pairs)


KERNELS = ["aten._trilinear.default", "aten._euclidean_dist.default", "aten._foreach_mm.default"]
"""Operators with a kernel of their own that calls others, which autocast casts."""


@functools.cache
def calls() -> dict[str, list[Any]]:
    """Every composite operator that a call was found for."""
    names = [*composites(), *(name for name in KERNELS if hasattr(torch.ops.aten, name.split(".")[1]))]
    return {name: args for name in names if (args := call_of(name)) is not None}


@functools.cache
def casting() -> dict[str, list[Any]]:
    """Those of them that autocast changes."""
    return {name: args for name, args in calls().items() if differs(aten.resolve(name), args, torch.bfloat16)}


def test_every_composite_operator_around() -> None:
    """Called under autocast; operators that look at their data, or give numbers, may be refused."""
    refused, wrong = [], []
    for name, args in calls().items():
        overload = aten.resolve(name)
        try:
            with autocast():
                check(lambda *a, overload=overload: overload(*a), args, paths=["program"])
        except dy2static.Dy2StaticError as error:
            refused.append((name, error.code))
        except Exception as error:
            wrong.append((name, str(error)))
    print(f"{len(list(composites()))} composite operators, {len(calls())} called, {len(refused)} refused: {refused}")
    assert not wrong
    assert len(calls()) > 320
    in_place = {"aten.swapdims_.default", "aten.swapaxes_.default"}  # of the caller's tensors
    assert {name for name, _ in refused} <= {*PACKED, "aten.combinations.default", *in_place}


def test_what_autocast_changes() -> None:
    print(f"{len(casting())} operators that autocast changes inside: {sorted(casting())}")
    assert len(casting()) > 25
    assert {"aten.einsum.default", "aten.gru_cell.default", "aten._trilinear.default"} <= set(casting())


def gradients(function: Callable[..., Any], args: list[Any]) -> Any:
    """The results and the gradients of the arguments, or that backward raises."""
    given = needing(args)
    try:
        results = tensors(function(*given))
    except RuntimeError as error:
        return str(error).split("\n")[0]
    needed = [one for one in results if one.requires_grad]
    if not needed:
        return results
    total = sum(one.abs().double().sum() for one in needed)
    leaves = [one for one in tensors(given) if one.requires_grad]
    try:
        return results, torch.autograd.grad(total, leaves, allow_unused=True)
    except RuntimeError as error:
        return results, str(error).split("\n")[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "inside", [pytest.param(False, marks=pytest.mark.slow), True], ids=["around", "inside"]
)
def test_operators_that_autocast_changes(dtype: torch.dtype, inside: bool) -> None:
    """Without gradients, and with them on both roads; backward is called without autocast, and under it."""
    wrong, count, unsupported = [], 0, []
    for name, args in casting().items():
        if name in PACKED or name == "aten.linalg_pinv.rcond_tensor":  # its second tensor may need no gradient
            continue
        overload = aten.resolve(name)

        def body(*a: Any, overload: Any = overload) -> Any:
            with autocast(dtype):
                return overload(*a)

        def around(*a: Any, overload: Any = overload) -> Any:
            return overload(*a)

        function = body if inside else around
        static = dy2static.to_static(function)
        surroundings = contextlib.nullcontext() if inside else autocast(dtype)
        try:
            with surroundings:
                eager = tensors(function(*copy.deepcopy(args)))
        except RuntimeError:  # not every processor has a kernel for float16
            unsupported.append(name)
            continue
        try:
            with surroundings:
                same(tensors(static(*copy.deepcopy(args))), eager)
            said = [one.type.dtype for one in static.program.block.yields[: len(eager)]]
            assert said == [one.dtype for one in eager], f"the Program says {said}"
            for path in ("program", "autograd"):
                with gradient_path(path):
                    for _ in range(2):  # the first backward under autocast is another than the second
                        with surroundings:
                            same(gradients(static, args), gradients(function, args), f"{name} {path}", 1e-3)
            count += 1
        except Exception as error:
            wrong.append((name, str(error)))
    print(f"{count} operators; eager has no kernel for {unsupported}")
    assert not wrong
    assert set(unsupported) <= ({"aten.lstm.input"} if dtype is torch.float16 else set())
    assert count > 25


class Recurrent(nn.Module):
    """Every kind of recurrent layer, behind a layer that gives the lower precision."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 5)
        self.gru_cell, self.lstm_cell, self.rnn_cell = nn.GRUCell(5, 6), nn.LSTMCell(5, 3), nn.RNNCell(4, 2)
        self.gru, self.lstm, self.rnn = nn.GRU(4, 3, num_layers=2), nn.LSTM(4, 3), nn.RNN(4, 3)
        self.bilinear = nn.Bilinear(4, 4, 2)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        if x.sum() > 0:
            h = self.gru_cell(y, x.new_zeros(3, 6))
        else:
            h = self.gru_cell(y)
        sequences = self.gru(x[None])[0], self.lstm(x[None])[0], self.rnn(x[None])[0]
        return h, self.lstm_cell(y), self.rnn_cell(x), sequences, self.bilinear(x, x)


class Regions(nn.Module):
    """Autocast entered in a branch, in a loop, around both, and left in between."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.cell, self.bilinear = nn.Linear(4, 4), nn.GRUCell(4, 4), nn.Bilinear(4, 4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        if x.sum() > 0:
            with autocast():
                y = torch.einsum("ij,kj->ik", x, x).float()
        else:
            with autocast(), autocast(enabled=False):
                y = torch.einsum("ij,kj->ik", x, x) * 2
        h = x
        while h.abs().sum() > 1:
            with autocast(torch.float16):
                h = self.cell(h).float() * 0.5
                with autocast(enabled=False):
                    h = h + torch.inner(h, h).sum() * 0.01
            h = h * 0.5
        with autocast():
            z = self.bilinear(h, x)
            with autocast(enabled=False):
                v = torch.tensordot(x, x.t(), 1)
            w = torch.cov(z) if x.sum() > 0 else torch.corrcoef(z)
        return y, h, z, v, w.float(), torch.chain_matmul(x, x.t())


@pytest.mark.parametrize("make", [Recurrent, Regions], ids=["recurrent", "regions"])
@pytest.mark.parametrize("around", [False, True], ids=["plain", "around"])
def test_modules(make: Callable[[], nn.Module], around: bool) -> None:
    x = torch.linspace(-0.5, 1, 12).reshape(3, 4)
    with autocast(enabled=around), torch.set_grad_enabled(not around or make is Recurrent):
        try:
            make()(x)
        except RuntimeError as error:
            if NO_KERNEL in str(error):
                pytest.skip("eager has no kernel for it on this processor")
            raise
        check_module(make, [x], [-x], tolerance=2e-2)


def test_an_encoder_layer_in_eval() -> None:
    def make() -> nn.Module:
        return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()

    with autocast():
        check_module(make, [torch.rand(2, 3, 8)], [torch.rand(4, 3, 8)])


def test_backward_under_autocast_is_eagers_at_every_call() -> None:
    """The backward formulas of ``qr`` multiply matrices, in the precision of backward's surroundings."""

    def function(x: torch.Tensor) -> torch.Tensor:
        q, r = torch.linalg.qr(x)
        return q * 2 + r

    static = dy2static.to_static(function)
    for forward, backward in [(True, False), (True, True), (True, True), (False, True), (False, False), (True, False)]:
        found = []
        for one in (static, function):
            x = (torch.arange(9.0).reshape(3, 3) ** 1.5 % 4 + torch.eye(3)).requires_grad_()
            with autocast(enabled=forward):
                y = one(x).sum()
            with autocast(enabled=backward):
                found.append(torch.autograd.grad(y, x))
        same(found[0], found[1], f"{forward} {backward}", 1e-6)


@pytest.mark.parametrize("kind", ["recurrent", "regions"])
def test_loaded(kind: str, tmp_path: Path) -> None:
    """A Program is saved as it is without autocast around: what is in a region of its own casts as it did."""
    torch.manual_seed(0)
    module = (Recurrent if kind == "recurrent" else Regions)()
    path = dy2static.save(module, tmp_path / "f", input_spec=[dy2static.InputSpec([3, 4], torch.float32)])
    loaded = dy2static.load(path)
    x = torch.linspace(-0.5, 1, 12).reshape(3, 4)
    for given in (x, -x):
        same(loaded(given), module(given), tolerance=1e-5)


@pytest.mark.parametrize("name", ["einsum", "inner", "gru_cell", "lstm_cell", "matrix_power", "cov", "_trilinear"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_loaded_operators(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    """Called in a region of the saved function, and under autocast around the loaded one."""
    full = next(one for one in casting() if one.startswith(f"aten.{name}."))
    overload, args = aten.resolve(full), casting()[full]
    given = needing(tensors(args))

    def call(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
        rest = iter([a, b, c, d, e, f, g])
        return overload(*_filled(args, rest))

    def inside(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
        with autocast(dtype):
            return call(a, b, c, d, e, f, g)

    arguments = [*given, *[torch.zeros(1)] * (7 - len(given))]
    for function, around in ((inside, False), (call, True)):
        static = dy2static.to_static(function)
        static(*arguments)
        loaded = dy2static.load(dy2static.save(static, tmp_path / "f"))
        found = []
        for one in (loaded, function):
            with autocast(dtype, enabled=around):
                results = tensors(one(*arguments))
            total = sum(result.abs().double().sum() for result in results)
            found.append((results, torch.autograd.grad(total, given)))
        same(found[0], found[1], full, 1e-3)


def _filled(value: Any, rest: Iterator[Any]) -> Any:
    """A call's arguments with other tensors in their places."""
    if isinstance(value, torch.Tensor):
        return next(rest)
    return [_filled(item, rest) for item in value] if isinstance(value, list) else value


HELD = torch.autocast("cpu", torch.bfloat16)


class Decorated(nn.Module):
    """Autocast objects from before the trace, with a cache of cast weights that may not cross from path to path."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.step, self.how, self.cast = nn.Linear(3, 3), how, torch.autocast("cpu", torch.bfloat16)

    def loop(self, x: Any) -> Any:
        n = 0
        while x.abs().mean() > 0.2 and n < 3:
            x = torch.tanh(self.step(x)) * 0.7
            n += 1
        return self.step(x)

    @torch.autocast("cpu", torch.bfloat16)
    def decorated(self, x: Any) -> Any:
        return self.loop(x)

    @torch.amp.autocast("cpu", dtype=torch.bfloat16, cache_enabled=True)
    def decorated_with_cache(self, x: Any) -> Any:
        return self.loop(x)

    def held(self, x: Any) -> Any:
        with self.cast:
            y = self.loop(x)
        with HELD:
            return self.loop(y.float())

    def switched(self, x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            torch.set_autocast_cache_enabled(True)
            return self.loop(x)

    def forward(self, x: Any) -> Any:
        return getattr(self, self.how)(x)


@pytest.mark.parametrize("how", ["decorated", "decorated_with_cache", "held", "switched"])
def test_autocast_from_before_the_trace(how: str) -> None:
    torch.manual_seed(0)
    eager = Decorated(how)
    module = dy2static.to_static(copy.deepcopy(eager))
    before = torch.is_autocast_cache_enabled()
    for scale in (1.0, 0.01, -3.0):
        x = torch.ones(2, 3) * scale
        with torch.no_grad():
            got, expected = module(x), eager(x)
        assert got.dtype == expected.dtype == torch.bfloat16 and torch.equal(got, expected)
        assert torch.is_autocast_cache_enabled() == before


def test_a_forward_that_a_decorator_wraps() -> None:
    """As ``accelerate`` does it."""
    torch.manual_seed(0)
    eager = Decorated("loop")
    module = copy.deepcopy(eager)
    for one in (eager, module):
        one.forward = torch.autocast("cpu", torch.bfloat16, cache_enabled=False)(one.forward)  # type: ignore[method-assign]
    module = dy2static.to_static(module)
    for scale in (1.0, 0.01):
        found = []
        for one in (eager, module):
            x = (torch.ones(2, 3) * scale).requires_grad_()
            one.zero_grad()
            y = one(x)
            y.sum().backward()
            found.append([y, x.grad, *(p.grad for p in one.parameters())])
        assert all(torch.equal(a, b) for a, b in zip(*found))


def test_whether_autocast_keeps_casts() -> None:
    """A trace lets it keep none; the function is told what is so outside, or is refused."""

    def outside(x: Any) -> Any:
        y = x * 2
        return torch.is_autocast_cache_enabled(), y

    def inside(x: Any) -> Any:
        with HELD:
            y = x @ x
            return torch.is_autocast_cache_enabled(), y

    x = torch.ones(2, 2)
    assert dy2static.to_static(outside)(x)[0] is outside(x)[0] is True
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        assert dy2static.to_static(outside)(x)[0] is outside(x)[0] is False
    with pytest.raises(dy2static.Dy2StaticError, match="D2S214"):
        dy2static.to_static(inside)(x)


@pytest.mark.slow
def test_kernels_that_call_what_autocast_casts() -> None:
    """Each operator with a kernel of its own, with and without autocast: who gives other dtypes is in the table."""
    known, found, count = set(torch_internals.CASTING_KERNELS), [], 0
    for name in sorted(allowed_operators()):
        try:
            overload = aten.resolve(name)
        except ProgramError:  # of another version of torch
            continue
        of_autocast = torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "AutocastCPU")
        if of_autocast or torch_internals.is_composite(overload) or any(part in name for part in _CRASHING):
            continue
        args = call_of(name)
        if args is None:
            continue
        count += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = tensors(overload(*copy.deepcopy(args)))
            with autocast(torch.bfloat16):
                cast = tensors(overload(*copy.deepcopy(args)))
        if [one.dtype for one in plain] != [one.dtype for one in cast] and overload._schema.name not in known:
            found.append(name)
    assert not found
    assert count > 600


_CRASHING = ("_batch_norm_no_update", "_native_batch_norm_legit", "_nnpack_spatial_convolution")
"""They take what they are given for valid."""
LAYERS: dict[str, dict[str, Any]] = {
    "plain": {}, "norm first": {"norm_first": True}, "gelu": {"activation": "gelu"}, "no biases": {"bias": False},
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mask", [None, "padding", "causal"])
@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("kind", LAYERS)
def test_transformer_layers_in_evaluation(
    kind: str, depth: int, mask: str | None, dtype: torch.dtype, tmp_path: Path
) -> None:
    """Without gradients they are one kernel, whose results have the dtype of autocast; who asks is told so."""

    class Asks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, **LAYERS[kind])
            self.inner: nn.Module = layer
            if depth:
                self.inner = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, str]:
            given: dict[str, Any] = {}
            if mask == "padding":
                given["src_key_padding_mask"] = torch.arange(x.shape[1]).expand(x.shape[0], -1) > 1
            if mask == "causal":
                causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
                given["mask" if depth else "src_mask"] = causal
            with autocast(dtype):
                y = self.inner(x, **given)
                return (y * 100 if y.dtype == torch.float32 else y), str(y.dtype)

    torch.manual_seed(0)
    module = Asks().eval()
    static = dy2static.to_static(copy.deepcopy(module))
    with torch.no_grad():
        for shape in ((1, 3, 4), (2, 4, 4)):
            x = torch.rand(*shape)
            same(static(x), module(x))
        dy2static.save(static, tmp_path / "layer.d2s", input_spec=[dy2static.InputSpec([None, None, 4])])
        loaded = dy2static.load(tmp_path / "layer.d2s")
        x = torch.rand(3, 2, 4)
        same(loaded(x), module(x))
