"""Subscripts inside a trace."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, cast

import numpy
import torch

from dy2static.operators.calls import boundary, growing, numpy_arrays, numpy_writes
from dy2static.operators.calls.call import call, traced
from dy2static.operators.calls.sequences import StagedIterator, StagedSequence, StagedSize
from dy2static.operators.calls.torch_values import to_torch
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import generator_uses
from dy2static.operators.provenance import keyed_keys, made_inside
from dy2static.operators.provenance.classes import note_asked
from dy2static.operators.provenance.environment import WatchedEnvironment
from dy2static.operators.provenance.iterators_apart import for_option
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.provenance.observed import done, observed
from dy2static.operators.provenance.provenance import (
    CONTAINERS,
    namespace_owner,
    note_content_write,
    note_item_read,
    note_space_read,
    note_space_write,
)
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.reachable import Code
from dy2static.operators.shared.staging import (
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
from dy2static.operators.shared.stored import MODULES, own_method, stored_items, users_method
from dy2static.operators.values import (
    number_keys,
    numpy_places,
    sequence_operators,
    tensor_index,
    texts,
    traced_compare,
)
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed, KeyedDict
from runtime.tracer.ambient.catching import require_uncaught_type
from runtime.tracer.ambient.objects import kind_of_items
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.memory import host_memory
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.held import Held, held_in
from runtime.tracer.recording import reads
from runtime.tracer.values import array, containers
from runtime.tracer.values.numpy_arrays import NumpyArray

_OF_THE_TRACE = (torch.Tensor, NumpyArray, StagedSequence, Staged)
"""What has methods in Python that are not a user's, or has them asked elsewhere."""


def _asked(obj: Any, method: str, own: bool) -> Any:
    """The method of a user's class that says what the operation does, if there is one and it is not what asks."""
    return None if own or is_a(obj, _OF_THE_TRACE) else users_method(obj, method)


def _opened(obj: Any, method: str, own: bool) -> Any:
    """``containers.opened``, but for an object whose class says itself what the operation does: it is given that."""
    found = containers.several(obj)
    return obj if found is None or _asked(obj, method, own) is not None else found


