"""What is around a program changes between two calls: places that hold values, values themselves, modules, settings."""

from __future__ import annotations

import contextlib
import contextvars
import re
import tempfile
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dy2static
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.held_classes import CHANGES as CLASS_CHANGES
from tests.fuzz.modes.held_classes import HEAD
from tests.fuzz.modes.held_modules import CHANGES, INIT, PARTS, PLAIN, TENSORS
from tests.fuzz.modes.held_values import KINDS, Kind
from tests.fuzz.modes.holders import PLACES, Place
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import Terms, copied, hold, run, same, state_of

_SETTINGS = (
    "torch.no_grad()", "torch.enable_grad()", "torch.autocast('cpu', dtype=torch.bfloat16)", "torch.inference_mode()",
    "default_dtype()", "torch.set_grad_enabled(False)", "torch.autocast('cpu', enabled=False)", "torch.device('cpu')",
    "hook_of_all_modules()",
)  # fmt: skip
_NOTHING = (
    "UNREAD['k'] += 1", "UNREAD['more'] = UNREAD.copy()", "globals()['unread_name'] = object()", "UNUSED.number += 1",
    "Unused.number = 5.0",
)  # fmt: skip
"""Changes of what nothing reads: no Program may be traced again for them."""
_TERMS = Terms(tolerance=TOLERANCE, by_name=True, none_is_zero=True)
_MODULE_HEAD = "class Net(torch.nn.Module):\n    extra = 1\n    def __init__(self):\n        super().__init__()\n"
_LATER = "    def later(self, t):\n        return t + self.number\n"
_ELSEWHERE = (
    ("def helper$N($T):\n    return $E\n", "helper$N($T)"),
    ("class Helper$N:\n    @property\n    def it(self):\n        $T = self.t\n        return $E\n"
     "    def __init__(self, t):\n        self.t = t\n", "Helper$N($T).it"),
    ("def helper$N($T):\n    yield $E\n", "next(helper$N($T))"),
    ("class Helper$N:\n    def it(self, $T):\n        return $E\nHELPER$N = Helper$N()\n", "HELPER$N.it($T)"),
    ("def outer$N():\n    def inner($T):\n        return $E\n    return inner\nhelper$N = outer$N()\n",
     "helper$N($T)"),
    ("def helper$N($T):\n    return $E\nhelper$N = functools.partial(helper$N)\n", "helper$N($T)"),
    ("def helper$N($T):\n    try:\n        return $E\n    except (AttributeError, KeyError, IndexError):\n"
     "        return $T * 7\n", "helper$N($T)"),
)  # fmt: skip
"""Where an expression may stand: a definition with the number N, and what calls it."""


class Spot:
    """One thing that is held in a place: how it is read, and how it changes."""

    def __init__(self, number: int, place: Place, kind: Kind, start: str, read: str) -> None:
        self.place, self.kind, self.number, self.read = place, kind, number, read
        self.setup = self.at(place.setup, start)

    def at(self, text: str, value: str = "") -> str:
        """A text for this spot."""
        return text.replace("$I", str(self.number)).replace("$X", value).replace("$V", self.read)


