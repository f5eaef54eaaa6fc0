"""The exported program as a whole: names, sizes, the file, what is refused, gradients."""

from __future__ import annotations

import collections
import warnings

import pytest
import torch
from torch import nn

import dy2static
from dy2static import InputSpec
from dy2static.errors import StorageError
from tests.runtime.export.torch_export.harness import check, functional, held, loaded, operators, refused

X = [InputSpec([None, 3], "float32", "x")]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("scale", torch.tensor(0.9))
        self.register_buffer("hidden", torch.tensor(1.0), persistent=False)

    def forward(self, x):
        steps = 0
        while x.abs().max() > 1:
            x = self.drop(self.step(x)).tanh() * self.scale * self.hidden
            steps += 1
        return {"y": x, "steps": steps}


CALLS = [(torch.full((n, 3), top),) for n, top in ((2, 4.0), (1, 0.0), (7, -9.0), (0, 1.0))][:3]


def test_names_of_parameters_buffers_and_arguments():
    model = check(Net().train(), X, *CALLS)
    program = model.exported.exported
    assert isinstance(program, torch.export.ExportedProgram)
    assert set(program.state_dict) == {"step.weight", "step.bias", "scale"}
    assert [name for name, _ in program.named_parameters()] == ["step.weight", "step.bias"]
    assert {name for name, _ in program.named_buffers()} == {"scale", "hidden"}
    assert program.graph_signature.user_inputs == ("x",)
    assert "while_loop" in operators(model)


def test_a_file_and_the_functional_form_give_the_same(tmp_path):
    model = check(Net(), X, *CALLS)
    for other in (loaded(model, tmp_path), functional(model)):
        for call in CALLS:
            for name, value in model.run(*call).items():
                assert torch.equal(other.run(*call)[name], value)


def test_a_module_in_training_is_exported_in_eval_and_stays_as_it_is():
    net = Net().train()
    dy2static.to_exported_program(net, X)
    assert net.training and net.drop.training and net.step.weight.requires_grad


def test_open_sizes_are_told_by_each_call_and_closed_ones_checked():
    program = dy2static.to_exported_program(nn.Linear(3, 2), X)
    module = program.module()
    for size in (0, 1, 2, 9):
        assert module(torch.zeros(size, 3)).shape == (size, 2)
    with pytest.raises(Exception, match="input"):
        module(torch.zeros(2, 4))


def test_sizes_that_do_not_fit_end_the_run():
    def f(x, y):
        if x.sum() > 0:
            return x + y
        return x - y

    two = [InputSpec([None, 3], "float32", "x"), InputSpec([None, 3], "float32", "y")]
    calls = [(torch.ones(a, 3), torch.ones(b, 3)) for a, b in ((2, 2), (5, 5), (2, 4))]
    check(f, two, *calls)


def test_a_failure_says_the_exception_and_the_line(tmp_path):
    def f(x):
        for i in range(3):
            if x.sum() < i:
                raise ValueError(f"the sum is {x.sum().item()}")
            x = x * 0.9
        return x

    model = check(f, X, (torch.ones(2, 3),), (-torch.ones(1, 3),), (torch.ones(1, 3) / 3,))
    for one in (model, loaded(model, tmp_path), functional(model)):
        with pytest.raises(RuntimeError, match=r"ValueError: the sum is \{\} \(test_model.py:\d+\)|assert"):
            one.run(-torch.ones(1, 3))


def test_a_check_that_nothing_reads_is_kept(tmp_path):
    def f(x):
        if x.sum() > 0:
            assert x.max() < 5, "too large"
        return x * 2

    model = check(f, X, (torch.ones(2, 3),), (torch.ones(2, 3) * 9,), (-torch.ones(2, 3) * 9,))
    for one in (loaded(model, tmp_path), functional(model)):
        with pytest.raises(RuntimeError):
            one.run(torch.ones(2, 3) * 9)


def test_writes_to_arguments_and_buffers(tmp_path):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            if x.sum() > 0:
                self.total += x.sum(0)
            x.mul_(2)
            return x + self.total

    model = check(Counting(), X, (torch.ones(2, 3),))
    again = loaded(model, tmp_path)
    x = torch.ones(2, 3)
    for times in (1, 2):
        x = torch.ones(2, 3)
        assert torch.equal(again.call(x), torch.full((2, 3), 2.0 + 2 * (times + 1)))  # one call was before the file
        assert torch.equal(x, torch.full((2, 3), 2.0))


