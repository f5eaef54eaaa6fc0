"""A call's arguments taken apart into tensors and structure, put together again around stand-ins, and found again.

flatten({"x": t, "opts": {"mask": m, "n": 3}})  ->  tensors [t, m], labels ["x", "opts['mask']"], a template
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from runtime.ir.template import Again, KeyPath, TensorSlot
from runtime.kinds import is_a
from runtime.tracer.values import structure


@dataclass(frozen=True)
class Open:
    """Where a plain value stood that is an input of the Program: its position in ``Arguments.opened``, and its kind."""

    index: int
    kind: Any


@dataclass(frozen=True, eq=False)
class Container:
    """A list, tuple, dict, set, named tuple or dataclass among the arguments.

    ``items`` are templates (those of a set: what it holds); ``keys`` their keys or field names, None for lists, tuples
    and sets; ``original`` is the caller's.
    """

    kind: type
    keys: tuple[Any, ...] | None
    items: tuple[Any, ...]
    original: Any
    open_length: bool = False
    """Whether its only item stands for any number of them: an ``Open`` of a list of tensors."""


@dataclass
class Arguments:
    """A call's arguments taken apart: its tensors, and everything else as a template with ``TensorSlot``s.

    ``labels`` are what the user would write for each tensor: ``x``, ``batch['ids'][0]``.
    """

    tensors: list[torch.Tensor]
    labels: list[str]
    template: Mapping[str, Any]
    originals: dict[str, Any] = field(default_factory=dict)
    only_tensors: tuple[str, ...] | None = None
    """The names of the arguments, if each is a tensor of its own."""
    containers: list[Any] = field(default_factory=list)
    """The caller's containers that are taken apart, by number."""
    opened: dict[KeyPath, Any] = field(default_factory=dict)
    """Plain values and generators that are inputs of the Program, by their paths; ``Open`` stands in their places."""

    def rebuild(
        self, tensors: Sequence[Any], whole: Set[int] = frozenset(), opened: Sequence[Any] | None = None
    ) -> tuple[dict[str, Any], list[tuple[Any, KeyPath | None]]]:
        """The arguments with other tensors in place, and every container built anew with its path.

        ``whole``: numbers of containers that stay what they are, with what is inside; their paths are None.
        ``opened``: what to put in the places of ``Arguments.opened``, if not these values.

        Raises:
            HoldsItself: What holds itself cannot be made before its items: a tuple, or a class of one or of a dict.
        """
        others = list(self.opened.values()) if opened is None else opened
        built: list[tuple[Any, KeyPath | None]] = []

        def keep(node: Any) -> Any:
            if is_a(node, Container):
                built.append((node.original, None))
                for item in node.items:
                    keep(item)
            return node

        def build(value: Any, path: KeyPath) -> Any:
            if is_a(value, TensorSlot):
                return tensors[value.index]
            if is_a(value, Open):
                return others[value.index]
            if is_a(value, Again):
                found = built[value.number][0]
                if found is None:
                    raise HoldsItself
                return found
            if not is_a(value, Container):
                return value
            number = len(built)
            if number in whole:
                keep(value)
                return value.original
            early = _empty(value)
            built.append((early, path))
            steps = range(len(value.items)) if value.keys is None else value.keys
            items = [build(item, (*path, step)) for step, item in zip(steps, value.items)]
            if value.open_length and type(items[0]) is list:
                items = items[0]
            result = _fill(value, early, items)
            built[number] = (result, path)
            return result

        return {name: build(value, (name,)) for name, value in self.template.items()}, built

    def with_stand_ins(self, tensors: Sequence[Any]) -> Arguments:
        """The same with other tensors, and without any object of the caller's that is taken apart: it may be kept."""
        built = iter(self.rebuild(tensors)[1])

        def strip(value: Any) -> Any:
            if not is_a(value, Container):
                return value
            own = next(built)[0]  # the order is the one in which they are built
            return dataclasses.replace(value, items=tuple(map(strip, value.items)), original=own)

        template = {name: strip(value) for name, value in self.template.items()}
        return dataclasses.replace(self, tensors=list(tensors), template=template, originals={}, containers=[])

    def others(self) -> Iterator[Any]:
        """What is no tensor and not taken apart: each call is given it as it is."""
        todo = list(self.template.values())
        while todo:
            value = todo.pop()
            if is_a(value, Container):
                todo.extend(value.items)
            elif not is_a(value, (TensorSlot, Again, Open)):
                yield value


    def by_content(self) -> Iterator[tuple[Any, KeyPath]]:
        """What a call may give as another object that holds the same, with its path: a Program serves both."""

        def look(value: Any, path: KeyPath) -> Iterator[tuple[Any, KeyPath]]:
            if is_a(value, Container):
                for step, item in zip(range(len(value.items)) if value.keys is None else value.keys, value.items):
                    yield from look(item, (*path, step))
            elif is_a(value, BY_CONTENT):
                yield value, path

        for name, value in self.template.items():
            yield from look(value, (name,))


