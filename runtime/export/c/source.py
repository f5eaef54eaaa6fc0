"""From a Program to the text of one C function, with what a caller has to know of it.

    Program -> lists refined -> Lowering with this room's rules -> arguments checked, values, results
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.errors import StorageError
from runtime.executor.liveness import analyse
from runtime.export.c.failures import Failures, literal
from runtime.export.c.interface import DTYPES, MAX_RANK, Given, Result, inputs_of, outputs_of
from runtime.export.c.rules import Refused, rules_of
from runtime.export.lists import refine
from runtime.ir import Assume, Operator, Program, Variable
from runtime.ir.assume import symbols_of
from runtime.ir.location import Location
from runtime.native.lowering import Lowering, Retry
from runtime.native.outer import Input, make_input
from runtime.native.values import Assumed, Items, Nothing, Number, Tensor, Unsupported, Value

_TRIES = 40


@dataclass
class Source:
    """A function in C. ``text`` speaks of the library's types as ``@tensor`` and ``@@NONE``, and has nothing of the
    user's; ``lines``: the user's lines that its notes (``Writer.note``) stand for, as comments once it has its names.
    """

    text: str
    lines: list[Location]
    inputs: list[Given]
    outputs: list[tuple[Result, Value]]
    places: list[str]
    """What is said where the function gives up, by number."""


def write(program: Program, offsets: Mapping[str, int]) -> Source:
    """The C of a Program. ``offsets``: where each parameter lies in the file of weights.

    Errors raised: StorageError, D2S530 for an operator that C does not have, D2S531 for what C has no form for.
    """
    refine(program)
    inputs, outputs = inputs_of(program), outputs_of(program)
    assumed: dict[tuple[int, int], Assumed] = {}
    for _ in range(_TRIES):
        failures = Failures()
        low = Lowering(analyse(program), assumed, ops=program.block.ops, rules=rules_of(failures), alone=True,
                       failure=failures.at)  # fmt: skip
        low.w.checked = True
        op: Operator | None = None
        try:
            given = _arguments(low, program, inputs)
            for op in program.block.ops:
                low.operator(op)
            values = [(one, low.value(program.block.yields[one.index])) for one in outputs]
            return _finished(low, program, given, values, offsets, failures, inputs)
        except Retry:
            continue
        except Refused as error:
            raise _refusal(error.op, error.reason) from None
        except Unsupported as error:
            raise _refusal(error.op or op, str(error)) from None
    raise _refusal(None, "a loop that carries too many kinds of values")


def _refusal(op: Operator | None, reason: str) -> StorageError:
    told = f": {reason}" if reason else ""
    name = "a result" if op is None else op.name
    return StorageError(
        f"exported C does not have {name}{told}",
        hint="Compute this outside of what is exported, or write it with operators of docs/export_c.md.",
        location=None if op is None else op.location, code="D2S530")  # fmt: skip


def _names(program: Program) -> dict[Variable, str]:
    """What the user calls the arguments and parameters."""
    return {one.var: one.name for one in program.inputs} | {one.var: one.name for one in program.params}


def _arguments(low: Lowering, program: Program, inputs: Sequence[Given]) -> list[Input]:
    """The locals of arguments and parameters, with their values."""
    given: list[Input] = []
    for var, name in _names(program).items():
        made = make_input(low.w, var, (), low.symbols)
        if made is None or not isinstance(made.value, Tensor):
            raise StorageError(
                f"'{name}' has no form in exported C: {var.type}",
                hint="Export tensors of the CPU, of float32, float64, int64, int32 or bool.",
                code="D2S531")  # fmt: skip
        given.append(made)
        low.give(var, made.value)
    return given


def _finished(
    low: Lowering, program: Program, given: list[Input], values: list[tuple[Result, Value]],
    offsets: Mapping[str, int], failures: Failures, inputs: list[Given],
) -> Source:  # fmt: skip
    w = low.w
    w.failure = "{ c->at = 0; goto bail; }"
    low.flush()
    for one, value in values:
        _hand_out(low, one, value)
    body = [_pragma(line) for line in w.lines]
    prologue = _prologue(low, program, given, inputs, offsets)
    inner = "\n".join([*prologue, *body])
    locals_, inner, unread = _tidy(w.locals, inner)
    lines = [
        "static int @code(ctx *c, const @inputs *in, @outputs *out) {", *locals_,
        "  i64 objects = 0; (void)objects; (void)in; (void)out;", inner,
        *(["  " + " ".join(f"(void){name};" for name in unread)] if unread else []), "  return 0;",
        *(["bail:", "  return 1;"] if "goto bail;" in inner else []), "}",
    ]  # fmt: skip
    return Source("\n".join(lines), w.places, inputs, values, failures.places)


def _pragma(line: str) -> str:
    found = re.fullmatch(r"( *)#pragma (.*)", line)
    if found is None:
        return line
    indent, what = found.groups()
    if what.startswith("omp parallel for schedule"):  # exported C is one thread's
        return ""
    return f'{indent}D2S_SIMD("{what}")' if what.startswith("omp simd") else f"{indent}D2S_IVDEP"


def _prologue(low: Lowering, program: Program, given: list[Input], inputs: list[Given], offsets: Mapping[str, int],
              ) -> list[str]:  # fmt: skip
    """Arguments held against what the Program says of them; then their locals."""
    lines = [f"  buf given[{max(len(given), 1)}]; memset(given, 0, sizeof(given)); (void)given;"]
    for place, one in enumerate(given):
        value = one.value
        assert isinstance(value, Tensor)
        n = value.n
        if place < len(inputs):
            mine = inputs[place]
            dims = ", ".join(str(dim) if isinstance(dim, int) else "-1" for dim in one.dims) or "0"
            lines.append(f"  if (d2s_check(c, &in->{mine.name}, {literal(mine.said)}, @@{DTYPES[value.dtype]}, "
                         f"{value.dtype.itemsize}, {value.rank}, (const i64[]){{{dims}}})) goto bail;")  # fmt: skip
            for dim, own in enumerate(one.dims):
                size = f"in->{mine.name}.sizes[{dim}]"
                if isinstance(own, str) and own in one.new:
                    lines.append(f"  {own} = {size};")
                elif isinstance(own, str):
                    lines.append(f"  if ({size} != {own}) {{ d2s_differ(c, {literal(mine.said)}, {dim}, {own}, "
                                 f"{size}); goto bail; }}")  # fmt: skip
            data = f"(char *)(uintptr_t)(in->{mine.name}.data ? in->{mine.name}.data : (const void *)given)"
        else:
            data = f"(char *)(uintptr_t)(c->weights + {offsets[program.params[place - len(inputs)].name]})"
        lines.append(f"  given[{place}].rc = (i64)1 << 40; given[{place}].data = {data}; "
                     f"b{n} = &given[{place}];")  # fmt: skip
        lines.append(f"  p{n} = ({value.ctype} *)(void *)b{n}->data; o{n} = {place + 1};")
    names = {one.name: mine for one, mine in zip(program.inputs, inputs)}
    for assume in program.assumes:
        text = condition(assume.expr, {symbol: f"(double)in->{names[name].name}.sizes[{dim}]"
                                       for symbol, (name, dim) in assume.symbols.items()})  # fmt: skip
        said = _said(assume)
        where = f" ({assume.location.file.rpartition('/')[2]}:{assume.location.line})" if assume.location else ""
        lines.append(f"  if (!({text})) {{ c->code = ARGUMENT; d2s_say(c, "
                     f"{literal(f'the sizes do not fit: {said} is needed{where}')}); goto bail; }}")  # fmt: skip
    return lines


def _said(assume: Assume) -> str:
    """A fact about sizes in the words of the user's arguments."""
    words = {symbol: f"{name}.shape[{dim}]" for symbol, (name, dim) in assume.symbols.items()}
    return re.sub(r"\b\w+\b", lambda found: words.get(found[0], found[0]), assume.expr)


