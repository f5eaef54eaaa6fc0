"""Who may import whom, as data, held against the import statements of every source file."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.ir.flow import Kind
from runtime.ops.registry import STRUCTURAL
from scripts import import_graph

ROOT = Path(__file__).resolve().parents[1]

BASE = {
    "runtime.collector", "runtime.errors", "runtime.ir", "runtime.kinds", "runtime.recursion_limit",
    "runtime.torch_internals", "runtime.version",
}  # fmt: skip
"""What every room of the runtime may use."""

ARROWS: dict[str, set[str]] = {
    "runtime.version": set(),
    "runtime.collector": set(),
    "runtime.kinds": set(),
    "runtime.recursion_limit": set(),
    "runtime.errors": {"runtime.ir.location"},
    "runtime.torch_internals": {
        "runtime.collector", "runtime.errors", "runtime.kinds", "runtime.ir.location", "runtime.version",
    },
    "runtime.ir": {"runtime.errors"},
    "runtime.ops": BASE,
    "runtime.tracer": BASE | {"runtime.ops"},
    "runtime.autodiff": BASE | {"runtime.ops", "runtime.passes", "runtime.tracer"},
    "runtime.regions": BASE | {"runtime.tracer"},
    "runtime.passes": BASE | {"runtime.ops"},
    "runtime.executor": BASE | {"runtime.ops"},
    "runtime.native": BASE | {"runtime.ops", "runtime.executor"},
    "runtime.kernels": BASE | {"runtime.ops", "runtime.executor", "runtime.native"},
    "runtime.storage": BASE | {"runtime.ops"},
    "runtime.export": BASE
    | {"runtime.ops", "runtime.executor", "runtime.native", "runtime.passes", "runtime.storage"},
    "runtime.batching": BASE | {"runtime.ops", "runtime.executor"},
    "runtime.calling": BASE
    | {"runtime.ops", "runtime.passes", "runtime.executor", "runtime.native", "runtime.kernels", "runtime.autodiff",
       "runtime.batching", "runtime.tracer"},
    "runtime.translated": BASE
    | {"runtime.ops", "runtime.tracer", "runtime.executor", "runtime.autodiff", "runtime.storage", "runtime.calling"},
    "runtime.compress": BASE
    | {"runtime.ops", "runtime.passes", "runtime.executor", "runtime.storage", "runtime.translated"},
    "runtime.serving": BASE
    | {"runtime.ops", "runtime.storage", "runtime.calling", "runtime.export", "runtime.translated"},
    "runtime.static": BASE
    | {"runtime.ops", "runtime.tracer", "runtime.autodiff", "runtime.calling", "runtime.storage",
       "runtime.translated"},
    "runtime": {"runtime"},
    "dy2static": {"runtime", "dy2static"},
}
"""A room, and what it may import besides itself. The longest matching name counts."""

THIRD_PARTY: dict[str, set[str]] = {
    "torch": {"runtime", "dy2static"},
    "numpy": {"runtime", "dy2static"},
    "sympy": {"runtime"},
    "gast": {"dy2static"},
    "astor": {"dy2static"},
    "rich": {"dy2static.cli", "dy2static.progress"},
    "safetensors": {"runtime.storage"},
    "onnx": {"runtime.export.onnx"},
    "onnx_ir": {"runtime.export.onnx"},
    "onnxruntime": {"runtime.export.onnx"},
    "openvino": {"runtime.export.onnx"},
    "onnxscript": {"runtime.torch_internals"},
    "pytest": {"dy2static.testing.plugin"},
    "_pytest": {"dy2static.testing.plugin"},
}
"""A library, and the rooms that may import it; a library that is not listed may be imported nowhere."""

PRIVATE_DOORS = "runtime.torch_internals"
"""The one room that may use PyTorch's private names."""


