"""Older documents are brought up to date step by step."""

from __future__ import annotations

import pytest

from runtime.errors import StorageError
from runtime.storage import upgrade
from runtime.storage.document import Node


def test_current_version_is_left_alone() -> None:
    assert upgrade.upgraded(Node({"version": 1, "a": 2}, "d")).value == {"version": 1, "a": 2}


def test_older_versions_take_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "VERSION", 3)
    steps = {1: lambda d: {**d, "one": True}, 2: lambda d: {**d, "two": d["one"]}}
    monkeypatch.setattr(upgrade, "UPGRADES", steps)
    assert upgrade.upgraded(Node({"version": 1}, "d")).value == {"version": 3, "one": True, "two": True}
    del steps[1]
    with pytest.raises(StorageError, match="version 1 can no longer be read"):
        upgrade.upgraded(Node({"version": 1}, "d"))


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"version": 99}, "version 99, and this package reads up to version 1\n  Update dy2static"),
        ({"version": 0}, r"d\.version: expected a number of at least 1"),
        ({"version": "1"}, r"d\.version: expected a whole number"),
        ({}, "'version' is missing"),
        (None, "'version' is missing"),
    ],
)
def test_other_versions_are_refused(document: object, problem: str) -> None:
    with pytest.raises(StorageError, match=problem):
        upgrade.upgraded(Node(document, "d"))
