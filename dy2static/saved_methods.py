"""What is to be saved: which methods of a layer, and for which kinds of calls.

    save(model, path, [InputSpec([None, 4])], variants={"flag": [True, False]})
        ->   forward: x=InputSpec([None, 4]), flag=True; x=InputSpec([None, 4]), flag=False
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch

from dy2static.api import to_static
from dy2static.cached_calls import Specs, generalised, require_few
from dy2static.errors import SignatureError, StorageError
from dy2static.input_spec import read_specs, read_tree
from dy2static.operators.shared.distributed import Parallel
from dy2static.static_function import StaticFunction
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.python_state.guards import is_plain, same_plain

_EMPTY: dict[Any, Any] = {inspect.Parameter.VAR_POSITIONAL: (), inspect.Parameter.VAR_KEYWORD: {}}


@dataclass(eq=False)
class Calls:
    """A method to save: the converted function, and its arguments for each kind of call, the usual one first."""

    function: StaticFunction
    kinds: list[Specs]
    from_calls: bool = False
    """Whether the kinds are those of calls that were made: one InputSpec object is one tensor."""


@dataclass(eq=False)
class Target:
    """What is saved: its name, the module whose state goes along, and its methods."""

    name: str
    root: torch.nn.Module | None
    methods: dict[str, Calls]


@dataclass(frozen=True)
class Asked:
    """What the user says of the calls to save. ``several``: whether cached Programs count beside the last one.
    ``only``: the one method that the InputSpecs are for, if no other is wanted."""

    input_spec: Any = None
    methods: Any = None
    variants: Mapping[str, Any] | None = None
    several: bool = False
    only: str | None = None


def target_of(layer: Any, asked: Asked) -> Target:
    """What to save of a layer or function.

    Errors raised: TypeError for what has no methods, or not those; SignatureError for InputSpecs that do not fit;
    StorageError (D2S521) for a module with hooks.
    """
    _require_values(asked)
    if is_a(layer, Parallel):
        layer = layer.module
    if is_a(layer, torch.nn.Module):
        target = _module_target(layer, asked)
    else:
        if asked.methods is not None or asked.only not in (None, "forward"):
            raise TypeError("methods are those of an nn.Module; a function has none")
        static = converted(layer)
        owner = unasked(static, "__self__")
        root = owner if is_a(owner, torch.nn.Module) else None
        name = type(root).__name__ if root is not None else static.__name__
        target = Target(name, root, {"forward": _calls(static, asked.input_spec, asked)})
    _require_arguments(target, asked)
    return target


def _module_target(root: torch.nn.Module, asked: Asked) -> Target:
    if root._forward_hooks or root._forward_pre_hooks or root._backward_hooks or root._backward_pre_hooks:
        raise StorageError(
            f"this {type(root).__name__} has hooks, which belong to the module and not to the forward that is saved",
            hint="Remove them before saving and put them on the loaded layer, or wrap the module in another one.",
            code="D2S521",
        )
    methods = asked.methods if asked.only is None else {asked.only: asked.input_spec}
    wanted: dict[str, Any] = dict(methods) if is_a(methods, Mapping) else dict.fromkeys(methods or ())
    if is_a(methods, str):
        raise TypeError(f"methods takes a list of names, not the string {methods!r}")
    found: dict[str, Calls] = {}
    of_forward = wanted.pop("forward", None) or asked.input_spec
    has_forward = type(root).forward is not torch.nn.Module.forward or "forward" in vars(root)
    if has_forward and asked.only in (None, "forward"):
        found["forward"] = _calls(converted(root.forward), of_forward, asked)
    for name in wanted:
        if name.startswith("_") or hasattr(torch.nn.Module, name):
            raise TypeError(f"{name!r} cannot be the name of a saved method")
        if not callable(getattr(root, name, None)):
            raise TypeError(f"{type(root).__name__} has no method {name!r}")
        static = converted(getattr(root, name))
        found[name] = _calls(static, wanted[name], asked)
    if methods is None:
        for name, static in _converted_methods(root):
            if name not in found:
                with contextlib.suppress(_NothingSays):  # converted, but never called
                    found[name] = _calls(static, None, asked)
    return Target(type(root).__name__, root, found)


def _converted_methods(root: torch.nn.Module) -> Iterator[tuple[str, StaticFunction]]:
    for name in dir(type(root)):
        if name.startswith("_") or hasattr(torch.nn.Module, name):
            continue
        if is_a(inspect.getattr_static(type(root), name, None), StaticFunction):
            static = getattr(root, name)
            if unasked(static, "__self__") is root:
                yield name, static


def converted(function: Any) -> StaticFunction:
    """The function, converted unless it is. Errors raised: TypeError for what is no function."""
    if is_a(function, StaticFunction):
        return function
    if not is_a(function, (FunctionType, MethodType)) and not callable(function):
        raise TypeError(f"save() takes an nn.Module or a function, not {function!r}")
    made = to_static(function)
    assert is_a(made, StaticFunction)
    return made


class _NothingSays(SignatureError):
    """Neither InputSpecs nor a call say what a function is called with."""


def _calls(static: StaticFunction, input_spec: Any, asked: Asked) -> Calls:
    """The kinds of calls of a method: from InputSpecs, else from the calls that were made."""
    signature = static.signature
    defaults = {one.name: _EMPTY[one.kind] if one.kind in _EMPTY else one.default for one in signature.parameters}
    given = input_spec if input_spec is not None else static.input_spec
    made = [specs for one in static.specializations for specs in one.calls()] if asked.several else []
    if given is not None:
        read = read_specs(given, signature)
        named = {} if read is None else read.by_name
        usual = {name: named.get(name, default) for name, default in defaults.items()}
        kinds = [usual] if asked.variants is not None else _with_constants(usual, made, named, static)
    elif static.programs:
        kinds = static.specialization().calls()[:1]
        if asked.several:
            kinds = generalised(made if asked.variants is None else made[:1], static.__name__)
        return Calls(static, _with_variants(kinds, asked.variants, static), from_calls=True)
    elif not signature.required():
        kinds = [defaults]
    elif asked.variants is not None and set(signature.required()) <= set(asked.variants):
        kinds = [defaults]
    else:
        raise _NothingSays(
            f"nothing says what {static.__name__}() is called with",
            hint=f"Give save(..., input_spec=[...]) one InputSpec for each of its arguments "
            f"({', '.join(signature.required())}), or call it once before.",
            code="D2S307",
        )
    return Calls(static, _with_variants(kinds, asked.variants, static))


def _with_constants(usual: Specs, made: list[Specs], named: Mapping[str, Any], static: StaticFunction) -> list[Specs]:
    """The usual call, and one like it for all other constants that calls had where the InputSpecs say nothing."""
    kinds = [usual]
    free = [name for name, value in usual.items() if name not in named and is_plain(value)]
    for specs in made:
        values = {name: specs[name] for name in free}
        fits = all(map(is_plain, values.values()))
        if fits and not any(all(same_plain(one[name], values[name]) for name in free) for one in kinds):
            kinds.append(usual | values)
    require_few(kinds, static.__name__)
    return kinds


def _with_variants(kinds: list[Specs], variants: Mapping[str, Any] | None, static: StaticFunction) -> list[Specs]:
    """Each kind of call with each of the values that ``variants`` has for its arguments."""
    names = [name for name in variants or () if name in kinds[0]]
    if not names:
        return kinds
    assert variants is not None
    choices = [[read_tree(value) for value in variants[name]] for name in names]
    found = [specs | dict(zip(names, chosen)) for specs in kinds for chosen in itertools.product(*choices)]
    require_few(found, static.__name__)
    return found


def _require_values(asked: Asked) -> None:
    for name, values in (asked.variants or {}).items():
        if not is_a(values, (list, tuple)) or not values:
            raise TypeError(f"variants[{name!r}] has to be a list of values, not {values!r}")


def _require_arguments(target: Target, asked: Asked) -> None:
    for name in asked.variants or ():
        if not any(name in calls.kinds[0] for calls in target.methods.values()):
            raise TypeError(f"variants has values for {name!r}, which is no argument of {', '.join(target.methods)}")


__all__ = ["Asked", "Calls", "Target", "converted", "target_of"]
