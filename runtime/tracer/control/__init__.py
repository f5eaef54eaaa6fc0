"""Branches and loops: paths, what takes part in their joins, and the fixed point of a loop."""
