"""Functions that operators stand for, called with arguments that they do not take: Python's own TypeError."""

from __future__ import annotations

import copy
import functools
import logging
import warnings
from typing import Any

import pytest
import torch

from tests.oracle import check

logger = logging.getLogger(__name__)


def logs(x: Any) -> Any:
    logger.log("start")  # type: ignore[call-arg]
    return x


def logs_nothing(x: Any) -> Any:
    logger.info()  # type: ignore[call-arg]
    return x


def logs_to_the_root(x: Any) -> Any:
    logging.warning()  # type: ignore[call-arg]
    return x


def copies(x: Any) -> Any:
    return copy.copy()  # type: ignore[call-arg]


def copies_deeply(x: Any) -> Any:
    return copy.deepcopy(x, memos={})  # type: ignore[call-arg]


def warns(x: Any) -> Any:
    warnings.warn()  # type: ignore[call-overload]
    return x


def applies(x: Any) -> Any:
    return functools.partial()(x)  # type: ignore[call-arg]


def reduces(x: Any) -> Any:
    return functools.reduce(torch.add)  # type: ignore[call-overload]


def lists(x: Any) -> Any:
    return [x].append()  # type: ignore[call-arg]


FUNCTIONS = [logs, logs_nothing, logs_to_the_root, copies, copies_deeply, warns, applies, reduces, lists]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_eager(function: Any) -> None:
    check(function, (torch.ones(2),), paths=("program",))
