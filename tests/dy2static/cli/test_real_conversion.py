"""The command line over the whole pipeline: what it prints runs, answers as the original, and keeps the comments."""

from __future__ import annotations

import importlib.util
import io
import tokenize
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static.cli import main

NET = '''"""A network that refines while it is not confident."""

from __future__ import annotations

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.cell = nn.Linear(width, width)   # the cell
        self.register_buffer("calls",  torch.tensor(0))

    # the main thing
    def forward(self, x, rows=()):
        """Scales, then refines."""
        h = x * 2      # scale

        # positive inputs are squashed
        if h.mean() > 0:  # mean
            h = torch.tanh(h)   # squash
        elif x.sum()  <  -100:   # far below
            return -h   # early
        else:
            # nothing to squash
            h = h + 1

        steps = 0
        while h.norm() > 1:       # refine
            # half
            h = h / 2
            steps += 1
            if steps > 5:
                break  # enough
        else:  # never broken
            steps  =  steps + 100
        for t, row in enumerate(rows):
            if t == 1:
                continue   # skip
            h = h + self.cell(h) * row   # residual
            with torch.no_grad():
                self.calls  +=  1   # count
        # the end
        return h, {
            "steps": steps,  # counted
        }


def outside(x):  # no module needed
    def inner(y):   # nested
        if y.sum() > 0: return y   # positive
        return -y
    return [inner(part)   for part in x]
'''


def load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("options", [[], ["--full"]])
def test_the_written_file_answers_as_the_original(options: list[str], tmp_path: Path) -> None:
    source, out = tmp_path / "net.py", tmp_path / "net_converted.py"
    source.write_text(NET)
    assert main(["convert", "--all", str(source), "-o", str(out), *options]) == 0
    original, converted = load(source, "net"), load(out, "net_converted")
    assert comments(out.read_text()) == comments(NET)
    first, second = original.Net(), converted.Net()
    second.load_state_dict(first.state_dict())
    for x in (torch.randn(8), torch.ones(8) * 1e6, -torch.ones(8) * 50, torch.zeros(8)):
        for rows in ((), (1.0, 2.0, 3.0)):
            expected, got = first(x, rows), second(x, rows)
            torch.testing.assert_close(got, expected, rtol=0, atol=0)
            assert type(got) is type(expected)
    assert first.calls == second.calls > 0
    x = torch.randn(3, 4)
    torch.testing.assert_close(converted.outside(x), original.outside(x), rtol=0, atol=0)


def test_untouched_statements_are_kept_to_the_byte(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "net.py"
    source.write_text(NET)
    assert main(["diff", "--all", str(source)]) == 0
    out = capfd.readouterr().out
    assert main(["convert", "--all", str(source)]) == 0
    converted = capfd.readouterr().out
    removed = [line[1:] for line in out.splitlines() if line.startswith("-") and not line.startswith("---")]
    for kept in (
        "        self.cell = nn.Linear(width, width)   # the cell",
        '        self.register_buffer("calls",  torch.tensor(0))',
        "        h = x * 2      # scale",
        "        # positive inputs are squashed",
        "            h = torch.tanh(h)   # squash",
        "                self.calls  +=  1   # count",
    ):
        assert kept.strip() in converted
        assert kept not in removed or kept.startswith(" " * 16)  # what stands deeper now is moved, not changed
    assert "_d2s.if_stmt(" in out and "_d2s.call(" not in out and "_d2s.attr(" not in out
    assert main(["diff", "--all", str(source), "--full"]) == 0
    assert "_d2s.if_stmt(" in capfd.readouterr().out


COMMENTED = '''def f(x, log, n: int = 3):
    # before the branch
    if x > 0:  # positive
        # note it
        log.append(x)  # noted
        # after the note
    else:
        # nothing to do
        pass
    # the loop
    for i in range(n):  # three times
        x = x + i  # added

    # about the result
    if log:  # has some
        # first
        return log[0]  # the first
    # none at all
    return None  # nothing
'''

CONVERTED = '''from dy2static import operators as _d2s


def f(x, log, n: int = 3):
    # before the branch
    # note it
    # noted
    # after the note
    # nothing to do
    _d2s.if_stmt(x > 0, lambda: log.append(x))  # positive
    # the loop
    def body(i):
        nonlocal x
        x = x + i  # added
    _d2s.for_stmt(range(n), body, 'x')  # three times

    # about the result
    # first
    # the first
    # none at all
    # nothing
    return _d2s.if_expr(log, lambda: log[0], lambda: None)  # has some
'''


def test_comments_of_a_block_that_is_an_expression_stand_above_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "commented.py"
    source.write_text(COMMENTED)
    assert main(["convert", "--all", str(source)]) == 0
    assert capfd.readouterr().out == CONVERTED


def test_converting_the_result_again_still_works(tmp_path: Path) -> None:
    source, once, twice = (tmp_path / f"{name}.py" for name in ("net", "once", "twice"))
    source.write_text(NET)
    assert main(["convert", "--all", str(source), "-o", str(once)]) == 0
    assert main(["convert", str(once), "-o", str(twice), "--function", "outside"]) == 0
    x = torch.randn(3, 4)
    torch.testing.assert_close(load(twice, "twice").outside(x), load(source, "net").outside(x))
    assert twice.read_text().count("from dy2static import operators as _d2s") == 1


def test_generators_are_left_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "generators.py"
    source.write_text("def f(x):\n    if x:\n        yield 1\nasync def g(x):\n    if x:\n        await x\n")
    assert main(["convert", "--all", str(source)]) == 0
    out, err = capfd.readouterr()
    assert out == "" and "f, g need no change" in err
