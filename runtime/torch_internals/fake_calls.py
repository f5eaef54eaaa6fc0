"""Calls of operators on fake tensors: remembered for fixed sizes, repaired for unknown ones."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    FakeTensor,
    in_kernel_invocation_manager,
)

from runtime.kinds import is_a
from runtime.torch_internals.fakes import (
    TraceMode,
    empty_fake,
    fake_of,
    fake_only,
    new_symbol,
    nothing_assumed,
    offset_of,
    size_expr,
    state_of_facts,
    storage_identity,
    strides_of,
)
from runtime.torch_internals.generators import rng_restored, rng_state
from runtime.torch_internals.modes import autocast_key, below_autograd, casting_as, no_modes
from runtime.torch_internals.operators import is_composite

if TYPE_CHECKING:
    import sympy
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

_UNCACHED = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.inplace_view})


_PLAIN = (int, float, bool, str, complex, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


@dataclass(frozen=True)
class _Result:
    """How to make a result again; ``view``: which tensor among the arguments it shares memory with."""

    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    offset: Any
    dtype: torch.dtype
    device: torch.device
    view: int | None


_results: dict[Any, tuple[type | None, tuple[_Result, ...]]] = {}


_RESULTS_KEPT = 20_000


Content = Callable[[torch.Tensor], torch.Tensor]
"""Makes a tensor like another, with data."""

Casting = tuple[tuple[str, bool, str], ...]
"""An autocast state under which operators inside an operator run; () for none."""


CASTING_KERNELS = frozenset(f"aten::{name}" for name in (
    "_trilinear", "linalg_pinv", "_sparse_mm", "_sparse_addmm", "inner", "_euclidean_dist", "_foreach_mm",
    "_native_multi_head_attention", "_transformer_encoder_layer_fwd",
))  # fmt: skip
"""Operators with a kernel of their own, or made of one, that calls others which autocast casts; and those that call
others for fake tensors than for real ones."""


def casts_inside(func: Any, autocast: Casting) -> bool:
    """Whether autocast reaches the operators that an operator is written in terms of: it does not cast itself.

    What is inside an operator of a library is not known.
    """
    if func._schema.name in CASTING_KERNELS or func.namespace != "aten":
        return True
    return is_composite(func) and not any(
        torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), f"Autocast{device.upper()}")
        for device, enabled, _ in autocast
        if enabled
    )


def _run(func: Any, args: Any, kwargs: Any, casting: Casting) -> Any:
    """Call it in the fake mode in force. That would run what is inside an operator without autocast: so with
    ``casting`` the operator is taken apart here, or a kernel run on small tensors to see the dtypes of its results."""
    if is_a(kwargs.get("generator"), torch.Generator):  # nothing is drawn, and some rules take none
        kwargs = {**kwargs, "generator": None}
    if not casting:
        return func(*args, **kwargs)
    kernel = func._schema.name in CASTING_KERNELS
    if is_composite(func) and not kernel:
        with casting_as(casting):
            return func.decompose(*args, **kwargs)
    value = func(*args, **kwargs)
    return cast_inside(func, args, kwargs, casting, value) if kernel else value


def cast_inside(func: Any, args: Any, kwargs: Any, casting: Casting, value: Any) -> Any:
    """Fake results with the dtypes that a kernel gives under an autocast state: it is run on small tensors."""
    with below_autograd(), no_modes(), rng_restored(rng_state()), casting_as(casting):
        real = _on_stand_ins(func, args, kwargs, (), _SIZES[0], _ascending)
    return _with_dtypes(value, real)


def _with_dtypes(fake: Any, real: Any) -> Any:
    if is_a(fake, (list, tuple)):
        return type(fake)(map(_with_dtypes, fake, real))
    return fake if not is_a(fake, torch.Tensor) or fake.dtype == real.dtype else fake.to(real.dtype)


def fake_call(fake_mode: TraceMode, func: Any, args: Any, kwargs: Any, casting: Casting = ()) -> Any:
    """``func(*args, **kwargs)`` on fake tensors, below autograd; torch-function modes do not see it.

    What an operator gives for some metadata is remembered: asking torch for it again costs ten times more. For sizes
    that are not known it is remembered while the trace knows no more of them and no less, if the call told nothing.
    """
    with torch._C.DisableTorchFunction():
        tensors: list[torch.Tensor] = []
        symbols: list[Any] = []
        key = _call_key(func, args, kwargs, tensors, symbols, casting)
        remembered = fake_mode.results if symbols else _results
        state = state_of_facts(fake_mode) if symbols else 0
        if key is None or state is None:
            with fake_mode:
                return _run(func, args, kwargs, casting)
        found = remembered.get((state, key))
        if found is not None:
            kind, results = found
            made = [_again(fake_mode, result, tensors) for result in results]
            return made[0] if kind is None else kind(made)
        with fake_mode:
            value = _run(func, args, kwargs, casting)
        if not symbols or state_of_facts(fake_mode) == state:
            _remember(remembered, (state, key), value, tensors, symbols)
        return value


def _call_key(
    func: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor], symbols: list[Any], casting: Casting
) -> Any:
    """All that the metadata of the results depends on; None if that is not known. ``tensors`` gets those in it, and
    ``symbols`` the symbols of sizes."""
    if func.namespace != "aten" or func._schema.is_mutable or not _UNCACHED.isdisjoint(func.tags):
        return None
    parts: list[Any] = []
    for value in (*args, *kwargs.values()):
        part = _key_of(value, tensors, symbols)
        if part is None:
            return None
        parts.append(part)
    state = torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast_key()
    return func, tuple(parts), tuple(kwargs), len(args), state, casting


def _key_of(value: Any, tensors: list[torch.Tensor], symbols: list[Any]) -> Any:
    kind = type(value)
    if kind is FakeTensor:
        if value.layout is not torch.strided or value.constant is not None or value.is_conj() or value.is_neg():
            return None
        shape, strides, offset = tuple(value.shape), strides_of(value), offset_of(value)
        if any(type(part) is not int for part in (*shape, *strides, offset)):
            shape, strides = _expressions(shape, symbols), _expressions(strides, symbols)
            (offset,) = _expressions((offset,), symbols)
        tensors.append(value)
        return FakeTensor, shape, strides, offset, value.dtype, value.device, value.requires_grad
    if kind in _PLAIN:
        return kind, value
    if kind is torch.SymInt:
        return kind, _expressions((value,), symbols)
    if kind is list or kind is tuple:
        parts = tuple([_key_of(item, tensors, symbols) for item in value])
        return None if None in parts else (kind, parts)
    return None


def _expressions(sizes: tuple[Any, ...], symbols: list[Any]) -> tuple[Any, ...]:
    """What the sizes are; of one that is no ``int`` but known by now, the number counts as a symbol of the trace."""
    made = tuple([size_expr(size) for size in sizes])
    for expr in made:
        if type(expr) is not int:
            symbols.extend(expr.free_symbols or (expr,))
    return made


def _remember(
    remembered: dict[Any, Any], key: Any, value: Any, tensors: list[torch.Tensor], symbols: list[Any]
) -> None:
    kind = type(value) if type(value) in (list, tuple) else None
    flat = [value] if kind is None else value
    results = []
    own: set[int] = set()
    found: list[Any] = []
    for one in flat:
        if type(one) is not FakeTensor or any(one is tensor for tensor in tensors) or _key_of(one, [], found) is None:
            return
        storage = storage_identity(one)
        views = [i for i, tensor in enumerate(tensors) if storage_identity(tensor) == storage]
        if len(views) > 1:  # of which one it is a view cannot be told
            return
        view = views[0] if views else None
        if view is None and (storage in own or type(offset_of(one)) is not int or offset_of(one) != 0):
            return
        if view is not None and one.dtype != tensors[view].dtype:  # view(dtype), view_as_real
            return
        own.add(storage)
        results.append(_Result(tuple(one.shape), strides_of(one), offset_of(one), one.dtype, one.device, view))
    if not set(found) <= set(symbols):  # each call makes symbols of its own
        return
    if len(remembered) >= _RESULTS_KEPT:
        remembered.clear()
    remembered[key] = kind, tuple(results)


def _again(fake_mode: TraceMode, result: _Result, tensors: list[torch.Tensor]) -> torch.Tensor:
    if result.view is None:
        return empty_fake(fake_mode, result.shape, result.strides, result.dtype, result.device)
    source = tensors[result.view]
    with torch._C._AutoDispatchBelowAutograd(), in_kernel_invocation_manager(fake_mode), nothing_assumed(fake_mode):
        meta = torch.ops.aten.as_strided.default(source, result.shape, result.strides, result.offset)
    return fake_of(fake_mode, meta, result.device)


_NUMBERS = (torch.SymFloat, torch.SymBool)


def has_numbers(value: Any) -> bool:
    """Whether a symbol for a float or bool is among the arguments."""
    if is_a(value, (list, tuple)):
        return any(map(has_numbers, value))
    return is_a(value, _NUMBERS)


_LIKELY = (0.5, 2.0, 1.0, 0.0, -0.5, 30.0)


def with_plain_numbers(fake_mode: TraceMode, func: Any, args: Any, kwargs: Any, casting: Casting = ()) -> Any:
    """The result for plain floats and bools in place of symbols, for rules that cannot do with those; None if no number
    that is tried is one for this operator.

    What an operator gives has the same sizes and dtype for every float, where its schema says ``Scalar``.
    """
    for number in _LIKELY:

        def plain(value: Any, number: float = number) -> Any:
            if is_a(value, (list, tuple)):
                return type(value)(map(plain, value))
            if is_a(value, torch.SymFloat):
                return number
            return number > 0 if is_a(value, torch.SymBool) else value

        try:
            given, named = [plain(arg) for arg in args], {key: plain(value) for key, value in kwargs.items()}
            return fake_call(fake_mode, func, given, named, casting)
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue
    return None


def unknown_sizes(
    fake_mode: TraceMode, shape_env: ShapeEnv, func: Any, args: Any, kwargs: Any, casting: Casting = (),
    loose: list[torch.Tensor] | None = None,
) -> Any:
    """Results of known rank whose sizes are fresh symbols, for an operator whose shape rule fails on unknown sizes.

    What is a view of an argument is one of the fake argument. ``loose`` gets those of which the strides are not known.

    The operator is run on fake tensors of two concrete sizes, and of several if it takes those; sizes on which all runs
    agree are taken as fixed. One that looks at its own data is run on real tensors with several contents instead. None
    if that fails as well.
    """
    if func._schema.returns[:1] and str(func._schema.returns[0].type).startswith("List["):
        if any(is_a(arg, torch.SymInt) for arg in (*args, *kwargs.values())):  # it may say how many there are
            return None
    results: list[Any] | None
    given: Given = []
    try:
        with fake_only(fake_mode):
            results = [_on_stand_ins(func, args, kwargs, casting, size, None, given) for size in _SIZES]
            symbols = _symbols((*args, *kwargs.values()))
            for order in (symbols, symbols[::-1]) if len(symbols) > 1 else ():
                several = {symbol: 5 + 3 * place for place, symbol in enumerate(order)}
                with contextlib.suppress(*_FAILURES, DataDependentOutputException):  # some sizes have to be the same
                    results.append(_on_stand_ins(func, args, kwargs, casting, several, None, given))
            given_numbers = [value for value in _flat((*args, *kwargs.values())) if type(value) is torch.SymInt]
            numbers = _symbols(given_numbers)
            for number in _SMALL if numbers else ():
                mixed = {**dict.fromkeys(symbols, _SIZES[-1]), **dict.fromkeys(numbers, number)}
                with contextlib.suppress(*_FAILURES, DataDependentOutputException):
                    results.append(_on_stand_ins(func, args, kwargs, casting, mixed, None, given))
    except DataDependentOutputException:
        results = _on_real_tensors(func, args, kwargs, casting)
    except _FAILURES:
        return None

    def merge(*found: Any) -> Any:
        a = found[0]
        if is_a(a, torch.Tensor):
            if any(one.dim() != a.dim() for one in found):
                raise ValueError("the rank depends on a size")
            fixed = [all(type(one) is int and one == dims[0] for one in dims)
                     for dims in zip(*(one.shape for one in found))]  # fmt: skip
            sizes = [size if known else new_symbol(shape_env, size=True) for size, known in zip(a.shape, fixed)]
            made = _viewed(a, sizes, given)
            if made is None:
                return torch.empty(sizes, dtype=a.dtype, device=a.device)
            if not made[1] and loose is not None:
                loose.append(made[0])
            return made[0]
        if is_a(a, (list, tuple)):
            if any(len(one) != len(a) for one in found):
                raise ValueError("the number of results depends on a size")
            return type(a)(map(merge, *found))
        if any(one != a for one in found):
            raise ValueError("a number depends on a size")
        return a

    if not results:
        return None
    try:
        with fake_only(fake_mode):
            return merge(*results)
    except ValueError:
        return None


def _viewed(sample: torch.Tensor, sizes: list[Any], given: Given) -> tuple[torch.Tensor, bool] | None:
    """The view of a fake argument that has these sizes, as a sample is one of the argument's stand-in; whether its
    strides are known. None for a sample with memory of its own."""
    if sample.layout is not torch.strided:
        return None
    for fake, made in given:
        if made.layout is torch.strided and storage_identity(made) == storage_identity(sample):
            found = [[dim for dim in range(made.dim()) if made.stride(dim) == stride] for stride in sample.stride()]
            sure = all(len(dims) == 1 for dims in found)
            mine = strides_of(fake)
            strides = [mine[dims[0]] if dims else 1 for dims in found]
            return fake.as_strided(sizes, strides, offset_of(fake)), sure
    return None


Given = list[tuple[torch.Tensor, torch.Tensor]]
"""Fake arguments, and what stood in for each."""

_SIZES = (4, 1008)
"""What stands in for a size that is not known: far apart, so that most fixed sizes are between them."""

_SMALL = (1, 2, 3)
"""What stands in for a number that is no size (a stride, a dilation) as well: all large ones may give the same size."""

_FAILURES = (RuntimeError, ValueError, TypeError, IndexError)


def _flat(value: Any) -> Iterator[Any]:
    if is_a(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _symbols(value: Any) -> list[sympy.Symbol]:
    """The symbols in the sizes and numbers that an operator is given."""
    if is_a(value, (list, tuple)):
        return list(dict.fromkeys(itertools.chain.from_iterable(map(_symbols, value))))
    if is_a(value, torch.Tensor):
        return _symbols(tuple(value.shape))
    return sorted(value.node.expr.free_symbols, key=str) if is_a(value, torch.SymInt) else []


def _on_stand_ins(func: Any, args: Any, kwargs: Any, casting: Casting, stand_in: int | dict[sympy.Symbol, int],
                  content: Content | None, given: Given | None = None) -> Any:  # fmt: skip
    """The operator's result for tensors of known sizes; ``content`` None: without data, in the mode in force.
    ``stand_in``: what stands for all sizes, or for each."""

    def concrete(value: Any) -> Any:
        """The value with sizes that are known."""
        if is_a(value, torch.SymInt):
            expr = value.node.expr
            values = stand_in if is_a(stand_in, dict) else dict.fromkeys(expr.free_symbols, stand_in)
            return int(expr.xreplace(values))
        if is_a(value, torch.Tensor):
            made = torch.empty([concrete(size) for size in value.shape], dtype=value.dtype, device=value.device)
            if given is not None:
                given.append((value, made))
            return made if content is None else content(made)
        if is_a(value, (list, tuple)):
            return type(value)(concrete(item) for item in value)
        return value

    return _run(func, [concrete(arg) for arg in args], {k: concrete(v) for k, v in kwargs.items()}, casting)


def _on_real_tensors(func: Any, args: Any, kwargs: Any, casting: Casting) -> list[Any] | None:
    """Results for two sizes; None if a shape depends on what the tensors hold, or the operator is not PyTorch's own."""
    if func.namespace != "aten" or func._schema.is_mutable:
        return None
    results = []
    with below_autograd(), no_modes(), rng_restored(rng_state()):
        for size in _SIZES:
            found = []
            for content in (torch.ones_like, _ascending):
                with contextlib.suppress(*_FAILURES):  # not for such a content
                    found.append(_on_stand_ins(func, args, kwargs, casting, size, content))
            if not found or any(_shapes(one) != _shapes(found[0]) for one in found):
                return None
            results.append(found[0])
    return results


def _ascending(tensor: torch.Tensor) -> torch.Tensor:
    """Small whole numbers that are not all the same, and make a square matrix of full rank."""
    count = torch.arange(1, tensor.numel() + 1, device=tensor.device)
    return (count * count % 7 + 1).reshape(tensor.shape).to(tensor.dtype)


def _shapes(result: Any) -> Any:
    return [_shapes(one) for one in result] if is_a(result, (list, tuple)) else getattr(result, "shape", None)