_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=", ast.BitAnd: "&&", ast.BitOr: "||", ast.And: "&&", ast.Or: "||",
}  # fmt: skip
_CALLS = {"Eq": "==", "Ne": "!=", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">=", "And": "&&", "Or": "||"}


def condition(expr: str, sizes: Mapping[str, str]) -> str:
    """A fact about sizes as C, in doubles, which are exact for sizes and never overflow.

    >>> condition("(s0 // 2 >= 1) & Ne(s0*s1, 0)", {"s0": "a", "s1": "b"})
    '((floor(a / 2.0) >= 1.0) && ((a * b) != 0.0))'

    Errors raised: StorageError for what has no such form.
    """
    symbols_of(expr)  # it is in the language of sizes

    def build(node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            return f"{int(node.value)}.0"
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.BinOp):
            a, b = build(node.left), build(node.right)
            if isinstance(node.op, ast.FloorDiv):
                return f"floor({a} / {b})"
            if isinstance(node.op, ast.Mod):
                return f"({a} - {b} * floor({a} / {b}))"
            if isinstance(node.op, ast.Pow):
                return f"pow({a}, {b})"
            return f"({a} {_SIGNS[type(node.op)]} {b})"
        if isinstance(node, ast.UnaryOp):
            sign = {ast.USub: "-", ast.UAdd: "", ast.Not: "!", ast.Invert: "!"}[type(node.op)]
            return f"({sign}{build(node.operand)})"
        if isinstance(node, ast.BoolOp):
            return f"({f' {_SIGNS[type(node.op)]} '.join(map(build, node.values))})"
        if isinstance(node, ast.Compare):
            sides = [build(node.left), *map(build, node.comparators)]
            parts = [f"{a} {_SIGNS[type(op)]} {b}" for a, op, b in zip(sides, node.ops, sides[1:])]
            return f"({' && '.join(parts)})"
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        name, args = node.func.id, list(map(build, node.args))
        if name in _CALLS:
            return f"({f' {_CALLS[name]} '.join(args)})"
        if name in ("Min", "min", "Max", "max"):
            found = args[0]
            for one in args[1:]:
                found = f"f{name.lower()}({found}, {one})"
            return found
        if name in ("Mod", "PythonMod"):
            return f"({args[0]} - {args[1]} * floor({args[0]} / {args[1]}))"
        if name in ("FloorDiv", "CleanDiv", "CeilDiv"):
            return f"{'ceil' if name == 'CeilDiv' else 'floor'}({args[0]} / {args[1]})"
        return f"{ {'Not': '!', 'Abs': 'fabs', 'abs': 'fabs', 'floor': 'floor', 'ceiling': 'ceil'}[name]}({args[0]})"

    return build(ast.parse(expr.strip(), mode="eval").body)


