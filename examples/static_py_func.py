"""Static-graph mode with a NumPy function in the middle: two hidden layers whose ReLU is ``py_func``, on digits.

    python examples/static_py_func.py

Prints loss and accuracy every 100 iterations, and the accuracy on the test images after each epoch.
"""

from __future__ import annotations

import argparse
from typing import Any

import digits_data
import numpy as np
import torch

from runtime import static

BATCH, EPOCHS, TIMES = 256, 5, 40
"""The 1,347 training images are repeated so often that an epoch has some 200 iterations."""


def relu(x: Any) -> Any:
    """The function, on NumPy arrays."""
    return np.maximum(x, 0)


def relu_gradient(y: Any, dy: Any) -> Any:
    """Its gradient, from its result and the gradient of that."""
    return dy * (y > 0)


def layer(x: torch.Tensor, size: int) -> torch.Tensor:
    """A fully connected layer with that ReLU."""
    hidden = static.fc(x, size)
    out = static.default_main_program().current_block().create_var("", "float32", hidden.shape)
    return static.py_func(relu, hidden, out, relu_gradient, skip_vars_in_backward_input=hidden)


def main() -> None:
    """Build the Programs, train, test."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--times", type=int, default=TIMES, help="how often the training images are repeated")
    options = parser.parse_args()

    train, startup = static.Program("train"), static.Program("startup")
    with static.program_guard(train, startup):
        image = static.data("image", [None, 64])
        label = static.data("label", [None, 1], "int64")
        prediction = static.fc(layer(layer(image, 100), 100), 10, act="softmax")
        loss = static.cross_entropy(prediction, label).mean()
        accuracy = static.accuracy(prediction, label)
        test = train.clone(for_test=True)
        static.optimizer.SGD(0.01).minimize(loss)

    digits = digits_data.load()
    images = (digits.train_images / 16).repeat(options.times, 1).numpy()
    labels = digits.train_labels.repeat(options.times)[:, None].numpy()
    held_out = {"image": (digits.test_images / 16).numpy(), "label": digits.test_labels[:, None].numpy()}

    executor = static.Executor("cpu")
    torch.manual_seed(0)
    executor.run(startup)
    order = np.random.default_rng(0)
    iteration = 0
    for epoch in range(options.epochs):
        shuffled = order.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            chosen = shuffled[start : start + BATCH]
            feed = {"image": images[chosen], "label": labels[chosen]}
            values = executor.run(train, feed=feed, fetch_list=[loss, accuracy])
            if iteration % 100 == 0:
                print(f"iteration {iteration}: loss {float(values[0]):.4f}, accuracy {float(values[1]):.3f}")
            iteration += 1
        (found,) = executor.run(test, feed=held_out, fetch_list=[accuracy])
        print(f"epoch {epoch}: test accuracy {float(found):.3f}")


if __name__ == "__main__":
    main()
