"""full_graph=False: what cannot be a Program runs as it is, and says so once."""

from __future__ import annotations

import copy
import warnings

import numpy
import pytest
import torch
from torch import nn

from dy2static import EagerWarning, InputSpec, TraceError, save, to_static

X = torch.tensor([1.0, 2.0])


def reads(x, data=True):
    if x.sum() > 0:
        x = x * 2
    return torch.from_numpy(numpy.sqrt(x.__array__())) if data else x


def test_such_calls_run_as_they_are() -> None:
    static = to_static(reads, full_graph=False)
    with pytest.warns(EagerWarning) as caught:
        assert torch.equal(static(X), reads(X))
    (warning,) = caught
    line = reads.__code__.co_firstlineno + 3
    assert warning.filename == __file__
    text = str(warning.message)
    assert text.startswith(
        "reads() runs as plain Python from now on, for calls like this one: [D2S213] .__array__() reads")
    assert f"{__file__}:{line} (return torch.from_numpy(" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (X, -X, torch.ones(5)):
            assert torch.equal(static(x.abs()), reads(x.abs()))
        assert torch.equal(static(X, False), reads(X, False)), "other calls have Programs"
    assert len(static.programs) == 1


def test_parts_that_are_converted_stay_so() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = to_static(nn.Linear(2, 2))

        def forward(self, x):
            return self.part(x), x.tolist(), x.data_ptr() == x.data_ptr()

    net = Net()
    twin = copy.deepcopy(net)
    to_static(net, full_graph=False)
    x = X.clone().requires_grad_()
    with pytest.warns(EagerWarning, match="D2S213"):
        y, numbers, same = net(x)
    assert torch.equal(y, twin(X)[0]) and numbers == [1.0, 2.0] and same
    y.sum().backward()
    assert x.grad is not None
    assert len(net.part.forward.programs) == 1


def test_errors_of_the_code_stay_errors() -> None:
    @to_static(full_graph=False)
    def f(x):
        x.__array__()
        return x @ torch.ones(7)

    with pytest.warns(EagerWarning), pytest.raises(RuntimeError, match="inconsistent tensor size|size mismatch"):
        f(X)
    with pytest.raises(TypeError):
        f()


def test_methods_and_saving(tmp_path) -> None:
    class Owner:
        factor = 3.0

        @to_static(full_graph=False)
        def scale(self, x):
            return x * self.factor, x.__array__().sum()

    owner = Owner()
    with pytest.warns(EagerWarning):
        assert owner.scale(X)[1] == 3.0
    with pytest.raises(TraceError, match="D2S213"):
        save(to_static(reads, full_graph=False), tmp_path / "m", input_spec=[InputSpec([2])])
