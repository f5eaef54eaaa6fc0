"""The lines of one function, cut out of its file so that they compile to the code that they have there.

A file of a library has thousands of lines, and a conversion wants a few of them: parsing them all takes longer than
converting the function, and the tree of a whole file, once it is kept, burdens each run of Python's collector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import CodeType

_MOST_ENDS = 12
"""So many lines are tried as the first behind the function."""
_NO_START = (")", "]", "}", "#")
"""How no statement begins."""
_IMPORT = re.compile(r"\s*(?:import|from\s+[\w.]+\s+import)\s+(\(?)(.*)")
_SCOPE = ("def ", "class ", "async ", "@")


def own_lines(code: CodeType, lines: list[str]) -> Iterator[str]:
    r"""Texts that may hold the function of ``code`` at its place in ``lines``, with the classes around it and, for one
    that stands in another function, all of the outermost. The first that parses is the one meant. What is cut may still
    be wrong, as the text alone does not tell strings from statements: the code that comes of it tells.

    >>> text = "import a\n\nclass A(B):\n    '''B'''\n    def f(self,\n          y):\n        return a.y\n    z = f\n"
    >>> code = compile(text, "a.py", "exec").co_consts[2].co_consts[2]
    >>> print(next(own_lines(code, text.splitlines(keepends=True))), end="")
    import a
    <BLANKLINE>
    <BLANKLINE>
    class A:
        def f(self,
              y):
            return a.y
    """
    around = getattr(code, "co_qualname", "<lambda>").split(".")  # unknown before Python 3.11
    if around[0] == "<lambda>":
        return
    outside = around.index("<locals>") - 1 if "<locals>" in around else len(around) - 1
    *classes, name = around[: outside + 1]
    defines = re.compile(rf"\s*(async\s+)?def\s+{re.escape(name)}\b")
    line = code.co_firstlineno - 1
    if line >= len(lines):
        return
    start = line if outside == len(around) - 1 else _above(defines, lines, line)
    indent = _indent(lines[start])
    first = next((i for i in range(start, min(start + 200, len(lines)))
                  if _indent(lines[i]) == indent and defines.match(lines[i])), None)  # fmt: skip
    if first is None or not len(classes) <= min(indent, start) or (indent and not classes):
        return
    headers = "".join(" " * depth + f"class {one}:\n" for depth, one in enumerate(classes))
    empty = start - len(classes)
    for end in _ends(lines, first + 1, indent):
        text = "".join(lines[start:end])
        imported = ", ".join(one for one in imports(lines) if one in text) if empty else ""
        yield (f"import {imported}\n" if imported else "\n" * bool(empty)) + "\n" * (empty - 1) + headers + text


def imports(lines: list[str]) -> list[str]:
    r"""The names that a file imports: Python calls the functions in them in a way of its own.

    >>> imports(["import a.b, c as d\n", "try:\n", "    from e import (\n", "        f,\n", "    )\n",
    ...          "except E:\n", "    pass\n", "def g():\n", "    import h\n"])
    ['a', 'd', 'f']
    """
    known = _imports.get(id(lines))
    if known is None or known[0] is not lines:
        if len(_imports) >= _MOST_FILES:
            _imports.clear()
        known = _imports[id(lines)] = lines, list(dict.fromkeys(_found_imports(lines)))
    return known[1]


_MOST_FILES = 256
_imports: dict[int, tuple[list[str], list[str]]] = {}


def _found_imports(lines: list[str]) -> Iterator[str]:
    inside = open_bracket = False
    for line in lines:
        if open_bracket:
            names = line
        elif "import" not in line and (line[:1].isspace() or not line.startswith(_SCOPE)):
            inside = inside and (line[:1].isspace() or line.startswith(_NO_START))
            continue
        else:
            inside = line.startswith(_SCOPE) or (inside and line[:1].isspace())
            match = None if inside else _IMPORT.match(line)
            if match is None:
                continue
            open_bracket, names = bool(match[1]), match[2]
        names, _, _ = names.partition("#")
        open_bracket = open_bracket and ")" not in names
        for part in names.strip(" ()\\n").split(","):
            words = part.split()
            if words and words[-1].replace(".", "").isidentifier():
                yield words[-1].split(".")[0]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _above(defines: re.Pattern[str], lines: list[str], line: int) -> int:
    """The line in which the outermost function begins, above ``line`` and further out; ``line`` if there is none."""
    inside = _indent(lines[line])
    return next((i for i in range(line - 1, -1, -1) if defines.match(lines[i]) and _indent(lines[i]) < inside), line)


def _ends(lines: list[str], first: int, indent: int) -> Iterator[int]:
    """Where a block that is further in than ``indent`` may end, nearest first."""
    count = 0
    for index in range(first, len(lines)):
        text = lines[index].lstrip()
        if text and not text.startswith(_NO_START) and len(lines[index]) - len(text) <= indent:
            yield index
            count += 1
            if count == _MOST_ENDS:
                return
    yield len(lines)


__all__ = ["own_lines"]
