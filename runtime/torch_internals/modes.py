"""Modes of torch and its dispatcher: autocast, random state, what traces run under."""

from __future__ import annotations

import contextlib
import functools
import logging
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _disable_current_modes

from runtime.kinds import is_a
from runtime.torch_internals.settings import put_back_settings, settings


@contextlib.contextmanager
def below_autograd() -> Iterator[None]:
    """Dispatch under which composite operators arrive whole: the autograd keys are excluded."""
    with torch._C._AutoDispatchBelowAutograd():
        yield


@contextlib.contextmanager
def quiet_shapes() -> Iterator[None]:
    """Keep torch's own messages about sizes and failed shape rules from the user's terminal."""
    loggers = [logging.getLogger(name) for name in (
        "torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor")]
    were = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True  # a level would be looked up again by every logger of the process, at each trace
    try:
        yield
    finally:
        for logger, was in zip(loggers, were):
            logger.disabled = was


@functools.cache
def autocast_devices() -> tuple[str, ...]:
    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def autocast_key() -> Any:
    """What ``autocast_state`` depends on, quickly."""
    enabled, dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
    devices = autocast_devices()
    if len(devices) == 1:
        return enabled("cpu"), dtype("cpu")
    return tuple([(enabled(device), dtype(device)) for device in devices])


_CPU = torch.device("cpu")


def default_device() -> torch.device:
    """``torch.get_default_device()``, quickly where no mode is active: a default device is one."""
    return _CPU if torch._C._len_torch_function_stack() == 0 else torch.get_default_device()


def autocast_state() -> tuple[tuple[str, bool, str], ...]:
    """The autocast state per device type: (device type, enabled, dtype)."""
    enabled, dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
    return tuple([_autocast_of(device, enabled(device), dtype(device)) for device in autocast_devices()])


@functools.cache
def _autocast_of(device: str, enabled: bool, dtype: torch.dtype) -> tuple[str, bool, str]:
    return device, enabled, str(dtype)


def autocast_now(ambient: tuple[tuple[str, bool, str], ...]) -> tuple[tuple[str, bool, str], ...]:
    """`autocast_state`; the one given where autocast is off everywhere, there and now: that runs the same."""
    if torch._C._is_any_autocast_enabled() or any(enabled for _, enabled, _ in ambient):
        return autocast_state()
    return ambient


def autocast_depth() -> int:
    """In how many ``torch.autocast`` regions this thread is."""
    depth = torch.autocast_increment_nesting()
    torch.autocast_decrement_nesting()
    return depth - 1


def autocast_on() -> tuple[tuple[str, bool, str], ...]:
    """The part of ``autocast_state`` that is switched on: () without autocast."""
    return tuple([one for one in autocast_state() if one[1]])


def ambient_modes() -> dict[str, Any]:
    """The settings of this thread, or of the process, that decide what operators do."""
    return {
        "the grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": autocast_state(),
        "the default dtype": torch.get_default_dtype(),
        "use of deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "anomaly detection": (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        "the number of threads": torch.get_num_threads(),
        "a setting of torch.backends": settings(),
    }


def changed_modes(before: dict[str, Any]) -> list[str]:
    """What differs from what ``ambient_modes`` gave."""
    after = ambient_modes()
    return [what for what, value in before.items() if after[what] != value]


def set_ambient_modes(modes: dict[str, Any]) -> None:
    """Put back what ``ambient_modes`` gave; inference mode ends with its ``with`` statement."""
    torch._C._set_grad_enabled(modes["the grad mode"])
    _set_autocast(modes["autocast"])
    torch.set_default_dtype(modes["the default dtype"])
    torch.use_deterministic_algorithms(modes["use of deterministic algorithms"])
    torch.autograd.set_detect_anomaly(*modes["anomaly detection"])
    if torch.get_num_threads() != modes["the number of threads"]:
        torch.set_num_threads(modes["the number of threads"])
    put_back_settings(modes["a setting of torch.backends"])


dual_level: Callable[[], int] = functools.partial(operator.attrgetter("_current_level"), forward_ad)
"""How many ``torch.autograd.forward_ad.dual_level()`` are open, less one: tensors may have tangents then, which nothing
about them shows, and which only operators of PyTorch's, called under no node of ours, compute with."""


def others_trace() -> bool:
    """Whether another tool is looking at this very run: a functorch transform (vmap, grad), jit.trace, forward mode."""
    return torch._C._functorch.peek_interpreter_stack() is not None or torch._C._is_tracing() or dual_level() >= 0


def changes_results() -> bool:
    """Whether something about this call makes operators give other dtypes or shapes than while tracing, or asks more of
    them than their results: autocast, a functorch transform, forward mode, jit.trace.

    >>> changes_results(), torch.vmap(lambda x: x + changes_results())(torch.zeros(2))
    (False, tensor([1., 1.]))
    """
    return torch._C._is_any_autocast_enabled() or others_trace()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Run fake tensors without the caller's dispatch modes, anomaly detection and hooks on saved tensors noticing."""
    check_nan = torch.is_anomaly_check_nan_enabled()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_disable_current_modes())
        if torch.is_anomaly_enabled():
            stack.enter_context(torch.autograd.set_detect_anomaly(False))
            stack.enter_context(_noted(True, check_nan))
        if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(_unchanged, _unchanged))
        yield


_switched_off = threading.local()


@contextlib.contextmanager
def _noted(*anomaly: bool) -> Iterator[None]:
    before, _switched_off.anomaly = callers_anomaly(), anomaly
    try:
        yield
    finally:
        _switched_off.anomaly = before


