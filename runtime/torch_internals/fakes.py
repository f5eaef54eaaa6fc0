"""Fake tensors and symbolic sizes: making them, and what they tell."""

from __future__ import annotations

import contextlib
import functools
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    in_kernel_invocation_manager,
)
from torch.utils._python_dispatch import _disable_current_modes

from runtime import collector
from runtime.kinds import is_a
from runtime.torch_internals import early_rules, fourier_rules
from runtime.torch_internals.batches import innermost
from runtime.torch_internals.misread import is_misread
from runtime.torch_internals.sparse import is_sparse
from runtime.torch_internals.versions import before

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv


_EARLY = before(2, 13)


class TraceMode(FakeTensorMode):
    """The fake-tensor mode of one trace; once ``finished`` says so, its tensors raise what that gives."""

    finished: Callable[[], BaseException] | None = None

    def __init__(self, shape_env: ShapeEnv) -> None:
        super().__init__(shape_env=shape_env, allow_non_fake_inputs=False)
        self.cache_enabled = False  # torch's cache gives a result again without noting what the rule assumes for it
        self.results: dict[Any, Any] = {}
        """What operators gave for sizes that are not known, by call and state of facts."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.finished is not None:
            raise self.finished()
        if is_misread(func):
            with in_fake_mode(self):
                return func.decompose(*args, **kwargs or {})
        if fourier_rules.is_transform(func):
            with in_fake_mode(self):
                transformed = fourier_rules.transformed(func, args, kwargs)
            if transformed is not None:
                return transformed
        if not _EARLY:
            return super().__torch_dispatch__(func, types, args, kwargs)
        early = early_rules.by_early_rule(func, args, kwargs or {})
        if early is not None:
            return early
        return early_rules.mended(func, super().__torch_dispatch__(func, types, args, kwargs))


@functools.cache
def _environment() -> type[ShapeEnv]:
    from torch.fx.experimental.symbolic_shapes import (  # with sympy, a third of what importing torch takes
        ShapeEnv,
        SLoc,
    )

    here = traceback.FrameSummary(__file__, None, "trace")

    class Environment(ShapeEnv):
        """Looks for nobody's frame when it makes a symbol or notes a fact: that serves messages of torch's own, and the
        first look imports all of torch's compiler, two seconds."""

        def _get_stack_summary(self, is_debug: bool = False, framework_loc: str | None = None) -> tuple[SLoc, str]:
            return SLoc(framework_loc or here, None), ""

        def _log_create_unbacked_symbol(self, *args: Any, **kwargs: Any) -> None:
            pass

    return Environment


def make_fake_mode() -> tuple[TraceMode, ShapeEnv]:
    """A fake-tensor mode over a shape environment that never specialises sizes 0 and 1."""
    with collector.resting():  # the first mode of a process imports sympy and PyTorch's compiler
        shape_env = _environment()(specialize_zero_one=False, duck_shape=False)
        return TraceMode(shape_env), shape_env


def state_of_facts(fake_mode: TraceMode) -> int | None:
    """Equal while the same is known of a trace's symbols; None: what an operator would note now is not noted."""
    env: Any = fake_mode.shape_env
    if env._suppress_guards_tls():
        return None
    env._update_version_counter()
    return int(env._version_counter)


_KEPT = tuple(f"_{kind}{what}_capsule" for kind in ("", "sym_") for what in ("sizes", "strides"))


def is_kept_by_torch(name: str) -> bool:
    """Whether PyTorch itself puts an attribute of this name on tensors whose sizes it computes."""
    return name.startswith(_KEPT) or name in FakeTensor.__annotations__


def is_fake(tensor: object) -> bool:
    """Whether a tensor has no data."""
    return is_a(tensor, FakeTensor)


def asks_device(func: Any) -> bool:
    """Whether an operator is the question on which device a tensor is, which autograd's formulas ask all the time."""
    return func is _DEVICE


_DEVICE = torch.ops.prim.device.default


def device_of(fake: torch.Tensor) -> torch.device:
    """What torch's own rule says to that question."""
    assert is_a(fake, FakeTensor)
    return torch.device("meta") if fake.fake_mode.in_kernel_invocation else fake.fake_device


