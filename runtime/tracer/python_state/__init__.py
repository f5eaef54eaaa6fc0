"""Python's own state: the journal of what paths change, and the guards of what a trace read."""
