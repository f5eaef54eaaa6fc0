"""What is saved is what ran, with its gradients, buffers and ties; what cannot be saved is refused at its line."""

from __future__ import annotations

import collections
import copy
import dataclasses
import inspect
import os
import pickle
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import runtime
from dy2static import (
    InputSpec,
    SignatureError,
    StorageError,
    TraceError,
    TranslatedLayer,
    enable_to_static,
    load,
    save,
    to_static,
)
from tests.oracle import same

ROOT = Path(__file__).parents[2]


class Adaptive(nn.Module):
    """Normalisation, dropout, a loop and a branch on tensors, buffers written both ways, a plain tensor attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64), persistent=False)
        self.scale = torch.full((4,), 2.0)

    def forward(self, x, limit=1.0, *, bias: bool = True):
        h = self.encoder(x) * self.scale
        self.calls = self.calls + 1
        self.seen += 1
        steps = 0
        while h.abs().max() > limit:
            h = h / 2
            steps += 1
        if h.mean() > 0:
            h = torch.tanh(h)
        if bias:
            h = h + 1
        return {"h": h, "steps": steps, "x": x}


def both_ways(original: nn.Module, loaded: nn.Module, x: torch.Tensor) -> None:
    """One step of each from the same seed: results, gradients and buffers are the same bits."""
    mine, others = x.clone().requires_grad_(), x.clone().requires_grad_()
    for module in (original, loaded):
        module.zero_grad()
    torch.manual_seed(1)
    expected = original(mine)
    torch.manual_seed(1)
    found = loaded(others)
    same((found, others), (expected, mine))
    expected["h"].square().sum().backward()
    found["h"].square().sum().backward()
    grads = [{name: one.grad for name, one in module.named_parameters()} for module in (loaded, original)]
    same((others.grad, grads[0]), (mine.grad, grads[1]), "gradients", 1e-6)
    same(dict(loaded.named_buffers()), dict(original.named_buffers()), "buffers")


def test_loaded_layer_runs_and_trains_like_the_original(tmp_path: Path) -> None:
    model = Adaptive()
    assert save(model, tmp_path / "m", [InputSpec([None, 4])]) == tmp_path / "m.d2s"
    layer = load(tmp_path / "m")
    assert isinstance(layer, TranslatedLayer) and not layer.training
    assert list(layer.state_dict()) == list(model.state_dict())
    for training in (True, False, True):
        model.train(training)
        layer.train(training)
        for size in (2, 5):
            both_ways(model, layer, torch.randn(size, 4) * 4)


def test_fine_tuning_is_the_same_training(tmp_path: Path) -> None:
    model = Adaptive()
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    layer = load(tmp_path / "m").train()
    data = [torch.randn(6, 4) for _ in range(5)]
    for module in (model, layer):
        torch.manual_seed(3)
        optimizer = torch.optim.Adam(module.parameters(), 0.1)
        for x in data:
            optimizer.zero_grad()
            module(x)["h"].square().sum().backward()
            optimizer.step()
    for (name, value), other in zip(model.state_dict().items(), layer.state_dict().values()):
        assert torch.allclose(value, other, rtol=1e-5, atol=1e-6), name


def test_saving_disturbs_nothing(tmp_path: Path) -> None:
    model = Adaptive()
    model.encoder[1].eval()
    modes = [module.training for module in model.modules()]
    before = copy.deepcopy(model.state_dict())
    states = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state()
    with torch.no_grad():
        save(model, tmp_path / "m", [InputSpec([None, 4])])
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert random.getstate() == states[0] and numpy.random.get_state()[1].tolist() == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])
    assert set(vars(model)) == set(vars(Adaptive()))


def test_saved_again_it_is_the_same_file(tmp_path: Path) -> None:
    save(Adaptive(), tmp_path / "a", [InputSpec([None, 4])])
    save(load(tmp_path / "a"), tmp_path / "b")
    runtime.save(load(tmp_path / "b"), tmp_path / "c")
    assert (tmp_path / "a.d2s").read_bytes() == (tmp_path / "b.d2s").read_bytes() == (tmp_path / "c.d2s").read_bytes()


def test_fine_tuned_layer_saved_again_keeps_what_it_learned(tmp_path: Path) -> None:
    save(Adaptive(), tmp_path / "a", [InputSpec([None, 4])])
    layer = load(tmp_path / "a").train()
    layer(torch.randn(3, 4))
    with torch.no_grad():
        layer.encoder.get_submodule("0").weight.mul_(2)
    save(layer, tmp_path / "b")
    again = load(tmp_path / "b")
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in layer.state_dict().items())
    assert again.seen == 1 and again.calls == 1


FRESH = """
import sys
sys.modules["dy2static"] = sys.modules["gast"] = sys.modules["astor"] = None
import runtime, torch
layer = runtime.load({path!r})
answers = torch.load({answers!r})
torch.manual_seed(5)
for x, h in zip(answers["x"], answers["eval"]):
    assert torch.equal(layer(x)["h"], h)
