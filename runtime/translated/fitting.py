"""Holding a call against what was saved: structure, constants, dtypes, ranks, sizes, assumptions, shared memory.

A live function is traced anew for a call of another kind. A loaded one cannot be, so whatever does not fit is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from runtime import torch_internals
from runtime.errors import SignatureError
from runtime.ir import Assume, Program, TensorType
from runtime.ir.assume import check, symbols_of
from runtime.ir.template import Again, TensorSlot
from runtime.ir.tree import Record
from runtime.kinds import is_a
from runtime.storage.answers import AUTOCAST, question, setting
from runtime.storage.artefact import Variant
from runtime.storage.trees import parts
from runtime.tracer.memory.storage_table import storage_key
from runtime.tracer.python_state.guards import same_plain
from runtime.tracer.values import arguments as live


def fit(variant: Variant, given: live.Arguments) -> list[torch.Tensor]:
    """The Program's inputs, taken from a call's arguments.

    Errors raised: SignatureError naming the argument that does not fit: its structure (D2S305), a constant (D2S306),
    its number of dimensions (D2S302), dtype (D2S303), a size (D2S304) or an assumption about sizes (D2S308).
    """
    found: dict[int, torch.Tensor] = {}
    labels: dict[int, str] = {}

    def slot(saved: TensorSlot, tensor: torch.Tensor, label: str) -> None:
        if found.setdefault(saved.index, tensor) is not tensor:
            _fail(label, f"is another tensor than '{labels[saved.index]}'", "they were one when it was saved", "D2S305")
        labels.setdefault(saved.index, label)

    for name, template in variant.template:
        _match(template, given.template[name], name, given, slot)
    inputs = [found[index] for index in range(len(found))]
    sizes = _check_inputs(variant.program, inputs)
    for assume in variant.program.assumes:
        _check_assume(assume, variant.program, inputs, sizes)
    return inputs


Find = Callable[[Variant], list[torch.Tensor]]
"""How the parameters of a Program are found."""


def choose(
    variants: Sequence[Variant], given: live.Arguments, method: str, parameters: Find
) -> tuple[Variant, list[torch.Tensor], list[torch.Tensor]]:
    """The first Variant that a call fits, its Program's inputs and its parameters.

    Errors raised: SignatureError, that of the only Variant whose structure and constants fit, or one (D2S306) that says
    what is wrong for each Variant; whatever ``parameters`` raises.
    """
    failures: list[SignatureError] = []
    for variant in variants:
        try:
            inputs = fit(variant, given)
        except SignatureError as error:
            failures.append(error)
            continue
        params = parameters(variant)
        check_parameters(variant.program, params)
        wrong = _wrong_setting(variant) or _wrong_answer(variant, [*inputs, *params])
        if wrong is None:
            return variant, inputs, params
        failures.append(wrong)
    near = [error for error in failures if error.code not in ("D2S305", "D2S306")]
    if len(near) == 1:
        raise near[0]
    reasons = list(dict.fromkeys(error.summary for error in near or failures))
    if len(reasons) == 1:
        raise (near or failures)[0]
    raise SignatureError(
        f"none of the {len(variants)} saved Programs of {method}() answers this call: {'; '.join(reasons)}",
        hint="A loaded Program answers only calls of the kind it was saved for; save one for this kind too.",
        code="D2S306",
    )


def _wrong_answer(variant: Variant, tensors: Sequence[torch.Tensor]) -> SignatureError | None:
    """The error (D2S319) for a tensor that gives another answer to the function than the one that it was saved for."""
    names = [item.name for item in variant.program.inputs] + [param.name for param in variant.program.params]
    for position, name, value in variant.answers:
        asked = question(name)
        if asked is None or (asked.of_gradients and position in variant.stopped):
            continue
        found = asked.ask(tensors[position])
        if found != value:
            given = position < len(variant.program.inputs)
            return SignatureError(
                f"{'argument' if given else 'parameter'} '{names[position]}' {asked.said(found)}; the function may do "
                "something else then, which was not saved", code="D2S319",
                hint=asked.hint if given else "Give it the requires_grad that it had when it was saved.")
    return None


def _wrong_setting(variant: Variant) -> SignatureError | None:
    """The error (D2S320) where the process is set otherwise than when it was saved, and the function asks for that."""
    for name, value in variant.settings:
        found = setting(name)
        if found == value:
            continue
        if name == AUTOCAST:
            return SignatureError(
                f"autocast is on ({found}) and the function looks at dtypes, which was saved for autocast {value}"
                if found != "off" else f"autocast is off, and the Program was saved for {value}",
                hint="Save it under the same torch.autocast, too, or call it under torch.autocast(..., enabled=False).",
                code="D2S320")
        return SignatureError(
            f"{name} is {found} and the function asks for that; it was {value} when it was saved",
            hint="Set it to that, or save the function again.", code="D2S320")
    return None


def _match(
    saved: Any, given: Any, label: str, arguments: live.Arguments, slot: Callable[[TensorSlot, torch.Tensor, str], None]
) -> None:
    if is_a(saved, TensorSlot):
        if not is_a(given, TensorSlot):
            _fail(label, f"is {_shown(given)}", "it was a tensor when it was saved", "D2S305")
        slot(saved, arguments.tensors[given.index], label)
        return
    if is_a(given, TensorSlot):
        _fail(label, "is a tensor", f"it was {_shown(saved)} when it was saved", "D2S305")
    inside = parts(saved)
    if is_a(saved, Again) or is_a(given, Again):
        if not (is_a(saved, Again) and is_a(given, Again) and saved.number == given.number):
            what = "stands among the arguments twice" if is_a(given, Again) else "stands there once"
            _fail(label, what, "it was otherwise when it was saved", "D2S305")
    elif inside is not None:
        if not is_a(given, live.Container) or not _same_kind(saved, given):
            _fail(label, f"is {_shown(given)}", f"it was {_shown(saved)} when it was saved", "D2S305")
        keys = list(range(len(given.items))) if given.keys is None else list(given.keys)
        wanted = [key for key, _ in inside]
        if keys != wanted:
            _fail(label, f"has {_keys(keys)}", f"it had {_keys(wanted)} when it was saved", "D2S305")
        for (key, item), value in zip(inside, given.items):
            spelled = f"{label}.{key}" if is_a(saved, Record) and saved.kind != "mapping" else f"{label}[{key!r}]"
            _match(item, value, spelled, arguments, slot)
    elif not same_plain(saved, given):
        _fail(label, f"is {_shown(given)}", f"it was {_shown(saved)} when it was saved, as a constant", "D2S306")


def _same_kind(saved: Any, given: live.Container) -> bool:
    if not is_a(saved, Record):
        return type(saved) is given.kind
    if saved.kind == "namedtuple":
        return issubclass(given.kind, tuple) and given.keys is not None
    if saved.kind == "mapping":
        known = saved.type_name.startswith("collections.")
        same = f"{given.kind.__module__}.{given.kind.__qualname__}" == saved.type_name
        return issubclass(given.kind, dict) and (same or not known)
    return given.keys is not None and not issubclass(given.kind, (tuple, dict))


def _check_inputs(program: Program, inputs: Sequence[torch.Tensor]) -> dict[str, int]:
    sizes: dict[str, tuple[int, str]] = {}
    for item, tensor in zip(program.inputs, inputs):
        type_ = item.var.type
        if not is_a(type_, TensorType):
            continue
        if type_.dtype is not None and tensor.dtype != type_.dtype:
            _fail(item.name, f"has dtype {tensor.dtype}", f"it was saved for {type_.dtype}", "D2S303")
        if type_.shape is None:
            continue
        if tensor.dim() != len(type_.shape):
            count = f"{tensor.dim()} dimension{'s' * (tensor.dim() != 1)}"
            _fail(item.name, f"has {count}", f"it was saved for {len(type_.shape)}", "D2S302")
        for dim, (size, wanted) in enumerate(zip(tensor.shape, type_.shape)):
            if is_a(wanted, str):
                first, where = sizes.setdefault(wanted, (size, f"{item.name}.shape[{dim}]"))
                if first != size:
                    _fail(item.name, f"has size {size} in dimension {dim}", f"{where} is {first}", "D2S304")
            elif size != wanted:
                _fail(item.name, f"has size {size} in dimension {dim}", f"it was saved for {wanted}", "D2S304")
    return {symbol: size for symbol, (size, _) in sizes.items()}


def _check_assume(assume: Assume, program: Program, inputs: Sequence[torch.Tensor], known: dict[str, int]) -> None:
    by_name = {item.name: tensor for item, tensor in zip(program.inputs, inputs)}
    sizes = dict(known)
    for symbol, (name, dim) in assume.symbols.items():
        sizes[symbol] = by_name[name].shape[dim]
    if check(assume, sizes):
        return
    sources = {symbol: f"{name}.shape[{dim}]" for symbol, (name, dim) in assume.symbols.items()}
    shown = " and ".join(
        f"argument '{name}' has size {sizes[symbol]} in dimension {dim}"
        for symbol, (name, dim) in assume.symbols.items()
        if symbol in symbols_of(assume.expr)
    )
    raise SignatureError(
        f"{shown}, but the Program needs {spell_assumption(assume.expr, sources)}",
        hint="It was saved for such sizes only: an operator here works differently for others.",
        location=assume.location,
        code="D2S308",
    )


def spell_assumption(expr: str, sources: dict[str, str]) -> str:
    """An assumption as the user would write it.

    >>> spell_assumption("Eq(s0, s1 + 1)", {"s0": "x.shape[0]", "s1": "y.shape[2]"})
    'x.shape[0] == y.shape[2] + 1'
    """
    relations: dict[str, ast.cmpop] = {"Eq": ast.Eq(), "Ne": ast.NotEq(), "Lt": ast.Lt(), "Le": ast.LtE(),
                                       "Gt": ast.Gt(), "Ge": ast.GtE()}  # fmt: skip

    class Speller(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(sources[node.id], mode="eval").body if node.id in sources else node

        def visit_Call(self, node: ast.Call) -> ast.expr:
            self.generic_visit(node)
            if is_a(node.func, ast.Name) and node.func.id in ("Mod", "PythonMod") and len(node.args) == 2:
                return ast.BinOp(node.args[0], ast.Mod(), node.args[1])
            if is_a(node.func, ast.Name) and node.func.id in relations and len(node.args) == 2:
                return ast.Compare(node.args[0], [relations[node.func.id]], [node.args[1]])
            return node

    try:
        return ast.unparse(Speller().visit(ast.parse(expr, mode="eval")))
    except SyntaxError:  # a label that is no expression
        return expr


def check_parameters(program: Program, tensors: Sequence[Any]) -> None:
    """Errors raised: SignatureError for a parameter of another dtype or shape than it had when it was saved."""
    for param, tensor in zip(program.params, tensors):
        type_ = param.var.type
        if not is_a(tensor, torch.Tensor):
            hint = "Put a tensor of the saved shape and dtype there."
            raise SignatureError(f"'{param.name}' is {_shown(tensor)} now, not a tensor", hint=hint, code="D2S309")
        if not is_a(type_, TensorType) or (tensor.dtype == type_.dtype and tensor.shape == type_.shape):
            continue
        if type_.dtype is not None and tensor.dtype != type_.dtype:
            raise SignatureError(
                f"'{param.name}' has dtype {tensor.dtype}, but was saved with {type_.dtype}",
                hint=f"The saved Program computes in {type_.dtype}. Convert the original layer and save that.",
                code="D2S309",
            )
        if type_.shape is not None and tuple(tensor.shape) != type_.shape:
            shapes = f"{list(tensor.shape)}, but was saved with {list(type_.shape)}"
            hint = "Put a tensor of the saved shape there; the Program was made for it."
            raise SignatureError(f"'{param.name}' has shape {shapes}", hint=hint, code="D2S309")


def check_conversion(
    program: Program, tensors: Sequence[torch.Tensor | None], fn: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Try what ``layer.to()`` is about to do to parameters on empty tensors; None stands for one that stays as it is.

    Errors raised: SignatureError (D2S309) for a dtype that the Program would refuse when it is called.
    """
    for param, tensor in zip(program.params, tensors):
        wanted = param.var.type.dtype if is_a(param.var.type, TensorType) else None
        if tensor is None or wanted is None:
            continue
        new = fn(torch.empty(0, dtype=tensor.dtype, device=tensor.device)).dtype
        if new not in (wanted, tensor.dtype):
            raise SignatureError(
                f"'{param.name}' cannot become {new}: the saved Program computes in {wanted}",
                hint="Convert the original layer and save that; nothing of this layer was changed.",
                code="D2S309",
            )