class Changes(Mode):
    """Values of many kinds in places of many kinds, read in many ways, and what is done to both between the calls."""

    tail = "    return p, q, r, n, out\n"
    stays = True
    depth = 1
    refusals = frozenset({
        "D2S210", "D2S212", "D2S213", "D2S227", "D2S228", "D2S245", "D2S246", "D2S263", "D2S264", "D2S266", "D2S276",
        "D2S277",
    })  # fmt: skip

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = self.rng
        self.is_module = rng.random() < 0.3
        self.has_module = self.is_module or rng.random() < 0.25
        self.spots = [self._spot(number) for number in range(1 if self.has_module else rng.randint(1, 3))]
        self.helpers: list[str] = []

    def _spot(self, number: int) -> Spot:
        place = PLACES[self.rng.choice(list(PLACES))]
        kind = KINDS[self.rng.choice(list(KINDS))]
        read = self.rng.choice(place.read).replace("$I", str(number))
        return Spot(number, place, kind, self.rng.choice(kind.values), read)

    # -- the program ---------------------------------------------------------------------------------------------

    def source(self) -> str:
        """Its state, what reads it, and the changes."""
        lines = self.block(self.depth, "    ", False)
        names = [name.replace("$I", str(spot.number)) for spot in self.spots for name in spot.place.names]
        body = "    p, q, r, n, out = x * 0.5, y * 2, torch.ones(3), k, []\n" + "\n".join(lines) + "\n" + self.tail
        text = HEAD + 'UNREAD = {"k": 1}\nclass Unused:\n    number = 1.0\nUNUSED = Unused()\n'
        text += "".join(spot.setup for spot in self.spots)
        if self.has_module:
            text += PARTS + _MODULE_HEAD + INIT + _LATER
        text += "" if self.is_module else "MODEL = Net()\n" if self.has_module else ""
        text += "".join(self.helpers)
        text += "".join(self._change_function(number, names) for number in range(self.rng.randint(3, 7)))
        if not self.is_module:
            return text + "def f(x, y, k):\n" + body
        inside = "".join(f"    {line}\n" for line in body.splitlines())
        return text + "class Model(Net):\n    def forward(self, x, y, k):\n" + inside

    def simple(self) -> str:
        """One read, or something else."""
        one, other = self.name(), self.name()
        if self.rng.random() < 0.15:
            values = (f"{one} = {other} + 1", f"{one} = {one} * {other}", "n = n + 1", f"{other} = {one}")
            return self.rng.choice(values)
        expression, is_tensor, has_tensors = self._read(other)
        if is_tensor:
            return f"{one} = {self._wrapped(expression, other)}"
        wrapped = self._wrapped(expression, other)
        if self.inside:
            return f"n = n + noted({wrapped})" if self.rng.random() < 0.7 else f"n = n + ({wrapped} == 1)"
        append = f"out.append({wrapped})"
        notes = [append, append, f"out = [*out, {wrapped}]", f"n = noted({wrapped})"]
        return self.rng.choice(notes if has_tensors else [*notes, f"n = len(noted_alone({wrapped}))"])

    def _read(self, tensor: str) -> tuple[str, bool, bool]:
        """An expression, whether it gives a tensor, and whether a tensor may be in it."""
        rng = self.rng
        if self.has_module and rng.random() < 0.6:
            is_tensor = rng.random() < 0.7
            text = rng.choice(TENSORS if is_tensor else PLAIN).replace("$A", tensor)
            return text.replace("$M", "self" if self.is_module else "MODEL"), is_tensor, True
        spot = rng.choice(self.spots)
        if spot.place.asks and rng.random() < 0.2:
            return spot.at(rng.choice(spot.place.asks)), False, False
        if rng.random() < 0.5:
            spot.read = rng.choice(spot.place.read).replace("$I", str(spot.number))
        is_tensor = rng.random() < 0.5
        text = rng.choice(spot.kind.tensors if is_tensor else spot.kind.plain)
        return spot.at(text).replace("$A", tensor), is_tensor, spot.kind.has_tensors

    def _wrapped(self, expression: str, tensor: str) -> str:
        """The same expression somewhere else: in a helper, a lambda, a comprehension, a method."""
        kind, number = self.rng.random(), len(self.helpers)
        if "self" in expression or kind < 0.5:
            return f"[{expression} for _ in range(1)][0]" if kind < 0.05 else expression
        if kind < 0.6:
            return f"(lambda: {expression})()"
        definition, call = (
            text.replace("$N", str(number)).replace("$T", tensor).replace("$E", expression)
            for text in self.rng.choice(_ELSEWHERE)
        )
        self.helpers.append(definition)
        return call

    # -- the changes ---------------------------------------------------------------------------------------------

    def _change_function(self, number: int, names: Sequence[str]) -> str:
        lines = [self._change() for _ in range(self.rng.choice((1, 1, 1, 2)))]
        setting = self.rng.choice(_SETTINGS) if self.rng.random() < 0.15 else ""
        statements = [line for text in lines for line in text.split("\n")]
        first = dict.fromkeys(line for line in statements if line.startswith("global "))  # before any use of the names
        declared = "".join(f"    {line}\n" for line in ([f"global {', '.join(names)}"] if names else []) + list(first))
        body = "".join(f"    {line}\n" for line in statements if line not in first)
        return f"def change_{number}():\n{declared}{body}    return {setting!r}\n"

    def _change(self) -> str:
        rng = self.rng
        if self.has_module and rng.random() < 0.7:
            return rng.choice(CHANGES).replace("$M", "MODEL")
        spot = rng.choice(self.spots)
        kind = rng.random()
        if kind < 0.2 and spot.kind in (KINDS["records"], KINDS["functions"]):
            return rng.choice(CLASS_CHANGES)
        if kind < 0.45:
            value = rng.choice(spot.kind.values if rng.random() < 0.9 else KINDS[rng.choice(list(KINDS))].values)
            return spot.at(rng.choice(spot.place.assign), value)
        if kind < 0.75 and spot.kind.changes:
            change = rng.choice(spot.kind.changes)
            alias = rng.choice(spot.place.read[:2])
            return f"held = {spot.at(alias)}\n{change.replace('$V', 'held')}" if "+=" not in change else spot.at(change)
        return spot.at(rng.choice(spot.place.others or spot.place.assign), rng.choice(spot.kind.values))

    # -- the judge -----------------------------------------------------------------------------------------------

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Two copies of the program and of all that is around it: the same changes, the same calls."""
        with np.errstate(all="ignore"):
            torch.manual_seed(seed)
            theirs = load_program()
            torch.manual_seed(seed)
            mine = load_program()
            with contextlib.suppress(Left):
                Judge(self, theirs, mine, seed).judge()


class Left(Exception):
    """The two copies are not the same any more, for a reason that is documented: the program ends here."""


class Judge:
    """One program in two copies: ``theirs`` is called as it is, ``mine`` converted."""

    def __init__(self, mode: Changes, theirs: types.ModuleType, mine: types.ModuleType, seed: int) -> None:
        self.theirs, self.mine, self.seed = theirs, mine, seed
        self.calls = mode.calls(seed)
        if hasattr(mine, "Model"):
            for number, module in enumerate((theirs, mine)):
                torch.manual_seed(seed)
                module.MODEL = module.Model()  # type: ignore[attr-defined]
            self.static = dy2static.to_static(mine.MODEL)
            self.eager: Any = theirs.MODEL
        else:
            self.static, self.eager = dy2static.to_static(mine.f), theirs.f

    def programs(self) -> int:
        """How many there are."""
        return len(getattr(self.static, "forward", self.static).programs)

    def judge(self) -> None:
        """All calls and changes, and for a module what a file keeps of it."""
        self.called("at first", [0, 1])
        names = sorted((name for name in vars(self.mine) if name.startswith("change_")), key=lambda name: int(name[7:]))
        for number, name in enumerate(names):
            setting = self.changed(name, number)
            numbers = [0, 1] if number % 2 else [3, 0, 2]
            self.called(f"after {name}", numbers, setting)
            before = self.programs()
            for module in (self.theirs, self.mine):
                exec(_NOTHING[number % len(_NOTHING)], vars(module))
            self.called(f"long after {name}", numbers[:1], setting)
            if self.called(f"long after {name}", numbers[:1], setting):
                assert self.programs() <= before or self.has_no_more_calls(), f"retraced: after {name}"
        if isinstance(self.static, torch.nn.Module):
            self.saved()

    def has_no_more_calls(self) -> bool:
        """Whether the latest Program is for one call alone, or one of those before is for calls that find nothing in a
        cache of ``functools``: its first run fills that, and the next such call needs another."""
        latest, *others = getattr(self.static, "forward", self.static)._dispatch.cache.all()
        guards = (guard for one in others for guard in one.traced.guards)
        missing = [guard for guard in guards if guard.description.endswith("does not hold")]
        return any(guard.once for guard in latest.traced.guards) or not all(guard.holds() for guard in missing)

    def changed(self, name: str, number: int) -> str:
        """Make a change on both sides; the setting it asks for."""
        said = [changed(module, name, self.seed + number) for module in (self.theirs, self.mine)]
        assert said[0] == said[1], f"{name} items: {said}"
        return said[0]

    def called(self, where: str, numbers: Sequence[int], setting: str = "") -> bool:
        """The same calls of both: results, gradients, and all that is around them afterwards. Whether none raised."""
        given_all = True
        for number in numbers:
            arguments = copied(self.calls[number]), copied(self.calls[number])
            outcomes = []
            for function, module, given in zip((self.eager, self.static), (self.theirs, self.mine), arguments):
                with under(setting):
                    outcomes.append(run(function, given, number, leaves(module)))
            around = [("arguments", arguments[1], arguments[0])]
            if not hold(outcomes[1], outcomes[0], f"{where}, call {number}", _TERMS, around):
                given_all = False
                if self.left_something():
                    raise Left
            same(data_of(self.mine), data_of(self.theirs), f"{where}, call {number} state", TOLERANCE, by_name=True)
        return given_all

    def left_something(self) -> bool:
        """Whether a call that raised left in eager what it had changed: no run of a Program does."""
        try:
            same(data_of(self.mine), data_of(self.theirs), "state", TOLERANCE, by_name=True)
        except AssertionError:
            return True
        return False

    def saved(self) -> None:
        """A file holds what there was, whatever changes later; what no file can hold is no question here."""
        modes = {module.training for module in self.eager.modules()}
        if len(modes) > 1:  # a loaded layer has one mode
            return
        with tempfile.TemporaryDirectory() as folder:
            calls = [self.calls[0], self.calls[4]]
            try:
                for function in (self.static, self.eager):
                    function(*copied(calls[0]))
                layer = dy2static.load(dy2static.save(self.static, Path(folder) / "layer"))
                layer.train(self.eager.training)
            except Exception:  # a call that raises now, or state that stays out of files
                return
            before = [run(self.eager, copied(call), number) for number, call in enumerate(calls)]
            self.changed("change_0", 0)
            for number, call in enumerate(calls):
                got = run(layer, copied(call), number)
                hold(got, before[number], f"from a file, call {number}", _TERMS)


def changed(module: types.ModuleType, name: str, seed: int) -> str:
    """Make a change; what it says. One that cannot be made is none."""
    torch.manual_seed(seed)
    try:
        return str(getattr(module, name)())
    except Exception:  # a list may be empty, an attribute gone: in both copies
        return ""


def _doubled(module: torch.nn.Module, given: Any, out: torch.Tensor) -> torch.Tensor:
    return out * 2


@contextlib.contextmanager
def under(setting: str) -> Iterator[None]:
    """What is set around a call."""
    if setting == "default_dtype()":
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)
    elif setting == "hook_of_all_modules()":
        handle = torch.nn.modules.module.register_module_forward_hook(_doubled)
        try:
            yield
        finally:
            handle.remove()
    else:
        with eval(setting, {"torch": torch}) if setting else contextlib.nullcontext():
            yield


_NAMES = re.compile(r"[A-Z]+\d*")
_DATA = (int, float, str, list, dict, set, tuple, torch.Tensor, type(None))


def data_of(module: types.ModuleType) -> dict[str, Any]:
    """All that a program can see and change: its globals, and what classes hold."""
    found: dict[str, Any] = {}
    for name, value in list(vars(module).items()):
        if isinstance(value, torch.nn.Module):
            found[name] = state_of(value)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            found[name] = {key: one for key, one in vars(value).items() if isinstance(one, _DATA) and key[:2] != "__"}
        elif _NAMES.fullmatch(name) and isinstance(value, (types.ModuleType, threading.local)):
            found[name] = {key: one for key, one in vars(value).items() if key[:2] != "__"}
        elif _NAMES.fullmatch(name) and not isinstance(value, (contextvars.ContextVar, weakref.ref, property)):
            found[name] = dict(value) if isinstance(value, types.MappingProxyType) else value
    return found


def leaves(module: types.ModuleType) -> list[torch.Tensor]:
    """Tensors that may get a gradient: the module's parameters, and what globals hold."""
    found = [value for value in vars(module).values() if isinstance(value, torch.Tensor)]
    if "MODEL" in vars(module):
        found += module.MODEL.parameters()
    return [tensor for tensor in found if tensor.requires_grad and tensor.is_leaf]
