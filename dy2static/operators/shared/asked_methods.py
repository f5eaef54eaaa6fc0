"""Special methods that Python's C code calls itself, and methods of modules that PyTorch calls: they are not converted.

    repr([box])         calls ``Box.__repr__``       {box: 1}        ``Box.__hash__`` and ``Box.__eq__``
    model.state_dict()  calls ``get_extra_state`` of the modules inside

One that reads a list which grew would take it for a list of one item, so that the operation is refused. Which lists a
method reads is told by the names in its code: attributes of the object, other methods, globals.
"""

from __future__ import annotations

import dis
import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from dy2static.operators.shared import reachable
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.reachable import Code, function_of, global_names, is_users_class, names_in, reached
from dy2static.operators.shared.staging import Choice, Session, Staged
from runtime.kinds import is_a
from runtime.tracer.ambient import contents, objects
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.values.containers import several

SHOWN = ("__repr__", "__str__", "__format__")
HASHED = ("__hash__", "__eq__")
ITEMS = ("__iter__", "__getitem__", "__len__", "__length_hint__", "keys")
COPIED = ("__getstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__", "__setstate__")
_MOST = 20_000
_WHOLE_OBJECT = frozenset({"__dict__", "vars", "getattr", "attrgetter", "methodcaller", "asdict", "astuple"})
_ABOUT = frozenset({"isinstance", "issubclass", "type", "id", "super"})
"""Functions that call no special method of what they are given."""
_BARE = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE")
_OF_ATTRIBUTES = frozenset({
    "LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "IS_OP", "RETURN_VALUE",
})  # fmt: skip
"""Instructions that ask an object for a name, for which one it is, or for nothing."""


def is_needed(session: Session) -> bool:
    """Whether there is anything in the trace that code which is not converted may not read."""
    return session.containers.has_growing or session.containers.has_contents


# -- who is asked


def require_hashed(session: Session, what: str, keys: Iterable[Any]) -> None:
    """Refuse keys whose ``__hash__`` or ``__eq__`` reads a list that grew: of dicts and sets among them, their keys.

    Raises:
        TraceError: D2S253.
    """
    if is_needed(session):
        require(session, what, list(_keys(keys)), HASHED)


def require_items(session: Session, what: str, values: Iterable[Any], is_converted: bool = True) -> None:
    """Refuse objects whose items C code takes by methods that read a list that grew. ``is_converted``: a user's
    ``__iter__`` is converted there.

    Raises:
        TraceError: D2S253.
    """
    if is_needed(session):
        require(session, what, [value for value in values if not is_a(value, type) and not (
            is_converted and _is_users(_found(value, "__iter__")))], ITEMS)


def keys_in(container: Any) -> Iterable[Any]:
    """What a look at a container compares: the keys of a dict, the items of a set; never the container itself."""
    if reachable.is_growing(container):
        return ()
    if is_a(container, dict):
        return list(dict.__iter__(container))
    return list(container) if type(container) in (set, frozenset) else (container,)


def _keys(values: Iterable[Any]) -> Iterator[Any]:
    todo = list(values)
    while todo:
        value = todo.pop()
        if is_plain(value) or is_a(value, (torch.Tensor, Staged)):
            continue
        if is_a(value, (tuple, frozenset, set, dict, *_VIEWS)):
            if reachable.is_growing(value):
                continue
            items: Any = dict.keys(value) if is_a(value, dict) else value
            todo.extend(items)
        if is_a(value, Choice):
            todo.extend(value.options)
        yield value


_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.items()))


def require_shown(session: Session, what: str, values: Iterable[Any], own: tuple[str, ...] = SHOWN) -> None:
    """Refuse values of which an item has a ``__repr__`` that reads a list that grew. The values' own method, by one of
    the names in ``own``, is not asked about: it is converted where it is called.

    Raises:
        TraceError: D2S253.
    """
    if is_needed(session):
        values = list(values)
        require(session, what, list(_shown(values, own)), SHOWN)
        require_modules(session, torch.nn.Module.__repr__, [value for value in values if not _tells(value, own)])


def _tells(value: Any, names: tuple[str, ...]) -> bool:
    """Whether a user's class has one of some special methods."""
    return any(_is_users(_found(value, name)) for name in names)


def _shown(values: Iterable[Any], own: tuple[str, ...]) -> Iterator[Any]:
    todo = [(value, True) for value in values]
    seen: dict[int, Any] = {}
    while todo and len(seen) < _MOST:
        value, is_outer = todo.pop()
        if is_plain(value) or id(value) in seen or is_a(value, (torch.Tensor, Staged)):
            continue
        seen[id(value)] = value
        if not is_outer:
            yield value
        if is_a(value, type):
            continue
        if is_a(value, torch.nn.Module) or is_outer and _tells(value, own):
            continue
        todo.extend((item, False) for item in _items(value))


