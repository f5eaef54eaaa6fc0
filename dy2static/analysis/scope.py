r"""Which names a piece of code reads, binds and deletes, and which of them nested functions share.

>>> import gast
>>> names = uses(gast.parse("a = b\nc = lambda: a + d\n[e for e in f if (g := e)]"))
>>> sorted(names.reads), sorted(names.writes), sorted(names.captured)
(['b', 'f'], ['a', 'c', 'g'], ['a', 'd'])
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.nodes import BLOCKS, children

FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda)
_SCOPES = (*FUNCTIONS, gast.ClassDef)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
_CONSUMERS = {"all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"}
"""Builtins that are done with a generator when they return."""


@dataclass
class Uses:
    """Names by what happens to them in one scope. ``captured`` and below: in functions nested in it."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    deletes: set[str] = field(default_factory=set)
    captured: set[str] = field(default_factory=set)
    rebound: set[str] = field(default_factory=set)
    unbound: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Scope:
    """The names of one function. Those in ``rebound``/``unbound`` are stored to/deleted by functions nested in it;
    those in ``rebinds``/``unbinds`` belong to outer functions and are stored to/deleted by this one or a nested one."""

    parameters: tuple[str, ...]
    locals: frozenset[str]
    globals: frozenset[str]
    nonlocals: frozenset[str]
    captured: frozenset[str]
    rebound: frozenset[str]
    deleted: frozenset[str]
    unbound: frozenset[str]
    free: frozenset[str]
    rebinds: frozenset[str]
    unbinds: frozenset[str]


_Known = dict[tuple[str, int], tuple[gast.AST, Any]]
_known: ContextVar[_Known | None] = ContextVar("_known", default=None)
"""What was found out about nodes, while nothing changes."""


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """While the block runs, no tree changes: the names of a statement, and the scope of a function, are found once."""
    before = _known.set({})
    try:
        yield
    finally:
        _known.reset(before)


def scope_of(function: gast.AST) -> Scope:
    """The Scope of a function, as its tree is now (names that were local at first stay so: Fact.LOCALS)."""
    known = _known.get()
    found = None if known is None else known.get(("scope", id(function)))
    if found is not None:
        return found[1]
    scope = _scope_of(function)
    if known is not None:
        known["scope", id(function)] = function, scope
    return scope


def _scope_of(function: gast.AST) -> Scope:
    body = function.body if isinstance(function.body, list) else [function.body]
    inside = uses(body)
    parameters = parameter_names(function)
    global_names, nonlocal_names = declared(function)
    bound = inside.writes | set(parameters) | annotated(function) | set(facts.get(function, Fact.LOCALS, ()))
    own = bound - global_names - nonlocal_names
    return Scope(
        parameters=parameters,
        locals=frozenset(own),
        globals=frozenset(global_names),
        nonlocals=frozenset(nonlocal_names),
        captured=frozenset(inside.captured & own),
        rebound=frozenset(inside.rebound & own),
        deleted=frozenset(inside.deletes & own),
        unbound=frozenset(inside.unbound & own),
        free=frozenset((inside.reads | inside.captured | nonlocal_names) - own - global_names),
        rebinds=frozenset((inside.writes & nonlocal_names) | (inside.rebound - own)),
        unbinds=frozenset((inside.deletes & nonlocal_names) | (inside.unbound - own)),
    )


def uses(code: gast.AST | Iterable[gast.AST]) -> Uses:
    """What ``code`` does to the names of the scope it stands in. The result is not the caller's to change."""
    visitor = _Visitor()
    if not isinstance(code, gast.AST):
        for node in code:
            visitor.visit(node)
        return visitor.uses
    known = visitor.known
    found = None if known is None else known.get(("uses", id(code)))
    if found is not None:
        return found[1]
    visitor.inside(code)
    if known is not None:
        known["uses", id(code)] = code, visitor.uses
    return visitor.uses


def bound_in(block: Iterable[gast.AST]) -> set[str]:
    """Names that ``block`` binds or deletes in its own scope."""
    if _known.get() is not None:
        return set().union(*(uses(node).writes for node in block))
    visitor = _Visitor(nested=False)
    for node in block:
        visitor.visit(node)
    return visitor.uses.writes


def parameter_names(function: gast.AST) -> tuple[str, ...]:
    """All parameters, in the order of the signature.

    >>> parameter_names(gast.parse("def f(a, /, b, *c, d, **e): pass").body[0])
    ('a', 'b', 'c', 'd', 'e')
    """
    args = function.args
    nodes = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return tuple(node.id for node in nodes if node is not None)


