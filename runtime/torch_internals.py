"""Every private PyTorch API this project uses, in one room: the file that changes when torch does.

Supported: torch 2.11 and later.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
    in_kernel_invocation_manager,
)
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    _constrain_range_for_size,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.weak import WeakTensorKeyDictionary

from runtime.ir.location import Location

OpOverload = torch._ops.OpOverload
"""The class of one overload of an operator, such as ``torch.ops.aten.add.Tensor``."""

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "GuardOnDataDependentSymNode",
    "OpOverload",
    "ShapeEnv",
    "TorchDispatchMode",
    "TorchFunctionMode",
    "UnsupportedOperatorException",
    "ambient_modes",
    "autocast_state",
    "below_autograd",
    "contiguity",
    "fake_like",
    "fake_only",
    "in_fake_mode",
    "is_fake",
    "layout_of",
    "make_fake_mode",
    "may_overlap",
    "new_symbol",
    "plain_user_location",
    "quiet_shapes",
    "set_ambient_modes",
    "size_expr",
    "tensor_weak_dict",
]


class TraceMode(FakeTensorMode):
    """The fake-tensor mode of one trace; once ``finished`` says so, its tensors raise what that gives."""

    finished: Callable[[], BaseException] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.finished is not None:
            raise self.finished()
        return super().__torch_dispatch__(func, types, args, kwargs)


def make_fake_mode() -> tuple[TraceMode, ShapeEnv]:
    """A fake-tensor mode over a shape environment that never specialises sizes 0 and 1."""
    shape_env = ShapeEnv(specialize_zero_one=False, duck_shape=False)
    return TraceMode(shape_env=shape_env, allow_non_fake_inputs=False), shape_env


def is_fake(tensor: object) -> bool:
    """Whether a tensor has no data."""
    return isinstance(tensor, FakeTensor)


def tensor_weak_dict() -> MutableMapping[torch.Tensor, Any]:
    """A dictionary keyed by tensor identity that does not keep tensors alive."""
    return WeakTensorKeyDictionary()  # type: ignore[no-any-return, no-untyped-call, unused-ignore]


@contextlib.contextmanager
def below_autograd() -> Iterator[None]:
    """Dispatch under which composite operators arrive whole: the autograd keys are excluded."""
    with torch._C._AutoDispatchBelowAutograd():
        yield


@contextlib.contextmanager
def fake_only(fake_mode: FakeTensorMode) -> Iterator[None]:
    """Run operators on fake tensors without any other mode seeing them."""
    with _disable_current_modes(), torch._C.DisableTorchFunction(), torch._C._AutoDispatchBelowAutograd(), fake_mode:
        yield


@contextlib.contextmanager
def in_fake_mode(fake_mode: FakeTensorMode) -> Iterator[None]:
    """Run operators on fake tensors without torch-function modes seeing them; dispatch modes do."""
    with torch._C.DisableTorchFunction(), fake_mode:
        yield


@contextlib.contextmanager
def quiet_shapes() -> Iterator[None]:
    """Keep torch's own messages about sizes and failed shape rules from the user's terminal."""
    loggers = [logging.getLogger(name) for name in (
        "torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def new_symbol(shape_env: ShapeEnv, *, size: bool, hint: int | None = None) -> torch.SymInt:
    """A fresh symbolic int; ``size``: not negative; ``hint``: the value it has in the call that is traced."""
    symbol = shape_env.create_unbacked_symint()
    if size:
        _constrain_range_for_size(symbol)
    if hint is not None:
        shape_env.set_real_tensor_prop_unbacked_vals(symbol.node.expr, hint)
    return symbol


def fake_like(fake_mode: FakeTensorMode, real: torch.Tensor, dynamic: dict[int, torch.SymInt]) -> torch.Tensor:
    """A fake tensor with the metadata of ``real``; sizes of the dimensions in ``dynamic`` are those symbols."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        if real.layout is not torch.strided or type(real) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            return fake_mode.from_tensor(real, static_shapes=True)
        sizes: list[Any] = [dynamic.get(dim, size) for dim, size in enumerate(real.shape)]
        strides: list[Any] = list(real.stride())
        if dynamic:
            strides = _symbolic_strides(real, sizes)
        with torch._C._AutoDispatchBelowAutograd(), fake_mode:
            return torch.empty_strided(sizes, strides, dtype=real.dtype, device=real.device)


