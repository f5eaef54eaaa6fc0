"""Where flags of a Program cannot tell what was overwritten, PyTorch's autograd does; everywhere else they do."""

import pytest
import torch

from dy2static import to_static


def item_that_is_kept(x, n):
    items, total = [], 0
    for _ in range(int(n)):
        h = x * 2
        items.append(h)
        total = total + (h * h).sum()
    items[0].mul_(2)
    return total


def written_before_it_is_listed(x, n):
    items, total = [], 0
    for _ in range(int(n)):
        h = x * 2
        h[0] = 1.0
        items.append(h)
        total = total + (items[-1] * items[0]).sum()
    return total


def item_that_nothing_keeps(x, n):
    items, total = [], 0
    for _ in range(int(n)):
        h = x + 1
        items.append(h)
        total = total + h.sum()
    items[0].mul_(2)
    return total


def past_autograd(x, n):
    y, total = x * 2, 0
    for _ in range(int(n)):
        total = total + y.sin().sum()
        y.data.mul_(2)
    return total


def past_autograd_before_it_is_kept(x, n):
    y = x * 2
    for _ in range(int(n)):
        y.data.mul_(2)
    return y.sin()


@pytest.mark.parametrize(
    ("function", "chance"),
    [(item_that_is_kept, True), (written_before_it_is_listed, False), (item_that_nothing_keeps, False),
     (past_autograd, True), (past_autograd_before_it_is_kept, False)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_what_only_the_run_knows(function, chance):
    converted = to_static(function)
    converted(torch.ones(3, requires_grad=True), torch.tensor(2))
    (entry,) = converted._dispatch.cache.all()
    found = list(entry.ready.runner._halves.values())
    assert len(found) == 1
    assert (found[0] is None) is chance
