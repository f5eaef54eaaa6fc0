"""Attributes inside a trace: properties of users' classes are converted, reads guarded, stores journaled."""

from __future__ import annotations

import builtins
import contextlib
import functools
import os
import sys
import types
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from dy2static.operators.calls import autograd_function, numpy_arrays
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedRange, StagedSequence, StagedSize
from dy2static.operators.calls.torch_values import from_torch
from dy2static.operators.constructs import user_methods
from dy2static.operators.provenance import tensor_attributes
from dy2static.operators.provenance.classes import note_definition, note_lack, note_of_class, note_super
from dy2static.operators.provenance.environment import WatchedEnvironment
from dy2static.operators.provenance.library_reads import note_property
from dy2static.operators.provenance.provenance import (
    CONTAINERS,
    adopt,
    is_external,
    note_attribute_read,
    note_attribute_write,
    note_held,
    note_space,
    written,
)
from dy2static.operators.shared import module_parts, settings
from dy2static.operators.shared.load import settle
from dy2static.operators.shared.policy import holds_data, home_of, is_library, is_librarys
from dy2static.operators.shared.staging import MISSING, Choice, Session, Staged, Undefined, distribute, unbound_message
from dy2static.operators.values import modules, pure_lookups, texts
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient.theirs import acts_for_user, theirs
from runtime.tracer.ambient.unasked import module_name, reader, unasked
from runtime.tracer.numbers import staging
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.held import RowField, held_in
from runtime.tracer.python_state.journal import Place, ordered_space
from runtime.tracer.recording.interceptor import History
from runtime.tracer.values.numpy_arrays import NumpyArray
from runtime.tracer.values.structure import has_traced, row_of

_NOTHING = object()


def read(session: Session, obj: Any, name: str) -> Any:
    """``obj.name``; an AttributeError knows both, as Python's does."""
    try:
        return _read(session, obj, name)
    except AttributeError as error:
        if error.name is None and error.obj is None:
            error.name, error.obj = name, obj
        raise


def _read(session: Session, obj: Any, name: str) -> Any:
    if is_a(obj, Choice):
        is_method = name != "__class__" and callable(getattr(torch.Tensor, name, 0))
        if is_method and all(is_a(option, torch.Tensor) for option in obj.options):
            return functools.partial(_method, session, obj, name)
        return distribute(session, obj, lambda option: read(session, option, name), itself=True)
    if is_a(obj, Undefined):
        raise UnboundLocalError(unbound_message(obj.name))
    if is_a(obj, torch.Tensor):
        value = tensor_attributes.read(session, obj, name)
        if is_a(value, Choice):
            return settle(session, value, MISSING, "AttributeError", _no_attribute(obj, name))
        return from_torch(session, value)
    if is_a(obj, NumpyArray):
        return numpy_arrays.attribute(session, obj, name)
    if is_a(obj, Staged):
        return _of_number(session, obj, name)
    if is_a(obj, StagedSequence):
        return _of_sequence(session, obj, name)
    if is_a(obj, StagedSize) and name in ("__class__", "__doc__"):
        return getattr(torch.Size(), name)
    if is_a(obj, Keyed) and name == "__dict__":
        raise AttributeError(f"'{obj.stands_for.__name__}' object has no attribute '__dict__'")
    if is_a(obj, Keyed) and name in ("__class__", "__doc__"):
        return obj.stands_for if name == "__class__" else obj.stands_for.__doc__
    if is_a(obj, History) and name in ("__class__", "__doc__"):
        obj.refuse("the class")
    if name in _OF_PARTS and is_a(obj, torch.nn.Module) and module_parts.may_be_open(session):
        module_parts.settle(session, obj)
    if name == "__dict__":
        require_settled(session, obj)
        note_space(session, obj, unasked(obj, "__dict__"))
        return modules.space_as_in_eager(obj, _of_object(session, obj, name))
    if name == "apply":
        return autograd_function.as_in_eager(_of_object(session, obj, name))
    if obj is os and name == "environ":
        return WatchedEnvironment(session)
    if obj is os.environ:
        return getattr(WatchedEnvironment(session), name)
    return _of_object(session, obj, name)