@contextlib.contextmanager
def fake_only(fake_mode: FakeTensorMode) -> Iterator[None]:
    """Run operators on fake tensors without any other mode seeing them."""
    with _disable_current_modes(), torch._C.DisableTorchFunction(), torch._C._AutoDispatchBelowAutograd(), fake_mode:
        yield


def gradient_hooks(tensor: torch.Tensor) -> tuple[list[Any], list[Any]]:
    """What is called with a leaf's gradient before it is added to ``.grad``, and with the leaf after that."""
    before, after = tensor._backward_hooks, tensor._post_accumulate_grad_hooks
    return list((before or {}).values()), list((after or {}).values())


def assign_gradient(tensor: torch.Tensor, grad: torch.Tensor) -> None:
    """Raise what PyTorch raises where ``grad`` may not be the gradient of ``tensor``, told by what they look like."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        owner, given = (torch.empty(one.shape, dtype=one.dtype, device="meta") for one in (tensor, grad))
        owner.grad = given


@contextlib.contextmanager
def in_fake_mode(fake_mode: FakeTensorMode) -> Iterator[None]:
    """Run operators on fake tensors without torch-function modes seeing them; dispatch modes do."""
    with torch._C.DisableTorchFunction(), fake_mode:
        yield


def new_symbol(shape_env: ShapeEnv, *, size: bool, hint: int | None = None) -> torch.SymInt:
    """A fresh symbolic int; ``size``: not negative; ``hint``: the value it has in the call that is traced."""
    symbol = shape_env.create_unbacked_symint()
    if size:
        from torch.fx.experimental.symbolic_shapes import _constrain_range_for_size

        _constrain_range_for_size(symbol)
    if hint is not None:
        shape_env.set_real_tensor_prop_unbacked_vals(symbol.node.expr, hint)
    return _noted(shape_env, symbol, size)


def new_count(shape_env: ShapeEnv) -> torch.SymInt:
    """A fresh symbolic int that is 0 or more, which sympy knows: ``max(n + 4, 1)`` is ``n + 4``."""
    from torch.fx.experimental import symbolic_shapes

    plain = symbolic_shapes.make_symbol
    symbolic_shapes.make_symbol = functools.partial(plain, nonnegative=True)
    try:
        symbol = shape_env.create_unbacked_symint()
    finally:
        symbolic_shapes.make_symbol = plain
    symbolic_shapes.constrain_range(symbol, min=0)
    return _noted(shape_env, symbol, size=False)


def new_number(shape_env: ShapeEnv, kind: str) -> Any:
    """A fresh symbol for a number of which nothing is known; ``kind`` is "bool", "int" or "float"."""
    return _noted(shape_env, getattr(shape_env, f"create_unbacked_sym{kind}")(), size=False)


_made: weakref.WeakKeyDictionary[ShapeEnv, dict[Any, tuple[Any, bool]]] = weakref.WeakKeyDictionary()
"""The symbols that were made here, by environment: what was known of each from the start, and whether it is a size."""


def _noted(shape_env: ShapeEnv, symbol: Any, size: bool) -> Any:
    made = _made.setdefault(shape_env, {})
    for expr in symbol.node.expr.free_symbols:
        made[expr] = (shape_env.var_to_range[expr], size)
    return symbol


def _copied(fact: Any) -> Any:
    return fact if is_a(fact, int) else fact.copy()


class _Ranges(dict[Any, Any]):
    """The ranges of an environment's symbols, which remember what they were: there are hundreds, and few change."""

    def __init__(self, ranges: dict[Any, Any]) -> None:
        super().__init__(ranges)
        self.changes: list[tuple[Any, Any]] = []
        """Symbols whose range was set, in order, and what it was before; None for a new one."""

    @classmethod
    def of(cls, shape_env: ShapeEnv) -> _Ranges:
        """An environment's ranges; from then on these."""
        ranges = shape_env.var_to_range
        if not is_a(ranges, cls):
            ranges = shape_env.var_to_range = cls(ranges)
        return ranges

    def __setitem__(self, symbol: Any, range_: Any) -> None:
        self.changes.append((symbol, self.get(symbol)))
        super().__setitem__(symbol, range_)

    def undo(self, mark: int, made: Mapping[Any, tuple[Any, bool]]) -> tuple[set[Any], bool]:
        """Put back what changed since there were ``mark`` changes; new symbols of ``made`` are as they were made.

        Returns:
            The new ones that are sizes, and whether everything was as it was.
        """
        before: dict[Any, Any] = {}
        for symbol, range_ in self.changes[mark:]:
            before.setdefault(symbol, range_)
        new = [symbol for symbol, range_ in before.items() if range_ is None]
        before.update((symbol, made[symbol][0] if symbol in made else self[symbol]) for symbol in new)
        is_as_it_was = all(self[symbol] is range_ or self[symbol] == range_ for symbol, range_ in before.items())
        self.update(before)
        self.changes[mark:] = [(symbol, None) for symbol in new]
        return {symbol for symbol in new if symbol in made and made[symbol][1]}, is_as_it_was


