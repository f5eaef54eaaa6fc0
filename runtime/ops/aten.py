"""ATen and custom operators by name, and what they do to memory.

The facts come from the operator's schema, corrected by ``runtime.ops.corrections`` where the schema is silent. Where
they depend on an argument (``train``, a dropout probability) they are exact if the call's arguments are given, and
otherwise say what may happen.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator, leaves
from runtime.ir.types import ArrayType, ScalarType, TensorType, Type, said
from runtime.ir.variable import Variable
from runtime.ops import corrections

Overload = torch_internals.OpOverload

CHECKED = "checked"
"""The attribute of an Operator whose results are held against what was taken for fixed: for each result None, or its
dtype, its sizes (None for an open one) and the order of its dimensions in memory (None for any)."""


def resolve(name: str) -> Overload:
    """The overload called ``namespace.name.overload``, looked up in ``torch.ops`` and nowhere else.

    Errors raised: ProgramError if there is none.

    >>> resolve("aten.add.Tensor")
    <OpOverload(op='aten.add', overload='Tensor')>
    """
    return _own(name) if name.startswith(_LASTING) else _found(name)


_LASTING = ("aten.", "prims.")
"""Operators that stay as they are; a library's may go and come again under the same name, with another schema."""


@functools.cache
def _own(name: str) -> Overload:
    return _found(name)


def _found(name: str) -> Overload:
    parts = name.split(".")
    if len(parts) == 3 and all(parts) and name.isascii():
        namespace, packet, overload = parts
        found: Any = torch.ops
        for part in (namespace, packet, overload):
            found = getattr(found, part, None)
        if isinstance(found, Overload) and name_of(found) == name:
            return found
    raise ProgramError(
        f"unknown operator {name!r}",
        hint="Operators are ATen overloads such as 'aten.add.Tensor', custom operators of a loaded library "
        "('mylib.op.default'), and the operators that runtime.ops defines.",
    )


def name_of(overload: Overload) -> str:
    """The name that ``resolve`` finds the overload by."""
    return str(overload)


