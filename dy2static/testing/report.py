"""What became of the calls, per place: the same, refused by code, different, or not compared and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

SAME, REFUSED, DIFFERENT, SKIPPED, UNCOMPARED = "same", "refused", "different", "not compared", "converted"


@dataclass(frozen=True)
class Verdict:
    """What became of one call: a kind, the error's code, and in a sentence what there is to say."""

    kind: str
    code: str = ""
    text: str = ""


@dataclass
class Report:
    """All verdicts of a run, by place (``file:line Class.forward``)."""

    verdicts: dict[str, Counter[Verdict]] = field(default_factory=dict)
    tests: dict[str, set[str]] = field(default_factory=dict)
    """By kind, the tests in which a call had this verdict."""

    def add(self, place: str, verdict: Verdict, test: str = "", times: int = 1) -> None:
        """Note the verdict of some calls at a place."""
        self.verdicts.setdefault(place, Counter())[verdict] += times
        if test:
            self.tests.setdefault(verdict.kind, set()).add(test)

    def count(self, kind: str) -> int:
        """How many calls had a verdict of this kind."""
        return sum(n for found in self.verdicts.values() for verdict, n in found.items() if verdict.kind == kind)

    def codes(self) -> Counter[str]:
        """How many calls each code refused."""
        found: Counter[str] = Counter()
        for verdicts in self.verdicts.values():
            for verdict, count in verdicts.items():
                if verdict.kind == REFUSED:
                    found[verdict.code] += count
        return found

    def summary(self) -> str:
        """One line.

        >>> report = Report(); report.add("net.py:3 forward", Verdict(SAME)); print(report.summary())
        1 call at 1 place: 1 same
        """
        kinds = [(kind, self.count(kind)) for kind in (SAME, UNCOMPARED, REFUSED, DIFFERENT, SKIPPED)]
        codes = ", ".join(f"{code} {count}" for code, count in self.codes().most_common())
        said = [f"{count} {kind}{f' ({codes})' if kind == REFUSED else ''}" for kind, count in kinds if count]
        calls, places = sum(count for _, count in kinds), len(self.verdicts)
        head = f"{calls} {'call' if calls == 1 else 'calls'} at {places} {'place' if places == 1 else 'places'}"
        return f"{head}: {', '.join(said)}" if said else head

    def lines(self) -> Iterable[str]:
        """A line a place, and under it one for each reason."""
        for place in sorted(self.verdicts, key=_in_order):
            found = self.verdicts[place]
            kinds: Counter[str] = Counter()
            for verdict, count in found.items():
                kinds[verdict.kind] += count
            yield f"{place}: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}"
            for verdict, count in found.most_common():
                if verdict.text:
                    yield f"    {f'[{verdict.code}] ' if verdict.code else ''}{verdict.text} ({count})"

    def as_data(self) -> dict[str, Any]:
        """As JSON can hold it; ``merge`` takes it back."""
        return {
            "places": {
                place: [[verdict.kind, verdict.code, verdict.text, count] for verdict, count in found.items()]
                for place, found in self.verdicts.items()
            },
            "tests": {kind: sorted(tests) for kind, tests in self.tests.items()},
        }

    def merge(self, data: dict[str, Any]) -> None:
        """Add what another process found."""
        for place, found in data["places"].items():
            for kind, code, text, count in found:
                self.add(place, Verdict(kind, code, text), times=count)
        for kind, tests in data["tests"].items():
            self.tests.setdefault(kind, set()).update(tests)


def _in_order(place: str) -> tuple[str, int, str]:
    file, _, rest = place.partition(":")
    line = rest.split(" ")[0]
    return file, int(line) if line.isdigit() else 0, rest


__all__ = ["DIFFERENT", "REFUSED", "SAME", "SKIPPED", "UNCOMPARED", "Report", "Verdict"]
