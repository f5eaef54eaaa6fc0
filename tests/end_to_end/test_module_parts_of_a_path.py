"""The parts of a module where only some paths changed them: made inside, the module's own, or from outside; asked for
in every way."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import dy2static
from runtime.errors import TraceError
from tests.from_files import module_of
from tests.oracle import check, check_module, check_saved

UP, DOWN, TWO = torch.ones(2), -torch.ones(2), torch.full((2,), 2.0)
CALLS = ((DOWN, TWO), (UP, TWO), (UP, TWO), (DOWN, TWO))
CHANGES = {
    "append": ("nn.ModuleList([nn.ReLU()])", "m.append(nn.Tanh())"),
    "first": ("nn.ModuleList()", "m.append(nn.Tanh())"),
    "sequential": ("nn.Sequential(nn.ReLU())", "m.append(nn.Tanh())"),
    "insert": ("nn.Sequential(nn.ReLU())", "m.insert(0, nn.Tanh())"),
    "extend": ("nn.ModuleList([nn.ReLU()])", "m.extend([nn.Tanh(), nn.Sigmoid()])"),
    "add_module": ("nn.Sequential(nn.ReLU())", "m.add_module('b', nn.Tanh())"),
    "pop": ("nn.ModuleList([nn.ReLU(), nn.Tanh()])", "m.pop(0)"),
    "del": ("nn.Sequential(nn.ReLU(), nn.Tanh())", "del m[0]"),
    "dict": ("nn.ModuleDict({'a': nn.ReLU()})", "m['b'] = nn.Tanh()"),
    "update": ("nn.ModuleDict({'a': nn.ReLU()})", "m.update({'b': nn.Tanh()})"),
    "both": ("nn.ModuleDict({'a': nn.ReLU()})", "m['b'] = nn.Tanh()\n    else: m['c'] = nn.Sigmoid()"),
    "module": ("nn.Module()", "m.b = nn.Tanh()"),
    "apart": ("nn.Module()", "m.b = nn.Tanh()\n    else: m.c = nn.Sigmoid()"),
    "together": ("nn.Module()", "m.b, m.c = nn.Tanh(), nn.Sigmoid()"),
    "of two kinds": ("nn.Module()", "m.b, m.w = nn.Tanh(), nn.Parameter(y)"),
    "weights": ("nn.Sequential(nn.Linear(2, 2))", "m.append(m[0])"),
}
USES = {
    "length": "x * len(m)", "truth": "x * (2 if m else 3)", "in": "x * (2 if 'b' in m else 3)",
    "in parts": "x * (2 if 'b' in m._modules else 3) + len(m._modules)", "items": "x * len(list(m))",
    "last": "m[-1](x)", "key": "m['b'](x) if 'b' in m else x", "attribute": "m.b(x)",
    "default": "x * (2 if getattr(m, 'b', None) is None else 3)", "has": "x * (2 if hasattr(m, 'b') else 3)",
    "children": "x * len(list(m.children()))", "names": "x * len([n for n, _ in m.named_children()])",
    "modules": "x * len(list(m.modules()))", "parameters": "x * sum((p.numel() for p in m.parameters()), 1)",
    "names of parameters": "x * len([n for n, _ in m.named_parameters()])",
    "eval": "x * (2 if m.eval().training else 3)",
    "submodule": "m.get_submodule('b')(x)", "sum": "m + m and x * len(m + m)", "called": "m(y)",
    "dir": "x * len(dir(m))",
    "vars": "x * len(vars(m)['_modules'])", "grown": "x * len(m.extend([nn.ReLU()]))",
    "kinds": "x * (2 if any(isinstance(k, nn.Tanh) for k in m.modules()) else 3)",
}  # fmt: skip
_INSIDE = "from torch import nn\ndef f(x, y):\n    m = {}\n    if x.sum() > 0: {}\n    return {}\n"
_SELF = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = {}
    def forward(self, x, y):
        m = self.m
        if x.sum() > 0: {}
        return {}
"""
_OF = {
    "module": (
        "in parts", "attribute", "default", "has", "children", "names", "modules", "eval", "dir", "vars", "kinds"),
    "dict": tuple(use for use in USES if use not in ("last", "sum", "grown", "called")),
}  # fmt: skip
_LIKE = {"update": "dict", "both": "dict", "apart": "module", "together": "module", "of two kinds": "module"}
CASES = [(change, use) for change in CHANGES for use in _OF.get(
    _LIKE.get(change, change), tuple(USES))]  # fmt: skip


@pytest.mark.parametrize(("change", "use"), CASES)
def test_what_a_module_made_inside_has_on_each_path(tmp_path, change, use):
    file = tmp_path / "inside.py"
    file.write_text(_INSIDE.format(*CHANGES[change], USES[use]))
    check(module_of(file).f, *CALLS[:2], paths=("program",))


@pytest.mark.parametrize("use", ("length", "items", "key", "children", "parameters", "eval", "default"))
@pytest.mark.parametrize("change", ("append", "first", "sequential", "dict", "pop"))
def test_what_a_modules_own_part_has_after_each_call(tmp_path, change, use):
    make, store = CHANGES[change]
    if change == "pop":
        make = "nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.ReLU(), nn.Tanh()])"
    if change != "dict" and use == "key":
        use = "last"
    file = tmp_path / "own.py"
    file.write_text(_SELF.format(make, store, USES[use]))
    calls = CALLS[:2] if change == "dict" else CALLS[:3]  # later ones replace the part, which is refused
    check_module(module_of(file).Net, *calls, paths=("program",))


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU()])

    def forward(self, x):
        if x.sum() > 0:
            self.layers.append(nn.Tanh())
        return x * len(self.layers)


