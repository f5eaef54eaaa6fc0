"""Which methods, modes, kinds of calls and results a file holds, and how the loaded layer chooses among them."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import (
    InputSpec,
    RetraceWarning,
    SignatureError,
    StorageError,
    export_c,
    load,
    load_state,
    save,
    to_static,
)
from tests.oracle import same


class Coder(nn.Module):
    """Two methods that share a weight, dropout, a branch on data and one on an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(3) * 2)
        self.register_buffer("seen", torch.zeros(()))

    def encode(self, x, scale=1.0):
        self.seen = self.seen + 1
        return x @ self.weight * scale

    def decode(self, z):
        return z @ torch.linalg.inv(self.weight)

    def forward(self, x, *, noisy: bool = False, times: int = 1):
        z = x @ self.weight
        for _ in range(times):
            if z.sum() > 10:
                z = z / 2
        if noisy:
            z = torch.dropout(z, 0.5, self.training)
        return z


X = InputSpec([None, 3])


def same_for(loaded: nn.Module, model: nn.Module, *args: Any, **kwargs: Any) -> None:
    """Values and gradients of the parameters are the same, from one seed."""
    found = []
    for module in (loaded, model):
        module.zero_grad()
        torch.manual_seed(0)
        value = module(*args, **kwargs)
        value.square().sum().backward()
        found.append((value, [one.grad for one in module.parameters()]))
    same(found[0][0], found[1][0])
    same(found[0][1], found[1][1], "gradients", 1e-6)


# --- methods and modes


def test_methods_share_one_table_of_tensors(tmp_path: Path) -> None:
    model = Coder()
    path = save(model, tmp_path / "m", [X], methods={"encode": [X], "decode": [X]})
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("program.json"))
        keys = [one["key"] for one in document["tensors"]]
    assert keys == ["weight", "seen"] and set(document["methods"]) == {"forward", "encode", "decode"}
    layer, x = load(path), torch.randn(2, 3)
    assert layer.methods == ("forward", "encode", "decode")
    assert torch.equal(layer.encode(x), x * 2) and torch.allclose(layer.decode(layer.encode(x)), x)
    assert layer.seen == 2 and list(dict(layer.named_parameters())) == ["weight"]
    with torch.no_grad():
        layer.weight.mul_(2)
    assert torch.equal(layer.encode(x), x * 4) and torch.equal(layer(x * 0.01), x * 0.04)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_one_mode_alone(tmp_path: Path, mode: str) -> None:
    model, other = Coder(), {"train": "eval", "eval": "train"}[mode]
    model.eval()
    save(model, tmp_path / "m", [X], methods={"decode": [X]}, modes=(mode,))
    assert not model.training
    layer = load(tmp_path / "m")
    assert layer.training is (mode == "train")
    same_for(layer, model.train(mode == "train"), torch.randn(4, 3))
    getattr(layer, other)()
    for call in (layer, layer.decode, lambda x: layer.program()):
        problem = rf"D2S312. \w+\(\) was saved for {mode} mode only.* in {other}(.|\n)*Call \.{mode}\(\) on it"
        with pytest.raises(SignatureError, match=problem):
            call(torch.ones(2, 3))
    getattr(layer, mode)()
    save(layer, tmp_path / "again")
    assert (tmp_path / "again.d2s").read_bytes() == (tmp_path / "m.d2s").read_bytes()


def test_modes_of_a_function_and_of_one_that_asks_for_gradients(tmp_path: Path) -> None:
    def f(x):
        return x * 2 if torch.is_grad_enabled() else x * 3

    save(f, tmp_path / "f", [X], modes=["eval"])
    layer, x = load(tmp_path / "f"), torch.ones(1, 3)
    assert layer(x).eq(2).all()
    with torch.no_grad():
        assert layer(x).eq(3).all()


@pytest.mark.parametrize("modes", ["eval", (), ("test",), ["train", "test"], None])
def test_other_modes_are_refused(tmp_path: Path, modes: Any) -> None:
    with pytest.raises(ValueError, match="modes is"):
        save(Coder(), tmp_path / "m", [X], modes=modes)


