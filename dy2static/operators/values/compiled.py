"""Code that another compiler of PyTorch's made, called inside a trace: ``torch.jit`` and ``torch.cond``.

What ``torch.jit`` compiled runs its operators one by one on the tensors of the trace, so it is recorded like other code
that is not converted. ``torch.cond`` and ``torch.while_loop`` are the ``if`` and ``while`` they stand for.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from dy2static.operators.calls.call import call
from dy2static.operators.calls.torch_values import from_torch, to_torch
from dy2static.operators.constructs.if_expr import if_expr
from dy2static.operators.constructs.while_stmt import while_stmt
from dy2static.operators.shared.staging import Session
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import theirs


def is_compiled(f: object) -> bool:
    """Whether ``f`` is a method or function of ``torch.jit``'s."""
    return is_a(f, (torch.jit.ScriptFunction, torch.ScriptMethod))


def call_compiled(
    session: Session, f: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``f(*args, **kwargs)`` of what ``torch.jit`` compiled, done by ``run``."""
    module = f if is_a(f, torch.jit.ScriptModule) else getattr(f, "owner", None)
    in_c = torch_internals.class_in_c(f)
    if in_c:
        raise session.error(
            f"{_name(f)}() is a method of an object of torch.classes.{in_c}, a class written in C++: what it holds and "
            "changes has no place in a Program", code="D2S292", hint="Call it outside, and pass what it gives.")
    if is_a(module, torch.jit.ScriptModule):
        _guard(session, module)
    before = session.exceptions.last_error
    try:
        with torch.jit.optimized_execution(False):  # it must not learn from tensors without data
            given = [to_torch(session, arg) for arg in args]
            by_name = {name: to_torch(session, arg) for name, arg in kwargs.items()}
            with _as_first(f):
                result = _first_call(f, *given, **by_name) if is_compiled(f) else run(*given, **by_name)
            return from_torch(session, result)
    except RuntimeError as error:
        if session.exceptions.last_error is not None and session.exceptions.last_error is not before:
            raise session.exceptions.last_error from error  # torch.jit made another one of it
        if any(words in str(error) for words in _UNKNOWN):
            raise session.error(
                f"{_name(f)} was compiled by torch.jit and decides on values that only the Program knows",
                hint="Use the function or module that was given to torch.jit.script, or call this outside.",
                code="D2S292",
            ) from error
        raise


@contextlib.contextmanager
def _as_first(module: Any) -> Iterator[None]:
    """Let a module's ``forward`` run as if it was called first, with whatever hooks there are around it."""
    method = getattr(module, "forward", None) if is_a(module, torch.jit.ScriptModule) else None
    if not is_a(method, torch.ScriptMethod):
        yield
        return
    before = dict(module.__dict__)  # torch.jit keeps the method there once it was read
    module.__dict__["forward"] = functools.partial(_first_call, method)
    try:
        yield
    finally:
        del module.__dict__["forward"]
        if "forward" in before:
            module.__dict__["forward"] = before["forward"]


def _first_call(f: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of compiled code as if it was the first one: after calls without gradients ``torch.jit`` runs what it made
    for those, and that detaches parameters."""
    first = torch_internals.unprofiled(f, args, kwargs)
    return theirs(f, *args, **kwargs) if first is None else theirs(first)


_UNKNOWN = ("GuardOnDataDependentSymNode", "data-dependent", "SymInt", "SymFloat", "SymBool", "FakeTensor")


def _name(f: Any) -> str:
    return str(getattr(f, "original_name", None) or getattr(f, "name", None) or type(f).__name__)


def _guard(session: Session, module: Any) -> None:
    """Remember the modes of a compiled module's parts."""
    parts = list(module.modules())

    def modes() -> list[bool]:
        return [part.training for part in parts]

    known = modes()
    session.guards.add(("compiled", id(module)), f"the mode of {_name(module)}", modes, known)


def _trace(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise session.error("torch.jit.trace() runs a function on tensors inside a converted function", code="D2S292",
                        hint="Call the function itself, or trace it outside.")


def _cond(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("pred", "true_fn", "false_fn", "operands"), args)) | kwargs
    operands = given.get("operands", ())
    return if_expr(
        given["pred"], lambda: call(given["true_fn"], *operands), lambda: call(given["false_fn"], *operands)
    )


def _while_loop(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("cond_fn", "body_fn", "carried_inputs"), args)) | kwargs
    carried: Sequence[Any] = tuple(given["carried_inputs"])

    def test() -> Any:
        return call(given["cond_fn"], *carried)

    def body() -> None:
        nonlocal carried
        result = call(given["body_fn"], *carried)
        carried = tuple(result) if is_a(result, (list, tuple)) else (result,)

    while_stmt(test, body, "carried")
    return carried


def _while_loop_function() -> Callable[..., Any]:
    return torch.while_loop if hasattr(torch, "while_loop") else _while_loop


HANDLERS: list[tuple[Any, Any]] = [
    (torch.cond, _cond), (_while_loop_function(), _while_loop), (torch.jit.trace, _trace),
    (torch.jit.trace_module, _trace),
]
