"""Sizes of NumPy's arrays that only a run knows: what a call gives for some sizes says what it gives for others.

    a = np.array(grown)      f64[n0]
    a[:, None] + b           tried with n0 = 5, 7, ... and 0, 1, 2: the result is [n1, 3]

A size of the result that is the same for all sizes is that number. Any other is one of its own, which is read off what
the run gives; the run refuses a result that has another rank, or another size where a number was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.ops import host_numpy
from runtime.tracer.recording.session import Session

Sizes = Mapping[Any, int]
"""By symbol: a size to try a call with."""
_PRIMES = (5, 7, 11, 13, 17, 19)
_SMALL = (2, 1, 0)
_KEEPING = frozenset({
    "ndarray.astype", "ndarray.copy", "ndarray.clip", "ndarray.round", "clip", "round", "around", "sort", "copy",
    "nan_to_num", "isclose", "flip", *host_numpy.WRITING,
})  # fmt: skip
"""Functions beside the ufuncs that give an array of the size that all arrays have which they are given."""


def symbols_of(fakes: Iterable[torch.Tensor]) -> list[Any]:
    """What the sizes and strides of some arrays are made of that only a run knows."""
    found: dict[Any, None] = {}
    for fake in fakes:
        for size in (*fake.shape, *torch_internals.strides_of(fake)):
            if type(size) is not int:
                found.update(dict.fromkeys(sorted(size.node.expr.free_symbols, key=str)))
    return list(found)


def plain(sizes: Iterable[Any], of: Sizes) -> tuple[int, ...]:
    """Sizes or strides as numbers."""
    return tuple(one if type(one) is int else max(int(torch_internals.size_expr(one).xreplace(dict(of))), 0)
                 for one in sizes)  # fmt: skip


def apart(symbols: Sequence[Any]) -> list[Sizes]:
    """Sizes of which no two are the same."""
    return [{one: _PRIMES[(place + turn) % len(_PRIMES)] for place, one in enumerate(symbols)} for turn in range(3)]


def alike(symbols: Sequence[Any]) -> list[Sizes]:
    """The same size for all."""
    return [dict.fromkeys(symbols, size) for size in _PRIMES[:3]]


def small(symbols: Sequence[Any]) -> list[Sizes]:
    """Sizes for which much is different."""
    return [dict.fromkeys(symbols, size) for size in _SMALL]


def shape_of(
    session: Session, name: str, given: Sequence[torch.Tensor], tried: Sequence[tuple[Sizes, tuple[int, ...]]],
    at_small: Sequence[tuple[int, ...]],
) -> list[Any]:
    """The sizes of a result, by those that it had for some sizes of what the call was given."""
    kept = _kept(name, given)
    if kept is not None and all(plain(kept, of) == shape for of, shape in tried):
        return kept
    rank = len(tried[0][1])
    shapes = [shape for _, shape in tried] + [shape for shape in at_small if len(shape) == rank]
    return [sizes[0] if len(set(sizes)) == 1 else session.sizes.fresh() for sizes in zip(*shapes)]


def _kept(name: str, given: Sequence[torch.Tensor]) -> list[Any] | None:
    """The shape of all that the call was given, if the result has the same."""
    if not (name in _KEEPING or name in host_numpy.OPERATORS or host_numpy.is_ufunc(name)):
        return None
    shapes = {tuple(map(torch_internals.size_expr, one.shape)): list(one.shape) for one in given if one.dim()}
    return next(iter(shapes.values())) if len(shapes) == 1 else None


def strides_of(sizes: Sequence[Any], shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]]) -> Any:
    """The strides of a result of such sizes, by those that it had; None where they are not known.

    A stride is a number, or what the dimensions hold that lie closer to each other.
    """
    found: list[Any] = []
    for dim in range(len(sizes)):
        tried = [one[dim] for one in strides]
        if len(set(tried)) == 1:
            found.append(tried[0])
            continue
        inner = [other for other in range(len(sizes)) if other != dim and strides[0][other] < strides[0][dim]]
        if any(_product(one[other] for other in inner) != step for one, step in zip(shapes, tried)):
            return None
        found.append(_product(sizes[other] for other in inner))
    return found


def _product(sizes: Iterator[Any]) -> Any:
    result: Any = 1
    for size in sizes:
        result = result * size
    return result


__all__ = ["Sizes", "alike", "apart", "plain", "shape_of", "small", "strides_of", "symbols_of"]
