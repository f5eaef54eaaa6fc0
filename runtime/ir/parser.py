"""The text form of a Program, read. The exact inverse of ``runtime.ir.printer``; ``#`` starts a comment.

Errors raised: ProgramError with the line and column of the text. What parses need not be valid: see ``verify``.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from runtime.errors import ProgramError
from runtime.ir.block import Block
from runtime.ir.constants import SHORT_DTYPES, TORCH_CONSTANTS, implied_hint
from runtime.ir.lexer import Lexer, Token
from runtime.ir.location import Location
from runtime.ir.operator import Operator
from runtime.ir.program import Assume, Input, Parameter, Program, Write
from runtime.ir.tree import Leaf, Record
from runtime.ir.types import ArrayType, Dim, ObjectType, ScalarType, TensorType, Type
from runtime.ir.variable import UNDEF, Operand, Variable

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
    parser.text.expect_kind("end", "the end of the text")
    parser.check_assigned()
    return program


class _Parser:
    def __init__(self, text: Lexer) -> None:
        self.text = text
        self.variables: dict[str, Variable] = {}
        self.first_mention: dict[str, Token] = {}
        self.assigned: set[str] = set()

    # --- the program

    def program(self) -> Program:
        self.text.expect("program")
        program = Program(self.text.string())
        self.text.expect("{")
        while self.text.sees("input", "param", "assume"):
            self.header(program)
        program.block.args = [item.var for item in program.inputs] + [item.var for item in program.params]
        while not self.text.sees("return"):
            program.block.ops.append(self.operator())
        self.text.take()
        if not self.text.sees("as", "write", "}"):
            program.block.yields = self.text.listed(self.operand)
        if self.text.accept("as"):
            program.output = self.tree()
        while self.text.accept("write"):
            target = self.variable()
            self.text.expect("=")
            program.writes.append(Write(target, self.text.integer()))
        self.text.expect("}")
        return program

    def header(self, program: Program) -> None:
        word = self.text.take().text
        if word == "assume":
            program.assumes.append(self.assume())
            return
        var = self.define()
        self.text.expect("=")
        name = self.text.string()
        if word == "input":
            program.inputs.append(Input(var, name))
            return
        kind: Any = self.text.identifier()
        program.params.append(Parameter(var, name, kind, self.text.accept("requires_grad")))

    def assume(self) -> Assume:
        expr = self.text.string()
        symbols = dict(self.text.listed(self.symbol_source)) if self.text.accept("where") else {}
        return Assume(expr, symbols, self.location())

    def symbol_source(self) -> tuple[str, tuple[str, int]]:
        symbol = self.text.identifier()
        self.text.expect("=")
        name = self.text.string()
        self.text.expect("[")
        dim = self.text.integer()
        self.text.expect("]")
        return symbol, (name, dim)

    def location(self) -> Location | None:
        if not self.text.accept("@"):
            return None
        file = self.text.string()
        self.text.expect(":")
        line = self.text.integer()
        self.text.expect(":")
        column = self.text.integer()
        function = self.text.string() if self.text.accept("in") else ""
        text = self.text.string() if self.text.token.kind == "string" else ""
        return Location(file, line, column, function, text)

    # --- operators and blocks

    def operator(self) -> Operator:
        outputs: list[Variable] = []
        if self.text.token.kind == "variable":
            outputs = self.text.listed(self.define)
            self.text.expect("=")
        quoted = self.text.accept("op")
        name = self.text.string() if quoted else self.text.expect_kind("name", "an operator").text
        self.text.expect("(")
        op = Operator(name, outputs=tuple(outputs))
        args: list[Operand] = []
        self.text.separated(")", lambda: self.argument(op, args))
        op.args = tuple(args)
        blocks: list[Block] = []
        while self.text.accept("{"):
            blocks.append(self.block())
        op.blocks = tuple(blocks)
        if self.text.accept("attrs"):
            self.text.expect("{")
            op.attrs = dict(self.text.separated("}", self.attribute))
        if self.text.accept("grad"):
            mode: Any = self.text.identifier()
            op.grad_mode = mode
        if self.text.accept("autocast"):
            self.text.expect("[")
            op.autocast = tuple(self.text.separated("]", self.operand_alone))
        op.location = self.location()
        return op

    def argument(self, op: Operator, args: list[Operand]) -> None:
        following = self.text.following
        if following.kind == "punct" and following.text == "=" and self.text.token.kind in ("name", "string"):
            name_token = self.text.token
            name = self.text.identifier()
            self.text.take()
            if name in op.kwargs:
                self.text.fail(name_token, f"argument {name!r} is given twice")
            op.kwargs[name] = self.operand()
        elif op.kwargs:
            self.text.fail(self.text.token, "a positional argument after a keyword argument")
        else:
            args.append(self.operand())

    def attribute(self) -> tuple[str, Any]:
        key = self.text.identifier()
        self.text.expect(":")
        return key, self.operand()

    def block(self) -> Block:
        block = Block()
        if self.text.accept("^"):
            self.text.expect("(")
            block.args = self.text.separated(")", self.define)
            self.text.expect(":")
        while not self.text.sees("yield", "}"):
            block.ops.append(self.operator())
        if self.text.accept("yield") and not self.text.sees("}"):
            block.yields = self.text.listed(self.operand)
        self.text.expect("}")
        return block

    # --- variables and types

    def variable(self) -> Variable:
        token = self.text.expect_kind("variable", "a %variable")
        name = token.text[1:] or self.text.string()
        self.first_mention.setdefault(name, token)
        return self.variables.setdefault(name, Variable(name, _UNTYPED))

    def define(self) -> Variable:
        token = self.text.token
        var = self.variable()
        self.text.expect(":")
        type_ = self.type()
        if var.name in self.assigned and type_ != var.type:
            self.text.fail(token, f"%{var.name} is assigned twice, with different types")
        var.type = type_
        self.assigned.add(var.name)
        var.hint = self.text.string() if self.text.token.kind == "string" else implied_hint(var.name)
        return var

    def check_assigned(self) -> None:
        for name, token in self.first_mention.items():
            if name not in self.assigned:
                self.text.fail(token, f"%{name} is never assigned")

    def type(self) -> Type:
        token = self.text.take()
        if token.text == "?" or (token.kind == "name" and self.text.sees("[")):
            dtype = None if token.text == "?" else self.dtype(token)
            self.text.expect("[")
            if self.text.accept("*"):
                self.text.expect("]")
                return TensorType(dtype, None, self.device())
            shape = tuple(self.text.separated("]", self.dim))
            return TensorType(dtype, shape, self.device())
        if token.kind == "name" and token.text in ("int", "float", "bool", "complex", "str"):
            return ScalarType(token.text)  # type: ignore[arg-type]  # the line above names every ScalarKind
        if token.kind == "name" and token.text == "object":
            return ObjectType()
        if token.kind == "name" and token.text == "list":
            self.text.expect("<")
            element = self.type()
            self.text.expect(">")
            return ArrayType(element)
        self.text.fail(token, f"expected a type, found {token.text!r}")

    def device(self) -> torch.device | None:
        """Where a tensor is, if that is said."""
        if not self.text.accept("on"):
            return None
        token = self.text.token
        text = self.text.string()
        try:
            return torch.device(text)
        except RuntimeError:
            self.text.fail(token, f"{text!r} is no device")

    def dtype(self, token: Token) -> torch.dtype:
        found = SHORT_DTYPES.get(token.text) or TORCH_CONSTANTS.get(f"torch.{token.text}")
        if not isinstance(found, torch.dtype):
            self.text.fail(token, f"{token.text!r} is no dtype")
        return found

    def dim(self) -> Dim:
        return self.text.integer() if self.text.token.kind == "number" else self.text.identifier()

    # --- operands

    def tree(self) -> Any:
        return self.operand(leaves=True)

    def operand_alone(self) -> Any:
        return self.operand()

    def operand(self, leaves: bool = False) -> Operand:
        token = self.text.token
        if token.kind == "variable" and not leaves:
            return self.variable()
        if token.kind == "string":
            return self.text.string()
        self.text.take()
        if token.kind == "number":
            return self.text.number(token)
        if token.kind == "leaf" and leaves:
            return Leaf(int(token.text[1:]))
        if token.kind == "name":
            return self.word(token, leaves)
        if token.text == "[":
            return self.text.separated("]", lambda: self.operand(leaves))
        if token.text == "(":
            return self.round_brackets(leaves)
        if token.text == "{":
            return dict(self.text.separated("}", lambda: self.pair(leaves)))
        if token.text == "!":
            self.text.fail(token, "an object that the text form cannot hold")
        self.text.fail(token, f"expected an operand, found {token.text!r}")

    def round_brackets(self, leaves: bool) -> tuple[Any, ...]:
        items = tuple(self.text.separated(")", lambda: self.operand(leaves)))
        if len(items) == 1 and self.text.before(2).text != ",":
            self.text.fail(self.text.before(1), "a tuple of one needs a comma: (x,)")
        return items

    def pair(self, leaves: bool) -> tuple[Any, Any]:
        token = self.text.token
        key = self.operand()
        try:
            hash(key)
        except TypeError:
            self.text.fail(token, "a key must be hashable")
        self.text.expect(":")
        return key, self.operand(leaves)

    def word(self, token: Token, leaves: bool) -> Operand:
        word = token.text
        if word in _WORDS:
            return _WORDS[word]
        if word in TORCH_CONSTANTS:
            return TORCH_CONSTANTS[word]
        if word == "record" and leaves:
            kind, type_name = self.text.string(), self.text.string()
            self.text.expect("{")
            return Record(kind, type_name, tuple(self.text.separated("}", self.tree_field)))
        if word in ("slice", "complex", "device") and self.text.accept("("):
            return self.built(token, self.text.separated(")", self.operand))
        self.text.fail(token, f"expected an operand, found {word!r}")

    def tree_field(self) -> tuple[str, Any]:
        name = self.text.identifier()
        self.text.expect(":")
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
                self.text.fail(token, f"{parts[0]!r} is no device")
        self.text.fail(token, f"these are not the parts of a {token.text}")
