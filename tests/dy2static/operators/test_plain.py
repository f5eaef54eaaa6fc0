"""Outside a trace every operator is the Python it stands for: values, laziness, order, exceptions, messages."""

from __future__ import annotations

import sys
import warnings

import pytest

from dy2static import operators as d


def same_error(ours, theirs):
    """Both raise, with one type and one message."""
    with pytest.raises(Exception) as expected:
        theirs()
    with pytest.raises(type(expected.value)) as actual:
        ours()
    assert str(actual.value) == str(expected.value)


class Thing:
    limit = 3

    def __bool__(self):
        raise KeyError("truth")


@pytest.mark.parametrize("value", [True, False, 0, 1, "", "a", [], [0], None])
def test_conditions(value):
    ran = []
    d.if_stmt(value, lambda: ran.append("body"), lambda: ran.append("else"))
    assert ran == ["body" if value else "else"]
    assert d.if_expr(value, lambda: 1, lambda: 2) == (1 if value else 2)
    assert d.not_(value) is (not value)
    assert d.and_(lambda: value, lambda: "right") == (value and "right")
    assert d.or_(lambda: value, lambda: "right") == (value or "right")


def test_the_truth_of_a_value_is_asked_once_and_its_error_is_its_own():
    same_error(lambda: d.not_(Thing()), lambda: not Thing())
    assert isinstance(d.and_(lambda: 1, lambda: Thing()), Thing)
    with pytest.raises(KeyError):
        d.and_(lambda: Thing(), lambda: 1)


def test_while_and_for():
    n, seen = 3, []

    def step():
        nonlocal n
        n -= 1

    d.while_stmt(lambda: n, step, "n")
    assert n == 0
    iterator = iter([1, 2, 3, 4])
    d.for_stmt(iterator, seen.append, "", lambda: len(seen) < 2)
    assert seen == [1, 2]
    assert next(iterator) == 3
    same_error(lambda: d.for_stmt(5, seen.append), lambda: list(5))


def test_subscripts_and_attributes():
    items, thing, n = [1, 2, 3], Thing(), None
    assert d.item(items, slice(1, None)) == [2, 3]
    d.set_item(items, 0, 5)
    d.del_item(items, -1)
    assert items == [5, 2]
    d.set_attr(thing, "limit", 4)
    assert d.attr(thing, "limit") == 4
    d.del_attr(thing, "limit")
    assert d.attr(thing, "limit") == 3
    same_error(lambda: d.item(None, 0), lambda: n[0])
    same_error(lambda: d.item(items, 9), lambda: items[9])
    same_error(lambda: d.attr(thing, "no"), lambda: thing.no)


@pytest.mark.parametrize("op", ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "<<=", ">>=", "&=", "^=", "|="])
def test_augmented_assignment(op):
    space = {"x": 13}
    exec(f"x {op} 3", space)
    assert d.aug(op, 13, 3) == space["x"]
    with pytest.raises(TypeError) as expected:
        exec(f"x = 1; x {op} {{}}", {})
    with pytest.raises(TypeError) as actual:
        d.aug(op, 1, {})
    assert str(actual.value) == str(expected.value)
    items = [1]
    assert d.aug("+=", items, [2]) is items


def test_comparisons():
    thing = 2
    assert d.compare(1, "in", [1]) and not d.compare(1, "not in", [1])
    assert d.compare(None, "is", None) and d.compare(1, "is not", None)
    same_error(lambda: d.compare(1, "in", thing), lambda: 1 in thing)


def test_f_strings():
    value, width = 3.14159, 8
    assert (
        d.fstring("a", d.format_value(value, -1, d.fstring(">", d.format_value(width), ".2f")))
        == f"a{value:>{width}.2f}"
    )
    assert d.format_value("x", "r") == f"{'x'!r}" and d.format_value("é", "a") == f"{'é'!a}"
    same_error(lambda: d.format_value([], -1, "d"), lambda: f"{[]:d}")


def test_assert_and_raise():
    d.assert_stmt(1, lambda: 1 / 0)
    with pytest.raises(AssertionError, match="^no$"):
        d.assert_stmt(0, lambda: "no")
    with pytest.raises(AssertionError) as bare:
        d.assert_stmt([])
    assert bare.value.args == ()
    cause = KeyError("k")
    with pytest.raises(ValueError) as raised:
        d.raise_stmt(ValueError("v"), cause)
    assert raised.value.__cause__ is cause
    with pytest.raises(ValueError) as raised:
        d.raise_stmt(ValueError, None)
    assert raised.value.__suppress_context__


def test_unbound_names():
    def unbound():
        if False:
            y = 1
        return y

    def free():
        def inner():
            return y

        if False:
            y = 1
        return inner()

    def loaded():
        def body():
            return d.load(lambda: y, "y")

        if False:
            y = 1
        return body()

    assert d.load(lambda: 3, "y") == 3
    assert d.load_free(3, "y") == 3
    same_error(loaded, unbound)
    same_error(lambda: d.load_free(free(), "y"), free)


def test_calls_pass_everything_on():
    assert d.call(lambda f, /, *args, **kwargs: (f, args, kwargs), 1, 2, f=3) == (1, (2,), {"f": 3})
    three = 3
    same_error(lambda: d.call(3), lambda: three())


def test_functions_that_look_at_their_caller():
    local = 5
    assert d.call(locals)["local"] == 5
    assert d.call(globals) is globals()
    assert d.call(eval, "1 + len('ab')") == 3
    assert d.call(sys._getframe).f_code.co_name == "test_functions_that_look_at_their_caller"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        d.call(warnings.warn, "here")
    assert caught[0].filename == __file__


def test_globals():
    d.set_global("made_by_the_test", 7)
    assert globals().pop("made_by_the_test") == 7
