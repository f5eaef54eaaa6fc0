"""A file -> the same file with its functions converted: every statement that stays is kept to the byte.

Each converted function's body is spliced (see `dy2static.cli.splice`); then the whole result is parsed and compared,
tree by tree, with what the pipeline made: a difference is an error, never wrong output.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

import gast

from dy2static import pipeline
from dy2static.cli.marked import definitions, marked
from dy2static.cli.splice import splice_function
from dy2static.cli.text_file import TextFile, UsageError, split_lines
from dy2static.errors import ConversionError, converting
from dy2static.generate import canonical, first_difference
from dy2static.names import OPERATORS
from dy2static.source import Candidate, Function, FunctionSource, candidates, describe
from dy2static.transforms.base import converts

IMPORT = f"from dy2static import operators as {OPERATORS}"


def rewrite_functions(
    file: TextFile, chosen: Sequence[tuple[Candidate, FunctionSource]], full: bool = False
) -> str | None:
    """The text of ``file`` with some of its functions converted; None if none changes.

    ``full`` converts calls, attributes and subscripts as well as control flow.
    Raises ConversionError for source that has no static form.
    """
    edits: list[tuple[Candidate, ast.FunctionDef]] = []
    for candidate, source in chosen:
        old: ast.FunctionDef = canonical(candidate.node)
        new = convert(source, full)
        new.decorator_list = old.decorator_list
        if first_difference(old, new):
            edits.append((candidate, new))
    if not edits:
        return None
    lines = list(file.lines)
    for candidate, new in sorted(edits, key=lambda edit: edit[0].node.lineno, reverse=True):
        node = candidate.node
        lines[node.lineno - 1 : node.end_lineno] = splice_function(file, node, new)
    add_import(lines, file)
    result = "".join(lines)
    _verify(file, result, dict(edits))
    return result


def functions(file: TextFile, names: Sequence[str] | None = None) -> list[tuple[Candidate, FunctionSource]]:
    """The outermost functions of a file, or all that are called one of ``names`` (``forward``, ``Net.forward``).

    Raises UsageError for a name that no function has.
    """
    if names is None:
        return _chosen(file, lambda name, qualname: "<locals>" not in qualname)
    for wanted in names:
        if not any(_is_called(wanted, node.name, qualname) for node, qualname in definitions(file.tree)):
            raise UsageError(f"{file.path} has no function {wanted}")
    return _chosen(file, lambda name, qualname: any(_is_called(wanted, name, qualname) for wanted in names))


def marked_functions(file: TextFile) -> list[tuple[Candidate, FunctionSource]]:
    """The functions that the file gives to ``to_static``."""
    names = marked(file.tree)
    return _chosen(file, lambda name, qualname: qualname in names)


def _is_called(wanted: str, name: str, qualname: str) -> bool:
    return wanted in (name, qualname, qualname.replace("<locals>.", ""))


def _chosen(file: TextFile, wants: Callable[[str, str], bool]) -> list[tuple[Candidate, FunctionSource]]:
    """The outermost of the functions that ``wants`` takes, by name and qualified name."""
    found = {(c.node.lineno, c.node.col_offset): c for c in candidates(file.text, file.path, 0)}
    result: list[tuple[Candidate, FunctionSource]] = []
    for node, qualname in definitions(file.tree):
        if wants(node.name, qualname) and not any(_contains(outer.node, node) for outer, _ in result):
            candidate = found[node.lineno, node.col_offset]
            result.append((candidate, describe(candidate, file.path, file.lines, "", node.name, qualname)))
    return result


def kind_without_static_form(node: Function) -> str:
    """What kind of function ``to_static`` does not take; empty for those that it takes. A generator may be *called* by
    a converted function, and a decorator or call gives it to ``to_static`` all the same."""
    if isinstance(node, ast.AsyncFunctionDef):
        return "an async function"
    todo: list[ast.AST] = list(getattr(node, "body", []))
    for part in todo:
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return "a generator"
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(part)
    return ""


def _contains(outer: Function, inner: Function) -> bool:
    return outer.lineno <= inner.lineno and (outer.end_lineno or 0) >= (inner.end_lineno or 0)


def convert(source: FunctionSource, full: bool) -> ast.FunctionDef:
    """The tree that the pipeline makes of one function, as plain ast with the places of the original."""
    tree: gast.FunctionDef = source.tree
    if converts(tree):
        with converting(source):
            tree = pipeline.convert_tree(tree, source, level="full" if full else "control_flow")
    result: ast.FunctionDef = canonical(tree)
    return result


def add_import(lines: list[str], file: TextFile) -> None:
    """Insert the import of the operators behind the docstring and ``from __future__`` imports."""
    body = file.tree.body
    if any(ast.unparse(statement) == IMPORT for statement in body):
        return
    docstring = isinstance(body[0], ast.Expr) and isinstance(getattr(body[0].value, "value", None), str)
    count = int(docstring)
    while count < len(body) and isinstance(body[count], ast.ImportFrom) and body[count].module == "__future__":  # type: ignore[attr-defined] # an ImportFrom
        count += 1
    if count:
        index = body[count - 1].end_lineno or 0
        new = ["", IMPORT] if docstring and count == 1 else [IMPORT]
    else:
        index = _below_header(file)
        follower = file.lines[index]
        blank = (
            0 if follower.startswith(("import ", "from ")) else 2 if follower.startswith(("def ", "class ", "@")) else 1
        )
        new = [IMPORT] + [""] * blank
    lines[index:index] = [line + file.line_end for line in new]


def _below_header(file: TextFile) -> int:
    """The index of the line for the import, in a file that starts with neither docstring nor ``__future__``:
    below the shebang, the coding line and comments that a blank line sets apart from the first statement."""
    first = file.tree.body[0]
    index = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))]) - 1
    magic = 0
    for line in file.lines[:2]:
        if not line.startswith("#!") and not re.match(r"[ \t\f]*#.*?coding[:=]", line):
            break
        magic += 1
    while index > magic and file.lines[index - 1].lstrip().startswith("#"):
        index -= 1
    return index


def _verify(file: TextFile, result: str, edits: dict[Candidate, ast.FunctionDef]) -> None:
    """Raise ConversionError unless ``result`` is ``file`` with exactly the functions in ``edits`` exchanged."""
    expected = {(c.node.lineno, c.node.col_offset): new for c, new in edits.items()}

    class Exchange(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
            return expected.get((node.lineno, node.col_offset)) or self.generic_visit(node)

        visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment] # the same fields

    wanted = Exchange().visit(ast.parse(file.text))
    try:
        actual = ast.parse(result)
    except SyntaxError as error:
        raise _fault(f"{error} in\n{split_lines(result)[(error.lineno or 1) - 1]}") from error
    if not any(ast.unparse(statement) == IMPORT for statement in file.tree.body):
        actual.body = [s for s in actual.body if not (isinstance(s, ast.ImportFrom) and ast.unparse(s) == IMPORT)]
    difference = first_difference(canonical(wanted), canonical(actual))
    if difference:
        raise _fault(difference)


def _fault(detail: str) -> ConversionError:
    return ConversionError(
        f"the spliced file does not stand for its conversion: {detail}", hint="This is a fault of the command."
    )
