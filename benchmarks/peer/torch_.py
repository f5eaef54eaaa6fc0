"""PyTorch and dy2static: eager, the interpreter, C, torch.compile, torch.jit.script, a hand-written while_loop."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from data import HEADS, LAYERS, MOST_STEPS, arrays
from protocol import Make, Step, serve

from dy2static import InputSpec, to_static

Tensors = dict[str, torch.Tensor]


def encoder(p: Tensors, x: torch.Tensor) -> torch.Tensor:
    """A post-norm transformer encoder."""
    b, t, d = x.shape
    for i in range(LAYERS):
        q, k, v = (F.linear(x, p[f"p_{n}{i}_w"], p[f"p_{n}{i}_b"]).view(b, t, HEADS, d // HEADS).transpose(1, 2)
                   for n in "qkv")  # fmt: skip
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        y = F.linear(y, p[f"p_o{i}_w"], p[f"p_o{i}_b"])
        x = F.layer_norm(x + y, (d,), p[f"p_m{i}_w"], p[f"p_m{i}_b"])
        y = F.linear(F.gelu(F.linear(x, p[f"p_a{i}_w"], p[f"p_a{i}_b"])), p[f"p_b{i}_w"], p[f"p_b{i}_b"])
        x = F.layer_norm(x + y, (d,), p[f"p_n{i}_w"], p[f"p_n{i}_b"])
    return x


def language(words: torch.Tensor, following: torch.Tensor, e: torch.Tensor, iw: torch.Tensor, ib: torch.Tensor,
             hw: torch.Tensor, hb: torch.Tensor, ow: torch.Tensor, ob: torch.Tensor) -> torch.Tensor:  # fmt: skip
    """The loss of an LSTM's cells."""
    h = e.new_zeros(words.shape[1], e.shape[1])
    c = h
    loss = e.new_zeros(())
    for t in range(words.shape[0]):
        gates = F.linear(e[words[t]], iw, ib) + F.linear(h, hw, hb)
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        loss = loss + F.cross_entropy(F.linear(h, ow, ob), following[t])
    return loss


def recurrent(x: torch.Tensor, h: torch.Tensor, iw: torch.Tensor, ib: torch.Tensor, sw: torch.Tensor) -> torch.Tensor:
    """A recurrent network that decides after each row whether to go on."""
    for t in range(x.shape[0]):
        h = torch.tanh(F.linear(x[t], iw, ib) + F.linear(h, sw))
        if bool(h.abs().max() > 5.0):
            break
    return h