_OF_PARTS = ("__dict__", *module_parts.SLOTS)
_EMPTY: dict[str, Any] = {
    "range": range(0), "enumerate": enumerate(()), "zip": zip(), "map": map(abs, ()), "reversed": reversed(()),
}  # fmt: skip
def _method(session: Session, tensors: Choice, method: str, /, *args: Any, **kwargs: Any) -> Any:
    """``tensor.method(...)`` of whichever tensor it is."""
    return distribute(session, tensors, lambda option: call(getattr(option, method), *args, **kwargs))


def _of_number(session: Session, obj: Staged, name: str) -> Any:
    if not hasattr(obj.python_type, name):
        raise AttributeError(f"'{obj.kind}' object has no attribute '{name}'")
    if name == "__class__":
        return obj.python_type
    if name in ("numerator", "denominator"):
        return session.scalar("int", obj) if name == "numerator" else 1
    special = name.startswith("__") and not (obj.kind == "str" and name in texts.SPECIAL)
    if special or name in ("var", "sym", "kind") or not hasattr(type(obj), name):
        raise session.error(f"'.{name}' of a Python {obj.kind} that is only known while the Program runs",
                            hint="Use arithmetic, comparisons or conversions.", code="D2S262")
    return getattr(obj, name)


def _of_sequence(session: Session, obj: StagedSequence, name: str) -> Any:
    if is_a(obj, StagedRange) and name in ("start", "stop", "step"):
        return getattr(obj, name)
    if hasattr(getattr(builtins, obj.python_name, object), name):
        raise session.error(f"'.{name}' of a {obj.python_name} that is only known while the Program runs",
                            hint="Loop over it, or make a list of it: list(...).", code="D2S262")
    raise AttributeError(f"'{obj.python_name}' object has no attribute '{name}'")


def asked_per_path(session: Session, obj: Any, name: str, is_read: bool = False) -> Choice | None:
    """What an attribute holds that only some paths set, where the class says what the others have: by a method, or by
    what it has under that name. ``is_read``: a plain value of the class is known without asking per path."""
    if not session.containers.has_unset or is_a(obj, type):
        return None
    cls = type(obj)
    found, fallback = _class_attribute(cls, name), _class_attribute(cls, "__getattr__")
    of_class = found is not _NOTHING and not is_a(found, types.MemberDescriptorType) and (
        not is_read or hasattr(type(found), "__get__"))
    if not of_class and fallback in (_NOTHING, torch.nn.Module.__getattr__) and not _is_user_function(
            cls.__getattribute__):
        return None
    return missing_on_some_paths(obj, name)


def per_path(session: Session, obj: Any, name: str, held: Choice, run: Callable[[], Any]) -> Any:
    """``run()``, once with each of what an attribute may hold, or without the attribute."""
    def path(option: Any) -> Callable[[], Any]:
        def with_option() -> Any:
            session.journal.write(Place("attribute", obj, name), option)
            return run()

        return with_option

    return staging.switch(session, held.selector, [path(option) for option in held.options], held)


def _of_object(session: Session, obj: Any, name: str) -> Any:
    held = asked_per_path(session, obj, name, is_read=True)
    if held is not None:
        return per_path(session, obj, name, held, functools.partial(_of_object, session, obj, name))
    lookup = type(obj).__getattribute__
    if not _is_user_function(lookup) or is_a(obj, super):
        return default(session, obj, name)
    note_definition(session, obj, "__getattribute__")
    try:
        return pure_lookups.answered(session, obj, name, functools.partial(call, lookup, obj, name))
    except AttributeError:
        note_definition(session, obj, "__getattr__")
        fallback = _class_attribute(type(obj), "__getattr__")
        if fallback is _NOTHING:
            raise
    return call(fallback, obj, name)  # behind the handler: what it raises has no context


