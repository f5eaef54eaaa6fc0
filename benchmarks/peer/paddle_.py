"""Paddle: dygraph, and ``paddle.jit.to_static``."""

from __future__ import annotations

import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import paddle
import paddle.nn.functional as F
from data import HEADS, LAYERS, MOST_STEPS, arrays
from protocol import Make, Step, serve


def _linear(p: Any, key: str, x: Any) -> Any:
    return paddle.matmul(x, p[f"p_{key}_w"], transpose_y=True) + p[f"p_{key}_b"]


def encoder(p: Any) -> Any:
    x = p["x"]
    b, t, d = x.shape
    for i in range(LAYERS):
        q, k, v = (_linear(p, f"{n}{i}", x).reshape((b, t, HEADS, d // HEADS)).transpose((0, 2, 1, 3)) for n in "qkv")
        y = F.softmax(paddle.matmul(q, k, transpose_y=True) / (d // HEADS) ** 0.5) @ v
        y = _linear(p, f"o{i}", y.transpose((0, 2, 1, 3)).reshape((b, t, d)))
        x = F.layer_norm(x + y, d, p[f"p_m{i}_w"], p[f"p_m{i}_b"])
        y = _linear(p, f"b{i}", F.gelu(_linear(p, f"a{i}", x)))
        x = F.layer_norm(x + y, d, p[f"p_n{i}_w"], p[f"p_n{i}_b"])
    return x


def language(p: Any) -> Any:
    h = paddle.zeros((p["words"].shape[1], p["p_e"].shape[1]))
    c, loss = h, paddle.zeros(())
    for t in range(p["words"].shape[0]):
        gates = _linear(p, "i", F.embedding(p["words"][t], p["p_e"])) + _linear(p, "h", h)
        i, f, g, o = paddle.split(gates, 4, 1)
        c = F.sigmoid(f) * c + F.sigmoid(i) * paddle.tanh(g)
        h = F.sigmoid(o) * paddle.tanh(c)
        loss = loss + F.cross_entropy(_linear(p, "o", h), p["next"][t])
    return loss


def recurrent(p: Any) -> Any:
    x, h = p["x"], p["h"]
    for t in range(x.shape[0]):
        h = paddle.tanh(_linear(p, "i", x[t]) + paddle.matmul(h, p["p_s_w"], transpose_y=True))
        if h.abs().max() > 5.0:
            break
    return h


def power(p: Any) -> Any:
    a, v = p["a"], p["v"]
    change = paddle.ones(())
    while change > 1e-6:
        w = a @ v
        w = w / paddle.linalg.norm(w)
        change = (w - v).abs().max()
        v = w
    return v


def _cell(p: Any, x: Any, h: Any) -> Any:
    a, b = paddle.split(_linear(p, "i", x), 3, 1), paddle.split(_linear(p, "s", h), 3, 1)
    r, z = F.sigmoid(a[0] + b[0]), F.sigmoid(a[1] + b[1])
    n = paddle.tanh(a[2] + r * b[2])
    return n + z * (h - n)


def decode(p: Any) -> Any:
    h = p["h"]
    word, done = paddle.ones((h.shape[0],), "int64"), paddle.zeros((h.shape[0],), "bool")
    out = paddle.zeros((MOST_STEPS, h.shape[0]), "int64")
    n = paddle.zeros((), "int64")
    while paddle.logical_and(n < MOST_STEPS, paddle.logical_not(done.all())):
        h = _cell(p, F.embedding(word, p["p_e"]), h)
        word = _linear(p, "o", h).argmax(1)
        done = paddle.logical_or(done, word == 0)
        out = paddle.scatter(out, n.reshape((1,)), word.unsqueeze(0))
        n = n + 1
    return out


def chain(p: Any) -> Any:
    x = p["p_x"]
    y = F.layer_norm(F.gelu(x * 1.5), x.shape[1], p["p_w"], p["p_b"]) + x
    return (F.softmax(F.silu(y)) * x).sum()


def gated(p: Any) -> Any:
    x, h = p["x"], p["h"]
    for t in range(x.shape[0]):
        h = _cell(p, x[t], h)
    return h.sum()


def descend(p: Any) -> Any:
    w = p["w"]
    for _ in range(int(p["steps"])):
        q = w.detach()
        q.stop_gradient = False
        (gradient,) = paddle.grad(((p["x"] @ q - p["y"]) ** 2).mean(), [q])
        w = w - 0.1 * gradient
    return w


FUNCTIONS = {"W1": encoder, "W2": language, "W3": recurrent, "W3b1": recurrent, "W4": power, "W5": decode,
             "W6": descend, "W7": chain, "GRU16": gated, "GRU128": gated}  # fmt: skip
TRAINED = ("W2", "W7", "GRU16", "GRU128")


def make(name: str, static: bool) -> Step:
    """A call of a workload."""
    given = {key: paddle.to_tensor(value) for key, value in arrays(name).items()}
    function: Any = FUNCTIONS[name]
    if static:
        if name == "W6":
            raise KeyError("gradients inside of to_static")
        function = paddle.jit.to_static(function, full_graph=True)
    if name not in TRAINED:
        def step() -> Any:
            with paddle.set_grad_enabled(name == "W6"):
                return function(given).numpy()

        return step
    wanted = [value for key, value in given.items() if key.startswith("p_")]
    for one in wanted:
        one.stop_gradient = False

    def train() -> Any:
        grads = paddle.grad(function(given), wanted)
        with paddle.no_grad():
            return [(one - 0.1 * grad if name == "W2" else grad).numpy() for one, grad in zip(wanted, grads)]

    return train


def _column(static: bool) -> Make:
    return lambda name: make(name, static)


if __name__ == "__main__":
    paddle.set_device("cpu")
    serve({"Paddle dygraph": _column(False), "Paddle to_static": _column(True)}, {"paddle": paddle.__version__})
