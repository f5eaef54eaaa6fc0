"""``in`` and ``is`` inside a trace."""

from __future__ import annotations

import operator
from collections import deque
from typing import Any

import numpy
import torch

from dy2static.operators.calls import growing, numpy_arrays
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedRange
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import generator_uses, iterators
from dy2static.operators.iteration.traced_for import iterate
from dy2static.operators.provenance import keyed_keys, tensor_keys
from dy2static.operators.provenance.identity import identical_tensors, require_identity
from dy2static.operators.provenance.iterators_apart import for_option
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.provenance.provenance import namespace_owner, note_space_read, require_original
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import (
    NO_NAMES,
    Choice,
    Session,
    Staged,
    Undefined,
    any_staged,
    distribute,
    held_choice,
    spread,
)
from dy2static.operators.shared.stored import own_method, stored_items, users_method
from dy2static.operators.values import equality, sequence_operators
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.memory import cached_results
from runtime.tracer.python_state.shared_items import require_own
from runtime.tracer.recording import reads
from runtime.tracer.recording.interceptor import History
from runtime.tracer.values import array, containers, heaps, identities, same_object, unjournaled
from runtime.tracer.values.numpy_arrays import NumpyArray
from runtime.tracer.values.open_generators import require_told_apart

_OF_THE_TRACE = (torch.Tensor, Staged, StagedRange, NumpyArray)
"""What has a ``__contains__`` in Python that is not a user's."""
_HASHING = (dict, set, frozenset)
_CONTAINERS = (list, tuple, set, frozenset, dict, deque, range)
_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()))
_ALL_VIEWS: tuple[Any, ...] = (*_VIEWS, type({}.items()))


def contains(session: Session, container: Any, value: Any, *, own: bool = False) -> Any:
    """``value in container``, a plain or staged bool; ``own``: in what the container itself holds, which a user's
    ``__contains__`` asks ``super()`` for."""
    if is_a(container, Choice):
        return distribute(session, container, lambda option: contains(session, option, value, own=own), itself=True)
    method = None if own or is_a(container, _OF_THE_TRACE) else users_method(container, "__contains__")
    if method is None:
        container = containers.opened(container)
        if is_a(container, Choice):
            return distribute(session, container, lambda option: contains(session, option, value, own=own))
    value = containers.opened(value)
    if is_a(value, Choice):
        return distribute(session, value, lambda option: contains(
            session, for_option(session, container), option, own=own))
    if is_a(container, _HASHING) and held_choice(value) is not None:
        return spread(session, value, lambda given: contains(session, container, given, own=own))
    if method is not None:
        unjournaled.require_own(session, container)
        return truth_of(session, call(method, container, value))
    iterators.require_own(session, container)
    if is_a(container, (dict, set)) and type(value) is tuple:
        keyed_keys.become(session, container, value)
    value = own_key(session, container, value)
    if is_a(container, StagedRange):
        return _in_range(session, container, value)
    if is_a(container, torch.Tensor):
        if is_a(value, (int, float, complex, Staged, torch.Tensor)):
            element = session.sizes.symbolic(value) if is_a(value, Staged) else value
            return session.from_tensor("truth", theirs(operator.eq, element, container).any(), kind="bool")
        return value in container
    if is_a(container, NumpyArray):
        return numpy_arrays.number(session, call(numpy.any, call(operator.eq, container, value)))
    if growing.is_growing(container):
        found = sequence_operators.contained(session, array.copy(container), value)
        if found is sequence_operators.NOT_DONE:
            raise growing.refusal(session, "'in'")
        return found
    items = stored_items(container) if is_a(container, (list, tuple, deque)) else container
    if is_a(container, (list, tuple, deque)) and (
            _holds_grown(value, items) or user_methods.holds_grown(session, value, container)
            or any(user_methods.says_equal(one) for one in (value, *items)
                   if type(one) not in _PLAIN_ITEMS)
            or session.containers.has_contents
            and any(is_a(item, set) and equality.is_open(item) for item in items)):
        return equality.any_equal(session, items, value)
    if is_a(value, Staged) and is_a(container, _VIEWS):
        return _any_equal(session, list(container), value)
    if is_a(container, _CONTAINERS) and _compares(value, items):
        return _any_equal(session, items, value)
    if is_a(container, Staged) and container.kind == "str" or (
            is_a(value, Staged) and is_a(container, str)):  # fmt: skip
        return session.scalar("str.contains", container, value)
    if type(container) is dict and namespace_owner(session, container) is not None:
        note_space_read(session, container, value)
    if not own and not hasattr(type(container), "__contains__") and not is_a(container, torch.nn.Module):
        if generator_uses.gives_items(session, container):
            return _is_given(session, container, value)
    note_answers(session, container)
    asked_methods.require_items(session, "'in'", [container], is_converted=False)
    if is_a(container, _ALL_VIEWS):
        asked_methods.require_hashed(session, "'in'", (value, *container))
        identities.require_known(session, [value], container)
    return own_method(type(container), "__contains__")(container, value) if own else value in container


