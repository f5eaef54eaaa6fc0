"""``copy.copy``, ``copy.deepcopy``, ``asdict`` and ``astuple`` of lists whose length only the run knows."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import check, check_saved

ITEMS = {"numbers": "v", "pairs": "(v, 1.5)", "or None": "v if v > 2 else None", "texts": "f'{v:.1f}'",
         "of tuples": "((v, 2), 'a')"}  # fmt: skip
USES = (
    "copied(c, copy.copy)", "copied(c, copy.deepcopy)", "copied(c, lambda c: copy.deepcopy(x=c))",
    "copied(c, lambda c: asdict(Record(c))['held'])", "copied(c, lambda c: asdict(Record(Record(c)))['held']['held'])",
    "copied(c, lambda c: astuple(Record(c, 2))[0])", "copied(c, lambda c: replace(Record(c), n=2).held)",
    "copied(c, lambda c: copy.deepcopy(copy.deepcopy(c)))",
    "(list(copy.deepcopy(c)) == list(c), copy.deepcopy(c) is c)",
    "copied(c, lambda c: asdict(Record({'a': c, 'b': (c, 1)}))['held']['b'][0])",
)  # fmt: skip
TEXT = """def copied(c, how):
    other = how(c)
    length = len(other)
    other.append(None)
    c.extend(other)
    return length, list(c), list(other), type(other).__name__

def f(x):
    c = {kind}()
    for v in x:
        v = v.item()
        if v > 1:
            c.append({item})
    return {use}
"""
CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [2.0, 2.0, 5.0], [0.0, 0.0, 1.0], [9.0])]


@dataclasses.dataclass
class Record:
    held: Any
    n: int = 1


def function(path: Path, kind: str, items: str, use: str) -> Any:
    path.write_text(TEXT.format(kind=kind, item=ITEMS.get(items, items), use=use))
    names: dict[str, Any] = {"copy": copy, "deque": deque, "Record": Record, "asdict": dataclasses.asdict,
                             "astuple": dataclasses.astuple, "replace": dataclasses.replace}  # fmt: skip
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("kind", "items", "use"), list(itertools.product(("list", "deque"), ITEMS, USES)))
def test_as_eager(kind: str, items: str, use: str, tmp_path: Path) -> None:
    f = function(tmp_path / "copied.py", kind, items, use)
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


@pytest.mark.parametrize("item", ["x * v", "[v]", "{'a': v}", "Record(v)"])
def test_copies_of_what_can_be_changed_are_refused(item: str, tmp_path: Path) -> None:
    f = function(tmp_path / "copied.py", "list", item, "copied(c, copy.deepcopy)")
    with pytest.raises(Dy2StaticError) as caught:
        to_static(f)(torch.tensor([1.0, 2.0, 3.0]))
    assert caught.value.code in ("D2S253", "D2S210") and caught.value.location is not None
