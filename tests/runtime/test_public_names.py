"""The names that ``runtime`` and ``dy2static`` promise."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dy2static
import runtime


@pytest.mark.parametrize("package", [runtime, dy2static])
def test_every_public_name_exists(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_unknown_names_are_errors():
    with pytest.raises(AttributeError, match="module 'runtime' has no attribute 'Programm'"):
        _ = runtime.Programm


def test_importing_runtime_is_light():
    """Nothing heavy is imported before a name is used."""
    script = "import sys, runtime; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    script = "import runtime, torch; p = runtime.Program('f'); assert p.name == 'f'"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
