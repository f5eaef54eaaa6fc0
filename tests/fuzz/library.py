"""How random programs begin, and their modules: helpers of their own are in ``helpers``."""

HEADER = '''\
import math
from functools import partial

import torch
import torch.nn.functional as F

from tests.fuzz.helpers import (
    Base,
    Box,
    Pair,
    Record,
    Scaled,
    at_most,
    count_up,
    counted,
    helper,
    produce,
    recurse,
    variadic,
)

total = 0


'''

MODULE = '''\
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
        self.scale = torch.nn.Parameter(torch.full((3,), 0.5))
        self.register_buffer("running", torch.zeros(3))
        self.register_buffer("seen", torch.tensor(0))
        self.steps = 0
        self.limit = 0.5

    def gate(self, t):
        if t.sum() > self.limit:
            self.seen += 1
            return t * self.scale
        return t

'''
