"""CPython's own tests of the language and of classes of its library: their methods are converted and must pass.

What is refused says so with a code. What fails is named here: it looks at frames, at reference counts, or at names that
only the generated code has.
"""

from __future__ import annotations

import collections
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.third_party.python_tests import SECONDS

ROOT = Path(__file__).parents[2]
FAILING = {
    "test_dataclasses": {"TestCase.test_is_dataclass_genericalias"},
    "test_generators": {
        "GeneratorStackTraceTest.test_send_with_yield_from", "GeneratorStackTraceTest.test_throw_with_yield_from",
        "GeneratorTest.test_name", "YieldFromTests.test_generator_gi_yieldfrom",
    },
    "test_list": {"ListTest.test_free_after_iterating"},
    "test_named_expressions": set(),
    "test_patma": {
        f"TestTracing.test_{name}" for name in (
            "default_capture", "default_wildcard", "no_default", "only_default_capture", "only_default_wildcard",
            "unreachable_code")
    },
    "test_scope": {"ScopeTests.testCellLeak"},
    "test_with": set(),
}  # fmt: skip
MAY_BE_REFUSED = {"straight": 0.06, "path": 0.6}
"""The share of a module's tests: on a path, what the system or the process is asked for is refused, and iterators that
helpers of the tests advance."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package ``test``: where the standard library is, nothing is converted."""
    found = importlib.util.find_spec("test")
    origin = None if found is None else found.origin
    if origin is None or not (Path(origin).parent / "test_patma.py").exists():
        pytest.skip("this Python comes without its tests")
    copied = tmp_path_factory.mktemp("python")
    shutil.copytree(Path(origin).parent, copied / "test", ignore=shutil.ignore_patterns("__pycache__"))
    return copied


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the failing ones are named for Python 3.11")
@pytest.mark.parametrize("place", MAY_BE_REFUSED)
@pytest.mark.parametrize("module", FAILING)
def test_module(module: str, place: str, folder: Path) -> None:
    command = [sys.executable, "-m", "tests.third_party.python_tests", str(folder), module, place]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=540,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    ended = json.loads(done.stdout.splitlines()[-1])
    counts = collections.Counter(how for how, _ in ended.values())
    print(module, place, dict(counts), f"(a test may take {SECONDS} s)")
    failed = {name: said for name, (how, said) in ended.items() if how in ("failed", "D2S290")}
    assert failed.keys() <= FAILING[module], {name: failed[name] for name in failed.keys() - FAILING[module]}
    refused = sum(count for how, count in counts.items() if how.startswith("D2S"))
    assert refused <= MAY_BE_REFUSED[place] * len(ended) + 1
