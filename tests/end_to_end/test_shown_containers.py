"""What shows a container that changed on one path, and Python's operators on such containers: eager's answer or a
located error, never what the tracer keeps in the container's place."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import Dy2StaticError, to_static
from tests.end_to_end.shown_containers import module, snippets
from tests.from_files import module_of

SNIPPETS = list(snippets())
REFUSED = {"D2S210", "D2S253", "D2S254", "D2S260", "D2S263", "D2S265", "D2S266", "D2S229"}
INPUTS = (torch.tensor([1.0, -0.5]), torch.tensor([-1.0, 0.5]))


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("shown") / "shown.py"
    file.write_text(module())
    made = module_of(file)
    return made


def answer(function: Any, x: torch.Tensor) -> Any:
    """The type and text of a result, or the exception."""
    try:
        result = function(x)
    except Dy2StaticError as error:
        return error
    except Exception as error:
        return type(error), str(error)
    return _told(result)


def _told(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value), [_told(item) for item in value]
    if isinstance(value, dict):
        return type(value), [(_told(key), _told(item)) for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value), sorted(map(repr, value))
    return type(value), repr(value)


@pytest.mark.sample(4)
@pytest.mark.parametrize("number", range(len(SNIPPETS)), ids=[text.replace("\n", "; ") for text in SNIPPETS])
def test_eagers_answer_or_a_located_error(functions: Any, number: int) -> None:
    function = getattr(functions, f"f{number}")
    static = to_static(function)
    for x in INPUTS:
        found = answer(static, x)
        if isinstance(found, Dy2StaticError):
            assert found.code in REFUSED and found.location is not None, found
        else:
            assert found == answer(function, x)


@pytest.mark.slow
def test_most_are_answered(functions: Any) -> None:
    refused = [
        text for number, text in enumerate(SNIPPETS)
        if isinstance(answer(to_static(getattr(functions, f"f{number}")), INPUTS[0]), Dy2StaticError)
    ]  # fmt: skip
    assert len(refused) < len(SNIPPETS) / 4, "\n\n".join(refused)
