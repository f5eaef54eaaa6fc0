"""What all transforms share: the context they run in, and a walk that keeps to the code that converts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import gast

from dy2static.analysis import facts, state
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import left_alone
from dy2static.analysis.scope import FUNCTIONS, scope_of, unchanged
from dy2static.names import OPERATORS, Namer
from dy2static.nodes import BLOCKS, inner_fields, kinds_under, mask_of, walk
from dy2static.template import replace_expr


@dataclass
class Context:
    """What a transform may need besides the tree.

    ``class_name`` is the class the function stands in, ``class_cell`` whether it may use ``__class__``;
    ``full`` is False where only control flow converts.
    """

    namer: Namer
    class_name: str | None = None
    class_cell: bool = False
    full: bool = True
    root: gast.AST | None = field(default=None, repr=False)
    kinds: str | None = None
    """Where nodes keep what kinds of nodes are under them (see `Transformer`), if anything does."""


_LEAVES = (gast.Constant, gast.expr_context, gast.operator, gast.cmpop, gast.unaryop, gast.boolop)
Transform = Callable[[Any, Context], Any]
Visitor = Callable[[Any, gast.AST], Any]


class Transformer(gast.NodeTransformer):
    """Visits the code that converts, blocks as lists; leaves out generators, patterns and annotations.

    A visitor of an expression may add statements to ``before``, where ``hoisting`` is True: they go before the
    statement that the expression stands in. Outside (in lambdas, comprehensions) there is no such place.
    A transform of statements says that it visits no ``expressions``. One that visits what stands in ``class_bodies``
    may make nothing but expressions there, and no functions: those do not see a class's names.

    Where ``context.kinds`` says so, a node in which nothing is that the transform has a visitor for is left out: nodes
    keep what kinds of nodes are under them. A node that is visited forgets it. So a visitor may change that node, and
    hand on its parts as they are; where it changes a part in place, it says so (`changing`).
    """

    expressions = True
    class_bodies = False
    _visitors: ClassVar[dict[type, Visitor | None]]
    """By class of node: the method that visits it; None where it is left as it is. Each transform has its own."""
    _wanted: ClassVar[int] = -1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._visitors = {}
        cls._wanted = cls._own_kinds()

    @classmethod
    def _own_kinds(cls) -> int:
        """The kinds of nodes that it has a visitor for, as `mask_of`; all where it does something at every node."""
        everywhere = ("visit", "generic_visit", "block", "each")
        if any(getattr(cls, name) is not getattr(Transformer, name) for name in everywhere):
            return -1
        own = {name.removeprefix("visit_") for name in dir(cls) if name.startswith("visit_")
               and getattr(cls, name) is not getattr(Transformer, name, None)}  # fmt: skip
        if "FunctionDef" in own:
            own.add("AsyncFunctionDef")  # which is visited as one
        if cls.enter is not Transformer.enter:
            own |= {"FunctionDef", "AsyncFunctionDef", "ClassDef"}
        if cls._comprehension is not Transformer._comprehension:
            own |= {"ListComp", "SetComp", "DictComp", "GeneratorExp"}
        return mask_of(getattr(gast, name) for name in own)

    @classmethod
    def _visitor_of(cls, kind: type) -> Visitor | None:
        if issubclass(kind, _LEAVES) or (not cls.expressions and issubclass(kind, gast.expr)):
            return None
        visitor: Visitor = getattr(cls, f"visit_{kind.__name__}", cls.generic_visit)
        return visitor

    def __init__(self, context: Context) -> None:
        self.context = context
        self.kinds = context.kinds
        self.functions: list[gast.AST] = []
        self.before: list[gast.AST] = []
        self.hoisting = False
        self.in_class = False
        """Whether the current node stands in a class body, and in no function there."""

    @property
    def function(self) -> Any:
        """The innermost function around the current node."""
        return self.functions[-1]

    def block(self, body: list[gast.AST]) -> list[gast.AST]:
        """The new statements of a block."""
        result: list[gast.AST] = []
        for statement in body:
            outside, self.before = self.before, []
            new = self.visit(statement)
            result += self.before
            result += new if isinstance(new, list) else [] if new is None else [new]
            self.before = outside
        return result

    def visit(self, node: gast.AST) -> Any:
        kind = type(node)
        visitors = self._visitors
        visitor = visitors[kind] if kind in visitors else visitors.setdefault(kind, self._visitor_of(kind))
        if visitor is None:
            return node
        if self.kinds is not None:
            if not kinds_under(node, self.kinds) & self._wanted:
                return node
            del node.__dict__[self.kinds]
        known = node.__dict__.get(facts.ATTRIBUTE)
        return visitor(self, node) if known is None or not known.get(Fact.PLAIN) else node

    def changing(self, part: gast.AST) -> gast.AST:
        """A part of the current node, which is going to be changed in place."""
        if self.kinds is not None:
            part.__dict__.pop(self.kinds, None)
        return part

    def generic_visit(self, node: gast.AST) -> Any:
        values = node.__dict__
        for name in inner_fields[type(node)] if self.expressions else BLOCKS:
            value = values.get(name)
            if not value:
                continue
            if type(value) is list:
                values[name] = self.block(value) if isinstance(value[0], gast.stmt) else self.each(value)
            elif isinstance(value, gast.AST):
                values[name] = self.visit(value)
        return node

    def each(self, nodes: list[Any]) -> list[Any]:
        return [self.visit(node) if isinstance(node, gast.AST) else node for node in nodes]

    def visit_FunctionDef(self, node: gast.AST) -> Any:
        if node is not self.context.root:
            if not self.in_class:
                node.decorator_list = self.each(node.decorator_list)
            self._defaults(node)
        if converts(node):
            self.enter(node)
        return node

    def visit_AsyncFunctionDef(self, node: gast.AST) -> Any:
        return self.visit_FunctionDef(node)

    def _defaults(self, node: gast.AST) -> None:
        self.changing(node.args).defaults = self.each(node.args.defaults)
        node.args.kw_defaults = self.each(node.args.kw_defaults)

    def enter(self, node: gast.AST) -> None:
        """Visit the body of a function."""
        outside, self.hoisting, self.in_class = (self.hoisting, self.in_class), True, False
        self.functions.append(node)
        node.body = self.block(node.body)
        self.functions.pop()
        self.hoisting, self.in_class = outside

    def visit_Lambda(self, node: gast.AST) -> Any:
        self._defaults(node)
        if converts(node):
            outside, self.hoisting, self.in_class = (self.hoisting, self.in_class), False, False
            self.functions.append(node)
            node.body = self.visit(node.body)
            self.functions.pop()
            self.hoisting, self.in_class = outside
        return node

    def _comprehension(self, node: gast.AST) -> Any:
        node.generators[0].iter = self.visit(node.generators[0].iter)
        outside, self.hoisting = self.hoisting, False
        for index, generator in enumerate(node.generators):
            self.changing(generator).iter = self.visit(generator.iter) if index else generator.iter
            generator.ifs = self.each(generator.ifs)
        for name in ("key", "value", "elt"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        self.hoisting = outside
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ClassDef(self, node: gast.AST) -> Any:
        node.decorator_list = self.each(node.decorator_list)
        node.bases = self.each(node.bases)
        node.keywords = self.each(node.keywords)
        if self.class_bodies:
            outside, self.hoisting, self.in_class = (self.hoisting, self.in_class), False, True
            node.body = self.block(node.body)
            self.hoisting, self.in_class = outside
            return node
        for part in methods(node, self.changing):
            if converts(part):
                self.enter(part)
        return node

    def visit_AnnAssign(self, node: gast.AST) -> Any:
        node.target = self.visit(node.target)
        node.value = self.visit(node.value) if node.value is not None else None
        return node

    def visit_Match(self, node: gast.AST) -> Any:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            self.changing(case).guard = self.visit(case.guard) if case.guard is not None else None
            case.body = self.block(case.body)
        return node

    def visit_ExceptHandler(self, node: gast.AST) -> Any:
        node.body = self.block(node.body)  # its type is looked at only while an exception is handled
        return node

    def visit_TypeAlias(self, node: gast.AST) -> Any:
        return node


def methods(class_: gast.AST, passing: Callable[[gast.AST], Any] = id) -> Iterator[gast.AST]:
    """The functions that a class body defines, also in its ``if`` and ``try`` statements; ``passing`` is called with
    these and those."""
    todo = list(class_.body)
    while todo:
        node = todo.pop(0)
        passing(node)
        if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef)):
            yield node
        elif not isinstance(node, gast.expr):
            todo[:0] = list(gast.iter_child_nodes(node))


def converts(function: gast.AST) -> bool:
    """Whether the function's own code is converted (see `left_alone`); decided once, on the tree the user wrote."""
    reason = facts.get(function, Fact.LEFT_ALONE)
    if reason is None:
        reason = left_alone(function)
        facts.put(function, Fact.LEFT_ALONE, reason)
    return not reason