layer.train()
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
torch.manual_seed(7)
losses = []
for x in answers["x"]:
    optimizer.zero_grad()
    loss = layer(x)["h"].square().sum()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses == answers["losses"], (losses, answers["losses"])
assert "model_source" not in sys.modules
print("same")
"""


def test_fresh_process_without_the_source(tmp_path: Path) -> None:
    """No source, no converter, another folder: the same predictions bit for bit, and the same training."""
    source = textwrap.dedent(inspect.getsource(Adaptive))
    (tmp_path / "model_source.py").write_text("import torch\nfrom torch import nn\n" + source)
    code = compile((tmp_path / "model_source.py").read_text(), str(tmp_path / "model_source.py"), "exec")
    namespace: dict[str, Any] = {"__name__": "model_source"}
    exec(code, namespace)
    model = namespace["Adaptive"]()
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    xs = [torch.randn(4, 4) for _ in range(4)]
    answers: dict[str, Any] = {"x": xs, "eval": [model.eval()(x)["h"].detach() for x in xs], "losses": []}
    reference = load(tmp_path / "m").train()
    optimizer = torch.optim.SGD(reference.parameters(), 0.1)
    torch.manual_seed(7)
    for x in xs:
        optimizer.zero_grad()
        loss = reference(x)["h"].square().sum()
        loss.backward()
        optimizer.step()
        answers["losses"].append(loss.item())
    torch.save(answers, tmp_path / "answers.pt")
    (tmp_path / "model_source.py").unlink()
    (tmp_path / "elsewhere").mkdir()
    script = FRESH.format(path=str(tmp_path / "m"), answers=str(tmp_path / "answers.pt"))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "elsewhere",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "same\n", done.stderr


def test_source_locations_can_be_left_out(tmp_path: Path) -> None:
    save(Adaptive(), tmp_path / "with", [InputSpec([None, 4])])
    save(Adaptive(), tmp_path / "without", [InputSpec([None, 4])], source_locations=False)
    assert b"test_saving.py" in (tmp_path / "with.d2s").read_bytes()
    data = (tmp_path / "without.d2s").read_bytes()
    assert b"test_saving.py" not in data and b"h.abs().max()" not in data
    assert load(tmp_path / "without")(torch.ones(2, 4))["x"].shape == (2, 4)


# --- calls that do not fit


@pytest.fixture
def layer(tmp_path: Path) -> TranslatedLayer:
    save(Adaptive(), tmp_path / "m", [InputSpec([None, 4])])
    return load(tmp_path / "m")


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((torch.ones(3, 5),), {}, r"D2S304. argument 'x' has size 5 in dimension 1, but it was saved for 4"),
        ((torch.ones(4),), {}, r"D2S302. argument 'x' has 1 dimension, but it was saved for 2"),
        ((torch.ones(3, 4).double(),), {}, r"D2S303. argument 'x' has dtype torch.float64, but it was saved for"),
        (([torch.ones(3, 4)],), {}, r"D2S305. argument 'x' is of type list, but it was a tensor"),
        ((torch.ones(3, 4), 2.0), {}, r"D2S306. argument 'limit' is 2.0, but it was 1.0"),
        ((torch.ones(3, 4), 1), {}, r"D2S306. argument 'limit' is 1, but it was 1.0"),
        ((torch.ones(3, 4),), {"bias": False}, r"D2S306. argument 'bias' is False, but it was True"),
        ((torch.ones(3, 4),), {"limit": torch.ones(())}, r"D2S305. argument 'limit' is a tensor, but it was 1.0"),
    ],
)
def test_call_of_another_kind_is_refused(layer: TranslatedLayer, args: Any, kwargs: Any, problem: str) -> None:
    with pytest.raises(SignatureError, match=problem):
        layer(*args, **kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [((), {}, r"forward\(\) missing a required argument: 'x'"), ((1, 2, 3), {}, "too many"), ((1,), {"y": 2}, "'y'")],
)
def test_wrong_arguments_are_pythons_error(layer: TranslatedLayer, args: Any, kwargs: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        layer(*args, **kwargs)


def test_keywords_and_defaults_are_those_of_the_original(layer: TranslatedLayer) -> None:
    assert str(layer.signature()) == "(x, limit=1.0, *, bias=True)"
    x = torch.randn(3, 4)
    assert torch.equal(layer(x, 1.0, bias=True)["h"], layer(x=x)["h"])


def test_assumption_about_a_size_is_located(layer: TranslatedLayer) -> None:
    layer.train()
    with pytest.raises(
        SignatureError, match=r"argument 'x' has size 1 in dimension 0, but the Program needs x\.shape\[0\] != 1"
    ):
        layer(torch.ones(1, 4))


@pytest.mark.parametrize("convert", ["double", "half", "bfloat16"])
def test_another_dtype_is_refused_at_once(layer: TranslatedLayer, convert: str) -> None:
    whole = nn.Sequential(layer)
    for module in (layer, whole):
        with pytest.raises(SignatureError, match=r"D2S309. 'encoder.0.weight' cannot become .*computes in torch.fl"):
            getattr(module, convert)()
    with pytest.raises(SignatureError, match="D2S309"):
        layer.to(torch.float64)
    assert {value.dtype for value in layer.state_dict().values()} == {torch.float32, torch.int64}
    layer.float().to("cpu", torch.float32)
    layer(torch.ones(2, 4))


def test_parameters_of_another_dtype_are_refused_when_called(layer: TranslatedLayer) -> None:
    state = {name: value.double() if value.is_floating_point() else value for name, value in layer.state_dict().items()}
    layer.load_state_dict(state, assign=True)
    with pytest.raises(SignatureError, match=r"D2S309. 'encoder.0.weight' has dtype torch.float64, but was saved with"):
        layer(torch.ones(2, 4))
    layer.float()
    layer(torch.ones(2, 4))


def test_parts_follow_the_whole(layer: TranslatedLayer) -> None:
    with pytest.raises(SignatureError, match="this Linear is part of a loaded layer and cannot be called alone"):
        layer.encoder.get_submodule("0")(torch.ones(2, 4))
    layer.encoder.get_submodule("1").train()
    with pytest.raises(SignatureError, match=r"the part 'encoder\.1' of a loaded layer is in train mode"):
        layer(torch.ones(2, 4))
    layer.eval()
    handle = layer.encoder.register_forward_hook(lambda *args: None)
    with pytest.raises(SignatureError, match="the part 'encoder' of a loaded layer has forward hooks"):
        layer(torch.ones(2, 4))
    handle.remove()
    del layer.encoder
    with pytest.raises(SignatureError, match=r"the part 'encoder\.0' was removed"):
        layer(torch.ones(2, 4))


def test_unknown_methods_are_attribute_errors(layer: TranslatedLayer) -> None:
    with pytest.raises(AttributeError, match="'TranslatedLayer' object has no attribute 'encode'"):
        layer.encode(torch.ones(1))
    assert layer.methods == ("forward",)
    assert "Adaptive: forward(x, limit=1.0, *, bias=True)" in repr(layer) and "(0): Linear()" in repr(layer)


def test_loaded_layer_in_a_converted_function_is_refused(layer: TranslatedLayer) -> None:
    with pytest.raises(TraceError, match="a loaded layer is called in a function that is being converted"):
        to_static(lambda x: layer(x))(torch.ones(2, 4))


# --- it is a module


def test_hooks_of_the_whole_run(layer: TranslatedLayer) -> None:
    layer.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    layer.register_forward_hook(lambda module, args, output: {**output, "extra": True})
    found = layer(torch.ones(2, 4))
    assert found["extra"] and found["x"].eq(0).all()


def test_state_dict_goes_both_ways(layer: TranslatedLayer) -> None:
    model = Adaptive()
    layer.load_state_dict(model.state_dict())
    x = torch.randn(3, 4)
    assert torch.equal(layer(x)["h"], model.eval()(x)["h"])
    model.load_state_dict(layer.state_dict())
    layer.load_state_dict(Adaptive().state_dict(), assign=True)
    layer.train()(x)["h"].sum().backward()
    assert layer.encoder.get_submodule("0").weight.grad is not None


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_are_independent(layer: TranslatedLayer, duplicate: Any) -> None:
    other = duplicate(layer.train())
    x = torch.randn(3, 4)
    torch.manual_seed(0)
    expected = layer(x)["h"]
    assert other.calls == 0
    torch.manual_seed(0)
    assert torch.equal(other(x)["h"], expected) and other.calls == 1
    with torch.no_grad():
        other.encoder.get_submodule("0").weight.zero_()
    assert layer.encoder.get_submodule("0").weight.ne(0).any()


def test_frozen_parameters_stay_frozen(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    save(model, tmp_path / "m", [InputSpec([None, 2])])
    layer = load(tmp_path / "m")
    assert [p.requires_grad for p in layer.parameters()] == [False, False, True, True]
    layer.requires_grad_(True)
    layer(torch.ones(1, 2)).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.embed.weight
        self.table = nn.Parameter(torch.arange(6.0))
        self.register_buffer("head", self.table.data[:3])
        self.alias = self.embed

    def forward(self, ids):
        return self.out(self.embed(ids) + self.alias(ids) + self.head) + self.table[5]


def test_ties_and_shared_memory_survive(tmp_path: Path) -> None:
    model = Tied()
    save(model, tmp_path / "m", [InputSpec([None], "int64")])
    layer = load(tmp_path / "m")
    assert list(layer.state_dict()) == list(model.state_dict())
    assert [name for name, _ in layer.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert layer.out.weight is layer.embed.weight and layer.alias is layer.embed
    with torch.no_grad():
        layer.table.add_(1)
        model.table.add_(1)
    assert layer.head.tolist() == [1.0, 2.0, 3.0]
    ids = torch.tensor([1, 4])
    assert torch.equal(layer(ids), model(ids))


# --- which arguments, which methods


class Methods(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    @to_static(input_spec=[InputSpec([None, 3])])
    def encode(self, x):
        return x * self.weight

    @to_static
    def decode(self, z, factor=2):
        return z / self.weight * factor

    def plain(self, x):
        return x - self.weight

    def forward(self, x):
        return self.decode(self.encode(x))


def test_converted_methods_come_along(tmp_path: Path) -> None:
    model = Methods()
    save(model, tmp_path / "m", [InputSpec([None, 3])])
    assert load(tmp_path / "m").methods == ("forward", "encode")
    model.decode(torch.ones(2, 3))
    save(model, tmp_path / "m", [InputSpec([None, 3])])
    layer = load(tmp_path / "m")
    x = torch.randn(2, 3)
    assert set(layer.methods) == {"forward", "encode", "decode"}
    assert torch.equal(layer.decode(x, factor=2), model.decode(x)) and torch.equal(layer.encode(x), model.encode(x))
    assert str(inspect.signature(layer.decode)) == "(z, factor=2)"


def test_methods_can_be_named(tmp_path: Path) -> None:
    model = Methods()
    save(model, tmp_path / "m", [InputSpec([None, 3])], methods={"plain": [InputSpec([3])], "encode": None})
    layer = load(tmp_path / "m")
    assert layer.methods == ("forward", "plain", "encode") and layer.plain(torch.ones(3)).eq(0).all()
    for wrong in (["plian"], ["_apply"], ["train"], "plain"):
        with pytest.raises((TypeError, AttributeError)):
            save(model, tmp_path / "m", [InputSpec([None, 3])], methods=wrong)


def test_without_specs_the_last_call_counts(tmp_path: Path) -> None:
    model = to_static(nn.Linear(2, 1))
    with pytest.raises(SignatureError, match=r"nothing says what forward\(\) is called with(.|\n)*\(input\)"):
        save(model, tmp_path / "m")
    model(torch.ones(3, 2))
    save(model, tmp_path / "m")
    with pytest.raises(SignatureError, match="has size 4 in dimension 0, but it was saved for 3"):
        load(tmp_path / "m")(torch.ones(4, 2))
    model(torch.ones(4, 2))
    save(model, tmp_path / "m")
    assert load(tmp_path / "m")(torch.ones(9, 2)).shape == (9, 1)


def test_specs_of_the_decorator_count(tmp_path: Path) -> None:
    shared = InputSpec([None, 2])

    @to_static(input_spec=[shared, shared])
    def add(x, y):
        return x + y

    save(add, tmp_path / "f")
    layer = load(tmp_path / "f")
    assert layer(torch.ones(3, 2), torch.ones(3, 2) * 2).eq(3).all()
    with pytest.raises(SignatureError, match=r"D2S308(.|\n)*needs x\.shape\[0\] == y\.shape\[0\](.|\n)*return x \+ y"):
        layer(torch.ones(3, 2), torch.ones(4, 2))


def test_size_that_cannot_be_open_is_an_error(tmp_path: Path) -> None:
    def f(x):
        return x + torch.ones(7)

    with pytest.raises(SignatureError, match="the size of 'x' in dimension 0 cannot be left open"):
        save(f, tmp_path / "f", [InputSpec([None])])
    save(f, tmp_path / "f", [InputSpec([7])])


def test_saving_works_while_conversion_is_off(tmp_path: Path) -> None:
    enable_to_static(False)
    try:
        save(nn.Linear(2, 1), tmp_path / "m", [InputSpec([None, 2])])
    finally:
        enable_to_static(True)
    load(tmp_path / "m")(torch.ones(1, 2))


# --- functions, structures, effects

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    parts: list


class NotConverged(ArithmeticError):
    pass


def test_results_are_rebuilt_without_the_users_classes(tmp_path: Path) -> None:
    def f(x):
        both = [x + 1, None]
        return {
            "point": Point(x * 2, "name"),
            "output": Output(x.sum(), both),
            "both": both,
            "size": x.shape,
            "n": x.sum().item(),
            "max": x.max(0),
            "ordered": collections.OrderedDict(b=x, a=1),
            "nothing": (),
            "set": {1, 2},
            "range": range(3),
        }

    save(f, tmp_path / "f", [InputSpec([3])])
    x = torch.tensor([1.0, 5.0, 3.0])
    expected, found = f(x), load(tmp_path / "f")(x)
    assert list(found) == list(expected)
    assert type(found["point"]).__name__ == "Point" and type(found["point"]) is not Point
    assert torch.equal(found["point"].x, x * 2) and found["point"].y == "name"
    assert found["output"]._fields == ("loss", "parts") and found["output"].loss == 9.0
    assert found["output"].parts is found["both"] and found["both"][1] is None
    assert found["size"] == torch.Size([3]) and type(found["size"]) is torch.Size
    assert found["n"] == 9.0 and type(found["n"]) is float
    assert type(found["max"]) is torch.return_types.max and found["max"].indices == 1
    assert type(found["ordered"]) is collections.OrderedDict and list(found["ordered"]) == ["b", "a"]
    assert (found["nothing"], found["set"], found["range"]) == ((), {1, 2}, range(3))


LIBRARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "fraction": (lambda x: Fraction(1, 3), lambda found: (found + 1) / 2),
    "chain": (lambda x: collections.ChainMap({"a": x}, {"b": 1}), lambda found: (dict(found.new_child()), found["b"])),
    "dict": (lambda x: collections.UserDict(a=x, b=2), lambda found: (dict(found), found.get("c"))),
    "list": (lambda x: collections.UserList([x, 2]), lambda found: list(found[::-1])),
    "text": (lambda x: collections.UserString("ab"), lambda found: str(found.upper())),
    "counts": (lambda x: collections.Counter(["up" if x.sum() > 0 else "down", "up"]),
               lambda found: (found.most_common(1), found["up"], found["none"])),
    "ordered": (lambda x: collections.OrderedDict(b=x, a=1), lambda found: list(found.items())),
}  # fmt: skip
"""What makes an object of the class, and what its methods are asked."""


@pytest.mark.parametrize("name", LIBRARY)
def test_results_of_library_classes_come_back_as_themselves(name: str, tmp_path: Path) -> None:
    make, ask = LIBRARY[name]

    def f(x):
        return make(x), x * 2

    save(f, tmp_path / "f", [InputSpec([3])])
    loaded = load(tmp_path / "f")
    for x in (torch.tensor([1.0, 5.0, 5.0]), torch.tensor([-1.0, -5.0, 5.0])):
        (expected, _), (found, _) = f(x), loaded(x)
        assert type(found) is type(expected)
        same(ask(found), ask(expected))


def test_a_packed_sequence_of_a_file_goes_into_a_layer(tmp_path: Path) -> None:
    def f(x, lengths):
        return pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)

    save(f, tmp_path / "f", [InputSpec([2, None, 3]), InputSpec([2], "int64")])
    x, lengths = torch.randn(2, 4, 3), torch.tensor([2, 4])
    expected, found = f(x, lengths), load(tmp_path / "f")(x, lengths)
    layer = torch.nn.GRU(3, 5)
    assert type(found) is PackedSequence
    assert torch.equal(layer(found)[0].data, layer(expected)[0].data)


class Holder:
    def __init__(self, value, note):
        self.value = value
        self.note = note


def test_results_of_every_kind_are_rebuilt(tmp_path: Path) -> None:
    def f(x, n):
        rows = []
        total = x * 0
        while total.sum() < n:
            total = total + x
            rows.append(total)
        groups = collections.defaultdict(list)
        groups["a"].append(x)
        return rows, groups, collections.deque([x, 1], maxlen=3), Holder(x, "note"), x[: x.shape[0] - 1].shape

    save(f, tmp_path / "f", [InputSpec([None]), InputSpec([])])
    x, n = torch.ones(3), torch.tensor(8.0)
    expected, (rows, groups, queue, holder, size) = f(x, n), load(tmp_path / "f")(x, n)
    assert type(rows) is list and len(rows) == 3 and all(map(torch.equal, rows, expected[0]))
    assert type(groups) is collections.defaultdict and groups["new"] == [] and groups["a"][0] is x
    assert type(queue) is collections.deque and queue.maxlen == 3 and queue[0] is x
    assert type(holder).__name__ == "Holder" and type(holder) is not Holder and holder.note == "note"
    holder.note = "another"
    assert size == torch.Size([2]) and type(size) is torch.Size


def test_arguments_may_be_nested(tmp_path: Path) -> None:
    def f(batch, *rest, scale=torch.tensor(2.0), **options):
        total = batch["x"] + batch["more"][0] + sum(rest)
        return total * scale + (1 if options["flag"] else 0)

    specs = {
        "batch": {"x": InputSpec([2]), "more": [InputSpec([2])]},
        "rest": (InputSpec([2]),),
        "options": {"flag": True},
    }
    save(f, tmp_path / "f", specs)
    layer, one = load(tmp_path / "f"), torch.ones(2)
    assert layer({"x": one, "more": [one]}, one, flag=True).eq(7).all()
    assert layer({"x": one, "more": [one]}, one, scale=torch.tensor(3.0), flag=True).eq(10).all()
    for batch, rest, options, problem in (
        ({"x": one}, (one,), {"flag": True}, r"'batch' has the keys 'x', but it had the keys 'x', 'more'"),
        ({"x": one, "more": []}, (one,), {"flag": True}, r"'batch\['more'\]' has 0 items, but it had 1 item"),
        ({"x": one, "more": (one,)}, (one,), {"flag": True}, r"'batch\['more'\]' is of type tuple, but it was a list"),
        ({"x": one, "more": [one]}, (), {"flag": True}, r"'rest' has 0 items, but it had 1 item"),
        ({"x": one, "more": [one]}, (one,), {"flag": False}, r"'options\['flag'\]' is False, but it was True"),
        ({"x": one, "more": [torch.ones(3)]}, (one,), {"flag": True}, r"'batch\['more'\]\[0\]' has size 3"),
    ):
        with pytest.raises(SignatureError, match=problem):
            layer(batch, *rest, **options)


def test_function_keeps_the_tensors_it_closes_over(tmp_path: Path) -> None:
    weight, model = torch.randn(2, 2, requires_grad=True), nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))

    def f(x):
        return model(x) @ weight

    save(f, tmp_path / "f", [InputSpec([None, 2])])
    layer = load(tmp_path / "f")
    assert sorted(p.shape for p in layer.parameters()) == sorted(p.shape for p in model.parameters())
    x = torch.randn(4, 2)
    assert torch.equal(layer(x), f(x))
    layer(x).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    assert {name: value for name, value in layer.state_dict().items() if "running_mean" in name}
    other = copy.deepcopy(layer)
    assert other._constants.c0 is not layer._constants.c0 and other._constants.c0.requires_grad


def test_users_exceptions_have_their_name_and_their_base(tmp_path: Path) -> None:
    def f(x):
        if x.sum() > 0:
            raise NotConverged("too large", 3)
        assert x.min() > -5, "too small"
        return x

    save(f, tmp_path / "f", [InputSpec([2])])
    layer = load(tmp_path / "f")
    with pytest.raises(ArithmeticError) as caught:
        layer(torch.ones(2))
    assert type(caught.value).__name__ == "NotConverged" and caught.value.args == ("too large", 3)
    with pytest.raises(AssertionError, match="too small"):
        layer(torch.full((2,), -9.0))


def test_arguments_written_in_place_are_the_callers(tmp_path: Path) -> None:
    def f(x, y, log):
        x.add_(y)
        log["last"] = x * 2
        return x, x[1:], log

    save(f, tmp_path / "f", [InputSpec([None]), InputSpec([None]), {"first": InputSpec([1])}])
    layer = load(tmp_path / "f")
    x, log = torch.zeros(3), {"first": torch.ones(1)}
    same, view, back = layer(x, torch.ones(3), log)
    assert same is x and x.eq(1).all() and view._base is x and back is log and log["last"].eq(2).all()
    with pytest.raises(SignatureError, match="'x' is written in place, and 'y' shares its memory"):
        layer(x, x, {"first": torch.ones(1)})


class Stores(nn.Module):
    """Keeps what it saw, where a converted module may."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.state = torch.zeros(2)

    def forward(self, x):
        self.state = self.state + x
        self.inner.last = self.state * 2
        return self.inner(self.state)


