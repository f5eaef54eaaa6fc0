"""Calls of Python functions and of torch's inside a trace: converted if they are a user's, else as they are."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import re
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from dy2static.analysis.flow import LEAVING_FINALLY, LOOKS_AT_VARIABLES
from dy2static.errors import Dy2StaticError, SourceUnavailable
from dy2static.operators.calls import (
    boundary,
    dataclass_methods,
    function_transforms,
    growing,
    indices,
    keyed,
    manager_halves,
    module_calls,
    named_tuples_in_python,
    numpy_arrays,
    recursion,
    staged_arguments,
    torch_in_python,
)
from dy2static.operators.calls.call import call, traced
from dy2static.operators.calls.manager_halves import Halves
from dy2static.operators.calls.sequences import StagedRange
from dy2static.operators.calls.torch_values import from_torch, to_torch
from dy2static.operators.provenance import chosen, keyed_keys, observed, tensor_keys
from dy2static.operators.provenance.host_random import noted_draws
from dy2static.operators.provenance.library_reads import note_given, note_parts
from dy2static.operators.provenance.names_read import note_methods, note_reads
from dy2static.operators.provenance.provenance import (
    CONTAINERS,
    adopt,
    enter_function,
    global_names,
    memo,
    note_module,
    note_modules,
)
from dy2static.operators.shared import escaped, module_facts, policy
from dy2static.operators.shared.policy import home_of, reason_not_converted
from dy2static.operators.shared.staging import (
    Session,
    active,
    any_staged,
    held_choice,
    spread,
)
from dy2static.operators.shared.waiting import ends_with_calls
from dy2static.origin import is_generated_file, root_of
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient import catching, contents, source_places
from runtime.tracer.ambient.calls import Findings, tensors_in
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.numbers import number_arguments
from runtime.tracer.numbers.staged_size import in_eager
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.recording import backward, faults, leaf_gradients, reads
from runtime.tracer.values import identities
from runtime.tracer.values.choices import require_converted

_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

MAPPINGS = (dict, collections.UserDict)
"""Classes whose constructors and updates take items."""


# -- Python functions


_MANAGER_CODE = contextlib.contextmanager(lambda: iter(())).__code__
"""What ``contextlib.contextmanager`` makes of every function."""
_MAKE_CODE = collections.namedtuple("_MAKE_CODE", "")._make.__func__.__code__  # type: ignore[attr-defined]
"""What every ``namedtuple`` has for its ``_make``."""


def call_function(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Python function: converted if it is a user's, else as it is."""
    file = f.__code__.co_filename
    hidden = torch_internals.hidden_from_dynamo(f)
    if hidden is not None:
        return traced(session, hidden, args, kwargs)
    if is_generated_file(file):
        return _run(session, f, args, kwargs)
    home = home_of(file)
    if home == "dy2static":
        return f(*args, **kwargs)
    if function_transforms.is_transform(f):
        return _call_transform(session, f, args, kwargs)
    if f.__code__ is _MANAGER_CODE:  # its generator is converted, too
        made: Any = f.__wrapped__  # type: ignore[attr-defined]
        if session.call.known.escaping and (enters := _first_half(session, made, args, kwargs)):
            return Halves(session, enters, manager_halves.may_swallow(made))
        manager = contextlib.contextmanager(lambda *a, **k: traced(session, made, a, k))(*args, **kwargs)
        memo(session).created[id(manager)] = manager
        return manager
    if f.__code__ is _MAKE_CODE:
        return traced(session, named_tuples_in_python.make, args, kwargs)
    shown = dataclass_methods.shown(session, f, args)
    if shown is not dataclass_methods.NOT_DONE:
        return shown
    of_parts = module_calls.called(session, f, args, kwargs) if policy.is_torch(f) else NotImplemented
    if of_parts is not NotImplemented:
        return of_parts
    reason = reason_not_converted(f)
    instead = torch_in_python.in_python(session, f, args, kwargs) if home == "torch" else None
    if instead is not None:
        return call_function(session, *instead, {})
    if home == "torch" and f.__name__ == "tolist" and args and is_a(args[0], torch.Tensor):
        return reads.tolist(session, args[0])
    if home == "torch" and reason and (
            policy.is_plain_torch(f) and (any_staged([args, kwargs]) or _asks_gradients(f))
            or _name_of(f) in session.call.known.reading
            or module_facts.has_staged_mode(args)):
        if held_choice((args, kwargs)) is not None:
            return spread(session, (args, kwargs), lambda given: call_function(session, f, *given))
        with contextlib.suppress(SourceUnavailable):
            converted = convert(session, f)
            if converted is not f:
                return _enter(session, f, converted, args, kwargs)
    if home == "torch" and reason:
        roots = args[:1] if args and is_a(args[0], torch.nn.Module) else ()
        if roots and f.__qualname__.startswith("Module.") and "_modules" in vars(roots[0]):
            if f.__name__ not in _OF_CHILDREN:
                note_modules(session, roots[0])
            elif "training" in vars(roots[0]):
                note_module(session, roots[0])
        elif roots and "_modules" in vars(roots[0]):  # nn.Linear.forward(layer, x)
            note_modules(session, roots[0])
        elif args and not is_a(args[0], (torch.Tensor, torch.nn.Module, type)) and not is_plain(args[0]):
            note_parts(session, args[0])
        with unconverted(session, f, reason), observed.observed(session, *roots):
            try:
                return call_torch(session, f, args, kwargs)
            except Dy2StaticError as error:
                asked = error.code in ("D2S212", "D2S229")  # what decides, or raises what a handler waits for
                if asked and policy.may_decide(f) and _name_of(f) not in session.call.known.reading:
                    raise session.restart(Findings(reading=frozenset({_name_of(f)}))) from error
                raise
    if f in policy.AS_IT_IS:
        home = "the standard library"
        if args and is_a(args[0], MAPPINGS):
            keyed.note_method(session, args[0], f.__name__, args[1:])
        try:
            boundary.require(session, f, args, kwargs)
        except Dy2StaticError as error:
            if error.code != "D2S254":
                raise
            reason = ""
    if not reason and not f.__code__.co_flags & _COROUTINE:
        try:
            converted = convert(session, f)
        except SourceUnavailable as error:
            reason = error.summary
        else:
            if converted is not f:
                return _enter(session, f, converted, args, kwargs)
            reason = _reason[0](f)
    return call_as_it_is(session, f, reason, home, args, kwargs)


