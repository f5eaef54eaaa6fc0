"""What tensors of many kinds say of themselves: every attribute, and every method that needs no argument.

A fake tensor has the sizes, strides and dtype of the caller's, and not all that it is: where it is in its memory,
whether other processes share that, whether it is a conjugate, and how many elements a sparse one holds.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import difference


def _inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(2, 3)


def _conjugate() -> torch.Tensor:
    return torch.tensor([[1 + 2j, 3 - 1j]]).conj()


KINDS: dict[str, Callable[[], torch.Tensor]] = {
    "plain": lambda: torch.arange(6.0).reshape(2, 3),
    "rows": lambda: torch.arange(12.0).reshape(4, 3)[1:3],
    "transposed": lambda: torch.arange(6.0).reshape(3, 2).t(),
    "expanded": lambda: torch.arange(3.0).expand(2, 3),
    "with_gaps": lambda: torch.arange(12.0).reshape(3, 4)[:, ::2],
    "channels_last": lambda: torch.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    "conjugate": _conjugate,
    "negative": lambda: _conjugate().imag,
    "a_number": lambda: torch.tensor(3.0),
    "empty": lambda: torch.ones(0, 3),
    "of_one": lambda: torch.ones(1, 1),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
    "buffer": lambda: torch.nn.Buffer(torch.ones(2, 3)),
    "leaf": lambda: torch.ones(2, 3, requires_grad=True),
    "with_history": lambda: torch.ones(2, 3, requires_grad=True) * 2,
    "of_inference": _inference,
    "shared": lambda: torch.ones(2, 3).share_memory_(),
    "bfloat16": lambda: torch.ones(2, 3, dtype=torch.bfloat16),
    "bool": lambda: torch.tensor([[True, False]]),
    "int64": lambda: torch.arange(4).reshape(2, 2),
    "uint8": lambda: torch.arange(4, dtype=torch.uint8),
    "sparse": lambda: torch.eye(3).to_sparse(),
}
RANDOM = ("bernoulli", "cauchy", "dropout", "empty", "exponential", "geometric", "log_normal", "multinomial", "new",
          "normal", "rand", "resize", "uniform")  # fmt: skip
ELSEWHERE = frozenset({
    "backward", "cuda", "data_ptr", "hpu", "ipu", "module_load", "mtia", "pin_memory",
    "register_hook", "set_", "share_memory_", "storage", "untyped_storage", "xpu",
})  # fmt: skip
"""Other devices, memory itself, and what ``test_tensor_surface`` asks."""
KNOWN = {
    ("grad_dtype", "with_history"): "eager raises, as it is no leaf",
    ("histc", "uint8"): "both raise, in other classes",
    ("conj_physical", "negative"): "the strides: a lazy negative is made definite before",
    ("to_dense", "negative"): "the same",
}
OWN = ("_base", "_indices", "_is_view", "_nnz", "_values", "_version")
NAMES = [
    name for name in sorted(dir(torch.Tensor))
    if (not name.startswith("_") or name in OWN) and name not in ELSEWHERE and not name.startswith(RANDOM)
]  # fmt: skip


def answer(function: Callable[[Any], Any], tensor: torch.Tensor) -> Any:
    try:
        return function(tensor)
    except Dy2StaticError:
        raise
    except Exception as error:
        return type(error)


def differences(kind: str, names: list[str]) -> list[str]:
    """Where a converted question has another answer than eager's, or none of its own where eager has one."""
    found = []
    for name in names:
        def ask(x: Any, name: str = name) -> Any:
            value = getattr(x, name)
            return value() if callable(value) else value

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = answer(ask, KINDS[kind]())
            try:
                ours = answer(to_static(ask), KINDS[kind]())
            except Dy2StaticError:
                continue
        wrong = difference(ours, theirs, strides=True)
        if wrong and (name, kind) not in KNOWN:
            found.append(f"{name}: {wrong}")
    return found


def sampled(kind: str, every: int) -> list[str]:
    return [name for name in NAMES if zlib.crc32(f"{name} of {kind}".encode()) % every == 0]


ASKED_ALWAYS = ("is_shared", "storage_offset", "is_conj", "is_neg", "numpy", "tolist", "_nnz", "is_inference",
                "is_coalesced", "stride", "requires_grad", "is_leaf")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_some_answers(kind: str) -> None:
    assert differences(kind, [*ASKED_ALWAYS, *sampled(kind, 100)]) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_answers(kind: str) -> None:
    assert differences(kind, NAMES) == []


def test_where_it_is_in_memory_is_asked_at_each_call() -> None:
    memory = torch.arange(12.0).reshape(4, 3)
    static = to_static(lambda x: (
        x.storage_offset(), x[1:].storage_offset(), (x * 2)[1:].storage_offset(), x.t().storage_offset(),
        x.is_shared(), (x + 1).is_shared()))  # fmt: skip
    for x in (memory[1:3], memory[:2], memory[2:], torch.ones(2, 3).share_memory_(), memory[1:3]):
        assert static(x) == static.function(x)


class Placed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table: torch.Tensor
        self.register_buffer("table", torch.arange(12.0).reshape(4, 3)[1:])

    def forward(self, x: torch.Tensor) -> Any:
        return self.table.storage_offset(), self.table[1:].storage_offset(), x + 1


def test_so_is_that_of_a_buffer() -> None:
    module = Placed()
    static = to_static(Placed())
    parts = torch.arange(12.0).reshape(4, 3)
    for table in (torch.ones(3, 3), parts[1:], parts[:3]):
        module.table = static.table = table
        assert static(torch.ones(2))[:2] == module(torch.ones(2))[:2]
