"""``pytest --dy2static``: a test suite runs under conversion. This file holds the options alone and imports nothing of
PyTorch; what they do is in `dy2static.testing`, which is imported when one of them is given. See docs/pytest_plugin.md.
"""

from __future__ import annotations

import pytest

FLAGS = ("dy2static", "dy2static_calls", "dy2static_function")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, in a group of their own."""
    group = parser.getgroup("dy2static", "run tests under dy2static, each converted call held against eager")
    group.addoption("--dy2static", action="store_true", help="convert the forward of every nn.Module that is called")
    group.addoption(
        "--dy2static-calls", action="store_true",
        help="also convert every Python function that a test file calls with tensors",
    )  # fmt: skip
    group.addoption(
        "--dy2static-function", action="append", default=[], metavar="NAME",
        help="also convert this function wherever it is called from: package.module.name, package.module.Class.method, "
        "or a pattern such as 'package.*' (may be repeated)",
    )  # fmt: skip
    group.addoption(
        "--dy2static-tolerance", type=float, default=None, metavar="X",
        help="how far values may differ, relative to the largest; 0: not at all (default: as torch.testing has it)",
    )  # fmt: skip
    group.addoption(
        "--dy2static-compare", type=int, default=20, metavar="N",
        help="compare the first N calls of each place in a test (default 20); later ones run converted",
    )  # fmt: skip
    group.addoption(
        "--dy2static-leave", action="append", default=[], metavar="NAME",
        help="leave this function or pattern alone, such as 'package.module.Net.forward' or 'package.testing.*'",
    )  # fmt: skip
    group.addoption("--dy2static-report", metavar="FILE", help="write the report as JSON, too")


def pytest_configure(config: pytest.Config) -> None:
    """Bring in what the options do, where one of them is given."""
    if any(config.getoption(flag) for flag in FLAGS) and not config.pluginmanager.has_plugin("dy2static-running"):
        from dy2static.testing.plugin import Running

        config.pluginmanager.register(Running(config), "dy2static-running")
