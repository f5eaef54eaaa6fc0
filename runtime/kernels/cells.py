"""Cells of recurrent networks after their products: all that is elementwise in a step is one kernel, forward and back.

    gates = x @ W.T, h @ U.T                                    PyTorch's products
    h, c, kept = lstm_cell(gates_x, gates_h, bias_x, bias_h, c)
    d_gates, d_c = lstm_cell_backward(d_h, d_c, c, kept)        of both products, and summed of both biases

Like PyTorch's fused cells, they compute floats of 16 bits as float32 and round results once. ``..._reference`` says the
same in PyTorch's operators, and answers where the kernel cannot.
"""

from __future__ import annotations

import torch

from runtime.kernels import launch
from runtime.kernels.handwritten import Handwritten, alike

Pair = tuple[torch.Tensor, torch.Tensor]
Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

_LSTM = Handwritten([
    ("lstm_forward", "elements", "const T *x, const T *u, const T *bx, const T *bh, const T *c, T *h, T *d, T *kept, "
     "i64 n, i64 total", """
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < total; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at / n, j = at % n, base = row * 4 * n + j;
        R gate[4];
        for (int k = 0; k < 4; k++) {
            gate[k] = LOAD(x, base + k * n) + LOAD(u, base + k * n);
            if (bx) gate[k] += LOAD(bx, j + k * n) + LOAD(bh, j + k * n);
        }
        const R i = SIGMOID(gate[0]), f = SIGMOID(gate[1]), g = TANH(gate[2]), o = SIGMOID(gate[3]);
        const R made = f * LOAD(c, at) + i * g;
        STORE(d, at, made);
        STORE(h, at, o * TANH(made));
        STORE(kept, base, i); STORE(kept, base + n, f); STORE(kept, base + 2 * n, g); STORE(kept, base + 3 * n, o);
    }"""),
    ("lstm_backward", "elements", "const T *gh, const T *gc, const T *c, const T *d, const T *kept, T *gates, T *back, "
     "i64 n, i64 total", """
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < total; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at / n, j = at % n, base = row * 4 * n + j;
        const R i = LOAD(kept, base), f = LOAD(kept, base + n), g = LOAD(kept, base + 2 * n);
        const R o = LOAD(kept, base + 3 * n), t = TANH(LOAD(d, at));
        const R h = gh ? LOAD(gh, at) : (R)0;
        const R s = (gc ? LOAD(gc, at) : (R)0) + h * o * ((R)1 - t * t);
        STORE(gates, base, s * g * i * ((R)1 - i));
        STORE(gates, base + n, s * LOAD(c, at) * f * ((R)1 - f));
        STORE(gates, base + 2 * n, s * i * ((R)1 - g * g));
        STORE(gates, base + 3 * n, h * t * o * ((R)1 - o));
        STORE(back, at, s * f);
    }"""),
])  # fmt: skip

_GRU = Handwritten([
    ("gru_forward", "elements", "const T *x, const T *u, const T *bx, const T *bh, const T *h, T *y, T *kept, i64 n, "
     "i64 total", """
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < total; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at / n, j = at % n, base = row * 3 * n + j, to = row * 4 * n + j;
        R a[3], b[3];
        for (int k = 0; k < 3; k++) {
            a[k] = LOAD(x, base + k * n); b[k] = LOAD(u, base + k * n);
            if (bx) { a[k] += LOAD(bx, j + k * n); b[k] += LOAD(bh, j + k * n); }
        }
        const R r = SIGMOID(a[0] + b[0]), z = SIGMOID(a[1] + b[1]), m = TANH(a[2] + r * b[2]);
        STORE(y, at, m + z * (LOAD(h, at) - m));
        STORE(kept, to, r); STORE(kept, to + n, z); STORE(kept, to + 2 * n, m); STORE(kept, to + 3 * n, b[2]);
    }"""),
    ("gru_backward", "elements", "const T *g, const T *h, const T *kept, T *dx, T *du, T *dh, i64 n, i64 total", """
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < total; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at / n, j = at % n, base = row * 3 * n + j, from = row * 4 * n + j;
        const R r = LOAD(kept, from), z = LOAD(kept, from + n), m = LOAD(kept, from + 2 * n);
        const R v = LOAD(kept, from + 3 * n), grad = LOAD(g, at);
        const R dm = grad * ((R)1 - z) * ((R)1 - m * m), dz = grad * (LOAD(h, at) - m) * z * ((R)1 - z);
        const R dr = dm * v * r * ((R)1 - r);
        STORE(dx, base, dr); STORE(dx, base + n, dz); STORE(dx, base + 2 * n, dm);
        STORE(du, base, dr); STORE(du, base + n, dz); STORE(du, base + 2 * n, dm * r);
        STORE(dh, at, grad * z);
    }"""),
])  # fmt: skip


