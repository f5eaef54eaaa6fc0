"""Solvers, samplers and decompositions of packages from PyPI, most with loops that end where the data say: name ->
Component.

Each is called with three sizes, on data that take different numbers of iterations. Those without a reason in ``loop``
go a fixed number of times through branches on data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from components import BOTH, Calls, Component
from torch import nn

LOOPS: dict[str, Component] = {}


def _normal(seed: int, *shape: int, scale: float = 1.0, grad: bool = True) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).requires_grad_(grad)


def _uniform(seed: int, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _definite(seed: int, n: int, least: float = 1.0, grad: bool = True) -> torch.Tensor:
    factor = _normal(seed, n, n, grad=False)
    return (factor @ factor.mT / n + torch.eye(n, dtype=factor.dtype) * least).requires_grad_(grad)


def _weights(seed: int, *shape: int, grad: bool = True) -> torch.Tensor:
    weights = _uniform(seed, *shape) + 0.2
    return (weights / weights.sum(0)).requires_grad_(grad)


def _sized(make: Callable[..., list[Any]], *sizes: tuple[Any, ...]) -> Calls:
    """Calls by seed and size."""
    return [make(3 * number, *size) for number, size in enumerate(sizes or ((4,), (6,), (3,)))]


def _loop(name: str, package: str, distribution: str, calls: Calls, loop: str, **options: Any) -> Any:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        LOOPS[name] = Component(package, distribution, lambda: function, calls, loop=loop, **options)
        return function

    return add


def _at(path: str, *more: Any, **options: Any) -> Callable[..., Any]:
    """A function of a package by its path, with further arguments given."""
    module, _, name = path.rpartition(".")
    return lambda *args: getattr(importlib.import_module(module), name)(*args, *more, **options)


# -- optimal transport

TRANSPORT = _sized(lambda seed, n, scale: [
    _weights(seed, n), _weights(seed + 1, n + 1), (_uniform(seed + 2, n, n + 1) * scale).requires_grad_()],
    (4, 1.0), (6, 3.0), (3, 0.2))  # fmt: skip
HISTOGRAMS = _sized(lambda seed, n, scale: [
    _weights(seed, n, 3), (lambda cost: (cost + cost.mT).requires_grad_())(_uniform(seed + 2, n, n) * scale)],
    (4, 1.0), (6, 3.0), (3, 0.2))  # fmt: skip
SPACES = _sized(lambda seed, n: [
    torch.cdist(*[_uniform(seed, n, 2)] * 2).requires_grad_(),
    torch.cdist(*[_uniform(seed + 1, n + 1, 2)] * 2).requires_grad_()])  # fmt: skip
SAMPLES = _sized(lambda seed, n: [_normal(seed, n, 2), _normal(seed + 1, n + 1, 2)])
CIRCLE = _sized(lambda seed, n: [_uniform(seed, n), _uniform(seed + 1, n)])
GAUSSIANS = _sized(lambda seed, n: [
    _normal(seed, 3, n), torch.stack([_definite(seed + i, n, grad=False) for i in range(3)]).requires_grad_()],
    (3,), (4,), (2,))  # fmt: skip
MIXED = _sized(lambda seed, n: [
    _weights(seed, n), _weights(seed + 1, n, 2, grad=False), _uniform(seed + 2, n, n), _uniform(seed + 3, 2, 2),
    torch.full((2,), 0.5, dtype=torch.float64)])  # fmt: skip
IMAGES = _sized(lambda seed, n: [
    (lambda images: (images / images.sum((1, 2), keepdim=True)).requires_grad_())(_uniform(seed, 2, n, n) + 0.1)],
    (4,), (6,), (5,))  # fmt: skip

_MARGINALS = "scales rows and columns until the marginals are met, looking every so often"
_BARYCENTER = "scales all histograms until their mean moves little"
_COUPLING = "a transport problem is solved in each iteration, until the plan or the loss moves little"


def _transport(name: str, path: str, calls: Calls, loop: str, *more: Any, **options: Any) -> None:
    _loop(f"POT {name}", "ot", "POT", calls, loop)(_at(f"ot.{path}", *more, **options))


_transport("sinkhorn", "sinkhorn", TRANSPORT, _MARGINALS, 0.3, numItermax=200, stopThr=1e-6)
_transport("sinkhorn_log", "bregman.sinkhorn_log", TRANSPORT, _MARGINALS, 0.3, numItermax=200, stopThr=1e-6)
_transport("sinkhorn2", "sinkhorn2", TRANSPORT, _MARGINALS, 0.3, numItermax=200, stopThr=1e-6)
_transport("greenkhorn", "bregman.greenkhorn", TRANSPORT,
           "the row or column that is furthest off is scaled, until none is", 0.3, numItermax=200, stopThr=1e-4)
_transport("sinkhorn_stabilized", "bregman.sinkhorn_stabilized", TRANSPORT,
           "scales rows and columns, absorbed where they become large, until the marginals are met", 0.3,
           numItermax=200, stopThr=1e-6)
_transport("sinkhorn_lpl1_mm", "da.sinkhorn_lpl1_mm",
           [[a, torch.arange(a.shape[0]) % 2, b, cost] for a, b, cost in TRANSPORT],
           "a loop that scales in each of some steps over classes", 0.5, eta=0.1, numItermax=5, numInnerItermax=50)
_transport("sinkhorn_knopp_unbalanced", "unbalanced.sinkhorn_knopp_unbalanced", TRANSPORT,
           "scales until the scalings move little", 0.3, 1.0, numItermax=200)
_transport("sinkhorn_stabilized_unbalanced", "unbalanced.sinkhorn_stabilized_unbalanced", TRANSPORT,
           "scales, absorbing what becomes large, until the scalings move little", 0.3, 1.0, numItermax=200)
_transport("sinkhorn_unbalanced_translation_invariant", "unbalanced.sinkhorn_unbalanced_translation_invariant",
           TRANSPORT, "scales until the scalings move little", 0.3, 1.0, numItermax=200)
_transport("mm_unbalanced", "unbalanced.mm_unbalanced", TRANSPORT, "majorises until the plan moves little", 1.0,
           numItermax=100, stopThr=1e-5)
_transport("entropic_partial_wasserstein", "partial.entropic_partial_wasserstein", TRANSPORT,
           "projects on three constraints in turn until the plan moves little", 0.3, 0.5, numItermax=100,
           stopThr=1e-6)
for _name, _path in (("barycenter_sinkhorn", "bregman"), ("barycenter_stabilized", "bregman"),
                     ("barycenter_debiased", "bregman")):  # fmt: skip
    _transport(_name, f"{_path}.{_name}", HISTOGRAMS, _BARYCENTER, 0.5, numItermax=100, stopThr=1e-4)
for _name in ("barycenter_unbalanced_sinkhorn", "barycenter_unbalanced_stabilized"):
    _transport(_name, f"unbalanced.{_name}", HISTOGRAMS, _BARYCENTER, 0.5, 1.0, numItermax=100, stopThr=1e-4)
_transport("convolutional_barycenter2d", "bregman.convolutional_barycenter2d", IMAGES, _BARYCENTER, 0.05,
           numItermax=60, stopThr=1e-3)
_transport("entropic_gromov_wasserstein", "gromov.entropic_gromov_wasserstein", SPACES, _COUPLING, epsilon=0.5,
           max_iter=30, tol=1e-5)
_transport("entropic_semirelaxed_gromov_wasserstein", "gromov.entropic_semirelaxed_gromov_wasserstein", SPACES,
           _COUPLING, epsilon=0.5, max_iter=30, tol=1e-5)
_transport("wasserstein_circle", "wasserstein_circle", CIRCLE, "halves the interval of the cut until it is short", p=2)
_transport("empirical_sinkhorn", "bregman.empirical_sinkhorn", SAMPLES, _MARGINALS, 1.0, numIterMax=100, stopThr=1e-5)
_transport("empirical_sinkhorn_divergence", "bregman.empirical_sinkhorn_divergence", SAMPLES,
           "three such loops, one after another", 1.0, numIterMax=100, stopThr=1e-5)
_transport("bures_wasserstein_barycenter", "gaussian.bures_wasserstein_barycenter", GAUSSIANS,
           "a fixed point of means of square roots, until it moves little", num_iter=50, eps=1e-5)
_transport("unmix", "bregman.unmix", MIXED, "scales until the mixture moves little", 1.0, 1.0, 0.01, numItermax=50,
           stopThr=1e-4)


@_loop("POT solve_batch", "ot", "POT", _sized(lambda seed, n: [_uniform(seed, 2, n, n + 1).requires_grad_()]),
       "scales a batch of problems until the last of them is solved")
def solve_batch(cost: Any) -> Any:
    import ot

    return ot.solve_batch(cost, reg=0.3, max_iter=100, tol=1e-4).plan


@_loop("POT gcg", "ot", "POT", TRANSPORT, "steps by SciPy's line search until the cost moves little")
def conditional_gradient(a: Any, b: Any, cost: Any) -> Any:
    import ot

    return ot.optim.gcg(a, b, cost, 0.3, 0.5, lambda plan: 0.5 * (plan**2).sum(), lambda plan: plan, numItermax=5,
                        numInnerItermax=50, stopThr=1e-4)  # fmt: skip

# -- linear systems and eigenvalues

SYSTEMS = _sized(lambda seed, n: [_definite(seed, n), _normal(seed + 1, n)])
GIVEN = _sized(lambda seed, n: [_definite(seed, n, grad=False), _normal(seed + 1, n, 2, grad=False)])
_RESIDUAL = "goes on until the residual is small"


@_loop("linear_operator minres", "linear_operator", "linear-operator", GIVEN, "goes on until the solution moves little")
def minimal_residual(matrix: Any, right: Any) -> Any:
    from linear_operator.utils.minres import minres

    return minres(matrix.matmul, right, max_iter=30)


@_loop("linear_operator lanczos_tridiag", "linear_operator", "linear-operator", GIVEN,
       "makes vectors orthogonal, more than once where they are not, until nothing is left")
def lanczos(matrix: Any, right: Any) -> Any:
    from linear_operator.utils.lanczos import lanczos_tridiag

    return lanczos_tridiag(matrix.matmul, 4, dtype=matrix.dtype, device=matrix.device, matrix_shape=matrix.shape,
                           init_vecs=right)  # fmt: skip


@_loop("linear_operator contour_integral_quad", "linear_operator", "linear-operator", GIVEN, _RESIDUAL,
       refused="D2S223", why="its conjugate gradients resize buffers in place")
def contour(matrix: Any, right: Any) -> Any:
    from linear_operator.operators import DenseLinearOperator
    from linear_operator.utils.contour_integral_quad import contour_integral_quad

    return contour_integral_quad(DenseLinearOperator(matrix), right, num_contour_quadrature=4)[0]


@_loop("linear_operator psd_safe_cholesky", "linear_operator", "linear-operator",
       _sized(lambda seed, n, rank: [_normal(seed, n, rank)], (4, 4), (6, 2), (3, 1)),
       "adds more to the diagonal until the matrix factorises")
def safe_cholesky(factor: Any) -> Any:
    from linear_operator.utils.cholesky import psd_safe_cholesky

    return psd_safe_cholesky(factor @ factor.mT)


@_loop("torchopt solve_cg", "torchopt", "torchopt", SYSTEMS, _RESIDUAL)
def solve_cg(matrix: Any, right: Any) -> Any:
    import torchopt

    return torchopt.linear_solve.solve_cg(rtol=1e-4, atol=1e-4)(lambda x: matrix @ x, right)


@_loop("torchopt ns", "torchopt", "torchopt", SYSTEMS, "adds terms of a series until they are small")
def neumann(matrix: Any, right: Any) -> Any:
    import torchopt

    return torchopt.linalg.ns(lambda x: matrix @ x / 4, right, maxiter=30)


@_loop("torchopt solve_normal_cg", "torchopt", "torchopt", SYSTEMS, _RESIDUAL, refused="D2S271",
       why="it transposes a function by `torch.func.vjp`")
def solve_normal_cg(matrix: Any, right: Any) -> Any:
    import torchopt

    return torchopt.linear_solve.solve_normal_cg(rtol=1e-4, atol=1e-4)(lambda x: matrix @ x, right)


@_loop("pypose CG", "pypose", "pypose", [[matrix[None], right[None, :, :1]] for matrix, right in GIVEN], _RESIDUAL)
def conjugate_gradients(matrix: Any, right: Any) -> Any:
    from pypose.optim.solver import CG

    return CG()(matrix, right)


# -- torch's own


@_loop("torch lobpcg", "torch", "torch", _sized(lambda seed, n: [_definite(seed, n)], (9,), (12,), (7,)),
       "refines vectors until as many as asked for are found", refused="D2S254",
       why="it keeps what it found in a dict that many paths change")
def lobpcg(matrix: Any) -> Any:
    start = torch.ones(matrix.shape[0], 1, dtype=matrix.dtype).index_fill(0, torch.tensor([0]), 2.0)
    return torch.lobpcg(matrix, k=1, X=start, niter=30, tol=1e-4)[0]


@_loop("torch VonMises.sample", "torch", "torch",
       _sized(lambda seed, n, scale: [_uniform(seed, n) * scale + 0.1], (4, 1.0), (6, 30.0), (3, 3.0)),
       "draws again until every proposal is taken")
def von_mises(concentration: Any) -> Any:
    return torch.distributions.VonMises(torch.zeros_like(concentration), concentration).sample()


@_loop("torch LBFGS", "torch", "torch", _sized(lambda seed, n: [_normal(seed, n, grad=False)], (3,), (4,), (2,)),
       "evaluates until the loss moves little", refused="D2S213",
       why="how often it evaluates, and how much it remembers, depends on the values")
def lbfgs(start: Any) -> Any:
    weights = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([weights], max_iter=8, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (100 * (weights[1:] - weights[:-1] ** 2) ** 2 + (1 - weights[:-1]) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weights.detach()


# -- decompositions

CUBES = _sized(lambda seed, n: [_uniform(seed, n, 3, 2)], (4,), (5,), (6,))
_RECONSTRUCTION = "factors are fitted in turn until the error moves little"


def _decomposition(name: str, loop: str = _RECONSTRUCTION, refused: str = "", why: str = "", **options: Any) -> None:
    @_loop(f"tensorly {name}", "tensorly", "tensorly", CUBES, loop, tolerance=1e-5, refused=refused, why=why)
    def decompose(cube: Any) -> Any:
        import tensorly

        tensorly.set_backend("pytorch")
        found = getattr(importlib.import_module("tensorly.decomposition"), name)(cube, **options)
        return found.factors if hasattr(found, "factors") else tuple(found)


_decomposition("non_negative_parafac", rank=2, n_iter_max=30, init="svd", tol=1e-3)
_decomposition("tucker", rank=[2, 2, 2], n_iter_max=30, init="svd", tol=1e-3)
_decomposition("partial_tucker", rank=[2, 2], modes=[0, 1], n_iter_max=30, init="svd", tol=1e-3)
_decomposition("non_negative_tucker", rank=[2, 2, 2], n_iter_max=30, init="svd", tol=1e-3)
_decomposition("robust_pca", "splits off what is sparse until the rest has low rank", n_iter_max=30, tol=1e-3,
               verbose=0)
_decomposition("tensor_ring_als", rank=[2, 2, 2, 2], n_iter_max=10, tol=1e-3, random_state=0, refused="D2S235",
               why="a staged number of columns goes into `torch.linalg.lstsq`")

# -- roots and integrals

ROOTS = _sized(lambda seed, n, scale: [(_uniform(seed, n) * scale + 0.5).requires_grad_(False)],
               (4, 1.0), (6, 30.0), (3, 3.0))  # fmt: skip
for _name in ("binary_search", "false_position"):

    def _root(target: Any, name: str = _name) -> Any:
        from torchdr.utils import root_search

        return getattr(root_search, name)(lambda x: x**2 - target.float(), target.shape[0], begin=0.1, end=10.0)

    _loop(f"torchdr {_name}", "torchdr", "torchdr", ROOTS, "narrows all brackets until every root is found")(_root)

POINTS = [[_normal(seed, n, 3, scale=scale, grad=False).float()]
          for seed, n, scale in ((0, 8, 1.0), (2, 10, 5.0), (4, 7, 0.3))]  # fmt: skip


@_loop("torchdr SymmetricEntropicAffinity", "torchdr", "torchdr", POINTS, "ascends until entropies are met",
       tolerance=1e-4)
def symmetric_affinity(points: Any) -> Any:
    import torchdr

    return torchdr.SymmetricEntropicAffinity(device="cpu", perplexity=3, max_iter=10)(points)


@_loop("torchdr SinkhornAffinity", "torchdr", "torchdr", POINTS, "scales until the sums are one")
def sinkhorn_affinity(points: Any) -> Any:
    import torchdr

    return torchdr.SinkhornAffinity(device="cpu", eps=1.0, max_iter=30)(points)


FLOWS = [[_normal(seed, n), _normal(seed + 1, n, n, scale=scale)]
         for seed, n, scale in ((0, 3, 1.0), (2, 4, 3.0), (4, 2, 0.1))]  # fmt: skip


@_loop("zuko odeint", "zuko", "zuko", FLOWS, "steps by the error that was found", refused="D2S266",
       why="its `backward` makes a tuple of a class of its own of a generator")
def zuko_odeint(start: Any, weights: Any) -> Any:
    from zuko.utils import odeint

    return odeint(lambda t, x: torch.tanh(weights @ x), start, 0.0, 1.0, phi=(weights,))


@_loop("xitorch mcquad", "xitorch", "xitorch", _sized(lambda seed, n: [_normal(seed, n, grad=False)]),
       "")
def monte_carlo(start: Any) -> Any:
    from xitorch.integrate import mcquad

    return mcquad(lambda x: x**2, lambda x: -(x**2).sum() / 2, start, method="mh", nsamples=20, nburnout=10)


for _name in ("cg", "bicgstab"):

    def _solve(matrix: Any, right: Any, name: str = _name) -> Any:
        import xitorch
        from xitorch.linalg import solve

        return solve(xitorch.LinearOperator.m(matrix, is_hermitian=True), right[:, None], method=name, posdef=True)

    _loop(f"xitorch solve, {_name}", "xitorch", "xitorch", SYSTEMS, _RESIDUAL, refused="D2S264",
          why="parameters are looked up by `id()` in a list")(_solve)


# -- clusters

CLUSTERS = [[torch.cat([_normal(seed + i, n, 2, scale=scale, grad=False) + 3 * i for i in range(3)]).float()]
            for seed, n, scale in ((0, 4, 0.3), (3, 5, 2.0), (6, 3, 1.0))]  # fmt: skip
_CENTERS = "moves the centers until they move little"


@_loop("fast-pytorch-kmeans", "fast_pytorch_kmeans", "fast-pytorch-kmeans", CLUSTERS, _CENTERS)
def fast_kmeans(points: Any) -> Any:
    from fast_pytorch_kmeans import KMeans

    means = KMeans(n_clusters=3, max_iter=20)
    return means.fit_predict(points, centroids=points[:3]), means.centroids


@_loop("kornia KMeans", "kornia", "kornia", CLUSTERS, _CENTERS)
def kornia_kmeans(points: Any) -> Any:
    from kornia.contrib import KMeans

    means = KMeans(3, points[:3], tolerance=1e-4, max_iterations=20)
    means.fit(points)
    return means.cluster_centers, means.cluster_assignments


@_loop("torch-kmeans KMeans", "torch_kmeans", "torch-kmeans", [[points[None]] for (points,) in CLUSTERS], _CENTERS,
       refused="D2S235", why="TorchScript asks for a size that depends on data")
def torch_kmeans(points: Any) -> Any:
    from torch_kmeans import KMeans

    found = KMeans(n_clusters=3, num_init=2, max_iter=20, verbose=False)(points)
    return found.labels, found.centers


LABELLED = [[points, torch.arange(points.shape[0]) % many] for (points,), many in zip(CLUSTERS, (2, 3, 4))]
for _name, _why in (("davies_bouldin_score", "goes through as many clusters as there are"),
                    ("calinski_harabasz_score", "goes through as many clusters as there are"),
                    ("dunn_index", "goes through all pairs of as many clusters as there are")):  # fmt: skip
    _loop(f"torchmetrics {_name}", "torchmetrics", "torchmetrics", LABELLED, _why)(
        _at(f"torchmetrics.functional.clustering.{_name}"))
CATEGORIES = [[torch.arange(n) % one, (torch.arange(n) * 7 + 1) % 5 % other]
              for n, one, other in ((9, 2, 3), (12, 3, 2), (7, 4, 4))]  # fmt: skip
_loop("torchmetrics theils_u", "torchmetrics", "torchmetrics", CATEGORIES, "goes through the categories that occur")(
    _at("torchmetrics.functional.nominal.theils_u"))
_loop("torchmetrics adjusted_mutual_info_score", "torchmetrics", "torchmetrics", CATEGORIES,
      "goes through counts", refused="D2S238", why="a sparse matrix of as many rows as there are labels")(
    _at("torchmetrics.functional.clustering.adjusted_mutual_info_score"))  # fmt: skip

# -- samplers and search


@_loop("pyro-ppl RejectionStandardGamma", "pyro", "pyro-ppl",
       [[_uniform(seed, n) * scale + 1.1] for seed, n, scale in ((0, 4, 1.0), (2, 6, 10.0), (4, 3, 0.5))],
       "draws again what was rejected, until nothing is")
def rejection(concentration: Any) -> Any:
    from pyro.distributions.testing.rejection_gamma import RejectionStandardGamma

    return RejectionStandardGamma(concentration).rsample()


@_loop("pyro-ppl HMC", "pyro", "pyro-ppl", _sized(lambda seed, n: [_normal(seed, n, grad=False)]),
       "")
def hamiltonian(data: Any) -> Any:
    from pyro.infer.mcmc import HMC

    kernel = HMC(potential_fn=lambda at: ((at["z"] - data) ** 2).sum() / 2, step_size=0.3, num_steps=3,
                 adapt_step_size=False, adapt_mass_matrix=False)  # fmt: skip
    kernel.initial_params = {"z": data * 0.5}
    kernel.setup(0)
    at = kernel.initial_params
    for _ in range(3):
        at = kernel.sample(at)
    return at["z"]


JACOBIANS = _sized(lambda seed, m, n: [_normal(seed, m, n, grad=False)], (3, 4), (4, 5), (2, 3))


@_loop("torchjd PCGrad", "torchjd", "torchjd", JACOBIANS, "")
def surgery(jacobian: Any) -> Any:
    from torchjd.aggregation import PCGrad

    return PCGrad()(jacobian)


@_loop("botorch NondominatedPartitioning", "botorch", "botorch",
       _sized(lambda seed, n: [_normal(seed, n, 2, grad=False)], (6,), (8,), (5,)), "")
def partitioning(values: Any) -> Any:
    from botorch.utils.multi_objective.box_decompositions import NondominatedPartitioning

    worst = torch.full((2,), -3.0, dtype=values.dtype)
    return NondominatedPartitioning(ref_point=worst, Y=values).compute_hypervolume()


@_loop("torchmetrics binary_recall_at_fixed_precision", "torchmetrics", "torchmetrics",
       _sized(lambda seed, n: [_uniform(seed, n), (_uniform(seed + 1, n) > 0.5).long()], (8,), (12,), (6,)),
       "")
def recall(scores: Any, labels: Any) -> Any:
    from torchmetrics.functional.classification import binary_recall_at_fixed_precision

    return binary_recall_at_fixed_precision(scores, labels, 0.5)


# -- flows


class _Inverted(nn.Module):
    """A residual flow's inverse."""

    def __init__(self) -> None:
        super().__init__()
        flows = importlib.import_module("normflows")
        net = flows.nets.LipschitzMLP([3, 8, 3], init_zeros=False, lipschitz_const=0.7)
        self.flow = flows.flows.Residual(net, reduce_memory=False, n_exact_terms=2, n_samples=1)

    def forward(self, z: Any) -> Any:
        return self.flow.iresblock._inverse_fixed_point(z)


