"""A traced call as an artefact's Variant: what a live call takes from objects, by name.

    LiveParameter of encoder[0].weight   ->   State("encoder.0.weight")
    a tensor the code closes over        ->   Constant(3)
    self.count = ...  (a buffer)         ->   Store(State("count"), ...)
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any, NoReturn

import torch

from runtime.errors import StorageError
from runtime.ir.template import Again, TensorSlot
from runtime.ir.tree import Record
from runtime.kinds import is_a
from runtime.storage.answers import Answer, Plain
from runtime.storage.artefact import (
    Attribute,
    Constant,
    Passed,
    State,
    Store,
    Target,
    Variant,
)
from runtime.storage.trees import parts, records
from runtime.storage.types import OBJECTS, object_kind
from runtime.tracer.boundary.tracing import Effect, Traced, live_tensor
from runtime.tracer.memory.inputs import LiveParameter
from runtime.tracer.python_state.guards import Guard, is_plain
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values import arguments as live
from runtime.tracer.values.remaking import REMADE
from runtime.translated.running import device_of


class Tensors:
    """The tensors of an artefact being made: those with state-dict names, and the constants met so far."""

    def __init__(self, root: torch.nn.Module | None) -> None:
        self.names: dict[int, str] = {}
        self.modules: dict[int, str] = {}
        self.constants: list[torch.Tensor] = []
        self.places: dict[tuple[int, str], Constant] = {}
        if root is not None:
            for path, module in root.named_modules():
                self.modules[id(module)] = path
                for name, tensor in (*module._parameters.items(), *module._buffers.items()):
                    if tensor is not None:
                        self.names.setdefault(id(tensor), f"{path}.{name}".lstrip("."))

    def state(self, owner: Any, name: str) -> State | None:
        """The buffer or parameter ``owner.name``."""
        path = self.modules.get(id(owner))
        if path is None or not (name in owner._parameters or name in owner._buffers):
            return None
        return State(f"{path}.{name}".lstrip("."))

    def source(self, one: LiveParameter) -> State | Constant:
        """Where a loaded layer finds what the Program reads."""
        tensor = live_tensor(one)
        state = self.state(one.owner, one.attribute)
        if state is not None:
            return state
        if id(tensor) in self.names:
            return State(self.names[id(tensor)])
        found = self.constant(tensor, one.parameter.name)
        if one.owner is not None:
            self.places[(id(one.owner), one.attribute)] = found
        return found

    def constant(self, tensor: torch.Tensor, name: str) -> Constant:
        """A tensor as a constant. Errors raised: StorageError if gradients would flow to others through it."""
        for index, known in enumerate(self.constants):
            if known is tensor:
                return Constant(index)
        if tensor.grad_fn is not None:
            raise StorageError(
                f"the tensor '{name}' was computed from tensors that need gradients, before the saved function ran",
                hint="Its gradient cannot flow on from a file: compute it inside the function, or .detach() it.",
                code="D2S516",
            )
        self.constants.append(tensor)
        return Constant(len(self.constants) - 1)


def variant_of(
    traced: Traced, arguments: live.Arguments, stopped: Iterable[int], tensors: Tensors, answers: tuple[Answer, ...],
    settings: tuple[tuple[str, Plain], ...],
) -> Variant:
    """The Variant of a trace made with ``arguments``; no gradient flows to the inputs in ``stopped``, and
    each call has to give the ``answers``.

    Errors raised: StorageError for what only a live call can do, naming the argument, attribute or result.
    """
    if traced.bases:
        raise StorageError("arguments that share memory and are written in place cannot be saved", code="D2S517",
                           hint="Pass .clone() of one of them.")  # fmt: skip
    params = tuple(tensors.source(one) for one in traced.live)
    _check_repeatable(traced)
    stores = tuple(Store(_target(effect, tensors), effect.tree) for effect in traced.effects
                   if effect.place.kind != "order")  # what is loaded has no other attributes beside its own
    trees = [traced.program.output, *(store.tree for store in stores)]
    if any(one.kind == "hung" for tree in trees for one in records(tree)):
        _refuse_result("a tensor on which the function hangs attributes")
    for record in (one for tree in trees for one in records(tree) if one.kind in (*REMADE, "again")):
        _refuse_object(record.type_name.rpartition(" ")[2])
    objects = {
        record.type_name: _object(traced.classes[record.type_name])
        for record in (one for tree in trees for one in records(tree))
        if record.kind in ("object", "defaultdict")
    }
    return Variant(
        traced.program,
        params,
        _template(arguments),
        traced.views,
        stores,
        _same(trees, traced),
        objects,
        {name: _builtin_base(cls) for name, cls in _raised_classes(traced)},
        frozenset(stopped),
        device_of([*arguments.tensors, *(live_tensor(one) for one in traced.live)]),
        answers,
        settings,
    )


def _template(arguments: live.Arguments) -> tuple[tuple[str, Any], ...]:
    """The arguments as an artefact describes them."""

    def take(value: Any, label: str) -> Any:
        if is_a(value, (TensorSlot, Again)):
            return value
        if not is_a(value, live.Container):
            return value if is_plain(value) else _refuse_argument(label, value)
        if value.kind is set:
            return _refuse_argument(label, value.original)
        if value.keys is None:
            return value.kind(take(item, f"{label}[{index}]") for index, item in enumerate(value.items))
        items = [take(item, f"{label}[{key!r}]") for key, item in zip(value.keys, value.items)]
        if value.kind is dict:
            return dict(zip(value.keys, items))
        kind = "dataclass"
        if issubclass(value.kind, (tuple, dict)):
            kind = "namedtuple" if issubclass(value.kind, tuple) else "mapping"
        fields = [(f"field{index}", item) for index, item in enumerate(items)]
        return Record(kind, f"{value.kind.__module__}.{value.kind.__qualname__}", (("keys", value.keys), *fields))

    return tuple((name, take(value, name)) for name, value in arguments.template.items())


def _refuse_argument(label: str, value: Any) -> NoReturn:
    raise StorageError(
        f"argument '{label}' is of type {type(value).__module__}.{type(value).__qualname__}, which cannot be saved",
        hint="Arguments of a saved function are tensors, numbers, strings and None, in lists, tuples and dicts.",
        code="D2S518",
    )


def _object(value: Any) -> tuple[str, tuple[Any, ...]]:
    kind = object_kind(value)
    items = None if kind is None else OBJECTS[kind][0](value)
    if kind is None or items is None or not all(is_plain(item) for item in items):
        _refuse_object(f"{type(value).__module__}.{type(value).__qualname__}")
    return kind, items


def _refuse_object(type_name: str) -> NoReturn:
    _refuse_result(f"an object of type {type_name}")


def _refuse_result(what: str) -> NoReturn:
    raise StorageError(
        f"a result of the function is {what}, which cannot be saved",
        hint="Return tensors, numbers and strings, in lists, tuples, dicts, named tuples or dataclasses.",
        code="D2S519",
    )


def _same(trees: list[Any], traced: Traced) -> tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]:
    found = []

    def visit(tree: Any, path: tuple[Any, ...]) -> None:
        if id(tree) in traced.same:
            found.append((path, traced.same[id(tree)]))
        for step, item in parts(tree) or ():
            visit(item, (*path, step))

    for index, tree in enumerate(trees):
        visit(tree, (index,))
    return tuple(found)


def _raised_classes(traced: Traced) -> list[tuple[str, type[BaseException]]]:
    """The users' exceptions that the Program raises, without the objects that exceptions have."""
    return [(name, cls) for name, cls in traced.raised.items()
            if not name.startswith("object ") and cls.__module__ != "builtins"]


