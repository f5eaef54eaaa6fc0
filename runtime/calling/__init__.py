"""Calling: the road from a Program to a call's result, for live functions and loaded files alike."""

from runtime.calling.prepare import Options, prepare

__all__ = ["Options", "prepare"]
