"""``range enumerate zip map filter reversed sorted iter next list tuple set frozenset dict``, ``sum any all``."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch

from dy2static.operators.builtins import sequences_in_python
from dy2static.operators.calls import functions, growing
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import (
    Listed,
    StagedEnumerate,
    StagedIterator,
    StagedMap,
    StagedRange,
    StagedReversed,
    StagedSequence,
    StagedZip,
    spelled,
    staged_sequence,
    stored_sequence,
)
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import generator_uses, iterators, length_hint
from dy2static.operators.iteration.generator_uses import Asks
from dy2static.operators.iteration.iterators_in_python import Count, Items
from dy2static.operators.iteration.one_of_several import items_chosen, settled
from dy2static.operators.iteration.staged_sort import in_order, in_users_order
from dy2static.operators.iteration.traced_for import ByPlace, Counting, as_list, by_place, fold, iterate, next_item
from dy2static.operators.provenance import chosen
from dy2static.operators.provenance.iterators_apart import taken_by_option
from dy2static.operators.shared.staging import (
    NO_NAMES,
    Choice,
    Session,
    Staged,
    any_staged,
    distribute,
    python_method,
)
from dy2static.operators.values.sequence_operators import decides, require_sortable
from runtime.kinds import is_a
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.theirs import acts_for_user, theirs
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.numbers.scalars import StagedStr
from runtime.tracer.recording import reads
from runtime.tracer.values import array
from runtime.tracer.values.containers import is_container, opened

_SORTED: Any = sequences_in_python.sorted_by


def _range(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bounds = [_bound(session, arg) for arg in args]
    if not any_staged(bounds):
        return range(*bounds, **kwargs)
    start, stop, step = (bounds[0], *bounds[1:], 1)[:3] if len(bounds) > 1 else (0, bounds[0], 1)
    if is_a(step, Staged):
        session.emit("assert", [session.operand(step != 0)], attrs={
            "exception": "ValueError", "message": "range() arg 3 must not be zero"})
    elif step == 0:
        raise ValueError("range() arg 3 must not be zero")
    return StagedRange(session, start, stop, step)


def _bound(session: Session, value: Any) -> Any:
    """A bound of a range as an int: ``__index__`` of tensors and bools."""
    if is_a(value, torch.Tensor):
        return reads.index(session, value)
    if is_a(value, Staged):
        if value.kind not in ("int", "bool"):
            raise TypeError(f"'{value.kind}' object cannot be interpreted as an integer")
        return session.scalar("int", value) if value.kind == "bool" else value
    return user_methods.as_number(session, value, "__index__")


def _enumerate(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    sequence = staged_sequence(session, args[0]) if args else None
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    if not is_a(start, (int, Staged, Choice)):
        start = call(operator.index, start)
    _require_iterables(args[:1])
    if is_a(start, Staged) and start.kind not in ("int", "bool"):
        raise TypeError(f"'{start.kind}' object cannot be interpreted as an integer")
    if sequence is not None:
        return StagedEnumerate(sequence, start)
    if args and generator_uses.is_alone(session, args[0]):
        return generator_uses.enumerated(session, args[0], start)
    if is_a(start, Staged):
        first: Any = start
        return ((first + index, value) for index, value in enumerate(iterate(session, args[0])))
    return enumerate(*_iterables(session, args[:1]), *args[1:], **kwargs)


def _zip(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    staged = [staged_sequence(session, arg) for arg in args]
    if any(sequence is not None for sequence in staged):
        return StagedZip([_as_sequence(session, arg, found) for arg, found in zip(args, staged)],
                         bool(kwargs.get("strict", False)))
    return zip(*_iterables(session, args), **kwargs)


def _as_sequence(session: Session, value: Any, found: StagedSequence | None) -> StagedSequence:
    if found is not None:
        return found
    if is_a(value, (list, tuple, range, str, torch.Tensor, torch.nn.ModuleList)):
        return Listed(value)
    if is_a(value, itertools.count):
        return Counting(*(*contents.parts(value), 1)[:2])
    raise session.error(
        f"a {type(value).__name__} is zipped with a sequence whose length is only known while the Program runs",
        hint="Make it a list first.", code="D2S261")


@acts_for_user
def _require_iterables(values: Sequence[Any]) -> None:
    """Raise what Python raises for what has no items, where something is made that takes them later."""
    for value in values:
        without = is_a(value, torch.Tensor) and value.dim() == 0
        if without or not (hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")):
            iter(value)
        elif is_a(value, Staged) and value.kind != "str":
            iter(value)


def _map(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) < 2:
        return map(*args, **kwargs)
    function, *iterables = args
    _require_iterables(iterables)
    staged = [staged_sequence(session, one) for one in iterables]
    if any(sequence is not None for sequence in staged):
        inner = StagedZip([_as_sequence(session, one, found) for one, found in zip(iterables, staged)], False)
        return StagedMap(_callback(function), inner)
    shared = sum(generator_uses.is_shared(session, one) for one in reversed(iterables))  # asks all of them
    if shared or not (callable(function) or is_a(function, Choice)):
        return map(_callback(function), *_iterables(session, args[1:]))
    if len(args) == 2:
        return generator_uses.mapped(session, _callback(function), args[1])
    together = zip(*_iterables(session, args[1:]))
    return generator_uses.mapped(session, lambda items: _callback(function)(*items), together)


def _callback(function: Any) -> Any:
    return functools.partial(call, function) if callable(function) or is_a(function, Choice) else function


def _filter(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _require_iterables(args[1:])
    if generator_uses.is_shared(session, args[1]):
        return filter(_callback(args[0]), iterate(session, args[1]))
    return generator_uses.filtered(session, (lambda item: item) if args[0] is None else _callback(args[0]), args[1])


def _reversed(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if is_a(args[0], torch.Tensor):  # a copy: later writes do not show in it
        return args[0].flip(0) if session.fake(args[0]).dim() else args[0]
    is_pythons = is_a(args[0], StagedStr) or python_method(args[0], "__reversed__") is None
    sequence = stored_sequence(session, args[0]) if is_pythons else None
    if sequence is not None:
        return StagedReversed(session, sequence)
    method = python_method(args[0], "__reversed__")
    if method is not None:
        return call(method, args[0])
    place = python_method(args[0], "__getitem__")
    own = getattr(type(args[0]), "__reversed__", None)  # a list's reads the items without asking a subclass
    if place is not None and own is None and not is_a(args[0], torch.nn.Module):
        if not hasattr(type(args[0]), "__len__"):
            reversed(args[0])  # which says what it does not take
        return ByPlace(session, args[0], place, range(call(len, args[0]) - 1, -1, -1))
    return reversed(args[0])


def _sorted(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1 or set(kwargs) - {"key", "reverse"} or is_a(kwargs.get("reverse"), (Staged, torch.Tensor)):
        return sorted(*args, **kwargs)
    given = spelled(generator_uses.listed(session, args[0], Asks.ITSELF))
    if is_a(given, StagedSequence):
        given = as_list(session, given)
    if is_a(given, Choice) and given is not args[0]:
        return call(sorted, given, **kwargs)
    if growing.is_growing(given):
        if kwargs.get("key") is None:
            require_sortable(session, given)
        by = given, kwargs.get("key"), kwargs.get("reverse", False)
        return functions.call_function(session, _SORTED, by, {})
    items = list(iterate(session, given))
    keys = [_callback(kwargs["key"])(item) for item in items] if kwargs.get("key") is not None else items
    pairs = list(zip(keys, items))
    if len(keys) <= _FEW and any(map(user_methods.orders, keys)):
        return in_users_order(session, pairs, bool(kwargs.get("reverse", False)))
    if any(map(decides, keys)):
        return in_order(session, pairs, bool(kwargs.get("reverse", False)))
    return [item for _, item in sorted(pairs, key=lambda pair: pair[0], reverse=kwargs.get("reverse", False))]


_FEW = 32
"""More items than this with an order of the user's are sorted by Python: no comparison may depend on a tensor then."""


