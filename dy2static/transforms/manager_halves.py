"""The generator of a ``@contextmanager`` in two halves: what enters, and what leaves, which is told of an exception.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(log):
...     log.append("in")
...     try:
...         yield 5
...     except ValueError as e:
...         log.append(str(e))
...     finally:
...         log.append("out")
... ''', transform))
def f(log):
    log.append('in')
    _d2s_given_1 = 5
    def _d2s_leave_1(_d2s_error_1):
        try:
            for _d2s_flag_1, _d2s_raised_1 in _d2s.errors(_d2s_error_1):
                if _d2s_flag_1:
                    raise _d2s_raised_1
        except ValueError as e:
            log.append(str(e))
        finally:
            log.append('out')
    return _d2s.manager_halves(_d2s_given_1, _d2s_leave_1)

A generator can be advanced once only, so it cannot be told of an exception on one path and of none on another; a
function can take the exception that there is on each path. A generator that may yield twice or not at all, or in a
loop, stays a generator.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import YIELDS, is_generator
from dy2static.analysis.scope import own_nodes, parameter_names, scope_of, uses
from dy2static.names import Namer
from dy2static.template import replace
from dy2static.transforms.base import Context, constant, converts, docstring


def transform(tree: Any, context: Context) -> Any:
    """Split the function."""
    if not isinstance(tree, gast.FunctionDef) or not is_generator(tree) or not converts(tree):
        return tree
    said = docstring(tree.body)
    halves = _Halves(context.namer)
    try:
        enter, leave = halves.split(copy.deepcopy(tree.body[len(said) :]))
    except _Whole:
        return tree
    name = context.namer.fresh("leave")
    shared = uses(enter).writes | set(parameter_names(tree))
    rebound = sorted((uses(leave).writes | uses(leave).deletes) & shared)
    bound = [*replace("nonlocal names", names=rebound, origin=tree), *leave] if rebound else leave
    (function,) = replace("def name(error):\n    body", name=name, error=halves.error, body=bound, origin=tree)
    tree.body = [*said, *enter, function, *replace(
        "return _d2s.manager_halves(given, name)", given=halves.given, name=name, origin=tree)]
    facts.put(function, Fact.LOCALS, scope_of(function).locals)
    converts(function)
    facts.put(tree, Fact.LOCALS, frozenset({*shared, name}))
    return tree


class _Whole(Exception):
    """It cannot be split."""


@dataclass
class _Halves:
    namer: Namer
    given: str = field(init=False)
    error: str = field(init=False)

    def __post_init__(self) -> None:
        self.given, self.error = self.namer.fresh("given"), self.namer.fresh("error")

    def split(self, block: list[gast.AST]) -> tuple[list[gast.AST], list[gast.AST]]:
        """What comes before the ``yield``, and what comes after it."""
        yielding = [at for at, statement in enumerate(block) if _yields(statement)]
        if len(yielding) != 1 or any(isinstance(one, gast.Return) for one in own_nodes(block[: yielding[0]])):
            raise _Whole
        (at,) = yielding
        enter, leave = self._statement(block[at])
        return [*block[:at], *enter], [*leave, *block[at + 1 :]]

    def _statement(self, node: gast.AST) -> tuple[list[gast.AST], list[gast.AST]]:
        if isinstance(node, (gast.Expr, gast.Assign)) and isinstance(node.value, gast.Yield):
            value = node.value.value or constant(None)
            leave = replace(
                "for flag, raised in _d2s.errors(error):\n    if flag:\n        raise raised", error=self.error,
                flag=self.namer.fresh("flag"), raised=self.namer.fresh("raised"), origin=node)
            if isinstance(node, gast.Assign):  # ``with`` sends nothing
                node.value = gast.copy_location(constant(None), node)
                leave.append(node)
            return replace("given = value", given=self.given, value=value, origin=node), leave
        if isinstance(node, gast.If) and not _yields(node.test):
            flag = self.namer.fresh("flag")
            one, other = self.split(node.body), self.split(node.orelse)
            enter = replace("flag = test\nif flag:\n    one\nelse:\n    other", flag=flag, test=node.test, one=one[0],
                            other=other[0], origin=node)  # fmt: skip
            return enter, replace("if flag:\n    one\nelse:\n    other", flag=flag, one=one[1], other=other[1],
                                  origin=node)  # fmt: skip
        if isinstance(node, gast.Try) and not any(map(_yields, [*node.handlers, *node.orelse, *node.finalbody])):
            enter, body = self.split(node.body)
            leave = gast.copy_location(gast.Try(body, node.handlers, node.orelse, node.finalbody), node)
            return (enter if all(map(_is_quiet, enter)) else self._tried(node, enter)), [leave]
        if isinstance(node, gast.With) and not any(map(_yields, node.items)):
            return self._with(node)
        raise _Whole

    def _tried(self, node: gast.AST, enter: list[gast.AST]) -> list[gast.AST]:
        """What comes before the ``yield`` in a ``try``, with what waits there for exceptions."""
        flag = self.namer.fresh("flag")
        handlers, final = copy.deepcopy(node.handlers), copy.deepcopy(node.finalbody)
        if final:
            final = replace("if not flag:\n    final", flag=flag, final=final, origin=node)
        tried = gast.copy_location(
            gast.Try([*enter, *replace("flag = True", flag=flag, origin=node)], handlers, [], final), node)
        after = replace("if not flag:\n    _d2s.not_yielded()", flag=flag, origin=node) if handlers else []
        return [*replace("flag = False", flag=flag, origin=node), tried, *after]

    def _with(self, node: gast.AST) -> tuple[list[gast.AST], list[gast.AST]]:
        first, *rest = node.items
        body = [gast.copy_location(gast.With(rest, node.body, None), node)] if rest else node.body
        inner, leave = self.split(body)
        held = self.namer.fresh("manager")
        enter = replace("held = _d2s.entering(value)\nwith _d2s.entered(held, True):\n    inner", held=held,
                        value=first.context_expr, inner=inner, origin=node)  # fmt: skip
        enter[1].items[0].optional_vars = first.optional_vars
        return enter, replace("with _d2s.entered(held, False):\n    leave", held=held, leave=leave, origin=node)


def _is_quiet(node: gast.AST) -> bool:
    """Whether a statement raises nothing: what is given is a name or a constant."""
    return isinstance(node, gast.Assign) and isinstance(node.value, (gast.Name, gast.Constant))


def _yields(node: gast.AST) -> bool:
    return any(isinstance(part, YIELDS) for part in own_nodes(node))


