"""Calls inside a trace: what is called decides.

A builtin has its own meaning for staged values, a module runs its hooks, a user's function is converted, torch gets
symbolic numbers; everything else runs as it is, under a note of why.
"""

from __future__ import annotations

import contextvars
import enum
import functools
import logging
import math
import operator
import types
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from typing import Any

import numpy
import torch

from dy2static.exclusions import exclusion_of
from dy2static.operators.builtins import host_calls, number_methods, operator_functions, optional_functions, starred
from dy2static.operators.builtins.objects import eager_type
from dy2static.operators.builtins.table import handler_of
from dy2static.operators.calls import (
    autograd_function,
    boundary,
    growing,
    keyed,
    numpy_arrays,
    single_dispatch,
    starred_call,
)
from dy2static.operators.calls.caches import CACHED, call_cached, is_users_cache
from dy2static.operators.calls.call import register
from dy2static.operators.calls.functions import (
    MAPPINGS,
    call_as_it_is,
    call_function,
    call_torch,
    note_made_class,
    require_plain,
    unconverted,
)
from dy2static.operators.calls.sequences import StagedSequence, StagedSize, spelled
from dy2static.operators.dispatch import builtin_methods
from dy2static.operators.iteration import generator_functions, generator_uses, iterators
from dy2static.operators.provenance import (
    chosen,
    context_vars,
    keyed_keys,
    observed,
    tensor_attributes,
    tensor_keys,
)
from dy2static.operators.provenance.classes import note_asked_by, note_construction, note_definition, note_method
from dy2static.operators.provenance.host_random import noted_draws
from dy2static.operators.provenance.iterators_apart import for_option
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.provenance.provenance import adopt, meet, memo, note_attribute_read
from dy2static.operators.shared import arity, escaped, impure, policy, settings
from dy2static.operators.shared.policy import AS_IT_IS, home_of
from dy2static.operators.shared.staging import (
    Choice,
    Session,
    Staged,
    Undefined,
    any_staged,
    distribute,
    held_choice,
    python_method,
    unbound_message,
)
from dy2static.operators.values import compiled, modules, pure_lookups, scripted, sequences_in_python, traced_attribute
from runtime.ir.ports import is_path
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient import contents, objects
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.python_state.journal import MISSING, Place
from runtime.tracer.values import containers, structure, unjournaled

_ABOUT_OBJECTS: tuple[Any, ...] = (
    id, isinstance, type, callable, hasattr, getattr, setattr, delattr, operator.is_, operator.is_not,
    operator.setitem, *((operator.call,) if hasattr(operator, "call") else ()),
)  # fmt: skip
"""Functions that ask which object it is, or of what class, not what it holds; that store it, or hand it on."""


_STORING = frozenset({"append", "appendleft", "insert", "setdefault", "__setitem__", "__setattr__"})
"""Methods of containers that ask nothing of what they are given."""


