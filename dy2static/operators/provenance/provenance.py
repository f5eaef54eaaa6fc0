"""Where values came from: guards on what a trace read, sources of its tensors, objects that existed before it."""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from dy2static import callers
from dy2static.names import OPERATORS
from dy2static.operators.shared import module_parts
from dy2static.operators.shared.module_facts import GlobalHooks, ModuleFacts, SharedTensors
from dy2static.operators.shared.policy import is_librarys
from dy2static.operators.shared.reachable import global_lines, global_names
from dy2static.operators.shared.staging import Choice, Session, Staged, Undefined
from runtime import torch_internals
from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.ambient.objects import own_length
from runtime.tracer.ambient.one_call import Taken
from runtime.tracer.ambient.unasked import has_unasked, module_name, reader, unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.python_state import facts
from runtime.tracer.python_state.ages import existed_before
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import MISSING, Place, cell_value
from runtime.tracer.values.inside import inside

CONTAINERS = (list, dict, set, deque)
_WALK = 20_000


class Noted(NamedTuple):
    """An object whose methods were gone over, and how often anything had been bound by then."""

    owner: Any
    bound: int


class Answer(NamedTuple):
    """What a look at an object gave."""

    owner: Any
    value: Any


@dataclass(eq=False)
class Memo:
    """What the operators remember for one trace."""

    created: dict[int, Any] = field(default_factory=dict)
    """Objects made by converted code."""
    entered: dict[int, types.FunctionType] = field(default_factory=dict)
    paths: dict[int, str] = field(default_factory=dict)
    """Modules by identity: their dotted path from the outermost one."""
    labels: dict[str, int] = field(default_factory=dict)
    modules: dict[int, torch.nn.Module] = field(default_factory=dict)
    called: dict[int, torch.nn.Module] = field(default_factory=dict)
    methods: dict[tuple[int, str], type] = field(default_factory=dict)
    """Special methods that were looked up: by class and name."""
    asked: dict[int, Any] = field(default_factory=dict)
    """Objects whose special methods builtins may have called."""
    found: tuple[Any, Any] | None = None
    """A list and a value that is surely in it, where that is looked for next (see ``operators.builtins.lookup``)."""
    noted: dict[tuple[int, frozenset[str]], Noted] = field(default_factory=dict)
    """Objects, by identity, whose methods were gone over, as code that uses some names may call them."""
    answers: dict[tuple[int, str], Answer] = field(default_factory=dict)
    """What a user's ``__getattribute__`` gives, by object and name (see ``operators.values.pure_lookups``)."""
    impure: int = 0
    """How many calls did more than to look."""
    namespaces: dict[int, Namespace] = field(default_factory=dict)
    generators: Any = field(default_factory=weakref.WeakKeyDictionary)
    """Generators of converted code, with the form of each that takes its consumer."""
    running: Any = field(default_factory=weakref.WeakSet)
    """Those whose consumer is being run."""
    left: Any = field(default_factory=weakref.WeakSet)
    """Those that were driven and left: how far is only known at run time, so that nothing may take more from them."""
    made: int = 0
    """How many generators were made."""
    before_call: int = 0
    """How many had been made when the call that ended last began."""
    new_iterator: Any = None
    """What that call gave, if it is an iterator of Python's own that was made for it."""
    unheld: list[Any] = field(default_factory=list)
    """Iterators that the expression which made them hands to a consumer, until that takes them (see ``fresh``)."""
    returned: Any = None
    """What the generator has returned whose consumer is being run, and the scope in which it did."""
    streams: dict[str, Any] = field(default_factory=dict)
    """Where the random generators of Python and NumPy are that all share, as far as the trace knows."""
    checkpointed: int = 0
    """In how many calls of ``torch.utils.checkpoint.checkpoint`` the trace is."""
    depth: int = field(default_factory=callers.depth)
    """How many Python frames are outside of the traced function."""
    filters: Any = field(default_factory=lambda: warnings.filters)
    """What was done with warnings when the trace began."""
    spaces: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """Namespaces of objects that the code has as dicts, with their owners."""
    traced_caches: dict[Any, Any] = field(default_factory=dict)
    """By cached function and arguments: what a call gave that was traced, with its scope."""
    tokens: dict[int, list[Any]] = field(default_factory=dict)
    """Tokens of context variables, by identity: the Blocks in which they were used."""
    deeds: Taken = field(default_factory=set)
    """What was done once for the call at hand, as far as this trace has come to it."""
    asked_caches: set[int] = field(default_factory=set)
    """Cached functions, by identity, whose cache was asked what it holds."""
    uncounted_caches: set[int] = field(default_factory=set)
    """Those that were called in ways that their caches do not count."""
    counters: dict[int, tuple[Any, Location | None]] = field(default_factory=dict)
    """Every ``itertools.count`` that the trace has made, by identity, with where."""
    iterators: dict[int, tuple[Any, object]] = field(default_factory=dict)
    """What ``iter`` gave, and the path (a frame of the journal) it was made on."""


