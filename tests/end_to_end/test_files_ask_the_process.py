"""What a saved function asks of the process: autocast and dtypes that hang on it, inference mode, settings of PyTorch.

Each function is saved once and called in every state. It gives what eager gives there, or the call is refused with
D2S320: never another result. Saved under autocast, a file has a Program for that, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import InputSpec, SignatureError
from tests.oracle import hold, run


def autocast_on(x):
    return x * 3 if torch.is_autocast_enabled("cpu") else x * 1


def autocast_dtype(x):
    return x * 3 if torch.get_autocast_dtype("cpu") == torch.bfloat16 else x * 1


def inference_on(x):
    return x * 3 if torch.is_inference_mode_enabled() else x * 1


def made_in_inference(x):
    return x * 3 if (x * 1).is_inference() else x * 1


def default_dtype(x):
    return x * 3 if torch.get_default_dtype() == torch.float64 else x * 1


def deterministic(x):
    return x * 3 if torch.are_deterministic_algorithms_enabled() else x * 1


def fast_path(x):
    return x * 3 if torch.backends.mha.get_fastpath_enabled() else x * 1


def cudnn(x):
    return x * 3 if torch.backends.cudnn.deterministic else x * 1


def anomaly(x):
    return x * 3 if torch.is_anomaly_enabled() else x * 1


def precision(x):
    return x * 3 if torch.get_float32_matmul_precision() == "high" else x * 1


def nothing(x):
    return torch.mm(x[None], torch.eye(3)).relu() * 2


def dtype(x):
    y = torch.mm(x[None], torch.eye(3))
    return y * 3 if y.dtype == torch.float32 else y


def dtype_of_argument(x):
    return torch.mm(x[None], torch.eye(3)) * 3 if x.dtype == torch.float32 else x


def cast_to_dtype(x):
    y = torch.mm(x[None], torch.eye(3))
    return y.float().square().to(y.dtype)


def cast_like(x):
    y = torch.mm(x[None], torch.eye(3))
    return x.to(y) * 1, x.type_as(y) * 1


def cast_always(x):
    return torch.mm(x[None], torch.eye(3)).to(torch.float64), x.double()


def smallest(x):
    y = torch.mm(x[None], torch.eye(3))
    return y.masked_fill(y > 2, torch.finfo(y.dtype).min)


def size_of_element(x):
    y = torch.mm(x[None], torch.eye(3))
    return y * y.element_size()


def promoted(x):
    y = torch.mm(x[None], torch.eye(3))
    return torch.zeros(2, dtype=torch.result_type(y, x))


def as_name(x):
    return torch.mm(x[None], torch.eye(3)).type()


def floating(x):
    y = torch.mm(x[None], torch.eye(3))
    return y * 2 if torch.is_floating_point(y) else y


def in_torch(x):
    return torch.nn.functional.gumbel_softmax(torch.mm(x[None], torch.eye(3)), hard=True)


def inside(x):
    with torch.autocast("cpu", torch.bfloat16):
        return torch.mm(x[None], torch.eye(3))


@contextlib.contextmanager
def _set(get: Callable[[], Any], put: Callable[[Any], None], value: Any) -> Iterator[None]:
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


def _cudnn(value: Any) -> None:
    torch.backends.cudnn.deterministic = value


STATES: dict[str, Callable[[], Any]] = {
    "plain": contextlib.nullcontext,
    "bfloat16": lambda: torch.autocast("cpu", torch.bfloat16),
    "float16": lambda: torch.autocast("cpu", torch.float16),
    "no autocast": lambda: torch.autocast("cpu", enabled=False),
    "inference": torch.inference_mode,
    "no gradients": torch.no_grad,
    "float64": lambda: _set(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "deterministic": lambda: _set(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True),
    "no fast path": lambda: _set(
        torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled, False),
    "cudnn": lambda: _set(lambda: torch.backends.cudnn.deterministic, _cudnn, True),
    "anomaly": lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
    "precision": lambda: _set(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "high"),
}  # fmt: skip
_AUTOCAST = {"bfloat16", "float16"}
REFUSED: dict[Callable[..., Any], set[str]] = {
    autocast_on: _AUTOCAST,
    autocast_dtype: _AUTOCAST,
    inference_on: {"inference"},
    made_in_inference: {"inference"},
    default_dtype: {"float64"},
    deterministic: {"deterministic"},
    fast_path: {"no fast path"},
    cudnn: {"cudnn"},
    anomaly: {"anomaly"},
    precision: {"precision"},
    nothing: set(),
    dtype: _AUTOCAST,
    dtype_of_argument: set(),
    cast_to_dtype: _AUTOCAST,
    cast_like: _AUTOCAST,
    cast_always: set(),
    smallest: _AUTOCAST,
    size_of_element: _AUTOCAST,
    promoted: _AUTOCAST,
    as_name: _AUTOCAST,
    floating: _AUTOCAST,
    in_torch: set(),
    inside: set(),
}
_MAKES_FLOATS = {nothing, dtype, dtype_of_argument, cast_to_dtype, cast_like, cast_always, smallest, size_of_element,
                 promoted, as_name, floating, in_torch, inside}  # fmt: skip
"""They make a tensor of the default dtype, which a file has as it was saved: in eager another one raises here."""


@pytest.mark.parametrize("saved_under", ["plain", "bfloat16"])
@pytest.mark.parametrize("function", REFUSED, ids=lambda one: one.__name__)
def test_every_call_is_as_in_eager_or_refused(function: Callable[..., Any], saved_under: str, tmp_path: Path) -> None:
    with STATES[saved_under]():
        dy2static.save(function, tmp_path / "saved", input_spec=[InputSpec([3])])
    loaded = dy2static.load(tmp_path / "saved")
    refused = set()
    for state, context in STATES.items():
        if state == "float64" and function in _MAKES_FLOATS:
            continue
        for needs in (False, True):
            mine, theirs = (torch.tensor([1.0, 2.0, 3.0], requires_grad=needs) for _ in range(2))
            with context():
                expected = run(function, (theirs,))
                try:
                    got = run(loaded, (mine,))
                except SignatureError as error:
                    assert error.code == "D2S320" or str(error).count("autocast") > 1, error
                    refused.add(state)
                    continue
            hold(got, expected, state)
    assert refused == REFUSED[function] - {saved_under}


class Attending(torch.nn.Module):
    """PyTorch's own code looks at dtypes here."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = self.linear(x)[None]
        return self.attention(h, h, h, key_padding_mask=(x.sum(-1) > 2)[None])[0]


class Normed(torch.nn.Module):
    """Computes in float32 and goes back, as language models do."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        h = self.linear(x)
        back = h.dtype
        wide = h.to(torch.float32)
        h = (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(back)
        return self.scale * h if h.sum() > 0 else h


@pytest.mark.parametrize("make", [Normed, Attending])
def test_a_layer_saved_under_autocast_has_a_program_for_it(
    make: Callable[[], torch.nn.Module], tmp_path: Path
) -> None:
    layer = make()
    with torch.autocast("cpu", torch.bfloat16):
        dy2static.save(layer, tmp_path / "layer", input_spec=[InputSpec([None, 4])])
    loaded = dy2static.load(tmp_path / "layer")
    for context in (contextlib.nullcontext(), torch.autocast("cpu", torch.bfloat16)):
        for sign in (1.0, -1.0):
            x = torch.linspace(-1.0, 2.0, 12).reshape(3, 4) * sign
            with context:
                expected = run(layer, (x,), parameters=list(layer.parameters()))
                got = run(loaded, (x,), parameters=list(loaded.parameters()))
            hold(got, expected, f"{context} {sign}")
    with torch.autocast("cpu", torch.float16), pytest.raises(SignatureError, match="autocast"):
        loaded(torch.ones(3, 4))
