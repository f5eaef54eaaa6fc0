"""The converter on code that was not written for it: every function of the standard library converts and compiles,
and modules whose functions are all converted do what they did."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import importlib
import importlib.util
import os
import types
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import gast
import pytest

from dy2static.conversion import convert
from dy2static.errors import ConversionError, SourceUnavailable, converting
from dy2static.generate import generate, to_source
from dy2static.nodes import children, mask_of
from dy2static.pipeline import ESCAPING_STEPS, ROUTED_STEPS, STEPS, VISITED_ONLY, Level, Step, convert_tree
from dy2static.source import candidates, describe
from dy2static.transforms.base import Context

LIBRARY = Path(os.__file__).parent
SAMPLE = ["bisect.py", "contextlib.py", "copy.py", "json/decoder.py", "shlex.py", "textwrap.py"]


def convert_file(path: Path, level: Any) -> int:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    count = 0
    for candidate in candidates(text, str(path), 0):
        name = getattr(candidate.node, "name", "<lambda>")
        source = describe(candidate, str(path), lines, "module", name, name)
        with converting(source):
            tree = convert_tree(source.tree, source, level)
        shell = gast.parse(f"def factory({', '.join(['_d2s', *source.freevars])}): pass")
        shell.body[0].body = [tree]
        compile(generate(shell)[0], str(path), "exec", dont_inherit=True)
        count += 1
    return count


@pytest.mark.parametrize("level", ["full", "control_flow"])
@pytest.mark.parametrize("file", SAMPLE)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_files_convert(file: str, level: str) -> None:
    assert convert_file(LIBRARY / file, level) > 3


def library(part: int) -> Iterator[Path]:
    """A fortieth of the standard library's files."""
    paths = [path for path in sorted(LIBRARY.rglob("*.py")) if not {"site-packages", "data"} & set(path.parts)]
    for path in paths[part::40]:
        try:
            compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue  # a file that is wrong on purpose
        yield path


WAYS: tuple[tuple[Sequence[Step], Level], ...] = (
    (STEPS, "full"), (STEPS, "control_flow"), (ROUTED_STEPS, "full"), (ESCAPING_STEPS, "full"),
)  # fmt: skip


def skip_steps(path: Path) -> tuple[int, int]:
    """Convert each function with and without leaving out the steps that it does not need: how many, how often."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    functions = conversions = 0
    for candidate in candidates(text, str(path), 0):
        source = describe(candidate, str(path), lines, "module", "name", "name")
        functions += 1
        for steps, level in WAYS:
            whole = [dataclasses.replace(step, needs=()) for step in steps]
            try:
                expected = to_source(convert_tree(deepcopy(source.tree), source, level, whole))
            except ConversionError:
                continue
            found = to_source(convert_tree(deepcopy(source.tree), source, level, steps))
            assert found == expected
            conversions += 1
    return functions, conversions


@pytest.mark.parametrize("file", SAMPLE)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_steps_that_are_left_out_change_nothing(file: str) -> None:
    functions, conversions = skip_steps(LIBRARY / file)
    assert functions > 3 and conversions > 3 * functions


def hold_kinds(step: Step) -> Step:
    """The step; after it, what nodes keep of the kinds under them is held against what is there."""

    def there(node: gast.AST, key: str) -> int:
        found = mask_of([type(node)])
        for child in children(node):
            found |= there(child, key)
        kept = node.__dict__.get(key, found)
        assert found | kept == kept, f"{step.name} changed a part of {ast.dump(node)[:200]}, which keeps other kinds"
        return found

    def transform(tree: Any, context: Context) -> Any:
        new = step.transform(tree, context)
        if context.kinds is not None:
            there(new, context.kinds)
        return new

    return dataclasses.replace(step, transform=transform)


def keep_kinds(path: Path) -> int:
    """Convert each function, looking at what nodes keep after each step, and again where they keep nothing."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    conversions = 0
    for candidate in candidates(text, str(path), 0):
        if isinstance(candidate.node, ast.Lambda):
            continue
        source = describe(candidate, str(path), lines, "module", "name", "name")
        for steps in (STEPS, ESCAPING_STEPS):
            anew = [dataclasses.replace(step, name=f"{step.name}, keeping nothing") for step in steps]
            try:
                expected = to_source(convert_tree(deepcopy(source.tree), source, "full", anew))
            except ConversionError:
                continue
            found = convert_tree(deepcopy(source.tree), source, "full", [hold_kinds(step) for step in steps])
            assert to_source(found) == expected
            conversions += 1
    return conversions


@pytest.mark.parametrize("file", SAMPLE)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_what_nodes_keep_of_the_kinds_under_them_is_true(file: str) -> None:
    assert keep_kinds(LIBRARY / file) > 5