def power(a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The eigenvector of the largest eigenvalue."""
    change = a.new_ones(())
    while bool(change > 1e-6):
        w = a @ v
        w = w / w.norm()
        change = (w - v).abs().max()
        v = w
    return v


def decode(h: torch.Tensor, e: torch.Tensor, iw: torch.Tensor, ib: torch.Tensor, sw: torch.Tensor, sb: torch.Tensor,
           ow: torch.Tensor, ob: torch.Tensor, most: int) -> torch.Tensor:  # fmt: skip
    """Words, until each sequence had word 0, or there are enough."""
    word = torch.ones(h.shape[0], dtype=torch.int64, device=h.device)
    done = torch.zeros(h.shape[0], dtype=torch.bool, device=h.device)
    out = torch.zeros(most, h.shape[0], dtype=torch.int64, device=h.device)
    n = 0
    while n < most and not bool(done.all()):
        a, b = F.linear(e[word], iw, ib).chunk(3, 1), F.linear(h, sw, sb).chunk(3, 1)
        r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        new = torch.tanh(a[2] + r * b[2])
        h = new + z * (h - new)
        word = F.linear(h, ow, ob).argmax(1)
        done = done | (word == 0)
        out[n] = word
        n += 1
    return out


def descend(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Gradient descent, with the gradient of the mean square written out by autograd."""
    i = 0
    while i < steps:
        p = w.detach().requires_grad_()
        loss = ((x @ p - y) ** 2).mean()
        (gradient,) = torch.autograd.grad(loss, [p])
        w = w - 0.1 * gradient
        i += 1
    return w


def chain(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Activations, a norm, a softmax."""
    y = F.layer_norm(F.gelu(x * 1.5), (x.shape[1],), w, b) + x
    return (torch.softmax(F.silu(y), -1) * x).sum()


def gated(x: torch.Tensor, h: torch.Tensor, iw: torch.Tensor, ib: torch.Tensor, sw: torch.Tensor, sb: torch.Tensor
          ) -> torch.Tensor:  # fmt: skip
    """A loop over rows with a GRU cell, written out."""
    for t in range(x.shape[0]):
        a, b = F.linear(x[t], iw, ib).chunk(3, 1), F.linear(h, sw, sb).chunk(3, 1)
        r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        n = torch.tanh(a[2] + r * b[2])
        h = n + z * (h - n)
    return h.sum()


FUNCTIONS: dict[str, tuple[Any, list[str]]] = {
    "W2": (language, "words next p_e p_i_w p_i_b p_h_w p_h_b p_o_w p_o_b".split()),
    "W3": (recurrent, "x h p_i_w p_i_b p_s_w".split()), "W4": (power, "a v".split()),
    "W5": (decode, "h p_e p_i_w p_i_b p_s_w p_s_b p_o_w p_o_b".split()), "W6": (descend, "w x y steps".split()),
    "W7": (chain, "p_x p_w p_b".split()), "GRU": (gated, "x h p_i_w p_i_b p_s_w p_s_b".split()),
}  # fmt: skip
TRAINED = ("W2", "W7", "GRU16", "GRU128")


def _recurrent_by_hand(x: torch.Tensor, h: torch.Tensor, iw: torch.Tensor, ib: torch.Tensor, sw: torch.Tensor) -> Any:
    def go_on(t: torch.Tensor, going: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return going & (t < x.shape[0])

    def step(t: torch.Tensor, going: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        row = torch.index_select(x, 0, t.reshape(1)).squeeze(0)
        new = torch.tanh(F.linear(row, iw, ib) + F.linear(h, sw))
        return t + 1, new.abs().max() <= 5.0, new

    start = (torch.zeros((), dtype=torch.int64), torch.ones((), dtype=torch.bool), h)
    return torch.ops.higher_order.while_loop(go_on, step, start, ())[2]


def _power_by_hand(a: torch.Tensor, v: torch.Tensor) -> Any:
    def go_on(change: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return change > 1e-6

    def step(change: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        w = a @ v
        w = w / w.norm()
        return (w - v).abs().max(), w

    return torch.ops.higher_order.while_loop(go_on, step, (torch.ones(()), v), ())[1]


BY_HAND = {"W3": _recurrent_by_hand, "W4": _power_by_hand}


def make(name: str, column: str) -> Step:
    """A call of a workload."""
    given = {key: torch.from_numpy(value.copy()) if value.ndim else torch.tensor(value.item())
             for key, value in arrays(name).items()}  # fmt: skip
    kind = "GRU" if name.startswith("GRU") else name.removesuffix("b1")
    if name == "W1":
        params = {key: value for key, value in given.items() if key != "x"}

        def function(x: torch.Tensor) -> torch.Tensor:
            return encoder(params, x)

        names = ["x"]
    else:
        function, names = FUNCTIONS[kind]
    args: list[Any] = [given[key] for key in names]
    if name == "W5":
        args.append(MOST_STEPS)
    wanted = [given[key] for key in names if key.startswith("p_")]
    if column == "torch.jit.script":
        if kind in ("W1", "W6"):
            raise KeyError("a dict of parameters, gradients inside")
        function = torch.jit.script(function)
    elif column == "torch.compile":
        function = torch.compile(function)
    elif column == "while_loop by hand":
        function = torch.compile(BY_HAND[kind])
    elif column != "eager":
        spec = [InputSpec([None, *given[key].shape[1:]] if key in ("x", "words", "next") else [*given[key].shape],
                          given[key].dtype) for key in names] if kind in ("W2", "W3", "GRU") else None  # fmt: skip
        function = to_static(function, backend=column.removeprefix("dy2static "), input_spec=spec)
    if name in TRAINED:
        for one in wanted:
            one.requires_grad_()

        def train() -> Any:
            loss = function(*args)
            grads = torch.autograd.grad(loss, wanted)
            if name != "W2":
                return [one.numpy() for one in grads]
            with torch.no_grad():
                return [(one - 0.1 * grad).numpy() for one, grad in zip(wanted, grads)]

        return train

    def step() -> Any:
        with torch.set_grad_enabled(name == "W6"):
            return function(*args).detach().numpy()

    return step


COLUMNS = ["eager", "dy2static interpreter", "dy2static c", "torch.compile", "torch.jit.script", "while_loop by hand"]


def _column(column: str) -> Make:
    return lambda name: make(name, column)


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve({column: _column(column) for column in COLUMNS}, {"torch": torch.__version__})
