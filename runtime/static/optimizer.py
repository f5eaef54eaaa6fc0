"""Optimizers of static-graph mode: ``minimize`` adds the gradients and the update of the parameters to the Program.

The update is the one that ``torch.optim`` computes (its functional form is recorded), so that a step gives what the
torch optimizer of the same name gives. The learning rate is asked for at each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from runtime.errors import ProgramError
from runtime.ir import Input, ScalarType, Variable
from runtime.static.clip import Clip
from runtime.static.gradients import Pairs, backward, origin
from runtime.static.graph import Number, Numbers
from runtime.static.guard import Guard, current
from runtime.tracer.numbers import scalars

Rate = float | Callable[[], float]


class Optimizer:
    """What optimizers share. ``learning_rate``: a number, or a function that each run asks for one."""

    state: tuple[str, ...] = ()
    """Tensors that there are for each parameter, of its shape, zero at first."""

    def __init__(
        self, learning_rate: Rate = 0.001, parameters: Iterable[torch.Tensor | str] | None = None,
        weight_decay: float = 0.0, grad_clip: Clip | None = None,
    ) -> None:  # fmt: skip
        self._rate = learning_rate
        self._parameters = None if parameters is None else list(parameters)
        self.weight_decay = float(weight_decay)
        self.grad_clip = grad_clip

    def get_lr(self) -> float:
        """The learning rate of the next run."""
        return float(self._rate() if callable(self._rate) else self._rate)

    def set_lr(self, value: float) -> None:
        """Give the next runs another learning rate."""
        self._rate = float(value)

    def minimize(
        self, loss: torch.Tensor, startup_program: Any = None, parameters: Iterable[torch.Tensor | str] | None = None,
        no_grad_set: Iterable[torch.Tensor | str] | None = None,
    ) -> tuple[list[Any], Pairs]:  # fmt: skip
        """Add the backward pass of ``loss`` to the main Program, and the update of the parameters.

        Args:
            loss: A tensor of one element.
            startup_program: That of the guard; there is no other.
            parameters: Those to train, or their names; None: all trainable ones that the loss depends on.
            no_grad_set: Values that no gradient is to flow through.

        Returns:
            The Operators that were added, and pairs of a parameter and its gradient.

        Raises:
            ProgramError: The loss has more than one element, nothing trainable leads to it, or a name is unknown.
        """
        guard = current()
        graph = guard.main
        if startup_program is not None and startup_program is not guard.startup.program:
            raise ProgramError("the startup Program is another than that of program_guard")
        if not isinstance(loss, torch.Tensor) or not (graph.knows(loss) or guard.startup.knows(loss)):
            raise ProgramError("the loss is no tensor of the main Program")
        before = set(graph.program.block.ops)
        self._not_clipped(guard, [])
        pairs = backward(guard, loss, parameters if parameters is not None else self._parameters, no_grad_set)
        self.apply(guard, pairs)
        return [op for op in graph.program.block.ops if op not in before], pairs

    def apply(self, guard: Guard, pairs: Pairs) -> None:
        """Add the update for gradients that are there."""
        graph, session = guard.main, guard.main.session
        rate = self._learning_rate(guard)
        state = {name: [self._state(guard, parameter, name) for parameter, _ in pairs] for name in self.state}
        steps = [self._state(guard, parameter, "step", ()) for parameter, _ in pairs] if self.state else []
        left = self._not_clipped(guard, [parameter for parameter, _ in pairs])
        with torch.no_grad(), graph.recording(Numbers(session)):
            if self.grad_clip is not None:
                grads = self.grad_clip.clipped([grad for _, grad in pairs], left)
            else:
                grads = [grad for _, grad in pairs]
            self.update([parameter for parameter, _ in pairs], grads, state, steps, rate)
        graph.settle()

    def update(
        self, parameters: list[torch.Tensor], grads: list[torch.Tensor], state: dict[str, list[torch.Tensor]],
        steps: list[torch.Tensor], rate: Any,
    ) -> None:  # fmt: skip
        """Write the parameters in place."""
        raise NotImplementedError

    def _not_clipped(self, guard: Guard, parameters: Sequence[torch.Tensor]) -> set[int]:
        """The numbers of the parameters that ``no_clip`` of ``grad_clip`` has."""
        origins = [origin(guard, one) for one in parameters]
        left: set[int] = set()
        for one in self.grad_clip.no_clip if self.grad_clip is not None else ():
            try:
                found = origin(guard, one)
                if all(found is not param.var for param in guard.main.program.params):
                    raise ProgramError("that is data")
            except ProgramError as error:
                said = repr(one) if isinstance(one, str) else f"a tensor of shape {tuple(one.shape)}"
                names = ", ".join(param.name for param in guard.main.program.params)
                raise ProgramError(f"no_clip has {said}, which is no parameter of the Program",
                                   hint=f"Its parameters are: {names or 'none'}.") from error
            left.update(number for number, origin in enumerate(origins) if origin is found)
        return left

    def _learning_rate(self, guard: Guard) -> Any:
        """The learning rate as a number of the Program, which each run is given."""
        graph = guard.main
        name = graph.names.new("learning_rate")
        var = Variable(graph.session.new_name(name), ScalarType("float"), name)
        graph.session.scope.names.add(var)
        graph.program.inputs.append(Input(var, name))
        graph.given[name] = self.get_lr
        return Number(scalars.wrap(var))

    def _state(
        self, guard: Guard, parameter: torch.Tensor, name: str, shape: Sequence[int] | None = None
    ) -> torch.Tensor:
        own = f"{guard.main.name_of(parameter)}.{name}"
        own = own if own not in guard.startup.persistables else guard.startup.names.new(own)
        size = list(parameter.shape) if shape is None else list(shape)
        dtype = parameter.dtype if shape is None else torch.float32
        made = torch.zeros(size, dtype=dtype)
        return guard.main.stand_in(guard.startup.note(made, own, "buffer", False))


class SGD(Optimizer):
    """``torch.optim.SGD`` without momentum."""

    def update(self, parameters: Any, grads: Any, state: Any, steps: Any, rate: Any) -> None:
        """See ``torch.optim.sgd.sgd``."""
        sgd(
            parameters, grads, [None] * len(grads), foreach=False, fused=False, weight_decay=self.weight_decay,
            momentum=0.0, lr=rate, dampening=0.0, nesterov=False, maximize=False)


class Momentum(Optimizer):
    """``torch.optim.SGD`` with momentum."""

    state = ("momentum",)

    def __init__(
        self, learning_rate: Rate = 0.001, momentum: float = 0.9,
        parameters: Iterable[torch.Tensor | str] | None = None, use_nesterov: bool = False,
        weight_decay: float = 0.0, grad_clip: Clip | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, parameters, weight_decay, grad_clip)
        self.momentum, self.nesterov = float(momentum), use_nesterov

    def update(self, parameters: Any, grads: Any, state: Any, steps: Any, rate: Any) -> None:
        """See ``torch.optim.sgd.sgd``."""
        sgd(
            parameters, grads, state["momentum"], foreach=False, fused=False, weight_decay=self.weight_decay,
            momentum=self.momentum, lr=rate, dampening=0.0, nesterov=self.nesterov, maximize=False)


class Adam(Optimizer):
    """``torch.optim.Adam``: weight decay is added to the gradient."""

    state = ("exp_avg", "exp_avg_sq")
    decoupled = False

    def __init__(
        self, learning_rate: Rate = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        parameters: Iterable[torch.Tensor | str] | None = None, weight_decay: float = 0.0,
        grad_clip: Clip | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, parameters, weight_decay, grad_clip)
        self.betas, self.epsilon = (float(beta1), float(beta2)), float(epsilon)

    def update(self, parameters: Any, grads: Any, state: Any, steps: Any, rate: Any) -> None:
        """See ``torch.optim.adam.adam``."""
        adam(
            parameters, grads, state["exp_avg"], state["exp_avg_sq"], [], steps, foreach=False, fused=False,
            decoupled_weight_decay=self.decoupled, amsgrad=False, beta1=self.betas[0], beta2=self.betas[1], lr=rate,
            weight_decay=self.weight_decay, eps=self.epsilon, maximize=False)


class AdamW(Adam):
    """``torch.optim.AdamW``: weights decay by themselves."""

    decoupled = True

    def __init__(
        self, learning_rate: Rate = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        parameters: Iterable[torch.Tensor | str] | None = None, weight_decay: float = 0.01,
        grad_clip: Clip | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, weight_decay, grad_clip)


__all__ = ["SGD", "Adam", "AdamW", "Momentum", "Optimizer"]
