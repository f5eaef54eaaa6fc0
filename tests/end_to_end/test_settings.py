"""Settings of the process: those that the function sets around operators, those that it leaves, those it asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import dy2static
from runtime import torch_internals
from runtime.errors import Dy2StaticError
from runtime.executor import compile_program
from runtime.ir import Program
from runtime.ir.parser import parse_program
from tests.oracle import check

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")


def math_only(x: Any) -> Any:
    with sdpa_kernel([SDPBackend.MATH]):
        return F.scaled_dot_product_attention(x, x, x)


def each_in_turn(x: Any) -> Any:
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        a = F.scaled_dot_product_attention(x, x, x)
    with sdpa_kernel(SDPBackend.MATH):
        b = F.scaled_dot_product_attention(x, x, x)
    return a, b, F.scaled_dot_product_attention(x, x, x)


def on_a_path(x: Any) -> Any:
    if x.sum() > 0:
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(x, x, x)
    return F.scaled_dot_product_attention(x, x, x)


def in_a_loop(x: Any) -> Any:
    outs = []
    for i in range(int(x.abs().sum()) % 3 + 1):
        if i == 1:
            x = F.scaled_dot_product_attention(x, x, x)
        else:
            with sdpa_kernel(SDPBackend.MATH):
                x = F.scaled_dot_product_attention(x, x, x)
        outs.append(x)
    return outs


def without_mkldnn(x: Any) -> Any:
    with torch.backends.mkldnn.flags(enabled=False):
        y = F.conv2d(x, x[:, :, :3, :3])
    return y, F.conv2d(x, x[:, :, :3, :3])


def without_cudnn(x: Any) -> Any:
    with torch.backends.cudnn.flags(enabled=False):
        return x.softmax(-1)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize(
    "function", [math_only, each_in_turn, on_a_path, in_a_loop, without_mkldnn, without_cudnn]
)
def test_operators_run_under_them(function: Callable[..., Any], dtype: Any, gradient: bool, tmp_path: Path) -> None:
    before = torch_internals.settings()
    generator = torch.Generator().manual_seed(0)
    calls = [((torch.randn(2, 2, 32, 16, generator=generator) + shift).to(dtype).requires_grad_(gradient),)
             for shift in (0.3, -0.3)]  # fmt: skip
    paths = ("program", "autograd") if dtype is torch.float32 else ("program",)
    static = check(function, *calls, paths=paths, gradient_tolerance=1e-5 if dtype is torch.float32 else 1e-2)
    dy2static.save(static, tmp_path / "f.d2s")
    check(function, *calls, static=dy2static.load(tmp_path / "f.d2s"), paths=("program",), gradient_tolerance=1e-2)
    assert torch_internals.settings() == before


def test_the_operator_names_what_differs() -> None:
    static = dy2static.to_static(each_in_turn)
    static(torch.ones(1, 1, 2, 2))
    settings = [dict(op.attrs.get("settings", ())) for op in static.programs[0].block.walk() if "scaled" in op.name]
    assert [one.get("sdp_math") for one in settings] == [False, None, None]
    assert [one.get("sdp_flash") for one in settings] == [None, False, None]


def disabled(x: Any) -> Any:
    torch.backends.cuda.enable_flash_sdp(False)
    return x * 2


def without_gradients(x: Any) -> Any:
    torch.set_grad_enabled(False)
    return x * 2


def left_on_a_path(x: Any) -> Any:
    if x.sum() > 0:
        torch.backends.cuda.enable_math_sdp(False)
    return x * 2


def anomalous(x: Any) -> Any:
    torch.autograd.set_detect_anomaly(True)
    return x * 2


def tf32(x: Any) -> Any:
    torch._C._set_cublas_allow_tf32(not torch._C._get_cublas_allow_tf32())
    return x @ x


def rounded_sums(x: Any) -> Any:
    torch._C._set_cublas_allow_fp16_reduced_precision_reduction(False)
    return x @ x


def fewer_bits(x: Any) -> Any:
    torch._C._set_fp32_precision_setter("mkldnn", "matmul", "bf16")
    return x @ x


@pytest.mark.parametrize("function", [
    disabled, without_gradients, left_on_a_path, anomalous, tf32, rounded_sums, fewer_bits])
def test_what_is_left_changed_is_refused_and_put_back(function: Callable[..., Any]) -> None:
    before = torch_internals.settings()
    others = torch_internals.ambient_modes()
    with pytest.raises(Dy2StaticError, match="stays so after it"):
        dy2static.to_static(function)(torch.ones(2, 2))
    assert torch_internals.settings() == before and torch_internals.ambient_modes() == others


def cublas_attribute(x: Any) -> Any:
    torch.backends.cuda.matmul.allow_tf32 = True
    return x @ x


def precision_of_one_kind(x: Any) -> Any:
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    return x @ x


def module_attribute(x: Any) -> Any:
    torch.backends.cudnn.allow_tf32 = False
    return x @ x


def denormals(x: Any) -> Any:
    torch.set_flush_denormal(True)
    return x * x


def digits(x: Any) -> Any:
    with torch._tensor_str.printoptions(precision=2):
        print(x)
    return x


@pytest.mark.parametrize(
    "function", [cublas_attribute, precision_of_one_kind, module_attribute, denormals, digits])
def test_a_change_that_no_operator_would_see_is_refused(function: Callable[..., Any]) -> None:
    before = torch_internals.ambient_modes()
    with pytest.raises(Dy2StaticError, match="while tracing only"):
        dy2static.to_static(function)(torch.ones(2, 2))
    assert torch_internals.ambient_modes() == before


def rounded_in_between(x: Any) -> Any:
    with torch.backends.mkldnn.flags(enabled=True, deterministic=False, fp32_precision="bf16"):
        y = torch.mm(x, x)
    return torch.mm(x, x), y, torch.mm(x, x)


@pytest.mark.skipif(not hasattr(torch.backends.mkldnn, "fp32_precision"), reason="newer versions of PyTorch have it")
def test_float32_under_another_precision(tmp_path: Path) -> None:
    """Where PyTorch's bits differ under it, so do ours; and the settings are what they were."""
    before = torch_internals.settings()
    calls = [(torch.randn(64, 64),), (torch.randn(64, 64),)]
    static = check(rounded_in_between, *calls, paths=("program",))
    named = [dict(op.attrs.get("settings", ())) for op in static.programs[0].block.walk() if "aten.mm" in op.name]
    assert [one.get("float32_mkldnn_all") for one in named] == ["bf16", None, None]
    dy2static.save(static, tmp_path / "f.d2s")
    check(rounded_in_between, *calls, static=dy2static.load(tmp_path / "f.d2s"), paths=("program",))
    assert torch_internals.settings() == before


