"""What a saved function asks of its arguments: which need a gradient, how they lie in memory, what hangs on them.

Each function is saved once, for InputSpecs, and called with arguments of every kind. It gives what eager gives, raises
what eager raises, or the call is refused with D2S319: never another result.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dy2static
from dy2static import InputSpec, SignatureError
from dy2static.errors import Dy2StaticError
from runtime.export.inference import program_for_inference, variant_for_inference
from tests.oracle import hold, run

Call = Callable[[], tuple[torch.Tensor, torch.Tensor]]
"""How to make the arguments of a call."""


def needed_itself(x, y):
    return x * 3 if x.requires_grad else x * 1


def needed_product(x, y):
    return x * 3 if (x * y).requires_grad else x * 1


def needed_joined(x, y):
    q = x if x.sum() > 0 else y
    return x * 3 if q.requires_grad else x * 1


def needed_in_loop(x, y):
    q = x * 1
    while q.sum() < 20:
        q = q * 2 + 1 if (q * y).requires_grad else q + 3
    return q


def needed_after_detach(x, y):
    return x * 3 if x.detach().requires_grad else x * 1


def any_needed(x, y):
    return x * 3 if any(one.requires_grad for one in (x, y)) else x + y


def leaf(x, y):
    return x * 3 if x.is_leaf else x * 1


def leaf_product(x, y):
    return x * 3 if (x * y).is_leaf else x * 1


def history(x, y):
    return x * 3 if x.grad_fn is None else x * 1


def history_of_product(x, y):
    q = x * y
    return x * 3 if q.grad_fn is None else x * 1


def history_of_written(x, y):
    base = torch.zeros(3)
    view = base.view(3)
    base.add_(x * 2)
    return x * 3 if view.grad_fn is None else x * 1


def text(x, y):
    return f"{x * 2}"


def text_itself(x, y):
    return repr(x)


def as_number(x, y):
    return torch.add(x, x, alpha=y.sum())


def as_filling(x, y):
    return x + torch.full((3,), y.sum())


def as_array(x, y):
    return x + torch.from_numpy(y.numpy() * 2)


def as_numpy_value(x, y):
    return x * float(np.asarray(y).sum())


def deep_copied(x, y):
    return copy.deepcopy(x) * 2


def retained(x, y):
    q = x * y
    q.retain_grad()
    return q


def inner_gradient(x, y):
    (g,) = torch.autograd.grad((x * y).sum(), x)
    return g


def inner_gradient_of_either(x, y):
    q = x * 1 if x.sum() > 0 else y * 1
    (g,) = torch.autograd.grad((q * q).sum(), q)
    return g


def written(x, y):
    x.add_(1)
    return x * y


def view_written(x, y):
    x[0] = 5
    return x * y


def written_on_a_path(x, y):
    if y.sum() > 0:
        x.add_(1)
    return x * y


def written_unseen(x, y):
    with torch.no_grad():
        x.add_(1)
    return x * y


def given_out(x, y):
    out = torch.empty(3)
    torch.add(x, y, out=out)
    return out


def given_itself_as_out(x, y):
    torch.add(x, y, out=x)
    return x * 1


def offset(x, y):
    return x * 3 if x.storage_offset() == 0 else x * 1


def contiguous(x, y):
    return x * 3 if x.is_contiguous() else x * 1


def strided(x, y):
    return x * 3 if x.stride(0) == 1 else x * 1


def inference(x, y):
    return x * 3 if x.is_inference() else x * 1


def hanging(x, y):
    return x * 3 if hasattr(x, "mask") else x * 1


def parameter(x, y):
    return x * 3 if isinstance(x, torch.nn.Parameter) else x * 1


def its_class(x, y):
    return x * 3 if type(x) is torch.Tensor else x * 1


def its_class_attribute(x, y):
    return x * 3 if x.__class__ is torch.Tensor else x * 1


def its_gradient(x, y):
    return x * 3 if x.grad is None else x * 1


def _values() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([1.0, 2.0, -2.0]), torch.tensor([2.0, 1.0, 3.0])


def _plain() -> Any:
    return _values()


def _x_needs() -> Any:
    x, y = _values()
    return x.requires_grad_(), y


def _y_needs() -> Any:
    x, y = _values()
    return x, y.requires_grad_()


def _both_need() -> Any:
    x, y = _values()
    return x.requires_grad_(), y.requires_grad_()


def _x_computed() -> Any:
    x, y = _values()
    return x.requires_grad_() * 1, y


def _x_strided() -> Any:
    _, y = _values()
    return torch.tensor([[0.0, 1.0], [0.0, 2.0], [0.0, -2.0]])[:, 1], y


def _x_parameter() -> Any:
    x, y = _values()
    return torch.nn.Parameter(x), y


def _x_with_attribute() -> Any:
    x, y = _values()
    x.mask = 1
    return x, y


def _x_with_gradient() -> Any:
    x, y = _values()
    x.requires_grad_().grad = torch.ones(3)
    return x, y


CALLS: dict[str, Call] = {
    made.__name__[1:]: made
    for made in (_plain, _x_needs, _y_needs, _both_need, _x_computed, _x_strided, _x_parameter, _x_with_attribute,
                 _x_with_gradient)
}  # fmt: skip

REFUSED: dict[Callable[..., Any], set[str]] = {
    needed_itself: set(),
    needed_product: set(),
    needed_joined: set(),
    needed_in_loop: set(),
    needed_after_detach: set(),
    any_needed: set(),
    leaf: {"x_computed"},
    leaf_product: set(),
    history: {"x_computed"},
    history_of_product: set(),
    history_of_written: set(),
    text: set(),
    text_itself: set(),
    as_number: set(),
    as_filling: set(),
    as_array: set(),
    as_numpy_value: set(),
    deep_copied: {"x_strided", "x_computed"},
    retained: set(),
    inner_gradient: {"x_computed"},
    inner_gradient_of_either: {"x_computed"},
    written: {"x_needs", "both_need", "x_parameter", "x_with_gradient"},
    view_written: {"x_needs", "both_need", "x_parameter", "x_with_gradient"},
    written_on_a_path: {"x_needs", "both_need", "x_parameter", "x_with_gradient"},
    written_unseen: set(),
    given_out: set(),
    given_itself_as_out: set(),
    offset: {"x_strided"},
    contiguous: {"x_strided"},
    strided: {"x_strided"},
    inference: set(),
    hanging: {"x_with_attribute"},
    parameter: {"x_parameter"},
    its_class: {"x_parameter"},
    its_class_attribute: {"x_parameter"},
    its_gradient: {"x_computed", "x_with_gradient"},
}
"""The calls that may be refused, of each function: a live one is traced anew for such."""


def reshaped(x, y):
    return x.reshape(-1) * y.sum()


def reshaped_result(x, y):
    return x.reshape(-1)


def reshaped_and_written(x, y):
    x.reshape(-1).add_(1)
    return x * 1


def contiguous_result(x, y):
    return x.contiguous()


def contiguous_and_written(x, y):
    x.contiguous().add_(1)
    return x * 1


def contiguous_and_result_written(x, y):
    c = x.contiguous()
    x.add_(1)
    return c * 1


def flat_and_written(x, y):
    z = x.flatten()
    z[0] = 9
    return x.sum() + z.sum()


def contiguous_itself(x, y):
    return x.contiguous() is x


def product_contiguous(x, y):
    return x * 3 if (x * 2).is_contiguous() else x * 1


def product_strides(x, y):
    return (x * 2).stride()


def transposed_contiguous(x, y):
    return x.t().is_contiguous()


def clone_strides(x, y):
    return x.clone().stride()


def like_strides(x, y):
    return torch.empty_like(x).stride()


def strides_as_values(x, y):
    return torch.tensor(x.stride())


def other_contiguous(x, y):
    return x * 3 if y.is_contiguous() else x * 1


def as_array_of_two(x, y):
    return y + torch.from_numpy(y.numpy()) + x.sum()


def viewed(x, y):
    return x.view(-1) * 2


def raveled(x, y):
    return x.ravel()


def doubled(x, y):
    return x * 2


def _rows() -> Any:
    return torch.arange(6.0).reshape(2, 3), torch.tensor([2.0, 1.0, 3.0])


def _columns() -> Any:
    x, y = _rows()
    return x.t().contiguous().t(), y


def _every_second() -> Any:
    return torch.arange(12.0).reshape(2, 6)[:, ::2], _rows()[1]


def _expanded() -> Any:
    return torch.arange(3.0).expand(2, 3), _rows()[1]


LAYOUTS: dict[str, Call] = {made.__name__[1:]: made for made in (_rows, _columns, _every_second, _expanded)}
_ALL = {"columns", "every_second", "expanded"}
LAYOUTS_REFUSED: dict[Callable[..., Any], set[str]] = {
    reshaped: set(),
    reshaped_result: set(),
    reshaped_and_written: _ALL,
    contiguous_result: set(),
    contiguous_and_written: _ALL,
    contiguous_and_result_written: _ALL,
    flat_and_written: _ALL,
    contiguous_itself: _ALL,
    product_contiguous: _ALL,
    product_strides: _ALL,
    transposed_contiguous: _ALL,
    clone_strides: _ALL,
    like_strides: _ALL,
    strides_as_values: _ALL,
    other_contiguous: set(),
    as_array_of_two: set(),
    viewed: set(),
    raveled: set(),
    doubled: set(),
}


def _same_as_eager(function: Callable[..., Any], loaded: Any, make: Call) -> bool:
    """Hold a call against eager; False if it is refused."""
    mine, theirs = make(), make()
    expected = run(function, theirs)
    try:
        got = run(loaded, mine)
    except Dy2StaticError as error:
        assert error.code in ("D2S319", "D2S306"), error
        assert "argument 'x'" in str(error)
        return False
    hold(got, expected, make.__name__, around=[("arguments", mine, theirs)])
    return True


def _loaded(function: Callable[..., Any], folder: Path, *shapes: list[int]) -> Any:
    dy2static.save(function, folder / "saved", input_spec=[InputSpec(shape) for shape in shapes])
    return dy2static.load(folder / "saved")


@pytest.mark.parametrize("gradients", [True, False], ids=["with gradients", "without"])
@pytest.mark.parametrize("function", REFUSED, ids=lambda one: one.__name__)
def test_every_call_is_as_in_eager_or_refused(function: Callable[..., Any], gradients: bool, tmp_path: Path) -> None:
    loaded = _loaded(function, tmp_path, [3], [3])
    with torch.set_grad_enabled(gradients):
        refused = {name for name, make in CALLS.items() if not _same_as_eager(function, loaded, make)}
    assert refused <= REFUSED[function]


@pytest.mark.parametrize("function", LAYOUTS_REFUSED, ids=lambda one: one.__name__)
def test_every_layout_is_as_in_eager_or_refused(function: Callable[..., Any], tmp_path: Path) -> None:
    loaded = _loaded(function, tmp_path, [2, 3], [3])
    refused = {name for name, make in LAYOUTS.items() if not _same_as_eager(function, loaded, make)}
    assert refused <= LAYOUTS_REFUSED[function]


def test_a_leaf_that_needs_a_gradient_is_written_where_gradients_are_off(tmp_path: Path) -> None:
    loaded = _loaded(written, tmp_path, [3], [3])
    with torch.no_grad():
        assert _same_as_eager(written, loaded, _x_needs)


class Asking(torch.nn.Module):
    """Asks its own parameters."""

    def __init__(self, question: str) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        self.bias = torch.nn.Parameter(torch.tensor([0.5, 0.5, 1.0]))
        self.question = question

    def forward(self, x):
        if self.question == "itself":
            return x * 2 if self.weight.requires_grad else x * 5
        if self.question == "product":
            return x * 2 if (x * self.weight + self.bias).requires_grad else x * 5
        if self.question == "history":
            return x * 2 if (x * self.weight + self.bias).grad_fn is None else x * 5
        return f"{x * self.weight + self.bias}"


@pytest.mark.parametrize("gradients", [True, False], ids=["with gradients", "without"])
@pytest.mark.parametrize("question", ["itself", "product", "history", "text"])
def test_parameters_that_are_frozen_after_they_were_loaded(question: str, gradients: bool, tmp_path: Path) -> None:
    module = Asking(question)
    loaded = _loaded(module, tmp_path, [3])
    for frozen in ((), ("weight",), ("weight", "bias")):
        for name in ("weight", "bias"):
            for one in (module, loaded):
                getattr(one, name).requires_grad_(name not in frozen)
        for needs in (False, True):
            x = torch.tensor([1.0, 2.0, -2.0], requires_grad=needs)
            with torch.set_grad_enabled(gradients):
                expected = run(module, (x,), parameters=list(module.parameters()))
                try:
                    got = run(loaded, (x,), parameters=list(loaded.parameters()))
                except SignatureError as error:
                    assert error.code in ("D2S319", "D2S306")
                    assert frozen == ("weight",)  # a few of them
                    continue
                hold(got, expected, f"{frozen} {needs}")


def test_an_encoder_that_is_frozen_takes_the_way_that_eager_takes(tmp_path: Path) -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    dy2static.save(layer, tmp_path / "layer", input_spec=[InputSpec([2, 5, 8])])
    loaded = dy2static.load(tmp_path / "layer").eval()
    for frozen in (False, True):
        layer.requires_grad_(not frozen)
        loaded.requires_grad_(not frozen)
        for needs in (False, True):
            x = torch.randn(2, 5, 8, requires_grad=needs)
            assert torch.equal(loaded(x), layer(x))
        names = {op.name for op in loaded.program().block.walk()}
        assert not any(name.startswith("grad.") for name in names)  # nothing is found out while it runs


@pytest.mark.parametrize("function", [needed_itself, needed_product, given_out, history_of_product, as_filling])
def test_what_is_exported_is_for_arguments_that_need_no_gradient(function: Callable[..., Any], tmp_path: Path) -> None:
    dy2static.save(function, tmp_path / "saved", input_spec=[InputSpec([3]), InputSpec([3])])
    artefact = dy2static.load(tmp_path / "saved").artefact()
    program, _ = program_for_inference(artefact, variant_for_inference(artefact, "forward"), "onnx")
    assert not any(op.name.startswith("grad.") or op.name in ("cond", "raise") for op in program.block.walk())


def test_a_file_is_written_again_with_what_it_asks(tmp_path: Path) -> None:
    loaded = _loaded(contiguous, tmp_path, [2, 3], [3])
    dy2static.save(loaded, tmp_path / "again")
    again = dy2static.load(tmp_path / "again")
    with pytest.raises(SignatureError, match=r"D2S319.*'x' does not lie in memory row by row"):
        again(*_columns())
    assert torch.equal(again(*_rows()), _rows()[0] * 3)


def test_inputs_without_gradients_are_not_asked_for_any(tmp_path: Path) -> None:
    specs = [InputSpec([3], stop_gradient=True), InputSpec([3])]
    dy2static.save(needed_itself, tmp_path / "saved", input_spec=specs)
    loaded = dy2static.load(tmp_path / "saved")
    x, y = _x_needs()
    assert torch.equal(loaded(x, y), x * 1)
    dy2static.save(written, tmp_path / "written", input_spec=specs)
    assert torch.equal(dy2static.load(tmp_path / "written")(x, y), (_x_needs()[0].detach() + 1) * y)


class Differentiating(torch.nn.Module):
    """Where its parameter is frozen, eager raises."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = x * self.weight
        scale = 2 if y.requires_grad else 3
        (g,) = torch.autograd.grad((y * y).sum(), self.weight)
        return g * scale


def test_what_eager_refuses_for_other_calls_is_no_reason_not_to_save(tmp_path: Path) -> None:
    module = Differentiating()
    loaded = _loaded(module, tmp_path, [3])
    x = torch.tensor([1.0, 2.0, -2.0])
    assert torch.equal(loaded(x), module(x))
    loaded.weight.requires_grad_(False)
    with pytest.raises(SignatureError, match="D2S319"):
        loaded(x)


def test_a_sparse_argument_is_refused_where_the_layout_matters(tmp_path: Path) -> None:
    loaded = _loaded(contiguous, tmp_path, [2, 3], [3])
    with pytest.raises(SignatureError):
        loaded(torch.ones(2, 3).to_sparse(), torch.ones(3))
