"""Calls of torch's functions with one argument that is only known while a Program runs, made from the schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.storage.allowed import allowed_operators

WORDS = {
    "rounding_mode": ("trunc", "floor"), "approximate": ("none", "tanh"), "indexing": ("ij", "xy"),
    "reduce": ("sum", "amax"), "UPLO": ("L", "U"), "norm": ("ortho", "forward"), "ord": ("fro", "nuc"),
    "mode": ("reduced", "complete"), "padding": ("valid", "same"), "interpolation": ("lower", "higher"),
    "side": ("left", "right"),
}  # fmt: skip
_VALUES: dict[str, tuple[Any, ...]] = {
    "bool": (True, False), "int": (1, 0, -1, 7), "SymInt": (1, 2), "float": (0.25, 0.5), "Scalar": (0.5, 2.0),
    "int[]": (0, 1, -1), "SymInt[]": (1, 2),
}  # fmt: skip
_EXOTIC = (
    "rrelu_with_noise", "slice_inverse", "as_strided_", "empty", "empty_strided", "new_empty", "new_empty_strided",
    "empty_like", "empty_permuted", "diag_embed", "dropout_", "alpha_dropout_", "feature_dropout_",
    "feature_alpha_dropout_",
)  # fmt: skip
"""Not for users, without defined values, with messages that are worded differently without data, or writing to a leaf
or not as ``train`` says."""
_UNDEFINED = {("linalg_lstsq", "rcond")}
"""Arguments for which eager gives one of several answers."""

KINDS = (*_VALUES, "str")


@dataclass(frozen=True)
class StagedCall:
    """A call, and the values for one of its arguments."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    place: int | str
    kind: str
    values: tuple[Any, ...]

    def with_value(self, value: Any, tensors: Sequence[torch.Tensor]) -> Any:
        """The call with a value, and with other tensors."""
        given = iter(tensors)

        def fill(key: int | str, held: Any) -> Any:
            if key == self.place:
                return [value, *held[1:]] if isinstance(held, list) else value
            if isinstance(held, list):
                return [next(given) if isinstance(one, torch.Tensor) else one for one in held]
            return next(given) if isinstance(held, torch.Tensor) else held

        args = [fill(index, arg) for index, arg in enumerate(self.args)]
        return self.function(*args, **{key: fill(key, arg) for key, arg in self.kwargs.items()})

    def tensors(self) -> list[torch.Tensor]:
        """The tensors of the call."""
        found = []
        for key, held in (*enumerate(self.args), *self.kwargs.items()):
            if key != self.place:
                items = held if isinstance(held, list) else [held]
                found += [one for one in items if isinstance(one, torch.Tensor)]
        return found

    def is_differentiable(self) -> bool:
        """Whether eager computes gradients of the call's tensors, for every value that it takes."""
        tensors = [tensor.clone() for tensor in self.tensors()]
        if not tensors or not all(tensor.is_floating_point() for tensor in tensors):
            return False
        for value in self.values:
            leaves = [tensor.detach().requires_grad_() for tensor in tensors]
            if _works(self, value) and not _differentiates(self, value, leaves):
                return False
        return True

    def staged(self) -> Callable[..., Any]:
        """A function of a tensor that says which value, and the call's tensors."""
        if self.kind == "bool":
            return lambda which, *tensors: self.with_value(bool(which), tensors)
        if self.kind == "str":
            first, second = self.values

            def of_text(which: torch.Tensor, *tensors: torch.Tensor) -> Any:
                word = first
                if which > 0:
                    word = second
                return self.with_value(word, tensors)

            return of_text
        if self.kind in ("float", "Scalar"):
            return lambda which, *tensors: self.with_value(float(which), tensors)
        return lambda which, *tensors: self.with_value(int(which), tensors)

    def selectors(self) -> list[torch.Tensor]:
        """What to give the function for each of the values."""
        if self.kind == "str":
            return [torch.tensor(index) for index in range(len(self.values))]
        return [torch.tensor(value) for value in self.values]


