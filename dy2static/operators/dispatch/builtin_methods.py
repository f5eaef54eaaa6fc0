"""Builtin functions and methods of containers and strings, written in C: what they change goes to the journal."""

from __future__ import annotations

import functools
import types
from collections import deque
from typing import Any

import numpy

from dy2static.operators.builtins import comparing_methods
from dy2static.operators.builtins.objects import eager_type
from dy2static.operators.calls import boundary, growing, keyed
from dy2static.operators.calls.caches import CACHED, ask
from dy2static.operators.calls.call import call, traced
from dy2static.operators.calls.functions import call_function, require_plain
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import generator_uses, iterators
from dy2static.operators.iteration.generator_uses import Asks
from dy2static.operators.provenance import chosen, observed, tensor_keys
from dy2static.operators.provenance.provenance import (
    CONTAINERS,
    adopt,
    namespace_owner,
    note_content_write,
    note_space_read,
    note_space_write,
)
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import Choice, Session, Staged, distribute
from dy2static.operators.shared.stored import bound
from dy2static.operators.values import (
    number_keys,
    sequences_in_python,
    str_format,
    str_join,
    texts,
    traced_attribute,
    traced_compare,
    traced_subscript,
)
from dy2static.operators.values.added import added_to
from runtime.kinds import is_a
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.shown import VIEWS
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.numbers.scalars import StagedInt
from runtime.tracer.values import containers, identities, unjournaled
from runtime.tracer.values.tables import RowChoice

_MUTATORS = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard", "difference_update", "intersection_update", "symmetric_difference_update", "appendleft", "extendleft",
    "popleft", "rotate", "move_to_end", "subtract", "__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__",
    "__init__",
})


_OF_ITEMS = frozenset({"update", "union", "intersection", "difference", "symmetric_difference", "issubset",
                       "issuperset", "isdisjoint"})
"""Methods of sets that take anything with items."""


_GOES_OVER = _OF_ITEMS | {
    "extend", "extendleft", "join", "difference_update", "intersection_update", "symmetric_difference_update",
    "__iadd__", "__ior__", "__init__", "__setitem__",
}
"""Methods that take the items of what they are given; the others take it as it is."""


_EXTENDING = ("extend", "extendleft", "__iadd__")
"""Methods of deques that take the items of what they are given."""

_HOLDING = (list, tuple, deque, dict, set, frozenset, str, numpy.ndarray)
_SYNTAX: dict[str, Any] = {
    "__getitem__": (traced_subscript.read, 1), "__setitem__": (traced_subscript.write, 2),
    "__delitem__": (traced_subscript.delete, 1), "__contains__": (traced_compare.contains, 1),
}  # fmt: skip
"""What operators do with a container itself, and how many arguments its method has."""


