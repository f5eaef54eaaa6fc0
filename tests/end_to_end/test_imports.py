"""What is imported when: sympy when a trace begins, the converter and its libraries when something is converted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import dy2static

ROOT = Path(__file__).resolve().parents[2]
SYMBOLIC = ("sympy", "mpmath", "torch.fx.experimental.symbolic_shapes")
CONVERTER = ("gast", "astor", "dy2static.api", "dy2static.operators")


class Halving(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        kept = []
        while x.abs().sum() > 1 and len(kept) < 4:
            x = torch.tanh(self.inner(x)) / 2
            kept.append(x)
        return x, kept


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return Path(dy2static.save(Halving(), tmp_path / "net", input_spec=[dy2static.InputSpec([None, 3], "float32")]))


def loaded(script: str, *arguments: str) -> set[str]:
    """Which of them a process has imported that runs a script."""
    ending = f"\nimport sys\nprint(*[name for name in {(*SYMBOLIC, *CONVERTER)!r} if name in sys.modules])\n"
    done = subprocess.run([sys.executable, "-c", script + ending, *arguments], cwd=ROOT, capture_output=True, text=True,
                          check=False, timeout=240, env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_it_imports_neither() -> None:
    assert loaded("import dy2static") == set()
    assert loaded("import dy2static; dy2static.StorageError, dy2static.InputSpec, dy2static.load") == set()


@pytest.mark.slow
def test_converting_imports_the_converter_alone() -> None:
    found = loaded("from dy2static import to_static\nto_static(abs_ := lambda x: abs(x))")
    assert found == set(CONVERTER)


@pytest.mark.slow
def test_the_first_call_is_where_sympy_comes_in(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text("from dy2static import to_static\n@to_static\ndef f(x):\n    return x + 1\n")
    script = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport torch\nfrom user import f\n"
    assert loaded(script) == set(CONVERTER)
    assert loaded(script + "f(torch.ones(2))") == {*CONVERTER, *SYMBOLIC}


@pytest.mark.parametrize("door", ["dy2static", "runtime"])
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_running_a_file_imports_neither(saved: Path, door: str, mode: str) -> None:
    script = (
        f"import sys, torch, {door}\n"
        f"layer = {door}.load(sys.argv[1])\n"
        f"with torch.{mode}():\n"
        "    for rows in (2, 5):\n"
        "        x, kept = layer(torch.full((rows, 3), 4.0))\n"
        "assert kept\n"
    )
    assert loaded(script, str(saved)) == set()


@pytest.mark.slow
def test_gradients_of_a_file_are_derived_which_is_a_trace(saved: Path) -> None:
    script = (
        "import sys, torch, runtime\n"
        "layer = runtime.load(sys.argv[1])\n"
        "layer(torch.full((2, 3), 4.0))[0].sum().backward()\n"
    )
    assert loaded(script, str(saved)) == set(SYMBOLIC)


def test_public_names_are_there() -> None:
    for name in dy2static.__all__:
        assert getattr(dy2static, name) is not None
        assert name in dir(dy2static)
    with pytest.raises(AttributeError, match="module 'dy2static' has no attribute 'missing'"):
        dy2static.missing  # type: ignore[attr-defined]