def traced_call(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)``; notes which iterators it may have made (see ``generator.fresh``)."""
    known = memo(session)
    made = known.made
    method = f.options[0] if is_a(f, Choice) else f
    owner = unasked(method, "__self__") if args and keyed_keys.are_chosen(args[0]) else None
    if is_a(owner, Keyed):
        args = (keyed_keys.of_run(session, args[0]), *args[1:])
    if keyed.is_kind(type(owner)):
        with keyed_keys.instead_of_many(session, owner, args[0]):
            result = _called(session, f, args, kwargs)
    else:
        try:
            result = _called(session, f, args, kwargs)
        except (TypeError, ValueError, AttributeError) as error:
            numpy_arrays.require_not_named(session, f, error)
            raise
    if result is NotImplemented:
        number_methods.require_known(session, f, args)
    if id(result) in session.objects.originals:
        meet(session, result)
    known.before_call, known.new_iterator = made, None
    if keyed.is_kind(f) and type(result) is f:
        keyed_keys.note(session, result)
    if is_a(f, type) or (f is iter and result is not args[0]):
        if type(result) in contents.READING:
            known.new_iterator = result
        if contents.is_iterator(result) and f.__module__ in ("builtins", "itertools"):  # others may give an older one
            iterators.note_made(session, result, (*args, *kwargs.values()))
    elif is_a(result, types.GeneratorType):
        if iterators.begins(result, f):  # model.parameters()
            iterators.note_made(session, result, (*args, *kwargs.values()))
        iterators.note_other_code(session, result, f)
    return result


def _called(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if is_a(f, Choice):
        return distribute(session, f, lambda option: traced_call(
            session, option, tuple(for_option(session, arg) for arg in args),
            {name: for_option(session, arg) for name, arg in kwargs.items()}))
    if is_a(f, Undefined):
        raise UnboundLocalError(unbound_message(f.name))
    if session.containers.has_growing and starred_call.holds_items(args) and not _is_partial(f):
        of_builtin = starred.handler_of(f, args, kwargs)
        if of_builtin is not None:
            return of_builtin(session, list(args))
        return starred_call.fitted(session, f, args, kwargs, lambda given: _fitted(session, f, given, kwargs))
    return _fitted(session, f, args, kwargs)


def _items(session: Session, given: Any) -> Any:
    """What a dict or set is made of; the items of a generator, or of what builtins give, as a list."""
    if is_a(given, types.GeneratorType):
        return generator_uses.listed(session, given)
    given = spelled(given)
    if is_a(given, StagedSequence) or type(given) in (zip, map, enumerate, filter):
        return traced_call(session, list, (given,), {})
    return given


def _is_partial(f: Any) -> bool:
    """Whether a call hands its arguments on, or keeps them, as they are."""
    return is_a(f, functools.partial) or f is functools.partial


def _fitted(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call, of arguments that the callee's parameters take."""
    pure_lookups.note_called(session, f)
    if not is_a(f, (types.FunctionType, types.MethodType)) and not iterators.keeps(f):
        iterators.note_given(session, args)
    if keyed.is_kind(f) and args:
        args = (*args[:-1], _items(session, args[-1]))
    of_numbers = keyed.made(session, f, args, kwargs)
    if of_numbers is not NotImplemented:
        return of_numbers
    args, kwargs = keyed.taken(session, f, args, kwargs)
    if f is sorted and args and is_a(args[0], dict) and python_method(args[0], "__iter__") is None:
        args = traced_call(session, list, args[:1], {}), *args[1:]  # it sees the keys alone
    of_numpy = numpy_arrays.called(session, f, args, kwargs)
    if of_numpy is not NotImplemented:
        return of_numpy
    dispatched = single_dispatch.called(session, f, args, kwargs)
    if dispatched is not NotImplemented:
        return dispatched
    decided = optional_functions.settled(session, f, args, kwargs, functools.partial(_fitted, session, f))
    if decided is not NotImplemented:
        return decided
    handler = handler_of(f)
    if handler is not None:
        arity.require_fitting(f, args, kwargs)
        if session.containers.has_contents and f not in _ABOUT_OBJECTS:
            args = tuple(map(containers.opened, args))
            kwargs = {name: containers.opened(arg) for name, arg in kwargs.items()}
        boundary.require(session, f, args, kwargs)
        note_asked_by(session, f, (*args, *kwargs.values()))
        result = handler(session, args, kwargs)
        if is_a(result, StagedSequence):
            memo(session).created[id(result)] = result
        if result is not NotImplemented:
            return result
    builtin = tensor_attributes.builtin_of(f, args)
    if builtin is not None and not kwargs:
        return traced_call(session, *builtin, kwargs)
    of_number = number_methods.called(session, f, args, kwargs)
    if of_number is not number_methods.NOT_DONE:
        return of_number
    of_host = host_calls.called(session, f, args, kwargs)
    if of_host is not NotImplemented:
        return of_host
    impure.check(session, f)
    settings.note_call(session, f)
    if compiled.is_compiled(f):
        boundary.require(session, f, args, kwargs)
        in_python = scripted.in_python(f, args, kwargs)
        if in_python is not None:
            return traced_call(session, *in_python)
        return compiled.call_compiled(session, f, f, args, kwargs)
    if is_a(f, types.BuiltinMethodType) and is_a(f.__self__, contextvars.ContextVar):
        return context_vars.call(session, f.__self__, f.__name__, args, kwargs)
    if not is_a(f, types.MethodType):
        observed.check_doing(session, f, args)
    if is_a(f, torch.nn.Module):
        return modules.call_module(session, f, args, kwargs)
    if is_a(f, types.FunctionType):
        if modules.is_call(f) and args:
            return modules.run_module(session, args[0], args[1:], kwargs)
        return call_function(session, f, args, kwargs)
    if autograd_function.is_apply(f):
        return autograd_function.apply(session, f.__self__, args, kwargs)
    if is_a(f, types.MethodType):
        excluded = exclusion_of(f)
        if excluded is not None and is_a(f.__func__, types.FunctionType):
            home = home_of(f.__func__.__code__.co_filename)
            return call_as_it_is(session, f.__func__, excluded, home, (f.__self__, *args), kwargs)
        if excluded is not None:
            boundary.require(session, f, args, kwargs)
            with unconverted(session, f, excluded), noted_draws(session):
                return f(*args, **kwargs)
        if is_a(f.__self__, (Staged, StagedSize)):
            arity.require_fitting_method(eager_type(f.__self__), f.__name__, args, kwargs, f.__func__)
        if modules.is_call(f.__func__):
            module: Any = f.__self__
            return modules.run_module(session, module, args, kwargs)
        return traced_call(session, f.__func__, (f.__self__, *args), kwargs)
    if is_a(f, functools.partial):
        for name in ("func", "args", "keywords"):
            note_attribute_read(session, f, name, getattr(f, name))
        return traced_call(session, f.func, (*f.args, *args), {**f.keywords, **kwargs})
    of_generators = generator_functions.decorated(f, args, kwargs)
    if of_generators is not NotImplemented:
        return of_generators
    if is_a(f, type):
        by_metaclass = _call_method(f)
        if by_metaclass is not None and not _is_librarys(by_metaclass):
            note_definition(session, f, "__call__")
            return call_function(session, by_metaclass, (f, *args), kwargs)
        return _make(session, f, args, kwargs)
    if policy.is_torch(f) and not _is_converted(f) and not is_users_cache(f):
        return call_torch(session, f, args, kwargs)
    if is_a(f, types.MethodWrapperType) and f.__name__ == "__call__":
        if is_a(f.__self__, type):  # type.__call__, which a metaclass's own calls
            return _make(session, f.__self__, args, kwargs)
        return traced_call(session, f.__self__, args, kwargs)
    if is_a(f, types.WrapperDescriptorType) and f.__name__ == "__call__" and _is_of(args[:1], f.__objclass__):
        made = f.__objclass__ is type  # as a metaclass's own says it
        return _make(session, args[0], args[1:], kwargs) if made else traced_call(session, args[0], args[1:], kwargs)
    if is_a(f, types.MethodWrapperType) and f.__name__ in traced_attribute.OF_DESCRIPTORS and not kwargs:
        done = traced_attribute.by_descriptor(session, f.__self__, f.__name__, args)
        if done is not NotImplemented:
            return done
    is_lookup = is_a(f, types.WrapperDescriptorType) and f.__name__ == "__getattribute__"
    if is_lookup and len(args) == 2 and not kwargs:
        return traced_attribute.stored(session, f, *args)
    if is_a(f, types.WrapperDescriptorType) and f.__name__ == "__delattr__" and len(args) == 2:
        traced_attribute.note_holding(session, args[0], args[1])
    makes = unasked(f, "__name__", "") in ("__init__", "__new__")
    if not makes and not is_a(unasked(f, "__self__"), (list, dict, set, deque)):
        numpy_arrays.require_none(session, f, args, kwargs)
    numpy_arrays.require_no_data(session, f, (*args, *kwargs.values()))
    if is_a(f, (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType)) or (
            is_a(f, types.WrapperDescriptorType) and args
            and (growing.is_growing(args[0]) or containers.several(args[0]) is not None
                 or builtin_methods.is_syntax(f, args))):
        owner = unasked(f, "__self__")
        note_asked_by(session, f, args if is_a(owner, types.ModuleType) else (owner, *args))
        if f.__name__ not in _STORING:
            note_answers(session, *args)
        return builtin_methods.call_builtin(session, f, args, kwargs)
    method = _call_method(f)
    note_method(session, f, "__call__")  # which the class may lack, and get
    if method is not None:
        note_definition(session, f, "__call__")
        return call_function(session, method, (f, *args), kwargs)
    if is_a(f, operator_functions.GETTERS):
        return operator_functions.call_getter(session, f, *args, **kwargs)
    is_said = args and is_a(args[0], logging.Logger) and not any_staged([args, kwargs])
    if is_a(f, CACHED) and not is_said:
        return call_cached(session, f, args, kwargs)
    boundary.require(session, f, args, kwargs)
    if is_a(f, (staticmethod, classmethod)):
        return traced_call(session, f.__func__, args, kwargs)
    if is_a(f, CACHED):
        return f(*args, **kwargs)  # said once, not at each run
    if is_a(f, weakref.ref):
        return _referent(session, f)
    return chosen.per_option(session, f, args, kwargs, functools.partial(_call_object, session, f))