def default(session: Session, obj: Any, name: str) -> Any:
    """``object.__getattribute__(obj, name)``, with a ``__getattr__`` where the class has no lookup of its own."""
    cls = type(obj)
    if is_a(obj, types.ModuleType) and is_library(obj):
        try:
            value = getattr(obj, name)
        except AttributeError:
            note_absent(session, obj, name)
            raise
        if holds_data(obj) and value is not sys.modules and (is_plain(value) or is_a(value, CONTAINERS)):
            return note_attribute_read(session, obj, name, value)
        if is_a(value, CONTAINERS):
            adopt(session, value)
        settings.note_attribute(session, obj, name, value)
        settings.note_operator(session, obj, name, value)
        return value
    if module_name(cls).startswith("torch.backends"):
        value = getattr(obj, name)
        settings.note_attribute(session, obj, name, value)
        return value
    found: Any = _NOTHING
    own_lookup = cls.__getattribute__ not in _PLAIN_LOOKUPS and not _is_user_function(cls.__getattribute__)
    if is_a(obj, (type, types.ModuleType, super)) or own_lookup:
        if is_a(obj, super):
            note_super(session, obj, name)
        elif is_a(obj, type) and (value := _of_class(session, obj, name)) is not _NOTHING:
            return value
        try:
            value = getattr(obj, name)
        except AttributeError:
            if not is_a(obj, super):
                note_absent(session, obj, name)
            raise
    else:
        found = _class_attribute(cls, name)
        if found is _NOTHING and module_parts.may_be_open(session) and module_parts.has_chosen(obj, name):
            return module_parts.look(session, obj, name, _kept, functools.partial(_raise_absent, obj, name))
        if is_a(found, property) and _is_user_function(found.fget):
            note_definition(session, obj, name)
            return _property(session, obj, name, found)
        if is_a(found, functools.cached_property) and _is_user_function(found.func):
            note_definition(session, obj, name)
            return _cached_property(session, obj, name, found)
        own = name in unasked(obj, "__dict__", {})
        get = getattr(type(found), "__get__", None)
        if _is_user_function(get) and (not own or hasattr(type(found), "__set__")):
            return _described(session, obj, name, found, obj, cls)
        if found is _NOTHING and not own and _is_user_function(_class_attribute(cls, "__getattr__")):
            return _plain(session, obj, name, found)  # nothing is stored there, and asking again runs the method again
        value = _plain(session, obj, name, found)
        if type(value) is RowField:
            return value.read()
        slot = is_a(found, (types.MemberDescriptorType, _TUPLE_FIELD)) or (
            is_a(found, types.GetSetDescriptorType) and is_a(obj, _WITH_SLOTS))
        if not slot and hasattr(type(found), "__get__") and name not in unasked(obj, "__dict__", {}):
            is_users = _is_user_function(unasked(found, "__func__", found))
            if not is_users:
                note_property(session, obj, name, found, value)
            if is_users or not is_librarys(module_name(cls)):
                note_definition(session, obj, name)  # also of a library's: a user's class may get its own
            return value
    if is_a(obj, super):
        return value
    if is_a(obj, type) and not is_plain(value) and not is_a(value, (*CONTAINERS, types.FunctionType)):
        defined = _class_attribute(obj, name)
        if defined is not _NOTHING and defined is not value:  # a descriptor made it for this read
            note_definition(session, obj, name)
            return value
    if is_a(value, Choice):
        if found is not _NOTHING and not hasattr(type(found), "__get__"):  # paths that did not set it have the class's
            options = tuple(found if option is MISSING else option for option in value.options)
            return distribute(session, Choice(value.selector, options), lambda option: option)
        return settle(session, value, MISSING, "AttributeError", _no_attribute(obj, name))
    if is_a(value, types.MethodType) and getattr(obj, name, None) is not value:  # bound for this read
        note_definition(session, obj, name)
    elif not is_a(value, (types.BuiltinFunctionType, types.MethodWrapperType)) or _stays(obj, name, value):
        return note_attribute_read(session, obj, name, value)
    return value


def _kept(value: Any) -> Any:
    return value


@acts_for_user
def _raise_absent(obj: Any, name: str) -> NoReturn:
    raise AttributeError(_no_attribute(obj, name))