class _Normed(nn.Module):
    """A layer whose norm is found anew."""

    def __init__(self) -> None:
        super().__init__()
        layers = importlib.import_module("normflows.nets.lipschitz")
        self.layer = layers.InducedNormLinear(3, 4, coeff=0.9, n_iterations=None, atol=1e-3, rtol=1e-3)

    def forward(self, z: Any) -> Any:
        self.layer.compute_weight(update=True)
        return self.layer(z)


ROWS = [[_normal(seed, n, 3, scale=scale, grad=False).float()]
        for seed, n, scale in ((0, 4, 1.0), (2, 6, 5.0), (4, 3, 0.1))]  # fmt: skip
for _name, _module, _why in (("Residual, inverted", _Inverted, "a fixed point, until it moves little"),
                             ("InducedNormLinear", _Normed, "power iterations until the norm moves little")):
    LOOPS[f"normflows {_name}"] = Component(
        "normflows", "normflows", _module, ROWS, modes=BOTH, tolerance=1e-5, loop=_why)  # fmt: skip

# -- minimisation


@_loop("pytorch-minimize newton-exact", "torchmin", "pytorch-minimize",
       _sized(lambda seed, n: [_normal(seed, n, grad=False)], (3,), (4,), (2,)), "steps until they are short",
       refused="D2S271", why="its Hessian is a `vmap` of gradients")
def newton(start: Any) -> Any:
    import torchmin

    found = torchmin.minimize(lambda x: ((x - 1) ** 2).sum() + (x**4).sum(), start, method="newton-exact")
    return found.x, found.fun, found.nit
