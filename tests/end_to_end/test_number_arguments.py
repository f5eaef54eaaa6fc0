"""Numbers: tensors given as one, conversions of tensors to one, and powers whose type depends on the value."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from runtime.errors import TraceError
from runtime.storage.allowed import allowed_operators
from tests.end_to_end.oracle import check

T = torch.tensor
_NUMBERS = ("Scalar", "Scalar?")


# -- tensors where an operator takes a number


def _function(name: str) -> Any:
    """The function of torch, or the method, that a user calls for an operator."""
    for home in (torch, torch.Tensor, torch._C._nn):
        if hasattr(home, name):
            return getattr(home, name)
    for prefix in ("special", "linalg", "fft"):
        if name.startswith(f"{prefix}_"):
            return getattr(getattr(torch, prefix), name.removeprefix(f"{prefix}_"), None)
    return None


def _example(argument: Any) -> Any:
    kind = argument.real_type.str()
    if kind in _NUMBERS:
        return 0.5
    if kind.startswith("Tensor[]"):
        return [torch.rand(2, 2), torch.rand(2, 2)]
    if kind.startswith("Tensor"):
        return torch.rand(2, 2)
    return {"int": 1, "SymInt": 1, "float": 0.5, "bool": False}.get(kind, [2, 2] if "[" in kind else None)


def calls_with_numbers() -> Iterator[tuple[str, Callable[..., Any], list[Any], dict[str, Any], int | str]]:
    """Calls of every allowed operator that takes a number, which eager takes with 0.5, and where it stands."""
    seen: set[tuple[str, Any]] = set()
    for full in sorted(allowed_operators()):
        namespace, name, overload = full.split(".")
        function = _function(name) if namespace == "aten" and "out" not in overload else None
        schema = getattr(getattr(torch.ops.aten, name), overload)._schema if function is not None else None
        for argument in schema.arguments if schema is not None else ():
            if argument.real_type.str() not in _NUMBERS:
                continue
            args: list[Any] = []
            kwargs: dict[str, Any] = {}
            place: int | str = ""
            for one in schema.arguments:
                if one is not argument and one.has_default_value():
                    continue
                if one.kwarg_only or (one is argument and one.has_default_value()):
                    kwargs[one.name] = _example(one)
                else:
                    args.append(_example(one))
                if one is argument:
                    place = one.name if one.name in kwargs else len(args) - 1
            try:
                torch.manual_seed(0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*args, **kwargs)
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
                continue
            if (name, place) not in seen:
                seen.add((name, place))
                yield full, function, args, kwargs, place


def _has_no_gradient(error: Exception) -> bool:
    text = str(error)
    return "is not implemented" in text and "derivative" in text or "inconsistent range for TensorList" in text


def test_tensors_that_need_a_gradient_are_no_numbers() -> None:
    """For every operator that takes a number, what eager does with a tensor without dimensions happens."""
    counts: Counter[str] = Counter()
    wrong, refused = [], []
    for full, function, args, kwargs, place in calls_with_numbers():
        for needed in (True, False):
            number = torch.tensor(0.5, requires_grad=needed)

            def call(x, function=function, args=args, kwargs=kwargs, place=place):
                given = [x if place == index else arg for index, arg in enumerate(args)]
                return function(*given, **{key: x if place == key else arg for key, arg in kwargs.items()})

            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check(call, (number,), paths=("program",))
            except TraceError as error:
                counts[f"refused {error.code}"] += 1
                refused.append(full)
            except Exception as error:
                if _has_no_gradient(error):
                    counts["eager has no gradient"] += 1
                    continue
                wrong.append(f"{full} {place} needed={needed}: {type(error).__name__} {str(error)[:150]}")
            else:
                counts["as eager"] += 1
    print(dict(counts), refused)
    assert not wrong, "\n".join(wrong)
    assert counts["as eager"] > 300
