"""``out=`` of a view that autograd does not let be written: PyTorch speaks of ``out=`` before it looks at the view."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static


def arange(r, x):
    torch.arange(3, out=r)


def added(r, x):
    torch.add(x, 1, out=r)


def in_place(r, x):
    r.add_(1)


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize("write", [arange, added, in_place])
def test_the_first_complaint(write, path, needs):
    def f(x, y):
        p = x * 2
        r = torch.ones(3)
        if y.sum() > 0 or not path:
            with torch.no_grad():
                r = p[:]
        write(r, x)
        return r * 1

    said = []
    for function in (f, to_static(f)):
        x = torch.ones(3, requires_grad=needs)
        try:
            said.append(function(x, torch.ones(2)))
        except RuntimeError as error:
            said.append(str(error).splitlines()[0])
    assert said[0] == said[1] if isinstance(said[0], str) else torch.equal(*said)
