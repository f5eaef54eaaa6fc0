"""Arguments that are no plain blocks of memory: elements that are one, lazy conjugates and negatives, quantized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from dy2static import InputSpec, to_static
from runtime.errors import Dy2StaticError
from tests.oracle import check, same


def windows(rows: int = 3) -> torch.Tensor:
    """Rows of two that lie one element apart: the second of one is the first of the next."""
    return torch.as_strided(torch.arange(1.0, 13.0), (rows, 2), (1, 1))


OVERLAPPING: dict[str, Callable[[], torch.Tensor]] = {
    "windows": windows,
    "expanded": lambda: torch.arange(1.0, 3.0).expand(3, 2),
    "of_one_element": lambda: torch.ones(1).expand(3, 2),
    "a_part_of_expanded": lambda: torch.arange(1.0, 5.0).expand(4, 4)[1:, :2],
    "unfolded": lambda: torch.arange(1.0, 8.0).unfold(0, 3, 1)[:3, :2],
    "not_at_all": lambda: torch.arange(1.0, 7.0).reshape(3, 2),
    "with_gaps": lambda: torch.arange(1.0, 13.0).reshape(3, 4)[:, ::2],
}


def write_row(x: Any) -> Any:
    x[0].mul_(2)
    return x, x.sum()


def write_element(x: Any) -> Any:
    x[1, 0] += 5
    return x * 1


def write_on_a_path(x: Any) -> Any:
    if x.sum() > 0:
        x[1].mul_(3)
    else:
        x[0].add_(1)
    return x + 1


def write_in_a_loop(x: Any) -> Any:
    for i in range(int(x[0, 0]) + 1):
        x[i].add_(1)
    return x.clone()


def write_all(x: Any) -> Any:
    x.add_(1)
    return x


def write_view(x: Any) -> Any:
    y = x[1:]
    y[0].zero_()
    return y, x


def only_read(x: Any) -> Any:
    return (x * 2, x[0]) if x.sum() > 0 else (x, x[1])


WRITES = (write_row, write_element, write_on_a_path, write_in_a_loop, write_all, write_view, only_read)


@pytest.mark.parametrize("kind", OVERLAPPING)
@pytest.mark.parametrize("function", WRITES)
def test_elements_that_are_one_memory(function: Any, kind: str) -> None:
    """A write to one is seen in the other, or eager's error is raised; afterwards the argument holds what it holds
    there. The values are compared by clones: the oracle copies arguments, which would make them dense."""
    static = to_static(function)
    for make in (OVERLAPPING[kind], OVERLAPPING["not_at_all"], OVERLAPPING[kind]):
        given, expected = make(), make()
        found = []
        for one, x in ((static, given), (function, expected)):
            try:
                found.append(one(x))
            except RuntimeError as error:
                found.append(str(error).partition(".")[0])
        same(found[0], found[1])
        if not str(found[1]).startswith("unsupported"):
            same(given, expected)


def test_sizes_that_vary() -> None:
    static = to_static(write_row)
    for make in (lambda rows: torch.arange(2.0 * rows).reshape(rows, 2), windows):
        for rows in (3, 4, 5, 6):
            given, expected = make(rows), make(rows)
            same((static(given), given), (write_row(expected), expected))


def test_places_that_vary() -> None:
    """The memory that elements or arguments share begins elsewhere in another call."""
    one, two = to_static(write_row), to_static(lambda a, b: (a.mul_(2), b + 0)[1])
    for place in (0, 2, 5, 0):
        given, expected = torch.arange(20.0), torch.arange(20.0)
        ours, theirs = (f(x.as_strided((3, 2), (1, 1), place))[1] for f, x in ((one, given), (write_row, expected)))
        assert torch.equal(ours, theirs) and torch.equal(given, expected)
        for start, other in ((place, place + 1), (place + 1, place)):
            given, expected = torch.arange(20.0), torch.arange(20.0)
            ours, theirs = (f(x[start : start + 3], x[other : other + 3])
                            for f, x in ((two, given), (two.function, expected)))  # fmt: skip
            assert torch.equal(ours, theirs) and torch.equal(given, expected)


class Writing(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", windows())

    def forward(self, x: Any) -> Any:
        x[0].mul_(2)
        return x


def test_a_loaded_one_refuses_them(tmp_path: Any) -> None:
    """It was saved for tensors whose elements are all their own."""
    loaded = dy2static.load(dy2static.save(Writing(), tmp_path / "writing", [InputSpec([None, 2])]))
    assert loaded(torch.ones(2, 2)).sum() == 6
    x = windows()
    with pytest.raises(Dy2StaticError, match="some of its elements are one memory") as error:
        loaded(x)
    assert error.value.code == "D2S310" and torch.equal(x, windows())


def test_buffers_are_refused() -> None:
    class Net(Writing):
        def forward(self, x: Any) -> Any:
            self.table[0].mul_(2)
            return self.table + x

    with pytest.raises(Dy2StaticError, match="elements of 'table' are one memory") as error:
        to_static(Net())(torch.zeros(2))
    assert error.value.code == "D2S222"


def conjugate() -> torch.Tensor:
    return torch.tensor([1 + 2j, 3 - 1j]).conj()


LAZY: dict[str, Callable[[torch.Tensor], Any]] = {
    "what_it_is": lambda x: (x.is_conj(), x.is_neg()),
    "views": lambda x: (x[0].is_conj(), x[:1].is_neg(), x.reshape(2, 1).is_conj()),
    "resolved": lambda x: (x.resolve_conj().is_conj(), x.resolve_neg().is_neg(), x.resolve_neg()),
    "computed": lambda x: (x * 2, x + x.conj(), x.abs()),
    "written": lambda x: (x.mul_(2), x.is_conj(), x.is_neg(), x)[1:],
    "a_view_written": lambda x: (x[0].add_(1), x)[1],
    "resolved_written": lambda x: (x.resolve_conj().resolve_neg().mul_(2), x)[1],
    "out": lambda x: (torch.add(x, 1, out=x), x)[1],
    "branch": lambda x: x if x.abs().sum() > 0 else x * 2,
    "other_branch": lambda x: x if x.abs().sum() < 0 else x * 2,
    "written_on_a_path": lambda x: (x.mul_(2) if x.abs().sum() > 0 else x.add_(1), x)[1],
    "a_condition": lambda x: x * 3 if x.is_conj() or x.is_neg() else x,
    "parts": lambda x: (x.real, x.imag) if x.is_complex() else x,
    "copied": lambda x: torch.zeros_like(x).copy_(x),
    "returned": lambda x: (x, x[:1], x.detach().is_conj()),
    "text": lambda x: str(x),
}
MAKERS: dict[str, Callable[[], torch.Tensor]] = {
    "conjugate": conjugate,
    "negative": lambda: conjugate().imag,
    "complex": lambda: torch.tensor([1 + 2j, 3 - 1j]),
    "real": lambda: torch.tensor([1.0, 2.0]),
}


@pytest.mark.parametrize("use", LAZY)
def test_conjugates_and_negatives(use: str) -> None:
    """One converted function answers all kinds in turn: on fake tensors without the bit all said that they had none."""
    static = to_static(LAZY[use])
    for make in (*MAKERS.values(), *MAKERS.values()):
        given, expected = make(), make()
        same((static(given), given), (LAZY[use](expected), expected))
        assert given.is_conj() == expected.is_conj()


@pytest.mark.parametrize("use", [
    lambda x: (x * 2 + x.conj()).abs(), lambda x: x.conj().imag * 3, lambda x: (x * x if x.real.sum() > 0 else x).real,
])  # fmt: skip
def test_gradients_of_conjugates(use: Any) -> None:
    check(use, (torch.tensor([1 + 2j, 3 - 1j], requires_grad=True),), tolerance=1e-6)
    check(lambda x: use(x.conj()), (torch.tensor([1 + 2j, 3 - 1j], requires_grad=True),), tolerance=1e-6)


def test_buffers_that_become_conjugates() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", conjugate().resolve_conj())

        def forward(self, x: Any) -> Any:
            return self.table.is_conj(), self.table + x

    module, static = Net(), to_static(Net())
    for number in range(16):  # by way of a shortcut at last
        table = conjugate() if number % 3 == 2 else conjugate().resolve_conj()
        module.table = static.table = table
        same(static(torch.ones(2)), module(torch.ones(2)))


def test_whether_a_joined_one_is_a_conjugate() -> None:
    with pytest.raises(Dy2StaticError, match="is_conj") as error:
        to_static(lambda x: (x if x.abs().sum() > 0 else x * 2).is_conj())(conjugate())
    assert error.value.code == "D2S213"


@pytest.mark.filterwarnings("ignore:.*quantized")
@pytest.mark.parametrize("use", [lambda x: x.dequantize() * 2, lambda x: x.int_repr(), lambda x: x.q_scale()])
def test_quantized_ones_are_refused(use: Any) -> None:
    with pytest.raises(Dy2StaticError, match="argument 'x' is a quantized tensor") as error:
        to_static(use)(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8))
    assert error.value.code == "D2S213"