def _items(value: Any) -> list[Any]:
    """What the text of a value may show."""
    held = several(value)
    if is_a(value, Choice) or held is not None:
        return list(value.options if held is None else held.options)
    found: list[Any] = []
    if is_a(value, (list, tuple, set, frozenset, deque, dict)):
        if reachable.is_growing(value):
            return []
        found = objects.own_items(value)
        if is_a(value, dict):
            found.extend(dict.keys(value))
    elif is_a(value, _VIEWS_SHOWN):
        found = list(value)
    elif is_a(value, BaseException):
        found = list(value.args)
    elif is_a(value, functools.partial):
        found = [value.func, *value.args, *value.keywords.values()]
    elif is_a(value, slice):
        found = [value.start, value.stop, value.step]
    elif is_a(value, types.MethodType):
        found = [value.__self__]
    elif not is_users_class(type(value)) or not is_a(type(value).__repr__, types.WrapperDescriptorType):
        found = list(objects.attributes(value).values())
    return found


_VIEWS_SHOWN: tuple[Any, ...] = (*_VIEWS, type({}.values()))


# -- what they read


def require(session: Session, what: str, values: list[Any], names: Iterable[str]) -> None:
    """Refuse objects among the values of which one of the special methods reads a list that grew.

    Raises:
        TraceError: D2S253.
    """
    users = [value for value in values if is_users_class(type(value))]
    if not users:
        return
    for name in names:
        methods = {id(one): one for one in (_found(value, name) for value in users) if one is not None}
        if methods and leads(users, list(methods.values())):
            raise _refusal(session, what, name, users)


def _refusal(session: Session, what: str, name: str, users: list[Any]) -> Exception:
    owner = next((one for one in users if _found(one, name) is not None), None)
    return session.error(
        f"{what} calls {type(owner).__name__}.{name}(), which reads a list whose length is only known while the "
        "Program runs, and would not see its items",
        hint=f"Call it yourself before and use what it gives, or keep what {name}() reads in an attribute.",
        code="D2S253")


def _found(value: Any, name: str) -> types.FunctionType | None:
    """The special method of a value's class, if it is written in Python."""
    for cls in type(value).__mro__:
        if name in cls.__dict__:
            method = cls.__dict__[name]
            return method if is_a(method, types.FunctionType) else None
    return None


def _is_users(method: types.FunctionType | None) -> bool:
    return method is not None and not home_of(method.__code__.co_filename)


def leads(owners: list[Any], methods: list[types.FunctionType]) -> bool:
    """Whether methods, when they are called of some objects, may read a list that grew."""
    todo: list[Any] = list(methods)
    seen: set[int] = set()
    names: set[str] = set()
    roots: list[Any] = []
    is_whole = False
    while todo:
        one = todo.pop()
        if is_a(one, tuple):
            todo.extend(one)
            continue
        if not is_a(one, types.FunctionType):
            roots.append(one)  # an attribute of the class
            continue
        if id(one) in seen:
            continue
        seen.add(id(one))
        found = names_in(one.__code__)
        names |= found
        is_whole = is_whole or bool(found & _WHOLE_OBJECT)
        beside = _beside(one)
        roots += beside
        if passes_on(one.__code__):  # to functions, or to what calls special methods
            found |= _SPECIAL
            todo += [function for function in beside if is_a(function, types.FunctionType)]
        for owner in owners:
            for name in found:
                todo += _members(owner, name)
    for owner in owners:
        held = objects.attributes(owner)
        roots += held.values() if is_whole else [held[name] for name in names if name in held]
        if is_a(owner, (list, dict, tuple, set, frozenset)):
            roots += objects.own_items(owner)
        if is_a(owner, torch.nn.Module):
            roots += [one for part in ("_modules", "_buffers") for name, one in held.get(part, {}).items()
                      if name in names]
    roots = [root for root in roots if not any(root is owner for owner in owners)]
    return reached(roots, reachable.is_stand_in, code=Code(set(names))) is not None


def _members(owner: Any, name: str) -> list[Any]:
    """What an object's classes have under a name: the functions, which are called, and those behind them."""
    found = []
    for cls in type(owner).__mro__:
        member = cls.__dict__.get(name)
        if member is not None and is_users_class(cls):
            found.append(function_of(member) or member)
    return found


def _beside(function: types.FunctionType) -> list[Any]:
    """What a method finds beside its object: its closure, its defaults, and the globals that it names."""
    if home_of(function.__code__.co_filename):
        return []
    space = function.__globals__
    found = [*contents.cells_of(function), *(function.__defaults__ or ())]
    found += [space[name] for name in global_names(function.__code__) if name in space]
    return found


_SPECIAL = frozenset({
    "__len__", "__bool__", "__iter__", "__getitem__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
    "__ge__", "__hash__", "__repr__", "__str__", "__format__", "__index__", "__int__", "__float__", "__call__",
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__neg__", "__abs__", "__round__", "__next__",
    "__enter__", "__exit__", "__dir__", "__reversed__", "__getattr__",
})  # fmt: skip
"""What Python may call of an object that a method passes on (``len(self)``, ``f"{self}"``)."""


