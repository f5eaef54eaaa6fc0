"""A run of Operators as kernels: the Python that checks arguments, makes memory and launches.

    def run(a0, a1):
     if not (...): return None                      what kernels cannot take: the interpreter runs the Operators
     d3_0, d3_1 = a0.shape
     p7 = empty((d3_0, d3_1, ), dtype=float32, device=device)
     K0(d3_0 * d3_1, 1, a0, a1, p7, d3_0)
     return (p7, )

Kernels write new memory only, so a region that gives up has changed nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.ir import Operator, Variable
from runtime.kernels import launch
from runtime.kernels.launch import Kernels
from runtime.kernels.lowering import KernelLowering
from runtime.native.layout import Layout, order_of
from runtime.native.values import Number, Tensor, Unsupported

MOST_VARIANTS = 8
"""For how many layouts of its arguments a region is written once more."""
PATIENCE = 20
"""How often in a row a region may give up before it is left to the interpreter."""

_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
Placed = Mapping[Variable, Layout]


@dataclass
class KernelRegion:
    """Operators that run as kernels."""

    variables: list[Variable]
    """What it is called with."""
    kernels: Kernels
    source: str
    run: Callable[..., Any]
    again: Callable[[Placed], KernelRegion | None] | None = None
    """Writes it once more, for arguments that lie otherwise in memory."""
    variants: dict[tuple[Layout | None, ...], tuple[KernelRegion, list[int]] | None] = field(default_factory=dict)
    """Layouts of the arguments -> the region for them, and which arguments it takes."""
    failures: int = 0

    @property
    def given_up(self) -> bool:
        """Whether it is left to the interpreter from now on."""
        return self.failures > PATIENCE

    def call(self, *arguments: Any) -> tuple[Any, ...] | None:
        """The values of the results; None where the interpreter has to do it."""
        if self.failures > PATIENCE:
            return None
        found: tuple[Any, ...] | None = self.run(*arguments)
        if found is None:
            found = self._in_another_layout(arguments)
        self.failures = 0 if found is not None else self.failures + 1
        return found

    def _in_another_layout(self, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
        if self.again is None:
            return None
        layouts: list[Layout | None] = []
        for one in arguments:
            if isinstance(one, torch.Tensor):
                if type(one) not in _PLAIN or not launch.machine.takes(one):
                    return None
                if not one.is_contiguous():
                    order = order_of(tuple(one.shape), one.stride())
                    if order is None:
                        return None
                    layouts.append(Layout(order, True))
                    continue
            layouts.append(None)
        key = tuple(layouts)
        if not any(key):
            return None
        if key not in self.variants and len(self.variants) < MOST_VARIANTS:
            made = self.again({var: one for var, one in zip(self.variables, layouts) if one is not None})
            places = {var: place for place, var in enumerate(self.variables)}
            self.variants[key] = (made, [places[var] for var in made.variables]) if made is not None else None
        known = self.variants.get(key)
        if known is None:
            return None
        variant, taken = known
        result: tuple[Any, ...] | None = variant.run(*[arguments[place] for place in taken])
        return result


def finish(low: KernelLowering, results: Sequence[Variable], strict: bool) -> KernelRegion:
    """The region of what was lowered. strict: whether gradients may be recorded in it although they are off where it is
    called. Errors raised: Unsupported if a result has no form outside."""
    low.flush()
    low.close()
    outputs = []
    for var in results:
        value = low.value(var)
        if not isinstance(value, Tensor) or not value.mine:
            raise Unsupported("a result that is no new tensor")
        outputs.append(value)
    if low.unwritten or not low.kernels:
        raise Unsupported("memory that no kernel writes")
    kernels = Kernels(tuple(low.kernels))
    space: dict[str, Any] = {
        **low.dtypes, "PLAIN": _PLAIN, "grad": torch.is_grad_enabled, "empty": torch.empty,
        "empty_strided": torch.empty_strided, "takes": launch.machine.takes,
        "is_long": launch.is_long, "parts": launch.parts, "ready": kernels.prepare,
        "LEAST": -(1 << 63), "MOST": (1 << 63) - 1,
    }  # fmt: skip
    for number in range(len(low.kernels)):
        space[f"launch{number}"] = functools.partial(kernels.launch, number)
    names = [f"a{place}" for place in range(len(low.inputs))]
    lines = [f"def run({', '.join(names)}):"]
    first = ""
    for name, one in zip(names, low.inputs):
        value = one.value
        if isinstance(value, Number):
            kind = {"int": "int", "float": "float", "bool": "bool"}[one.kind]
            limits = f" or not LEAST <= {name} <= MOST" if kind == "int" else ""
            lines += [f" if type({name}) is not {kind}{limits}: return None", f" {value.text} = {name}"]
            continue
        assert isinstance(value, Tensor)
        dtype = str(value.dtype).removeprefix("torch.")
        space[dtype] = value.dtype
        recorded = f"{name}.requires_grad" + ("" if strict else " and grad()")
        dense = f" and {name}.is_contiguous()" if value.strides is None else ""
        lines.append(f" if not (type({name}) in PLAIN and {name}.dtype is {dtype} and {name}.dim() == {value.rank} and "
                     f"takes({name}){dense} and not ({recorded})): return None")  # fmt: skip
        lines.append(f" if {name}.device != device: return None" if first else f" device = {name}.device")
        first = first or name
        lines.append(f" p{value.n} = {name}")
        if value.rank:
            own = [f"x{value.n}_{place}" for place in range(value.rank)]
            lines.append(f" {', '.join(own)}, = {name}.shape")
            for size, dim in zip(own, one.dims):
                lines.append(f" {dim} = {size}" if dim in one.new else f" if {size} != {dim}: return None")
            if value.strides is not None:
                lines.append(f" {', '.join(map(str, value.strides))}, = {name}.stride()")
    if not first:
        raise Unsupported("no tensor says which device")
    lines.append(" if not ready(device): return None")
    for line in low.host.lines:
        text = line.strip()
        if not text:
            continue
        if text.startswith("K") and "(" in text:
            kernel, _, rest = text[1:].partition("(")
            text = f"launch{kernel}(device, {rest}"
        lines.append(f" {text}")
    lines.append(f" return ({''.join(f'p{one.n}, ' for one in outputs)})")
    source = "\n".join(lines) + "\n"
    exec(compile(source, "<kernels>", "exec"), space)  # our own text: names and numbers only
    return KernelRegion([one.var for one in low.inputs], kernels, source, space["run"])


def is_strict(ops: Sequence[Operator]) -> bool:
    """Whether an Operator records gradients although those around it need not."""
    return any(op.grad_mode == "on" for op in ops)


__all__ = ["MOST_VARIANTS", "PATIENCE", "KernelRegion", "finish", "is_strict", "order_of"]
