"""All families, in the order of the documentation."""

from __future__ import annotations

import importlib
import pkgutil

from tests.conformance import cases
from tests.conformance.family import Case, Family

ORDER = ("Joins", "Returns", "Loops", "Booleans", "Casts and shape", "Mutation", "Calls", "Recursion",
         "In-graph training", "Whole programs", "Guards", "Errors", "Under vmap", "Checkpoints",
         "Programs built by hand")  # fmt: skip


def families() -> list[Family]:
    """The families, those of one name joined."""
    found: dict[str, Family] = {name: Family(name) for name in ORDER}
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda module: module.name):
        family = importlib.import_module(f"{cases.__name__}.{module.name}").family
        found[family.name].cases.extend(family.cases)
    return list(found.values())


def all_cases() -> list[Case]:
    """Every case."""
    return [case for family in families() for case in family.cases]