def memo(session: Session) -> Memo:
    """The operators' memory of this trace; it lives as long as the session."""
    found = session.code.memo
    if not is_a(found, Memo):
        found = session.code.memo = Memo(session.objects.created)
    return found


class Namespace:
    """A dictionary of globals, read through attributes."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise AttributeError(name) from None


def _namespace(session: Session, names: dict[str, Any]) -> Namespace:
    return memo(session).namespaces.setdefault(id(names), Namespace(names))


# -- objects from before the trace


def is_external(session: Session, obj: object) -> bool:
    """Whether an object existed before the trace, as far as reads from other such objects tell."""
    if id(obj) in session.objects.externals:
        return True
    if id(obj) in memo(session).created or is_a(obj, CONTAINERS):
        return False
    if is_a(obj, BaseException) and existed_before(session, obj) is False:  # Python or a library has raised it
        memo(session).created[id(obj)] = obj
        return False
    return not is_a(obj, (torch.Tensor, Staged, Choice, Undefined))


def adopt(session: Session, value: Any) -> None:
    """Note that ``value``, and what its containers hold, existed before the trace."""
    todo, budget = [value], _WALK
    while todo and budget:
        budget -= 1
        one = todo.pop()
        if is_plain(one) or is_a(one, (torch.Tensor, Staged, Choice)) or id(one) in session.objects.externals:
            continue
        if id(one) in session.objects.originals:
            meet(session, one)
        if id(one) in memo(session).created:
            continue
        if _made_by_others(session, one):
            memo(session).created[id(one)] = one
            continue
        todo.extend(inside(one))
        if not is_a(one, tuple):
            session.objects.externals[id(one)] = (one, None)
            facts.stage_items(session, one)
            for watch in ADOPTION_WATCHERS:
                watch(session, one)
        if is_a(one, torch.nn.Module) and _is_gone_over(type(one)) and _has_parts(one):
            note_module(session, one)
            todo.extend(one._modules.values())


ADOPTION_WATCHERS: list[Callable[[Session, Any], None]] = []
"""What is told of each object from before the trace when it is met first."""


def _has_parts(module: torch.nn.Module) -> bool:
    """Whether a module is an ordinary one that is initialised: those of ``torch.jit`` keep their parts elsewhere."""
    return has_unasked(module, "__dict__") and {"_modules", "training"} <= unasked(module, "__dict__").keys()


def _is_gone_over(cls: type) -> bool:
    """Whether code of torch's goes over a module's parts, unseen: ``ModuleList``, ``Sequential``, ``ParameterDict``."""
    return any(name in vars(one) for one in cls.__mro__ if module_name(one).startswith("torch.")
               for name in ("__len__", "__iter__", "__getitem__"))  # fmt: skip


def require_original(session: Session, a: Any, b: Any) -> None:
    """Begin the trace again before ``a is b`` asks which object a tuple among the arguments is: a copy is another."""
    copies = session.objects.copies
    if is_a(a, tuple) and (id(a) in copies) is not (id(b) in copies):
        raise session.restart(Findings(whole=frozenset((copies[id(a if id(a) in copies else b)],))))


def meet(session: Session, value: Any) -> None:
    """Begin the trace again if ``value`` is the caller's own container of which the arguments hold a copy: both are one
    object. Tuples are values; only ``is`` tells the two apart (see ``identical``)."""
    number = session.objects.originals[id(value)]
    if not is_a(value, tuple):
        raise session.restart(Findings(whole=frozenset((number,))))


def _made_by_others(session: Session, obj: object) -> bool:
    """Whether code that is not converted made an object while tracing: it holds traced values that nothing stored."""
    if is_a(obj, (type, types.ModuleType, torch.nn.Module)):
        return False
    namespace = unasked(obj, "__dict__")
    return type(namespace) is dict and any(
        not written(session, Place("attribute", obj, name)) and _held_of_trace(session, value)
        for name, value in namespace.items()
    )


def _held_of_trace(session: Session, value: Any) -> bool:
    """Whether a value held one of the trace before anything was stored in it: code that is not converted made it."""
    with session.journal.as_before(value):
        return holds_traced(value) and not facts.holds_facts(session, value)


def holds_traced(value: Any) -> bool:
    """Whether a value of this or another trace is inside: a tensor without data, a staged number, a choice."""
    return any(map(_is_traced, walk([value], _items, 9)))


def _is_traced(value: Any) -> bool:
    if is_a(value, (Staged, Choice, Undefined)) or value is MISSING:
        return True
    return is_a(value, torch.Tensor) and torch_internals.is_fake(value)


def _items(value: Any) -> Any:
    if type(value) in (list, tuple, set, frozenset, deque):
        return value
    return dict.values(value) if is_a(value, dict) else ()


# -- reads and writes


def written(session: Session, place: Place) -> bool:
    """Whether the trace stored to a place (on any path)."""
    return place in session.journal.frames[0]


def note_attribute_read(session: Session, obj: Any, name: str, value: Any) -> Any:
    """Guard what ``obj.name`` was, remember where a tensor came from; the value, staged if it is a varying number."""
    place = Place("attribute", obj, name)
    if not is_external(session, obj) and _is_of_class(session, obj, name, value):
        return note_attribute_read(session, type(obj), name, value)
    if not is_external(session, obj) or written(session, place):
        note_found(session, place, value)
        return value
    if is_a(value, torch.Tensor):
        if not torch_internals.is_fake(value):
            note_tensor(session, obj, name, value)
        return value
    if place.get() is value and facts.stage(session, place, value):
        note_found(session, place, place.get())
        return place.get()
    if session.guards.has((id(obj), name)):
        return value
    with session.journal.as_before(value):
        if holds_traced(value) and not facts.holds_facts(session, value):
            return value
        adopt(session, obj)
        adopt(session, value)
        kind = type(obj).__name__ if not is_a(obj, (type, types.ModuleType)) else obj.__name__
        read = functools.partial(reader(obj), obj, name)
        session.guards.add((id(obj), name), f"attribute '{name}' of {kind}", read, value, place)
    return value


def note_found(session: Session, place: Place, value: Any) -> None:
    """What a place holds that is no fact, as each call has something else there."""
    if session.guards.is_apart and (is_external(session, place.owner) or place.kind == "global"):
        session.guards.looked_up(place.describe(), place.get, value)


def note_held(session: Session, obj: Any, name: str, value: Any) -> None:
    """Guard what a descriptor left in an object's ``__dict__`` under its own name: a cached property does."""
    if session.guards.has((id(obj), name, "held")):
        return
    with session.journal.as_before(value):
        if is_a(value, torch.Tensor) or holds_traced(value):
            return
        adopt(session, obj)
        adopt(session, value)
        session.guards.add((id(obj), name, "held"), f"what '{name}' of a {type(obj).__name__} holds",
                           lambda: unasked(obj, "__dict__").get(name), value)


