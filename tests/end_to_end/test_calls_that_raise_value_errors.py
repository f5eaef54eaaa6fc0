"""``int(text)``, ``float(text)``, ``chr(n)``, ``math.sqrt(v)`` in a ``try`` that catches ValueError: as in eager."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static.operators.builtins.faulty_calls_in_python import is_float, is_int
from tests.oracle import check, check_saved

PIECES = ("", " ", "+", "-", "1", "0", "_", ".", "e", "nan", "inf", "infinity", "x", "\n", "٣", "²")


@pytest.mark.parametrize(("question", "function"), [(is_int, int), (is_float, float)])
def test_which_texts_are_numbers(question: Any, function: Any) -> None:
    """All texts of up to four pieces."""
    for text in {"".join(pieces) for pieces in itertools.product(PIECES, repeat=4)}:
        try:
            function(text)
        except ValueError:
            assert not question(text), text
        else:
            assert question(text), text


TEXT = "''.join('0123456789 +-._einfax'[i] for i in x.long().tolist())"
CALLS = {
    f"int({TEXT})": "text", f"float({TEXT})": "text", f"1 + int({TEXT}) * 2": "text", "chr(int(x[0]))": "number",
    "int(x.sum())": "number", "int(x.sum().item())": "number", "float(x.sum())": "number",
    "math.sqrt(x[0].item())": "number", "math.sqrt(x[0])": "number", "math.log(x[0].item())": "number",
    "sqrt(x.sum())": "number", "math.log2(int(x[0])) + 1": "number", "chr(int(x[0])) + chr(int(x[1]))": "number",
}  # fmt: skip
INPUTS = {
    "text": ([11, 1, 2], [1, 13, 5], [13, 13, 1], [20, 1, 20], [15, 16, 17], [10, 3, 10], [1, 14, 1], [12, 13, 7]),
    "number": ([65.0, 66.0], [-3.0, 1.0], [1.0, -9.0], [0.0, 4.0], [float("nan"), 1.0]),
}
FORMS = {
    "result": "try:\n        r = {call}\n    except ValueError:\n        r = None\n    return r, x",
    "message": "try:\n        return {call}, 'ok'\n    except (TypeError, ValueError) as e:\n        return x, str(e)",
    "in a loop": "out = []\n    for k in range(2):\n        try:\n            out.append({call})\n"
                 "        except ValueError:\n            out.append('?')\n            continue\n    return out",
    "handed on": "try:\n        r = {call}\n    except ValueError as e:\n        raise KeyError(str(e)) from e\n"
                 "    return r",
    "retried": "k = 0\n    while True:\n        try:\n            r = {call}\n            break\n"
               "        except ValueError:\n            k += 1\n            x = x.abs() + 1\n            if k > 2:\n"
               "                raise\n    return r, k",
}  # fmt: skip


def function(path: Path, form: str, call: str) -> Any:
    path.write_text(f"def f(x):\n    {FORMS[form].format(call=call)}\n")
    names: dict[str, Any] = {"math": math, "sqrt": math.sqrt}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("form", "call"), list(itertools.product(FORMS, CALLS)))
def test_as_eager(form: str, call: str, tmp_path: Path) -> None:
    f = function(tmp_path / "caught.py", form, call)
    calls = [(torch.tensor(values),) for values in INPUTS[CALLS[call]]]
    check_saved(f, check(f, *calls), tmp_path / "f", *calls)


def test_a_function_of_the_users_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("def chr(n):\n    return n * 2\n\ndef f(x):\n    try:\n        return chr(x[0].item())\n"
                    "    except ValueError:\n        return 0.0\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    check(names["f"], *[(torch.tensor([value]),) for value in (1.0, -1.0)])
