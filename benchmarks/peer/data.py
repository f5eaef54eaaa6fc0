"""What all frameworks compute with: one set of arrays for each workload, from one seed."""

from __future__ import annotations

import numpy as np

Arrays = dict[str, "np.ndarray"]

WORKLOADS = {
    "W1": "W1 BERT-shaped encoder, 2 layers, hidden 128, one sequence of 128",
    "W2": "W2 LSTM language model, train step, cells (batch 8, T 20, hidden 128)",
    "W3": "W3 dynamic RNN, batch 32, h 256, T 64",
    "W3b1": "W3 dynamic RNN, batch 1, h 256, T 64",
    "W4": "W4 power iteration 16x16",
    "W5": "W5 greedy decode, batch 8, hidden 128, 1,000 words",
    "W6": "W6 1,000 SGD steps in the graph",
    "W7": "W7 chain of activations, norm, softmax, 1,000,000, forward and backward",
    "GRU16": "GRU-16 forward and backward (batch 4, T 64)",
    "GRU128": "GRU-128 forward and backward (batch 4, T 64)",
}
LAYERS, HIDDEN, HEADS, WORDS = 2, 128, 2, 1000
MOST_STEPS = 50


def arrays(name: str) -> Arrays:
    """The arrays of a workload; parameters begin with ``p_``."""
    random = np.random.RandomState(sum(map(ord, name)))

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    def linear(key: str, inputs: int, outputs: int) -> Arrays:
        return {f"p_{key}_w": normal(outputs, inputs, scale=inputs**-0.5), f"p_{key}_b": normal(outputs, scale=0.1)}

    if name == "W1":
        made: Arrays = {"x": normal(1, 128, HIDDEN)}
        for layer in range(LAYERS):
            for key in "qkvo":
                made |= linear(f"{key}{layer}", HIDDEN, HIDDEN)
            made |= linear(f"a{layer}", HIDDEN, 4 * HIDDEN) | linear(f"b{layer}", 4 * HIDDEN, HIDDEN)
            for key in "mn":
                made[f"p_{key}{layer}_w"], made[f"p_{key}{layer}_b"] = 1 + normal(HIDDEN, scale=0.1), normal(HIDDEN)
        return made
    if name == "W2":
        made = {"words": random.randint(0, WORDS, (20, 8)), "next": random.randint(0, WORDS, (20, 8))}
        made["p_e"] = normal(WORDS, HIDDEN)
        return made | linear("i", HIDDEN, 4 * HIDDEN) | linear("h", HIDDEN, 4 * HIDDEN) | linear("o", HIDDEN, WORDS)
    if name in ("W3", "W3b1"):
        batch = 32 if name == "W3" else 1
        made = {"x": normal(64, batch, 256), "h": np.zeros((batch, 256), np.float32)} | linear("i", 256, 256)
        return made | {"p_s_w": normal(256, 256, scale=0.06)}
    if name == "W4":
        q, _ = np.linalg.qr(random.standard_normal((16, 16)))
        return {"a": (q @ np.diag(np.linspace(0.5, 1.05, 16)) @ q.T).astype(np.float32), "v": normal(16)}
    if name == "W5":
        made = {"h": normal(8, HIDDEN), "p_e": normal(WORDS, HIDDEN)}
        return made | linear("i", HIDDEN, 3 * HIDDEN) | linear("s", HIDDEN, 3 * HIDDEN) | linear("o", HIDDEN, WORDS)
    if name == "W6":
        return {"x": normal(32, 16), "y": normal(32, 1), "w": np.zeros((16, 1), np.float32),
                "steps": np.array(1000, np.int64)}  # fmt: skip
    if name == "W7":
        return {"p_x": normal(1000, 1000), "p_w": 1 + normal(1000, scale=0.1), "p_b": normal(1000, scale=0.1)}
    width = int(name.removeprefix("GRU"))
    made = {"x": normal(64, 4, width), "h": np.zeros((4, width), np.float32)}
    return made | linear("i", width, 3 * width) | linear("s", width, 3 * width)


def transposed(name: str) -> Arrays:
    """The same for frameworks whose layers hold their matrices the other way round."""
    return {key: np.ascontiguousarray(value.T) if key.endswith("_w") and value.ndim == 2 else value
            for key, value in arrays(name).items()}  # fmt: skip
