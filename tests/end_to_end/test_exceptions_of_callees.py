"""Exceptions that a called function raises on a path, with a message or arguments of the run, caught by the caller."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check


class Own(RuntimeError):
    pass


class Coded(ValueError):
    def __init__(self, message: Any, code: Any = None) -> None:
        super().__init__(message)
        self.code = code


RAISED = ("Own(f'bad {n}')", "ValueError('bad', n)", "Own(n, x * 2)", "Coded('bad', x.sum().item())", "Coded(f'{n}')",
          "torch.linalg.LinAlgError(f'bad {n}')", "KeyError(n)", "Own([n, (x, 'a')])", "Own('plain')")  # fmt: skip
USES = {
    "text": "return x, str(e), repr(e), f'{e}'",
    "arguments": "return e.args, len(e.args), e.args[0]",
    "printed": "print(e); y = x",
    "kept": "y = e",
    "chained": "raise ArithmeticError(f'outer {e}') from e",
    "again": "raise",
    "in a list": "return [x, e.args]",
    "attribute": "return getattr(e, 'code', 0), type(e).__name__",
}
FORMS = {
    "straight": "try:\n        y = helper(x)\n    except Exception as e:\n        {use}",
    "returned": "try:\n        return helper(x), 'ok'\n    except Exception as e:\n        {use}",
    "in a loop": "for k in range(3):\n        try:\n            y = helper(x * k)\n        except Exception as e:\n"
                 "            {use}",
    "two calls deep": "def inner(t):\n        try:\n            return helper(t)\n        finally:\n"
                      "            print('left')\n    try:\n        y = inner(x)\n    except Exception as e:\n"
                      "        {use}",
}  # fmt: skip


@pytest.mark.sample(24)
@pytest.mark.parametrize(("raised", "use", "form"), list(itertools.product(RAISED, USES, FORMS)))
def test_as_eager(raised: str, use: str, form: str, tmp_path: Path) -> None:
    handler = USES[use]
    path = tmp_path / "callee.py"
    path.write_text(
        "def helper(x):\n    n = int(x.detach().sum().abs() * 4)\n    if n > 9:\n"
        f"        raise {raised}\n    return x * 2\n\n\n"
        f"def f(x):\n    y = None\n    {FORMS[form].format(use=handler)}\n"
        "    return y if torch.is_tensor(y) else str(y)\n")
    names: dict[str, Any] = {"torch": torch, "Own": Own, "Coded": Coded}
    exec(compile(path.read_text(), str(path), "exec"), names)
    check(names["f"], *((torch.full((3,), value, requires_grad=True),) for value in (1.0, 0.25, -2.0)))
