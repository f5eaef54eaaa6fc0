"""``py_func``: a function over NumPy arrays as an Operator, with a function of its own for the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ir import TensorType, Variable
from runtime.ops import host_numpy
from runtime.static.guard import current
from runtime.static.program import Declared
from runtime.tracer.recording.session import Session

Arrays = Callable[..., Any]


def py_func(
    func: Arrays, x: torch.Tensor | Sequence[torch.Tensor], out: Declared | Sequence[Declared],
    backward_func: Arrays | None = None,
    skip_vars_in_backward_input: Sequence[torch.Tensor | Declared] | torch.Tensor | Declared | None = None,
) -> Any:  # fmt: skip
    """Call a Python function whenever the Program runs; the tensors that it gives.

    Args:
        func: Takes an array for each ``x``, gives one for each ``out``. All are copied: what it writes or keeps
            changes nothing else.
        x: A tensor, or several.
        out: What the results look like: ``program.current_block().create_var(...)``. Each run is held against it.
        backward_func: Takes the arrays of ``x``, of ``out``, and of the gradients of ``out``; gives a gradient for
            each ``x``. Without it no gradient flows.
        skip_vars_in_backward_input: Those of ``x`` and ``out`` that it does not take.

    Raises:
        ProgramError: ``out`` is not declared, or something to skip is none of ``x`` and ``out``; when the Program
            runs: the function gives another number of arrays, or one of another dtype or shape than declared.
    """
    guard = current()
    graph = guard.main
    given = [x] if isinstance(x, torch.Tensor) else list(x)
    declared = [out] if isinstance(out, Declared) else list(out)
    if not all(isinstance(one, Declared) for one in declared):
        raise ProgramError("what py_func gives has to be declared", hint="out=program.current_block().create_var(...)")
    for dtype in (*(one.dtype for one in given), *(one.dtype for one in declared)):
        if not host_numpy.has_dtype(dtype):
            raise ProgramError(f"NumPy has no {dtype}, which py_func takes or gives", hint="Convert it: x.float().")
    skipped = skip_vars_in_backward_input
    skip: list[Any] = [skipped] if isinstance(skipped, (torch.Tensor, Declared)) else list(skipped or ())
    for one in skip:
        if not any(one is other for other in (*given, *declared)):
            raise ProgramError("skip_vars_in_backward_input names something that is neither x nor out")
    kept = [not any(one is other for other in skip) for one in (*given, *declared)]
    with graph.recording(guard.translation()) as session:
        tensors = [guard.own(one) for one in given]
        outputs = [_declared(session, one) for one in declared]
        operands = [session.read(one) for one in tensors]
        types = [session.type_of(one) for one in outputs]
        key = graph.function(_Forward(func, declared))
        if backward_func is None:
            made = session.emit("py_func", operands, types=types, attrs={"function": key})
        else:
            back = graph.function(_Backward(backward_func, [one.dtype for one in tensors]))
            made = _with_gradient(session, operands, types, key, back, kept)
        needs = backward_func is not None and any(session.info(one).requires_grad for one in tensors)
        results = []
        for fake, var in zip(outputs, made):
            result = session.fresh(fake, var, requires_grad=needs and fake.is_floating_point())
            session.sizes.bind_sizes(result, var)
            results.append(result)
    graph.named.update({one.name: result for one, result in zip(declared, results) if one.name})
    return results[0] if isinstance(out, Declared) else results


def _declared(session: Session, one: Declared) -> torch.Tensor:
    shape = [session.sizes.fresh() if type(size) is int and size < 0 else size for size in one.shape]
    return torch_internals.empty_fake(session.fake_mode, shape, None, one.dtype, torch.device("cpu"))


def _with_gradient(
    session: Session, operands: Sequence[Any], types: Sequence[TensorType], key: str, back: str, kept: Sequence[bool]
) -> tuple[Variable, ...]:
    """``custom_grad`` with one call in each of its Blocks."""
    given = [operand.type for operand in operands]
    with session.open("custom_grad") as scope, torch.no_grad():
        scope.block.args.extend(session.new_variable(one) for one in given)
        results = session.emit("py_func", list(scope.block.args), types=types, attrs={"function": key})
        residuals = [one for one, keep in zip((*scope.block.args, *results), kept) if keep]
        scope.block.yields.extend([*results, *residuals])
    with session.open("custom_grad") as backward, torch.no_grad():
        backward.block.args.extend(session.new_variable(one.type) for one in (*residuals, *results))
        grads = session.emit("py_func", list(backward.block.args), types=given, attrs={"function": back})
        backward.block.yields.extend(grads)
    return session.emit("custom_grad", operands, types=types, blocks=[scope.block, backward.block],
                        attrs={"n_outputs": len(types)})  # fmt: skip


class _Forward:
    """The function, called with arrays and held against what was declared."""

    def __init__(self, func: Arrays, declared: Sequence[Declared]) -> None:
        self._func, self._declared = func, list(declared)
        self.name = getattr(func, "__name__", type(func).__name__)

    def __call__(self, *given: torch.Tensor) -> Any:
        made = self._func(*map(_array, given))
        values = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(values) != len(self._declared):
            raise ProgramError(f"{self.name} gives {len(values)} arrays, and {len(self._declared)} are declared")
        found = [self._held(value, one) for value, one in zip(values, self._declared)]
        return found if len(found) > 1 else found[0]

    def _held(self, value: Any, one: Declared) -> torch.Tensor:
        tensor = _tensor(value, self.name)
        sizes = [size if type(size) is int else -1 for size in one.shape]
        fits = len(sizes) == tensor.dim() and all(a in (-1, b) for a, b in zip(sizes, tensor.shape))
        if tensor.dtype != one.dtype or not fits:
            raise ProgramError(
                f"{self.name} gives {one.name or 'an array'} as {tensor.dtype} of shape {tuple(tensor.shape)}, and it "
                f"is declared as {one.dtype} of shape {tuple(sizes)}")
        return tensor


class _Backward:
    """The function of the gradient."""

    def __init__(self, func: Arrays, dtypes: Sequence[torch.dtype]) -> None:
        self._func, self._dtypes = func, list(dtypes)
        self.name = getattr(func, "__name__", type(func).__name__)

    def __call__(self, *given: torch.Tensor) -> Any:
        made = self._func(*map(_array, given))
        values = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(values) != len(self._dtypes):
            raise ProgramError(f"{self.name} gives {len(values)} gradients for {len(self._dtypes)} tensors")
        if any(value is None for value in values):
            raise ProgramError(f"{self.name} gives None for a gradient", hint="Give zeros of the tensor's shape.")
        found = [_tensor(value, self.name).to(dtype) for value, dtype in zip(values, self._dtypes)]
        return found if len(found) > 1 else found[0]


def _array(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """An array of the function's own: it may write it, and keep it."""
    return np.array(value.detach().resolve_conj().resolve_neg().cpu().numpy())


def _tensor(value: Any, name: str) -> torch.Tensor:
    """What a function gave, copied: it may have kept the array, and write it when it is called again."""
    try:
        return torch.from_numpy(np.array(value, order="C"))
    except (TypeError, ValueError) as error:
        raise ProgramError(f"{name} gives a {type(value).__name__} that is no tensor: {error}") from error


__all__ = ["py_func"]
