"""One function's new tree -> its lines, keeping the text of every statement that did not change.

A statement of the new tree that equals the statement at the same place of the original is printed as the user wrote
it, with the comments and blank lines above it, shifted to where it now stands. Only the others are generated.
Comments of a statement that is generated go on lines of their own, above the statement that they stood before; that of
the line of an ``if``, ``while`` or ``for`` stands behind the call that it became.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from dy2static.cli.comments import Comments
from dy2static.cli.text_file import TextFile
from dy2static.generate import canonical, first_difference
from dy2static.generate_nodes import SourceGenerator
from dy2static.names import OPERATORS

Place = tuple[int, int, int, int]
_CONSTRUCTS = {f"{OPERATORS}.{name}" for name in ("if_stmt", "if_expr", "while_stmt", "for_stmt")}


def splice_function(file: TextFile, old: Any, new: Any) -> list[str]:
    """The lines that replace those of ``old``, from its ``def`` to its last: ``new`` is its converted tree."""
    return _Splice(file, old).function(new)


class _Splice:
    def __init__(self, file: TextFile, old: Any) -> None:
        self.file = file
        self.lines = file.lines
        self.old = old
        self.comments = Comments(file, old.lineno, old.end_lineno)
        self.done: set[int] = set()  # lines whose blank or comment has been printed
        self.kept: set[Place] = set()  # places of statements that the new tree holds unchanged
        self.headers: set[int] = set()  # lines of constructs that become calls, whose comments go there
        self.originals = {place(node): node for node in ast.walk(canonical(old)) if isinstance(node, ast.stmt)}
        own = indent_of(self.lines[old.lineno - 1])
        body = old.body[0]
        self.one_line = not self._stands_alone(body, old.body[-1]) or first_line(body) <= old.lineno
        self.indent = own + "    " if self.one_line else indent_of(self.lines[first_line(body) - 1])
        self.unit = self.indent[len(own) :] if self.indent.startswith(own) and len(self.indent) > len(own) else "    "

    def function(self, new: Any) -> list[str]:
        first, last = self.old.lineno, self.old.end_lineno
        statements = [node for part in new.body for node in ast.walk(part) if isinstance(node, ast.stmt)]
        self.kept = {place(node) for node in statements if self._original(node) is not None}
        became = [self._around(node) for node in statements if _is_construct(node)]
        self.headers = {node.lineno for node in became if isinstance(node, (ast.If, ast.While, ast.For))}
        if self.one_line:
            body = self.old.body[0]
            head = self.lines[first_line(body) - 1].encode()[: body.col_offset].decode().rstrip()
            header = [*self.lines[first - 1 : first_line(body) - 1], head + self.file.line_end]
            start = first_line(body)
        else:
            start = self._lead_start(first_line(self.old.body[0]), first)
            header = self.lines[first - 1 : start - 1]
        self.done.update(range(first, start))
        result = [*header, *self.block(new.body, self.indent)]
        self.headers.clear()
        result += self._flush(last + 1, self.indent)
        if not self.lines[last - 1].endswith(("\n", "\r")) and result:
            result[-1] = result[-1].rstrip("\r\n")
        return result

    # --- statements

    def block(self, statements: Sequence[ast.stmt], indent: str, trail: bool = True) -> Iterator[str]:
        """The lines of a block of the new tree; ``trail``: with the comments at its end."""
        index = 0
        while index < len(statements):
            count = self._kept(statements, index)
            if count:
                kept = [self.originals[place(statement)] for statement in statements[index : index + count]]
                yield from self._verbatim(kept[0], kept[-1], indent)
                index += count
                continue
            statement = statements[index]
            original = self.originals.get(place(statement))
            if original is not None and self._same_frame(original, statement):
                yield from self._compound(original, statement, indent)
            else:
                yield from self._generated(statement, indent)
            index += 1
        if statements and trail:
            yield from self._trail(statements[-1], indent)

    def _kept(self, statements: Sequence[ast.stmt], index: int) -> int:
        """How many statements from ``index`` on can be printed as they were written, as whole lines."""
        first = self._original(statements[index])
        if first is None:
            return 0
        last, count = first, 1
        while not self._stands_alone(first, last):
            follower = self._original(statements[index + count]) if index + count < len(statements) else None
            if follower is None or follower.lineno != last.end_lineno:
                return 0
            last, count = follower, count + 1
        return count

    def _original(self, statement: ast.stmt) -> Any:
        original = self.originals.get(place(statement))
        return original if original is not None and not first_difference(original, statement) else None

    def _stands_alone(self, first: Any, last: Any) -> bool:
        """True if the lines from ``first`` to ``last`` hold nothing else but a comment at the end."""
        before = self.lines[first_line(first) - 1].encode()[: first.col_offset].decode()
        after = self.lines[last.end_lineno - 1].encode()[last.end_col_offset :].decode()
        after = after.strip(" \t\f;\r\n")
        return not before.strip() and (not after or after.startswith("#"))

    def _verbatim(self, first: Any, last: Any, indent: str) -> Iterator[str]:
        start, end = first_line(first), last.end_lineno
        yield from self._lead(start, indent, indent_of(self.lines[start - 1]))
        yield from self._lines(start, end, indent)

    def _lines(self, start: int, end: int, indent: str, old: str | None = None) -> Iterator[str]:
        """Source lines, moved from their indentation to ``indent``; the inside of strings stays where it is."""
        old = indent_of(self.lines[start - 1]) if old is None else old
        self.done.update(range(start, end + 1))
        for number in range(start, end + 1):
            line = self.lines[number - 1]
            if old != indent and number not in self.comments.inside_strings and line.strip():
                line = indent + line[len(old) :] if line.startswith(old) else line
            yield line if line.endswith(("\n", "\r")) else line + self.file.line_end

    def _same_frame(self, old: Any, new: Any) -> bool:
        """True for compound statements that differ in their blocks only, each block on lines of its own."""
        old_blocks, new_blocks = list(blocks(old)), list(blocks(new))
        if type(old) is not type(new) or not old_blocks:
            return False
        if self._is_elif(old) and not (self._original(new.orelse[0]) or self._same_frame(old.orelse[0], new.orelse[0])):
            return False
        if len(old_blocks) != len(new_blocks) or not all(self._stands_alone(b[0], b[-1]) for b in old_blocks):
            return False
        if first_line(old_blocks[0][0]) <= old.lineno or not self._stands_alone(old, old_blocks[-1][-1]):
            return False
        return not first_difference(frame(old), frame(new))

    def _is_elif(self, node: Any) -> bool:
        """True for an ``if`` that goes on with an ``elif``: a block that has no header of its own."""
        if not isinstance(node, ast.If) or len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
            return False
        return self._is_elif_line(node.orelse[0].lineno)

    def _is_elif_line(self, number: int) -> bool:
        return self.lines[number - 1].lstrip().startswith("elif")

    def _compound(self, old: Any, new: Any, indent: str) -> Iterator[str]:
        start = first_line(old)
        own = indent_of(self.lines[start - 1])
        yield from self._lead(start, indent, own)
        last = list(blocks(old))[-1]
        for old_block, new_block in zip(blocks(old), blocks(new), strict=True):
            first = self._lead_start(first_line(old_block[0]), start)
            yield from self._lines(start, first - 1, indent, own)
            inner = indent_of(self.lines[first_line(old_block[0]) - 1])
            moved = indent + inner[len(own) :] if inner.startswith(own) else indent + self.unit
            yield from self.block(new_block, moved, trail=old_block is last)
            start = old_block[-1].end_lineno + 1

    def _generated(self, statement: ast.stmt, indent: str) -> Iterator[str]:
        original, unchanged = self._around(statement), self._original(statement) is not None
        if original is not None and (unchanged or place(original) not in self.kept):
            start = first_line(original)
            yield from self._lead(start, indent, indent_of(self.lines[start - 1]))
            if not list(blocks(original)):
                if unchanged:  # it shares its lines with other statements
                    self.done.update(range(original.lineno, original.end_lineno))
                yield from self._flush(original.end_lineno + 1, indent)
                if unchanged:
                    yield from self._segment(original, indent)
                    return
        if _is_construct(statement):  # the comments of its blocks that are lambdas now
            last = max(getattr(node, "end_lineno", None) or 0 for node in ast.walk(statement))
            yield from self._flush(last + 1, indent)
        generator = _Outline(self.unit)
        generator.visit(statement)
        lines = "".join(generator.result).strip("\n").split("\n")
        if _is_construct(statement) and original is not None and original.lineno in self.headers - self.done:
            comment = self.comments.texts.get(original.lineno)
            if comment is not None and len(lines) == 1:
                self.done.add(original.lineno)
                lines[0] += f"  {comment}"
        for line in lines:
            text = line.lstrip()
            if text.startswith(MARK):
                moved = indent + line[: len(line) - len(text)]
                yield from self.block(generator.blocks[int(text[1:])], moved)
            elif text:
                yield indent + line + self.file.line_end

    def _segment(self, node: Any, indent: str) -> Iterator[str]:
        """A simple statement's own text, on lines of its own."""
        lines = [line.encode() for line in self.lines[node.lineno - 1 : node.end_lineno]]
        lines[-1] = lines[-1][: node.end_col_offset] + self.file.line_end.encode()
        lines[0] = indent.encode() + lines[0][node.col_offset :]
        yield from (line.decode() for line in lines)

    def _around(self, statement: ast.stmt) -> Any:
        """The innermost original statement that ``statement`` was made from."""
        if getattr(statement, "lineno", None) is None:
            return None
        exact = self.originals.get(place(statement))
        if exact is not None:
            return exact if exact is not self.originals.get(place(self.old)) else None
        where = statement.lineno, statement.col_offset
        holders = [
            node
            for (line, column, end, end_column), node in self.originals.items()
            if (line, column) <= where < (end, end_column) and node.lineno != self.old.lineno
        ]
        return max(holders, key=lambda node: (node.lineno, node.col_offset), default=None)

    # --- comments and blank lines

    def _lead_start(self, line: int, floor: int) -> int:
        """The first of the blank and comment lines directly above ``line``, below ``floor``."""
        while line - 1 > floor and self._is_trivia(line - 1):
            line -= 1
        return line

    def _is_trivia(self, line: int) -> bool:
        return line in self.comments.own_line or (
            not self.lines[line - 1].strip() and line not in self.comments.inside_strings
        )

    def _lead(self, line: int, indent: str, old: str) -> Iterator[str]:
        """What stands above ``line``: comments of statements that are gone, then its own comments and blank lines."""
        start = self._lead_start(line, self.old.lineno)
        yield from self._flush(start, indent)
        for number in range(start, line):
            if number not in self.done:
                yield from self._lines(number, number, indent, old)

    def _trail(self, last: ast.stmt, indent: str) -> Iterator[str]:
        """The comments at the end of the block of which ``last`` is the last statement."""
        original = self._around(last)
        if original is None or not self._stands_alone(original, original):
            return
        if isinstance(last, (ast.Nonlocal, ast.Pass)) and type(last) is not type(original):  # of an empty block
            return
        if isinstance(original, ast.If) and self._is_elif_line(original.lineno):
            return
        own, number = indent_of(self.lines[first_line(original) - 1]), original.end_lineno + 1
        while number <= self.old.end_lineno and self._is_trivia(number):
            line = self.lines[number - 1]
            if line.strip():
                if not indent_of(line).startswith(own):
                    return
                if number not in self.done:
                    yield from self._lines(number, number, indent, own)
            number += 1

    def _flush(self, line: int, indent: str) -> Iterator[str]:
        """The comments above ``line`` that have not been printed yet, each on a line of its own."""
        for number, text in self.comments.texts.items():
            if number < line and number not in self.done and number not in self.headers:
                self.done.add(number)
                yield indent + text + self.file.line_end