def _is_of_class(session: Session, obj: Any, name: str, value: Any) -> bool:
    """Whether an object that is made inside has from its class what it has under a name."""
    cls = type(obj)
    if is_a(obj, (type, types.ModuleType)) or name in unasked(obj, "__dict__", {}):
        return False
    return defined(cls, name) is value and is_class_from_outside(session, cls)


def is_class_from_outside(session: Session, cls: type) -> bool:
    return id(cls) not in session.code.given_classes and is_external(session, cls)


PATCHED = (torch.nn.Module, torch.autograd.Function)
"""Classes with methods that are other ones while tracing."""


def defined(cls: type, name: str) -> Any:
    """What the class holds under a name: ``getattr`` would bind a class method anew each time."""
    for base in itertools.chain(cls.__mro__, type.mro(type(cls))):
        if name in base.__dict__:
            return base if base in PATCHED else base.__dict__[name]
    return None


def note_attribute_write(session: Session, obj: Any, name: str) -> None:
    """Call before ``obj.name`` is stored or deleted: on a staged path the old value becomes part of the join."""
    if is_a(obj, _UNANNOUNCED) and is_external(session, obj) and id(obj) not in session.objects.externals:
        existed = existed_before(session, obj)
        if existed is False:
            memo(session).created[id(obj)] = obj
        elif existed is None:  # a store to an old object is done at each call, to a new one in the trace: both are now
            session.once(f"nothing tells whether a {type(obj).__name__} it stores to was there before the call")
    if is_external(session, obj):
        adopt(session, obj)
        if len(session.journal.frames) > 1 and id(obj) in session.objects.externals:
            old = Place("attribute", obj, name).get()
            if old is not MISSING:
                note_attribute_read(session, obj, name, old)
    session.journal.note_attribute(obj, name)


