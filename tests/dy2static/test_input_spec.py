"""InputSpec itself, and InputSpecs held against functions and calls."""

from __future__ import annotations

import numpy
import pytest
import torch

from dy2static import InputSpec, SignatureError, to_static


def double(x):
    return x * 2


def weighted(x, mask=None, *, scale=1.0):
    return x * scale if mask is None else x * mask * scale


def batch(items, options):
    return items[0] + options["b"] * options["n"]


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        (InputSpec([None, 3], "float32"), InputSpec((-1, 3), torch.float32)),
        (InputSpec([numpy.int64(2)], numpy.dtype("int64")), InputSpec([2], "torch.int64")),
        (InputSpec.from_tensor(torch.zeros(2, 3, dtype=torch.bool), "m"), InputSpec([2, 3], "bool", "m")),
        (InputSpec.from_numpy(numpy.zeros((2, 1), "complex64")), InputSpec([2, 1], "complex64")),
        (InputSpec([3]).batch(None), InputSpec([None, 3])),
        (InputSpec([3]).batch([4]), InputSpec([4, 3])),
        (InputSpec([None, 3]).unbatch(), InputSpec([3])),
    ],
)
def test_specs_that_are_equal(spec, same):
    assert spec == same and hash(spec) == hash(same)
    assert repr(spec) == repr(same)


@pytest.mark.parametrize(
    "other",
    [InputSpec([3, None]), InputSpec([None, 3], "float64"), InputSpec([None, 3], name="y"),
     InputSpec([None, 3], stop_gradient=True), "spec"],
)  # fmt: skip
def test_specs_that_differ(other):
    assert InputSpec([None, 3]) != other


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: InputSpec(3), TypeError, "shape of an InputSpec is a list"),
        (lambda: InputSpec([2.0]), TypeError, "a size is an int"),
        (lambda: InputSpec([True]), TypeError, "a size is an int"),
        (lambda: InputSpec([-2]), ValueError, "not negative"),
        (lambda: InputSpec([2], "flaot32"), TypeError, "'flaot32' is no dtype"),
        (lambda: InputSpec([2], name=3), TypeError, "name of an InputSpec"),
        (lambda: InputSpec([2], stop_gradient=1), TypeError, "stop_gradient"),
        (lambda: InputSpec([]).unbatch(), ValueError, "no batch dimension"),
        (lambda: InputSpec.from_tensor([1]), TypeError, "takes a tensor"),
        (lambda: InputSpec.from_numpy(torch.ones(2)), TypeError, "takes a NumPy array"),
    ],
)
def test_specs_that_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("function", "spec", "message"),
    [
        (double, [InputSpec([2]), InputSpec([2])], r"has 2 entries, but the function takes 1 argument \('x'\)"),
        (double, [], "says nothing about 'x'"),
        (double, {"y": InputSpec([2])}, "names 'y', which is no parameter"),
        (weighted, {"x": InputSpec([2]), "skale": 2.0}, "Did you mean 'scale'"),
        (batch, [[InputSpec([2])]], "says nothing about 'options'"),
    ],
)
def test_input_spec_that_does_not_fit_the_function(function, spec, message):
    with pytest.raises(SignatureError, match=message) as caught:
        to_static(function, input_spec=spec)
    assert caught.value.code == "D2S301"


def test_spec_of_a_wrong_type_is_refused():
    with pytest.raises(TypeError, match="input_spec must be a list"):
        to_static(double, input_spec=InputSpec([2]))