def read(session: Session, obj: Any, key: Any, *, own: bool = False) -> Any:
    """``obj[key]``; ``own``: what the container itself holds there, which a user's ``__getitem__`` asks ``super()``
    for."""
    row = held_in(obj) if session.containers.has_rows and type(obj) is dict else None
    if row is not None and _is_key(row, key):
        return row.heap.get(session, row.number, key)
    given = obj
    if is_a(obj, Keyed):
        key = keyed_keys.of_run(session, key)
    obj, key = _opened(obj, "__getitem__", own), containers.opened(key)
    adds = is_a(given, defaultdict) and keyed_keys.are_chosen(key)
    with keyed_keys.instead_of_many(session, given, key) if adds else contextlib.nullcontext():
        if is_a(obj, Choice):
            _require_anywhere(session, obj, key)
            with growing.checked(session, given, key):
                return distribute(session, obj, lambda option: read(session, option, key, own=own), itself=True)
        if is_a(key, Choice):
            keyed_keys.become(session, given, key)
            with growing.checked(session, given, key):
                return _by_choice(session, obj, key, own)
    if held_choice(key) is not None:
        return spread(session, key, lambda given: read(session, obj, given, own=own))
    if obj is os.environ:
        obj = WatchedEnvironment(session)
    method = _asked(obj, "__getitem__", own)
    if method is not None:
        with growing.checked(session, obj, key) if is_a(obj, KeyedDict) else contextlib.nullcontext():
            return call(method, obj, key)
    key = _bounds(session, key)
    if is_a(obj, (NumpyArray, numpy.ndarray)):
        key = numpy_places.settled(session, key)
        if is_a(obj, numpy.ndarray) and numpy_arrays.is_open_key(key):
            host_memory.note_copy(session, obj)
        part = numpy_places.read(session, obj, key)
        if part is not None:
            return part
    if type(obj) is NumpyArray and numpy_writes.is_view(session, obj, key):
        return NumpyArray(read(session, obj.tensor, key))
    if is_a(obj, NumpyArray) or is_a(obj, numpy.ndarray) and numpy_arrays.is_open_key(key):
        return numpy_arrays.item(session, obj, key)
    key = numpy_arrays.as_key(session, obj, key)
    if is_a(obj, torch.Tensor):
        key = _with_numbers(session, key)
        key = tensor_index.settled(session, obj, key)
        boundary.require_none(session, "the index of a tensor", [key])
        if tensor_index.is_staged(session, obj, key):
            with growing.checked(session, obj, key):
                return tensor_index.read(session, obj, key)
        with tensor_index.in_words_of_subscripts(session, obj, key):
            return obj[tensor_index.plain(session, key)]
    if is_a(obj, StagedSequence):
        return _of_staged(session, obj, key)
    if is_a(obj, Staged) and obj.kind != "str":
        theirs(operator.getitem, obj.python_type(), key)  # raises: they have no items
    if is_a(obj, Staged):
        growing.require_key("", key)
        return texts.item(session, obj, user_methods.as_number(session, key, "__index__"))
    if growing.is_growing(obj):
        return growing.read(session, obj, _as_int(session, obj, key))
    key = _as_int(session, obj, key)
    if is_a(key, Staged):
        with growing.checked(session, obj, key):
            return _by_staged_key(session, obj, key)
    if is_a(key, slice) and type(obj) in (list, tuple) and any_staged([key]):
        held = _holds_containers(obj)
        found = sequence_operators.part(session, obj, key) if held else _part(session, obj, key)
        if found is not sequence_operators.NOT_DONE:
            return found if type(obj) is list else traced(session, tuple, (found,), {})
    if any_staged([key]) and is_a(obj, deque):
        growing.require_key(deque(), key)  # it has no slices
    if is_a(obj, str) and is_a(key, slice) and any_staged([key]):
        return texts.item(session, obj, key)
    if any_staged([key]) and is_a(obj, (*CONTAINERS, tuple, str, *MODULES)):
        keyed_keys.become(session, obj, key)
        raise number_keys.refusal(session, "a slice or key of", obj)
    if type(obj) is dict and namespace_owner(session, obj) is not None:
        note_space_read(session, obj, key)
        return obj[key]
    note_asked(session, (key, obj) if is_a(obj, dict) and not is_plain(key) else ())
    key = traced_compare.own_key(session, obj, key)
    missing = python_method(obj, "__missing__") if is_a(obj, dict) else None  # a guard also where there is none
    if is_a(obj, dict) and hasattr(type(obj), "__missing__") and not dict.__contains__(obj, key):
        if missing is not None:
            return call(missing, obj, key)
        note_content_write(session, obj)
        if is_a(obj, defaultdict):
            boundary.require_none(session, "a default_factory", [obj.default_factory], code=Code())
    value = own_method(type(obj), "__getitem__")(obj, key) if own else obj[key]
    if is_a(obj, CONTAINERS):
        note_item_read(session, obj, key, value)
    return value


def _is_key(row: Held, key: Any) -> bool:
    return type(key) in (str, int, bool, float, type(None)) and key in row.heap.columns


def _holds_containers(value: Any) -> bool:
    """Whether one of the items can be changed, or an item of a tuple among them."""
    return any(is_a(item, CONTAINERS) or is_a(item, tuple) and _holds_containers(item) for item in value)


def _part(session: Session, obj: Any, where: slice) -> list[Any]:
    """``obj[where]``, how long it is only known while the Program runs: a list like those that grow in a loop."""
    for position, value in enumerate(obj):
        note_item_read(session, obj, position, value)
    return array.slice_(session, array.of_items(session, list(obj)), where) if obj else []


def _require_anywhere(session: Session, obj: Choice, key: Any) -> None:
    """Errors raised: KeyError if none of several dicts has the key: that is certain, so that a handler may catch it."""
    plain = type(key) in (str, int, float, bool, bytes, type(None))
    if plain and all(type(one) is dict and containers.several(one) is None and key not in one for one in obj.options):
        for option in obj.options:
            with contextlib.suppress(KeyError):  # for what such a read notes
                read(session, option, key)
        raise KeyError(key)


def _by_choice(session: Session, obj: Any, key: Choice, own: bool) -> Any:
    """An item at one of several keys. Lists and dicts among the items stay themselves, so that they can be changed."""
    asks = _asked(obj, "__getitem__", own) is not None or users_method(obj, "__missing__") is not None
    if is_a(obj, (dict, list, tuple)) and not asks and not growing.is_growing(obj):
        if is_a(obj, defaultdict) and not all(dict.__contains__(obj, option) for option in key.options):
            return distribute(session, key, lambda option: read(session, obj, option, own=own), itself=True)
        try:
            get = own_method(type(obj), "__getitem__")
            items = tuple(get(obj, option) for option in key.options)
        except (LookupError, TypeError):
            items = ()
        if any(is_a(value, CONTAINERS) for value in items):
            return Choice(key.selector, items)
    return distribute(session, key, lambda option: read(session, obj, option, own=own))


