"""Loops on the device: a ``while_loop`` that a CUDA device computes by itself is one launch."""
