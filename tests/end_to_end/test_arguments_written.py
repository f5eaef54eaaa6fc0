"""Arguments that a function writes, by their name or as what a join made of them: the caller's own, as in eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static
from tests.oracle import same

WRITES: dict[str, Any] = {
    "sinc_": lambda t: t.sinc_(),
    "sin_": lambda t: t.sin_(),
    "square_": lambda t: t.square_(),
    "add_": lambda t: t.add_(1),
    "mul_": lambda t: t.mul_(2),
    "item": lambda t: t.__setitem__(0, 5.0),
    "zero_": lambda t: t.zero_(),
    "view": lambda t: t.view(-1).add_(1),
    "copy_": lambda t: t.copy_(t * 3),
    "out": lambda t: torch.mul(t.detach(), 2, out=t.detach()),
}


def straight(write: Any, x: Any, y: Any, c: Any) -> Any:
    write(x)
    return x


def on_a_path(write: Any, x: Any, y: Any, c: Any) -> Any:
    if c.sum() > 0:
        write(x)
    return x


def joined(write: Any, x: Any, y: Any, c: Any) -> Any:
    if c.sum() > 0:
        t = x
    else:
        t = x * 2
    write(t)
    return t


def not_returned(write: Any, x: Any, y: Any, c: Any) -> Any:
    t = x if c.sum() > 0 else x * 2
    write(t)
    return x + 1


def either(write: Any, x: Any, y: Any, c: Any) -> Any:
    t = x if c.sum() > 0 else y
    write(t)
    return t, x, y


def looped(write: Any, x: Any, y: Any, c: Any) -> Any:
    t = x * 2
    i = 0
    while c.sum() > i and i < 3:
        t = x
        i += 1
    write(t)
    return t


def nested(write: Any, x: Any, y: Any, c: Any) -> Any:
    t = x * 3
    if c.sum() > -5:
        t = x if c.sum() > 0 else x * 2
    if c.sum() > -4:
        write(t)
    return [t], {"t": t}


def in_a_list(write: Any, x: Any, y: Any, c: Any) -> Any:
    items = [x * 2]
    if c.sum() > 0:
        items = [x]
    write(items[0])
    return items[0], items


def of_a_view(write: Any, x: Any, y: Any, c: Any) -> Any:
    t = x[1:] if c.sum() > 0 else x[1:] * 2
    write(t)
    return t, x


def base_written(write: Any, x: Any, y: Any, c: Any) -> Any:
    t = x if c.sum() > 0 else x * 2
    write(x)
    return t


FORMS = [straight, on_a_path, joined, not_returned, either, looped, nested, in_a_list, of_a_view, base_written]


def flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in (value.values() if isinstance(value, dict) else value) for t in flat(item)]


def seen(function: Any, write: Any, gradient: bool, flag: float) -> Any:
    """What a call gives and does: values, which of the results are whose memory and objects, gradients."""
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=gradient)
    x = leaf * 1
    y = torch.tensor([4.0, 5.0, 6.0])
    results = flat(function(write, x, y, torch.tensor(flag)))
    found: list[Any] = [one.detach().clone() for one in (*results, x, y)]
    for one in results:
        for other in (x, y):
            found += [one is other, one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()]
    with torch.no_grad():
        before = [one.clone() for one in results]
        x.add_(1)  # whose memory it is, is seen afterwards, too
        found += [one - old for one, old in zip(results, before)]
        x.sub_(1)
    return found, results, x, leaf


def gradient_of(results: list[Any], x: Any, leaf: Any) -> Any:
    outputs = [(one * one).sum() for one in (*results, x) if one.requires_grad]
    try:
        return torch.autograd.grad(sum(outputs), leaf)[0]
    except RuntimeError as error:
        return str(error)[:60]


@pytest.mark.sample(2)
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_callers_tensor_is_written(form, gradient):
    for name, write in WRITES.items():
        converted = to_static(form)
        for flag in (1.0, -1.0, 1.0):
            expected, *_ = seen(form, write, gradient, flag)
            found, *_ = seen(converted, write, gradient, flag)
            same(found, expected, f"{name} {flag}", 1e-6)


def run(function: Any, write: Any, flag: float) -> Any:
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = leaf * 1
    results = flat(function(write, x, torch.tensor([4.0, 5.0, 6.0]), torch.tensor(flag)))
    return gradient_of(results, x, leaf)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_what_was_written(form):
    for name, write in WRITES.items():
        if name == "out":
            continue
        converted = to_static(form)
        for flag in (1.0, -1.0, 1.0):
            same(run(converted, write, flag), run(form, write, flag), f"{name} {flag}", 1e-6)


def test_what_eager_saved_and_was_overwritten_still_raises():
    def f(x):
        y = x * x
        x.add_(1)
        return y

    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        to_static(f)(leaf * 1).sum().backward()


def test_what_a_path_left_alone_and_the_caller_overwrites_still_raises():
    def f(x, c):
        if c > 0:
            x.add_(1)
        return x.sin()

    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    x = leaf * 1
    result = to_static(f)(x, torch.tensor(-1.0))
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.ones(3))

    def forward(self, x: Any, c: Any) -> Any:
        t = x if c.sum() > 0 else self.kept
        t.add_(1)
        return t, self.kept * 1


@pytest.mark.parametrize("loaded", [False, True])
def test_buffers_and_files(loaded, tmp_path):
    eager, layer = Layer(), Layer()
    converted: Any = to_static(layer)
    if loaded:
        spec = [dy2static.InputSpec([3], torch.float32), dy2static.InputSpec([], torch.float32)]
        dy2static.save(converted, str(tmp_path / "layer"), input_spec=spec)
        converted = layer = dy2static.load(str(tmp_path / "layer"))
    for flag in (1.0, -1.0, -1.0, 1.0):
        x, other = torch.zeros(3), torch.zeros(3)
        t, kept = converted(x, torch.tensor(flag))
        expected, expected_kept = eager(other, torch.tensor(flag))
        assert torch.equal(t, expected) and torch.equal(kept, expected_kept)
        assert torch.equal(x, other) and torch.equal(layer.kept, eager.kept)
        assert (t is x) is (flag > 0) and (t is layer.kept) is (flag < 0)
