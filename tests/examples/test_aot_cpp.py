"""The example in C++: a package made by AOTInductor, built with CMake, run without Python, equal to eager."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from examples.aot_cpp.package import Settle

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "examples/aot_cpp"
CALLS = ([8.0, 4.0, 2.0, -1.0, 0.0, 1.0], [0.5, 0.0, 0.0], [1e9, 3.0, -2.0], [float("nan"), 1.0, 5.0])
"""The loop runs, does not run, runs after the branch; a test that is false for what is not a number."""


def ran(*command: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, timeout=600)
    assert run.returncode == 0, f"{run.stdout[-2000:]}{run.stderr[-2000:]}"
    return run.stdout


COMPILER = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler"),
    pytest.mark.slow,  # PyTorch's own compiler and CMake take half a minute
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The program in C++, and the package."""
    folder = tmp_path_factory.mktemp("aot")
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    ran(sys.executable, SOURCE / "package.py", folder / "settle.pt2")
    ran(cmake, "-S", SOURCE, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}")
    ran(cmake, "--build", folder / "build")
    return folder / "build/settle", folder / "settle.pt2"


def test_as_in_eager(built: tuple[Path, Path]) -> None:
    program, package = built
    for call in CALLS:
        wanted, steps = Settle()(torch.tensor(call).view(-1, 3))
        first, *rows = ran(program, package, *call).splitlines()
        assert first == f"{steps} steps"
        found = torch.tensor([[float(number) for number in row.split()] for row in rows])
        torch.testing.assert_close(found, wanted.detach(), rtol=1e-5, atol=0, equal_nan=True)


def test_what_is_wrong_is_said(built: tuple[Path, Path]) -> None:
    program, _ = built
    run = subprocess.run([program, "missing.pt2", "1", "2", "3"], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and run.stderr.startswith("error: ") and len(run.stderr.splitlines()) == 1
    assert subprocess.run([program], capture_output=True, check=False).returncode == 2
