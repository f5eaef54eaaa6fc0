"""Where the comments of a function are, and which lines lie inside a string."""

from __future__ import annotations

import io
import tokenize

from dy2static.cli.text_file import TextFile

# tokens that span strings: since Python 3.12 an f-string is a start, its parts and an end
STARTS = {getattr(tokenize, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(tokenize, name)}
ENDS = {getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name)}


class Comments:
    """The comments between two lines of a file.

    ``texts`` maps a line to its comment, ``own_line`` holds the lines with nothing else, ``inside_strings`` the lines
    that begin inside a string: these must never be moved.
    """

    def __init__(self, file: TextFile, first: int, last: int) -> None:
        self.texts: dict[int, str] = {}
        self.own_line: set[int] = set()
        self.inside_strings: set[int] = set()
        depth_start: list[int] = []
        for token in tokens(file):
            line = token.start[0]
            if token.type == tokenize.COMMENT and first <= line <= last:
                self.texts[line] = token.string.rstrip()
                if not file.lines[line - 1][: token.start[1]].strip():
                    self.own_line.add(line)
            elif token.type == tokenize.STRING:
                self.inside_strings.update(range(line + 1, token.end[0] + 1))
            elif token.type in STARTS:
                depth_start.append(line)
            elif token.type in ENDS:
                self.inside_strings.update(range(depth_start.pop() + 1, token.end[0] + 1))


def tokens(file: TextFile) -> list[tokenize.TokenInfo]:
    """The tokens of a file that parses. Lone carriage returns, which tokenize does not know, end lines here too."""
    normal = "".join(line.rstrip("\r\n") + ("\n" if line.endswith(("\r", "\n")) else "") for line in file.lines)
    return list(tokenize.generate_tokens(io.StringIO(normal, newline="").readline))
