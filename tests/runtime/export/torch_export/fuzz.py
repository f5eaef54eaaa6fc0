"""Random programs as exported programs: ``python -m tests.runtime.export.torch_export.fuzz --seed 0 --count 100``.

Each is one of ``tests.fuzz``: exported for its first call, run on the calls that it fits, held against eager. A program
may be refused; a result that is not eager's is a failure.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import warnings

import torch

from tests.fuzz.generator import Generator
from tests.fuzz.judging import TOLERANCE, inputs, load
from tests.runtime.export.torch_export.conformance import Outcome, attempt


def judge(seed: int, depth: int = 3) -> Outcome:
    """What became of a program: "exported", "refused", "no Program" or "different"."""
    source = Generator(seed, depth=depth).source()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load(source, seed, folder)
        if hasattr(module, "Model"):
            torch.manual_seed(1234)
            target, eager = module.Model().eval(), module.Model().eval()
            eager.load_state_dict(target.state_dict())
        else:
            target = eager = module.f
        try:
            return attempt(target, eager, inputs(seed), TOLERANCE)
        except Exception as error:
            return Outcome("different", f"{type(error).__name__}: {error}\n{source}")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    why: collections.Counter[str] = collections.Counter()
    calls = 0
    for seed in range(options.seed, options.seed + options.count):
        one = judge(seed)
        counts[one.kind] += 1
        calls += one.ran
        if one.kind == "different":
            print(f"--- seed {seed}\n{one.why}", flush=True)
        elif one.why:
            why[f"{one.kind}: {one.why[:110]}"] += 1
    print(dict(counts), f"{calls} calls ended as eager's")
    for text, count in why.most_common(20):
        print(f"{count:4} {text}")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
