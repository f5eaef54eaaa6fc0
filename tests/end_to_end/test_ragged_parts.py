"""``split`` into as many parts as only the run knows, and what becomes of the parts."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check


def _rows(count, seed):
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


CALLS = [
    [_rows(10, 0), torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2, 2])], [_rows(10, 1), torch.zeros(10, dtype=torch.long)],
    [_rows(6, 2), torch.arange(6)],
]


def by_method(x, group):
    return [part.max(0).values for part in x.split(torch.bincount(group).tolist())]


def by_function(x, group):
    parts = torch.split(x, torch.bincount(group).tolist(), dim=0)
    return torch.stack([part.mean(0) for part in parts]), len(parts), type(parts)


def attended(x, group):
    found = []
    for part in x.split(split_size=torch.bincount(group).tolist()):
        found.append((part @ part.T).softmax(-1) @ part)
    return torch.cat(found)


def padded(x, group):
    parts = x.split(torch.bincount(group).tolist())
    return pad_sequence(parts, batch_first=True), pad_sequence([part[:, 0] for part in parts], padding_value=-1.0)


def of_too_few(x, group):
    return [part.sum() for part in torch.split(x, torch.bincount(group)[1:].tolist())]


@pytest.mark.parametrize("function", [by_method, by_function, attended, padded, of_too_few], ids=lambda f: f.__name__)
def test_as_eager(function):
    check(function, *CALLS)


def test_parts_are_not_written():
    def function(x, group):
        for part in x.split(torch.bincount(group).tolist()):
            part.add_(1)
        return x

    with pytest.raises(TraceError, match="D2S222"):
        to_static(function)(*CALLS[0])
