"""Runs a module of CPython's own tests, each test method converted: ``python -m tests.third_party.python_tests FOLDER
MODULE PLACE``. ``FOLDER`` holds a copy of the package ``test``, as the standard library itself is not converted.

Prints a JSON object: how each test ended that eager Python passes, by name, and what was said where it did not pass.
``PLACE``: ``straight``, or ``path``: the method is called where a tensor decides that it is.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import signal
import sys
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError

SECONDS = 60
"""A test that takes longer is left out."""


class TooSlow(BaseException):
    """The alarm rang."""


def cases(suite: Any) -> Iterator[unittest.TestCase]:
    """The tests of a suite, one by one."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases(one)
        elif isinstance(one, unittest.TestCase) and type(one).__name__ not in ("DocTestCase", "_FailedTest"):
            yield one


def outcome(case: unittest.TestCase) -> tuple[str, str]:
    """``passed``, ``failed``, ``slow`` or ``skipped``, and what was said."""
    result, text = unittest.TestResult(), io.StringIO()
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.run(result)
    except TooSlow:
        return "slow", ""
    finally:
        signal.alarm(0)
    if result.skipped or result.expectedFailures:
        return "skipped", ""
    said = [text for _, text in (*result.errors, *result.failures)]
    return ("failed", said[0]) if said else ("passed", "")


def placed(method: Callable[[], Any], place: str) -> Callable[..., Any]:
    """The method where it is to run."""
    def path(x: torch.Tensor) -> Any:
        if x.sum() > 0:
            return method()
        return None

    return method if place == "straight" else path


def converted(case: unittest.TestCase, place: str) -> tuple[str, str]:
    """How a test ends whose method is converted: as ``outcome``, or the code of a refusal."""
    name = case._testMethodName
    static = to_static(placed(getattr(case, name), place))
    refused: list[Dy2StaticError] = []

    def call() -> Any:
        try:
            return static() if place == "straight" else static(torch.ones(2))
        except Dy2StaticError as error:
            refused.append(error)
            raise

    setattr(case, name, call)
    ended, said = outcome(case)
    return (refused[0].code, str(refused[0])) if refused and ended == "failed" else (ended, said)


def main(folder: str, module: str, place: str) -> None:
    """Run and print."""
    sys.path.insert(0, folder)

    def ring(*args: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, ring)
    found: dict[str, tuple[str, str]] = {}
    for case in cases(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(f"test.{module}"))):
        kind, name = type(case), case._testMethodName
        if outcome(kind(name))[0] == "passed":
            found[f"{kind.__name__}.{name}"] = converted(kind(name), place)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
