"""Exceptions that leave a function on a path that a tensor decides: the function hands them to its caller as values.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     if x > 0:
...         raise ValueError(x)
...     return g(x) + 1
... ''', transform))
def f(x):
    if x > 0:
        try:
            raise ValueError(x)
        except BaseException as _d2s_raised_1:
            _d2s_error_1 = _d2s.escapes(_d2s_raised_1)
        return _d2s.escaping(_d2s_error_1)
    try:
        _d2s_result_1 = g(x)
        _d2s_error_1 = _d2s.error_of(_d2s_result_1)
    except BaseException as _d2s_raised_2:
        _d2s_error_1 = _d2s.escapes(_d2s_raised_2)
    if _d2s_error_1 is not None:
        return _d2s.escaping(_d2s_error_1)
    _d2s_result_1 = _d2s.value_of(_d2s_result_1)
    return _d2s_result_1 + 1

In a ``try`` what follows is skipped instead, and the handlers get the exception raised once more:

>>> print(rewritten('''
... def f(x):
...     try:
...         y = g(x)
...     except ValueError:
...         y = 0
...     return y
... ''', transform))
def f(x):
    _d2s_error_2 = None
    try:
        _d2s_result_1 = g(x)
        _d2s_error_2 = _d2s.error_of(_d2s_result_1)
        if _d2s_error_2 is None:
            _d2s_result_1 = _d2s.value_of(_d2s_result_1)
            y = _d2s_result_1
    except ValueError:
        y = 0
    for _d2s_flag_1, _d2s_raised_1 in _d2s.errors(_d2s_error_2):
        if _d2s_flag_1:
            try:
                raise _d2s_raised_1
            except ValueError:
                y = 0
            except BaseException as _d2s_raised_2:
                return _d2s.escaping(_d2s.escapes(_d2s_raised_2))
    return y

Only functions between a ``try`` and such a ``raise`` are converted so, once a trace has met it (see
``operators.constructs.escape``). Calls that cannot stand in a statement of their own (behind an ``and``, in a lambda)
stay as they are: an exception that would leave them is refused.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gast
import torch

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import CONSTRUCTS, jumps_out, leaves, leaves_finally
from dy2static.analysis.scope import own_nodes
from dy2static.names import PREFIX, Namer
from dy2static.nodes import children, walk
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, functions_in
from dy2static.transforms.caught_raise import leaves_loop
from dy2static.transforms.fault_sites import named
from dy2static.transforms.leaving import filled

_DEEPEST = 12
"""Python cannot nest blocks without limit: from here on, what follows a call is guarded statement by statement."""
_LIBRARIES = frozenset({"torch", "F", "math", "np", "numpy", "operator", "itertools", "functools", "typing"})
_METHODS = frozenset(
    name for cls in (torch.Tensor, list, dict, str) for name in dir(cls) if not name.startswith("__"))
"""Names of methods that are not the user's, most likely; ``super().__init__`` is."""
_SCOPES = (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.Lambda)
_OPAQUE = (
    gast.BoolOp, gast.IfExp, gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp, gast.Await,
    gast.Yield, gast.YieldFrom, gast.NamedExpr, gast.JoinedStr,
)  # fmt: skip
"""Expressions of which a part may not be evaluated, or not once, or not here."""
_LAZY = (gast.Yield, gast.YieldFrom, gast.Await)


def transform(tree: Any, context: Context) -> Any:
    """Lower what leaves the functions of ``tree`` as an exception."""
    for function in reversed(functions_in(tree)):
        if isinstance(function, gast.FunctionDef) and not any(isinstance(one, _LAZY) for one in _inside(function)):
            _Escaping(function, context.namer).lower()
    return tree


def _inside(function: gast.AST) -> Iterator[gast.AST]:
    """The statements and expressions of a function, without those of functions in it."""
    todo = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += children(node)


@dataclass
class _Groups:
    """Statements; between two groups an exception may have come out of the first."""

    groups: list[list[gast.AST]] = field(default_factory=lambda: [[]])

    def add(self, *statements: gast.AST) -> None:
        """More of the last group."""
        self.groups[-1] += statements

    def check(self) -> None:
        """From here on an exception may be there."""
        if self.groups[-1]:
            self.groups.append([])

    @property
    def checked(self) -> bool:
        """Whether one may be there at some point."""
        return len(self.groups) > 1


