"""What the function of a file asks of its arguments and of the process, and the answers when it was traced.

A live function is traced anew where an argument answers otherwise. A file's Program rests on the answers of the example
that it was traced with: every call has to give them, too.

    x: InputSpec([3]), x.is_contiguous()   ->   Answer(position=0, question="lies plainly", value=True)
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import torch

from runtime import torch_internals
from runtime.torch_internals import SETTINGS

Value = bool | int
Plain = bool | int | float | str | None


class Answer(NamedTuple):
    """A question to an input or parameter of a Program, by its name in ``QUESTIONS``, and the answer."""

    position: int
    """Among the inputs, and the parameters after them."""
    question: str
    value: Value


class Question(NamedTuple):
    """Something that is asked of a tensor."""

    ask: Callable[[torch.Tensor], Value]
    said: Callable[[Value], str]
    """What is said of an argument with such an answer, where another one is needed."""
    hint: str
    of_gradients: bool = False
    """Whether it is about gradients: nobody asks it of what InputSpecs say that none flows to."""


def _lies_plainly(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided:
        return False
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride())):
        if stride != expected:
            return False
        expected *= max(size, 1)
    return True


def _is_leaf_written(tensor: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and tensor.requires_grad and tensor.is_leaf


def _either(yes: str, no: str) -> Callable[[Value], str]:
    return lambda value: yes if value else no


_CLONE, _DETACH = "Pass .clone() of it.", "Pass .detach() of it."
_IN_ROWS = "Pass .clone(memory_format=torch.contiguous_format) of it."
QUESTIONS = {
    "requires_grad": Question(
        lambda one: one.requires_grad, _either("needs a gradient", "needs no gradient"),
        "Pass one as it was when it was saved, .detach() of it or .requires_grad_().", of_gradients=True),
    "lies plainly": Question(
        _lies_plainly, _either("lies in memory row by row", "does not lie in memory row by row"), _IN_ROWS),
    "is a leaf": Question(
        _is_leaf_written, _either("is a leaf Variable that requires grad and is written in place", "is no leaf"),
        _CLONE, of_gradients=True),
    "is_leaf": Question(
        lambda one: one.is_leaf, _either("is a leaf", "is the result of a computation"), _DETACH, of_gradients=True),
    "is_inference()": Question(
        lambda one: one.is_inference(), _either("was made in inference mode", "was made outside of inference mode"),
        _CLONE),
    "storage_offset()": Question(
        lambda one: int(one.storage_offset()), lambda value: f"begins at element {value} of its memory", _IN_ROWS),
    "is_shared()": Question(
        lambda one: one.is_shared(), _either("is in memory that processes share", "is in memory of this process"),
        _CLONE),
    "grad is None": Question(
        lambda one: one.grad is None, _either("has no .grad", "has a .grad"), _DETACH, of_gradients=True),
    "has hooks": Question(
        lambda one: any(torch_internals.gradient_hooks(one)),
        _either("has hooks for its gradient", "has no hooks for its gradient"), _DETACH, of_gradients=True),
    "is a Parameter": Question(
        lambda one: isinstance(one, torch.nn.Parameter), _either("is a Parameter", "is no Parameter"), _DETACH),
}
"""By name, what is asked of arguments. An attribute that users hang on tensors is asked for as ``.name``."""


def question(name: str) -> Question | None:
    """The question of a name; None if there is none.

    >>> question(".mask").said(True), question("colour")
    ("has an attribute 'mask'", None)
    """
    attribute = name[1:]
    if name.startswith(".") and attribute.isidentifier() and not hasattr(torch.Tensor, attribute):
        said = _either(f"has an attribute '{attribute}'", f"has no attribute '{attribute}'")
        return Question(lambda one: hasattr(one, attribute), said, _DETACH)
    return QUESTIONS.get(name)


def _autocast() -> str:
    on = [one for one in torch_internals.autocast_devices() if torch.is_autocast_enabled(one)]
    return ", ".join(f"{one}: {str(torch.get_autocast_dtype(one)).removeprefix('torch.')}" for one in on) or "off"


AUTOCAST = "autocast"
def is_setting(name: str) -> bool:
    """Whether a text is the name of a setting: ``autocast``, one of ``SETTINGS``, or an attribute of torch.backends."""
    steps = name.split(".")
    of_backends = steps[:2] == ["torch", "backends"] and all(step.isidentifier() and step[0] != "_" for step in steps)
    return name == AUTOCAST or name in SETTINGS or (of_backends and len(steps) > 2)


def setting(name: str) -> Plain:
    """How the process is set now: a plain value, or the text of what a function gives; None for what is no setting in
    this version of PyTorch."""
    if name == AUTOCAST:
        return _autocast()
    try:
        found: Any = attrgetter(name.removeprefix("torch.").removesuffix("()"))(torch)
    except AttributeError:
        return None
    if name.endswith("()"):
        found = found()
        return found if type(found) in (bool, int, float, str) else str(found)
    return found if type(found) in (bool, int, float, str) else None  # a file may name anything that is there


__all__ = [
    "AUTOCAST", "Answer", "Plain", "QUESTIONS", "Question", "Value", "is_setting", "question", "setting",
]  # fmt: skip