@pytest.mark.parametrize(
    ("spec", "argument", "code", "message"),
    [
        (InputSpec([None, 3]), torch.ones(2, 3, 1), "D2S302", "argument 'x' has 3 dimensions, InputSpec says 2"),
        (InputSpec([None]), torch.tensor(1.0), "D2S302", "argument 'x' has 0 dimensions, InputSpec says 1"),
        (InputSpec([2]), torch.ones(2).double(), "D2S303", "argument 'x' has dtype torch.float64"),
        (InputSpec([None, 3]), torch.ones(2, 4), "D2S304", "'x' has size 4 in dimension 1, InputSpec says 3"),
        (InputSpec([2]), 3, "D2S305", "argument 'x' is of type int, InputSpec says a tensor"),
        ([InputSpec([2])], torch.ones(2), "D2S305", "argument 'x' is of type Tensor, InputSpec says list"),
        ([InputSpec([2])], [torch.ones(2)] * 2, "D2S305", "argument 'x' has 2 items, InputSpec says 1"),
        ({"a": InputSpec([2])}, {"b": torch.ones(2)}, "D2S305", "argument 'x' has no key 'a'"),
        ({"a": InputSpec([2])}, {"a": torch.ones(2), "b": 1}, "D2S305", "argument 'x' has a key 'b'"),
        ({"a": [InputSpec([2])]}, {"a": [torch.ones(3)]}, "D2S304", r"argument 'x\['a'\]\[0\]' has size 3"),
        (2, 2.0, "D2S306", "argument 'x' is 2.0, InputSpec says 2"),
        (1, True, "D2S306", "argument 'x' is True, InputSpec says 1"),
    ],
)
def test_call_that_does_not_fit(spec, argument, code, message):
    converted = to_static(lambda x: x, input_spec=[spec])
    with pytest.raises(SignatureError, match=message) as caught:
        converted(argument)
    assert caught.value.code == code
    assert converted.programs == []


def test_open_sizes_need_one_program():
    converted = to_static(double, input_spec=[InputSpec([None, 3])])
    for rows in (0, 1, 2, 5):
        x = torch.randn(rows, 3)
        assert torch.equal(converted(x), x * 2)
    assert len(converted.programs) == 1


def test_nested_specs_and_constants():
    converted = to_static(batch, input_spec=[[InputSpec([None])], {"b": InputSpec([None]), "n": 3}])
    for size in (2, 4):
        x, y = torch.randn(size), torch.randn(size)
        assert torch.equal(converted([x], {"b": y, "n": 3}), x + y * 3)
    assert len(converted.programs) == 1
    with pytest.raises(SignatureError, match=r"argument 'options\['n'\]' is 4, InputSpec says 3"):
        converted([x], {"b": y, "n": 4})


def test_parameters_without_a_spec_are_free():
    converted = to_static(weighted, input_spec=[InputSpec([2])])
    x, mask = torch.randn(2), torch.ones(2)
    assert torch.equal(converted(x), x)
    assert torch.equal(converted(x, mask, scale=2.0), x * 2)


def test_variable_arguments():
    converted = to_static(lambda *xs: sum(xs), input_spec=[InputSpec([2]), InputSpec([2])])
    assert torch.equal(converted(torch.ones(2), torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(SignatureError, match="'xs' has 1 items, InputSpec says 2"):
        converted(torch.ones(2))


def test_program_from_the_spec_alone():
    converted = to_static(double, input_spec=[InputSpec([None, 3], "float64")])
    (given,) = converted.program.inputs
    assert given.name == "x" and given.var.type.dtype is torch.float64
    x = torch.randn(4, 3, dtype=torch.float64)
    assert torch.equal(converted(x), x * 2)
    assert len(converted.programs) == 1


def test_no_program_without_spec_or_call():
    with pytest.raises(SignatureError, match=r"double\(\) has no Program yet"):
        _ = to_static(double).program


def test_stop_gradient():
    converted = to_static(lambda x, y: (x * y).sum(), input_spec=[InputSpec([2], stop_gradient=True), InputSpec([2])])
    x, y = torch.randn(2, requires_grad=True), torch.randn(2, requires_grad=True)
    converted(x, y).backward()
    assert x.grad is None
    assert torch.equal(y.grad, x.detach())


def test_one_tensor_for_two_specs_with_different_open_sizes():
    converted = to_static(lambda x, y: x + y, input_spec=[InputSpec([None]), InputSpec([3])])
    x = torch.randn(3)
    assert torch.equal(converted(x, x), x + x)
