"""In-place changes of what a tensor is: every operator that makes a tensor another view of its memory, and assignments,
on the caller's tensors and on those made inside, in straight code, branches and loops."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from runtime.ops import aten
from runtime.storage.allowed import allowed_operators
from tests.oracle import check


def _all_tagged() -> list[str]:
    names = [name[6:].partition(".") for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    found = [f"aten.{name}.{overload or 'default'}" for name, _, overload in names]
    return [name for name in found if torch.Tag.inplace_view in aten.resolve(name).tags]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "aten.as_strided_.default": lambda x: x.as_strided_((2,), (1,)),
    "aten.detach_.default": lambda x: x.detach_(),
    "aten.resize_as_.default": lambda x: x.resize_as_(torch.ones(2)),
    "aten.set_.default": lambda x: x.set_(),
    "aten.set_.source_Tensor": lambda x: x.set_(torch.ones(4)),
    "aten.squeeze_.default": lambda x: x.squeeze_(),
    "aten.squeeze_.dim": lambda x: x.squeeze_(1),
    "aten.squeeze_.dims": lambda x: x.squeeze_((1,)),
    "aten.swapaxes_.default": lambda x: x.swapaxes_(0, 1),
    "aten.swapdims_.default": lambda x: x.swapdims_(0, 1),
    "aten.t_.default": lambda x: x.t_(),
    "aten.transpose_.default": lambda x: x.transpose_(0, 1),
    "aten.unsqueeze_.default": lambda x: x.unsqueeze_(0),
    "aten.resize_.default": lambda x: x.resize_(2, 2),
    "requires_grad_": lambda x: x.requires_grad_(),
    "requires_grad": lambda x: setattr(x, "requires_grad", True),
    "data": lambda x: setattr(x, "data", torch.ones(4)),
    "grad": lambda x: setattr(x, "grad", torch.ones_like(x)),
    "real": lambda x: setattr(x, "real", torch.ones_like(x)),
    "torch.ops": lambda x: torch.ops.aten.unsqueeze_(x, 0),
    "torch": lambda x: torch.detach_(x),
}
_STORAGES = {"aten.set_.source_Storage", "aten.set_.source_Storage_storage_offset",
             "aten.set_.source_Tensor_storage_offset"}  # fmt: skip
_NAMES_OF_DIMENSIONS = {"aten.squeeze_.dimname", "aten.rename_.default"}
"""Of PyTorch before 2.13: a kernel that raises whatever it is given, and one that its stand-ins do not have."""


def test_every_tagged_operator_is_tried() -> None:
    assert set(_all_tagged()) - _STORAGES - _NAMES_OF_DIMENSIONS <= CHANGES.keys()
    assert set(allowed_operators()) & set(_all_tagged()) <= CHANGES.keys()


@pytest.mark.skipif(
    "dimname" not in torch.ops.aten.squeeze_.overloads(), reason="this PyTorch has no names of dimensions"
)
@pytest.mark.filterwarnings("ignore:Named tensors")
def test_torch_itself_refuses_the_name_of_a_dimension() -> None:
    with pytest.raises(RuntimeError, match="does not yet support"):
        torch.ones(2, 1, names=("a", "b")).squeeze_("b")


def argument(change: Any) -> Any:
    def f(x: Any) -> Any:
        change(x)
        return x * 2

    return f


def result_and_argument(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = change(x)
        return y, x

    return f


def argument_in_branch(change: Any) -> Any:
    def f(x: Any) -> Any:
        if x.sum() > 4:
            change(x)
        return x * 2

    return f


def item(change: Any) -> Any:
    def f(x: Any) -> Any:
        items = [x]
        change(items[0])
        return items

    return f


def local(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        change(y)
        return y * 2, y

    return f


def view(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.view(3, 1)
        change(y)
        y.add_(1)
        return y, x

    return f


def local_in_branch(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        if x.sum() > 4:
            change(y)
        return y * 2

    return f


def of_the_branch(change: Any) -> Any:
    def f(x: Any) -> Any:
        if x.sum() > 4:
            y = x * 1
            change(y)
            z = y.sum()
        else:
            z = x.sum() - 1
        return z

    return f


def in_loop(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        n = 0
        while n < x.sum():
            change(y)
            n = n + 2
        return y * 2

    return f


def of_the_loop(change: Any) -> Any:
    def f(x: Any) -> Any:
        n = 0
        s = x.sum()
        while n < x.sum():
            y = x * n
            change(y)
            s = s + y.sum()
            n = n + 2
        return s

    return f


def with_aliases(change: Any) -> Any:
    def f(x: Any) -> Any:
        z = x
        v = x.view(-1)
        change(x)
        z.mul_(2)
        return v, z, x

    return f


def local_with_aliases(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        v = y.view(-1)
        change(y)
        y.mul_(2)
        return v, y

    return f


def written(change: Any) -> Any:
    def f(x: Any) -> Any:
        change(x)
        x.add_(1)

    return f


def without_gradients(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        with torch.no_grad():
            change(y)
        return y * 2, y

    return f


def view_without_gradients(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = (x * 1).view(3, 1)
        with torch.no_grad():
            change(y)
        return y * 2

    return f


def view_made_without(change: Any) -> Any:
    def f(x: Any) -> Any:
        with torch.no_grad():
            y = x.view(3, 1)
        change(y)
        return y * 2

    return f


def view_that_is_read(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.view(3, 1)
        change(y)
        return y * 2

    return f


def one_of_several(change: Any) -> Any:
    def f(x: Any) -> Any:
        y, z = (x * 1).view(3, 1).split([2, 1])
        change(y)
        return y * 2, z

    return f


def row_of_a_loop(change: Any) -> Any:
    def f(x: Any) -> Any:
        total = x.sum() * 0
        for row in x.view(3, 1, 1) * 1:
            change(row)
            total = total + row.sum()
        return total

    return f


def read_before_and_after(change: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        z = y * y
        change(y)
        return z.sum() + (y * 3).sum()

    return f


FORMS = [argument, result_and_argument, argument_in_branch, item, local, view, local_in_branch, of_the_branch, in_loop,
         of_the_loop, with_aliases, local_with_aliases, written, without_gradients, view_without_gradients,
         view_made_without, view_that_is_read, one_of_several, row_of_a_loop, read_before_and_after]  # fmt: skip


_OTHER_WORDS = {
    ("aten.as_strided_.default", row_of_a_loop),  # PyTorch says how large the memory is, of which a row is a part
    *(("real", form) for form in (argument, result_and_argument, argument_in_branch, item, with_aliases, written)),
}
"""The same error, in other words: "a view of a leaf" for a leaf."""
_NO_WRITES = {read_before_and_after}
"""For autograd they are writes, so that it refuses to walk back through what was computed before; ours does not
(docs/gradients.md)."""


def _of_ones(needs: bool, times: float = 1.0) -> torch.Tensor:
    return (torch.ones(3, 1) * times).requires_grad_(needs)


@pytest.mark.parametrize("needs", [False, True], ids=["plain", "with a gradient"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_equal_or_refused(form: Any, needs: bool) -> None:
    counts: Counter[str] = Counter()
    different = []
    for name, change in CHANGES.items():
        try:
            check(form(change), (_of_ones(needs),), (_of_ones(needs, 2),), paths=("program",))
            counts["equal"] += 1
        except dy2static.Dy2StaticError as error:
            assert error.code != "D2S200" and error.location is not None
            counts[str(error.code)] += 1
        except Exception as error:
            if (name, form) not in _OTHER_WORDS and form not in _NO_WRITES:
                different.append((name, str(error).splitlines()[0]))
    print(dict(counts))
    assert not different, "\n".join(map(str, different))
    assert counts["equal"] >= 2


PARAMETER = torch.nn.Parameter(torch.ones(3, 1))
GLOBAL = torch.ones(3, 1)


class Holder(torch.nn.Module):
    def __init__(self, change: Any) -> None:
        super().__init__()
        self.change = change
        self.register_buffer("held", torch.ones(3, 1))

    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            self.change(self.held)
        return x + self.held


SHAPES = sorted(CHANGES.keys() - {"aten.detach_.default", "torch", "real", "requires_grad_", "requires_grad", "grad"})


@pytest.mark.parametrize("name", SHAPES)
def test_parameters_buffers_and_globals_keep_their_shape(name: str) -> None:
    change = CHANGES[name]

    def of_global(x: Any) -> Any:
        change(GLOBAL)
        return x + GLOBAL

    def of_parameter(x: Any) -> Any:
        with torch.no_grad():
            change(PARAMETER)
        return x + PARAMETER

    module = Holder(change)
    for function in (of_global, of_parameter, copy.copy(module)):
        with pytest.raises(dy2static.Dy2StaticError) as caught:
            dy2static.to_static(function)(torch.ones(3, 1))
        assert caught.value.code in ("D2S213", "D2S223")
    assert GLOBAL.shape == PARAMETER.shape == module.held.shape == (3, 1)


def test_detach_of_a_view_of_the_callers() -> None:
    def f(x: Any) -> Any:
        x.detach_()
        return x * 2

    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(f)(torch.ones(3)[:2])
    assert caught.value.code == "D2S221"


def the_callers_on_a_path(x):
    r = x if x.sum() > 0 else torch.ones(3)
    r.unsqueeze_(0)
    return r * 1, tuple(x.shape)


def one_of_two(x):
    p, r = torch.ones(3), x * 2
    q = p if x.sum() > 0 else r
    q.unsqueeze_(0)
    return q * 1, tuple(p.shape), tuple(r.shape)


def what_another_is_on_a_path(x):
    p = torch.ones(3)
    q = p if x.sum() > 0 else x * 2
    p.unsqueeze_(0)
    return p * 1, q * 1


def in_an_iteration(x):
    p, q = torch.ones(3), x * 2
    for _ in range(int(x.sum())):
        q = p
    q.unsqueeze_(0)
    return q * 1, tuple(p.shape)


@pytest.mark.parametrize(
    "function", [the_callers_on_a_path, one_of_two, what_another_is_on_a_path, in_an_iteration]
)
def test_of_a_tensor_that_is_another_one_on_a_path(function):
    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(function)(torch.ones(3))
    assert caught.value.code == "D2S223"


def test_of_a_tensor_that_a_branch_made():
    def f(x):
        q = x + 1 if x.sum() > 0 else x * 2
        q.unsqueeze_(0)
        return q

    check(f, (torch.ones(3),), (-torch.ones(3),))
