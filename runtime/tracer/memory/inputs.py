"""The caller's tensors in a trace: inputs of the Program, and the parameters and constants that the trace met."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Input, Parameter, TensorType, Variable
from runtime.ir.types import said
from runtime.ir.views import HOLE
from runtime.kinds import is_a
from runtime.torch_internals import batches
from runtime.tracer.ambient.calls import Elsewhere, Findings, Restart, Undecided
from runtime.tracer.ambient.closing import CannotBeOpen
from runtime.tracer.ambient.module_slots import hides
from runtime.tracer.ambient.unasked import reader
from runtime.tracer.memory import aliases
from runtime.tracer.memory.hung import Question, ask
from runtime.tracer.memory.outside_graphs import AskedGradient
from runtime.tracer.memory.storage_table import (
    RecordedStep,
    Storage,
    TensorInfo,
    note_overlap,
    note_unknown_alias,
    storage_key,
)

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


@dataclass(eq=False)
class LiveParameter:
    """A real tensor the Program reads: its Program parameter, how to find it at each call, and its stand-in."""

    parameter: Parameter
    real: torch.Tensor
    owner: Any = None
    """The object and attribute to read it from at each call; None: always this very tensor."""
    attribute: str = ""
    fake: torch.Tensor | None = None


@dataclass(eq=False)
class SharedBase:
    """One input of the Program for arguments that share memory: ``length`` elements of it, beginning ``before``
    elements before the first of the argument ``label``. Where that lies in its memory may differ from call to call."""

    label: str
    length: int
    before: int

    def tensor(self, member: torch.Tensor) -> torch.Tensor:
        """The base, from the argument ``label``."""
        return member.detach().as_strided((self.length,), (1,), member.storage_offset() - self.before)


def users_class_of(real: torch.Tensor) -> type | None:
    """The class of a tensor, if it is none of torch's."""
    return None if type(real) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) else type(real)


