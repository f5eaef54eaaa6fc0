"""A function under vmap against the function called row by row, which is what vmap means.

``judge`` says what became of a batch of calls: the same, refused with a code, not for vmap at all, or raised alike.
Anything else is an AssertionError.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree

import dy2static
from runtime.errors import Dy2StaticError
from tests.oracle import same

NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


LAST: list[Any] = []
WHY: list[str] = []


class NoRows(Exception):
    """What rows give cannot be put together: other structures, sizes or dtypes, or no tensors."""


def stacked(calls: Sequence[Any]) -> tuple[Any, Any]:
    """The arguments of several calls as those of one call of vmap, and ``in_dims``."""
    flat = [_pytree.tree_flatten(list(call)) for call in calls]
    spec = flat[0][1]
    args: list[Any] = []
    dims: list[int | None] = []
    for column in zip(*(leaves for leaves, _ in flat)):
        if isinstance(column[0], torch.Tensor):
            needs = column[0].requires_grad
            args.append(torch.stack([one.detach() for one in column]).requires_grad_(needs))
            dims.append(0)
        else:
            args.append(column[0])
            dims.append(None)
    return _pytree.tree_unflatten(args, spec), tuple(_pytree.tree_unflatten(dims, spec))


def fit(a: Any, b: Any) -> bool:
    """Whether two calls can be rows of one batch."""
    (mine, spec), (theirs, other) = (_pytree.tree_flatten(list(one)) for one in (a, b))
    if spec != other:
        return False
    for one, another in zip(mine, theirs):
        if type(one) is not type(another):
            return False
        if isinstance(one, torch.Tensor):
            looks = [(x.shape, x.dtype, x.requires_grad, x.layout, x.stride()) for x in (one, another)]
            if looks[0] != looks[1]:
                return False
        elif one is not another and not (isinstance(one, (int, float, str, bool)) and one == another):
            return False
    return True


def _map(change: Callable[[torch.Tensor], torch.Tensor], values: Any) -> Any:
    return _pytree.tree_map(lambda value: change(value) if isinstance(value, torch.Tensor) else value, values)


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in _pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]


def put_together(results: Sequence[Any]) -> Any:
    """What vmap gives for what rows give. Errors raised: NoRows."""
    flat = [_pytree.tree_flatten(result) for result in results]
    if any(spec != flat[0][1] for _, spec in flat):
        raise NoRows("structures")
    columns = []
    for column in zip(*(leaves for leaves, _ in flat)):
        if {type(one) for one in column} <= set(NUMBERS) and len({type(one) for one in column}) == 1:
            try:
                columns.append(torch.tensor(list(column), dtype=NUMBERS[type(column[0])]))
            except (OverflowError, RuntimeError) as error:
                raise NoRows("numbers") from error
        elif all(isinstance(one, torch.Tensor) for one in column):
            if len({(one.shape, one.dtype, one.layout) for one in column}) != 1:
                raise NoRows("sizes")
            columns.append(torch.stack(list(column)))
        else:
            raise NoRows("types")
    return _pytree.tree_unflatten(columns, flat[0][1])


def close(got: Any, expected: Any, where: str, tolerance: float) -> None:
    """Assert that two results, put together, are the same, up to the rounding of kernels for many rows."""
    same(got, expected, where, tolerance, apart=True)  # rows that are put together are a tensor for each place


def judge(
    make: Callable[[], Any], calls: Sequence[Any], tolerance: float = 2e-6, mapped: Any = None
) -> str:
    """What became of a batch: ``"same"``, ``"raises"``, ``"no rows"``, or the code it was refused with.

    ``make`` gives the function, anew for each side.
    """
    arguments, dims = stacked(calls)
    leaves = [_map(_leaf, list(call)) for call in calls]
    rows = [_map(torch.clone, row) for row in leaves]
    results, errors = [], []
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the rows are no leaves, says torch.compile
        for row in rows:
            torch.manual_seed(0)
            try:
                results.append(make()(*row))  # what a row stores is not there for the next
            except Exception as error:
                errors.append(error)
    mine = _map(torch.clone, arguments)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            torch.manual_seed(0)
            got = dy2static.vmap(make() if mapped is None else mapped, dims)(*mine)
    except Dy2StaticError as error:
        LAST.append(error)
        assert error.location is not None, f"not located: {error}"
        return error.code
    except Exception as error:
        text = str(error)
        if errors and any(type(error) is type(other) for other in errors):
            return "raises"
        if "must only return Tensors" in text or "vmap: " in text or "randomness" in text or "in_dims" in text:
            WHY.append(text)
            return "no rows"
        raise
    assert not errors, f"row by row raises {errors[0]!r}, vmap gives {got!r}"
    try:
        expected = put_together(results)
    except NoRows as reason:
        raise AssertionError(f"rows do not go together ({reason}): {results}, and vmap gives {got!r}") from reason
    close(got, expected, "results", tolerance)
    close(_tensors(mine), _tensors(stacked(rows)[0]), "arguments", tolerance)
    _hold_gradients(results, leaves, got, _tensors(arguments), tolerance)
    return "same"


def _hold_gradients(
    results: Sequence[Any], rows: Sequence[Any], got: Any, given: Sequence[torch.Tensor], tolerance: float
) -> None:
    """The gradients of a sum over rows, with respect to each row's arguments."""
    wanted = [index for index, tensor in enumerate(given) if tensor.requires_grad]
    try:
        by_row = [_gradients(result, [_tensors(row)[index] for index in wanted]) for result, row in zip(results, rows)]
    except RuntimeError:  # eager has no gradient for some row
        return
    mine = _gradients(got, [given[index] for index in wanted])
    expected = [torch.stack(column) for column in zip(*by_row)]
    close(mine, expected, "gradients", 10 * tolerance)


def _gradients(result: Any, leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Of a number in which the tensors of a result count differently; zeros where there is no gradient."""
    total = torch.zeros((), dtype=torch.float64)
    for number, tensor in enumerate(_pytree.tree_leaves(result)):
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
            value = tensor.abs() if tensor.is_complex() else tensor
            total = total + (value.double() * (1 + number % 3)).sum()
    if not total.requires_grad or not leaves:
        return [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad(total, list(leaves), allow_unused=True)
    return [torch.zeros_like(leaf) if grad is None else grad for grad, leaf in zip(found, leaves)]


__all__ = ["LAST", "WHY", "NoRows", "close", "fit", "judge", "put_together", "stacked"]
