"""What an operator gives, told from types alone: its shape rule, run on fake tensors that are made for the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.torch_internals.fake_calls import fake_call
from runtime.torch_internals.fakes import empty_fake, make_fake_mode, new_symbol, size_expr

CANNOT_TELL: tuple[type[BaseException], ...] = (RuntimeError, IndexError, ValueError, TypeError)
"""What a shape rule raises where sizes that it asks for are not known, or the operands do not fit."""


class _Untold(Exception):
    pass


def results_of_types(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], picture: Callable[[Any], Any]
) -> list[Any] | None:
    """For each result of a call its dtype, sizes and device (None for one that is no tensor); None if it is not told.

    ``picture`` gives for an operand its dtype, sizes (ints or names) and device (None: the CPU), or ``"int"``, or None
    if it is not known; it is asked about what is no constant and no container of constants.
    """
    mode, env = make_fake_mode()
    symbols: dict[str, torch.SymInt] = {}

    def made(value: Any) -> Any:
        if is_a(value, (list, tuple)):
            return type(value)(map(made, value))
        if value is None or is_a(value, (bool, int, float, complex, str, *_CONSTANTS)):
            return value
        known = picture(value)
        if known is None:
            raise _Untold
        if known == "int":
            return new_symbol(env, size=False)
        dtype, sizes, device = known
        for size in sizes:
            if type(size) is str and size not in symbols:
                symbols[size] = new_symbol(env, size=True)
        shape = [symbols[size] if type(size) is str else size for size in sizes]
        return empty_fake(mode, shape, None, dtype, device or _CPU)

    try:
        given = [made(arg) for arg in args], {key: made(value) for key, value in kwargs.items()}
    except _Untold:
        return None
    with torch.no_grad():
        found = fake_call(mode, func, *given)
    names = {size_expr(symbol): name for name, symbol in symbols.items()}
    results = list(found) if is_a(found, (list, tuple)) else [found]
    return [_described(one, names) for one in results]


_CONSTANTS = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_CPU = torch.device("cpu")


def _described(value: Any, names: dict[Any, str]) -> Any:
    if not is_a(value, torch.Tensor):
        return None
    sizes: list[int | str] = []
    for size in value.shape:
        expr = size_expr(size)
        if is_a(expr, int) or expr.is_Integer:
            sizes.append(int(expr))
        else:
            sizes.append(names.setdefault(expr, f"?{len(names)}"))
    return value.dtype, tuple(sizes), value.device


__all__ = ["CANNOT_TELL", "results_of_types"]
