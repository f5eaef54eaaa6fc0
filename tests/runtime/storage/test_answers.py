"""Questions to the tensors of a call: each of them, asked of a tensor of either kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from runtime.storage.answers import AUTOCAST, QUESTIONS, is_setting, question, setting
from runtime.torch_internals import setting_functions


def _with_gradient() -> torch.Tensor:
    made = torch.zeros(2, requires_grad=True)
    made.grad = torch.ones(2)
    return made


def _with_hook() -> torch.Tensor:
    made = torch.zeros(2, requires_grad=True)
    made.register_hook(lambda grad: grad)
    return made


def _in_inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.zeros(2)


def _with_mask() -> torch.Tensor:
    made = torch.zeros(2)
    made.mask = 3  # type: ignore[attr-defined]
    return made


OTHERS: dict[str, Callable[[], torch.Tensor]] = {
    "requires_grad": lambda: torch.zeros(2, requires_grad=True),
    "lies plainly": lambda: torch.zeros(2, 3).t(),
    "is a leaf": lambda: torch.zeros(2, requires_grad=True),
    "is_leaf": lambda: torch.zeros(2, requires_grad=True) * 1,
    "is_inference()": _in_inference,
    "storage_offset()": lambda: torch.zeros(3)[1:],
    "is_shared()": lambda: torch.zeros(2).share_memory_(),
    "grad is None": _with_gradient,
    "is a Parameter": lambda: torch.nn.Parameter(torch.zeros(2)),
    "has hooks": _with_hook,
    ".mask": _with_mask,
}


def test_all_questions_are_asked_here() -> None:
    assert OTHERS.keys() == {*QUESTIONS, ".mask"}


@pytest.mark.parametrize("name", OTHERS)
def test_a_plain_tensor_and_another_one_are_told_apart(name: str) -> None:
    asked = question(name)
    assert asked is not None
    plain, other = asked.ask(torch.zeros(2)), asked.ask(OTHERS[name]())
    assert plain != other and type(plain) is type(other) and type(plain) in (bool, int)
    assert asked.said(plain) != asked.said(other)
    assert asked.hint


@pytest.mark.parametrize(
    ("tensor", "plainly"),
    [
        (torch.zeros(()), True), (torch.zeros(2, 3), True), (torch.zeros(0, 3), True),
        (torch.zeros(2, 3)[:, ::1], True), (torch.zeros(2, 6)[:, ::2], False),
        (torch.zeros(3).expand(2, 3), False), (torch.zeros(2, 3, 4).mT, False),
        (torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), False),
    ],
)  # fmt: skip
def test_lying_plainly_is_having_the_strides_of_new_memory(tensor: torch.Tensor, plainly: bool) -> None:
    assert QUESTIONS["lies plainly"].ask(tensor) is plainly
    assert (tensor.stride() == torch.empty(tensor.shape).stride()) is plainly


def test_a_leaf_may_be_written_where_gradients_are_off() -> None:
    with torch.no_grad():
        assert not QUESTIONS["is a leaf"].ask(torch.zeros(2, requires_grad=True))


@pytest.mark.parametrize("name", ["", ".", ".a b", "mask", ".data", ".__class__"])
def test_what_is_no_question(name: str) -> None:
    assert question(name) is None


@pytest.mark.parametrize("name", sorted(setting_functions()))
def test_settings_have_plain_values(name: str) -> None:
    assert is_setting(name)
    assert type(setting(name)) in (bool, int, float, str) or name.startswith("torch.backends.cuda")


def test_autocast_is_a_setting() -> None:
    assert is_setting(AUTOCAST) and setting(AUTOCAST) == "off"
    with torch.autocast("cpu", torch.bfloat16):
        assert setting(AUTOCAST) == "cpu: bfloat16"


def test_attributes_of_backends_are_settings() -> None:
    assert is_setting("torch.backends.cudnn.enabled") and setting("torch.backends.cudnn.enabled") in (True, False)
    assert is_setting("torch.backends.no.such") and setting("torch.backends.no.such") is None


@pytest.mark.parametrize(
    "name", ["torch.load()", "torch.backends", "torch.backends._x.y", "torch.backends.a-b", "os.x.y", ""])  # fmt: skip
def test_what_is_no_setting(name: str) -> None:
    assert not is_setting(name)


def test_a_sparse_tensor_does_not_lie_plainly() -> None:
    assert QUESTIONS["lies plainly"].ask(torch.zeros(2, 3).to_sparse()) is False


def test_a_name_in_a_file_shows_nothing_but_plain_values() -> None:
    assert setting("torch.backends.cuda.matmul") is None and setting("torch.backends.cudnn.enabled") is not None
