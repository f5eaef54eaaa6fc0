"""Random programs of one mode: ``python -m tests.fuzz.modes.run autocast --seed 0 --count 2000 --jobs 2``.

Prints how many were equal to eager, refused with a known code, different, or ended in an error of ours; those that
failed with their text, with ``--refused`` those that were refused as well. ``--reduce SEED`` makes one program small.
Exits with 1 if any failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import torch

from tests.fuzz.judging import Outcome
from tests.fuzz.modes.array_parts import ArrayParts
from tests.fuzz.modes.attributes import Attributes
from tests.fuzz.modes.autocast import Autocast
from tests.fuzz.modes.cached_helpers import CachedHelpers
from tests.fuzz.modes.carried_losses import CarriedLosses
from tests.fuzz.modes.changes import Changes
from tests.fuzz.modes.changing_state import ChangingState
from tests.fuzz.modes.checkpoints import Checkpoints
from tests.fuzz.modes.chosen_keys import ChosenKeys
from tests.fuzz.modes.dependent_results import DependentResults
from tests.fuzz.modes.deques import Deques
from tests.fuzz.modes.dict_set_changes import DictSetChanges
from tests.fuzz.modes.exceptions import Exceptions
from tests.fuzz.modes.functions import Functions
from tests.fuzz.modes.handed_on import HandedOn
from tests.fuzz.modes.host_random import HostRandom
from tests.fuzz.modes.hybrid import Hybrid
from tests.fuzz.modes.identity import Identity
from tests.fuzz.modes.inner_gradients import InnerGradients
from tests.fuzz.modes.items import Items
from tests.fuzz.modes.logs import Logs
from tests.fuzz.modes.looking import Looking
from tests.fuzz.modes.metadata import Metadata
from tests.fuzz.modes.nested import Nested
from tests.fuzz.modes.numpy_inside import NumpyInside
from tests.fuzz.modes.out_argument import OutArgument
from tests.fuzz.modes.parts import Parts
from tests.fuzz.modes.raising import Raising
from tests.fuzz.modes.recursion import Recursion
from tests.fuzz.modes.rows import OverRows
from tests.fuzz.modes.skeleton import Mode, judge
from tests.fuzz.modes.tensor_hooks import TensorHooks
from tests.fuzz.modes.unknown_sizes import UnknownSizes
from tests.fuzz.modes.unpacking import Unpacking
from tests.fuzz.reduce import reduce
from tests.fuzz.run import FAILURES

MODES: dict[str, type[Mode]] = {
    "array_parts": ArrayParts,
    "attributes": Attributes,
    "autocast": Autocast,
    "cached": CachedHelpers,
    "carried_losses": CarriedLosses,
    "changes": Changes,
    "changing_state": ChangingState,
    "checkpoints": Checkpoints,
    "chosen_keys": ChosenKeys,
    "dependent": DependentResults,
    "deques": Deques,
    "dict_set_changes": DictSetChanges,
    "exceptions": Exceptions,
    "functions": Functions,
    "handed_on": HandedOn,
    "host_random": HostRandom,
    "hybrid": Hybrid,
    "identity": Identity,
    "inner_gradients": InnerGradients,
    "items": Items,
    "logs": Logs,
    "looking": Looking,
    "metadata": Metadata,
    "nested": Nested,
    "numpy_inside": NumpyInside,
    "out": OutArgument,
    "parts": Parts,
    "raising": Raising,
    "recursion": Recursion,
    "tensor_hooks": TensorHooks,
    "unpacking": Unpacking,
    "unknown_sizes": UnknownSizes,
    "vmap": OverRows,
}


def run_one(name: str, seed: int) -> tuple[int, Outcome]:
    """One program of a mode."""
    torch.set_num_threads(1)
    return seed, judge(MODES[name](seed), seed)


def outcomes(name: str, first: int, count: int, jobs: int) -> Iterator[tuple[int, Outcome]]:
    """The programs of a mode, in processes side by side if there is more than one job."""
    seeds = range(first, first + count)
    if jobs == 1:
        yield from (run_one(name, seed) for seed in seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=200) as pool:
        waiting = [pool.apply_async(run_one, (name, seed)) for seed in seeds]
        for one in waiting:
            yield one.get()


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("modes", nargs="*", metavar="MODE", help=", ".join(MODES) + "; all if none is named")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200, help="programs of each mode")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="how many failing programs of a mode to print")
    parser.add_argument("--refused", action="store_true", help="print the refused programs of a mode, too")
    parser.add_argument("--reduce", type=int, default=None, metavar="SEED", help="make this program of a mode small")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.modes if name not in MODES]
    if unknown:
        parser.error(f"no such mode: {', '.join(unknown)}; there are {', '.join(MODES)}")
    if options.reduce is not None:
        mode = MODES[options.modes[0]](options.reduce)
        say(reduce(mode.source(), options.reduce, judge=lambda source, seed: judge(mode, seed, source)))
        return 0
    failed = False
    for name in options.modes or MODES:
        start = time.monotonic()
        found: Counter[str] = Counter()
        bad: list[int] = []
        for seed, outcome in outcomes(name, options.seed, options.count, options.jobs):
            found[f"{outcome.kind} {outcome.code}".strip()] += 1
            if outcome.kind == "refused" and options.refused:
                say(f"{name}, seed {seed}: refused {outcome.code}\n{outcome.detail}")
            if outcome.kind in FAILURES:
                bad.append(seed)
                if len(bad) <= options.show:
                    say(f"{name}, seed {seed}: {outcome.kind} {outcome.code}\n{outcome.detail}")
        failed = failed or bool(bad)
        counts = ", ".join(f"{count} {what}" for what, count in found.most_common())
        say(f"{name}, {options.count} programs from seed {options.seed} in {time.monotonic() - start:.0f} s: {counts}")
        if bad:
            say(f"    failed: {' '.join(map(str, bad))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