def _fits(cell: Handwritten, *tensors: torch.Tensor | None) -> bool:
    """Whether a kernel can take them: one dtype and device, dense, and compiled."""
    known = alike(tensors)
    return known is not None and launch.machine.is_there() and cell.is_ready(*known)


def _sizes(gates: int, wide: torch.Tensor, narrow: torch.Tensor) -> None:
    rows, n = narrow.shape
    if wide.shape != (rows, gates * n):
        raise ValueError(f"gates of {tuple(wide.shape)} for a state of {tuple(narrow.shape)}")


def _wide(*tensors: torch.Tensor | None) -> list[torch.Tensor | None]:
    """Floats of 16 bits as float32."""
    return [one.float() if one is not None and one.dtype.itemsize == 2 else one for one in tensors]


def lstm_cell_reference(x: torch.Tensor, u: torch.Tensor, bx: torch.Tensor | None, bh: torch.Tensor | None,
                        c: torch.Tensor) -> Triple:  # fmt: skip
    """What ``lstm_cell`` gives, in PyTorch's operators."""
    dtype = c.dtype
    x_, u_, bx_, bh_, c_ = _wide(x, u, bx, bh, c)
    assert x_ is not None and u_ is not None and c_ is not None
    gates = x_ + u_ if bx_ is None or bh_ is None else x_ + u_ + bx_ + bh_
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    made = f * c_ + i * g
    h = o * made.tanh()
    return h.to(dtype), made.to(dtype), torch.cat([i, f, g, o], 1).to(dtype)


def lstm_cell(x: torch.Tensor, u: torch.Tensor, bx: torch.Tensor | None, bh: torch.Tensor | None, c: torch.Tensor
              ) -> Triple:  # fmt: skip
    """A step of an LSTM from the products of its input and its state: the state, the cell, and what backward reads.

    x, u: ``[rows, 4 n]``, gates in PyTorch's order; bx, bh: ``[4 n]`` both or none; c: ``[rows, n]``.
    Errors raised: ValueError for sizes that do not fit.
    """
    _sizes(4, x, c)
    _sizes(4, u, c)
    if (bx is None) != (bh is None) or not _fits(_LSTM, x, u, bx, bh, c):
        return lstm_cell_reference(x, u, bx, bh, c)
    h, made, kept = torch.empty_like(c), torch.empty_like(c), torch.empty_like(x)
    total = c.numel()
    _LSTM.launch(0, c.dtype, c.device, total, 1, x, u, bx, bh, c, h, made, kept, c.shape[1], total)
    return h, made, kept


def lstm_cell_backward_reference(gh: torch.Tensor | None, gc: torch.Tensor | None, c: torch.Tensor, made: torch.Tensor,
                                 kept: torch.Tensor) -> Pair:  # fmt: skip
    """What ``lstm_cell_backward`` gives, in PyTorch's operators."""
    dtype = c.dtype
    gh, gc, c_, made_, kept_ = _wide(gh, gc, c, made, kept)
    assert c_ is not None and made_ is not None and kept_ is not None
    i, f, g, o = kept_.chunk(4, 1)
    t = made_.tanh()
    h = torch.zeros_like(c_) if gh is None else gh
    s = (torch.zeros_like(c_) if gc is None else gc) + h * o * (1 - t * t)
    gates = [s * g * i * (1 - i), s * c_ * f * (1 - f), s * i * (1 - g * g), h * t * o * (1 - o)]
    return torch.cat(gates, 1).to(dtype), (s * f).to(dtype)


