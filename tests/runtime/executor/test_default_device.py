"""Programs where there is a default device: they name each device themselves, what others wrote may ask for it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._device import DeviceContext

from dy2static import to_static
from runtime import torch_internals
from runtime.calling.executors import executor
from runtime.ir.parser import parse_program
from tests.oracle import check, same

_TEXT = """program "f" {
  input %x : f32[a] = "x"
  %y : f32[3] = aten.zeros.default([3])
  %z : f32[a] = aten.exp.default(%x)
  %w : f32[a] = aten.mul.Tensor(%z, %x)
  return (%y, %w) as ($0, $1)
}"""


@pytest.mark.parametrize("backend", ["interpreter", "c", "cuda"])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_program_does_not_ask_for_it(backend: str, device: str) -> None:
    made = executor(backend).compile(parse_program(_TEXT))
    x = torch.ones(3)
    expected = made.run([x], [])
    with torch.device(device):
        got = made.run([x], [])
        assert isinstance(torch._C._get_function_stack_at(0), DeviceContext)
    same(got, expected)
    assert torch._C._len_torch_function_stack() == 0


def test_c_runs_under_it() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        while x.sum() < 10:
            x = x * 1.5 + torch.ones(3)
        return x

    with torch.device("cpu"):
        static: Any = to_static(f, backend="c")
        check(f, [torch.ones(3)], [torch.zeros(3)], static=static, tolerance=1e-6)
        (found,) = static.compiled
        assert found.parts and all(part.share.in_c == part.share.all for part in found.parts)
        ready = next(iter(static._dispatch.cache.all())).ready.runner
        assert all(not one.given_up and not one.failures for one in ready.plain.written.compiled)


def test_other_modes_are_asked() -> None:
    """Only a default device is set aside, not a mode of the user's."""
    seen: list[Any] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    made = executor("interpreter").compile(parse_program(_TEXT))
    x = torch.ones(3)
    with Mode():
        assert not torch_internals.only_a_default_device()
        made.run([x], [])
    assert len(seen) == 3
    with torch.device("cpu"), Mode():
        assert not torch_internals.only_a_default_device()


def test_functions_of_others_see_it() -> None:
    """What a library's operator makes lies where its author's code says."""

    @torch.library.custom_op("d2s_test::made_there", mutates_args=())
    def made_there(x: torch.Tensor) -> torch.Tensor:
        return x + (1.0 if torch.empty(1).device.type == "meta" else 2.0)

    made_there.register_fake(lambda x: torch.empty_like(x))

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.d2s_test.made_there(x) * 2

    for device in ("meta", "cpu"):
        with torch.device(device):
            check(f, [torch.ones(3, device="cpu")], paths=("program",))