def _symbolic_strides(real: torch.Tensor, sizes: list[Any]) -> list[Any]:
    """Strides for symbolic sizes: the order of the real ones, dense where the real ones are dense."""
    strides: list[Any] = list(real.stride())
    expected = 1
    running: Any = 1
    for dim, dense in layout_of(real):
        if dense:
            strides[dim] = running
        extent = real.stride(dim) * max(real.shape[dim], 1)
        if dense or extent >= expected:
            expected = max(expected, extent)
            running = strides[dim] * sizes[dim]
    return strides


def layout_of(real: torch.Tensor) -> tuple[tuple[int, bool], ...]:
    """The dimensions from the innermost out, each with whether it follows the one before without a gap.

    Two tensors of equal layout have the same strides as functions of their sizes, gaps aside.

    >>> layout_of(torch.zeros(3, 4)), layout_of(torch.zeros(3, 4).t()), layout_of(torch.zeros(3, 4)[:, ::2])
    (((1, True), (0, True)), ((0, True), (1, True)), ((1, False), (0, True)))
    """
    result = []
    expected = 1
    for dim in sorted(range(real.dim()), key=lambda d: (real.stride(d), -d)):
        dense = real.shape[dim] == 1 or real.stride(dim) == expected
        result.append((dim, dense))
        expected = max(expected, (expected if dense else real.stride(dim)) * max(real.shape[dim], 1))
    return tuple(result)


def contiguity(fake: torch.Tensor) -> tuple[bool, bool]:
    """Whether a fake tensor is contiguous, and whether that is certain for every size its symbols can take."""
    if all(type(size) is int for size in (*fake.shape, *fake.stride())):
        with torch._C.DisableTorchFunction():
            return fake.is_contiguous(), True
    expected: Any = 1
    for size, stride in zip(reversed(fake.shape), reversed(fake.stride())):
        if type(size) is int and size == 1:
            continue
        if size_expr(stride) != size_expr(expected):
            return False, True
        expected = expected * size
    return True, True


def size_expr(size: Any) -> Any:
    """The symbolic expression of a size (an int stands for itself)."""
    return size.node.expr if isinstance(size, torch.SymInt) else size


