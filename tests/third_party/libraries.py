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
    programs: int = 1
    """How many Programs the calls need."""
    module: bool = False
    """Convert what is made, and compare the gradients of its parameters too."""
    loop: str = ""
    """Why a loop in it depends on data."""
    what: str = ""
    """What else it does that depends on data."""
    why: str = ""
    """Why it is refused."""

    def bound(self) -> Callable[..., Any]:
        """The function, with its object given."""
        if self.make is None:
            return self.function
        function, first = self.function, self.make()
        return lambda *args: function(first, *args)


LIBRARIES: dict[str, Library] = {}
DISTRIBUTIONS = {
    "entmax": "entmax", "kornia": "kornia", "mixture_of_experts": "mixture-of-experts", "nflows": "nflows",
    "st_moe_pytorch": "st-moe-pytorch", "torch_geometric": "torch-geometric", "torchcrf": "pytorch-crf",
    "torchdeq": "torchdeq", "torchdiffeq": "torchdiffeq", "torchmin": "pytorch-minimize",
}  # fmt: skip
"""What pip calls the packages."""


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

    @library(f"torchdiffeq {method}", "torchdiffeq", _ode_calls, tolerance=1e-12, stages=stages,
             what="a fixed grid of steps" * (not stages),
             loop="steps are taken, or rejected and made smaller by the error that was found, until the time is reached"
             * bool(stages))
    def solve(y0: Any, w: Any, t: Any) -> Any:
        import torchdiffeq

        return torchdiffeq.odeint(_flow(w), y0, t, method=method, rtol=1e-5, atol=1e-7)


for _method in ("dopri5", "bosh3", "adaptive_heun", "rk4"):
    _ode(_method)


# -- minimisation


def _rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _minimise(method: str, refused: str = "", why: str = "") -> None:
    @library(f"pytorch-minimize {method}", "torchmin",
             lambda: [(_rand(seed, 3, grad=False),) for seed in range(3)], tolerance=1e-9, refused=refused, why=why,
             stages=set() if refused else {"while_loop"}, loop="iterates until the gradient is small")
    def solve(x0: Any) -> Any:
        import torchmin

        result = torchmin.minimize(_rosenbrock, x0, method=method)
        return result.x, result.fun, result.nit, result.status


_minimise("newton-cg", "D2S222", "directions are written in place, and may share the memory of a gradient")
_minimise("trust-ncg", "D2S213", "products with the Hessian ask for a gradient by what an earlier iteration left")


# -- sequences


def _crf() -> Any:
    import torchcrf

    torch.manual_seed(0)
    return torchcrf.CRF(3).double()


def _crf_calls() -> list[tuple[Any, ...]]:
    return [(_rand(seed, 5, 2, 3), torch.randint(0, 3, (5, 2), generator=torch.Generator().manual_seed(seed)),
             torch.tensor([[1, 1]] * length + [[1, 0]] * (5 - length), dtype=torch.bool))
            for seed, length in enumerate((5, 3, 1))]  # fmt: skip


@library("pytorch-crf likelihood", "torchcrf", _crf_calls, tolerance=1e-12, make=_crf,
         what="likelihood under a mask, and checks of the mask")
def crf_likelihood(crf: Any, emissions: Any, tags: Any, mask: Any) -> Any:
    return crf(emissions, tags, mask)


@library("pytorch-crf decoding", "torchcrf", lambda: [(e, m) for e, _, m in _crf_calls()], make=_crf,
         loop="the way back starts at the length of each sequence and follows the best tag; lists of tags as results",
         stages={"while_loop"})
def crf_decoding(crf: Any, emissions: Any, mask: Any) -> Any:
    return crf.decode(emissions, mask)


# -- fixed points


def _fixed_point(solver: str, dtype: torch.dtype = torch.float32, refused: str = "", why: str = "") -> None:
    precision = " in double precision" if dtype is torch.float64 else ""

    @library(f"torchdeq {solver}{precision}", "torchdeq", lambda: [
        tuple(x.detach().to(dtype).requires_grad_() for x in (_rand(seed, 2, 4), _rand(seed + 5, 4, 4, scale=scale)))
        for seed, scale in enumerate((0.2, 0.05, 0.4))], tolerance=1e-5, refused=refused, why=why,
        loop="iterates until the residual is below the tolerance, and keeps the best iterate")
    def solve(x: Any, w: Any) -> Any:
        from torchdeq.solver import get_solver

        z, _, info = get_solver(solver)(lambda z, tau=1.0: torch.tanh(z @ w + x), torch.zeros_like(x), max_iter=30,
                                        tol=1e-4, stop_mode="abs")
        return z, info["nstep"]


_fixed_point("fixed_point_iter")
_fixed_point("anderson")
_fixed_point("broyden")
_fixed_point("anderson", torch.float64, refused="D2S252",
             why="a list that grows begins in single precision, goes on in double precision, and is stacked")


# -- sparse attention weights


