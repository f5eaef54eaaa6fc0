"""``match`` becomes ``if`` statements: the pattern's test first, then the names it binds, then its guard.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(n):
...     match n:
...         case 0 | 1:
...             r = 1
...         case [a, {"k": 2}] if a > 1:
...             r = a
...         case other:
...             r = other
... ''', transform))
def f(n):
    _d2s_subject_1 = n
    if _d2s_subject_1 == 0 or _d2s_subject_1 == 1:
        r = 1
    else:
        if _d2s.is_sequence(_d2s_subject_1, 2, False) and _d2s.is_mapping(_d2s.part(_d2s_subject_1, 1, 2, None), 'k') and _d2s.part(_d2s_subject_1, 1, 2, None)['k'] == 2:
            a = _d2s.part(_d2s_subject_1, 0, 2, None)
            _d2s_taken_1 = a > 1
        else:
            _d2s_taken_1 = False
        if _d2s_taken_1:
            r = a
        else:
            other = _d2s_subject_1
            r = other

A statement with alternatives (``|``) that bind names stays as it is.
"""  # noqa: E501 # a line that the example prints

from __future__ import annotations

import copy
from typing import Any

import gast

from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer, constant, name_node, operator


def transform(tree: Any, context: Context) -> Any:
    """Lower every ``match`` whose alternatives bind no names."""
    return _Match(context).visit(tree)


class _Unsupported(Exception):
    """A pattern that stays a pattern."""


class _Match(Transformer):
    expressions = False

    def visit_Match(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        name = self.context.namer.fresh("subject")
        try:
            patterns = [_Pattern(name_node(name, case.pattern), case.pattern) for case in node.cases]
        except _Unsupported:
            return node
        result: list[gast.AST] = []
        for case, pattern in zip(reversed(node.cases), reversed(patterns)):
            result = self._case(case, pattern, result)
        return [*replace("subject = value", subject=name, value=node.subject, origin=node.subject), *result]

    def _case(self, case: gast.AST, pattern: _Pattern, rest: list[gast.AST]) -> list[gast.AST]:
        if case.guard is not None:
            taken = self.context.namer.fresh("taken")
            before = [*pattern.bindings, *replace("taken = guard", taken=taken, guard=case.guard, origin=case.guard)]
            if pattern.tests:
                before = _if(pattern.test(), before, replace("taken = False", taken=taken, origin=case.pattern), case)
            return [*before, *_if(name_node(taken, case.guard), case.body, rest, case)]
        body = [*pattern.bindings, *case.body]
        return _if(pattern.test(), body, rest, case) if pattern.tests else body


def _if(test: Any, body: list[gast.AST], rest: list[gast.AST], case: gast.AST) -> list[gast.AST]:
    if not rest:
        return replace("if test:\n    body", test=test, body=body, origin=case.pattern)
    return replace("if test:\n    body\nelse:\n    rest", test=test, body=body, rest=rest, origin=case.pattern)


class _Pattern:
    """The tests of one pattern, each in order, and the assignments of the names it binds."""

    def __init__(self, subject: Any, pattern: gast.AST) -> None:
        self.tests: list[Any] = []
        self.bindings: list[gast.AST] = []
        self.origin = pattern
        self._add(subject, pattern)

    def test(self) -> Any:
        """All tests in one expression."""
        if len(self.tests) == 1:
            return self.tests[0]
        return gast.copy_location(gast.BoolOp(gast.And(), self.tests), self.origin)

    def _add(self, subject: Any, pattern: gast.AST) -> None:
        getattr(self, f"_{type(pattern).__name__}")(subject, pattern)

    def _expression(self, template: str, **holes: Any) -> Any:
        return replace_expr(template, origin=self.origin, **copy.deepcopy(holes))

    def _bind(self, name: str | None, value: Any) -> None:
        if name is not None:
            self.bindings += replace("name = value", name=name, value=copy.deepcopy(value), origin=self.origin)

    def _MatchValue(self, subject: Any, pattern: gast.AST) -> None:
        self.tests.append(self._expression("subject == value", subject=subject, value=pattern.value))

    def _MatchSingleton(self, subject: Any, pattern: gast.AST) -> None:
        value = constant(pattern.value)
        self.tests.append(self._expression("subject is value", subject=subject, value=value))

    def _MatchAs(self, subject: Any, pattern: gast.AST) -> None:
        if pattern.pattern is not None:
            self._add(subject, pattern.pattern)
        self._bind(pattern.name, subject)

    def _MatchOr(self, subject: Any, pattern: gast.AST) -> None:
        parts = [_Pattern(subject, one) for one in pattern.patterns]
        if any(part.bindings for part in parts):
            raise _Unsupported
        if all(part.tests for part in parts):
            self.tests.append(gast.copy_location(gast.BoolOp(gast.Or(), [part.test() for part in parts]), pattern))
        elif parts[0].tests:  # the last one always matches, the others may have effects
            self.tests.append(self._expression("first or True", first=parts[0].test()))

    def _MatchSequence(self, subject: Any, pattern: gast.AST) -> None:
        items = pattern.patterns
        star = next((index for index, item in enumerate(items) if isinstance(item, gast.MatchStar)), None)
        least = len(items) - (star is not None)
        subject = copy.deepcopy(subject)
        self.tests.append(operator(
            "is_sequence", subject, constant(least), constant(star is not None), origin=self.origin))
        for index, item in enumerate(items):
            if index == star:
                after = constant(len(items) - index - 1)
                self._bind(item.name, operator("starred", copy.deepcopy(subject), constant(index), after,
                                               origin=self.origin))
                continue
            if star is not None and items[star].name is None:  # Python subscripts the subject
                if index < star:
                    part = self._expression("subject[place]", subject=subject, place=constant(index))
                else:
                    place = constant(len(items) - index)
                    part = operator("from_end", copy.deepcopy(subject), place, origin=self.origin)
            else:  # and unpacks it here
                before = least if star is None else star
                after = None if star is None else least - star
                part = operator("part", copy.deepcopy(subject), constant(index), constant(before), constant(after),
                                origin=self.origin)
            self._add(part, item)

    def _MatchMapping(self, subject: Any, pattern: gast.AST) -> None:
        keys = pattern.keys
        self.tests.append(operator("is_mapping", *copy.deepcopy([subject, *keys]), origin=self.origin))
        for key, item in zip(keys, pattern.patterns):
            self._add(self._expression("subject[key]", subject=subject, key=key), item)
        if pattern.rest is not None:
            self._bind(pattern.rest, operator("without_keys", *copy.deepcopy([subject, *keys]), origin=self.origin))

    def _MatchClass(self, subject: Any, pattern: gast.AST) -> None:
        count = constant(len(pattern.patterns))
        names = [constant(name) for name in pattern.kwd_attrs]
        self.tests.append(operator(
            "is_matched", *copy.deepcopy([subject, pattern.cls]), count, *names, origin=self.origin))
        for index, item in enumerate(pattern.patterns):
            part = operator("positional", *copy.deepcopy([subject, pattern.cls]), constant(index), origin=self.origin)
            self._add(part, item)
        for name, item in zip(pattern.kwd_attrs, pattern.kwd_patterns):
            part = gast.copy_location(gast.Attribute(copy.deepcopy(subject), name, gast.Load()), self.origin)
            self._add(part, item)
