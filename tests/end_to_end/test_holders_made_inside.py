"""What an object made inside of the function holds, changed on a path that only some inputs take: in a module, a class,
an exception, a context variable, an array of objects and other holders that are no plain objects."""

from __future__ import annotations

import importlib.util
import itertools
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, same

HEAD = '''
import collections, contextvars, functools, itertools, types, weakref
import numpy as np
import torch

class Holder(torch.nn.Module):
    def __init__(self, held):
        super().__init__()
        self.held = held

class Slots:
    __slots__ = ("held", "__weakref__")
    def __init__(self, held):
        self.held = held

class Plain:
    def __init__(self, held):
        self.held = held

def raised(value):
    try:
        raise ValueError(value)
    except ValueError as error:
        return error

def with_default(value):
    def f(acc=value):
        return acc
    return f
'''

HOLDERS = {
    "a module": ("m = Holder(NEW)", "m.held"),
    "a module in a list of modules": ("m = torch.nn.ModuleList([Holder(NEW)])", "m[0].held"),
    "a module in a sequence": ("m = torch.nn.Sequential(Holder(NEW))", "m[0].held"),
    "a module in an object": ("m = Plain(Holder(NEW))", "m.held.held"),
    "an object in a module": ("m = Holder(Plain(NEW))", "m.held.held"),
    "a list in a module": ("m = Holder([NEW])", "m.held[0]"),
    "a tuple in a module": ("m = Holder((NEW,))", "m.held[0]"),
    "an attribute of torch's module": ("m = torch.nn.Linear(1, 1)\nm.held = NEW", "m.held"),
    "a module with another name for it": ("m = Holder(NEW)\nd = m.held", "m.held"),
    "an object": ("m = Plain(NEW)", "m.held"),
    "slots": ("m = Slots(NEW)", "m.held"),
    "a class": ("class K:\n    held = NEW", "K.held"),
    "an object of a class": ("class K:\n    held = NEW\nk = K()", "k.held"),
    "a property that reads a class": (
        "class K:\n    held = NEW\n    @property\n    def p(self):\n        return K.held\nk = K()", "k.p"),
    "a function of autograd's": (
        "class F(torch.autograd.Function):\n    held = NEW\n    @staticmethod\n    def forward(ctx, v):\n"
        "        return v * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g * 2", "F.held"),
    "an array of objects": ("m = np.empty(1, object)\nm[0] = NEW", "m[0]"),
    "a mapping that cannot be written": ('m = types.MappingProxyType({"held": NEW})', 'm["held"]'),
    "an exception": ("m = raised(NEW)", "m.args[0]"),
    "a context variable": ('m = contextvars.ContextVar("m")\nm.set(NEW)', "m.get()"),
    "a tensor": ("m = torch.zeros(2)\nm.held = NEW", "m.held"),
    "a cached function": (
        "@functools.lru_cache(None)\ndef cached():\n    return NEW\ncached()", "cached()"),
    "a module of Python's": ('m = types.ModuleType("m")\nm.held = NEW', "m.held"),
    "weak values": ('m = weakref.WeakValueDictionary()\ns = Slots(NEW)\nm["s"] = s', 'm["s"].held'),
    "a default": ("m = with_default(NEW)", "m()"),
    "a closure": ("m = (lambda held: (lambda: held))(NEW)", "m()"),
    "a bound method": ("p = Plain(NEW)\nm = functools.partial(lambda one: one.held, p)", "m()"),
}

CHANGES = {
    "a key": ("{}", '{0}["a"] = 1', "len({0})"),
    "a key with a tensor": ("{}", '{0}["a"] = x', '{0}.get("a", y)'),
    "a member": ("set()", '{0}.add("a")', "len({0})"),
    "an item of a list inside": ("[[]]", "{0}[0].append(1)", "len({0}[0])"),
    "a list in a dict": ('{{"k": []}}', '{0}["k"].append(x)', 'len({0}["k"])'),
}

CONSTRUCTS = {
    "an if": "if x.sum() > 0:\n    CHANGE",
    "an if in a loop": "for t in x:\n    if t > 1:\n        CHANGE",
    "a while": "while x.sum() > 0:\n    CHANGE\n    x = x - 4",
}

PROGRAMS = [(h, c, k) for h, c, k in itertools.product(HOLDERS, CHANGES, CONSTRUCTS)
            if (c, k) in {(c, "an if") for c in CHANGES} | {("a key", k) for k in CONSTRUCTS}]  # fmt: skip


def source(holder: str, change: str, construct: str) -> str:
    made, held = HOLDERS[holder]
    new, changed, read = CHANGES[change]
    lines = [made.replace("NEW", new.replace("{{", "{").replace("}}", "}")),
             CONSTRUCTS[construct].replace("CHANGE", changed.format(held)), f"return {read.format(held)}"]
    return HEAD + "\ndef f(x, y):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def imported(folder: Path, text: str) -> ModuleType:
    file = folder / "holders_program.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("holders_program", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


X, Y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, -1.0, 4.0])
CALLS: list[tuple[Any, ...]] = [(X, Y), (-X, Y), (X * 0.1, -Y), (-X, -Y)]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("holder", "change", "construct"), PROGRAMS)
def test_what_a_holder_holds_changes_on_its_path_alone(tmp_path, holder, change, construct):
    f = imported(tmp_path, source(holder, change, construct)).f
    check(f, *CALLS)


BUFFERS = {
    "an array": ("np.zeros(2)", "{0}.put(0, 1)", "{0}[0]"),
    "bytes": ('bytearray(b"ab")', "{0}[0] = 99", "bytes({0})"),
    "a file in memory": ("io.StringIO()", '{0}.write("a")', "{0}.getvalue()"),
    "an iterator": ("iter([1, 2, 3])", "next({0})", "next({0})"),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize(("holder", "buffer"), list(itertools.product(HOLDERS, BUFFERS)))
def test_a_buffer_is_not_changed_on_a_path_by_all(tmp_path, holder, buffer):
    made, held = HOLDERS[holder]
    new, changed, read = BUFFERS[buffer]
    lines = [made.replace("NEW", new), f"if x.sum() > 0:\n    {changed.format(held)}", f"return {read.format(held)}"]
    text = "import io\n" + HEAD + "\ndef f(x, y):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
    f = imported(tmp_path, text).f
    with pytest.raises(TraceError) as caught:
        to_static(f)(X, Y)
    assert caught.value.code in ("D2S213", "D2S227", "D2S266", "D2S245", "D2S277")


@pytest.mark.sample(2)
@pytest.mark.parametrize("holder", list(HOLDERS))
def test_an_array_is_written_on_a_path(tmp_path, holder):
    """As in eager, or refused where the holder is."""
    made, held = HOLDERS[holder]
    lines = [made.replace("NEW", "np.zeros(2)"), f"if x.sum() > 0:\n    {held}[0] = 1", f"return x * float({held}[0])"]
    text = HEAD + "\ndef f(x, y):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
    f = imported(tmp_path, text).f
    static = to_static(f)
    for x, y in CALLS:
        try:
            found = static(x, y)
        except TraceError as error:
            assert error.location is not None
            return
        same(found, f(x, y))
