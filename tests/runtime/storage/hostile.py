"""Files that somebody else wrote: mutants of ten artefacts, most with right checksums, so that they reach the reader.

``python -m tests.runtime.storage.hostile --count 20000 --seed 0`` makes mutants, loads each, and prints how many were
refused and how many loaded (their Programs verify), by kind of mutation; any other outcome is printed and is an error.
``--only N`` runs one mutant again.
"""

from __future__ import annotations

import argparse
import collections
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import runtime
from runtime.errors import StorageError
from runtime.ir.tree import tree_leaves
from runtime.ir.verify import verify
from tests.runtime.storage.mutants import mutant
from tests.runtime.storage.ten_artefacts import artefacts

SECONDS = 20
"""A mutant that takes longer hangs."""
MEMORY = 512 << 20
"""Bytes that a mutant may ask the process for; the files have some 30 kB."""


class Hang(BaseException):
    """A mutant did not come to an end."""


def hold(path: Path) -> str:
    """Load a file: "refused", or "loaded" if it is a layer whose Programs verify. Anything else is raised."""
    try:
        layer = runtime.load(path)
    except StorageError as error:
        assert error.code != "D2S500" and str(error), error
        return "refused"
    for name in layer.methods:
        assert str(layer.signature(name))
        for variant in layer._methods[name].all():
            trees = [store.tree for store in variant.stores]
            verify(variant.program, {leaf.index for tree in trees for leaf in tree_leaves(tree)})
    assert repr(layer) and layer.state_dict() is not None
    return "loaded"


def bounded() -> None:
    """Limit what the process may take from now on, so that a mutant that asks for absurd sizes fails."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.RLIM_INFINITY))


def _hang(*rest: Any) -> None:
    raise Hang(f"more than {SECONDS} s")


Outcomes = collections.Counter[tuple[str, str]]
"""How often, by kind of mutation and outcome."""


def run(seed: int, numbers: range, files: list[bytes], folder: Path) -> tuple[Outcomes, list[str]]:
    """Make and hold mutants: outcomes by kind, and what was none of the two that may be."""
    path = folder / "mutant.d2s"
    hold(_written_to(path, files[0]))
    found: Outcomes = collections.Counter()
    failures = []
    before = signal.signal(signal.SIGALRM, _hang)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    bounded()
    try:
        for number in numbers:
            kind, data = mutant(seed, number, files)
            signal.alarm(SECONDS)
            try:
                outcome = hold(_written_to(path, data))
            except (Exception, Hang) as error:
                outcome = "failed"
                failures.append(f"mutant {number} ({kind}): {type(error).__name__}: {str(error)[:300]}")
                if "pytest" not in sys.modules:
                    print(failures[-1], flush=True)
            signal.alarm(0)
            found[kind, outcome] += 1
            if "pytest" not in sys.modules and number % 1000 == 999:
                print(number + 1, len(failures), "failed", flush=True)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return found, failures


def _written_to(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if options.only is not None:
            kind, data = mutant(options.seed, options.only, artefacts(Path(name)))
            print(kind, hold(_written_to(Path(name) / "mutant.d2s", data)))
            return 0
        found, failures = run(options.seed, range(options.start, options.start + options.count),
                              artefacts(Path(name)), Path(name))  # fmt: skip
    for (kind, outcome), count in sorted(found.items()):
        print(f"{kind:20}{outcome:10}{count:7}")
    print(f"{sum(found.values())} mutants, {len(failures)} failed", *failures, sep="\n")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