class SizeFacts:
    """What a shape environment takes for true about its symbols, to be put back: shape rules make assumptions.

    Symbols made since stay: fake tensors remember some, and no two are ever the same. Of those that were made here
    only that is known which was known then: what they stand for may be older.
    """

    def __init__(self, shape_env: ShapeEnv) -> None:
        self._env = shape_env
        facts = vars(shape_env)
        self._facts = {name: _copied(facts[name]) for name in _FACTS if name in facts}
        asserts = shape_env.deferred_runtime_asserts
        self._asserts = {symbol: list(facts) for symbol, facts in asserts.items()}
        self._ranges = _Ranges.of(shape_env)
        self._mark = len(self._ranges.changes)

    def put_back(self) -> None:
        """Forget what was assumed since."""
        env: Any = self._env
        asserts = env.deferred_runtime_asserts
        changed = len(self._ranges.changes) > self._mark
        sizes, is_as_it_was = self._ranges.undo(self._mark, _made.get(env, {})) if changed else (set(), True)
        if sizes and "size_like" in self._facts:
            self._facts["size_like"] |= sizes
        if is_as_it_was and all(getattr(env, name) == value for name, value in self._facts.items()):
            known = self._asserts
            if known.keys() == asserts.keys() and all(len(facts) == len(asserts[one]) for one, facts in known.items()):
                return
        for name, value in self._facts.items():
            setattr(env, name, _copied(value))
        asserts.clear()
        asserts.update({symbol: list(facts) for symbol, facts in self._asserts.items()})
        env._resimplify_floor_div_axioms = True
        for counter in ("_version_counter", "_replacements_version_counter"):  # its caches are of these versions
            if hasattr(env, counter):
                setattr(env, counter, getattr(env, counter) + 1)
        env._prev_cache_key = env._get_key()  # told by how many facts there are; else as many new ones look like these
        cls: Any = type(env)
        for function in _cached(cls):  # some have no version: a fact is not noted again, or still answered
            function.cache_clear()


_OF_NO_FACTS = ("get_implications",)
"""Functions with a cache that know an expression alone."""
_FACTS = ("replacements", "divisible", "axioms", "num_deferred_runtime_asserts", "size_like", "guards")


@functools.cache
def _cached(cls: Any) -> list[Any]:
    found = {name: one for base in reversed(cls.__mro__) for name, one in vars(base).items()}
    return [one for name, one in found.items() if hasattr(one, "cache_clear") and name not in _OF_NO_FACTS]


def dispatches_itself(real: torch.Tensor) -> bool:
    """Whether a tensor's class has a ``__torch_dispatch__`` of its own: it may hold other tensors, and nobody knows
    what operators do to them."""
    cls = type(real)
    return cls is not torch.Tensor and cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


@functools.cache
def overridden_by(cls: type) -> str | None:
    """What a user's class of tensors does otherwise than ``torch.Tensor``: the name of a method or operator; None if it
    has only more."""
    for base in cls.__mro__[: cls.__mro__.index(torch.Tensor)]:
        if not base.__module__.startswith("torch."):
            for name in vars(base):
                if name not in _HARMLESS and hasattr(torch.Tensor, name):
                    return name
    return None


_HARMLESS = frozenset(vars(type("Empty", (), {"__annotations__": {}, "__slots__": ()}))) | {
    "__new__", "__init__", "__init_subclass__", "__repr__", "__str__", "__deepcopy__", "__reduce_ex__", "__reduce__",
    "__setstate__", "__getstate__", "__orig_bases__", "__parameters__", "__class_getitem__", "__qualname__",
    "__firstlineno__", "__static_attributes__", "__dict__", "__weakref__",
}  # fmt: skip
"""What no computation asks a class for."""


