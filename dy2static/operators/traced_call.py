"""Calls inside a trace: what is called decides.

A builtin has its own meaning for staged values, a module runs its hooks, a user's function is converted, torch gets
symbolic numbers; everything else runs as it is, under a note of why.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import inspect
import logging
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from dy2static.analysis.flow import LEAVING_FINALLY
from dy2static.errors import Dy2StaticError, SourceUnavailable
from dy2static.exclusions import exclusion_of
from dy2static.operators import (
    arity,
    boundary,
    builtin_methods,
    chosen,
    context_vars,
    growing,
    impure,
    iterators,
    observed,
    policy,
    staged_arguments,
    starred_call,
    tensor_attributes,
    tensor_keys,
)
from dy2static.operators.caches import CACHED, call_cached
from dy2static.operators.policy import home_of, reason_not_converted
from dy2static.operators.provenance import (
    CONTAINERS,
    adopt,
    enter_function,
    global_names,
    meet,
    memo,
    note_reads,
)
from dy2static.operators.staging import (
    Choice,
    Session,
    Staged,
    Undefined,
    any_staged,
    distribute,
    held_choice,
    spread,
    unbound_message,
)
from dy2static.operators.torch_values import from_torch, to_torch
from dy2static.origin import is_generated_file
from runtime import torch_internals
from runtime.tracer import containers, contents, faults, number_arguments, objects, reads, unseen
from runtime.tracer.choices import require_converted

_MAPPINGS = (dict, collections.UserDict)
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


_ABOUT_OBJECTS: tuple[Any, ...] = (id, isinstance, type, callable, hasattr, getattr, setattr, delattr)
"""Builtins that ask which object it is, or of what class, not what it holds."""


def traced_call(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)``; notes which iterators it may have made (see ``generator.fresh``)."""
    known = memo(session)
    made = known.made
    result = _called(session, f, args, kwargs)
    if id(result) in session.originals:
        meet(session, result)
    known.before_call, known.new_iterator = made, None
    if type(result) in contents.READING and (isinstance(f, type) or (f is iter and result is not args[0])):
        known.new_iterator = result
    return result


