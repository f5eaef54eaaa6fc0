"""The generated C under the address and undefined behaviour sanitizers, on the conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.native import build

ROOT = Path(__file__).resolve().parents[3]
_SCRIPT = """
import sys
import pytest

class Sanitized:
    def pytest_configure(self, config):
        from runtime.native import build  # not before pytest has read its plugins
        build.EXTRA = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")

options = ["-q", "-x", "-m", "slow", "-p", "no:cacheprovider", *sys.argv[1:]]
sys.exit(pytest.main(["tests/runtime/native/test_conformance.py", *options], plugins=[Sanitized()]))
"""


def _runtime(command: tuple[str, ...], name: str) -> str:
    """A library of the compiler's; PyTorch's exceptions go through that of C++."""
    done = subprocess.run([*command, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", ["joins", "returns", "loops", "booleans", "casts", "mutation", "calls", "guards",
                                  "errors"])  # fmt: skip
def test_conformance_suite(part: str) -> None:
    """No access beyond memory, none after it was given back, no undefined behaviour."""
    command = build.compiler()
    if command is None or not os.path.isabs(_runtime(command, "libasan.so")):
        pytest.skip("no compiler with sanitizers")
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1",
        "LD_PRELOAD": " ".join(_runtime(command, name) for name in ("libasan.so", "libstdc++.so")),
        "ASAN_OPTIONS": "detect_leaks=0,verify_asan_link_order=0",
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", _SCRIPT, "-k", part], cwd=ROOT, capture_output=True, text=True,
                          check=False, env=environment)  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
