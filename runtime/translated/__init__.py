"""Loaded artefacts as modules: run, fine-tuned and saved again without the source they were made from."""

from runtime.translated.layer import TranslatedLayer
from runtime.translated.loading import load, save

__all__ = ["TranslatedLayer", "load", "save"]