def own_nodes(code: gast.AST | Iterable[gast.AST]) -> Iterator[gast.AST]:
    """All nodes in the scope that ``code`` stands in: enters neither nested functions, lambdas nor classes."""
    todo = [code] if isinstance(code, gast.AST) else list(code)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += children(node)


def function_nodes(function: gast.AST) -> Iterator[gast.AST]:
    """As `own_nodes`, for what is inside ``function``."""
    yield from own_nodes(function.body if isinstance(function.body, list) else [function.body])


def own_statements(function: gast.AST) -> Iterator[gast.AST]:
    """The statements of ``function``, its handlers and cases among them; those of functions and classes in it are not.

    >>> [type(node).__name__ for node in own_statements(gast.parse("def f():\\n if x:\\n  global y").body[0])]
    ['If', 'Global']
    """
    todo = list(function.body) if isinstance(function.body, list) else []  # a lambda has none
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            for name in BLOCKS:
                todo += node.__dict__.get(name, ())


def declared(function: gast.AST) -> tuple[set[str], set[str]]:
    """Names declared ``global`` and ``nonlocal`` in ``function``."""
    global_names: set[str] = set()
    nonlocal_names: set[str] = set()
    for node in own_statements(function):
        if isinstance(node, gast.Global):
            global_names.update(node.names)
        elif isinstance(node, gast.Nonlocal):
            nonlocal_names.update(node.names)
    return global_names, nonlocal_names


def annotated(function: gast.AST) -> set[str]:
    """Names that ``x: int`` makes local to ``function`` without binding them."""
    nodes = (node for node in own_statements(function) if isinstance(node, gast.AnnAssign))
    return {node.target.id for node in nodes if isinstance(node.target, gast.Name)}


def walrus_names(comprehension: gast.AST) -> set[str]:
    """The names that ``:=`` binds in a comprehension, in the function around it."""
    return {
        part.target.id
        for part in own_nodes(comprehension)
        if isinstance(part, gast.NamedExpr) and isinstance(part.target, gast.Name)
    }


def has_walrus(code: gast.AST | Iterable[gast.AST]) -> bool:
    """Whether evaluating ``code`` binds a name with ``:=`` in the scope it stands in."""
    return any(isinstance(node, gast.NamedExpr) for node in own_nodes(code))


def is_consumed(call: gast.AST) -> bool:
    """Whether ``call`` takes a generator expression and is done with it when it returns.

    >>> [is_consumed(gast.parse(text, mode="eval").body) for text in ("sum(x for x in y)", "zip(x for x in y)")]
    [True, False]
    """
    known = isinstance(call.func, gast.Name) and call.func.id in _CONSUMERS and len(call.args) >= 1
    return known and isinstance(call.args[0], gast.GeneratorExp)


