"""What code that is not converted can come to from given values: one walk through what they hold, and what code among
them names.

    json.dumps(box)       what ``box`` holds; the special methods of its class, and the globals that these name
    apply(f)              the closure, defaults and globals of ``f``, and of the functions among these
    count(Shelf)          the attributes of a user's class

The walk asks for stand-ins: a list that grew holds one in place of its items, as does a dict whose keys depend on the
path. A walk that is too long has found something.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from dy2static.operators.shared import module_parts
from dy2static.operators.shared.computed_names import computes_names
from dy2static.operators.shared.policy import home_of, is_installed, is_librarys
from dy2static.operators.shared.staging import Choice, Staged
from runtime.kinds import is_a
from runtime.tracer.ambient import contents, objects
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.held import RowField, RowKey
from runtime.tracer.values.containers import Several, several
from runtime.tracer.values.structure import Growing, growing

_BUDGET = 100_000
_OURS = ("dy2static", "runtime")
_WHOLE_MODULE = frozenset({"globals", "eval", "exec", "import_module", "modules", "__import__"})
"""Names with which code comes to globals that it does not name."""
ANY_NAME = "getattr()"
"""What stands for names that are not constants of the code."""
_CONSTRUCTORS = frozenset({
    "__init__", "__new__", "__init_subclass__", "__class_getitem__", "__set_name__", "__post_init__",
    "__getattribute__", "__prepare__",
})  # fmt: skip
"""Special methods that nobody calls of an object that is there, or that are converted where they are called."""


class TooMuch:
    """What a walk gives that was not finished."""


TOO_MUCH = TooMuch()


@dataclass
class Code:
    """That code among the values may be called, and what it may ask objects for."""

    names: set[str] = field(default_factory=set)
    """The names in the code that was found: of attributes, methods and globals of modules."""
    of_library: bool = False
    """A library's code is what is called: it asks for names that nobody knows."""


def reached(
    values: Iterable[Any], is_stand_in: Callable[[Any], bool], modules: bool = True, code: Code | None = None
) -> Any:
    """The first value for which ``is_stand_in`` holds, among these and what they hold; None without one.

    ``modules``: attributes of PyTorch's modules count, not only what they have registered. ``code``: functions, classes
    and methods are followed, too.
    """
    values = list(values)
    while True:
        known = 0 if code is None else len(code.names)
        found = _walk(values, is_stand_in, modules, code)
        if found is not None or code is None or len(code.names) == known:
            return found


def has_grown(value: Any) -> bool:
    """Whether a value is a list that grew, or stands for its items (``f(*xs)``) or for what a row holds."""
    return is_growing(value) or is_a(value, (Growing, RowField, RowKey))


def is_growing(value: object) -> bool:
    """Whether a value is a list, deque or tuple whose length only the run knows."""
    return is_a(value, (list, deque, tuple)) and growing(value) is not None


def is_several(value: Any) -> bool:
    """Whether a value stands for what a container holds on one of several paths."""
    if type(value) in (Several, RowKey, RowField):
        return True
    return is_a(value, dict) and any(map(module_parts.is_unset, dict.values(value)))


def is_stand_in(value: Any) -> bool:
    """Whether a value is either."""
    return is_several(value) or has_grown(value)


def _walk(values: list[Any], is_stand_in: Callable[[Any], bool], modules: bool, code: Code | None) -> Any:
    seen: dict[int, Any] = {}
    todo = deque(values)
    while todo:
        value = todo.popleft()
        if is_plain(value) or id(value) in seen or is_a(value, (torch.Tensor, Staged)):
            continue
        seen[id(value)] = value  # what is made for the walk must live as long
        if is_stand_in(value):
            return value
        if len(seen) > _BUDGET:
            return TOO_MUCH
        todo.extend(_inside(value, modules))
        if code is not None:
            todo.extend(_by_code(value, modules, code))
    return None


def _inside(value: Any, modules: bool) -> Iterable[Any]:
    if is_a(value, Choice):  # what is done to it is done to each option, opened
        opened = [(option, several(option)) for option in value.options]
        return [one for option, held in opened for one in (held.options if held is not None else (option,))]
    if _is_ours(value):
        return []
    found: list[Any] = []
    if is_a(value, (list, tuple, set, frozenset, deque, dict)):
        found = objects.own_items(value)
        if is_a(value, dict):
            found.extend(dict.keys(value))
    elif is_a(value, functools.partial):
        found.extend((value.func, *value.args, *value.keywords.values()))
    elif is_a(value, (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)):
        return [value.__self__]
    elif is_a(value, (type, types.ModuleType, types.FunctionType)):
        return found
    if modules or not is_a(value, torch.nn.Module):
        found.extend(objects.attributes(value).values())
    else:
        found.extend(objects.attributes(value).get(slot) for slot in module_parts.SLOTS)
    return found


def _is_ours(value: Any) -> bool:
    """Whether an object is one of the tracer's, which refers to all that the trace knows."""
    module = str(type(value).__module__)
    return module.partition(".")[0] in _OURS and not module.startswith("dy2static.operators.")