def test_stores_to_the_module_are_repeated(tmp_path: Path) -> None:
    model = Stores()
    save(model, tmp_path / "m", [InputSpec([2])])
    layer = load(tmp_path / "m")
    for _ in range(3):
        assert torch.equal(layer(torch.ones(2)), model(torch.ones(2)))
        assert torch.equal(layer.inner.last, model.inner.last)


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.log: list[Any] = []
        self.hidden = None

    def by_number(self, x):
        self.count = self.count + 1
        return x * self.count

    def by_list(self, x):
        self.log.append(x)
        return x

    def by_none(self, x):
        hidden = x if self.hidden is None else x + self.hidden
        self.hidden = hidden
        return hidden

    def by_global(self, x):
        global _last
        _last = x
        return x + 1


_last = None


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("by_number", r"stores to attribute 'count' of a Counts, and reads it(.|\n)*self\.count = self\.count \+ 1"),
        ("by_list", r"stores to a list(.|\n)*self\.log\.append"),
        ("by_none", r"stores to attribute 'hidden' of a Counts, and reads it(.|\n)*self\.hidden = hidden"),
        ("by_global", r"stores to global '_last', which is no part of what is saved(.|\n)*_last = x"),
    ],
)
def test_state_that_cannot_be_saved_is_refused_at_its_line(method: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=problem):
        save(getattr(Counts(), method), tmp_path / "m", [InputSpec([2])])
    assert not os.listdir(tmp_path) and _last is None