def test_tied_tensors_and_names_that_modules_do_not_have():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(3, 3, bias=False)
            self.other = nn.Linear(3, 3, bias=False)
            self.other.weight = self.one.weight

        def forward(self, x):
            return self.other(self.one(x)) + OUTSIDE

    check(Tied(), X, (torch.randn(2, 3),))


OUTSIDE = torch.arange(3.0)


def test_no_gradient_comes_out_of_a_loop():
    program = dy2static.to_exported_program(Net(), X)
    x = torch.full((2, 3), 4.0, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not program.module()(x)["y"].requires_grad
    assert not any(one.requires_grad for one in program.parameters())


def prints(x):
    print(x.sum())
    return x


def text(x):
    return x, f"{x.sum().item()}"


def nothing(x):
    return None


@pytest.mark.parametrize("function, code", [(prints, "D2S550"), (text, "D2S550"), (nothing, "D2S551")])
def test_refusals(function, code):
    refused(function, X, code)


CONSTANTS = [1 + 2j, b"a", torch.float32, slice(0, 2), range(3), ..., {1, 2}, frozenset([1]), collections.deque([1])]


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_that_an_exported_program_cannot_hold_is_refused(constant):
    error = refused(lambda x: (x * 2, constant), X, "D2S551")
    assert "a result of this kind" in error.summary


def test_constants_and_mappings_of_a_result_are_there():
    def f(x):
        mapping = collections.OrderedDict([("a", x + 1), (3, "text")])
        return mapping, collections.Counter("aab"), None, float("inf"), 1 << 70

    result = dy2static.to_exported_program(f, X).module()(torch.ones(2, 3))
    assert torch.equal(result[0].pop("a"), torch.full((2, 3), 2.0))
    assert result == ({3: "text"}, {"a": 2, "b": 1}, None, float("inf"), 1 << 70)


def test_a_refusal_names_the_operator_the_line_and_what_to_change():
    def f(x):
        rows = []
        while x.sum() > 1:
            x = x / 2
            rows.append(x)
        return len(rows), rows

    error = refused(f, X, "D2S550")
    assert "while_loop" in error.summary and "Fill the rows" in error.hint
    assert error.location.text.strip() == "while x.sum() > 1:"


def test_sizes_that_change_in_a_loop_that_makes_rows_are_found_in_the_table():
    def f(x):
        rows, h = [], x
        for row in x:
            h = torch.cat([h, h[:1] * row])
            rows.append(h.sum(0))
        return torch.stack(rows), h

    error = refused(f, X, "D2S550")
    assert "scan, in which the sizes of 'h' change" in error.summary and "made before the loop" in error.hint


def test_what_only_the_exporter_can_tell_is_an_error_of_ours_too():
    def f(x):
        return torch.equal(x, x + 1), x

    error = refused(f, X, "D2S550")
    assert "aten.equal" in error.summary and error.location.text.strip() == "return torch.equal(x, x + 1), x"


def test_a_method_that_is_not_there(tmp_path):
    dy2static.save(Net(), tmp_path / "net", X)
    with pytest.raises(ValueError, match="no method 'other'"):
        dy2static.to_exported_program(dy2static.load(tmp_path / "net"), method="other")
    with pytest.raises(StorageError):
        dy2static.to_exported_program(prints, X)


def test_a_loaded_layer(tmp_path):
    net = Net().eval()
    dy2static.save(net, tmp_path / "net", X)
    made = dy2static.to_exported_program(dy2static.load(tmp_path / "net")).module()
    for call in CALLS:
        assert torch.equal(made(*call)["y"], net(*call)["y"])


def test_random_numbers_are_those_of_pytorch():
    def f(x):
        if x.sum() > 0:
            return x + torch.rand(3)
        return x * torch.randn(3).abs()

    model = check(f, X, (torch.ones(2, 3),), (-torch.ones(2, 3),))
    held(model, f, (torch.ones(4, 3),))