def test_a_loaded_layer_is_saved_as_it_is(tmp_path: Path) -> None:
    save(Coder(), tmp_path / "m", [X])
    layer = load(tmp_path / "m")
    for options in ({"methods": ["encode"]}, {"modes": ["eval"]}, {"variants": {"times": [1]}}, {"output_spec": [0]}):
        with pytest.raises(TypeError, match="a loaded layer is saved"):
            save(layer, tmp_path / "again", **options)
    assert not (tmp_path / "again.d2s").exists()


# --- metadata, tensors alone

VALUES = {"a": None, "b": [True, 1, -2.5, "é", {"c": []}], "big": 1 << 70}


def test_metadata_comes_back(tmp_path: Path) -> None:
    given = json.loads(json.dumps(VALUES))
    save(Coder(), tmp_path / "m", [X], metadata=given)
    given["a"] = "changed later"
    layer = load(tmp_path / "m")
    assert layer.metadata == VALUES and type(layer.metadata["b"][0]) is bool
    layer.metadata["note"] = "fine-tuned"
    save(layer, tmp_path / "again")
    assert load(tmp_path / "again").metadata == {**VALUES, "note": "fine-tuned"}
    save(layer, tmp_path / "again", metadata={})
    assert load(tmp_path / "again").metadata == {}


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


ROUND: dict[str, Any] = {}
ROUND["self"] = ROUND


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"a": torch.ones(2)}, r"metadata\['a'\] is of type torch\.Tensor"),
        ({"a": [1, (2,)]}, r"metadata\['a'\]\[1\] is of type builtins\.tuple"),
        ({"a": float("nan")}, r"metadata\['a'\] is nan, which JSON does not have"),
        ({1: 2}, "metadata has a key of type int"),
        ({"a": "\ud800"}, "half a character"),
        ({"a": 1 << 2000}, "more than 1024 bits"),
        ({"a": Path("x")}, "pathlib"),
        ([1], "metadata is of type list, and has to be a dict"),
        (nested(200), "more than 64 lists and dicts"),
        (ROUND, "more than 64 lists and dicts"),
    ],
)
def test_other_metadata_is_refused_before_anything_is_written(tmp_path: Path, metadata: Any, problem: str) -> None:
    with pytest.raises(StorageError, match=f"D2S522(.|\n)*{problem}(.|\n)*test_saved_methods"):
        save(Coder(), tmp_path / "new" / "m", [X], metadata=metadata)
    assert list(tmp_path.iterdir()) == []
    save(Coder(), tmp_path / "m", [X])
    layer, before = load(tmp_path / "m"), (tmp_path / "m.d2s").read_bytes()
    with pytest.raises(StorageError, match=problem):
        save(layer, tmp_path / "m", metadata=metadata)
    assert (tmp_path / "m.d2s").read_bytes() == before


def test_state_goes_into_the_class_and_back(tmp_path: Path) -> None:
    model = Coder()
    with torch.no_grad():
        model.weight.normal_()
    save(model, tmp_path / "m", [X])
    state = load_state(tmp_path / "m")
    assert list(state) == list(model.state_dict()) and not state["weight"].requires_grad
    other = Coder()
    other.load_state_dict(state)
    assert torch.equal(other.weight, model.weight)
    layer = load(tmp_path / "m")
    layer.load_state_dict(Coder().state_dict())
    assert torch.equal(layer.weight, Coder().weight)
    save(layer, tmp_path / "m")
    assert torch.equal(load_state(tmp_path / "m", device="cpu")["weight"], Coder().weight)
    assert load_state(tmp_path / "m", device="meta")["weight"].is_meta
    with pytest.raises(StorageError, match=r"D2S506(.|\n)*test_saved_methods"):
        load_state(tmp_path / "missing")


class Shared(nn.Module):
    """One block in two places, blocks inside of it, a tied weight, a buffer that the state dict has not."""

    def __init__(self) -> None:
        super().__init__()
        inner = nn.Linear(3, 3)
        self.block = nn.Sequential(inner, nn.Sequential(inner, nn.LayerNorm(3)))
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.again = nn.ModuleDict({"block": self.block, "one": nn.Linear(3, 3)})
        self.again["one"].weight = inner.weight

    def forward(self, x):
        return self.again["one"](self.again["block"](x)) + self.hidden


