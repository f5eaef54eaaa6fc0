"""The text form, cut into tokens that know their line and column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from runtime.errors import ProgramError
from runtime.ir.location import Location

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
  | (?P<number>-?(?:0x[0-9a-fA-F]+|\d+\.\d*(?:e[+-]?\d+)?|\d+(?:e[+-]?\d+)?)|-(?:inf|nan)\b)
  | (?P<variable>%(?:[A-Za-z0-9_.]+|(?=")))
  | (?P<leaf>\$\d+)
  | (?P<name>[A-Za-z_]\w*(?:\.\w+)*)
  | (?P<punct>[{}()\[\],:=@^<>*?!])
    """,
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True)
class Token:
    """``kind`` is string, number, variable, leaf, name, punct or end; ``line`` is 1-based, ``column`` 0-based."""

    kind: str
    text: str
    line: int
    column: int


class Lexer:
    """The tokens of a text, and the one way to fail at one of them."""

    def __init__(self, text: str) -> None:
        self.source = text.split("\n")
        self.tokens: list[Token] = []
        at, line, start = 0, 1, 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                problem = "a string that is not closed" if text[at] == '"' else f"unexpected character {text[at]!r}"
                self.fail(Token("bad", text[at], line, at - start), problem)
            kind, piece = str(match.lastgroup), match.group()
            if kind != "space":
                self.tokens.append(Token(kind, piece, line, at - start))
            elif "\n" in piece:
                line += piece.count("\n")
                start = at + piece.rindex("\n") + 1
            at = match.end()
        self.tokens.append(Token("end", "the end of the text", line, at - start))

    def fail(self, token: Token, problem: str) -> NoReturn:
        """Raise ProgramError at a token, with the line of the text and a caret below it."""
        line = self.source[token.line - 1] if token.line <= len(self.source) else ""
        where = Location("<program>", token.line, token.column, "", line)
        raise ProgramError(f"line {token.line}, column {token.column + 1}: {problem}", location=where)
