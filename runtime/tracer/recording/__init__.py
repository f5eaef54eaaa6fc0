"""Calls of torch as Operators: the session, the recorder and its checks, shape rules, gradients inside."""