def test_other_things_that_cannot_be_saved(tmp_path: Path) -> None:
    path, spec = tmp_path / "m", [InputSpec([2])]
    grown = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(StorageError, match=r"'.*' was computed from tensors that need gradients"):
        save(lambda x: x * grown, path, spec)
    with pytest.raises(StorageError, match="a result of the function is an object of type builtins.object"):
        save(lambda x, thing=object(): (x, thing), path, spec)
    hooked = nn.Linear(2, 2)
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(StorageError, match="this Linear has hooks"):
        save(hooked, path, spec)
    sparse = nn.Linear(2, 2)
    sparse.register_buffer("mask", torch.eye(2).to_sparse())
    with pytest.raises(StorageError, match="the tensor 'mask' is sparse"):
        save(sparse, path, spec)
    for wrong in (3, "model", None, nn.Linear):
        with pytest.raises(TypeError):
            save(wrong, path, spec)
    assert not os.listdir(tmp_path)


def test_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    save(nn.Linear(2, 2), tmp_path / "m", [InputSpec([2])])
    before = (tmp_path / "m.d2s").read_bytes()
    with pytest.raises(StorageError):
        save(Counts().by_list, tmp_path / "m", [InputSpec([2])])
    assert (tmp_path / "m.d2s").read_bytes() == before and os.listdir(tmp_path) == ["m.d2s"]


