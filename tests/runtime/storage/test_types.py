"""Classes that records of an artefact name."""

from __future__ import annotations

import fractions

from runtime.ir.tree import Record
from runtime.storage.types import check_record, record_class


def instance(name: str, **attributes: int) -> Record:
    return Record("instance", name, (("keys", tuple(attributes)), *attributes.items()))


def test_a_librarys_class_is_known_by_name_and_fields() -> None:
    record = instance("fractions.Fraction", _denominator=3, _numerator=1)
    assert check_record(record, {}) == "" and record_class(record) is fractions.Fraction


def test_with_other_fields_the_name_is_that_of_a_users_class() -> None:
    record = instance("fractions.Fraction", numerator=1)
    made = record_class(record)
    assert check_record(record, {}) == "" and made is not None
    assert made.__name__ == "Fraction" and not issubclass(made, fractions.Fraction)


def test_classes_that_are_not_listed_are_users_classes() -> None:
    made = record_class(instance("subprocess.Popen", args=1))
    assert made is not None and made.__module__ == "runtime.storage.types"
