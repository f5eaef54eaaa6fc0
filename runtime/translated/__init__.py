"""Loaded artefacts as modules: run, fine-tuned and saved again without the source they were made from."""

from runtime.translated.layer import TranslatedLayer
from runtime.translated.loading import load, load_state, save

__all__ = ["TranslatedLayer", "load", "load_state", "save"]