def callers_anomaly() -> tuple[bool, bool] | None:
    """Whether anomaly detection is on, and looks for nans, where ``undisturbed`` has switched it off."""
    found: tuple[bool, bool] | None = getattr(_switched_off, "anomaly", None)
    return found


def _unchanged(value: Any) -> Any:
    return value


@contextlib.contextmanager
def no_modes() -> Iterator[None]:
    """Run torch code on real tensors as if nothing was being traced."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def unwatched() -> AbstractContextManager[None]:
    """Ask tensors for what they are without the modes of a trace, quickly: no operator may be called."""
    guard: AbstractContextManager[None] = torch._C.DisableTorchFunction()
    return guard


def copy_unseen(target: torch.Tensor, value: torch.Tensor) -> None:
    """``target.copy_(value)`` of which autograd knows nothing. A ``no_grad`` takes longer than a small copy."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        target.copy_(value)
    finally:
        torch._C._set_grad_enabled(before)


@contextlib.contextmanager
def without_autocast_cache() -> Iterator[None]:
    """Switch autocast's weight cache off: a cast cached in one branch must not be used in another."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


@contextlib.contextmanager
def autocast_as(saved: tuple[tuple[str, bool, str], ...]) -> Iterator[None]:
    """Run under a saved autocast state, without the cache of casts."""
    with contextlib.ExitStack() as stack:
        for device, enabled, dtype in saved:
            if enabled or torch.is_autocast_enabled(device):
                kind = getattr(torch, dtype.removeprefix("torch."))
                stack.enter_context(torch.autocast(device, dtype=kind, enabled=enabled, cache_enabled=False))
        yield


@contextlib.contextmanager
def casting_as(saved: tuple[tuple[str, bool, str], ...]) -> Iterator[None]:
    """Run fake tensors under exactly this autocast state; a device that is not in it has autocast off.

    Inside a dispatch mode too, where torch's dispatcher has switched autocast off.
    """
    before = autocast_state()
    wanted = {device: dtype for device, enabled, dtype in saved if enabled}
    _set_autocast(tuple((device, device in wanted, wanted.get(device, dtype)) for device, _, dtype in before))
    try:
        yield
    finally:
        _set_autocast(before)


def _set_autocast(states: tuple[tuple[str, bool, str], ...]) -> None:
    for device, enabled, dtype in states:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, getattr(torch, dtype.removeprefix("torch.")))


_AS_IT_IS = contextlib.nullcontext()


def autocast_off(saved: tuple[tuple[str, bool, str], ...]) -> contextlib.AbstractContextManager[None]:
    """Run without autocast where a saved state has it on, or where it is on now."""
    devices = [device for device, enabled, _ in saved if enabled or torch.is_autocast_enabled(device)]
    return _autocast_off(devices) if devices else _AS_IT_IS


@contextlib.contextmanager
def _autocast_off(devices: Sequence[str]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for device in devices:
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def graph_is_kept() -> bool:
    """Inside a backward: whether the graph may be walked again (``retain_graph=True``)."""
    return bool(torch._C._autograd._get_current_graph_task_keep_graph())


def saved_tensor_hooks() -> Any:
    """The pair of hooks that tensors saved for backward go through, or None."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def saved_tensor_hooks_active() -> bool:
    """Whether ``torch.autograd.graph.saved_tensors_hooks`` (or ``save_on_cpu``...) is in force."""
    return torch._C._autograd._top_saved_tensors_default_hooks(False) is not None


def _added_below_autograd() -> tuple[int, int]:
    """What ``below_autograd`` adds to the dispatch keys that are included and excluded, as bits."""
    include, exclude = torch._C._dispatch_tls_local_include_set, torch._C._dispatch_tls_local_exclude_set
    before = include().raw_repr(), exclude().raw_repr()
    with torch._C._AutoDispatchBelowAutograd():
        return include().raw_repr() & ~before[0], exclude().raw_repr() & ~before[1]


_ADDED = _added_below_autograd()


def only_a_default_device() -> bool:
    """Whether the one mode for torch functions is a default device (``torch.set_default_device``, ``with
    torch.device(...)``), which tells functions that make tensors where."""
    if torch._C._len_torch_function_stack() != 1:
        return False
    return is_a(torch._C._get_function_stack_at(0), torch.utils._device.DeviceContext)


@contextlib.contextmanager
def without_default_device() -> Iterator[None]:
    """For what names each device itself, where ``only_a_default_device``: the mode would be asked by each function."""
    mode = torch.overrides._pop_mode()
    try:
        yield
    finally:
        torch.overrides._push_mode(mode)


@contextlib.contextmanager
def as_if_not_traced(trace_mode: type) -> Iterator[None]:
    """Inside a trace: run real code on real tensors, with gradients, as the caller would. ``trace_mode``: the class of
    the trace's own mode for torch functions; the caller's modes stay.
    """
    modes = []
    while torch._C._len_torch_function_stack():
        modes.append(torch.overrides._pop_mode())
    kept = [mode for mode in reversed(modes) if not is_a(mode, trace_mode)]
    keys = torch._C.DispatchKeySet.from_raw_repr
    try:
        for mode in kept:
            torch.overrides._push_mode(mode)
        with _disable_current_modes():
            include = keys(torch._C._dispatch_tls_local_include_set().raw_repr() & ~_ADDED[0])
            exclude = keys(torch._C._dispatch_tls_local_exclude_set().raw_repr() & ~_ADDED[1])
            with torch._C._ForceDispatchKeyGuard(include, exclude):
                yield
    finally:
        for _ in kept:
            torch.overrides._pop_mode()
        for mode in reversed(modes):
            torch.overrides._push_mode(mode)
