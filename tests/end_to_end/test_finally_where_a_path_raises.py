"""A ``finally`` around what raises on some paths, where no handler catches it: what it tells is told before the call
raises. What it stores is not: a call that raises writes nothing back."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

RAISES = {
    "statement": "if x.sum() > 3:\n            raise ValueError(f'bad {x.sum().item()}')\n        y = x * 2",
    "call": "y = helper(x)",
    "deep call": "y = outer(x)",
    "loop": "for row in x:\n            if row > 1:\n                raise KeyError('row')\n        y = x * 2",
    "assertion": "assert x.sum() < 3, 'much'\n        y = x * 2",
    "returned": "return helper(x)",
    "two": "y = helper(x)\n        y = helper(y * 0.5)",
}
FINAL = {
    "print": "print('left')",
    "number of the run": "print('left', int(x.sum()), x)",
    "branch": "if x[0] > 0:\n            print('positive')\n        else:\n            print('other')",
    "log": "logging.getLogger('tests').warning('left %s', x.sum().item())",
}
AROUND = {
    "alone": "try:\n        {body}\n    finally:\n        {final}\n    return y",
    "handler of another": "try:\n        {body}\n    except IndexError:\n        y = x\n    finally:\n        {final}\n"
                          "    return y",
    "handler that raises again": "try:\n        {body}\n    except Exception:\n        print('seen')\n        raise\n"
                                 "    finally:\n        {final}\n    return y",
    "nested": "try:\n        try:\n            pass\n        finally:\n            print('inner')\n        {body}\n"
              "    finally:\n        {final}\n        print('outer')\n    return y",
}  # fmt: skip
FORMS = list(itertools.product(RAISES, FINAL, AROUND))


HELPERS = """def helper(x):
    n = x.sum()
    if n > 3:
        raise ValueError(f"bad {n.item()}")
    return x * 2


def outer(x):
    try:
        return helper(x)
    finally:
        print("outer")


"""


@pytest.mark.sample(24)
@pytest.mark.parametrize(("raised", "final", "around"), FORMS)
def test_as_eager(
    raised: str, final: str, around: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """What is printed, logged, raised and given back, in calls that raise and calls that do not."""
    body = AROUND[around].format(body=RAISES[raised], final=FINAL[final])
    text = f"{HELPERS}def f(x):\n    {body}\n"
    found = []
    for name, convert in (("eager", lambda f: f), ("static", to_static)):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        names: dict[str, Any] = {"logging": logging}
        exec(compile(text, str(path), "exec"), names)
        function: Any = convert(names["f"])
        outcomes = []
        for value in (0.5, 2.0, -1.0, 3.0):
            try:
                result = function(torch.full((3,), value)).tolist()
            except TraceError:
                raise
            except Exception as error:
                result = (type(error), str(error))
            outcomes.append((result, capsys.readouterr().out, caplog.messages.copy()))
            caplog.clear()
        found.append(outcomes)
    assert found[1] == found[0]


def test_gradients() -> None:
    """Of the paths that raise nothing."""
    log: list[str] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        try:
            if x.sum() > 3:
                raise ValueError("bad")
            y = x * x
        finally:
            log.append("left")
        return y

    check(f, (torch.ones(2, requires_grad=True),), (torch.ones(4, requires_grad=True),))
