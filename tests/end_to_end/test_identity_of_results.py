"""Results that are one tensor on some path are one object, whatever the tensor is a view of, live and loaded."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from tests.from_files import module_of
from tests.oracle import check, check_saved

SOURCES = {
    "argument": "x", "view": "x.view(-1)", "row": "x[0]", "slice": "x[1:]", "transposed": "x.t()",
    "detached": "x.detach()", "view of a view": "x[1:].t()", "row of a slice": "x[1:][0]",
    "at a staged row": "x[int(y.sum() > 0)]", "computed": "x * 2", "view of a computed one": "(x * 2).view(-1)",
    "detached computed": "(x * 2).detach()", "constant": "HELD", "view of a constant": "HELD[0]",
}  # fmt: skip
USES = {
    "if": """
    w = v * 2
    if y.sum() > 0:
        w = v
    return v, w
""",
    "after it": """
    w = v * 2
    if y.sum() > 0:
        w = v
    return w, v
""",
    "two of them": """
    u = v * 3
    w, t = u, v
    if y.sum() > 0:
        w, t = v, u
    return u, v, w, t
""",
    "while": """
    w, n = v * 2, 0
    while n < y.sum():
        w, n = v, n + 1
    return {"v": v, "w": w, "n": n}
""",
    "for": """
    kept = [v]
    for t in y:
        if t > 0:
            kept[0] = v * 2
        else:
            kept.append(v)
    return v, kept
""",
    "dict": """
    d = {"a": v}
    if y.sum() > 0:
        d["b"] = d["a"]
    return v, d.get("b"), d
""",
    "early return": """
    if y.sum() > 0:
        return v, v
    return v, v * 2
""",
    "ternary": """
    w = v if y.sum() > 0 else v * 2
    z = w if y[0] > 0 else v
    return v, w, z
""",
    "asked": """
    w = v if y.sum() > 0 else v * 2
    return (v, w, v is w) if y[0] > 0 else (w, v, w is not v)
""",
    "written": """
    w = v if y.sum() > 0 else v * 2
    with torch.no_grad():
        w.add_(1)
    return v, w
""",
    "written in the graph": """
    w = v if y.sum() > 0 else v * 2
    w.mul_(2)
    return w, v
""",
    "the other one written": """
    w = v if y.sum() > 0 else v * 2
    with torch.no_grad():
        v.mul_(2)
    return w, v
""",
    "written on a path": """
    p = v * 0.5
    if y.sum() > 0:
        p = v if y[0] > 0 else p
        p.detach().add_(1)
    else:
        v = v * 2
    return p, v
""",
    "swapped": """
    r, kept = v * 3, [v * 1]
    p = r.view(r.shape)
    if y[0] < 1.2:
        kept[0] = p
        if y[1] < 1.2:
            p, r = r, p
        with torch.no_grad():
            r.zero_()
    return p, r, kept[0]
""",
}
HELD = torch.arange(6.0).reshape(2, 3)
BOUNDS = [[1.0, 1.0], [-1.0, 1.5], [-1.0, -1.0]]
CALLS = [(torch.arange(9.0).reshape(3, 3) + 1, torch.tensor(bounds)) for bounds in BOUNDS]


def function(source: str, use: str) -> Any:
    text = f"def f(x, y):\n    v = {SOURCES[source]}{USES[use]}"
    file = f"<identity {source} {use}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"torch": torch, "HELD": HELD, "__name__": __name__}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


CASES = [(source, use) for source in SOURCES for use in USES if not ("constant" in source and "written" in use)]
"""A constant that is written is another one in the next call."""


@pytest.mark.parametrize(("source", "use"), CASES)
def test_results_that_are_one_are_one_object(source: str, use: str, tmp_path: Path) -> None:
    made = function(source, use)
    if source == "at a staged row" and "written" in use:
        with pytest.raises(dy2static.TraceError, match="D2S224"):
            check(made, *CALLS)
        return
    static = check(made, *CALLS)
    check_saved(made, static, tmp_path / "f.d2s", *CALLS)


MEMORY = ("torch.ones(2, 3)", "x[:2] * 1", "x.repeat(2, 1)[:2]")
VIEWS = ("b[0]", "b[:, 1:]", "b.t()", "b.view(-1)[1:4]", "b.unbind()[1]", "b")
WRITES = ("v.add_(1)", "b.mul_(2)", "v[0] = 5", "v.data.zero_()")
PUT = ("kept.append(v)", "kept.append((v, 1))", "kept.append([v])", "kept.append({'k': v})", "kept += [v, b]",
       "kept.insert(0, v)", "kept.extend((v, v))", "held['k'] = [v]", "kept.append(v[:1])",
       "kept.append(b[0])")  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize("put", PUT)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("memory", MEMORY)
def test_views_that_are_written_and_put_into_a_list(
    memory: str, view: str, write: str, put: str, tmp_path: Path
) -> None:
    """On a path, where the view leaves in other places as well."""
    text = f"""def f(x, y):
    b = {memory}
    v, kept, held = {view}, [], {{}}
    if y.sum() > 0:
        {write}
        {put}
    return v, b, kept, held
