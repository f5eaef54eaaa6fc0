"""Programs built by hand: each beside the eager code that does the same, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from runtime import static
from runtime.errors import ProgramError
from tests import oracle
from tests.conformance.family import Family, normal

family = Family("Programs built by hand")
ROWS = (normal(2, 4).detach(), normal(3, 4, seed=1).detach() + 1, normal(5, 4, seed=2).detach() - 1)


def _equal(found: np.ndarray, expected: np.ndarray, rounding: float = 0.0) -> bool:
    """Whether two arrays are one to the bit, or to ``rounding``, or to that of the backend under test."""
    rounding = max(rounding, oracle.ROUNDING)
    return np.allclose(found, expected, rtol=rounding, atol=oracle.ROUNDING, equal_nan=True)


def case(construct: str, build: Callable[[Any, Any], Any], rows: Sequence[torch.Tensor] = ROWS) -> None:
    """``build`` is called with ``static`` and data, and with `Plain` and tensors: each run gives what eager gives."""

    def held() -> None:
        main, startup = static.Program(), static.Program()
        with static.program_guard(main, startup):
            fetched = list(_flat(build(static, static.data("x", [None, 4]))))
        for again in range(2):
            scope, executor = static.Scope(), static.Executor()
            torch.manual_seed(again)
            executor.run(startup, scope=scope)
            for x in rows:
                torch.manual_seed(again)
                expected = list(_flat(build(Plain, x)))
                found = executor.run(main, feed={"x": x}, fetch_list=fetched, scope=scope)
                for one, other in zip(found, expected, strict=True):
                    want = torch.as_tensor(other).detach().numpy()
                    assert one.dtype == want.dtype and _equal(one, want)

    held.__name__ = "static_" + "".join(c if c.isalnum() else "_" for c in construct)
    family.scenario(construct)(held)


def trained(construct: str, make: Callable[[], Any], eager: Callable[[Any], Any], **clip: Any) -> None:
    """Ten steps of an optimizer, beside the steps of PyTorch's."""

    def held() -> None:
        main, startup = static.Program(), static.Program()
        with static.program_guard(main, startup):
            x, y = static.data("x", [None, 4]), static.data("y", [None, 3])
            loss = F.mse_loss(nn.Linear(4, 3)(x), y)
            make().minimize(loss)
        scope, executor = static.Scope(), static.Executor()
        torch.manual_seed(0)
        executor.run(startup, scope=scope)
        torch.manual_seed(0)
        layer = nn.Linear(4, 3)
        step = eager(layer.parameters())
        for number in range(10):
            feed = {"x": ROWS[number % 3], "y": ROWS[number % 3][:, :3].sin()}
            (found,) = executor.run(main, feed=feed, fetch_list=[loss], scope=scope)
            expected = F.mse_loss(layer(feed["x"]), feed["y"])
            step.zero_grad()
            expected.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(layer.parameters(), **clip)
            step.step()
            assert _equal(found, expected.detach().numpy(), 1e-6 if clip else 0.0)
        weight = scope.find_var("linear_0.weight")
        assert weight is not None
        assert _equal(weight.detach().numpy(), layer.weight.detach().numpy(), 1e-5 if clip else 0.0)

    held.__name__ = "static_" + "".join(c if c.isalnum() else "_" for c in construct)
    family.scenario(construct)(held)


def refused(construct: str, held: Callable[[], Any], says: str) -> None:
    """A mistake gets one error that names the variable."""

    def mistaken() -> None:
        try:
            held()
        except ProgramError as error:
            assert says in str(error), str(error)
        else:
            raise AssertionError("it was not refused")

    mistaken.__name__ = "static_" + "".join(c if c.isalnum() else "_" for c in construct)
    family.scenario(construct)(mistaken)


def _flat(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _flat(item)
    else:
        yield value


class Plain:
    """What the functions of control flow do to tensors that are there."""

    @staticmethod
    def cond(pred: Any, true_fn: Any, false_fn: Any) -> Any:
        """One of two."""
        return true_fn() if pred else false_fn()

    @staticmethod
    def case(pairs: Any, default: Any) -> Any:
        """The first whose condition holds."""
        return next((fn for pred, fn in pairs if pred), default)()

    @staticmethod
    def switch_case(index: Any, fns: Any, default: Any) -> Any:
        """That of a number."""
        return fns.get(int(index), default)()

    @staticmethod
    def while_loop(goes_on: Any, body: Any, values: Any) -> Any:
        """The values when the condition ends to hold."""
        while goes_on(*values):
            values = body(*values)
        return values


def _zero() -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64)


case("functions of torch", lambda f, x: [torch.tanh(x) @ x.t(), x.sum(0), F.softmax(x, -1), x[:, 1:].max(1).values])
case("modules of torch.nn", lambda f, x: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8))(x))
case("sizes that each run has", lambda f, x: [x.reshape(-1), x.sum() / x.shape[0], torch.zeros(x.shape[0], 2)])
case("cond", lambda f, x: f.cond(x.sum() > 0, lambda: x + 1, lambda: x * 2))
case("cond in cond, with dicts and lists", lambda f, x: f.cond(
    x.sum() > 0, lambda: f.cond(x.max() > 1, lambda: {"a": x, "b": [x * 3]}, lambda: {"a": x - 1, "b": [x]}),
    lambda: {"a": x.abs(), "b": [x[:1]]}))  # fmt: skip