def function_of(name: str) -> Any:
    """The function of torch, or the method, that a user calls for an operator of ATen."""
    for home in (torch, torch.Tensor, torch._C._nn):
        if hasattr(home, name):
            return getattr(home, name)
    for prefix in ("special", "linalg", "fft"):
        if name.startswith(f"{prefix}_"):
            return getattr(getattr(torch, prefix), name.removeprefix(f"{prefix}_"), None)
    return None


def kind_of(argument: Any) -> str:
    """The type of an argument as the schema writes it, without ``?`` and the length of a list."""
    return str(argument.real_type.str()).replace("?", "")


def _example(argument: Any, dtype: torch.dtype) -> Any:
    kind = kind_of(argument)
    if kind == "Tensor":
        tensor = torch.rand(3, 3, generator=torch.Generator().manual_seed(len(argument.name)), dtype=torch.float64)
        return (tensor * 3).to(dtype)
    if kind == "Tensor[]":
        return [torch.rand(3, 3).to(dtype), torch.rand(3, 3).to(dtype)]
    if argument.has_default_value() and argument.default_value is not None:
        return argument.default_value
    if kind == "str":
        return WORDS.get(argument.name, ("",))[0]
    return {"int": 0, "SymInt": 1, "float": 0.5, "bool": False, "Scalar": 0.5}.get(kind, [1] if "[" in kind else None)


def staged_calls() -> Iterator[StagedCall]:
    """For every argument of every allowed operator: a call that eager accepts with some value for it."""
    seen: set[tuple[Any, ...]] = set()
    torch.manual_seed(0)
    for full in sorted(allowed_operators()):
        namespace, name, overload = full.split(".")
        if namespace != "aten" or "out" in overload or name.startswith("_") or name.endswith("_backward"):
            continue
        function = function_of(name)
        if function is None or name in _EXOTIC or not hasattr(getattr(torch.ops.aten, name, None), overload):
            continue  # the last: an operator that this torch does not have
        schema = getattr(getattr(torch.ops.aten, name), overload)._schema
        for target in schema.arguments:
            kind = kind_of(target)
            values = _VALUES.get(kind) or (WORDS.get(target.name) if kind == "str" else None)
            if values is None or target.name == "pin_memory" or (name, target.name) in _UNDEFINED:
                continue
            if (name, target.name, kind) in seen:
                continue
            made = _call(full, function, schema, target, kind, values)
            if made is not None:
                seen.add((name, target.name, kind))
                yield made


def _call(
    full: str, function: Any, schema: Any, target: Any, kind: str, values: tuple[Any, ...]
) -> StagedCall | None:
    for dtype in (torch.float32, torch.int64, torch.bool):
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        place: int | str = ""
        for one in schema.arguments:
            if one is not target and one.has_default_value():
                continue
            by_name = one.kwarg_only or one.has_default_value()
            if by_name:
                kwargs[one.name] = _example(one, dtype)
            else:
                args.append(_example(one, dtype))
            if one is target:
                place = one.name if by_name else len(args) - 1
                if kind.endswith("[]"):
                    (kwargs if by_name else args)[one.name if by_name else -1] = [values[0]]  # type: ignore[call-overload]
        call = StagedCall(full, function, tuple(args), kwargs, place, kind, values)
        if any(_works(call, value) for value in values):
            return call
    return None


def _differentiates(call: StagedCall, value: Any, leaves: list[torch.Tensor]) -> bool:
    try:
        result = call.with_value(value, leaves)
        outputs = [one for one in torch.utils._pytree.tree_leaves(result) if isinstance(one, torch.Tensor)]
        total = sum(one.abs().sum() for one in outputs if one.requires_grad)
        return isinstance(total, torch.Tensor) and bool(torch.autograd.grad(total, leaves, allow_unused=True))
    except Exception:  # whatever torch does not like about it
        return False


def _works(call: StagedCall, value: Any) -> bool:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call.with_value(value, [tensor.clone() for tensor in call.tensors()])
    except Exception:  # whatever torch does not like about it
        return False
    return True
