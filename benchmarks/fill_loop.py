"""Filling a tensor row by row: ``out[t] = h`` for T rows, eager and as a Program, side by side.

    python benchmarks/fill_loop.py --rows 2000 --width 64 --repeats 30

The two alternate within each repeat, so that a busy machine slows both; medians are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from runtime.executor import Executable, compile_program
from runtime.ir.parser import parse_program

PLAIN = ("copying x", "", "%x")
STEP = ("x @ w, tanh", "%m : f32[{d}] = aten.mv.default(%w, %x) %h : f32[{d}] = aten.tanh.default(%m)", "%h")


def program_text(rows: int, width: int, body: str, row: str) -> str:
    """The loop as a Program."""
    return f"""program "fill" {{
      input %x : f32[{width}] = "x"
      input %w : f32[{width}, {width}] = "w"
      input %n : int = "n"
      %z : f32[{rows}, {width}] = aten.zeros.default([{rows}, {width}])
      %last : int, %out : f32[{rows}, {width}] = while_loop(0, %z) {{
        ^(%i : int, %o : f32[{rows}, {width}]):
          %c : bool = scalar.lt(%i, %n)
          yield %c
      }} {{
        ^(%t : int, %p : f32[{rows}, {width}]):
          {body.format(d=width)}
          %q : f32[{rows}, {width}] = update(%p) {{
            ^(%b : f32[{rows}, {width}]):
              %v : f32[{width}] = aten.select.int(%b, 0, %t)
              %u : f32[{width}] = aten.copy_.default(%v, {row})
              yield %b
          }}
          %k : int = scalar.add(%t, 1)
          yield %k, %q
      }}
      return %out as $0
    }}"""


def eager(rows: int, x: torch.Tensor, w: torch.Tensor, *, step: bool) -> torch.Tensor:
    """The loop as its user writes it."""
    out = torch.zeros(rows, x.shape[0])
    for t in range(rows):
        out[t] = torch.tanh(w.mv(x)) if step else x
    return out


def timed(function: Callable[[], torch.Tensor], backward: bool) -> tuple[float, float]:
    """Seconds for forward, and for backward."""
    start = time.perf_counter()
    out = function()
    middle = time.perf_counter()
    if backward:
        out.sum().backward()
    return middle - start, time.perf_counter() - middle


def main() -> None:
    """Run both ways and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"T = {options.rows}, width {options.width}, medians of {options.repeats}, forward in ms")
    print(f"{'row':<14}{'gradients':<11}{'eager':>9}{'program':>9}{'ratio':>7}   backward ratio")
    for label, body, row in (PLAIN, STEP):
        executable = compile_program(parse_program(program_text(options.rows, options.width, body, row)))
        for grad in (False, True):
            x = torch.randn(options.width, requires_grad=grad)
            w = torch.randn(options.width, options.width) / 8

            def plain(x: torch.Tensor = x, w: torch.Tensor = w, step: bool = bool(body)) -> torch.Tensor:
                return eager(options.rows, x, w, step=step)

            def program(x: torch.Tensor = x, w: torch.Tensor = w, executable: Executable = executable) -> torch.Tensor:
                return executable.run([x, w, options.rows], [])[0]

            assert torch.equal(plain(), program())
            times = [(timed(plain, grad), timed(program, grad)) for _ in range(options.repeats)]
            a, b = (statistics.median(pair[side][0] for pair in times) * 1e3 for side in (0, 1))
            back = statistics.median(pair[1][1] for pair in times) / statistics.median(pair[0][1] for pair in times)
            tail = f"{back:17.2f}" if grad else ""
            print(f"{label:<14}{'yes' if grad else 'no':<11}{a:9.2f}{b:9.2f}{b / a:7.2f}{tail}")


if __name__ == "__main__":
    main()