class _Visitor:
    _methods: dict[type, Any] = {}
    """By class of node: the method that visits it."""

    def __init__(self, nested: bool = True) -> None:
        self.uses = Uses()
        self.nested = nested  # look into nested functions as well
        self.known = _known.get()

    def visit(self, node: gast.AST) -> None:
        if self.known is None or not isinstance(node, gast.stmt):
            self.inside(node)
            return
        found = uses(node)
        for name, names in found.__dict__.items():
            if names:
                self.uses.__dict__[name] |= names

    def inside(self, node: gast.AST) -> None:
        """Visit a node, whatever is known of it."""
        kind = type(node)
        method = self._methods.get(kind)
        if method is None:
            method = self._methods[kind] = getattr(_Visitor, f"visit_{kind.__name__}", _Visitor.generic_visit)
        method(self, node)

    def generic_visit(self, node: gast.AST) -> None:
        for child in children(node):
            self.visit(child)

    def _all(self, nodes: Iterable[gast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Name(self, node: gast.AST) -> None:
        if isinstance(node.ctx, gast.Load):
            self.uses.reads.add(node.id)
            self.uses.reads.update(facts.get(node, Fact.READS, ()))
            return
        self.uses.writes.add(node.id)
        if isinstance(node.ctx, gast.Del):
            self.uses.reads.add(node.id)
            self.uses.deletes.add(node.id)

    def visit_AugAssign(self, node: gast.AST) -> None:
        if isinstance(node.target, gast.Name):
            self.uses.reads.add(node.target.id)
        self._all([node.target, node.value])

    def visit_AnnAssign(self, node: gast.AST) -> None:
        if node.value is not None or not isinstance(node.target, gast.Name):
            self._all([node.target, node.value])

    def visit_ExceptHandler(self, node: gast.AST) -> None:
        if node.name is not None:
            name = node.name.id if isinstance(node.name, gast.Name) else node.name
            self.uses.writes.add(name)
            self.uses.deletes.add(name)
        self._all([node.type, *node.body])

    def visit_alias(self, node: gast.AST) -> None:
        self.uses.writes.add((node.asname or node.name).split(".")[0])

    def _bind(self, name: str | None) -> None:
        if name:
            self.uses.writes.add(name)

    def visit_MatchAs(self, node: gast.AST) -> None:
        self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: gast.AST) -> None:
        self._bind(node.name)

    def visit_MatchMapping(self, node: gast.AST) -> None:
        self._bind(node.rest)
        self.generic_visit(node)

    def visit_TypeAlias(self, node: gast.AST) -> None:
        self._bind(node.name.id)
        self.uses.captured.update(uses(node.value).reads)

    # --- nested scopes

    def visit_FunctionDef(self, node: gast.AST) -> None:
        self._bind(node.name)
        self._all(node.decorator_list)
        self._signature(node)
        inner = self._nested(node)
        if not facts.get(node, Fact.IMMEDIATE):
            self.uses.captured.update(inner)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: gast.AST) -> None:
        self._signature(node)
        self.uses.captured.update(self._nested(node))

    def _signature(self, node: gast.AST) -> None:
        args = node.args
        self._all([*args.defaults, *args.kw_defaults])
        for parameter in [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]:
            if parameter is not None and parameter.annotation is not None:
                self.visit(parameter.annotation)
        if getattr(node, "returns", None) is not None:
            self.visit(node.returns)

    def _nested(self, node: gast.AST) -> set[str]:
        """Names of this scope that the nested function uses."""
        if not self.nested:
            return set()
        scope = scope_of(node)
        self.uses.rebound.update(scope.rebinds)
        self.uses.unbound.update(scope.unbinds)
        return set(scope.free)

    def visit_ClassDef(self, node: gast.AST) -> None:
        self._bind(node.name)
        self._all([*node.decorator_list, *node.bases, *node.keywords])
        inside = uses(node.body)
        global_names, nonlocal_names = declared(node)
        self.uses.reads.update(inside.reads - global_names)
        self.uses.captured.update(inside.captured)
        self.uses.writes.update(inside.writes & nonlocal_names)
        self.uses.rebound.update(inside.rebound)
        self.uses.unbound.update(inside.unbound | (inside.deletes & nonlocal_names))

    # --- comprehensions: their targets are their own, a walrus binds outside

    def _comprehension(self, node: gast.AST, lazy: bool) -> None:
        self.visit(node.generators[0].iter)
        inner = _Visitor()
        targets: set[str] = set()
        for index, generator in enumerate(node.generators):
            walker = _Visitor()
            walker.visit(generator.target)
            targets |= walker.uses.writes
            inner._all([generator.target, *generator.ifs, generator.iter if index else None])
        inner._all([node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt])
        walrus = walrus_names(node)
        found = inner.uses
        self.uses.writes.update(walrus)
        reads = (found.reads - targets) | (found.reads & walrus)
        (self.uses.captured if lazy else self.uses.reads).update(reads)
        self.uses.captured.update(found.captured - targets)
        self.uses.rebound.update(found.rebound - targets, walrus if lazy else ())
        self.uses.unbound.update(found.unbound - targets)

    def visit_ListComp(self, node: gast.AST) -> None:
        self._comprehension(node, lazy=False)

    visit_SetComp = visit_DictComp = visit_ListComp

    def visit_GeneratorExp(self, node: gast.AST) -> None:
        self._comprehension(node, lazy=True)

    def visit_Call(self, node: gast.AST) -> None:
        if is_consumed(node):
            self.visit(node.func)
            self._comprehension(node.args[0], lazy=False)
            self._all([*node.args[1:], *node.keywords])
            return
        self.generic_visit(node)


def resolve(name: str, scopes: list[Any]) -> Any:
    """The innermost of ``scopes`` (outermost first, pairs of function and Scope) that owns ``name``, or None.

    A name declared ``global`` on the way belongs to none.
    """
    for function, scope in reversed(scopes):
        if name in scope.globals:
            return None
        if name in scope.locals:
            return function
    return None