def modules() -> dict[str, Path]:
    """Every module of the two packages, by dotted name."""
    found = {}
    for package in ("dy2static", "runtime"):
        for file in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = file
    return found


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything imported anywhere in a module; relative imports are resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                package = parts[: len(parts) - node.level + is_package]
                base = ".".join([*package, base] if base else package)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def within(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


def room_of(module: str) -> str:
    """The longest room that holds a module.

    >>> room_of("runtime.ir.printer"), room_of("dy2static.cli.diff")
    ('runtime.ir', 'dy2static')
    """
    return max((room for room in ARROWS if within(module, room)), key=len)


def complaints(module: str, source: str, is_package: bool = False) -> list[str]:
    """What a module imports and may not."""
    room, found = room_of(module), []
    if room == "runtime" and module != "runtime":
        return [f"{module}: belongs to no room; add it to ARROWS"]
    tree = ast.parse(source)
    for line, name in imports(tree, module, is_package):
        top = name.split(".")[0]
        if top in ("runtime", "dy2static"):
            if not within(name, room) and not any(within(name, allowed) for allowed in ARROWS[room]):
                found.append(f"{module}:{line}: {room} may not import {name}")
        elif top not in sys.stdlib_module_names and not any(within(module, user) for user in THIRD_PARTY.get(top, ())):
            found.append(f"{module}:{line}: {top} may not be imported here")
        if room != PRIVATE_DOORS and is_private(name):
            found.append(f"{module}:{line}: {name} is private to PyTorch; go through {PRIVATE_DOORS}")
    if room != PRIVATE_DOORS:
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute):
                continue
            name = ast.unparse(node)
            if is_private(name) and not is_private(ast.unparse(node.value)):
                found.append(f"{module}:{node.lineno}: {name} is private to PyTorch; go through {PRIVATE_DOORS}")
    return found


def is_private(name: str) -> bool:
    """Whether a dotted name goes through a private or experimental part of PyTorch.

    >>> is_private("torch._C._dispatch"), is_private("torch.nn.Module"), is_private("torch.__version__")
    (True, False, False)
    """
    parts = name.split(".")
    hidden = any(part.startswith("_") and not part.startswith("__") for part in parts[1:])
    return parts[0] == "torch" and (hidden or within(name, "torch.fx.experimental"))


def test_modules_import_only_what_they_may() -> None:
    found = {module: complaints(module, path.read_text(), path.name == "__init__.py")
             for module, path in modules().items()}  # fmt: skip
    assert not {module: said for module, said in found.items() if said}


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("runtime.ir.x", "from runtime.ops import scalar", "runtime.ir may not import runtime.ops.scalar"),
        ("runtime.ops.x", "def f():\n    import dy2static", "runtime.ops may not import dy2static"),
        ("runtime.executor.x", "from ..tracer import x", "runtime.executor may not import runtime.tracer.x"),
        ("runtime.tracer.x", "import gast", "gast may not be imported here"),
        ("dy2static.x", "import pandas", "pandas may not be imported here"),
        ("dy2static.x", "import torch\nx = torch._C.f()", "torch._C is private to PyTorch"),
        ("dy2static.x", "from torch._subclasses import FakeTensor", "torch._subclasses.FakeTensor is private"),
        ("runtime.cellar", "", "belongs to no room"),
    ],
)
def test_forbidden_import_is_found(module: str, source: str, complaint: str) -> None:
    (found,) = complaints(module, source)
    assert complaint in found


@pytest.mark.parametrize("source", ["from . import names", "from .ir import types", "import runtime.ops.aten"])
def test_allowed_import_passes(source: str) -> None:
    assert complaints("runtime", source, is_package=True) == []


ROOMS = {
    "runtime.tracer": (
        "ambient", "numbers", "python_state", "memory", "values", "recording", "control", "boundary",
    ),
    "dy2static.operators": (
        "shared", "provenance", "calls", "constructs", "iteration", "values", "builtins", "dispatch",
    ),
}  # fmt: skip
"""The rooms of a package: each may import those before it when it runs, and name the types of those after it."""


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_import_only_those_before_them(package: str) -> None:
    rooms = [f"{package}.{name}" for name in ROOMS[package]]
    found = import_graph.graph(import_graph.sources())
    wrong = [
        f"{module} imports {other}"
        for module, imported in found.items()
        for other in imported
        for here in rooms
        for there in rooms[rooms.index(here) + 1 :]
        if within(module, here) and within(other, there)
    ]
    assert not wrong
    outside = {f"{package}.{path.stem}" for path in (ROOT / package.replace(".", "/")).glob("*.py")}
    assert outside == {f"{package}.__init__"}, "every file is in a room"


@pytest.mark.parametrize("package", ["runtime", "dy2static"])
def test_tests_of_a_package_stand_in_the_folder_of_its_name(package: str) -> None:
    folders = {file.parent.relative_to(ROOT / "tests") for file in (ROOT / "tests" / package).rglob("test_*.py")}
    assert folders
    assert not [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()]


def test_no_file_imports_one_that_imports_it() -> None:
    assert import_graph.cycles(import_graph.graph(import_graph.sources())) == []


