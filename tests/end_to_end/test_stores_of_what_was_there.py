"""A store of what is there already: later calls, which may find something else there, store it all the same."""

from __future__ import annotations

import collections
import contextvars
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import RetraceWarning, to_static
from tests.oracle import same


class Base:
    """An object with attributes, and a class that has some."""

    factor = 1.5

    def __init__(self) -> None:
        self.a: Any = 1


class Slotted:
    """An object without a ``__dict__``."""

    __slots__ = ("a",)


TENSOR, LIST = torch.ones(2), [1, 2]
OBJECT, SLOTTED, LAYER = Base(), Slotted(), torch.nn.Linear(2, 2)
ITEMS, TABLE, NAMES, LAST = [1, 2], {"a": 1}, {"a"}, collections.deque([1])
VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")
NUMBER: Any = 1
ONE = (1,)


def begin() -> None:
    """As the stores leave it."""
    global NUMBER
    NUMBER = 1
    Base.factor = 1.5
    vars(OBJECT).clear()
    vars(OBJECT).update(a=1, t=TENSOR, items=LIST)
    SLOTTED.a = 1
    LAYER.train()
    ITEMS[:] = [1, 2]
    LAST.clear()
    LAST.append(1)
    TABLE.clear()
    TABLE["a"] = 1
    NAMES.clear()
    NAMES.add("a")
    VARIABLE.set(1)


def change() -> None:
    """Something else everywhere."""
    global NUMBER
    NUMBER = 7
    Base.factor = 7.0
    vars(OBJECT).update(a=7, t=torch.zeros(2), items=[1, 2], more=7)
    SLOTTED.a = 7
    LAYER.eval()
    ITEMS[:] = [7, 8, 9]
    LAST.append(7)
    TABLE.update(a=7, b=7)
    NAMES.add("b")
    VARIABLE.set(7)


def seen() -> Any:
    """All of it, and which objects are the ones outside."""
    held = dict(vars(OBJECT))
    ours = held.get("t") is TENSOR, held.get("items") is LIST
    return (NUMBER, Base.factor, held, ours, SLOTTED.a, LAYER.training, list(ITEMS), dict(TABLE), set(NAMES),
            list(LAST), VARIABLE.get())


def an_attribute(x: torch.Tensor) -> torch.Tensor:
    OBJECT.a = 1
    return x * 2


def an_attribute_by_name(x: torch.Tensor) -> torch.Tensor:
    setattr(OBJECT, "a", 1)
    return x * 2


def an_attribute_in_its_dict(x: torch.Tensor) -> torch.Tensor:
    vars(OBJECT)["a"] = 1
    return x * 2


def an_attribute_by_update(x: torch.Tensor) -> torch.Tensor:
    vars(OBJECT).update(a=1)
    return x * 2


def an_attribute_by_default(x: torch.Tensor) -> torch.Tensor:
    OBJECT.__dict__.setdefault("a", 1)
    return x * 2


def a_global_in_its_dict(x: torch.Tensor) -> torch.Tensor:
    globals()["NUMBER"] = ONE[0]
    return x * 2


def a_global_by_update(x: torch.Tensor) -> torch.Tensor:
    globals().update(NUMBER=ONE[0])
    return x * 2


def an_attribute_in_its_dict_of_another(x: torch.Tensor) -> torch.Tensor:
    vars(OBJECT)["items"] = LIST
    return x * 2


def items_of_a_key(x: torch.Tensor) -> torch.Tensor:
    TABLE.update(a=1)
    return x * 2


def an_attribute_that_is_deleted(x: torch.Tensor) -> torch.Tensor:
    OBJECT.more = 2  # type: ignore[attr-defined]
    del OBJECT.more  # type: ignore[attr-defined]
    return x * 2


def a_tensor(x: torch.Tensor) -> torch.Tensor:
    OBJECT.t = TENSOR  # type: ignore[attr-defined]
    return x * 2


def an_object(x: torch.Tensor) -> torch.Tensor:
    OBJECT.items = LIST  # type: ignore[attr-defined]
    return x * 2


def a_slot(x: torch.Tensor) -> torch.Tensor:
    SLOTTED.a = 1
    return x * 2


def of_a_class(x: torch.Tensor) -> torch.Tensor:
    Base.factor = 1.5
    return x * 2


def a_global(x: torch.Tensor) -> torch.Tensor:
    global NUMBER
    NUMBER = 1
    return x * 2


def a_mode(x: torch.Tensor) -> torch.Tensor:
    LAYER.train()
    return x * 2


def a_mode_around_a_call(x: torch.Tensor) -> torch.Tensor:
    LAYER.train()
    return LAYER(x) * 0