MARK = "\0"


class _Outline(SourceGenerator):
    """Prints a statement with a mark in place of each block inside it."""

    def __init__(self, unit: str) -> None:
        super().__init__(unit)
        self.blocks: list[Sequence[ast.stmt]] = []

    def body(self, statements: Sequence[Any]) -> None:
        if not all(isinstance(statement, ast.stmt) for statement in statements):
            super().body(statements)
            return
        self.indentation += 1
        self.newline()
        self.write(f"{MARK}{len(self.blocks)}")
        self.newline()
        self.blocks.append(statements)
        self.indentation -= 1

    def visit_Expr(self, node: ast.Expr) -> None:
        self.statement(node)
        self.visit(node.value)


def _is_construct(statement: ast.stmt) -> bool:
    """Whether this is the call that an ``if``, ``while`` or ``for`` became."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Return)) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) in _CONSTRUCTS


def blocks(node: Any) -> Iterator[list[Any]]:
    """The blocks of a compound statement, in the order they are written."""
    for name in ("body", "cases", "handlers", "orelse", "finalbody"):
        if name in ("cases", "handlers"):
            yield from (part.body for part in getattr(node, name, []))
        elif getattr(node, name, None):
            yield getattr(node, name)


def frame(node: Any) -> list[Any]:
    """All of a compound statement but its blocks, for comparison."""
    parts: list[Any] = []
    for name in node._fields:
        if name == "handlers":
            parts += [[handler.type, handler.name] for handler in node.handlers]
        elif name == "cases":
            parts += [[case.pattern, case.guard] for case in node.cases]
        elif name in ("body", "orelse", "finalbody"):
            parts.append(bool(getattr(node, name)))
        elif name not in ("type_comment",):
            parts.append(getattr(node, name))
    return parts


def place(node: Any) -> Place:
    return tuple(getattr(node, name, None) or 0 for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))  # type: ignore[return-value] # of four


def first_line(node: Any) -> int:
    """The first line of a statement, its decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def indent_of(line: str) -> str:
    """The indentation of a line; a form feed starts it anew."""
    return line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]
