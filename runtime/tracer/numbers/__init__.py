"""Staged ints, floats, bools and text, the sizes that they are as symbols, and numbers given to torch."""
