"""Gradients as part of a Program that is built by hand: of a loss by its parameters, and of anything by anything.

    pairs = append_backward(loss)            [(weight, its gradient), ...]
    (dx,) = gradients([loss], [x])

The same functions take Variables of a Program that was written or traced; then ``program`` says which it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff import static as of_programs
from runtime.autodiff.failures import NotDifferentiable
from runtime.errors import ProgramError
from runtime.ir import Program, Variable
from runtime.static.guard import Guard, current

Pairs = list[tuple[torch.Tensor, torch.Tensor]]


def append_backward(
    loss: torch.Tensor | Variable, parameter_list: Iterable[Any] | None = None,
    no_grad_set: Iterable[Any] | None = None, *, program: Program | None = None,
) -> list[tuple[Any, Any]]:  # fmt: skip
    """Add the gradients of ``loss`` to the Program; pairs of a parameter and its gradient.

    Args:
        loss: A tensor of one element.
        parameter_list: Parameters, or their names; None: all that need a gradient and that the loss depends on.
        no_grad_set: Values that no gradient is to flow through.
        program: The Program, where ``loss`` is a Variable of one. A tensor belongs to that of ``program_guard``.

    Raises:
        ProgramError: The loss has more than one element, nothing trainable leads to it, a name is unknown, or the
            Program is not the one that the tensor is of.
    """
    if isinstance(loss, Variable):
        return list(of_programs.append_backward(loss, parameter_list, no_grad_set, program=_given(program)))
    return list(backward(_guard(loss, program), loss, parameter_list, no_grad_set))


def gradients(
    targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Any] | None = None, *,
    program: Program | None = None,
) -> list[Any]:  # fmt: skip
    """Add the gradients of ``targets`` with respect to ``inputs`` to the Program; None where there is none.

    Args:
        targets: A tensor, or several.
        inputs: Data, parameters, or tensors in between; one, or several.
        target_gradients: For each target its own gradient; None: ones.
        no_grad_set: Values that no gradient is to flow through.
        program: The Program, where ``targets`` are Variables of one. Tensors belong to that of ``program_guard``.

    Raises:
        ProgramError: A tensor is not of the Program, or there are not as many gradients as targets.
    """
    roots, wanted, given = _several(targets), _several(inputs), _several(target_gradients)
    if any(isinstance(one, Variable) for one in roots):
        return list(of_programs.gradients(targets, inputs, target_gradients, no_grad_set, program=_given(program)))
    if not roots or not wanted:
        raise ProgramError("there is nothing that gradients are asked of, or by")
    guard = _guard(roots[0], program)
    graph = guard.main

    def add() -> list[Variable | None]:
        return of_programs.gradients(
            [_variable(guard, one) for one in roots], variables,
            [None if one is None else _variable(guard, one) for one in given] if given else None,
            [_variable(guard, one) for one in no_grad_set or ()], program=graph.program)

    variables = [_variable(guard, one) for one in wanted]
    found = _written_out(guard, add)
    return [None if grad is None else graph.fresh(grad, guard.own(one)) for one, grad in zip(wanted, found)]


def backward(
    guard: Guard, loss: torch.Tensor, parameters: Iterable[torch.Tensor | str] | None = None,
    no_grad_set: Iterable[torch.Tensor | str] | None = None,
) -> Pairs:  # fmt: skip
    """Add the gradients of a loss to the main Program: pairs of a parameter and its gradient."""
    graph = guard.main
    root = graph.variable(loss)
    by_variable = {graph.origin(one): one for one in graph.program.all_parameters()}
    wanted = list(by_variable) if parameters is None else [origin(guard, one) for one in parameters]
    if not wanted:
        raise ProgramError("the Program has no parameter that needs a gradient")
    blocked = [_variable(guard, one) for one in no_grad_set or ()]
    try:
        found = _written_out(
            guard, lambda: of_programs.append_backward(root, wanted, blocked, program=graph.program))
    except _OnlyAutograd:
        trained = [by_variable[var] for var in wanted if var in by_variable]
        if blocked or len(trained) < len(wanted):
            raise
        return _asked_for(guard, loss, trained)
    if not found:
        raise ProgramError("the loss depends on no parameter that is trained")
    pairs = []
    for var, grad in found:
        parameter = by_variable.get(var)
        if parameter is None:
            raise ProgramError(f"%{var.name} is not trained: it needs no gradient")
        pairs.append((parameter, graph.fresh(grad, parameter)))
        graph.gradients.append(grad)
    return pairs


def _asked_for(guard: Guard, loss: torch.Tensor, parameters: list[torch.Tensor]) -> Pairs:
    """One Operator for the gradients: what they are is found out by runs, for the sizes that each is fed."""
    graph = guard.main
    with graph.writing_out():
        grads = guard.recorded(torch.autograd.grad, loss, parameters, retain_graph=True, allow_unused=True)
    pairs = [(parameter, grad) for parameter, grad in zip(parameters, grads) if grad is not None]
    if not pairs:
        raise ProgramError("the loss depends on no parameter that is trained")
    graph.gradients.extend(graph.variable(grad) for _, grad in pairs)
    return pairs


class _OnlyAutograd(ProgramError):
    """A gradient cannot be written out."""


def _written_out(guard: Guard, add: Callable[[], list[Any]]) -> list[Any]:
    """The gradients, in Operators. Fused kernels that only torch's autograd differentiates (LSTM) are taken apart."""
    graph = guard.main
    graph.all_met_data()
    with guard.pause(), graph.writing_out():
        try:
            try:
                return add()
            except NotDifferentiable:
                with torch_internals.under_settings((("mkldnn", False),)):
                    return add()
        except NotDifferentiable as error:
            places = [op.location for op in graph.program.block.ops if op.name == str(error)]
            if not places:
                raise _OnlyAutograd(f"no gradient can be added to the Program: {error}") from error
            raise _OnlyAutograd(
                f"no gradient can be added to the Program: only torch's autograd, while it runs, has that of {error}",
                hint="Leave it out of what is trained (detach()), or train with dy2static.to_static.",
                location=places[-1]) from error


def origin(guard: Guard, one: torch.Tensor | str) -> Variable:
    """The parameter that a tensor or name stands for, as runs begin with it.

    Raises:
        ProgramError: It is none.
    """
    graph = guard.main
    if isinstance(one, str):
        for param in graph.program.params:
            if param.name == one:
                return param.var
        raise ProgramError(f"the Program has no parameter {one!r}")
    with graph.recording():
        return graph.origin(guard.own(one))


def _variable(guard: Guard, one: torch.Tensor | str) -> Variable:
    return origin(guard, one) if isinstance(one, str) else guard.main.variable(guard.own(one))


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def _given(program: Program | None) -> Program:
    if program is None:
        raise ProgramError("which Program the Variables are of is not said", hint="Pass program=...")
    return program


def _guard(one: Any, program: Program | None) -> Guard:
    """The guard whose Program has a tensor."""
    guard = current()
    if program is not None and program is not guard.main.program:
        raise ProgramError("the Program is another than that of program_guard",
                           hint="Ask inside of: with program_guard(program, startup): ...")
    if not isinstance(one, torch.Tensor) or not (guard.main.knows(one) or guard.startup.knows(one)):
        raise ProgramError("the gradient is asked of what is no tensor of the main Program")
    return guard


__all__ = ["Pairs", "append_backward", "backward", "gradients", "origin"]
