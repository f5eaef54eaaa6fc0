"""Many tensors at once: a step of an optimizer, or the norm of all gradients, in one launch or three.

    sgd_step(parameters, gradients, buffers, lr=0.1, momentum=0.9)
    adam_step(parameters, gradients, means, squares, step=3, lr=1e-3, decoupled=True)         decoupled: AdamW
    norm = clip_norm(gradients, 1.0)

The tensors are cut into parts, a block of threads each; which part of which tensor a block has stands in a table on the
device. ``..._reference`` says the same in PyTorch's operators, and answers where the kernels cannot. Numbers are
computed in the tensors' dtype, those of 16 bits as float32, rounded once for each tensor that is written.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from runtime.kernels import launch
from runtime.kernels.handwritten import Handwritten, alike

PART = 1 << 15
"""Elements of a block."""

Tensors = Sequence[torch.Tensor]

_EACH = """
    for (i64 block = blockIdx.x; block < count; block += gridDim.x) {
    const i64 *part = parts + 3 * block, *own = table + WORDS * part[0];
    const i64 begin = part[1], end = part[2];
"""

_SGD = Handwritten([(
    "sgd", "rows", "const i64 *parts, const i64 *table, i64 count, double rate, double momentum, double dampening, "
    "double decay, i64 nesterov, i64 maximize, i64 first", _EACH.replace("WORDS", "3") + """
    T *p = (T *)own[0]; const T *g = (const T *)own[1]; T *b = (T *)own[2];
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const R x = LOAD(p, i);
        R d = maximize ? -LOAD(g, i) : LOAD(g, i);
        if (decay != 0) d = d + (R)decay * x;
        if (momentum != 0) {
            const R m = first ? d : LOAD(b, i) * (R)momentum + (R)(1 - dampening) * d;
            STORE(b, i, m);
            d = nesterov ? d + (R)momentum * m : m;
        }
        STORE(p, i, x - (R)rate * d);
    }}"""
)])  # fmt: skip

_ADAM = Handwritten([(
    "adam", "rows", "const i64 *parts, const i64 *table, i64 count, double rate, double beta1, double beta2, "
    "double eps, double decay, double step_size, double root, i64 decoupled, i64 maximize",
    _EACH.replace("WORDS", "4") + """
    T *p = (T *)own[0]; const T *g = (const T *)own[1]; T *m = (T *)own[2], *v = (T *)own[3];
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
        R x = LOAD(p, i), d = maximize ? -LOAD(g, i) : LOAD(g, i);
        if (decay != 0) { if (decoupled) x = x * (R)(1 - rate * decay); else d = d + (R)decay * x; }
        R mean = LOAD(m, i), square = LOAD(v, i);
        mean = mean + (R)(1 - beta1) * (d - mean);
        square = square * (R)beta2 + (R)(1 - beta2) * d * d;
        STORE(m, i, mean);
        STORE(v, i, square);
        STORE(p, i, x - (R)step_size * (mean / (SQRT(square) / (R)root + (R)eps)));
    }}"""
)])  # fmt: skip

_CLIP = Handwritten([
    ("squares", "rows", "const i64 *parts, const i64 *table, i64 count, R *sums", _EACH.replace("WORDS", "1") + """
    const T *g = (const T *)own[0];
    R sum = 0;
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) { const R v = LOAD(g, i); sum += v * v; }
    sum = block_join<join_add>(sum);
    if (threadIdx.x == 0) sums[block] = sum;
    }"""),
    ("whole_norm", "rows", "const R *sums, i64 count, double most, R *factor, T *total", """
    R sum = 0;
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) sum += sums[i];
    sum = block_join<join_add>(sum);
    if (threadIdx.x == 0) {
        const R norm = SQRT(sum), scale = (R)most / (norm + (R)1e-6);
        *factor = scale > 1 ? (R)1 : scale;
        STORE(total, 0, norm);
    }"""),
    ("scale", "rows", "const i64 *parts, const i64 *table, i64 count, const R *factor",
     _EACH.replace("WORDS", "1") + """
    T *g = (T *)own[0];
    const R scale = *factor;
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) STORE(g, i, LOAD(g, i) * scale);
    }"""),
])  # fmt: skip


def _tables(lists: Sequence[Tensors], device: torch.device) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Parts, the memory of each tensor, and how many parts there are; on the device, without waiting for it."""
    parts = [(number, begin, min(begin + PART, one.numel())) for number, one in enumerate(lists[0])
             for begin in range(0, one.numel(), PART)]  # fmt: skip
    words = [one.data_ptr() for tensors in zip(*lists) for one in tensors]
    made = torch.tensor([word for part in parts for word in part] + words, dtype=torch.int64, device="cpu")
    if device.type != "cpu":
        made = made.pin_memory().to(device, non_blocking=True)
    return made[: 3 * len(parts)], made[3 * len(parts) :], len(parts)


def _fit(kernels: Handwritten, lists: Sequence[Tensors]) -> tuple[torch.dtype, torch.device] | None:
    """The dtype and device of all, where kernels can take them."""
    if not lists[0] or any([one.shape for one in tensors] != [one.shape for one in lists[0]] for tensors in lists):
        return None
    known = alike(one for tensors in lists for one in tensors)
    return known if known is not None and launch.machine.is_there() and kernels.is_ready(*known) else None


