"""Objects with an attribute that only some paths set, given to code that is not converted: equal or refused."""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import inspect
import pickle
import types

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from tests.oracle import check

NAME, NAMES = "warm", ("lr", "warm")
UP, DOWN = torch.ones(2), -torch.ones(2)


class Plain:
    lr = 1


class Settings(argparse.Namespace):
    def doubled(self):
        return self.lr * 2


@dataclasses.dataclass
class Record:
    lr: int = 1


class Items(list):
    lr = 1


MAKERS = {
    "Namespace": lambda: argparse.Namespace(lr=1), "SimpleNamespace": lambda: types.SimpleNamespace(lr=1),
    "derived": lambda: Settings(lr=1), "plain": Plain, "dataclass": Record, "list": lambda: Items([1, 2]),
}  # fmt: skip
WHOLE = {
    "in": lambda a: 3 if "warm" in a else 1,
    "==": lambda a: 3 if a == type(a)(lr=1) else 1,
    "!=": lambda a: 3 if a != type(a)(lr=1) else 1,
    "reflected": lambda a: 3 if type(a)(lr=1) == a else 1,
    "of lists": lambda a: 3 if [a] == [type(a)(lr=1)] else 1,
    "of dicts": lambda a: 3 if {1: (a,)} == {1: (type(a)(lr=1),)} else 1,
    "in list": lambda a: 3 if a in [type(a)(lr=1)] else 1,
    "count": lambda a: [type(a)(lr=1), 2].count(a),
    "getmembers": lambda a: len(inspect.getmembers(a)),
    "names": lambda a: len([name for name, _ in inspect.getmembers(a) if name == "warm"]),
    "getattr_static": lambda a: 2 if inspect.getattr_static(a, "warm", None) is not None else 1,
    "pickled": lambda a: len(pickle.dumps(a)),
    "deepcopy": lambda a: len(copy.deepcopy(a).__dict__),
}
SETTLED = {
    "attribute": lambda a: a.lr, "has": lambda a: 3 if hasattr(a, "warm") else 1,
    "get": lambda a: getattr(a, "warm", 5),
    "copy": lambda a: 3 if hasattr(copy.copy(a), "warm") else 1, "class": lambda a: 3 if inspect.isclass(a) else 1,
    "method": lambda a: a.doubled() if isinstance(a, Settings) else 1, "identity": lambda a: 3 if a in [2, a] else 1,
    "signature": lambda a: len(inspect.signature(a.doubled).parameters) if isinstance(a, Settings) else 1,
    "is_dataclass": lambda a: 2 if dataclasses.is_dataclass(a) else 1,
    "other class": lambda a: 2 if a == 3 or a == collections.UserDict() else 1,
    "items": lambda a: a.index(2) + len(a) + a.count(1) if isinstance(a, list) else 1,
    "sorted": lambda a: len(sorted([a], key=lambda one: 1)), "kept": lambda a: len({1: [a]}),
}  # fmt: skip


def _function(make, use):
    def asked(x):
        held = make()
        if x.sum() > 0:
            held.warm = 3
        return x * use(held)

    return asked


@pytest.mark.parametrize(("kind", "use"), [
    (kind, use) for kind in ("Namespace", "SimpleNamespace", "derived") for use in WHOLE
    if (kind, use) != ("SimpleNamespace", "in")])  # it is no container
def test_a_namespace_that_differs_is_equal_or_refused(kind, use):
    function = _function(MAKERS[kind], WHOLE[use])
    with pytest.raises(TraceError, match=r"D2S254|D2S210"):
        dy2static.to_static(function)(DOWN)


@pytest.mark.parametrize("use", ("getmembers", "names", "getattr_static", "pickled", "deepcopy"))
@pytest.mark.parametrize("kind", ("plain", "dataclass", "list"))
def test_a_users_object_that_differs_is_refused(kind, use):
    with pytest.raises(TraceError, match=r"D2S254|D2S210"):
        dy2static.to_static(_function(MAKERS[kind], WHOLE[use]))(DOWN)


@pytest.mark.parametrize("use", SETTLED)
@pytest.mark.parametrize("kind", MAKERS)
def test_what_does_not_read_it_is_right(kind, use):
    check(_function(MAKERS[kind], SETTLED[use]), (UP,), (DOWN,), paths=("program",))


class Matched(Plain):
    __match_args__ = ("lr", "warm")


def _matched_by_place(a):
    match a:
        case Matched(_, _):
            return 3
    return 1


def _matched_by_name(a):
    match a:
        case Matched(warm=_):
            return 3
    return 1


BY_A_NAME_THAT_IS_COMPUTED = {
    "get": lambda a: getattr(a, NAME, 5), "has": lambda a: 3 if hasattr(a, NAME) else 1,
    "sum": lambda a: getattr(a, "wa" + "rm".lower(), 5), "text": lambda a: getattr(a, f"{NAME}", 5),
    "comprehension": lambda a: sum([getattr(a, name, 5) for name in NAMES]),
    "given": lambda a: sum(map(getattr, [a], NAMES[:1], (5,))), "star": lambda a: getattr(*(a, NAME, 5)),
    "one of two": lambda a: getattr(a, NAME if a.lr else "lr", 5),
    "in a function": lambda a: (lambda name: getattr(a, name, 5))(NAME),
    "vars": lambda a: vars(a).get(NAME, 5), "dict": lambda a: a.__dict__.get(NAME, 5),
    "place": _matched_by_place, "name": _matched_by_name, "beside": lambda a: _asked(a, NAME),
    "named beside": lambda a: getattr(a, "lr", getattr(a, NAME, 5)),
}
BY_OTHER_NAMES = {
    "get": lambda a: getattr(a, "lr", 5), "has": lambda a: 3 if hasattr(a, "lr") else 1,
    "default": lambda a: getattr(a, "cold", len([a.lr])), "part": lambda a: getattr([a][0], "lr", len([a])),
    "stored": lambda a: setattr(a, "cold", 3) or a.cold,
}  # fmt: skip


def _asked(a, name):
    return getattr(a, name, 5)


@pytest.mark.parametrize(("kind", "use"), [
    (kind, use) for use in BY_A_NAME_THAT_IS_COMPUTED
    for kind in (("matched",) if use in ("place", "name") else ("Namespace", "plain", "list"))])
def test_code_that_is_not_converted_may_read_any_name(kind, use):
    make = {**MAKERS, "matched": Matched}[kind]
    with pytest.raises(TraceError, match="D2S254.*'warm'"):
        dy2static.to_static(_function(make, dy2static.not_to_static(BY_A_NAME_THAT_IS_COMPUTED[use])))(DOWN)


@pytest.mark.parametrize("kind", ("Namespace", "plain", "list"))
@pytest.mark.parametrize("use", BY_OTHER_NAMES)
def test_code_that_is_not_converted_and_reads_other_names(kind, use):
    check(_function(MAKERS[kind], dy2static.not_to_static(BY_OTHER_NAMES[use])), (UP,), (DOWN,), paths=("program",))
