"""What an operator gives for known metadata is remembered: a remembered result equals a fresh one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from runtime import torch_internals
from runtime.torch_internals import fake_calls

aten = torch.ops.aten
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]] = {
    "contiguous": ((4, 6), None),
    "transposed": ((4, 6), (1, 4)),
    "gaps": ((4, 6), (12, 2)),
    "broadcast": ((4, 6), (0, 1)),
    "empty": ((0, 6), None),
    "ones": ((1, 1), (7, 5)),
}
OPERATORS: dict[str, tuple[Any, Callable[[torch.Tensor], tuple[Any, ...]], dict[str, Any]]] = {
    "add": (aten.add.Tensor, lambda t: (t, 1), {}),
    "add float": (aten.add.Tensor, lambda t: (t, 1.0), {}),
    "multiply by True": (aten.mul.Tensor, lambda t: (t, True), {}),
    "sum": (aten.sum.default, lambda t: (t,), {}),
    "sum as": (aten.sum.dim_IntList, lambda t: (t, [1], True), {"dtype": torch.float64}),
    "equal": (aten.eq.Tensor, lambda t: (t, t), {}),
    "copy": (aten._to_copy.default, lambda t: (t,), {"dtype": torch.float16}),
    "clone": (aten.clone.default, lambda t: (t,), {}),
    "clone contiguous": (aten.clone.default, lambda t: (t,), {"memory_format": torch.contiguous_format}),
    "empty_like": (aten.empty_like.default, lambda t: (t,), {}),
    "full": (aten.full.default, lambda t: ([2, 3], 1.5), {}),
    "matrix product": (aten.mm.default, lambda t: (t, aten.t.default(t)), {}),
    "transpose": (aten.t.default, lambda t: (t,), {}),
    "view": (aten.view.default, lambda t: (t, [-1, 6]), {}),
    "select": (aten.select.int, lambda t: (t, 1, 2), {}),
    "slice": (aten.slice.Tensor, lambda t: (t, 1, 1, 5, 2), {}),
    "expand": (aten.expand.default, lambda t: (t, [3, *t.shape]), {}),
    "as bytes": (aten.view.dtype, lambda t: (t, torch.uint8), {}),
    "split": (aten.split.Tensor, lambda t: (t, 4, 1), {}),
    "unbind": (aten.unbind.int, lambda t: (t, 1), {}),
    "max": (aten.max.dim, lambda t: (t, 1), {}),
    "cat": (aten.cat.default, lambda t: ([t, t], 1), {}),
    "convert": (aten.to.dtype, lambda t: (t, torch.float32), {}),
    "contiguous": (aten.contiguous.default, lambda t: (t,), {}),
    "reshape": (aten.reshape.default, lambda t: (t, [6, -1]), {}),
}
MODES: dict[str, Callable[[], Any]] = {
    "plain": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_calls, "_results", {})


@pytest.fixture
def mode() -> torch_internals.TraceMode:
    return torch_internals.make_fake_mode()[0]


def _base(mode: torch_internals.TraceMode, shape: str, dtype: torch.dtype, offset: int = 0) -> torch.Tensor:
    """A fake tensor over a storage larger than itself."""
    sizes, strides = SHAPES[shape]
    real = torch.empty(sizes) if strides is None else torch.empty_strided(sizes, strides)
    memory = torch_internals.empty_fake(mode, [200], None, dtype, torch.device("cpu"))
    with torch_internals.fake_only(mode):
        return torch.as_strided(memory, sizes, real.stride(), offset)


def _metadata(value: Any, inputs: tuple[torch.Tensor, ...]) -> Any:
    """All that can be asked of results, and whose memory they use."""
    if isinstance(value, (list, tuple)):
        return type(value), [_metadata(item, inputs) for item in value]
    storage = torch_internals.storage_identity(value)
    shared = [torch_internals.storage_identity(one) == storage for one in inputs]
    return (type(value), tuple(value.shape), value.stride(), value.storage_offset(), value.dtype, value.device,
            value.requires_grad, value.is_inference(), value.is_contiguous(), value.untyped_storage().nbytes(), shared,
            any(value is one for one in inputs))  # fmt: skip


def _outcome(function: Callable[[], Any], inputs: tuple[torch.Tensor, ...]) -> Any:
    try:
        return _metadata(function(), inputs)
    except (RuntimeError, NotImplementedError, IndexError, TypeError) as error:
        return type(error)


def _called(mode: torch_internals.TraceMode, func: Any, args: Any, kwargs: Any) -> Any:
    with torch_internals.no_modes(), torch._C._AutoDispatchBelowAutograd():
        return torch_internals.fake_call(mode, func, args, kwargs)


def _fresh(mode: torch_internals.TraceMode, func: Any, args: Any, kwargs: Any) -> Any:
    with torch_internals.fake_only(mode):
        return func(*args, **kwargs)


def _orders() -> Iterator[tuple[str, torch.dtype, int]]:
    for shape in SHAPES:
        for dtype in (torch.float32, torch.int64, torch.complex64):
            yield shape, dtype, 3 if dtype is torch.int64 else 0


@pytest.mark.sample(3)
@pytest.mark.parametrize("setting", MODES)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_remembered_result_equals_a_fresh_one(mode: torch_internals.TraceMode, name: str, setting: str) -> None:
    func, arguments, kwargs = OPERATORS[name]
    with MODES[setting]():
        for _ in range(2):  # remembers, and takes what is remembered for each of the others in between
            for shape, dtype, offset in _orders():
                tensor = _base(mode, shape, dtype, offset)
                with torch_internals.fake_only(mode):
                    args = arguments(tensor)
                want = _outcome(lambda: _fresh(mode, func, args, kwargs), (tensor,))
                got = _outcome(lambda: _called(mode, func, args, kwargs), (tensor,))
                assert got == want, (shape, dtype, offset)
    assert bool(fake_calls._results) == (name not in ("as bytes",))


@pytest.mark.parametrize("order", [("plain", "autocast"), ("autocast", "plain"), ("no_grad", "plain")])
def test_what_is_remembered_in_one_mode_is_not_taken_in_another(
    mode: torch_internals.TraceMode, order: tuple[str, str]
) -> None:
    tensor = _base(mode, "contiguous", torch.float32)
    for setting in order:
        with MODES[setting]():
            want = _outcome(lambda: _fresh(mode, aten.matmul.default, (tensor, tensor.t()), {}), (tensor,))
            assert _outcome(lambda: _called(mode, aten.matmul.default, (tensor, tensor.t()), {}), (tensor,)) == want


def test_the_default_dtype_counts(mode: torch_internals.TraceMode) -> None:
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            assert _called(mode, aten.full.default, ([2], 1.5), {}).dtype is dtype
    finally:
        torch.set_default_dtype(before)


def test_numbers_of_other_types_are_other_arguments(mode: torch_internals.TraceMode) -> None:
    tensor = _base(mode, "contiguous", torch.int64)
    kinds = [_called(mode, aten.add.Tensor, (tensor, number), {}).dtype for number in (1, 1.0, True, 1j, 1)]
    assert kinds == [torch.int64, torch.float32, torch.int64, torch.complex64, torch.int64]


def test_a_keyword_is_not_a_position(mode: torch_internals.TraceMode) -> None:
    tensor = _base(mode, "contiguous", torch.float32)
    assert _called(mode, aten.transpose.int, (tensor, 0, 1), {}).shape == (6, 4)
    assert _called(mode, aten.sum.dim_IntList, (tensor, [0]), {"keepdim": True}).shape == (1, 6)
    assert _called(mode, aten.sum.dim_IntList, (tensor, [0], True), {"dtype": torch.float64}).shape == (1, 6)
    assert _called(mode, aten.sum.dim_IntList, (tensor, [0]), {}).shape == (6,)


def test_each_result_has_memory_of_its_own(mode: torch_internals.TraceMode) -> None:
    tensor = _base(mode, "contiguous", torch.float32)
    made = [_called(mode, aten.add.Tensor, (tensor, 1), {}) for _ in range(3)]
    assert len({torch_internals.storage_identity(one) for one in made}) == 3


def test_a_view_is_of_the_tensor_that_is_given(mode: torch_internals.TraceMode) -> None:
    first, second = (_base(mode, "contiguous", torch.float32) for _ in range(2))
    for tensor in (first, second, first):
        got = _called(mode, aten.select.int, (tensor, 0, 1), {})
        assert torch_internals.storage_identity(got) == torch_internals.storage_identity(tensor)


def test_views_of_several_tensors_that_shared_memory_when_they_were_met(mode: torch_internals.TraceMode) -> None:
    whole, other = (_base(mode, "contiguous", torch.float32) for _ in range(2))
    with torch_internals.fake_only(mode):
        row, column, far = whole[:1], whole[:, :1], other[:, :1]
    for inputs in ([row, column], [row, far], [row, column]):
        got = _called(mode, aten.broadcast_tensors.default, (inputs,), {})
        for view, source in zip(got, inputs, strict=True):
            assert torch_internals.storage_identity(view) == torch_internals.storage_identity(source)


def _of_unknown_sizes(mode: torch_internals.TraceMode, shape_env: Any) -> list[torch.Tensor]:
    """Tensors with one or two unknown sizes: dense, transposed, with gaps, part of a larger memory."""
    size, other = (torch_internals.new_symbol(shape_env, size=True) for _ in range(2))
    cases: list[tuple[list[Any], list[Any] | None, Any]] = [
        ([size, 6], None, 0), ([4, size], None, 0), ([size, other], None, 0), ([size, 6], [1, size], 0),
        ([size, 6], [12, 2], 0), ([size + 2, 6], None, 0), ([3, 6], [6, 1], size),
    ]  # fmt: skip
    made = []
    for sizes, strides, offset in cases:
        memory = torch_internals.empty_fake(mode, [200 * size], None, torch.float32, torch.device("cpu"))
        one = torch_internals.empty_fake(mode, sizes, strides, torch.float32, torch.device("cpu"))
        if isinstance(offset, torch.SymInt):
            with torch_internals.fake_only(mode), shape_env.suppress_guards():
                one = torch.as_strided(memory, sizes, strides, offset)
        made.append(one)
    return made


def _told(value: Any, inputs: tuple[torch.Tensor, ...]) -> Any:
    """What can be told of results with unknown sizes, and whose memory they use."""
    if isinstance(value, (list, tuple)):
        return type(value), [_told(item, inputs) for item in value]
    storage = torch_internals.storage_identity(value)
    sizes = [torch_internals.size_expr(one) for one in (*value.shape, *value.stride(), value.storage_offset())]
    return (type(value), sizes, value.dtype, value.device, value.requires_grad,
            [torch_internals.storage_identity(one) == storage for one in inputs],
            any(value is one for one in inputs))  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_a_remembered_result_for_unknown_sizes_equals_a_fresh_one(name: str) -> None:
    mode, shape_env = torch_internals.make_fake_mode()
    func, arguments, kwargs = OPERATORS[name]
    answered = 0
    tensors = _of_unknown_sizes(mode, shape_env)
    for _ in range(3):  # notes facts, remembers, and takes what is remembered for each of the others in between
        for tensor in tensors:
            try:
                with torch_internals.fake_only(mode):
                    args = arguments(tensor)
                    want = _told(func(*args, **kwargs), (tensor,))
            except (RuntimeError, NotImplementedError, IndexError, TypeError):
                continue
            assert _told(_called(mode, func, args, kwargs), (tensor,)) == want
            answered += 1
    assert answered > 3
    assert bool(mode.results) == (name not in ("as bytes", "full", "convert"))
    assert bool(fake_calls._results) == (name == "full")


def test_unknown_numbers_among_the_arguments() -> None:
    mode, shape_env = torch_internals.make_fake_mode()
    tensor, size = _base(mode, "contiguous", torch.float32), torch_internals.new_symbol(shape_env, size=True)
    for number in (size, size + 1, size, size + 1):
        got = _called(mode, aten.expand.default, (aten.unsqueeze.default(tensor, 0), [number, 4, 6]), {})
        assert torch_internals.size_expr(got.shape[0]) == torch_internals.size_expr(number)
    assert len(mode.results) == 2


def test_a_size_that_is_known_by_now_is_of_its_trace() -> None:
    mode, shape_env = torch_internals.make_fake_mode()
    size = torch_internals.new_symbol(shape_env, size=True)
    tensor = torch_internals.empty_fake(mode, [size, 3], None, torch.float32, torch.device("cpu"))
    torch._check(size == 4)
    for _ in range(3):
        assert torch_internals.size_expr(_called(mode, aten.add.Tensor, (tensor, 1), {}).shape[0]) == 4
        assert torch_internals.size_expr(_called(mode, aten.full.default, ([size], 1.5), {}).shape[0]) == 4
    assert mode.results and not fake_calls._results


def test_what_was_assumed_and_forgotten_is_assumed_again() -> None:
    """A call that notes a fact of unknown sizes does so again after the fact was put back."""
    mode, shape_env = torch_internals.make_fake_mode()
    size = torch_internals.new_symbol(shape_env, size=True)
    tensor = torch_internals.empty_fake(mode, [size], None, torch.float32, torch.device("cpu"))

    def facts() -> str:
        return repr([shape_env.deferred_runtime_asserts, shape_env.replacements])

    none, noted = facts(), []
    for _ in range(3):
        before = torch_internals.SizeFacts(shape_env)
        for _ in range(3):
            assert _called(mode, aten.view.default, (tensor, [2, 3]), {}).shape == (2, 3)
        noted.append(facts())
        before.put_back()
        assert facts() == none
    assert none != noted[0] == noted[1] == noted[2]


def test_nothing_is_remembered_where_no_fact_is_noted() -> None:
    mode, shape_env = torch_internals.make_fake_mode()
    size = torch_internals.new_symbol(shape_env, size=True)
    tensor = torch_internals.empty_fake(mode, [size], None, torch.float32, torch.device("cpu"))
    with shape_env.suppress_guards():
        _called(mode, aten.view.default, (tensor, [2, 3]), {})
    assert not mode.results


def test_what_writes_is_not_remembered(mode: torch_internals.TraceMode) -> None:
    tensor = _base(mode, "contiguous", torch.float32)
    assert _called(mode, aten.add_.Tensor, (tensor, 1), {}) is tensor
    assert not fake_calls._results


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_empty_tensor_equals_one_that_torch_made(
    mode: torch_internals.TraceMode, shape: str, dtype: torch.dtype
) -> None:
    sizes, strides = SHAPES[shape]
    device = torch.device("cpu")
    for setting in MODES.values():
        with setting():
            with torch_internals.fake_only(mode):
                want = (torch.empty(sizes, dtype=dtype) if strides is None
                        else torch.empty_strided(sizes, strides, dtype=dtype))  # fmt: skip
            got = torch_internals.empty_fake(mode, sizes, strides, dtype, device)
            assert _metadata(got, ()) == _metadata(want, ())
            assert got.fake_mode is mode  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_alias_is_another_tensor_on_the_same_memory(
    mode: torch_internals.TraceMode, shape: str, dtype: torch.dtype
) -> None:
    for setting in MODES.values():
        with setting():
            tensor = _base(mode, shape, dtype, offset=3)
            want = _fresh(mode, aten.alias.default, (tensor,), {})
            got = torch_internals.alias_of(mode, tensor)
            assert got is not tensor
            assert _metadata(got, (tensor,)) == _metadata(want, (tensor,))


def test_an_alias_keeps_sizes_that_are_not_known() -> None:
    mode, shape_env = torch_internals.make_fake_mode()
    size = torch_internals.new_symbol(shape_env, size=True)
    tensor = torch_internals.empty_fake(mode, [size, 3], None, torch.float32, torch.device("cpu"))
    got = torch_internals.alias_of(mode, tensor)
    assert got.shape[0] == size and torch_internals.storage_identity(got) == torch_internals.storage_identity(tensor)