def test_custom_operators_need_permission(tmp_path: Path) -> None:
    library = torch.library.Library("d2s_test_saving", "DEF")
    try:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.impl("twice", lambda x: torch.empty_like(x), "Meta")
        save(lambda x: torch.ops.d2s_test_saving.twice(x), tmp_path / "m", [InputSpec([2])])
        with pytest.raises(StorageError, match=r"library 'd2s_test_saving'(.|\n)*allow=\['d2s_test_saving'\]"):
            load(tmp_path / "m")
        assert load(tmp_path / "m", allow=["d2s_test_saving"])(torch.ones(2)).eq(2).all()
        with pytest.raises(TypeError, match="a list of names"):
            load(tmp_path / "m", allow="d2s_test_saving")
    finally:
        library._destroy()


def test_stopped_gradients_stay_stopped(tmp_path: Path) -> None:
    weight = nn.Linear(2, 2)
    save(weight, tmp_path / "m", [InputSpec([2], stop_gradient=True)])
    x = torch.ones(2, requires_grad=True)
    load(tmp_path / "m")(x).sum().backward()
    assert x.grad is None


def test_device_can_be_chosen(tmp_path: Path) -> None:
    def f(x):
        return x + torch.arange(3) + torch.zeros(3, device=x.device)

    save(f, tmp_path / "f", [InputSpec([3])])
    layer = load(tmp_path / "f", device="cpu")
    assert layer(torch.ones(3)).tolist() == [1.0, 2.0, 3.0]
    assert layer(torch.ones(3, device="meta")).device.type == "meta"