def _reduce(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function, iterable, *initial = args
    given = generator_uses.listed(session, iterable)
    if is_a(given, Choice) and given is not iterable:
        return call(functools.reduce, function, given, *initial)
    sequence = staged_sequence(session, given)
    if sequence is not None:
        return _reduced(session, _callback(function), sequence, initial)
    return functools.reduce(_callback(function), iterate(session, given), *initial)


def _reduced(session: Session, function: Any, sequence: StagedSequence, initial: list[Any]) -> Any:
    if initial:
        return fold(session, sequence, initial[0], function)

    def fail() -> None:
        raise TypeError("reduce() of empty iterable with no initial value")

    return tracer_cond.cond(session, sequence.length(session) == 0, fail,
                            lambda: fold(session, sequence, sequence.get(session, 0), function, 1), NO_NAMES)


def _iter(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1 and growing.is_growing(args[0]) and type(args[0]) in (list, tuple):
        return call(Items, *args)
    if len(args) == 1 and type(args[0]) in (Items, Count):
        return args[0]
    return iterate(session, args[0]) if len(args) == 1 else iter(_callback(args[0]), *args[1:])


def _next(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args and not kwargs and generator_uses.is_alone(session, args[0]):
        return generator_uses.first(session, *args)
    if args and is_a(args[0], StagedIterator):
        raise session.error(
            f"next() of a {args[0].python_name} whose length is only known while the Program runs", code="D2S261",
            hint="Take the items by index, or in a for loop.")
    if len(args) == 2 and not kwargs and type(args[0]) is Items:
        return call(args[0].otherwise, args[1])
    method = python_method(args[0], "__next__") if args else None
    if method is None:
        if args:
            iterators.require_known(session, args[0])
        return next(*args, **kwargs)
    if len(args) < 2:
        return call(method, args[0])
    try:
        return next_item(session, args[0], method)
    except StopIteration:
        return args[1]


def _container(kind: type) -> Any:
    def make(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        hinted = kind in (list, tuple)
        source = generator_uses.source_of(session, args[0]) if len(args) == 1 else None
        if source is not None:
            if hinted:
                length_hint.ask(session, args[0])
            items = generator_uses.collected(session, source)
            return items if kind is list else call(kind, opened(items), **kwargs)
        if kind is tuple and len(args) == 1 and type(args[0]) is tuple:
            return args[0]
        own = python_method(args[0], "__iter__") if args and growing.is_growing(args[0]) else None
        if own is not None:  # its class says what the items are
            return make(session, (call(own, args[0]), *args[1:]), kwargs)
        if kind in (list, tuple) and args and growing.is_growing(args[0]):
            return kind(array.copy(args[0]))
        sequence = staged_sequence(session, args[0]) if len(args) == 1 and kind in (list, tuple) else None
        if sequence is not None:
            items = as_list(session, sequence)
            return kind(items) if is_a(items, list) else call(kind, items)
        if args and kind is deque and is_a(spelled(args[0]), StagedSequence):
            args = (as_list(session, spelled(args[0])), *args[1:])
        if args and growing.is_growing(args[0]):
            if kind is deque:
                made = deque(array.copy(args[0]), *args[1:], **kwargs)
                return growing.shortened(session, made)
            raise growing.refusal(session, f"{kind.__name__}()")
        given = [*_iterables(session, args[:1], hinted), *args[1:]]
        if any_staged((*args[1:], *kwargs.values())):
            return chosen.foreign(session, kind, tuple(given), kwargs)
        if kind in (set, frozenset) and len(given) == 1 and not is_a(given[0], str):
            return chosen.hashed(session, list(given[0]), kind)
        return kind(*given, **kwargs)

    return make


def _iterables(session: Session, args: tuple[Any, ...], hinted: bool = False) -> list[Any]:
    """The arguments with users' ``__iter__``, or ``__getitem__``, converted. ``hinted``: see ``iterate``."""
    def taken(arg: Any) -> Any:
        if python_method(arg, "__iter__") is not None or by_place(arg) is not None:
            return iterate(session, arg, hinted=hinted)
        if hinted:
            length_hint.ask(session, arg)
        return arg

    return list(map(taken, args))


def _sum(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    sequence = staged_sequence(session, args[0]) if args else None
    if sequence is not None:
        start = args[1] if len(args) > 1 else kwargs.get("start", 0)
        return fold(session, sequence, start, lambda total, item: total + item)
    source = generator_uses.source_of(session, args[0]) if args else None
    if source is not None:
        start = args[1] if len(args) > 1 else kwargs.get("start", 0)
        return generator_uses.folded(session, source, start, lambda total, item: total + item)
    if args and is_a(args[0], (list, tuple)) and any(map(_adds_itself, (*args[0], *args[1:], *kwargs.values()))):
        start = args[1] if len(args) > 1 else kwargs.get("start", 0)
        return functools.reduce(functools.partial(_added, session), args[0], start)
    return sum(iterate(session, args[0]), *args[1:], **kwargs) if args else sum(*args, **kwargs)


def _added(session: Session, total: Any, item: Any) -> Any:
    found = user_methods.operated(session, total, "+", item)
    return total + item if found is user_methods.NOT_USERS else found


def _adds_itself(item: Any) -> bool:
    return any(user_methods.is_users(python_method(item, name)) for name in ("__add__", "__radd__"))


def _any_all(stop: bool) -> Any:
    def decide(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        source = generator_uses.source_of(session, args[0], whole=False) if len(args) == 1 else None
        if source is not None:
            return generator_uses.any_all(session, source, stop)
        (iterable,) = args
        sequence = staged_sequence(session, iterable)
        if sequence is not None:
            name = "or_" if stop else "and_"
            return fold(session, sequence, not stop,
                        lambda flag, item: session.scalar(name, flag, truth_of(session, item)))
        if hasattr(iterable, "__next__"):  # its items may have effects of their own
            return generator_uses.any_all(session, iterable, stop)
        result: Any = not stop
        join = "or_" if stop else "and_"
        for value in iterate(session, iterable):
            flag = truth_of(session, value)
            if not is_a(flag, Staged):
                if flag is stop:
                    return stop if not is_a(result, Staged) else session.scalar(join, result, stop)
            elif is_a(result, Staged):
                result = session.scalar(join, result, flag)
            else:
                result = flag
        return result

    return decide


def _per_option(handler: Any) -> Any:
    """The handler, once for every value an argument may be."""

    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args = tuple(items_chosen(session, arg) for arg in args)
        choice = next((arg for arg in args if is_a(arg, Choice)), None)
        if choice is None:
            return handler(session, args, kwargs)
        _require_one_way(session, choice, args)
        same = [arg is choice or _is_same(arg, choice) for arg in args]  # given twice it is one value
        return distribute(session, choice, lambda option: apply(
            session, tuple(option if one else taken_by_option(session, arg) for one, arg in zip(same, args)),
            kwargs))

    return apply


def _require_one_way(session: Session, choice: Choice, args: Sequence[Any]) -> None:
    """Refuse an iterator that stands in several arguments which may be one of several each: every combination of what
    they may be is traced, and would take items from it."""
    iterators = {id(one) for one in choice.options if hasattr(type(one), "__next__")}
    others = (arg for arg in args if is_a(arg, Choice) and arg is not choice and not _is_same(arg, choice))
    if iterators and any(id(one) in iterators for arg in others for one in arg.options):
        raise session.error(
            "an iterator is given twice, by two variables that may each be one of several", code="D2S266",
            hint="Give the same variable twice, or make a list of the items before.")


def _is_same(value: Any, choice: Choice) -> bool:
    """Whether a value is the same one of several as another is, whichever that is."""
    return is_a(value, Choice) and value.selector.var is choice.selector.var and (
        len(value.options) == len(choice.options) and all(map(operator.is_, value.options, choice.options)))


def _later(handler: Any) -> Any:
    """The handler of what takes its items later, from one list where it is given lists of several lengths."""
    per_option = _per_option(handler)

    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return per_option(session, tuple(settled(session, arg) for arg in args), kwargs)

    return apply


def _lazy(function: Any, handler: Any) -> Any:
    """The handler of what takes its items later: which container it then takes them from is asked then."""

    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:
            theirs(function, abs, (), **kwargs)  # Python says which it does not take
        # which function it is asked for each item
        per_option = _later(lambda session, iterables, kwargs: handler(session, (*args[:1], *iterables), kwargs))
        given = args[1] if len(args) == 2 else None
        if is_a(given, Choice) and all(is_a(one, tuple) or is_container(one) for one in given.options):
            return handler(session, args, kwargs)
        return per_option(session, args[1:], kwargs)

    return apply


HANDLERS: list[tuple[Any, Any]] = [
    (map, _lazy(map, _map)), (filter, _lazy(filter, _filter)), (enumerate, _later(_enumerate)), (zip, _later(_zip)),
    (reversed, _later(_reversed)), *((function, _per_option(handler)) for function, handler in (
        (range, _range), (sorted, _sorted), (functools.reduce, _reduce), (iter, _iter), (next, _next), (sum, _sum),
        (any, _any_all(True)), (all, _any_all(False)),
    )), *((kind, _per_option(_container(kind))) for kind in (list, tuple, set, frozenset, deque)),
]  # fmt: skip
