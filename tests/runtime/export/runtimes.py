"""Which runtimes run what is exported, found by running it: the matrix of docs/runtimes.md.

    python -m tests.runtime.export.runtimes [--only loop] [--write]

For each construct a function is exported and run on calls that take every path; the cell says what came of it. Each
attempt is a process of its own, which may crash. Runtimes that are not installed have no column; see ``COLUMNS`` for
what they are called on the package index.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib.metadata
import io
import multiprocessing
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dy2static import InputSpec
from dy2static.errors import Dy2StaticError
from tests.oracle import copied, tensors
from tests.runtime.export.c import harness as c_harness
from tests.runtime.export.onnx import harness as onnx_harness
from tests.runtime.export.rows import BOTH, COUNTS, ROWS, N, Row, X
from tests.runtime.export.torch_export import harness as torch_harness

PAGE = Path(__file__).parents[3] / "docs/runtimes.md"
SECONDS = 300
NO_EXPORT = {"text of the run", "random numbers", "numbers drawn from the process", "autocast", "store to an object",
             "print", "warning", "log record", "gradients inside", "function that calls itself",
             "list of lists that grows", "gradient of one's own", "check of an operator"}  # fmt: skip
"""Rows of the capability table that no format holds, or none as control flow."""


def straight(x):
    return torch.softmax(x @ x.t(), -1) * 2


def leaves_early(x):
    for i in range(x.shape[0]):
        if x[i].sum() < 0:
            return x * i
        if x[i, 0] > 9:
            break
        if x[i, 1] > 5:
            continue
        x = x + 1
    return x - 1


def chained(x):
    if (x.sum() > 0 and x.max() > 0.5) or x.min() < -0.5 and not x[0, 0] > 3:
        return x * 2
    return x


def nested(x, n):
    if x.sum() > 0:
        i = 0
        while i < n:
            if x.max() > 2:
                x = x * 0.5
            else:
                x = x + 1
            i += 1
    return x


class Recurrent(nn.Module):
    """A recurrent layer over as many steps as a call has rows."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.back = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = torch.zeros(4)
        states = []
        for t in range(x.shape[0]):
            h = torch.tanh(self.into(x[t]) + self.back(h))
            states.append(h)
        return torch.stack(states), h


class Experts(nn.Module):
    """Each call goes through the expert that its values choose."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(3, 3)
        self.experts = nn.ModuleList(nn.Linear(3, 2) for _ in range(3))

    def forward(self, x):
        return self.experts[int(self.gate(x).sum(0).argmax())](x)


class Greedy(nn.Module):
    """Decodes until an end token, or for ten steps; gives a list of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(7, 5), nn.GRUCell(5, 5), nn.Linear(5, 7)

    def forward(self, h):
        token = torch.zeros(1, dtype=torch.int64)
        tokens = []
        while len(tokens) < 10:
            h = self.cell(self.words(token), h)
            token = self.out(h).argmax(-1)
            tokens.append(token)
            if token.item() == 3:
                break
        return torch.cat(tokens), len(tokens)


def seeded(cls: Callable[[], Any]) -> Callable[[], Any]:
    def make() -> Any:
        torch.manual_seed(0)
        return cls()

    return make


ALL: dict[str, Row] = {
    "no control flow": Row(lambda: straight, [X], BOTH),
    **{name: row for name, row in ROWS.items() if name not in NO_EXPORT},
    "break, continue, return in a loop": Row(lambda: leaves_early, [X], BOTH),
    "and, or, not": Row(lambda: chained, [X], BOTH),
    "branch in a loop in a branch": Row(lambda: nested, [X, N], COUNTS),
    "recurrent layer as a loop": Row(seeded(Recurrent), [X], BOTH),
    "one of three experts": Row(seeded(Experts), [X], BOTH),
    "greedy decoder": Row(seeded(Greedy), [InputSpec([1, 5], "float32", "h")],
                          [(torch.full((1, 5), value),) for value in (-3.0, -1.0, 0.0, 1.0, 3.0)]),
}  # fmt: skip


class OpenVINO:
    """What ``onnx_harness`` asks of a session."""

    def __init__(self, path: Path) -> None:
        import openvino

        exact = {"INFERENCE_PRECISION_HINT": "f32"}  # it computes in bfloat16 where the processor has that
        self.model = openvino.Core().compile_model(str(path), "CPU", exact)

    def run(self, names: Sequence[str], given: dict[str, Any]) -> list[Any]:
        found = self.model(given)
        return [found[name] for name in names]


def _openvino(function: Any, row: Row, folder: Path) -> Callable[..., Any]:
    model = onnx_harness.export(function, folder, row.specs, runtime="openvino")
    model.session = OpenVINO(model.exported.path)
    return model.run


def _executorch(function: Any, row: Row, folder: Path) -> Callable[..., Any]:
    from executorch.exir import to_edge
    from executorch.runtime import Runtime

    exported = torch_harness.export(function, row.specs).exported.exported
    tree = exported.call_spec.out_spec
    file = folder / "model.pte"
    file.write_bytes(to_edge(exported).to_executorch().buffer)
    method = Runtime.get().load_program(file).load_method("forward")
    return lambda *inputs: _in_tree(method.execute(list(inputs)), tree)