def _as_int(session: Session, obj: Any, key: Any) -> Any:
    """A tensor as index into a Python sequence counts by its value, as ``__index__`` does eagerly."""
    if is_a(key, torch.Tensor) and is_a(obj, (list, tuple, str, range, deque, *MODULES)):
        return reads.index(session, key)
    if is_a(obj, (list, tuple, str, range, deque)):
        return user_methods.as_number(session, key, "__index__")
    return key


def _with_numbers(session: Session, key: Any) -> Any:
    """The index of a tensor with the numbers that objects of users' classes stand for."""
    if type(key) is tuple:
        parts = [user_methods.as_number(session, part, "__index__") for part in key]
        return key if all(map(operator.is_, parts, key)) else tuple(parts)
    return user_methods.as_number(session, key, "__index__")


def _bounds(session: Session, key: Any) -> Any:
    """The key with the tensors that bound its slices as ints: ``x[:n]`` means ``x[: n.__index__()]``."""
    if is_a(key, tuple):
        return tuple(_bounds(session, part) for part in key) if any(is_a(part, slice) for part in key) else key
    if not is_a(key, slice):
        return key
    parts = key.start, key.stop, key.step
    if any(is_a(part, Staged) and part.kind not in ("int", "bool") for part in parts):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    numbers = [reads.index(session, part) if is_a(part, torch.Tensor) else
               user_methods.as_number(session, part, "__index__") for part in parts]  # fmt: skip
    return key if all(map(operator.is_, numbers, parts)) else slice(*numbers)


def _by_staged_key(session: Session, obj: Any, key: Staged) -> Any:
    if is_a(obj, (list, tuple, str, range, deque, *MODULES)):
        if key.kind not in ("int", "bool"):
            own_method(type(obj), "__getitem__")(obj, key.python_type())  # which Python refuses, in these words
        items = list(stored_items(obj))
        if is_a(obj, CONTAINERS):
            for position, value in enumerate(items):
                note_item_read(session, obj, position, value)
        return _choose(session, items, key, type(obj).__name__, is_a(obj, MODULES))
    if is_a(obj, dict):
        return number_keys.item(session, obj, key, functools.partial(read, own=True))
    return obj[key]


def _choose(session: Session, items: list[Any], key: Staged, kind: str, modules: bool = False) -> Any:
    """One of the items, at a position known when the Program runs; ``modules``: of a list of modules."""
    if not items:
        raise IndexError(f"{'string' if kind == 'str' else kind} index out of range")

    def path(value: Any) -> Callable[[], Any]:
        return lambda: value

    index = key if key.kind == "int" else session.scalar("int", key)
    if any(is_a(value, CONTAINERS) for value in items):  # they stay themselves, so that they can be changed
        place: Any = index
        position = session.scalar("select", place < 0, place + len(items), place)
        inside = session.scalar("and_", position >= 0, position < len(items))
        session.emit("assert", [session.operand(inside)], attrs={
            "exception": "IndexError", "message": f"{kind} index out of range"})
        return Choice(position, tuple(items))
    if kind in ("tuple", "str") or modules:
        name, anything = "string" if kind == "str" else kind, cast(Any, index)
        inside = session.scalar("and_", anything >= -len(items), anything < len(items))
        session.emit("assert", [
            session.operand(inside), *(["index ", session.operand(index), " is out of range"] if modules else [])
        ], attrs={"exception": "IndexError", "message": None if modules else f"{name} index out of range"})
    require_uncaught_type(session, IndexError)
    return tracer_cond.switch(session, index, [path(value) for value in items], NO_NAMES)


def _of_staged(session: Session, obj: StagedSequence, key: Any) -> Any:
    """An item of ``range(n)``: counted from the end if negative, IndexError if there is none."""
    if is_a(obj, StagedIterator):
        raise TypeError(f"'{obj.python_name}' object is not subscriptable")
    if is_a(key, slice):
        raise session.error(f"a slice of a {obj.python_name} whose length is only known while the Program runs",
                            hint="Compute its bounds and make a new range.", code="D2S265")
    growing.require_key(range(0), key)
    length = obj.length(session)
    if is_a(key, Staged):
        key = cast(Any, key)
        index = session.scalar("select", key < 0, key + length, key)
        inside = session.scalar("and_", index >= 0, index < length)
    else:
        index = key if key >= 0 else length + key
        inside = index < length if key >= 0 else index >= 0
    if is_a(inside, Staged):
        session.emit("assert", [session.operand(inside)], attrs={
            "exception": "IndexError", "message": "range object index out of range"})
    elif not inside:
        raise IndexError("range object index out of range")
    return obj.get(session, index)