def fake_like(fake_mode: FakeTensorMode, real: torch.Tensor, dynamic: dict[int, torch.SymInt]) -> torch.Tensor:
    """A fake tensor with the metadata of ``real``; sizes of the dimensions in ``dynamic`` are those symbols."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        if real.layout is not torch.strided or type(real) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            return fake_mode.from_tensor(real, static_shapes=True)
        sizes: list[Any] = [dynamic.get(dim, size) for dim, size in enumerate(real.shape)]
        strides: list[Any] = list(real.stride())
        if dynamic:
            strides = _symbolic_strides(real, sizes)
        outside = torch.is_inference_mode_enabled() and not real.is_inference()  # a view of it counts its writes
        outside_mode = torch.inference_mode(False) if outside else contextlib.nullcontext()
        with outside_mode, torch._C._AutoDispatchBelowAutograd(), fake_mode:
            made = torch.empty_strided(sizes, strides, dtype=real.dtype, device=real.device)
            made = made.conj() if real.is_conj() else made
            return negative(made) if real.is_neg() else made


def negative(tensor: torch.Tensor) -> torch.Tensor:
    """A view that says of itself that it is the negative of what is in memory."""
    return torch._neg_view(tensor)


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


def strides_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """``tensor.stride()``, as nobody's question: torch-function modes do not see it."""
    with torch._C.DisableTorchFunction():
        return tensor.stride()


def offset_of(tensor: torch.Tensor) -> Any:
    """``tensor.storage_offset()``, in the same way."""
    with torch._C.DisableTorchFunction():
        return tensor.storage_offset()


def contiguity(fake: torch.Tensor) -> tuple[bool, bool]:
    """Whether a fake tensor is contiguous, and whether that is certain for every size its symbols can take."""
    strides = strides_of(fake)
    if all(type(size) is int for size in (*fake.shape, *strides)):
        with torch._C.DisableTorchFunction():
            return fake.is_contiguous(), True
    expected: Any = 1
    for size, stride in zip(reversed(fake.shape), reversed(strides)):
        if type(size) is int and size == 1:
            continue
        if size_expr(stride) != size_expr(expected):
            return False, True
        expected = expected * size
    return True, True


_ORDERS = {(torch.channels_last, 4): (1, 3, 2, 0), (torch.channels_last_3d, 5): (1, 4, 3, 2, 0)}


def lies_in_order(fake: torch.Tensor, memory_format: torch.memory_format) -> bool | None:
    """What ``is_contiguous(memory_format=...)`` says, where sizes are open: whether one is 0 or 1 is decided, as far as
    the answer depends on it. None where no size is open, or torch says it for all sizes alike."""
    strides = strides_of(fake)
    plain = memory_format is torch.contiguous_format
    order = tuple(range(fake.dim() - 1, -1, -1)) if plain else _ORDERS.get((memory_format, fake.dim()))
    if order is None or all(type(size) is int for size in (*fake.shape, *strides)):
        return None
    if plain and contiguity(fake)[0]:
        return True
    if plain and any(size == 0 for size in fake.shape):
        return True
    expected: Any = 1
    for dim in order:
        if fake.shape[dim] == 1:
            continue
        if strides[dim] != expected:
            return False
        expected = expected * fake.shape[dim]
    return True


def size_expr(size: Any) -> Any:
    """The symbolic expression of a size (an int stands for itself)."""
    return size.node.expr if is_a(size, torch.SymInt) else size


def is_surely_several(size: Any) -> bool:
    """Whether an open size is known to be more than 1."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return bool(statically_known_true(size > 1))


def may_overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors on one storage may have elements in common (conservative: byte ranges are compared)."""
    if a.layout is not torch.strided or b.layout is not torch.strided:
        return True

    def extent(t: torch.Tensor) -> tuple[Any, Any]:
        offset = offset_of(t)
        last = offset + sum((size - 1) * abs(stride) for size, stride in zip(t.shape, strides_of(t)))
        return offset * t.element_size(), (last + 1) * t.element_size()

    if a.numel() == 0 or b.numel() == 0:
        return False
    (a0, a1), (b0, b1) = extent(a), extent(b)
    return a0 < b1 and b0 < a1


