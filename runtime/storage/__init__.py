"""Artefacts: Programs and their tensors in a file, without code."""

from runtime.storage.artefact import Artefact
from runtime.storage.files import artefact_path, read_artefact, read_state, write_artefact

__all__ = ["Artefact", "artefact_path", "read_artefact", "read_state", "write_artefact"]
