"""Every name of ``torch.Tensor`` is what it is in eager, or refused at the user's line; see ``tensor_surface``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.end_to_end import tensor_surface
from tests.oracle import check

ALL = list(tensor_surface.cases())
PARTS = 12


def _compare(cases: Iterable[tuple[str, str, Any, str]], least: int) -> None:
    counts: Counter[str] = Counter()
    different = []
    last, function = None, None
    for use, name, place, kind in cases:
        if last != (use, name):
            last, function = (use, name), tensor_surface.use_of(use, name)
        outcome = tensor_surface.outcome(function, place, kind)
        counts[outcome.partition(":")[0]] += 1
        if outcome.startswith("different"):
            different.append(f"{use} {name} {place.__name__} {kind}: {outcome}")
    print(dict(counts))
    assert not different, f"{len(different)}\n" + "\n".join(different[:40])
    assert counts["equal"] + counts["raises"] >= least


@pytest.mark.filterwarnings("ignore")
def test_some_names() -> None:
    _compare(ALL[::661], 60)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_all_names(part: int) -> None:
    size = -(-len(ALL) // PARTS)
    _compare(ALL[part * size : (part + 1) * size], 3000)


def methods(x: Any) -> Any:
    y = x * 2
    return x.abs, y.norm, y.__bool__, x.__str__, y


def method_of_a_path(x: Any) -> Any:
    if x.sum() > 0:
        y = x * 2
        m = y.abs
    else:
        m = (x * 3).neg
    return m()


def methods_in_a_list(x: Any) -> Any:
    found = []
    n = 0
    while n < x.sum():
        found.append((x + n).neg)
        n = n + 1
    return [m() for m in found]


def called_by_their_names(x: Any) -> Any:
    y = x * 2
    y.__setattr__("note", 3)
    first = y.__getattribute__("note"), y.sum().__float__(), y.sum().__bool__(), y.sum().__format__(".2f")
    y.__delattr__("note")
    return first, hasattr(y, "note"), x.__str__()


def given_back(x: Any) -> Any:
    y = x.clone()
    return y, y.float(), y.detach(), y.ravel()


def logical_of_a_leaf(x: Any) -> Any:
    y = x * 5
    x.logical_not_()
    return (x * 3).sum() + y.sum()


def complex_without_gradients(x: Any) -> Any:
    z = torch.complex(x, x)
    return z.nan_to_num_(), z.amax()


def sparse(x: Any) -> Any:
    return (x * 2).to_sparse().to_dense() + x.to_sparse().sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [
    method_of_a_path, methods_in_a_list, called_by_their_names, given_back, complex_without_gradients,
    logical_of_a_leaf, sparse,
])  # fmt: skip
def test_as_eager(function: Any) -> None:
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, 0.0])):
        check(function, (x,), (x.clone().requires_grad_(),), paths=("program",))


def test_methods_belong_to_the_callers_tensors() -> None:
    static, x = dy2static.to_static(methods), torch.tensor([3.0])
    first, second, third, fourth, y = static(x)
    assert first.__self__ is x and fourth.__self__ is x and second.__self__ is y and third.__self__ is y
    assert first() == 3 and second() == 6 and third() is True and fourth() == str(x)
    assert (type(first), type(second), type(fourth)) == (type(x.abs), type(x.norm), type(x.__str__))


def test_results_share_memory_where_eagers_do() -> None:
    for x in (torch.ones(2), torch.ones(2, requires_grad=True)):
        y, same, detached, flat = dy2static.to_static(given_back)(x)
        assert same is y and detached.data_ptr() == y.data_ptr() == flat.data_ptr() != x.data_ptr()


def hooked(x: Any) -> Any:
    x.register_hook(lambda grad: grad * 2)
    return x * 2


def hooked_after_it_is_accumulated(x: Any) -> Any:
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    return x * 2


@pytest.mark.parametrize("function", [hooked, hooked_after_it_is_accumulated])
def test_hooks_belong_outside(function: Any) -> None:
    with pytest.raises(Dy2StaticError, match="registered on a leaf is still there") as error:
        dy2static.to_static(function)(torch.ones(2, requires_grad=True))
    assert error.value.code == "D2S213"


def what_autograd_refuses(x: Any) -> Any:
    return x.amax()


def test_what_raises_under_autograd_only() -> None:
    x = torch.ones(2, dtype=torch.complex64)
    check(what_autograd_refuses, (x,), (x.requires_grad_(),), paths=("program",))


@pytest.mark.parametrize("name", ["to_mkldnn", "storage_type", "_is_view"])
def test_refused(name: str) -> None:
    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(tensor_surface.use_of("call", name))(torch.ones(2, 2), tensor_surface.argument)
    assert caught.value.code == "D2S213" and caught.value.location is not None
