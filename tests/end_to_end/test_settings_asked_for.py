"""Functions that ask how the process is set: eager's answer in each call, whatever it was in the first one."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
import torch.utils.deterministic

from dy2static import to_static

Context = Callable[[], Any]


def setter(change: Callable[[Any], Any], usual: Any, other: Any) -> Context:
    @contextlib.contextmanager
    def changed() -> Any:
        change(other)
        try:
            yield
        finally:
            change(usual)

    return changed


def attribute(owner: Any, name: str, other: Any) -> Context:
    return setter(lambda value: setattr(owner, name, value), getattr(owner, name), other)


QUESTIONS: dict[str, Context] = {
    "torch.autograd._profiler_enabled()": torch.autograd.profiler.profile,
    "torch.is_anomaly_enabled()": torch.autograd.detect_anomaly,
    "torch.is_anomaly_check_nan_enabled()": lambda: torch.autograd.detect_anomaly(check_nan=False),
    "torch.get_default_dtype()": setter(torch.set_default_dtype, torch.float32, torch.float64),
    "torch.is_grad_enabled()": torch.no_grad,
    "torch.is_inference_mode_enabled()": torch.inference_mode,
    "torch.is_autocast_enabled('cpu')": lambda: torch.autocast("cpu"),
    "torch.get_autocast_dtype('cpu')": lambda: torch.autocast("cpu", dtype=torch.float16),
    "torch.is_autocast_cache_enabled()": lambda: torch.autocast("cpu", cache_enabled=False),
    "torch.are_deterministic_algorithms_enabled()": setter(torch.use_deterministic_algorithms, False, True),
    "torch.get_deterministic_debug_mode()": setter(torch.set_deterministic_debug_mode, 0, 1),
    "torch.get_float32_matmul_precision()": setter(torch.set_float32_matmul_precision, "highest", "medium"),
    "torch.is_warn_always_enabled()": setter(torch.set_warn_always, False, True),
    "torch.get_num_threads()": setter(torch.set_num_threads, torch.get_num_threads(), torch.get_num_threads() + 1),
    "torch.get_default_device()": setter(torch.set_default_device, None, "cpu:0"),
    "torch.autograd.is_multithreading_enabled()": lambda: torch.autograd.set_multithreading_enabled(False),
    "torch._C._is_view_replay_enabled()": lambda: torch.autograd._force_original_view_tracking(True),
    "torch._C._autograd._saved_tensors_hooks_is_enabled()":
        lambda: torch.autograd.graph.disable_saved_tensors_hooks("not now"),
    "torch.sparse.check_sparse_tensor_invariants.is_enabled()": torch.sparse.check_sparse_tensor_invariants,
    "torch.__future__.get_overwrite_module_params_on_conversion()":
        setter(torch.__future__.set_overwrite_module_params_on_conversion, False, True),
    "torch.__future__.get_swap_module_params_on_conversion()":
        setter(torch.__future__.set_swap_module_params_on_conversion, False, True),
    "torch.backends.mkldnn.enabled": lambda: torch.backends.mkldnn.flags(False),
    "torch.backends.cudnn.benchmark": lambda: torch.backends.cudnn.flags(True, True),
    "torch.backends.opt_einsum.enabled": attribute(torch.backends.opt_einsum, "enabled", False),
    "torch.backends.cuda.flash_sdp_enabled()": setter(torch.backends.cuda.enable_flash_sdp, True, False),
    "torch.backends.mha.get_fastpath_enabled()": setter(torch.backends.mha.set_fastpath_enabled, True, False),
    "torch.utils.checkpoint._checkpoint_debug_enabled":
        lambda: torch.utils.checkpoint.set_checkpoint_debug_enabled(True),
    "torch.utils.deterministic.fill_uninitialized_memory":
        attribute(torch.utils.deterministic, "fill_uninitialized_memory", False),
    "torch.distributions.Distribution._validate_args":
        setter(torch.distributions.Distribution.set_default_validate_args, True, False),
}  # fmt: skip
FORMS = {
    "given back": "    return {question}, x + 1",
    "decides": "    if {question} == {usual}:\n        return x * 2\n    return x - 1",
    "on a path":
        "    said = None\n    if x.sum() > 0:\n        said = str({question})\n        x = x * 2\n    return said, x",
    "in a loop":
        "    for i in range(int(x.sum())):\n        x = x + (0.5 if {question} == {usual} else 0.25)\n    return x",
}  # fmt: skip
ORDERS = ("usual first", "other first")


def made(question: str, form: str, folder: Path) -> Any:
    usual = repr(eval(question))  # one of ours
    body = FORMS[form].format(question=question, usual=usual.replace("device(type='cpu')", "torch.device('cpu')"))
    file = folder / "asks.py"
    file.write_text(f"import torch\n\n\ndef f(x):\n{body}\n")
    spec = importlib.util.spec_from_file_location("asks", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def said(function: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return repr(function(torch.tensor([1.0, 2.0])))


@pytest.mark.sample(40)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("question", "form", "order"), [*itertools.product(QUESTIONS, FORMS, ORDERS)])
def test_answers(question: str, form: str, order: str, tmp_path: Path) -> None:
    f = made(question, form, tmp_path)
    static = to_static(f)
    if order == "usual first":
        assert said(static) == said(f)
    for _ in range(2):
        with QUESTIONS[question]():
            expected = said(f)
            assert said(static) == expected
        assert said(static) == said(f)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("check", [False, True])
def test_what_the_function_sets_itself(around: bool, check: bool) -> None:
    def f(x: Any) -> Any:
        before = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
        with torch.autograd.set_detect_anomaly(True, check_nan=check):
            inside = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
            x = x * 2
        return before, inside, x, torch.is_anomaly_enabled()

    static = to_static(f)
    for _ in range(3):
        with torch.autograd.set_detect_anomaly(around):
            assert said(static) == said(f)
    assert len(static.programs) == 1