def stored(session: Session, lookup: Any, obj: Any, name: Any) -> Any:
    """``object.__getattribute__(obj, name)``, or that of another class written in C: no ``__getattr__`` is asked."""
    if lookup not in _PLAIN_LOOKUPS or type(name) is not str or is_a(obj, (Staged, Choice)):
        return theirs(lookup, obj, name)
    if is_a(obj, torch.Tensor):
        return read(session, obj, name)
    is_plain_lookup = type(obj).__getattribute__ in _PLAIN_LOOKUPS
    if is_plain_lookup and _class_attribute(type(obj), "__getattr__") is _NOTHING:
        return default(session, obj, name)
    value = _looked_up(lookup, obj, name)
    if module_parts.is_unset(value):
        return per_path(session, obj, name, value, functools.partial(stored, session, lookup, obj, name))
    found = _class_attribute(type(obj), name)
    if not is_external(session, obj):
        note_of_class(session, type(obj), name)
    if value is found and value is not _NOTHING and name not in unasked(obj, "__dict__", {}):
        note_attribute_read(session, type(obj), name, value)
    if is_a(value, _BOUND_ANEW):
        note_definition(session, obj, name)
    elif is_external(session, obj) and not written(session, Place("attribute", obj, name)) and (
            is_a(value, torch.Tensor) and not torch_internals.is_fake(value) or not has_traced(value)):
        adopt(session, value)
        key, what = (id(obj), name, "stored"), f"the attribute '{name}' that a {type(obj).__name__} has itself"
        session.guards.add(key, what, lambda: _looked_up(lookup, obj, name), value)
    return lookup(obj, name) if value is _NOTHING else value


_BOUND_ANEW = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)


def _looked_up(lookup: Any, obj: Any, name: str) -> Any:
    try:
        return lookup(obj, name)
    except AttributeError:
        return _NOTHING


def _stays(obj: Any, name: str, value: Any) -> bool:
    """Whether a function written in C is kept under a name (``self.act = torch.relu``), not a method bound anew."""
    return unasked(value, "__self__") is not obj and getattr(obj, name, None) is value


def _plain(session: Session, obj: Any, name: str, found: Any) -> Any:
    """Python's lookup; a ``__getattr__`` that a user wrote is converted."""
    fallback = _class_attribute(type(obj), "__getattr__")
    if _is_user_function(fallback):
        note_definition(session, obj, "__getattr__")
    if _is_user_function(type(obj).__getattribute__):
        return object.__getattribute__(obj, name)
    if not _is_user_function(fallback):
        try:
            return getattr(obj, name)
        except AttributeError:
            note_absent(session, obj, name)
            raise
    with contextlib.suppress(AttributeError):
        return object.__getattribute__(obj, name)
    note_lack(session, obj, name)
    return call(fallback, obj, name)


def _of_class(session: Session, cls: type, name: str) -> Any:
    """``cls.name``, where a descriptor that a user wrote gives it: of the class or of its metaclass."""
    above, own = _class_attribute(type(cls), name), _class_attribute(cls, name)
    if is_a(above, property) and _is_user_function(above.fget):
        note_definition(session, cls, name)
        return _property(session, cls, name, above)
    of_metaclass = own is _NOTHING or hasattr(type(above), "__set__")
    found, given = (above, (cls, type(cls))) if of_metaclass else (own, (None, cls))
    if not _is_user_function(getattr(type(found), "__get__", None)):
        return _NOTHING
    return _described(session, cls, name, found, *given)


def _described(session: Session, obj: Any, name: str, found: Any, *given: Any) -> Any:
    """What a descriptor that a user wrote gives; which it is, and its methods, may change."""
    note_definition(session, obj, name)
    for method in ("__get__", "__set__"):
        note_of_class(session, type(found), method)
    return call(type(found).__get__, found, *given)


def _property(session: Session, obj: Any, name: str, found: property) -> Any:
    try:
        return call(found.fget, obj)
    except AttributeError:
        note_definition(session, obj, "__getattr__")
        fallback = _class_attribute(type(obj), "__getattr__")
        if fallback is _NOTHING or _is_user_function(type(obj).__getattribute__):
            raise
    return call(fallback, obj, name)


