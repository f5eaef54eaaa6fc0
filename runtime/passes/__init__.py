"""Passes: rewriting Programs before they run."""

from runtime.passes.build_strategy import BuildStrategy

__all__ = ["BuildStrategy"]
