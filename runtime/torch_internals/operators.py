"""Operators: how they are called below everything, and the arguments of ``to``."""

from __future__ import annotations

from typing import Any

import torch


def is_composite(overload: Any) -> bool:
    """Whether an operator is written in terms of others, so that its schema need not tell what its result shares."""
    return bool(overload.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd))


def raw_call(overload: Any) -> Any:
    """The function behind an overload: the same call, without the Python frame of ``OpOverload.__call__``."""
    return overload._op


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Device, dtype, whether not to block, and memory format that the arguments of ``to`` ask for."""
    return tuple(torch._C._nn._parse_to(*args, **kwargs))
