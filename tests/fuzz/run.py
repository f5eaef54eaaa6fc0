"""Run random programs against eager: ``python -m tests.fuzz.run --count 1000 --seed 0``, or ``--seconds 600``.

Each program runs on three inputs; values, types, structure, gradients and the random stream must equal eager's, for a
module its buffers, attributes and parameters' gradients too. A program that is refused must be refused with a code from
``ALLOWED``. Prints what happened with the seeds, how often each construct and each pair of nested constructs occurred,
and programs that failed; exits with 1 if any did.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator

import torch

from tests.fuzz.generator import Generator
from tests.fuzz.judging import Outcome, extreme_inputs, inputs, judge

FAILURES = ("different", "internal")
Pairs = Counter[tuple[str, str]]


def run_one(
    seed: int, depth: int = 3, extremes: bool = False, loaded: bool = False
) -> tuple[int, Outcome, Counter[str], Pairs]:
    """One program: what happened, its constructs, and its pairs of nested constructs."""
    torch.set_num_threads(1)
    generator = Generator(seed, depth=depth)
    source = generator.source()
    outcome = judge(source, seed, extreme_inputs if extremes else inputs, loaded)
    return seed, outcome, generator.used, generator.pairs


def report(counts: Counter[str], columns: int = 5, most: int | None = None) -> str:
    """Counts as an aligned table, most common first."""
    cells = [f"{count:>6} {name}" for name, count in counts.most_common(most)]
    width = max((len(cell) for cell in cells), default=0) + 2
    rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
    return "\n".join("".join(cell.ljust(width) for cell in row).rstrip() for row in rows)


def _seeds(first: int, count: int, until: float | None) -> Iterator[int]:
    for seed in range(first, first + count):
        if until is not None and time.monotonic() > until:
            return
        yield seed


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=None, help="how many programs; 200 if --seconds is not given")
    parser.add_argument("--seconds", type=float, default=None, help="start no program after so many seconds")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--extremes", action="store_true", help="zeros and infinities among the inputs")
    parser.add_argument("--loaded", action="store_true", help="save each program, and run what is loaded")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="how many failing programs to describe")
    parser.add_argument("--pairs", type=int, default=60, help="how many pairs to print")
    options = parser.parse_args(arguments)
    count = options.count or (200 if options.seconds is None else sys.maxsize)
    start = time.monotonic()
    seeds: dict[str, list[int]] = {}
    used: Counter[str] = Counter()
    pairs: Pairs = Counter()
    failures: list[tuple[int, Outcome]] = []
    done = 0
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=500) as pool:
        until = None if options.seconds is None else start + options.seconds
        waiting = []
        source = _seeds(options.seed, count, until)
        while True:
            while len(waiting) < 2 * options.jobs and (seed := next(source, None)) is not None:
                waiting.append(pool.apply_async(run_one, (seed, options.depth, options.extremes, options.loaded)))
            if not waiting:
                break
            seed, outcome, constructs, nested = waiting.pop(0).get()
            done += 1
            used += constructs
            pairs += nested
            seeds.setdefault(f"{outcome.kind} {outcome.code}".strip(), []).append(seed)
            if outcome.kind in FAILURES:
                failures.append((seed, outcome))
                print(f"seed {seed}: {outcome.kind} {outcome.code}", file=sys.stderr)
            if done % 100 == 0:
                print(f"{done} programs, {time.monotonic() - start:.0f} s", file=sys.stderr)
    print(f"{done} programs in {time.monotonic() - start:.0f} s, from seed {options.seed}")
    for kind in sorted(seeds, key=lambda kind: -len(seeds[kind])):
        found = seeds[kind]
        which = "" if kind == "same" else " seeds " + " ".join(map(str, found[:20])) + (" ..." if found[20:] else "")
        print(f"{len(found):>6} {100 * len(found) / done:5.1f} %  {kind}{which}")
    print(f"constructs:\n{report(used)}")
    print(f"pairs of nested constructs ({len(pairs)} kinds):")
    print(report(Counter({f"{outer} > {inner}": count for (outer, inner), count in pairs.items()}), 4, options.pairs))
    for seed, outcome in failures[: options.show]:
        print(f"--- seed {seed}: {outcome.kind} {outcome.code}\n{outcome.detail}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