def _cached_property(session: Session, obj: Any, name: str, found: Any) -> Any:
    space = unasked(obj, "__dict__")
    if name not in space:
        value = call(found.func, obj)
        note_attribute_write(session, obj, name)
        space[name] = value
    elif is_external(session, obj) and not written(session, Place("attribute", obj, name)):
        note_held(session, obj, name, space[name])
    if missing_on_some_paths(obj, name) is not None:
        raise session.error(
            f"the cached property '{name}' of a {type(obj).__name__} was computed on some of the paths that lead here",
            code="D2S277", hint="Read it before the branch or loop.")
    value = space[name]
    return value.read() if type(value) is RowField else value


OF_DESCRIPTORS = ("__get__", "__set__", "__delete__")


def by_descriptor(session: Session, found: Any, method: str, args: tuple[Any, ...]) -> Any:
    """``Cls.__dict__["name"].__get__(obj)`` and its like: what reading, storing or deleting the attribute is, if that
    asks this very slot or property; else NotImplemented."""
    if is_a(found, property):
        name = next((one for one, value in _space_of(args) if value is found), None)
    else:
        name = found.__name__ if is_a(found, types.MemberDescriptorType) else None
    counts = {"__get__": (1, 2), "__set__": (2,), "__delete__": (1,)}[method]
    if name is None or len(args) not in counts or _class_attribute(type(args[0]), name) is not found:
        return NotImplemented
    if method == "__get__":
        return default(session, args[0], name)
    return write(session, args[0], name, args[1]) if method == "__set__" else delete(session, args[0], name)


