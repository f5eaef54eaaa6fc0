"""The capability table: what a Program may need, and whether C, ONNX and ``torch.export`` have a form for it.

It is asked for a whole Program before anything of it is written: ``require`` names the first need without a form, with
the user's line and what to change. docs/export.md shows the table as it is here; its test runs every row. What a table
cannot tell (an operator that a target has for some arguments only) the targets say, also before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from runtime.errors import StorageError
from runtime.export import needs
from runtime.export.needs import Need
from runtime.ir import Program


@dataclass(frozen=True)
class Target:
    """Where Programs go: what it is called, and its error codes for operators and for what goes in and out."""

    name: str
    operators: str
    boundary: str


TARGETS: dict[str, Target] = {
    "c": Target("exported C", "D2S530", "D2S531"),
    "onnx": Target("ONNX", "D2S540", "D2S541"),
    "openvino": Target("ONNX in OpenVINO", "D2S540", "D2S541"),
    "torch": Target("torch.export", "D2S550", "D2S551"),
}


@dataclass(frozen=True)
class Form:
    """What becomes of a need."""

    text: str


@dataclass(frozen=True)
class No:
    """Why there is no form."""

    reason: str


Answer = Form | No


@dataclass(frozen=True)
class Row:
    """A need: what the user wrote, how it is found in a Program, an answer for each target, what to write instead."""

    title: str
    found: Callable[[Program], Iterator[Need]]
    answers: Mapping[str, Answer]
    instead: str = ""
    boundary: bool = False
    """Whether it is about what goes in and out."""


def _row(title: str, found: Callable[[Program], Iterator[Need]], c: Answer, onnx: Answer, torch: Answer,
         instead: str = "", boundary: bool = False, openvino: Answer | None = None) -> Row:  # fmt: skip
    """``openvino``: where it is not as for ONNX, because OpenVINO does not load it, or computes something else."""
    answers = {"c": c, "onnx": onnx, "openvino": onnx if openvino is None else openvino, "torch": torch}
    return Row(title, found, answers, instead, boundary)


_PASS_IN = "Compute it outside of what is exported, and pass it as an argument."
_RETURN = "Return the new value, and let the caller keep it."
_SAY_OUTSIDE = "Return what is to be said, and say it outside of what is exported."

_KEEPS_NOTHING = No("nothing is kept beyond the call")
_GRADIENTS = No("gradients inside of what is exported")

_NO_SEQUENCES = No("it does not load sequences that a branch or loop makes")
_HASHES = No("in which order Python goes over a set follows from the hashes of its items")
_DRAWN = No("Python's random numbers, NumPy's, and clocks")

TABLE: tuple[Row, ...] = (
    _row("branch", needs.called("cond"), Form("`if`"), Form("`If`"), Form("`torch.cond`")),
    _row("choice of many", needs.called("switch"), Form("`switch`"), Form("a chain of `If`"),
         Form("a chain of `torch.cond`")),
    _row("loop", needs.called("while_loop"), Form("`while`"), Form("`Loop`"), Form("`while_loop`")),
    _row("rows of a loop", needs.called("scan"), Form("`for`"), Form("`Loop` with scan outputs"),
         Form("`while_loop` that fills rows")),
    _row("exception", needs.exceptions, Form("an error with its text"), Form("a node that fails, named by its text"),
         Form("an assertion with its text"), "Return a flag that says so, and let the caller raise.",
         openvino=No("it runs on where a run should end")),
    _row("check of an operator", needs.checks, Form("an error with its text"),
         Form("a node that fails, named by its text"), Form("an assertion with its text"),
         openvino=Form("none: the run goes on where eager raises")),
    _row("write to what the function made", needs.called("update"), Form("in place; not all views"),
         Form("functional operators; `ScatterElements` for views"), Form("the writes, on copies")),
    _row("gradient of one's own", needs.called("custom_grad"), Form("its forward half"), Form("its forward half"),
         Form("its forward half")),
    _row("function that calls itself", needs.recursions, No("a function that calls itself"),
         No("a function that calls itself"), No("a function that calls itself"),
         "Write it as a loop over tensors that hold what is still to be done."),
    _row("number of the run", needs.numbers, Form("64 bits, checked"), Form("a tensor without dimensions, checked"),
         Form("a tensor without dimensions, checked; sizes are symbols")),
    _row("sizes differ on paths", needs.sizes_of_paths, Form("any"), Form("any"), Form("a size of its own")),
    _row("structure of the result differs on paths", needs.choices, Form("`out_which` and each path's results"),
         Form("`out_which` and each path's results"), Form('`{"which": ..., "if0": ..., "if1": ...}`')),
    _row("sizes change in a loop", needs.sizes_of_loops, Form("any"), Form("any"),
         No("PyTorch's while_loop carries tensors of one size"),
         "Fill a tensor that is made before the loop, in place of making a larger one in each iteration."),
    _row("order of a set", needs.called("array.set_order"), _HASHES, _HASHES, _HASHES,
         "Go over sorted(items), or use a dict or a list, which have an order."),
    _row("list of lists that grows", needs.lists_of_lists, No("a list of lists that the run makes"),
         No("a list of lists that the run makes"), No("PyTorch's graphs have no lists that a branch or loop makes"),
         "Keep one list, and a list of the numbers that say where each part of it begins."),
    _row("list that grows", needs.lists, Form("an array of tensors or numbers"), Form("a sequence"),
         No("PyTorch's graphs have no lists that a branch or loop makes"),
         "Fill the rows of a tensor that is made before the loop, or use torch.where for what a path adds.",
         openvino=_NO_SEQUENCES),
    _row("text of the run", needs.texts, No("text as a value of the run"), No("text as a value of the run"),
         No("text as a value of the run"), "Return the numbers, and make the text of them outside."),
    _row("complex number", needs.complexes, No("there are no complex tensors"), No("there are no complex tensors"),
         Form("as it is"), "Compute with the real and the imaginary part."),
    _row("random numbers", needs.randoms, No("random numbers: no runtime draws those of PyTorch"),
         No("random numbers: no runtime draws those of PyTorch"), Form("as they are, from PyTorch's generator"),
         _PASS_IN),
    _row("autocast", needs.autocasts, No("autocast"), No("autocast"), No("autocast"),
         "Convert the model to the dtype that it is to run in, and export it without autocast."),
    _row("half precision", needs.halves, No("there is no float16 or bfloat16 in C"), Form("float16, bfloat16"),
         Form("float16, bfloat16"), "Convert it to float32 first.", boundary=True),
    _row("write to an argument", needs.writes_to_arguments, No("nothing is changed that was there before the call"),
         No("a model changes nothing that was there before the call"), Form("the argument is written"), _RETURN, True),
    _row("write to a buffer", needs.writes_to_buffers, No("nothing is changed that was there before the call"),
         Form("an input with the stored value unless it is given, and an output"), Form("the buffer is written"),
         _RETURN, True, No("it takes no other value for an input that has one in the file")),
    _row("store to an object", needs.stores, _KEEPS_NOTHING, _KEEPS_NOTHING, _KEEPS_NOTHING, _RETURN,
         True),
    _row("print", needs.called("print"), No("it prints nothing"), No("a model prints nothing"),
         No("an exported program prints nothing"), _SAY_OUTSIDE),
    _row("warning", needs.called("warn"), No("it warns of nothing"), No("a model warns of nothing"),
         No("an exported program warns of nothing"), _SAY_OUTSIDE),
    _row("log record", needs.called("log"), No("it logs nothing"), No("a model logs nothing"),
         No("an exported program logs nothing"), _SAY_OUTSIDE),
    _row("Python function", needs.called("py_func"), No("a Python function"), No("a Python function"),
         No("a Python function"), _PASS_IN),
    _row("numbers drawn from the process", needs.of_the_process, _DRAWN, _DRAWN, _DRAWN, _PASS_IN),
    _row("gradients inside", needs.gradients, _GRADIENTS, _GRADIENTS, _GRADIENTS,
         "Export the function without them: what is exported is for inference."),
)  # fmt: skip
"""In the order in which they are asked for."""


def answer(title: str, target: str) -> Answer:
    """What the table says of a row for a target.

    >>> answer("list that grows", "onnx")
    Form(text='a sequence')
    """
    (row,) = (one for one in TABLE if one.title == title)
    return row.answers[target]


def require(program: Program, target: str) -> None:
    """Ask for all that a Program needs. Errors raised: StorageError for the first without a form in the target."""
    for row in TABLE:
        said = row.answers[target]
        if isinstance(said, No):
            for need in row.found(program):
                _refuse(row, said, need, TARGETS[target])


def refuse(title: str, target: str, what: str) -> NoReturn:
    """Errors raised: StorageError, for a need that was found elsewhere."""
    (row,) = (one for one in TABLE if one.title == title)
    said = row.answers[target]
    assert isinstance(said, No)
    _refuse(row, said, Need(None, what), TARGETS[target])


def _refuse(row: Row, said: No, need: Need, target: Target) -> NoReturn:
    raise StorageError(
        f"{target.name} has no form for {need.what}: {said.reason}", hint=row.instead,
        location=None if need.op is None else need.op.location,
        code=target.boundary if row.boundary else target.operators)  # fmt: skip


__all__ = ["TABLE", "TARGETS", "Answer", "Form", "No", "Row", "Target", "answer", "refuse", "require"]
