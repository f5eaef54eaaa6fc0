"""Unmodified library code with loops and branches over tensors: name -> package, function, calls, options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class Library:
    """A function that uses a package's own code, and calls that take different paths through it."""

    package: str
    function: Callable[..., Any]
    calls: Callable[[], list[tuple[Any, ...]]]
    tolerance: float = 0.0
    stages: set[str] = field(default_factory=set)
    """Structural operators that the Program must hold."""
    refused: str = ""
    """The code of the located error, for code that cannot be converted yet."""
    make: Callable[[], Any] | None = None
    """A module or another object that the function takes first, made once."""

    def bound(self) -> Callable[..., Any]:
        """The function, with its object given."""
        if self.make is None:
            return self.function
        function, first = self.function, self.make()
        return lambda *args: function(first, *args)


LIBRARIES: dict[str, Library] = {}


def library(name: str, package: str, calls: Callable[[], list[tuple[Any, ...]]], **options: Any) -> Any:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        LIBRARIES[name] = Library(package, function, calls, **options)
        return function

    return add


def _rand(seed: int, *shape: int, scale: float = 1.0, grad: bool = True) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).requires_grad_(grad)


# -- ODE solvers


def _flow(w: torch.Tensor) -> Callable[[Any, torch.Tensor], torch.Tensor]:
    return lambda t, y: torch.tanh(y @ w) - 0.1 * y


def _ode_calls() -> list[tuple[Any, ...]]:
    t = torch.linspace(0, 1, 4, dtype=torch.float64)
    return [(_rand(0, 2, 3), _rand(1, 3, 3), t), (_rand(2, 2, 3), _rand(3, 3, 3, scale=6.0), t * 4),
            (_rand(4, 2, 3), _rand(5, 3, 3, scale=0.01), t)]  # fmt: skip


def _ode(method: str) -> None:
    stages = {"while_loop", "custom_grad"} if method != "rk4" else set()

    @library(f"torchdiffeq {method}", "torchdiffeq", _ode_calls, tolerance=1e-12, stages=stages)
    def solve(y0: Any, w: Any, t: Any) -> Any:
        import torchdiffeq

        return torchdiffeq.odeint(_flow(w), y0, t, method=method, rtol=1e-5, atol=1e-7)


for _method in ("dopri5", "bosh3", "adaptive_heun", "rk4"):
    _ode(_method)


# -- minimisation


def _rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _minimise(method: str, refused: str) -> None:
    @library(f"pytorch-minimize {method}", "torchmin",
             lambda: [(_rand(seed, 3, grad=False),) for seed in range(3)], tolerance=1e-9, refused=refused)
    def solve(x0: Any) -> Any:
        import torchmin

        result = torchmin.minimize(_rosenbrock, x0, method=method)
        return result.x, result.fun, result.nit, result.status


for _method, _code in (("bfgs", "D2S226"), ("l-bfgs", "D2S226"), ("cg", "D2S254"), ("newton-cg", "D2S222"),
                       ("trust-ncg", "D2S250")):  # fmt: skip
    _minimise(_method, _code)


# -- sequences


def _crf() -> Any:
    import torchcrf

    torch.manual_seed(0)
    return torchcrf.CRF(3).double()


def _crf_calls() -> list[tuple[Any, ...]]:
    return [(_rand(seed, 5, 2, 3), torch.randint(0, 3, (5, 2), generator=torch.Generator().manual_seed(seed)),
             torch.tensor([[1, 1]] * length + [[1, 0]] * (5 - length), dtype=torch.bool))
            for seed, length in enumerate((5, 3, 1))]  # fmt: skip


@library("pytorch-crf likelihood", "torchcrf", _crf_calls, tolerance=1e-12, make=_crf)
def crf_likelihood(crf: Any, emissions: Any, tags: Any, mask: Any) -> Any:
    return crf(emissions, tags, mask)


@library("pytorch-crf decoding", "torchcrf", lambda: [(e, m) for e, _, m in _crf_calls()], make=_crf,
         refused="D2S265")
def crf_decoding(crf: Any, emissions: Any, mask: Any) -> Any:
    return crf.decode(emissions, mask)


# -- fixed points


def _fixed_point(solver: str, refused: str = "") -> None:
    @library(f"torchdeq {solver}", "torchdeq", lambda: [
        (_rand(seed, 2, 4), _rand(seed + 5, 4, 4, scale=scale)) for seed, scale in enumerate((0.2, 0.05, 0.4))],
        tolerance=1e-10, refused=refused)
    def solve(x: Any, w: Any) -> Any:
        from torchdeq.solver import get_solver

        z, _, info = get_solver(solver)(lambda z, tau=1.0: torch.tanh(z @ w + x), torch.zeros_like(x), max_iter=30,
                                        tol=1e-4, stop_mode="abs")
        return z, info["nstep"]


_fixed_point("fixed_point_iter")
_fixed_point("anderson")
_fixed_point("broyden", refused="D2S251")


# -- sparse attention weights


@library("entmax bisection", "entmax", lambda: [(_rand(seed, 3, 5, scale=3.0),) for seed in range(2)],
         tolerance=1e-12)
def entmax_bisection(x: Any) -> Any:
    import entmax

    return entmax.entmax_bisect(x, alpha=1.5, n_iter=30)


@library("entmax sparsemax", "entmax", lambda: [(_rand(seed, 3, 5, scale=3.0),) for seed in range(2)],
         tolerance=1e-12)
def sparsemax(x: Any) -> Any:
    import entmax

    return entmax.sparsemax(x, dim=-1), entmax.entmax15(x, dim=-1)
