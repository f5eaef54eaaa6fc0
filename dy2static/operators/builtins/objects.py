"""``isinstance type callable getattr setattr hasattr delattr id hash`` as eager Python would answer."""

from __future__ import annotations

import abc
import contextlib
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy
import torch

from dy2static.operators.calls import numpy_arrays
from dy2static.operators.calls.functions import note_made_class
from dy2static.operators.calls.sequences import (
    StagedEnumerate,
    StagedMap,
    StagedRange,
    StagedReversed,
    StagedSequence,
    StagedSize,
    StagedZip,
)
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import generator_uses
from dy2static.operators.provenance import observed, tensor_attributes
from dy2static.operators.provenance.identity import require_identity
from dy2static.operators.provenance.provenance import is_external, note_space, written
from dy2static.operators.shared import module_parts
from dy2static.operators.shared.policy import is_library
from dy2static.operators.shared.staging import (
    MISSING,
    NO_NAMES,
    Choice,
    Session,
    Staged,
    any_staged,
    distribute,
    held_choice,
    python_method,
    spread,
)
from dy2static.operators.values import modules, traced_attribute
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.unasked import asks_users, module_name
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.memory import hung
from runtime.tracer.numbers.scalars import refuse
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.interceptor import History
from runtime.tracer.values import identities, same_object
from runtime.tracer.values.numpy_arrays import NumpyArray, NumpyScalar, dtype_of

_TYPES: dict[type, type] = {
    StagedRange: range, StagedEnumerate: enumerate, StagedZip: zip, StagedMap: map, StagedReversed: reversed,
    StagedSize: torch.Size,
}  # fmt: skip


def eager_type(value: Any) -> type:
    """``type(value)`` as the user's program, run eagerly, would see it."""
    if is_a(value, Staged):
        return value.python_type
    if is_a(value, NumpyArray):
        return numpy_arrays.eager_class(value)
    if is_a(value, identities.Identity):
        return int
    if is_a(value, torch.Tensor):
        return tensor_attributes.eager_class(value)
    if is_a(value, History):
        value.refuse("the class")
    if is_a(value, types.GeneratorType):
        return generator_uses.kind_of(value)
    if is_a(value, Keyed):
        return value.stands_for
    return _TYPES.get(type(value), type(value))