def _builtin_base(cls: type[BaseException]) -> str:
    return next(base.__name__ for base in cls.__mro__ if vars(builtins).get(base.__name__) is base)


# --- what a run changes


def _target(effect: Effect, tensors: Tensors) -> Target:
    place = effect.place
    if effect.target is not None:
        _refuse_store(effect, "which hangs on a tensor")
    if effect.path is not None:
        return Passed(effect.path, place.name)
    if place.kind == "attribute":
        state = tensors.state(place.owner, place.name)
        if state is not None:
            return state
        constant = tensors.places.get((id(place.owner), place.name))
        if constant is not None:
            return constant
        path = tensors.modules.get(id(place.owner))
        if path is not None:
            return Attribute(path, place.name)
    _refuse_store(effect, "which is no part of what is saved")


def require_no_training(traced: Traced) -> None:
    """Refuse a Program that leaves gradients in the ``.grad`` of tensors: a loaded one has no optimizer beside it.

    Errors raised: StorageError.
    """
    for effect in traced.effects:
        if effect.target is not None and effect.place.name == "grad":
            raise StorageError(
                "the function leaves gradients in the .grad of its parameters", code="D2S520",
                hint="Save the module that it trains; for a step that is saved, let torch.autograd.grad give the "
                "gradients, and keep what the step remembers in buffers.", location=effect.location)  # fmt: skip


def _check_repeatable(traced: Traced) -> None:
    """A Program that changes what it was traced for would be another one at the next call."""
    for effect in traced.effects:
        place = effect.place
        if effect.path is not None or effect.target is not None or place.kind == "order":  # an argument's, or refused
            continue
        if place.kind == "attribute" and is_a(place.get(), torch.Tensor):
            continue
        if _guard_on(place, traced.guards) is not None:
            why = "and reads it as a Python value that was fixed when it was traced"
            _refuse_store(effect, why)


def _guard_on(place: Place, guards: Iterable[Guard]) -> Guard | None:
    """A fact that no longer holds when something else is stored at the place."""
    before = place.get()
    holding = [guard for guard in guards if guard.holds()]
    try:
        place.set([object()] if place.kind == "content" else object())
        return next((guard for guard in holding if not guard.holds()), None)
    except (TypeError, AttributeError, ValueError):
        return next(iter(holding), None)
    finally:
        place.set(before)


def _refuse_store(effect: Effect, why: str) -> NoReturn:
    raise StorageError(
        f"the function stores to {effect.place.describe()}, {why}",
        hint="Keep such state in a buffer (register_buffer) as a tensor, or return it.",
        location=effect.location,
        code="D2S520",
    )


__all__ = ["Tensors", "require_no_training", "variant_of"]
