"""A value that a branch chose, as a key and in code that is not converted; text that is put together in loops."""

from __future__ import annotations

import enum
from collections import ChainMap, Counter, OrderedDict

import pytest
import torch

from dy2static import not_to_static, to_static
from runtime.errors import TraceError
from tests.oracle import check

CALLS = [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),), (torch.tensor([3.0, -1.0]),)]
RATES = {"up": 2.0, "down": 0.5}


class Way(enum.Enum):
    UP = 1
    DOWN = 2


def named(x):
    return "up" if x.sum() > 0 else "down"


def looked_up(x):
    name = named(x)
    rates = {"up": 2.0, "down": 0.5}
    return x * rates.get(name, 1.0), name in rates, rates[name], {("up", 1): 3}.get((name, 1), 4), RATES.get(name)


def taken_away(x):
    name = named(x)
    rates = {"up": [x], "down": [x * 2]}
    kept = rates.setdefault(name, [])
    kept.append(x)
    return rates, {"left": 2.0, "right": 0.5}.pop(name, 1), dict.setdefault({"up": 1, "down": 2}, name, None)


def stored(x):
    name = named(x)
    rates = {"up": x, "down": x}
    other = rates
    rates[name] = x * 3
    rates.update({name: x * 4})
    rates[name] += 1
    return rates, other is rates


def displayed(x):
    name, way = named(x), Way.UP if x.sum() > 0 else Way.DOWN
    return {name: x, "up": x * 2}, {name, "up"}, len({way: 1, Way.UP: 2}), {**{name: x}}[name], {("a", name): 1}


def collected(x):
    name = named(x)
    counted = Counter([name, "up", name])
    chained = ChainMap({name: 1}, {"up": 5, "down": 6})
    ordered = OrderedDict([("up", 1), (name, 2)])
    return counted["up"], chained["up"], ordered["up"], dict(zip([name], [x])), dict.fromkeys([name, "up"], 1), \
        len(set([name, "up"])), frozenset([name]) == {"up"}


def values_stay_themselves(x):
    items = [x]
    held = {named(x): items}
    items.append(x * 2)
    kept = dict([("k", items), (named(x), 1)])
    return len(held[named(x)]), held[named(x)] is items, kept["k"] is items


def as_text(x):
    name = named(x)
    return name.upper().center(9), "-".join([name, "x", name]), "a up b".split(name), "upper".startswith((name, "z")), \
        "abc".replace("b", name), repr([name, 1])


def by_name(x):
    name = named(x)
    other = "sum" if x[0] > 0 else "q"
    return getattr(x, "sum" if x.sum() > 0 else "mean")(), hasattr(name, "upper"), hasattr(x, other)


@not_to_static
def left_alone(name):
    return RATES.get(name, 1.0), {name: 1}


def given_to_code_left_alone(x):
    return left_alone(named(x))


def another_key_on_each_path(x):
    rates = {"up": x}
    rates[named(x)] = x * 2
    return rates


def taken_out_on_each_path(x):
    return {"up": x, "down": x * 2}.pop(named(x))


def another_member_on_each_path(x):
    members = set()
    members.add(named(x))
    return members


@pytest.mark.parametrize("function", [
    looked_up, taken_away, stored, displayed, collected, values_stay_themselves, as_text, by_name,
    given_to_code_left_alone, another_key_on_each_path, taken_out_on_each_path, another_member_on_each_path,
])  # fmt: skip
def test_done_for_each_value(function):
    check(function, *CALLS, paths=("program",))


def by_a_nested_value(x):
    return {Pair(named(x)): 1}


class Pair:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return isinstance(other, Pair) and self.name == other.name


def text_of_a_list(x):
    return [named(x)].__repr__()


@pytest.mark.parametrize(("function", "code"), [
    (by_a_nested_value, "D2S210"), (text_of_a_list, "D2S210"),
])  # fmt: skip
def test_refused(function, code):
    with pytest.raises(TraceError) as caught:
        to_static(function)(CALLS[0][0])
    assert caught.value.code == code
    assert caught.value.location is not None and caught.value.location.file == __file__


def grown_by_an_expression(x):
    text = ""
    for i in range(int(x.abs().sum())):
        text = text + ("M" if i % 2 else "D")
    return text


def grown_on_paths(x):
    text = ""
    for i in range(8):
        text += "M" if x[0] > i - 4 else "D"
    return text, text == "MMMMMDDD", f"<{text}>"


def grown_from_nothing(x):
    text = None
    for i in range(int(x.abs().sum())):
        text = (text or "") + ("M" if i % 2 else "D")
    return text


def stays_one_of_few(x):
    state = "idle"
    for i in range(int(x.abs().sum())):
        if state == "idle":
            state = "run"
        elif i > 1:
            state = "done"
    return {"idle": 1, "run": 2, "done": 3}[state], state


def joined_from_many(x):
    return "".join(["M" if x[0] > i - 4 else "D" for i in range(8)])


@pytest.mark.parametrize("function", [
    grown_by_an_expression, grown_on_paths, grown_from_nothing, stays_one_of_few, joined_from_many,
])  # fmt: skip
def test_text_that_is_put_together(function):
    check(function, *CALLS, paths=("program",))


def members_from_many(x):
    return len({"M" if x[0] > i else "D" for i in range(3)} | set(["M" if x[0] > i else "D" for i in range(9)]))


def keys_from_many(x):
    found = {}
    for i in range(9):
        found = {**found, (f"a{i}" if x[0] > i else f"b{i}"): i}
    return found


@pytest.mark.parametrize("function", [members_from_many, keys_from_many])
def test_too_many_values_end_as_an_error(function):
    with pytest.raises(TraceError) as caught:
        to_static(function)(CALLS[0][0])
    assert caught.value.code in ("D2S251", "D2S255", "D2S254")
