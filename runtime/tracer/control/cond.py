"""Tracing ``cond`` and ``switch``: every path into its own Block, then one join."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.tracer.control import existence, settled_lists, unused
from runtime.tracer.control.branches import (
    Names,
    Path,
    PathEnds,
    Reachable,
    all_names,
    include_new,
    is_alone,
    trace_path,
)
from runtime.tracer.control.join import NOWHERE, Join, outside
from runtime.tracer.control.joined_orders import JoinOrders
from runtime.tracer.control.merged import Merged, is_new
from runtime.tracer.control.older import Identities, older
from runtime.tracer.numbers import known_sizes, selected, staging
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.held import RowField
from runtime.tracer.python_state.journal import Place
from runtime.tracer.python_state.notes import noted
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values import containers, structure, tables


def truth(session: Session, value: Any) -> Any:
    """``bool(value)`` as a staged bool: PyTorch's rules for tensors, Python's for numbers and strings."""
    if is_a(value, torch.Tensor):
        fake = session.fake(value)
        if fake.dim() > 0 and all(type(size) is int for size in fake.shape) and fake.numel() != 1:
            raise RuntimeError(
                f"Boolean value of Tensor with {'no values' if fake.numel() == 0 else 'more than one value'} "
                "is ambiguous"
            )
        return session.from_tensor("truth", value, kind="bool")
    if is_a(value, Staged) and value.kind != "bool":
        return session.scalar("bool", value)
    return value


def cond(session: Session, pred: Staged, if_true: Callable[[], Any], if_false: Callable[[], Any], names: Names) -> Any:
    """Stage ``if pred``: runs both paths, leaves names, Python state and memory joined; returns the joined result."""
    try:
        return _stage(session, "cond", pred, (if_true, if_false), names, truths=(True, False))
    finally:
        unused.forget(session)


def switch(session: Session, index: Staged, branches: Sequence[Callable[[], Any]], names: Names,
           of: structure.Choice | None = None) -> Any:  # fmt: skip
    """Stage a choice among ``branches`` by position; returns the joined result.

    ``of``: the choice whose options the branches work on, which is the result where each gives back its option.
    """
    try:
        return _stage(session, "switch", index, tuple(branches), names, of)
    finally:
        unused.forget(session)


def _stage(session: Session, name: str, pred: Staged, runs: tuple[Callable[[], Any], ...], names: Names,
           of: structure.Choice | None = None, truths: Sequence[bool] = ()) -> Any:  # fmt: skip
    """``truths``: what ``pred`` is on each path, where it is a bool."""
    location = session.location()
    tables.settle_objects(session)
    names = all_names(session, names)
    entry = session.storages.snapshot()
    entry_names = names.get()
    objects = Identities(session.objects.created)
    old = older(session, runs, entry_names, objects)
    paths: list[Path] = []
    reachable = Reachable(session)
    with noted(session, lambda: (*entry_names, *(value for path in paths for value in path.held()))):
        for number, run in enumerate(runs):
            prepare = functools.partial(_enter, session, pred, truths[number] if truths else number)
            paths.append(trace_path(session, name, names, run, prepare, reachable))
    del reachable  # which refers to what it saw: see ``is_alone``
    settled_lists.settle(session, paths, lambda place: not is_new(session, place, old, objects))
    only = [is_alone(session, position, entry_names, paths) for position in range(len(entry_names))]
    alone = [value if flag else None for value, flag in zip(entry_names, only)]
    include_new(entry, paths)
    alive = [path for path in paths if not path.ended]
    merged = Merged(session, paths, alone, old, objects, of)
    join = Join(session, paths, entry, merged.context(), of is not None)
    places: dict[Place, None] = {
        place: None for path in alive for place, value in path.places.items()
        if type(value) is not RowField and not names.holds(place) and merged.leaves(place)
    }
    for position in range(len(entry_names)):
        join.add([path.names[position] for path in paths], hint=names.names[position])
    for place in places:
        before = _before(place)
        made = is_new(session, place, old, objects) and sum(place in path.places for path in paths) == 1
        content = place.kind == "content"
        if made and (content and merged.made or not outside(session, entry, before)):
            before = NOWHERE
        ends = [path.contents if content else path.places for path in paths]
        join.add([end.get(place, before) for end in ends], place.name, mixed_lists=content)
        missing = [existence.is_missing(path, place.owner) for path in paths]
        if all(gone or path.ended for path, gone in zip(paths, missing)):
            missing = [False] * len(paths)
        one, several = is_a(join.items[-1][1], structure.Array), is_a(join.items[-1][1], structure.Options)
        if several and made or (one or several) and any(missing):
            del join.items[-1]
            ends = [{place: NOWHERE} if gone else end for end, gone in zip(ends, missing)]
            join.add([end.get(place, NOWHERE if made else before) for end in ends], place.name, mixed_lists=content)
    orders = JoinOrders(session, alive)
    join.items += merged.contents
    join.add([path.result for path in paths], of=of)
    values = join.emit(name, pred, location)
    if not alive:
        raise PathEnds()
    existence.note_join(session, join.op, paths, merged.fresh, merged.groups, join.known_containers())
    names.set(tuple(values[: len(entry_names)]))
    stores = zip((*places, *merged.places), values[len(entry_names) :])
    for place, value in sorted(stores, key=lambda one: one[0].kind != "content"):  # a store may ask what a dict holds
        if place.kind == "content":
            containers.require_few(session, place.owner, value, location)
        containers.store(session, merged.target(place), value)
    for place, held in merged.unreadable(paths):
        place.set(held)  # that a read of it is an error, if there is one
    made_by_paths = (id(place.owner) for path in alive for place in path.places if is_new(session, place, old, objects))
    orders.finish(made_by_paths, location)
    if not truths:
        selected.note_result(session, values[-1], pred, [None if path.ended else path.result for path in paths])
    return values[-1]


def _enter(session: Session, flag: Staged, truth: bool | int, scope: Scope) -> None:
    """A path begins on which a flag is so, or a number this."""
    if type(truth) is bool:
        known_sizes.hold_on_path(session, flag, truth)
    else:
        selected.hold(session, flag.var, frozenset((truth,)))


def _before(place: Place) -> Any:
    return containers.content(place.owner) if place.kind == "content" else place.get()


staging.register(_stage)

__all__ = ["cond", "switch", "truth"]
