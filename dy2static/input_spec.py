"""InputSpecs held against a function's parameters, when given, and against the arguments of every call."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from dy2static.cache_key import value_key
from dy2static.cached_calls import rebuilt, structure_of
from dy2static.errors import SignatureError
from dy2static.examples import is_packed, packed_of, tensor_of
from dy2static.signature import Signature
from runtime.ir.input_spec import InputSpec
from runtime.kinds import is_a

_EXAMPLE_SIZES = (5, 7, 11, 13, 17, 19)


@dataclass
class Specs:
    """What the user said about the arguments, by parameter name: trees of InputSpecs and constants."""

    by_name: dict[str, Any] = field(default_factory=dict)

    def check(self, bound: dict[str, Any]) -> list[tuple[torch.Tensor, InputSpec]]:
        """The tensors of a call with their specs.

        Errors raised: SignatureError naming the argument that does not fit: its number of dimensions (D2S302),
        dtype (D2S303), a fixed size (D2S304), its structure (D2S305) or a constant (D2S306).
        """
        found: list[tuple[torch.Tensor, InputSpec]] = []
        for name, spec in self.by_name.items():
            if name in bound:
                _match(spec, bound[name], name, found)
        return found

    def example(self, signature: Signature, device: torch.device | None = None) -> dict[str, Any]:
        """Arguments that fit the specs, to trace with: tensors of zeros; other parameters have their defaults.

        Errors raised: SignatureError (D2S301) for a parameter that has neither spec nor default.
        """
        values: dict[str, Any] = {}
        for parameter in signature.parameters:
            if parameter.name in self.by_name:
                values[parameter.name] = _example(self.by_name[parameter.name], device)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                values[parameter.name] = ()
            elif parameter.kind is parameter.VAR_KEYWORD:
                values[parameter.name] = {}
            elif parameter.default is not parameter.empty:
                values[parameter.name] = parameter.default
            else:
                raise SignatureError(
                    f"argument '{parameter.name}' has neither an InputSpec nor a default", code="D2S301",
                    hint="Give input_spec one entry for every argument.",
                )  # fmt: skip
        return values


def read_specs(input_spec: Any, signature: Signature) -> Specs | None:
    """The user's ``input_spec``: a list in the order of the parameters, or a dict by name; nested like the arguments.

    Errors raised: SignatureError (D2S301) if there are too many or too few, or a name is no parameter's; TypeError.
    """
    if input_spec is None:
        return None
    if is_a(input_spec, dict):
        by_name = {name: read_tree(spec) for name, spec in input_spec.items()}
        keywords = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters)
        for name in by_name:
            if name not in signature.names:
                near = difflib.get_close_matches(str(name), signature.names, n=1)
                advice = f"Did you mean '{near[0]}'?" if near else f"Its parameters are {_listed(signature.names)}."
                if keywords:
                    advice += " For **keywords, give a dict under the name of that parameter."
                raise SignatureError(f"input_spec names '{name}', which is no parameter", code="D2S301", hint=advice)
    elif is_a(input_spec, (list, tuple)):
        by_name = _by_position([read_tree(spec) for spec in input_spec], signature)
    else:
        raise TypeError(f"input_spec must be a list, a tuple or a dict of InputSpec, not {input_spec!r}")
    missing = [name for name in signature.required() if name not in by_name]
    if missing:
        raise SignatureError(f"input_spec says nothing about {_listed(missing)}", code="D2S301",
                             hint="Give one entry for every argument without a default.")  # fmt: skip
    return Specs(by_name)


def _by_position(specs: list[Any], signature: Signature) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    rest = list(specs)
    for parameter in signature.parameters:
        if not rest:
            break
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            by_name[parameter.name] = tuple(rest)
            rest = []
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            by_name[parameter.name] = rest.pop(0)
    if rest:
        count, names = len(specs) - len(rest), _listed(list(by_name)) or "none"
        raise SignatureError(
            f"input_spec has {len(specs)} entries, but the function takes {count} argument{'s' * (count != 1)} "
            f"({names})", code="D2S301",
            hint="Arguments that belong together (a list, a dict) are one entry, nested.",
        )  # fmt: skip
    return by_name


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def read_tree(spec: Any) -> Any:
    """An argument as a spec: InputSpecs in place of tensors."""
    if is_a(spec, torch.Tensor):
        return InputSpec.from_tensor(spec)
    return _with_each(spec, read_tree)


def _with_each(spec: Any, change: Callable[[Any], Any]) -> Any:
    """A container with other items; the same if none is another."""
    inside = structure_of(spec)
    if inside is None:
        return spec
    items = [change(item) for item in inside[1]]
    if type(spec) not in (list, tuple, dict) and all(new is old for new, old in zip(items, inside[1])):
        return spec
    return rebuilt(spec, inside[0], items)


def _match(spec: Any, value: Any, label: str, found: list[tuple[torch.Tensor, InputSpec]]) -> None:
    if is_a(spec, InputSpec):
        _match_tensor(spec, value, label)
        found.append((value, spec))
    elif type(spec) in (list, tuple):
        if not is_a(value, (list, tuple)):
            _fail(label, f"is of type {type(value).__name__}, InputSpec says {type(spec).__name__}", "D2S305")
        if len(value) != len(spec):
            _fail(label, f"has {len(value)} items, InputSpec says {len(spec)}", "D2S305")
        for index, (inner, item) in enumerate(zip(spec, value)):
            _match(inner, item, f"{label}[{index}]", found)
    elif type(spec) is dict:
        if not is_a(value, dict):
            _fail(label, f"is of type {type(value).__name__}, InputSpec says dict", "D2S305")
        for key in [*spec, *value]:
            if key not in value:
                _fail(label, f"has no key {key!r}, InputSpec has one", "D2S305")
            if key not in spec:
                _fail(label, f"has a key {key!r}, InputSpec has none", "D2S305")
        for key, inner in spec.items():
            _match(inner, value[key], f"{label}[{key!r}]", found)
    elif _has_specs(spec):
        (names, inner), others = structure_of(spec) or ((), ()), structure_of(value)
        if type(value) is not type(spec) or others is None or others[0] != names:
            _fail(label, f"is of type {type(value).__name__}, InputSpec says {type(spec).__name__}", "D2S305")
        for name, one, item in zip(names, inner, others[1]):
            _match(one, item, f"{label}.{name}", found)
    elif value_key(spec) != value_key(value):
        _fail(label, f"is {_shown(value)}, InputSpec says {_shown(spec)}", "D2S306")


def _has_specs(spec: Any) -> bool:
    """Whether a container of a class (a named tuple, a dataclass) has InputSpecs in it."""
    inside = structure_of(spec)
    return inside is not None and any(is_a(one, InputSpec) or _has_specs(one) for one in inside[1])


def _match_tensor(spec: InputSpec, value: Any, label: str) -> None:
    if not is_a(value, torch.Tensor):
        _fail(label, f"is of type {type(value).__name__}, InputSpec says a tensor", "D2S305")
    if value.dim() != len(spec.shape):
        _fail(label, f"has {_dimensions(value.dim())}, InputSpec says {len(spec.shape)}", "D2S302")
    if value.dtype != spec.dtype:
        _fail(label, f"has dtype {value.dtype}, InputSpec says {spec.dtype}", "D2S303")
    for dim, (size, wanted) in enumerate(zip(value.shape, spec.shape)):
        if wanted is not None and size != wanted:
            _fail(label, f"has size {size} in dimension {dim}, InputSpec says {wanted}", "D2S304")


def _fail(label: str, problem: str, code: str) -> NoReturn:
    raise SignatureError(f"argument '{label}' {problem}", code=code,
                         hint="Change the argument, or the input_spec the function was converted with.")  # fmt: skip


def _dimensions(count: int) -> str:
    return "1 dimension" if count == 1 else f"{count} dimensions"


def _shown(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if is_a(value, torch.Tensor) else repr(value)


def _example(spec: Any, device: torch.device | None) -> Any:
    if is_a(spec, InputSpec):
        return tensor_of(spec, _EXAMPLE_SIZES, device)
    if is_packed(spec):
        return packed_of(spec, _EXAMPLE_SIZES, device)
    return _with_each(spec, lambda item: _example(item, device))


__all__ = ["InputSpec", "Specs", "read_specs", "read_tree"]
