"""Many facts as one function: straight-line Python in place of two calls a fact.

    guards on space.scale, global N   ->   def check(x):
                                               try:
                                                   if not (o1.scale is c2 or same(o1.scale, c2)): return None
                                                   if not ((v := o3["N"]) is c4 or type(v) is c5 and v == c4): ...
                                               except READ_ERRORS: return None
                                               return x, o6["_parameters"]["weight"]

Nothing of the user's enters the text but names of attributes, which are identifiers; objects are bound by name.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.module_slots import found_in
from runtime.tracer.python_state.guards import (
    READ_ERRORS,
    Guard,
    by_identity,
    has_other_classes,
    is_like,
    is_plain,
    same_plain,
)
from runtime.tracer.python_state.journal import Place

Check = Callable[..., "tuple[torch.Tensor, ...] | None"]


class CheckWriter:
    """Writes one check. ``parameters``: the names of what it is called with; its result is a tuple of the tensors that
    were ``give``n, or None if a fact does not hold."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self._parameters = tuple(parameters)
        self._lines: list[str] = []
        self._names: dict[int, str] = {}
        self._namespace: dict[str, Any] = {"same": same_plain, "READ_ERRORS": READ_ERRORS}
        self._locals: dict[str, str] = {}
        self._required: set[str] = set()
        self._checked: list[tuple[str, torch.Tensor, Sequence[int | None] | None]] = []
        self._lacking: dict[type, dict[str, None]] = {}
        """Classes of modules, and the names that none of their attributes may have."""
        self._unnamed: dict[str, dict[str, None]] = {}
        """Expressions that give dicts, and the names that none of them may have."""
        self._held: dict[str, Any] = {}
        """What expressions are known to give: this very object."""
        self._absent: dict[type, dict[str, None]] = {}
        """Classes, and the names that they have nothing under themselves."""
        self._spaces: dict[type, Any] = {}
        """The attributes of classes."""
        self._apart: dict[int, str] = {}
        """Locals, by tensor, that have to be different tensors."""
        self.given: list[str] = []
        """Locals that make up the result."""

    def bind(self, value: Any) -> str:
        """The name of an object in the text."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"o{len(self._names)}"
            self._namespace[name] = value
        return name

    def require(self, condition: str) -> None:
        """Add a condition; one that is there already holds."""
        if condition not in self._required:
            self._required.add(condition)
            self._lines.append(f"if not ({condition}): return None")

    def like(self, expression: str, value: Any, test: Callable[[Any], bool] | None = None) -> None:
        """``expression`` still gives what ``value`` looks like now (or what passes a test)."""
        if value is None or is_a(value, bool):
            self.require(f"{expression} is {value}")
        elif type(value) in (float, complex):
            self.require(f"(v := {expression}) is {self.bind(value)} or same(v, {self.bind(value)})")
        elif is_plain(value):
            kind, constant = self.bind(type(value)), self.bind(value)
            self.require(f"(v := {expression}) is {constant} or type(v) is {kind} and v == {constant}")
        elif by_identity(value):
            name = self.bind(value)
            self.require(f"{expression} is {name}")
            if has_other_classes(value):
                self.of_class(value)
        elif type(value) is tuple and all(map(is_plain, value)):
            self.require(f"(v := {expression}) is {self.bind(value)} or {self.bind(test or is_like(value))}(v)")
        else:
            self.require(f"{self.bind(test or is_like(value))}({expression})")

    def of_class(self, value: Any) -> None:
        """An object has the class that it has now."""
        self.require(f"type({self.bind(value)}) is {self.bind(type(value))}")

    def guard(self, guard: Guard) -> None:
        """A recorded fact."""
        if guard.write is not None:
            guard.write(self)
        elif guard.where is not None:
            expression = self._expression(guard.where)
            if guard.value is None or self._held.get(expression) is not guard.value:
                self.like(expression, guard.value, guard.test)
            elif has_other_classes(guard.value):
                self.of_class(guard.value)
        else:
            self.require(f"{self.bind(guard.test)}({self.bind(guard.read)}())")

    def _expression(self, where: Place) -> str:
        owner = self.bind(where.owner)
        if where.kind == "global":
            return f"{owner}[{where.name!r}]"
        return self._of_module(where.owner, where.name) or self.attribute(owner, where.name)

    def _of_module(self, module: Any, name: str) -> str | None:
        """The expression for what Python finds in a module's dicts, as far as that is the whole way there: a class with
        ``__getattr__`` is asked slowly."""
        if not is_a(module, torch.nn.Module) or not _leaves_to_the_instance(type(module), (name,)):
            return None
        found = found_in(module, name)
        if found is None and name not in module.__dict__:
            return None
        self.of_class(module)
        space = self.local(f"{self.bind(module)}.__dict__")
        self._lacking.setdefault(type(module), {})[name] = None
        if found is None:
            return f"{space}[{name!r}]"
        self.lacks(space, name)
        slots = [one for one in ("_parameters", "_buffers", "_modules") if one in module.__dict__]
        slot = next(one for one in slots if module.__dict__[one] is found)
        for before in slots[: slots.index(slot)]:  # in which Python looks first
            self.lacks(self.local(f"{space}[{before!r}]"), name)
        return f"{self.local(f'{space}[{slot!r}]')}[{name!r}]"

    def attribute(self, owner: str, name: str) -> str:
        """The expression for an attribute."""
        if name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
            return f"{owner}.{name}"
        return f"getattr({owner}, {name!r})"

    def local(self, expression: str) -> str:
        """A local name for an expression, evaluated once."""
        name = self._locals.get(expression)
        if name is None:
            name = self._locals[expression] = f"l{len(self._locals)}"
            self._lines.append(f"{name} = {expression}")
        return name

    def tensor(self, expression: str, tensor: torch.Tensor, sizes: Sequence[int | None] | None = None) -> str:
        """``expression`` still gives a tensor of this type, dtype, device, layout and ``requires_grad``, and, where
        ``sizes`` are not free, of its sizes and strides. Returns its local name."""
        seen = len(self._locals)
        local = self.local(expression)
        if len(self._locals) > seen:
            other = next((name for name, known, _ in self._checked if known is tensor), None)
            if other is None:
                self._checked.append((local, tensor, sizes))
                if (sparse := torch_internals.sparse_key(tensor)) is not None:
                    self.require(f"{self.bind(torch_internals.sparse_key)}({local}) == {self.bind(sparse)}")
            else:
                self.require(f"{local} is {other}")
        return local

    def hold(self, items: str, known: dict[str, torch.nn.Module | None]) -> None:
        """What the expression ``items`` gives is a dict of these modules, in this order."""
        self.require(f"{items} == {self.bind(known)} and list({items}) == {self.bind(list(known))}")
        self._held.update((f"{items}[{name!r}]", value) for name, value in known.items()
                          if type(value).__eq__ is object.__eq__)  # fmt: skip

    def apart(self, local: str, tensor: torch.Tensor) -> None:
        """What a local gives is no other tensor that this is said of."""
        self._apart.setdefault(id(tensor), local)

    def namespace(self, cls: type) -> str:
        """The name of a class's own attributes, a live view that is looked up once: its metaclass is not asked."""
        return self.bind(self._spaces.setdefault(cls, cls.__dict__))

    def _left(self, cls: type, names: Iterable[str]) -> list[str]:
        """Conditions for ``_leaves_to_the_instance``; which names its classes may not have is noted."""
        module = torch.nn.Module
        for one in cls.__mro__:
            asked = () if one is object else ("__getattribute__",) if one is module else (*_ASKED,)
            for name in (*names, *asked):
                self.absent(one, name)
        return [f"{self.bind(cls)}.__mro__ is {self.bind(cls.__mro__)}",
                f"{self.namespace(module)}['__getattr__'] is {self.bind(module.__getattr__)}"]  # fmt: skip

    def absent(self, cls: type, name: str) -> None:
        """A class itself has nothing under a name."""
        self._absent.setdefault(cls, {})[name] = None

    def lacks(self, items: str, name: str) -> None:
        """The dict that an expression gives has no such key."""
        self._unnamed.setdefault(items, {})[name] = None

    def give(self, local: str) -> None:
        """Make a tensor part of the result."""
        self.given.append(local)

    def finish(self, last: Sequence[str] = ()) -> Check | None:
        """The check; ``last`` are conditions on locals. None if PyTorch has no quick test for such tensors."""
        if self._checked:
            test = torch_internals.tensor_test([(tensor, sizes) for _, tensor, sizes in self._checked])
            if test is None:
                return None
            self.require(f"{self.bind(test)}({', '.join(local for local, _, _ in self._checked)})")
        if len(self._apart) > 1:
            self.require(f"len({{{', '.join(f'id({one})' for one in self._apart.values())}}}) == {len(self._apart)}")
        for space, names in self._unnamed.items():
            self.require(f"{space}.keys().isdisjoint({tuple(names)!r})")
        plainly = [condition for cls, names in self._lacking.items() for condition in self._left(cls, names)]
        plainly += [f"{self.namespace(cls)}.keys().isdisjoint({tuple(names)!r})"
                    for cls, names in self._absent.items()]  # fmt: skip
        self._lines[:0] = [f"if not ({one}): return None" for one in plainly]  # before the first attribute is read
        for condition in last:
            self.require(condition)
        body = "".join(f"        {line}\n" for line in self._lines) or "        pass\n"
        result = "".join(f"{local}, " for local in self.given)
        text = (
            f"def check({', '.join(self._parameters)}):\n    try:\n{body}"
            f"    except READ_ERRORS:\n        return None\n    return ({result})\n"
        )
        exec(compile(text, "<check>", "exec"), self._namespace)  # names and numbers only
        check: Check = self._namespace["check"]
        return check


_ASKED = ("__getattr__", "__getattribute__")


def _leaves_to_the_instance(cls: type, names: tuple[str, ...]) -> bool:
    """Whether a class of modules and those it inherits from have none of these attributes, and it looks attributes up
    as ``nn.Module`` does."""
    asked: tuple[Any, Any] = (getattr(cls, "__getattr__", None), cls.__getattribute__)
    if asked != (torch.nn.Module.__getattr__, object.__getattribute__):
        return False
    for one in cls.__mro__:
        space = one.__dict__
        for name in names:
            if name in space:
                return False
    return True


__all__ = ["Check", "CheckWriter"]
