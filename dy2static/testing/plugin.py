"""The pytest plugin once it is switched on: watches every test, fails those with a difference, reports at the end."""

from __future__ import annotations

import ast
import contextlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dy2static.program_cache import RetraceWarning
from dy2static.testing.called import replacements
from dy2static.testing.report import Report
from dy2static.testing.watch import Watch


class Running:
    """Hooks of one session."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.report = Report()
        options = (config.getoption(f"dy2static_{name}") for name in ("tolerance", "compare", "leave"))
        self.watch = Watch(self.report, *options)
        self._files: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Find the named functions: test files have imported what they test by now."""
        if self._is_controller():
            return
        for pattern in self.config.getoption("dy2static_function"):
            if not self.watch.add_functions(pattern) and session.items:
                raise pytest.UsageError(f"--dy2static-function: no Python function is called {pattern}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Calls are watched from a test's set-up to its end."""
        self._take_calls(item)
        self.watch.start(item.nodeid)
        self.watch.install()
        try:
            return (yield)
        finally:
            self.watch.uninstall()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """A test in which something differed fails, also where it would have passed."""
        warnings.filterwarnings("ignore", category=RetraceWarning)
        try:
            result = yield
        except BaseException:
            if self.watch.differences:
                item.add_report_section("call", "dy2static", "\n".join(self.watch.differences))
            raise
        if self.watch.differences:
            lines = "\n".join(f"  {line}" for line in self.watch.differences)
            pytest.fail(f"converted code differs from eager:\n{lines}", pytrace=False)
        return result

    def _take_calls(self, item: pytest.Item) -> None:
        module = getattr(item, "module", None)
        if not self.config.getoption("dy2static_calls") or module is None or module.__name__ in self._files:
            return
        self._files.add(module.__name__)
        with contextlib.suppress(OSError, SyntaxError):  # a file that is no longer there
            self.watch.codes.update(
                replacements(Path(module.__file__), vars(module), self.watch.called, self._asserts)
            )

    def _asserts(self, tree: ast.Module, source: bytes) -> None:
        """As pytest rewrote them, so that failures say as much."""
        if self.config.getoption("assertmode", "rewrite") != "rewrite":
            return
        try:
            from _pytest.assertion.rewrite import rewrite_asserts
        except ImportError:  # another pytest: assertions say less
            return
        rewrite_asserts(tree, source, None, self.config)

    # -- the report ------------------------------------------------------------------------------------------------

    def _is_controller(self) -> bool:
        return getattr(self.config.option, "dist", "no") != "no" and not hasattr(self.config, "workerinput")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """What a worker of pytest-xdist found."""
        found = getattr(node, "workeroutput", {}).get("dy2static")
        if found is not None:
            self.report.merge(found)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand over what was found, to a file or another process."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["dy2static"] = self.report.as_data()
            return
        file = self.config.getoption("dy2static_report")
        if file:
            Path(file).write_text(json.dumps(self.report.as_data(), indent=1, sort_keys=True), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """A line a place."""
        if hasattr(self.config, "workerinput"):
            return
        terminalreporter.section("dy2static")
        for line in self.report.lines():
            terminalreporter.write_line(line)
        terminalreporter.write_line(self.report.summary(), bold=True)


__all__ = ["Running"]
