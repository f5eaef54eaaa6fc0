"""``%`` on text, with numbers and tensors that only the Program knows."""

from __future__ import annotations

import collections
import linecache
import operator

import pytest
import torch

import dy2static
from dy2static.errors import TraceError
from tests.oracle import check

CALLS = [(torch.full((1,), value),) for value in (1.25, -2.0, 1234.5)]
FIELDS = ["%d", "%5d|", "%-6d|", "%05d", "%+d", "% d", "%i", "%f", "%.2f", "%8.3f|", "%-8.1f|", "%08.2f", "%e", "%g",
          "%.3g", "%s", "%10s|", "%-10s|", "%r", "%5.1f%%", "%+.1e"]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_each_field(field):
    names = {}
    exec_source = f"def f(x):\n    return '{field}' % x.sum().item(), 'a {field} b' % (int(x.sum()),)\n"
    path = f"<doctest {field!r}>"
    linecache.cache[path] = (len(exec_source), None, exec_source.splitlines(True), path)
    exec(compile(exec_source, path, "exec"), names)
    check(names["f"], *CALLS)


def several(x):
    return "%s: %d of %d, %.1f%%" % ("a", int(x.sum()), 7, x.sum())


def tensors(x):
    return "%s and %r" % (x, x * 2)


def plain(x):
    return "%s %5.2f %d%%" % ("a", 1.5, 3), x


@pytest.mark.parametrize("function", [several, tensors, plain], ids=lambda f: f.__name__)
def test_texts(function):
    check(function, *CALLS)


def test_other_fields_are_refused():
    def f(x):
        return "%.3d" % int(x.sum())

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(torch.ones(2))
    assert caught.value.location is not None


def test_plain_values_are_pythons():
    def f(x, n):
        return x * ("%d" % n == "3")

    check(f, (torch.ones(2), 3), (torch.ones(2), 4))


def by_name(x):
    values = {"n": int(x.sum()), "all": x, "unused": x.mean()}
    return "%(n)d of %(all)s, %(n)5.1f%%" % values


def format_in_a_variable(x):
    text = "%s and %d"
    text %= (x, int(x.sum()))
    return text, operator.mod("%d", int(x.sum())), operator.imod("%s", x)


def chosen_format(x):
    if x.sum() > 0:
        text = "a %s"
    else:
        text = "b %s %%"
    return text % x, text % int(x.sum())


def chosen_value(x):
    if x.sum() > 0:
        one, many, raw = "a", ("a", 1), b"a"
    else:
        one, many, raw = "b", ("b", 2), b"b"
    return "%s" % one, "%s %s" % many, "%(k)s" % {"k": one}, b"%s" % raw


@pytest.mark.parametrize("function", [by_name, format_in_a_variable, chosen_format, chosen_value],
                         ids=lambda f: f.__name__)
def test_formats_and_values_of_any_kind(function):
    check(function, *CALLS)


def count_of_fields(x):
    name = "a" if x.sum() > 0 else "b"
    text = "none"
    return text % name


def raw_count_of_fields(x):
    name = b"a" if x.sum() > 0 else b"b"
    return b"none" % name


def number_for_none(x):
    text = "none"
    return text % int(x.sum())


@pytest.mark.parametrize("function", [count_of_fields, raw_count_of_fields, number_for_none], ids=lambda f: f.__name__)
@pytest.mark.parametrize("value", [1.0, -1.0])
def test_too_many_values_raise_as_in_eager(function, value):
    x = torch.full((2,), value)
    with pytest.raises(TypeError, match="not all arguments converted"):
        function(x)
    with pytest.raises(TypeError, match="not all arguments converted"):
        dy2static.to_static(function)(x)


@pytest.mark.parametrize("text", ["%(a)d", "%(a)s", "%(a)5.1f of %(a)s", "none%%"])
def test_a_dict_that_differs_between_paths(text):
    def function(x):
        d = {"a": 1}
        if x.sum() > 0:
            d["b"] = 2
        return text % d, x

    check(function, (torch.ones(2),), (-torch.ones(2),))


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_a_key_of_one_path(value):
    def function(x):
        d = {"a": 1}
        if x.sum() > 0:
            d["b"] = 2
        return "%(b)s" % d

    check(function, (torch.full((2,), value),))


class Telling(dict):
    def __missing__(self, key):
        return "no " + key


class Answering(dict):
    def __getitem__(self, key):
        return "the " + key


def by_a_default(x):
    held = collections.defaultdict(lambda: "none", a="p" if x.sum() > 0 else "q")
    return "%(a)s %(b)s" % held, len(held), dict(held)


def default_of_two_paths(x):
    value = "p" if x.sum() > 0 else "q"
    held = collections.defaultdict(lambda: value, a=1)
    return "%(b)5s|%(a)03d" % held, len(held)


def of_a_number(x):
    held = collections.defaultdict(int, a=int(x.sum()))
    return "%(a)d %(b)d %(a)5.1f" % held, sorted(held)


def by_users_methods(x):
    value = "p" if x.sum() > 0 else "q"
    return "%(a)s %(b)s" % Telling(a=value), "%(a)s" % Answering(a=value), "%(a)s" % collections.OrderedDict(a=value)


def set_on_a_path(x):
    held = Telling(a=1)
    if x.sum() > 0:
        held["b"] = 2
    return "%(b)s %(a)r" % held


@pytest.mark.parametrize("function", [by_a_default, default_of_two_paths, of_a_number, by_users_methods, set_on_a_path])
def test_dicts_that_say_what_is_missing(function):
    """They were a KeyError (a copy was asked, which is a dict)."""
    check(function, [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),), (torch.tensor([3.0, 4.0]),)])