def test_a_cycle_is_found() -> None:
    text = {"runtime.a": "from runtime import b", "runtime.b": "def f():\n    import runtime.c", "runtime.d": "",
            "runtime.c": "from runtime.a import x\nif TYPE_CHECKING:\n    import runtime.d"}  # fmt: skip
    found = import_graph.graph(text)
    assert import_graph.cycles(found) == [["runtime.a", "runtime.b", "runtime.c"]]
    assert found["runtime.d"] == set() and "runtime.d" not in found["runtime.c"]


def test_runtime_imports_without_the_converter_and_its_libraries() -> None:
    """Every module of the runtime, in a process where gast, astor, rich and dy2static cannot be imported."""
    names = [name for name in modules() if within(name, "runtime") and not within(name, "runtime.export")]
    run(
        "import importlib, sys\n"
        "for name in ('gast', 'astor', 'rich', 'dy2static'): sys.modules[name] = None\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
    )


BY_NAME: dict[str, set[str]] = {
    # Each is about exactly that operator.
    "runtime/passes/scan.py": {"while_loop", "assert"},  # a while_loop becomes a scan, its test an assert
    "runtime/ops/registry.py": {"scalar.", "array."},  # the names that no library's operators may have
    # Exceptions, of an assert or a raise.
    "dy2static/operators/calls/caches.py": {"assert"},
    "dy2static/verdicts.py": {"assert"},
    "runtime/export/needs.py": {"assert", "scalar."},
    "runtime/storage/allowed.py": {"assert"},
    "runtime/tracer/ambient/catching.py": {"assert"},
    # About writes to memory, and not about how Blocks run.
    "runtime/autodiff/forward.py": {"update"},
    "runtime/autodiff/node.py": {"update"},
    "runtime/calling/callee.py": {"update"},
    "runtime/ops/update.py": {"update"},
    "runtime/passes/fold_conv_bn.py": {"update"},
    "runtime/serving/rows.py": {"update"},
    "runtime/tracer/recording/gradient_paths.py": {"update"},
    "runtime/tracer/values/open_lists.py": {"update"},
    # Each turns operators into code of another language, a rule a family.
    "runtime/export/c/failures.py": {"scalar.", "array."},
    "runtime/export/lists.py": {"array."},
    "runtime/kernels/device/translation.py": {"scalar."},
    "runtime/native/calls.py": {"scalar."},
    "runtime/native/emitter.py": {"assert", "scalar.", "array."},
    "runtime/native/lowering.py": {"scalar."},
    "runtime/native/serving.py": {"scalar."},
    # Other things of the same name.
    "runtime/ops/host_numpy.py": {"cond"},  # numpy.linalg.cond
    "runtime/__init__.py": {"cond", "while_loop"},  # functions of runtime.static
}
"""Files that ask by name whether an operator is a certain one with Blocks, an assertion, or one about numbers or lists.
All others ask its definition (``runtime.ir.definition``): a list of names is silently wrong for the next operator. What
maps names to the code for each operator asks nothing."""

WITH_BLOCKS = {name for name, one in STRUCTURAL.items() if one.flow.kind is not Kind.PLAIN}
ASSERTIONS = {name for name, one in STRUCTURAL.items() if one.asserts}
FAMILIES = {name.partition(".")[0] + "." for name, one in STRUCTURAL.items() if one.about is not None}