# -- what code among the values comes to


def _by_code(value: Any, modules: bool, code: Code) -> Iterable[Any]:
    if is_a(value, types.FunctionType):
        return _of_function(value, code)
    if is_a(value, types.MethodType):
        return [value.__func__]
    function = function_of(value)
    if function is not None:
        return [function]
    if is_a(value, types.ModuleType):
        known = is_librarys(value.__name__) or value.__name__.partition(".")[0] in _OURS
        if known or is_installed(str(unasked(value, "__file__"))):
            return []
        return [held for name, held in list(vars(value).items()) if name in code.names]
    if not modules and is_a(value, torch.nn.Module):
        return []
    return _of_classes(value, code)


def _of_function(function: types.FunctionType, code: Code) -> list[Any]:
    """What a function finds in its closure and defaults, and a user's in the globals that it names. What an installed
    package has in its globals is its own."""
    found = contents.cells_of(function)
    file = function.__code__.co_filename
    if home_of(file) or is_installed(file):
        return [*found, unasked(function, "__wrapped__")]
    found += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    names = names_in(function.__code__)
    code.names |= names
    space = function.__globals__
    found += [space[name] for name in global_names(function.__code__) if name in space]
    found += [sys.modules[name] for name in names if name in sys.modules and not is_librarys(name)]
    if names & _WHOLE_MODULE:
        found += [held for held in list(space.values()) if not is_a(held, (types.FunctionType, type))]
    return found


def _of_classes(value: Any, code: Code) -> Iterator[Any]:
    """What an object, or a class itself, has from users' classes."""
    is_class = is_a(value, type)
    classes = type.mro(value) if is_class else type(value).__mro__
    bases = [cls for cls in classes if not is_users_class(cls)]
    if len(bases) == len(classes):
        return
    for cls in classes:
        if not is_users_class(cls):
            continue
        for name, member in list(vars(cls).items()):
            is_special = name[:2] == "__" and name[-2:] == "__"
            if function_of(member) is None and not is_a(member, types.FunctionType):
                if name in code.names or code.of_library and not is_special:
                    yield member
            elif name in code.names or (is_class or name not in _CONSTRUCTORS) and (
                    is_special or code.of_library and any(name in vars(base) for base in bases)):
                yield member


def is_users_class(cls: type) -> bool:
    """Whether a class is neither a library's nor ours."""
    module = str(cls.__module__)
    return not is_librarys(module) and module.partition(".")[0] not in _OURS


def function_of(member: Any) -> Any:
    """The Python function that a property, a static method or a descriptor like these calls; None if it is none."""
    if is_a(member, (staticmethod, classmethod)):
        return member.__func__
    if is_a(member, property):
        return tuple(one for one in (member.fget, member.fset) if one is not None)
    if is_a(member, (functools.cached_property, functools.partialmethod)):
        return member.func
    return unasked(member, "__wrapped__") if hasattr(type(member), "cache_parameters") else None


def names_in(code: types.CodeType) -> frozenset[str]:
    """The names of attributes and globals in a code object and those nested in it, and texts that may be such names;
    ``ANY_NAME`` where it asks for attributes by other names as well.

    >>> sorted(names_in((lambda x: [x.a for x in getattr(x, "b")]).__code__))
    ['a', 'b', 'getattr']
    """
    found = _names.get(code)
    if found is None:
        inner: set[str] = set(code.co_names)
        for constant in code.co_consts:
            if is_a(constant, types.CodeType):
                inner |= names_in(constant)
            else:
                texts = constant if is_a(constant, tuple) else (constant,)
                inner.update(text for text in texts if is_a(text, str) and text.isidentifier())
        if computes_names(code):
            inner.add(ANY_NAME)
        found = frozenset(inner)
        if len(_names) < 4096:
            _names[code] = found
    return found


_names: dict[types.CodeType, frozenset[str]] = {}


@functools.lru_cache(maxsize=4096)
def global_names(code: types.CodeType) -> tuple[str, ...]:
    """The globals that a code object, or one nested in it, reads.

    >>> global_names((lambda: [len(x) for y in z]).__code__)
    ('len', 'x', 'z')
    """
    return tuple(sorted(global_lines(code)))


@functools.lru_cache(maxsize=4096)
def global_lines(code: types.CodeType) -> dict[str, int]:
    """The same, each with the line of its file that reads it first.

    >>> list(global_lines((lambda: len(x)).__code__))
    ['len', 'x']
    """
    found: dict[str, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = _line_of(instruction) or line
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found.setdefault(str(instruction.argval), line)
    for constant in code.co_consts:
        if is_a(constant, types.CodeType):
            found = {**global_lines(constant), **found}
    return found


def _line_of(instruction: dis.Instruction) -> int | None:
    if sys.version_info >= (3, 13):
        return instruction.line_number
    return instruction.starts_line


__all__ = [
    "ANY_NAME", "Code", "TOO_MUCH", "TooMuch", "function_of", "global_lines", "global_names", "has_grown", "is_growing",
    "is_several", "is_stand_in", "is_users_class", "names_in", "reached",
]  # fmt: skip
