"""What exceptions of torch's and Python's say of stand-ins: what eager says, where eager says it at all."""

from __future__ import annotations

import pytest

from runtime.tracer.recording.wording import say_as_eager

EAGERS = {
    "'StagedInt' object is not iterable": "'int' object is not iterable",
    "can only concatenate str (not \"StagedFloat\") to str": "can only concatenate str (not \"float\") to str",
    "add(): argument 'other' (position 1) must be Tensor, not StagedStr":
        "add(): argument 'other' (position 1) must be Tensor, not str",
    "sum(): argument 'dim' must be tuple of ints, not StagedStr":
        "sum(): argument 'dim' must be tuple of ints, not str",
    "zeros(): argument 'size' (position 1) must be tuple of SymInts, not StagedFloat":
        "zeros(): argument 'size' (position 1) must be tuple of SymInts, not float",
}
OURS = (
    "topk(): argument 'k' (position 2) must be int, not StagedInt",
    "empty(): argument 'size' (position 1) must be tuple of ints, not StagedInt",
    "empty(): argument 'size' (position 1) must be tuple of SymInts, not SymInt",
    "zeros(): argument 'size' (position 1) must be tuple of ints, but found element of type StagedInt at pos 0",
    "upsample(): argument 'scale_factors' must be tuple of floats, not StagedFloat",
)


@pytest.mark.parametrize("text", EAGERS)
def test_what_eager_says(text: str) -> None:
    error = TypeError(text)
    say_as_eager(error)
    assert str(error) == EAGERS[text]


@pytest.mark.parametrize("text", OURS)
def test_what_eager_does_not_say(text: str) -> None:
    """The value that a stand-in is for would have been taken: it is no error of the user's."""
    error = TypeError(text)
    say_as_eager(error)
    assert str(error) == text
