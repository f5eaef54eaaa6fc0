"""The first place of a statement where an index, a ``pop``, a search or a division may raise what a handler names.

>>> place = first_site(gast.parse("v = (a + b) / n").body[0], frozenset({DIVISION}))
>>> place.kind, gast.unparse(place.operands[1].get())
('/', 'n')

``caught_raise`` puts a test before it. What the statement evaluates before the place is evaluated before the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import gast

LOOKUP, DIVISION, SEARCH, OVERFLOW = "lookup", "division", "search", "overflow"
_NAMED = {
    "IndexError": LOOKUP, "KeyError": LOOKUP, "LookupError": LOOKUP, "ZeroDivisionError": DIVISION,
    "ArithmeticError": DIVISION, "ValueError": SEARCH, "OverflowError": OVERFLOW,
}  # fmt: skip
"""What a handler names for which of them. Broader handlers stand around code that has no such fear."""
_BINDING = (gast.NamedExpr, gast.Yield, gast.YieldFrom, gast.Await)
"""What has to stay in its place."""
_BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "range", "round", "str", "sum"})
_METHODS = frozenset({
    "item", "tolist", "sum", "mean", "any", "all", "argmax", "argmin", "long", "int", "size", "numel",
})  # fmt: skip
_DIVIDES = {gast.Div: "/", gast.FloorDiv: "//", gast.Mod: "%"}
DIVISIONS = frozenset(_DIVIDES.values())
SEARCHES = frozenset({"index", "remove"})
"""Methods that look for an item by its value."""
CALL = "call"
"""The kind of a place that calls a function which raises ValueError for some values (``operators.faulty_calls``)."""
_OVERFLOWING = frozenset({"int", "math.exp", "exp"})
_CONVERTING = frozenset({"int", "float", "chr", "math.sqrt", "math.log", "math.log2", "math.log10", "sqrt", "log"})

SIMPLE = (gast.Assign, gast.AugAssign, gast.Expr, gast.Return, gast.Delete)
"""Statements in which there is such a place."""


@dataclass(frozen=True)
class Operand:
    """A part of a node that a place reads."""

    node: gast.AST
    field: str
    index: int | None = None
    """For one of several: which."""

    def get(self) -> gast.AST:
        """The expression."""
        found = getattr(self.node, self.field)
        return found if self.index is None else found[self.index]

    def set(self, value: gast.AST) -> None:
        """Another one in its place."""
        if self.index is None:
            setattr(self.node, self.field, value)
        else:
            getattr(self.node, self.field)[self.index] = value


@dataclass(frozen=True)
class Site:
    """A place: ``kind`` is how it is asked about: ``"get"``, ``"set"``, ``"del"``, ``"call"``, a method or operator."""

    kind: str
    operands: tuple[Operand, ...]
    """The container and the key, if there is one; dividend and divisor; or the argument and the function."""
    whole: gast.AST | None
    """The expression that gives the value; None where the statement itself does it."""
    earlier: tuple[Operand, ...] = ()
    """What the statement evaluates before those, in order."""

    tests: tuple[str, ...] = ()
    """What else is asked about it, by kind, if not ``kind``."""

    @property
    def calls(self) -> bool:
        """Whether evaluating what comes before the place may do anything, such as bind a name anew."""
        parts = [*self.earlier, *self.operands]
        return any(isinstance(node, gast.Call) for part in parts for node in gast.walk(part.get()))


def named(handlers: Sequence[gast.AST]) -> frozenset[str]:
    """The kinds of places that handlers are there for."""
    return frozenset(
        _NAMED[one.id]
        for handler in handlers
        for one in _types(handler.type)
        if isinstance(one, gast.Name) and one.id in _NAMED
    )


def _types(caught: gast.AST | None) -> Sequence[gast.AST | None]:
    """The expressions for what a clause catches: one, those of a tuple, or the arguments of ``_d2s.suppressed``."""
    if isinstance(caught, gast.Call):
        return caught.args[1:]
    return caught.elts if isinstance(caught, gast.Tuple) else [caught]


def is_fixed(node: gast.AST) -> bool:
    """Whether evaluating an expression does nothing and finds the same again: a name, a constant."""
    if isinstance(node, gast.UnaryOp):
        return isinstance(node.operand, gast.Constant)
    return isinstance(node, (gast.Name, gast.Constant))


def first_site(node: gast.AST, kinds: frozenset[str]) -> Site | None:
    """The first such place of a statement; None also where what comes before it cannot be evaluated by itself."""
    if any(isinstance(part, _BINDING) for part in gast.walk(node)):
        return None
    return _Finder(kinds).statement(node)


def looks_up(target: gast.AST, kinds: frozenset[str]) -> bool:
    """Whether storing to a target looks up an item, there or on the way to it."""
    return LOOKUP in kinds and isinstance(target, (gast.Subscript, gast.Attribute)) and (
        isinstance(target, gast.Subscript) or _Finder(kinds).expression(target.value) is not None)


class _Finder:
    def __init__(self, kinds: frozenset[str]) -> None:
        self._kinds = kinds

    def statement(self, node: gast.AST) -> Site | None:
        if isinstance(node, gast.Delete):
            return self._subscript(node.targets[0], "del", None) if len(node.targets) == 1 else None
        if isinstance(node, gast.Return) and node.value is None:
            return None
        if isinstance(node, gast.AugAssign):
            return self._augmented(node)
        if isinstance(node, gast.Assign) and is_fixed(node.value):
            target = node.targets[0]
            if len(node.targets) > 1 or not isinstance(target, (gast.Subscript, gast.Attribute)):
                return None
            if isinstance(target, gast.Attribute):
                return self.expression(target.value)
            return self._subscript(target, "set", None)
        return self.expression(node.value)

    def _augmented(self, node: gast.AST) -> Site | None:
        target = node.target
        if isinstance(target, gast.Subscript):
            return self._subscript(target, "get", None)
        if isinstance(target, gast.Attribute):
            return self.expression(target.value)
        if any(isinstance(part, gast.Call) and not _binds_nothing(part.func) for part in gast.walk(node.value)):
            return None  # it may bind the target anew, which is read before
        inside = self.expression(node.value)
        if inside is not None or not self._divides(node):
            return inside
        return Site(_DIVIDES[type(node.op)], (Operand(node, "target"), Operand(node, "value")), None)

    def expression(self, node: gast.AST) -> Site | None:
        """The same in an expression."""
        if isinstance(node, gast.Subscript) and isinstance(node.ctx, gast.Load):
            return self._subscript(node, "get", node)
        if isinstance(node, gast.Call):
            return self._call(node)
        if isinstance(node, gast.BinOp):
            inside = self._first_of(Operand(node, "left"), Operand(node, "right"))
            if inside is not None or not self._divides(node):
                return inside
            return Site(_DIVIDES[type(node.op)], (Operand(node, "left"), Operand(node, "right")), node)
        if isinstance(node, gast.Compare):
            return self._first_of(Operand(node, "left"), Operand(node, "comparators", 0))
        if isinstance(node, (gast.Tuple, gast.List)):
            return self._first_of(*(Operand(node, "elts", index) for index in range(len(node.elts))))
        if isinstance(node, gast.UnaryOp):
            return self.expression(node.operand)
        return self.expression(node.value) if isinstance(node, gast.Attribute) else None

    def _call(self, node: gast.AST) -> Site | None:
        args = tuple(Operand(node, "args", index) for index in range(len(node.args)))
        tests = self._tests_of(_text_of(node.func)) if len(args) == 1 and not node.keywords else ()
        if tests:
            inside = self._first_of(*args)
            return inside if inside is not None or isinstance(node.args[0], gast.Starred) else (
                Site(CALL, (args[0], Operand(node, "func")), node, tests=tests))
        if not isinstance(node.func, gast.Attribute):
            return self._first_of(*args) if isinstance(node.func, gast.Name) else self.expression(node.func)
        owner = Operand(node.func, "value")
        inside = self._first_of(owner, *args)
        if inside is not None or node.keywords:
            return inside
        pops = node.func.attr in ("pop", "popleft") and len(args) < 2 and LOOKUP in self._kinds
        finds = node.func.attr in SEARCHES and len(args) == 1 and SEARCH in self._kinds
        if not pops and not finds:
            return None
        return None if any(isinstance(arg, gast.Starred) for arg in node.args) else (
            Site(node.func.attr, (owner, *args), node))

    def _subscript(self, node: gast.AST, kind: str, whole: gast.AST | None) -> Site | None:
        """In a subscript, or the subscript itself."""
        if not isinstance(node, gast.Subscript):
            return None
        container, key = Operand(node, "value"), Operand(node, "slice")
        if isinstance(node.slice, (gast.Slice, gast.Tuple)):
            return self._first_of(container)
        inside = self._first_of(container, key)
        if inside is not None or LOOKUP not in self._kinds:
            return inside
        return Site(kind, (container, key), whole)

    def _first_of(self, *operands: Operand) -> Site | None:
        """The first place in expressions that are evaluated one after the other."""
        for position, operand in enumerate(operands):
            node = operand.get()
            if isinstance(node, gast.Starred):
                return None
            site = self.expression(node)
            if site is not None:
                return replace(site, earlier=(*operands[:position], *site.earlier))
        return None

    def _tests_of(self, function: str) -> tuple[str, ...]:
        """What a function may raise for some values that a handler names."""
        found = (CALL,) if SEARCH in self._kinds and function in _CONVERTING else ()
        return (*found, OVERFLOW) if OVERFLOW in self._kinds and function in _OVERFLOWING else found

    def _divides(self, node: gast.AST) -> bool:
        if DIVISION not in self._kinds:
            return False
        divisor = node.value if isinstance(node, gast.AugAssign) else node.right
        known = isinstance(divisor, gast.Constant) and divisor.value != 0
        return type(node.op) in _DIVIDES and not known and not _is_text(node)


def _text_of(function: gast.AST) -> str:
    """The dotted name of a function, empty for what has none."""
    if isinstance(function, gast.Attribute) and isinstance(function.value, gast.Name):
        return f"{function.value.id}.{function.attr}"
    return str(function.id) if isinstance(function, gast.Name) else ""


def _binds_nothing(function: gast.AST) -> bool:
    """Whether a call is one of the usual ones of Python's and of tensors."""
    if isinstance(function, gast.Attribute):
        return function.attr in _METHODS
    return isinstance(function, gast.Name) and function.id in _BUILTINS


def _is_text(node: gast.AST) -> bool:
    """Whether it is ``"%s" % value``."""
    left = node.left if isinstance(node, gast.BinOp) else None
    return isinstance(left, (gast.JoinedStr, gast.Constant)) and not isinstance(
        getattr(left, "value", ""), (int, float, complex))


__all__ = [
    "CALL", "DIVISION", "DIVISIONS", "LOOKUP", "SEARCH", "SEARCHES", "SIMPLE", "Operand", "Site", "first_site",
    "is_fixed", "looks_up", "named",
]  # fmt: skip