def may_overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors on one storage may have elements in common (conservative: byte ranges are compared)."""
    if a.layout is not torch.strided or b.layout is not torch.strided:
        return True

    def extent(t: torch.Tensor) -> tuple[Any, Any]:
        last = t.storage_offset() + sum((size - 1) * abs(stride) for size, stride in zip(t.shape, t.stride()))
        return t.storage_offset() * t.element_size(), (last + 1) * t.element_size()

    if a.numel() == 0 or b.numel() == 0:
        return False
    (a0, a1), (b0, b1) = extent(a), extent(b)
    return a0 < b1 and b0 < a1


@functools.cache
def _autocast_devices() -> tuple[str, ...]:
    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def autocast_key() -> Any:
    """What ``autocast_state`` depends on, quickly."""
    enabled, dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
    devices = _autocast_devices()
    if len(devices) == 1:
        return enabled("cpu"), dtype("cpu")
    return tuple([(enabled(device), dtype(device)) for device in devices])


_CPU = torch.device("cpu")


def default_device() -> torch.device:
    """``torch.get_default_device()``, quickly where no mode is active: a default device is one."""
    return _CPU if torch._C._len_torch_function_stack() == 0 else torch.get_default_device()


def autocast_state() -> tuple[tuple[str, bool, str], ...]:
    """The autocast state per device type: (device type, enabled, dtype)."""
    return tuple(
        (device, torch.is_autocast_enabled(device), str(torch.get_autocast_dtype(device)))
        for device in _autocast_devices()
    )


def ambient_modes() -> dict[str, Any]:
    """The settings of this thread, or of the process, that decide what operators do."""
    return {
        "the grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": autocast_state(),
        "the default dtype": torch.get_default_dtype(),
        "use of deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def set_ambient_modes(modes: dict[str, Any]) -> None:
    """Put back what ``ambient_modes`` gave; inference mode ends with its ``with`` statement."""
    torch._C._set_grad_enabled(modes["the grad mode"])
    for device, enabled, dtype in modes["autocast"]:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, getattr(torch, dtype.removeprefix("torch.")))
    torch.set_default_dtype(modes["the default dtype"])
    torch.use_deterministic_algorithms(modes["use of deterministic algorithms"])


def plain_user_location() -> Location | None:
    """The innermost frame of the current stack that is neither torch's nor this project's."""
    import linecache
    import os

    own = os.path.dirname(os.path.abspath(__file__))
    torch_root = os.path.dirname(os.path.abspath(torch.__file__))
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((own, torch_root)) and not file.startswith("<frozen") and "contextlib" not in file:
            text = linecache.getline(file, frame.f_lineno, frame.f_globals).rstrip("\n")
            return Location(file, frame.f_lineno, len(text) - len(text.lstrip()), frame.f_code.co_name, text)
        frame = frame.f_back  # type: ignore[assignment]
    return None


_ONLY_KNOWN_SIZES = ("symbolic sizes", "expected to contain only concrete integers")
"""In the messages of operators whose shape rules are not written for sizes that are not known."""

SHAPE_ERRORS: tuple[type[BaseException], ...] = (
    GuardOnDataDependentSymNode,
    DynamicOutputShapeException,
    DataDependentOutputException,
)
"""What torch raises when a shape rule needs a size that is not known."""


def others_trace() -> bool:
    """Whether another tool is looking at this very run: a functorch transform (vmap, grad), jit.trace."""
    return torch._C._functorch.peek_interpreter_stack() is not None or torch.jit.is_tracing()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Run fake tensors without the caller's dispatch modes, anomaly detection and hooks on saved tensors noticing."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_disable_current_modes())
        if torch.is_anomaly_enabled():
            stack.enter_context(torch.autograd.set_detect_anomaly(False))
        if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(_unchanged, _unchanged))
        yield


def _unchanged(value: Any) -> Any:
    return value


def is_shape_error(error: BaseException) -> bool:
    """Whether torch could not work out a shape because sizes are not known."""
    return isinstance(error, SHAPE_ERRORS) or any(text in str(error) for text in _ONLY_KNOWN_SIZES)


@contextlib.contextmanager
def no_modes() -> Iterator[None]:
    """Run torch code on real tensors as if nothing was being traced."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def alias_of(fake_mode: FakeTensorMode, fake: torch.Tensor) -> torch.Tensor:
    """Another tensor object on the same fake storage."""
    if fake.layout is torch.strided and _is_static(fake):
        with torch._C.DisableTorchFunction(), torch._C._AutoDispatchBelowAutograd():
            with in_kernel_invocation_manager(fake_mode):
                meta = torch.ops.aten.alias.default(fake)
            return _fake_of(fake_mode, meta, fake.device)
    with fake_only(fake_mode):
        return torch.ops.aten.alias.default(fake)


def _is_static(tensor: torch.Tensor) -> bool:
    """Whether no size of a strided tensor is symbolic."""
    with torch._C.DisableTorchFunction():
        parts = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    return all(type(part) is int for part in parts)


