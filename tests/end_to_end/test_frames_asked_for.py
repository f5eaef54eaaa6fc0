"""Functions that ask for frames get those of their own source; the callers of a converted function are refused."""

from __future__ import annotations

import inspect
import sys
import traceback
from types import FrameType

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check


def who():
    up = inspect.currentframe().f_back
    return sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno, up.f_code.co_filename, up.f_lineno


def on_paths(x):
    if x.sum() > 0:
        found = who()
        y = x + 1
    else:
        y, found = x, who()
    return y, found, sys._getframe().f_code.co_name, sys._getframe(0).f_globals is globals()


def in_a_loop(x):
    lines = ()
    while x.sum() < 10:
        lines = who()
        x = x + 1
    return x, lines


def in_a_lambda(x):
    return (lambda: who())(), x


class Named(torch.nn.Module):
    def forward(self, x):
        return f"{type(self).__name__}.{inspect.currentframe().f_code.co_name}", x * 2, on_paths(x)


@pytest.mark.parametrize("f", [on_paths, in_a_loop, in_a_lambda, Named()])
def test_frames_of_the_users_source(f):
    check(f, (torch.ones(2),), (-torch.ones(2),), (torch.ones(2, requires_grad=True),))


REFUSED = {
    "callers": lambda x: (sys._getframe(1).f_lineno, x),
    "caller": lambda x: (inspect.currentframe().f_back.f_lineno, x),
    "stack": lambda x: (inspect.stack()[0].function, x),
    "extract": lambda x: (len(traceback.extract_stack()), x),
    "format": lambda x: (traceback.format_stack()[-1], x),
    "printed": lambda x: (traceback.print_stack(), x),
    "locals": lambda x: (inspect.currentframe().f_locals, x),
    "information": lambda x: (inspect.getframeinfo(inspect.currentframe()).lineno, x),
    "module": lambda x: (inspect.getmodule(inspect.currentframe()).__name__, x),
    "returned": lambda x: (inspect.currentframe(), x),
    "returned in a list": lambda x: ([sys._getframe()], x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_program_cannot_know(name):
    with pytest.raises(TraceError, match="frame|stack") as error:
        to_static(REFUSED[name])(torch.ones(2))
    assert error.value.code == "D2S214" and error.value.location.file == __file__


def test_other_uses_of_inspect():
    def f(x):
        return inspect.getmodule(torch.relu) is None, inspect.isframe(3), x

    check(f, (torch.ones(2),))


def test_a_frame_has_no_other_attributes():
    def f(x):
        return hasattr(inspect.currentframe(), "nothing"), isinstance(x, FrameType), x

    check(f, (torch.ones(2),))