def write(session: Session, obj: Any, key: Any, value: Any, *, own: bool = False) -> None:
    """``obj[key] = value``; ``own``: in the container itself, whatever a user's ``__setitem__`` says."""
    if is_a(obj, Keyed):
        key = keyed_keys.of_run(session, key)
    if is_a(obj, dict) and keyed_keys.are_chosen(key):
        keyed_keys.become(session, obj, key)
        with keyed_keys.instead_of_many(session, obj, key):
            _write(session, obj, key, value, own=own)
    else:
        _write(session, obj, key, value, own=own)


def _write(session: Session, obj: Any, key: Any, value: Any, *, own: bool) -> None:
    row = held_in(obj) if session.containers.has_rows and type(obj) is dict else None
    if row is not None and _is_key(row, key):
        row.heap.set(session, row.number, key, value)
        return
    obj = _opened(obj, "__setitem__", own)
    if is_a(obj, Choice):
        distribute(session, obj, lambda option: write(
            session, option, key, for_option(session, value) if is_a(key, slice) else value, own=own),
            itself=True)
        return
    if held_choice(key) is not None:
        spread(session, key, lambda given: write(session, obj, given, value, own=own))
        return
    if is_a(obj, Staged):
        theirs(operator.setitem, obj.python_type(), key, value)  # raises: they take no items
    if obj is os.environ:
        obj = WatchedEnvironment(session)
    method = _asked(obj, "__setitem__", own)
    if method is not None:
        _require_module(session, obj)
        call(method, obj, key, value)
        return
    key = _bounds(session, key)
    if is_a(obj, (NumpyArray, numpy.ndarray)):
        key = numpy_places.settled(session, key)
        if any_staged([key]) and numpy_places.is_basic(key):
            numpy_places.require_inside(session, obj, key)
    if is_a(obj, numpy.ndarray) and (
            numpy_arrays.is_open_key(key) or is_a(value, (Staged, NumpyArray, Choice))):
        host_memory.require_of_program(session, obj)
    if is_a(obj, numpy.ndarray) and is_a(value, (Staged, NumpyArray, Choice)):
        raise session.error("what only a run knows is written to a NumPy array that the function did not make",
                            code="D2S213", hint="Write a tensor, or give the array back and write it outside.")
    if is_a(obj, numpy.ndarray) and numpy_arrays.is_open_key(key):
        raise session.error("an item of a NumPy array is written at a place that is only known while the Program runs",
                            code="D2S213", hint="Use np.where, or write a tensor.")
    if is_a(obj, NumpyArray) and is_a(value, Choice):
        distribute(session, value, lambda option: write(session, obj, key, option))
        return
    if is_a(obj, NumpyArray):
        found = numpy_writes.of_tensors(session, obj, key, value)
        write(session, *(found or (obj.tensor.data, ..., numpy_writes.by_numpy(session, obj, key, value))))
        return
    if is_a(obj, torch.Tensor):
        key = _with_numbers(session, key)
        key, value = numpy_arrays.as_key(session, obj, key), numpy_arrays.as_number_only(session, value)
        if is_a(value, Choice):
            distribute(session, value, lambda option: write(session, obj, key, option))
            return
        key = tensor_index.settled(session, obj, key)
        boundary.require_none(session, "the index of a tensor", [key])
        if value is None or is_a(value, (str, bytes, dict, set)):
            theirs(operator.setitem, obj, ..., value)  # raises before it looks for the place
        if tensor_index.is_staged(session, obj, key):
            with growing.checked(session, obj, key):
                tensor_index.write(session, obj, key, to_torch(session, value))
        elif tensor_index.is_expanded(session, obj, key, value):
            tensor_index.write_expanded(session, obj, key, value)
        else:
            with tensor_index.in_words_of_subscripts(session, obj, key):
                obj[tensor_index.plain(session, key)] = _stored(session, value)
        return
    key = _as_int(session, obj, key)
    if growing.is_growing(obj):
        growing.write(session, obj, key, value)
        return
    if is_a(key, slice) and is_a(obj, list):
        value = generator_uses.listed(session, value, generator_uses.Asks.ITERATOR)
    if is_a(key, slice) and is_a(obj, list) and (type(value) is not type(obj) or key.step not in (None, 1)):
        value = containers.opened(value)
        if is_a(value, Choice):  # else what stands for its items would be put into the list, and stand alone
            distribute(session, value, lambda option: write(session, obj, key, option, own=own))
            return
    if is_a(key, Staged) and is_a(obj, (list, deque)):
        with growing.checked(session, obj, key):
            _store_at(session, obj, key, value)
        return
    if is_a(key, slice) and any_staged([key]) and sequence_operators.set_part(session, obj, key, value):
        return
    if any_staged([key]) and is_a(obj, (*CONTAINERS, tuple)):
        if is_a(obj, (tuple, deque)):
            growing.require_key(type(obj)(), key, operator.setitem, ())  # a tuple has no place to write
        keyed_keys.become(session, obj, key)
        raise number_keys.refusal(session, "a slice or key of", obj)
    _require_module(session, obj)
    key = traced_compare.own_key(session, obj, key)
    if obj is sys.modules:
        done(session, "sys.modules is changed")
    if not is_a(obj, (*CONTAINERS, OrderedDict)) or namespace_owner(session, obj) is not None:
        note_space_write(session, obj, key)
        with observed(session, obj):
            obj[key] = value
        return
    note_content_write(session, obj)
    if is_a(key, slice):
        asked_methods.require_items(session, "a store to a slice", [value], is_converted=False)
        note_answers(session, value)
    if own:
        own_method(type(obj), "__setitem__")(obj, key, value)
    else:
        operator.setitem(obj, key, value)  # type: ignore[arg-type]  # a set raises