def test_a_list_that_calls_make_longer():
    check_module(Factors, (DOWN,), (UP,), (UP,), (DOWN,))


def _said(m, x):
    for layer in m.children():
        x = layer(x)
    for parameter in m.parameters():
        x = x * parameter.sum()
    return x, [name for name, _ in m.named_children()], [name for name, _ in m.named_parameters()], hasattr(m, "a")


class Chosen(nn.Module):
    def __init__(self, x):
        super().__init__()
        if x.sum() > 0:
            self.a, self.w = nn.Tanh(), nn.Parameter(torch.ones(2))
        else:
            self.b = nn.Sigmoid()
        if x[0] > 0:
            self.z = nn.Softplus()


def by_its_class(x):
    return _said(Chosen(x), x)


def in_two_ifs(x):
    m = nn.Module()
    if x.sum() > 0:
        m.a = nn.Tanh()
    if x[0] > 0:
        m.v = nn.Sigmoid()
    return _said(m, x)


def many_in_one(x):
    m = nn.Module()
    if x.sum() > 0:
        m.a, m.b, m.c, m.d, m.e, m.f = (nn.Tanh() for _ in range(6))
    return _said(m, x)


def in_nested_ifs(x):
    m = nn.Module()
    if x.sum() > 0:
        if x[0] > 0:
            m.a = nn.Tanh()
        m.b = nn.Sigmoid()
    return _said(m, x)


def dict_of_its_own(x):
    m = nn.Module()
    if x.sum() > 0:
        m._modules = {"a": nn.Tanh()}
        if x[0] > 0:
            m._modules["b"] = nn.Sigmoid()
    return _said(m, x)


def dicts_of_both(x):
    m = nn.Module()
    if x.sum() > 0:
        m._modules = {"a": nn.Tanh()}
        if x[0] > 0:
            m.w = nn.Sigmoid()
        count = len(list(m.children()))
    else:
        m._modules = {"b": nn.Tanh()}
        if x[1] > 0:
            m.w = nn.Softplus()
        count = len(list(m.children()))
    return _said(m, x), count


@pytest.mark.parametrize(
    "function", (by_its_class, in_two_ifs, many_in_one, in_nested_ifs, dict_of_its_own, dicts_of_both))
def test_parts_that_are_chosen_on_their_own(tmp_path, function):
    calls = [(torch.tensor(pair, requires_grad=True),)
             for pair in ((1.0, 2.0), (-1.0, 2.0), (2.0, -1.0), (-1.0, -2.0), (1.0, -2.0))]
    static = check(function, *calls)
    check_saved(function, static, tmp_path / "parts.pt", *calls, paths=("program",))


def test_too_many_parts_that_are_chosen_on_their_own():
    def five(x):
        m = nn.Module()
        for i in range(5):
            if x[i] > 0:
                m.add_module(str(i), nn.Tanh())
        return len(list(m.children()))

    with pytest.raises(TraceError, match=r"D2S254.* 32 different"):
        dy2static.to_static(five)(torch.ones(5))


OUTSIDE = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


def deeper(x):
    layers = nn.ModuleList([OUTSIDE[0]])
    if x.sum() > 0:
        layers.append(OUTSIDE[0])
    for layer in layers:
        x = layer(x)
    return x * len(layers)


def with_weights(x):
    layers = nn.Sequential(OUTSIDE[0])
    if x.sum() > 0:
        layers.append(OUTSIDE[1])
    total = layers(x).sum()
    for parameter in layers.parameters():
        total = total + parameter.sum()
    return total


def of_several_paths(x):
    layers = nn.ModuleList()
    for i in range(3):
        if x.sum() > i:
            layers.append(OUTSIDE[i % 2])
    for layer in layers:
        x = layer(x)
    return x + len(list(layers.children()))


def stored_again(x):
    box = nn.Module()
    if x.sum() > 0:
        box.act = nn.Tanh()
    before = len(list(box.children()))
    if x.sum() > 1:
        box.act = nn.ReLU()
    if x.sum() > 3:
        del box.act
    return x * len(list(box.children())) + before + (box.act(x) if hasattr(box, "act") else 0)


@pytest.mark.parametrize("function", (deeper, with_weights, of_several_paths, stored_again))
def test_layers_that_differ_are_called_and_differentiated(tmp_path, function):
    calls = [(torch.full((2,), value, requires_grad=True),) for value in (0.5, -1.0, 2.0, 0.75)]
    static = check(function, *calls, parameters=tuple(OUTSIDE.parameters()))
    check_saved(function, static, tmp_path / "layers.pt", *calls, paths=("program",))


def test_parameters_of_a_dict_that_only_some_paths_set():
    def counted(x):
        held = nn.ParameterDict({"a": torch.ones(2)})
        if x.sum() > 0:
            held["b"] = torch.ones(2)
        return x * len(held) + len(list(held.items())) + ("b" in held)

    check(counted, (UP,), (DOWN,), paths=("program",))


@pytest.mark.parametrize(("change", "use"), (
    *(("dict", use) for use in ("dict(m)", "set(m)", "copy.deepcopy(m)")), ("module", "copy.deepcopy(m)")))
def test_what_is_not_converted_is_not_given_them(tmp_path, change, use):
    file = tmp_path / "given.py"
    file.write_text("import copy\n" + _INSIDE.format(*CHANGES[change], f"x * bool({use})"))
    with pytest.raises(TraceError, match=r"D2S25[34]"):
        dy2static.to_static(module_of(file).f)(UP, TWO)