def _is_of(owner: tuple[Any, ...], cls: type) -> bool:
    return bool(owner) and is_a(owner[0], cls)


def _call_object(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an object that is no Python function and has none for its calls."""
    if not iterators.keeps(f):
        iterators.note_given(session, args)
    with noted_draws(session), observed.observed(session, *args, *kwargs.values()):
        result = chosen.foreign(session, f, args, kwargs)
    observed.note_fresh(session, f, result, (*args, *kwargs.values()))
    return observed.made(session, result)


def _referent(session: Session, reference: Any) -> Any:
    """What a weak reference gives; one from before the trace gives an object from before it, as long as that lives."""
    if id(reference) in memo(session).created:
        _require_living(session, reference)
        return reference()
    found = reference()
    gone = found is None
    session.guards.add_test((id(reference), "gone"), "whether the object of a weak reference still lives",
                            lambda: (reference() is None) is gone)
    if id(found) in session.objects.originals:
        meet(session, found)
    if not is_a(found, torch.Tensor):
        adopt(session, found)
    return found


_CONVERTED_CLASSES = (torch.nn.Module, torch.distributions.Distribution)
"""Classes of torch whose constructors are converted."""


def _is_converted_class(cls: type) -> bool:
    return issubclass(cls, _CONVERTED_CLASSES) or policy.is_optimizers(module_name(cls))


def _require_living(session: Session, reference: Any) -> None:
    """Refuse a weak reference made inside once paths were staged: both are followed, and its object may die on one. The
    tracer keeps it for longer than the program does, so that what nothing leads to any more may be gone in eager."""
    found = reference()
    if found is None or unjournaled.is_local(session, found):
        return
    staged = session.constructs.pictures or any(is_path(op) for op in session.program.block.ops)
    if staged or not is_a(found, (OrderedDict, torch.Tensor)) and not unjournaled.is_reached(session, found):
        raise session.error(
            "whether the object of a weak reference still lives may depend on the path that a run takes" if staged else
            "a weak reference is asked for an object that no variable leads to any more",
            hint="Keep the object, and a flag for whether it is in use.", code="D2S264")


def _call_method(f: Any) -> types.FunctionType | None:
    """The ``__call__`` of an object's class, or of a class's metaclass, if it is written in Python."""
    for cls in type(f).__mro__:
        method = cls.__dict__.get("__call__")
        if method is not None:
            return method if is_a(method, types.FunctionType) else None
    return None


# -- classes


def _make(session: Session, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An instance: ``__init__`` (and ``__new__``) of users' classes are converted."""
    if issubclass(cls, torch.Tensor):
        require_plain(session, cls)
    if not issubclass(cls, numpy.generic):  # which refuse a staged number themselves
        numpy_arrays.require_no_data(session, cls, (*args, *kwargs.values()))
    if cls is Counter and len(args) == 1 and not is_a(args[0], Mapping):
        args = (generator_uses.listed(session, args[0]),)
    if cls in (dict, OrderedDict) and len(args) == 1:
        args = (generator_uses.mapped_items(session, args[0]),)
    of_torch = policy.is_torch(cls) and not issubclass(cls, BaseException)
    if issubclass(cls, torch.Tensor) or (of_torch and not _is_converted_class(cls)):
        made = call_torch(session, cls, args, kwargs)
    elif issubclass(cls, torch.nn.Module) and policy.is_torch(cls) and _is_given_numbers(args, kwargs):
        made = _construct(session, cls, args, kwargs)
    elif _is_looked_up(cls, args) and not kwargs:
        members = [(member, member.value) for member in cls]  # type: ignore[attr-defined]
        return call_function(session, _MEMBER_OF, (cls.__qualname__, members, *args), {})
    elif cls is Counter and len(args) == 1 and not kwargs and _has_choices(args[0]):
        return call_function(session, _COUNTED, args, {})
    elif _is_made_by_library(cls) or not _has_user_constructor(cls) or exclusion_of(cls) is not None:
        boundary.require(session, cls, args, kwargs)
        note_answers(session, *args)
        note_construction(session, cls)
        if issubclass(cls, MAPPINGS):
            args = tensor_keys.own_mapping(session, cls, args)
        made = chosen.per_option(session, cls, args, kwargs, functools.partial(_make_one, session, cls))
        return _note_arguments(session, made)
    else:
        note_construction(session, cls)
        made = _construct(session, cls, args, kwargs)
    return made if escaped.holds(made) else _note_arguments(session, _note_made(session, made))


def _note_arguments(session: Session, made: Any) -> Any:
    """Note what an exception was given that belongs to the path which makes it: it leaves that path with it."""
    if is_a(made, BaseException) and structure.has_traced(made.args):
        session.journal.note_late(Place("attribute", made, "args"), MISSING)
    return made


_MEMBER_OF: Any = sequences_in_python.member_of
_COUNTED: Any = sequences_in_python.counted


def _has_choices(items: Any) -> bool:
    """Whether a list holds values of which there are too many combinations to go through them all."""
    if type(items) not in (list, tuple):
        return False
    return math.prod(len(item.options) for item in items if is_a(item, Choice)) > _COMBINATIONS


_COMBINATIONS = 8


def _is_looked_up(cls: type, args: tuple[Any, ...]) -> bool:
    """Whether a call looks a member of an enumeration up by a value that only the run knows."""
    if not issubclass(cls, enum.Enum) or issubclass(cls, enum.Flag):
        return False
    if len(args) != 1 or not is_a(args[0], Staged):
        return False
    return getattr(cls._missing_, "__func__", None) is enum.Enum._missing_.__func__  # type: ignore[attr-defined]


def _is_librarys(method: types.FunctionType) -> bool:
    return bool(home_of(method.__code__.co_filename))


def _is_made_by_library(cls: type) -> bool:
    """Whether a metaclass of a library's makes a class's objects, or finds them: that of enumerations."""
    method = _call_method(cls)
    return method is not None and _is_librarys(method)


def _is_converted(f: Any) -> bool:
    """Whether an object of torch's is called by a method in one of the files that are converted: a hook that prunes."""
    method = _call_method(f)
    return method is not None and not _is_librarys(method)


def _is_given_numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a staged number is among the arguments, and nothing that is one of several."""
    return any_staged([args, kwargs]) and held_choice((args, kwargs)) is None


def _make_one(session: Session, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An instance of a class that is not converted, on one of the paths on which it is made."""
    if issubclass(cls, weakref.ref):  # one without a callback may be there already
        before = list(map(id, weakref.getweakrefs(args[0]))) if args else []
        made = chosen.foreign(session, cls, args, kwargs)
        return _note_made(session, made, id(made) not in before)
    try:
        with observed.with_users_methods(session, (*args, *kwargs.values())):
            made = chosen.foreign(session, cls, args, kwargs)
    except (TypeError, ValueError, AttributeError):
        numpy_arrays.require_none(session, cls, args, kwargs)
        raise
    if _may_give_old_ones(cls):
        observed.note_fresh(session, cls, made, args)
    return _note_made(session, made, not _may_give_old_ones(cls) or id(made) in memo(session).created)


def _may_give_old_ones(cls: type) -> bool:
    """Whether a call of a class may give an object that there was before: a member of an enumeration, what a
    ``__new__`` finds."""
    return _is_made_by_library(cls) or is_a(_found(cls, "__new__"), types.FunctionType)


def _note_made(session: Session, made: Any, new: bool = True) -> Any:
    note_made_class(session, made)
    if type(made) in objects.KINDS:  # known by its content, as a display is
        return made
    if new and id(made) not in session.objects.externals and not is_a(made, (torch.Tensor, Staged, Choice)):
        memo(session).created[id(made)] = made
        if objects.is_record(made):  # a generated __init__ keeps no journal
            session.journal.note_made(made)
    return made


def _found(cls: type, name: str) -> Any:
    return getattr(cls, name)


def _has_user_constructor(cls: type) -> bool:
    return any(
        is_a(method, types.FunctionType) and not home_of(method.__code__.co_filename) and method not in AS_IT_IS
        for method in (_found(cls, "__init__"), _found(cls, "__new__"))
    )


def _construct(session: Session, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    new = _found(cls, "__new__")
    if is_a(new, types.FunctionType):
        made = traced_call(session, new, (cls, *args), kwargs)
    elif new is object.__new__ and _found(cls, "__init__") is not object.__init__:
        made = new(cls)
    else:
        boundary.require(session, new, args, kwargs)
        made = new(cls, *args, **kwargs)
    if cls in type(made).__mro__:
        if id(made) not in session.objects.externals:  # a __new__ may give an object that there was before
            memo(session).created[id(made)] = made
        session.objects.constructing.add(id(made))
        try:
            result = traced_call(session, _found(type(made), "__init__"), (made, *args), kwargs)
            if escaped.holds(result):
                session.exceptions.escape = made = _unless_left(result, made)
            else:
                _require_none(result)
        finally:
            session.objects.constructing.discard(id(made))
    return made


def _unless_left(result: Any, made: Any) -> Any:
    """What a class gives: the object, or the exception that its ``__init__`` is left by."""
    if is_a(result, Choice):
        return Choice(result.selector, tuple(_unless_left(option, made) for option in result.options))
    return result if escaped.holds(result) else made


@acts_for_user
def _require_none(result: Any) -> None:
    """Python lets a constructor give nothing else."""
    if result is not None and not is_a(result, Choice):
        raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")


register(traced_call)
