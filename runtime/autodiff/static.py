"""Gradients of a Program as part of the Program: ``append_backward`` and ``gradients``.

    %loss = ...   ->   %loss = ...; %w_grad = ...        append_backward(loss, program=program) == [(%w, %w_grad)]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from runtime.autodiff.failures import NotDifferentiable
from runtime.autodiff.lower import lower_one
from runtime.errors import ProgramError
from runtime.ir import Block, Input, Operand, Operator, Parameter, Program, ScalarType, TensorType, Variable
from runtime.ir.walk import Names, substitute, variables


def append_backward(
    loss: Variable,
    parameter_list: Iterable[Variable | str] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
    *,
    program: Program,
) -> list[tuple[Variable, Variable]]:
    """Extend a Program by the gradients of ``loss``; pairs of a parameter and its gradient.

    Args:
        loss: A tensor of one element, assigned in the main Block of ``program``.
        parameter_list: Inputs and parameters, or their names; None: all parameters that need a gradient.
        no_grad_set: Those, or values in between, that no gradient is to flow through.
        program: The Program. It is changed in place; Variables of its main Block stay what they are.

    Parameters that the loss does not depend on are left out.

    Errors raised: ProgramError for a loss of more than one element, or a name the Program does not have;
    NotDifferentiable where an Operator has no gradient.
    """
    shape = loss.type.shape if isinstance(loss.type, TensorType) else None
    if shape is None or any(size != 1 for size in shape):
        raise ProgramError(f"the loss %{loss.name} is no tensor of one element", hint="Take its mean() or sum().")
    if parameter_list is None:
        wanted = [one.var for one in program.params if one.requires_grad]
        if not wanted:
            raise ProgramError("the Program has no parameter that needs a gradient", hint="Pass parameter_list.")
    else:
        wanted = [_argument(program, one) for one in parameter_list]
    blocked = {_argument(program, one) for one in no_grad_set or ()}
    wanted = [var for var in wanted if var not in blocked]
    found = gradients([loss], wanted, no_grad_set=list(blocked), program=program)
    return [(var, grad) for var, grad in zip(wanted, found) if grad is not None]


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
    *,
    program: Program,
) -> list[Variable | None]:
    """Extend a Program by the gradients of ``targets`` with respect to ``inputs``; None where there is none.

    Args:
        targets: Tensors assigned in the main Block.
        inputs: Tensors assigned in the main Block: inputs, parameters, or values in between.
        target_gradients: For each target its own gradient; None: ones.
        no_grad_set: Values that no gradient is to flow through.
        program: The Program. It is changed in place; Variables of its main Block stay what they are.

    Errors raised: ProgramError for a Variable of another Block; NotDifferentiable where an Operator has no gradient.
    """
    roots = [targets] if isinstance(targets, Variable) else list(targets)
    wanted = [inputs] if isinstance(inputs, Variable) else list(inputs)
    given = [target_gradients] if isinstance(target_gradients, Variable) else target_gradients
    if given is not None and len(given) != len(roots):
        raise ProgramError(f"{len(roots)} targets, and {len(given)} gradients of targets")
    blocked = [_argument(program, one) for one in no_grad_set or ()]
    known = {*program.block.args, *(out for op in program.block.ops for out in op.outputs)}
    for var in [*roots, *wanted, *blocked, *(one for one in given or () if one is not None)]:
        if var not in known:
            raise ProgramError(f"%{var.name} is not assigned in the main block of {program.name!r}")
        if not isinstance(var.type, TensorType):
            raise ProgramError(f"%{var.name} is no tensor")
    names = Names(program)
    outputs = tuple(Variable(names.new(f"{var.name}_grad"), var.type, "") for var in wanted)
    target = Operator(
        "gradients", ([*roots], [*wanted], None if given is None else [*given]), outputs=outputs,
        attrs={"create_graph": True, "allow_unused": True},
    )  # fmt: skip
    program.block.ops.append(target)
    try:
        lowered, renamed, limit = lower_one(program, [_example(arg) for arg in program.block.args], target, blocked)
        for index, dim, _ in () if limit is None else limit.sizes:
            raise NotDifferentiable(
                f"the gradient asks for the size of dimension {dim} of {program.block.args[index].name!r} as a number; "
                "say the size in place of None")
    except BaseException:
        program.block.ops.remove(target)
        raise
    _adopt(program, lowered, renamed)
    return [out if isinstance(renamed.get(out), Variable) else None for out in outputs]


def _argument(program: Program, one: Variable | str) -> Variable:
    if isinstance(one, Variable):
        return one
    named: list[Input | Parameter] = [*program.inputs, *program.params]
    for item in named:
        if item.name == one:
            return item.var
    raise ProgramError(f"the Program {program.name!r} has no input or parameter called {one!r}")


def _example(arg: Variable) -> Any:
    """A tensor or number of an argument's type; sizes that are not fixed do not matter."""
    if isinstance(arg.type, ScalarType):
        return {"int": 1, "float": 1.0, "bool": True}[arg.type.kind]
    if not isinstance(arg.type, TensorType) or arg.type.shape is None or arg.type.dtype is None:
        raise ProgramError(f"the type of the argument %{arg.name} is not known")
    return torch.empty([size if isinstance(size, int) else 8 for size in arg.type.shape], dtype=arg.type.dtype)


def _adopt(program: Program, lowered: Program, renamed: dict[Variable, Operand]) -> None:
    """Give a Program the content of another, with the Variables it had."""
    back: dict[Variable, Operand] = {}
    extra: list[tuple[Variable, Variable]] = []
    for old, new in renamed.items():
        if isinstance(new, Variable):
            if new in back:
                extra.append((old, new))
            else:
                back[new] = old
                old.type = new.type
    own = {old for old in back.values() if isinstance(old, Variable)}
    block = lowered.block
    _rename_outputs(block, back)
    for old, new in extra:
        block.ops.append(Operator("aten.alias.default", (back[new],), outputs=(old,)))
    taken = {var.name for var in own}
    program.block.args, program.block.ops, program.block.yields = block.args, block.ops, block.yields
    names = Names(program)
    for var in variables(program):
        if var not in own and var.name in taken:
            var.name = names.new(var.name.partition(".")[0])


def _rename_outputs(block: Block, back: dict[Variable, Operand]) -> None:
    block.args = [_name(arg, back) for arg in block.args]
    for op in block.ops:
        op.outputs = tuple(_name(out, back) for out in op.outputs)
    substitute(block, back)


def _name(var: Variable, back: dict[Variable, Operand]) -> Variable:
    found = back.get(var, var)
    assert isinstance(found, Variable)
    return found
