"""Matrices that cannot be factorised or inverted, under a handler: PyTorch's message, where it is raised."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check

CALLS = ("torch.linalg.cholesky({a})", "torch.linalg.cholesky({a}, upper=True)", "torch.linalg.inv({a})",
         "torch.inverse({a})", "{a}.inverse()", "torch.linalg.solve({a}, b)",
         "torch.linalg.solve({a}, b.mT, left=False)", "torch.linalg.inv(A={a})", "torch.inverse(input={a})",
         "torch.linalg.cholesky(upper=True, input={a})", "torch.linalg.solve(B=b, A={a})")  # fmt: skip
RAISED = "(a + 1e-9 * 10 ** (3 * k) * torch.eye(3))"
HANDLED = ("torch.linalg.LinAlgError", "RuntimeError", "(ValueError, RuntimeError)")
FORMS = {
    "message": "try:\n        return {call}, 'ok'\n    except {error} as e:\n        return a * 2, str(e)",
    "retried": "for k in range(4):\n        try:\n            y = {again}\n            break\n        except {error}:\n"
               "            continue\n    else:\n        raise ValueError('never')\n    return y, k",
    "handed on": "try:\n        y = {call}\n    except {error} as e:\n        raise ValueError(str(e)) from None\n"
                 "    return y, 0",
}  # fmt: skip
ROOT = torch.tensor([[1.0, 0.5, 0.1], [0.0, 1.0, 0.3], [0.2, 0.0, 1.0]], dtype=torch.float64)
GOOD = ROOT @ ROOT.T
MATRICES = {
    "one": (GOOD, torch.ones(3, 3), torch.diag(torch.tensor([1.0, 0.0, 1.0]))),
    "batch": (torch.stack([GOOD, torch.eye(3)]), torch.stack([torch.eye(3), torch.ones(3, 3)]), torch.zeros(2, 3, 3)),
}


def calls(kind: str) -> list[Any]:
    found = []
    for matrix in MATRICES[kind]:
        a = matrix.double().requires_grad_()
        found.append((a, torch.ones(*a.shape[:-1], 1, dtype=a.dtype)))
    return found


@pytest.mark.sample(18)
@pytest.mark.parametrize(("call", "error", "form", "kind"), list(itertools.product(CALLS, HANDLED, FORMS, MATRICES)))
def test_as_eager(call: str, error: str, form: str, kind: str, tmp_path: Path) -> None:
    body = FORMS[form].format(call=call.format(a="a"), error=error, again=call.format(a=RAISED))
    path = tmp_path / "caught.py"
    path.write_text(f"def f(a, b):\n    {body}\n")
    names: dict[str, Any] = {"torch": torch}
    exec(compile(path.read_text(), str(path), "exec"), names)
    check(names["f"], *calls(kind), tolerance=1e-9)
