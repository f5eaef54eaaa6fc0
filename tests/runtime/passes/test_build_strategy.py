"""What a BuildStrategy takes, and which passes it asks for."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from runtime.passes import DEFAULT, UNWATCHED, BuildStrategy, chosen, chosen_unwatched

DOCS = Path(__file__).resolve().parents[3] / "docs" / "build_strategy.md"


def test_the_default_is_all_that_keeps_every_bit() -> None:
    assert chosen(BuildStrategy()) == DEFAULT
    assert chosen_unwatched(BuildStrategy()) == UNWATCHED


@pytest.mark.parametrize("name", [one.name for one in DEFAULT])
def test_each_pass_can_be_left_out(name: str) -> None:
    options: dict[str, Any] = {name: False}
    assert chosen(BuildStrategy(**options)) == tuple(one for one in DEFAULT if one.name != name)


@pytest.mark.parametrize("name", [one.name for one in UNWATCHED])
def test_so_can_those_where_no_autograd_watches(name: str) -> None:
    options: dict[str, Any] = {name: False}
    assert chosen_unwatched(BuildStrategy(**options)) == tuple(one for one in UNWATCHED if one.name != name)


def test_options_are_set_as_attributes_too() -> None:
    strategy = BuildStrategy()
    strategy.enable_addto = True
    assert strategy == BuildStrategy(enable_addto=True) != BuildStrategy()


@pytest.mark.parametrize(("name", "advice"), [
    ("enable_in_place", "did you mean 'enable_inplace'?"), ("fuse_all", "did you mean|there are identities, "),
    ("nonsense", "there are identities, constants, "),
])  # fmt: skip
def test_an_unknown_option_is_an_error(name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=f"BuildStrategy has no option '{name}'; ({advice.replace('?', '[?]')})"):
        setattr(BuildStrategy(), name, True)
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        BuildStrategy(**{name: True})


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_a_value_is_true_or_false(value: Any) -> None:
    with pytest.raises(TypeError, match="scan of a BuildStrategy is True or False"):
        BuildStrategy(scan=value)


def test_the_page_has_each_option() -> None:
    text = DOCS.read_text()
    for one in fields(BuildStrategy):
        assert f"| `{one.name}` | {'on' if one.default else 'off'} |" in text, one.name