def functions_in(tree: gast.AST) -> list[gast.AST]:
    """Every function that converts in ``tree``, outer ones first, lambdas included."""
    finder = _Functions(Context(Namer(gast.Pass()), root=tree))  # which makes no names
    finder.visit(tree)
    return finder.found


class _Functions(Transformer):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.found: list[gast.AST] = []

    def enter(self, node: gast.AST) -> None:
        self.found.append(node)
        super().enter(node)

    def visit_Lambda(self, node: gast.AST) -> Any:
        self.found.append(node)
        return super().visit_Lambda(node)


def prepare(tree: Any, context: Context) -> Any:
    """First of all: note which names are local to each function, and which functions convert."""
    with unchanged():
        for node in walk(tree):
            if isinstance(node, FUNCTIONS):
                converts(node)
                facts.put(node, Fact.LOCALS, scope_of(node).locals)
    return tree


def annotate(tree: Any, context: Context) -> Any:
    """Run the analyses on every function, so that the transforms behind it can read their facts."""
    with unchanged():
        for node in walk(tree):
            if isinstance(node, FUNCTIONS):
                if converts(node):
                    state.analyse(node)
                else:
                    facts.put(node, Fact.SCOPE, scope_of(node))
    return tree


def operator(name: str, *args: Any, origin: gast.AST) -> Any:
    """A call of the operator ``name``."""
    return replace_expr(f"{OPERATORS}.{name}(args)", args=list(args), origin=origin)