class _Escaping:
    """One function."""

    def __init__(self, function: gast.AST, namer: Namer) -> None:
        self.function = function
        self.namer = namer
        self.error = namer.fresh("error")
        self.trying = False
        """Whether an exception is for handlers of this function, or for the manager of a ``with`` statement, which is
        told of it at the end: the rest of the ``try`` or ``with`` is skipped."""
        self.conditions = int(any(isinstance(one, CONSTRUCTS) and any(
            isinstance(part, gast.Return) for part in own_nodes(one)) for one in own_nodes(function.body)))
        """How many conditions there are around; what follows a ``return`` under one is under one as well."""
        self.left = False
        """Whether an exception may have left the function before: all that follows is on a path then."""
        self.shared = {
            name for node in own_nodes(function.body) if isinstance(node, (gast.Nonlocal, gast.Global))
            for name in node.names
        } | {
            name for node in walk(function) if isinstance(node, gast.Nonlocal) for name in node.names
        }  # fmt: skip
        """Local names that a call may bind anew."""
        self.own: frozenset[str] = frozenset(facts.get(function, Fact.LOCALS, ())) - self.shared
        """Those that only this function binds."""

    def lower(self) -> None:
        """Rewrite the function."""
        last, ends = self.function.body[-1], leaves(self.function.body)
        self.function.body, _ = self._block(self.function.body)
        if ends and not leaves(self.function.body):  # a handler's second place is in a loop; nothing comes here
            self.function.body += replace("return _d2s.escaping(None)", origin=last)

    # -- blocks

    def _block(self, body: list[gast.AST]) -> tuple[list[gast.AST], bool]:
        """The new statements, and whether an exception may be there after them (where they are tried)."""
        if not body:
            return [], False
        found = _Groups()
        for statement in body:
            self._statement(statement, found)
        return filled(self._nested(found.groups), body[0]), found.checked

    def _conditional(self, body: list[gast.AST]) -> tuple[list[gast.AST], bool]:
        self.conditions += 1
        try:
            return self._block(body)
        finally:
            self.conditions -= 1

    def _nested(self, groups: list[list[gast.AST]], depth: int = 0) -> list[gast.AST]:
        groups = [group for group in groups if group]
        if not groups:
            return []
        first, *rest = groups
        if not rest:
            return first
        if depth >= _DEEPEST:
            return [*first, *(part for group in rest for part in self._guard(group))]
        return [*first, *self._guard(self._nested(rest, depth + 1))]

    def _guard(self, body: list[gast.AST]) -> list[gast.AST]:
        return replace("if error is None:\n    body", error=self.error, body=body, origin=body[0])

    @property
    def _on_a_path(self) -> bool:
        """Whether only some runs may come here, so that what is raised while tracing is no exception of all."""
        return self.conditions > 0 or self.left

    def _check(self, into: _Groups, origin: gast.AST) -> None:
        """After what may have left an exception."""
        self.left = True
        if self.trying:
            into.check()
        else:
            into.add(*replace("if error is not None:\n    body", error=self.error, body=self._leave(origin),
                              origin=origin))  # fmt: skip

    def _leave(self, origin: gast.AST) -> list[gast.AST]:
        """Hand the exception to the caller."""
        return replace("return _d2s.escaping(error)", error=self.error, origin=origin)

    # -- statements

    def _statement(self, node: gast.AST, into: _Groups) -> None:
        if isinstance(node, gast.Raise):
            self._raise(node, into)
        elif isinstance(node, gast.Assert):
            message = [node.msg] if node.msg is not None else []
            (new,) = replace("if not test:\n    raise _d2s.AssertionError(message)", test=node.test, message=message,
                             origin=node)  # fmt: skip
            if not message:
                new.body[0].exc = new.body[0].exc.func
            self._statement(new, into)
        elif isinstance(node, gast.If):
            node.test = self._split(node.test, into)
            node.body, one = self._conditional(node.body)
            node.orelse, other = self._conditional(node.orelse)
            into.add(node)
            if one or other:
                into.check()
        elif isinstance(node, (gast.For, gast.While)):
            self._loop(node, into)
        elif isinstance(node, gast.With):
            self._with(node, into)
        elif isinstance(node, gast.Try):
            self._try(node, into)
        elif isinstance(node, (gast.Assign, gast.AugAssign, gast.AnnAssign, gast.Return, gast.Expr)):
            if node.value is not None and self._orders_well(node):
                node.value = self._split(node.value, into)
                if self._on_a_path and _may_raise(node.value):
                    self._apart(node, into)
            into.add(node)
        elif self._on_a_path and isinstance(node, gast.Delete):
            into.add(*self._caught([node]))
            self._check(into, node)
        else:
            into.add(node)

    def _apart(self, node: gast.AST, into: _Groups) -> None:
        """What a statement evaluates, before it: on a path of its own it may raise while the function is traced."""
        name = self.namer.fresh("part")
        value = replace("name = value\nerror = None", name=name, value=node.value, error=self.error, origin=node)
        into.add(*self._caught(value))
        self._check(into, node)
        node.value = gast.copy_location(gast.Name(name, gast.Load(), None, None), node.value)

    def _orders_well(self, node: gast.AST) -> bool:
        """Whether evaluating the value first is what the statement does anyway."""
        return not isinstance(node, gast.AugAssign) or isinstance(node.target, gast.Name)

    def _raise(self, node: gast.AST, into: _Groups) -> None:
        if not self._on_a_path:
            into.add(node)
            return
        self.left = True
        into.add(*self._caught([node]))
        if self.trying:
            into.check()
        else:
            into.add(*self._leave(node))

    def _caught(self, body: list[gast.AST]) -> list[gast.AST]:
        """Statements whose exception becomes a value."""
        (new,) = replace(
            "try:\n    body\nexcept BaseException as raised:\n    error = _d2s.escapes(raised)",
            body=body, raised=self.namer.fresh("raised"), error=self.error, origin=body[0],
        )  # fmt: skip
        facts.put(new, Fact.ESCAPES)
        return [new]

    def _loop(self, node: gast.AST, into: _Groups) -> None:
        if isinstance(node, gast.For):
            node.iter = self._split(node.iter, into)
        node.body, checked = self._conditional(node.body)
        if checked:
            node.body = [
                *replace("error = None", error=self.error, origin=node), *node.body,
                *replace("if error is not None:\n    break", error=self.error, origin=node),
            ]  # fmt: skip
        node.orelse, other = self._conditional(node.orelse)
        into.add(node)
        if checked or other:
            into.check()

    def _with(self, node: gast.AST, into: _Groups) -> None:
        if len(node.items) > 1:
            inner = gast.copy_location(gast.With(node.items[1:], node.body, None), node)
            node.items, node.body = node.items[:1], [inner]
        (item,) = node.items
        before, self.trying = self.trying, True
        node.body, checked = self._block(node.body)
        self.trying = before
        if not checked:
            into.add(node)
            return
        item.context_expr = replace_expr(
            "_d2s.context(manager, lambda: error)", manager=item.context_expr, error=self.error, origin=node)
        if not before:
            into.add(*replace("error = None", error=self.error, origin=node))
        into.add(node)
        self._check(into, node)

    def _try(self, node: gast.AST, into: _Groups) -> None:
        final = self._finally(node)
        if not node.handlers:
            node.body, checked = self._block(node.body)
            node.finalbody = final
            into.add(node)
            if checked:
                into.check()
            return
        again = copy.deepcopy(node.handlers)
        error, body, checked = self._tried(node)
        orelse, other = self._block(node.orelse)
        if checked and orelse:
            orelse = replace("if error is None:\n    body", error=error, body=orelse, origin=node)
        faults = bool(named(node.handlers))  # of these ``caught_raise`` makes jumps, and moves the handlers to them
        self.conditions += faults
        handled = [self._handler(handler) for handler in node.handlers]
        self.conditions -= faults
        node.body, node.orelse, node.finalbody = body, orelse, []
        whole = [node]
        if checked:
            self.left = True
            whole = [*replace("error = None", error=error, origin=node), node, *self._again(node, again, error)]
        if final:  # the handlers' second place is inside of the try as well
            whole = replace("try:\n    body\nfinally:\n    final", body=whole, final=final, origin=node)
        into.add(*whole)
        if self.trying and (checked or other or any(handled)):
            into.check()

    def _finally(self, node: gast.AST) -> list[gast.AST]:
        """The last part of a ``try``; what it raises itself takes the place of what was raised before.

        Where nothing around takes an exception as a value it stays as it is: to leave from there would be to leave out
        the rest of it where the ``try`` itself returns. What it raises on some paths only is refused then.
        """
        if not node.finalbody:
            return []
        own = leaves_finally(node)
        as_it_is = node.finalbody if own else copy.deepcopy(node.finalbody)
        final, checked = self._block(node.finalbody)
        if not self.trying:
            return as_it_is if not own and jumps_out(final) else final
        saved = self.namer.fresh("saved")
        return [
            *replace("saved = error\nerror = None", saved=saved, error=self.error, origin=node), *final,
            *replace("error = _d2s.also(saved, error)", saved=saved, error=self.error, origin=node),
        ]  # fmt: skip

    def _tried(self, node: gast.AST) -> tuple[str, list[gast.AST], bool]:
        """The name of the exception, and the body of a ``try`` that has handlers."""
        before = self.error, self.trying
        self.error, self.trying = self.namer.fresh("error"), True
        body, checked = self._block(node.body)
        error = self.error
        self.error, self.trying = before
        return error, body, checked

    def _handler(self, handler: gast.AST) -> bool:
        handler.body, checked = self._block(handler.body)
        return checked

    def _again(self, node: gast.AST, handlers: list[gast.AST], error: str) -> list[gast.AST]:
        """The handlers for an exception that is a value now."""
        self.conditions += 1
        for handler in handlers:
            self._handler(handler)
        self.conditions -= 1
        raised = self.namer.fresh("raised")
        flag = self.namer.fresh("flag")
        body = self._caught(replace("raise raised", raised=raised, origin=node))
        inner = body[-1]
        if not self.trying:
            name = inner.handlers[0].name.id
            inner.handlers[0].body = replace("return _d2s.escaping(_d2s.escapes(raised))", raised=name, origin=node)
        inner.handlers = [*handlers, *inner.handlers]
        facts.drop(inner, Fact.ESCAPES)
        facts.put(inner, Fact.HANDS_ON)
        if leaves_loop(handlers):
            return replace(
                "if error is not None:\n    raised = _d2s.taken(error)\n    body",
                error=error, raised=raised, body=body, origin=node,
            )  # fmt: skip
        return replace(
            "for flag, raised in _d2s.errors(error):\n    if flag:\n        body",
            error=error, raised=raised, flag=flag, body=body, origin=node,
        )  # fmt: skip

    # -- expressions

    def _split(self, node: gast.AST, into: _Groups) -> gast.AST:
        """The expression with names for its calls, which come before it in statements of their own."""
        if not _splits(node):
            return node
        return self._named(node, into)

    def _named(self, node: gast.AST, into: _Groups) -> gast.AST:
        if not _splits(node):
            return node
        escapes = isinstance(node, gast.Call) and _may_escape(node)
        parts = _parts(node)
        last = max((index for index, part in enumerate(parts) if _splits(part.get())), default=-1)
        for part in parts[: last + 1]:
            new = self._named(part.get(), into)
            if part is not parts[last] and not self._stays(new):
                name = self.namer.fresh("part")
                into.add(*replace("name = value", name=name, value=new, origin=node))
                new = gast.copy_location(gast.Name(name, gast.Load(), None, None), node)
            part.set(new)
        return self._call(node, into) if escapes else node

    def _stays(self, node: gast.AST) -> bool:
        """Whether an expression means the same after a call, which may bind a global name or another function's."""
        if isinstance(node, gast.Name):
            return node.id in self.own or node.id.startswith(PREFIX) or hasattr(builtins, node.id)
        return isinstance(node, gast.Constant)

    def _call(self, node: gast.AST, into: _Groups) -> gast.AST:
        result = self.namer.fresh("result")
        call = replace("result = call\nerror = _d2s.error_of(result)", result=result, call=node, error=self.error,
                       origin=node)  # fmt: skip
        into.add(*(self._caught(call) if self._on_a_path else call))
        self._check(into, node)
        into.add(*replace("result = _d2s.value_of(result)", result=result, origin=node))
        return gast.copy_location(gast.Name(result, gast.Load(), None, None), node)


