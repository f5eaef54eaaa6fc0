"""``match`` becomes ``if`` statements: the pattern's test first, then the names it binds, then its guard.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(n):
...     match n:
...         case 0 | 1:
...             r = 1
...         case [a, {"k": 2}] if a > 1:
...             r = a
...         case [a, *b]:
...             r = b
...         case other:
...             r = other
... ''', transform))
def f(n):
    _d2s_subject_1 = n
    _d2s_items_1 = _d2s.Items(2, None)
    if _d2s_subject_1 == 0 or _d2s_subject_1 == 1:
        r = 1
    else:
        if _d2s.fits(_d2s_items_1, _d2s_subject_1) and _d2s.is_mapping(_d2s.part(_d2s_items_1, _d2s_subject_1, 1), 'k') and _d2s.part(_d2s_items_1, _d2s_subject_1, 1)['k'] == 2:
            a = _d2s.part(_d2s_items_1, _d2s_subject_1, 0)
            _d2s_taken_1 = a > 1
        else:
            _d2s_taken_1 = False
        if _d2s_taken_1:
            r = a
        elif _d2s.is_sequence(_d2s_subject_1, 1, True):
            a, b = _d2s.parts(_d2s_subject_1, 1, 0)
            r = b
        else:
            other = _d2s_subject_1
            r = other

A user's ``__iter__`` is run once for a pattern, as Python does: its items are all bound at once, or ``Items`` keeps them.
Where alternatives (``|``) bind names to different parts, the test notes which one it was:

>>> print(rewritten('''
... def f(n):
...     match n:
...         case (1 as a) | (2 as a):
...             return a
...         case {"x": b} | {"y": b}:
...             return b
... ''', transform))
def f(n):
    _d2s_subject_1 = n
    _d2s_which_1 = 2
    if _d2s_subject_1 == 1 or _d2s_subject_1 == 2:
        a = _d2s_subject_1
        return a
    elif (_d2s_which_1 := 0 if _d2s.is_mapping(_d2s_subject_1, 'x') else 1 if _d2s.is_mapping(_d2s_subject_1, 'y') else 2) != 2:
        if _d2s_which_1 == 0:
            b = _d2s_subject_1['x']
        else:
            b = _d2s_subject_1['y']
        return b
"""  # noqa: E501 # a line that the example prints

from __future__ import annotations

import copy
from typing import Any

import gast

from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer, constant, name_node, operator


def transform(tree: Any, context: Context) -> Any:
    """Lower every ``match``."""
    return _Match(context).visit(tree)


class _Match(Transformer):
    expressions = False

    def visit_Match(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        name = self.context.namer.fresh("subject")
        patterns = [_Pattern(name_node(name, case.pattern), case.pattern, self.context) for case in node.cases]
        result: list[gast.AST] = []
        for case, pattern in zip(reversed(node.cases), reversed(patterns)):
            result = self._case(case, pattern, result)
        before = [statement for pattern in patterns for statement in pattern.before]
        return [*replace("subject = value", subject=name, value=node.subject, origin=node.subject), *before, *result]

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
    """The tests of one pattern, each in order, what they need ``before``, and the assignments of the names it binds."""

    def __init__(self, subject: Any, pattern: gast.AST, context: Context) -> None:
        self.before: list[gast.AST] = []
        self.tests: list[Any] = []
        self.bindings: list[gast.AST] = []
        self.origin = pattern
        self.context = context
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
        parts = [_Pattern(subject, one, self.context) for one in pattern.patterns]
        bound = {tuple(gast.dump(statement) for statement in part.bindings) for part in parts}
        if len(bound) > 1:
            self._which(parts)
            return
        self.bindings += parts[0].bindings
        self.before += [statement for part in parts for statement in part.before]
        if all(part.tests for part in parts):
            self.tests.append(gast.copy_location(gast.BoolOp(gast.Or(), [part.test() for part in parts]), pattern))
        elif parts[0].tests:  # the last one always matches, the others may have effects
            self.tests.append(self._expression("first or True", first=parts[0].test()))

    def _which(self, parts: list[_Pattern]) -> None:
        """Alternatives that bind names to different parts of the subject."""
        which = self.context.namer.fresh("which")
        none = constant(len(parts))
        number, bindings = none, parts[-1].bindings
        for place, part in reversed(list(enumerate(parts))):
            self.before[:0] = part.before
            mine = constant(place)
            number = mine if not part.tests else self._expression(
                "mine if test else others", mine=mine, test=part.test(), others=number)
            if place < len(parts) - 1:
                bindings = replace("if which == mine:\n    bindings\nelse:\n    others", which=which, mine=mine,
                                   bindings=part.bindings, others=bindings, origin=self.origin)  # fmt: skip
        self.before += replace("which = none", which=which, none=none, origin=self.origin)
        self.tests.append(self._expression("(which := number) != none", which=which, number=number, none=none))
        self.bindings += bindings

    def _MatchSequence(self, subject: Any, pattern: gast.AST) -> None:
        items = pattern.patterns
        star = next((index for index, item in enumerate(items) if isinstance(item, gast.MatchStar)), None)
        least = len(items) - (star is not None)
        is_unpacked = (star is None or items[star].name is not None) and not all(map(_is_wildcard, items))
        if is_unpacked and not (pattern is self.origin and all(map(_is_name, items))):
            self._unpack(subject, items, star)
            return
        self.tests.append(operator(
            "is_sequence", copy.deepcopy(subject), constant(least), constant(star is not None), origin=self.origin))
        if is_unpacked:  # no test comes after
            targets = [item.name or self.context.namer.fresh("item") for item in items]
            values = operator("parts", copy.deepcopy(subject), *_counts(items, star), origin=self.origin)
            self.bindings += replace("targets, = values", targets=targets, values=values, origin=self.origin)
        elif star is not None:
            self._subscript(subject, items, star)

    def _subscript(self, subject: Any, items: list[Any], star: int) -> None:
        """The items around ``*_``, for which Python subscripts the subject."""
        for index, item in enumerate(items):
            if index < star:
                self._add(self._expression("subject[place]", subject=subject, place=constant(index)), item)
            elif index > star:
                place = constant(len(items) - index)
                self._add(operator("from_end", copy.deepcopy(subject), place, origin=self.origin), item)

    def _unpack(self, subject: Any, items: list[Any], star: int | None) -> None:
        """The items of a pattern for which Python unpacks the subject, once, and looks at them one by one."""
        name = self.context.namer.fresh("items")
        made = operator("Items", *_counts(items, star), origin=self.origin)
        self.before += replace("name = made", name=name, made=made, origin=self.origin)
        self.tests.append(operator("fits", name_node(name, self.origin), copy.deepcopy(subject), origin=self.origin))
        for index, item in enumerate(items):
            part = operator("part", name_node(name, self.origin), copy.deepcopy(subject), constant(index),
                            origin=self.origin)
            if index == star:
                self._bind(item.name, part)
            else:
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


def _counts(items: list[Any], star: int | None) -> tuple[Any, Any]:
    """How many items there are before a star, and behind it: constants."""
    return constant(len(items) if star is None else star), constant(None if star is None else len(items) - 1 - star)


def _is_name(item: gast.AST) -> bool:
    return isinstance(item, gast.MatchStar) or isinstance(item, gast.MatchAs) and item.pattern is None


def _is_wildcard(item: gast.AST) -> bool:
    return _is_name(item) and item.name is None
