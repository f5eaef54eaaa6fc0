"""Training loops of Lightning and Accelerate, and quantisation-aware training, of converted modules.

Parameters are equal to eager's, bit for bit.
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dy2static import to_static
from tests.oracle import same

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Net(nn.Module):
    """A loop as long as the data says, a branch, a buffer that counts, dropout and batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.step, self.out = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.2)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        h = torch.tanh(self.norm(self.inside(x)))
        n = 0
        while h.abs().mean() > 0.2 and n < 6:
            h = torch.tanh(self.step(self.drop(h))) * 0.7
            n += 1
        self.steps += n
        if h.mean() > 0:
            h = h * 2
        return self.out(h)


def data() -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 6, generator=generator)
    return DataLoader(TensorDataset(x, (x.sum(1) > 0).long() + (x[:, 0] > 1).long()), 8)


def same_states(one: nn.Module, other: nn.Module) -> None:
    same(dict(one.state_dict()), dict(other.state_dict()))


LIGHTNING: dict[str, dict[str, Any]] = {
    "plain": {}, "bf16-mixed": {"precision": "bf16-mixed"}, "bf16-true": {"precision": "bf16-true"},
    "64-true": {"precision": "64-true"}, "clipped": {"gradient_clip_val": 0.1},
    "accumulated": {"accumulate_grad_batches": 2}, "by hand": {"manual": True},
}  # fmt: skip


@pytest.mark.parametrize("how", LIGHTNING)
def test_lightning(how: str, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Trained(lightning.LightningModule):  # type: ignore[name-defined,misc]
        def __init__(self, convert: bool = False, manual: bool = False) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.net, self.losses = Net(), []
            self.automatic_optimization = not manual
            if convert:
                to_static(self.net)

        def forward(self, x: Any) -> Any:
            return self.net(x)

        def training_step(self, batch: Any, index: int) -> Any:
            x, y = batch
            loss = nn.functional.cross_entropy(self(x), y)
            if self.automatic_optimization:
                self.log("loss", loss)
            else:
                opt = self.optimizers()
                opt.zero_grad()
                self.manual_backward(loss)
                opt.step()
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            x, y = batch
            self.log("val", nn.functional.cross_entropy(self(x), y))

        def configure_optimizers(self) -> Any:
            opt = torch.optim.AdamW(self.parameters(), lr=0.01)
            return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.StepLR(opt, 2)}

    def fit(convert: bool) -> Any:
        lightning.seed_everything(3, verbose=False)
        options = dict(LIGHTNING[how])
        module = Trained(convert, options.pop("manual", False))
        trainer = lightning.Trainer(
            max_epochs=3, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=tmp_path / str(convert), **options)  # fmt: skip
        trainer.fit(module, data(), data())
        return module, trainer.checkpoint_callback.best_model_path

    (eager, _), (module, checkpoint) = fit(False), fit(True)
    assert module.losses == eager.losses and len(module.losses) == 15
    same_states(module, eager)
    x = torch.ones(8, 6, dtype=next(module.parameters()).dtype)
    again = Trained(convert=True).to(x.dtype).eval()
    again.load_state_dict(torch.load(checkpoint, weights_only=False)["state_dict"])
    assert torch.equal(again(x), module.eval()(x))


@pytest.mark.parametrize("before", [True, False], ids=["before prepare", "after prepare"])
@pytest.mark.parametrize("how", ["plain", "bf16", "accumulated"])
def test_accelerate(how: str, before: bool) -> None:
    """Mixed precision without autocast's cache: what that changes is told in docs/gradients.md."""
    accelerate = pytest.importorskip("accelerate")
    from accelerate.state import AcceleratorState, GradientState
    from accelerate.utils import AutocastKwargs

    options: dict[str, Any] = {
        "plain": {}, "accumulated": {"gradient_accumulation_steps": 2},
        "bf16": {"mixed_precision": "bf16", "kwargs_handlers": [AutocastKwargs(cache_enabled=False)]},
    }[how]  # fmt: skip

    def fit(convert: bool) -> tuple[list[float], nn.Module]:
        torch.manual_seed(0)
        AcceleratorState._reset_state(True)
        GradientState._reset_state()
        accelerator = accelerate.Accelerator(cpu=True, **options)
        net = Net()
        if convert and before:
            to_static(net)
        opt = torch.optim.AdamW(net.parameters(), lr=0.01)
        net, opt, batches, schedule = accelerator.prepare(
            net, opt, data(), torch.optim.lr_scheduler.StepLR(opt, 3))
        if convert and not before:
            to_static(net)
        losses = []
        for x, y in [batch for _ in range(3) for batch in batches]:
            with accelerator.accumulate(net):
                loss = nn.functional.cross_entropy(net(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
                schedule.step()
                opt.zero_grad()
            losses.append(loss.item())
        return losses, accelerator.unwrap_model(net)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (losses, eager), (mine, net) = fit(False), fit(True)
    assert mine == losses
    same_states(net, eager)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(64, 32), nn.Linear(32, 3)

    def forward(self, x: Any) -> Any:
        h = self.a(x).relu()
        if h.sum() > 20:
            h = h * 2
        return self.b(h)


def steps(net: nn.Module, features: int, count: int, between: Any = lambda step: None) -> list[float]:
    """Losses of some steps of SGD."""
    generator = torch.Generator().manual_seed(1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for step in range(count):
        between(step)
        x = torch.randn(5, features, generator=generator)
        loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def test_quantisation_aware_training_by_torchao() -> None:
    quantization = pytest.importorskip("torchao.quantization")
    from torchao.quantization.qat import QATConfig

    found = []
    for convert in (False, True):
        torch.manual_seed(0)
        net = Plain()
        config = quantization.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4)
        quantization.quantize_(net, QATConfig(config, step="prepare"))
        if convert:
            to_static(net)
        found.append((steps(net, 64, 8), net))
    assert found[0][0] == found[1][0]
    same_states(found[0][1], found[1][1])


def test_weights_that_torchao_keeps_as_int8() -> None:
    quantization = pytest.importorskip("torchao.quantization")
    found = []
    for convert in (False, True):
        torch.manual_seed(0)
        net = Plain()
        quantization.quantize_(net, quantization.Int8WeightOnlyConfig())
        if convert:
            to_static(net)
        found.append([net(torch.linspace(-1, scale, 128).reshape(2, 64)) for scale in (1.0, 5.0)])
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_quantisation_aware_training_by_torch() -> None:
    quantization = pytest.importorskip("torch.ao.quantization")

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            y = self.dequant(self.b(torch.relu(self.a(self.quant(x)))))
            if y.sum() > 0:
                y = y * 2
            return y

    found = []
    for convert in (False, True):
        torch.manual_seed(0)
        net = Net().train()
        net.qconfig = quantization.get_default_qat_qconfig("fbgemm")
        quantization.prepare_qat(net, inplace=True)
        if convert:
            to_static(net)
        freeze = lambda step: net.apply(quantization.disable_observer) if step == 8 else None
        found.append((steps(net, 6, 12, freeze), net))
    assert found[0][0] == found[1][0]
    same_states(found[0][1], found[1][1])