def _isinstance(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    value, classes = args
    value = session.itself(value)
    if is_a(value, Choice):
        return distribute(session, value, lambda option: _isinstance(session, (option, classes), {}))
    if held_choice(classes) is not None:
        return spread(session, classes, lambda given: _isinstance(session, (value, given), {}))
    if is_a(value, History):
        return issubclass(torch.autograd.graph.Node, classes)
    if is_a(value, (Staged, StagedSequence, StagedSize, NumpyArray, types.GeneratorType, Keyed)):
        try:
            return issubclass(eager_type(value), classes)
        except TypeError:
            return isinstance(None, classes)  # says so of isinstance
    for one in _each(classes):
        python_method(one, "__instancecheck__")  # a guard of what a metaclass of the user's says
    result = _is_instance(session, value, classes)
    if is_a(value, torch.Tensor) and any(
        is_a(one, type) and issubclass(one, torch.Tensor) and module_name(one).partition(".")[0] != "torch"
        for one in _each(classes)
    ):
        session.inputs.require_plain_classes()
    if is_a(value, torch.Tensor) and any(one in (torch.nn.Parameter, torch.nn.Buffer) for one in _each(classes)):
        hung.ask_class(session, value)
    if is_external(session, value) and any(is_a(one, abc.ABCMeta) for one in _each(classes)):
        session.guards.add_test(
            (id(value), "instance", classes), f"whether a {type(value).__name__} is an instance of what is registered",
            lambda: isinstance(value, classes) is result)
    return result


def _is_instance(session: Session, value: Any, classes: Any) -> bool:
    """``isinstance``: an object of another class is asked for its ``__class__``, once for each of the classes."""
    if not asks_users(value):
        return isinstance(value, classes)
    for one in classes if is_a(classes, tuple) else _options(classes):
        if is_a(one, (tuple, types.UnionType)):
            if _is_instance(session, value, one):
                return True
        elif type(one).__instancecheck__ not in _PYTHONS_CHECKS:
            if isinstance(value, one):
                return True
        elif type(value) is one or type(one).__instancecheck__ is _BY_TYPE and issubclass(type(value), one):
            return True
        elif issubclass(_class_said(session, value), one) or issubclass(type(value), one):
            return True
    return False


_BY_TYPE: Any = type.__instancecheck__
_PYTHONS_CHECKS: tuple[Any, ...] = (_BY_TYPE, abc.ABCMeta.__instancecheck__)
"""The second asks for the ``__class__`` first."""


def _options(classes: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] = classes.__args__ if is_a(classes, types.UnionType) else (classes,)
    return found


def _class_said(session: Session, value: Any) -> Any:
    """The class that an object says it has."""
    try:
        said = traced_attribute.read(session, value, "__class__")
    except AttributeError:
        return type(value)
    return said if is_a(said, type) else type(value)


def _each(classes: Any) -> Iterator[Any]:
    for one in classes if is_a(classes, tuple) else (classes,):
        yield from _each(one) if is_a(one, tuple) else (one,)


def _issubclass(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for one in _each(args[1]) if len(args) == 2 else ():
        python_method(one, "__subclasscheck__")  # a guard of what a metaclass of the user's says
    return spread(session, args, lambda given: issubclass(*given, **kwargs))


def _type(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1 or kwargs:
        if args and is_a(args[0], Staged) and args[0].kind == "str":
            refuse(args[0], "used as the name of a class")
        if held_choice(args[:2]) is not None:
            return spread(session, args[:2], lambda given: _type(session, (*given, *args[2:]), kwargs))
        made = type(*args, **kwargs)
        note_made_class(session, made)
        return made
    if is_a(args[0], Choice):
        return distribute(session, args[0], eager_type)
    if is_a(args[0], torch.Tensor):
        session.inputs.require_plain_classes()
        hung.ask_class(session, args[0])
    return eager_type(args[0])


def _callable(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (value,) = args
    return distribute(session, value, callable) if is_a(value, Choice) else callable(value)


def _getattr(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    obj, name, *default = args
    if is_a(name, Choice):
        return distribute(session, name, lambda option: _getattr(session, (obj, option, *default), {}))
    if not is_a(name, str) or not default:
        return traced_attribute.read(session, obj, _name(name))
    if is_a(obj, Choice):
        return distribute(session, obj, lambda option: _getattr(session, (option, name, *default), {}),
                          itself=True)
    if module_parts.may_be_open(session) and module_parts.has_chosen(obj, name):
        return module_parts.look(session, obj, name, _itself, functools.partial(_itself, default[0]))
    held = traced_attribute.asked_per_path(session, obj, name)
    if held is not None:
        again = functools.partial(_getattr, session, args, kwargs)
        return traced_attribute.per_path(session, obj, name, held, again)
    held = traced_attribute.missing_on_some_paths(obj, name)
    if held is not None:
        paths = [functools.partial(_itself, default[0] if option is MISSING else option) for option in held.options]
        return tracer_cond.switch(session, held.selector, paths, NO_NAMES)
    try:
        with _missing_is_caught(session):
            return traced_attribute.read(session, obj, name)
    except AttributeError:
        traced_attribute.note_absent(session, obj, name)
        return default[0]


@contextlib.contextmanager
def _missing_is_caught(session: Session) -> Iterator[None]:
    """While an attribute is looked for: a user's ``__getattr__`` may raise on some paths only, which is refused."""
    session.exceptions.catching.append(lambda: AttributeError)
    try:
        yield
    finally:
        session.exceptions.catching.pop()


def _itself(value: Any) -> Any:
    return value


def _hasattr(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    obj, name = args
    if is_a(name, Choice):
        return distribute(session, name, lambda option: _hasattr(session, (obj, option), {}))
    if is_a(obj, Choice):
        return distribute(session, obj, lambda option: _hasattr(session, (option, name), {}), itself=True)
    if is_a(obj, Staged):
        return hasattr(obj.python_type(), _name(name))
    if is_a(obj, NumpyArray):
        return hasattr(numpy_arrays.eager_class(obj), _name(name))
    if module_parts.may_be_open(session) and module_parts.has_chosen(obj, _name(name)):
        return module_parts.look(session, obj, name, lambda value: True, lambda: False)
    held = traced_attribute.asked_per_path(session, obj, name)
    if held is not None:
        again = functools.partial(_hasattr, session, args, kwargs)
        return traced_attribute.per_path(session, obj, name, held, again)
    held = traced_attribute.missing_on_some_paths(obj, _name(name))
    if held is not None:
        paths = [functools.partial(_itself, option is not MISSING) for option in held.options]
        return tracer_cond.switch(session, held.selector, paths, NO_NAMES)
    if is_a(obj, torch.Tensor):
        return tensor_attributes.has(session, obj, _name(name))
    if user_methods.is_users(python_method(obj, "__getattr__")) or asks_users(obj):
        try:
            with _missing_is_caught(session):
                traced_attribute.read(session, obj, _name(name))
        except AttributeError:
            traced_attribute.note_absent(session, obj, _name(name))
            return False
        return True
    found = hasattr(obj, _name(name))
    if found:
        traced_attribute.note_present(session, obj, name)
    else:
        traced_attribute.note_absent(session, obj, name)
    return found


def _setattr(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    obj, name, value = args
    if is_a(name, Choice):
        return distribute(session, name, lambda option: _setattr(session, (obj, option, value), {}))
    traced_attribute.write(session, obj, _name(name), value)


def _delattr(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    obj, name = args
    if is_a(name, Choice):
        return distribute(session, name, lambda option: _delattr(session, (obj, option), {}))
    traced_attribute.delete(session, obj, _name(name))


def _namespace(function: Any) -> Any:
    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for obj in args:
            if is_a(obj, Choice):
                return distribute(session, obj, lambda option: apply(session, (option,), kwargs))
            if is_a(obj, Staged) and function is dir:
                return dir(obj.python_type)
            if is_a(obj, NumpyArray):
                return theirs(function, numpy.zeros(())) if function is vars else dir(numpy_arrays.eager_class(obj))
            if is_a(obj, torch.nn.Module) and module_parts.may_be_open(session) and module_parts.is_open(obj):
                if function is dir:
                    again = functools.partial(apply, session, args, kwargs)
                    return module_parts.per_content(session, [obj], again)
                module_parts.settle(session, obj)
            traced_attribute.require_settled(session, obj, in_order=function is vars)
            if torch_internals.is_fake(obj):
                return tensor_attributes.read(session, obj, "__dict__" if function is vars else "__dir__")
        if args and is_a(args[0], torch.Tensor):  # of it names are the caller's, or Python's
            return dir(tensor_attributes.with_names(session, args[0])) if function is dir else (
                tensor_attributes.read(session, args[0], "__dict__"))
        if function is vars and args and asks_users(args[0]):
            return traced_attribute.read(session, args[0], "__dict__")
        with observed.with_users_methods(session, args):
            result = modules.space_as_in_eager(args[0], function(*args, **kwargs)) if args else function()
        if function is vars:
            note_space(session, args[0], result)
        elif args:
            _note_names(session, args[0], result)
        return result

    return apply


def _note_names(session: Session, obj: Any, names: list[str]) -> None:
    """Guard what ``dir`` gives; of an object that is made inside, what it gives of its class."""
    if not is_external(session, obj) and not is_a(obj, type):
        obj, names = type(obj), dir(type(obj))
    if is_a(obj, types.ModuleType) and is_library(obj) or not is_external(session, obj):
        return
    if not any(written(session, Place("attribute", obj, name)) for name in names):
        session.guards.add_test(
            (id(obj), "names of all"), f"the names that dir() gives of a {type(obj).__name__}",
            lambda: dir(obj) == names)


def _name(name: Any) -> str:
    if is_a(name, Staged):
        refuse(name, "used as the name of an attribute")
    if not is_a(name, str):
        theirs(getattr, object(), name)  # raises in Python's words
    return name


def _identity(function: Any, how: str) -> Any:
    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args and is_a(args[0], Staged):
            refuse(args[0], how)
        if args and (is_a(args[0], Choice) or any_staged(args)):
            raise session.error(f"a value that is only known while the Program runs was {how}", code="D2S210",
                                hint="Use the value itself.")
        if args:
            require_identity(session, args[0])
            if function is id and not is_a(args[0], torch.Tensor):
                same_object.require_one(session, args[0])
            value = session.one(args[0])
            if function is id:
                session.guards.pin(value)
            return identities.noted(session, value, function(value, *args[1:], **kwargs))
        return function(*args, **kwargs)

    return apply


def _is_scalar(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``numpy.isscalar``."""
    if len(args) == 1 and held_choice(args) is not None:
        return spread(session, args[0], lambda given: _is_scalar(session, (given,), kwargs))
    given = [one.python_type() if is_a(one, Staged) else dtype_of(one).type() if is_a(one, NumpyScalar)
             else one for one in (*args, *kwargs.values())]  # fmt: skip
    return theirs(numpy.isscalar, *given[: len(args)], **dict(zip(kwargs, given[len(args):])))


HANDLERS: list[tuple[Any, Any]] = [
    (isinstance, _isinstance), (issubclass, _issubclass), (type, _type), (callable, _callable),
    (getattr, _getattr), (setattr, _setattr),
    (hasattr, _hasattr), (delattr, _delattr), (vars, _namespace(vars)),
    (dir, _namespace(dir)), (id, _identity(id, "asked for its id")),
    (hash, _identity(hash, "hashed")), (torch.Tensor.__hash__, _identity(hash, "hashed")),
    (numpy.isscalar, _is_scalar),
]  # fmt: skip