def overlaps_itself(real: torch.Tensor) -> bool:
    """Whether elements of a tensor may be one memory.

    >>> overlaps_itself(torch.zeros(2, 3).t()), overlaps_itself(torch.zeros(3).expand(2, 3))
    (False, True)
    """
    if real.is_nested or real.layout is not torch.strided or real.numel() == 0:
        return False
    last = 0
    for stride, size in sorted((stride, size) for size, stride in zip(real.shape, real.stride()) if size > 1):
        if stride <= last:
            return True
        last += (size - 1) * stride
    return False


def alias_of(fake_mode: FakeTensorMode, fake: torch.Tensor) -> torch.Tensor:
    """Another tensor object on the same fake storage.

    A strided one is made below the fake mode, which would compute each symbolic size and stride again.
    """
    if fake.layout is torch.strided:
        with torch._C.DisableTorchFunction(), torch._C._AutoDispatchBelowAutograd():
            with in_kernel_invocation_manager(fake_mode):
                meta = torch.ops.aten.alias.default(fake)
            return fake_of(fake_mode, meta, fake.device)
    with fake_only(fake_mode):  # torch has no view of a sparse one; what shares its memory is noted by its TensorInfo
        return fake.clone() if is_sparse(fake) else torch.ops.aten.alias.default(fake)


def fake_of(fake_mode: FakeTensorMode, meta: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The fake tensor over a meta tensor."""
    with torch._C._DisableTorchDispatch():
        return FakeTensor(fake_mode, meta, device)


def empty_fake(
    fake_mode: FakeTensorMode, shape: Sequence[Any], strides: Sequence[Any] | None, dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    """A fake tensor of its own; ``strides`` None: contiguous."""
    if all(type(part) is int for part in (*shape, *(strides or ()))):
        return empty_static(fake_mode, shape, strides, dtype, device)
    with in_kernel_invocation_manager(fake_mode), nothing_assumed(fake_mode):
        if strides is None:
            meta = torch.empty(tuple(shape), dtype=dtype, device="meta")
        else:
            meta = torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device="meta")
    return fake_of(fake_mode, meta, device)


@contextlib.contextmanager
def nothing_assumed(fake_mode: FakeTensorMode) -> Iterator[None]:
    """A stand-in is made of a tensor that is there already, if the run comes there: its sizes tell nothing new."""
    env: Any = fake_mode.shape_env
    with contextlib.nullcontext() if env is None else env.suppress_guards():
        yield
    if env is not None:
        env.guard_or_defer_runtime_assert.cache_clear()  # where an operator assumes the same, that is noted


def empty_static(
    fake_mode: FakeTensorMode, shape: Sequence[int], strides: Sequence[int] | None, dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction(), torch._C._AutoDispatchBelowAutograd():
        if strides is None:
            meta = torch.empty(tuple(shape), dtype=dtype, device="meta")
        else:
            meta = torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device="meta")
        return FakeTensor(fake_mode, meta, device)


@contextlib.contextmanager
def fake_only_metadata() -> Iterator[None]:
    """Make fake tensors of real ones without any mode of the caller seeing it."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def tells_its_memory(tensor: torch.Tensor) -> bool:
    """Whether ``storage_identity`` is what the tensor itself says: no subclass, and no wrapper of a transform."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and innermost(tensor) is tensor


def storage_identity(tensor: torch.Tensor) -> int:
    """An identity for the memory of a strided tensor, valid while it is alive."""
    with torch._C.DisableTorchFunction():
        return int(innermost(tensor).untyped_storage()._cdata)


@contextlib.contextmanager
def shown_to_need_gradients(fakes: Sequence[torch.Tensor]) -> Iterator[None]:
    """While the block runs, the fake tensors say that they need gradients, to PyTorch's parsers of arguments too."""
    before = [fake.requires_grad for fake in fakes]
    with torch._C.DisableTorchFunction():
        for fake in fakes:
            fake.requires_grad_(True)
    try:
        yield
    finally:
        with torch._C.DisableTorchFunction():
            for fake, needed in zip(fakes, before):
                fake.requires_grad_(needed)