_UNANNOUNCED: tuple[Any, ...] = (types.FunctionType, type, BaseException)
"""What syntax makes, and no call that the trace sees."""


def _own_of(cls: type) -> dict[str, Any]:
    """What stands in a class itself, but for what Python keeps there."""
    own = vars(cls).items()
    return {name: value for name, value in own if name[:2] != "__" or is_a(value, types.FunctionType)}


def note_space(session: Session, owner: Any, space: Any) -> None:
    """Note that a dict is the namespace of an object: its items are attributes, and which there are is a guard."""
    if is_a(owner, type) and not is_librarys(str(owner.__module__)) and is_external(session, owner):
        adopt(session, owner)
        adopt(session, _own_of(owner))
        session.guards.add((id(owner), "namespace"), f"the attributes of {owner.__name__}",
                           functools.partial(_own_of, owner), _own_of(owner))
    if type(space) is not dict:
        return
    memo(session).spaces[id(space)] = (space, owner)
    session.journal.shown.add(id(owner))
    if is_a(owner, (type, types.ModuleType)) or not is_external(session, owner):
        return
    stored = session.journal.frames[0]
    names = [name for name in space if stored.get(Place("attribute", owner, name)) is not MISSING]
    if any(place.owner is owner and place.kind == "attribute" and place.name not in space for place in stored):
        return  # deleted in the trace: nothing tells where it stood
    session.guards.add_test((id(owner), "names"), f"the attributes of a {type(owner).__name__}",
                            lambda: list(unasked(owner, "__dict__")) == names)
    for name, value in list(space.items()):
        parts = is_a(owner, torch.nn.Module) and name.startswith("_")  # what its call reads is a guard of its own
        if not parts and not is_a(value, torch.Tensor):
            note_attribute_read(session, owner, name, value)


def namespace_owner(session: Session, space: Any) -> Any:
    """Whose namespace a dict is: an object's, or itself for the globals of a module; None if it is a plain dict."""
    found = memo(session).spaces.get(id(space))
    if found is not None:
        return found[1]
    return space if type(space) is dict and "__builtins__" in space and "__name__" in space else None


def note_space_write(session: Session, space: Any, *names: Any) -> None:
    """Call before items of a namespace are stored: a comparison sees no store of what was there."""
    if is_a(space, dict) and namespace_owner(session, space) is space:
        for name in names:
            if type(name) is str:
                note_global_write(session, space, name)


def note_space_read(session: Session, space: dict[str, Any], name: Any) -> None:
    """Guard an item of a namespace that is read as one of a dict."""
    owner = namespace_owner(session, space)
    if not is_a(name, str):
        return
    if owner is not space:
        place = Place("attribute", owner, name)
        if name in space:
            note_attribute_read(session, owner, name, space[name])
        elif is_external(session, owner) and not written(session, place):
            key = (id(owner), name, "absent")
            session.guards.add_test(key, f"the absence of {place.describe()}", lambda: place.get() is MISSING)
    elif name in space:
        _note_global_read(session, space, name)
    else:
        _note_absence(session, space, name)


def note_content_write(session: Session, container: Any) -> None:
    """Call before a list, dict, set or deque is changed."""
    session.journal.note_content(container)