def _hand_out(low: Lowering, one: Result, value: Value) -> None:
    """A result."""
    w = low.w
    target = f"out->{one.name}"
    if isinstance(value, Number):
        w.line(f"{target} = {value.text if value.kind != 'bool' else f'({value.text}) != 0'};")
        w.line(f"out->has_{one.name} = {value.has} != 0;")
    elif isinstance(value, Items):
        _hand_out_list(low, target, value)
    elif isinstance(value, Tensor):
        low.memory(value)
        low.flush()
        if value.rank > MAX_RANK:
            raise Unsupported("a result of so many dimensions")
        dims = ", ".join(map(str, value.dims)) or "0"
        call = (f"if (d2s_result(c, &{target}, b{{0}}, p{{0}}, @@{DTYPES[value.dtype]}, {value.dtype.itemsize}, "
                f"{value.rank}, (const i64[]){{{{{dims}}}}})) goto bail;")  # fmt: skip
        if value.null:
            w.line(f"if (!b{value.n}) d2s_none(&{target});")
            with w.block("else"):
                dense = low.dense(value)
                low.flush()
                w.line(call.format(dense.n))
        else:
            dense = low.dense(value)
            low.flush()
            w.line(call.format(dense.n))
    elif isinstance(value, Nothing):
        w.line(f"d2s_none(&{target});")


def _hand_out_list(low: Lowering, target: str, value: Items) -> None:
    w, n = low.w, value.n
    with w.block(f"if (l{n})"):
        if isinstance(value.item, Number):
            field = {"int": "ints", "float": "floats", "bool": "ints"}[value.item.kind]
            # a float is kept in its word as it is
            w.line(f"{target}.length = l{n}->len; {target}.{field} = (const void *)l{n}->at;")
        else:
            item = value.item
            w.line(f"if (d2s_items(c, &{target}, l{n}, @@{DTYPES[item.dtype]}, {item.dtype.itemsize}, {item.rank})) "
                   "goto bail;")  # fmt: skip
    w.line(f"else {target}.length = -1;")


_CONST = re.compile(r" *const \w+ ([ex]\d+) = .*;")
_DECLARED = re.compile(r"^  (?:.*[ *])?(\w+)(?:\[\d+\])? = ")


def _read(name: str, lines: Sequence[str], index: int) -> bool:
    """Whether a value that a line declares is read in the rest of its block."""
    indent = len(lines[index]) - len(lines[index].lstrip())
    word = re.compile(rf"\b{name}\b")
    for line in lines[index + 1 :]:
        if len(line) - len(line.lstrip()) < indent:
            return False
        if word.search(line):
            return True
    return False


def _tidy(locals_: Sequence[str], text: str) -> tuple[list[str], str, list[str]]:
    """The text without values that nothing reads; its locals; and those of them that are only written."""
    lines = text.split("\n")
    for index in reversed(range(len(lines))):  # from the end: what only an unread value reads is unread, too
        found = _CONST.fullmatch(lines[index])
        if found is not None and not _read(found[1], lines, index):
            del lines[index]
    text = "\n".join(lines)
    counts: dict[str, int] = {}
    for name in re.findall(r"\b[a-z]+\d+(?:_\d+)?\b", text):
        counts[name] = counts.get(name, 0) + 1
    written: dict[str, int] = {}
    for name in re.findall(r"(?<![\w>.*])([a-z]+\d+(?:_\d+)?) = ", text):
        written[name] = written.get(name, 0) + 1
    kept, unread = [], []
    for line in locals_:
        found = _DECLARED.match(line)
        assert found is not None, line
        name = found[1]
        if not counts.get(name):
            continue
        kept.append(line)
        if counts[name] == written.get(name, 0):
            unread.append(name)
    return kept, text, unread


__all__ = ["Source", "condition", "write"]
