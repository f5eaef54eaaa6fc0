"""A Program of one row, run on all rows of a ``torch.vmap`` at once.

    %more : bool = scalar.item(%flag)          one answer for each row
    %y : f32[3] = cond(%more) {...} {...}      both Blocks run, each for its rows, and the results are put together

Operators run on batched tensors, by torch's own batching rules. What Python decides with, numbers and flags, is a
Python value for each row (``rows``). Where rows go different ways, each way is run once for all: rows that do not go it
stand there with the values of a row that does (``joining``), so nothing is computed that a row would not have computed.
"""