def check_memory(program: Program, inputs: Sequence[torch.Tensor], params: Sequence[torch.Tensor]) -> None:
    """Errors raised: SignatureError (D2S310) if the Program writes memory that another argument or parameter shares, or
    another element of the same."""
    if not program.writes:
        return
    names = [item.name for item in program.inputs] + [param.name for param in program.params]
    tensors = [*inputs, *params]
    written = {id(write.target) for write in program.writes}
    places: dict[int, list[int]] = {}
    for index, tensor in enumerate(tensors):
        places.setdefault(storage_key(tensor), []).append(index)
    for index, var in enumerate(program.block.args):
        if id(var) not in written:
            continue
        if torch_internals.overlaps_itself(tensors[index]):
            raise SignatureError(
                f"'{names[index]}' is written in place, and some of its elements are one memory", code="D2S310",
                hint="Pass .clone() of it.")
        for other in places[storage_key(tensors[index])]:
            if other != index and torch_internals.may_overlap(tensors[index], tensors[other]):
                raise SignatureError(
                    f"'{names[index]}' is written in place, and '{names[other]}' shares its memory",
                    hint="They did not when it was saved. Pass .clone() of one of them.",
                    code="D2S310",
                )


def _keys(keys: list[Any]) -> str:
    if all(type(key) is int and key == index for index, key in enumerate(keys)):
        return f"{len(keys)} item{'s' * (len(keys) != 1)}"
    return f"the keys {', '.join(map(repr, keys))}"


def _shown(value: Any) -> str:
    if is_a(value, TensorSlot):
        return "a tensor"
    if is_a(value, live.Container):
        return f"of type {value.kind.__name__}"
    if is_a(value, Record):
        return f"a {value.type_name.rpartition('.')[2]}"
    if type(value) in (list, tuple, dict):
        return f"a {type(value).__name__}"
    spelled = repr(value)
    return spelled if len(spelled) <= 80 else f"of type {type(value).__name__}"


def _fail(label: str, problem: str, saved: str, code: str) -> NoReturn:
    raise SignatureError(
        f"argument '{label}' {problem}, but {saved}",
        hint="A loaded Program answers only calls of the kind it was saved for; save one for this kind too.",
        code=code,
    )
