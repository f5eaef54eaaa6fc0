"""NumPy's arrays read and written at places that only the run knows: generated programs, held against eager.

Two copies of a program run side by side. The caller writes to the arrays that it gets, which shows what shares memory.
"""

from __future__ import annotations

import itertools
import random
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import check, check_saved, same

SHAPES = {1: (4,), 2: (3, 4), 3: (2, 3, 4)}
DTYPES = ["float64", "float32", "int64", "int32", "uint8", "bool", "complex64", "float16"]
KEYS = {
    1: ["i", "-i", "i:j", "[i, j]", "i:", ":-j", "None, i", "i, ...", "i, None", "np.array([0, 1, 0])", "t"],
    2: ["i, j", "i", "i, :", ":, j", "i, 1:", "-1, j", "i, -j", "..., j", "i:j", "i:, j", "i, ::-1", "[i, j], i",
        "[i, 1]", "i, [0, 1]", "i, None", "0, i:j", "(i, j)[::-1]", "t[0], j", "t[:2].numpy()", "slice(i, None)"],
    3: ["i, j, k", "i", "i, j", ":, j", "..., k", "i, :, k", "i, ..., 0", "i, j:k", "i, j, k, 0"],
}  # fmt: skip
ORIGINS = {
    "inside": "(np.arange({n}) % 7).reshape({s}).astype('{d}')", "zeros": "np.zeros({s}, '{d}')", "global": "G",
    "attribute": "BOX.a", "item": "HELD['k']", "tensor": "TENSOR.numpy()",
}  # fmt: skip
USES = {
    "read": "r = a[{k}]", "type": "r = a[{k}]\nlog.append(type(r).__name__)\nlog.append(str(r.dtype))",
    "count": "x = x * float(np.sum(a[{k}] != 0))", "float": "r = float(a[{k}])", "item": "r = a[{k}].item()",
    "sum": "r = a[{k}].sum()", "set": "a[{k}] = 1", "set of the run": "a[{k}] = int(t.sum())",
    "set a float": "a[{k}] = x.sum().item()", "add": "a[{k}] += 1", "add of the run": "a[{k}] += int(t.sum())",
    "seen later": "r = a[{k}]\na[...] = 3", "written": "r = a[{k}]\nr += 1", "at": "np.add.at(a, {at}, 1)",
    "in a copy": "b = a.copy()\nb[{k}] = 1\nr = b, b[{k}]", "put": "np.put(a, [i, j], 1)",
    "read after": "a[{k}] = 1\nr = a.sum(), a.max(), len(a), a.tolist()", "decides": "r = 0\nif a[{k}]:\n    r = 1",
    "exchanged": "a[{k}], a[0] = a[0], a[{k}]", "a row": "a[{k}] = a[0] * 1", "list": "a[{k}] = [1, int(t.sum())]",
    "caught": "try:\n    r = a[{k}]\nexcept IndexError:\n    r = None",
}  # fmt: skip
PLACES = {
    "straight": "{u}", "if": "if x.sum() > 0:\n    {u}",
    "for": "for row in t.unsqueeze(0).repeat(2, 1):\n    i, j, k = int(row[0]), int(row[1]), int(row[2])\n    {u}",
    "list": "for i, j, k in t.unsqueeze(0).repeat(2, 1).tolist():\n    {u}",
    "while": "n, y = 0, x\nwhile y.sum() > n:\n    n += 2\n    {u}",
}  # fmt: skip
HEAD = """import numpy as np
import torch
class Box: pass
BOX, HELD, TENSOR = Box(), {{}}, torch.zeros(1)
G = (np.arange({n}) % 7).reshape({s}).astype('{d}')
def begin():
    global TENSOR
    G[...] = (np.arange({n}) % 7).reshape({s})
    BOX.a, HELD['k'], TENSOR = G.copy(), G.copy(), torch.from_numpy(G.copy())
def beside():
    return G, BOX.a, HELD['k'], TENSOR
def f(x, t):
    log, r, (i, j, k) = [], None, (int(t[0]), int(t[1]), int(t[2]))
    a = {a}
    {body}
    return x, r, log, {out}
"""
CALLS = [(torch.tensor(x), torch.tensor(t)) for x, t in (
    ([3.0, -1.0], [1, 2, 3]), ([1.0, 1.0], [0, 0, 0]), ([-1.0, -2.0], [1, 1, 2]), ([2.0, -1.0], [-1, -2, -1]),
    ([1.0, 2.0], [1, 2, 9]), ([1.0, 2.0], [5, 1, 0]), ([1.0, 2.0], [0, 6, 0]))]  # fmt: skip
REFUSALS = {f"D2S{code}" for code in (210, 213, 215, 222, 224, 229, 250, 264, 265, 269, 277)}


def program(seed: int) -> str:
    """One of the programs."""
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 2, 3))
    shape, key, dtype = SHAPES[rank], rng.choice(KEYS[rank]), rng.choice(DTYPES)
    origin, use, place = rng.choice(("inside", "zeros", *ORIGINS)), rng.choice(list(USES)), rng.choice(list(PLACES))
    if origin not in ("inside", "zeros", "tensor") and use not in ("read", "type", "count", "float", "item", "sum"):
        origin = "inside"  # what is written outside is refused, see below
    at = "(i,)" if ":" in key else f"({key})"
    text = USES[use].format(k=key, at=at)
    body = PLACES[place].format(u=text.replace("\n", "\n" + " " * (4 * (place != "straight"))))
    sizes = {"n": int(np.prod(shape)), "s": shape, "d": dtype}
    own = origin in ("inside", "zeros")
    return HEAD.format(**sizes, a=ORIGINS[origin].format(**sizes), body=body.replace("\n", "\n    "),
                       out="a" if own else None)  # fmt: skip