class HoldsItself(Exception):
    """An argument leads back to a tuple, or to an object of a class of one or of a dict, that it stands in."""


BY_CONTENT: tuple[Any, ...] = (
    numpy.ndarray, functools.partial, types.MethodType, types.MappingProxyType, slice, type({}.keys()),
    type({}.values()), type({}.items()),
)  # fmt: skip
"""Classes whose objects are told apart by what they hold, though it may change or is asked for with ``is``."""


def flatten(bound: dict[str, Any], apart: Set[type] = frozenset()) -> Arguments:
    """Take a call's arguments apart: ``bound`` maps parameter names to values.

    Taken apart: lists, tuples, dicts, sets and named tuples; dataclasses and other mappings if a tensor is inside, and
    dataclasses of the classes ``apart``. A tensor or container that stands in two places is one.
    """
    values = list(bound.values())
    for value in values:
        if not is_a(value, torch.Tensor):
            break
    else:
        if len(values) == 1 or len(set(map(id, values))) == len(values):
            names = tuple(bound)
            template = _templates.get(names)
            if template is None:
                template = _templates[names] = {name: TensorSlot(index) for index, name in enumerate(names)}
            return Arguments(values, list(names), template, bound, names)
    return _flatten(bound, apart)


_templates: dict[tuple[str, ...], dict[str, TensorSlot]] = {}
"""Templates of calls with tensors only, by the arguments' names."""


def _flatten(bound: dict[str, Any], apart: Set[type]) -> Arguments:
    tensors: list[torch.Tensor] = []
    labels: list[str] = []
    positions: dict[int, int] = {}
    numbers: dict[int, int] = {}
    containers: list[Any] = []

    def take(value: Any, label: str) -> Any:
        if is_a(value, torch.Tensor):
            index = positions.setdefault(id(value), len(tensors))
            if index == len(tensors):
                tensors.append(value)
                labels.append(label)
            return TensorSlot(index)
        parts = _parts(value, apart)
        if parts is None:
            return value
        if id(value) in numbers:
            return Again(numbers[id(value)])
        numbers[id(value)] = len(numbers)
        containers.append(value)
        keys, items = parts
        if type(value) is set:
            return Container(set, None, items, value)
        spell = _spelling(value, label, keys)
        return Container(type(value), keys, tuple(take(item, spell(index)) for index, item in enumerate(items)), value)

    template = {name: take(value, name) for name, value in bound.items()}
    return Arguments(tensors, labels, template, bound, containers=containers)


def follow(arguments: Arguments, path: KeyPath) -> Any:
    """The caller's own container at a path among the arguments."""
    value: Any = arguments.originals
    for step in path:
        if is_a(value, dict) or not is_a(step, str):
            value = value[step]
        else:
            value = getattr(value, step)
    return value


def _parts(value: Any, apart: Set[type] = frozenset()) -> tuple[tuple[Any, ...] | None, tuple[Any, ...]] | None:
    """Keys and items of a container that is taken apart; None for anything else."""
    kind = type(value)
    if kind is list or kind is tuple or kind is set:
        return None, tuple(value)
    if kind in (dict, collections.OrderedDict, collections.defaultdict):
        return tuple(value.keys()), tuple(value.values())
    if structure.is_namedtuple(value) or kind in apart or structure.has_traced(value):
        fields = structure.field_items(value)
        beside = fields is not None and any(is_a(key, structure.Attribute) for key in fields[0])
        return None if beside else fields  # with attributes it is an object like others
    return None


def _spelling(value: Any, label: str, keys: tuple[Any, ...] | None) -> Callable[[int], str]:
    if keys is None:
        return lambda index: f"{label}[{index}]"
    if is_a(value, dict):
        return lambda index: f"{label}[{keys[index]!r}]"
    return lambda index: f"{label}.{keys[index]}"


def _empty(node: Container) -> Any:
    """The container before its items are known, where they can be put in later: it may contain itself."""
    if node.kind in (list, dict, collections.OrderedDict):
        return node.kind()
    if node.kind is set:
        return node.original.copy()
    if node.kind is collections.defaultdict:
        return collections.defaultdict(node.original.default_factory)
    if _is_record(node.kind):
        return copy.copy(node.original)  # attributes that are no fields come along
    return None


def _is_record(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) and not issubclass(kind, (dict, tuple))


def _fill(node: Container, early: Any, items: list[Any]) -> Any:
    if node.keys is None:
        if node.kind is tuple:
            return tuple(items)
        if node.kind is list:
            early.extend(items)
        return early
    if _is_record(node.kind):
        for key, item in zip(node.keys, items):
            object.__setattr__(early, key, item)
        return early
    if early is not None:
        early.update(zip(node.keys, items))
        return early
    return structure.rebuild_fields(node.kind, node.keys, tuple(items))


__all__ = ["Arguments", "Container", "HoldsItself", "Open", "flatten", "follow"]