def _space_of(args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """What stands in the classes of the object that a descriptor is asked about."""
    return [item for cls in type(args[0]).__mro__ for item in vars(cls).items()] if args else []


def _class_attribute(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _NOTHING


def _is_user_function(function: Any) -> bool:
    return is_a(function, types.FunctionType) and not home_of(function.__code__.co_filename)


def write(session: Session, obj: Any, name: str, value: Any) -> None:
    """``obj.name = value``."""
    if is_a(obj, Choice):
        distribute(session, obj, lambda option: write(session, option, name, value), itself=True)
        return
    if is_a(obj, Staged):  # a plain one refuses it in Python's words
        setattr(obj.python_type(), name, value)
        return
    _note_stores(session, obj, name, "__setattr__")
    found = _class_attribute(type(obj), name)
    if is_a(found, property) and _is_user_function(found.fset):
        call(found.fset, obj, value)
        return
    if is_a(obj, torch.Tensor):
        tensor_attributes.write(session, obj, name, value)
        return
    store = getattr(type(found), "__set__", None)
    if _is_user_function(store):
        call(store, found, obj, value)
        return
    if is_a(obj, StagedSequence):
        theirs(setattr, _EMPTY[obj.python_name], name, value)  # raises: they take none
    where = _whose_setting(obj)
    if where is not None:
        raise session.error(
            f"{where}.{name} is changed inside a converted function: it would happen while tracing only",
            hint="Change the setting outside, before the call.", code="D2S214")
    if user_methods.called(session, obj, "__setattr__", name, value) is not user_methods.NOT_USERS:
        return
    row = held_in(obj) if session.containers.has_rows and not is_a(obj, (list, dict)) else None
    if row is not None and name in row.heap.columns:
        row.heap.set(session, row.number, name, value)
        return
    if module_parts.registers(session, obj, name, value):
        module_parts.per_content(session, [obj], functools.partial(_store_part, session, obj, name, value))
        return
    if session.containers.has_unset and missing_on_some_paths(obj, name) is not None:
        _note_perhaps_last(session, obj, name)
    note_write(session, obj, name)
    if is_a(obj, torch.nn.Module) and _replace_in_module(obj, name, value):
        return
    setattr(obj, name, value)


def _store_part(session: Session, module: torch.nn.Module, name: str, value: Any) -> None:
    module_parts.note_parts(session, module, name)
    if not _replace_in_module(module, name, value):
        theirs(setattr, module, name, value)


def _delete_part(session: Session, module: torch.nn.Module, name: str) -> None:
    module_parts.note_parts(session, module, name)
    theirs(delattr, module, name)


def _note_stores(session: Session, obj: Any, name: str, method: str) -> None:
    """Guard how the class of an object stores or deletes an attribute: with a descriptor, a method, or plainly."""
    for one in (name, method):
        note_of_class(session, type(obj), one)
    found = _class_attribute(type(obj), name)
    for one in ("__set__", "__delete__"):
        note_of_class(session, type(found), one)


def _whose_setting(obj: Any) -> str | None:
    """The name of a module of PyTorch, or of an object in ``torch.backends``, whose attributes are settings."""
    if is_a(obj, types.ModuleType):
        return obj.__name__ if is_library(obj) and obj.__name__.partition(".")[0] == "torch" else None
    kind = type(obj)
    return f"{kind.__module__}.{kind.__name__}" if module_name(kind).startswith("torch.backends") else None


def _replace_in_module(module: torch.nn.Module, name: str, value: Any) -> bool:
    """A buffer may hold, while tracing, what Module refuses to store there."""
    if is_a(value, (Staged, Choice)) and name in module._buffers:
        module._buffers[name] = value  # type: ignore[assignment]
        return True
    return False


def delete(session: Session, obj: Any, name: str) -> None:
    """``del obj.name``; AttributeError at run time where the path taken did not set it."""
    if is_a(obj, Choice):
        distribute(session, obj, lambda option: delete(session, option, name), itself=True)
        return
    if is_a(obj, Staged):
        delattr(obj.python_type(), name)
        return
    held = missing_on_some_paths(obj, name)
    if held is not None:
        message = _no_attribute(obj, name) if sys.version_info >= (3, 11) else name  # as Python words it
        settle(session, held, MISSING, "AttributeError", message)
    if is_a(obj, torch.Tensor):
        tensor_attributes.delete(session, obj, name)
        return
    if is_a(obj, StagedSequence):
        theirs(delattr, _EMPTY[obj.python_name], name)
    _note_stores(session, obj, name, "__delattr__")
    note_holding(session, obj, name)
    found = _class_attribute(type(obj), name)
    if is_a(found, property) and _is_user_function(found.fdel):
        call(found.fdel, obj)
        return
    remove = getattr(type(found), "__delete__", None)
    if _is_user_function(remove):
        call(remove, found, obj)
        return
    if user_methods.called(session, obj, "__delattr__", name) is not user_methods.NOT_USERS:
        return
    if module_parts.registers(session, obj, name):
        module_parts.per_content(session, [obj], functools.partial(_delete_part, session, obj, name))
        return
    note_write(session, obj, name)
    delattr(obj, name)


def note_holding(session: Session, obj: Any, name: str) -> None:
    """Guard whether an object from outside holds an attribute itself, so that it can be deleted."""
    if is_a(obj, (torch.Tensor, Staged, Choice)) or type(name) is not str:
        return
    if is_external(session, obj) and not written(session, Place("attribute", obj, name)):
        session.guards.pin(obj)
        session.guards.add((id(obj), name, "deleted"), f"whether a {type(obj).__name__} holds '{name}'",
                           lambda: _holds(obj, name), _holds(obj, name))


def _holds(obj: Any, name: str) -> bool:
    space = unasked(obj, "__dict__", {})
    parts = [space] if is_a(obj, (type, types.ModuleType)) else [
        space, *(space.get(part, {}) for part in _REGISTERED if is_a(obj, torch.nn.Module))]
    if any(name in part for part in parts):
        return True
    return is_a(_class_attribute(type(obj), name), types.MemberDescriptorType) and hasattr(obj, name)


_REGISTERED = ("_parameters", "_buffers", "_modules")


def _no_attribute(obj: Any, name: str) -> str:
    cls = tensor_attributes.eager_class(obj) if is_a(obj, torch.Tensor) else type(obj)
    slot = _class_attribute(cls, name)
    if is_a(slot, types.MemberDescriptorType):  # an empty slot is told of in other words, since Python 3.13
        try:
            slot.__get__(object.__new__(cls), cls)
        except AttributeError as error:
            return str(error)
        except TypeError:  # Python makes no such object
            pass
    return f"'{cls.__name__}' object has no attribute '{name}'"


def _note_perhaps_last(session: Session, obj: Any, name: str) -> None:
    """Call before an attribute is stored that only some paths have: where it is new, it comes last."""
    names = list(ordered_space(obj) or (name,))
    later = names[names.index(name) + 1 :] if name in names else []
    if all(missing_on_some_paths(obj, one) is not None for one in later):
        if later:
            session.journal.frames[-1].perhaps.setdefault(id(obj), set()).update((name, *later))
    else:
        session.journal.disorder(obj, session.location())


def note_write(session: Session, obj: Any, name: str) -> None:
    """Call before an attribute is stored or deleted."""
    if not is_a(obj, torch.Tensor):
        note_attribute_write(session, obj, name)


def missing_on_some_paths(obj: Any, name: str) -> Choice | None:
    """What an attribute holds, if only some of the paths that lead here set it."""
    if is_a(obj, (Staged, Choice)):
        return None
    value = Place("attribute", obj, name).get()
    absent = is_a(value, Choice) and any(option is MISSING for option in value.options)
    return value if absent else None


def require_settled(session: Session, obj: Any, in_order: bool = True) -> None:
    """Refuse the namespace of an object some of whose attributes only some paths set, or in another order.

    Raises:
        TraceError: D2S254.
    """
    namespace = unasked(obj, "__dict__")
    if type(namespace) is dict and session.containers.has_rows and row_of(obj) is not None:
        raise session.error(
            f"the __dict__ of a {type(obj).__name__} is read that is in a list whose length is only known while the "
            "Program runs", hint="Read its attributes.", code="D2S254")
    if in_order:
        session.journal.require_ordered(obj, f"the __dict__ of a {type(obj).__name__} is read")
    for name, held in namespace.items() if type(namespace) is dict else ():
        if module_parts.is_unset(held):
            raise session.error(
                f"the __dict__ of a {type(obj).__name__} is read, and its attribute '{name}' is only set on some paths",
                hint="Ask with hasattr(), or set the attribute on every path.", code="D2S254")


_PLAIN_LOOKUPS: tuple[Any, ...] = (
    object.__getattribute__, list.__getattribute__, dict.__getattribute__, set.__getattribute__,
    deque.__getattribute__, OrderedDict.__getattribute__, frozenset.__getattribute__, tuple.__getattribute__,
    str.__getattribute__, int.__getattribute__, float.__getattribute__, BaseException.__getattribute__,
)  # fmt: skip
"""Lookups that find what ``object``'s finds: many built-in classes have one of their own."""
_OneField = namedtuple("_OneField", "field")
_TUPLE_FIELD = type(_OneField.field)
_WITH_SLOTS = (types.FunctionType, BaseException, deque)
"""Classes written in C whose objects hold values as attributes."""


def note_absent(session: Session, obj: Any, name: str) -> None:
    """Guard that an object has no such attribute."""
    _note_presence(session, obj, name, False)


def note_present(session: Session, obj: Any, name: str) -> None:
    """Guard that an object has such an attribute."""
    _note_presence(session, obj, name, True)


def _note_presence(session: Session, obj: Any, name: str, present: bool) -> None:
    if is_a(obj, (torch.Tensor, Staged, Choice)):
        return
    if is_a(obj, types.ModuleType) and is_library(obj) and not holds_data(obj):
        return
    if not is_external(session, obj) and not is_a(obj, type) and name not in unasked(obj, "__dict__", {}):
        note_of_class(session, type(obj), name)
    if not is_external(session, obj):
        return
    if not written(session, Place("attribute", obj, name)):
        session.guards.pin(obj)
        session.guards.add((id(obj), name, "present"), f"whether a {type(obj).__name__} has '{name}'",
                           functools.partial(_has, reader(obj), obj, name), present)


def _has(read: Callable[[Any, str], Any], obj: Any, name: str) -> bool:
    try:
        read(obj, name)
    except AttributeError:
        return False
    return True
