"""An index that is out of range of a size that only a run knows: the words are those of a subscript."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static


def assigned(x):
    y = x[x > 0].clone()
    y[1] = 3.0
    return y


def added_to(x):
    y = x[x > 0].clone()
    y[2] += x.sum()
    return y


FUNCTIONS = {
    "of a mask": lambda x: x[x > 0][0], "last of a mask": lambda x: x[x > 0][-1], "third": lambda x: x[x > 0][2],
    "rows of a mask": lambda x: x.view(-1, 1)[x > 0][1, 0], "column": lambda x: x.view(1, -1)[:, x > 0][0, 2],
    "nonzero": lambda x: x.nonzero()[1], "nonzero of columns": lambda x: x.nonzero()[0, 0],
    "new": lambda x: x[x > 0][None, 1], "dots": lambda x: x[x > 0][..., 1], "select": lambda x: x[x > 0].select(0, 1),
    "number": lambda x: x[x > 0][int(x[0] > 0)], "assigned": assigned, "added to": added_to,
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_words(function):
    static = to_static(function)
    for x in (torch.ones(3), torch.tensor([1.0, -1.0, -1.0]), -torch.ones(3), torch.ones(2)):
        said = []
        for one in (function, static):
            try:
                said.append(one(x))
            except IndexError as error:
                said.append(str(error))
        assert said[0] == said[1] if isinstance(said[0], str) or said[0] is None else torch.equal(*said)
