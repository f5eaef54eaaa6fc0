"""Function -> converted function: the same globals, cells, defaults and metadata, with rewritten code.

    def factory(_d2s, <free variables>):        the compiled file; only the code of ``forward`` is taken from it
        def forward(...): ...
        return forward

Code is converted once per code object: closures made again from the same code share the result.
"""

from __future__ import annotations

import linecache
import sys
import threading
import types
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gast

from dy2static import kept_conversions, logs, operators
from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import left_alone
from dy2static.errors import ConversionError, converting
from dy2static.generated_file import GeneratedFile, put_file, write_generated
from dy2static.names import OPERATORS, Namer
from dy2static.nodes import walk
from dy2static.operators.calls import functions
from dy2static.origin import OriginMap, is_generated_file, root_of
from dy2static.pipeline import ESCAPING_STEPS, MANAGER_STEPS, ROUTED_STEPS, STEPS, Step, convert_tree
from dy2static.source import FUTURE_FLAGS, FunctionSource, file_lines, get_source
from dy2static.template import replace
from dy2static.transforms.base import converts
from runtime import collector, recursion_limit
from runtime.ir import Location

_OWN_ATTRIBUTES = {"__wrapped__"}


@dataclass(frozen=True)
class Converted:
    """The outcome for one code object: ``code`` is None where the function is left alone, for the ``reason``."""

    code: types.CodeType | None
    file: GeneratedFile | None
    reason: str = ""


def _steps(steps: Sequence[Step]) -> Sequence[Step]:
    """Those that keep places: Python 3.10 knows the line of an instruction only, and a lambda stands on another one."""
    return steps if sys.version_info >= (3, 11) else [step for step in steps if step.name != "short_blocks"]


Form = Literal["plain", "routed", "escaping", "manager"]
_FORMS: dict[Form, Sequence[Step]] = {
    "plain": STEPS, "routed": ROUTED_STEPS, "escaping": ESCAPING_STEPS, "manager": MANAGER_STEPS}
"""What a function may be converted to. Those of a trace, for which operators (``+``, ``<``) are sent to the tracer and
which are less readable: ``routed``; ``escaping``, where exceptions that leave it on some paths only are values for its
caller (see ``transforms.escaping``); ``manager``, the generator of a ``@contextmanager`` in halves."""

_lock = threading.RLock()
_cache: dict[tuple[int, Form], tuple[weakref.ref[types.CodeType], Converted]] = {}
_operators_cell = types.CellType(operators)


def convert(function: types.FunctionType, *, form: Form = "plain") -> types.FunctionType:
    """The converted form of a plain function; the function itself if it is a generator, a coroutine, looks at its
    own frame, or is converted already.

    The result shares ``function``'s globals and closure cells: stores are visible both ways.
    Raises SourceUnavailable or ConversionError, with the place in the user's file.
    """
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"convert takes a Python function, got {type(function).__name__}")
    if is_converted(function):
        return function
    result = _converted(function, form)
    if result.code is None or result.file is None:
        return function
    return bind(function, result.code, result.file)


def reason_left_alone(function: types.FunctionType) -> str:
    """Why `convert` gives ``function`` itself."""
    return _converted(function, "routed").reason


def is_converted(function: object) -> bool:
    """Whether ``function`` is a result of `convert`, or a function defined inside one."""
    return isinstance(function, types.FunctionType) and is_generated_code(function.__code__)


def is_generated_code(code: types.CodeType) -> bool:
    """Whether ``code`` was compiled from a generated file."""
    return is_generated_file(code.co_filename)


def _converted(function: types.FunctionType, form: Form) -> Converted:
    code = function.__code__
    with _lock:
        key = (id(code), form)
        known = _cache.get(key)
        if known is not None and known[0]() is code:
            return known[1]
        with recursion_limit.room(recursion_limit.CONVERTING), collector.resting():
            result = _compile(function, _steps(_FORMS[form]))
        logs.converted(function, None if result.file is None else result.file.text, result.reason)

        def forget(reference: weakref.ref[types.CodeType]) -> None:
            if key in _cache and _cache[key][0] is reference:
                del _cache[key]

        _cache[key] = (weakref.ref(code, forget), result)
        return result


def _compile(function: types.FunctionType, steps: Sequence[Step]) -> Converted:
    made: list[Converted] = []

    def convert_now() -> kept_conversions.Record:
        made.append(_compile_now(function, steps))
        return _record(made[0])

    try:
        record = kept_conversions.kept(function, file_lines(function), [step.name for step in steps], convert_now)
        return made[0] if made else _restored(function, record)
    except RecursionError:
        code = function.__code__
        text = linecache.getline(code.co_filename, code.co_firstlineno).rstrip("\n")
        raise ConversionError(
            "the function is nested too deeply", hint="Split it, or exclude it with not_to_static.", code="D2S100",
            location=Location(code.co_filename, code.co_firstlineno, function=code.co_name, text=text)) from None


def _compile_now(function: types.FunctionType, steps: Sequence[Step]) -> Converted:
    source = get_source(function)
    with converting(source):
        if not converts(source.tree):
            return Converted(None, None, left_alone(source.tree))
        tree = convert_tree(source.tree, source, steps=steps)
        return Converted(*compile_tree(function, source, tree))


def _record(made: Converted) -> kept_conversions.Record:
    """What is kept of a conversion, for other processes."""
    if made.code is None or made.file is None:
        return (made.reason,)
    origins = made.file.origins
    return (made.reason, made.code, made.file.text, origins.spans, origins.lines, origins.lambda_lines,
            origins.made_names)  # fmt: skip