def asks_precision(x: Any) -> Any:
    return x * (2 if torch.get_float32_matmul_precision() == "high" else 3)


def asks_flash(x: Any) -> Any:
    return x * (2 if torch.backends.cuda.flash_sdp_enabled() else 3)


def asks_mkldnn(x: Any) -> Any:
    return x * (2 if torch.backends.mkldnn.enabled else 3)


def asks_cudnn(x: Any) -> Any:
    return x * (2 if torch.backends.cudnn.deterministic else 3)


def asks_threads(x: Any) -> Any:
    return x * torch.get_num_threads()


def asks_inside(x: Any) -> Any:
    with sdpa_kernel(SDPBackend.MATH):
        return x * (2 if torch.backends.cuda.flash_sdp_enabled() else 3)


def _cudnn_deterministic(value: bool) -> None:
    torch.backends.cudnn.deterministic = value


@pytest.mark.parametrize(("function", "change", "values"), [
    (asks_precision, torch.set_float32_matmul_precision, ("high", "highest")),
    (asks_flash, torch.backends.cuda.enable_flash_sdp, (False, True)),
    (asks_mkldnn, torch._C._set_mkldnn_enabled, (False, True)),
    (asks_cudnn, _cudnn_deterministic, (True, False)),
    (asks_threads, torch.set_num_threads, (2, 1)),
    (asks_inside, torch.backends.cuda.enable_flash_sdp, (False, True)),
])  # fmt: skip
def test_what_is_asked_for_may_change_between_calls(function: Any, change: Any, values: Any) -> None:
    static = dy2static.to_static(function)
    x = torch.ones(2)
    try:
        for value in (*reversed(values), *values):
            change(value)
            assert torch.equal(static(x), function(x)), value
    finally:
        change(values[1])
    assert len(static.programs) <= 2


