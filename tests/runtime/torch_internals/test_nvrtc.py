"""Compiling and launching CUDA, without a device: what the driver is asked, by a stand-in that writes it down."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from runtime.torch_internals import nvrtc
from runtime.torch_internals.nvrtc import CompileError


def _set(target: Any, value: int) -> None:
    """What a C function does with a pointer to a result."""
    target._obj.value = value


class Driver:
    """The driver's functions that are called; contexts are 100 + device, functions 7 and on."""

    def __init__(self) -> None:
        self.current = 0
        self.called: list[tuple[Any, ...]] = []
        self.names: list[bytes] = []
        self.status = 0

    def cuDeviceGet(self, number: Any, device: int) -> int:
        _set(number, device)
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, number: Any) -> int:
        _set(context, 100 + number.value)
        return 0

    def cuCtxGetCurrent(self, context: Any) -> int:
        _set(context, self.current)
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        self.called.append(("push", context.value))
        self.current = context.value
        return 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:
        self.called.append(("pop",))
        self.current = 0
        return 0

    def cuModuleLoadData(self, module: Any, code: bytes) -> int:
        self.called.append(("load", code, self.current))
        _set(module, 5)
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        assert module.value == 5
        _set(function, 7 + len(self.names))
        self.names.append(name)
        return self.status

    def cuLaunchKernel(self, function: int, *given: Any) -> int:
        *sizes, shared, stream, parameters, extra = given
        words = [ctypes.c_int64.from_address(one).value for one in parameters]
        self.called.append(("launch", function, tuple(sizes), shared, stream, words, extra, self.current))
        return self.status if self.current else 201

    def cuGetErrorString(self, status: int, text: Any) -> int:
        text._obj.value = b"out of luck"
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    made = Driver()
    monkeypatch.setattr(nvrtc, "driver", lambda: made)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 40 + device, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    nvrtc._context.cache_clear()
    yield made
    nvrtc._context.cache_clear()


def test_a_launch(driver: Driver) -> None:
    """Parameters are pointers to words; the stream is the device's current one; the device's context is current."""
    launch = nvrtc._launcher(9, 1)
    for number in (1 << 40, 5):
        driver.called.clear()
        launch(3, 256, struct.pack("<qqd", number, -2, 0.5), 64)
        words = [number, -2, struct.unpack("<q", struct.pack("<d", 0.5))[0]]
        expected = ("launch", 9, (3, 1, 1, 256, 1, 1), 64, 41, words, None, 101)
        assert driver.called == [("push", 101), expected, ("pop",)]


def test_a_launch_on_the_current_device(driver: Driver) -> None:
    driver.current = 100
    nvrtc._launcher(9, 0)(1, 32, struct.pack("<q", 3), 0)
    assert [call[0] for call in driver.called] == ["launch"]


def test_a_launch_in_a_thread_without_a_context(driver: Driver) -> None:
    nvrtc._launcher(9, 0)(1, 32, struct.pack("<q", 3), 0)
    assert [call[0] for call in driver.called] == ["launch", "push", "launch", "pop"]


def test_a_launch_that_fails(driver: Driver) -> None:
    driver.status, driver.current = 1, 100
    with pytest.raises(RuntimeError, match="CUDA error: out of luck") as error:
        nvrtc._launcher(9, 0)(1, 32, struct.pack("<q", 3), 0)
    assert not isinstance(error.value, CompileError) and driver.called[-1][0] == "launch"


def test_loading(driver: Driver) -> None:
    assert list(nvrtc.load_cuda(b"code", ("k0", "k1"), 2)) == ["k0", "k1"]
    assert driver.called == [("push", 102), ("load", b"code", 102), ("pop",)] and driver.names == [b"k0", b"k1"]
    driver.status = 1
    with pytest.raises(CompileError, match="out of luck"):
        nvrtc.load_cuda(b"code", ("k0",), 2)


def test_without_the_libraries_there_is_a_compile_error(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch brings them")
    nvrtc._compiler.cache_clear()
    with pytest.raises(CompileError, match="NVRTC cannot be loaded"):
        nvrtc.compile_cuda("", "sm_80")
    assert not nvrtc.has_cuda()