def _is_given(session: Session, container: Any, value: Any) -> Any:
    """Whether a value is among the items that a user's methods give; none is asked for once it was found."""
    found: Any = False
    for item in iterate(session, container):
        same = equality.any_equal(session, [item], value)
        found = same if found is False or same is True else session.scalar("or_", found, same)
        if found is True:
            break
    return found


_PLAIN_ITEMS = frozenset((int, float, str, bool, type(None), torch.Tensor))


_COMPARED = (torch.Tensor, StagedRange, NumpyArray)
"""What is compared when the Program runs."""


def _compares(value: Any, container: Any) -> bool:
    """Whether comparing with the items has to be staged."""
    if is_a(value, Staged):
        return True
    return is_a(container, (list, tuple, deque)) and (
        is_a(value, _COMPARED) or any_staged(container) or any(is_a(item, _COMPARED) for item in container))


def _holds_grown(value: Any, container: Any) -> bool:
    if equality.may_be_sequence(value) or any(map(equality.may_be_sequence, container)):
        return True
    return equality.kind_of(value) is not None and (equality.is_open(value) or any(map(equality.is_open, container)))


def _any_equal(session: Session, container: Any, value: Any) -> Any:
    flag: Any = False
    items = list(container)
    number: Any = value
    if is_a(container, range) and is_a(value, Staged) and value.kind == "str":
        return False
    if is_a(container, range) and is_a(value, Staged) and container.step == 1 and value.kind != "float":
        return session.scalar("and_", number >= container.start, number < container.stop)
    for item in items:
        if item is value:
            same: Any = True
        elif is_a(item, Choice):
            same = distribute(session, item, lambda option: truth_of(session, option == value))
        elif _can_be_one(session, item, value):
            same = equality.equal_tensors(session, item, value)
        else:
            same = truth_of(session, item == value)
        if same is True:
            return True if flag is False else session.scalar("or_", flag, True)
        if is_a(same, Staged):
            flag = same if flag is False else session.scalar("or_", flag, same)
    return flag


def _can_be_one(session: Session, item: Any, value: Any) -> bool:
    """Whether two tensors are one object on some paths, which Python asks before it compares them.

    Of those with several elements it is always asked: what their elements are has no truth.
    """
    if not is_a(item, torch.Tensor) or not is_a(value, torch.Tensor):
        return False
    if item.dim() and value.dim() and not _is_single(session, item):
        return True
    return same_object.may_be_one(session, session.itself(item), session.itself(value)) != "other"


def _is_single(session: Session, tensor: torch.Tensor) -> bool:
    fake = session.fake(tensor)
    return all(type(size) is int for size in fake.shape) and fake.numel() == 1