def test_a_derivative_is_made_for_the_settings_of_the_call() -> None:
    def attend(x: Any) -> Any:
        return F.scaled_dot_product_attention(x, x, x)

    static = dy2static.to_static(attend)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        results = []
        for one in (static, attend):
            x = torch.linspace(-1, 1, 512).view(1, 2, 16, 16).half().requires_grad_()
            with sdpa_kernel(backend):
                y = one(x)
            results.append((y, torch.autograd.grad(y.float().square().sum(), x)[0]))
        assert all(map(torch.equal, *results)), backend


def chosen(x: Any) -> Any:
    with sdpa_kernel(SDPBackend.MATH if x.sum() > 0 else SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(x, x, x)


def test_which_is_set_is_known_while_tracing() -> None:
    with pytest.raises(Dy2StaticError, match="which context manager is entered") as error:
        dy2static.to_static(chosen)(torch.ones(1, 1, 2, 2))
    assert error.value.code == "D2S212"


def hooked(x: Any) -> Any:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        return x * x


def kept_on_the_cpu(x: Any) -> Any:
    with torch.autograd.graph.save_on_cpu():
        return x * x


def test_hooks_for_saved_tensors() -> None:
    with pytest.raises(Dy2StaticError, match="hooks for saved tensors") as error:
        dy2static.to_static(hooked)(torch.ones(2, requires_grad=True))
    assert error.value.code == "D2S214"
    check(kept_on_the_cpu, (torch.ones(2, requires_grad=True),))


@pytest.mark.parametrize("settings", ['(("sdp_none", True),)', '(("mkldnn", 3),)', '("mkldnn",)', "(1,)"])
def test_a_file_may_name_none_that_do_not_exist(settings: str) -> None:
    program: Program = parse_program(
        'program "f" {\n  input %x : f32[2] = "x"\n  %y : f32[2] = aten.neg.default(%x) attrs {settings: '
        + settings + "}\n  return %y as $0\n}"
    )
    with pytest.raises(Dy2StaticError, match="no settings"):
        compile_program(program)


def with_or_without(x: Any) -> Any:
    return x * 2 if torch.is_grad_enabled() else x * 3


class WithOrWithout(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x: Any) -> Any:
        if torch.is_grad_enabled() and self.weight.requires_grad:
            x = x * self.weight
        return x + (1 if self.training else 2)


@pytest.mark.parametrize("make", [lambda: with_or_without, lambda: WithOrWithout().train(), lambda: WithOrWithout()])
@pytest.mark.parametrize("first", [True, False])
def test_a_file_answers_whether_gradients_are_enabled(make: Callable[[], Any], first: bool, tmp_path: Path) -> None:
    eager, x = make(), torch.full((2,), 3.0)
    static = dy2static.to_static(make())
    with torch.set_grad_enabled(first):
        static(x)
        dy2static.save(static, tmp_path / "f.d2s")
    loaded = dy2static.load(tmp_path / "f.d2s")
    for training in (True, False) if isinstance(eager, torch.nn.Module) else (True,):
        if isinstance(eager, torch.nn.Module):
            eager.train(training)
            loaded.train(training)
        for enabled in (True, False, True):
            with torch.set_grad_enabled(enabled):
                assert torch.equal(loaded(x), eager(x))