case("case", lambda f, x: f.case([(x.sum() > 4, lambda: x + 1), (x.sum() < -4, lambda: x - 1)], lambda: x))
case("switch_case", lambda f, x: f.switch_case(
    (x.sum(1) > 0).sum(), {0: lambda: x.sin(), 3: lambda: x.cos()}, lambda: x * 0))  # fmt: skip
case("while_loop", lambda f, x: f.while_loop(
    lambda i, y: i < 5, lambda i, y: [i + 1, torch.tanh(y) * 1.5], [_zero(), x]))  # fmt: skip
case("while_loop that the data ends", lambda f, x: f.while_loop(
    lambda i, y: y.abs().max() > 0.3, lambda i, y: [i + 1, y * 0.6], [_zero(), x]))  # fmt: skip
case("while_loop with cond in it", lambda f, x: f.while_loop(
    lambda i, y: i < 4, lambda i, y: [i + 1, f.cond(y.sum() > 0, lambda: y - 0.5, lambda: y + 0.25)],
    [_zero(), x]))  # fmt: skip
case("a layer shared by iterations", lambda f, x: _shared(f, x, nn.Linear(4, 4)))


def _shared(f: Any, x: Any, layer: Any) -> Any:
    return f.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, torch.tanh(layer(y))], [_zero(), x])


_OPTIMIZERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "SGD": (lambda: static.optimizer.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "Momentum": (lambda: static.optimizer.Momentum(0.1, 0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "Adam": (lambda: static.optimizer.Adam(0.01), lambda p: torch.optim.Adam(p, 0.01)),
    "AdamW": (lambda: static.optimizer.AdamW(0.01), lambda p: torch.optim.AdamW(p, 0.01)),
}
for _name, (_make, _eager) in _OPTIMIZERS.items():
    trained(f"ten steps of {_name}", _make, _eager)
trained("steps whose gradients are clipped by their norm",
        lambda: static.optimizer.SGD(0.1, grad_clip=static.ClipGradByGlobalNorm(0.05)),
        lambda p: torch.optim.SGD(p, 0.1), max_norm=0.05)  # fmt: skip


@family.scenario("py_func, with a gradient of its own")
def static_py_func():
    """A NumPy function in the middle, whose backward gets what it gave and its gradient."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        hidden = nn.Linear(4, 4)(x)
        out = main.current_block().create_var("out", "float32", [-1, 4])
        out = static.py_func(lambda h: np.maximum(h, 0), hidden, out, lambda y, dy: dy * (y > 0),
                             skip_vars_in_backward_input=hidden)  # fmt: skip
        loss = (out * out).mean()
        static.optimizer.SGD(0.1).minimize(loss)
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(0)
    executor.run(startup, scope=scope)
    torch.manual_seed(0)
    layer = nn.Linear(4, 4)
    step = torch.optim.SGD(layer.parameters(), 0.1)
    for x_now in ROWS:
        (found,) = executor.run(main, feed={"x": x_now}, fetch_list=[loss], scope=scope)
        expected = layer(x_now).relu().square().mean()
        step.zero_grad()
        expected.backward()
        step.step()
        assert _equal(found, expected.detach().numpy(), 1e-6)


@family.scenario("clone(for_test=True)")
def static_clone():
    """Dropout does nothing in it, and batch normalisation uses its running statistics."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        out = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))(x)
        test = main.clone(for_test=True)
        static.optimizer.SGD(0.1).minimize(out.square().mean())
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(0)
    executor.run(startup, scope=scope)
    torch.manual_seed(0)
    layers = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)).eval()
    (found,) = executor.run(test, feed={"x": ROWS[0]}, fetch_list=[out], scope=scope)
    assert _equal(found, layers(ROWS[0]).detach().numpy())


def _built() -> tuple[Any, Any]:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        out = nn.Linear(4, 2)(static.data("x", [None, 4]))
    return main, out


def _fed(feed: dict[str, Any], fetch: Any = None) -> Callable[[], Any]:
    def run() -> None:
        main, out = _built()
        static.Executor().run(main, feed=feed, fetch_list=[out if fetch is None else fetch], scope=static.Scope())

    return run


refused("a name that is not fed", _fed({}), "'x'")
refused("a name that the Program does not have", _fed({"x": ROWS[0], "z": ROWS[0]}), "'z'")
refused("a dtype that does not fit", _fed({"x": ROWS[0].double()}), "'x'")
refused("a shape that does not fit", _fed({"x": ROWS[0][:, :3]}), "'x'")
refused("parameters before the startup Program ran", _fed({"x": ROWS[0]}), "linear_0")
refused("a fetched name that does not exist", _fed({"x": ROWS[0]}, "nothing"), "nothing")
