"""Counter, ChainMap, OrderedDict, UserDict, UserList and named tuples whose content depends on a tensor: each method
gives what it gives in eager, or is refused with the code that stands here."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.end_to_end.collection_uses import STARTS, USES
from tests.from_files import module_of
from tests.oracle import copied, run, same

REFUSED = {
    "chain-dict(c)": "D2S254", "chain-c.update(q=1)": "D2S254",
    "chain-c.setdefault": "D2S254", "chain-[k for k, v in c.items()]": "D2S254", "chain-sorted(c.keys())": "D2S254",
    "userdict-c.update(q=1)": "D2S254", "userdict-c.get": "D2S254",
    "userdict-c.pop": "D2S254", "userdict-c.setdefault": "D2S254", "userdict-list(c.items())": "D2S254",
    "userdict-d = c.copy()": "D2S210", "userdict-dict(c |": "D2S210", "userdict-c ==": "D2S254",
    "userdict-sorted(c.keys())": "D2S254",
}
"""Methods of the abstract classes of ``collections.abc`` are not converted."""
ALL = [(kind, use) for kind, uses in USES.items() for use in uses]


def _code(kind: str, use: str) -> str:
    return next((code for name, code in REFUSED.items() if f"{kind}-{use.removeprefix('r = ')}".startswith(name)), "")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    lines = ["import copy", "from collections import *"]
    for place, (kind, use) in enumerate(ALL):
        body = [*STARTS[kind].strip("\n").split("\n"), *use.split("; ")]
        lines += [f"def f{place}(x):", *(f"    {line}" for line in body), "    return r"]
    path: Path = tmp_path_factory.mktemp("collections") / "programs.py"
    path.write_text("\n".join(lines) + "\n")
    return module_of(path, "programs_of_collections")


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore:.*eval.. is called")
@pytest.mark.parametrize("place", range(len(ALL)), ids=[f"{kind}-{use}" for kind, use in ALL])
def test_each_use(programs: types.ModuleType, place: int) -> None:
    function: Any = getattr(programs, f"f{place}")
    static = to_static(function)
    code = ""
    for x in ([1.0, 2.0], [-1.0, -2.0], [3.0, -1.0], [0.5, -3.0]):
        call = [torch.tensor(x)]
        expected = run(function, copied(call))
        try:
            got = run(static, copied(call))
        except Dy2StaticError as error:
            code = error.code
            break
        same(got.result, expected.result)
        same(str(got.error), str(expected.error))
    assert code == _code(*ALL[place])
