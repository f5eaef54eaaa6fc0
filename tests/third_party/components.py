"""Layers, losses, metrics, kernels, flows and optimizers of packages from PyPI: name -> package, calls, how to make it.

Each is called with three sizes; modules in training and evaluation.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Calls = list[list[Any]]


@dataclass
class Component:
    """Something of a package's own, and calls of three sizes."""

    package: str
    """What is imported."""
    distribution: str
    """What pip calls it."""
    make: Callable[[], Any]
    """A module, or a function."""
    calls: Calls
    modes: tuple[bool, ...] = ()
    """For a module: in which modes it is run, training or not."""
    tolerance: float = 1e-6
    refused: str = ""
    """The code of the located error, for code that cannot be converted yet."""
    why: str = ""
    """Why it is refused."""
    loop: str = ""
    """Why a loop in it depends on data."""


COMPONENTS: dict[str, Component] = {}
BOTH = (True, False)


def _random(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_(grad)


def _whole(high: int, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def _module(path: str, name: str, *args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(importlib.import_module(path), name)(*args, **options)


def _add(name: str, package: str, distribution: str, make: Callable[[], Any], calls: Calls, **options: Any) -> None:
    COMPONENTS[name] = Component(package, distribution, make, calls, **options)


def _layer(name: str, distribution: str, path: str, cls: str, calls: Calls, *args: Any, modes: Any = BOTH,
           tolerance: float = 1e-5, refused: str = "", why: str = "", **options: Any) -> None:  # fmt: skip
    _add(name, path.partition(".")[0], distribution, _module(path, cls, *args, **options), calls, modes=modes,
         tolerance=tolerance, refused=refused, why=why)


def _function(name: str, package: str, distribution: str, calls: Calls, **options: Any) -> Any:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        _add(name, package, distribution, lambda: function, calls, **options)
        return function

    return add


SEQUENCES = [[_random((2, n, 32), n)] for n in (8, 12, 16)]
TOKENS = [[_whole(20, (batch, n), n)] for batch, n in ((2, 8), (3, 12), (2, 16))]
HEADS = [[_random((1, 2, n, 16), n + i) for i in range(3)] for n in (16, 24, 32)]
POINTS = [[_random((n, 2), n, torch.float64)] for n in (6, 9, 4)]
SPACE = [[_random((n, 3), n, torch.float64)] for n in (4, 6, 3)]
PAIRS = [[_random((n,), n, torch.float64), _random((n,), n + 1, torch.float64)] for n in (8, 11, 6)]
CUBES = [[_random((n, 3, 2), n, torch.float64, grad=False)] for n in (4, 5, 6)]
TIME = [[_random((n, 2, 3), n)] for n in (4, 6, 3)]

# -- attention and transformers


def _x_transformer(encoder: bool = False, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        package = importlib.import_module("x_transformers")
        layers = (package.Encoder if encoder else package.Decoder)(
            dim=32, depth=1, heads=4, attn_dim_head=8, **options)
        return package.TransformerWrapper(num_tokens=20, max_seq_len=32, attn_layers=layers)

    return make


for _name, _options in {
    "decoder": {}, "rotary positions, normed queries and keys": {"rotary_pos_emb": True, "attn_qk_norm": True},
    "sandwich norm, gated values": {"sandwich_norm": True, "attn_gate_values": True},
    "talking heads": {"attn_pre_talking_heads": True},
}.items():  # fmt: skip
    _add(f"x-transformers {_name}", "x_transformers", "x-transformers", _x_transformer(**_options), TOKENS, modes=BOTH,
         tolerance=1e-5)
_add("x-transformers relative positions", "x_transformers", "x-transformers",
     _x_transformer(encoder=True, rel_pos_bias=True), TOKENS, modes=(False,), refused="D2S264",
     why="einx names axes by `id()` of objects; with `dy2static.ignore_module([einx])` it is captured")
_layer("local-attention LocalAttention", "local-attention", "local_attention", "LocalAttention", HEADS, dim=16,
       window_size=4, causal=True, look_backward=1, autopad=True)
_layer("linformer", "linformer", "linformer", "LinformerSelfAttention", SEQUENCES, dim=32, seq_len=16, heads=4, k=4)
_layer("nystrom-attention", "nystrom-attention", "nystrom_attention", "NystromAttention", SEQUENCES, dim=32,
       dim_head=8, heads=4, num_landmarks=4, pinv_iterations=3)
_layer("perceiver-pytorch Perceiver", "perceiver-pytorch", "perceiver_pytorch", "Perceiver",
       [[_random((1, n, 6, 3), n)] for n in (6, 8, 5)], input_channels=3, input_axis=2, num_freq_bands=3, max_freq=4.0,
       depth=1, num_latents=8, latent_dim=16, num_classes=5, cross_dim_head=8, latent_dim_head=8, latent_heads=2)
_layer("perceiver-pytorch PerceiverIO", "perceiver-pytorch", "perceiver_pytorch", "PerceiverIO", SEQUENCES, dim=32,
       queries_dim=16, num_latents=8, latent_dim=16, depth=1, cross_dim_head=8, latent_dim_head=8, latent_heads=2,
       logits_dim=5)
_layer("performer-pytorch SelfAttention", "performer-pytorch", "performer_pytorch", "SelfAttention", SEQUENCES, dim=32,
       heads=4, causal=False, nb_features=16)
_layer("linear-attention-transformer", "linear-attention-transformer", "linear_attention_transformer",
       "LinearAttentionTransformerLM", TOKENS, num_tokens=20, dim=32, heads=2, depth=1, max_seq_len=16,
       n_local_attn_heads=1, local_attn_window_size=4)
_layer("reformer-pytorch LSHSelfAttention", "reformer-pytorch", "reformer_pytorch", "LSHSelfAttention",
       [[_random((1, n, 32), n)] for n in (8, 16, 24)], dim=32, heads=2, bucket_size=4, n_hashes=2)
_layer("sinkhorn-transformer", "sinkhorn-transformer", "sinkhorn_transformer", "SinkhornTransformerLM",
       [[_whole(20, (1, n), n)] for n in (8, 12, 16)], num_tokens=20, dim=32, heads=4, depth=1, max_seq_len=16,
       bucket_size=4)
_layer("axial-positional-embedding", "axial-positional-embedding", "axial_positional_embedding",
       "AxialPositionalEmbedding", SEQUENCES, dim=32, axial_shape=(4, 4))
_layer("product-key-memory", "product-key-memory", "product_key_memory", "PKM", SEQUENCES, dim=32, heads=2, num_keys=8,
       topk=4, dim_head=8)
_layer("soft-moe-pytorch", "soft-moe-pytorch", "soft_moe_pytorch", "SoftMoE", SEQUENCES, dim=32, seq_len=16,
       num_experts=3)
_layer("soft-moe-pytorch dynamic slots", "soft-moe-pytorch", "soft_moe_pytorch", "DynamicSlotsSoftMoE", SEQUENCES,
       dim=32, num_experts=3)
_layer("conformer", "conformer", "conformer", "ConformerBlock", SEQUENCES, dim=32, dim_head=8, heads=4,
       conv_kernel_size=5)
_add("mambapy", "mambapy", "mambapy", lambda: importlib.import_module("mambapy.mamba").Mamba(
    importlib.import_module("mambapy.mamba").MambaConfig(d_model=32, n_layers=1, d_state=4, pscan=False)), SEQUENCES,
    modes=BOTH, tolerance=1e-5)  # fmt: skip


class _Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = importlib.import_module("rotary_embedding_torch").RotaryEmbedding(dim=8)

    def forward(self, q: Any) -> Any:
        return self.inner.rotate_queries_or_keys(q)


_add("rotary-embedding-torch", "rotary_embedding_torch", "rotary-embedding-torch", _Rotary, [one[:1] for one in HEADS],
     modes=BOTH, tolerance=1e-5)

# -- vector quantisation: codes by data, codebooks that move

for _name, _cls, _options in (
    ("VectorQuantize", "VectorQuantize", {"codebook_size": 16, "decay": 0.8}),
    ("VectorQuantize, cosine, dead codes replaced", "VectorQuantize",
     {"codebook_size": 16, "use_cosine_sim": True, "threshold_ema_dead_code": 2}),
    ("VectorQuantize, started by k-means", "VectorQuantize",
     {"codebook_size": 4, "kmeans_init": True, "kmeans_iters": 3}),
    ("ResidualVQ", "ResidualVQ", {"codebook_size": 8, "num_quantizers": 2}),
    ("FSQ", "FSQ", {"levels": [4, 4, 4]}), ("LFQ", "LFQ", {"codebook_size": 16}),
):  # fmt: skip
    _layer(f"vector-quantize-pytorch {_name}", "vector-quantize-pytorch", "vector_quantize_pytorch", _cls, SEQUENCES,
           dim=32, **_options)

# -- kernels, linear algebra


def _kernel(name: str, **options: Any) -> Callable[[], Any]:
    class Kernel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            kernels = importlib.import_module("gpytorch.kernels")
            self.inner = kernels.ScaleKernel(getattr(kernels, name)(**options)).double()

        def forward(self, x: Any) -> Any:
            return self.inner(x).to_dense()

    return Kernel


for _name, _options in {"RBFKernel": {}, "MaternKernel": {"nu": 2.5}, "PeriodicKernel": {}, "RQKernel": {},
                        "LinearKernel": {}, "PolynomialKernel": {"power": 2}}.items():  # fmt: skip
    _add(f"gpytorch {_name}", "gpytorch", "gpytorch", _kernel(_name, **_options), POINTS, modes=BOTH, tolerance=1e-9)

SYSTEMS = [[*x, _random((x[0].shape[0],), 3, torch.float64, grad=False)] for x in POINTS]


@_function("linear_operator solve and logdet", "linear_operator", "linear-operator", SYSTEMS)
def solve(x: Any, y: Any) -> Any:
    from linear_operator.operators import DenseLinearOperator

    matrix = DenseLinearOperator(x @ x.mT + torch.eye(x.shape[0], dtype=x.dtype))
    return matrix.solve(y.unsqueeze(-1)), matrix.logdet()


@_function("linear_operator linear_cg", "linear_operator", "linear-operator", SYSTEMS,
           loop="goes on until the residual is small")
def conjugate_gradients(x: Any, y: Any) -> Any:
    from linear_operator.utils import linear_cg

    matrix = x @ x.mT + torch.eye(x.shape[0], dtype=x.dtype)
    return linear_cg(matrix.matmul, y.unsqueeze(-1), n_tridiag=0, max_iter=10, tolerance=1e-3)


@_function("linear_operator pivoted_cholesky", "linear_operator", "linear-operator", SYSTEMS, refused="D2S275",
           why="its `backward` runs `backward()` of a graph of its own")
def pivoted(x: Any, y: Any) -> Any:
    from linear_operator.operators import DenseLinearOperator

    return DenseLinearOperator(x @ x.mT + torch.eye(x.shape[0], dtype=x.dtype)).pivoted_cholesky(rank=3)


@_function("e3nn spherical harmonics", "e3nn", "e3nn", SPACE)
def harmonics(x: Any) -> Any:
    from e3nn import o3

    return o3.spherical_harmonics([0, 1, 2], x, True)


@_function("e3nn wigner_D", "e3nn", "e3nn", SPACE)
def wigner(x: Any) -> Any:
    from e3nn import o3

    return o3.wigner_D(2, x[:, 0], x[:, 1], x[:, 2])


@_function("tensorly parafac", "tensorly", "tensorly", CUBES,
           loop="factors are fitted in turn until the error moves little")
def parafac(x: Any) -> Any:
    import tensorly
    from tensorly.decomposition import parafac as decompose

    tensorly.set_backend("pytorch")
    return decompose(x, 2, n_iter_max=3, init="svd", tol=1e-3).factors


@_function("tensorly unfold and fold", "tensorly", "tensorly", CUBES)
def unfolded(x: Any) -> Any:
    import tensorly

    tensorly.set_backend("pytorch")
    flat = tensorly.unfold(x, 1)
    return flat, tensorly.fold(flat * 2, 1, x.shape)


@_function("tntorch", "tntorch", "tntorch", CUBES, refused="D2S235",
           why="einsum of tensors whose sizes depend on a rank that only the run knows")
def tensor_train(x: Any) -> Any:
    import tntorch

    train = tntorch.Tensor(x, ranks_tt=2)
    return train.torch(), tntorch.norm(train)


# -- losses and metrics


def _metric_learning(loss: str, miner: str = "", **options: Any) -> Callable[[], Any]:
    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            package = "pytorch_metric_learning"
            self.loss = getattr(importlib.import_module(f"{package}.losses"), loss)(**options)
            self.miner = getattr(importlib.import_module(f"{package}.miners"), miner)() if miner else None

        def forward(self, embeddings: Any, labels: Any) -> Any:
            if self.miner is None:
                return self.loss(embeddings, labels)
            return self.loss(embeddings, labels, self.miner(embeddings, labels))

    return Loss


EMBEDDINGS = [[_random((n, 8), n), torch.arange(n) % 3] for n in (9, 12, 6)]
for _name, _miner in (("TripletMarginLoss", ""), ("TripletMarginLoss", "TripletMarginMiner"), ("ContrastiveLoss", ""),
                      ("TripletMarginLoss", "BatchHardMiner"), ("NTXentLoss", ""), ("CircleLoss", ""),
                      ("MultiSimilarityLoss", "MultiSimilarityMiner"), ("SupConLoss", ""),
                      ("LiftedStructureLoss", "")):  # fmt: skip
    _add(f"pytorch-metric-learning {_name}{' with ' * bool(_miner)}{_miner}", "pytorch_metric_learning",
         "pytorch-metric-learning", _metric_learning(_name, _miner), EMBEDDINGS, modes=(True,), tolerance=1e-5)
_add("pytorch-metric-learning ArcFaceLoss", "pytorch_metric_learning", "pytorch-metric-learning",
     _metric_learning("ArcFaceLoss", num_classes=3, embedding_size=8), EMBEDDINGS, modes=(True,), refused="D2S213",
     why="it assigns `.data` of its weights")

SCORES = [[_random((n, 3), n, torch.float64, grad=False).softmax(-1), _whole(3, (n,), n)] for n in (12, 20, 9)]


def _metric(name: str, **options: Any) -> Callable[..., Any]:
    def metric(given: Any, target: Any) -> Any:
        return getattr(importlib.import_module("torchmetrics.functional"), name)(given, target, **options)

    return metric


for _name in ("accuracy", "f1_score", "auroc", "confusion_matrix", "cohen_kappa", "calibration_error",
              "average_precision", "precision_recall_curve", "matthews_corrcoef", "jaccard_index"):  # fmt: skip
    _function(f"torchmetrics {_name}", "torchmetrics", "torchmetrics", SCORES)(
        _metric(_name, task="multiclass", num_classes=3))
for _name in ("pearson_corrcoef", "spearman_corrcoef", "r2_score", "mean_absolute_percentage_error",
              "kendall_rank_corrcoef", "explained_variance", "concordance_corrcoef"):  # fmt: skip
    _function(f"torchmetrics {_name}", "torchmetrics", "torchmetrics", PAIRS)(_metric(_name))



@_function("torchmetrics retrieval", "torchmetrics", "torchmetrics", PAIRS)
def retrieval(given: Any, target: Any) -> Any:
    found = importlib.import_module("torchmetrics.functional.retrieval")
    relevant = target.detach() > 0
    return found.retrieval_normalized_dcg(given.detach(), relevant.long()), found.retrieval_average_precision(
        given.detach(), relevant), found.retrieval_reciprocal_rank(given.detach(), relevant)  # fmt: skip


MASKS = [[_random((2, 3, n, n), n), _whole(3, (2, 1, n, n), n)] for n in (6, 8, 5)]
for _name, _options in {"DiceLoss": {"softmax": True}, "FocalLoss": {}, "TverskyLoss": {"softmax": True},
                        "GeneralizedDiceLoss": {"softmax": True}}.items():  # fmt: skip
    _layer(f"monai {_name}", "monai", "monai.losses", _name, MASKS, modes=(True,), to_onehot_y=True, **_options)
_layer("monai UNet", "monai", "monai.networks.nets", "UNet", [[_random((1, 1, n, n), n)] for n in (8, 12, 16)], 2, 1, 2,
       (4, 8), (2,), num_res_units=1)


_layer("monai ViT", "monai", "monai.networks.nets", "ViT", [[_random((n, 1, 8, 8), n)] for n in (1, 2, 3)], 1, 8, 4,
       hidden_size=16, mlp_dim=16, num_layers=1, num_heads=2, spatial_dims=2)


@_function("pytorch-msssim", "pytorch_msssim", "pytorch-msssim",
           [[_random((2, 1, n, n), n, torch.float64)] for n in (12, 16, 13)])
def similarity(x: Any) -> Any:
    from pytorch_msssim import ssim

    return ssim(x, x * 0.9, data_range=1.0, win_size=5)


def _distance(kind: str) -> Callable[..., Any]:
    def distance(x: Any, y: Any) -> Any:
        return importlib.import_module("geomloss").SamplesLoss(kind, blur=0.5, backend="tensorized")(x, y)

    return distance


CLOUDS = [[_random((n, 2), n, torch.float64), _random((n + 1, 2), n + 1, torch.float64)] for n in (5, 7, 4)]
for _name in ("gaussian", "energy", "hausdorff"):
    _function(f"geomloss {_name}", "geomloss", "geomloss", CLOUDS)(_distance(_name))
_function("geomloss sinkhorn", "geomloss", "geomloss", CLOUDS, refused="D2S213",
          why="NumPy's `arange` up to the diameter of the data")(_distance("sinkhorn"))


@_function("botorch pareto front", "botorch", "botorch", POINTS)
def pareto(x: Any) -> Any:
    from botorch.utils.multi_objective.pareto import is_non_dominated

    best = is_non_dominated(x.detach())
    return best, x[best]


@_function("botorch test functions", "botorch", "botorch", POINTS)
def surfaces(x: Any) -> Any:
    from botorch.test_functions import Ackley, Branin

    return Ackley(dim=2)(x), Branin()(x)


# -- flows, densities, differential equations


def _flow(name: str) -> Callable[[], Any]:
    class Flow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            flows = importlib.import_module("zuko.flows")
            self.inner = getattr(flows, name)(2, 0, transforms=2, hidden_features=[8])

        def forward(self, x: Any) -> Any:
            return self.inner().log_prob(x)

    return Flow


for _name in ("NSF", "MAF"):
    _add(f"zuko {_name}", "zuko", "zuko", _flow(_name), [[_random((n, 2), n)] for n in (4, 6, 3)], modes=(True,),
         tolerance=1e-5)


@_function("pyro-ppl MixtureOfDiagNormals", "pyro", "pyro-ppl", POINTS)
def mixture(x: Any) -> Any:
    from pyro.distributions import MixtureOfDiagNormals

    ones = torch.ones(x.shape[0], 2, 2, dtype=x.dtype)
    return MixtureOfDiagNormals(x[:, None].expand(-1, 2, -1), ones, ones[..., 0] * 0).log_prob(x)


def _solver(name: str) -> Callable[..., Any]:
    def solver(x: Any) -> Any:
        times = torch.linspace(0, 1, 4, dtype=x.dtype)
        solve = importlib.import_module("torchdyn.numerics").odeint
        return solve(lambda t, y: -y * 0.5, x, times, solver=name, atol=1e-4, rtol=1e-4)[1]

    return solver


for _name in ("euler", "rk4", "dopri5", "tsit5"):
    _function(f"torchdyn {_name}", "torchdyn", "torchdyn", POINTS, loop=(
        "steps are taken, or rejected and made smaller by the error that was found, until the time is reached"
        if _name in ("dopri5", "tsit5") else ""))(_solver(_name))


@_function("torchsde euler", "torchsde", "torchsde", POINTS, refused="D2S214",
           why="`BrownianInterval` makes a seed sequence of NumPy's")
def diffusion(x: Any) -> Any:
    import torchsde

    class Equation(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def f(self, t: Any, y: Any) -> Any:
            return -y * 0.5

        def g(self, t: Any, y: Any) -> Any:
            return y * 0.1

    noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=x.shape, dtype=x.dtype, entropy=3)
    return torchsde.sdeint(Equation(), x, torch.linspace(0, 1, 3, dtype=x.dtype), bm=noise, dt=0.25, method="euler")


@_function("torchcde natural cubic spline", "torchcde", "torchcde",
           [[_random((2, n, 3), n, torch.float64)] for n in (5, 7, 6)], refused="D2S213",
           why="`numpy.empty` of an open size")
def spline(x: Any) -> Any:
    import torchcde

    curve = torchcde.CubicSpline(torchcde.natural_cubic_coeffs(x))
    return curve.evaluate(torch.tensor(0.5, dtype=x.dtype))


@_function("torchquad Trapezoid", "torchquad", "torchquad", POINTS)
def integral(x: Any) -> Any:
    from torchquad import Trapezoid

    total = x.sum()
    return Trapezoid().integrate(
        lambda v: (total * v[:, 0]).sin(), dim=1, N=11, integration_domain=[[0, 1]], backend="torch")


# -- optimizers


def _optimizer(path: str, name: str) -> Callable[..., Any]:
    def train(start: Any, target: Any) -> Any:
        weights = start.detach().clone().requires_grad_()
        optimizer = getattr(importlib.import_module(path), name)([weights], lr=0.05)
        loss = weights.sum()
        for _ in range(4):
            optimizer.zero_grad()
            loss = ((target.detach() - weights) ** 2).sum()
            loss.backward()
            optimizer.step()
            if loss < 0.5:
                break
        return weights.detach(), loss.detach()

    return train


for _name in ("RAdam", "Lamb", "AdaBound", "Yogi", "DiffGrad", "QHAdam", "NovoGrad", "Shampoo"):
    _function(f"torch-optimizer {_name}", "torch_optimizer", "torch-optimizer", PAIRS)(
        _optimizer("torch_optimizer", _name))
_function("torch-optimizer SWATS", "torch_optimizer", "torch-optimizer", PAIRS, refused="D2S222",
          why="a write to what may be a view of the gradient")(_optimizer("torch_optimizer", "SWATS"))
_function("lion-pytorch", "lion_pytorch", "lion-pytorch", PAIRS)(_optimizer("lion_pytorch", "Lion"))

# -- others


class _Average(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        ema = importlib.import_module("ema_pytorch").EMA
        self.average = ema(self.inner, beta=0.9, update_after_step=1, update_every=1)

    def forward(self, x: Any) -> Any:
        self.average.update()
        return self.average(x) + self.inner(x)


_add("ema-pytorch", "ema_pytorch", "ema-pytorch", _Average, [[_random((n, 3), n)] for n in (4, 6, 3)], modes=BOTH,
     tolerance=1e-5)


class _Spiking(nn.Module):
    def __init__(self, neuron: str = "Leaky", **options: Any) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.neuron = getattr(importlib.import_module("snntorch"), neuron)(beta=0.9, **options)

    def forward(self, x: Any) -> Any:
        state, spikes = self.neuron.reset_mem(), []
        for step in range(x.shape[0]):
            spike, *state = self.neuron(self.inner(x[step]), *(state if isinstance(state, (list, tuple)) else [state]))
            spikes.append(spike)
        return torch.stack(spikes)


class _Firing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.neuron = importlib.import_module("spikingjelly.activation_based.neuron").LIFNode()

    def forward(self, x: Any) -> Any:
        importlib.import_module("spikingjelly.activation_based.functional").reset_net(self)
        total = torch.zeros(())
        for step in range(x.shape[0]):
            total = total + self.neuron(self.inner(x[step]))
        return total


_add("snntorch Leaky", "snntorch", "snntorch", _Spiking, TIME, modes=BOTH, tolerance=1e-5)
_add("snntorch Synaptic", "snntorch", "snntorch", lambda: _Spiking("Synaptic", alpha=0.8), TIME, modes=BOTH,
     tolerance=1e-5)
_add("spikingjelly LIFNode", "spikingjelly", "spikingjelly", _Firing, TIME, modes=BOTH, tolerance=1e-5)


@_function("captum IntegratedGradients, Saliency", "captum", "captum", POINTS)
def attributions(x: Any) -> Any:
    from captum.attr import IntegratedGradients, Saliency

    def model(v: Any) -> Any:
        return (v**2).sum(1)

    return IntegratedGradients(model).attribute(x, n_steps=5), Saliency(model).attribute(x)


@_function("julius", "julius", "julius", [[_random((2, n), n)] for n in (64, 96, 80)], tolerance=1e-5)
def resample(x: Any) -> Any:
    import julius

    return julius.resample_frac(x, 4, 3), julius.lowpass_filter(x, 0.2)


_layer("pytorch-tabnet", "pytorch-tabnet", "pytorch_tabnet.tab_network", "TabNet",
       [[_random((n, 6), n)] for n in (8, 12, 6)], 6, 3, n_d=4, n_a=4, n_steps=2,
       group_attention_matrix=torch.eye(6), refused="D2S218", why="its sparsemax writes the tensor that it is given")


@_function("tensordict", "tensordict", "tensordict", POINTS)
def nested(x: Any) -> Any:
    from tensordict import TensorDict

    held = TensorDict({"a": x, "b": {"c": x * 2}}, batch_size=[x.shape[0]])
    more = held.apply(lambda tensor: tensor + 1)
    return more["b", "c"], held[0]["a"], torch.stack([held, more])["a"], held.batch_size


@_function("torchjd MGDA, Mean", "torchjd", "torchjd", POINTS, loop="goes on until the weights move little")
def aggregated(x: Any) -> Any:
    from torchjd.aggregation import MGDA, Mean

    return MGDA()(x.detach()), Mean()(x.detach())
