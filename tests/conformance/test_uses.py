"""Nothing of Python's takes a value that only the run knows for something else: equal, or refused with a code."""

from __future__ import annotations

import pytest

from tests.conformance.uses import grown, record
from tests.conformance.uses.uses import OWNERS, TABLES, Use, every, outcomes

_STEP = 149
"""The default run takes one use in so many."""
_PARTS = 40


def _wrong(uses: list[Use]) -> list[str]:
    """The uses that are silently different or internal errors, and those that became worse than the record says."""
    known = record.read()
    found = []
    for use, outcome in outcomes(uses):
        word = record.word_of(outcome)
        worse = known.get(use) == "equal" and word != "equal" and use.in_this_python
        if outcome.word in ("silent", "internal") or worse:
            found.append(f"{use.id}: {outcome.word}, {use.text!r}: {outcome.detail}")
    return found


def test_some_uses() -> None:
    wrong = _wrong(every()[7::_STEP])
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_use(part: int) -> None:
    wrong = _wrong(every()[part::_PARTS])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("table", list(OWNERS))
def test_every_name_has_its_uses(table: str) -> None:
    owner = OWNERS[table]
    names = {
        name for name in dir(owner)
        if not name.startswith("_") and not _is_exception(getattr(owner, name)) and _is_function(owner, name)
    }  # fmt: skip
    assert names - TABLES[table].keys() == set()


def test_the_record_of_lists_that_grew_has_every_use() -> None:
    found = grown.read()
    assert found.keys() == set(grown.every()) and not {"internal", "different"} & set(found.values())


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _is_function(owner: object, name: str) -> bool:
    return isinstance(owner, type) or callable(getattr(owner, name))
