"""TensorFlow: ``tf.function``, whose loops AutoGraph makes ``tf.while_loop``s, and the same compiled by XLA."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tensorflow as tf
from data import HEADS, LAYERS, MOST_STEPS, transposed
from protocol import Make, Step, serve


def _linear(p: Any, key: str, x: Any) -> Any:
    w = p[f"p_{key}_w"]
    if len(x.shape) == 2:
        return tf.matmul(x, w) + p[f"p_{key}_b"]
    flat = tf.matmul(tf.reshape(x, (-1, x.shape[-1])), w) + p[f"p_{key}_b"]
    return tf.reshape(flat, (*x.shape[:-1], w.shape[1]))


def _norm(x: Any, w: Any, b: Any) -> Any:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, b, w, 1e-5)


def encoder(p: Any) -> Any:
    x = p["x"]
    b, t, d = x.shape
    for i in range(LAYERS):
        q, k, v = (tf.transpose(tf.reshape(_linear(p, f"{n}{i}", x), (b, t, HEADS, d // HEADS)), (0, 2, 1, 3))
                   for n in "qkv")  # fmt: skip
        y = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / (d // HEADS) ** 0.5), v)
        y = _linear(p, f"o{i}", tf.reshape(tf.transpose(y, (0, 2, 1, 3)), (b, t, d)))
        x = _norm(x + y, p[f"p_m{i}_w"], p[f"p_m{i}_b"])
        y = _linear(p, f"b{i}", tf.nn.gelu(_linear(p, f"a{i}", x)))
        x = _norm(x + y, p[f"p_n{i}_w"], p[f"p_n{i}_b"])
    return x


def language(p: Any) -> Any:
    h = tf.zeros((p["words"].shape[1], p["p_e"].shape[1]))
    c, loss = h, tf.zeros(())
    for t in tf.range(p["words"].shape[0]):
        i, f, g, o = tf.split(_linear(p, "i", tf.gather(p["p_e"], p["words"][t])) + _linear(p, "h", h), 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(p["next"][t], _linear(p, "o", h))
        loss = loss + tf.reduce_mean(each)
    return loss


def recurrent(p: Any) -> Any:
    h = p["h"]
    for t in tf.range(p["x"].shape[0]):
        h = tf.tanh(_linear(p, "i", p["x"][t]) + tf.matmul(h, p["p_s_w"]))
        if tf.reduce_max(tf.abs(h)) > 5.0:
            break
    return h


def power(p: Any) -> Any:
    v, change = p["v"], tf.ones(())
    while change > 1e-6:
        w = tf.linalg.matvec(p["a"], v)
        w = w / tf.norm(w)
        change = tf.reduce_max(tf.abs(w - v))
        v = w
    return v


def _cell(p: Any, x: Any, h: Any) -> Any:
    a, b = tf.split(_linear(p, "i", x), 3, 1), tf.split(_linear(p, "s", h), 3, 1)
    r, z = tf.sigmoid(a[0] + b[0]), tf.sigmoid(a[1] + b[1])
    n = tf.tanh(a[2] + r * b[2])
    return n + z * (h - n)


def decode(p: Any) -> Any:
    h = p["h"]
    word, done = tf.ones(h.shape[0], tf.int64), tf.zeros(h.shape[0], tf.bool)
    out = tf.TensorArray(tf.int64, MOST_STEPS, element_shape=(h.shape[0],))
    n = tf.constant(0)
    while n < MOST_STEPS and not tf.reduce_all(done):
        h = _cell(p, tf.gather(p["p_e"], word), h)
        word = tf.argmax(_linear(p, "o", h), 1)
        done = done | (word == 0)
        out = out.write(n, word)
        n += 1
    return out.stack()


def descend(p: Any) -> Any:
    w = p["w"]
    for _ in tf.range(p["steps"]):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_mean((tf.matmul(p["x"], w) - p["y"]) ** 2)
        w = w - 0.1 * tape.gradient(loss, w)
    return w


def chain(p: Any) -> Any:
    x = p["p_x"]
    y = _norm(tf.nn.gelu(x * 1.5), p["p_w"], p["p_b"]) + x
    return tf.reduce_sum(tf.nn.softmax(tf.nn.silu(y)) * x)


def gated(p: Any) -> Any:
    h = p["h"]
    for t in tf.range(p["x"].shape[0]):
        h = _cell(p, p["x"][t], h)
    return tf.reduce_sum(h)


FUNCTIONS = {"W1": encoder, "W2": language, "W3": recurrent, "W3b1": recurrent, "W4": power, "W5": decode,
             "W6": descend, "W7": chain, "GRU16": gated, "GRU128": gated}  # fmt: skip
TRAINED = ("W2", "W7", "GRU16", "GRU128")


def make(name: str, xla: bool) -> Step:
    """A call of a workload."""
    given = {key: tf.constant(value) for key, value in transposed(name).items()}
    function: Any = FUNCTIONS[name]
    wanted = [key for key in given if key.startswith("p_")]
    if name not in TRAINED:
        run = tf.function(function, jit_compile=xla)
        return lambda: run(given).numpy()
    inner = tf.autograph.experimental.do_not_convert  # the tape below is written for graphs already

    @inner
    def train(given: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([given[key] for key in wanted])
            loss = tf.function(function)(given)
        grads = [tf.convert_to_tensor(one) for one in tape.gradient(loss, [given[key] for key in wanted])]
        return [given[key] - 0.1 * grad if name == "W2" else grad for key, grad in zip(wanted, grads)]

    trained = tf.function(train, jit_compile=xla)
    return lambda: [one.numpy() for one in trained(given)]


def _column(xla: bool) -> Make:
    return lambda name: make(name, xla)


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    serve({"tf.function": _column(False), "XLA": _column(True)}, {"tensorflow": tf.__version__})