def _written(*lists: Tensors) -> None:
    for tensors in lists:
        for one in tensors:
            torch.autograd.graph.increment_version(one)


@torch.no_grad()
def sgd_step_reference(
    parameters: Tensors, gradients: Tensors, buffers: Tensors, *, lr: float, momentum: float = 0.0,
    dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False, maximize: bool = False,
    first: bool = False,
) -> None:  # fmt: skip
    """What ``sgd_step`` does, in PyTorch's operators."""
    for place, (p, g) in enumerate(zip(parameters, gradients)):
        d = -g if maximize else g
        if weight_decay:
            d = d.add(p, alpha=weight_decay)
        if momentum:
            b = buffers[place]
            b.copy_(d) if first else b.mul_(momentum).add_(d, alpha=1 - dampening)
            d = d.add(b, alpha=momentum) if nesterov else b
        p.add_(d, alpha=-lr)


@torch.no_grad()
def sgd_step(
    parameters: Tensors, gradients: Tensors, buffers: Tensors, *, lr: float, momentum: float = 0.0,
    dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False, maximize: bool = False,
    first: bool = False,
) -> None:  # fmt: skip
    """A step of ``torch.optim.SGD``, in place. buffers: of the momentum, ``[]`` without; first: nothing is in them."""
    options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
               "nesterov": nesterov, "maximize": maximize, "first": first}  # fmt: skip
    lists = [parameters, gradients, buffers if momentum else parameters]
    known = _fit(_SGD, lists)
    if known is None:
        sgd_step_reference(parameters, gradients, buffers, **options)  # type: ignore[arg-type]
        return
    parts, table, count = _tables(lists, known[1])
    _SGD.launch(0, *known, count, PART, parts, table, count, float(lr), float(momentum), float(dampening),
                float(weight_decay), nesterov, maximize, first)  # fmt: skip
    _written(parameters, buffers if momentum else [])


@torch.no_grad()
def adam_step_reference(
    parameters: Tensors, gradients: Tensors, means: Tensors, squares: Tensors, *, step: int, lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, decoupled: bool = False,
    maximize: bool = False,
) -> None:  # fmt: skip
    """What ``adam_step`` does, in PyTorch's operators."""
    for p, g, m, v in zip(parameters, gradients, means, squares):
        d = -g if maximize else g
        if weight_decay and decoupled:
            p.mul_(1 - lr * weight_decay)
        elif weight_decay:
            d = d.add(p, alpha=weight_decay)
        m.lerp_(d, 1 - betas[0])
        v.mul_(betas[1]).addcmul_(d, d, value=1 - betas[1])
        denominator = (v.sqrt() / (1 - betas[1] ** step) ** 0.5).add_(eps)
        p.addcdiv_(m, denominator, value=-lr / (1 - betas[0] ** step))


@torch.no_grad()
def adam_step(
    parameters: Tensors, gradients: Tensors, means: Tensors, squares: Tensors, *, step: int, lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0, decoupled: bool = False,
    maximize: bool = False,
) -> None:  # fmt: skip
    """A step of ``torch.optim.Adam`` (``decoupled``: ``AdamW``), in place. step: its number, from 1 on."""
    lists = [parameters, gradients, means, squares]
    known = _fit(_ADAM, lists)
    if known is None:
        adam_step_reference(parameters, gradients, means, squares, step=step, lr=lr, betas=betas, eps=eps,
                            weight_decay=weight_decay, decoupled=decoupled, maximize=maximize)  # fmt: skip
        return
    parts, table, count = _tables(lists, known[1])
    _ADAM.launch(0, *known, count, PART, parts, table, count, float(lr), float(betas[0]), float(betas[1]), float(eps),
                 float(weight_decay), lr / (1 - betas[0] ** step), (1 - betas[1] ** step) ** 0.5, decoupled,
                 maximize)  # fmt: skip
    _written(parameters, means, squares)


@torch.no_grad()
def clip_norm_reference(gradients: Tensors, most: float) -> torch.Tensor:
    """What ``clip_norm`` does, in PyTorch's operators."""
    if not gradients:
        return torch.tensor(0.0)
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(one) for one in gradients]))
    factor = torch.clamp(most / (norm + 1e-6), max=1.0)
    for one in gradients:
        one.mul_(factor)
    return norm


@torch.no_grad()
def clip_norm(gradients: Tensors, most: float) -> torch.Tensor:
    """Scale gradients so that their norm as one vector is at most so much, in place; gives the norm before, on the
    device, as ``torch.nn.utils.clip_grad_norm_`` does. The host does not wait for it."""
    known = _fit(_CLIP, [gradients])
    if known is None:
        return clip_norm_reference(gradients, most)
    dtype, device = known
    parts, table, count = _tables([gradients], device)
    real = torch.float64 if dtype is torch.float64 else torch.float32
    sums = torch.empty(count + 1, dtype=real, device=device)
    total = torch.empty((), dtype=dtype, device=device)
    _CLIP.launch(0, *known, count, PART, parts, table, count, sums)
    _CLIP.launch(1, *known, 1, PART, sums, count, float(most), sums[count:], total)
    _CLIP.launch(2, *known, count, PART, parts, table, count, sums[count:])
    _written(gradients)
    return total


__all__ = ["PART", "adam_step", "adam_step_reference", "clip_norm", "clip_norm_reference", "sgd_step",
           "sgd_step_reference"]  # fmt: skip