"""
    file = f"<identity {memory} {view} {write} {put}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"torch": torch, "__name__": __name__}
    exec(compile(text, file, "exec"), scope)
    check_saved(scope["f"], check(scope["f"], *CALLS), tmp_path / "f.d2s", *CALLS)


@pytest.mark.parametrize("put", [PUT[0], PUT[1], PUT[4], PUT[6]])
@pytest.mark.parametrize("write", ["v += 1", "v[0] = 5", "v.fill(3)", "np.add(v, 1, out=v)", "b *= 2"])
@pytest.mark.parametrize("view", ["b[0]", "b[1:]", "b[:, 1:]", "b"])
def test_arrays_that_are_written_and_put_into_a_list(view: str, write: str, put: str, tmp_path: Path) -> None:
    """The same of NumPy's arrays, which hold on to a tensor's memory."""
    (tmp_path / "arrays.py").write_text(f"""import numpy as np
def f(x, y, box):
    b = np.ones((2, 3))
    v, kept = {view}, []
    box["first"] = v
    if y.sum() > 0:
        {write}
        {put}
    return kept, box
""")
    check(module_of(tmp_path / "arrays.py").f, *((*call, {}) for call in CALLS))


STARTS = ("b = x * 2; v = b[:1]", "b = x * 2; v = b[:1]; b.add_(1)", "v = x * 2; b = v[:1]", "b = x; v = x[:1]")
STORED = ("w = v", "w = (v, 1)", "w = b[:1]", "HELD[0] = v")
ACTS = ("kept.append(v)", "v[0] = 8", "kept.append(v); v[0] = 8", "v[0] = 8; kept.append(v)",
        "b[0] = 7; kept.append(v)", "pass", "kept.append(b)", "kept.append(w)")  # fmt: skip
LAST = ("pass", "kept.append(v)", "u = v", "u = kept[-1]", "u = w")
VECTORS = [{"x": torch.tensor([a, b])} for a in (1.0, 3.0, -1.0, -3.0) for b in (2.0, -2.0)]


@pytest.mark.sample(200)
@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("other", ACTS)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("start", STARTS)
def test_views_that_paths_store_write_and_list(
    start: str, stored: str, act: str, other: str, last: str, tmp_path: Path
) -> None:
    """What one path stores, another writes and puts into a list that grows is one tensor, of the caller's memory where
    it is that."""
    text = f"""def f(x):
    HELD[0] = None
    {start}
    kept, w, u = [], None, None
    if x[0] > 0:
        {stored}
    if x.sum() > 0:
        {act}
    else:
        {other}
    if x[1] > 0:
        {last}
    return kept, w, u, HELD[0]
"""
    seen = []
    for convert in (lambda f: f, dy2static.to_static):
        scope: dict[str, Any] = {"torch": torch, "__name__": __name__, "HELD": [None]}
        file = f"<stored {start} {stored} {act} {other} {last}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), scope)
        seen.append([_told(convert(scope["f"]), one["x"].clone()) for one in VECTORS])
    for eager, static in zip(*seen):
        assert static == eager or static == "D2S222"


def _told(f: Any, x: torch.Tensor) -> Any:
    """What a call gave, which tensors are one, and what all hold once each was written; or an error's code."""
    try:
        results = f(x)
    except (dy2static.Dy2StaticError, IndexError) as error:
        return getattr(error, "code", type(error).__name__)
    kept, w, u, held = results
    tensors = [x, *kept, *(w if isinstance(w, tuple) else (w,)), u, held]
    tensors = [one for one in tensors if isinstance(one, torch.Tensor)]
    told = [str(results), [one is other for one in tensors for other in tensors]]
    for number, one in enumerate(tensors):
        one.mul_(number + 2)
    return [*told, str(results), x.tolist()]


def test_a_list_of_views_of_what_is_written_knows_them_where_gradients_are_computed() -> None:
    """The memory of an argument that the call wrote, which a Program with gradients keeps apart until its end."""

    def f(x: torch.Tensor, p: torch.Tensor) -> Any:
        kept = []
        v = p[:1]
        if x.sum() > 0:
            kept.append(v)
            v[0] = 8
        return kept, kept[-1] if x.sum() > 0 else None, x * 2

    static = dy2static.to_static(f)
    for call in (f, static):
        x, p = torch.tensor([3.0, 0.5], requires_grad=True), torch.tensor([5.0, 6.0])
        kept, last, _ = call(x, p)
        assert kept[0] is last and kept[0].tolist() == [8.0]
        kept[0].add_(1)
        assert p.tolist() == [9.0, 6.0], call
