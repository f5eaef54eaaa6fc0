"""Dropout in C: eager's numbers, eager's stream afterwards, put back where C gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from dy2static import to_static
from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.native import executable
from tests.oracle import same
from tests.runtime.native.programs import compiled, gave_up

_DROPS = """program "f" {
  input %x : KIND[n, m] = "x"
  input %i : int = "i"
  %w : KIND[n, m] = SOURCE
  %d : KIND[n, m] = aten.dropout.default(%w, P, TRAIN)
  %e : KIND[n, m] = aten.dropout.default(%d, 0.25, True)
  %r : KIND[m] = aten.select.int(%e, 0, %i)
  %y : KIND[m] = aten.neg.default(%r)
  return %d, %e, %y as ($0, $1, $2)
}"""


def seeded(run: Callable[[], Any]) -> Any:
    """What a run gives or raises from one seed, and a number that is drawn after it."""
    torch.manual_seed(7)
    try:
        found = run()
    except Exception as error:  # what is compared
        found = error
    return found, torch.rand(()).item()


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("source", ["aten.neg.default(%x)", "aten.transpose.int(%x, 0, 1)"])
@pytest.mark.parametrize(("p", "train"), [("0.5", "True"), ("0.1", "True"), ("0.0", "True"), ("1.0", "True"),
                                          ("0.5", "False")])  # fmt: skip
def test_as_on_the_interpreter(kind: str, source: str, p: str, train: str) -> None:
    text = _DROPS.replace("KIND", kind).replace("SOURCE", source).replace("P,", f"{p},").replace("TRAIN", train)
    if "transpose" in source:
        text = text.replace(f"input %x : {kind}[n, m]", f"input %x : {kind}[m, n]")
    mine, reference = compiled(text), interpreted(parse_program(text))
    dtype = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}[kind]
    for n, m, i in ((3, 4, 0), (1, 1, -1), (40, 17, 5), (3, 4, 9), (0, 4, 0), (2, 0, 1)):  # row 9 is not there
        x = torch.randn((m, n) if "transpose" in source else (n, m)).to(dtype)
        found, expected = (seeded(lambda one=one: one.run([x, i], [])) for one in (mine, reference))
        same(found, expected)


def test_what_was_drawn_is_put_back_where_c_gives_up() -> None:
    text = _DROPS.replace("KIND", "f32").replace("SOURCE", "aten.neg.default(%x)").replace("P, TRAIN", "0.5, True")
    mine, reference = compiled(text), interpreted(parse_program(text))
    x = torch.randn(5, 6)
    assert mine.share().in_c == mine.share().all
    for place in (1, 7):
        same(seeded(lambda: mine.run([x, place], [])), seeded(lambda: reference.run([x, place], [])))
    assert gave_up(mine) == 1


def test_loops_with_dropout_train_as_in_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[executable.NativeExecutable] = []
    monkeypatch.setattr(executable, "made", made)

    def f(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, int]:
        steps = 0
        while x.abs().sum() < 40:
            if steps == 6:
                break
            x = F.dropout(torch.relu(x @ w) + 0.5, 0.2) if x.sum() > 3 else F.dropout(x, 0.4, False) + 1
            steps += 1
        return F.dropout(x, 0.5), steps

    static = to_static(f, backend="c")
    for seed in range(6):
        found = []
        for call in (static, f):
            torch.manual_seed(seed)
            x = (torch.randn(3, 4) * (seed + 1)).requires_grad_()
            w = (torch.randn(4, 4) * 0.7).requires_grad_()
            y, steps = call(x, w)
            found.append((y, steps, torch.autograd.grad(y.sum(), [x, w], allow_unused=True), torch.rand(())))
        same(*found, tolerance=1e-5)
    (forward,) = [one for one in made if one.program.name.endswith(".forward")]
    assert not forward.in_python()
