"""Run random programs against eager: ``python -m tests.fuzz.run --count 1000 --seed 0``.

Each program runs on three inputs; values, types, structure, gradients and the random stream must equal eager's. A
program that is refused must be refused with a code from ``ALLOWED``. Prints what happened, how often each construct and
each pair of nested constructs occurred, and every program that failed; exits with 1 if any did.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from runtime.errors import Dy2StaticError
from tests.end_to_end.oracle import check
from tests.fuzz.generator import Generator

ALLOWED = frozenset(
    {
        "D2S222",  # a write to memory that may or may not be shared
        "D2S250",  # a loop's variables never reach a fixed structure
        "D2S251",  # items of a list that grows differ in structure
    }
)


def inputs(seed: int) -> list[tuple[Any, ...]]:
    """Three calls: mixed signs, all positive, all negative."""
    generator = torch.Generator().manual_seed(seed)
    calls = []
    for number, shift in enumerate((0.0, 1.0, -1.0)):
        x = (torch.randn(3, generator=generator) + shift).requires_grad_()
        y = (torch.randn(3, generator=generator) * 0.5).requires_grad_()
        calls.append((x, y, number))
    return calls


def load(source: str, seed: int, folder: str) -> Any:
    """The function ``f`` of a program, from a real file."""
    path = Path(folder) / f"program_{seed}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(f"fuzz_program_{seed}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def run_one(
    seed: int, depth: int = 3, paths: tuple[str, ...] = ("program",)
) -> tuple[int, str, str, Counter[str], Counter[tuple[str, str]]]:
    """One program: (seed, "same" | "refused" | "different" | "internal", detail, constructs, pairs)."""
    generator = Generator(seed, depth=depth)
    source = generator.source()
    with tempfile.TemporaryDirectory() as folder:
        function = load(source, seed, folder)
        outcome, detail = "same", ""
        try:
            check(function, *inputs(seed), tolerance=1e-5, paths=paths, none_is_zero=True)
        except AssertionError as error:
            outcome, detail = "different", str(error)
        except Dy2StaticError as error:
            outcome, detail = ("refused" if error.code in ALLOWED else "internal"), f"{error.code} {error}"
        except Exception as error:  # whatever it is, it is ours
            outcome, detail = "internal", "".join(traceback.format_exception(error))[-1500:]
    return seed, outcome, detail, generator.used, generator.pairs


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="how many failing programs to print")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    outcomes: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    used: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    failures: list[tuple[int, str, str]] = []
    seeds = range(options.seed, options.seed + options.count)
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for seed, outcome, detail, constructs, nested in pool.imap_unordered(run_one, seeds, chunksize=8):
            outcomes[outcome] += 1
            used += constructs
            pairs += nested
            if outcome == "refused":
                codes[detail.split()[0]] += 1
            elif outcome != "same":
                failures.append((seed, outcome, detail))
    print("outcomes:", dict(outcomes), "refusals:", dict(codes))
    print("constructs:", dict(used.most_common()))
    print("nested pairs:", {f"{outer} > {inner}": count for (outer, inner), count in pairs.most_common()})
    for seed, outcome, detail in failures[: options.show]:
        print(f"--- seed {seed}: {outcome}\n{detail}")
    if len(failures) > options.show:
        print("... and seeds", [seed for seed, _, _ in failures[options.show :]])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