def _in_range(session: Session, container: StagedRange, value: Any) -> Any:
    if is_a(value, torch.Tensor) and not _is_single(session, value):  # Python asks what each comparison gives
        return tracer_cond.cond(session, container.length(session) > 0,
                                lambda: truth_of(session, theirs(operator.eq, value, container.start)), lambda: False,
                                NO_NAMES)
    if is_a(value, torch.Tensor):
        value = reads.number(session, value)
    if not is_a(value, (int, float, Staged)):
        return False
    index = value - container.start
    length = container.length(session)
    if type(container.step) is int and container.step == 1:
        if is_a(value, float) and not value.is_integer():
            return False
        flags = [index >= 0, index < length]
    else:
        flags = [index % container.step == 0, index // container.step >= 0, index // container.step < length]
    if is_a(value, Staged) and value.kind == "float":
        flags.append(session.scalar("mod", value, 1) == 0)
    result: Any = True
    for flag in flags:
        if flag is False:
            return False
        if is_a(flag, Staged):
            result = flag if result is True else session.scalar("and_", result, flag)
    return result


def identical(session: Session, a: Any, b: Any) -> Any:
    """``a is b``, a plain or staged bool."""
    if is_a(a, Choice):
        if a is b:
            return True
        return distribute(session, a, lambda option: identical(session, option, b), itself=True)
    if is_a(b, Choice):
        return identical(session, b, a)
    require_told_apart(a, b)
    same_row = heaps.identical(session, a, b)
    if same_row is not None:
        return same_row
    if type(a) is type(b):
        require_original(session, a, b)
        session.guards.pin(a)
        session.guards.pin(b)
    if is_a(a, Undefined) or is_a(b, Undefined) or a is b:
        return a is b
    if is_a(a, torch.Tensor) and is_a(b, torch.Tensor):
        return identical_tensors(session, a, b)
    if is_a(a, History) and is_a(b, History):
        a.refuse("the identity")
    if a is b:
        return True
    if type(a) is type(b):
        for one in (a, b):
            require_own(session, one, "compared by identity")
            cached_results.require_not_made_anew(session, one, "is compared by 'is'")
        if not is_a(a, Staged):
            return same_object.identical(session, a, b)
    if is_a(b, Staged) and not is_a(a, Staged):
        a, b = b, a
    if is_a(a, Staged):
        if a.kind == "bool" and (is_a(b, bool) or (is_a(b, Staged) and b.kind == "bool")):
            return session.scalar("eq", a, b)
        if is_a(b, (int, float, complex, str, Staged)) and not is_a(b, bool):
            raise session.error(
                f"'is' compares a Python {a.kind} that is only known while the Program runs", code="D2S264",
                hint="Use == to compare values.")
        return False
    return a is b


def own_key(session: Session, container: Any, key: Any) -> Any:
    """The object that stands for a key of a dict or set.

    Raises:
        TraceError: D2S264, D2S265.
    """
    if not is_a(container, (dict, set, frozenset)):
        return key
    asked_methods.require_hashed(
        session, f"a look at a {type(container).__name__}", (key, *asked_methods.keys_in(container)))
    key = tensor_keys.own(session, key)
    require_own_keys(session, container, key)
    return key


def require_own_keys(session: Session, container: Any, key: Any) -> None:
    """Refuse to look for a tensor of the trace among keys from outside: the caller's tensor is another object. So is
    what `id` gives for it.

    Raises:
        TraceError: D2S264, D2S265.
    """
    if is_a(container, (dict, set, frozenset)):
        identities.require_known(session, [key], container)
    if not is_a(key, torch.Tensor) or not is_a(container, (dict, set, frozenset)):
        return
    require_identity(session, key)
    if torch_internals.is_fake(key) and any(
        is_a(one, torch.Tensor) and not torch_internals.is_fake(one) for one in container
    ):
        raise session.error(
            f"a tensor is looked up in a {type(container).__name__} from outside the function, whose keys are tensors",
            hint="Look it up outside and pass the result in, or use names as keys.", code="D2S265")
