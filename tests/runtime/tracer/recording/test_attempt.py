"""A failed attempt leaves the session as it was: every field, whatever the trace was doing when it failed."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import dy2static
from runtime.ir import Location
from runtime.torch_internals import TensorDict
from runtime.tracer.ambient.session_parts import DEEP, ITEMS, KEPT, PARTS, VALUE, SessionPart, states
from runtime.tracer.python_state.journal import Journal
from runtime.tracer.recording import attempt
from runtime.tracer.recording.attempt import FIELDS, Attempt, fields
from runtime.tracer.recording.recorder import Recorder
from runtime.tracer.recording.session import Session
from tests.oracle import check

ONE = torch.ones(3)
COUNT = {"seen": 0}


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.count = 0


def numbers(x, y):
    for i in range(66):
        x = x + y * i
        if x.sum() > 100:
            y = y * 0.5
    return x, y


def views_of_one_tensor(x, y):
    if y.sum() > 0:
        row = x[0]
    else:
        row = y
    for i in range(66):
        row += 1
        x = x + i
    return x, row, y


def lists_and_dicts(x, y):
    rows, known = [x], {"a": y}
    if x.sum() > 0:
        rows.append(y)
    else:
        rows = [y]
    for i in range(66):
        known["a"] = known["a"] + i
        known[str(i % 2)] = x
        rows.append(x * i)
    return known, len(rows), rows[0], rows[-1]


def objects(x, y):
    box, other = Box(x), Box(y)
    if y.sum() > 0:
        other = box
    made = []
    for i in range(66):
        box.value = box.value + i
        other.count += 1
        box.last = i
        made.append(Box(x * i))
    return box.value, other.count, box.count, box.last, made[5].value


def globals_and_sizes(x, y):
    found = x[x > 0]
    for i in range(66):
        COUNT["seen"] = i
        found = found + 1
        y = torch.cat([found, y])[: y.shape[0]]
    return found.shape[0], y, COUNT["seen"]


def inner_loops(x, y):
    i = 0
    while x.sum() < 5:
        x = x + 1
        i += 1
        for j in range(66):
            y = y + j * i
            with torch.no_grad():
                if y.sum() > 1e6:
                    y = y * 0
    return x, y, i


PROGRAMS: list[Callable[..., Any]] = [
    numbers, views_of_one_tensor, lists_and_dicts, objects, globals_and_sizes, inner_loops,
]  # fmt: skip
CALLS = [(sign * ONE + 0.5, sign * 2 * ONE) for sign in (1, -1)]
_LEAVES = (torch.Tensor, str, int, float, type(None), type, Location)


Picture = list[tuple[str, Any, Any]]


def picture(session: Session) -> Picture:
    """Every object of ours that a session leads to: the way to it, the object, and what it holds."""
    found: Picture = []
    seen: set[int] = set()
    env = session.shape_env
    todo: list[tuple[str, Any]] = [(name, getattr(one, name)) for one, name, how in fields(session) if how != KEPT]
    todo += [("journal.frames", session.journal.frames), ("journal.first_stores", session.journal.first_stores)]
    todo += [("asserts", env.deferred_runtime_asserts), ("replacements", env.replacements)]
    while todo:
        way, value = todo.pop()
        if isinstance(value, (Session, *_LEAVES)) or id(value) in seen:
            continue
        seen.add(id(value))
        parts = list(_parts(value))
        found.append((way, value, _held(value)))
        todo += [(f"{way}.{name}", part) for name, part in parts]
    return found


def different(before: Picture) -> list[Any]:
    """What holds something else than in the picture."""
    return [(way, held, _held(value)) for way, value, held in before if held != _held(value)]


class Entries:
    """What a dictionary of tensors held; equal to another's of the tensors that are alive when it is asked."""

    def __init__(self, value: TensorDict[Any]) -> None:
        self.copy = value.copy()

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Entries)
        return set(map(id, self.copy.values())) == set(map(id, other.copy.values()))


