"""Every operator with samples of PyTorch's own tests: floats with and without gradients, whole numbers, other sizes
under the same converted function, and inside branches and loops that tensors decide on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
import torch

import dy2static
from runtime.errors import Dy2StaticError, TraceError
from runtime.tracer.recording.shared_gradients import _COMPUTES
from tests.oracle import PATHS, check, copied

pytest.importorskip("expecttest", reason="needs the third-party extra: pip install dy2static[third-party]")

with mock.patch("torch.backends.disable_global_flags"):  # its import forbids every other test to set these flags
    from torch.testing._internal import common_methods_invocations
from torch.utils._pytree import tree_flatten, tree_map_only

Call = dict[str, Any]
OPERATORS = {
    info.name + (f".{info.variant_test_name}" if info.variant_test_name else ""): info
    for info in common_methods_invocations.op_db
}
REFUSED = {
    "linalg.lstsq": "D2S235", "linalg.lstsq.grad_oriented": "D2S235", "narrow": "D2S231", "resize_": "D2S223",
    "resize_as_": "D2S223", "tensor_split": "D2S235",
}  # fmt: skip
"""Operators of which some samples are refused: the code."""
REFUSED_ON_PATHS = {**REFUSED, "to_sparse": "D2S240"}
"""The same inside branches and loops."""
_SEEDING = common_methods_invocations.wrapper_set_seed
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


@pytest.fixture(autouse=True)
def seeded_outside() -> Iterator[None]:
    """Samples of random operators seed the generator around the operator; here who compares does."""
    with mock.patch.object(common_methods_invocations, "wrapper_set_seed", _called):
        yield


def _called(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


def operator(info: Any) -> Callable[..., Any]:
    """A function that calls an operator."""
    op = info.op

    def call(value: Any, args: Any, keywords: Any) -> Any:
        return op(value, *args, **keywords)

    return call


def and_read(info: Any) -> Callable[..., Any]:
    """An operator, and what its results say of themselves: what a shape rule tells has to be what the kernel does."""
    op = info.op

    def call(value: Any, args: Any, keywords: Any) -> Any:
        result = op(value, *args, **keywords)
        said = []
        for one in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(one, torch.Tensor) and one.layout is torch.strided:
                said.append((one.shape, one.dtype, one.dim(), one.numel()))
        return result, said

    return call


def in_branch(info: Any) -> Callable[..., Any]:
    """An operator on one path of an ``if``."""
    op = info.op

    def call(flag: Any, value: Any, args: Any, keywords: Any) -> Any:
        result = None
        if flag > 0:
            result = op(value, *args, **keywords)
        return result

    return call


def in_loop(info: Any) -> Callable[..., Any]:
    """An operator in a loop that a tensor bounds."""
    op = info.op

    def call(count: Any, value: Any, args: Any, keywords: Any) -> Any:
        result = None
        done = 0
        while done < count:
            result = op(value, *args, **keywords)
            done += 1
        return result

    return call


def in_turn(info: Any) -> Callable[..., Any]:
    """An operator in a loop, each time of its last result."""
    op = info.op

    def call(count: Any, value: Any, args: Any, keywords: Any) -> Any:
        while count > 0:
            value = op(value, *args, **keywords)
            count = count - 1
        return value

    return call


def samples(info: Any, dtype: torch.dtype, requires_grad: bool) -> list[Call]:
    """The first sample, one like it with other sizes, and one of another form."""
    torch.manual_seed(0)
    found: dict[Any, Call] = {}
    for one in info.sample_inputs("cpu", dtype, requires_grad=requires_grad):
        leaves = tree_map_only(torch.Tensor, _leaf, (one.input, one.args, one.kwargs))
        call = dict(zip(("value", "args", "keywords"), leaves))
        parts, _ = tree_flatten(call)
        if any(isinstance(part, torch.Tensor) and part.layout in _COMPRESSED for part in parts) or any(
                map(callable, parts)):  # the first cannot be copied, copies of the others are not equal
            continue
        form = _form(call)
        known = len([other for other in found if other[0] == form[0]])
        if len(found) < 3 and form not in found and known < 2:
            found[form] = call
    return list(found.values())


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _form(call: Call) -> tuple[Any, Any]:
    """What of a call decides its Program, and its sizes."""
    leaves, spec = tree_flatten(call)
    plain = [(one.dtype, one.dim()) if isinstance(one, torch.Tensor) else repr(one) for one in leaves]
    return (str(spec), tuple(plain)), tuple(one.shape for one in leaves if isinstance(one, torch.Tensor))


def dtypes(info: Any) -> Iterator[tuple[torch.dtype, bool]]:
    """Dtypes to try, each with whether gradients are asked for."""
    if torch.float32 in info.dtypes:
        yield torch.float32, False
        if info.supports_autograd:
            yield torch.float32, True
    for whole in (torch.int64, torch.int32, torch.bool):
        if whole in info.dtypes:
            yield whole, False
            return
    if torch.float32 not in info.dtypes:
        yield from ((dtype, info.supports_autograd and dtype.is_complex) for dtype in list(info.dtypes)[:1])


def hold(
    name: str, function: Callable[..., Any], static: Any, call: Call, gradients: bool, refused: dict[str, str],
    **terms: Any,
) -> None:  # fmt: skip
    """One call as eager does it, or refused by name."""
    if "empty" in name.rpartition(".")[2]:  # nobody knows what it holds: zeros, for both
        function, static = _zeroed(function), _zeroed(static)
    try:
        check(function, call, static=static, paths=PATHS if gradients else PATHS[:1], gradient_tolerance=1e-4, **terms)
    except Dy2StaticError as error:
        assert refused.get(name) == error.code, error


def _zeroed(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(**given: Any) -> Any:
        result = function(**given)
        made = result[0] if isinstance(result, tuple) and len(result) == 2 else result
        if isinstance(made, torch.Tensor):
            made.zero_()
        return result

    return call


@pytest.mark.parametrize("name", OPERATORS)
def test_as_eager(name: str) -> None:
    """In straight code results lie in memory as eager's do."""
    info = OPERATORS[name]
    for dtype, gradients in dtypes(info):
        function = operator(info)
        static = dy2static.to_static(function)
        for call in samples(info, dtype, gradients):
            hold(name, function, static, call, gradients, REFUSED, strides=True)