@library("entmax bisection", "entmax", lambda: [(_rand(seed, 3, 5, scale=3.0),) for seed in range(2)],
         tolerance=1e-12, what="`entmax_bisect`: a fixed number of halvings, with a backward of its own")
def entmax_bisection(x: Any) -> Any:
    import entmax

    return entmax.entmax_bisect(x, alpha=1.5, n_iter=30)


@library("entmax sparsemax", "entmax", lambda: [(_rand(seed, 3, 5, scale=3.0),) for seed in range(2)],
         tolerance=1e-12, what="`sparsemax`, `entmax15`: supports that depend on data, with a backward of their own")
def sparsemax(x: Any) -> Any:
    import entmax

    return entmax.sparsemax(x, dim=-1), entmax.entmax15(x, dim=-1)


# -- images and detection


def _image(seed: int) -> torch.Tensor:
    return torch.rand(1, 1, 12, 12, generator=torch.Generator().manual_seed(seed)).requires_grad_()


@library("kornia canny", "kornia", lambda: [(_image(seed),) for seed in range(3)], tolerance=1e-5,
         stages={"while_loop"}, loop="hysteresis: weak edges beside strong ones become strong until nothing changes")
def canny(image: Any) -> Any:
    import kornia

    return kornia.filters.canny(image, 0.1, 0.3)


def _boxes(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(8, 2, generator=generator) * 20
    size = torch.rand(8, 2, generator=generator) * 12 + 1
    return torch.cat([corner, corner + size], 1), torch.rand(8, generator=generator)


@library("kornia nms", "kornia", lambda: [_boxes(seed) for seed in range(4)], stages={"while_loop"},
         loop="the best box is kept and what overlaps it removed until no box is left")
def nms(boxes: Any, scores: Any) -> Any:
    from kornia.geometry.bbox import nms as suppress

    return suppress(boxes, scores, 0.3)


@library("kornia mean average precision", "kornia",
         lambda: [(*_boxes(seed), _boxes(seed + 9)[0], torch.arange(8) % 2 + 1) for seed in range(2)],
         tolerance=1e-6, stages={"while_loop"},
         loop="goes through the detections of each class, as many as there are, and matches each with the truth")
def mean_average_precision(boxes: Any, scores: Any, truth: Any, labels: Any) -> Any:
    from kornia.metrics import mean_average_precision as precision

    return precision([boxes], [labels], [scores], [truth], [labels], 3)


# -- mixtures of experts


def _tokens() -> list[tuple[Any, ...]]:
    return [(_rand(seed, 2, 6, 8).detach().float(),) for seed in range(3)]


def _experts(package: str) -> Callable[[], Any]:
    def make() -> Any:
        import importlib

        return importlib.import_module(package).MoE(dim=8, num_experts=4)

    return make


def _unused(*args: Any) -> None:
    """Modules are converted themselves."""


for _name, _package in (("st-moe-pytorch", "st_moe_pytorch"), ("mixture-of-experts", "mixture_of_experts")):
    library(_name, _package, _tokens, tolerance=1e-5, make=_experts(_package), module=True,
            what="`MoE` in training: routing by data, capacity, experts; gradients of all parameters")(_unused)


# -- graphs


def _graph(seed: int) -> torch.Tensor:
    return torch.randint(0, 6, (2, 12), generator=torch.Generator().manual_seed(seed))


@library("torch-geometric coalesce", "torch_geometric", lambda: [(_graph(s), _rand(s, 12)) for s in range(3)],
         tolerance=1e-12, what="as many edges as differ")
def coalesce(edges: Any, weights: Any) -> Any:
    from torch_geometric import utils

    return utils.coalesce(edges, weights, num_nodes=6)


@library("torch-geometric k-hop subgraph", "torch_geometric", lambda: [(_graph(seed),) for seed in range(3)],
         what="as many nodes and edges as are within two steps")
def subgraph(edges: Any) -> Any:
    from torch_geometric import utils

    return utils.k_hop_subgraph(0, 2, edges, relabel_nodes=True, num_nodes=6)


def _pooling() -> Any:
    from torch_geometric.nn import TopKPooling

    return TopKPooling(4)


library("torch-geometric TopKPooling", "torch_geometric",
        lambda: [(_rand(seed, 6, 4).detach().float(), _graph(seed)) for seed in range(3)],
        tolerance=1e-5, make=_pooling, module=True, what="keeps the best nodes and the edges between them")(_unused)


# -- flows


@library("nflows splines", "nflows", lambda: [
    (_rand(seed, 5, scale=scale), _rand(seed + 1, 5, 4), _rand(seed + 2, 5, 4), _rand(seed + 3, 5, 3))
    for seed, scale in ((0, 1.0), (1, 3.0), (2, 0.1))], tolerance=1e-9, stages={"cond"},
    what="branches on what lies inside the interval")
def splines(x: Any, widths: Any, heights: Any, derivatives: Any) -> Any:
    from nflows.transforms.splines.rational_quadratic import unconstrained_rational_quadratic_spline as spline

    return spline(x, widths, heights, derivatives, tails="linear")