def is_syntax(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether ``f(*args)`` is such a method of a class: ``list.__setitem__(items, key, value)``."""
    return getattr(f, "__name__", None) in _SYNTAX and is_a(args[0], _HOLDING)


def call_builtin(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)``, once for each value that what it looks at may be."""
    owner: Any = unasked(f, "__self__")
    more = added_to(session, owner, f.__name__)
    if more is not None:
        return call_builtin(session, getattr(more, f.__name__), args, kwargs)
    more = added_to(session, args[0], f.__name__) if args and is_a(f, types.MethodDescriptorType) else None
    if more is not None:  # list.append(items, x)
        return call_builtin(session, f, (more, *args[1:]), kwargs)
    if f is tuple.__new__ and len(args) == 2 and not kwargs and is_a(args[0], type) and args[0] is not tuple:
        items = traced(session, tuple, args[1:], {})  # of this very class a tuple may stand for one of any length
        if growing.is_growing(items) or containers.several(items) is not None or is_a(items, Choice):
            raise growing.refusal(session, f"a {args[0].__name__} made")
        args = args[0], items
    if is_a(owner, str) and f.__name__ == "join" and len(args) == 1:
        return str_join.str_join(session, owner, args[0])
    if texts.is_method(f, args, kwargs):
        return texts.called(f, args, kwargs)
    found = containers.several(owner) if session.containers.has_contents and not is_a(owner, type) else None
    if found is not None:  # a method that was read before the container became one of several
        if is_a(found, RowChoice):
            return _of_row(session, found, f, args, kwargs)
        methods = Choice(found.selector, tuple(bound(option, f.__name__) for option in found.options))
        return traced(session, methods, args, kwargs)
    of_a_class = is_a(f, (types.MethodDescriptorType, types.WrapperDescriptorType))
    if session.containers.has_contents and args and of_a_class:
        found = containers.several(args[0])
        if found is not None:  # dict.get(d, key)
            return distribute(session, found, lambda option: call_builtin(session, f, (option, *args[1:]), kwargs))
    return chosen.per_option(session, f, args, kwargs, functools.partial(_call, session, f))


_EMPTY = frozenset({list, tuple, dict, set, frozenset, deque, str, int, float, bool})
"""Classes that make something which holds nothing."""


_STOPPING: dict[str, Any] = {
    "isdisjoint": sequences_in_python.isdisjoint, "issuperset": sequences_in_python.issuperset,
    "intersection": sequences_in_python.intersection, "intersection_update": sequences_in_python.intersection,
}  # fmt: skip
"""Methods of sets that do not ask for all items; the same in Python."""


def _until_found(session: Session, owner: Any, name: str, given: Any) -> Any:
    """Such a method, where what is asked for the items is the user's code."""
    if not is_a(given, types.GeneratorType) and not generator_uses.gives_items(session, given):
        return NotImplemented
    source = generator_uses.source_of(session, given, whole=False)
    if source is not None and name in ("isdisjoint", "issuperset"):
        inside = generator_uses.mapped(session, lambda item: traced_compare.contains(session, owner, item), source)
        found = generator_uses.any_all(session, inside, name == "isdisjoint")
        return found if name == "issuperset" else session.scalar("not_", found) if is_a(found, Staged) else not found
    found = call_function(session, _STOPPING[name], (owner, given), {})
    if name == "intersection":
        return found if type(owner) is set else traced(session, frozenset, (found,), {})
    return found if name != "intersection_update" else traced(session, owner.intersection_update, (found,), {})


def _gone_over(session: Session, owner: Any, name: str, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, those whose items the method takes as lists if they are generators."""
    if name == "__setitem__" and not (is_a(owner, list) and given and is_a(given[0], slice)):
        return given  # it sets an item
    if is_a(owner, dict):
        items = generator_uses.listed if name == "fromkeys" else generator_uses.mapped_items
        return tuple(items(session, one) for one in given)
    asks = Asks.NOBODY if not is_a(owner, list) else Asks.ITERATOR if name == "__setitem__" else Asks.ITSELF
    return tuple(generator_uses.listed(session, one, asks) for one in given)


def _of_row(session: Session, found: RowChoice, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a dict that others hold by reference; its views show what it holds whenever they are read."""
    if f.__name__ in VIEWS.values():
        return f(*args, **kwargs)
    return distribute(session, found, lambda option: call_builtin(session, bound(option, f.__name__), args, kwargs))


def _call(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    owner: Any = unasked(f, "__self__")
    name = f.__name__
    if not iterators.keeps(f):
        iterators.note_given(session, args)  # it may be done for each of several values
    if name == "_make_subclass" and args:
        require_plain(session, args[0])
    if name == "__getattribute__" and not is_a(owner, type):  # super().__getattribute__(name) of a user's lookup
        if is_a(f, types.MethodWrapperType):
            return traced_attribute.default(session, owner, *args)
    unbound = is_a(f, (types.MethodDescriptorType, types.WrapperDescriptorType))
    if unbound and args:  # list.append(items, x)
        owner = args[0]
        kind = eager_type(owner)
        if not issubclass(kind, f.__objclass__) and kind in _EMPTY:
            theirs(f, kind())  # of another class: Python says so
    given = args[1:] if unbound else args
    if name == "__delattr__" and len(given) == 1 and type(given[0]) is str:
        traced_attribute.note_holding(session, owner, given[0])
    if name in _SYNTAX and is_a(owner, _HOLDING) and not kwargs and len(given) == _SYNTAX[name][1]:
        if namespace_owner(session, owner) is None:  # super().__getitem__(key) of a user's method
            return _SYNTAX[name][0](session, owner, *given, own=True)
    if is_a(owner, CACHED) and name in ("cache_info", "cache_clear"):
        return ask(session, owner, f, args, kwargs)
    if name in _STOPPING and type(owner) in (set, frozenset) and len(args) == 1 + unbound and not kwargs:
        done = _until_found(session, owner, name, args[unbound])
        if done is not NotImplemented:
            return done
    if name in _GOES_OVER and is_a(owner, (*CONTAINERS, str)):
        taken = (*args[:unbound], *_gone_over(session, owner, name, args[unbound:]))
        if any(is_a(now, Choice) and now is not before for now, before in zip(taken, args)):
            return call_builtin(session, f, taken, kwargs)
        args = taken
    if is_a(owner, (list, deque)) and name in ("pop", "insert") and len(args) > unbound:
        index = user_methods.as_number(session, args[unbound], "__index__")
        args = (*args[:unbound], index, *args[unbound + 1 :])
    if is_a(owner, (list, tuple, deque)):
        compared = comparing_methods.called(session, owner, name, args[1:] if unbound else args, kwargs)
        if compared is not comparing_methods.NOT_DONE:
            return compared
    if growing.is_growing(owner):
        return growing.method(session, owner, name, args[1:] if unbound else args, kwargs)
    given = args[1:] if unbound else args
    if is_a(owner, deque) and name == "rotate" and len(given) == 1 and is_a(given[0], StagedInt):
        return growing.rotate(session, owner, given[0])
    if is_a(owner, deque) and name in _EXTENDING and any(map(growing.is_growing, given)):
        if name == "__iadd__" and owner.maxlen is not None:
            raise growing.refusal(session, f"deque.{name} with maxlen")
        if name != "__iadd__":
            return growing.method(session, owner, name, given, kwargs)
    if contents.is_iterator(owner) and name in ("__next__", "send", "throw", "close"):
        iterators.require_known(session, owner)
        unjournaled.note_advanced(session, owner)
    noted = is_a(owner, CONTAINERS) and name in _MUTATORS and namespace_owner(session, owner) is None
    if is_a(owner, (list, dict, set, deque)):
        if noted:
            note_content_write(session, owner)
            if name == "sort" and kwargs.get("key") is not None:
                kwargs = {**kwargs, "key": functools.partial(call, kwargs["key"])}
    if is_a(owner, str) and name == "format":
        values = args[1:] if is_a(f, types.MethodDescriptorType) else args
        if str_format.is_staged(owner, values, kwargs):
            return str_format.str_format(owner, values, kwargs)
    if asked_methods.is_needed(session) and (name in _OF_ITEMS and is_a(owner, (set, frozenset))
                                             or name == "fromkeys"):  # fmt: skip
        args = tuple(list(arg) if contents.is_iterator(arg) else arg for arg in args)
    keyed.note_method(session, owner, name, given)
    boundary.require(session, f, args, kwargs)
    if is_a(owner, (dict, set)) and args and (tensor_keys.holds_tensors(args[:2]) or identities.any_in(args[:2])):
        first = 1 if unbound else 0  # set.add(items, x)
        args = (*args[:first], *(traced_compare.own_key(session, owner, one) for one in args[first : first + 1]),
                *args[first + 1 :])
    if is_a(owner, dict) and name in ("update", "__init__", "__ior__"):
        args = tensor_keys.own_mapping(session, type(owner), args)
    if owner is dict and name == "fromkeys":
        args = (*(tensor_keys.own_items(session, arg) for arg in args[:1]), *args[1:])
    if is_a(owner, (set, frozenset)) and name in _OF_ITEMS:
        args = tuple(tensor_keys.own_items(session, arg) for arg in args)
        for arg in args:
            identities.require_known_in_both(session, owner, arg)
    if is_a(owner, dict) and name in ("get", "pop", "setdefault") and given and is_a(given[0], Staged):
        if name == "get" and len(given) < 3 and not kwargs:
            default = given[1] if len(given) > 1 else None
            stored = functools.partial(traced_subscript.read, own=True)  # it asks no __getitem__
            return number_keys.get(session, owner, given[0], default, stored)
        raise number_keys.refusal(session, "a key of", owner)
    if is_a(owner, dict) and namespace_owner(session, owner) is not None and args:
        note_space_read(session, owner, args[0])
        if is_a(owner.get(args[0]) if is_a(args[0], str) else None, Choice):
            raise session.error(
                f"'{args[0]}' of a namespace is asked for as an item of a dict, and is only set on some paths",
                code="D2S277", hint="Read it as an attribute or name, or set it on every path.")
    if name in ("update", "__ior__") and is_a(owner, dict):
        note_space_write(session, owner, *(key for arg in args if is_a(arg, dict) for key in arg), *kwargs)
    if observed.needs_observing(f):
        roots = () if noted or is_a(owner, types.ModuleType) else (owner,)
        others = [arg for arg in (*args, *kwargs.values()) if not noted or arg is not owner]  # items.extend(items)
        with observed.observed(session, *roots, *others):
            result = chosen.foreign(session, f, args, kwargs)
    else:
        result = chosen.foreign(session, f, args, kwargs)
    observed.note_fresh(session, f, result, (*args, *kwargs.values()))
    if is_a(owner, (list, dict, deque)) and id(owner) in session.objects.externals and name in ("get", "pop"):
        adopt(session, result)
    return observed.made(session, result)