def _held(value: Any) -> Any:
    if isinstance(value, TensorDict):
        return Entries(value)
    parts = [(name, part if isinstance(part, (int, str, float)) else id(part)) for name, part in _parts(value)]
    unordered = isinstance(value, (set, frozenset, weakref.WeakSet, weakref.WeakKeyDictionary))
    return frozenset(part for _, part in parts) if unordered else parts


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, weakref.ref):
        yield "()", value()
    elif isinstance(value, TensorDict):
        yield from (("value", item) for item in value.values())
    elif isinstance(value, (dict, weakref.WeakKeyDictionary)):
        for key, item in list(value.items()):
            if isinstance(value, dict):
                yield "key", key
            yield type(key).__name__, item
    elif isinstance(value, (list, tuple, set, frozenset, weakref.WeakSet)):
        yield from (("item", item) for item in list(value))
    elif type(value).__module__.startswith(("runtime.", "dy2static.")) and not hasattr(type(value), "__code__"):
        if type(value).__name__ not in ("StorageTable", "GuardSet", "Namespace", "Growing", "Several", "function"):
            for name in (*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())):
                if name != "__weakref__":
                    yield name, getattr(value, name, None)


class Failing:
    """Lets the k-th call of the recorder, or the journal, inside an attempt fail, and looks at what that leaves."""

    __module__ = "runtime.tests"  # it is no object of the user's that a failed attempt would put back

    def __init__(self, patch: pytest.MonkeyPatch, number: int) -> None:
        self.number, self.count, self.failed = number, 0, 0
        self.session: Session | None = None
        for cls, name in (
            (Session, "emit"), (Session, "open"), (Journal, "note"), (Journal, "note_late"), (Journal, "close"),
            (Recorder, "record"),
        ):  # fmt: skip
            if hasattr(cls, name):
                patch.setattr(cls, name, self._counted(getattr(cls, name)))
        patch.setattr(attempt, "Attempt", self._watched())

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
            session = owner if isinstance(owner, Session) else getattr(owner, "session", None) or owner._session
            if session.constructs.attempts and session.constructs.attempts[0].mine:
                self.count += 1
                if self.count == self.number:
                    self.failed += 1
                    if function.__name__ == "close":
                        function(owner, *args, **kwargs)
                    raise session.error("a fault for the test", code="D2S200")
            return function(owner, *args, **kwargs)

        return call

    def _watched(self) -> type[Attempt]:
        outer = self

        class Watched(Attempt):
            __module__ = "runtime.tests"

            def __enter__(self) -> Attempt:
                session = self._session
                self.mine = outer.number == 0 or not outer.failed
                self.fields = dict(vars(session))
                self.before, self.text = picture(session), str(session.program)
                return super().__enter__()

            def undo(self) -> None:
                super().undo()
                assert str(self._session.program) == self.text
                assert not different(self.before)
                now = vars(self._session)
                assert not [name for name, value in self.fields.items() if now[name] is not value]
                outer.compared = True

        self.compared = False
        return Watched


@functools.cache
def calls_in_attempts(function: Callable[..., Any]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        counting = Failing(patch, 0)
        dy2static.to_static(function)(*(arg.clone() for arg in CALLS[0]))
    return counting.count


@pytest.mark.sample(3)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_a_fault_anywhere_in_an_attempt(function, part, monkeypatch):
    total = calls_in_attempts(function)
    assert total
    number = 1 + (total - 1) * part // 3
    failing = Failing(monkeypatch, number)
    check(function, CALLS[0], paths=("program",))
    assert failing.failed and failing.compared


def test_every_field_of_a_session_has_its_decision():
    session = Session("f")
    parts = {name for name, one in vars(session).items() if isinstance(one, SessionPart)}
    assert len(parts) == 10
    assert set(vars(session)) == set(FIELDS) | parts and not parts & set(FIELDS)
    for name in parts:
        part = getattr(session, name)
        assert set(vars(part)) == {field for field, _ in states(part)}
        assert {how for _, how in states(part)} <= {VALUE, ITEMS, PARTS, DEEP, KEPT}
