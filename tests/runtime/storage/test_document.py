"""Documents that may hold anything are read with precise errors."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import StorageError
from runtime.storage.document import Node, read_json


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no valid document"),
        (b"{", "no valid document"),
        (b"\xff", "no valid document"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b"NaN", "NaN is no JSON number"),
        (b"[" * 100_000, "nests too deeply"),
        (b"1" * 10_000, "no valid document"),
    ],
)
def test_bad_json_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(StorageError, match=f"^.D2S510. part .*{problem}"):
        read_json(data, "part")


def walk(node: Node) -> Any:
    return node.record("a")["a"].items()[1].record("b", optional=("c",))["b"].integer(0)


def test_right_document_is_read() -> None:
    assert walk(Node({"a": [None, {"b": 3, "c": 1}]}, "d")) == 3


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], r"d: expected an object, found a list of 0"),
        ({}, r"d: 'a' is missing"),
        ({"a": 1, "z": 2}, r"d: unknown key 'z'"),
        ({"a": 1}, r"d\.a: expected a list, found 1"),
        ({"a": [1, 2]}, r"d\.a\[1\]: expected an object, found 2"),
        ({"a": [1, {"b": True}]}, r"d\.a\[1\]\.b: expected a whole number, found True"),
        ({"a": [1, {"b": -1}]}, r"d\.a\[1\]\.b: expected a number of at least 0, found -1"),
        ({"a": [1, {"b": 10**400 * -1}]}, r"found a huge number"),
    ],
)
def test_problem_is_named_with_its_path(document: Any, problem: str) -> None:
    with pytest.raises(StorageError, match=problem):
        walk(Node(document, "d"))


@pytest.mark.parametrize("value", [1, None, ["a"], {"codes": [-1]}, {"codes": ["a"]}, {"code": []}])
def test_text_is_text(value: Any) -> None:
    with pytest.raises(StorageError):
        Node(value, "d").text()