@pytest.mark.parametrize("shape", [[None, 7], [4, 7], [None, 3, 7]])
def test_a_spec_that_no_call_fits(shape: list[int | None], tmp_path: Path) -> None:
    with pytest.raises(SignatureError, match=r"D2S318.*\[.*7\]") as caught:
        save(torch.nn.Linear(3, 2), tmp_path / "file", input_spec=[InputSpec(shape)])
    assert "u0" not in str(caught.value) and not list(tmp_path.iterdir())


def test_what_the_function_raises_itself_is_saved(tmp_path: Path) -> None:
    def never(x: torch.Tensor) -> torch.Tensor:
        print(x.sum())
        raise NotImplementedError("never")

    save(never, tmp_path / "file", input_spec=[InputSpec([None, 3])])
    with pytest.raises(NotImplementedError, match="never"):
        load(tmp_path / "file")(torch.ones(2, 3))


class FixedMask(torch.nn.Module):
    """PyTorch's own code asserts that the mask has as many columns as there are rows."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        h = x[None]
        return self.attention(h, h, h, key_padding_mask=torch.tensor([[False, False, True]]))[0]


def test_a_size_that_an_assert_in_pytorch_fixes_cannot_be_left_open(tmp_path):
    with pytest.raises(SignatureError, match=r"D2S315.*'x' in dimension 0 cannot be left open.*x\.shape\[0\] == 3"):
        save(FixedMask(), tmp_path / "m", input_spec=[InputSpec([None, 4])])


def test_the_text_about_attributes_of_tensors_names_a_tensor(tmp_path):
    def stores(x):
        x.seen = 3
        return x * 2

    def gives(x):
        y = x * 2
        y.seen = 3
        return y

    for function, text in (
        (stores, r"attribute 'seen' of a Tensor, which hangs on a tensor"),
        (gives, "a result of the function is a tensor on which the function hangs attributes, which cannot be saved"),
    ):
        static = to_static(function, input_spec=[InputSpec((None,), torch.float32)])
        with pytest.raises(StorageError, match=text):
            save(static, tmp_path / "f.d2s")
