"""A call from arguments to results: one trace, and the tree of what it gives."""
