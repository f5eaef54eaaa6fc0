"""Does an operator whose shape rule raised raise on real tensors as well? It is tried on tensors that look alike."""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from runtime.kinds import is_a
from runtime.torch_internals.fakes import offset_of, storage_identity, strides_of
from runtime.torch_internals.generators import rng_restored, rng_state
from runtime.torch_internals.modes import casting_as, no_modes

_LARGEST = 1 << 22
"""Elements of the tensors that are made for a try."""
_TRIED = (4, 7, 1, 0)
"""What sizes and numbers that are not known are taken to be."""


class _NotTried(Exception):
    """Such arguments cannot be made."""


def real_errors(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], needs: Mapping[int, bool] = MappingProxyType({}),
    casting: tuple[tuple[str, bool, str], ...] = (),
) -> list[Exception | None]:
    """What an ATen operator raises on real tensors that look like fake ones, for each of some values of what is not
    known (None: nothing); empty if it cannot be tried.

    ``needs`` holds the ids of the fake tensors that stand for tensors which require grad: kernels ask them.
    ``casting`` is the autocast state inside the operator.
    """
    if not _can_be_tried(func, args, kwargs):
        return []
    unknown = is_unknown((*args, *kwargs.values()))
    found: list[Exception | None] = []
    # a mask that selects nothing decides for all others of its size otherwise
    masks = [False, True] if torch.Tag.dynamic_output_shape in func.tags else [False]

    def try_it() -> None:
        for number, mask in itertools.product(_TRIED if unknown else _TRIED[:1], masks):
            with torch.no_grad():
                try:
                    given, named = _Real(number, needs, mask).call(args, kwargs)
                except (_NotTried, RuntimeError):
                    continue
                error: Exception | None = None
                try:
                    with casting_as(casting) if casting else contextlib.nullcontext():
                        func(*given, **named)
                except Exception as raised:
                    raised.__traceback__ = None
                    error = raised
                found.append(error)

    _in_a_thread(try_it)
    return found


def _in_a_thread(try_it: Callable[[], None]) -> None:
    """Run in a thread of its own, which has none of the modes of this one, and no keys of the dispatcher excluded."""
    with rng_restored(rng_state()):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()