def names_asked_for(tree: ast.AST) -> set[str]:
    """Operators with Blocks, assertions and families of operators that a module compares a name with, or lists;
    ``update`` is a method of Python's, too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            of_operator = any(isinstance(one, ast.Attribute) and one.attr == "name" for one in ast.walk(node))
            found |= _strings(node) if of_operator else _strings(node) - {"update"}
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.MatchValue)):
            found |= _strings(node) - {"update"}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
            found |= _strings(node)
    return found & (WITH_BLOCKS | ASSERTIONS | FAMILIES)


def _strings(node: ast.AST) -> set[str]:
    parts = list(ast.iter_child_nodes(node))
    parts += [item for one in parts if isinstance(one, (ast.Tuple, ast.List, ast.Set)) for item in one.elts]
    return {one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def without_all(tree: ast.Module) -> ast.Module:
    """A module without what it says that it gives."""
    tree.body = [one for one in tree.body
                 if not isinstance(one, ast.Assign) or "__all__" not in map(ast.unparse, one.targets)]  # fmt: skip
    return tree


def test_definitions_are_asked_in_place_of_names() -> None:
    found = {str(file.relative_to(ROOT)): names_asked_for(without_all(ast.parse(file.read_text())))
             for file in modules().values()}  # fmt: skip
    assert {file: names for file, names in found.items() if names} == BY_NAME


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('x = op.name == "while_loop"', {"while_loop"}),
        ('x = op.name in ("cond", "switch")', {"cond", "switch"}),
        ('_LOOPS = frozenset({"while_loop", "scan"})', {"while_loop", "scan"}),
        ('x = op.blocks and op.name != "update"', {"update"}),
        ('x = scope.kind == "while_loop"', {"while_loop"}),
        ('match op.name:\n  case "custom_grad": pass', {"custom_grad"}),
        ('x = name.startswith("while_loop")', {"while_loop"}),
        ('x = name.startswith("array.")', {"array."}),
        ('x = op.name.startswith(("scalar.", "array."))', {"scalar.", "array."}),
        ('_READ = ("scalar.", "grad.needed")', {"scalar."}),
        ('x = op.name == "assert"', {"assert"}),
        ('RULES = {"cond": emit}', set()),
        ('session.emit("cond", [flag])', set()),
        ('x = name in ("update", "pop")', set()),
        ('x = flow_of(op).kind is Kind.LOOP', set()),
    ],
)
def test_a_name_in_place_of_a_definition_is_found(source: str, names: set[str]) -> None:
    assert names_asked_for(ast.parse(source)) == names


@pytest.mark.parametrize("first", ["runtime.errors", "runtime.ir", "runtime.ops", "runtime.torch_internals"])
def test_any_door_may_be_the_first(first: str) -> None:
    """No module works only because another was imported before it."""
    run(f"import {first}")


def run(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


COMPARING = {
    "torch.equal", "torch.allclose", "torch.isclose", "torch.testing.assert_close", "np.array_equal", "np.allclose",
    "numpy.array_equal", "numpy.allclose", "pytest.approx",
}  # fmt: skip
COMPARERS = {
    "alone.py differences": "it runs in a process that must not find the tests",
    "dy2static/test_converted_module.py hold": "with a number that is written down",
    "dy2static/test_output_spec.py spelled": "which of the tensors that are written down a result is",
    "end_to_end/test_around_training.py close": "gradients may differ by a part of the largest number of each",
    "end_to_end/test_autocast.py differs": "whether autocast changes a value in eager, whatever the dtype",
    "end_to_end/test_numpy_uses.py in_a_loop": "a function that is converted",
    "end_to_end/test_numpy_uses.py questions": "a function that is converted",
    "end_to_end/test_torch_checks.py of_values": "a function that is converted",
    "runtime/export/c/programs.py made": "a program that is exported",
    "runtime/export/torch_export/test_model.py f": "a function that is exported",
    "runtime/native/test_halves.py close": "a few numbers may be the next one of their dtype",
    "runtime/ops/observe.py __init__": "whether a call of eager's draws random numbers",
}
"""Helpers of the tests that compare tensors by themselves, and what it is that the oracle does not compare."""


def comparers(source: str) -> list[str]:
    """The functions and methods of a file that compare tensors and are no tests, those in other functions included."""
    return [
        scope.name
        for scope, node in _with_function(ast.parse(source))
        if scope is not None and not scope.name.startswith("test_")
        if isinstance(node, ast.Attribute) and ast.unparse(node) in COMPARING
    ]


Scoped = tuple[ast.FunctionDef | None, ast.AST]


def _with_function(tree: ast.AST, scope: ast.FunctionDef | None = None) -> Iterator[Scoped]:
    """Every node, and the innermost function that it is in."""
    for node in ast.iter_child_nodes(tree):
        yield scope, node
        yield from _with_function(node, node if isinstance(node, ast.FunctionDef) else scope)


BY_TEXT = {
    "dy2static/test_generate.py test_constants_that_only_a_made_tree_holds": "constants of Python's, as it writes them",
    "dy2static/test_input_spec.py test_specs_that_are_equal": "what repr gives is what is tested",
}
"""Where two values are compared by their text or as lists, and why the oracle is no better."""


def by_text(source: str) -> list[str]:
    """The functions of a file that compare two results by their text or as lists: what is in neither is not seen.

    Found are ``repr(a) == repr(b)``, ``str(f(x)) == str(g(x))`` (a text of a name is an error's or a Program's),
    ``a.tolist() == b.tolist()``, ``(a == b).all()`` and ``a.tolist() if isinstance(a, torch.Tensor) else a``. What is
    equal to a constant as well is not.
    """
    return [scope.name for scope, node in _with_function(ast.parse(source)) if scope is not None and _is_by_text(node)]


def _is_by_text(node: ast.AST) -> bool:
    if isinstance(node, ast.IfExp):
        return _called(node.body) == "tolist" and _called(node.test) == "isinstance"
    if isinstance(node, ast.Call) and _called(node) == "all" and isinstance(node.func, ast.Attribute):
        sides = _sides(node.func.value)
        return bool(sides) and not any(isinstance(one, ast.Constant) for side in sides for one in ast.walk(side))
    sides = _sides(node)
    names = {_called(side) for side in sides}
    if names == {"str"}:
        return all(isinstance(side, ast.Call) and side.args and isinstance(side.args[0], ast.Call) for side in sides)
    return names in ({"repr"}, {"tolist"})


def _sides(node: ast.AST) -> list[ast.expr]:
    """The two that are compared by ``==`` or ``!=``."""
    if not isinstance(node, ast.Compare) or len(node.ops) > 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return []
    return [node.left, node.comparators[0]]


def _called(node: ast.AST) -> str:
    """The name of the function or method that is called, if one is."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_helpers_of_the_tests_compare_by_the_oracle() -> None:
    """The conformance suite's programs are what is tested."""
    assert found_in_tests(comparers, COMPARING) == set(COMPARERS)