@dataclass
class _Part:
    """A place of an expression that holds another one."""

    owner: Any
    key: Any

    def get(self) -> gast.AST:
        found: gast.AST = self.owner[self.key] if isinstance(self.owner, list) else getattr(self.owner, self.key)
        return found

    def set(self, node: gast.AST) -> None:
        if isinstance(self.owner, list):
            self.owner[self.key] = node
        else:
            setattr(self.owner, self.key, node)


def _parts(node: gast.AST) -> list[_Part]:
    """The operands of an expression in the order in which Python evaluates them."""
    if isinstance(node, gast.Call):
        return [_Part(node, "func"), *_items(node.args), *(_Part(keyword, "value") for keyword in node.keywords)]
    if isinstance(node, gast.Dict):
        return [part for at in range(len(node.values)) for part in (
            *([_Part(node.keys, at)] if node.keys[at] is not None else []), _Part(node.values, at))]
    if isinstance(node, gast.BinOp):
        return [_Part(node, "left"), _Part(node, "right")]
    if isinstance(node, gast.Compare):
        return [_Part(node, "left"), *_items(node.comparators)]
    if isinstance(node, (gast.Tuple, gast.List, gast.Set)):
        return _items(node.elts)
    if isinstance(node, gast.Subscript):
        return [_Part(node, "value"), _Part(node, "slice")]
    if isinstance(node, gast.Slice):
        return [_Part(node, name) for name in ("lower", "upper", "step") if getattr(node, name) is not None]
    if isinstance(node, gast.UnaryOp):
        return [_Part(node, "operand")]
    return [_Part(node, "value")] if isinstance(node, (gast.Attribute, gast.Starred)) else []


