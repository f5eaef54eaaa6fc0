"""A notebook as one Python text: its code cells, one after another, each below a line that says which it is.

Lines for IPython (``%magic``, ``!command``, ``help?``) become comments, cells of another language (``%%bash``) whole.
"""

from __future__ import annotations

import json
import re
from typing import Any

_LINE = re.compile(r"\s*(?:[%!]|\?|[\w.]+\s*=\s*[%!]|[\w.]+\?{1,2}\s*$)")
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun")


class NotANotebook(ValueError):
    """The file does not hold a notebook; the message says why."""


def source_of(data: bytes) -> tuple[str, tuple[int, ...]]:
    r"""The text of a notebook's code cells, and the line before each cell's first. Raises NotANotebook.

    >>> source_of(b'{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "%time x"]}]}')
    ('# %% cell 1\nx = 1\n# %time x\n', (1,))
    """
    try:
        notebook: Any = json.loads(data)
        cells = notebook["cells"]
        sources = [
            "".join(cell["source"]) if isinstance(cell["source"], list) else str(cell["source"])
            for cell in cells if cell["cell_type"] == "code"
        ]  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise NotANotebook("it is not a notebook of version 4") from error
    lines: list[str] = []
    starts = []
    for number, source in enumerate(sources, 1):
        lines.append(f"# %% cell {number}")
        starts.append(len(lines))
        lines += _python(source.splitlines())
    return "".join(f"{line}\n" for line in lines), tuple(starts)


def _python(lines: list[str]) -> list[str]:
    first = next((line.split()[0] for line in lines if line.strip()), "")
    if first.startswith("%%") and first not in _PYTHON_CELLS:
        return [f"# {line}" for line in lines]
    return [f"# {line}" if _LINE.match(line) else line for line in lines]


__all__ = ["NotANotebook", "source_of"]
