"""Calls of ``torch.nn.Module`` inside a trace: hooks in eager's order around the converted ``forward``."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dy2static.exclusions import exclusion_of
from dy2static.operators.calls import autograd_function
from dy2static.operators.calls.call import call
from dy2static.operators.calls.functions import call_function, unconverted
from dy2static.operators.provenance.host_random import noted_draws
from dy2static.operators.provenance.provenance import note_module
from dy2static.operators.shared import distributed
from dy2static.operators.shared.staging import Choice, Session, active, distribute, python_method
from dy2static.operators.values import lazy
from dy2static.operators.values.compiled import call_compiled
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked

_plain_call = torch_internals.copy_of(torch_internals.MODULE_CALL)
"""What ``nn.Module.__call__`` does outside of traces."""


def call_module(session: Session, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module(*args, **kwargs)``."""
    python_method(module, "__call__")  # a guard: a user's class may get its own
    own_call: Any = type(module).__call__
    if not is_call(own_call):
        return call_function(session, own_call, (module, *args), kwargs)
    return run_module(session, module, args, kwargs)


def is_call(method: Any) -> bool:
    """Whether a function is ``nn.Module.__call__``."""
    return method is torch_internals.MODULE_CALL or method is _plain_call


def run_module(session: Session, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``nn.Module.__call__(module, *args, **kwargs)``, whatever ``__call__`` the module's class has."""
    if is_a(module, torch.jit.ScriptModule):
        return call_compiled(session, module, functools.partial(_plain_call, module), args, kwargs)
    lazy.initialize(session, module, args, kwargs)
    note_module(session, module)
    if is_a(module, distributed.Parallel):
        return run_module(session, distributed.inner(session, module), args, kwargs)
    excluded = exclusion_of(module) or exclusion_of(type(module))
    if excluded is not None:
        with unconverted(session, type(module), excluded), noted_draws(session), _originals():
            return _plain_call(module, *args, **kwargs)
    return _call_with_hooks(session, module, args, kwargs)


def _call_with_hooks(session: Session, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    shared = torch_internals.global_module_hooks()
    if module._backward_hooks or module._backward_pre_hooks or shared.backward or shared.backward_pre:
        raise session.error(
            f"{type(module).__name__} has a backward hook, and a Program has no backward of single modules",
            hint="Put hooks on tensors outside the converted function, or convert the modules around it separately.",
            code="D2S219",
        )
    pre_hooks = (*shared.forward_pre.items(), *module._forward_pre_hooks.items())
    hooks = (*shared.forward.items(), *module._forward_hooks.items())
    if not pre_hooks and not hooks:
        return call(module.forward, *args, **kwargs)
    if any(str(unasked(hook, "__module__")).startswith("torch.distributed.") for _, hook in (*pre_hooks, *hooks)):
        raise session.error(  # before they change what they know of processes and parameters
            f"a {type(module).__name__} inside of what is converted is divided between processes: hooks around its "
            "forward gather its parameters", code="D2S213",
            hint="Convert such parts on their own, or shard the converted module as a whole; full_graph=False does the "
                 "former.")
    always = [key for key, _ in hooks if key in module._forward_hooks_always_called or key in shared.always_called]
    ran: set[int] = set()
    result: Any = None
    try:
        for key, hook in pre_hooks:
            args, kwargs = _pre_hook(session, module, hook, key in module._forward_pre_hooks_with_kwargs, args, kwargs)
        result = call(module.forward, *args, **kwargs)
        for key, hook in hooks:
            if key in always:
                ran.add(key)
            result = _forward_hook(session, module, hook, _takes_kwargs(module, shared, key), args, kwargs, result)
        return result
    except Exception:
        for key, hook in hooks:
            if key in always and key not in ran:
                with contextlib.suppress(Exception):  # eager warns and raises the first error
                    with_kwargs = _takes_kwargs(module, shared, key)
                    result = _forward_hook(session, module, hook, with_kwargs, args, kwargs, result)
        raise


def _takes_kwargs(module: torch.nn.Module, shared: torch_internals.GlobalModuleHooks, key: int) -> bool:
    return key in module._forward_hooks_with_kwargs or key in shared.with_kwargs


def _pre_hook(
    session: Session, module: torch.nn.Module, hook: Any, with_kwargs: bool, args: Any, kwargs: Any
) -> tuple[Any, Any]:
    if not with_kwargs:
        given = call(hook, module, args)

        def settle(result: Any) -> Any:
            if result is None:
                return args
            return result if is_a(result, tuple) else (result,)

        return _each(session, given, settle), kwargs
    given = call(hook, module, args, kwargs)

    def settle_both(result: Any) -> Any:
        if result is None:
            return args, kwargs
        if not (is_a(result, tuple) and len(result) == 2):
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
            )
        return result

    new_args, new_kwargs = _each(session, given, settle_both)
    return new_args, new_kwargs


def _forward_hook(
    session: Session, module: torch.nn.Module, hook: Any, with_kwargs: bool, args: Any, kwargs: Any, result: Any
) -> Any:
    given = call(hook, module, args, kwargs, result) if with_kwargs else call(hook, module, args, result)
    return _each(session, given, lambda value: result if value is None else value)


def _each(session: Session, value: Any, function: Callable[[Any], Any]) -> Any:
    """``function(value)``, where a hook may have returned None on one path and something else on another."""
    return distribute(session, value, function) if is_a(value, Choice) else function(value)


def _patched_call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """What ``nn.Module.__call__`` does in a trace: modules called by code that is not converted convert too."""
    session = active()
    if session is None or _local_originals:
        return _plain_call(self, *args, **kwargs)
    return run_module(session, self, args, kwargs)


_PATCHED = torch_internals.code_of_call(_patched_call)
_local_originals: list[None] = []


def space_as_in_eager(owner: Any, space: Any) -> Any:
    """The namespace of a class without what a trace puts in its place."""
    if owner is torch.autograd.Function:
        return types.MappingProxyType({**space, "apply": autograd_function.plain_definition()})
    return space


@contextlib.contextmanager
def _originals() -> Iterator[None]:
    """While the block runs, modules call their forward as it is."""
    _local_originals.append(None)
    try:
        yield
    finally:
        _local_originals.pop()


@contextlib.contextmanager
def patched_modules(session: Session) -> Iterator[None]:
    """Convert what modules run wherever they are called from, in the thread that traces."""
    excluded = _local_originals[:]
    _local_originals.clear()
    function = torch_internals.MODULE_CALL
    before, function.__code__ = function.__code__, _PATCHED
    try:
        yield
    finally:
        function.__code__ = before
        _local_originals.extend(excluded)