def _in_tree(leaves: Sequence[Any], tree: Any) -> Any:
    """The results; what is written to arguments and buffers comes before them."""
    return torch.utils._pytree.tree_unflatten(list(leaves)[-tree.num_leaves:], tree)


def _iree(function: Any, row: Row, folder: Path) -> Callable[..., Any]:
    import iree.compiler
    import iree.runtime
    from torch_mlir import fx

    exported = torch_harness.export(function, row.specs).exported.exported
    module = fx.export_and_import(exported, output_type="torch", func_name="main")
    binary = iree.compiler.compile_str(str(module), target_backends=["llvm-cpu"], input_type="torch",
                                       extra_args=["--iree-llvmcpu-target-cpu=host"])  # fmt: skip
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, binary))
    main, tree = context.modules.module["main"], exported.call_spec.out_spec

    def run(*inputs: torch.Tensor) -> Any:
        found = main(*(one.numpy() for one in inputs))
        found = found if isinstance(found, (list, tuple)) else [found]
        return _in_tree([torch.from_numpy(one.to_host().copy()) for one in found], tree)

    return run


@dataclass(frozen=True)
class Column:
    """A runtime: what it is made of, the packages it needs, and what makes a callable of a function."""

    form: str
    packages: tuple[str, ...]
    made: Callable[[Any, Row, Path], Callable[..., Any]]


COLUMNS: dict[str, Column] = {
    "ONNX Runtime": Column(
        "onnx", ("onnxruntime",), lambda function, row, folder: onnx_harness.export(function, folder, row.specs).run),
    "OpenVINO": Column("onnx", ("openvino",), _openvino),
    "torch.export": Column(
        "torch", (), lambda function, row, folder: torch_harness.export(function, row.specs).call),
    "ExecuTorch": Column("torch", ("executorch",), _executorch),
    "IREE": Column("torch", ("iree-base-compiler", "iree-base-runtime", "torch-mlir"), _iree),
}


def attempt(column: str, title: str) -> str:
    """What becomes of a construct: "same", what refuses it, what fails, or "**different**"."""
    row, how = ALL[title], COLUMNS[column]
    made = row.make()
    given = made.eval() if isinstance(made, nn.Module) else made
    eager = copy.deepcopy(given)  # buffers may be written, by either
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = how.made(given, row, Path(folder))
        except Dy2StaticError as error:
            return f"refused ({error.code})"
        except Exception as error:
            return f"does not load: {_first_line(error)}"
        tree = torch_harness.export(eager, row.specs).tree if how.form == "torch" else None
        return _ran(run, eager, row.calls, tree)


def _ran(run: Callable[..., Any], eager: Any, calls: Sequence[tuple[Any, ...]], tree: Any) -> str:
    for call in calls:
        wanted = raised = None
        try:
            with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
                wanted = eager(*copied(call))
        except Exception as error:
            raised = error
        try:
            got = run(*(one.detach().clone() for one in tensors(call)))
        except Exception as error:
            if raised is None:
                return f"fails: {_first_line(error)}"
            continue
        if raised is not None:
            return "**different**: no error"
        try:
            if tree is None:
                c_harness.close(got, wanted, 1e-4)
            else:
                torch_harness.same(got, wanted, tree, 1e-4)
        except AssertionError as error:
            return f"**different**: {_first_line(error)}"
    return "same"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if re.search(r"[a-z]{3}", line)]
    wordy = [line for line in lines if not line.startswith(("Exception from", "Check '", "[")) or len(lines) == 1]
    return (wordy or lines or [type(error).__name__])[0][:90].replace("|", "/")


def _in_child(column: str, title: str, sender: Any) -> None:
    warnings.simplefilter("ignore")
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    torch.set_num_threads(1)
    sender.send(attempt(column, title))


def attempted(column: str, title: str) -> str:
    """The same, in a process of its own."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(column, title, sender))
    child.start()
    sender.close()
    try:
        if not receiver.poll(SECONDS):
            return f"no answer in {SECONDS} s"
        return str(receiver.recv())
    except EOFError:
        return "**crashes**"
    finally:
        child.kill()
        child.join()


def installed(column: str) -> bool:
    """Whether its packages are there."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return all(importlib.metadata.version(name) for name in COLUMNS[column].packages)
    return False


def matrix(only: str) -> str:
    """The table, as Markdown."""
    columns = [column for column in COLUMNS if installed(column)]
    heads = []
    for column in columns:
        version = importlib.metadata.version((COLUMNS[column].packages or ("torch",))[0])
        heads.append(f"{column} {version.partition('+')[0]}")
    lines = [f"| | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}"]
    for title in ALL:
        if only in title:
            cells = [attempted(column, title) for column in columns]
            lines.append(f"| {title} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Print the matrix, and write it into its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true", help="into docs/runtimes.md")
    asked = parser.parse_args()
    found = matrix(asked.only)
    if asked.write:
        text = PAGE.read_text("utf-8")
        PAGE.write_text(re.sub(r"(<!-- matrix -->\n).*?(<!-- end -->)", lambda at: f"{at[1]}{found}\n{at[2]}", text,
                               flags=re.S), "utf-8")  # fmt: skip


if __name__ == "__main__":
    main()