def _call_transform(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a transform of ``torch.func``, or what one made, as it is."""
    if held_choice((args, kwargs)) is not None:
        return spread(session, (args, kwargs), lambda given: call_function(session, f, *given))
    boundary.require(session, f, args, kwargs)
    held = function_transforms.note_what_runs(session, f, args, kwargs)
    session.code.transforms += 1
    try:
        with (unconverted(session, f, function_transforms.REASON), noted_draws(session),
              observed.observed(session, *args, *kwargs.values(), *held)):  # fmt: skip
            return _call_torch(session, f, args, kwargs)
    except RuntimeError as error:
        function_transforms.require_no_assert(session, f, error)
        raise
    finally:
        session.code.transforms -= 1


def call_as_it_is(
    session: Session, f: types.FunctionType, reason: str, home: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a Python function that is not converted: what it may read is guarded, what it changes is found."""
    if f.__name__ == "__init__" and boundary.holds_stand_in((*args[1:], *kwargs.values())):
        if dataclass_methods.constructed(session, f, args, kwargs):
            return None
    boundary.require(session, f, args, kwargs)
    keyed_keys.require_none(session, f, (*args, *kwargs.values()))
    if args and is_a(args[0], MAPPINGS) and f.__name__ in ("update", "subtract", "__init__"):
        args = (args[0], *tensor_keys.own_mapping(session, type(args[0]), args[1:]))
    if f.__code__.co_flags & _LAZY:
        return f(*args, **kwargs)
    compared = dataclass_methods.called(session, f, args, kwargs)
    if compared is not dataclass_methods.NOT_DONE:
        return compared
    run = functools.partial(_call_unconverted, session, f, reason, home)
    with dataclass_methods.converted_parts(session, f, args):
        return chosen.per_option(session, f, args, kwargs, run)


_OF_CHILDREN = ("children", "named_children", "__dir__", "__getattr__", "extra_repr")
"""Methods of ``torch.nn.Module`` that look at one module only."""


def _asks_gradients(f: types.FunctionType) -> bool:
    """Whether one of PyTorch's functions asks its arguments whether they need gradients, or calls one that does.

    Where it runs as it is, below autograd, no tensor says that it does.
    """
    names = (f.__name__,) if f.__module__ == "torch.nn.functional" else f.__code__.co_names
    return str(f.__module__).startswith("torch.nn.") and not _ASKING.isdisjoint(names)


_ASKING = frozenset(
    name for name, one in vars(torch.nn.functional).items()
    if is_a(one, types.FunctionType) and "requires_grad" in one.__code__.co_names)  # fmt: skip
"""Functions of ``torch.nn.functional`` that ask ``x.requires_grad``."""


def _name_of(f: types.FunctionType) -> str:
    return f"{f.__module__}.{f.__qualname__}"


def _call_unconverted(
    session: Session, f: types.FunctionType, reason: str, home: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    numpy_arrays.require_no_data(session, f, (*args, *kwargs.values()))
    args, kwargs = tuple(map(in_eager, args)), {name: in_eager(arg) for name, arg in kwargs.items()}
    held = contents.cells_of(f)
    if not home:
        note_reads(session, f, (*args, *kwargs.values()))
        held += [f.__globals__, *(f.__globals__.get(name) for name in global_names(f.__code__))]
    for one in held:
        if is_a(one, CONTAINERS) and one is not f.__globals__:
            adopt(session, one)
    for one in (*args, *kwargs.values()):
        if is_a(one, torch.nn.Module):
            note_modules(session, one)
    if home == "the standard library":
        note_methods(session, f, note_given(session, (*args, *kwargs.values())))
    observed.check_text(session, reason)
    with (unconverted(session, f, reason), noted_draws(session),
          observed.observed(session, *args, *kwargs.values(), *held)):  # fmt: skip
        try:
            result = _seen(f, home, reason)(*args, **kwargs)
        except (TypeError, ValueError, AttributeError) as error:
            if home == "the standard library":
                numpy_arrays.require_none(session, f, args, kwargs)
            named = re.search(r"\bStaged[A-Z]\w*", str(error))  # what a function that it calls gave
            if home != "the standard library" or not (named or any_staged([args, kwargs])):
                raise
            raise chosen.refusal(session, f) from error
    observed.note_fresh(session, f, result, (*args, *kwargs.values()))
    note_made_class(session, result)
    return observed.made(session, result)


def _seen(f: types.FunctionType, home: str, reason: str) -> Callable[..., Any]:
    """A function that looks at its own variables, with its calls alone rewritten: ``type(x)`` would give the class of
    what stands for a tensor."""
    if home or not _calls or not reason.endswith(LOOKS_AT_VARIABLES):
        return f
    return _calls[0](f) or f


_calls: list[Callable[[types.FunctionType], types.FunctionType | None]] = []


def register_calls(rewrite: Callable[[types.FunctionType], types.FunctionType | None]) -> None:
    """What rewrites the calls of a function, and nothing else of it."""
    _calls[:] = [rewrite]


def note_made_class(session: Session, made: Any) -> None:
    """Give a class the module that asked for it: ``namedtuple()`` and the like look at who calls them."""
    if is_a(made, type):
        session.code.given_classes[id(made)] = made
        if str(made.__module__).startswith("dy2static.operators.") and session.code.module_name:
            made.__module__ = session.code.module_name


_convert: list[Callable[[types.FunctionType, Any], types.FunctionType]] = []
_reason: list[Callable[[types.FunctionType], str]] = []


def register(
    convert: Callable[[types.FunctionType, Any], types.FunctionType], reason: Callable[[types.FunctionType], str]
) -> None:
    """What converts the functions that are called (the second argument: to which form), and says why it left one alone.

    ``dy2static.conversion`` says so itself: the code that it makes calls the operators, which know nothing of it.
    """
    _convert[:], _reason[:] = [convert], [reason]


def convert(session: Session, f: types.FunctionType) -> types.FunctionType:
    """The converted function. Raises SourceUnavailable if it has no source."""
    return _convert[0](f, "escaping" if root_of(f.__code__) in session.call.known.escaping else "routed")


def _first_half(
    session: Session, made: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], Any] | None:
    """What enters the manager that a generator function of the user's makes; None where it cannot be split."""
    if not is_a(made, types.FunctionType) or is_generated_file(made.__code__.co_filename):
        return None
    if reason_not_converted(made):
        return None
    with contextlib.suppress(SourceUnavailable):
        converted = _convert[0](made, "manager")
        if manager_halves.is_half(converted.__code__):
            return functools.partial(_enter, session, made, converted, args, kwargs)
    return None


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
    if session.exceptions.escape is not None:
        raise catching.unsupported(session)
    return recursion.called(session, f, args, kwargs, functools.partial(_activate, session, f))


@ends_with_calls
def _activate(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    place = session.location() if session.call.known.escaping else None
    before, session.code.unconverted = session.code.unconverted, []
    caller, session.code.module_name = session.code.module_name, f.__globals__.get("__name__", "")
    session.code.functions.append(root_of(f.__code__))
    try:
        result = f(*args, **kwargs)
        if session.exceptions.escape is not None:  # of a call in it, which nobody has looked at
            raise catching.unsupported(session)
        if escaped.holds(result):
            result = escaped.raised(session, escaped.settled(session, result))
            leaves = escaped.holds(result)
            session.exceptions.escape, session.exceptions.escape_place = (result, place) if leaves else (None, None)
        return result
    except RecursionError as error:
        if faults.in_tracer(error):
            raise faults.went_round(session, source_places.error_place(error)) from error
        raise recursion.too_deep(session, f) from error
    finally:
        session.code.unconverted, session.code.module_name = before, caller
        session.code.functions.pop()


@contextmanager
def unconverted(session: Session, f: Any, reason: str) -> Iterator[None]:
    """While the block runs, errors say that they happened inside a function that is not converted, and why."""
    session.code.unconverted.append((unasked(f, "__qualname__", type(f).__name__), reason))
    before = session.exceptions.last_error
    try:
        yield
        last = session.exceptions.last_error
        if reason == LEAVING_FINALLY and last is not None and last is not before:
            raise last  # it was swallowed
    except torch_internals.shape_errors() as error:
        raise session.undecidable() from error
    except AttributeError as error:
        require_converted(error)
        raise
    except Exception as error:
        if is_a(error, Dy2StaticError):
            raise
        if session.exceptions.last_error is not None and session.exceptions.last_error is not before:
            raise session.exceptions.last_error from error  # it was taken for another
        if torch_internals.comes_of_shapes(error):
            raise session.undecidable() from error
        raise
    finally:
        session.code.unconverted.pop()


# -- torch


def _backward(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``torch.autograd.backward``, with what it says of its old keyword."""
    if (args[4] if len(args) > 4 else kwargs.get("grad_variables")) is not None:
        message = "`grad_variables` is deprecated. Use `grad_tensors` instead."
        traced(session, warnings.warn, (message, FutureWarning), {})
    theirs(backward.backward, *args, **kwargs)


def _backward_of_others(*args: Any, **kwargs: Any) -> None:
    session = active()
    if session is None:
        _plain_backward(*args, **kwargs)
    else:
        _backward(session, args, kwargs)


_OF_TORCH: Any = torch.autograd.backward
_plain_backward = torch_internals.copy_of(_OF_TORCH)
_BACKWARD = torch_internals.code_of_call(_backward_of_others)


@contextmanager
def patched_backward() -> Iterator[None]:
    """While the block runs, ``torch.autograd.backward`` is staged where code that is not converted calls it, too: it
    asks no mode, as ``torch.autograd.grad`` and ``Tensor.backward`` do."""
    before, _OF_TORCH.__code__ = _OF_TORCH.__code__, _BACKWARD
    try:
        yield
    finally:
        _OF_TORCH.__code__ = before


def call_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call one of torch's functions: staged numbers go in as symbolic ones and come back as staged ones."""
    original = unasked(f, "_torchdynamo_orig_callable")
    if original is not None:  # what torch.compile was given
        return traced(session, original, args, kwargs)
    operator = torch_internals.overload_of(f)
    if operator is not None:
        return traced(session, operator, args, kwargs)
    if unasked(f, "__name__", "") == "as_subclass":
        for arg in args:
            require_plain(session, arg)
    if f is torch.Tensor.backward:
        return theirs(backward.of_tensor, *args, **kwargs)
    if f is torch.autograd.backward:
        return _backward(session, args, kwargs)
    home = f"{getattr(f, '__module__', '')}."
    batched = home == "torch._vmap_internals."  # of torch.autograd.functional, and of libraries older than torch.func
    if (batched or home.startswith(("torch._functorch.", "torch.func."))) and not session.code.transforms:
        name = "vmap" if batched else f.__name__
        raise session.error(f"torch.func.{name} inside a converted function", code="D2S271",
                            hint="Apply it outside, around the converted function, or use torch.autograd.grad.")
    if held_choice((args, kwargs)) is not None:
        return spread(session, (args, kwargs), lambda given: call_torch(session, f, *given))
    made = _of_data(f, args, kwargs)
    if made is not None:
        return traced(session, torch.tensor, *made)
    instead = torch_in_python.in_python(session, f, args, kwargs)
    if instead is not None:
        return call_function(session, *instead, {})
    if growing.holds((*args, *kwargs.values())):
        return growing.to_torch(session, f, args, kwargs)
    boundary.require(session, f, args, kwargs)
    identities.require_none(session, (*args, *kwargs.values()))
    if any_staged([args, kwargs]):
        if any(f is mode for mode in _MODES):
            raise session.error(
                f"torch.{f.__name__} gets a value that is only known while the Program runs",
                hint="Use an if with the with statement in each branch.", code="D2S212")
        return staged_arguments.decided(session, f, args, kwargs, functools.partial(_call_torch, session, f))
    with observed.with_users_methods(session, (*args, *kwargs.values())):
        return _call_torch(session, f, args, kwargs)


_CONSTRUCTORS = ("new", "new_tensor")
"""Methods that make a tensor like another one; ``new`` takes data or sizes, as ``torch.Tensor`` does."""


def _of_data(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """What ``torch.tensor`` gets for a call that makes a tensor of data that only the run knows, None for other calls.

        x.new_tensor([n])   x.new([n])   torch.Tensor([n])   torch.LongTensor([n])
    """
    given = {name: value for name, value in kwargs.items() if value is not None}
    owner, name = unasked(f, "__self__"), unasked(f, "__name__", "")
    if (f is torch.Tensor.new or f is torch.Tensor.new_tensor) and args:
        owner, args = args[0], args[1:]
    if is_a(owner, torch.Tensor) and name in _CONSTRUCTORS:
        like: dict[str, Any] = {"dtype": owner.dtype, "device": owner.device}
    elif f is torch.Tensor:
        like = {"dtype": torch.get_default_dtype(), "device": "cpu"}
    elif type(f) is type(torch.FloatTensor) and not f.is_sparse:
        like = {"dtype": f.dtype, "device": "cuda" if f.is_cuda else "cpu"}
    else:
        return None
    if name != "new_tensor" and (
            len(args) != 1 or type(args[0]) not in (list, tuple, StagedRange) or given.keys() - {"device"}):
        return None
    if any_staged([args]) or growing.holds(args) or any(type(one) is StagedRange for one in args):
        return args, {**like, **given}
    if name != "new_tensor" and any(True for _ in tensors_in(args, {})):
        return args, {**like, **given}
    return None


def _call_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    asked: list[indices.Asked] = []
    if not is_a(f, types.FunctionType):
        args, kwargs, asked = indices.in_place_of_objects(args, kwargs)
    try:
        return _given_to_torch(session, f, args, kwargs)
    except TypeError:
        if not indices.require_asked(asked):
            raise
    return _call_torch(session, f, *indices.with_numbers(args, kwargs))


def _given_to_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    args, kwargs = numpy_arrays.for_torch(session, f, args, kwargs)
    args = tuple(to_torch(session, arg) for arg in args)
    kwargs = {name: to_torch(session, arg) for name, arg in kwargs.items()}
    try:
        if is_a(f, types.FunctionType):
            with observed.watched_tensors(session, (*args, *kwargs.values())):
                result = number_arguments.called(session, f, args, kwargs)
        else:
            result = number_arguments.called(session, f, args, kwargs)
        return from_torch(session, result)
    except torch_internals.shape_errors() as error:  # before a handler of the user's can take it for eager's
        raise session.undecidable() from error


_MODES: tuple[Any, ...] = (torch.set_grad_enabled, torch.inference_mode, torch.autocast)


def require_plain(session: Session, cls: Any) -> None:
    """Refuse to make a tensor of a user's class: a Program's tensors are torch's own.

    Raises:
        TraceError: D2S213.
    """
    if is_a(cls, type) and not module_name(cls).startswith("torch."):
        if issubclass(cls, torch.Tensor) and cls is not torch.Tensor:
            raise session.error(f"a tensor of the class {cls.__name__} is made inside a converted function",
                                code="D2S213", hint="Make it outside.")


def _call_hook(hook: Any, *args: Any) -> Any:
    """Call a hook that the caller put on a tensor: it, and what it changes, is older than the trace."""
    session = active()
    if session is not None:
        adopt(session, hook)
    return call(hook, *args)


leaf_gradients.register(_call_hook)
