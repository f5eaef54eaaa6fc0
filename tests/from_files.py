"""Programs that tests write: what is converted has to stand in a real file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def module_of(file: Path, name: str = "") -> Any:
    """The module in a file, run anew, under the file's name or another; it is not put into ``sys.modules``."""
    spec = importlib.util.spec_from_file_location(name or file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