class Inputs:
    """What one trace knows of tensors that are not its own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.live: list[LiveParameter] = []
        self._input_fakes: dict[Variable, torch.Tensor] = {}
        self._lifted: dict[int, LiveParameter] = {}
        self._real_storages: dict[int, list[tuple[torch.Tensor, Storage]]] = {}
        self._hints: dict[int, tuple[torch.Tensor, Any, str, str]] = {}
        self.bases: list[SharedBase] = []
        self._reals: dict[Variable, torch.Tensor] = {}
        self.leaves: dict[Variable, bool] = {}
        """Inputs of which it mattered whether autograd's graph begins with them, and whether it does."""
        self.undecided: set[Variable] = set()
        """Inputs that need a gradient in some of the calls that are still to come."""
        self.asks_needs = False
        """Whether it matters which parameters need one."""
        self.no_leaves: set[Variable] = set()
        """Those of them that are written in a way that autograd refuses for leaves which need a gradient."""
        self.gradients: list[AskedGradient] = []
        """Those that the function asks for by the caller's tensors."""
        self.asked: dict[Variable, dict[str, Question]] = {}
        """What else the trace asked the caller's tensors."""
        self._users_classes: set[type] = set()
        self.classes: dict[int, tuple[torch.Tensor, type | None]] = {}
        """Tensors of the trace, by identity, of which it is known what class of the user's they have in eager, if any
        (see ``recording.users_tensors``)."""

    def add_input(self, real: torch.Tensor, name: str, dynamic: frozenset[int] = frozenset()) -> torch.Tensor:
        """Declare an input of the Program; ``dynamic`` are the dimensions whose size is not fixed."""
        self._require_known(real, f"argument '{name}'")
        fake = torch_internals.fake_like(
            self.session.fake_mode,
            real,
            {dim: self.session.sizes.new_input_symbol(name, dim, real.shape[dim]) for dim in sorted(dynamic)},
        )
        var = self.session.new_variable(self.session.type_of(fake), name, self.session.root())
        for dim in sorted(dynamic):
            self.session.sizes.bind_size(fake.shape[dim], var, dim)
        self.session.program.inputs.append(Input(var, name))
        storage = self._storage_for(real, var, name)
        for cls, mark in ((torch.nn.Parameter, "_is_param"), (torch.nn.Buffer, "_is_buffer")):
            if isinstance(real, cls):
                setattr(fake, mark, True)  # what isinstance(x, torch.nn.Parameter) looks at
        self._input_fakes[var] = fake
        self._reals[var] = real
        ahead = self.session.call.ahead
        needs = name in ahead.needing and (real.is_floating_point() or real.is_complex())
        info = TensorInfo(storage, (), needs or real.requires_grad, name not in ahead.layouts)
        if needs:
            info.grad_in_some_runs = True
            self.undecided.add(var)
        self.session.register(fake, info)
        info.cached, info.cached_for = var, storage.value
        return fake

    def as_given(self, fake: torch.Tensor) -> torch.Tensor:
        """What the function is given for an argument: what stands for it, or, if something outside leads to it as well,
        the tensor itself, as an attempt before found it there; that it is the one there becomes a condition."""
        var = self.own_variable(fake)
        assert var is not None
        real = self._reals[var]
        found = next((one for one in self.session.call.known.elsewhere if one.argument == var.hint), None)
        if found is None:
            return fake
        if found.owner is not None:
            self._hints[id(real)] = (real, found.owner, found.attribute, found.label)
        now = self.place_of(real)
        ask(self.session, fake, f"is the tensor {id(real)}", lambda given: given is now())
        del self._input_fakes[var]  # the Program does not read it
        storage = self.session.info(fake).storage
        beside = self._real_storages[storage_key(real)]
        beside[:] = [(other, shown) for other, shown in beside if shown is not storage]
        return real

    def _require_known(self, real: torch.Tensor, label: str, found_late: bool = False) -> None:
        """Refuse a tensor that is more than one block of memory.

        ``found_late``: the trace has gone on for a while. It begins again, and knows of the class then.

        Raises:
            TraceError: D2S213, its class has a ``__torch_dispatch__`` of its own or overrides what torch's has, it is a
                nested or quantized tensor, or only a library knows its layout.
        """
        if real.is_nested:
            raise self.session.error(
                f"{label} is a nested tensor, whose sizes a Program does not know",
                hint="Give the function torch.nested.to_padded_tensor(...) of it, or its tensors in a list.",
                code="D2S213")
        if real.layout is not torch.strided and not torch_internals.is_sparse(real):
            raise self.session.error(
                f"{label} has the layout {str(real.layout).removeprefix('torch.')}, which only its library knows",
                hint="Give the function x.to_dense().", code="D2S213")
        if real.is_quantized:
            raise self.session.error(f"{label} is a quantized tensor, which torch's shape rules take for one of floats",
                                     hint="Give the function x.dequantize().", code="D2S213")
        if torch_internals.dispatches_itself(real):
            raise self.session.error(
                f"{label} is a {type(real).__name__}, a class of tensors with a __torch_dispatch__ of its own: what "
                "operators do to it has no place in a Program",
                hint="Give the function the plain tensors that it holds, or leave it out with not_to_static.",
                code="D2S213")
        other = torch_internals.overridden_by(type(real))
        if other is not None:
            raise self.session.error(
                f"{label} is a {type(real).__name__}, a class of tensors with a {other}() of its own: a Program runs "
                "torch's", hint="Give the function x.as_subclass(torch.Tensor), or leave it out with not_to_static.",
                code="D2S213")
        cls = users_class_of(real)
        if cls is not None:
            if found_late and cls not in self.users_classes and not self.session.call.advanced:
                raise Restart(Findings(classes_of_tensors=frozenset((cls,))))
            self._users_classes.add(cls)

    @property
    def users_classes(self) -> Set[type]:
        """The classes of the user's that tensors have which the function is given or meets."""
        return self._users_classes | self.session.call.known.classes_of_tensors

    def given_as(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The caller's tensor that one of the trace stands for, if it is an argument."""
        return next((self._reals[var] for var, fake in self._input_fakes.items() if fake is tensor), None)

    def require_plain_classes(self) -> None:
        """Refuse a question for the class of a tensor where one of a user's class came in: that of a result is given
        to it when it leaves, and is not known here.

        Raises:
            TraceError: D2S213.
        """
        for cls in self.users_classes:
            raise self.session.error(
                f"the class of a tensor is asked for in a function that is given a {cls.__name__}: while "
                "traced, tensors are torch's own", code="D2S213",
                hint="Ask before the call, or leave the function out with not_to_static.")

    def join_shared_inputs(self, reals: Sequence[torch.Tensor], labels: Sequence[str]) -> None:
        """Make inputs that share memory, with others or among their elements, and are written, views of one base
        input."""
        groups: dict[int, list[tuple[torch.Tensor, str]]] = {}
        for real, label in zip(reals, labels):
            if label in self.session.call.known.shared:
                groups.setdefault(storage_key(real), []).append((real, label))
        by_label = {program_input.name: program_input.var for program_input in self.session.program.inputs}
        for members in groups.values():
            names = " and ".join(f"'{label}'" for _, label in members)
            if any(real.requires_grad for real, _ in members) or len({real.dtype for real, _ in members}) > 1:
                alone = f"elements of the argument {names} share memory and it is written in place"
                raise self.session.error(
                    alone if len(members) == 1 else f"the arguments {names} share memory and one is written in place",
                    code="D2S225",
                    hint="Pass .clone() of one of them, or write out of place.",
                )
            first = members[0][0]
            offset = min(real.storage_offset() for real, _ in members)
            length = int(
                max(
                    real.storage_offset() + 1 + sum((n - 1) * s for n, s in zip(real.shape, real.stride()))
                    for real, _ in members
                )
                - offset
            )
            base = SharedBase(members[0][1], length, int(first.storage_offset() - offset))
            label = f"memory of {names}"
            type_ = TensorType(first.dtype, (length,), said(first.device))
            var = self.session.new_variable(type_, label, self.session.root())
            self.session.program.inputs.append(Input(var, label))
            self.bases.append(base)
            storage = self.session.storages.new(var, origin=var, label=label)
            for real, name in members:
                fake = self._input_fakes[by_label[name]]
                step = RecordedStep(
                    "aten.as_strided.default",
                    (HOLE, list(real.shape), list(real.stride()), real.storage_offset() - offset),
                    (),
                    0,
                    1,
                    ("inherit", None),
                )
                self.session.register(fake, TensorInfo(storage, (step,)))

    def _storage_for(self, real: torch.Tensor, var: Variable, label: str) -> Storage:
        storage = self.session.storages.new(var, origin=var, label=label)
        key = storage_key(real)
        for other, other_storage in self._real_storages.get(key, []):
            if torch_internals.may_overlap(real, other):
                if other_storage.value is not other_storage.origin:
                    raise self.session.error(
                        f"'{label}' and '{other_storage.label}' share memory, and one was written in place before",
                        hint="Write out of place (x = x + y instead of x += y), or .clone() one of them before.",
                        code="D2S225",
                    )
                note_unknown_alias(storage, other_storage, f"'{label}' and '{other_storage.label}' share memory", None)
        self._real_storages.setdefault(key, []).append((real, storage))
        if torch_internals.overlaps_itself(real):  # a write to one element is seen in another
            note_overlap(storage, f"elements of '{label}' are one memory")
        return storage

    def hint_source(self, value: Any, owner: Any, attribute: str, label: str) -> None:
        """Remember that ``value`` was read from ``owner.attribute``, so that a tensor is found there at each call.

        A tensor that stands in two places is one to the Program: that it still is becomes a guard.
        """
        self.session.guards.looked_up(f"tensor '{label}'", functools.partial(reader(owner), owner, attribute), value)
        first = self._hints.setdefault(id(value), (value, owner, attribute, label))
        before, name = first[1], first[2]
        if before is owner and name == attribute:
            return

        def same() -> bool:
            return reader(owner)(owner, attribute) is reader(before)(before, name)

        self.session.guards.add_test((id(owner), attribute, "tensor"), f"tensor '{label}'", same)

    def is_found_at(self, value: Any, owner: Any, attribute: str) -> bool:
        """Whether a tensor was read from ``owner.attribute``: each call has there what the Program takes it for."""
        hint = self._hints.get(id(value))
        there = hint is not None and hint[0] is value and hint[1] is owner and hint[2] == attribute
        return there or (id(owner), attribute, "tensor") in self.session.guards

    def place_of(self, real: torch.Tensor) -> Callable[[], Any]:
        """What is now where a tensor from outside was read."""
        hint = self._hints.get(id(real))
        return (lambda: real) if hint is None else functools.partial(_found_at, hint[1], hint[2])

    def label_of(self, real: torch.Tensor) -> str:
        """What the Program calls a tensor from outside that it reads."""
        return self._lifted[id(real)].parameter.name

    def leaf_arguments(self) -> list[torch.Tensor]:
        """Those of the arguments that autograd's graph begins with; which they are becomes a condition."""
        if any(needs for _, needs in self.session.containers.open_alias_sets):
            raise CannotBeOpen("gradients are asked for, which an item of a list among the arguments may get")
        found = []
        for var, fake in self._input_fakes.items():
            real = self._reals[var]
            if real.requires_grad or var in self.undecided:
                self.leaves[var] = real.is_leaf
                if real.is_leaf:
                    found.append(fake)
        return found

    def decide(self, tensor: torch.Tensor) -> None:
        """Before something is done otherwise as a tensor needs a gradient or not, on the paths where it may.

        What is computed needs none where gradients are switched off.

        Raises:
            Undecided: That depends on which inputs need one, and the trace may ask.
        """
        own = self.own_variable(tensor)
        self.session.outside.asks_gradients |= own is None
        self.asks_needs |= own not in self._input_fakes
        if not self.undecided or not self.session.info(tensor).grad_in_some_runs:
            return
        self._ask([own] if own in self.undecided else self.undecided)

    def _ask(self, asked: Container[Variable]) -> None:
        labels = [one.name for one in self.session.program.inputs if one.var in asked]
        if len(labels) <= self.session.call.ahead.decidable and not self.session.call.advanced:
            raise Undecided(labels)

    def require_decided(self) -> None:
        """Before what gives a ``.grad`` to whichever arguments need one.

        Raises:
            Undecided: The calls are still to come, and the trace may ask.
            TraceError: D2S213, it may not.
        """
        if self.undecided:
            self._ask(self.undecided)
            raise self.session.error(
                "gradients go to all leaves of autograd's graph, and which arguments are some is not known",
                code="D2S213", hint="Say which are not with InputSpec(stop_gradient=True).")

    def guard_unread(self) -> None:
        """Of tensors that the Program does not read, which are no parameters of called modules, the trace may have
        asked what they look like: ``len(t)``, ``t is None``."""
        for value, owner, attribute, label in self._hints.values():
            if id(value) in self._lifted or (id(owner), "<module>") in self.session.guards and (
                    attribute in owner._parameters or attribute in owner._buffers):  # fmt: skip
                continue
            self.session.guards.add((id(owner), attribute, "kind"), f"tensor '{label}'",
                                    functools.partial(_looks_at, owner, attribute), looks(value))

    def lifted(self, real: torch.Tensor) -> torch.Tensor | None:
        """What stands for a tensor from outside, if the Program reads it."""
        found = self._lifted.get(id(real))
        return None if found is None else found.fake

    def lift(self, real: torch.Tensor) -> torch.Tensor:
        """Make a real tensor that the trace met a parameter of the Program; the fake tensor that stands for it."""
        if torch_internals.is_fake(real):
            return self.session.fake(real)
        if self.session.code.transforms and batches.is_wrapped(real):
            raise self.session.error(
                "inside of what torch.func runs, a converted function gets a tensor", code="D2S271",
                hint="Apply torch.func to the converted function, from outside, or leave it out with not_to_static.")
        found = self._lifted.get(id(real))
        if found is not None:
            assert found.fake is not None
            return found.fake
        hint = self._hints.get(id(real))
        owner, attribute, label = hint[1:] if hint else (None, "", "")
        argument = next((var for var in self._input_fakes if self._reals[var] is real), None)
        if argument is not None:
            self._require_itself(argument, owner, attribute, label)
        fake = torch_internals.fake_like(self.session.fake_mode, real, {})
        kind = "constant"
        if is_a(owner, torch.nn.Module):
            if hides(owner, attribute):
                raise self.session.error(
                    f"'{label}' of a {type(owner).__name__} is read, which has a tensor of its own beside the one that "
                    "it has registered by that name", code="D2S274", hint="Give one of them another name.")
            if attribute in owner._parameters:
                kind = "parameter"
            elif attribute in owner._buffers:
                kind = "buffer"
        self._require_known(real, f"'{label}'" if label else "a tensor from outside", found_late=True)
        label = label or f"constant_{len(self.live)}"
        var = self.session.new_variable(self.session.type_of(fake), label, self.session.root())
        parameter = Parameter(var, label, kind, real.requires_grad)  # type: ignore[arg-type]
        self.session.program.params.append(parameter)
        live = LiveParameter(parameter, real, owner, attribute, fake)
        self.live.append(live)
        self._lifted[id(real)] = live
        self._reals[var] = real
        storage = self._storage_for(real, var, label)
        info = TensorInfo(storage, (), real.requires_grad)
        info.cached, info.cached_for = var, var
        return self.session.register(fake, info)

    def require_itself(self, fake: torch.Tensor) -> None:
        """Begin the trace again with an argument as the tensor that it is, if it is not for a file.

        Raises:
            Restart: See ``as_given``.
        """
        argument = self.own_variable(fake)
        assert argument is not None
        self._require_itself(argument, None, "", "")

    def _require_itself(self, argument: Variable, owner: Any, attribute: str, label: str) -> None:
        if not self.session.call.ahead.in_file:
            found = Elsewhere(argument.hint, owner, attribute, label)
            raise self.session.restart(Findings(elsewhere=frozenset((found,))))

    def real(self, origin: Variable) -> torch.Tensor | None:
        """The caller's tensor that an input or parameter is."""
        return self._reals.get(origin)

    def own_variable(self, tensor: torch.Tensor) -> Variable | None:
        """The input or parameter that this tensor object is, if it is one."""
        for var, fake in self._input_fakes.items():
            if fake is tensor:
                return var
        live = self._lifted.get(id(tensor))
        return live.parameter.var if live is not None else None

    def shown_by(self, storage: Storage, steps: tuple[RecordedStep, ...]) -> Variable | None:
        """The input that is these steps of some memory, if there is one."""
        for var, fake in self._input_fakes.items():
            info = self.session.info(fake)
            if info.storage is storage and aliases.key(info.steps) == aliases.key(steps):
                return var
        return None

    def one(self, real: torch.Tensor) -> torch.Tensor:
        """The stand-in of the argument that a tensor from outside is, or the tensor; which becomes a condition."""
        now = self.place_of(real)
        for fake in self._input_fakes.values():
            if ask(self.session, fake, f"is the tensor {id(real)}", lambda given: given is now()) is True:
                return fake
        return real

    def is_input(self, storage: Storage) -> bool:
        """Whether a storage is the memory of an argument."""
        return storage.origin in self._input_fakes

    def add_constant(self, real: torch.Tensor) -> Variable:
        """A parameter that holds a constant of the traced code."""
        label = f"constant_{len(self.live)}"
        type_ = TensorType(real.dtype, tuple(real.shape), said(real.device))
        var = self.session.new_variable(type_, label, self.session.root())
        self.session.program.params.append(Parameter(var, label, "constant"))
        self.live.append(LiveParameter(self.session.program.params[-1], real))
        return var

    def needs_gradient(self, origin: Variable) -> bool:
        """Whether the input or parameter needs a gradient in this trace."""
        if origin in self._input_fakes:
            return self.session.info(self._input_fakes[origin]).requires_grad
        return any(live.parameter.var is origin and live.real.requires_grad for live in self.live)


def _found_at(owner: Any, attribute: str) -> Any:
    try:
        return reader(owner)(owner, attribute)
    except (AttributeError, ValueError):  # an empty cell raises the latter
        return None


def looks(tensor: Any) -> Any:
    """What a tensor says of itself without its data; of anything else its class."""
    if not is_a(tensor, torch.Tensor):
        return type(tensor)
    if tensor.is_nested:
        return (type(tensor), tensor.dtype, tensor.device, tensor.requires_grad)
    strides = tensor.stride() if tensor.layout is torch.strided else torch_internals.sparse_key(tensor)
    lazy = tensor.is_conj(), tensor.is_neg()
    return (type(tensor), tensor.dtype, tensor.device, tensor.shape, strides, tensor.requires_grad, lazy)


def _looks_at(owner: Any, attribute: str) -> Any:
    return looks(reader(owner)(owner, attribute))


__all__ = ["Inputs", "LiveParameter", "SharedBase", "looks", "users_class_of"]
