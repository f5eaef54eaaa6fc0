"""Train a classifier whose forward is full of data-dependent Python, statically; save it, reload it without its source.

    python examples/digits_adaptive.py [--epochs 60] [--help]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import digits_data
import torch
from adaptive_classifier import AdaptiveClassifier
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from safetensors.torch import save_file
from training import Curve, fit

import dy2static

HERE = Path(__file__).resolve().parent


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--hidden", type=int, default=256, help="width of the model")
    parser.add_argument("--patience", type=int, default=8, help="most refinements of a batch")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch; the model is small, one is nearly as fast")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="how far the two loss curves may part")
    parser.add_argument("--accuracy", type=float, default=0.95, help="test accuracy that must be reached")
    parser.add_argument("--output", type=Path, default=HERE.parent / "demo_output", help="folder for what is saved")
    return parser.parse_args(arguments)


def trained(
    title: str, data: digits_data.Digits, options: argparse.Namespace, console: Console
) -> tuple[AdaptiveClassifier, Curve]:
    """A model trained from the seed, with its progress shown: a bar on a terminal, lines elsewhere."""
    torch.manual_seed(options.seed)
    model = AdaptiveClassifier(hidden=options.hidden, patience=options.patience)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{title:9s}", total=options.epochs, state="")

        def after_epoch(curve: Curve) -> None:
            epoch = len(curve.loss)
            state = f"epoch {epoch:3d}  loss {curve.loss[-1]:.4f}  test {curve.accuracy[-1]:6.2%}"
            progress.update(task, advance=1, state=state)
            if not console.is_terminal and (epoch % 10 == 0 or epoch in (1, options.epochs)):
                console.print(f"{title:9s} {state}  {curve.seconds:.1f} s")

        curve = fit(model, data, options.epochs, options.batch_size, options.learning_rate, after_epoch)
    return model, curve


def show_curves(eager: Curve, static: Curve, console: Console) -> float:
    """Both curves side by side; returns how far the losses part at most."""
    table = Table(title="the same model from the same seed", title_justify="left")
    table.add_column("\nepoch", justify="right")
    for name in ("loss", "accuracy", "steps"):
        table.add_column(f"{name}\neager", justify="right")
        table.add_column(f"{name}\nstatic", justify="right", style="bold")
    epochs = len(eager.loss)
    for epoch in sorted({0, *range(9, epochs, 10), epochs - 1}):
        cells = [str(epoch + 1)]
        cells += [f"{curve.loss[epoch]:.6f}" for curve in (eager, static)]
        cells += [f"{curve.accuracy[epoch]:.2%}" for curve in (eager, static)]
        cells += [f"{curve.steps[epoch]:.2f}" for curve in (eager, static)]
        table.add_row(*cells)
    console.print(table)
    difference = max(abs(a - b) for a, b in zip(eager.loss, static.loss))
    console.print(
        f"the loss curves differ by at most {difference:.1e}; "
        f"{eager.seconds:.1f} s eager, {static.seconds:.1f} s with @to_static"
    )
    return difference


@torch.no_grad()
def answers_one_by_one(model: torch.nn.Module, images: torch.Tensor) -> dict[str, torch.Tensor]:
    """The logits of every image, and how many refinements it took when asked alone."""
    model.eval()
    answers = [model(image.unsqueeze(0)) for image in images]
    logits = torch.cat([logits for logits, _ in answers])
    return {"logits": logits, "steps": torch.tensor([steps for _, steps in answers])}


def main(command_line: list[str] | None = None) -> int:
    """Exit code 0 if the curves agree, the accuracy is reached, and the loaded model keeps its promises."""
    options = options_of(command_line)
    console = Console(highlight=False)
    torch.set_num_threads(options.threads)
    data = digits_data.load()

    console.rule("1. train: eagerly, and with @to_static", align="left")
    dy2static.enable_to_static(False)
    _, eager = trained("eager", data, options, console)
    dy2static.enable_to_static(True)
    model, static = trained("to_static", data, options, console)
    difference = show_curves(eager, static, console)
    console.print(f"test accuracy with @to_static: {static.accuracy[-1]:.2%}", style="bold green")
    if difference > options.tolerance or not static.accuracy[-1] >= options.accuracy:
        console.print(f"expected at most {options.tolerance:.0e} and at least {options.accuracy:.0%}", style="bold red")
        return 1

    console.rule("2. save", align="left")
    options.output.mkdir(parents=True, exist_ok=True)
    saved, expected = options.output / "digits_adaptive", options.output / "expected.safetensors"
    dy2static.save(model, str(saved), input_spec=[dy2static.InputSpec([None, 64], "float32")])
    answers = answers_one_by_one(model, data.test_images)
    save_file(answers, expected)
    for file in sorted(options.output.iterdir()):
        console.print(f"{file.name}: {file.stat().st_size:,} bytes")
    counts = torch.bincount(answers["steps"]).tolist()
    spread = ", ".join(f"{count} took {steps}" for steps, count in enumerate(counts) if count)
    console.print(f"refinements of each test image: {spread}", soft_wrap=True)

    console.rule("3. a fresh process without the model's source: predict, fine-tune", align="left")
    arguments = [str(saved), str(expected), f"--threads={options.threads}"]
    if subprocess.run([sys.executable, str(HERE / "predict_loaded.py"), *arguments], check=False).returncode:
        console.print("the loaded model did not keep its promises", style="bold red")
        return 1

    console.rule("4. how forward was converted", align="left")
    source = HERE / "adaptive_classifier.py"
    return subprocess.run([sys.executable, "-m", "dy2static", "diff", str(source)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