def _require_module(session: Session, obj: Any) -> None:
    if is_a(obj, torch.nn.Module):
        made_inside.require_made_inside(session, obj)


def _stored(session: Session, value: Any) -> Any:
    return to_torch(session, value) if is_a(value, (Staged, StagedSize)) or any_staged([value]) else value


def _store_at(session: Session, obj: Any, key: Staged, value: Any) -> None:
    """``list[n] = value`` for a staged n: the list is changed on one of as many paths as it has items."""
    kind = kind_of_items(type(obj))
    if not kind.__len__(obj):
        raise IndexError("list assignment index out of range")
    note_content_write(session, obj)

    def path(position: int) -> Callable[[], None]:
        def run() -> None:
            note_content_write(session, obj)
            kind.__setitem__(obj, position, value)

        return run

    require_uncaught_type(session, IndexError)
    tracer_cond.switch(session, key, [path(position) for position in range(kind.__len__(obj))], NO_NAMES)


def delete(session: Session, obj: Any, key: Any, *, own: bool = False) -> None:
    """``del obj[key]``; ``own``: of the container itself, whatever a user's ``__delitem__`` says."""
    if is_a(obj, Keyed):
        key = keyed_keys.of_run(session, key)
    whole, obj = obj, _opened(obj, "__delitem__", own)
    if is_a(obj, Choice):
        with growing.checked(session, whole, key):
            distribute(session, obj, lambda option: delete(session, option, key, own=own), itself=True)
        return
    if held_choice(key) is not None:
        with growing.checked(session, whole, key):
            spread(session, key, lambda given: delete(session, obj, given, own=own))
        return
    if is_a(obj, Staged):
        theirs(operator.delitem, obj.python_type(), key)  # raises: they have no items
    method = _asked(obj, "__delitem__", own)
    if method is not None:
        _require_module(session, obj)
        with growing.checked(session, obj, key) if is_a(obj, KeyedDict) else contextlib.nullcontext():
            call(method, obj, key)
        return
    if growing.is_growing(obj):
        growing.delete(session, obj, _as_int(session, obj, _bounds(session, key)))
        return
    key = _as_int(session, obj, _bounds(session, key))
    if any_staged([key]):
        if is_a(obj, (list, tuple, deque)):
            growing.require_key(type(obj)(), key, operator.delitem)  # a tuple has nothing to delete
        if sequence_operators.delete(session, obj, key):
            return
        keyed_keys.become(session, obj, key)
        raise number_keys.refusal(session, "an item deleted from", obj)
    _require_module(session, obj)
    key = traced_compare.own_key(session, obj, key)
    if not is_a(obj, CONTAINERS) or namespace_owner(session, obj) is not None:
        with observed(session, obj):
            del obj[key]
        return
    note_content_write(session, obj)
    if own:
        own_method(type(obj), "__delitem__")(obj, key)
    else:
        operator.delitem(obj, key)  # type: ignore[arg-type]  # a set raises


