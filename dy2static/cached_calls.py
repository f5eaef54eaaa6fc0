"""The calls that a function's cached Programs answer, put together: fewer kinds of calls, with sizes left open.

    x: f32[3], flag=True; x: f32[4], flag=True; x: f32[3], flag=False   ->   x: f32[None], flag=True
                                                                             x: f32[3], flag=False
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2static.errors import SignatureError
from runtime.ir.input_spec import InputSpec
from runtime.kinds import is_a
from runtime.tracer.python_state.guards import is_plain, same_plain
from runtime.tracer.values import structure

Specs = dict[str, Any]
"""Arguments by name, with InputSpecs in place of tensors."""

MOST = 16
"""So many kinds of calls are saved of one method; more have to be asked for."""


def generalised(calls: Sequence[Specs], name: str) -> list[Specs]:
    """Kinds of calls: those that differ in sizes alone are one, those that differ in constants are several.

    The first is that of the first call.

    Errors raised: SignatureError (D2S316) if two calls differ in what no Program leaves open (how many dimensions, a
    dtype, a structure), or if there are too many kinds.
    """
    kinds: list[Specs] = []
    for specs in calls:
        for index, known in enumerate(kinds):
            merged = _Merged()
            found = {key: merged.of(known[key], value, key) for key, value in specs.items()}
            if merged.constants:
                continue
            if merged.problems:
                raise SignatureError(
                    f"the Programs of {name}() that calls have made cannot be saved as one: {merged.problems[0]}. They "
                    f"are for {_listed([*kinds, specs])}",
                    hint="Say what to save, with input_spec=[...], or several with variants={...}.",
                    code="D2S316",
                )
            kinds[index] = found
            break
        else:
            kinds.append(specs)
    require_few(kinds, name)
    return kinds


def require_few(kinds: Sequence[Specs], name: str) -> None:
    """Errors raised: SignatureError (D2S316) if there are too many kinds of calls."""
    if len(kinds) > MOST:
        raise SignatureError(
            f"{name}() has Programs for {len(kinds)} kinds of calls, and at most {MOST} are saved together. They are "
            f"for {_listed(kinds[:3])}, ...",
            hint="Say which to save, with input_spec=[...] or variants={...}, or pass what changes as a tensor.",
            code="D2S316",
        )


class _Merged:
    """Two calls compared: what fits both, which constants differ, and which differences no Program leaves open."""

    def __init__(self) -> None:
        self.constants: list[str] = []
        self.problems: list[str] = []
        self._specs: dict[tuple[int, int], InputSpec] = {}
        """By two specs: the one for both. An InputSpec that stands in a call twice is one tensor."""

    def of(self, first: Any, second: Any, label: str) -> Any:
        if is_plain(first) or is_plain(second):
            if not (is_plain(first) and is_plain(second) and same_plain(first, second)):
                self.constants.append(label)
            return first
        if is_a(first, InputSpec) and is_a(second, InputSpec):
            return self._tensor(first, second, label)
        inside, others = structure_of(first), structure_of(second)
        if inside is None or others is None or type(first) is not type(second) or inside[0] != others[0]:
            if first is not second:
                self.problems.append(f"'{label}' is {shown(first)} in one and {shown(second)} in another")
            return first
        items = [self.of(a, b, f"{label}[{key!r}]") for key, a, b in zip(inside[0], inside[1], others[1])]
        return rebuilt(first, inside[0], items)

    def _tensor(self, first: InputSpec, second: InputSpec, label: str) -> InputSpec:
        if len(first.shape) != len(second.shape) or first.dtype != second.dtype:
            self.problems.append(f"'{label}' is {shown(first)} in one and {shown(second)} in another")
            return first
        found = self._specs.get((id(first), id(second)))
        if found is None:
            shape = [a if a == b else None for a, b in zip(first.shape, second.shape)]
            found = self._specs[id(first), id(second)] = InputSpec(shape, first.dtype)
        return found


def structure_of(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """Keys and items of a container among the arguments; None for anything else."""
    if type(value) in (list, tuple):
        return tuple(range(len(value))), tuple(value)
    return None if is_a(value, type) else structure.field_items(value)


def rebuilt(container: Any, keys: tuple[Any, ...], items: Sequence[Any]) -> Any:
    """A container like another, with other items."""
    if type(container) in (list, tuple):
        return type(container)(items)
    return structure.rebuild_fields(type(container), keys, tuple(items))


def shown(spec: Any) -> str:
    """An argument in a message.

    >>> shown(InputSpec([None, 3])), shown([InputSpec([2], "int64"), True])
    ('float32[None, 3]', '[int64[2], True]')
    """
    if is_a(spec, InputSpec):
        return f"{str(spec.dtype).removeprefix('torch.')}[{', '.join(map(str, spec.shape))}]"
    if type(spec) in (list, tuple):
        inside = ", ".join(map(shown, spec))
        return f"[{inside}]" if type(spec) is list else f"({inside})"
    if type(spec) is dict:
        return "{" + ", ".join(f"{key!r}: {shown(item)}" for key, item in spec.items()) + "}"
    spelled = repr(spec)
    return spelled if len(spelled) <= 60 else f"a {type(spec).__name__}"


def _listed(kinds: Sequence[Specs]) -> str:
    return "; ".join(
        f"({', '.join(f'{name}={shown(value)}' for name, value in specs.items())})" for specs in kinds
    )  # fmt: skip


__all__ = ["MOST", "Specs", "generalised", "rebuilt", "require_few", "shown", "structure_of"]