def test_no_test_compares_results_by_their_text() -> None:
    assert found_in_tests(by_text, {"repr(", "str(", "tolist()", "all()"}) == set(BY_TEXT)


def found_in_tests(look: Callable[[str], list[str]], words: set[str]) -> set[str]:
    """The files of the tests and the functions in them that are found, of the files with one of the words."""
    tests = ROOT / "tests"
    files = [file for file in tests.rglob("*.py") if file != tests / "oracle.py" and file.parent.name != "cases"]
    return {
        f"{file.relative_to(tests).as_posix()} {name}"
        for file in files
        if any(word in (text := file.read_text()) for word in words)
        for name in look(text)
    }


LOOKING_AT_USERS_VALUES = ("runtime/tracer", "runtime/calling", "runtime/translated", "dy2static/operators")
"""Rooms in which ``isinstance`` would ask a user's object for its ``__class__``: ``is_a`` asks nobody."""
MAY_ASK = ("dy2static/operators/builtins/objects.py", "runtime/tracer/memory/inputs.py")
"""Files that answer for the user's ``isinstance``, or ask real tensors."""


def asking(text: str) -> list[int]:
    """The lines that ask ``isinstance`` of anything but what only a tensor can be, and only it knows of a fake one."""
    return [
        node.lineno for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
        and ast.unparse(node.args[1]) not in ("torch.nn.Parameter", "torch.nn.Buffer")
    ]  # fmt: skip


def test_users_objects_are_not_asked_for_their_class() -> None:
    files = [file for room in LOOKING_AT_USERS_VALUES for file in (ROOT / room).rglob("*.py")
             if not file.name.endswith("_in_python.py")]  # fmt: skip
    found = {file.relative_to(ROOT).as_posix(): asking(file.read_text()) for file in files}
    assert {name for name, lines in found.items() if lines} == set(MAY_ASK)
    assert asking("isinstance(x, (A, B))\nisinstance(x, torch.nn.Parameter)\nis_a(x, A)") == [1]


def test_a_comparer_is_found() -> None:
    text = (
        "def test_x():\n    assert torch.equal(a, b)\n    def hold(a, b): assert torch.equal(a, b)\n"
        "class A:\n    def same(self, a, b): return torch.equal(a, b)"
    )
    assert comparers(text) == ["hold", "same"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("repr(a) == repr(b)", True),
        ("repr(a) == 'x'", False),
        ("str(f(x)) == str(g(x))", True),
        ("str(error) == str(other.value)", False),
        ("a.tolist() == b.tolist()", True),
        ("a.tolist() != b.tolist()", True),
        ("a.tolist() == b.tolist() == [1.0]", False),
        ("a.tolist() == [1.0]", False),
        ("(a == b).all()", True),
        ("(a == 1).all()", False),
        ("(a < b).all()", False),
        ("all(a == b)", False),
        ("a.tolist() if isinstance(a, torch.Tensor) else a", True),
        ("a.tolist() if len(a) else a", False),
    ],
)
def test_a_comparison_by_text_is_found(text: str, found: bool) -> None:
    assert by_text(f"def test_x():\n    assert {text}") == (["test_x"] if found else [])