def items(x: torch.Tensor) -> torch.Tensor:
    ITEMS[:] = [1, 2]
    return x * 2


def sorted_items(x: torch.Tensor) -> torch.Tensor:
    ITEMS.sort(reverse=False)
    return x * 2


def a_key(x: torch.Tensor) -> torch.Tensor:
    TABLE["a"] = 1
    return x * 2


def a_key_that_is_there(x: torch.Tensor) -> torch.Tensor:
    TABLE.setdefault("a", 1)
    return x * 2


def keys(x: torch.Tensor) -> torch.Tensor:
    TABLE.clear()
    TABLE["a"] = 1
    return x * 2


def a_member(x: torch.Tensor) -> torch.Tensor:
    NAMES.add("a")
    NAMES.discard("b")
    return x * 2


def in_a_deque(x: torch.Tensor) -> torch.Tensor:
    LAST.append(2)
    LAST.pop()
    return x * 2


def a_context_variable(x: torch.Tensor) -> torch.Tensor:
    VARIABLE.set(1)
    return x * 2


def on_a_path(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        OBJECT.a = 1
    return x * 2


def on_both_paths(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        OBJECT.a = 1
    else:
        OBJECT.a = 1
    return x * 2


def put_back(x: torch.Tensor) -> torch.Tensor:
    before = OBJECT.a
    OBJECT.a = 3
    y = x * OBJECT.a
    OBJECT.a = before
    return y


FUNCTIONS: list[Callable[..., Any]] = [
    an_attribute, an_attribute_by_name, an_attribute_in_its_dict, an_attribute_by_update,
    an_attribute_by_default, a_global_in_its_dict, a_global_by_update, an_attribute_in_its_dict_of_another,
    items_of_a_key, an_attribute_that_is_deleted, a_tensor, an_object,
    a_slot, of_a_class, a_global, a_mode, a_mode_around_a_call, items, sorted_items, a_key, a_key_that_is_there, keys,
    a_member, in_a_deque, a_context_variable, on_a_path, on_both_paths, put_back,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_a_store_of_what_was_there(function: Callable[..., Any]) -> None:
    found = []
    for called in (function, to_static(function)):
        begin()
        found.append([])
        for changes in (False, False, True, True, False, True):
            if changes:
                change()
            found[-1].append((called(torch.ones(2)).detach(), seen()))
    same(found[1], found[0])


def test_what_each_call_has_anew_is_no_reason_to_trace_again() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.state = torch.zeros(2)
            self.step = 0

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            self.state = self.state
            before = self.step
            self.step = before
            return x + self.state

    recorder = Recorder()
    static = to_static(recorder.__call__)
    for number in range(6):
        recorder.state, recorder.step = torch.full((2,), float(number)), number
        assert static(torch.ones(2))[0] == 1 + number
    assert len(static.programs) <= 3
    assert issubclass(RetraceWarning, Warning)


class Default:
    b = 1


class Derived(Default):
    pass


class Answering:
    def __getattr__(self, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        return 1


class Layer(torch.nn.Module):
    b = 1


OF_CLASSES: dict[str, str] = {
    "straight": "    one.b = n",
    "on a path": "    if x.sum() < 9:\n        one.b = n",
    "constant": "    if x.sum() < 9:\n        one.b = 1",
    "after a read": "    if one.b == 1 and x.sum() < 9:\n        one.b = n",
    "in a loop": "    for _ in range(int(x.sum()) + 1):\n        one.b = n",
    "on both paths": "    if x.sum() > 9:\n        one.b = 1\n    else:\n        one.b = n",
}


@pytest.mark.parametrize("numbers", [(1, 1, 1, 1, 1), (1, 1, 2, 1, 1)])
@pytest.mark.parametrize("cleared", [(0, 2, 4), (0, 3), (1, 2)])
@pytest.mark.parametrize("form", OF_CLASSES)
@pytest.mark.parametrize("cls", [Default, Derived, Answering, Layer], ids=lambda cls: cls.__name__)
def test_what_a_class_answers_is_not_there(
    cls: Any, form: str, cleared: tuple[int, ...], numbers: tuple[int, ...], tmp_path: Path
) -> None:
    file = tmp_path / "stores.py"
    file.write_text(f"def f(x, n):\n{OF_CLASSES[form]}\n    return x + 1\n")
    spec = importlib.util.spec_from_file_location("stores", file)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    seen = []
    for function in (module.f, to_static(module.f)):
        module.one = cls()
        for number, n in enumerate(numbers):
            if number in cleared:
                vars(module.one).pop("b", None)
            function(torch.full((2,), number * 0.1), n)
            seen.append(vars(module.one).get("b", "nothing"))
    assert seen[5:] == seen[:5]
