"""Passes: rewriting Programs before they are differentiated and run."""

from runtime.passes import common_subexpressions, constants, dead_code, identities, scan
from runtime.passes.build_strategy import BuildStrategy
from runtime.passes.manager import Applied, Pass, PassManager, Report

DEFAULT = (identities.PASS, constants.PASS, common_subexpressions.PASS, dead_code.PASS, scan.PASS)
"""The passes that every Program goes through, in this order: what the first ones leave unread dead code
drops, and what loops carry for nobody before they may become scans."""

__all__ = ["DEFAULT", "Applied", "BuildStrategy", "Pass", "PassManager", "Report"]
