"""The text form, cut into tokens that know their line and column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from runtime.errors import ProgramError
from runtime.ir.constants import unquote
from runtime.ir.location import Location

_T = TypeVar("_T")

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
    """The tokens of a text, taken one after another, and the one way to fail at one of them."""

    def __init__(self, text: str) -> None:
        self.source = text.split("\n")
        self.tokens: list[Token] = []
        self.at = 0
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
        hint = "The text of a Program is what str(program) gives."
        raise ProgramError(f"line {token.line}, column {token.column + 1}: {problem}", hint=hint, location=where)

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    @property
    def following(self) -> Token:
        """The token after the next."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def before(self, count: int) -> Token:
        """The token passed ``count`` tokens ago."""
        return self.tokens[self.at - count]

    def take(self) -> Token:
        """The next token, which is passed."""
        token = self.token
        self.at += 1
        return token

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of these words or signs."""
        return self.token.kind in ("punct", "name") and self.token.text in texts

    def accept(self, text: str) -> bool:
        """Whether the next token is this word or sign; if so, pass it."""
        if self.sees(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        """Pass this word or sign; anything else is an error."""
        if not self.sees(text):
            self.fail(self.token, f"expected {text!r}, found {self.token.text!r}")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Pass a token of this kind; anything else is an error."""
        if self.token.kind != kind:
            self.fail(self.token, f"expected {what}, found {self.token.text!r}")
        return self.take() if kind != "end" else self.token

    def string(self) -> str:
        """Pass a string."""
        token = self.expect_kind("string", "a string in double quotes")
        try:
            return unquote(token.text)
        except ValueError as error:
            self.fail(token, str(error))

    def integer(self) -> int:
        """Pass a whole number."""
        token = self.expect_kind("number", "a whole number")
        value = self.number(token)
        if not isinstance(value, int):
            self.fail(token, f"expected a whole number, found {token.text!r}")
        return value

    def number(self, token: Token) -> int | float:
        """A number token's value."""
        text = token.text
        if text == "-nan":
            return math.copysign(math.nan, -1.0)
        if "0x" in text:
            return int(text, 16)
        if text == "-inf" or any(char in text for char in ".e"):
            return float(text)
        try:
            return int(text)
        except ValueError:
            self.fail(token, "a number with too many decimal digits; write it as hexadecimal")

    def identifier(self) -> str:
        """Pass a name, bare or in quotes."""
        return self.string() if self.token.kind == "string" else self.expect_kind("name", "a name").text

    def separated(self, close: str, item: Callable[[], _T]) -> list[_T]:
        """Items with commas between (one may trail), up to and with the closing bracket."""
        items: list[_T] = []
        while not self.accept(close):
            items.append(item())
            if not self.sees(close):
                self.expect(",")
        return items

    def listed(self, item: Callable[[], _T]) -> list[_T]:
        """Items with commas between, at least one, ending where no comma follows."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items
