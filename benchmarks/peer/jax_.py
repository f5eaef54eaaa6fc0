"""JAX: ``jax.jit`` over ``lax.while_loop`` and ``lax.scan``."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jax
import jax.numpy as jnp
from data import HEADS, LAYERS, MOST_STEPS, transposed
from jax import lax
from protocol import Step, serve


def _linear(p: Any, key: str, x: Any) -> Any:
    return x @ p[f"p_{key}_w"] + p[f"p_{key}_b"]


def _norm(x: Any, w: Any, b: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def encoder(p: Any) -> Any:
    x = p["x"]
    b, t, d = x.shape
    for i in range(LAYERS):
        q, k, v = (_linear(p, f"{n}{i}", x).reshape(b, t, HEADS, d // HEADS).transpose(0, 2, 1, 3) for n in "qkv")
        y = jax.nn.softmax(q @ k.swapaxes(-1, -2) / (d // HEADS) ** 0.5, -1) @ v
        x = _norm(x + _linear(p, f"o{i}", y.transpose(0, 2, 1, 3).reshape(b, t, d)), p[f"p_m{i}_w"], p[f"p_m{i}_b"])
        y = _linear(p, f"b{i}", jax.nn.gelu(_linear(p, f"a{i}", x), approximate=False))
        x = _norm(x + y, p[f"p_n{i}_w"], p[f"p_n{i}_b"])
    return x


def language(p: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        h, c = state
        words, following = row
        i, f, g, o = jnp.split(_linear(p, "i", p["p_e"][words]) + _linear(p, "h", h), 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        logs = jax.nn.log_softmax(_linear(p, "o", h))
        return (h, c), -jnp.take_along_axis(logs, following[:, None], 1).mean()

    zeros = jnp.zeros((p["words"].shape[1], p["p_e"].shape[1]))
    return lax.scan(step, (zeros, zeros), (p["words"], p["next"]))[1].sum()


def recurrent(p: Any) -> Any:
    def step(state: Any) -> Any:
        t, going, h = state
        h = jnp.tanh(_linear(p, "i", p["x"][t]) + h @ p["p_s_w"])
        return t + 1, jnp.abs(h).max() <= 5.0, h

    return lax.while_loop(lambda s: s[1] & (s[0] < p["x"].shape[0]), step, (0, True, p["h"]))[2]


def power(p: Any) -> Any:
    def step(state: Any) -> Any:
        _, v = state
        w = p["a"] @ v
        w = w / jnp.linalg.norm(w)
        return jnp.abs(w - v).max(), w

    return lax.while_loop(lambda s: s[0] > 1e-6, step, (jnp.float32(1), p["v"]))[1]


def _cell(p: Any, x: Any, h: Any) -> Any:
    a, b = jnp.split(_linear(p, "i", x), 3, 1), jnp.split(_linear(p, "s", h), 3, 1)
    r, z = jax.nn.sigmoid(a[0] + b[0]), jax.nn.sigmoid(a[1] + b[1])
    n = jnp.tanh(a[2] + r * b[2])
    return n + z * (h - n)


def decode(p: Any) -> Any:
    batch = p["h"].shape[0]

    def step(state: Any) -> Any:
        n, word, done, h, out = state
        h = _cell(p, p["p_e"][word], h)
        word = _linear(p, "o", h).argmax(1)
        return n + 1, word, done | (word == 0), h, out.at[n].set(word)

    ones, none = jnp.ones(batch, jnp.int32), jnp.zeros((MOST_STEPS, batch), jnp.int32)
    start = (0, ones, jnp.zeros(batch, bool), p["h"], none)
    return lax.while_loop(lambda s: (s[0] < MOST_STEPS) & ~s[2].all(), step, start)[4]


def descend(p: Any) -> Any:
    gradient = jax.grad(lambda w: ((p["x"] @ w - p["y"]) ** 2).mean())

    def step(state: Any) -> Any:
        i, w = state
        return i + 1, w - 0.1 * gradient(w)

    return lax.while_loop(lambda s: s[0] < p["steps"], step, (0, p["w"]))[1]


def chain(p: Any) -> Any:
    x = p["p_x"]
    y = _norm(jax.nn.gelu(x * 1.5, approximate=False), p["p_w"], p["p_b"]) + x
    return (jax.nn.softmax(jax.nn.silu(y), -1) * x).sum()


def gated(p: Any) -> Any:
    return lax.scan(lambda h, x: (_cell(p, x, h), None), p["h"], p["x"])[0].sum()


FUNCTIONS = {"W1": encoder, "W2": language, "W3": recurrent, "W3b1": recurrent, "W4": power, "W5": decode,
             "W6": descend, "W7": chain, "GRU16": gated, "GRU128": gated}  # fmt: skip
TRAINED = ("W2", "W7", "GRU16", "GRU128")


def make(name: str) -> Step:
    """A call of a workload."""
    given = {key: jnp.asarray(value) for key, value in transposed(name).items()}
    function = FUNCTIONS[name]
    wanted = [key for key in given if key.startswith("p_")]
    if name not in TRAINED:
        run = jax.jit(function)
    else:
        def train(given: Any) -> Any:
            fixed = {key: value for key, value in given.items() if key not in wanted}
            grads = jax.grad(lambda p: function({**fixed, **p}))({key: given[key] for key in wanted})
            return [given[key] - 0.1 * grads[key] if name == "W2" else grads[key] for key in wanted]

        run = jax.jit(train)
    return lambda: jax.block_until_ready(run(given))


if __name__ == "__main__":
    serve({"jax.jit": make}, {"jax": jax.__version__})
