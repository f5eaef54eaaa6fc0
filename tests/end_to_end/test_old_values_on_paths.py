"""Places outside the function that only some paths store to: a call that stores nothing leaves there what it finds.

Every kind of place: attributes in ``__dict__``, slots, a module's buffers, parts of functions and exceptions, cells,
globals, items. What is there changes from call to call, by the function itself and by others.
"""

from __future__ import annotations

import contextvars
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import run, same


class Slotted:
    __slots__ = ("k", "other")


class Derived(Slotted):
    __slots__ = ("more",)


class Plain:
    k = 2


class Several(dict):
    pass


class Held(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = 2
        self.register_buffer("state", torch.ones(2))
        self.plain = torch.ones(2)
        self.inner = torch.nn.ReLU()
        self.others = [torch.nn.Tanh(), torch.nn.Sigmoid()]


class World:
    """All places, each with what it holds at the beginning."""

    def __init__(self) -> None:
        self.slotted, self.derived, self.plain, self.several = Slotted(), Derived(), Plain(), Several()
        self.slotted.k = self.derived.k = self.derived.more = self.several.k = 2
        self.space, self.error, self.held = types.SimpleNamespace(k=2), ValueError("a"), Held()
        self.items, self.mapping = [1, 2], {"k": 2}
        self.variable = contextvars.ContextVar("variable", default=1)
        exec("total = 2\ndef helper(x, k=2, *, j=3):\n    return x * k + j\n", vars(self).setdefault("names", {}))
        self.helper = self.names["helper"]
        self.get, self.put = _cell()


def _cell() -> tuple[Callable[[], int], Callable[[int], None]]:
    held = 2

    def put(value: int) -> None:
        nonlocal held
        held = value

    return lambda: held, put


def _set(name: str, attribute: str, value: Any = 4) -> tuple[str, Callable[[World], Any]]:
    return f"w.{name}.{attribute} = {value!r}", lambda w: getattr(getattr(w, name), attribute, "none")


STORES: dict[str, tuple[str, Callable[[World], Any]]] = {
    "slot": _set("slotted", "k"),
    "slot that is empty": _set("slotted", "other"),
    "slot of a base": _set("derived", "k"),
    "slot of a derived class": _set("derived", "more"),
    "attribute": _set("space", "k"),
    "attribute over one of the class": _set("plain", "k"),
    "attribute of a dict": _set("several", "k"),
    "attribute of a module": _set("held", "k"),
    "buffer": ("w.held.state = torch.ones(2) * 3", lambda w: w.held.state),
    "buffer, computed": ("w.held.state = w.held.state + x.detach()[:2]", lambda w: w.held.state),
    "tensor in an attribute": ("w.held.plain = torch.ones(2) * 3", lambda w: w.held.plain),
    "submodule": ("w.held.inner = w.held.others[0]", lambda w: type(w.held.inner)),
    "defaults": ("w.helper.__defaults__ = (4,)", lambda w: w.helper.__defaults__),
    "text of a function": ("w.helper.__doc__ = 'set'", lambda w: w.helper.__doc__),
    "attribute of a function": _set("helper", "k"),
    "arguments of an exception": ("w.error.args = ('b',)", lambda w: w.error.args),
    "attribute of an exception": _set("error", "k"),
    "cell": ("w.put(4)", lambda w: w.get()),
    "global": ("w.names['total'] = 4", lambda w: w.names["total"]),
    "item": ("w.items[0] = 4", lambda w: w.items),
    "items": ("w.items.append(3)", lambda w: w.items),
    "key": ("w.mapping['k'] = 4", lambda w: w.mapping),
    "new key": ("w.mapping['n'] = 4", lambda w: w.mapping),
    "context variable": ("w.variable.set(4)", lambda w: w.variable.get()),
}
AROUND = {
    "branch": "    if x.sum() > 0:\n        {store}\n    return x * 2",
    "other branch": "    if x.sum() > 0:\n        pass\n    else:\n        {store}\n    return x * 2",
    "loop": "    for i in range((x > 0).sum()):\n        {store}\n    return x * 2",
    "branch of a loop": "    n = 0\n    while n < x.abs().sum():\n        n = n + 2\n        if x[0] > 0:\n"
                        "            {store}\n    return x * n",
    "after a return": "    if x.sum() < 0:\n        return x * 3\n    {store}\n    return x * 2",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")  # what guards say of a list that grows
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("place", STORES)
def test_a_place_that_only_some_paths_store_to(place: str, around: str, functions: Any) -> None:
    store, look = STORES[place]
    function = functions(f"import torch\ndef f(x):\n{AROUND[around].format(store=store)}\n", World)
    (eager, theirs), (converted, mine) = function(False), function(True)
    inputs = [torch.tensor(one) for one in ([-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0], [-3.0, 1.0], [2.0, 1.0])]
    for number, x in enumerate([*inputs, *inputs]):
        expected = run(eager, (x,))
        try:
            got = run(converted, (x,))
        except Dy2StaticError as error:
            pytest.fail(f"refused: {error}")
        assert got.error is None and expected.error is None, (got.error, expected.error)
        same((got.result, look(mine)), (expected.result, look(theirs)), f"call {number}")


@pytest.fixture
def functions(tmp_path: Any) -> Any:
    """Makes, from a text and what its ``w`` is made by, the function and the ``w``; converted or not."""
    def make(text: str, world: Callable[[], Any]) -> Any:
        path = tmp_path / "stored.py"
        path.write_text(text)

        def one(converted: bool) -> Any:
            module = module_of(path, f"stored_{converted}")
            module.w = world()
            return (dy2static.to_static(module.f) if converted else module.f), module.w

        return one

    return make
