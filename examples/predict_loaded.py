"""Load a saved classifier in a process that cannot import its model, check its answers, and fine-tune it.

    python examples/predict_loaded.py demo_output/digits_adaptive demo_output/expected.safetensors
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import digits_data
import torch
from rich.console import Console
from safetensors.torch import load_file
from training import evaluate, train_epoch

import dy2static


def main() -> int:
    """Exit code 0 if all answers are the saved ones and fine-tuning lowered the loss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("saved", help="what dy2static.save wrote")
    parser.add_argument("expected", help="a safetensors file with the logits and steps of each test image")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    modules: dict[str, Any] = sys.modules
    assert "adaptive_classifier" not in modules
    modules["adaptive_classifier"] = None  # from here on, importing the model's source fails
    console = Console(highlight=False)
    torch.set_num_threads(options.threads)

    data = digits_data.load()
    expected = load_file(options.expected)
    model = dy2static.load(options.saved, backend="interpreter")  # eager's bits, to be compared
    parameters = sum(p.numel() for p in model.parameters())
    console.print(f"loaded a {type(model).__name__} with {parameters:,} parameters")

    model.eval()
    with torch.no_grad():
        answers = [model(image.unsqueeze(0)) for image in data.test_images]
    logits = torch.cat([answer[0] for answer in answers])
    steps = torch.tensor([answer[1] for answer in answers])
    same = int((logits.argmax(-1) == expected["logits"].argmax(-1)).sum())
    difference = (logits - expected["logits"]).abs().max().item()
    console.print(f"same prediction on {same} of {len(logits)} test images, logits differ by at most {difference:.1e}")
    same_steps = torch.equal(steps, expected["steps"])
    console.print(f"refinements for each image {'the same too' if same_steps else 'DIFFER'}")

    torch.manual_seed(options.seed)
    images, test_images = digits_data.shifted(data.train_images), digits_data.shifted(data.test_images)
    loss_before, accuracy_before = evaluate(model, test_images, data.test_labels)
    optimizer = torch.optim.Adam(model.parameters(), options.learning_rate)
    train_epoch(model, optimizer, images, data.train_labels, options.batch_size)
    loss_after, accuracy_after = evaluate(model, test_images, data.test_labels)
    console.print(
        f"fine-tuned one epoch on images shifted by a pixel: loss {loss_before:.3f} -> {loss_after:.3f}, "
        f"test accuracy {accuracy_before:.1%} -> {accuracy_after:.1%}",
        soft_wrap=True,
    )
    return 0 if same == len(logits) and same_steps and loss_after < loss_before else 1


if __name__ == "__main__":
    sys.exit(main())