def _called(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(f, Choice):
        return distribute(session, f, lambda option: traced_call(session, option, args, kwargs))
    if isinstance(f, Undefined):
        raise UnboundLocalError(unbound_message(f.name))
    if session.has_growing and starred_call.holds_items(args) and not _is_partial(f):
        return starred_call.fitted(session, f, args, kwargs, lambda given: _fitted(session, f, given, kwargs))
    return _fitted(session, f, args, kwargs)


def _is_partial(f: Any) -> bool:
    """Whether a call hands its arguments on, or keeps them, as they are."""
    return isinstance(f, functools.partial) or f is functools.partial


def _fitted(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call, of arguments that the callee's parameters take."""
    from dy2static.operators import autograd_function, modules
    from dy2static.operators.builtins import compiled, handler_of, operator_functions

    if not isinstance(f, (types.FunctionType, types.MethodType)) and not iterators.keeps(f):
        iterators.note_given(session, args)
    handler = handler_of(f)
    if handler is not None:
        arity.require_fitting(f, args, kwargs)
        if session.has_contents and f not in _ABOUT_OBJECTS:
            args = tuple(map(containers.opened, args))
            kwargs = {name: containers.opened(arg) for name, arg in kwargs.items()}
        boundary.require(session, f, args, kwargs)
        return handler(session, args, kwargs)
    builtin = tensor_attributes.builtin_of(f, args)
    if builtin is not None and not kwargs:
        return traced_call(session, builtin, (f.__self__, *args), kwargs)
    impure.check(session, f)
    if compiled.is_compiled(f):
        boundary.require(session, f, args, kwargs)
        return compiled.call_compiled(session, f, f, args, kwargs)
    if isinstance(f, types.BuiltinMethodType) and isinstance(f.__self__, contextvars.ContextVar):
        return context_vars.call(session, f.__self__, f.__name__, args, kwargs)
    if not isinstance(f, types.MethodType):
        observed.check_doing(session, f, args)
    if isinstance(f, torch.nn.Module):
        return modules.call_module(session, f, args, kwargs)
    if isinstance(f, types.FunctionType):
        if modules.is_call(f) and args:
            return modules.run_module(session, args[0], args[1:], kwargs)
        return call_function(session, f, args, kwargs)
    if autograd_function.is_apply(f):
        return autograd_function.apply(session, f.__self__, args, kwargs)
    if isinstance(f, types.MethodType):
        excluded = exclusion_of(f)
        if excluded is not None:
            boundary.require(session, f, args, kwargs)
            with unconverted(session, f, excluded):
                return f(*args, **kwargs)
        if modules.is_call(f.__func__):
            module: Any = f.__self__
            return modules.run_module(session, module, args, kwargs)
        return traced_call(session, f.__func__, (f.__self__, *args), kwargs)
    if isinstance(f, functools.partial):
        return traced_call(session, f.func, (*f.args, *args), {**f.keywords, **kwargs})
    if isinstance(f, type):
        return _make(session, f, args, kwargs)
    if policy.is_torch(f):
        return call_torch(session, f, args, kwargs)
    growing.require_no_data(session, f, (*args, *kwargs.values()))
    if isinstance(f, (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType)) or (
            isinstance(f, types.WrapperDescriptorType) and args
            and (growing.is_growing(args[0]) or containers.several(args[0]) is not None)):
        return builtin_methods.call_builtin(session, f, args, kwargs)
    method = _call_method(f)
    if method is not None:
        return call_function(session, method, (f, *args), kwargs)
    if isinstance(f, operator_functions.GETTERS):
        return operator_functions.call_getter(session, f, *args, **kwargs)
    boundary.require(session, f, args, kwargs)
    if isinstance(f, (staticmethod, classmethod)):
        return traced_call(session, f.__func__, args, kwargs)
    if isinstance(f, CACHED) and args and isinstance(args[0], logging.Logger) and not any_staged([args, kwargs]):
        return f(*args, **kwargs)  # said once, not at each run
    if isinstance(f, weakref.ref):
        _require_living(session, f)
    if isinstance(f, CACHED):
        return call_cached(session, f, args, kwargs)
    return chosen.per_option(session, f, args, kwargs, functools.partial(_call_object, session, f))


def _call_object(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an object that is no Python function and has none for its calls."""
    with observed.observed(session, *args, *kwargs.values()):
        result = chosen.foreign(session, f, args, kwargs)
    observed.note_fresh(session, f, result, (*args, *kwargs.values()))
    return result


_CONVERTED_CLASSES = (torch.nn.Module, torch.distributions.Distribution)
"""Classes of torch whose constructors are converted."""

def _require_living(session: Session, reference: Any) -> None:
    """Refuse a weak reference made inside once paths were staged: both are followed, and its object may die on one."""
    staged = session.pictures or any(op.name in _PATHS for op in session.program.block.ops)
    if staged and id(reference) in memo(session).created and not unseen.is_local(session, reference()):
        raise session.error(
            "whether the object of a weak reference still lives may depend on the path that a run takes",
            hint="Keep the object, and a flag for whether it is in use.", code="D2S264")


_PATHS = ("cond", "switch", "while_loop")


def _call_method(f: Any) -> types.FunctionType | None:
    for cls in type(f).__mro__:
        method = cls.__dict__.get("__call__")
        if method is not None:
            return method if isinstance(method, types.FunctionType) else None
    return None


# -- Python functions


_MANAGER_CODE = contextlib.contextmanager(lambda: iter(())).__code__
"""What ``contextlib.contextmanager`` makes of every function."""


def call_function(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Python function: converted if it is a user's, else as it is."""
    from dy2static.operators import modules

    file = f.__code__.co_filename
    if is_generated_file(file):
        return _run(session, f, args, kwargs)
    home = home_of(file)
    if home == "dy2static":
        return f(*args, **kwargs)
    if f.__code__ is _MANAGER_CODE:  # its generator is converted, too
        made: Any = f.__wrapped__  # type: ignore[attr-defined]
        return contextlib.contextmanager(lambda *a, **k: traced_call(session, made, a, k))(*args, **kwargs)
    reason = reason_not_converted(f)
    if home == "torch" and f.__name__ == "tolist" and args and isinstance(args[0], torch.Tensor):
        return reads.tolist(session, args[0])
    if home == "torch" and reason and (
            policy.is_plain_torch(f) and any_staged([args, kwargs]) or modules.has_staged_mode(args)):
        if held_choice((args, kwargs)) is not None:
            return spread(session, (args, kwargs), lambda given: call_function(session, f, *given))
        with contextlib.suppress(SourceUnavailable):
            converted = convert(f)
            if converted is not f:
                return _enter(session, f, converted, args, kwargs)
    if home == "torch" and reason:
        roots = args[:1] if args and isinstance(args[0], torch.nn.Module) else ()
        with unconverted(session, f, reason), observed.observed(session, *roots):
            return call_torch(session, f, args, kwargs)
    if not reason and not f.__code__.co_flags & _COROUTINE:
        try:
            converted = convert(f)
        except SourceUnavailable as error:
            reason = error.summary
        else:
            if converted is not f:
                return _enter(session, f, converted, args, kwargs)
            reason = why_left_alone(f)
    boundary.require(session, f, args, kwargs)
    if args and isinstance(args[0], _MAPPINGS) and f.__name__ in ("update", "subtract", "__init__"):
        args = (args[0], *tensor_keys.own_mapping(session, type(args[0]), args[1:]))
    if f.__code__.co_flags & _LAZY:
        return f(*args, **kwargs)
    return chosen.per_option(session, f, args, kwargs, functools.partial(_call_unconverted, session, f, reason, home))


def _call_unconverted(
    session: Session, f: types.FunctionType, reason: str, home: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    held = contents.cells_of(f)
    if not home:
        note_reads(session, f, (*args, *kwargs.values()))
        held += [f.__globals__, *(f.__globals__.get(name) for name in global_names(f.__code__))]
    for one in held:
        if isinstance(one, CONTAINERS) and one is not f.__globals__:
            adopt(session, one)
    observed.check_text(session, reason)
    with unconverted(session, f, reason), observed.observed(session, *args, *kwargs.values(), *held):
        try:
            result = f(*args, **kwargs)
        except (TypeError, ValueError, AttributeError) as error:
            if home != "the standard library" or not any_staged([args, kwargs]):
                raise
            raise chosen.refusal(session, f) from error
    observed.note_fresh(session, f, result, (*args, *kwargs.values()))
    return result


def why_left_alone(f: types.FunctionType) -> str:
    """Why `convert` gives the function itself."""
    from dy2static import conversion

    return conversion.reason_left_alone(f)


def convert(f: types.FunctionType) -> types.FunctionType:
    """The converted function. Raises SourceUnavailable if it has no source."""
    from dy2static import conversion

    return conversion.convert(f, routed=True)


def _enter(
    session: Session, f: types.FunctionType, converted: types.FunctionType, args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a function that was converted: what it names is guarded."""
    if not memo(session).entered:
        for arg in (*args, *kwargs.values()):
            adopt(session, arg)
    enter_function(session, f)
    return _run(session, converted, args, kwargs)


def _run(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if sum(1 for _ in session.scope.chain()) > NESTING_LIMIT:
        raise _too_deep(session, f)
    before, session.unconverted = session.unconverted, []
    try:
        return f(*args, **kwargs)
    except RecursionError as error:
        if faults.in_tracer(error):
            raise session.error(
                "a list or dict that holds itself is changed, joined or carried by a branch or loop",
                hint="Keep what refers to it outside the converted function.",
                code="D2S228", location=faults.error_place(error)) from error
        raise _too_deep(session, f) from error
    finally:
        session.unconverted = before


NESTING_LIMIT = 60
"""Calls inside more branches and loops than this are taken for recursion that a tensor is to end."""


def _too_deep(session: Session, f: types.FunctionType) -> Exception:
    return session.error(
        f"{f.__name__}() calls itself without end while it is traced: how deep it goes depends on a tensor, and both "
        "ways are followed", hint="Write it as a loop.", code="D2S270")


@contextmanager
def unconverted(session: Session, f: Any, reason: str) -> Iterator[None]:
    """While the block runs, errors say that they happened inside a function that is not converted, and why."""
    session.unconverted.append((getattr(f, "__qualname__", type(f).__name__), reason))
    before = session.last_error
    try:
        yield
        if reason == LEAVING_FINALLY and session.last_error is not None and session.last_error is not before:
            raise session.last_error  # it was swallowed
    except torch_internals.SHAPE_ERRORS as error:
        raise session.undecidable() from error
    except AttributeError as error:
        require_converted(error)
        raise
    except Exception as error:
        if isinstance(error, Dy2StaticError):
            raise
        if session.last_error is not None and session.last_error is not before:
            raise session.last_error from error  # it was taken for another
        if torch_internals.comes_of_shapes(error):
            raise session.undecidable() from error
        raise
    finally:
        session.unconverted.pop()


# -- torch


def call_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call one of torch's functions: staged numbers go in as symbolic ones and come back as staged ones."""
    original = getattr(f, "_torchdynamo_orig_callable", None)
    if original is not None:  # what torch.compile was given
        return traced_call(session, original, args, kwargs)
    if getattr(f, "__name__", "") == "as_subclass":
        for arg in args:
            require_plain(session, arg)
    if f is torch.autograd.backward:
        raise session.error("torch.autograd.backward() runs backward inside a converted function", code="D2S213",
                            hint="Call it outside the converted function.")
    if f"{getattr(f, '__module__', '')}.".startswith(("torch._functorch.", "torch.func.")):
        raise session.error(f"torch.func.{f.__name__} inside a converted function", code="D2S271",
                            hint="Apply it outside, around the converted function, or use torch.autograd.grad.")
    if held_choice((args, kwargs)) is not None:
        return spread(session, (args, kwargs), lambda given: call_torch(session, f, *given))
    owner = getattr(f, "__self__", None)
    if isinstance(owner, torch.Tensor) and getattr(f, "__name__", "") == "new_tensor" and (
            any_staged([args]) or growing.holds(args)):
        like = {"dtype": owner.dtype, "device": owner.device}
        return traced_call(session, torch.tensor, args, {**like, **{k: v for k, v in kwargs.items() if v is not None}})
    if growing.holds((*args, *kwargs.values())):
        return growing.to_torch(session, f, args, kwargs)
    boundary.require(session, f, args, kwargs)
    if any_staged([args, kwargs]):
        if any(f is mode for mode in _MODES):
            raise session.error(
                f"torch.{f.__name__} gets a value that is only known while the Program runs",
                hint="Use an if with the with statement in each branch.", code="D2S212")
        return staged_arguments.decided(session, f, args, kwargs, functools.partial(_call_torch, session, f))
    return _call_torch(session, f, args, kwargs)


def _call_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    args = tuple(to_torch(session, arg) for arg in args)
    kwargs = {name: to_torch(session, arg) for name, arg in kwargs.items()}
    try:
        return from_torch(session, number_arguments.called(session, f, args, kwargs))
    except torch_internals.SHAPE_ERRORS as error:  # before a handler of the user's can take it for eager's
        raise session.undecidable() from error


_MODES: tuple[Any, ...] = (torch.set_grad_enabled, torch.inference_mode, torch.autocast)


# -- classes


def _make(session: Session, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An instance: ``__init__`` (and ``__new__``) of users' classes are converted."""
    if issubclass(cls, torch.Tensor):
        require_plain(session, cls)
    if issubclass(cls, torch.Tensor) or (policy.is_torch(cls) and not issubclass(cls, _CONVERTED_CLASSES)):
        made = call_torch(session, cls, args, kwargs)
    elif issubclass(cls, torch.nn.Module) and policy.is_torch(cls) and _is_given_numbers(args, kwargs):
        made = _construct(session, cls, args, kwargs)
    elif type(cls).__call__ is not type.__call__ or not _has_user_constructor(cls) or exclusion_of(cls) is not None:
        boundary.require(session, cls, args, kwargs)
        if issubclass(cls, _MAPPINGS):
            args = tensor_keys.own_mapping(session, cls, args)
        made = chosen.per_option(session, cls, args, kwargs, functools.partial(_make_one, session, cls))
    else:
        made = _construct(session, cls, args, kwargs)
    return _note_made(session, made)


def _is_given_numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a staged number is among the arguments, and nothing that is one of several."""
    return any_staged([args, kwargs]) and held_choice((args, kwargs)) is None


def _make_one(session: Session, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An instance of a class that is not converted, on one of the paths on which it is made."""
    return _note_made(session, chosen.foreign(session, cls, args, kwargs))


def _note_made(session: Session, made: Any) -> Any:
    if not isinstance(made, (torch.Tensor, Staged, Choice)):
        memo(session).created[id(made)] = made
        if objects.is_record(made):  # a generated __init__ keeps no journal
            session.journal.note_made(made)
    return made


def require_plain(session: Session, cls: Any) -> None:
    """Refuse to make a tensor of a user's class: a Program's tensors are torch's own.

    Raises:
        TraceError: D2S213.
    """
    if isinstance(cls, type) and not cls.__module__.startswith("torch."):
        if issubclass(cls, torch.Tensor) and cls is not torch.Tensor:
            raise session.error(f"a tensor of the class {cls.__name__} is made inside a converted function",
                                code="D2S213", hint="Make it outside.")


def _found(cls: type, name: str) -> Any:
    return getattr(cls, name)


def _has_user_constructor(cls: type) -> bool:
    return any(
        isinstance(method, types.FunctionType) and not home_of(method.__code__.co_filename)
        for method in (_found(cls, "__init__"), _found(cls, "__new__"))
    )


def _construct(session: Session, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    new = _found(cls, "__new__")
    if isinstance(new, types.FunctionType):
        made = traced_call(session, new, (cls, *args), kwargs)
    elif new is object.__new__ and _found(cls, "__init__") is not object.__init__:
        made = new(cls)
    else:
        boundary.require(session, new, args, kwargs)
        made = new(cls, *args, **kwargs)
    if isinstance(made, cls):
        memo(session).created[id(made)] = made
        session.constructing.add(id(made))
        try:
            traced_call(session, _found(type(made), "__init__"), (made, *args), kwargs)
        finally:
            session.constructing.discard(id(made))
    return made