def test_state_has_all_the_names_that_modules_in_two_places_have(tmp_path: Path) -> None:
    model = Shared()
    save(model, tmp_path / "m", [X])
    state = load_state(tmp_path / "m")
    assert list(state) == list(model.state_dict())
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    assert state["again.one.weight"] is state["block.1.0.weight"] and "hidden" not in state
    Shared().load_state_dict(state)
    assert len(torch.save(state, tmp_path / "state.pt") or torch.load(tmp_path / "state.pt")) == len(state)


def test_state_is_read_whatever_the_operators_are(tmp_path: Path) -> None:
    @torch.library.custom_op("saved_methods_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    class Foreign(nn.Linear):
        def forward(self, x):
            return twice(super().forward(x))

    save(Foreign(3, 3), tmp_path / "m", [X])
    with pytest.raises(StorageError, match="D2S515"):
        load(tmp_path / "m")
    assert list(load_state(tmp_path / "m")) == ["weight", "bias"]


# --- several Programs of a method


def test_variants_are_chosen_by_the_call(tmp_path: Path) -> None:
    model = Coder()
    save(model, tmp_path / "m", [X], variants={"noisy": [False, True], "times": [1, 3]})
    layer, x = load(tmp_path / "m"), torch.full((2, 3), 40.0)
    assert len(layer.programs()) == 4 and layer.program() is layer.programs()[0]
    for training in (True, False):
        layer.train(training)
        model.train(training)
        for kwargs in ({}, {"noisy": True}, {"times": 3}, {"times": 3, "noisy": True}):
            same_for(layer, model, x, **kwargs)
    problem = r"D2S306. none of the 4 saved Programs of forward\(\) answers this call: argument 'times' is 2"
    with pytest.raises(SignatureError, match=rf"{problem}, but it was 1 .*; argument 'times' is 2, but it was 3"):
        layer(x, times=2)
    with pytest.raises(SignatureError, match=r"D2S304. argument 'x' has size 4 in dimension 1"):
        layer(torch.ones(2, 4), times=3)
    with pytest.raises(SignatureError, match=r"D2S306(.|\n)*argument 'times' is True"):
        layer(x, times=True)
    save(layer, tmp_path / "again")
    assert (tmp_path / "again.d2s").read_bytes() == (tmp_path / "m.d2s").read_bytes()


def test_variants_may_be_specs_and_several_methods_have_them(tmp_path: Path) -> None:
    class Masked(Coder):
        def forward(self, x, mask=None):
            return x if mask is None else x * mask

    save(Masked(), tmp_path / "m", [X], methods={"encode": [X]},
         variants={"mask": [None, InputSpec([3])], "scale": [1.0, 2.0]})  # fmt: skip
    layer, x = load(tmp_path / "m"), torch.ones(2, 3)
    assert layer(x).eq(1).all() and layer(x, torch.zeros(3)).eq(0).all()
    assert layer.encode(x, 2.0).eq(4).all() and layer.encode(x).eq(2).all()


@pytest.mark.parametrize(
    ("variants", "problem"),
    [({"other": [1]}, "'other', which is no argument of forward"), ({"times": 3}, "has to be a list"),
     ({"times": []}, "has to be a list")],
)  # fmt: skip
def test_variants_that_are_none(tmp_path: Path, variants: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        save(Coder(), tmp_path / "m", [X], variants=variants)


def test_constants_of_calls_are_saved_where_the_spec_leaves_them_open(tmp_path: Path) -> None:
    model = to_static(Coder(), input_spec=[X])
    x = torch.full((2, 3), 40.0)
    model(x, noisy=True)
    model(x)
    model(x, times=2)
    save(model, tmp_path / "m")
    layer = load(tmp_path / "m").eval()
    eager = Coder().eval()
    for kwargs in ({}, {"noisy": True}, {"times": 2}):
        same_for(layer, eager, x, **kwargs)
    with pytest.raises(SignatureError, match="none of the 3 saved Programs"):
        layer(x, times=2, noisy=True)
    save(model, tmp_path / "m", {"x": X, "noisy": True, "times": 1})
    assert len(load(tmp_path / "m").programs()) == 1, "the spec says all"
    save(model, tmp_path / "m", variants={"times": [1]})
    assert len(load(tmp_path / "m").programs()) == 1, "variants say it"


def test_calls_with_other_sizes_are_one_program(tmp_path: Path) -> None:
    model = to_static(Coder())
    model(torch.ones(2, 3), noisy=True)
    for size in (2, 5, 7):
        model(torch.ones(size, 3))
    save(model, tmp_path / "m")
    layer = load(tmp_path / "m")
    assert len(layer.programs()) == 2
    same_for(layer, Coder().eval(), torch.randn(11, 3))
    with pytest.raises(SignatureError, match="has size 11 in dimension 0, but it was saved for 2"):
        layer(torch.randn(11, 3), noisy=True)


def test_one_tensor_in_two_places_stays_one(tmp_path: Path) -> None:
    @to_static
    def f(x, y):
        return x + y

    for size in (3, 4):
        x = torch.ones(size)
        f(x, x)
    save(f, tmp_path / "same")
    with pytest.raises(SignatureError, match="is another tensor than 'x'"):
        load(tmp_path / "same")(torch.ones(5), torch.ones(5))
    f(torch.ones(3), torch.ones(3))
    save(f, tmp_path / "any")
    x = torch.ones(6)
    assert load(tmp_path / "any")(x, x).eq(2).all() and load(tmp_path / "any")(x, x * 2).eq(3).all()


def test_calls_of_other_kinds_are_listed(tmp_path: Path) -> None:
    @to_static
    def f(x, names=None):
        return x.sum()

    f(torch.ones(3))
    f(torch.ones(3, 2))
    with pytest.raises(SignatureError) as caught:
        save(f, tmp_path / "f")
    text = str(caught.value)
    assert "D2S316" in text and "(x=float32[3, 2], names=None); (x=float32[3], names=None)" in text
    assert not list(tmp_path.iterdir())
    save(f, tmp_path / "f", [InputSpec([3])])
    g = to_static(lambda x, pair: x + pair[0])
    g(torch.ones(2), [torch.ones(2)])
    g(torch.ones(2), (torch.ones(2),))
    with pytest.raises(SignatureError, match=r"D2S316(.|\n)*'pair' is \(float32\[2\]\) in one and \[float32"):
        save(g, tmp_path / "g")


def test_sizes_that_cannot_be_one_program_are_listed(tmp_path: Path) -> None:
    @to_static
    def f(x):
        return x + torch.ones(3)

    f(torch.ones(3))
    f(torch.ones(1))
    with pytest.raises(SignatureError, match=r"D2S316.*x\.shape\[0\] == 3.*\(x=float32\[1\]; x=float32\[3\]\)"):
        save(f, tmp_path / "f")


def test_too_many_kinds_of_calls(tmp_path: Path) -> None:
    @to_static
    def f(x, n):
        return x * n

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for n in range(20):
            f(torch.ones(2), n)
    with pytest.raises(SignatureError, match=r"D2S316(.|\n)*20 kinds of calls, and at most 16"):
        save(f, tmp_path / "f")
    save(f, tmp_path / "f", variants={"n": [1, 2]})
    assert load(tmp_path / "f")(torch.ones(2), 2).eq(2).all()


def test_a_layer_for_training_alone_is_not_exported(tmp_path: Path) -> None:
    save(Coder(), tmp_path / "m", [X], modes=["train"])
    with pytest.raises(StorageError, match=r"D2S312. forward\(\) was saved for training only"):
        export_c(load(tmp_path / "m"), tmp_path / "c")


def test_the_usual_program_of_several_is_exported(tmp_path: Path) -> None:
    save(Coder(), tmp_path / "m", [X], variants={"times": [1, 2]})
    assert export_c(load(tmp_path / "m"), tmp_path / "c").is_dir()
