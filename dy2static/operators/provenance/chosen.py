"""Calls of code that is not converted with a value that is one of several: done once for each that it may be.

    {"up": 2.0, "down": 0.5}.get(name, 1.0)   ->   switch(which name it is, ....get("up", 1.0), ....get("down", 1.0))
    items.append(name)                        stays one call: a list keeps what it is given without a look at it

What a function looks at decides: the whole of its arguments, a key only, or nothing. Containers that it keeps or
changes are given as they are, never as a copy with one of the values inside. Whatever looks at the value all the same
(hashes it, asks for its truth or its text) gets a located error from the value itself.
"""

from __future__ import annotations

import enum
import functools
import queue
import types
import typing
from collections import Counter, UserDict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dy2static.operators.provenance import tensor_keys
from dy2static.operators.provenance.iterators_apart import for_option, taken_by_option
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.handler import OURS
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Choice, Session, any_staged, distribute, held_choice, spread
from dy2static.operators.shared.waiting import ends_with_calls
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.values.containers import opened

Run = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Look = tuple[str, int]
"""What a function looks at, and the position of the argument: see ``_parts``."""

_OF_ONE = ("key", "keys", "pairs")
"""Looks at one argument."""
_NOTHING: Look = ("nothing", 0)
_ALL: Look = ("all", 0)
_WHOLE: Look = ("whole", 0)

_PURE = frozenset({
    "_json", "json", "math", "cmath", "re", "_sre", "string", "_string", "textwrap", "statistics", "_statistics",
    "fractions", "decimal", "_decimal", "numbers", "_struct", "struct", "unicodedata", "fnmatch", "difflib", "html",
    "urllib", "colorsys", "keyword", "shlex", "posixpath", "genericpath", "pprint", "reprlib", "datetime", "_datetime",
    "calendar", "ipaddress", "uuid", "base64", "binascii", "zlib", "hashlib", "_hashlib", "enum", "locale",
})  # fmt: skip
"""Modules whose functions compute a result of their arguments, and keep and change none."""

_BUILTINS = frozenset({"bin", "chr", "hex", "oct", "ord", "divmod", "pow", "abs", "ascii", "repr", "round", "format"})
_KEEPING_METHODS = frozenset({"append", "appendleft", "insert", "copy", "clear", "reverse", "sort", "popleft"})
_BY_KEY = frozenset({
    "get", "pop", "setdefault", "move_to_end", "index", "count", "remove", "rotate", "__getitem__", "__setitem__",
    "__delitem__", "__contains__", "__missing__",
})  # fmt: skip
_BY_PAIRS = ("update", "__init__", "__ior__", "__or__", "__ror__")
_KEEPING = (
    slice, BaseException, types.SimpleNamespace, functools.partial, property, staticmethod, classmethod,
    types.MethodType,
)  # fmt: skip
_KEY_WRAPPER = type(functools.cmp_to_key(lambda a, b: 0))
_KEEPING_ITERATORS = frozenset({
    "chain", "combinations", "combinations_with_replacement", "permutations", "product", "pairwise", "repeat", "cycle",
    "zip_longest", "islice", "count", "compress", "accumulate", "starmap", "takewhile", "dropwhile", "filterfalse",
    "groupby", "batched",
})  # fmt: skip


def per_option(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Run) -> Any:
    """``run(args, kwargs)``, which calls ``f``: once for each value that what it looks at may be."""
    look = _look(f)
    if session.containers.has_contents and look is not _NOTHING:  # what it keeps stays what it is
        only = look[1] + len(args) if look[1] < 0 else look[1]
        args = tuple(opened(arg) if look[0] not in _OF_ONE or index == only else arg for index, arg in enumerate(args))
    taken = any(hasattr(type(arg), "__next__") for arg in args)  # a look at the items takes them
    pairs = any(is_a(arg, (zip, enumerate)) for arg in args)
    if not pairs and not any_staged(args) and not any_staged(kwargs.values()):
        return run(args, kwargs)
    looked, rebuilt = _parts(look, args, kwargs)
    if held_choice(looked) is None:
        return run(*rebuilt(looked)) if taken else run(args, kwargs)
    apart = taken_by_option if look in (_ALL, _WHOLE) else for_option

    def once(given: list[Any]) -> Any:
        now, named = rebuilt(given)
        return run(tuple(apart(session, one) for one in now), named)

    over = _each if look[0] == "pairs" and all(map(_is_mapping, looked)) else spread
    return over(session, looked, once if taken else lambda given: run(*rebuilt(given)))


