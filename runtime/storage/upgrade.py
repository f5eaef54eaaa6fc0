"""Artefacts of older versions, brought up to date: one step a version, applied in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.errors import StorageError
from runtime.storage.document import Node

VERSION = 2
"""The version this package writes."""


def _with_metadata_and_several_variants(document: dict[str, Any]) -> dict[str, Any]:
    """Version 2 has metadata, and a list of Variants for each mode where version 1 had one.

    What is not what version 1 wrote is left as it is: who reads the document finds it.
    """
    methods = document.get("methods")
    if type(methods) is dict:
        methods = {name: _with_lists_of_variants(method) for name, method in methods.items()}
    return {**document, "metadata": {}, **({} if methods is None else {"methods": methods})}


def _with_lists_of_variants(method: Any) -> Any:
    if type(method) is not dict or type(method.get("modes")) is not dict:
        return method
    return {**method, "modes": {mode: [index] for mode, index in method["modes"].items()}}


UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _with_metadata_and_several_variants}
"""``UPGRADES[n]`` makes the document of version n + 1 from one of version n."""


def upgraded(node: Node) -> Node:
    """The document as the current version would have written it.

    Errors raised: StorageError for a version that is newer than this package, or that it cannot read any more.
    """
    if type(node.value) is not dict or "version" not in node.value:
        node.fail("'version' is missing")
    version = Node(node.value["version"], f"{node.path}.version").integer(1)
    if version > VERSION:
        raise StorageError(
            f"the artefact has version {version}, and this package reads up to version {VERSION}",
            hint="Update dy2static to load it.",
            code="D2S514",
        )
    document: dict[str, Any] = node.value
    for step in range(version, VERSION):
        if step not in UPGRADES:
            hint = "Save it anew from its source."
            raise StorageError(f"artefacts of version {version} can no longer be read", hint=hint, code="D2S514")
        document = {**UPGRADES[step](document), "version": step + 1}
    return Node(document, node.path)
