"""Training through control flow: who is right? Ten small functions, six tools, eager as the judge.

    python benchmarks/who_is_right.py > docs/training_through_control_flow.md

Every cell runs in a process of its own. A tool is right if values, gradients (None where eager has None) and the random
stream are eager's.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def branch(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """A branch on a tensor"""
    if x.sum() > 0:
        y = x @ w
    else:
        y = x - v
    return y.square().sum()


def untaken(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """A weight of the branch not taken: its gradient is None, not zeros"""
    if x.sum() > 1000:
        y = x @ v
    else:
        y = x @ w
    return y.square().sum()


def early_return(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """An early return"""
    if x.sum() > 0:
        return (x @ w).sum()
    y = torch.tanh(x @ v)
    return y.square().sum()


def dropout_branch(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """Dropout inside a branch"""
    if x.sum() > -1000:
        y = torch.dropout(x @ w, 0.5, True)
    else:
        y = x - v
    return y.square().sum()


def recurrent(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """A loop over a closed-over weight, started from zeros"""
    h = torch.zeros(3, 3)
    i = torch.tensor(0)
    while i < n:
        h = torch.tanh(h @ w + x)
        i = i + 1
    return h.square().sum()


def dropout_loop(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """Dropout inside a loop"""
    h = x
    i = torch.tensor(0)
    while i < n:
        h = torch.tanh(torch.dropout(h, 0.3, True) @ w)
        i = i + 1
    return h.square().sum()


def for_break(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """for over a number from a tensor, with break"""
    h = x
    for _ in range(int(n.item())):
        h = torch.tanh(h @ w) * 1.5
        if h.abs().max() < 0.2:
            break
    return h.square().sum()


def growing_list(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """A list that grows, stacked"""
    h = x
    states = [x]
    for _ in range(int(n.item())):
        h = torch.tanh(h @ w)
        states.append(h)
    return torch.stack(states).cos().sum()


def fill(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """A buffer filled row by row"""
    out = torch.zeros(8, 3)
    h = x[0]
    for t in range(int(n.item())):
        h = torch.tanh(h @ w)
        out[t] = h
    return out.cos().sum()


def inner_descent(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    """Gradient descent inside the function, differentiated as a whole"""
    for _ in range(int(n.item())):
        loss = (torch.tanh(x @ w) - v).square().mean()
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        w = w - 0.5 * g
    return (torch.tanh(x @ w) - v).square().mean()


# The same by hand with torch.cond and while_loop, where they can say it.


def branch_by_hand(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    y = torch.cond(x.sum() > 0, lambda x, w, v: x @ w, lambda x, w, v: x - v, (x, w, v))
    return y.square().sum()


def untaken_by_hand(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    y = torch.cond(x.sum() > 1000, lambda x, w, v: x @ v, lambda x, w, v: x @ w, (x, w, v))
    return y.square().sum()


def early_return_by_hand(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    return torch.cond(
        x.sum() > 0, lambda x, w, v: (x @ w).sum(), lambda x, w, v: torch.tanh(x @ v).square().sum(), (x, w, v)
    )


def dropout_branch_by_hand(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    y = torch.cond(
        x.sum() > -1000, lambda x, w, v: torch.dropout(x @ w, 0.5, True), lambda x, w, v: x - v, (x, w, v)
    )
    return y.square().sum()


def _while(cond: Callable[..., Any], body: Callable[..., Any], carried: tuple[Tensor, ...]) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(cond, body, carried)


def recurrent_by_hand(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    _, h = _while(
        lambda i, h: i < n, lambda i, h: (i + 1, torch.tanh(h @ w + x)), (torch.tensor(0), torch.zeros(3, 3))
    )
    return h.square().sum()


def dropout_loop_by_hand(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    _, h = _while(
        lambda i, h: i < n, lambda i, h: (i + 1, torch.tanh(torch.dropout(h, 0.3, True) @ w)), (torch.tensor(0), x)
    )
    return h.square().sum()


def for_break_by_hand(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    def body(i: Tensor, go: Tensor, h: Tensor) -> Any:
        h = torch.tanh(h @ w) * 1.5
        return i + 1, h.abs().max() >= 0.2, h

    _, _, h = _while(lambda i, go, h: (i < n) & go, body, (torch.tensor(0), torch.tensor(True), x))
    return h.square().sum()


def fill_by_hand(x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
    def body(t: Tensor, h: Tensor, out: Tensor) -> Any:
        h = torch.tanh(h @ w)
        return t + 1, h, torch.where((torch.arange(8) == t)[:, None], h, out)

    _, _, out = _while(lambda t, h, out: t < n, body, (torch.tensor(0), x[0].clone(), torch.zeros(8, 3)))
    return out.cos().sum()


CASES: list[tuple[Callable[..., Tensor], Callable[..., Tensor] | None]] = [
    (branch, branch_by_hand), (untaken, untaken_by_hand), (early_return, early_return_by_hand),
    (dropout_branch, dropout_branch_by_hand), (recurrent, recurrent_by_hand), (dropout_loop, dropout_loop_by_hand),
    (for_break, for_break_by_hand), (growing_list, None), (fill, fill_by_hand), (inner_descent, None),
]  # fmt: skip
TOOLS = ["torch.cond / while_loop", "torch.export", "torch.compile", "torch.jit.trace", "torch.jit.script", "dy2static"]


def convert(tool: str, plain: Callable[..., Tensor], by_hand: Callable[..., Tensor] | None) -> Callable[..., Tensor]:
    """The function as a tool runs it."""
    if tool == "torch.export":
        return torch.export.export(_Module(plain), _arguments(0)).module()
    if tool == "torch.jit.trace":
        return torch.jit.trace(plain, _arguments(0), check_trace=False)
    if tool == "torch.jit.script":
        return torch.jit.script(plain)
    if tool == "torch.compile":
        return torch.compile(plain, fullgraph=True, backend="aot_eager")
    if tool == "dy2static":
        sys.path.insert(0, ROOT)
        from dy2static import to_static

        return to_static(plain)
    assert by_hand is not None
    return by_hand


class _Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, w: Tensor, v: Tensor, n: Tensor) -> Tensor:
        return self.function(x, w, v, n)


def _arguments(seed: int) -> tuple[Tensor, ...]:
    """Arguments whose sums have both signs, and loops of several lengths."""
    torch.manual_seed(seed)
    x, w, v = (torch.randn(3, 3) for _ in range(3))
    x = x - x.mean() + (0.5 if seed % 2 else -0.5)
    return x.requires_grad_(), w.requires_grad_(), v.requires_grad_(), torch.tensor((4, 2, 5, 3)[seed % 4])


def run(function: Callable[..., Tensor], seed: int) -> list[Tensor | None]:
    """Value, gradients and the next random number."""
    x, w, v, n = _arguments(seed)
    result = function(x, w, v, n)
    result.backward()
    return [result.detach(), x.grad, w.grad, v.grad, torch.rand(1)]


def judge(case: int, tool: str) -> str:
    """One cell of the table."""
    plain, by_hand = CASES[case]
    if tool == TOOLS[0] and by_hand is None:
        return "cannot say it"
    names = ["value", "gradient of x", "gradient of w", "gradient of v", "random stream"]
    try:
        converted = convert(tool, plain, by_hand)
        for seed in range(4):
            wanted, found = run(plain, seed), run(converted, seed)
            for name, a, b in zip(names, wanted, found):
                if (a is None) != (b is None):
                    return f"**wrong**: {name} is {'zeros' if b is not None else 'None'}"
                if a is not None and b is not None and not torch.allclose(a, b, rtol=1e-4, atol=1e-6):
                    off = float((a - b).norm() / a.norm())
                    return f"**wrong**: {name}" + ("" if name == "random stream" else f", {off:.0%} off")
    except Exception as error:  # whatever a tool raises is its refusal
        return f"refuses: {type(error).__name__}"
    return "right"


def cell(case: int, tool: str) -> str:
    """One cell, in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", os.path.abspath(__file__), "--case", str(case), "--tool", tool],
            capture_output=True, text=True, timeout=1800,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "no answer in half an hour"
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 and done.stdout.strip() else "crashes"


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=int)
    parser.add_argument("--tool")
    options = parser.parse_args()
    if options.case is not None:
        torch.set_num_threads(1)
        print(judge(options.case, options.tool))
        return
    pairs = [(case, tool) for case in range(len(CASES)) for tool in TOOLS]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        cells = dict(zip(pairs, pool.map(lambda pair: cell(*pair), pairs)))
    print("# Training through control flow: who is right?\n")
    print("Ten small functions, each run forward and backward on four inputs. Eager PyTorch is the judge: values,")
    print("gradients (None where eager has None) and the random stream must be its own. `torch.cond` and `while_loop`")
    print("run a version written for them by hand; the others get the plain function; `torch.compile` with")
    print("`fullgraph=True`. The sums of the four inputs have both signs, and the loops run 2 to 5 times.")
    print(f"Run with PyTorch {torch.__version__}; made by `python benchmarks/who_is_right.py`.\n")
    print("| function | " + " | ".join(TOOLS) + " |")
    print("| --- |" + " --- |" * len(TOOLS))
    for case, (plain, _) in enumerate(CASES):
        print(f"| {plain.__doc__} | " + " | ".join(cells[case, tool] for tool in TOOLS) + " |")
    right = [sum(cells[case, tool] == "right" for case in range(len(CASES))) for tool in TOOLS]
    print("| **right** | " + " | ".join(f"**{count} of {len(CASES)}**" for count in right) + " |")


if __name__ == "__main__":
    main()
