"""``program_guard``: what torch does in its block is recorded, into one of two Programs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.nn.modules import module as hooks
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ir import Variable
from runtime.ir.assume import check
from runtime.static.graph import Kind, Persistable, tensors
from runtime.static.program import ClonedProgram, Program, dtype_of
from runtime.tracer.ambient import source_places, state
from runtime.tracer.numbers.scalars import Staged

_HINT = 8
"""What stands for a size that is not fixed while the Program is recorded: no result depends on it."""
_OTHERS = (1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 16, 24, 32, 64, 100, 128)
"""Sizes of which one at least has to do as well."""


_ASKS_VALUES = frozenset({"item", "tolist", "numpy", "__array__", "allclose", "equal", "is_nonzero"})
"""Functions of torch that give what is no tensor, and depends on what a tensor holds."""


class _Local(threading.local):
    guard: Guard | None = None
    default: tuple[Program, Program] | None = None


_local = _Local()


class Guard(TorchFunctionMode):
    """Sends each call of torch to the Program that it belongs to.

    - Calls with data, or with what was computed from it, belong to the main Program. So does what is done with a
      parameter once it met data, and all that a module's forward does with its own.
    - What happens before is taken for a parameter's initialisation, and belongs to the startup Program. What was
      computed from parameters there, and meets data after all (a penalty, ``weight.T``), is computed again in the main
      Program, if the parameters are still what they were.
    - Calls with ordinary tensors only are made at once, as ever.
    """

    def __init__(self, main: Program, startup: Program) -> None:
        super().__init__()
        self.main, self.startup = main.graph, startup.graph
        self.names = self.startup.names
        self.paused = False
        """Whether calls of torch are ordinary ones."""
        self._depth = 0
        self._derived: dict[int, _Derived] = {}
        """Tensors computed from parameters in the startup Program, by identity."""
        self.main.bring = self._brought
        self._of_modules: dict[int, torch.Tensor] = {}
        """Parameters and buffers of modules from outside that were called, by identity."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.paused or state.active() is not None:
            return func(*args, **kwargs)
        if not self._depth:
            args, kwargs = self._initialised(tuple(args)), self._initialised(dict(kwargs))
        given = list(tensors((args, kwargs)))
        mine = any(map(self.main.knows, given)) or _has_size((args, kwargs))
        made = [one for one in given if self.startup.knows(one)]
        if given and not mine and not made:
            if self._depth and not _only_asks(func) and any(id(one) in self._of_modules for one in given):
                return self.recorded(func, *args, **kwargs)
            return func(*args, **kwargs)
        if func is torch.Tensor.backward:
            raise _no_training("backward() is called on a tensor")
        if getattr(func, "__name__", "") in _ASKS_VALUES:
            raise ProgramError(
                f"{func.__name__}() of a tensor is asked for, and there are no numbers while a Program is built",
                hint="Compute with the tensor, decide with static.cond, call NumPy with static.py_func, or fetch it: "
                "what a run gives has numbers.",
                location=source_places.location_provider())
        if func is torch.Tensor.__deepcopy__ and made:
            return self._deep_copy(*args)
        if made and not mine and (asked := self._gradient(func, args, kwargs)) is not None:
            return asked
        if mine or self._is_of_main(func, made):
            return self.recorded(func, *args, **kwargs)
        if _only_shapes(func):
            return self._like(func, args, kwargs)
        with self.startup.recording():
            result = func(*args, **kwargs)
        if made:
            self._hold_what_met_data()
        if any(self.startup.made(one) or id(one) in self._derived for one in made):
            self._note_derived(func, args, kwargs, made, list(tensors(result)))
        return result

    def _note_derived(
        self, func: Any, args: Any, kwargs: Any, given: Sequence[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        values = [(one, self.startup.value(one)) for one in given if self.startup.made(one) or id(one) in self._derived]
        new = [one for one in results if self.startup.knows(one) and all(one is not other for other in given)]
        values += [(one, self.startup.value(one)) for one in new]
        derived = _Derived(lambda: func(*self.own(args), **self.own(kwargs)), torch.is_grad_enabled(), results, values)
        self._derived.update((id(one), derived) for one in new)

    def _gradient(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What ``requires_grad_`` and ``requires_grad`` give for a tensor of the startup Program; None for other calls.

        Nothing is differentiated there: that a tensor needs a gradient only says that the main Program trains it.
        """
        name, place = getattr(func, "__name__", ""), getattr(getattr(func, "__self__", None), "__name__", "")
        found = self.startup.made(args[0]) if args and isinstance(args[0], torch.Tensor) else None
        if name == "requires_grad_":
            self._train(args[0], found, args[1] if len(args) > 1 else kwargs.get("requires_grad", True))
            return args[0]
        if place != "requires_grad" or name not in ("__get__", "__set__"):
            return None
        if name == "__get__":
            return self.startup.is_trained(args[0])
        self._train(args[0], found, args[1])
        return False

    def _train(self, tensor: torch.Tensor, found: Persistable | None, needs: Any) -> None:
        if found is not None and found.trainable != bool(needs):
            if found.name in self.main.met:
                raise ProgramError(f"requires_grad of {found.name!r} is set after it met data", hint="Set it before.")
            self.main.train_stand_in(found, bool(needs))
        self.startup.train(tensor, needs)

    def _initialised(self, value: Any) -> Any:
        """The value with what the startup Program made in the place of parameters that the main one has not used."""
        if isinstance(value, torch.Tensor):
            found = self.main.stands_for(value)
            if found is None or found.kind != "parameter" or found.name in self.main.met:
                return value
            return found.made if found.made is not None and self.startup.knows(found.made) else value
        if type(value) in (list, tuple):
            return type(value)(map(self._initialised, value))
        return {key: self._initialised(one) for key, one in value.items()} if type(value) is dict else value

    def _like(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What a function gives that looks at a tensor's shape and dtype only: it is computed from no parameter."""

        def blank(value: Any) -> Any:
            if isinstance(value, torch.Tensor) and self.startup.knows(value):
                return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
            if type(value) in (list, tuple):
                return type(value)(map(blank, value))
            return {key: blank(one) for key, one in value.items()} if type(value) is dict else value

        with self.startup.recording():
            return func(*blank(tuple(args)), **blank(dict(kwargs)))

    def _hold_open_sizes(self) -> None:
        """Raises ProgramError if an operator was recorded for the one size that stands for sizes that are open."""
        assumes = self.main.program.assumes
        new, self.main.assumes_seen = assumes[self.main.assumes_seen :], len(assumes)
        for one in new:
            for symbol, (name, dim) in one.symbols.items():
                alone = len(one.symbols) == 1 and check(one, {symbol: _HINT})
                if alone and not any(check(one, {symbol: size}) for size in _OTHERS):
                    raise ProgramError(
                        f"an operator is known here for one size of dimension {dim} of {name!r} only, and it is open",
                        hint="Say the size in place of None.", location=one.location)

    def _hold_what_met_data(self) -> None:
        """Raises ProgramError if the startup Program has written a parameter that met data."""
        for name, value in self.main.met.items():
            made = self.main.persistables[name].made
            if value is None or made is None or not self.startup.knows(made):
                continue
            if self.startup.value(made) is not value:
                raise ProgramError(
                    f"the parameter {name!r} is written after it met data, through a tensor made of it before",
                    hint="Write the parameter itself, or a view of it that is made after it met data.")

    def recorded(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function while the main Program records it."""
        with self.main.recording(self.translation()):
            result = func(*args, **kwargs)
        self._hold_open_sizes()
        return result

    def _deep_copy(self, source: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
        """A copy of a tensor of the startup Program; of a parameter or buffer another one of the kind."""
        if id(source) in memo:
            return cast("torch.Tensor", memo[id(source)])
        found = self.startup.made(source)
        with self:
            made = source.detach().clone()
            if isinstance(source, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=source.requires_grad)
        if found is not None:  # the module's copy does not register it
            self.startup.note(made, self.names.new(found.name), found.kind, found.trainable)
        memo[id(source)] = made
        return made

    def truncated_normal(self, original: Callable[..., Any], tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """``trunc_normal_``, which looks at what it draws: each run calls it."""
        target = self._initialised(tensor)
        if self.paused or not self.startup.knows(target):
            if not self.paused and self.main.knows(target):
                raise ProgramError("trunc_normal_ initialises a tensor that met data", hint="Initialise it before.")
            return original(tensor, *args, **kwargs)

        def trunc_normal_(given: torch.Tensor) -> torch.Tensor:
            return cast("torch.Tensor", original(torch.empty_like(given), *args, **kwargs))

        with self.startup.recording() as session, torch.no_grad():
            drawn = torch.empty_like(target)
            (var,) = session.emit("py_func", [session.read(target)], types=[session.type_of(drawn)],
                                  attrs={"function": self.startup.function(trunc_normal_)})  # fmt: skip
            target.copy_(session.fresh(drawn, var))
        return tensor

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """While the block runs: nothing is recorded."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def translation(self) -> TorchFunctionMode:
        """While the main Program records: tensors of the startup Program are its parameters."""
        return _Own(self)

    def own(self, value: Any) -> Any:
        """The value with what the main Program has in the place of tensors of the startup Program."""
        if isinstance(value, torch.Tensor):
            if not self.startup.knows(value):
                self._meets(self.main.stands_for(value))
                return value
            found = self.startup.made(value)
            if found is None:
                return self._brought(value)
            self._meets(found)
            return self.main.stand_in(found)
        if type(value) in (list, tuple):
            return type(value)(map(self.own, value))
        return {key: self.own(one) for key, one in value.items()} if type(value) is dict else value

    def _meets(self, found: Persistable | None) -> None:
        """The main Program uses a parameter."""
        if found is not None:
            made = found.made
            known = made is not None and self.startup.knows(made)
            self.main.met.setdefault(found.name, self.startup.value(made) if known and made is not None else None)

    def _brought(self, value: torch.Tensor) -> torch.Tensor:
        """What the main Program has for a tensor of the startup Program that is no parameter."""
        derived = self._derived.get(id(value))
        if derived is None or self.main.has_copy(value):
            return self.main.copied(self.startup, value)
        if any(self.startup.value(one) is not known for one, known in derived.values):
            raise ProgramError(
                "a tensor that was computed from a parameter while it was initialised meets data, and one of them was "
                "written since",
                hint="Compute it where it is used: in the module's forward, or after the parameter met data.")
        for one, _ in derived.values:
            found = self.startup.made(one)
            if found is not None and self.main.is_written(found.name):
                raise ProgramError(
                    f"a tensor that was computed from {found.name!r} before that met data is used after it was written",
                    hint="Compute it where it is used.")
        session = self.main.session
        with session.reopen(session.root()), torch.set_grad_enabled(derived.gradients):
            again = list(tensors(derived.again()))
        for one, copy in zip(derived.results, again, strict=True):
            self.main.has_copies(self.startup, one, copy)
        return self.main.copied(self.startup, value)

    def _is_of_main(self, func: Any, made: Sequence[torch.Tensor]) -> bool:
        noted = [found for one in made if (found := self.startup.made(one)) is not None]
        if not noted or _only_asks(func):
            return False
        return self._depth > 0 or any(one.name in self.main.met for one in noted)

    # -- what modules register

    def register(self, module: torch.nn.Module, name: str, value: Any, kind: Kind) -> None:
        """A module's new parameter or buffer outlives a run."""
        if not isinstance(value, torch.Tensor):
            return
        if self.main.knows(value) and all(value is not one for one in self.main.stand_ins.values()):
            raise ProgramError(
                f"the {kind} '{name}' of a {type(module).__name__} is computed from data, or made in a branch or loop",
                hint="Make modules outside, and initialise them with functions of torch that need no data.")
        if self.startup.knows(value):
            trained = kind == "parameter" and self.startup.is_trained(value)
            self.startup.note(value, self.names.of(module, name), kind, trained)

    def enter(self, module: torch.nn.Module, args: Any) -> None:
        """A module is called: what it does with its parameters is no initialisation."""
        self._depth += 1
        for kind in (module._parameters, module._buffers):
            for name, value in kind.items():
                if value is not None and not torch_internals.is_fake(value):
                    self._of_modules[id(value)] = value
                    self.main.session.inputs.hint_source(value, module, name, self.names.of(module, name))

    def step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """An optimizer of torch's is to update parameters."""
        if self.paused or state.active() is not None:
            return
        live = [one.real for one in self.main.session.inputs.live]
        for one in (one for group in optimizer.param_groups for one in group["params"]):
            if self.main.knows(one) or self.startup.knows(one) or any(one is other for other in live):
                raise _no_training(f"step() of torch.optim.{type(optimizer).__name__} is called on parameters")

    def leave(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        """It returned, or raised."""
        self._depth -= 1


def _no_training(what: str) -> ProgramError:
    return ProgramError(
        f"{what} of a Program that is being built, where no gradients are there yet",
        hint="Write static.optimizer.SGD(0.1).minimize(loss) in place of backward() and step(): it adds both to the "
        "Program. torch.autograd.grad(loss, parameters) adds gradients alone.",
        location=source_places.location_provider())


def _has_size(value: Any) -> bool:
    """Whether there is a size among arguments that only a run knows: it is one of data."""
    if isinstance(value, (list, tuple)):
        return any(map(_has_size, value))
    if isinstance(value, dict):
        return any(map(_has_size, value.values()))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, Staged))


def _only_asks(func: Any) -> bool:
    """Whether a function of torch only asks what a tensor looks like."""
    name = getattr(func, "__name__", "")
    return name in ("__get__", "size", "dim", "stride", "numel", "is_floating_point", "is_complex", "__len__")


def _only_shapes(func: Any) -> bool:
    """Whether a function makes a tensor, and only looks at the shape, dtype and device of the one it is given."""
    name = getattr(func, "__name__", "")
    return (name.startswith("new_") and name != "new_tensor") or name.endswith("_like")


@dataclass
class _Derived:
    """A call of the startup Program with parameters, or with what was computed from them."""

    again: Callable[[], Any]
    """Makes it in the main Program."""
    gradients: bool
    """Whether gradients were on."""
    results: list[torch.Tensor]
    values: list[tuple[torch.Tensor, Variable]]
    """What it was given, and gave, and what their memory held."""


class _Own(TorchFunctionMode):
    """While the main Program records: tensors of the startup Program are its parameters."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*self._guard.own(tuple(args)), **self._guard.own(dict(kwargs or {})))


def current() -> Guard:
    """The innermost ``program_guard`` of this thread.

    Raises:
        ProgramError: There is none.
    """
    if _local.guard is None:
        raise ProgramError("no Program is being built", hint="Do it inside: with program_guard(main, startup): ...")
    return _local.guard


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[Guard]:
    """Record what torch does in the block.

    Functions of torch and modules that are called on ``data`` become Operators of ``main_program``. Modules may be
    made inside, then what initialises them becomes part of ``startup_program``; modules made outside bring their
    parameters along, which an executor then reads and writes in place. What is made inside is on the CPU, whatever the
    default device is, as ``data`` is: where a Program runs its executor says.

    Raises:
        ProgramError: A clone is given: nothing is recorded into those.
    """
    startup = startup_program if startup_program is not None else default_startup_program()
    for one in (main_program, startup):
        if not isinstance(one, Program) or isinstance(one, ClonedProgram):
            raise ProgramError(f"a {type(one).__name__} cannot be recorded into", hint="Pass runtime.static.Program().")
    guard = Guard(main_program, startup)
    with contextlib.ExitStack() as stack:
        for remove in (
            hooks.register_module_parameter_registration_hook(lambda m, n, p: guard.register(m, n, p, "parameter")),
            hooks.register_module_buffer_registration_hook(lambda m, n, b: guard.register(m, n, b, "buffer")),
            hooks.register_module_forward_pre_hook(guard.enter),
            hooks.register_module_forward_hook(guard.leave, always_call=True),
            register_optimizer_step_pre_hook(guard.step),
        ):
            stack.callback(remove.remove)
        stack.enter_context(torch_internals.truncated_normal(_truncated_normal))
        if torch_internals.default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        before, _local.guard = _local.guard, guard
        stack.callback(setattr, _local, "guard", before)
        with guard:
            yield guard


def _truncated_normal(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    guard = _local.guard
    if guard is None or state.active() is not None:
        return original(*args, **kwargs)
    return guard.truncated_normal(original, *args, **kwargs)


def default_main_program() -> Program:
    """The main Program of the innermost guard, or one that each thread has."""
    return _local.guard.main.program if _local.guard is not None else _defaults()[0]


def default_startup_program() -> Program:
    """The startup Program of the innermost guard, or one that each thread has."""
    return _local.guard.startup.program if _local.guard is not None else _defaults()[1]


def _defaults() -> tuple[Program, Program]:
    if _local.default is None:
        _local.default = Program("main"), Program("startup")
    return _local.default


def data(name: str, shape: Sequence[int | None], dtype: Any = "float32") -> torch.Tensor:
    """A tensor that each run is fed.

    Args:
        name: The key in ``feed``.
        shape: The size of each dimension; None or -1 where each run may have another.
        dtype: A dtype of torch's, or its name.

    Raises:
        ProgramError: The Program has such an input already, or the dtype does not exist.
    """
    graph = current().main
    if any(one.name == name for one in graph.program.inputs):
        raise ProgramError(f"the Program {graph.program.name!r} has an input {name!r} already")
    open_sizes = frozenset(number for number, size in enumerate(shape) if size is None or size == -1)
    with torch_internals.no_modes():
        example = torch.empty([_HINT if n in open_sizes else int(size or 0) for n, size in enumerate(shape)],
                              dtype=dtype_of(dtype))  # fmt: skip
        with torch_internals.fake_only_metadata():
            made = graph.session.inputs.add_input(example, name, open_sizes)
    graph.settle()
    graph.named[name] = made
    return made


def _outside_of_paths(what: str) -> Guard:
    """The guard. Errors raised: ProgramError inside a branch or loop, which the startup Program is no part of."""
    guard = current()
    if state.active() is not None:
        raise ProgramError(f"{what} is made inside a branch or loop", hint="Make it before, and use it there.")
    return guard


def create_parameter(
    shape: Sequence[int], dtype: Any = "float32", name: str | None = None, is_bias: bool = False,
    default_initializer: Callable[[torch.Tensor], Any] | None = None,
) -> torch.Tensor:  # fmt: skip
    """A trainable tensor: the startup Program makes it, the main one reads it.

    Args:
        shape: Its sizes.
        dtype: A dtype of torch's, or its name.
        name: What it is called in scopes; made up if it is not given.
        is_bias: Whether it starts as zeros.
        default_initializer: Fills it in place, as those of ``torch.nn.init``; by default Xavier's uniform distribution
            for two dimensions and more, zeros for others.

    Raises:
        ProgramError: The name is taken.
    """
    guard = _outside_of_paths("a parameter")
    if name is not None and name in guard.startup.persistables:
        raise ProgramError(f"the Program has a parameter {name!r} already")
    value = torch.empty([int(size) for size in shape], dtype=dtype_of(dtype))
    made = torch.nn.Parameter(value, requires_grad=value.is_floating_point())
    found = guard.startup.note(made, name or guard.names.new("parameter"), "parameter", made.requires_grad)
    fill = default_initializer or (
        torch.nn.init.xavier_uniform_ if len(shape) > 1 and not is_bias else torch.nn.init.zeros_)
    fill(made)
    return guard.main.stand_in(found)


def create_global_var(
    shape: Sequence[int], value: float, dtype: Any = "float32", name: str | None = None
) -> torch.Tensor:
    """A tensor that outlives runs, and no gradient changes: counters, averages. ``value``: what it starts as."""
    guard = _outside_of_paths("a variable that outlives runs")
    if name is not None and name in guard.startup.persistables:
        raise ProgramError(f"the Program has a variable {name!r} already")
    made = torch.full([int(size) for size in shape], value, dtype=dtype_of(dtype))
    return guard.main.stand_in(guard.startup.note(made, name or guard.names.new("global"), "buffer", False))


__all__ = [
    "Guard", "create_global_var", "create_parameter", "current", "data", "default_main_program",
    "default_startup_program", "program_guard",
]  # fmt: skip
