"""What calls of Python's own functions, and of some of torch's, do inside a trace; ``table.py`` has them all."""
