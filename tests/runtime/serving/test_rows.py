"""Which models' requests may be put together: what is let through computes each row by itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dy2static import InputSpec
from dy2static.exporting import artefact_to_export
from runtime.errors import StorageError
from runtime.export.inference import variant_for_inference
from runtime.serving.rows import require_independent_rows
from tests.runtime.serving.models import ROWS, Attention, Classifier, Settling

IMAGES = [InputSpec([None, 2, 8, 8], "float32", "x")]


def program(function, specs):
    return variant_for_inference(artefact_to_export(function, specs, "forward"), "forward").program


def views(x):
    y = x.view(x.shape[0], 2, 4).transpose(1, 2)
    return y.flatten(1) + x.reshape(-1, 8) + torch.zeros(x.shape[0], 8) + x.unsqueeze(-1).squeeze(-1)


def reductions(x):
    return x.softmax(-1), x.sum(1), x.max(dim=-1, keepdim=True)[0], x[:, 2:5], x.topk(3).values, torch.cat([x, x], 1)


def written(x):
    y = x.clone()
    y.select(1, 0).fill_(3.0)
    y.add_(1)
    return y


def by_size(x):
    if x.shape[1] > 4:
        return x * 2
    return x


def counted(x):
    for i in range(3):
        x = x * i + 1
    return x


class Images(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(64, 3))  # fmt: skip


GOOD = [(Classifier(), ROWS), (Attention(), [InputSpec([None, None], "int64", "ids")]), (Images(), IMAGES),
        (views, ROWS), (reductions, ROWS), (by_size, ROWS), (counted, ROWS), (written, ROWS)]  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize(("function", "specs"), GOOD, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_rows_by_themselves(function, specs):
    require_independent_rows(program(function, specs))
    eager = function.eval() if isinstance(function, nn.Module) else function
    shape = [one or 6 for one in specs[0].shape]
    whole = torch.randint(30, shape) if specs[0].dtype == torch.int64 else torch.randn(shape)
    with torch.no_grad():
        parts = [eager(one) for one in whole.split([1, 3, 2])]
        together = eager(whole)
    flat = [one if isinstance(one, tuple) else tuple(one.values()) if isinstance(one, dict) else (one,)
            for one in (together, *parts)]  # fmt: skip
    for wanted, *rows in zip(*flat):
        torch.testing.assert_close(torch.cat(rows), wanted, rtol=1e-5, atol=1e-5)


def means(x):
    return x - x.mean(0)


def total(x):
    return x / x.abs().max()


def turned(x):
    return x.flip(0)


def cumulated(x):
    return x.cumsum(0)


def crossed(x):
    return x @ x.t() @ x


def shifted(x):
    return x[torch.arange(x.shape[0]) - 1]


def many(x):
    return x / x.shape[0]


def few(x):
    return x.sum(0)


def number(x):
    return x, x.shape[0]


def beside(x):
    return x + torch.arange(8.0).reshape(8)[: x.shape[0]].unsqueeze(1)


def reordered(x):
    return x.t().reshape(-1, 8)


def decided(x):
    if x.sum() > 0:
        return x * 2
    return x


def noisy(x):
    return x + torch.rand_like(x)


def first_row(x):
    return x - x[0]


def pairs(x):
    return x.reshape(-1, 4)


def listed(x):
    return [x, 3]


class Training(nn.Module):
    def forward(self, x):
        return nn.functional.batch_norm(x, None, None, training=True)


BAD = [means, total, turned, cumulated, crossed, shifted, many, few, number, beside, reordered, decided, noisy,
       first_row, pairs, Settling(), Training()]  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("function", BAD, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_rows_that_know_of_each_other(function):
    with pytest.raises(StorageError) as raised:
        require_independent_rows(program(function, ROWS))
    assert raised.value.code == "D2S562" and raised.value.hint


def test_a_closed_first_dimension():
    with pytest.raises(StorageError, match="first dimension of input 'x' is not open"):
        require_independent_rows(program(means, [InputSpec([4, 8], "float32", "x")]))


def test_the_line_is_told():
    with pytest.raises(StorageError) as raised:
        require_independent_rows(program(means, ROWS))
    assert raised.value.location is not None and raised.value.location.text.strip() == "return x - x.mean(0)"