def _fake_of(fake_mode: FakeTensorMode, meta: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The fake tensor over a meta tensor."""
    with torch._C._DisableTorchDispatch():
        return FakeTensor(fake_mode, meta, device)


def empty_fake(
    fake_mode: FakeTensorMode, shape: Sequence[Any], strides: Sequence[Any] | None, dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    """A fake tensor of its own; ``strides`` None: contiguous."""
    if all(type(part) is int for part in (*shape, *(strides or ()))):
        return _empty_static(fake_mode, shape, strides, dtype, device)
    with fake_only(fake_mode):
        if strides is None:
            return torch.empty(tuple(shape), dtype=dtype, device=device)
        return torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device=device)


def _empty_static(
    fake_mode: FakeTensorMode, shape: Sequence[int], strides: Sequence[int] | None, dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction(), torch._C._AutoDispatchBelowAutograd():
        if strides is None:
            meta = torch.empty(tuple(shape), dtype=dtype, device="meta")
        else:
            meta = torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device="meta")
        return FakeTensor(fake_mode, meta, device)


_UNCACHED = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.inplace_view})
_PLAIN = (int, float, bool, str, complex, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


@dataclass(frozen=True)
class _Result:
    """How to make a result again; ``view``: which tensor among the arguments it shares memory with."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device
    view: int | None


_results: dict[Any, tuple[type | None, tuple[_Result, ...]]] = {}
_RESULTS_KEPT = 20_000


def fake_call(fake_mode: FakeTensorMode, func: Any, args: Any, kwargs: Any) -> Any:
    """``func(*args, **kwargs)`` on fake tensors, below autograd; torch-function modes do not see it.

    What an operator gives for metadata without symbols is remembered: asking torch for it again costs ten times more.
    """
    with torch._C.DisableTorchFunction():
        tensors: list[torch.Tensor] = []
        key = _call_key(func, args, kwargs, tensors)
        found = None if key is None else _results.get(key)
        if found is not None:
            kind, results = found
            made = [_again(fake_mode, result, tensors) for result in results]
            return made[0] if kind is None else kind(made)
        with fake_mode:
            value = func(*args, **kwargs)
        if key is not None:
            _remember(key, value, tensors)
        return value


def _call_key(func: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> Any:
    """All that the metadata of the results depends on; None if that is not known. ``tensors`` gets those in it."""
    if func.namespace != "aten" or func._schema.is_mutable or not _UNCACHED.isdisjoint(func.tags):
        return None
    parts: list[Any] = []
    for value in (*args, *kwargs.values()):
        part = _key_of(value, tensors)
        if part is None:
            return None
        parts.append(part)
    state = torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast_key()
    return func, tuple(parts), tuple(kwargs), len(args), state


def _key_of(value: Any, tensors: list[torch.Tensor]) -> Any:
    kind = type(value)
    if kind is FakeTensor:
        if value.layout is not torch.strided or value.constant is not None or value.is_conj() or value.is_neg():
            return None
        shape, strides, offset = value.shape, value.stride(), value.storage_offset()
        if any(type(part) is not int for part in (*shape, *strides, offset)):
            return None
        tensors.append(value)
        return FakeTensor, tuple(shape), strides, offset, value.dtype, value.device, value.requires_grad
    if kind in _PLAIN:
        return kind, value
    if kind is list or kind is tuple:
        parts = tuple([_key_of(item, tensors) for item in value])
        return None if None in parts else (kind, parts)
    return None


def _remember(key: Any, value: Any, tensors: list[torch.Tensor]) -> None:
    kind = type(value) if type(value) in (list, tuple) else None
    flat = [value] if kind is None else value
    results = []
    own: set[int] = set()
    for one in flat:
        if type(one) is not FakeTensor or any(one is tensor for tensor in tensors) or _key_of(one, []) is None:
            return
        storage = storage_identity(one)
        views = [i for i, tensor in enumerate(tensors) if storage_identity(tensor) == storage]
        if len(views) > 1:  # of which one it is a view cannot be told
            return
        view = views[0] if views else None
        if view is None and (storage in own or one.storage_offset() != 0):
            return
        if view is not None and one.dtype != tensors[view].dtype:  # view(dtype), view_as_real
            return
        own.add(storage)
        results.append(_Result(
            tuple(one.shape), one.stride(), int(one.storage_offset()), one.dtype, one.device, view
        ))  # fmt: skip
    if len(_results) >= _RESULTS_KEPT:
        _results.clear()
    _results[key] = kind, tuple(results)


def _again(fake_mode: FakeTensorMode, result: _Result, tensors: list[torch.Tensor]) -> torch.Tensor:
    if result.view is None:
        return _empty_static(fake_mode, result.shape, result.strides, result.dtype, result.device)
    source = tensors[result.view]
    with torch._C._AutoDispatchBelowAutograd(), in_kernel_invocation_manager(fake_mode):
        meta = torch.ops.aten.as_strided.default(source, result.shape, result.strides, result.offset)
    return _fake_of(fake_mode, meta, result.device)


def unknown_sizes(fake_mode: FakeTensorMode, shape_env: ShapeEnv, func: Any, args: Any, kwargs: Any) -> Any:
    """Results of known rank whose sizes are fresh symbols, for an operator whose shape rule fails on unknown sizes.

    The operator is run on fake tensors of two concrete sizes; sizes on which the two agree are taken as fixed.
    None if that fails as well.
    """
    results = []
    for stand_in in (4, 6):

        def concrete(value: Any, stand_in: int = stand_in) -> Any:
            if isinstance(value, torch.SymInt):
                expr = value.node.expr
                return int(expr.xreplace(dict.fromkeys(expr.free_symbols, stand_in)))
            if isinstance(value, torch.Tensor):
                sizes = [concrete(size) for size in value.shape]
                return torch.empty(sizes, dtype=value.dtype, device=value.device)
            if isinstance(value, (list, tuple)):
                return type(value)(concrete(item) for item in value)
            return value

        try:
            with fake_only(fake_mode):
                results.append(func(*[concrete(arg) for arg in args], **{k: concrete(v) for k, v in kwargs.items()}))
        except (RuntimeError, ValueError, TypeError, IndexError):
            return None

    def merge(a: Any, b: Any) -> Any:
        if isinstance(a, torch.Tensor):
            if a.dim() != b.dim():
                raise ValueError("the rank depends on a size")
            sizes = [
                x if x == y and type(x) is int else new_symbol(shape_env, size=True) for x, y in zip(a.shape, b.shape)
            ]
            return torch.empty(sizes, dtype=a.dtype, device=a.device)
        if isinstance(a, (list, tuple)):
            if len(a) != len(b):
                raise ValueError("the number of results depends on a size")
            return type(a)(merge(x, y) for x, y in zip(a, b))
        return a

    try:
        with fake_only(fake_mode):
            return merge(*results)
    except ValueError:
        return None


@contextlib.contextmanager
def fake_only_metadata() -> Iterator[None]:
    """Make fake tensors of real ones without any mode of the caller seeing it."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


@contextlib.contextmanager
def without_autocast_cache() -> Iterator[None]:
    """Switch autocast's weight cache off: a cast cached in one branch must not be used in another."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


def is_composite(overload: Any) -> bool:
    """Whether an operator is written in terms of others, so that its schema need not tell what its result shares."""
    return bool(overload.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd))


def raw_call(overload: Any) -> Any:
    """The function behind an overload: the same call, without the Python frame of ``OpOverload.__call__``."""
    return overload._op


@contextlib.contextmanager
def autocast_as(saved: tuple[tuple[str, bool, str], ...]) -> Iterator[None]:
    """Run under a saved autocast state."""
    with contextlib.ExitStack() as stack:
        for device, enabled, dtype in saved:
            if enabled or torch.is_autocast_enabled(device):
                stack.enter_context(
                    torch.autocast(device, dtype=getattr(torch, dtype.removeprefix("torch.")), enabled=enabled)
                )
        yield


@contextlib.contextmanager
def autocast_off(saved: tuple[tuple[str, bool, str], ...]) -> Iterator[None]:
    """Run without autocast where a saved state has it on, or where it is on now."""
    with contextlib.ExitStack() as stack:
        for device, enabled, _ in saved:
            if enabled or torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Device, dtype, whether not to block, and memory format that the arguments of ``to`` ask for."""
    return tuple(torch._C._nn._parse_to(*args, **kwargs))


def rng_state() -> list[torch.Tensor]:
    """The states of the default random generators: the CPU's, then every CUDA device's."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [])]


@contextlib.contextmanager
def rng_restored(saved: list[torch.Tensor] | None) -> Iterator[None]:
    """Run with an earlier random state; afterwards the present one is back."""
    if saved is None:
        yield
        return
    before = rng_state()

    def put(states: list[torch.Tensor]) -> None:
        torch.set_rng_state(states[0])
        if len(states) > 1:
            torch.cuda.set_rng_state_all(states[1:])

    put(saved)
    try:
        yield
    finally:
        put(before)


@dataclass(frozen=True)
class GlobalModuleHooks:
    """The hooks that apply to every module."""

    forward_pre: dict[int, Any]
    forward: dict[int, Any]
    backward_pre: dict[int, Any]
    backward: dict[int, Any]
    with_kwargs: dict[int, bool]
    always_called: dict[int, bool]


def global_module_hooks() -> GlobalModuleHooks:
    """What ``torch.nn.modules.module.register_module_*_hook`` registered."""
    home = torch.nn.modules.module
    return GlobalModuleHooks(
        home._global_forward_pre_hooks, home._global_forward_hooks, home._global_backward_pre_hooks,
        home._global_backward_hooks, home._global_forward_hooks_with_kwargs, home._global_forward_hooks_always_called,
    )


def storage_identity(tensor: torch.Tensor) -> int:
    """An identity for the memory of a strided tensor, valid while it is alive."""
    with torch._C.DisableTorchFunction():
        return int(tensor.untyped_storage()._cdata)


def tensor_test(
    tensors: Sequence[tuple[torch.Tensor, Sequence[int | None] | None]],
) -> Callable[..., bool] | None:
    """One quick test for tensors that look like these: type, dtype, device, layout, ``requires_grad``, dispatch keys,
    sizes and strides (of tensors given with sizes, those that are not None, and no strides if one is).

    It may refuse others that are equal in all this, and refuses one tensor in two positions. None if there is no such
    test for these tensors.
    """
    every = [tensor for tensor, _ in tensors]
    if any(tensor.layout is not torch.strided for tensor in every):
        return None
    sizes = [list(tensor.shape) if fixed is None else list(fixed) for tensor, fixed in tensors]
    strides: list[list[int | None]] = [
        [None] * tensor.dim() if None in fixed else list(tensor.stride()) for tensor, fixed in zip(every, sizes)
    ]
    guards = getattr(torch._C._dynamo.guards, "TensorGuards", None)
    if guards is None:
        return None
    test = guards(*every, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return test if test(*every) else None


def state_tests() -> list[tuple[Callable[..., Any], tuple[str, ...], Any]] | None:
    """Quick tests that PyTorch's global state (modes, autocast, default dtype and device, deterministic algorithms...)
    is as it is now: functions, what to call them with, and the very object that each gives. They may fail for other
    reasons too. None if there are no such tests.
    """
    guard = getattr(torch._C._dynamo.guards, "GlobalStateGuard", None)
    if guard is None or torch._C._len_torch_function_stack() != 0 or others_trace():
        return None
    every: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
        (guard().check, ()), (torch._C._len_torch_function_stack, ()), (torch._C._functorch.peek_interpreter_stack, ()),
        (torch._C._is_tracing, ()), (torch.is_inference_mode_enabled, ()),
        *((torch.get_autocast_dtype, (device,)) for device in _autocast_devices()),
    ]  # fmt: skip
    return [(function, args, function(*args)) for function, args in every]


def graph_is_kept() -> bool:
    """Inside a backward: whether the graph may be walked again (``retain_graph=True``)."""
    return bool(torch._C._autograd._get_current_graph_task_keep_graph())


def saved_tensor_hooks_active() -> bool:
    """Whether ``torch.autograd.graph.saved_tensors_hooks`` (or ``save_on_cpu``...) is in force."""
    return torch._C._autograd._top_saved_tensors_default_hooks(False) is not None


def say_tensor(text: Any) -> Any:
    """An error's text as eager words it: the tensors of a trace are Tensors to the user."""
    return text.replace("FakeTensor", "Tensor") if isinstance(text, str) else text