def _items(nodes: list[gast.AST]) -> list[_Part]:
    """Those of a list; what stands after a star or in a slice is looked at inside."""
    return [_Part(nodes, at) if not isinstance(one, gast.Starred) else _Part(one, "value")
            for at, one in enumerate(nodes)]  # fmt: skip


def _splits(node: gast.AST) -> bool:
    """Whether a call in the expression gets a statement of its own."""
    if isinstance(node, _OPAQUE) or (isinstance(node, gast.Compare) and len(node.ops) > 1):
        return False
    if isinstance(node, gast.Call) and _may_escape(node):
        return True
    return any(_splits(part.get()) for part in _parts(node))


def _may_raise(node: gast.AST) -> bool:
    """Whether evaluating an expression may raise for other reasons than what its operators say."""
    return any(isinstance(part, (gast.Subscript, gast.Call)) for part in walk(node))


_CHECKED = frozenset({"index_select", "embedding", "cholesky", "inv", "inverse", "solve"})
"""Functions of torch, and methods of tensors, whose exceptions a handler gets (``operators.calls.functions``)."""


def _may_escape(call: gast.AST) -> bool:
    """Whether a call may run Python that is converted, by its text: no builtin's name, no method of tensors."""
    function = call.func
    if isinstance(function, gast.Name):
        return not hasattr(builtins, function.id)
    if not isinstance(function, gast.Attribute) or function.attr in _CHECKED:
        return True
    base = function.value
    while isinstance(base, gast.Attribute):
        base = base.value
    name = base.id if isinstance(base, gast.Name) else ""
    if name in _LIBRARIES or name.startswith("_d2s"):
        return function.attr[:1].isupper()  # a class, as of torch.distributions
    return name in ("self", "cls") or function.attr not in _METHODS
