"""What a tensor says of itself while traced, what hangs on it, and copies of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check, check_saved

X = torch.ones(2, 3)
LINEAR = torch.nn.Linear(3, 3)
PARAMETER = torch.nn.Parameter(torch.ones(2, 3))


def its_class(x: Any) -> Any:
    y = x + 1
    return x.__class__ is torch.Tensor, y.__class__.__name__, type(y) is torch.Tensor, PARAMETER.__class__.__name__


def new_of_a_size(x: Any) -> Any:
    return x.new(x.size()).zero_(), torch.Tensor(x.shape).shape, torch.FloatTensor(x.size()).shape


def hung_on_local(x: Any) -> Any:
    y = x * 1
    y.note = 3
    y.scale = x * 2
    before = hasattr(y, "note"), getattr(y, "missing", 7)
    y += 1
    del y.note
    return before, hasattr(y, "note"), y.scale


def hung_in_branch(x: Any) -> Any:
    y = x * 1
    if x.sum() > 6:
        y.note = 3
    else:
        y.note = 4
    return y.note, hasattr(y, "note")


def hung_on_one_path(x: Any) -> Any:
    y = x * 1
    if x.sum() > 6:
        y.note = None
    return hasattr(y, "note")


def hung_in_loop(x: Any) -> Any:
    y = x * 1
    y.count = 0
    n = 0
    while n < x.sum():
        y.count = y.count + 1
        n = n + 1
    return y.count


def missing(x: Any) -> Any:
    return (x + 1).fake_mode


def with_keyword(x: Any) -> Any:
    return isinstance(x, torch.Tensor, invalid=True)  # type: ignore[call-arg]


def too_few(x: Any) -> Any:
    return isinstance(x)  # type: ignore[call-arg]


def call_of_module(x: Any) -> Any:
    called = torch.nn.Module.__call__
    same = called is torch.nn.Module._wrapped_call_impl, called.__name__, LINEAR.__call__.__name__
    return same, torch.nn.Module.__call__(LINEAR, x), LINEAR.__call__(x)


def linear_made_inside(x: Any) -> Any:
    return torch.nn.Linear(3, 3)(x)


def norm_made_on_a_path(x: Any) -> Any:
    if x.sum() > 6:
        y = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LayerNorm(3))(x)
    else:
        y = x
    return y


def copied(x: Any) -> Any:
    y = copy.deepcopy([x, x])
    y[0].add_(1)
    return y[0] is y[1], y[1] * 2, x


def copied_result(x: Any) -> Any:
    return copy.deepcopy(x * 2)


def deep_copy_of_a_module(x: Any) -> Any:
    return copy.deepcopy(LINEAR)(x)


def deep_copies_in_a_loop(x: Any) -> Any:
    n = 0
    while n < x.sum():
        x = copy.deepcopy([LINEAR, LINEAR])[0](x)
        n = n + 100
    return x


def frozen_copy(x: Any) -> Any:
    return copy.deepcopy(LINEAR).requires_grad_(False)(x)


def frozen_module(x: Any) -> Any:
    return torch.nn.Linear(3, 3).requires_grad_(False)(x)


def leaf_made_inside(x: Any) -> Any:
    y = x.detach() * 2
    y.requires_grad_()
    z = y * 3
    y.requires_grad_(False)
    return y * 2, z


def frozen_result(x: Any) -> Any:
    return (x * 2).requires_grad_(False)


def written_as_text(x: Any) -> Any:
    return x.__str__(), x.__repr__(), x.__hash__() == hash(x)


def functions_of_classes(x: Any) -> Any:
    function, module = torch.autograd.Function, torch.nn.Module
    names = function.apply.__name__, module.__dict__["__call__"].__name__, vars(module)["__call__"].__name__
    return names, function.__dict__["apply"].__func__.__name__


def asked_for_attributes(x: Any) -> Any:
    y = x * 2
    if x.sum() > 6:
        y.test = 1  # type: ignore[attr-defined]
    return [getattr(one, "test", "none") for one in (y, x)]


@pytest.mark.parametrize("function", [
    deep_copy_of_a_module, deep_copies_in_a_loop, frozen_copy, frozen_module, leaf_made_inside, frozen_result,
    written_as_text, functions_of_classes, asked_for_attributes,
])  # fmt: skip
def test_as_eager_with_gradients_too(function: Any) -> None:
    check(function, (X,), (X * 2,), (X.clone().requires_grad_(),), paths=("program",))


def shallow_copy(x: Any) -> Any:
    y = x * 2
    z = copy.copy(y)
    z.add_(1)
    return y, z, copy.copy(x)


@pytest.mark.parametrize("function", [
    shallow_copy, its_class, new_of_a_size, hung_on_local, hung_in_branch, hung_on_one_path, hung_in_loop, missing,
    with_keyword, too_few, call_of_module, linear_made_inside, norm_made_on_a_path, copied, copied_result,
])  # fmt: skip
def test_as_eager(function: Any) -> None:
    check(function, (X,), (X * 2,), paths=("program",))


def hung_on_parameter(x: Any) -> Any:
    PARAMETER.note = 3  # type: ignore[attr-defined]
    return x * PARAMETER


def carried(x: Any) -> Any:
    if x.sum() > 0:
        y = x * 1
        y.note = 3
    else:
        y = x * 2
    return y * 2


def its_dict(x: Any) -> Any:
    return x.__dict__


def its_space(x: Any) -> Any:
    return vars(x * 2)


def copy_with_a_history(x: Any) -> Any:
    return copy.copy(x * LINEAR.weight[0])


def returned_node(x: Any) -> Any:
    return [(x * LINEAR.weight[0]).grad_fn, x]


def node_as_text(x: Any) -> Any:
    return str((x * LINEAR.weight[0]).grad_fn)


def asked_for_its_memory(x: Any) -> Any:
    y = x * 2
    return y.is_set_to(y), y


@pytest.mark.parametrize("function, code", [
    (asked_for_its_memory, "D2S213"), (hung_on_parameter, "D2S245"), (carried, "D2S245"),
    (its_dict, "D2S213"), (its_space, "D2S213"), (copy_with_a_history, "D2S246"), (returned_node, "D2S213"),
    (node_as_text, "D2S213"),
])  # fmt: skip
def test_refused(function: Any, code: str) -> None:
    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(function)(X)
    assert caught.value.code == code and caught.value.location is not None


def made_of_numbers(x: Any) -> Any:
    return torch.tensor([len(x), 2.5]), torch.tensor([int(x.sum()), 2]), torch.tensor([x.sum() > 1, 3])


def grown(x: Any) -> Any:
    rows = [(1, 2.5)]
    while x.sum() > 4:
        rows.append((len(rows), 0.5))
        x = x - 1
    return torch.tensor(rows)


def of_dtypes(x: Any) -> Any:
    wanted = torch.promote_types(torch.int32, x.dtype)
    if x.sum() > 2 and torch.can_cast(torch.int32, wanted):
        x = x + torch.finfo(x.dtype).eps
    for _ in range(int(x.sum())):
        x = x.to(torch.promote_types(x.dtype, torch.float64))
    return x.to(torch.result_type(x, 1.5)), torch.iinfo(torch.int8).max, torch.get_default_dtype() is wanted


def of_the_build(x: Any) -> Any:
    return x * torch.is_vulkan_available() + torch.cudnn_is_acceptable(x) + torch.is_floating_point(x) + torch.numel(x)


@pytest.mark.parametrize("function", [made_of_numbers, grown, of_dtypes, of_the_build])
def test_questions_that_no_tensor_answers_are_no_operators(function: Any, tmp_path: Any) -> None:
    calls = [(torch.ones(n, 3, requires_grad=function is of_the_build),) for n in (2, 4, 1)]
    spec = [dy2static.InputSpec([None, 3], torch.float32)]
    static = check(function, *calls, static=dy2static.to_static(function, input_spec=spec), paths=("program",))
    names = {op.name for program in static.programs for op in program.block.walk()}
    assert not names & {f"aten.{name}.default" for name in (
        "promote_types", "result_type", "can_cast", "is_vulkan_available", "cudnn_is_acceptable")}
    check_saved(function, static, tmp_path / "f", *calls, paths=("program",))


def scaled(x: Any) -> Any:
    return x * getattr(x, "factor", 1)


def test_what_hangs_on_an_argument_is_a_guard() -> None:
    static = dy2static.to_static(scaled)
    for factor in (None, 5, 6, None, 5):
        x = torch.ones(2)
        if factor is not None:
            x.factor = factor  # type: ignore[attr-defined]
        for _ in range(5):
            assert torch.equal(static(x), scaled(x))


def test_inference_is_a_guard() -> None:
    def f(x: Any) -> Any:
        return x.is_inference()

    static = dy2static.to_static(f)
    with torch.inference_mode():
        x = torch.ones(2)
    for _ in range(5):
        assert static(torch.ones(2)) is False and static(x) is True


def test_what_hangs_on_a_parameter_is_a_guard() -> None:
    def f(x: Any) -> Any:
        return x * getattr(PARAMETER, "rate", 2)

    static = dy2static.to_static(f)
    assert torch.equal(static(X), X * 2)
    PARAMETER.rate = 3  # type: ignore[attr-defined]
    assert torch.equal(static(X), X * 3)
    del PARAMETER.rate  # type: ignore[attr-defined]
    assert torch.equal(static(X), X * 2)


def test_a_deep_copy_without_gradients_follows_the_module() -> None:
    static = dy2static.to_static(deep_copy_of_a_module)
    with torch.no_grad():
        assert torch.equal(static(X), LINEAR(X))
        LINEAR.weight.add_(1)
        assert torch.equal(static(X), LINEAR(X))


@pytest.mark.sample(3)
def test_a_returned_module_is_made_anew_with_its_attributes() -> None:
    def f(x: Any) -> Any:
        module = torch.nn.ReLU()
        module.extra = 3  # type: ignore[assignment]
        return module

    static = dy2static.to_static(f)
    first, second = static(X), static(X)
    assert first is not second and type(first) is torch.nn.ReLU
    assert first.extra == second.extra == 3 and torch.equal(first(-X), X * 0)


_TEXT = """
def hang(tensor, value):
    tensor.note = value

