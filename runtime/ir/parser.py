"""The text form of a Program, read. The exact inverse of ``runtime.ir.printer``; ``#`` starts a comment.

Errors raised: ProgramError with the line and column of the text. What parses need not be valid: see ``verify``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from runtime.errors import ProgramError
from runtime.ir.block import Block
from runtime.ir.constants import SHORT_DTYPES, TORCH_CONSTANTS, implied_hint, unquote
from runtime.ir.lexer import Lexer, Token
from runtime.ir.location import Location
from runtime.ir.operator import Operator
from runtime.ir.program import Assume, Input, Parameter, Program, Write
from runtime.ir.tree import Leaf, Record
from runtime.ir.types import ArrayType, Dim, ObjectType, ScalarType, TensorType, Type
from runtime.ir.variable import UNDEF, Operand, Variable

_T = TypeVar("_T")
_WORDS: dict[str, Any] = {
    "None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan, "undef": UNDEF,
}  # fmt: skip
_UNTYPED = ObjectType()


def parse_program(text: str) -> Program:
    """The Program that ``print_program`` wrote as ``text``.

    >>> print(parse_program('program "f" { input %x : f32[2] = "x" return %x as $0 }'), end="")
    program "f" {
      input %x : f32[2] = "x"
      return %x as $0
    }
    """
    parser = _Parser(Lexer(text))
    try:
        program = parser.program()
    except RecursionError:
        raise ProgramError("the text nests too deeply to be read") from None
    parser.expect_kind("end", "the end of the text")
    parser.check_assigned()
    return program


class _Parser:
    def __init__(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.at = 0
        self.variables: dict[str, Variable] = {}
        self.first_mention: dict[str, Token] = {}
        self.assigned: set[str] = set()

    # --- tokens

    @property
    def token(self) -> Token:
        return self.lexer.tokens[self.at]

    def take(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def sees(self, *texts: str) -> bool:
        return self.token.kind in ("punct", "name") and self.token.text in texts

    def accept(self, text: str) -> bool:
        if self.sees(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.sees(text):
            self.lexer.fail(self.token, f"expected {text!r}, found {self.token.text!r}")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            self.lexer.fail(self.token, f"expected {what}, found {self.token.text!r}")
        return self.take() if kind != "end" else self.token

    def string(self) -> str:
        token = self.expect_kind("string", "a string in double quotes")
        try:
            return unquote(token.text)
        except ValueError as error:
            self.lexer.fail(token, str(error))

    def integer(self) -> int:
        token = self.expect_kind("number", "a whole number")
        value = self.number(token)
        if not isinstance(value, int):
            self.lexer.fail(token, f"expected a whole number, found {token.text!r}")
        return value

    def number(self, token: Token) -> int | float:
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
            self.lexer.fail(token, "a number with too many decimal digits; write it as hexadecimal")

    def identifier(self) -> str:
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

    # --- the program

    def program(self) -> Program:
        self.expect("program")
        program = Program(self.string())
        self.expect("{")
        while self.sees("input", "param", "assume"):
            self.header(program)
        program.block.args = [item.var for item in program.inputs] + [item.var for item in program.params]
        while not self.sees("return"):
            program.block.ops.append(self.operator())
        self.take()
        if not self.sees("as", "write", "}"):
            program.block.yields = self.listed(self.operand)
        if self.accept("as"):
            program.output = self.tree()
        while self.accept("write"):
            target = self.variable()
            self.expect("=")
            program.writes.append(Write(target, self.integer()))
        self.expect("}")
        return program

    def header(self, program: Program) -> None:
        word = self.take().text
        if word == "assume":
            program.assumes.append(self.assume())
            return
        var = self.define()
        self.expect("=")
        name = self.string()
        if word == "input":
            program.inputs.append(Input(var, name))
            return
        kind: Any = self.identifier()
        program.params.append(Parameter(var, name, kind, self.accept("requires_grad")))

    def assume(self) -> Assume:
        expr = self.string()
        symbols = dict(self.listed(self.symbol_source)) if self.accept("where") else {}
        return Assume(expr, symbols, self.location())

    def symbol_source(self) -> tuple[str, tuple[str, int]]:
        symbol = self.identifier()
        self.expect("=")
        name = self.string()
        self.expect("[")
        dim = self.integer()
        self.expect("]")
        return symbol, (name, dim)

    def location(self) -> Location | None:
        if not self.accept("@"):
            return None
        file = self.string()
        self.expect(":")
        line = self.integer()
        self.expect(":")
        column = self.integer()
        function = self.string() if self.accept("in") else ""
        text = self.string() if self.token.kind == "string" else ""
        return Location(file, line, column, function, text)

    # --- operators and blocks

    def operator(self) -> Operator:
        outputs: list[Variable] = []
        if self.token.kind == "variable":
            outputs = self.listed(self.define)
            self.expect("=")
        quoted = self.accept("op")
        name = self.string() if quoted else self.expect_kind("name", "an operator").text
        self.expect("(")
        op = Operator(name, outputs=tuple(outputs))
        args: list[Operand] = []
        self.separated(")", lambda: self.argument(op, args))
        op.args = tuple(args)
        blocks: list[Block] = []
        while self.accept("{"):
            blocks.append(self.block())
        op.blocks = tuple(blocks)
        if self.accept("attrs"):
            self.expect("{")
            op.attrs = dict(self.separated("}", self.attribute))
        if self.accept("grad"):
            mode: Any = self.identifier()
            op.grad_mode = mode
        if self.accept("autocast"):
            self.expect("[")
            op.autocast = tuple(self.separated("]", self.operand_alone))
        op.location = self.location()
        return op

    def argument(self, op: Operator, args: list[Operand]) -> None:
        following = self.lexer.tokens[min(self.at + 1, len(self.lexer.tokens) - 1)]
        if following.kind == "punct" and following.text == "=" and self.token.kind in ("name", "string"):
            name_token = self.token
            name = self.identifier()
            self.take()
            if name in op.kwargs:
                self.lexer.fail(name_token, f"argument {name!r} is given twice")
            op.kwargs[name] = self.operand()
        elif op.kwargs:
            self.lexer.fail(self.token, "a positional argument after a keyword argument")
        else:
            args.append(self.operand())

    def attribute(self) -> tuple[str, Any]:
        key = self.identifier()
        self.expect(":")
        return key, self.operand()

    def block(self) -> Block:
        block = Block()
        if self.accept("^"):
            self.expect("(")
            block.args = self.separated(")", self.define)
            self.expect(":")
        while not self.sees("yield", "}"):
            block.ops.append(self.operator())
        if self.accept("yield") and not self.sees("}"):
            block.yields = self.listed(self.operand)
        self.expect("}")
        return block

    # --- variables and types

    def variable(self) -> Variable:
        token = self.expect_kind("variable", "a %variable")
        name = token.text[1:] or self.string()
        self.first_mention.setdefault(name, token)
        return self.variables.setdefault(name, Variable(name, _UNTYPED))

    def define(self) -> Variable:
        token = self.token
        var = self.variable()
        self.expect(":")
        type_ = self.type()
        if var.name in self.assigned and type_ != var.type:
            self.lexer.fail(token, f"%{var.name} is assigned twice, with different types")
        var.type = type_
        self.assigned.add(var.name)
        var.hint = self.string() if self.token.kind == "string" else implied_hint(var.name)
        return var

    def check_assigned(self) -> None:
        for name, token in self.first_mention.items():
            if name not in self.assigned:
                self.lexer.fail(token, f"%{name} is never assigned")

    def type(self) -> Type:
        token = self.take()
        if token.text == "?" or (token.kind == "name" and self.sees("[")):
            dtype = None if token.text == "?" else self.dtype(token)
            self.expect("[")
            if self.accept("*"):
                self.expect("]")
                return TensorType(dtype, None)
            return TensorType(dtype, tuple(self.separated("]", self.dim)))
        if token.kind == "name" and token.text in ("int", "float", "bool", "complex", "str"):
            return ScalarType(token.text)  # type: ignore[arg-type]  # the line above names every ScalarKind
        if token.kind == "name" and token.text == "object":
            return ObjectType()
        if token.kind == "name" and token.text == "list":
            self.expect("<")
            element = self.type()
            self.expect(">")
            return ArrayType(element)
        self.lexer.fail(token, f"expected a type, found {token.text!r}")

    def dtype(self, token: Token) -> torch.dtype:
        found = SHORT_DTYPES.get(token.text) or TORCH_CONSTANTS.get(f"torch.{token.text}")
        if not isinstance(found, torch.dtype):
            self.lexer.fail(token, f"{token.text!r} is no dtype")
        return found

    def dim(self) -> Dim:
        return self.integer() if self.token.kind == "number" else self.identifier()

    # --- operands

    def tree(self) -> Any:
        return self.operand(leaves=True)

    def operand_alone(self) -> Any:
        return self.operand()

    def operand(self, leaves: bool = False) -> Operand:
        token = self.token
        if token.kind == "variable" and not leaves:
            return self.variable()
        if token.kind == "string":
            return self.string()
        self.take()
        if token.kind == "number":
            return self.number(token)
        if token.kind == "leaf" and leaves:
            return Leaf(int(token.text[1:]))
        if token.kind == "name":
            return self.word(token, leaves)
        if token.text == "[":
            return self.separated("]", lambda: self.operand(leaves))
        if token.text == "(":
            return self.round_brackets(leaves)
        if token.text == "{":
            return dict(self.separated("}", lambda: self.pair(leaves)))
        if token.text == "!":
            self.lexer.fail(token, "an object that the text form cannot hold")
        self.lexer.fail(token, f"expected an operand, found {token.text!r}")

    def round_brackets(self, leaves: bool) -> tuple[Any, ...]:
        items = tuple(self.separated(")", lambda: self.operand(leaves)))
        if len(items) == 1 and self.lexer.tokens[self.at - 2].text != ",":
            self.lexer.fail(self.lexer.tokens[self.at - 1], "a tuple of one needs a comma: (x,)")
        return items

    def pair(self, leaves: bool) -> tuple[Any, Any]:
        token = self.token
        key = self.operand()
        try:
            hash(key)
        except TypeError:
            self.lexer.fail(token, "a key must be hashable")
        self.expect(":")
        return key, self.operand(leaves)

    def word(self, token: Token, leaves: bool) -> Operand:
        word = token.text
        if word in _WORDS:
            return _WORDS[word]
        if word in TORCH_CONSTANTS:
            return TORCH_CONSTANTS[word]
        if word == "record" and leaves:
            kind, type_name = self.string(), self.string()
            self.expect("{")
            return Record(kind, type_name, tuple(self.separated("}", self.tree_field)))
        if word in ("slice", "complex", "device") and self.accept("("):
            return self.built(token, self.separated(")", self.operand))
        self.lexer.fail(token, f"expected an operand, found {word!r}")

    def tree_field(self) -> tuple[str, Any]:
        name = self.identifier()
        self.expect(":")
        return name, self.tree()

    def built(self, token: Token, parts: list[Operand]) -> Operand:
        if token.text == "slice" and len(parts) == 3:
            return slice(*parts)
        if token.text == "complex" and len(parts) == 2:
            real, imag = parts
            if isinstance(real, float) and isinstance(imag, float):
                return complex(real, imag)
        if token.text == "device" and len(parts) == 1 and isinstance(parts[0], str):
            try:
                return torch.device(parts[0])
            except RuntimeError:
                self.lexer.fail(token, f"{parts[0]!r} is no device")
        self.lexer.fail(token, f"these are not the parts of a {token.text}")