def test_steps_that_keep_kinds_are_steps() -> None:
    assert {step.name for step in ESCAPING_STEPS} >= VISITED_ONLY


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(40))
@pytest.mark.filterwarnings("ignore")
def test_kinds_kept_in_the_library(part: int) -> None:
    for path in list(library(part))[part % 4 :: 4]:
        keep_kinds(path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(40))
@pytest.mark.filterwarnings("ignore")
def test_steps_left_out_in_the_library(part: int) -> None:
    for path in list(library(part))[part % 4 :: 4]:
        skip_steps(path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(40))
@pytest.mark.filterwarnings("ignore")
def test_the_whole_library_converts(part: int) -> None:
    for path in library(part):
        for level in ("full", "control_flow"):
            convert_file(path, level)


def converted_copy(name: str) -> tuple[types.ModuleType, types.ModuleType, int]:
    """A module as it is, a copy of it with all functions converted, and how many there were."""
    original = importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"converted_{name.replace('.', '_')}", original.__file__)
    assert spec is not None and spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    copy.__package__ = original.__package__
    spec.loader.exec_module(copy)
    return original, copy, _convert_all(copy, copy.__name__)


def _convert_all(owner: Any, module: str) -> int:
    count = 0
    for name, value in list(vars(owner).items()):
        if isinstance(value, types.FunctionType) and value.__module__ == module:
            count += _store(owner, name, value, lambda function: function)
        elif isinstance(value, (classmethod, staticmethod)) and isinstance(value.__func__, types.FunctionType):
            count += _store(owner, name, value.__func__, type(value))
        elif isinstance(value, type) and value.__module__ == module:
            count += _convert_all(value, module)
    return count


def _store(owner: Any, name: str, function: types.FunctionType, wrap: Callable[[Any], Any]) -> int:
    try:
        setattr(owner, name, wrap(convert(function)))
    except SourceUnavailable:  # named tuples make methods by exec
        return 0
    return 1


def use_textwrap(module: Any) -> Any:
    text = Path(difflib.__file__).read_text(encoding="utf-8")[:1500]
    lines = [module.wrap(text, width, break_on_hyphens=b) for width in (11, 40, 79) for b in (True, False)]
    return lines, module.dedent(text), module.indent(text, "> "), module.shorten(text, 60)


def use_shlex(module: Any) -> Any:
    texts = ["a 'b c' \"d\\\"e\" f#g", "x=1;y && z|w", "#only", "it''s \\ ok"]
    found: list[Any] = [module.split(text, comments=True) for text in texts]
    found += [list(module.shlex(text, punctuation_chars=True)) for text in texts]
    try:
        module.split("open 'quote")
    except ValueError as error:
        found.append(str(error))
    return found, module.join(["a b", "c"])


def use_difflib(module: Any) -> Any:
    a, b = "the quick brown fox\njumps\nover".split("\n"), "the quack brown fix\njumps\nunder it".split("\n")
    matcher = module.SequenceMatcher(None, a[0], b[0])
    return (
        list(module.ndiff(a, b)), list(module.unified_diff(a, b)), matcher.get_opcodes(), matcher.ratio(),
        module.get_close_matches("fix", ["fox", "six", "tree"]),
    )  # fmt: skip


def use_fractions(module: Any) -> Any:
    f = module.Fraction
    values = [f(1, 3), f("-2.5"), f(7), f(0.375), f("3/4")]
    pairs = [(x, y) for x in values for y in values]
    return [str(x * y + x / y - x**2) for x, y in pairs], [x.limit_denominator(3) == y for x, y in pairs]


def use_configparser(module: Any) -> Any:
    parser = module.ConfigParser()
    parser.read_string("[a]\nx = 1\ny: %(x)s2\n[b]\nlong = one\n  two\n; comment\nflag =\n")
    errors = []
    for text in ("x=1", "[a]\n[a]\n", "[a]\n=1\n"):
        try:
            module.ConfigParser().read_string(text)
        except Exception as error:  # the kind of error is what is compared
            errors.append((type(error).__name__, str(error)))
    return {s: dict(parser[s]) for s in parser.sections()}, parser.getint("a", "y"), errors


USES = [use_textwrap, use_shlex, use_difflib, use_fractions, use_configparser]


@pytest.mark.parametrize("use", USES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_converted_modules_do_what_they_did(use: Callable[[Any], Any]) -> None:
    original, copy, count = converted_copy(use.__name__.removeprefix("use_"))
    assert count > 10
    assert repr(use(copy)) == repr(use(original)).replace(original.__name__ + ".", copy.__name__ + ".")
