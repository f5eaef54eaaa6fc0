"""``torch.Size`` behaves as in eager, whether its sizes are plain numbers or only known while the Program runs."""

from __future__ import annotations

import pytest
import torch

from tests import oracle

CASES = {
    "a staged size after": lambda x: x.new_zeros(x.shape[:1] + (int((x > 0).sum()),)),
    "a staged size before": lambda x: x.new_zeros((int((x > 0).sum()),) + x.shape[:1]),
    "staged ones around": lambda x: x.new_zeros(x.size()[:1] + (int((x > 0).sum()),) + x.size()[2:]),
    "in variables": lambda x: joined(x.shape[:1], (int((x > 0).sum()),), x),
    "sums of size and tuple": lambda x: (x.shape + (2,), (2,) + x.shape, x.shape * 2, 2 * x.shape, x * 1),
    "as result": lambda x: (x.shape, x.size(), x.shape[:1], x * 1),
    "text": lambda x: (str(x.shape), f"{x.shape}", repr(x.size()), "%s" % (x.shape,), "{}".format(x.shape), x * 1),
    "text of staged sizes": lambda x: (str(x[x > 0].shape), f"{x[x > 0].shape}", repr(x[x > 0].shape), x * 1),
    "compared": lambda x: (x.shape == torch.Size([2, 3]), torch.Size([2, 3]) == x.shape, x.shape == (2, 3), x * 1),
    "ordered": lambda x: (x.shape < (3, 3), x.shape >= torch.Size([1]), x.shape != (2, 3), x * 1),
    "type": lambda x: (type(x.shape) is torch.Size, isinstance(x.shape, torch.Size), isinstance(x.shape, tuple), x * 1),
    "content": lambda x: (x.shape.numel(), len(x.shape), list(x.shape), tuple(x.shape), 3 in x.shape, x * 1),
    "counted": lambda x: (x.shape.count(2), x.shape.index(3), max(x.shape), sum(x.shape), x.shape[-1], x * 1),
    "a key": lambda x: ({x.shape: 1}[torch.Size([2, 3])], hash(x.shape) == hash((2, 3)), x * 1),
    "on one path": lambda x: (x.shape if x.sum() > 0 else torch.Size([2, 3]), x * 2),
    "another on one path": lambda x: (x.shape if x.sum() > 0 else x[:1].shape, x * 2),
    "made by hand": lambda x: (torch.Size(x.shape[::-1]), torch.Size([abs(int(x.sum())), 2]), x * 1),
    "broadcast": lambda x: (torch.broadcast_shapes(x.shape, (1, 3)) + (int(x.sum()),), x * 1),
    "into torch": lambda x: (torch.zeros(x.shape), torch.ones(*x.shape), x.expand(2, *x.shape), x.view(x.shape[::-1])),
    "truth": lambda x: (x.shape is not None, not x.shape, bool(x.shape), x.sum().shape == (), x * 1),
}


TEXT = {
    "lists": lambda x: (str([int(x.sum()), 2]), f"{[int(x.sum())]}", repr([x.sum().item(), None, "a"]), x * 1),
    "tuples": lambda x: (str((int(x.sum()),)), str((int(x.sum()), True)), str(((), [int(x.sum())])), x * 1),
    "dicts": lambda x: (str({"a": int(x.sum()), 2: [x.sum().item()]}), str({}), x * 1),
    "tensors": lambda x: (str([x, x * 2]), f"{(x.sum(), 1)}", x * 1),
    "choices": lambda x: (str([None if x.sum() > 0 else 1, 2]), x * 1),
    "other objects": lambda x: (str([print, torch.float32, x.shape, x.dtype, int(x.sum())]), x * 1),
    "a specification": lambda x: f"{[int(x.sum())]:>3}",
    "in place of a field": lambda x: ("{} {!r}".format([int(x.sum())], (int(x.sum()),)), x * 1),
}


@pytest.mark.parametrize("name", TEXT)
def test_text_of_containers(name):
    oracle.check(TEXT[name], (torch.ones(2, 3),), (-torch.ones(2, 3),), (torch.eye(2, 3),))


def joined(size, more, x):
    return x.new_zeros(size + more)


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name):
    oracle.check(CASES[name], (torch.ones(2, 3),), (-torch.ones(2, 3),), (torch.eye(2, 3),))