def _restored(function: types.FunctionType, record: kept_conversions.Record) -> Converted:
    """The conversion that was kept, in a file of this process."""
    reason, *rest = record
    if not rest:
        return Converted(None, None, reason)
    code, text, spans, lines, lambda_lines, made_names = rest
    original = function.__code__
    origins = OriginMap(original.co_filename, file_lines(function), spans, lines, lambda_lines, made_names,
                        root_of(original))  # fmt: skip
    what = f"{original.co_firstlineno}\0{original.co_flags & FUTURE_FLAGS}"
    path = put_file(text, origins, f"{function.__module__}.{function.__qualname__}", what)
    code = _in_file(code, path)
    return Converted(code, GeneratedFile(path, text, code, origins), reason)


def _in_file(code: types.CodeType, path: str) -> types.CodeType:
    inner = tuple(_in_file(part, path) if isinstance(part, types.CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=path, co_consts=inner)


def compile_tree(
    function: types.FunctionType, source: FunctionSource, tree: gast.FunctionDef
) -> tuple[types.CodeType, GeneratedFile]:
    """The code of a function whose tree was rewritten, with the user's names, and the file that it is in."""
    namer = Namer(tree, source.freevars)
    factory = namer.fresh("factory")
    if any(isinstance(node, gast.Name) and node.id == tree.name for node in walk(tree)):
        tree.name = namer.fresh(tree.name)  # inside, the name means something else: the factory must not bind it
    made: frozenset[str] = facts.get(tree, Fact.MADE_NAMES, frozenset())
    module = _module(tree, factory, source)
    file = write_generated(module, source, function.__code__.co_flags & FUTURE_FLAGS, made,
                           root_of(function.__code__))  # fmt: skip
    code = _find(file.code, factory, tree.name)
    return _named(code, f"{factory}.<locals>.", function.__code__, file.origins), file


def _module(tree: gast.FunctionDef, factory: str, source: FunctionSource) -> gast.Module:
    parameters = [OPERATORS, *(name for name in source.freevars if name != OPERATORS)]
    body = replace(
        "def factory(parameters):\n    function\n    return name",
        factory=factory, parameters=parameters, function=[tree], name=tree.name, origin=tree,
    )  # fmt: skip
    return gast.Module(body, [])


def _find(module: types.CodeType, factory: str, name: str) -> types.CodeType:
    """The code of the function inside the factory."""
    outer = next(c for c in module.co_consts if isinstance(c, types.CodeType) and c.co_name == factory)
    found = [c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == name]
    return found[-1]


def _named(code: types.CodeType, prefix: str, original: types.CodeType, origins: OriginMap) -> types.CodeType:
    """The code with the user's names instead of those of the generated file, nested functions and classes included."""
    changes: dict[str, Any] = {"co_name": original.co_name}
    if hasattr(original, "co_qualname"):
        changes["co_qualname"] = original.co_qualname
    start = f"{prefix}{code.co_name}.<locals>."
    return _renamed(code, prefix, start, f"{_qualname(original)}.<locals>.", origins).replace(**changes)


def _qualname(code: types.CodeType) -> str:
    """Where a function stands in its module, as what is made inside it is named.

    Python 3.10 does not keep it, but among the constants are the names of inner functions and classes.
    """
    if hasattr(code, "co_qualname"):
        return str(code.co_qualname)
    for inner in (part for part in code.co_consts if isinstance(part, types.CodeType)):
        end = f".<locals>.{inner.co_name}"
        for part in (*code.co_consts, *inner.co_consts):
            if isinstance(part, str) and f".{part}".endswith(f".{code.co_name}{end}"):
                return part.removesuffix(end)
    return code.co_name


def _renamed(code: types.CodeType, prefix: str, old: str, new: str, origins: OriginMap) -> types.CodeType:
    def rename(name: str) -> str:
        if not name.startswith(prefix):
            return name
        if not name.startswith(old):
            return name[len(prefix) :]
        *around, last = name[len(old) :].split(".<locals>.")
        return new + "".join([_around(part) if origins.made(part) else f"{part}.<locals>." for part in around]) + last

    constants = tuple(
        _renamed(part, prefix, old, new, origins) if isinstance(part, types.CodeType)
        else rename(part) if isinstance(part, str) else part
        for part in code.co_consts
    )  # fmt: skip
    changes: dict[str, Any] = {"co_consts": constants}
    if hasattr(code, "co_qualname"):
        changes["co_qualname"] = rename(code.co_qualname)
    return code.replace(**changes)


def _around(made: str) -> str:
    """How Python names what is inside of what a function of ours stands for, if that is a function to Python."""
    kind = made.rstrip("0123456789").rstrip("_")
    return f"<{kind}>." if kind in _FUNCTIONS_OF_PYTHON else ""


_FUNCTIONS_OF_PYTHON = ("genexpr",) if sys.version_info >= (3, 12) else ("genexpr", "listcomp", "setcomp", "dictcomp")


def bind(function: types.FunctionType, code: types.CodeType, file: GeneratedFile) -> types.FunctionType:
    """A function of the new code with everything else from ``function``."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[OPERATORS] = _operators_cell
    closure = tuple(cells[name] for name in code.co_freevars)
    result = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__annotations__ = function.__annotations__
    result.__doc__ = function.__doc__
    result.__qualname__ = function.__qualname__
    result.__module__ = function.__module__
    if hasattr(function, "__type_params__"):  # from Python 3.12 on
        setattr(result, "__type_params__", function.__type_params__)  # noqa: B010 # unknown to older type checkers
    result.__dict__.update({k: v for k, v in function.__dict__.items() if k not in _OWN_ATTRIBUTES})
    result.__dict__["__dy2static_source__"] = file.text
    return result


functions.register(lambda function, form: convert(function, form=form), reason_left_alone)