def _is_mapping(value: Any) -> bool:
    return is_a(value, Choice) and all(is_a(option, Mapping) for option in value.options)


def _each(session: Session, values: list[Any], function: Callable[[list[Any]], Any]) -> Any:
    """As ``spread``, without a look at what the options hold: a dict that is made of another one keeps its values."""
    if not values:
        return function([])
    return distribute(session, values[0], lambda option: _each(
        session, values[1:], lambda others: function([option, *others])))


@ends_with_calls
def foreign(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)`` for code that is not converted, and may not take what the tracer hands it.

    Raises:
        TraceError: D2S210: it took a value that only the run knows for something else.
    """
    before = session.exceptions.last_error
    try:
        return f(*args, **kwargs)
    except (TypeError, ValueError, AttributeError) as error:
        owner = unasked(f, "__self__")
        if not any_staged([owner if is_a(owner, (list, tuple, dict)) else None, args, kwargs]) and not any(
                is_a(one, Keyed) for one in args):  # fmt: skip
            raise
        raise refusal(session, f) from error
    except Exception as error:
        said = session.exceptions.last_error
        if is_a(error, OURS) or said is None or said is before:
            raise
        raise said from error  # the function has put an error of its own in the place of ours: struct.pack


def refusal(session: Session, f: Any) -> Exception:
    """The located error for a function that cannot take a value which only the run knows."""
    return session.error(
        f"{getattr(f, '__name__', type(f).__name__)}() cannot take a value that is only known while the Program runs",
        hint="Keep this value a tensor, or call the function outside.", code="D2S210")


def hashed(session: Session, keys: list[Any], build: Callable[[list[Any]], Any]) -> Any:
    """``build(keys)``, once for each value that the keys, or what tuples among them hold, may be."""
    asked_methods.require_hashed(session, "a dict or set", keys)
    return spread(session, [tensor_keys.own(session, key) for key in keys], functools.partial(theirs, build))


# -- what a function looks at


def _look(f: Any) -> Look:
    if is_a(f, _KEY_WRAPPER) or f is typing.cast:
        return _NOTHING
    if is_a(f, type):
        return _of_class(f)
    owner = unasked(f, "__self__")
    name = str(unasked(f, "__name__", ""))
    if is_a(f, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return _of_method(f.__objclass__, name, 1)
    if is_a(f, types.FunctionType):
        return _of_function(f, name)
    if is_a(owner, type):
        return ("keys", 0) if name == "fromkeys" else _ALL if _is_pure(owner) else _WHOLE
    if is_a(owner, types.ModuleType) or owner is None:
        if owner is not None and owner.__name__ == "builtins":
            return _ALL if name in _BUILTINS else _WHOLE
        return _ALL if _is_pure(f) else _WHOLE
    return _of_method(type(owner), name, 0)


def _of_method(cls: type, name: str, first: int) -> Look:
    if issubclass(cls, (set, frozenset, *_VIEWS)):
        return ("all", first)
    if issubclass(cls, (str, bytes, int, float)):
        return _ALL
    if issubclass(cls, (dict, types.MappingProxyType)):
        if name == "fromkeys":
            return ("keys", first)
        return ("key", first) if name in _BY_KEY else ("pairs", first) if name in _BY_PAIRS else _NOTHING
    if cls is queue.SimpleQueue:  # it keeps what is put
        return _NOTHING
    if issubclass(cls, (list, tuple, deque)):
        return ("key", first) if name in _BY_KEY else _NOTHING if name in _KEEPING_METHODS else _WHOLE
    return _ALL if _is_pure(cls) else _WHOLE


_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.items()), type({}.values()))


def _of_class(cls: type) -> Look:
    if issubclass(cls, Counter):
        return ("keys", 0)
    if issubclass(cls, (dict, UserDict)):
        return ("pairs", -1)
    if issubclass(cls, (set, frozenset)):
        return ("keys", 0)
    if cls.__module__ == "itertools" and cls.__name__ in _KEEPING_ITERATORS or issubclass(cls, _KEEPING):
        return _NOTHING
    if issubclass(cls, (enum.Enum, bytes, bytearray, int, float, str)) or _is_pure(cls):
        return _ALL
    return _WHOLE


def _of_function(f: types.FunctionType, name: str) -> Look:
    file = f.__code__.co_filename
    if file.startswith("<"):  # what dataclass, namedtuple and the like have written
        return _NOTHING
    if name in ("update", "subtract", "__init__") and f is getattr(Counter, name):
        return ("keys", 1)
    if home_of(file) == "the standard library" or f.__module__ == "collections":
        if f.__qualname__.startswith(("ChainMap.", "UserDict.", "Mapping.", "MutableMapping.", "OrderedDict.")):
            return ("pairs", 1) if name in _BY_PAIRS else ("key", 1) if name in _BY_KEY else _WHOLE
        return _ALL if _is_pure(f) else _WHOLE
    return _WHOLE


def _is_pure(f: Any) -> bool:
    return str(unasked(f, "__module__") or "").partition(".")[0] in _PURE


# -- what is taken apart, and put together with other values


def _parts(
    look: Look, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], Callable[[list[Any]], tuple[tuple[Any, ...], dict[str, Any]]]]:
    """The values that a function looks at, and its arguments with others in their place.

    - "nothing": none of them.
    - "whole": arguments that are one of several themselves.
    - "all": everything, the content of lists, tuples and dicts as well.
    - "key": the argument at a position.
    - "keys": the items of the argument at a position.
    - "pairs": the first of each pair that the argument at a position holds.
    """
    how, position = look
    if position < 0:
        position += len(args)
    there = 0 <= position < len(args)
    if how == "all":
        return [list(args[position:]), kwargs], lambda given: ((*args[:position], *given[0]), given[1])
    if how == "key" and there:
        return [args[position]], lambda given: (_with(args, position, given[0]), kwargs)
    if how in ("keys", "pairs") and there and _is_iterable(args[position]):
        items = list(args[position])
        args = _with(args, position, items)
        if how == "keys":
            return items, lambda given: (_with(args, position, given), kwargs)
        if all(is_a(item, (list, tuple)) and len(item) == 2 for item in items):
            values = [item[1] for item in items]
            keys = [item[0] for item in items]
            return keys, lambda given: (_with(args, position, list(zip(given, values))), kwargs)
    if how == "nothing":
        return [], lambda given: (args, kwargs)
    names = [name for name, value in kwargs.items() if is_a(value, Choice)]
    places = [index for index, value in enumerate(args) if is_a(value, Choice)]

    def whole(given: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        changed = list(args)
        for index, value in zip(places, given):
            changed[index] = value
        return tuple(changed), {**kwargs, **dict(zip(names, given[len(places):]))}

    return [args[index] for index in places] + [kwargs[name] for name in names], whole


def _with(args: tuple[Any, ...], position: int, value: Any) -> tuple[Any, ...]:
    return (*args[:position], value, *args[position + 1:])


def _is_iterable(value: Any) -> bool:
    return is_a(value, Iterable) and not is_a(value, (Mapping, Choice, str))


__all__ = ["foreign", "hashed", "per_option", "refusal"]
