"""Calling: the road from a Program to a call's result, for live functions and loaded files alike."""

from runtime.calling.callee import Callee
from runtime.calling.live import LiveCallee
from runtime.calling.prepare import Options, prepare
from runtime.calling.report import Compiled, Part, compiled
from runtime.calling.results import build_tree

__all__ = ["Callee", "Compiled", "LiveCallee", "Options", "Part", "build_tree", "compiled", "prepare"]