def note_item_read(session: Session, container: Any, key: Any, value: Any) -> None:
    """An item of a container from before the trace; of a large one, its guard."""
    externals = session.objects.externals
    if id(container) not in externals:
        return
    if session.guards.is_apart and (is_a(value, Staged) or written(session, Place("content", container))):
        session.guards.looked_up(f"item {key!r} of a {type(container).__name__}", lambda: container[key], value)
    if written(session, Place("content", container)):
        return
    is_large = own_length(container) > 256
    if not is_large and (id(value) in externals or type(value) in _PLAIN):
        return
    with session.journal.as_before(value):
        if is_a(value, torch.Tensor) or holds_traced(value):
            return
        adopt(session, value)
        if is_large:
            session.guards.add((id(container), "item", repr(key)), f"item {key!r} of a {type(container).__name__}",
                               lambda: container[key], value)


_PLAIN = frozenset((int, float, bool, str, type(None)))


def note_global_write(session: Session, namespace: dict[str, Any], name: str) -> None:
    """Call before a global is bound."""
    if len(session.journal.frames) > 1 and name in namespace:
        _note_global_read(session, namespace, name)
    session.journal.note_global(namespace, name)


def note_global_presence(session: Session, namespace: dict[str, Any], name: str) -> None:
    """Guard whether a global is bound, whatever it is."""
    if not written(session, Place("global", namespace, name)):
        is_bound = name in namespace
        session.guards.add_test((id(namespace), name, "deleted"), f"whether there is a global '{name}'",
                                lambda: (name in namespace) is is_bound)


def _note_global_read(session: Session, namespace: dict[str, Any], name: str) -> None:
    value = namespace[name]
    place = Place("global", namespace, name)
    if written(session, place):
        note_found(session, place, value)
        return
    if is_a(value, torch.Tensor):
        if not torch_internals.is_fake(value):
            session.inputs.hint_source(value, _namespace(session, namespace), name, unique_label(session, name, value))
        return
    if facts.stage(session, place, value):
        note_found(session, place, place.get())
        return
    if session.guards.has((id(namespace), name)):
        return
    with session.journal.as_before(value):
        if holds_traced(value) and not facts.holds_facts(session, value):
            return
        adopt(session, value)
        if value is os.environ:
            session.guards.add(("environment",), "the environment", lambda: dict(os.environ), dict(os.environ))
        session.guards.add((id(namespace), name), f"global '{name}'", lambda: namespace[name], value, place)


# -- tensors


def note_tensor(session: Session, owner: Any, name: str, value: torch.Tensor) -> None:
    """Remember that a real tensor is ``owner.name``, under the name that ``state_dict`` gives it."""
    label = name
    if is_a(owner, torch.nn.Module):
        path = memo(session).paths.get(id(owner))
        if path is None:
            register_module(session, owner)
            path = memo(session).paths[id(owner)]
        label = f"{path}.{name}" if path else name
    session.inputs.hint_source(value, owner, name, unique_label(session, label, value))


def unique_label(session: Session, label: str, value: torch.Tensor) -> str:
    """``label``, or with a number where another tensor has it."""
    labels = memo(session).labels
    inputs = {program_input.name for program_input in session.program.inputs}
    candidate, number = label, 1
    while labels.setdefault(candidate, id(value)) != id(value) or candidate in inputs:
        candidate = f"{label}_{number}"
        number += 1
    return candidate


def register_module(session: Session, root: torch.nn.Module) -> None:
    """Name a module's submodules by their path from it, and its tensors as ``state_dict`` does."""
    paths = memo(session).paths
    prefix = "" if not paths else f"{type(root).__name__.lower()}"
    for path, module in module_parts.inside(root):
        paths.setdefault(id(module), ".".join(part for part in (prefix, path) if part))
        memo(session).modules[id(module)] = module


def note_module(session: Session, module: torch.nn.Module) -> None:
    """Guard what a called module is made of, and remember where its parameters and buffers are found."""
    key = (id(module), "<module>")
    if id(module) in memo(session).called:
        return
    memo(session).called[id(module)] = module
    adopt(session, module)
    if id(module) not in memo(session).paths:
        register_module(session, module)
    for slot in (module._parameters, module._buffers):
        for name, value in slot.items():
            if value is not None and not torch_internals.is_fake(value):
                note_tensor(session, module, name, value)
    if id(module) in memo(session).created:
        return
    hooks = GlobalHooks()
    session.guards.add_test(("hooks of all modules",), "hooks of all modules", hooks.hold, write=hooks.write)
    known = ModuleFacts(module, with_mode=not written(session, Place("attribute", module, "training")))
    session.guards.add_test(key, f"module {type(module).__name__}", known.hold, module, known.write)


