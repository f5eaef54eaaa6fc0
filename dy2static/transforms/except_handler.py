"""A handler that would also catch the converter's own errors hands them on first; the body knows what is caught.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     try:
...         return x()
...     except ValueError:
...         return 1
...     except KeyError:
...         raise
...     except Exception:
...         return 2
... ''', transform))
def f(x):
    try:
        with _d2s.catching(lambda: (ValueError, _d2s.passed(KeyError), Exception)):
            return x()
    except ValueError:
        return 1
    except KeyError:
        raise
    except Exception as _d2s_error_1:
        _d2s.handler(_d2s_error_1)
        return 2
"""

from __future__ import annotations

import builtins
import copy
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.names import OPERATORS
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer


def transform(tree: Any, context: Context) -> Any:
    """Start every handler that could swallow too much with a call of `handler`."""
    return _Handler(context).visit(tree)


def _caught(handler: gast.AST) -> Any:
    """What a handler names, for the body to know: marked if the handler only hands the exception on."""
    if handler.type is None:
        named = gast.Name("BaseException", gast.Load(), None, None)
    else:
        named = copy.deepcopy(handler.type)
    *before, last = handler.body
    if isinstance(last, gast.Raise) and last.exc is None and all(map(_is_outside, before)):
        return replace_expr("_d2s.passed(types)", types=named)
    return named


def _is_outside(statement: gast.AST) -> bool:
    """Whether this is the call that ``caught_raise`` put first: it, too, hands the exception on."""
    call = statement.value if isinstance(statement, gast.Expr) else None
    return isinstance(call, gast.Call) and isinstance(call.func, gast.Attribute) and call.func.attr == "outside" and (
        isinstance(call.func.value, gast.Name) and call.func.value.id == OPERATORS
    )


class _Handler(Transformer):
    expressions = False

    def visit_Try(self, node: gast.AST) -> Any:
        if facts.get(node, Fact.ESCAPES):
            node.body = self.block(node.body)
            return node
        if node.handlers and node.finalbody:  # what a handler raises leaves through the last part, too
            inner = gast.copy_location(gast.Try(node.body, node.handlers, node.orelse, []), node)
            for fact in (Fact.HANDS_ON, Fact.ATTEMPT):
                if (known := facts.get(node, fact)) is not None:
                    facts.put(inner, fact, known)
            return self.visit(gast.copy_location(gast.Try([inner], [], [], node.finalbody), node))
        own = node.handlers.pop() if facts.get(node, Fact.HANDS_ON) else None
        caught = [_caught(handler) for handler in node.handlers]
        node = self.generic_visit(node)
        if caught:
            attempt = facts.get(node, Fact.ATTEMPT)
            node.body = replace(
                "with _d2s.catching(lambda: caught, attempt):\n    body",
                caught=caught[0] if len(caught) == 1 else gast.Tuple(caught, gast.Load()),
                attempt=[gast.Name(attempt, gast.Load(), None, None)] if attempt else [],
                body=node.body, origin=node,
            )
        elif node.finalbody:
            node.body = replace("with _d2s.finishing():\n    body", body=node.body, origin=node)
        if own is not None:
            node.handlers.append(own)
        return node

    def visit_TryStar(self, node: gast.AST) -> Any:
        """What only some paths raise comes to no ``except*``: that is refused, as Python takes groups apart itself."""
        node = self.generic_visit(node)
        node.body = replace("with _d2s.catching(lambda: BaseException):\n    body", body=node.body, origin=node)
        return node

    def visit_ExceptHandler(self, node: gast.AST) -> Any:
        node.body = self.block(node.body)
        if node.type is not None and self._is_narrow(node.type):
            return node
        if node.type is None:
            node.type = gast.copy_location(gast.Name("BaseException", gast.Load(), None, None), node)
        if node.name is None:
            name = self.context.namer.fresh("error")
            node.name = gast.copy_location(gast.Name(name, gast.Store(), None, None), node)
        node.body = [*replace("_d2s.handler(error)", error=node.name.id, origin=node), *node.body]
        return node

    def _is_narrow(self, node: gast.AST) -> bool:
        """Whether this names builtin exceptions that none of the project's own errors is."""
        if isinstance(node, gast.Tuple):
            return all(self._is_narrow(element) for element in node.elts)
        if not isinstance(node, gast.Name) or node.id in ("Exception", "BaseException"):
            return False
        known = getattr(builtins, node.id, None)
        own = any(node.id in facts.get(function, Fact.LOCALS, ()) for function in self.functions)
        return not own and isinstance(known, type) and issubclass(known, BaseException)
