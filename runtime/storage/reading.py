"""An Artefact from a JSON-able document: the inverse of ``writing``.

Everything a document says is checked here, so that what comes out can be called.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from runtime.errors import ProgramError, StorageError
from runtime.ir import Variable
from runtime.ir.template import Again, KeyPath, TensorSlot
from runtime.ir.tree import Leaf, Record, tree_leaves
from runtime.ir.views import HOLE, Hole, View, ViewStep
from runtime.ops import aten
from runtime.storage import sparse
from runtime.storage.allowed import allowed_operators, check_operators
from runtime.storage.answers import Answer, Plain, is_setting, question
from runtime.storage.artefact import (
    MODES,
    WITHOUT_GRADIENTS,
    Argument,
    Artefact,
    Attribute,
    Constant,
    Method,
    ModuleEntry,
    Passed,
    State,
    Store,
    Target,
    TensorRef,
    Variant,
)
from runtime.storage.document import Node
from runtime.storage.metadata import read_metadata
from runtime.storage.modules import state_names
from runtime.storage.operands import decode
from runtime.storage.serde import program_from_document
from runtime.storage.table import Raw
from runtime.storage.tensors import unpack
from runtime.storage.trees import at_path, leaves, with_part, with_tensors
from runtime.storage.types import EXCEPTION_BASES, OBJECTS, check_tree
from runtime.storage.upgrade import upgraded
from runtime.storage.writing import FORMAT

_NAMES = (
    "format", "version", "made_by", "name", "metadata", "libraries", "modules", "tensors", "constants", "methods",
)  # fmt: skip
_KINDS = {
    "positional_only": inspect.Parameter.POSITIONAL_ONLY,
    "positional_or_keyword": inspect.Parameter.POSITIONAL_OR_KEYWORD,
    "var_positional": inspect.Parameter.VAR_POSITIONAL,
    "keyword_only": inspect.Parameter.KEYWORD_ONLY,
    "var_keyword": inspect.Parameter.VAR_KEYWORD,
}


def from_document(
    node: Node, table: Mapping[str, Raw], allow: Collection[str] = (), device: torch.device | None = None
) -> Artefact:
    """The artefact in a document, with its tensors from the table.

    Errors raised: StorageError naming the place in the document, or the operator that is not allowed.
    """
    node = upgraded(node)
    fields = node.record(*_NAMES)
    fields["format"].choice(FORMAT)
    made_by = {name: item.text() for name, item in fields["made_by"].mapping().items()}
    metadata = read_metadata(fields["metadata"])
    for item in fields["libraries"].items():
        if item.text() not in allow:
            raise StorageError(
                f"the artefact uses operators of the library {item.text()!r}",
                hint=f"If you trust it, import it and pass allow=[{item.text()!r}].",
                code="D2S515",
            )
    tensors, constants = unpack([fields["tensors"], fields["constants"]], table, device)
    modules = _modules(fields["modules"], tensors)
    artefact = Artefact(fields["name"].text(), modules, tensors, constants, {}, metadata, made_by)
    reader = _Reader(artefact, frozenset(allow))
    for name, item in fields["methods"].mapping().items():
        artefact.methods[name] = reader.method(name, item)
    if not artefact.methods:
        fields["methods"].fail("an artefact needs a method")
    return artefact


def state_from_document(
    node: Node, table: Mapping[str, Raw], device: torch.device | None = None
) -> dict[str, torch.Tensor]:
    """The state dict of the modules in a document; Programs and constants are not looked at.

    Errors raised: StorageError naming the place in the document.
    """
    fields = upgraded(node).record(*_NAMES)
    fields["format"].choice(FORMAT)
    (tensors,) = unpack([fields["tensors"]], table, device)
    modules = _modules(fields["modules"], tensors)
    detached = [tensor.detach() for tensor in tensors]
    return {name: detached[index] for name, index in state_names(modules).items()}


def signature_of(method: Method, constants: list[torch.Tensor]) -> inspect.Signature:
    """The method's signature as Python's own. Errors raised: ValueError if no function has such a one."""
    empty = inspect.Parameter.empty
    parameters = []
    for one in method.signature:
        default = one.default if one.default is empty else with_tensors(one.default, constants)
        parameters.append(inspect.Parameter(one.name, _KINDS[one.kind], default=default))
    return inspect.Signature(parameters)


def _modules(node: Node, tensors: list[torch.Tensor]) -> list[ModuleEntry]:
    modules: dict[str, ModuleEntry] = {}
    names: dict[str, set[str]] = {}
    for item in node.items():
        twice = type(item.value) is dict and "same_as" in item.value
        fields = item.record("path", "same_as") if twice else item.record("path", "type", "parameters", "buffers")
        path = fields["path"].text()
        parent, _, name = path.rpartition(".")
        if path in modules or (path == "") != (not modules) or (path and parent not in names):
            fields["path"].fail(f"{path!r} is not where a module can be")
        if path:
            _claim(fields["path"], name, names[parent])
        if twice:
            first = fields["same_as"].text()
            if first not in names or path == first or f"{path}.".startswith(f"{first}."):
                fields["same_as"].fail(f"there is no module {first!r} that could be at {path!r} too")
            modules[path] = ModuleEntry(path, modules[first].type_name, same_as=first)
            continue
        own = names[path] = set()
        module = modules[path] = ModuleEntry(path, fields["type"].text())
        for slot in fields["parameters"].items():
            slot_name, index = slot.items(2)
            _claim(slot_name, slot_name.text(), own)
            module.parameters.append((slot_name.text(), _index(index, tensors)))
        for slot in fields["buffers"].items():
            slot_name, index, persistent = slot.items(3)
            _claim(slot_name, slot_name.text(), own)
            module.buffers.append((slot_name.text(), _index(index, tensors), persistent.flag()))
    if not modules:
        node.fail("an artefact needs a module")
    return list(modules.values())


def _claim(node: Node, name: str, taken: set[str]) -> None:
    if not name or "." in name or name in taken or (name.startswith("__") and name.endswith("__")):
        node.fail(f"{name!r} cannot be a name here")
    taken.add(name)


def _index(node: Node, tensors: list[torch.Tensor]) -> int | None:
    if node.value is None:
        return None
    index = node.integer(0)
    if index >= len(tensors):
        node.fail(f"there are only {len(tensors)} tensors")
    return index


def _special(tag: str, node: Node) -> Any:
    if tag == "slot":
        return TensorSlot(node.integer(0))
    if tag == "again":
        return Again(node.integer(0))
    if tag == "tensor":
        return TensorRef(node.integer(0))
    if tag == "hole" and node.flag():
        return HOLE
    node.fail(f"unknown kind of operand {tag!r}")


class _Reader:
    """Reads methods; knows what they may refer to."""

    def __init__(self, artefact: Artefact, allow: frozenset[str]) -> None:
        self.artefact = artefact
        self.allow = allow
        self.state = artefact.state()
        self.paths = {module.path for module in artefact.modules}
        self.buffers = {
            f"{module.path}.{name}".lstrip(".") for module in artefact.modules for name, *_ in module.buffers
        }

    def method(self, name: str, node: Node) -> Method:
        if not name.isidentifier() or keyword.iskeyword(name) or (name.startswith("__") and name != "__call__"):
            node.fail(f"{name!r} cannot be the name of a method")
        if name != "forward" and hasattr(torch.nn.Module, name):
            node.fail(f"a method {name!r} would hide that of torch.nn.Module")
        fields = node.record("signature", "modes", "variants")
        method = Method(name, tuple(self.argument(item) for item in fields["signature"].items()), {})
        try:
            signature_of(method, self.artefact.constants)
        except ValueError as error:
            fields["signature"].fail(f"no function has this signature: {error}")
        variants = [self.variant(item, method.signature) for item in fields["variants"].items()]
        for mode, indices in fields["modes"].record(optional=(*MODES, *WITHOUT_GRADIENTS.values())).items():
            found = []
            for index in indices.items():
                if index.integer(0) >= len(variants):
                    index.fail(f"there are only {len(variants)} variants")
                found.append(variants[index.integer()])
            if not found or len({id(one) for one in found}) < len(found):
                indices.fail("expected at least one variant, and each once")
            method.variants[mode] = found[0]
            if found[1:]:
                method.others[mode] = tuple(found[1:])
        for mode, without in WITHOUT_GRADIENTS.items():
            if without in method.variants and mode not in method.variants:
                fields["modes"].fail(f"{mode!r} is missing beside {without!r}")
        if not method.variants:
            fields["modes"].fail("a method needs a mode")
        if len(method.all()) < len(variants):
            fields["variants"].fail("some of these are for no mode")
        return method

    def argument(self, node: Node) -> Argument:
        fields = node.record("name", "kind", optional=("default",))
        kind = fields["kind"].choice(*_KINDS)
        if not fields["name"].text().isidentifier():
            fields["name"].fail(f"{fields['name'].text()!r} cannot be the name of an argument")
        if "default" not in fields:
            return Argument(fields["name"].text(), kind)
        default = decode(fields["default"], {}, _special)
        for leaf in leaves(default):
            if isinstance(leaf, (TensorSlot, Again, Hole, Leaf)):
                fields["default"].fail("this is no default of an argument")
            if isinstance(leaf, TensorRef) and leaf.index >= len(self.artefact.constants):
                fields["default"].fail(f"there are only {len(self.artefact.constants)} constants")
        return Argument(fields["name"].text(), kind, default)

    def variant(self, node: Node, signature: tuple[Argument, ...]) -> Variant:
        fields = node.record(
            "program", "params", "template", "views", "stores", "shared", "same", "objects", "exceptions", "stopped",
            "device", optional=("answers", "settings"),
        )
        stores = [item.items(2) for item in fields["stores"].items()]
        values = [decode(tree, {}) for _, tree in stores]
        used = {leaf.index for tree in values for leaf in tree_leaves(tree)}
        program = program_from_document(fields["program"], used)
        check_operators(program, self.allow)
        sparse.secure(program)
        count = len(program.block.yields)
        variant = Variant(program, tuple(map(self.source, fields["params"].items(len(program.params)))), ())
        variant.template = self.template(fields["template"], signature, len(program.inputs))
        variables = {var.name: var for var in program.block.args}
        for item in fields["views"].items():
            position, source, steps = item.items(3)
            if position.integer(0) >= count:
                position.fail(f"there are only {count} results")
            variant.views[position.integer()] = self.view(source, steps, variables)
        targets = [self.target(target, variant) for target, _ in stores]
        trees = [program.output, *values]
        self.objects(fields["objects"], variant)
        for tree in trees:
            problem = check_tree(tree, count, variant.objects)
            if problem:
                fields["program"].fail(problem)
        for item in fields["shared"].items():
            first, again = item.items(2)
            part = self.found(first, trees)
            self.found(again, trees)
            trees = with_part(trees, _path(again), part)
        program.output = trees[0]
        variant.stores = tuple(Store(target, tree) for target, tree in zip(targets, trees[1:]))
        same = []
        for item in fields["same"].items():
            result, argument = item.items(2)
            if self.found(result, trees) == ():
                result.fail("an empty tuple cannot be the caller's own")
            same.append((_path(result), self.argument_path(argument, variant)))
        variant.same = tuple(same)
        for item in fields["exceptions"].items():
            name, base = item.items(2)
            if not name.text().rpartition(".")[2].isidentifier():
                name.fail("this is no name of a class")
            variant.exceptions[name.text()] = base.choice(*EXCEPTION_BASES)
        variant.stopped = frozenset(item.integer(0) for item in fields["stopped"].items())
        if "answers" in fields:
            tensors = len(program.inputs) + len(program.params)
            variant.answers = tuple(self.answer(item, tensors) for item in fields["answers"].items())
        if "settings" in fields:
            variant.settings = tuple(map(self.setting, fields["settings"].items()))
        try:
            variant.device = str(torch.device(fields["device"].text())) if fields["device"].text() else ""
        except RuntimeError:
            fields["device"].fail(f"{fields['device'].text()!r} is no device")
        return variant

    def answer(self, node: Node, count: int) -> Answer:
        index, name, answer = node.items(3)
        if index.integer(0) >= count:
            index.fail(f"there are only {count} inputs and parameters")
        if question(name.text()) is None:
            name.fail(f"{name.text()!r} is no question to a tensor")
        return Answer(index.integer(), name.text(), answer.integer() if type(answer.value) is int else answer.flag())

    def setting(self, node: Node) -> tuple[str, Plain]:
        name, value = node.items(2)
        if not is_setting(name.text()):
            name.fail(f"{name.text()!r} is no setting of PyTorch")
        if value.value is not None and type(value.value) not in (bool, int, float, str):
            value.fail("expected a plain value")
        return name.text(), value.value

    def template(self, node: Node, signature: tuple[Argument, ...], inputs: int) -> tuple[tuple[str, Any], ...]:
        pairs = [item.items(2) for item in node.items()]
        template = tuple((name.text(), decode(tree, {}, _special)) for name, tree in pairs)
        if [name for name, _ in template] != [argument.name for argument in signature]:
            node.fail("these are not the arguments of the signature")
        found = [leaf for _, tree in template for leaf in leaves(tree)]
        if {leaf.index for leaf in found if isinstance(leaf, TensorSlot)} != set(range(inputs)):
            node.fail("these are not the inputs of the program")
        if any(isinstance(leaf, (TensorRef, Hole, Leaf, Variable)) for leaf in found):
            node.fail("something here is no part of an argument")
        return template

    def view(self, source: Node, steps: Node, variables: Mapping[str, Variable]) -> View:
        if source.text() not in variables:
            source.fail(f"%{source.text()} is no input or parameter")
        return View(variables[source.text()], tuple(map(self.step, steps.items())))

    def step(self, node: Node) -> ViewStep:
        name, args, kwargs, index = node.items(4)
        try:
            view = name.text() in allowed_operators() and not aten.writes(aten.resolve(name.text()))
        except ProgramError:
            view = False
        if not view:
            name.fail(f"{name.text()!r} is no operator of a view")
        pairs = [pair.items(2) for pair in kwargs.items()]
        return ViewStep(
            name.text(),
            tuple(decode(arg, {}, _special) for arg in args.items()),
            tuple((key.text(), decode(value, {}, _special)) for key, value in pairs),
            index.integer(0),
        )

    def objects(self, node: Node, variant: Variant) -> None:
        for item in node.items():
            name, kind, items = item.items(3)
            values: Any = decode(items, {})
            if type(values) is not tuple:
                items.fail("expected a tuple")
            try:
                OBJECTS[kind.choice(*OBJECTS)][1](values)
            except (TypeError, ValueError):
                items.fail(f"these are not the items of a {kind.text()}")
            variant.objects[name.text()] = (kind.text(), values)

    def source(self, node: Node) -> State | Constant:
        tag, inner = node.tagged()
        if tag == "state" and inner.text() in self.state:
            return State(inner.text())
        if tag == "constant" and inner.integer(0) < len(self.artefact.constants):
            return Constant(inner.integer())
        node.fail("no parameter, buffer or constant is there")

    def target(self, node: Node, variant: Variant) -> Target:
        tag, inner = node.tagged()
        readers: dict[str, Callable[[], Target]] = {
            "state": lambda: self.buffer(inner),
            "constant": lambda: self.source(node),
            "attribute": lambda: self.attribute(*inner.items(2)),
            "passed": lambda: self.passed(variant, *inner.items(2)),
        }
        return readers[tag]() if tag in readers else node.fail(f"unknown kind of place {tag!r}")

    def buffer(self, node: Node) -> State:
        if node.text() not in self.buffers:
            node.fail(f"there is no buffer {node.text()!r}")
        return State(node.text())

    def attribute(self, path: Node, name: Node) -> Attribute:
        if path.text() not in self.paths:
            path.fail(f"there is no module {path.text()!r}")
        if not name.text().isidentifier() or name.text().startswith("__") or hasattr(torch.nn.Module(), name.text()):
            name.fail(f"{name.text()!r} cannot be an attribute here")
        return Attribute(path.text(), name.text())

    def passed(self, variant: Variant, path: Node, name: Node) -> Passed:
        if name.text() and (not name.text().isidentifier() or name.text().startswith("__")):
            name.fail(f"{name.text()!r} cannot be an attribute here")
        return Passed(self.argument_path(path, variant), name.text())

    def argument_path(self, node: Node, variant: Variant) -> KeyPath:
        return _path(node) if self.found(node, dict(variant.template)) is not None else ()

    def found(self, node: Node, tree: Any) -> Any:
        try:
            part = at_path(tree, _path(node))
        except (LookupError, TypeError):
            node.fail("there is nothing at this path")
        if not isinstance(part, (list, dict, tuple, Record)):
            node.fail("there is no container at this path")
        return part


def _path(node: Node) -> KeyPath:
    return tuple(decode(step, {}) for step in node.items())