def lstm_cell_backward(gh: torch.Tensor | None, gc: torch.Tensor | None, c: torch.Tensor, made: torch.Tensor,
                       kept: torch.Tensor) -> Pair:  # fmt: skip
    """The gradients of the gates and of the cell before the step, from those of the state and the cell (None: zero).

    Errors raised: ValueError for sizes that do not fit.
    """
    _sizes(4, kept, c)
    if not _fits(_LSTM, gh, gc, c, made, kept):
        return lstm_cell_backward_reference(gh, gc, c, made, kept)
    gates, back = torch.empty_like(kept), torch.empty_like(c)
    total = c.numel()
    _LSTM.launch(1, c.dtype, c.device, total, 1, gh, gc, c, made, kept, gates, back, c.shape[1], total)
    return gates, back


def gru_cell_reference(x: torch.Tensor, u: torch.Tensor, bx: torch.Tensor | None, bh: torch.Tensor | None,
                       h: torch.Tensor) -> Pair:  # fmt: skip
    """What ``gru_cell`` gives, in PyTorch's operators."""
    dtype = h.dtype
    x_, u_, bx_, bh_, h_ = _wide(x, u, bx, bh, h)
    assert x_ is not None and u_ is not None and h_ is not None
    if bx_ is not None and bh_ is not None:
        x_, u_ = x_ + bx_, u_ + bh_
    (xr, xz, xn), (ur, uz, un) = x_.chunk(3, 1), u_.chunk(3, 1)
    r, z = (xr + ur).sigmoid(), (xz + uz).sigmoid()
    n = (xn + r * un).tanh()
    return (n + z * (h_ - n)).to(dtype), torch.cat([r, z, n, un], 1).to(dtype)


def gru_cell(x: torch.Tensor, u: torch.Tensor, bx: torch.Tensor | None, bh: torch.Tensor | None, h: torch.Tensor
             ) -> Pair:  # fmt: skip
    """A step of a GRU from the products of its input and its state: the state, and what backward reads.

    x, u: ``[rows, 3 n]``, gates in PyTorch's order; bx, bh: ``[3 n]`` both or none; h: ``[rows, n]``.
    Errors raised: ValueError for sizes that do not fit.
    """
    _sizes(3, x, h)
    _sizes(3, u, h)
    if (bx is None) != (bh is None) or not _fits(_GRU, x, u, bx, bh, h):
        return gru_cell_reference(x, u, bx, bh, h)
    rows, n = h.shape
    y, kept = torch.empty_like(h), h.new_empty(rows, 4 * n)
    _GRU.launch(0, h.dtype, h.device, rows * n, 1, x, u, bx, bh, h, y, kept, n, rows * n)
    return y, kept


def gru_cell_backward_reference(g: torch.Tensor, h: torch.Tensor, kept: torch.Tensor) -> Triple:
    """What ``gru_cell_backward`` gives, in PyTorch's operators."""
    dtype = h.dtype
    g_, h_, kept_ = _wide(g, h, kept)
    assert g_ is not None and h_ is not None and kept_ is not None
    r, z, n, v = kept_.chunk(4, 1)
    dn, dz = g_ * (1 - z) * (1 - n * n), g_ * (h_ - n) * z * (1 - z)
    dr = dn * v * r * (1 - r)
    return torch.cat([dr, dz, dn], 1).to(dtype), torch.cat([dr, dz, dn * r], 1).to(dtype), (g_ * z).to(dtype)


def gru_cell_backward(g: torch.Tensor, h: torch.Tensor, kept: torch.Tensor) -> Triple:
    """The gradients of both products and of the state before the step, from that of the state.

    Errors raised: ValueError for sizes that do not fit.
    """
    _sizes(4, kept, h)
    if not _fits(_GRU, g, h, kept):
        return gru_cell_backward_reference(g, h, kept)
    rows, n = h.shape
    dx, du, dh = h.new_empty(rows, 3 * n), h.new_empty(rows, 3 * n), torch.empty_like(h)
    _GRU.launch(1, h.dtype, h.device, rows * n, 1, g, h, kept, dx, du, dh, n, rows * n)
    return dx, du, dh


__all__ = ["gru_cell", "gru_cell_backward", "gru_cell_backward_reference", "gru_cell_reference", "lstm_cell",
           "lstm_cell_backward", "lstm_cell_backward_reference", "lstm_cell_reference"]  # fmt: skip