def hang_inside(holder, value):
    holder["t"].note = value

def take_off(tensor):
    del tensor.note
"""
_MADE: dict[str, Any] = {}
exec(_TEXT, _MADE)  # without source: such functions are not converted
hang, hang_inside, take_off = _MADE["hang"], _MADE["hang_inside"], _MADE["take_off"]


def by_others(x: Any) -> Any:
    y = x * 2
    hang(y, 3)
    return y, y.note


def by_others_inside(x: Any) -> Any:
    y = x * 2
    hang_inside({"t": y}, 3)
    return y


def by_others_on_both_paths(x: Any) -> Any:
    y = x * 2
    if x.sum() > 0:
        hang(y, 3)
    else:
        hang(y, 4)
    return y


def by_others_on_one_path(x: Any) -> Any:
    y = x * 2
    if x.sum() > 0:
        hang(y, 3)
    return y


def by_others_in_a_loop(x: Any) -> Any:
    y = x * 2
    for i in range(int(x.abs().sum())):
        hang(y, i)
    return y


def by_others_again(x: Any) -> Any:
    y = x * 2
    y.note = 0
    hang(y, y * 2)
    return y


def taken_off_by_others(x: Any) -> Any:
    y = x * 2
    y.note = 3
    take_off(y)
    return y, hasattr(y, "note")


def on_an_argument_by_others(x: Any) -> Any:
    hang(x, 3)
    return x * 2


def marked_by_torch(x: Any) -> Any:
    y = x * 2
    torch._dynamo.mark_static_address(y)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    object.__setattr__(y, "note", 3)
    return y


@pytest.mark.parametrize("function", [
    by_others, by_others_inside, by_others_on_both_paths, by_others_on_one_path, by_others_in_a_loop, by_others_again,
    taken_off_by_others, on_an_argument_by_others, marked_by_torch])  # fmt: skip
def test_what_code_that_is_not_converted_hangs_on_tensors(function: Any) -> None:
    check(function, *((torch.full((2,), value),) for value in (1.0, -1.0, 2.0)))


def test_a_parameter_on_which_code_that_is_not_converted_hangs_something() -> None:
    def f(x: Any) -> Any:
        hang(PARAMETER, 1)
        return x * PARAMETER

    with pytest.raises(dy2static.Dy2StaticError, match="D2S245"):
        dy2static.to_static(f)(X)
    assert not hasattr(PARAMETER, "note")
