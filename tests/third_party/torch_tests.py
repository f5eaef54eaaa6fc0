"""PyTorch's own tests of ``torch.jit`` and ``torch.compile``: what they compile is converted, and held against eager.

    python -m tests.third_party.torch_tests FOLDER test_jit.py dynamo/test_functions.py --how path

``FOLDER`` is the folder ``test`` of PyTorch's sources, which no package holds. In place of ``torch.jit.script``,
``torch.compile``, ``torch._dynamo.optimize``, ``torch.export.export`` and the checks of the tests of ``torch.jit``
stands what calls a function both ways (``dy2static.testing``). What a test asserts beside that is not looked at: much
of it is about the compilers. ``--how``:

    straight   the function, with the test's arguments
    path       it is called where a tensor decides that it is
    numbers    the numbers among its arguments are numbers of the run
    grown      the lists among its arguments are made by a loop of which the run knows how often it turns

Prints how many calls were the same, refused (by code) and different, and each that differs; exits with 1 if any did.
Differences that are no fault: tests that look at ``id()``, or give a weak reference beside what it refers to, which a
copy does not keep.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import importlib.util
import itertools
import signal
import sys
import tempfile
import textwrap
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.testing.both import Call, call
from dy2static.testing.report import DIFFERENT, REFUSED

HOWS = ("straight", "path", "numbers", "grown")
SECONDS = 60
"""A test that takes longer is left out."""
_HEAD = """import math
from collections import *
from typing import *

import torch
import torch.nn.functional as F
from torch import Tensor, nn

"""


class TooSlow(BaseException):
    """The alarm rang."""


# -- how the function is called


class Number:
    """The place of a number among the arguments: ``kind`` makes it of the item ``index`` of those that the run gets."""

    def __init__(self, kind: type, index: int) -> None:
        self.kind, self.index = kind, index

    def __deepcopy__(self, memo: Any) -> Number:
        return self


def without_numbers(value: Any, numbers: list[torch.Tensor]) -> Any:
    """A value with places for the numbers in it, which go to ``numbers``."""
    if type(value) in (int, float, bool):
        if abs(value) > 2**60:
            return value
        numbers.append(torch.tensor(value, dtype=torch.float64 if type(value) is float else None))
        return Number(type(value), len(numbers) - 1)
    if type(value) in (list, tuple):
        return type(value)(without_numbers(item, numbers) for item in value)
    if type(value) is dict:
        return {key: without_numbers(item, numbers) for key, item in value.items()}
    return value


def with_numbers(value: Any, numbers: list[torch.Tensor]) -> Any:
    """The same with the numbers, as Python makes them of tensors."""
    if isinstance(value, Number):
        return value.kind(numbers[value.index])
    if type(value) in (list, tuple):
        return type(value)([with_numbers(item, numbers) for item in value])
    if type(value) is dict:
        return {key: with_numbers(item, numbers) for key, item in value.items()}
    return value


def is_uniform(value: Any) -> bool:
    """Whether this is a list whose items a tensor holds as well."""
    if type(value) is not list or not value or not all(type(item) is type(value[0]) for item in value):
        return False
    if isinstance(value[0], torch.Tensor):
        return all(item.shape == value[0].shape and item.dtype == value[0].dtype for item in value)
    return isinstance(value[0], (int, float))


def grown(value: Any, lengths: torch.Tensor) -> Any:
    """A value with each such list in it grown by a loop."""
    if is_uniform(value):
        kind = type(value[0])
        items = torch.stack(value) if isinstance(value[0], torch.Tensor) else torch.tensor(
            value, dtype=torch.float64 if kind is float else None)
        made = []
        for index in range(int(lengths[len(value)])):
            made.append(items[index] if isinstance(value[0], torch.Tensor) else kind(items[index]))
        return made
    if type(value) is tuple:
        return tuple([grown(item, lengths) for item in value])
    if type(value) is dict:
        return {key: grown(item, lengths) for key, item in value.items()}
    return value


def called(function: Callable[..., Any], how: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """What is to be converted, and its arguments."""
    if how == "path":
        def path(flag: torch.Tensor, args: Any, kwargs: Any) -> Any:
            result = None
            if flag > 0:
                result = function(*args, **kwargs)
            return result

        return path, (torch.ones(()), args, kwargs)
    if how == "numbers":
        numbers: list[torch.Tensor] = []
        places = without_numbers((args, kwargs), numbers)

        def with_those(numbers: list[torch.Tensor]) -> Any:
            given, named = with_numbers(places, numbers)
            return function(*given, **named)

        return with_those, (numbers,)
    if how == "grown":
        def with_grown(lengths: torch.Tensor) -> Any:
            return function(*grown(args, lengths), **grown(kwargs, lengths))

        return with_grown, (torch.arange(1_000),)

    def straight(args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return straight, (args, kwargs)


# -- what stands in place of a compiler


class Runs:
    """The calls that were made, and what became of them."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []
        self.test = ""
        self._busy = False

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's call, held against eager if it is no part of another one."""
        if self._busy:
            return function(*args, **kwargs)
        self._busy = True
        try:
            original, given = called(function, self.how, args, kwargs)
            try:
                verdict, result = call(Call(original, to_static(original), (), given, {}), None)
            except Exception as error:  # what no copy or comparison is made of: tensors of a class of the test's
                self.counts[f"not compared {type(error).__name__}"] += 1
                return function(*args, **kwargs)
            self.counts[f"{verdict.kind} {verdict.code}".strip()] += 1
            if verdict.kind == DIFFERENT:
                self.differences.append(f"{self.test}: {verdict.text}")
            return result()
        finally:
            self._busy = False

    @contextlib.contextmanager
    def of_test(self, name: str) -> Iterator[None]:
        """The calls of a test."""
        self.test, self._busy = name, False
        signal.alarm(SECONDS)
        try:
            yield
        except TooSlow:
            self.counts["too slow"] += 1
            raise RuntimeError("too slow") from None
        finally:
            signal.alarm(0)