def arguments(overload: Overload, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The call's arguments by name, schema defaults filled in.

    >>> arguments(resolve("aten.dropout.default"), ("x",), {"p": 0.5, "train": True})
    {'input': 'x', 'p': 0.5, 'train': True}
    """
    bound: dict[str, Any] = {}
    for index, argument in enumerate(overload._schema.arguments):
        if index < len(args) and not argument.kwarg_only:
            bound[argument.name] = args[index]
        elif kwargs is not None and argument.name in kwargs:
            bound[argument.name] = kwargs[argument.name]
        elif argument.has_default_value():
            bound[argument.name] = argument.default_value
    return bound


def _call(overload: Overload, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is known of a call: without ``args`` nothing, so every condition counts as met."""
    return {} if args is None else arguments(overload, args, kwargs)


def writes(
    overload: Overload, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Names of the arguments that the operator writes, ``out=`` included; with ``args``, that this call writes.

    >>> writes(resolve("aten.add_.Tensor")), writes(resolve("aten.add.out"))
    (('self',), ('out',))
    >>> batch_norm = resolve("aten.batch_norm.default")
    >>> writes(batch_norm), writes(batch_norm, ("x", None, None, "mean", "var", False, 0.1, 1e-5, False))
    (('running_mean', 'running_var'), ())
    """
    declared = _declared_writes(overload)
    hidden = corrections.WRITES.get(_packet(overload))
    if hidden is None:
        return declared
    call = _call(overload, args, kwargs)
    names = _argument_names(overload)
    found = [name for name in hidden.names if name in names and name not in declared]
    if not hidden.when(call) or not found:
        return declared
    return declared + tuple(name for name in found if not call or call.get(name) is not None)


def announces_writes(overload: Overload) -> bool:
    """Whether autograd counts what the operator writes: what its schema does not tell, it does not know.

    >>> announces_writes(resolve("aten.add_.Tensor")), announces_writes(resolve("aten.batch_norm.default"))
    (True, False)
    """
    return bool(_declared_writes(overload))


@functools.cache
def _declared_writes(overload: Overload) -> tuple[str, ...]:
    schema_arguments = overload._schema.arguments
    return tuple(arg.name for arg in schema_arguments if arg.alias_info is not None and arg.alias_info.is_write)


@functools.cache
def _argument_names(overload: Overload) -> tuple[str, ...]:
    return tuple(arg.name for arg in overload._schema.arguments)


@functools.cache
@functools.cache
def without_out(overload: Overload) -> Overload | None:
    """The overload that gives what this one writes to ``out=``; None if there is none.

    >>> without_out(resolve("aten.add.out"))
    <OpOverload(op='aten.add', overload='Tensor')>
    """
    wanted = [(one.name, str(one.type)) for one in overload._schema.arguments if not one.is_out]
    if len(wanted) == len(overload._schema.arguments):
        return None
    packet = overload.overloadpacket
    for name in packet.overloads():
        other: Overload = getattr(packet, name)
        arguments = other._schema.arguments
        if any(one.is_out for one in arguments):
            continue
        needed = [(one.name, str(one.type)) for one in arguments if not one.has_default_value() or
                  (one.name, str(one.type)) in wanted]
        if needed == wanted:
            return other
    return None


@functools.cache
def returns_alias(overload: Overload) -> tuple[str, ...]:
    """Names of the arguments that some result is declared to share memory with (views, in-place and out= results).

    >>> returns_alias(resolve("aten.transpose.int")), returns_alias(resolve("aten.add.Tensor"))
    (('self',), ())
    """
    schema = overload._schema
    returned: set[str] = set()
    for result in schema.returns:
        if result.alias_info is not None:
            returned |= set(result.alias_info.before_set) or {"*"}  # "*": the items of a list
    found = []
    for arg in schema.arguments:
        if arg.alias_info is not None and returned & (set(arg.alias_info.before_set) | set(arg.alias_info.after_set)):
            found.append(arg.name)
    return tuple(found)


def is_view(
    overload: Overload, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
) -> bool:
    """Whether the results surely are views of an argument (or it itself), and nothing is written.

    >>> [is_view(resolve(f"aten.{name}")) for name in ("transpose.int", "reshape.default", "dropout.default")]
    [True, False, False]
    >>> is_view(resolve("aten.dropout.default"), ("x", 0.5, False))
    True
    """
    surely = corrections.SURE_VIEWS.get(_packet(overload))
    if surely is not None:
        return surely(_call(overload, args, kwargs))
    return _is_declared_view(overload)


@functools.cache
def _is_declared_view(overload: Overload) -> bool:
    return bool(returns_alias(overload)) and not writes(overload) and _packet(overload) not in corrections.MAYBE_VIEWS


@functools.cache
def is_factory(overload: Overload) -> bool:
    """Whether it makes a tensor of its own, looking only at the shape of the one it gets.

    >>> [is_factory(resolve(f"aten.{name}.default")) for name in ("zeros_like", "new_full", "relu")]
    [True, True, False]
    """
    packet = _packet(overload)
    return packet.startswith("aten.") and (packet.endswith("_like") or packet.startswith("aten.new_"))


def may_alias(
    overload: Overload, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Names of the arguments that a result shares or may share memory with; with ``args``, that this call's may.

    >>> may_alias(resolve("aten.reshape.default")), may_alias(resolve("aten.dropout.default"))
    (('self',), ('input',))
    """
    declared = returns_alias(overload)
    hidden = corrections.ALIASES.get(_packet(overload))
    if hidden is None or not hidden.when(_call(overload, args, kwargs)):
        return declared
    names = _argument_names(overload)
    return declared + tuple(name for name in hidden.names if name in names and name not in declared)


def is_random(
    overload: Overload, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
) -> bool:
    """Whether the operator draws random numbers; with ``args``, whether this call does or may.

    >>> dropout = resolve("aten.dropout.default")
    >>> is_random(dropout), is_random(dropout, ("x", 0.5, False))
    (True, False)
    """
    when = corrections.RANDOM.get(_packet(overload))
    if when is not None:
        return when(_call(overload, args, kwargs))
    return torch.Tag.nondeterministic_seeded in overload.tags


@functools.cache
def _packet(overload: Overload) -> str:
    return name_of(overload).rpartition(".")[0]


# --- the definition of an ATen operator


def _named(op: Operator, names: Sequence[str]) -> Iterator[Variable]:
    bound = arguments(resolve(op.name), op.args, op.kwargs)
    for name in names:
        yield from leaves(bound.get(name))


def _written(op: Operator) -> tuple[Variable, ...]:
    return tuple(_named(op, writes(resolve(op.name), op.args, op.kwargs)))


def _viewed(op: Operator) -> tuple[Variable, ...]:
    """Those whose memory the results are, or may be, as of ``reshape``: a copy of it may be written as well."""
    overload = resolve(op.name)
    may_be = _packet(overload) in corrections.MAYBE_VIEWS or _packet(overload) in corrections.ALIASES
    if not may_be and not is_view(overload, op.args, op.kwargs) and not _declared_writes(overload):
        return ()
    return tuple(_named(op, may_alias(overload, op.args, op.kwargs)))


def _verify(op: Operator, fail: Fail) -> None:
    schema = resolve(op.name)._schema
    if op.blocks:
        fail("blocks", f"{op.name} has no blocks")
    positional = [arg for arg in schema.arguments if not arg.kwarg_only]
    if len(op.args) > len(positional):
        fail("arity", f"{op.name} takes at most {len(positional)} positional arguments, not {len(op.args)}")
    given = {arg.name for arg in positional[: len(op.args)]}
    names = {arg.name for arg in schema.arguments}
    for name in op.kwargs:
        if name not in names:
            fail("arity", f"{op.name} has no argument {name!r}")
        if name in given:
            fail("arity", f"{op.name} is given {name!r} both by position and by name")
    missing = [
        arg.name
        for arg in schema.arguments
        if arg.name not in given and arg.name not in op.kwargs and not arg.has_default_value()
    ]
    if missing:
        fail("arity", f"{op.name} needs {', '.join(missing)}")
    _verify_outputs(op, schema, fail)
    checks = op.attrs.get(CHECKED)
    if checks is not None and not (type(checks) in (list, tuple) and all(map(_is_check, checks))):
        fail("attrs", f"the attribute {CHECKED!r} of {op.name} must say dtype, sizes and order of each result")


def _is_check(check: Any) -> bool:
    if check is None:
        return True
    if type(check) not in (list, tuple) or len(check) != 3 or not isinstance(check[0], torch.dtype):
        return False
    _, sizes, order = check
    if type(sizes) not in (list, tuple) or not all(size is None or type(size) is int for size in sizes):
        return False
    if order is None:
        return True
    return type(order) in (list, tuple) and len(order) == len(sizes) and all(dim in order for dim in range(len(sizes)))


def _verify_outputs(op: Operator, schema: Any, fail: Fail) -> None:
    """A single list result is either one ArrayType output, or as many tensor outputs as the list has items.

    An Operator without outputs that its operator has is there for the exception that it raises, whatever it is given.
    """
    returns = schema.returns
    if len(returns) == 1 and str(returns[0].type).startswith("List["):
        whole = len(op.outputs) == 1 and not isinstance(op.outputs[0].type, TensorType)
        if not whole and any(isinstance(out.type, ArrayType) for out in op.outputs):
            fail("arity", f"{op.name} gives one list: either one list output, or an output for each of its items")
    elif op.outputs and len(op.outputs) != len(returns):
        fail("arity", f"{op.name} has {len(returns)} outputs, not {len(op.outputs)}")


def infer(op: Operator) -> list[Type | None]:
    """What torch's shape rule gives on fake tensors of the operands' types; None where these say too little.

    A size that no symbol of the operands is gets a name of its own (``"?0"``).
    """
    overload = resolve(op.name)
    untold: list[Type | None] = [None] * len(op.outputs)
    if writes(overload, op.args, op.kwargs):
        return untold
    try:
        found = torch_internals.results_of_types(overload, op.args, op.kwargs, _picture)
    except torch_internals.CANNOT_TELL:
        return untold
    if found is None or len(found) != len(op.outputs):
        return untold
    return [one if one is None else TensorType(one[0], one[1], said(one[2])) for one in found]


def _picture(operand: Any) -> Any:
    """The dtype, sizes and device of a tensor Variable, ``"int"`` for an int; None where that is not known."""
    type_ = operand.type if isinstance(operand, Variable) else None
    if isinstance(type_, TensorType):
        return None if type_.dtype is None or type_.shape is None else (type_.dtype, type_.shape, type_.device)
    return "int" if type_ == ScalarType("int") else None


_RAISING = frozenset({"aten::_linalg_check_errors", "aten::_assert_async", "aten::_assert_scalar"})
"""Operators without results that are there for the exception they may raise."""


def define(name: str) -> OpDefinition:
    """The definition of an ATen or custom operator, made from its schema and the corrections."""
    return _define(name, resolve(name))


@functools.lru_cache(maxsize=65536)
def _define(name: str, overload: Overload) -> OpDefinition:
    return OpDefinition(
        name,
        str(overload._schema),
        verify=_verify,
        evaluate=overload,
        infer=infer,
        asks_torch=True,
        random=is_random(overload),
        effect=overload._schema.name in _RAISING,
        writes=_written,
        views=_viewed,
    )
