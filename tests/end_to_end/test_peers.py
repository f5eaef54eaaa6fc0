"""The benchmark beside other frameworks: what its processes say, and that results are held against eager's."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "peer"))
    spec = importlib.util.spec_from_file_location("peers", BENCHMARKS / "peers.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.slow
def test_a_process_of_its_own_measures(peers: ModuleType) -> None:
    """The columns of dy2static agree with eager; what is not written is said."""
    peer = peers.Peer("torch", Path(sys.executable))
    try:
        columns = [(peer, one) for one in ("eager", "dy2static interpreter", "dy2static c")]
        found = peers.measure("W4", columns, 1)
        assert set(found) == {column for _, column in columns} <= set(peer.columns)
        assert all(one["us"] > 0 and one["first"] > 0 for one in found.values()), found
        assert peers.cell(found["eager"], None, "eager").endswith(" us")
        assert float(peers.cell(found["dy2static c"], found["eager"]["us"], "dy2static c")) > 0
        missing = peer.ask({"prepare": "W5", "column": "while_loop by hand"})
        assert missing["error"].startswith("not written") and peers.cell(missing, 1.0, "x") == "not written"
        assert "error" in peer.ask({"prepare": "W4", "column": "nobody"})
    finally:
        peer.close()


def test_another_result_is_no_time(peers: ModuleType) -> None:
    class Other:
        def ask(self, question: dict[str, Any]) -> dict[str, Any]:
            return {"first": 1.0, "sum": 1.0 if question["column"] == "eager" else 1.1, "us": 5.0}

    found = peers.measure("W4", [(Other(), "eager"), (Other(), "wrong")], 1)
    assert found["eager"]["us"] == 5.0 and "another result" in found["wrong"]["error"]
    assert peers.cell(found["wrong"], 5.0, "wrong") == "fails"


def test_a_framework_that_does_not_run_is_a_cell(peers: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "none").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "none").chmod(0o755)
    peer = peers.Peer("jax", tmp_path / "none")
    assert peer.columns == [] and "does not run here" in peer.ask({"prepare": "W4", "column": "jax.jit"})["error"]
    peer.close()


def test_all_frameworks_get_the_same_arrays(peers: ModuleType) -> None:
    import data

    for name in data.WORKLOADS:
        given, turned = data.arrays(name), data.transposed(name)
        assert json.dumps({key: one.tolist() for key, one in given.items()}) == json.dumps(
            {key: one.tolist() for key, one in data.arrays(name).items()})
        for key, one in given.items():
            matrix = key.endswith("_w") and one.ndim == 2
            assert np.array_equal(turned[key].T if matrix else turned[key], one)