def unpacking(loop: Any) -> list[Any]:
    """Arguments for what Python itself goes over: the iterable of a loop, and whether Python unpacks each item, too."""
    return [loop.iter, constant(True)] if isinstance(loop.target, (gast.Tuple, gast.List)) else [loop.iter]


def is_operator(node: gast.AST) -> bool:
    """Whether ``node`` is ``_d2s.<name>``."""
    return isinstance(node, gast.Attribute) and isinstance(node.value, gast.Name) and node.value.id == OPERATORS


def consumed(value: gast.AST) -> gast.AST:
    """An expression whose value is consumed where it stands: one that calls something says that no variable has it."""
    if not isinstance(value, gast.Call) or (is_operator(value.func) and value.func.attr != "call"):
        return value
    if isinstance(value.func, gast.Name) and value.func.id == "range":
        return value
    return operator("fresh", value, origin=value)


def constant(value: Any) -> Any:
    return gast.Constant(value, None)


def name_node(name: str, origin: gast.AST) -> Any:
    return gast.copy_location(gast.Name(name, gast.Load(), None, None), origin)


def insert_at_top(function: gast.AST, statements: list[gast.AST]) -> None:
    """Insert behind the docstring."""
    place = len(docstring(function.body))
    function.body[place:place] = statements


def docstring(body: list[gast.AST]) -> list[gast.AST]:
    """The first statement of a body, if that is its docstring."""
    first = body[0] if body else None
    constant = first.value if isinstance(first, gast.Expr) else None
    return body[:1] if isinstance(constant, gast.Constant) and isinstance(constant.value, str) else []


def rewritten(source: str, *transforms: Transform, full: bool = True, class_name: str | None = None) -> str:
    """The text of a function after some transforms: for the examples in the transforms' docstrings, and for tests."""
    from dy2static.generate import to_source

    tree = gast.parse(source.strip("\n")).body[0]
    context = Context(Namer(tree), class_name=class_name, class_cell=class_name is not None, full=full, root=tree)
    for transform in (prepare, *transforms):
        tree = transform(tree, context)
    return to_source(tree).rstrip("\n")