def outcome(function: Any, x: torch.Tensor, t: torch.Tensor, file: str) -> Any:
    try:
        return function(x.clone(), t.clone())
    except Dy2StaticError:
        raise
    except Exception as error:
        lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == file]
        return type(error).__name__, lines[-1]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning",
                            "ignore::dy2static.RetraceWarning")  # fmt: skip
@pytest.mark.parametrize("seed", range(1500))
@pytest.mark.sample(25)
def test_as_eager(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "at_places.py"
    text = program(seed)
    path.write_text(text)
    theirs, mine = module_of(path), module_of(path)
    static = to_static(mine.f)
    for number, (x, t) in enumerate(CALLS):
        for module in (theirs, mine):
            module.begin()
        expected = outcome(theirs.f, x, t, str(path))
        try:
            got = outcome(static, x, t, str(path))
        except Dy2StaticError as error:
            assert error.code in REFUSALS, text
            return
        for _ in range(2):
            where = f"call {number} of\n{text}\n"
            same((got, mine.beside()), (expected, theirs.beside()), where, 1e-6, by_name=True)
            for result in (got, expected):
                for array in (one for one in (result[1], result[-1]) if type(one) is np.ndarray):
                    array[...] = 5


WORKING = [
    "m = np.zeros((3, 3))\n    for row in t:\n        m[int(row[0]), int(row[1])] += 1\n    return m, m.sum() * x",
    "m = np.zeros((3, 3))\n    for i, j in t.tolist():\n        m[i, j] += 1\n    return m.trace() / m.sum() * x",
    "m = np.zeros((3, 3), int)\n    np.add.at(m, (t[:, 0].numpy(), t[:, 1].numpy()), 1)\n    return m, x",
    "m = np.zeros(3)\n    np.maximum.at(m, t[:, 0].numpy(), x.numpy())\n    return m",
    "m = np.eye(3)\n    i, j = t[0].tolist()\n    row = m[i, :]\n    m[j] = 5\n"
    "    return row, m[i:j], m[j, ::-1].copy()",
    "m = np.eye(3)\n    i, j = t[0].tolist()\n    m[i] += m[j]\n    np.fill_diagonal(m, i)\n    return m",
    "m = np.arange(9, dtype=np.int8).reshape(3, 3)\n    i, j = t[0].tolist()\n    m[i, j] = 2.75\n"
    "    return m[i, j], m",
    "c = np.arange(3.0)\n    i, j = t[0].tolist()\n    y = 0\n    if x.sum() > 0:\n"
    "        y = c[i] + c[j]\n    return y * x",
    "m = np.zeros(3, np.float32) + x.numpy()\n    k = int(t[0, 1])\n    return m[k] * x, 2 - x, m[k] > x, x ** m[k]",
    "m = np.zeros((3, 3))\n    for row in t:\n        m[row[0], row[1]] += x[row[0]].item()\n    return m[:, 1] * 2",
]  # fmt: skip


@pytest.mark.parametrize(("number", "backend"), list(itertools.product(range(len(WORKING)), ["python", "c"])))
def test_what_works(number: int, backend: str, tmp_path: Path) -> None:
    path = tmp_path / "working.py"
    path.write_text(f"import numpy as np\nimport torch\ndef f(x, t):\n    {WORKING[number]}\n")
    function = module_of(path).f
    calls = [(torch.tensor(x), torch.tensor(t)) for x, t in (
        ([1.0, 2.0, 3.0], [[0, 1], [2, 2], [0, 1]]), ([-1.0, 0.5, -2.0], [[2, 0], [1, 2], [0, 0]]))]
    if backend == "c":
        static = to_static(function, backend="c")
        for call in calls:
            same(static(*call), function(*call), by_name=True)
    else:
        check_saved(function, check(function, *calls), tmp_path / "f", *calls)


@pytest.mark.parametrize("key", ["i, j", "i", ":, j", "[i, j]", "i:j"])
def test_an_array_from_outside_is_not_written(key: str, tmp_path: Path) -> None:
    path = tmp_path / "outside.py"
    path.write_text(f"import numpy as np\nG = np.zeros((3, 3))\ndef f(x, i, j):\n    i, j = int(i), int(j)\n"
                    f"    G[{key}] += 1\n    return x\n")  # fmt: skip
    with pytest.raises(Dy2StaticError, match="D2S213"):
        to_static(module_of(path).f)(torch.ones(2), torch.tensor(1), torch.tensor(2))


@pytest.mark.parametrize("key", ["i", "i, j", "i, :", "[i, j]", ":, i"])
@pytest.mark.parametrize("after", [False, True])
def test_an_array_from_outside_that_is_read_and_written(key: str, after: bool, tmp_path: Path) -> None:
    """A run has the content from before a later write: that is refused, and a write before it is seen."""
    path = tmp_path / "outside.py"
    lines = ["G[0, 0] += 7", f"r = G[{key}].sum()"]
    path.write_text("import numpy as np\nG = np.zeros((3, 3))\ndef f(x, i, j):\n    i, j = int(i), int(j)\n    "
                    + "\n    ".join(lines[::-1] if after else lines) + "\n    return x * float(r)\n")  # fmt: skip
    theirs, mine = module_of(path), module_of(path)
    static, call = to_static(mine.f), (torch.ones(2), torch.tensor(0), torch.tensor(2))
    if after:
        with pytest.raises(Dy2StaticError, match="D2S222"):
            static(*call)
        return
    for _ in range(2):
        same((static(*call), mine.G), (theirs.f(*call), theirs.G))
