"""A loaded layer is an nn.Module in every way that people use one."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import runtime
from runtime.errors import SignatureError
from runtime.translated import TranslatedLayer
from tests.oracle import same
from tests.runtime.storage.goldens import Net, golden, made

ROOT = Path(__file__).parents[3]
X = torch.linspace(-3, 4, 20).view(5, 4)


@pytest.fixture
def layer() -> TranslatedLayer:
    return runtime.load(golden(2)).train()


def outcome(module: Callable[..., Any], parameters: list[nn.Parameter], x: torch.Tensor = X) -> list[Any]:
    """Results and gradients from one seed."""
    for one in parameters:
        one.grad = None
    torch.manual_seed(0)
    result = module(x)
    result["h"].square().sum().backward()
    return [result["h"], result["steps"], *result["rows"], *(one.grad for one in parameters)]


def through_a_file(layer: Any) -> Any:
    stream = io.BytesIO()
    torch.save(layer, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=False)


def saved_again(layer: TranslatedLayer, folder: Path) -> TranslatedLayer:
    return runtime.load(runtime.save(layer, folder / "again")).train(layer.training)


COPIES = [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer)), through_a_file]


@pytest.mark.parametrize("copied", [*COPIES, None])
def test_copies_are_whole_and_independent(layer: TranslatedLayer, copied: Any, tmp_path: Path) -> None:
    other = saved_again(layer, tmp_path) if copied is None else copied(layer)
    same(outcome(other, list(other.parameters())), outcome(layer, list(layer.parameters())), tolerance=1e-5)
    assert other.metadata == layer.metadata and other.metadata is not layer.metadata
    assert other.methods == layer.methods and len(other.programs()) == len(layer.programs()) == 2
    assert other.out.weight is other.embed.weight and other.alias is other.out
    with torch.no_grad():
        other.table.add_(1)
    assert layer.table[0] == 0 and layer.calls == 1
    model = made() if copied is None else copied(made())  # copies of PyTorch's own do not keep memory shared, files do
    shared = model.head.data_ptr() == model.table.data_ptr()
    assert (other.head.data_ptr() == other.table.data_ptr()) is shared and other.head[0] == int(shared)
    name = "copied" if copied is None else "again"
    again = runtime.load(runtime.save(other, tmp_path / name)).train()
    same(outcome(again, list(again.parameters())), outcome(other, list(other.parameters())), tolerance=1e-5)


def test_a_shallow_copy_shares_tensors(layer: TranslatedLayer) -> None:
    other = copy.copy(layer)
    assert other.table is layer.table
    same(outcome(other, list(other.parameters())), outcome(layer, list(layer.parameters())), tolerance=1e-5)


def test_to_a_device_and_back(layer: TranslatedLayer) -> None:
    moved = copy.deepcopy(layer).to("meta")
    assert {one.device.type for one in (*moved.state_dict().values(), moved.hidden)} == {"meta"}
    with pytest.raises(SignatureError, match="D2S309(.|\n)*on the device 'meta' they have no values"):
        moved.to_empty(device="cpu")
    assert moved.table.is_meta and layer.to("cpu").decode(X).shape == (5, 4)


def test_weights_come_later(tmp_path: Path, layer: TranslatedLayer) -> None:
    """A layer without constants may be loaded without values, and be given them."""
    import dy2static

    dy2static.save(nn.Linear(4, 2), tmp_path / "linear", [dy2static.InputSpec([None, 4])])
    expected = runtime.load(tmp_path / "linear")
    empty = runtime.load(tmp_path / "linear", device="meta").to_empty(device="cpu")
    empty.load_state_dict(runtime.load_state(tmp_path / "linear"))
    assert torch.equal(empty(X), expected(X))


@pytest.mark.parametrize("convert", [
    lambda m: m.half(), lambda m: m.double(), lambda m: m.bfloat16(), lambda m: m.to(torch.float64),
    lambda m: m.to("cpu", torch.float16), lambda m: m.type(torch.float64), lambda m: nn.Sequential(m).half(),
])  # fmt: skip
def test_another_dtype_is_one_error_at_once(layer: TranslatedLayer, convert: Any) -> None:
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    with pytest.raises(SignatureError, match=r"D2S309. '.*' cannot become torch\.\w+: the saved Program") as e:
        convert(layer)
    assert e.value.location is not None and e.value.location.file == __file__
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert {value.dtype for value in before.values()} == {torch.float32, torch.int64}
    untouched = runtime.load(golden(2)).train()
    same(outcome(layer, list(layer.parameters())), outcome(untouched, list(untouched.parameters())), tolerance=1e-5)


def test_what_changes_no_dtype_works(layer: TranslatedLayer) -> None:
    layer.float().to(torch.float32).cpu().requires_grad_(False).requires_grad_(True)
    layer.share_memory().to(memory_format=torch.channels_last)
    layer.apply(lambda module: None).zero_grad()
    assert layer.table.is_shared() and layer.head.data_ptr() == layer.table.data_ptr()
    outcome(layer, list(layer.parameters()))


def test_state_dicts_go_both_ways_with_strict_names(layer: TranslatedLayer) -> None:
    model = Net()
    assert not any(model.load_state_dict(layer.state_dict()))
    with torch.no_grad():
        model.encoder[0].weight.mul_(2)
    assert not any(layer.load_state_dict(model.state_dict()))
    assert torch.equal(layer.get_parameter("encoder.0.weight"), model.encoder[0].weight)
    with pytest.raises(RuntimeError, match=r"Missing key.*table"):
        layer.load_state_dict({})
    optimizer = torch.optim.Adam(layer.parameters())
    outcome(layer, list(layer.parameters()))
    optimizer.step()
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")  # torch, of Python 3.13.0
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("training", [False, True])
def test_torch_compile_around_it(layer: TranslatedLayer, training: bool) -> None:
    """The layer runs as it is, between what is compiled."""
    reference = copy.deepcopy(layer).train(training)
    compiled = torch.compile(layer.train(training), backend="eager")
    for _ in range(2):
        expected = outcome(reference, list(reference.parameters()))
        same(outcome(compiled, list(layer.parameters())), expected, tolerance=1e-5)
    head = nn.Linear(4, 2)
    whole = torch.compile(lambda x: head(torch.relu(layer.decode(x * 2))) + 1, backend="eager")
    assert torch.equal(whole(X), head(torch.relu(layer.decode(X * 2))) + 1)
    with pytest.raises(SignatureError, match="D2S304"):
        compiled(torch.ones(5, 3))
    torch.compiler.reset()


def test_inside_another_module(layer: TranslatedLayer, tmp_path: Path) -> None:
    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = layer
            self.head = nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.body(x)["h"])

    model = Head()
    model(X).sum().backward()
    assert all(one.grad is not None for one in (model.head.weight, layer.get_parameter("encoder.0.weight")))
    model.eval()
    assert not layer.training and "body.encoder.0.weight" in model.state_dict()
    other = copy.deepcopy(model)
    assert torch.equal(other(X), model(X))


DISTRIBUTED = """
import os, sys
sys.path.insert(0, {root!r})
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
import runtime
from tests.oracle import same
from tests.runtime.storage.goldens import golden, made

