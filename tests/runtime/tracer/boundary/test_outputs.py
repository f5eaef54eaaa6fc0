"""Output trees: what each kind of result is in one, and what has no place there."""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from dy2static import TraceError
from runtime.ir import ScalarType
from runtime.ir.tree import Leaf, Record
from runtime.tracer.boundary import results
from runtime.tracer.boundary.results import Outputs
from runtime.tracer.numbers.scalars import StagedInt
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.recording.interceptor import Interceptor
from runtime.tracer.recording.recorder import Recorder
from runtime.tracer.values import structure


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any


class Colour(enum.Enum):
    RED = 1


@pytest.fixture
def outputs(session: Any) -> Outputs:
    return Outputs(session)


@pytest.fixture
def made(session: Any) -> Callable[..., Any]:
    """What a function gives whose calls of torch are recorded."""
    def call(function: Callable[..., Any], *args: Any) -> Any:
        with Interceptor(session), Recorder(session):
            return function(*args)

    return call


CONSTANTS = [None, 3, 2.5, True, "text", b"bytes", 1j, torch.float32, ..., (), slice(1, 2), Colour.RED]


@pytest.mark.parametrize("value", CONSTANTS)
def test_a_constant_is_itself_or_an_object_by_name(value: Any, outputs: Outputs) -> None:
    tree = outputs.tree(value)
    if isinstance(tree, Record):
        assert tree.kind == "object" and outputs.classes[tree.type_name] is value
    else:
        assert tree == value and type(tree) is type(value)
    assert outputs.values == []


def test_a_tensor_is_one_yield_however_often_it_is_returned(outputs: Outputs, given: Any, made: Any) -> None:
    x = given("x", 2)
    y = made(torch.neg, x)
    assert outputs.tree([y, {"a": y}, (x,)]) == [Leaf(0), {"a": Leaf(0)}, (Leaf(1),)]
    assert outputs.values == [outputs.session.read(y), outputs.session.read(x)]


def test_views_of_arguments_are_taken_of_the_callers(outputs: Outputs, given: Any, made: Any) -> None:
    x = given("x", 3)
    row, new = made(lambda one: (one[1:], one * 2), x)
    outputs.tree((x, row, new))
    source = outputs.session.info(x).storage.origin
    assert set(outputs.views) == {0, 1}
    assert outputs.views[0].source is outputs.views[1].source is source and outputs.views[0].steps == ()
    assert [step.name for step in outputs.views[1].steps] == ["aten.slice.Tensor"]


def test_numbers_and_choices(outputs: Outputs, given: Any, number: Any) -> None:
    n, x = number(), given("x", None)
    selector = StagedInt(outputs.session.new_variable(ScalarType("int"), "which"))
    choice = structure.Choice(selector, ("a", n, [x.shape[0]]))
    size = outputs.session.sizes.staged(x.shape[0])
    fields = (("selector", Leaf(0)), ("option0", "a"), ("option1", Leaf(1)), ("option2", [Leaf(2)]))
    assert outputs.tree(choice) == Record("choice", "", fields)
    assert outputs.values == [selector.var, n.var, size.var]
    assert outputs.tree(results.MISSING) == Record("missing", "", ())


CONTAINERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "list": (lambda x: [x, 1], [Leaf(0), 1]),
    "tuple": (lambda x: (x, 1), (Leaf(0), 1)),
    "dict": (lambda x: {"a": x, 2: 1}, {"a": Leaf(0), 2: 1}),
    "deque": (lambda x: collections.deque([x], 4), Record("deque", "", (("maxlen", 4), ("item0", Leaf(0))))),
    "set": (lambda x: {7}, Record("set", "", (("item0", 7),))),
    "frozenset": (lambda x: frozenset([7]), Record("frozenset", "", (("item0", 7),))),
    "size": (lambda x: StagedSize((2, 3)), Record("size", "", (("item0", 2), ("item1", 3)))),
    "namedtuple": (
        lambda x: Point(x, 1),
        Record("namedtuple", f"{__name__}.Point", (("keys", ("x", "y")), ("x", Leaf(0)), ("y", 1))),
    ),
    "dataclass": (
        lambda x: Pair(x, 1),
        Record("dataclass", f"{__name__}.Pair", (("keys", ("a", "b")), ("a", Leaf(0)), ("b", 1))),
    ),
    "mapping": (
        lambda x: collections.OrderedDict([("a", x), (2, 1)]),
        Record("mapping", "collections.OrderedDict", (("keys", ("a", 2)), ("a", Leaf(0)), ("field1", 1))),
    ),
    "defaultdict": (
        lambda x: collections.defaultdict(int, {"a": x}),
        Record("defaultdict", "collections.defaultdict of <class 'int'>", (("keys", ("a",)), ("a", Leaf(0)))),
    ),
    "keys that are tensors": (
        lambda x: {x: 1}, Record("pairs", "builtins.dict", (("keys", (Leaf(0),)), ("items", (1,)))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_container(kind: str, outputs: Outputs, given: Any) -> None:
    make, tree = CONTAINERS[kind]
    assert outputs.tree(make(given("x", 2))) == tree


def test_a_container_in_two_places_is_one_tree(outputs: Outputs, given: Any) -> None:
    inner = [given("x", 2)]
    first, second, other = outputs.tree([inner, inner, list(inner)])
    assert first is second and other == first and other is not first


def test_the_callers_containers_are_what_they_are(outputs: Outputs, given: Any) -> None:
    x = given("x", 2)
    argument, before, new = [x], {"a": x}, [x]
    outputs.session.objects.externals[id(argument)] = (argument, ("xs",))
    outputs.session.objects.externals[id(before)] = (before, None)
    trees = outputs.tree((argument, before, new))
    assert outputs.same == {id(trees[0]): ("xs",)} and outputs.kept == {id(trees[1]): before}


def test_names_tell_classes_apart(outputs: Outputs) -> None:
    one, other = (type("Same", (), {"__module__": "m"}) for _ in range(2))
    assert [outputs._name(cls, "m.Same") for cls in (one, other, one)] == ["m.Same", "m.Same (2)", "m.Same"]
    assert outputs.classes == {"m.Same": one, "m.Same (2)": other}


def cyclic(x: Any) -> Any:
    held: list[Any] = [x]
    held.append(held)
    return held


REFUSED: dict[str, Callable[[Any], Any]] = {
    "a list that holds itself": cyclic,
    "an iterator (list_iterator)": lambda x: iter([x]),
    "an iterator (generator)": lambda x: (one for one in [x]),
    "a Parameter": lambda x: torch.nn.Parameter(x),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_call_could_make_is_refused(words: str, outputs: Outputs, given: Any, made: Any) -> None:
    x = given("x", 2)
    with pytest.raises(TraceError, match=words.replace("(", r"\(").replace(")", r"\)")) as caught:
        outputs.tree(made(REFUSED[words], x))
    assert caught.value.code == "D2S228"


def test_written_memory(outputs: Outputs, given: Any, made: Any) -> None:
    x, y = given("x", 2), given("y", 2)
    made(torch.Tensor.add_, x, 1)
    new = made(torch.neg, y)
    storages = [outputs.session.info(one).storage for one in (x, y, new)]
    assert list(map(results.is_written, storages)) == [True, False, False]


def test_names_of_what_leaves_are_guarded(outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[Any] = []
    monkeypatch.setattr(outputs.session.guards, "pin", pinned.append)
    memory = bytearray(b"ab")
    outputs.classes["a"], outputs.kept[1] = Point, memory
    outputs.pin([view := memoryview(memory)])
    assert [id(one) for one in pinned] == [id(one) for one in (Point, memory, view, memory)]


def test_keys_that_last() -> None:
    assert all(map(results._is_lasting, ("a", 2, None, Colour.RED))) and not results._is_lasting(torch.ones(1))