class Both:
    """What a test takes for a compiled function or module."""

    def __init__(self, target: Any, runs: Runs) -> None:
        functools.update_wrapper(self, target)
        self._target, self._runs = target, runs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._runs.call(self._target, args, kwargs)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._target, name)


class Plugin:
    """For pytest: puts ``Both`` in place of the compilers, and takes the time of tests."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._numbers = itertools.count()
        self._folder = Path(tempfile.mkdtemp())

    def both(self, target: Any) -> Any:
        """What is given to a compiler, or the class that is."""
        return Both(target, self.runs) if callable(target) and not isinstance(target, (type, Both)) else target

    def install(self) -> None:
        """Replace the compilers."""
        def script(target: Any, *args: Any, **kwargs: Any) -> Any:
            return self.both(target)

        def compiled(model: Any = None, **kwargs: Any) -> Any:
            return self.both if model is None else self.both(model)

        def exported(model: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
            made = self.both(model)
            self.quietly(made, *args, **(kwargs or {}))
            return types.SimpleNamespace(module=lambda *args: made)

        dynamo: Any = importlib.import_module("torch._dynamo")
        export: Any = importlib.import_module("torch.export")
        jit: Any = torch.jit
        jit.script, jit.unused, jit.export, jit.script_method = script, _as_it_is, _as_it_is, _as_it_is
        jit.ignore = lambda drop=False, **kwargs: drop if callable(drop) else _as_it_is
        torch.compile = compiled  # type: ignore[assignment]
        dynamo.optimize = dynamo.optimize_assert = lambda *args, **kwargs: self.both
        export.export = exported
        tests: Any = importlib.import_module("torch.testing._internal.jit_utils")
        tests.JitTestCase.checkScript = self._check_script()
        tests.JitTestCase.checkScriptRaisesRegex = self._check_script()
        tests.JitTestCase.checkModule = self._check_script()
        for name in ("common_utils", "common_cuda", "inductor_utils", "common_device_type", "jit_utils", "common_nn",
                     "jit_metaprogramming_utils"):
            _stand_in_for_missing(f"torch.testing._internal.{name}")
        for name in ("_dynamo.utils", "_dynamo.testing", "_dynamo.test_case", "_inductor.utils", "jit.frontend", "jit"):
            _stand_in_for_missing(f"torch.{name}")

    def quietly(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Two calls, whatever they raise: that was compared."""
        for _ in range(2):
            with contextlib.suppress(Exception):
                function(*args, **kwargs)

    def _check_script(self) -> Any:
        plugin = self

        def check(case: Any, script: Any, inputs: Any, name: Any = "func", *args: Any, **kwargs: Any) -> Any:
            if isinstance(script, str):
                frame = sys._getframe(kwargs.get("frames_up", 1))
                script = plugin.from_text(script, kwargs.get("name", name), {**frame.f_globals, **frame.f_locals})
            if kwargs.get("inputs_requires_grad"):
                inputs = [one.detach().requires_grad_() if isinstance(one, torch.Tensor) and one.is_floating_point()
                          else one for one in inputs]  # fmt: skip
            made = plugin.both(script)
            plugin.quietly(made, *inputs)
            return made

        return check

    def from_text(self, text: str, name: str, around: dict[str, Any]) -> Any:
        """A function that a test has as a text, from a file with it."""
        file = self._folder / f"text{next(self._numbers)}.py"
        file.write_text(_HEAD + textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        for one, value in around.items():
            module.__dict__.setdefault(one, value)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return getattr(module, name)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        """Around each test."""
        with self.runs.of_test(item.nodeid.rpartition("/")[2]):
            yield


def _as_it_is(function: Any, *args: Any) -> Any:
    return function


def _stand_in_for_missing(module: str) -> None:
    """Names that PyTorch's helpers for tests had in the tests' version are decorators that do nothing, or no tests."""
    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("_tests"):
            return []
        return lambda first=None, *args, **kwargs: first if callable(first) else _as_it_is

    with contextlib.suppress(ImportError):
        found = importlib.import_module(module)
        if not hasattr(found, "__getattr__"):
            found.__getattr__ = __getattr__  # type: ignore[method-assign]


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+", help="files of tests in the folder")
    parser.add_argument("--how", choices=HOWS, default="straight")
    parser.add_argument("--tests", default="", metavar="EXPRESSION", help="which tests, as pytest's -k")
    options = parser.parse_args(arguments)

    def ring(*args: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, ring)
    torch.set_num_threads(1)
    sys.path.insert(0, str(options.folder))
    runs = Runs(options.how)
    plugin = Plugin(runs)
    plugin.install()
    chosen = ["-k", options.tests] if options.tests else []
    pytest.main(["-q", "--noconftest", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore", "--no-summary",
                 f"--rootdir={options.folder}", *chosen, *(str(options.folder / file) for file in options.files)],
                plugins=[plugin])  # fmt: skip
    for difference in runs.differences:
        print(difference)
    counts = sorted(runs.counts.items(), key=lambda one: (one[0].startswith(REFUSED), -one[1]))
    print(f"{options.how}:", ", ".join(f"{count} {what}" for what, count in counts))
    return 1 if runs.differences else 0


if __name__ == "__main__":
    sys.exit(main())