rank = int(os.fork() == 0)
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://{store}", rank=rank, world_size=2)
layer, model = runtime.load(golden(2)), made().eval()
for module in (layer, model):
    ddp = DistributedDataParallel(module, find_unused_parameters=True)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    for step in range(3):
        torch.manual_seed(10 * step + rank)
        optimizer.zero_grad()
        ddp(torch.randn(3 + rank, 4))["h"].square().sum().backward()
        optimizer.step()
for (name, value), other in zip(layer.state_dict().items(), model.state_dict().values()):
    assert torch.allclose(value, other, rtol=1e-5, atol=1e-6), name
weight = layer.get_parameter("encoder.0.weight").detach()
gathered = [torch.zeros_like(weight) for _ in range(2)]
dist.all_gather(gathered, weight)
assert torch.equal(*gathered) and not torch.equal(weight, made().encoder[0].weight)
dist.destroy_process_group()
if rank:
    os._exit(0)
_, status = os.wait()
assert status == 0
print("same")
"""


@pytest.mark.slow
def test_two_processes_with_ddp(tmp_path: Path) -> None:
    script = DISTRIBUTED.format(root=str(ROOT), store=tmp_path / "store")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False,
                          timeout=300)  # fmt: skip
    assert done.stdout == "same\n", done.stderr


class Shrinking(nn.Module):
    """A loop whose length depends on data."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.inner(x)
        while h.norm() > 1.5:
            h = torch.tanh(h) * 0.5
        return h.square().sum()


def given(module: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    """The module as a function of a weight."""
    return lambda weight: torch.func.functional_call(module, {"inner.weight": weight}, (torch.ones(2, 3),))


def tangents(module: nn.Module, needs_gradient: bool) -> list[Any]:
    with torch.autograd.forward_ad.dual_level():
        x = torch.ones(2, 3, requires_grad=needs_gradient)
        result = module(torch.autograd.forward_ad.make_dual(x, x.detach() * 2))
        return [part.detach() for part in torch.autograd.forward_ad.unpack_dual(result)]


TRANSFORMS: list[Callable[[nn.Module], Any]] = [
    lambda module: torch.func.grad(given(module))(torch.eye(3)),
    lambda module: torch.func.vjp(given(module), torch.eye(3))[1](torch.ones(())),
    lambda module: torch.func.jvp(given(module), (torch.eye(3),), (torch.ones(3, 3),)),
    lambda module: torch.func.jacrev(given(module))(torch.eye(3)),
    lambda module: torch.func.hessian(given(module))(torch.eye(3)),
    lambda module: torch.func.grad(module)(torch.ones(2, 3)),
    lambda module: tangents(module, needs_gradient=False),
    lambda module: tangents(module, needs_gradient=True),
    lambda module: torch.jit.trace(module, (torch.ones(2, 3),), check_trace=False)(torch.ones(2, 3)).detach(),
]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.torch.jit.(trace|script):DeprecationWarning")
@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("frozen", [False, True])
def test_transforms_around_it(backend: str, frozen: bool, tmp_path: Path) -> None:
    """Of the loaded layer and of the converted one."""
    import dy2static

    model = Shrinking().requires_grad_(not frozen)
    dy2static.save(model, tmp_path / "model", [dy2static.InputSpec([None, 3])])
    loaded = dy2static.load(tmp_path / "model", backend=backend).train()
    converted = dy2static.to_static(copy.deepcopy(model), backend=backend)
    for number, transform in enumerate(TRANSFORMS):
        expected = transform(model)
        for module in (loaded, converted):
            for _ in range(2):
                module(torch.ones(2, 3))
                same(transform(module), expected, f"transform {number}", tolerance=1e-5)
