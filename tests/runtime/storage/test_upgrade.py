"""Older documents are brought up to date step by step."""

from __future__ import annotations

import pytest

from runtime.errors import StorageError
from runtime.storage import upgrade
from runtime.storage.document import Node


def test_current_version_is_left_alone() -> None:
    assert upgrade.upgraded(Node({"version": 2, "a": 2}, "d")).value == {"version": 2, "a": 2}


@pytest.mark.parametrize("methods", [None, 3, {"f": 3}, {"f": {"modes": [1]}}])
def test_version_1_gets_metadata_and_lists_of_variants(methods: object) -> None:
    """What version 1 did not write stays as it is, for the reader to find."""
    document = {"version": 1, "methods": {"f": {"modes": {"train": 0, "eval": 1}, "variants": []}}}
    made = upgrade.upgraded(Node(document, "d")).value
    modes = {"train": [0], "eval": [1]}
    assert made == {"version": 2, "metadata": {}, "methods": {"f": {"modes": modes, "variants": []}}}
    assert document["methods"]["f"]["modes"] == {"train": 0, "eval": 1}
    assert upgrade.upgraded(Node({"version": 1, "methods": methods}, "d")).value["methods"] == methods


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
        ({"version": 99}, "version 99, and this package reads up to version 2\n  Update dy2static"),
        ({"version": 0}, r"d\.version: expected a number of at least 1"),
        ({"version": "1"}, r"d\.version: expected a whole number"),
        ({}, "'version' is missing"),
        (None, "'version' is missing"),
    ],
)
def test_other_versions_are_refused(document: object, problem: str) -> None:
    with pytest.raises(StorageError, match=problem):
        upgrade.upgraded(Node(document, "d"))
