"""Branches and loops staged by hand, beside plain ones: one function of the test tells of both, and both must agree."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from runtime import torch_internals
from runtime.calling.results import build_tree
from runtime.executor import compile_program
from runtime.tracer.ambient import state
from runtime.tracer.boundary.results import Outputs
from runtime.tracer.control import cond as branches
from runtime.tracer.control import while_loop as loops
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.interceptor import Interceptor
from runtime.tracer.recording.recorder import Recorder
from runtime.tracer.recording.session import Session
from tests.oracle import same


class Local:
    """Local variables of a construct, as attributes."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        assert name in vars(self), "a construct knows its variables"
        super().__setattr__(name, value)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(vars(self))

    def get(self) -> tuple[Any, ...]:
        return tuple(vars(self).values())

    def set(self, values: tuple[Any, ...]) -> None:
        vars(self).update(zip(vars(self), values, strict=True))

    def holds(self, place: Place) -> bool:
        return place.owner is self


class Plain:
    """Branches, loops and stores as Python has them."""

    def branch(self, value: Any, local: Local, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
        """``if_true() if value else if_false()``; both may assign variables."""
        return if_true() if value else if_false()

    def choose(self, index: Any, local: Local, *runs: Callable[[], Any]) -> Any:
        """``runs[index]()``."""
        return runs[index]()

    def loop(self, local: Local, test: Callable[[], Any], body: Callable[[], None], **options: Any) -> None:
        """``while test(): body()``."""
        while test():
            body()

    def number(self, tensor: torch.Tensor, kind: str = "int") -> Any:
        """The Python number of a tensor."""
        return tensor.item()

    def store(self, owner: Any, name: str, value: Any) -> None:
        """``owner.name = value``."""
        setattr(owner, name, value)

    def change(self, container: Any, change: Callable[[Any], Any]) -> None:
        """Let ``change`` change a container."""
        change(container)

    def new(self, made: Any) -> Any:
        """An object that the function makes."""
        return made


class Staging(Plain):
    """The same in a trace: staged, and stores noted by its journal."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._stack = contextlib.ExitStack()
        self._reals = {name: torch.ones(3) for name in "xy"}
        self._reals |= {"m": torch.ones(2, 3), "i": torch.tensor(1), "w": torch.ones(3, requires_grad=True)}

    def given(self, names: str) -> Any:
        """Tensors among the Program's inputs: ``x`` and ``y`` of three floats, a matrix ``m`` of two rows, an int ``i``
        without dimensions, and ``w`` with a gradient; a tuple for several names."""
        found = [self.session.inputs.add_input(self._reals.pop(name), name, frozenset()) for name in names.split()]
        return found[0] if len(found) == 1 else tuple(found)

    def number(self, tensor: torch.Tensor, kind: str = "int") -> Any:
        return self.session.from_tensor("item", tensor, kind=kind)

    def truth(self, value: Any) -> Staged:
        found = branches.truth(self.session, value)
        assert isinstance(found, Staged)
        return found

    def branch(self, value: Any, local: Local, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
        return branches.cond(self.session, self.truth(value), if_true, if_false, local)

    def choose(self, index: Staged, local: Local, *runs: Callable[[], Any]) -> Any:
        return branches.switch(self.session, index, runs, local)

    def loop(self, local: Local, test: Callable[[], Any], body: Callable[[], None], **options: Any) -> None:
        loops.while_loop(self.session, self.truth(test()), test, body, local, options)

    def store(self, owner: Any, name: str, value: Any) -> None:
        self.session.journal.write(Place("attribute", owner, name), value)

    def change(self, container: Any, change: Callable[[Any], Any]) -> None:
        self.session.journal.note_content(container)
        change(container)

    def new(self, made: Any) -> Any:
        self.session.objects.created[id(made)] = made
        return made

    def finish(self, value: Any) -> Callable[..., Any]:
        """End the trace; what this gives is called with the inputs by name, for what ``value`` is in a run."""
        outputs, program = Outputs(self.session), self.session.program
        program.output = outputs.tree(value)
        program.block.args = [one.var for one in program.inputs]
        program.block.yields = outputs.values
        self.leave()
        executable = compile_program(program)

        def run(**inputs: torch.Tensor) -> Any:
            given = [inputs.pop(one.name) for one in program.inputs]
            assert not inputs
            return build_tree(program.output, executable.run(given, []), outputs.classes)

        return run

    def enter(self) -> None:
        """Record calls of torch from now on."""
        session, enter = self.session, self._stack.enter_context
        enter(torch_internals.quiet_shapes())
        enter(torch_internals.without_autocast_cache())
        enter(torch_internals.below_autograd())
        enter(Interceptor(session))
        enter(Recorder(session))

    def leave(self) -> None:
        """And no longer."""
        self._stack.close()
        state.enter(None)


def _trace_once(test: Callable[..., Any], given: dict[str, Any]) -> None:
    """Named as the function that begins a trace: what pytest's frames hold is not taken for the user's."""
    test(**given)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    names = inspect.signature(pyfuncitem.obj).parameters
    _trace_once(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in names})
    return True


Call = dict[str, Any]
"""What an input is in a call: a number, or a nested list of them."""
Told = Callable[..., Any]
"""``told(do, ...)``: what a function does, with the branches and loops of ``do``, and its inputs."""


def agree(staging: Staging, told: Told, *calls: Call) -> None:
    """Trace ``told`` once, and let each call give what it gives as plain Python."""
    names = list(calls[0])
    given = staging.given(" ".join(names))
    run = staging.finish(told(staging, *((given,) if len(names) == 1 else given)))
    for call in calls:
        same(run(**tensors(call)), told(Plain(), *tensors(call).values()), apart=True)


def agree_or_raise(staging: Staging, told: Told, *calls: Call, seen: Callable[[Any], Any] = lambda one: one) -> None:
    """As ``agree``; where plain Python raises an exception, the run of the trace raises the same.

    ``seen``: what of a result is compared.
    """
    given = staging.given(" ".join(calls[0]))
    run = staging.finish(told(staging, *((given,) if len(calls[0]) == 1 else given)))
    for call in calls:
        try:
            wanted = told(Plain(), *tensors(call).values())
        except Exception as error:
            with pytest.raises(type(error)) as found:
                run(**tensors(call))
            assert str(found.value) == str(error), call
        else:
            same(seen(run(**tensors(call))), seen(wanted), apart=True)


def tensors(call: Call) -> dict[str, torch.Tensor]:
    """The inputs of a call."""
    return {name: torch.tensor(value, requires_grad=name == "w") for name, value in call.items()}


def xs(*values: Sequence[float]) -> list[Call]:
    """A call for each of some values of ``x``."""
    return [{"x": list(map(float, one))} for one in values]


SIGNS = xs((1, 2, 3), (-1, -2, -3))
"""Calls with a sum above and below zero."""

__all__ = ["SIGNS", "Call", "Local", "Plain", "Staging", "Told", "agree", "agree_or_raise", "tensors", "xs"]