def type_error(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """What a function of torch's written in C says of arguments of wrong types, given plain numbers in place of
    symbolic ones; None if it takes them."""
    if not is_a(func, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return None
    owner = getattr(func, "__self__", None)
    if is_a(owner, torch.Tensor):
        func, args = getattr(torch.Tensor, func.__name__), (owner, *args)
    said: list[str] = []

    def try_it() -> None:
        with torch.no_grad(), contextlib.suppress(_NotTried, Exception):
            given, named = _Real(_TRIED[0]).call(args, kwargs)
            try:
                func(*given, **named)
            except TypeError as error:
                said.append(str(error))

    _in_a_thread(try_it)
    return said[0] if said else None


def real_results(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], needs: Mapping[int, bool] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """What an ATen operator that writes nothing gives for real tensors that look like fake ones; None if it raises, if
    something is not known, or if it gives anything but new strided tensors.

    ``needs`` holds the ids of the fake tensors that stand for tensors which require grad: kernels ask them.
    """
    if not _can_be_tried(func, args, kwargs) or func._schema.is_mutable or is_unknown((*args, *kwargs.values())):
        return None
    found: list[Any] = []

    def try_it() -> None:
        with contextlib.suppress(Exception), torch.set_grad_enabled(bool(needs)):
            given, named = _Real(0, needs).call(args, kwargs)
            value = func(*given, **named)
            dense = (one for one in _tensors_in((*given, *named.values())) if one.layout is torch.strided)
            taken = {storage_identity(one) for one in dense}
            flat = value if is_a(value, (list, tuple)) else [value]
            if all(is_a(one, torch.Tensor) and one.layout is torch.strided for one in flat):
                own = {storage_identity(one) for one in flat}
                found.extend([value] if len(own) == len(flat) and own.isdisjoint(taken) else [])

    _in_a_thread(try_it)
    return found[0] if found else None


def out_shapes(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[int, ...]] | None:
    """The shapes that a call gives its ``out=`` tensors, tried on real ones; None if it raises, or cannot be tried."""
    if not _can_be_tried(func, args, kwargs) or is_unknown((*args, *kwargs.values())):
        return None
    names = [argument.name for argument in func._schema.arguments if argument.is_out]
    with no_modes(), rng_restored(rng_state()), torch.no_grad():
        try:
            given, named = _Real(0).call(args, kwargs)
            func(*given, **named)
        except Exception:
            return None
        outs = [named[name] for name in names if name in named]
        return [tuple(one.shape) for out in outs for one in (out if is_a(out, (list, tuple)) else [out])]


def _can_be_tried(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    if func.namespace not in ("aten", "prims"):
        return False
    return not any(is_a(one, torch.Generator) for one in (*args, *kwargs.values()))


def graph_error(func: Any, args: Sequence[Any], kwargs: dict[str, Any], needs: Mapping[int, bool]) -> str | None:
    """What autograd says of a call with ``out=`` that it cannot record; None if it says nothing of the kind.

    ``needs`` holds the ids of the fake tensors that stand for tensors which require grad, and whether these are leaves.
    The call is tried on real tensors that look alike.
    """
    said: list[str] = []

    def try_it() -> None:
        for number in _TRIED:
            with contextlib.suppress(Exception):
                given, named = _Real(number, needs).call(args, kwargs)
                try:
                    func(*given, **named)
                except RuntimeError as error:
                    said.extend([str(error)] if any(text in str(error) for text in _NO_GRAPH) else [])
                return

    _in_a_thread(try_it)
    return said[0] if said else None


_NO_GRAPH = ("don't support automatic differentiation", "cannot resize variables that require grad")


def is_unknown(values: Any) -> bool:
    """Whether a size or number among the arguments of a call is not known."""
    return any(map(_is_unknown, values))


def _is_unknown(value: Any) -> bool:
    if is_a(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return True
    if is_a(value, FakeTensor):
        return any(type(size) is not int for size in value.shape)
    return is_a(value, (list, tuple)) and any(map(_is_unknown, value))


class _Real:
    """Makes the arguments of a call again with real tensors: ``number`` stands for what is not known.

    A tensor that is given twice is one, and tensors that share memory do so. ``needs`` holds the ids of those that
    require grad, and whether they are leaves. ``mask``: what bools hold; all else is zero.
    """

    def __init__(self, number: int, needs: Mapping[int, bool] = MappingProxyType({}), mask: bool = False) -> None:
        self._number = number
        self._mask = mask
        self._needs = needs
        self._made: dict[int, torch.Tensor] = {}
        self._shared: dict[int, torch.UntypedStorage | None] = {}
        """The memory that several tensors have, by the identity of the stand-in's; None until it is made."""

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments that look alike. Errors raised: _NotTried, and what torch raises."""
        distinct = {id(one): one for one in _tensors_in((*args, *kwargs.values())) if one.layout is torch.strided}
        counts = Counter(map(storage_identity, distinct.values()))
        self._shared = {storage: None for storage, count in counts.items() if count > 1}
        return [self._value(arg) for arg in args], {key: self._value(value) for key, value in kwargs.items()}

    def _value(self, value: Any) -> Any:
        if is_a(value, torch.SymBool):
            return bool(self._number)
        if is_a(value, torch.SymFloat):
            return float(self._number)
        if is_a(value, torch.SymInt):
            return _size(value, self._number)
        if is_a(value, torch.Tensor):
            if id(value) not in self._made:
                one = self._tensor(value)
                one.requires_grad_(id(value) in self._needs and (one.is_floating_point() or one.is_complex()))
                self._made[id(value)] = one if self._needs.get(id(value), True) else one.clone()
            return self._made[id(value)]
        if type(value) in (list, tuple):
            return type(value)(map(self._value, value))
        return value

    def _tensor(self, fake: torch.Tensor) -> torch.Tensor:
        if fake.layout is not torch.strided:
            return self._sparse(fake)
        shape = [_size(size, self._number) for size in fake.shape]
        strides = [_size(stride, self._number) for stride in strides_of(fake)]
        extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides)) if math.prod(shape) else 0
        if max(extent, math.prod(shape)) > _LARGEST or min(shape, default=0) < 0:
            raise _NotTried
        if storage_identity(fake) in self._shared:
            memory, offset = self._memory(fake), _size(offset_of(fake), self._number)
        else:
            memory = torch.zeros(max(extent, 1), dtype=fake.dtype, device=fake.device).untyped_storage()
            offset = 0
        # no view: some kernels go other ways for views that require grad
        made = torch.empty(0, dtype=fake.dtype, device=fake.device).set_(memory, offset, shape, strides)
        return made.fill_(True) if self._mask and fake.dtype is torch.bool else made

    def _sparse(self, fake: torch.Tensor) -> torch.Tensor:
        """One that holds every element: torch takes short cuts for those that hold none."""
        shape = [_size(size, self._number) for size in fake.shape]
        if math.prod(shape) > _LARGEST:
            raise _NotTried
        full = torch.ones(shape, dtype=fake.dtype, device=fake.device)
        if fake.layout is torch.sparse_coo:
            return full.to_sparse(fake.sparse_dim())
        if fake.layout in (torch.sparse_csr, torch.sparse_csc):
            return full.to_sparse(layout=fake.layout, dense_dim=fake.dense_dim())
        raise _NotTried

    def _memory(self, fake: torch.Tensor) -> torch.UntypedStorage:
        storage = storage_identity(fake)
        memory = self._shared[storage]
        if memory is None:
            count = _size(fake.untyped_storage().nbytes(), self._number)
            if count > 8 * _LARGEST:
                raise _NotTried
            memory = torch.zeros(count, dtype=torch.uint8, device=fake.device).untyped_storage()
            self._shared[storage] = memory
        return memory


def _tensors_in(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if is_a(value, torch.Tensor):
            yield value
        elif is_a(value, (list, tuple)):
            yield from _tensors_in(value)


def _size(value: Any, number: int) -> int:
    if type(value) is int:
        return value
    expr = value.node.expr
    with contextlib.suppress(TypeError, ValueError):
        return int(expr.xreplace(dict.fromkeys(expr.free_symbols, number)))
    raise _NotTried


__all__ = ["graph_error", "is_unknown", "out_shapes", "real_errors", "real_results", "type_error"]