def note_modules(session: Session, root: torch.nn.Module) -> None:
    """The same of a module and all inside: code that is not converted goes over them."""
    if _has_parts(root):
        modules = [module for _, module in module_parts.inside(root) if _has_parts(module)]
        for module in modules:
            note_module(session, module)
        if id(root) not in memo(session).created:  # each has a guard of its own for its parts
            known = SharedTensors(modules)
            session.guards.add_test((id(root), "<shared>"), f"which parameters of {type(root).__name__} are one",
                                    known.hold, write=known.write)


# -- functions


def enter_function(session: Session, function: types.FunctionType) -> None:
    """Guard the globals, closure values and defaults that a function's code names, and that it has this code."""
    entered = memo(session).entered
    if id(function) in entered:
        return
    entered[id(function)] = function
    namespace, code = function.__globals__, function.__code__
    for name in global_names(code):
        with session.guards.located(functools.partial(_place_of_global, code, name)):
            if name in namespace:
                _note_global_read(session, namespace, name)
            else:
                _note_absence(session, namespace, name)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if name not in (OPERATORS, "__class__"):
            _note_cell(session, name, cell)
    for attribute in ("__defaults__", "__kwdefaults__"):
        value = getattr(function, attribute)
        if value and not holds_traced(value):
            for item in dict.values(value) if is_a(value, dict) else value:
                if not is_a(item, torch.Tensor):
                    adopt(session, item)
        _note_part(session, function, attribute, "defaults")
    _note_part(session, function, "__code__", "code")


def _place_of_global(code: types.CodeType, name: str) -> Location:
    line = global_lines(code)[name]
    return Location(code.co_filename, line, 0, code.co_name, linecache.getline(code.co_filename, line).rstrip())


def _note_absence(session: Session, namespace: dict[str, Any], name: str) -> None:
    """Guard that a name is a builtin's: a global of that name would shadow it."""
    if not written(session, Place("global", namespace, name)):
        session.guards.add_test(
            (id(namespace), name), f"global '{name}'", lambda: name not in namespace,
            write=lambda check: check.lacks(check.bind(namespace), name),
        )


def _note_part(session: Session, function: types.FunctionType, attribute: str, what: str) -> None:
    value = getattr(function, attribute)
    if value is not None and not holds_traced(value):
        session.guards.add((id(function), attribute), f"{what} of {function.__qualname__}",
                           functools.partial(getattr, function, attribute), value,
                           Place("attribute", function, attribute))  # fmt: skip


def note_binding(session: Session, name: str, cell: types.CellType) -> None:
    """Guard whether a name of an outer function is bound, whatever it is."""
    if not written(session, Place("attribute", cell, "cell_contents")):
        is_bound = not is_a(cell_value(cell), Undefined)
        session.guards.add_test((id(cell), "bound"), f"whether '{name}' is bound in an outer function",
                                lambda: is_a(cell_value(cell), Undefined) is not is_bound)


def _note_cell(session: Session, name: str, cell: types.CellType) -> None:
    session.objects.externals.setdefault(id(cell), (cell, None))
    try:
        value = cell.cell_contents
    except ValueError:
        return
    place = Place("attribute", cell, "cell_contents")
    if written(session, place):
        note_found(session, place, value)
        return
    if is_a(value, torch.Tensor):
        if not torch_internals.is_fake(value):
            session.inputs.hint_source(value, cell, "cell_contents", unique_label(session, name, value))
        return
    if facts.stage(session, place, value):
        note_found(session, place, place.get())
        return
    if session.guards.has((id(cell), "cell")):
        return
    with session.journal.as_before(value):
        if holds_traced(value) and not facts.holds_facts(session, value):
            return
        adopt(session, value)
        session.guards.add((id(cell), "cell"), f"closure variable '{name}'", lambda: cell.cell_contents, value, place)