@functools.lru_cache(maxsize=4096)
def passes_on(code: types.CodeType) -> bool:
    """Whether a method does more with its parameters than ask them for names.

    >>> passes_on((lambda self: self.items[0]).__code__), passes_on((lambda self: len(self)).__code__)
    (False, True)
    """
    parameters = frozenset(code.co_varnames[: code.co_argcount])
    ran = list(_single(code))
    for place, (opname, argument) in enumerate(ran):
        if not opname.startswith(_BARE) or argument not in parameters:
            continue
        after = [following for following, _ in ran[place + 1 : place + 3]]
        before = ran[place - 1] if place else ("", None)
        if before[0] == "LOAD_GLOBAL" and before[1] in _ABOUT:
            continue
        is_asked = bool(after) and (  # fmt: skip
            after[0] in _OF_ATTRIBUTES or after[0].startswith("LOAD_") and "IS_OP" in after[1:])
        if not is_asked:
            return True
    return False


def _single(code: types.CodeType) -> Iterator[tuple[str, Any]]:
    """The instructions of a code object that do something, by name and argument; those of Python 3.13 that do two
    (``LOAD_FAST_LOAD_FAST``) as two."""
    for one in dis.get_instructions(code):
        if one.opname in ("PUSH_NULL", "PRECALL", "CACHE"):
            continue
        if is_a(one.argval, tuple) and "_FAST" in one.opname:
            first = one.opname[: one.opname.index("_FAST") + len("_FAST")]
            second = "LOAD_FAST" if one.opname.find("LOAD_FAST", 1) > 0 else "STORE_FAST"
            yield from ((first, one.argval[0]), (second, one.argval[1]))
        else:
            yield one.opname, one.argval


# -- modules


def require_modules(session: Session, f: Any, values: Iterable[Any]) -> None:
    """Refuse modules given to one of PyTorch's functions that calls methods of theirs which a user has written, where
    one of these reads a list that grew.

    Raises:
        TraceError: D2S253.
    """
    if not is_needed(session) or not is_a(f, (types.FunctionType, type)):
        return
    called = called_by(f)
    for module, is_given in _modules(list(values)):
        if not is_users_class(type(module)):
            continue
        for name in _OF_MODULES:
            method = _found(module, name)
            if method is None or not _is_users(method) or called is not None and name not in called:
                continue
            if not (is_given and called is not None and name == f.__name__) and leads([module], [method]):
                raise _refusal(session, f"{getattr(f, '__name__', type(f).__name__)}()", name, [module])


def _modules(values: list[Any]) -> Iterator[tuple[torch.nn.Module, bool]]:
    """The modules among values, whether they were given themselves; and the modules inside."""
    todo: list[tuple[Any, bool]] = [(value, True) for value in values]
    seen: dict[int, Any] = {}
    while todo and len(seen) < _MOST:
        value, is_given = todo.pop()
        if is_plain(value) or is_a(value, (torch.Tensor, Staged)) or id(value) in seen:
            continue
        seen[id(value)] = value
        if is_a(value, torch.nn.Module):
            yield value, is_given
            todo.extend((one, False) for one in objects.attributes(value).get("_modules", {}).values())
        elif is_a(value, (list, tuple, set, frozenset, dict)) and not reachable.is_growing(value):
            todo.extend((one, False) for one in objects.own_items(value))
        elif is_a(value, types.MethodType):
            todo.append((value.__self__, True))


_OF_MODULES: tuple[str, ...] = tuple(
    name for name, one in vars(torch.nn.Module).items() if is_a(one, types.FunctionType)
    and name not in ("forward", "__call__", "_call_impl", "_wrapped_call_impl", "__init__", "__new__", "__getattr__",
                     "__setattr__", "__delattr__"))  + ("__hash__", "__eq__", "__len__")  # fmt: skip
"""Methods that PyTorch may call of a module; its ``forward`` is converted where it is called."""
_BY_BUILTINS = {"repr": "__repr__", "str": "__repr__", "len": "__len__", "dir": "__dir__"}


def called_by(f: Any) -> frozenset[str] | None:
    """The methods that one of a module may call of modules, by the names in its code and in theirs; None: any."""
    code = getattr(f, "__code__", None)
    known = is_a(code, types.CodeType) and vars(torch.nn.Module).get(f.__name__) is f
    return _called_by(code) if known else None


@functools.lru_cache(maxsize=256)
def _called_by(code: types.CodeType) -> frozenset[str]:
    found: set[str] = set()
    todo = [code]
    while todo:
        names = names_in(todo.pop())
        if "set" in names:  # of modules that were met
            found |= set(HASHED)
        found |= {_BY_BUILTINS[name] for name in names if name in _BY_BUILTINS}
        for name in names:
            method = vars(torch.nn.Module).get(name)
            if name not in found and is_a(method, types.FunctionType):
                found.add(name)
                todo.append(method.__code__)
    return frozenset(found)


__all__ = [
    "COPIED", "HASHED", "ITEMS", "SHOWN", "called_by", "is_needed", "keys_in", "leads", "passes_on", "require",
    "require_hashed", "require_items", "require_modules", "require_shown",
]  # fmt: skip