@pytest.mark.parametrize("name", OPERATORS)
def test_what_results_say(name: str) -> None:
    """Sizes that are known, and sizes that are left open once they were seen to differ."""
    info = OPERATORS[name]
    dtype, _ = next(iter(dtypes(info)), (torch.float32, False))
    function = and_read(info)
    static = dy2static.to_static(function)
    for call in samples(info, dtype, False):
        hold(name, function, static, call, False, REFUSED)


@pytest.mark.parametrize("name", OPERATORS)
def test_in_control_flow(name: str) -> None:
    info = OPERATORS[name]
    dtype, gradients = max(dtypes(info), key=lambda one: one[1], default=(torch.float32, False))
    call = next(iter(samples(info, dtype, gradients)), None)
    if call is None:
        pytest.skip("no sample is for the CPU, or can be compared")
    branch, loop, turn = in_branch(info), in_loop(info), in_turn(info)
    static = dy2static.to_static(branch)
    for flag in (1.0, -1.0):
        hold(name, branch, static, {"flag": torch.tensor(flag), **call}, gradients, REFUSED_ON_PATHS)
    static = dy2static.to_static(loop)
    for count in (2, 0):  # one gradient for two arguments may be two tensors
        given = {"count": torch.tensor(count), **call}
        hold(name, loop, static, given, gradients, REFUSED_ON_PATHS, apart=True)
    if _takes_its_result(operator(info), call):
        given = {"count": torch.tensor(2), **call}
        hold(name, turn, dy2static.to_static(turn), given, gradients, REFUSED_ON_PATHS, apart=True)


def _takes_its_result(function: Callable[..., Any], call: Call) -> bool:
    """Whether an operator can be called with what it gives, and what it gives is always of one kind and size."""
    mine = copied(call)
    value = mine["value"]
    if not isinstance(value, torch.Tensor):
        return False
    kind = value.dtype, value.shape, value.layout
    try:
        result = function(**mine)
        again = function(**{**mine, "value": result})
    except Exception:  # whatever it says of such an argument
        return False
    return all(isinstance(one, torch.Tensor) and (one.dtype, one.shape, one.layout) == kind for one in (result, again))


def test_what_seeds_inside_is_refused() -> None:
    """As PyTorch's own tests call random operators."""
    with pytest.raises(TraceError, match="D2S214"):
        dy2static.to_static(lambda x: _SEEDING(torch.nn.functional.dropout, x))(torch.ones(3))


COMPUTED = [name for name, info in OPERATORS.items() if {info.name.rpartition(".")[2], info.aten_name} & _COMPUTES
            and info.supports_autograd and info.supports_dtype(torch.float32, "cpu")]  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_gradients_that_are_computed_are_memory_of_their_own(name: str) -> None:
    """What the tracer takes for granted when the function writes to them (``shared_gradients``)."""
    info = OPERATORS[name]
    for sample in info.sample_inputs("cpu", torch.float32, requires_grad=True):
        leaves = [one for one in tree_flatten([sample.input, sample.args, sample.kwargs])[0]
                  if isinstance(one, torch.Tensor) and one.requires_grad]  # fmt: skip
        made = tree_flatten(info(sample.input, *sample.args, **sample.kwargs))[0]
        outputs = [one for one in made if isinstance(one, torch.Tensor) and one.requires_grad]
        if not outputs:
            continue
        given = [torch.randn_like(one) for one in outputs]
        found = [one for one in torch.autograd.grad(outputs, leaves, given, allow_unused=True) if one is not None]
        places = [[one.untyped_storage().data_ptr() for one in tensors if one.layout is torch.strided and one.numel()]
                  for tensors in (found, [*given, *leaves])]  # fmt: skip
        assert len(set(places[0])) == len(places[0]) and not set(places[0]) & set(places[1])
